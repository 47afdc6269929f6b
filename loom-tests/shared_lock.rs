//! The lock in shared memory: what is done under it is ordered, and done by one at a time.
//!
//! Run:   .ci/loom shared_lock
//! Bound: 2 and 3 threads, every interleaving; a thread that does not get the lock gives up.
//! Time:  a second.
//!
//! Weakened, each of these makes the model fail (checked by editing the line and running, one at a time): the Acquire
//! of `SharedLock::take_from`, the Release of the guard's drop, and `take_from` by a load and a store.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::shm::SharedLock;

#[derive(Default)]
struct Guarded {
    lock: SharedLock,
    value: Plain<u32>,
}

impl Guarded {
    /// Adds one, if the lock is free. Whether it was.
    fn add(&self) -> bool {
        let Some(_held) = self.lock.try_hold(1) else { return false };
        self.value.update(|value| *value += 1);
        true
    }
}

fn threads(number: usize) {
    loom::model(move || {
        let guarded = Arc::new(Guarded::default());
        let others: Vec<_> = (1..number)
            .map(|_| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.add())
            })
            .collect();
        let mut added = u32::from(guarded.add());
        added += others.into_iter().map(|other| u32::from(other.join().expect("a thread"))).sum::<u32>();
        assert!(guarded.add(), "nobody holds it any more");
        // All others have ended.
        assert_eq!(guarded.value.get(), added + 1);
    });
}

#[test]
fn what_two_do_under_the_lock_is_done_in_turn() {
    threads(2);
}

#[test]
fn what_three_do_under_the_lock_is_done_in_turn() {
    threads(3);
}

#[test]
fn of_a_lock_whose_holder_has_died_what_was_done_before_is_seen() {
    loom::model(|| {
        const DEAD: u32 = 7;
        let guarded = Arc::new(Guarded::default());
        let before = {
            let guarded = guarded.clone();
            thread::spawn(move || guarded.add())
        };
        let dead = {
            let guarded = guarded.clone();
            // It dies at once.
            thread::spawn(move || guarded.lock.try_hold(DEAD).map(core::mem::forget).is_some())
        };
        if let Some(_held) = guarded.lock.take_over(DEAD, 2) {
            guarded.value.update(|value| *value += 1);
        }
        before.join().expect("a thread");
        dead.join().expect("a thread");
    });
}
