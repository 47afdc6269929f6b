//! The contract of both queues as a list walked from the front, for a reader to check by eye.
//!
//! Tests, the bench and the fuzz target run it beside [`PostedQueue`](super::PostedQueue) and
//! [`UnexpectedQueue`](super::UnexpectedQueue) and compare every answer. It has no other user.

use super::pattern::MatchPattern;

/// A vector of items in order of insertion. `I` is a pattern for a queue of receives, a key for one of messages.
#[derive(Debug, Clone)]
pub struct NaiveQueue<I, T> {
    entries: Vec<(u64, I, T)>,
    next: u64,
}

impl<I, T> Default for NaiveQueue<I, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0 }
    }
}

impl<I: Copy, T> NaiveQueue<I, T> {
    /// Adds the youngest and names it.
    pub fn insert(&mut self, item: I, value: T) -> u64 {
        self.entries.push((self.next, item, value));
        self.next += 1;
        self.next - 1
    }

    /// The position of the oldest for which `wanted` holds.
    pub fn find(&self, mut wanted: impl FnMut(&I, &T) -> bool) -> Option<usize> {
        self.entries.iter().position(|(_, item, value)| wanted(item, value))
    }

    /// Takes the oldest for which `wanted` holds.
    pub fn take_if(&mut self, wanted: impl FnMut(&I, &T) -> bool) -> Option<(I, T)> {
        let at = self.find(wanted)?;
        let (_, item, value) = self.entries.remove(at);
        Some((item, value))
    }

    /// Takes the youngest for which `wanted` holds.
    pub fn take_youngest(&mut self, mut wanted: impl FnMut(&I, &T) -> bool) -> Option<(I, T)> {
        let at = self.entries.iter().rposition(|(_, item, value)| wanted(item, value))?;
        let (_, item, value) = self.entries.remove(at);
        Some((item, value))
    }

    /// Takes out the one with this name.
    pub fn remove(&mut self, name: u64) -> Option<T> {
        let at = self.entries.iter().position(|&(other, _, _)| other == name)?;
        Some(self.entries.remove(at).2)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&I, &T)> {
        self.entries.iter().map(|(_, item, value)| (item, value))
    }
}

impl<P: MatchPattern, T> NaiveQueue<P, T> {
    /// A queue of receives: takes the oldest that takes this message.
    pub fn take_for(&mut self, key: &P::Key) -> Option<(P, T)> {
        self.take_if(|pattern, _| pattern.takes(key))
    }
}

/// A small random number generator (xorshift64*), so that a failing run can be repeated from its seed.
#[derive(Debug, Clone)]
pub struct TestRandom(u64);

impl TestRandom {
    /// Starts from any seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}
