//! The consumers of all rings to this rank, by peer.

use crate::engine::Engine;
use crate::engine::parts::ring;
use crate::error::Error;
use crate::ring::{Consumer, MappedRing};

/// The ring from one peer.
enum Inbound {
    /// The peer has not notified us yet: its ring may have no memory.
    Closed,
    Open(Box<Consumer<MappedRing>>),
    /// The peer has written a record that cannot be one.
    Corrupt,
}

/// The rings from all peers.
pub(super) struct InboundRings(Box<[Inbound]>);

impl InboundRings {
    pub fn new(peers: u32) -> Self {
        Self((0..peers).map(|_| Inbound::Closed).collect())
    }

    /// The consumer of a peer's ring, if the ring is open and sound.
    #[inline(always)]
    pub fn get(&self, peer: u32) -> Option<&Consumer<MappedRing>> {
        match &self.0[peer as usize] {
            Inbound::Open(consumer) => Some(consumer),
            Inbound::Closed | Inbound::Corrupt => None,
        }
    }

    /// As [`Self::get`], for taking records.
    #[inline(always)]
    pub fn get_mut(&mut self, peer: u32) -> Option<&mut Consumer<MappedRing>> {
        match &mut self.0[peer as usize] {
            Inbound::Open(consumer) => Some(consumer),
            Inbound::Closed | Inbound::Corrupt => None,
        }
    }

    /// As [`Self::get`]; opens the ring if it is still closed.
    #[inline(always)]
    pub fn get_or_open(&mut self, engine: &Engine, peer: u32) -> Option<&Consumer<MappedRing>> {
        if matches!(self.0[peer as usize], Inbound::Closed) {
            self.open(engine, peer);
        }
        self.get(peer)
    }

    /// Whether a peer's ring has a record.
    #[inline(always)]
    pub fn has_record(&self, peer: u32) -> bool {
        self.get(peer).is_some_and(Consumer::ready)
    }

    /// Whether a peer's ring is corrupt.
    #[inline(always)]
    pub fn is_corrupt(&self, peer: usize) -> bool {
        matches!(self.0[peer], Inbound::Corrupt)
    }

    /// Never reads a corrupt ring again; every wait of this rank ends with `error`.
    #[cold]
    pub fn close_corrupt(&mut self, engine: &Engine, peer: u32, error: Error) {
        engine.fail(error);
        self.0[peer as usize] = Inbound::Corrupt;
    }

    /// Leaves to a later process of this place where it is to go on in all rings.
    #[cold]
    pub fn retire(&mut self) {
        for ring in &mut self.0 {
            if let Inbound::Open(consumer) = ring {
                consumer.retire();
            }
        }
    }

    #[cold]
    fn open(&mut self, engine: &Engine, peer: u32) {
        // The peer has taken the memory before it sent; one that only gives credit has not, and reading where there
        // is no memory would take it without asking.
        // The start of the ring to the peer says which of its blocks the peer has.
        let own = engine.rank();
        let start = |from, to| engine.job.reserve_ring_start(from, to);
        if let Err(error) = start(peer, own).and_then(|()| start(own, peer)) {
            return engine.fail(error);
        }
        // SAFETY: the ring's first page is there, and all of it once there is a record; this is the only place that
        // makes a consumer, once a peer, under the poller lock (ring rule 4).
        // The thread that holds that lock has the engine, and with it the job.
        let (ring, blocks) = unsafe {
            (ring(&engine.job, peer, engine.rank()), engine.peers[peer as usize].blocks(engine, peer))
        };
        let mut consumer = Consumer::resume(ring).passing(blocks);
        if engine.config.shape().is_oversubscribed() {
            consumer = consumer.with_short_laps();
        }
        self.0[peer as usize] = Inbound::Open(Box::new(consumer));
    }
}
