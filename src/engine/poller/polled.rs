//! Notification by flag: which rings are polled; the peers of the others set a flag in the doorbell.

use super::rings::InboundRings;
use crate::engine::Engine;

/// The peers whose rings are polled without notification; the peer that sent last is first.
pub(super) struct PolledRings {
    peers: Vec<u32>,
    /// How many they may be.
    most: usize,
}

impl PolledRings {
    pub fn new(most: usize) -> Self {
        Self { peers: Vec::new(), most }
    }

    /// The peer at position `at`.
    #[inline(always)]
    pub fn get(&self, at: usize) -> Option<u32> {
        self.peers.get(at).copied()
    }

    /// Makes the peer at `at` the first.
    #[inline(always)]
    pub fn move_to_front(&mut self, at: usize) {
        self.peers[..=at].rotate_right(1);
    }

    /// Makes the first peer the last: it has had its turn.
    #[inline(always)]
    pub fn rotate(&mut self) {
        self.peers.rotate_left(1);
    }

    /// Whether a ring other than that of `peer` has a record.
    #[inline(always)]
    pub fn other_has_record(&self, rings: &InboundRings, peer: u32) -> bool {
        self.peers.as_slice() != [peer]
            && self.peers.iter().any(|&other| other != peer && rings.has_record(other))
    }

    /// Whether any of the rings has a record.
    pub fn has_record(&self, rings: &InboundRings) -> bool {
        self.peers.iter().any(|&peer| rings.has_record(peer))
    }

    /// Polls a peer's ring from now on.
    pub fn add(&mut self, engine: &Engine, rings: &mut InboundRings, peer: u32) {
        let Some(consumer) = rings.get_or_open(engine, peer) else { return };
        if self.peers.contains(&peer) {
            return;
        }
        consumer.disable_notification();
        if self.peers.len() == self.most {
            self.drop_from(engine, rings, self.most / 2);
        }
        self.peers.insert(0, peer);
    }

    /// Polls only the first `keep` rings any more. For a peer that has committed meanwhile the flag is set here.
    fn drop_from(&mut self, engine: &Engine, rings: &InboundRings, keep: usize) {
        let dropped = self.peers.split_off(keep);
        enable_notification(rings, &dropped);
        // Doorbell rule 1, side B: NOTIFY is stored; the commit words are loaded next.
        engine.fences.heavy_barrier();
        for &peer in &dropped {
            if rings.has_record(peer) {
                engine.doorbell.ring(peer as usize);
            }
        }
    }

    /// Never polls a peer's ring again.
    pub fn remove(&mut self, peer: u32) {
        self.peers.retain(|&polled| polled != peer);
    }

    /// Before a block: from now on every peer notifies. The caller executes the heavy barrier and looks once more
    /// (doorbell rule 1).
    pub fn suspend(&self, rings: &InboundRings) {
        enable_notification(rings, &self.peers);
    }

    /// After a block, or instead of it: polls the rings that have a record, and no other any more.
    pub fn resume(&mut self, rings: &InboundRings) {
        self.peers.retain(|&peer| match rings.get(peer) {
            Some(consumer) if consumer.ready() => {
                consumer.disable_notification();
                true
            }
            _ => false,
        });
    }
}

fn enable_notification(rings: &InboundRings, peers: &[u32]) {
    for consumer in peers.iter().filter_map(|&peer| rings.get(peer)) {
        consumer.enable_notification();
    }
}
