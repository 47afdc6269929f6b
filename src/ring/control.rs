//! The control words of a ring. Those that one side writes lie 128 bytes from the other's.

use crate::sync::{AtomicU32, AtomicU64, CachePadded};

/// The consumer does not poll this ring: notify it.
pub const NOTIFY: u32 = 0;
/// The consumer polls this ring: nothing to do.
pub const POLLED: u32 = 1;
/// The consumer has been notified since it stopped polling: nothing to do.
pub const NOTIFIED: u32 = 2;

/// Control words of one ring; zeroed memory is a valid, empty ring that is not polled.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingControl {
    /// Written by the consumer (and `notification` by both).
    pub consumer: CachePadded<ConsumerWords>,
    /// Written by the producer (and `wants_credit` by both).
    pub producer: CachePadded<ProducerWords>,
    /// Not the ring's: words for the protocols whose records go through it.
    /// Keeps the cells away from the producer's line.
    pub protocol: CachePadded<ProtocolWords>,
}

/// Offset of the protocols' words in a ring's control, in bytes.
pub const PROTOCOL_WORDS: usize = core::mem::offset_of!(RingControl, protocol);

/// What protocols need beside the records.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ProtocolWords {
    /// What is left of a message that both ranks copy.
    pub claims: AtomicU64,
    /// Whether a message lies where the producer has announced it, once it has found out.
    pub checked: AtomicU64,
}

/// What the consumer tells the producer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ConsumerWords {
    /// Cells before this position are the producer's again (edge 2).
    pub head: AtomicU64,
    /// Bulk bytes before this position are the producer's again (edge 2).
    pub bulk_head: AtomicU64,
    /// [`NOTIFY`], [`POLLED`] or [`NOTIFIED`] (ring rule 7).
    pub notification: AtomicU32,
    /// The blocks of this ring that a consumer has had when it ended, for the next one ([`super::Consumer::retire`]).
    pub blocks: AtomicU32,
}

/// What the producer tells the consumer besides the cells.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ProducerWords {
    /// 1: the producer found the ring full and wants to be notified of credit.
    pub wants_credit: AtomicU32,
    /// Where a producer has ended, for the next one ([`super::Producer::retire`]).
    pub tail: AtomicU64,
    /// The same for its bulk bytes.
    pub bulk_tail: AtomicU64,
    /// The blocks of this ring that the producer has given away until then.
    pub blocks: AtomicU32,
}

/// A position that an end of a ring has left behind. Nobody gets near the largest; what else lies there is no position,
/// and counts as the first.
pub(super) fn resumed(position: u64, unit: usize) -> u64 {
    if position < 1 << 62 { position & !(unit as u64 - 1) } else { 0 }
}

#[cfg(not(perusal_loom))]
const _: () = assert!(size_of::<RingControl>() == 3 * crate::limits::APART);
