//! Completion of a request: who sees it complete sees its outcome; a request that its user frees meanwhile is released
//! once. A generalized request (MPI_Grequest_start) has the same word: `a_request_that_is_freed_while_it_completes_is_released_once` is
//! MPI_Grequest_complete beside MPI_Request_free, and its release the call of the user's free function.
//!
//! Run:   .ci/loom request
//! Bound: every interleaving of 2 threads.
//! Time:  below a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//! the Release half in `RequestState::complete`; the Acquire of `RequestState::is_complete` and of `RequestState::is_over`; the AcqRel of
//! `RequestState::detach` (Acquire half); the look at DETACHED in `RequestState::complete`.
#![cfg(perusal_loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use perusal::internals::request::{RequestState, Then};

/// A request and the outcome that its completion publishes.
struct Slot {
    state: RequestState,
    outcome: UnsafeCell<u32>,
    released: AtomicUsize,
}
// SAFETY: that access to the outcome is ordered is what the models check.
unsafe impl Send for Slot {}
// SAFETY: as for Send.
unsafe impl Sync for Slot {}

fn active() -> Arc<Slot> {
    let slot =
        Slot { state: RequestState::new(), outcome: UnsafeCell::new(0), released: AtomicUsize::new(0) };
    slot.state.activate();
    Arc::new(slot)
}

fn finish(slot: &Slot, shared: bool) {
    slot.outcome.with_mut(|outcome| {
        // SAFETY: request rule 2: active, so the engine's.
        unsafe { *outcome = 7 }
    });
    if slot.state.complete(shared) == Then::Release {
        release(slot);
    }
}

fn release(slot: &Slot) {
    slot.outcome.with_mut(|outcome| {
        // SAFETY: request rule 4: told to release it, so nobody else has it.
        unsafe { *outcome = 0 }
    });
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
        let outcome = slot.outcome.with(|outcome| {
            // SAFETY: request rule 3: complete, so its user's.
            unsafe { *outcome }
        });
        assert_eq!(outcome, 7);
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
