//! The words that both sides of a ring look at; those that one side writes lie 128 bytes from the other's.

use crate::sync::{AtomicU32, AtomicU64, CachePadded};

/// The consumer does not look at this ring by itself: ring its doorbell.
pub const UNWATCHED: u32 = 0;
/// The consumer looks at this ring at each poll: nothing to do.
pub const WATCHED: u32 = 1;
/// The doorbell has been rung since the consumer stopped looking: nothing to do.
pub const RUNG: u32 = 2;

/// Control words of one ring; zeroed memory is a valid, empty, unwatched ring.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    /// Written by the consumer (and `watched` by both).
    pub consumer: CachePadded<ConsumerWords>,
    /// Written by the producer (and `wants_credit` by both).
    pub producer: CachePadded<ProducerWords>,
    /// Not the ring's: what is left of a message that both ranks copy ([`crate::protocol::rendezvous`]). Keeps cells away from the
    /// producer's line.
    pub shared: CachePadded<AtomicU64>,
}

/// Where a ring's control has the word for shared copies, in bytes.
pub const SHARED_WORD: usize = core::mem::offset_of!(Control, shared);

/// What the consumer tells the producer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ConsumerWords {
    /// Cells before this position are the producer's again (edge 2).
    pub head: AtomicU64,
    /// Bulk bytes before this position are the producer's again (edge 2).
    pub bulk_head: AtomicU64,
    /// `UNWATCHED`, `WATCHED` or `RUNG` (ring rule 7).
    pub watched: AtomicU32,
}

/// What the producer tells the consumer, beside the cells.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ProducerWords {
    /// 1: the producer found the ring full; ring *its* doorbell when credit is published.
    pub wants_credit: AtomicU32,
}

#[cfg(not(perusal_loom))]
const _: () = assert!(size_of::<Control>() == 3 * crate::limits::APART);
