//! Completion of a request: a thread that sees it complete sees its outcome; a request that its user frees meanwhile is
//! released once. A generalized request (MPI_Grequest_start) has the same word:
//! `a_request_that_is_freed_while_it_completes_is_released_once` is MPI_Grequest_complete beside MPI_Request_free, and
//! its release the call of the user's free function.
//!
//! Run:   .ci/loom request
//! Bound: every interleaving of 2 threads.
//! Time:  below a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Release half in `RequestState::complete`;
//! - the Acquire of `RequestState::is_complete` and of `RequestState::is_over`;
//! - the AcqRel of `RequestState::detach`, `complete_shared` and `await_end` (each half);
//! - the look at DETACHED in `RequestState::complete`.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use perusal::internals::request::{RequestState, Then};

/// A request and the outcome that its completion publishes.
struct Slot {
    state: RequestState,
    outcome: Plain<u32>,
    released: AtomicUsize,
}

fn active() -> Arc<Slot> {
    let slot = Slot { state: RequestState::new(), outcome: Plain::new(0), released: AtomicUsize::new(0) };
    slot.state.activate();
    Arc::new(slot)
}

fn finish(slot: &Slot, shared: bool) {
    // Request rule 2: active, so the engine's.
    slot.outcome.set(7);
    if slot.state.complete(shared) == Then::Release {
        release(slot);
    }
}

fn release(slot: &Slot) {
    // Request rule 4: `true` hands the slot to this thread alone.
    slot.outcome.set(0);
    slot.released.fetch_add(1, Ordering::Relaxed);
}

fn completion_is_seen_with_its_outcome(over: fn(&RequestState) -> bool, shared: bool) {
    loom::model(move || {
        let slot = active();
        let engine = {
            let slot = slot.clone();
            thread::spawn(move || finish(&slot, shared))
        };
        while !over(&slot.state) {
            thread::yield_now();
        }
        // Request rule 3: complete, so its user's.
        assert_eq!(slot.outcome.get(), 7);
        engine.join().expect("the engine");
    });
}

#[test]
fn a_wait_sees_the_outcome() {
    completion_is_seen_with_its_outcome(RequestState::is_complete, true);
    completion_is_seen_with_its_outcome(RequestState::is_complete, false);
}

#[test]
fn a_test_sees_the_outcome() {
    completion_is_seen_with_its_outcome(RequestState::is_over, true);
}

#[test]
fn a_request_that_is_freed_while_it_completes_is_released_once() {
    loom::model(|| {
        let slot = active();
        let engine = {
            let slot = slot.clone();
            thread::spawn(move || finish(&slot, true))
        };
        if slot.state.detach() == Then::Release {
            release(&slot);
        }
        engine.join().expect("the engine");
        assert_eq!(slot.released.load(Ordering::Relaxed), 1);
    });
}

/// A request between its engine and its user, and what each of them did before it turned to the request.
struct Between {
    state: RequestState,
    by_engine: Plain<u32>,
    by_user: Plain<u32>,
}

/// Runs the engine's end of a request beside the user's.
/// Each says whether it is to look at what the other did, and then sees it.
fn both_ends(engine: fn(&RequestState) -> bool, user: fn(&RequestState) -> bool) {
    loom::model(move || {
        let state = RequestState::new();
        state.activate();
        let between = Arc::new(Between { state, by_engine: Plain::new(0), by_user: Plain::new(0) });
        let other = {
            let between = between.clone();
            thread::spawn(move || {
                // The user looks at it behind the request's word, or loom fails the model.
                between.by_engine.set(7);
                if engine(&between.state) {
                    assert_eq!(between.by_user.get(), 8);
                    return 1;
                }
                0
            })
        };
        between.by_user.set(8);
        let mut lasts = 0;
        if user(&between.state) {
            assert_eq!(between.by_engine.get(), 7);
            lasts = 1;
        }
        assert_eq!(lasts + other.join().expect("the engine"), 1, "one of the two comes last");
    });
}

#[test]
fn who_lets_go_of_a_request_last_has_seen_what_the_other_did() {
    both_ends(|state| state.complete_shared().0 == Then::Release, |state| state.detach() == Then::Release);
}

#[test]
fn who_is_to_be_woken_has_been_seen_by_who_completes_or_sees_the_completion() {
    both_ends(|state| state.complete_shared().1 == Some(3), |state| state.await_end(3));
}
