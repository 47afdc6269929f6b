//! What the engine keeps for each peer.

use super::operation::Ref;
use crate::doorbell::Doorbell;
use crate::error::Result;
use crate::protocol::Control;
use crate::protocol::Train;
use crate::ring::{Header, MappedRing, Producer};
use crate::shm::Job;
use crate::sync::ConditionalLock;
use core::ptr::NonNull;
use std::collections::VecDeque;

/// One peer, as a sender sees it.
pub(crate) struct Peer {
    /// The peer's doorbell.
    pub doorbell: Doorbell,
    /// The way to it, once a first message has gone there.
    pub out: ConditionalLock<Option<Box<Outgoing>>>,
    /// The message from it of which a part has come. Used by who drives progress.
    pub train: ConditionalLock<Option<Box<Train>>>,
}

impl Peer {
    pub(crate) fn new(doorbell: Doorbell) -> Self {
        Self { doorbell, out: ConditionalLock::default(), train: ConditionalLock::default() }
    }
}

/// Something that waits for room in the ring, in order.
#[derive(Debug)]
pub(crate) enum Deferred {
    /// An answer or announcement.
    Control(Header, Control),
    /// A send with its payload.
    Send(Ref),
}

/// The way to one peer.
pub(crate) struct Outgoing {
    /// The peer's rank in the job.
    pub peer: u32,
    pub producer: Producer<MappedRing>,
    /// What must go first, in order.
    pub deferred: VecDeque<Deferred>,
    /// Large sends whose chunks go when there is room, in turn.
    pub streams: VecDeque<Ref>,
    /// Whether this peer is in the engine's backlog.
    pub listed: bool,
}

impl Outgoing {
    /// Takes the memory of the ring from this rank to `to`.
    #[cold]
    pub fn establish(job: &Job, to: u32) -> Result<Box<Self>> {
        job.reserve_ring(job.rank(), to)?;
        // SAFETY: the producer side is made once a peer, under the peer's lock (ring rule 4).
        let producer = Producer::new(unsafe { ring(job, job.rank(), to) });
        Ok(Box::new(Self {
            peer: to,
            producer,
            deferred: VecDeque::new(),
            streams: VecDeque::new(),
            listed: false,
        }))
    }

    /// Whether anything waits for room.
    #[inline(always)]
    pub fn idle(&self) -> bool {
        self.deferred.is_empty() && self.streams.is_empty()
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
    debug_assert_eq!(area.cells, area.control.wrapping_add(size_of::<crate::ring::Control>()));
    // SAFETY: the layout gives each ordered pair an area of its own of this size, 128-byte aligned, zeroed by the
    // kernel; the caller promises the rest.
    unsafe { MappedRing::new(base, area.cell_count as usize, area.bulk_bytes as usize) }
}
