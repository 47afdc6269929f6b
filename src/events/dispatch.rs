//! Dispatch: from an event that was raised to those who listen to it.

use super::Fact;
use super::pins::{Light, Pin, first, mine, pins};
use super::registry::Registry;
use super::rows::{Place, Row};
use super::slots::Slot;
use crate::sync::Ordering;

/// The time of a pass, in which the thread is inside of slots. Ends with it, also where the fatal hook unwinds.
struct Pass<'a>(&'a Pin);

impl Drop for Pass<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Registry {
    /// Tells the taps of `fact.event`, an event that is bound to nothing. The caller has found `gate.open(event)`.
    ///
    /// As [`CommEvents::raise`](super::CommEvents::raise) otherwise.
    #[inline(never)]
    pub fn raise(&self, fact: &Fact<'_>) {
        self.dispatch(&self.taps[fact.event.index()], fact);
    }

    /// Tells those in `row`.
    #[inline(always)]
    pub(super) fn dispatch(&self, row: &Row, fact: &Fact<'_>) {
        if !cfg!(feature = "peruse") {
            return;
        }
        match first() {
            Some(pin) if !self.fences_alone() => self.dispatch_to_only(row, fact, pin),
            _ => self.dispatch_beside(row, fact),
        }
    }

    /// As `dispatch`, for the first thread. One listener is the usual case, which needs nothing but the registry once it has been told.
    #[inline(always)]
    fn dispatch_to_only(&self, row: &Row, fact: &Fact<'_>, pin: &Pin) {
        let fence = Light { alone: false };
        let Some(place) = row.only() else { return self.dispatch_to_all(row, fact) };
        // Event rule 8.
        if pin.is_inside() {
            return;
        }
        let Some(slot) = pinned(&place, pin, fence) else {
            // Not the only one any more, perhaps.
            pin.clear();
            return self.dispatch_to_all(row, fact);
        };
        let pass = Pass(pin);
        tell(slot, fact, pin);
        drop(pass);
        self.over(fence);
    }

    /// As `dispatch`, for the first thread and all in `row`.
    #[inline(never)]
    fn dispatch_to_all(&self, row: &Row, fact: &Fact<'_>) {
        if let Some(pin) = first() {
            self.walk(row, fact, pin, Light { alone: false });
        }
    }

    /// As `dispatch`, for threads that came later, and where the kernel has no membarrier.
    #[inline(never)]
    fn dispatch_beside(&self, row: &Row, fact: &Fact<'_>) {
        let fence = if self.fences_alone() { Light { alone: true } } else { pins().light() };
        self.walk(row, fact, mine(), fence);
    }

    #[inline(always)]
    fn walk(&self, row: &Row, fact: &Fact<'_>, pin: &Pin, fence: Light) {
        // Event rule 8.
        if pin.is_inside() {
            return;
        }
        let pass = Pass(pin);
        let mut places = row.places();
        while let Some(place) = places.next() {
            // A place that holds another slot by now: whoever listens all the time is not in it.
            if let Some(slot) = pinned(&place, pin, fence) {
                tell(slot, fact, pin);
            }
        }
        drop(pass);
        self.over(fence);
    }

    /// A pass has cleared its pin.
    #[inline(always)]
    fn over(&self, fence: Light) {
        // Event rule 7.
        fence.light();
        if pins().wanted() {
            self.after_pass();
        }
    }

    /// How often a callback or tap has been told of an event, in this process.
    #[must_use]
    pub fn told(&self) -> u64 {
        pins().told()
    }
}

/// The slot, pinned, if the place still holds it.
#[inline(always)]
fn pinned<'a>(place: &Place<'a>, pin: &Pin, fence: Light) -> Option<&'a Slot> {
    // Event rule 6: pin, fence, look.
    pin.set(place.address());
    fence.light();
    place.holds()
}

/// Calls what `slot` holds, which [`pinned`] gave.
#[inline(always)]
fn tell(slot: &Slot, fact: &Fact<'_>, pin: &Pin) {
    // Acquire: pairs with Release in `Registry::replace`: it may be another one than when the handle was activated.
    let called = slot.called.load(Ordering::Acquire);
    // SAFETY: the slot was in its place after it was pinned, so what it points to is there, and nobody frees that while the pin
    // stays (event rules 3 and 6).
    let called = unsafe { &*called };
    // SAFETY: as above.
    unsafe { called.call(fact, pin) };
    pin.count();
}
