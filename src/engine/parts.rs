//! What the engine keeps for each peer.

use super::outside::Outside;
use super::tx::TxQueue;
use crate::doorbell::Doorbell;
use crate::ring::MappedRing;
use crate::shm::Memory;
use crate::sync::{ConditionalLock, RwLock};
use core::ptr::NonNull;
use std::sync::PoisonError;

/// One peer, as a sender sees it.
pub(crate) struct Peer {
    /// The peer's doorbell.
    pub doorbell: Doorbell,
    /// The transmit queue to it, once a first message has gone there.
    pub tx: ConditionalLock<Option<Box<TxQueue>>>,
    /// Where it is reached, if it belongs to another job. Cold.
    outside: RwLock<Option<Outside>>,
}

impl Peer {
    pub(crate) fn new(doorbell: Doorbell) -> Self {
        Self { doorbell, tx: ConditionalLock::default(), outside: RwLock::default() }
    }

    /// Where a guest is reached, if a message has gone there.
    #[cold]
    pub(crate) fn outside(&self) -> Option<Outside> {
        self.outside.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_outside(&self, outside: Outside) {
        *self.outside.write().unwrap_or_else(PoisonError::into_inner) = Some(outside);
    }

    /// Forgets a guest that has gone: the place has another one.
    pub(crate) fn forget(&self, shared: bool) {
        *self.tx.lock(shared) = None;
        *self.outside.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The doorbell of a rank.
pub(crate) fn doorbell(job: &Memory, rank: u32) -> Doorbell {
    let (at, bytes) = job.doorbell(rank);
    let places = job.places() as usize;
    assert!(Doorbell::bytes(places) <= bytes, "the layout gives a doorbell {bytes} bytes");
    let at = NonNull::new(at).expect("the segment is not mapped at zero");
    // SAFETY: the job's doorbell area is valid as long as the job, which who has the doorbell keeps; 128-byte aligned,
    // zeroed by the kernel, large enough as asserted, and used by doorbells alone.
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
