//! How much of the bulk area a producer uses.
//!
//! A lap through all of the area finds its lines where the last one has left them: of a rank that shares its core with
//! others, and has rings to many, in no cache of that core. So there a producer begins the next lap before the area
//! ends, as soon as the consumer has read the beginning of this one, and uses more of the area the more the consumer
//! leaves unread.

use crate::limits::LINE;

/// Laps in a row, of each of which at most a quarter was unread at its end, after which laps are half as long.
const CALM: u32 = if cfg!(perusal_loom) { 1 } else { 64 };

/// The length of a lap.
#[derive(Debug)]
pub(super) struct Lap {
    bytes: usize,
    calm: u32,
    shortest: usize,
    /// Bytes of the area.
    longest: usize,
}

impl Lap {
    /// All of an area of `capacity` bytes, always.
    pub fn whole(capacity: usize) -> Self {
        Self { bytes: capacity, calm: 0, shortest: capacity, longest: capacity }
    }

    /// A part of an area of `capacity` bytes.
    pub fn short(capacity: usize) -> Self {
        let shortest = (capacity / 16).max(LINE);
        Self { bytes: shortest, shortest, ..Self::whole(capacity) }
    }

    /// Whether the next lap should begin, `offset` bytes behind the beginning of the area.
    #[inline(always)]
    pub fn is_over(&self, offset: usize) -> bool {
        offset >= self.bytes
    }

    /// A lap has ended with so many bytes that may be unread.
    pub fn ended(&mut self, unread: u64) {
        self.calm = if 4 * unread <= self.bytes as u64 { self.calm + 1 } else { 0 };
        if self.calm == CALM {
            (self.bytes, self.calm) = ((self.bytes / 2).max(self.shortest), 0);
        }
    }

    /// The consumer has not read the beginning of this lap yet: the next one cannot begin.
    pub fn was_too_short(&mut self) {
        (self.bytes, self.calm) = ((2 * self.bytes).min(self.longest), 0);
    }

    /// The producer has to wait for room.
    pub fn was_full(&mut self) {
        (self.bytes, self.calm) = (self.longest, 0);
    }
}

/// Bytes of an area of `capacity` bytes after which a consumer shows what it has read: few, for short laps.
pub(super) fn shown_after(capacity: usize) -> u64 {
    (capacity / 64).max(LINE) as u64
}
