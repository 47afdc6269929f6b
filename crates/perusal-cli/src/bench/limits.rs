//! Measures what the machine can do without MPI, with threads of rank 0 while the other ranks sleep.

use super::measure::{Time, alone};
use perusal::internals::shm::cpus;
use perusal::internals::sync::{AtomicU64, Ordering};
use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::Duration;

/// A word alone in its cache line and in the line that the processor prefetches with it.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Loads of a word before the thread yields; a thread with a processor of its own is answered long before.
const SPINS: u32 = 100_000;

fn wait(word: &AtomicU64, until: u64) {
    let mut spins = 0;
    // Acquire: pairs with the Release in `bounce` and `meet`; only the word itself is read.
    while word.load(Ordering::Acquire) < until {
        spins += 1;
        if spins % SPINS == 0 {
            thread::yield_now();
        }
        spin_loop();
    }
}

/// Nanoseconds one way of a cache line between the processors `cpus`: each writes a line of its own,
/// or both the same word.
pub fn line(cpus: [usize; 2], each_way: bool, budget: Duration) -> Time {
    let lines = [Line::default(), Line::default()];
    let (ours, theirs) = (&lines[0].0, &lines[usize::from(each_way)].0);
    let over = AtomicU64::new(0);
    let bounce = |turn: u64| {
        // Release: pairs with the Acquire in `wait`.
        ours.store(2 * turn + 1, Ordering::Release);
        wait(theirs, 2 * turn + 2);
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(cpus[1]);
            let mut turn = 0;
            loop {
                wait(ours, 2 * turn + 1);
                // Relaxed: written before the word that `wait` has acquired.
                if over.load(Ordering::Relaxed) == turn + 1 {
                    return;
                }
                theirs.store(2 * turn + 2, Ordering::Release);
                turn += 1;
            }
        });
        let timing = scope.spawn(|| {
            bind(cpus[0]);
            let mut turn = 0;
            let time = alone(budget, |n| {
                for _ in 0..n {
                    bounce(turn);
                    turn += 1;
                }
            });
            // Relaxed: the store below releases it.
            over.store(turn + 1, Ordering::Relaxed);
            ours.store(2 * turn + 1, Ordering::Release);
            time
        });
        timing.join().expect("bouncing does not fail")
    })
    .map(|trip| trip / 2.0)
}

/// Nanoseconds to copy `size` bytes, one core, over `total` bytes in turn.
pub fn copy(size: usize, total: usize, budget: Duration) -> Time {
    let (from, mut to) = (vec![1_u8; total], vec![0_u8; total]);
    let pieces = total / size;
    let mut at = 0;
    alone(budget, |n| {
        for _ in 0..n {
            black_box(&mut to[at * size..][..size]).copy_from_slice(black_box(&from[at * size..][..size]));
            at = (at + 1) % pieces;
        }
    })
}

/// Nanoseconds of a barrier of bare threads: a counter, and a word that all watch and give their processor away for
/// when they outnumber the processors.
pub fn flags(threads: u64, budget: Duration) -> Time {
    let (arrived, turn) = (Line::default(), Line::default());
    let oversubscribed = threads > u64::from(cpus::usable());
    let over = AtomicU64::new(u64::MAX);
    let meet = |number: u64| {
        // AcqRel: the last to come has seen what the others did before it lets them on.
        if arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == threads * (number + 1) {
            return turn.0.store(number + 1, Ordering::Release);
        }
        while oversubscribed && turn.0.load(Ordering::Acquire) < number + 1 {
            thread::yield_now();
        }
        wait(&turn.0, number + 1);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                unbind();
                let mut number = 0;
                // Relaxed: written before the barrier that this thread passes next.
                while over.load(Ordering::Relaxed) != number {
                    meet(number);
                    number += 1;
                }
            });
        }
        let timing = scope.spawn(|| {
            unbind();
            let mut number = 0;
            let time = alone(budget, |n| {
                for _ in 0..n {
                    meet(number);
                    number += 1;
                }
            });
            over.store(number + 1, Ordering::Relaxed);
            meet(number);
            time
        });
        timing.join().expect("meeting does not fail")
    })
}

/// Puts the calling thread on a processor; where it may not go there it stays where it is.
fn bind(cpu: usize) {
    set(&[cpu]);
}

/// Lets the calling thread go to any of the machine's processors, which a bound rank's threads may not.
fn unbind() {
    set(&(0..cpus::online()).collect::<Vec<_>>());
}

fn set(cpus: &[usize]) {
    // If this fails, the threads stay where they are, and the figures show it.
    let _ = cpus::set_affinity(cpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn every_limit_is_a_time_above_zero() {
        let cpus = cpus::affinity();
        let two = [cpus[0], cpus[cpus.len() - 1]];
        for time in [
            line(two, true, SHORT),
            line(two, false, SHORT),
            copy(4096, 1 << 20, SHORT),
            flags(2, SHORT),
            flags(5, SHORT),
        ] {
            assert!(time.low > 0.0 && time.low <= time.high, "{time:?}");
        }
    }
}
