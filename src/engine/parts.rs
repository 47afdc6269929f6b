//! What the engine keeps for each peer.

use super::outside::Outside;
use super::tx::TxQueue;
use super::{Contents, CopiesFromPeer, CopyRates, Engine};
use crate::doorbell::Doorbell;
use crate::ring::{Blocks, MappedRing};
use crate::shm::Memory;
use crate::sync::{Arc, AtomicU32, ConditionalLock, Ordering, Relaxed, RwLock};
use core::ptr::NonNull;
use std::sync::{OnceLock, PoisonError};

/// One peer, as a sender sees it.
pub(crate) struct Peer {
    /// The peer's doorbell.
    pub doorbell: Doorbell,
    /// The transmit queue to it, once a first message has gone there.
    pub tx: ConditionalLock<Option<Box<TxQueue>>>,
    cold: Box<ColdPeer>,
}

/// What of a peer no short message looks at.
#[derive(Default)]
struct ColdPeer {
    /// Where it is reached, if it belongs to another job.
    outside: RwLock<Option<Outside>>,
    /// The blocks of the two rings between this rank and it.
    blocks: OnceLock<Arc<Blocks<MappedRing>>>,
    /// Messages to it that are announced, and neither copied nor cancelled.
    /// Relaxed: a hint of this rank to itself.
    announced: AtomicU32,
    /// For each [`Contents`].
    copy_rates: [CopyRates; 3],
    /// Those of the last message that was judged.
    last_contents: Relaxed<u32>,
}

impl Peer {
    pub(crate) fn new(doorbell: Doorbell) -> Self {
        Self { doorbell, tx: ConditionalLock::default(), cold: Box::default() }
    }

    /// The blocks of the two rings between this rank and rank `peer`, which it is. (What goes to a guest goes through a
    /// ring of another job's memory, without blocks.)
    ///
    /// # Safety
    ///
    /// Their holder keeps the job. The start of the ring to the peer is reserved.
    #[cold]
    pub(crate) unsafe fn blocks(&self, engine: &Engine, peer: u32) -> Arc<Blocks<MappedRing>> {
        let make = || {
            let (job, own) = (&engine.job, engine.rank());
            // SAFETY: these are no ends of the rings. The start of the one is reserved, which is read; blocks are
            // touched when an end of a ring has been made, whose memory is then reserved.
            let (outgoing, incoming) = unsafe { (ring(job, own, peer), ring(job, peer, own)) };
            Blocks::new(outgoing, incoming)
        };
        self.cold.blocks.get_or_init(make).clone()
    }

    /// Notes that a message to it is announced. Whether others are.
    pub(crate) fn announce(&self) -> bool {
        self.cold.announced.fetch_add(1, Ordering::Relaxed) > 0
    }

    /// Whether no message to it is announced, though there is a ring to it.
    pub(crate) fn has_quiet_ring(&self, shared: bool) -> bool {
        self.cold.announced.load(Ordering::Relaxed) == 0 && self.tx.lock(shared).is_some()
    }

    /// Notes that an announced message to it needs this rank no more.
    pub(crate) fn settle(&self) {
        self.cold.announced.fetch_sub(1, Ordering::Relaxed);
    }

    /// What this rank has learned about long messages to and from it of whose bytes that is known.
    pub(crate) fn copy_rates(&self, contents: Contents) -> &CopyRates {
        &self.cold.copy_rates[contents as usize]
    }

    /// The same, to judge by it which way the next message from the peer goes.
    pub(crate) fn judged_copy_rates(&self, contents: Contents) -> &CopyRates {
        self.cold.last_contents.set(contents as u32);
        self.copy_rates(contents)
    }

    /// Which way the last message from the peer went that might have gone either way, and why.
    pub(crate) fn copies_so_far(&self) -> CopiesFromPeer {
        self.cold.copy_rates[self.cold.last_contents.get() as usize].so_far()
    }

    /// Where a guest is reached, if a message has gone there.
    #[cold]
    pub(crate) fn outside(&self) -> Option<Outside> {
        self.cold.outside.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_outside(&self, outside: Outside) {
        *self.cold.outside.write().unwrap_or_else(PoisonError::into_inner) = Some(outside);
    }

    /// Forgets how the place was reached, unless that leads to the process that has it now: `guest`, or a process of
    /// this job. After a process of the same job another one goes on in the ring.
    pub(crate) fn renew(&self, guest: Option<(u64, u32)>, shared: bool) {
        let leads_elsewhere = |outside: &Option<Outside>| outside.as_ref().map(Outside::name) != guest;
        // Held while the queue is made, too: none is half made.
        let mut tx = self.tx.lock(shared);
        let mut outside = self.cold.outside.write().unwrap_or_else(PoisonError::into_inner);
        if leads_elsewhere(&outside) {
            *outside = None;
        }
        if let Some(stale) = tx.take_if(|tx| leads_elsewhere(&tx.outside)) {
            // The place may come to be of this job again.
            stale.producer.retire();
        }
    }
}

/// The doorbell of a rank.
pub(crate) fn doorbell(job: &Memory, rank: u32) -> Doorbell {
    let (at, bytes) = job.doorbell(rank);
    let places = job.places() as usize;
    assert!(Doorbell::bytes(places) <= bytes, "the layout gives a doorbell {bytes} bytes");
    let at = NonNull::new(at).expect("the segment is not mapped at zero");
    // SAFETY: the job's doorbell area is valid as long as the job, which the holder of the doorbell keeps; 128-byte
    // aligned, zeroed by the kernel, large enough as asserted, and used by doorbells alone.
    unsafe { Doorbell::over(at, places) }
}

/// The ring from one rank to another.
///
/// # Safety
///
/// The ring's memory is reserved, the engine that uses the ring keeps the job, and makes at most one end of each kind.
pub(crate) unsafe fn ring(job: &Memory, from: u32, to: u32) -> MappedRing {
    let area = job.ring(from, to);
    let base = NonNull::new(area.control).expect("the segment is not mapped at zero");
    debug_assert_eq!(area.cells, area.control.wrapping_add(size_of::<crate::ring::RingControl>()));
    // SAFETY: the layout gives each ordered pair an area of its own of this size, 128-byte aligned, zeroed by the
    // kernel; the caller promises the rest.
    unsafe { MappedRing::new(base, area.cell_count as usize, area.bulk_bytes as usize) }
}
