//! Dispatch: from an event that was raised to those who listen to it.

use super::registry::Registry;
use super::rows::Row;
use super::spec::{Callback, Failure};
use super::state::Leave;
use super::upcall::Upcall;
use super::{Fact, Handle};
use crate::sync::Ordering;

impl Registry {
    /// Tells the taps of `fact.event`, an event that is bound to nothing. The caller has found `gate.open(event)`.
    ///
    /// As [`CommEvents::raise`](super::CommEvents::raise) otherwise.
    #[cold]
    #[inline(never)]
    pub fn raise(&self, fact: &Fact<'_>) {
        self.dispatch(None, fact);
    }

    /// Tells those in `row`, and the taps.
    pub(super) fn dispatch(&self, row: Option<&Row>, fact: &Fact<'_>) {
        if !cfg!(feature = "peruse") {
            return;
        }
        let rows = row.into_iter().chain([&self.taps[fact.event.index()]]);
        for place in rows.flat_map(Row::places) {
            // Relaxed: a handle is a number; `enter` decides whether it still means anything (event rule 2).
            let bits = place.load(Ordering::Relaxed);
            if let Some(handle) = Handle::from_bits(bits) {
                self.call(handle, fact);
            }
        }
    }

    fn call(&self, handle: Handle, fact: &Fact<'_>) {
        let Some(slot) = self.slots.get(handle.index()) else { return };
        if !slot.state.enter(handle.generation()) {
            return;
        }
        // Until the slot is left: the last to leave drops what the callback owned, which is foreign code as well.
        let _upcall = Upcall::enter();
        let inside = Inside { registry: self, handle };
        // Relaxed: published by the state word (edge 4); replaced only while the handle is inactive (event rule 3).
        let callback = slot.callback.load(Ordering::Relaxed);
        // SAFETY: between `enter` and `leave` the slot's callback is a box that nobody frees (event rule 3).
        let callback = unsafe { &*callback };
        if let Err(failure) = callback.call(handle, fact) {
            self.fatal(fatal_text(handle, fact, callback, failure));
        }
        drop(inside);
        // Relaxed, and no locked instruction: a sample that may lose a step when several threads are told at once.
        self.told.store(self.told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How often a callback or tap has been told of an event: a sample.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }
}

/// The time between a successful `enter` and its `leave`, kept even if something between them unwinds.
struct Inside<'a> {
    registry: &'a Registry,
    handle: Handle,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let Some(slot) = self.registry.slots.get(self.handle.index()) else { return };
        if slot.state.leave() == Leave::LastOfReleased {
            self.registry.finish(self.handle);
        }
    }
}

#[cold]
fn fatal_text(handle: Handle, fact: &Fact<'_>, callback: &Callback, failure: Failure) -> String {
    format!(
        "PERUSE callback at {:#x} {failure} for event {} (handle {:#x}, communicator {:#x}, unique id {:#x}); \
         a callback's non-success return ends the job (PERUSE 2.0, section 5.1.2)",
        callback.address(),
        fact.event.row().name.to_string_lossy(),
        handle.raw(),
        fact.spec.comm,
        fact.id,
    )
}
