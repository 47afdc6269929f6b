//! The words at the beginning of an endpoint's memory: who owns it, who sends through which slot,
//! and which regions peers may access.
//!
//! - **Slot rule 1.** A slot goes from FREE to CLAIMED by a compare-exchange of the sender's, which also writes its
//!   process there, to READY by that sender, to CLOSED by it when it leaves, and back to FREE by the owner, who has
//!   then drained the ring and retired its end. A slot that is not CLOSED becomes FREE only if its sender gives it up
//!   before it is READY, or if the sender's process does not have its endpoint any more.
//! - **Slot rule 2.** The sender writes the slot's address before the Release store of READY, and the owner reads it
//!   after its Acquire load.
//! - **Region rule.** Only the owner writes the words of regions. It takes a region out, then changes the generation,
//!   and passes a Release fence before it gives the entry's words other values; a reader looks at the generation before
//!   and, behind an Acquire fence, after the words, and takes no words of two generations.
//! - **Cancel rule.** An announcement says how often its sender has ended announced sends (`cancels`). The owner counts
//!   up and passes a Release fence before it gives a buffer back whose announcement a peer may still have; a peer looks
//!   at the count behind its copy and an Acquire fence, and takes no bytes if it has changed.
//! - **Pipe rule.** A thread of the owner's that will wait for its pipe arms it and has every ring notify, passes a
//!   heavy barrier, and looks for records and changed slots once more. A sender commits its record or changes its slot,
//!   passes a barrier, and then looks whether the pipe is armed: one of both sees the other.

use perusal::internals::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Senders that one endpoint can have at a time.
pub const SLOTS: usize = if cfg!(perusal_loom) { 1 } else { 1024 };
/// Entries for regions, a power of two; peers ask for those that have none.
const REGIONS: usize = if cfg!(perusal_loom) { 1 } else { 256 };
/// Entries in which a key may be.
const PROBES: usize = if cfg!(perusal_loom) { 1 } else { 4 };

const MAGIC: u64 = 0x7065_7275_7361_6c08;

/// The states of a slot.
pub const FREE: u32 = 0;
/// In the lowest two bits: the others are the sender's process.
const CLAIMED: u32 = 1;
/// A sender is there.
pub const READY: u32 = 2;
/// The sender has left.
pub const CLOSED: u32 = 3;

/// The state of a slot that this process has claimed: numbers of processes have 22 bits at most.
fn claimed_by(pid: u32) -> u32 {
    pid << 2 | CLAIMED
}

/// Where the number that the endpoint has drawn is in its memory.
pub const NONCE_AT: u64 = std::mem::offset_of!(Words, nonce) as u64;

/// Who sends through a slot: process, descriptor, number that was drawn.
pub type Sender = (u32, u32, u64);

/// One sender's place.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Slot {
    state: AtomicU32,
    pid: AtomicU32,
    fd: AtomicU32,
    nonce: AtomicU64,
}

/// A region that peers may access.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct RegionWords {
    /// 1: the other words are those of a region.
    there: AtomicU32,
    key: AtomicU64,
    base: AtomicU64,
    at: AtomicU64,
    len: AtomicU64,
    access: AtomicU64,
}

/// What an origin knows of a region: it accesses the memory itself while the generation is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub generation: u32,
    /// What addresses of accesses count from.
    pub base: u64,
    /// Where the memory is in the owner's process.
    pub at: u64,
    pub len: u64,
    /// FI_REMOTE_READ, FI_REMOTE_WRITE.
    pub access: u64,
}

/// The beginning of the memory.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Words {
    magic: AtomicU64,
    nonce: AtomicU64,
    /// 1: the owner and its senders use membarrier; 0: processor fences.
    membarrier: AtomicU32,
    /// How often a slot has become READY or CLOSED.
    changes: AtomicU32,
    /// How often the owner has taken a region away.
    generation: AtomicU32,
    /// The descriptor in the owner's process of a pipe that wakes a thread of it, plus 1; 0: none.
    pipe: AtomicU32,
    /// The number of the pipe's file, which no other pipe has.
    pipe_file: AtomicU64,
    /// 1: a thread of the owner's waits for the pipe, or is about to.
    armed: AtomicU32,
    /// 1: the owner counts accesses of peers, and wants to hear of those that need no answer.
    counts_accesses: AtomicU32,
    /// How often the owner has ended sends whose announcements peers may still have.
    cancels: AtomicU32,
    slots: [Slot; SLOTS],
    regions: [RegionWords; REGIONS],
}

impl Words {
    /// Words that are all 0, as those of new memory are.
    #[cfg(any(test, perusal_loom))]
    #[allow(dead_code, reason = "models and tests have them")]
    pub fn new() -> Self {
        let word = AtomicU32::default;
        Self {
            magic: AtomicU64::default(),
            nonce: AtomicU64::default(),
            membarrier: word(),
            changes: word(),
            generation: word(),
            pipe: word(),
            pipe_file: AtomicU64::default(),
            armed: word(),
            counts_accesses: word(),
            cancels: word(),
            slots: std::array::from_fn(|_| Slot::default()),
            regions: std::array::from_fn(|_| RegionWords::default()),
        }
    }

    /// The owner has drawn this number, and takes records from now on.
    pub fn open(&self, nonce: u64, membarrier: bool) {
        // Relaxed, both: published by the store below.
        self.nonce.store(nonce, Ordering::Relaxed);
        self.membarrier.store(u32::from(membarrier), Ordering::Relaxed);
        // Release: head edge, pairs with Acquire in `is`: the words above are there.
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether these are the words of the endpoint that has drawn this number.
    pub fn is(&self, nonce: u64) -> bool {
        // Acquire: head edge, pairs with Release in `open`.
        self.magic.load(Ordering::Acquire) == MAGIC && self.nonce.load(Ordering::Relaxed) == nonce
    }

    /// Whether the owner and its senders use membarrier.
    pub fn uses_membarrier(&self) -> bool {
        // Relaxed: behind the Acquire in `is`.
        self.membarrier.load(Ordering::Relaxed) != 0
    }

    /// The owner says that it takes nothing any more.
    pub fn close(&self) {
        // Release: closed edge, pairs with Acquire in `is_closed`.
        self.magic.store(0, Ordering::Release);
        // Release fence: closed edge, pairs with the Acquire fence in `is_closed`: whoever sees what is done with
        // buffers from now on sees the endpoint closed.
        fence(Ordering::Release);
    }

    /// Whether the owner takes nothing any more. If not, what was read before from its process is what its buffers held
    /// while it was open.
    pub fn is_closed(&self) -> bool {
        // Acquire fence: closed edge, pairs with the Release fence in `close`.
        fence(Ordering::Acquire);
        // Acquire: closed edge, pairs with Release in `close`.
        self.magic.load(Ordering::Acquire) != MAGIC
    }

    /// How often slots have changed: look at them if it is another number than before.
    #[inline(always)]
    pub fn changes(&self) -> u32 {
        // Acquire: changes edge, pairs with the AcqRel in `publish`: the slots' states are there.
        self.changes.load(Ordering::Acquire)
    }

    /// Takes a slot for a sender; `None` if all are taken.
    pub fn claim(&self, (pid, fd, nonce): Sender) -> Option<usize> {
        let free = |slot: &Slot| {
            // Acquire: free edge, pairs with Release in `free`, `give_up`: the owner's end has retired.
            slot.state.compare_exchange(FREE, claimed_by(pid), Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let at = self.slots.iter().position(free)?;
        let slot = &self.slots[at];
        // Relaxed, all: published by `publish` (slot rule 2).
        slot.pid.store(pid, Ordering::Relaxed);
        slot.fd.store(fd, Ordering::Relaxed);
        slot.nonce.store(nonce, Ordering::Relaxed);
        Some(at)
    }

    /// Gives back a slot that was claimed, and through which nothing was sent.
    pub fn give_up(&self, at: usize) {
        // Release: free edge, pairs with Acquire in `claim`: passes on what `claim` has seen.
        self.slots[at].state.store(FREE, Ordering::Release);
    }

    /// Returns the process that has claimed a slot and has not said READY.
    pub fn claimer(&self, at: usize) -> Option<u32> {
        // Relaxed: the state has the process in it.
        let state = self.slots[at].state.load(Ordering::Relaxed);
        (state & 3 == CLAIMED).then_some(state >> 2)
    }

    /// The owner takes back a slot whose claimer has ended.
    pub fn take_back(&self, at: usize, claimer: u32) {
        let claimed = claimed_by(claimer);
        // Relaxed, both: an exchange of what an exchange has written goes on with the release of `free` or `give_up`.
        let _ = self.slots[at].state.compare_exchange(claimed, FREE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The sender says that its slot is READY or CLOSED.
    pub fn publish(&self, at: usize, state: u32) {
        // Release: slot edge, pairs with Acquire in `state`.
        self.slots[at].state.store(state, Ordering::Release);
        // AcqRel: changes edge, pairs with Acquire in `changes`.
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the state of a slot.
    pub fn state(&self, at: usize) -> u32 {
        // Acquire: slot edge, pairs with Release in `publish`.
        self.slots[at].state.load(Ordering::Acquire)
    }

    /// Returns who sends through a slot that is READY or CLOSED.
    pub fn sender(&self, at: usize) -> Sender {
        let slot = &self.slots[at];
        // Relaxed, all: behind the Acquire load of the state (slot rule 2).
        (
            slot.pid.load(Ordering::Relaxed),
            slot.fd.load(Ordering::Relaxed),
            slot.nonce.load(Ordering::Relaxed),
        )
    }

    /// The owner gives a slot back whose ring it has drained and retired.
    pub fn free(&self, at: usize) {
        // Release: free edge, pairs with Acquire in `claim`.
        self.slots[at].state.store(FREE, Ordering::Release);
    }

    /// A thread of the owner's is about to wait for this pipe, whose file has this number.
    pub fn arm(&self, pipe: u32, file: u64) {
        // Relaxed, both: published by the store below.
        self.pipe.store(pipe + 1, Ordering::Relaxed);
        self.pipe_file.store(file, Ordering::Relaxed);
        // Release: pipe edge, pairs with Acquire in `take_armed`: the pipe is known.
        // The owner's heavy barrier follows (pipe rule).
        self.armed.store(1, Ordering::Release);
    }

    /// No thread of the owner's waits for the pipe.
    pub fn disarm(&self) {
        // Relaxed: a byte too many in the pipe is harmless.
        self.armed.store(0, Ordering::Relaxed);
    }

    /// Whether a thread of the owner's waits for the pipe: then whoever asks must wake it, and nobody else needs to.
    pub fn take_armed(&self) -> bool {
        // Relaxed: a hint, behind the caller's barrier (pipe rule). Acquire: pipe edge, pairs with Release in `arm`.
        self.armed.load(Ordering::Relaxed) == 1 && self.armed.swap(0, Ordering::Acquire) == 1
    }

    /// The descriptor of the owner's pipe, and the number of its file.
    pub fn pipe(&self) -> Option<(u32, u64)> {
        // Relaxed, both: behind the Acquire in `take_armed`, and compared with the pipe that is there.
        let descriptor = self.pipe.load(Ordering::Relaxed).checked_sub(1)?;
        Some((descriptor, self.pipe_file.load(Ordering::Relaxed)))
    }

    /// Whether the owner counts accesses of peers.
    pub fn counts_accesses(&self) -> bool {
        // Relaxed: a counter is bound before peers learn of a region.
        self.counts_accesses.load(Ordering::Relaxed) != 0
    }

    /// The owner counts accesses of peers from now on.
    pub fn set_counts_accesses(&self) {
        // Relaxed: see `counts_accesses`.
        self.counts_accesses.store(1, Ordering::Relaxed);
    }

    /// The owner ends announced sends, for the time of this number, and will give their buffers back.
    pub fn cancel(&self, number: u32) {
        // Relaxed: the fence publishes it.
        self.cancels.store(number, Ordering::Relaxed);
        // Release fence: cancel edge, pairs with the Acquire fence in `cancels`: whoever has copied what comes into the
        // buffers now sees the number.
        fence(Ordering::Release);
    }

    /// How often the owner has ended announced sends, as it is behind what was copied from it.
    pub fn cancels(&self) -> u32 {
        // Acquire fence: cancel edge, pairs with the Release fence in `cancel`.
        fence(Ordering::Acquire);
        // Relaxed: behind the fence.
        self.cancels.load(Ordering::Relaxed)
    }

    /// Returns how often the owner has taken a region away.
    pub fn generation(&self) -> u32 {
        // Acquire: region edge, pairs with Release in `forget`: words of an older generation are gone.
        self.generation.load(Ordering::Acquire)
    }

    fn places(&self, key: u64) -> impl Iterator<Item = &RegionWords> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..PROBES).map(move |probe| &self.regions[(first + probe) % REGIONS])
    }

    /// The owner says where a region is. False: there is no entry for it.
    pub fn tell(&self, key: u64, region: &Known) -> bool {
        // Relaxed: only the owner writes it.
        let free = |entry: &&RegionWords| entry.there.load(Ordering::Relaxed) == 0;
        let Some(entry) = self.places(key).find(free) else { return false };
        // Relaxed, all: behind the Release fence of the `forget` that freed the entry (region rule).
        entry.key.store(key, Ordering::Relaxed);
        entry.base.store(region.base, Ordering::Relaxed);
        entry.at.store(region.at, Ordering::Relaxed);
        entry.len.store(region.len, Ordering::Relaxed);
        entry.access.store(region.access, Ordering::Relaxed);
        // Release: region edge, pairs with Acquire in `known`: the words above are there.
        entry.there.store(1, Ordering::Release);
        true
    }

    /// The owner has taken the region with this key away: it is the next generation.
    pub fn forget(&self, key: u64, generation: u32) {
        // Relaxed, all: only the owner writes them; the next store publishes that the region is gone.
        let its = |entry: &&RegionWords| {
            entry.there.load(Ordering::Relaxed) == 1 && entry.key.load(Ordering::Relaxed) == key
        };
        self.places(key).filter(its).for_each(|entry| entry.there.store(0, Ordering::Relaxed));
        // Release: region edge, pairs with Acquire in `generation`: whoever sees this generation does not find the
        // region.
        self.generation.store(generation, Ordering::Release);
        // Release fence: region edge, pairs with the Acquire fence in `known`: whoever sees words that follow sees this
        // generation.
        fence(Ordering::Release);
    }

    /// What the owner says of the region with this key.
    pub fn known(&self, key: u64) -> Option<Known> {
        let generation = self.generation();
        self.places(key).find_map(|entry| {
            // Acquire: region edge, pairs with Release in `tell`.
            if entry.there.load(Ordering::Acquire) != 1 {
                return None;
            }
            // Relaxed, all: behind the Acquire load, and checked by the second look at the generation (region rule).
            let its = entry.key.load(Ordering::Relaxed) == key;
            let known = Known {
                generation,
                base: entry.base.load(Ordering::Relaxed),
                at: entry.at.load(Ordering::Relaxed),
                len: entry.len.load(Ordering::Relaxed),
                access: entry.access.load(Ordering::Relaxed),
            };
            // Acquire fence: region edge, pairs with the Release fence in `forget`.
            fence(Ordering::Acquire);
            (its && self.generation.load(Ordering::Relaxed) == generation).then_some(known)
        })
    }
}
