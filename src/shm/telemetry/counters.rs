//! Words with one writer, and lengths of queues with their extremes.

use crate::sync::{AtomicU64, Ordering};

/// A word with one writer.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counter(pub(super) AtomicU64);

impl Counter {
    /// Returns the value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        // Relaxed: a sample; no other memory is read because of it.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u64) {
        // Relaxed: a sample; publishes nothing else.
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds `n` without a locked instruction: there is one writer.
    #[inline]
    pub fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    /// Adds `n` while other threads may add too.
    #[inline]
    pub(super) fn add_shared(&self, n: u64) {
        // Relaxed: a sample; one instruction, so that no step is lost.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds `by`, which may be negative, without a locked instruction.
    #[inline]
    pub fn step(&self, by: i64) {
        self.set(self.get().wrapping_add_signed(by));
    }
}

/// A queue's length, the highest that it ever had, and its extremes since a moment that tools choose.
#[derive(Debug, Default)]
#[repr(C)]
pub struct QueueLength {
    /// Entries now, without those that thread slots have counted ([`super::Telemetry::posted_now`]).
    pub now: Counter,
    /// Most entries ever.
    pub high: Counter,
    /// Most entries since the last [`QueueLength::cut`].
    pub most: Counter,
    /// Fewest entries since then.
    pub least: Counter,
}

impl QueueLength {
    /// Sets the length.
    #[inline]
    pub fn set(&self, entries: u64) {
        self.now.set(entries);
        self.extremes(entries);
    }

    /// Changes the length by `by` entries. `shared`: other threads may do so at the same time.
    #[inline(always)]
    pub fn change(&self, by: i64, shared: bool) {
        if shared {
            return self.change_shared(by, 0);
        }
        let entries = self.now.get().wrapping_add_signed(by);
        self.now.set(entries);
        // A length that grows is not the least.
        if by > 0 {
            if entries > self.most.get() {
                self.rise(entries);
            }
        } else if entries < self.least.get() {
            self.least.set(entries);
        }
    }

    /// Changes the length while other threads may do so; thread slots have counted `elsewhere` further entries.
    #[inline(never)]
    pub(super) fn change_shared(&self, by: i64, elsewhere: u64) {
        // Relaxed, here and in `extremes_shared`: samples.
        // Each is one instruction, so that no step and no extreme is lost.
        let before = self.now.0.fetch_add(by.cast_unsigned(), Ordering::Relaxed);
        self.extremes_shared(before.wrapping_add_signed(by).wrapping_add(elsewhere));
    }

    fn extremes_shared(&self, entries: u64) {
        if entries > self.most.get() {
            self.most.0.fetch_max(entries, Ordering::Relaxed);
            self.high.0.fetch_max(entries, Ordering::Relaxed);
        } else if entries < self.least.get() {
            self.least.0.fetch_min(entries, Ordering::Relaxed);
        }
    }

    #[cold]
    fn rise(&self, entries: u64) {
        self.most.set(entries);
        if entries > self.high.get() {
            self.high.set(entries);
        }
    }

    #[inline(always)]
    fn extremes(&self, entries: u64) {
        if entries > self.most.get() {
            self.rise(entries);
        } else if entries < self.least.get() {
            self.least.set(entries);
        }
    }

    /// Starts the extremes anew with `now` entries. Returns the most and the fewest entries since the last start.
    pub fn cut(&self, now: u64) -> (u64, u64) {
        // Relaxed: samples. A change at this very moment may count before the start or after it.
        (self.most.0.swap(now, Ordering::Relaxed), self.least.0.swap(now, Ordering::Relaxed))
    }
}
