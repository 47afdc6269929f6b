//! Turns at a file without offsets: what is done in one is ordered before what is done in the next,
//! and nobody sleeps over its turn.
//!
//! Run:   .ci/loom turns
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that); the
//!        model's futex wakes nobody without a reason.
//! Time:  a second.
//!
//! `cargo xtask mutants src/sync/turns.rs` weakens each ordering and says which model fails (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::sync::Turns;

#[derive(Default)]
struct Guarded {
    turns: Turns,
    value: Plain<i64>,
}

impl Guarded {
    fn access(&self, at: i64) {
        self.turns.wait(at, || Ok::<_, ()>(())).expect("nothing fails");
        // The turns before are over, and those behind have not begun.
        self.value.update(|value| {
            assert_eq!(*value, at, "all accesses before");
            *value += 1;
        });
        self.turns.end(at + 1);
    }
}

/// Has each of so many threads make one access, the first one last.
fn threads(number: i64) {
    perusal::model::check(3, move || {
        let guarded = Arc::new(Guarded::default());
        let others: Vec<_> = (1..number)
            .map(|at| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.access(at))
            })
            .collect();
        guarded.access(0);
        others.into_iter().for_each(|other| other.join().expect("a thread"));
        // All others have ended.
        assert_eq!(guarded.value.get(), number);
    });
}

#[test]
fn of_two_each_has_its_turn() {
    threads(2);
}

#[test]
fn of_three_that_sleep_each_has_its_turn() {
    threads(3);
}
