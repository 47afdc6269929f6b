//! The memory that the two requests of a partitioned message share, and where the data goes.

use super::words::{ArrivalCount, ChannelWords};
use crate::abi::MPI_ANY_TAG;
use crate::comm::Comm;
use crate::engine::{Engine, MatchContext, PEER_ADDRESS, PeerAddress};
use crate::error::{Error, Result};
use crate::heap::{Extent, Heap};
use crate::limits::APART;
use core::ptr::NonNull;

/// Bytes of the message by which the receive tells the send where everything is.
pub(super) const HELLO: usize = 3 * 8 + PEER_ADDRESS;

/// The tag of that message on the collective context: none of the collectives'.
const APART_TAG: i32 = 1 << 22;

/// Context and tag of that message for requests with a user's `tag`. No user's message has a negative tag;
/// but one of those is MPI_ANY_TAG.
pub(super) fn handshake(comm: &Comm, tag: i32) -> (&MatchContext, i32) {
    if !tag == MPI_ANY_TAG { (comm.collective(), APART_TAG) } else { (comm.p2p(), !tag) }
}

/// Where the sender writes the data.
#[derive(Debug, Clone, Copy)]
pub(super) enum Landing {
    /// In the receiver's buffer, which is mapped here.
    Buffer(*mut u8),
    /// Behind the words: the receiver copies it to its buffer.
    Staged(*mut u8),
}

/// A view of the shared memory: the words, a count for each of the receiver's partitions, and room for the data if that
/// does not go to the receiver's buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Channel {
    words: NonNull<u8>,
    /// Partitions of the receiver, and bytes of each.
    number: usize,
    each: usize,
    pub landing: Landing,
    /// The run of granules that all of it lies in.
    run: (u64, u64),
}

// SAFETY: it points to memory that is mapped in the whole process until both requests have left (partition rule 3);
// the words are atomics.
unsafe impl Send for Channel {}
// SAFETY: the words are atomics; partition rule 1 says which side accesses the data when.
unsafe impl Sync for Channel {}

/// Bytes of the words and counts of so many partitions.
fn head(number: usize) -> Option<usize> {
    let counts = number.checked_mul(size_of::<ArrivalCount>())?;
    size_of::<ChannelWords>().checked_add(counts)?.checked_next_multiple_of(APART)
}

impl Channel {
    /// Makes the memory for a receive of `number` partitions of `each` bytes, into the run of bytes at `buffer` if that
    /// is where the sender can write. Of private memory it cannot: two copies, one at each side, are faster than one by
    /// the kernel (16 partitions of 64 KiB that one thread marks as ready: 30 GB/s against 7.6). Returns it with the
    /// message for the sender.
    pub fn make(
        engine: &Engine,
        (number, each): (usize, usize),
        buffer: Option<*mut u8>,
        same_process: bool,
    ) -> Result<(Self, [u8; HELLO])> {
        let none =
            || Error::NoMem(format!("the shared heap has no room for {number} partitions of {each} bytes"));
        let heap = Heap::of(engine.job()).ok_or_else(none)?;
        let at = buffer.map(|addr| engine.peer_address(addr, number * each));
        let direct = at.filter(|at| same_process || matches!(at, PeerAddress::Place(_)));
        let head = head(number).ok_or_else(none)?;
        let staged = if direct.is_some() { 0 } else { number * each };
        let extent = heap.allocate(head.checked_add(staged).ok_or_else(none)?, APART).ok_or_else(none)?;
        let words = extent.addr();
        // SAFETY: the extent is ours, at least so long, and nobody else knows it yet.
        unsafe { words.as_ptr().write_bytes(0, head) };
        let place = heap.place_of(words.as_ptr(), head).ok_or_else(none)?;
        let landing = match (direct, buffer) {
            (Some(_), Some(addr)) => Landing::Buffer(addr),
            _ => Landing::Staged(words.as_ptr().wrapping_add(head)),
        };
        let mut hello = [0; HELLO];
        for (word, room) in [place, number as u64, each as u64].iter().zip(hello.chunks_exact_mut(8)) {
            room.copy_from_slice(&word.to_ne_bytes());
        }
        // Place 0 is none: what is staged lies behind the words.
        hello[24..].copy_from_slice(&direct.unwrap_or(PeerAddress::Place(0)).encode());
        Ok((Self { words, number, each, landing, run: extent.granules() }, hello))
    }

    /// A receive's message, checked: whatever it says, the sender writes into the shared heap of the receiver's job, or
    /// where ranks are threads.
    pub fn join(heap: Option<Heap<'_>>, hello: &[u8; HELLO], same_process: bool) -> Result<Self> {
        let wrong = || Error::Intern("a partitioned receive names memory that is not there".into());
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|i| hello[at * 8 + i]));
        let heap = heap.ok_or_else(wrong)?;
        let number = usize::try_from(word(1)).map_err(|_| wrong())?;
        let each = usize::try_from(word(2)).map_err(|_| wrong())?;
        let bytes = number.checked_mul(each).ok_or_else(wrong)?;
        let head = head(number).ok_or_else(wrong)?;
        let words = heap.at(word(0), head as u64).ok_or_else(wrong)?;
        let at = PeerAddress::decode(core::array::from_fn(|i| hello[24 + i]));
        let (landing, all) = match at {
            PeerAddress::Place(0) => {
                let all = head.checked_add(bytes).ok_or_else(wrong)?;
                heap.at(word(0), all as u64).ok_or_else(wrong)?;
                (Landing::Staged(words.as_ptr().wrapping_add(head)), all)
            }
            PeerAddress::Place(place) => {
                let there = heap.at(place, bytes as u64).ok_or_else(wrong)?;
                (Landing::Buffer(there.as_ptr()), head)
            }
            PeerAddress::Address(addr) if same_process => {
                (Landing::Buffer(core::ptr::with_exposed_provenance_mut(addr as usize)), head)
            }
            PeerAddress::Address(_) => return Err(wrong()),
        };
        if !(words.as_ptr() as usize).is_multiple_of(APART) {
            return Err(wrong());
        }
        Ok(Self { words, number, each, landing, run: heap.run_of(word(0), all) })
    }

    pub fn words(&self) -> &ChannelWords {
        // SAFETY: the memory begins with them, aligned, zeroed before anybody used it, which is a value of theirs;
        // all accesses are atomic.
        unsafe { self.words.cast::<ChannelWords>().as_ref() }
    }

    /// The count of one of the receiver's partitions.
    pub fn count(&self, partition: usize) -> &ArrivalCount {
        assert!(partition < self.number);
        // SAFETY: behind the words lies a count for each partition (`head`); zeros are counts; all accesses are atomic.
        unsafe { self.words.add(size_of::<ChannelWords>()).cast::<ArrivalCount>().add(partition).as_ref() }
    }

    /// Bytes that the receiver has room for.
    pub fn bytes(&self) -> usize {
        self.number * self.each
    }

    /// Counts bytes `[from, from + len)` of the data as there.
    pub fn count_arrived(&self, from: usize, len: usize) {
        let (mut at, end) = (from, from + len);
        while at < end {
            let partition = at / self.each;
            let until = ((partition + 1) * self.each).min(end);
            self.count(partition).add((until - at) as u64);
            at = until;
        }
    }

    /// Frees the memory, of which the sender has not heard.
    pub fn discard(&self, heap: Option<Heap<'_>>) {
        // For the sender, too.
        let last = self.words().leave();
        debug_assert!(!last, "nobody else has left");
        self.leave(heap);
    }

    /// Leaves; the last of the two frees the memory (partition rule 3),
    /// which is of the shared heap of the receiver's job.
    pub fn leave(&self, heap: Option<Heap<'_>>) {
        if self.words().leave()
            && let Some(heap) = heap
        {
            let extent: Extent = heap.extent(self.run.0, self.run.1);
            heap.free(&extent);
        }
    }
}
