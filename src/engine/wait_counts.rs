//! How often and how long a rank waits for something, as performance variables show it.

use crate::sync::{AtomicU64, Ordering};

/// Counts of waits. Several threads count.
#[derive(Debug, Default)]
pub struct WaitCounts {
    times: AtomicU64,
    nanoseconds: AtomicU64,
}

impl WaitCounts {
    /// Counts a wait.
    pub fn add(&self, nanoseconds: u64) {
        // Relaxed, twice: samples; they publish nothing else.
        self.times.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many waits there were.
    #[must_use]
    pub fn times(&self) -> u64 {
        // Relaxed: as in `add`.
        self.times.load(Ordering::Relaxed)
    }

    /// How long they were together.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        // Relaxed: as in `add`.
        self.nanoseconds.load(Ordering::Relaxed)
    }
}
