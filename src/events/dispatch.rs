//! Dispatch: from an event that was raised to those who listen to it.

use super::registry::Registry;
use super::rows::{Place, Row};
use super::spec::{Callback, Failure};
use super::upcall::Pass;
use super::{Event, Fact, Handle};
use crate::sync::Ordering;

impl Registry {
    /// Tells the taps of `fact.event`, an event that is bound to nothing. The caller has found `gate.open(event)`.
    ///
    /// As [`CommEvents::raise`](super::CommEvents::raise) otherwise.
    #[inline(never)]
    pub fn raise(&self, fact: &Fact<'_>) {
        self.dispatch(None, fact.event, fact);
    }

    /// Tells those in `row`, and the taps of `event`.
    #[inline(always)]
    pub(super) fn dispatch(&self, row: Option<&Row>, event: Event, fact: &Fact<'_>) {
        if !cfg!(feature = "peruse") {
            return;
        }
        let Some(pass) = Pass::begin(self) else { return };
        if let Some(row) = row {
            self.tell(&pass, row, fact);
        }
        self.tell(&pass, &self.taps[event.index()], fact);
        let fence = pass.fence;
        drop(pass);
        // Event rule 7: the pass has cleared its pin.
        fence.light();
        if self.pins.wanted() {
            self.after_pass();
        }
    }

    #[inline(always)]
    fn tell(&self, pass: &Pass<'_>, row: &Row, fact: &Fact<'_>) {
        let mut link = Some(row.first());
        while let Some(here) = link {
            for place in here.places() {
                self.call(pass, &place, fact);
            }
            link = here.next();
        }
    }

    #[inline(always)]
    fn call(&self, pass: &Pass<'_>, place: &Place<'_>, fact: &Fact<'_>) {
        let slot = place.slot();
        // Event rule 6: pin, fence, look.
        pass.pin.set(slot.address());
        pass.fence.light();
        let Some(generation) = slot.state.active() else { return };
        if !place.holds() {
            return;
        }
        // Acquire: pairs with Release in `Registry::set_callback`: it may have been replaced since the handle was active last.
        let callback = slot.callback.load(Ordering::Acquire);
        // SAFETY: the slot was active after it was pinned, so its callback is a box, and nobody frees it while the pin stays
        // (event rules 3 and 6).
        let callback = unsafe { &*callback };
        let handle = || Handle::new(slot.index as usize, generation);
        if let Err(failure) = callback.call(handle, fact) {
            self.failed(handle(), fact, callback, failure);
        }
        pass.pin.count();
        pass.next();
    }

    /// How often a callback or tap has been told of an event.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.pins.told()
    }
}

impl Registry {
    #[cold]
    #[inline(never)]
    fn failed(&self, handle: Handle, fact: &Fact<'_>, callback: &Callback, failure: Failure) {
        self.fatal(fatal_text(handle, fact, callback, failure));
    }
}

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
