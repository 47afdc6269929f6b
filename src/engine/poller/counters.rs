//! Notification by counter: each peer counts its records in the doorbell,
//! and a poll compares all counts with what has been taken.

use super::rings::InboundRings;
use crate::engine::Engine;

/// Records taken from each peer, and the peers that have more. Counts are modulo 2¹⁶.
pub(super) struct Counters {
    taken: Box<[u16]>,
    /// Peers that had more at the last comparison, with their counts then; the next one is last.
    ready: Vec<(u32, u16)>,
}

impl Counters {
    pub fn new(peers: u32) -> Self {
        Self { taken: vec![0; peers as usize].into(), ready: Vec::new() }
    }

    /// The peer whose turn it is, with its count at the last comparison.
    #[inline(always)]
    pub fn next(&self) -> Option<(u32, u16)> {
        self.ready.last().copied()
    }

    /// Records of a peer up to `count` that are not taken.
    #[inline(always)]
    pub fn left(&self, peer: u32, count: u16) -> usize {
        count.wrapping_sub(self.taken[peer as usize]) as usize
    }

    /// Notes that records of a peer have been taken up to `position`.
    #[inline(never)]
    pub fn note_taken(&mut self, peer: u32, position: u64) {
        self.taken[peer as usize] = position as u16;
    }

    /// Compares all counts, and prefetches the next record of each peer that has one. Returns whether any has.
    pub fn compare(&mut self, engine: &Engine, rings: &mut InboundRings) -> bool {
        let mut resumed = None;
        for (peer, count) in engine.doorbell.changed_counts(in_use(&self.taken, engine)) {
            if let Some(consumer) = rings.get_or_open(engine, peer as u32) {
                // A former process of this place has taken records that its counts here do not have.
                if consumer.position() as u16 != self.taken[peer] {
                    resumed = Some((peer, consumer.position() as u16));
                    break;
                }
                consumer.prefetch();
                self.ready.push((peer as u32, count));
            }
        }
        if let Some((peer, taken)) = resumed {
            self.taken[peer] = taken;
            self.ready.clear();
            return self.compare(engine, rings);
        }
        !self.ready.is_empty()
    }

    /// The next peer has had its turn. If its records of the last comparison are not all taken its next turn comes
    /// after the others', unless nothing was `found`: then, and if there are more records, the next comparison finds it
    /// again.
    #[inline]
    pub fn end_turn(&mut self, found: bool) {
        if let Some((peer, count)) = self.ready.pop()
            && found
            && self.left(peer, count) != 0
        {
            self.ready.insert(0, (peer, count));
        }
    }

    /// The next peer has no records left: they were taken by a receive that names it.
    #[inline]
    pub fn drop_next(&mut self) {
        self.ready.pop();
    }

    /// Whether a peer other than `but` has more records, of those whose rings are sound.
    pub fn any(&self, engine: &Engine, rings: &InboundRings, but: Option<u32>) -> bool {
        let mut changed = engine.doorbell.changed_counts(in_use(&self.taken, engine));
        changed.any(|(peer, _)| but != Some(peer as u32) && !rings.is_corrupt(peer))
    }

    /// Gives a peer no turn any more.
    pub fn remove(&mut self, peer: u32) {
        self.ready.retain(|&(ready, _)| ready != peer);
    }
}

/// What was taken from each place that is in use.
#[inline(always)]
fn in_use<'a>(taken: &'a [u16], engine: &Engine) -> &'a [u16] {
    &taken[..(engine.job.places_in_use() as usize).min(taken.len())]
}
