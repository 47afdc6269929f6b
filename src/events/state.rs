//! A handle's state word: whose turn of the slot it is, whether its window is open, who is inside its callback.
//!
//! ```text
//! 63        32 31    27  26      25    24     23            0
//! +-----------+--------+--------+----+--------+--------------+
//! | generation|   0    |RELEASED|DEAD| ACTIVE |  in flight   |
//! +-----------+--------+--------+----+--------+--------------+
//! ```
//!
//! ACTIVE excludes DEAD and RELEASED. Every transition but `enter` and `leave` is made under the registry's control
//! lock, so that only the count in flight changes beside it. A free slot is RELEASED with nobody in flight.

use crate::sync::{AtomicU64, Ordering};

const IN_FLIGHT: u64 = (1 << 24) - 1;
const ACTIVE: u64 = 1 << 24;
const DEAD: u64 = 1 << 25;
const RELEASED: u64 = 1 << 26;
const GENERATION: u32 = 32;

/// The largest generation; handles are positive as a C `long`.
pub(super) const LAST_GENERATION: u32 = i32::MAX as u32;

/// What a handle looks like to the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Not a handle: never was, or released.
    Stale,
    /// Its communicator is freed.
    Dead,
    /// Registered, window closed.
    Inactive,
    /// Registered, window open.
    Active,
}

/// What `release` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Release {
    /// Nobody is inside the callback: the caller retires the slot.
    Idle,
    /// Somebody is: the last one to leave retires the slot.
    Busy,
}

/// What `leave` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Leave {
    /// Nothing is left to do.
    Done,
    /// The handle was released meanwhile and this was the last one inside: the caller retires the slot.
    LastOfReleased,
}

#[derive(Debug)]
pub(super) struct State(AtomicU64);

impl State {
    /// A free slot whose first handle will have generation 1.
    pub(super) fn new() -> State {
        State(AtomicU64::new(1 << GENERATION | RELEASED))
    }

    /// The generation of the handle that holds the slot, or of the next one if it is free.
    pub(super) fn generation(&self) -> u32 {
        // Relaxed: the generation moves under the control lock only, which callers hold.
        (self.0.load(Ordering::Relaxed) >> GENERATION) as u32
    }

    /// What the handle of `generation` looks like.
    pub(super) fn view(&self, generation: u32) -> View {
        // Acquire: edge 4, pairs with Release in `open`; the slot's event is read after this. Looked at a second time, it
        // orders nothing more: the event's own Acquire does.
        let now = self.0.load(Ordering::Acquire);
        if (now >> GENERATION) as u32 != generation || now & RELEASED != 0 {
            View::Stale
        } else if now & DEAD != 0 {
            View::Dead
        } else if now & ACTIVE != 0 {
            View::Active
        } else {
            View::Inactive
        }
    }

    /// free → inactive. Control lock held.
    pub(super) fn open(&self) {
        // Release: edge 4, pairs with Acquire in `view`; publishes the slot's event and callback.
        self.0.fetch_and(!RELEASED, Ordering::Release);
    }

    /// inactive → active. Control lock held.
    pub(super) fn activate(&self) {
        // Release: edge 4, pairs with Acquire in `enter`; publishes the slot's event and callback.
        self.0.fetch_or(ACTIVE, Ordering::Release);
    }

    /// active → inactive: nobody enters from here on. Control lock held.
    pub(super) fn deactivate(&self) {
        // Relaxed: a caller that needs those inside to be gone releases.
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
    }

    /// active or inactive → dead: the communicator is freed. Control lock held.
    pub(super) fn kill(&self) {
        // Relaxed: both changes shut out, neither publishes. `enter` reads ACTIVE alone, so the order is free.
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
        self.0.fetch_or(DEAD, Ordering::Relaxed);
    }

    /// Anything but free → released: nobody enters from here on. Control lock held.
    pub(super) fn release(&self) -> Release {
        // Relaxed: RELEASED below is what decides; ACTIVE goes first so that a word with both is never seen.
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
        // Acquire: edge 4, pairs with Release in `leave`, so that whoever retires sees every callback finished.
        let before = self.0.fetch_or(RELEASED, Ordering::Acquire);
        if before & IN_FLIGHT == 0 { Release::Idle } else { Release::Busy }
    }

    /// released and empty → free, next generation. Control lock held.
    pub(super) fn retire(&self) {
        let next = u64::from(self.generation()) + 1;
        // Release: pairs with Acquire in `view`; nobody enters a word without ACTIVE, so no change can be lost.
        self.0.store(next << GENERATION | RELEASED, Ordering::Release);
    }

    /// Counts the caller in if the handle of `generation` is active; then its callback may be called until `leave`.
    #[must_use]
    pub(super) fn enter(&self, generation: u32) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            if (now >> GENERATION) as u32 != generation || now & ACTIVE == 0 {
                return false;
            }
            // Acquire: edge 4, pairs with Release in `activate`. Relaxed on failure: nothing is read but the word.
            match self.0.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
    }

    /// Ends what a successful `enter` began.
    pub(super) fn leave(&self) -> Leave {
        // Release: edge 4, pairs with Acquire in `release` and, for the last one out, with the Acquire here.
        let before = self.0.fetch_sub(1, Ordering::AcqRel);
        debug_assert_ne!(before & IN_FLIGHT, 0);
        if before & RELEASED != 0 && before & IN_FLIGHT == 1 { Leave::LastOfReleased } else { Leave::Done }
    }

    /// Whether anybody is inside the callback. A no is final while the control lock is held and the window is closed.
    pub(super) fn busy(&self) -> bool {
        // Acquire: edge 4, pairs with Release in `leave`.
        self.0.load(Ordering::Acquire) & IN_FLIGHT != 0
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_walks_through_its_states() {
        let state = State::new();
        assert_eq!(state.view(1), View::Stale);
        state.open();
        assert_eq!(state.view(1), View::Inactive);
        assert_eq!(state.view(2), View::Stale);
        assert!(!state.enter(1));
        state.activate();
        assert_eq!(state.view(1), View::Active);
        assert!(!state.enter(2), "another generation");
        assert!(state.enter(1));
        assert!(state.busy());
        state.deactivate();
        assert!(!state.enter(1));
        assert_eq!(state.leave(), Leave::Done);
        assert_eq!(state.release(), Release::Idle);
        state.retire();
        assert_eq!(state.view(1), View::Stale);
        assert_eq!(state.generation(), 2);
    }

    #[test]
    fn the_last_one_inside_a_released_handle_retires_it() {
        let state = State::new();
        state.open();
        state.activate();
        assert!(state.enter(1) && state.enter(1));
        assert_eq!(state.release(), Release::Busy);
        assert_eq!(state.view(1), View::Stale);
        assert!(!state.enter(1));
        assert_eq!(state.leave(), Leave::Done);
        assert_eq!(state.leave(), Leave::LastOfReleased);
    }

    #[test]
    fn a_dead_handle_is_not_entered_but_can_be_released() {
        let state = State::new();
        state.open();
        state.activate();
        state.kill();
        assert_eq!(state.view(1), View::Dead);
        assert!(!state.enter(1));
        assert_eq!(state.release(), Release::Idle);
    }
}
