//! Turns at a file without offsets: what is done in one is ordered before what is done in the next, and nobody sleeps over its turn.
//!
//! Run:   .ci/loom turns
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that); the model's futex wakes nobody without a reason.
//! Time:  a second.
//!
//! `cargo xtask mutants src/sync/turns.rs` weakens each ordering and says which model fails (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::sync::{Cell, Turns};

#[derive(Default)]
struct Guarded {
    turns: Turns,
    /// loom panics where an access and a write are concurrent.
    value: Cell<i64>,
}

// SAFETY: that access to the value is ordered is what the model checks; loom panics where it is not.
unsafe impl Send for Guarded {}
// SAFETY: as for Send.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn access(&self, at: i64) {
        self.turns.wait(at, || Ok::<_, ()>(())).expect("nothing fails");
        // SAFETY: the turns before are over, and those behind have not begun; loom panics before this runs concurrently with another access.
        self.value.with_mut(|value| unsafe {
            assert_eq!(*value, at, "all accesses before");
            *value += 1;
        });
        self.turns.end(at + 1);
    }
}

/// Has each of so many threads make one access, the first one last.
fn threads(number: i64) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3.max(builder.preemption_bound.unwrap_or(0)));
    builder.check(move || {
        let guarded = Arc::new(Guarded::default());
        let others: Vec<_> = (1..number)
            .map(|at| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.access(at))
            })
            .collect();
        guarded.access(0);
        others.into_iter().for_each(|other| other.join().expect("a thread"));
        // SAFETY: all others have ended.
        assert_eq!(guarded.value.with(|value| unsafe { *value }), number);
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
