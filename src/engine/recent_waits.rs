//! What a rank remembers of its waits: whether it pays to poll on where it would sleep.

use super::Engine;
use crate::sync::{AtomicBool, Ordering};
use core::time::Duration;

/// A rank polls on for so many times `spin_us`. A sleep, with the fence before it and the wake-up after it, may take
/// longer than `spin_us` itself, above all on a virtual machine. Then ranks that wait for one that sleeps fall asleep,
/// too, one after the other, and none finds the others awake again (decision 37).
const POLL_ON: u32 = 20;

/// Whether the last wait that polling for `spin_us` did not end was short all the same.
/// Relaxed: a hint of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(crate) struct RecentWaits {
    are_short: AtomicBool,
}

impl Engine {
    /// Returns how long a wait polls on once it has polled for `spin_us`; `None`: it had better sleep.
    pub(super) fn polls_on_for(&self) -> Option<Duration> {
        let short = self.recent_waits.are_short.load(Ordering::Relaxed);
        (short && !self.config.shape().is_oversubscribed()).then(|| self.short_wait())
    }

    /// A wait that polling for `spin_us` had not ended is over, or has not been ended by polling on, after such a time.
    pub(super) fn waited(&self, time: Duration) {
        self.recent_waits.are_short.store(time < self.short_wait(), Ordering::Relaxed);
    }

    fn short_wait(&self) -> Duration {
        self.config.spin() * POLL_ON
    }
}
