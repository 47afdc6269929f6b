//! A handle's state word: the generation that has the slot, and whether its window is open.
//!
//! ```text
//! 63        32 31                   2        1        0
//! +-----------+----------------------+--------+----+--------+
//! | generation|          0           |RELEASED|DEAD| ACTIVE |
//! +-----------+----------------------+--------+----+--------+
//! ```
//!
//! ACTIVE excludes DEAD and RELEASED. Every transition is made under the registry's control lock.
//! A free slot is RELEASED.

use crate::sync::{AtomicU64, Ordering};

const ACTIVE: u64 = 1;
const DEAD: u64 = 1 << 1;
const RELEASED: u64 = 1 << 2;
const GENERATION: u32 = 32;

/// The largest generation; handles are positive as a C `long`.
pub(super) const LAST_GENERATION: u32 = i32::MAX as u32;

/// What a handle looks like to the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandleStatus {
    /// Not a handle: never was, or released.
    Stale,
    /// Its communicator is freed.
    Dead,
    /// Registered, window closed.
    Inactive,
    /// Registered, window open.
    Active,
}

#[derive(Debug)]
pub(super) struct SlotState(AtomicU64);

impl SlotState {
    /// A free slot whose first handle will have generation 1.
    pub(super) fn new() -> SlotState {
        SlotState(AtomicU64::new(1 << GENERATION | RELEASED))
    }

    /// The generation of the handle that holds the slot, or of the next one if it is free.
    pub(super) fn generation(&self) -> u32 {
        // Relaxed: the generation moves under the control lock only, which callers hold.
        (self.0.load(Ordering::Relaxed) >> GENERATION) as u32
    }

    /// What the handle of `generation` looks like.
    pub(super) fn status(&self, generation: u32) -> HandleStatus {
        // Acquire: edge 4, pairs with Release in `open`; the slot's event is read after this. Looked at a second time,
        // it orders nothing more: the event's own Acquire does.
        let now = self.0.load(Ordering::Acquire);
        if (now >> GENERATION) as u32 != generation || now & RELEASED != 0 {
            HandleStatus::Stale
        } else if now & DEAD != 0 {
            HandleStatus::Dead
        } else if now & ACTIVE != 0 {
            HandleStatus::Active
        } else {
            HandleStatus::Inactive
        }
    }

    /// free → inactive. Control lock held.
    pub(super) fn open(&self) {
        // Release: edge 4, pairs with Acquire in `status`; publishes the slot's event.
        self.0.fetch_and(!RELEASED, Ordering::Release);
    }

    /// inactive → active. Control lock held.
    pub(super) fn activate(&self) {
        // Relaxed: an exchange passes on what `open` has published. A dispatch reads listener lists, which publish what
        // the slot holds (edge 4).
        self.0.fetch_or(ACTIVE, Ordering::Relaxed);
    }

    /// active → inactive. Control lock held.
    pub(super) fn deactivate(&self) {
        // Relaxed, here and below: for the control side, under its lock. They take out and publish nothing.
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
    }

    /// active or inactive → dead: the communicator is freed. Control lock held.
    pub(super) fn kill(&self) {
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
        self.0.fetch_or(DEAD, Ordering::Relaxed);
    }

    /// Anything but free → released. Control lock held.
    pub(super) fn release(&self) {
        self.0.fetch_and(!ACTIVE, Ordering::Relaxed);
        self.0.fetch_or(RELEASED, Ordering::Relaxed);
    }

    /// released, and no dispatch inside → free, next generation. Control lock held.
    pub(super) fn retire(&self) {
        let next = u64::from(self.generation()) + 1;
        self.0.store(next << GENERATION | RELEASED, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_walks_through_its_states() {
        let state = SlotState::new();
        assert_eq!(state.status(1), HandleStatus::Stale);
        state.open();
        assert_eq!(state.status(1), HandleStatus::Inactive);
        assert_eq!(state.status(2), HandleStatus::Stale);
        state.activate();
        assert_eq!(state.status(1), HandleStatus::Active);
        state.deactivate();
        state.activate();
        state.release();
        assert_eq!(state.status(1), HandleStatus::Stale);
        state.retire();
        assert_eq!(state.status(1), HandleStatus::Stale);
        assert_eq!(state.generation(), 2);
    }

    #[test]
    fn a_dead_handle_is_not_called_but_can_be_released() {
        let state = SlotState::new();
        state.open();
        state.activate();
        state.kill();
        assert_eq!(state.status(1), HandleStatus::Dead);
        state.release();
        assert_eq!(state.status(1), HandleStatus::Stale);
    }
}
