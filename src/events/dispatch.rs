//! Dispatch: from an event that was raised to those who listen to it.

use super::called::{Given, Head};
use super::pins::{Light, Pin, first, mine, pins};
use super::registry::Registry;
use super::rows::{Place, Row};
use super::slots::Slot;
use super::{CommEvents, Event, Fact};
use crate::sync::Ordering;
use core::ffi::c_int;

/// The time of a pass, in which the thread is inside of slots. Ends with it, also where the fatal hook unwinds.
struct Pass<'a>(&'a Pin);

impl Drop for Pass<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Where a row is: what a pass over it must come back to.
pub(super) trait Origin {
    /// Whether C functions, which can fail by what they return, are in its rows.
    const HAS_C: bool;
    /// Its registry.
    fn registry(&self) -> &Registry;
    /// Its row of `event`.
    fn row(&self, event: Event) -> &Row;
    /// The communicator of a fact that it tells, whatever has become of the description.
    fn comm_of(&self, fact: &Fact<'_>) -> usize;
}

impl Origin for CommEvents {
    const HAS_C: bool = true;

    #[inline(always)]
    fn registry(&self) -> &Registry {
        CommEvents::registry(self)
    }

    #[inline(always)]
    fn row(&self, event: Event) -> &Row {
        CommEvents::row(self, event)
    }

    fn comm_of(&self, _: &Fact<'_>) -> usize {
        self.comm()
    }
}

impl Origin for Registry {
    // They are registered with a communicator.
    const HAS_C: bool = false;

    #[inline(always)]
    fn registry(&self) -> &Registry {
        self
    }

    #[inline(always)]
    fn row(&self, event: Event) -> &Row {
        &self.taps[event.index()]
    }

    fn comm_of(&self, fact: &Fact<'_>) -> usize {
        fact.spec.comm
    }
}

impl Registry {
    /// Tells the taps of `fact.event`, an event that is bound to nothing. The caller has found `gate.open(event)`.
    ///
    /// As [`CommEvents::raise`] otherwise.
    #[inline(always)]
    pub fn raise(&self, fact: &Fact<'_>) {
        self.raise_event(fact.event, fact);
    }

    #[inline(never)]
    fn raise_event(&self, event: Event, fact: &Fact<'_>) {
        dispatch(self, event, fact, Given::NOTHING);
    }

    /// How often a callback or tap has been told of an event, in this process.
    #[must_use]
    pub fn told(&self) -> u64 {
        pins().told()
    }
}

/// Tells those in the row of `event`, which is the fact's; who is told last is given what is `given`.
///
/// Sites know their event when they are compiled: so it comes in a register, and the row need not wait for the fact to be written.
/// One listener, on the first thread, is the usual case: all that it needs is here.
#[inline(always)]
pub(super) fn dispatch<O: Origin>(origin: &O, event: Event, fact: &Fact<'_>, given: Given) {
    if !cfg!(feature = "peruse") {
        return;
    }
    if let Some(pin) = first()
        && let Some(place) = origin.row(event).only()
        && !pin.is_inside()
        && !origin.registry().fences_alone()
    {
        let fence = Light { alone: false };
        if let Some(slot) = pinned(&place, pin, fence) {
            let pass = Pass(pin);
            tell(origin, slot, fact, pin, given);
            drop(pass);
            return over(origin, fence);
        }
        // Not the only one any more, perhaps.
        pin.clear();
    }
    dispatch_to_all(origin, fact, given);
}

/// As [`dispatch`], for any thread, any number of listeners, and where the kernel has no membarrier.
#[inline(never)]
fn dispatch_to_all<O: Origin>(origin: &O, fact: &Fact<'_>, given: Given) {
    if let Some(pin) = first()
        && !origin.registry().fences_alone()
    {
        return walk(origin, fact, given, pin, Light { alone: false });
    }
    dispatch_beside(origin, fact, given);
}

/// As [`dispatch`], for threads that came later, and where the kernel has no membarrier.
#[inline(never)]
fn dispatch_beside<O: Origin>(origin: &O, fact: &Fact<'_>, given: Given) {
    let fence = if origin.registry().fences_alone() { Light { alone: true } } else { pins().light() };
    walk(origin, fact, given, mine(), fence);
}

#[inline(always)]
fn walk<O: Origin>(origin: &O, fact: &Fact<'_>, given: Given, pin: &Pin, fence: Light) {
    // Event rule 8.
    if pin.is_inside() {
        return;
    }
    let pass = Pass(pin);
    let mut places = origin.row(fact.event).places();
    while let Some(place) = places.next() {
        // A place that holds another slot by now: whoever listens all the time is not in it.
        if let Some(slot) = pinned(&place, pin, fence) {
            // Event rule 9: whoever comes after a C function must not find what that has written.
            tell(origin, slot, fact, pin, if places.are_over() { given } else { Given::NOTHING });
        }
    }
    drop(pass);
    over(origin, fence);
}

/// A pass has cleared its pin.
#[inline(always)]
fn over<O: Origin>(origin: &O, fence: Light) {
    // Event rule 7.
    fence.light();
    if pins().wanted() {
        origin.registry().after_pass();
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

/// What `slot` holds.
///
/// # Safety
/// [`pinned`] gave the slot, and the pin stays while the result is in use.
#[inline(always)]
unsafe fn held(slot: &Slot) -> &Head {
    // Acquire: pairs with Release in `Registry::replace`: it may be another one than when the handle was activated.
    let called = slot.called.load(Ordering::Acquire);
    // SAFETY: the slot was in its place after it was pinned, so what it points to is there, and nobody frees that while the pin
    // stays (event rules 3 and 6).
    unsafe { &*called }
}

/// Calls what `slot` holds, which [`pinned`] gave.
#[inline(always)]
fn tell<O: Origin>(origin: &O, slot: &Slot, fact: &Fact<'_>, pin: &Pin, given: Given) {
    // SAFETY: the pin stays until the pass goes on; nobody reads the description after who is told last (event rule 9).
    let returned = unsafe { held(slot).call(fact, pin, given) };
    if O::HAS_C && returned != 0 {
        fail(origin, fact, pin, returned);
    }
    pin.count();
}

/// What the thread is inside of has returned `returned`, which ends the job.
#[cold]
#[inline(never)]
fn fail<O: Origin>(origin: &O, fact: &Fact<'_>, pin: &Pin, returned: c_int) {
    // Not kept by who calls, whose usual case has no use for it after the call.
    let slot = core::ptr::with_exposed_provenance::<Slot>(pin.slot());
    // SAFETY: the pin still names the slot that was pinned for the call, and slots stay (event rule 1).
    let called = unsafe { held(&*slot) };
    called.fail(fact, origin.comm_of(fact), &format_args!("returned {returned}"));
}
