//! A request's state word: a type with named transitions.

use crate::sync::{AtomicU32, Ordering};

/// The engine works on it.
const ACTIVE: u32 = 1;
/// The operation is over; status and buffer are final.
const COMPLETE: u32 = 2;
/// The user has freed the handle: the last of the two releases the slot.
const DETACHED: u32 = 4;
/// A thread sleeps until it is over, while another one runs progress.
const AWAITED: u32 = 8;

/// Where the place of that thread begins in the word.
const PLACE: u32 = 8;
const PLACES: u32 = 0xff << PLACE;

/// What the caller of a transition has to do about the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Then {
    /// Nothing: the other side still has an interest.
    Keep,
    /// Release the slot: nobody else will.
    Release,
}

/// The state word. Inactive (0), ACTIVE or COMPLETE, each with or without DETACHED and AWAITED,
/// and the place of the thread that awaits it.
#[derive(Debug, Default)]
pub struct RequestState(AtomicU32);

impl RequestState {
    /// A slot's word before first use: inactive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inactive → active. Only the owner of an inactive request calls it.
    #[inline(always)]
    pub fn activate(&self) {
        // Relaxed: the request becomes known to others through a queue's lock or a ring, which publish the body.
        self.0.store(ACTIVE, Ordering::Relaxed);
    }

    /// Inactive → complete: an operation that is over before its user has the request.
    #[inline(always)]
    pub fn complete_at_once(&self) {
        // Relaxed: the caller has the request from the thread that makes it, and so what that thread did before.
        self.0.store(COMPLETE, Ordering::Relaxed);
    }

    /// Active → complete.
    #[inline(always)]
    pub fn complete(&self, shared: bool) -> Then {
        if !shared {
            // Relaxed load: without other threads there is nobody to race with (conditional lock rule 1).
            let before = self.0.load(Ordering::Relaxed);
            // Release: edge 3, pairs with Acquire in `is_complete`.
            self.0.store(before & DETACHED | COMPLETE, Ordering::Release);
            return if before & DETACHED == 0 { Then::Keep } else { Then::Release };
        }
        self.complete_shared().0
    }

    /// Active → complete, where several threads may be inside; and at which place one of them is to be woken for it.
    #[inline(always)]
    pub fn complete_shared(&self) -> (Then, Option<usize>) {
        // AcqRel: edge 3, pairs with Acquire in `is_complete` (status and buffer are final),
        // and with `detach` and `await_end`.
        let before = self.0.swap(COMPLETE, Ordering::AcqRel);
        let then = if before & DETACHED == 0 { Then::Keep } else { Then::Release };
        (then, (before & AWAITED != 0).then_some(((before & PLACES) >> PLACE) as usize))
    }

    /// The user's thread is about to sleep at `place` (below 256) until it is over. True if it is over already; else
    /// whoever completes it learns that it has to wake the thread: both change the one word, so one of the two sees the
    /// other. A request has one thread that waits for it (MPI 5.0 §11.6.2): of several, the last is woken at once.
    pub fn await_end(&self, place: usize) -> bool {
        let awaited = |word: u32| word & !PLACES | (place as u32) << PLACE & PLACES | AWAITED;
        // AcqRel: edge 3, as in `is_complete`; and pairs with AcqRel in `complete_shared`: the thread that has to wake
        // us does so after what we did before (waiters edge). Relaxed: the exchange looks again.
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| Some(awaited(word)));
        before.is_ok_and(|word| word & ACTIVE == 0)
    }

    /// The user lets go of the request without waiting (MPI_Request_free).
    pub fn detach(&self) -> Then {
        // AcqRel: edge 3: if it was complete we release the slot and must see all that the engine did to it.
        let before = self.0.fetch_or(DETACHED, Ordering::AcqRel);
        if before & ACTIVE == 0 { Then::Release } else { Then::Keep }
    }

    /// Complete → inactive, for a persistent request or before the slot is released.
    #[inline(always)]
    pub fn reset(&self) {
        // Relaxed: only the owner looks at an inactive request.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the operation is over.
    #[inline(always)]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        // Acquire: edge 3, pairs with Release in `complete`: status and buffer are final.
        self.0.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Whether the operation is over, or none has begun.
    #[inline(always)]
    #[must_use]
    pub fn is_over(&self) -> bool {
        // Acquire: edge 3, as in `is_complete`.
        self.0.load(Ordering::Acquire) & ACTIVE == 0
    }

    /// Whether no operation has begun (since the last one was taken).
    #[inline(always)]
    #[must_use]
    pub fn is_inactive(&self) -> bool {
        // Relaxed: only its owner begins an operation or takes its outcome.
        self.0.load(Ordering::Relaxed) & (ACTIVE | COMPLETE) == 0
    }

    /// Whether the engine works on it.
    #[inline(always)]
    #[must_use]
    pub fn is_active(&self) -> bool {
        // Relaxed: asked by the owner, who activated it, or by progress, which alone ends it.
        self.0.load(Ordering::Relaxed) & ACTIVE != 0
    }

    /// Whether the user has let go of it.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        // Relaxed: a hint for events; the slot's fate is decided by the transitions.
        self.0.load(Ordering::Relaxed) & DETACHED != 0
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_from_inactive_through_active_to_complete() {
        for shared in [false, true] {
            let state = RequestState::new();
            assert!(!state.is_active() && !state.is_complete());
            state.activate();
            assert!(state.is_active() && !state.is_complete());
            assert_eq!(state.complete(shared), Then::Keep);
            assert!(!state.is_active() && state.is_complete());
            assert_eq!(state.detach(), Then::Release);
        }
    }

    #[test]
    fn who_completes_an_awaited_request_is_told_to_wake_once() {
        let state = RequestState::new();
        state.activate();
        assert!(!state.await_end(7) && !state.await_end(19));
        assert!(state.is_active() && !state.is_complete());
        assert_eq!(state.complete_shared(), (Then::Keep, Some(19)));
        assert!(state.is_complete() && state.await_end(0), "it is over");
        state.reset();
        assert!(state.is_inactive());
        state.activate();
        assert_eq!(state.complete_shared(), (Then::Keep, None));
    }

    #[test]
    fn a_freed_request_is_released_by_its_completion() {
        for shared in [false, true] {
            let state = RequestState::new();
            state.activate();
            assert_eq!(state.detach(), Then::Keep);
            assert_eq!(state.complete(shared), Then::Release);
        }
    }
}
