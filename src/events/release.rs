//! How a handle ends: shut, looked at, retired; and how gates that shut let the process rest.

use super::Handle;
use super::callback_state::{Upcall, hold_fast_path, inside_callback};
use super::called::Called;
use super::control::Control;
use super::pins::pins;
use super::registry::{EventError, Registry};
use super::slots::Slot;
use super::state::{LAST_GENERATION, View};
use crate::sync::{MutexGuard, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// What a retired handle owned; dropped without the control lock, for a closure's drop is foreign code.
type Leftovers = (Option<Called>, Vec<Called>);

impl Registry {
    /// As [`release`](Self::release), and taps too.
    pub(super) fn end(&self, handle: Handle) -> Result<(), EventError> {
        let may_wait = !inside_callback() && !self.lock().is_mine();
        let mut control = self.control();
        let (slot, view) = self.look(handle)?;
        if view == View::Active {
            let shut = self.silence(&mut control, handle, slot);
            control.owed += shut;
        }
        slot.state.release();
        control.leaving.push(handle);
        control = self.shut(control);
        while may_wait && slot.state.generation() == handle.generation() {
            control = self.retired.wait(control).unwrap_or_else(PoisonError::into_inner);
        }
        if view == View::Dead { Err(EventError::Object) } else { Ok(()) }
    }

    /// Ends what can end at once of what the caller has shut, and asks passes to see to the rest.
    pub(super) fn shut<'a>(&'a self, mut control: MutexGuard<'a, Control>) -> MutexGuard<'a, Control> {
        if control.leaving.is_empty() && control.owed == 0 {
            return control;
        }
        // Event rule 7: before the fence. Event rule 6: the caller has emptied the places before it.
        self.ask(&mut control, true);
        pins().heavy();
        self.settle(control, false)
    }

    /// Asks passes that end to look after this registry, or no more.
    fn ask(&self, control: &mut Control, asking: bool) {
        if control.asking != asking {
            control.asking = asking;
            pins().want(asking);
        }
    }

    /// A pass is over that the control side asked to look after it.
    #[cold]
    #[inline(never)]
    pub(super) fn after_pass(&self) {
        drop(self.settle(self.control(), true));
    }

    /// Retires what nobody is inside of any more, and lets gates rest if no callback runs. `in_engine`: foreign code may not call MPI.
    ///
    /// The fence of `shut` lies behind all that is looked at here: so who is not seen in a pin now sees the slot shut.
    fn settle<'a>(
        &'a self,
        mut control: MutexGuard<'a, Control>,
        in_engine: bool,
    ) -> MutexGuard<'a, Control> {
        loop {
            let (busy, over) =
                core::mem::take(&mut control.leaving).into_iter().partition::<Vec<_>, _>(|handle| {
                    self.slot(*handle).is_some_and(|slot| pins().busy(slot.address()))
                });
            control.leaving = busy;
            if over.is_empty() {
                break;
            }
            control = self.retire(control, &over, in_engine);
        }
        if control.owed > 0 && control.dropping == 0 && pins().idle(|slot| self.slots.has(slot)) {
            (0..core::mem::take(&mut control.owed)).for_each(|_| hold_fast_path(false));
        }
        let more = !control.leaving.is_empty() || control.owed > 0;
        self.ask(&mut control, more);
        control
    }

    /// Drops what the handles owned, and gives their slots to the next ones.
    fn retire<'a>(
        &'a self,
        mut control: MutexGuard<'a, Control>,
        handles: &[Handle],
        in_engine: bool,
    ) -> MutexGuard<'a, Control> {
        let leftovers: Vec<Leftovers> = handles
            .iter()
            .filter_map(|handle| self.slot(*handle).map(|slot| self.take(&mut control, *handle, slot)))
            .collect();
        control.dropping += 1;
        drop(control);
        {
            let _upcall = in_engine.then(Upcall::enter);
            self.drop_foreign(leftovers);
        }
        // Dropped first: a release that waits promises that what the callback owned is gone.
        let mut control = self.control();
        control.dropping -= 1;
        for handle in handles {
            if let Some(slot) = self.slot(*handle) {
                free(&mut control, *handle, slot);
            }
        }
        self.retired.notify_all();
        control
    }

    /// Drops what users gave. We may be inside the engine, through which nothing may unwind.
    pub(super) fn drop_foreign<T>(&self, foreign: T) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(foreign))) {
            // Dropping it might panic again.
            core::mem::forget(payload);
            self.fatal("what a PERUSE callback owned panicked when it was dropped".into());
        }
    }

    fn slot(&self, handle: Handle) -> Option<&Slot> {
        self.slots.get(handle.index())
    }

    /// Takes what a released handle that nobody is inside of owned (event rule 3).
    fn take(&self, control: &mut Control, handle: Handle, slot: &Slot) -> Leftovers {
        let entry = core::mem::take(&mut control.entries[handle.index()]);
        // Relaxed: the control lock orders writers, and nobody is inside.
        let called = slot.called.swap(core::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the slot owned it, and with the handle released, in no row any more, and no pin on the slot no dispatcher can
        // reach it (event rules 3 and 6).
        (unsafe { Called::from_raw(called) }, entry.replaced)
    }
}

/// Gives the slot to the next handle, unless its generations are used up.
fn free(control: &mut Control, handle: Handle, slot: &Slot) {
    slot.state.retire();
    if handle.generation() < LAST_GENERATION {
        control.free.push(handle.index());
    }
}
