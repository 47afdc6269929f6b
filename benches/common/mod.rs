//! What the benches share: how a time is taken and shown.
#![allow(dead_code, reason = "each bench uses its own part")]

use std::sync::OnceLock;
use std::time::Instant;

const SAMPLES: usize = 25;
/// Long enough that reading the clock is nothing, short enough that a sample is seldom interrupted.
const SAMPLE_NS: f64 = 400_000.0;

/// Median, and tenth and ninetieth of a hundred.
#[derive(Debug, Clone, Copy)]
pub struct Time(pub f64, pub f64, pub f64);

impl Time {
    /// Of samples of any unit.
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize];
        Self(at(0.5), at(0.1), at(0.9))
    }

    pub fn map(self, value: impl Fn(f64) -> f64) -> Self {
        Self(value(self.0), value(self.1), value(self.2))
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.1} ({:.1}, {:.1})", self.0, self.1, self.2);
        f.pad(&text)
    }
}

/// Nanoseconds of one time of what `run` does as often as it is told.
pub fn time(mut run: impl FnMut(u64)) -> Time {
    let mut timed = |n: u64| {
        let start = Instant::now();
        run(n);
        start.elapsed().as_nanos() as f64 / n as f64
    };
    let n = (SAMPLE_NS / timed(200).max(0.5)) as u64 + 1;
    Time::of((0..SAMPLES).map(|_| timed(n)).collect())
}

/// The CPUs that the bench was given, before a thread of it was bound.
pub fn cpus() -> &'static [usize] {
    static GIVEN: OnceLock<Vec<usize>> = OnceLock::new();
    GIVEN.get_or_init(perusal::job::cpus::affinity)
}

/// Whether two threads that wait for each other can both run.
pub fn two_cpus() -> bool {
    cpus().len() > 1
}

/// Puts the calling thread on the `nth` of the CPUs that the bench was given.
pub fn bind(nth: usize) {
    let cpus = cpus();
    // SAFETY: a zeroed set is an empty one; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[nth % cpus.len()], &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Whether cargo runs the bench: `cargo test` starts it too, to see that it starts.
pub fn asked_for() -> bool {
    std::env::args().any(|arg| arg == "--bench")
}
