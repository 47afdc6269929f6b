//! Which engine copies a large message: measured once a job, or as the user says.

use crate::shm::Job;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::variables::{Config, CopyChoice};
use std::time::Instant;

/// How a large message is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyEngine {
    /// In chunks through the ring: two copies, both ranks at work.
    Chunks,
    /// The receiver reads the sender's memory.
    Read,
    /// The receiver reads one half, the sender writes the other.
    Halves,
    /// A plain copy: both ranks see the memory.
    Direct,
}

/// Word of the header's tuning area with the measured thresholds: bytes from which `Read` wins (low half) and from
/// which `Halves` wins (high half); `NEVER` for never, 0 while nobody has measured.
const TUNING: usize = 0;
const NEVER: u32 = u32::MAX;
/// Sizes at which the start-up measurement compares, in bytes.
const PROBES: [usize; 3] = [32 << 10, 128 << 10, 512 << 10];

/// The choice for one rank.
#[derive(Debug)]
pub(crate) struct CopyPolicy {
    threads: bool,
    /// Set when the kernel refused a cross-memory copy: not tried again.
    refused: AtomicBool,
    /// Bytes that are on their way to this rank in chunks.
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
        Self { threads, refused: AtomicBool::new(false), awaited: AtomicU64::new(0) }
    }

    /// The engine for `bytes` bytes, `contiguous` on both sides.
    pub fn engine(&self, config: &Config, job: &Job, bytes: usize, contiguous: bool) -> CopyEngine {
        if !contiguous {
            return CopyEngine::Chunks;
        }
        let choice = config.copy();
        if self.threads && matches!(choice, CopyChoice::Auto | CopyChoice::Direct) {
            return CopyEngine::Direct;
        }
        // Relaxed: a hint; a refused copy falls back anyway.
        if self.refused.load(Ordering::Relaxed) {
            return CopyEngine::Chunks;
        }
        match choice {
            CopyChoice::Chunks => CopyEngine::Chunks,
            CopyChoice::Read => CopyEngine::Read,
            CopyChoice::Halves => CopyEngine::Halves,
            CopyChoice::Auto | CopyChoice::Direct => {
                let measured = job.header().tuning[TUNING].load(Ordering::Relaxed);
                let [read, halves] = config.copy_from();
                let halves = halves.unwrap_or((measured >> 32) as u32);
                chosen([read.unwrap_or(measured as u32), halves], bytes)
            }
        }
    }

    /// Notes that a message of `bytes` bytes comes in chunks.
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

fn chosen([read, halves]: [u32; 2], bytes: usize) -> CopyEngine {
    let from = |threshold: u32| threshold != 0 && threshold != NEVER && bytes >= threshold as usize;
    match (from(read), from(halves)) {
        (_, true) => CopyEngine::Halves,
        (true, false) => CopyEngine::Read,
        _ => CopyEngine::Chunks,
    }
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
        let mut read =
            |len: usize| unsafe { super::read_peer(own, from.as_ptr() as u64, to.as_mut_ptr(), len) };
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
    fn thresholds_choose_the_engine() {
        let thresholds = [100, 1000];
        assert_eq!(chosen(thresholds, 99), CopyEngine::Chunks);
        assert_eq!(chosen(thresholds, 100), CopyEngine::Read);
        assert_eq!(chosen(thresholds, 1000), CopyEngine::Halves);
        assert_eq!(chosen([0, 0], 1 << 30), CopyEngine::Chunks, "not measured");
        assert_eq!(chosen([NEVER, NEVER], 1 << 30), CopyEngine::Chunks, "never");
    }
}
