//! The way from instructions to locks: no instruction of a rank's is under way while another rank has taken a lock, and
//! who takes one sees what instructions have written.
//!
//! Run:   .ci/loom atomic_mode
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//!
//! Time:  less than a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the light barrier of `enter` and the heavy one of `announce`;
//! - the Release of the drop of `Entered` and the Acquire of `is_clear`;
//! - the Release of `close` and the Acquire of `is_closed`;
//! - that `enter` looks at the mode behind the mark.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::rma::atomic_mode::{AtomicMode, Mark};
use perusal::internals::sync::AsymmetricFence;

const FENCES: AsymmetricFence = AsymmetricFence::Processor;

#[derive(Default)]
struct Job {
    mode: AtomicMode,
    mark: Mark,
    value: Plain<u32>,
}

impl Job {
    /// One rank's instructions, which a plain store stands for: nothing else may happen at the same time.
    fn instruct(&self) -> u32 {
        let mut done = 0;
        for _ in 0..2 {
            if let Some(_entered) = self.mode.enter(&self.mark, FENCES) {
                // Atomic mode rule 2: nobody holds a lock.
                self.value.update(|value| *value += 1);
                done += 1;
            }
        }
        done
    }

    /// Goes over to locks, and says what the value is then;
    /// `None` if the other rank is in the middle of an instruction.
    fn close(&self) -> Option<u32> {
        self.mode.announce(FENCES);
        self.mark.is_clear().then(|| {
            self.mode.close();
            self.read()
        })
    }

    fn read(&self) -> u32 {
        // Atomic mode rule 2: the mode is closed.
        self.value.get()
    }
}

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

#[test]
fn who_takes_a_lock_is_alone_and_sees_all_instructions() {
    model(|| {
        let job = Arc::new(Job::default());
        let other = job.clone();
        let instructs = thread::spawn(move || other.instruct());
        let seen = job.close();
        let done = instructs.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == done));
    });
}

#[test]
fn a_third_rank_that_finds_the_mode_closed_may_take_locks_too() {
    model(|| {
        let job = Arc::new(Job::default());
        let (one, two) = (job.clone(), job.clone());
        let instructs = thread::spawn(move || one.instruct());
        let follows = thread::spawn(move || two.mode.is_closed().then(|| two.read()));
        job.close();
        let (done, seen) = (instructs.join().unwrap(), follows.join().unwrap());
        assert!(seen.is_none_or(|seen| seen == done));
    });
}
