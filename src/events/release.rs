//! How a handle ends: it leaves its lists, is found in no hazard pointer, and is retired;
//! and how gates that shut give the fast path back.

use super::Handle;
use super::callback::OwnedCallback;
use super::callback_state::{CallbackScope, hold_fast_path, inside_callback};
use super::control::ControlState;
use super::hazard::domain;
use super::registry::{EventError, Registry};
use super::slots::HandleSlot;
use super::state::{HandleStatus, LAST_GENERATION};
use crate::sync::{MutexGuard, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a retired handle owned; dropped without the control lock, because a closure's drop is foreign code.
type Leftovers = (Option<OwnedCallback>, Vec<OwnedCallback>);

impl Registry {
    /// As [`release`](Self::release), for global subscribers as well.
    pub(super) fn end(&self, handle: Handle) -> Result<(), EventError> {
        let may_wait = !inside_callback() && !self.lock().is_mine();
        let mut control = self.control();
        let (slot, status) = self.live_slot(handle)?;
        if status == HandleStatus::Active {
            let shut = self.silence(&mut control, handle, slot);
            control.shut_gates += shut;
        }
        slot.state.release();
        control.releasing.push(handle);
        control = self.shut(control);
        while may_wait && slot.state.generation() == handle.generation() {
            // Relaxed: under the control lock, as the count that `retire` adds.
            let seen = self.retired.word().load(Ordering::Relaxed);
            drop(control);
            self.retired.wait(seen);
            control = self.control();
        }
        if status == HandleStatus::Dead { Err(EventError::Object) } else { Ok(()) }
    }

    /// Settles at once what can be settled of what the caller has taken out,
    /// and requests the rest from dispatches that end.
    pub(super) fn shut<'a>(
        &'a self,
        mut control: MutexGuard<'a, ControlState>,
    ) -> MutexGuard<'a, ControlState> {
        if control.releasing.is_empty() && control.shut_gates == 0 {
            return control;
        }
        // Event rule 7: before the fence. Event rule 6: the caller has emptied the entries before it.
        self.request(&mut control, true);
        domain().heavy_fence();
        self.settle(control, false)
    }

    /// Requests that dispatches that end settle what this registry waits for, or takes the request back.
    fn request(&self, control: &mut ControlState, wants_settling: bool) {
        if control.wants_settling != wants_settling {
            control.wants_settling = wants_settling;
            domain().want(wants_settling);
        }
    }

    /// Settles what the control side has requested from dispatches that end.
    #[cold]
    #[inline(never)]
    pub(super) fn after_dispatch(&self) {
        drop(self.settle(self.control(), true));
    }

    /// Retires the handles that no thread is inside of, and gives the fast path back for gates that shut if no callback
    /// runs. `in_engine`: foreign code must not call MPI.
    ///
    /// The fence of `shut` came before all that is read here:
    /// a thread whose hazard pointer does not show here sees that the slot has left.
    fn settle<'a>(
        &'a self,
        mut control: MutexGuard<'a, ControlState>,
        in_engine: bool,
    ) -> MutexGuard<'a, ControlState> {
        loop {
            let (busy, over) =
                core::mem::take(&mut control.releasing).into_iter().partition::<Vec<_>, _>(|handle| {
                    self.slot(*handle).is_some_and(|slot| domain().busy(slot.address()))
                });
            control.releasing = busy;
            if over.is_empty() {
                break;
            }
            control = self.retire(control, &over, in_engine);
        }
        if control.shut_gates > 0 && control.dropping == 0 && domain().idle(|slot| self.slots.has(slot)) {
            (0..core::mem::take(&mut control.shut_gates)).for_each(|_| hold_fast_path(false));
        }
        let more = !control.releasing.is_empty() || control.shut_gates > 0;
        self.request(&mut control, more);
        control
    }

    /// Drops what the handles owned, and gives their slots to the next ones.
    fn retire<'a>(
        &'a self,
        mut control: MutexGuard<'a, ControlState>,
        handles: &[Handle],
        in_engine: bool,
    ) -> MutexGuard<'a, ControlState> {
        let leftovers: Vec<Leftovers> = handles
            .iter()
            .filter_map(|handle| self.slot(*handle).map(|slot| self.take(&mut control, *handle, slot)))
            .collect();
        control.dropping += 1;
        drop(control);
        {
            let _scope = in_engine.then(CallbackScope::enter);
            self.drop_foreign(leftovers);
        }
        // Only now: a release that waits promises that what the callback owned has been dropped.
        let mut control = self.control();
        control.dropping -= 1;
        for handle in handles {
            if let Some(slot) = self.slot(*handle) {
                free(&mut control, *handle, slot);
            }
        }
        // Relaxed: under the control lock, as the look in `end`.
        self.retired.word().fetch_add(1, Ordering::Relaxed);
        self.retired.wake_all();
        control
    }

    /// Drops what users gave. The caller may be inside the engine, through which nothing may unwind.
    pub(super) fn drop_foreign<T>(&self, foreign: T) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(foreign))) {
            // Dropping it might panic again.
            core::mem::forget(payload);
            self.fatal("what a PERUSE callback owned panicked when it was dropped".into());
        }
    }

    fn slot(&self, handle: Handle) -> Option<&HandleSlot> {
        self.slots.get(handle.index())
    }

    /// Takes what a released handle owned, which no thread is inside of (event rule 3).
    fn take(&self, control: &mut ControlState, handle: Handle, slot: &HandleSlot) -> Leftovers {
        let entry = core::mem::take(&mut control.entries[handle.index()]);
        // Relaxed: the control lock orders writers, and no dispatch is inside.
        let called = slot.callback.swap(core::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the slot owned it. The handle is released, so the slot is in no list, and no hazard pointer names it:
        // no dispatch can reach the callback (event rules 3 and 6).
        (unsafe { OwnedCallback::from_raw(called) }, entry.replaced)
    }
}

/// Gives the slot to the next handle, unless its generations are used up.
fn free(control: &mut ControlState, handle: Handle, slot: &HandleSlot) {
    slot.state.retire();
    if handle.generation() < LAST_GENERATION {
        control.free.push(handle.index());
    }
}
