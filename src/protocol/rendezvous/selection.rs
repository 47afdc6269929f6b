//! From which size on two processes copy between their memories: measured once a job, or as the user says.

use crate::engine::Engine;
use crate::shm::Job;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::variables::{Config, CopyChoice};
use std::time::Instant;

/// Word of the header's tuning area with the measured thresholds: bytes from which a read wins (low half) and from
/// which two halves win (high half); `NEVER` for never, 0 while nobody has measured.
const TUNING: usize = 0;
const NEVER: u32 = u32::MAX;
/// Sizes at which the start-up measurement compares, in bytes.
const PROBES: [usize; 3] = [32 << 10, 128 << 10, 512 << 10];

/// What one rank knows of the ways to copy.
#[derive(Debug)]
pub(crate) struct CopyPolicy {
    /// Set when the kernel refused a cross-memory copy: not tried again.
    refused: AtomicBool,
    /// Bytes that are on their way to this rank through the ring.
    awaited: AtomicU64,
}

impl CopyPolicy {
    /// Rank 0 measures for all where there is something to choose.
    pub fn new(job: &Job, config: &Config) -> Self {
        let threads = job.are_threads();
        let open = config.copy() == CopyChoice::Auto && config.copy_from().contains(&None);
        if open && job.rank() == 0 && job.size() > 1 && !threads {
            // Release is not needed: the word is all there is; Relaxed.
            job.header().tuning[TUNING].store(measure(), Ordering::Relaxed);
        }
        Self { refused: AtomicBool::new(false), awaited: AtomicU64::new(0) }
    }

    /// Bytes from which the receiver reads the sender's memory, and from which both copy one part; `usize::MAX` for never.
    pub fn cma_thresholds(&self, engine: &Engine) -> [usize; 2] {
        const ALWAYS: usize = 0;
        const NOT: usize = usize::MAX;
        // Relaxed: a hint; a refused copy falls back anyway.
        if self.refused.load(Ordering::Relaxed) {
            return [NOT, NOT];
        }
        match engine.config.copy() {
            CopyChoice::Chunks => [NOT, NOT],
            CopyChoice::Read => [ALWAYS, NOT],
            CopyChoice::Halves => [NOT, ALWAYS],
            CopyChoice::Auto | CopyChoice::Direct => {
                let measured = engine.job.header().tuning[TUNING].load(Ordering::Relaxed);
                let [read, halves] = engine.config.copy_from();
                in_bytes([read.unwrap_or(measured as u32), halves.unwrap_or((measured >> 32) as u32)])
            }
        }
    }

    /// Notes that a message of `bytes` bytes comes through the ring.
    pub fn expect(&self, bytes: usize) {
        // Relaxed, here and in `come`: a count that publishes nothing.
        self.awaited.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes that `bytes` of them have come. Whether they are best written past the cache: with what else is on its way, it is
    /// more than the cache holds.
    pub fn come(&self, config: &Config, bytes: usize) -> bool {
        self.awaited.fetch_sub(bytes as u64, Ordering::Relaxed) > config.uncached_from()
    }

    /// Remembers that the kernel refused a cross-memory copy.
    pub fn refuse(&self) {
        // Relaxed: a hint, as in `engine`.
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// Measures as rank 0 of a job does: bytes from which a cross-memory read, and two halves, beat a copy through the ring;
/// `None` for never, or where the kernel forbids it. Takes about a millisecond.
#[must_use]
pub fn measure_thresholds() -> [Option<u32>; 2] {
    let word = measure();
    [word as u32, (word >> 32) as u32].map(|from| (from != 0 && from != NEVER).then_some(from))
}

/// Thresholds of the tuning word; 0 says that nobody has measured.
fn in_bytes(thresholds: [u32; 2]) -> [usize; 2] {
    thresholds.map(|from| if from == 0 || from == NEVER { usize::MAX } else { from as usize })
}

/// Compares a cross-memory read with a plain copy at a few sizes, about a millisecond in all.
///
/// Chunks through the ring cost about one plain copy of time, because both ranks copy at once; so a read wins where it
/// is as fast as a plain copy, and two halves where a read of one half is.
fn measure() -> u64 {
    let largest = PROBES[PROBES.len() - 1];
    let (from, mut to) = (vec![1_u8; largest], vec![0_u8; largest]);
    let own = std::process::id() as i32;
    let (mut read_wins, mut halves_win) = (NEVER, NEVER);
    for bytes in PROBES.into_iter().rev() {
        let plain = best(|| to[..bytes].copy_from_slice(&from[..bytes]));
        // SAFETY: `to` is ours and at least `bytes` long.
        let mut read = |len: usize| unsafe {
            crate::shm::peer_memory::read_peer(own, from.as_ptr() as u64, to.as_mut_ptr(), len)
        };
        if read(bytes).is_err() {
            return u64::from(NEVER) << 32 | u64::from(NEVER);
        }
        let whole = best(|| drop(read(bytes)));
        let half = best(|| drop(read(bytes / 2)));
        if whole <= plain {
            read_wins = bytes as u32;
        }
        if half <= plain && half < whole {
            halves_win = bytes as u32;
        }
    }
    u64::from(halves_win) << 32 | u64::from(read_wins)
}

/// The shortest of a few runs: what the machine can do when nobody disturbs it.
fn best(mut run: impl FnMut()) -> std::time::Duration {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .expect("five runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_or_never_wins_has_no_threshold() {
        assert_eq!(in_bytes([100, 1000]), [100, 1000]);
        assert_eq!(in_bytes([0, NEVER]), [usize::MAX; 2]);
    }
}
