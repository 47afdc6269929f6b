//! What the engine keeps for each peer.

use super::tx::TxQueue;
use crate::doorbell::Doorbell;
use crate::ring::MappedRing;
use crate::shm::Job;
use crate::sync::ConditionalLock;
use core::ptr::NonNull;

/// One peer, as a sender sees it.
pub(crate) struct Peer {
    /// The peer's doorbell.
    pub doorbell: Doorbell,
    /// The transmit queue to it, once a first message has gone there.
    pub tx: ConditionalLock<Option<Box<TxQueue>>>,
}

impl Peer {
    pub(crate) fn new(doorbell: Doorbell) -> Self {
        Self { doorbell, tx: ConditionalLock::default() }
    }
}

/// The ring from one rank to another.
///
/// # Safety
///
/// The ring's memory is reserved, the engine that uses the ring keeps the job, and makes at most one end of each kind.
pub(crate) unsafe fn ring(job: &Job, from: u32, to: u32) -> MappedRing {
    let area = job.ring(from, to);
    let base = NonNull::new(area.control).expect("the segment is not mapped at zero");
    debug_assert_eq!(area.cells, area.control.wrapping_add(size_of::<crate::ring::RingControl>()));
    // SAFETY: the layout gives each ordered pair an area of its own of this size, 128-byte aligned, zeroed by the
    // kernel; the caller promises the rest.
    unsafe { MappedRing::new(base, area.cell_count as usize, area.bulk_bytes as usize) }
}
