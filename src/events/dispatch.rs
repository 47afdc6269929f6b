//! Dispatch: from an event that was raised to those who listen to it.

use super::called::{Given, Head};
use super::listeners::{ListenerList, Place};
use super::pins::{Light, Pin, first, mine, near, pins};
use super::registry::Registry;
use super::slots::Slot;
use super::{CommEvents, Event, EventRecord};
use crate::sync::Ordering;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

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
    /// Its listener list of `event`, if there is one.
    fn listeners(&self, event: Event) -> Option<&ListenerList>;
    /// The communicator of a record that it tells, whatever has become of the description.
    fn comm_of(&self, record: &EventRecord<'_>) -> usize;
}

impl Origin for CommEvents {
    const HAS_C: bool = true;

    #[inline(always)]
    fn registry(&self) -> &Registry {
        CommEvents::registry(self)
    }

    #[inline(always)]
    fn listeners(&self, event: Event) -> Option<&ListenerList> {
        CommEvents::listeners(self, event)
    }

    fn comm_of(&self, _: &EventRecord<'_>) -> usize {
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
    fn listeners(&self, event: Event) -> Option<&ListenerList> {
        self.listeners.get(event)
    }

    fn comm_of(&self, record: &EventRecord<'_>) -> usize {
        record.spec.comm
    }
}

impl Registry {
    /// Tells the taps of `record.event`, an event that is bound to nothing. The caller has found `gate.is_open(event)`.
    ///
    /// As [`CommEvents::emit`] otherwise.
    #[inline(always)]
    pub fn emit(&self, record: &EventRecord<'_>) {
        dispatch(self, record.event, record, Given::NOTHING);
    }

    /// How often a callback or tap has been told of an event, in this process.
    #[must_use]
    pub fn told(&self) -> u64 {
        pins().told()
    }
}

/// Tells those in the row of `event`, which is the record's; who is told last is given what is `given`.
///
/// Sites know their event when they are compiled: so it comes in a register, and the row need not wait for the record to be written.
/// One listener, on the first thread, is the usual case: all that it needs is here.
#[inline(always)]
pub(super) fn dispatch<O: Origin>(origin: &O, event: Event, record: &EventRecord<'_>, given: Given) {
    if !cfg!(feature = "peruse") {
        return;
    }
    let Some(pin) = first() else {
        return dispatch_beside(origin, event, record, given);
    };
    if !lone(origin, event, record, given, pin) {
        dispatch_to_all(origin, record, given);
    }
}

/// Tells the listener that is the only one in the row, from a thread that need not fence. False if there is none, or it has left
/// meanwhile: then nobody has been told.
#[inline(always)]
fn lone<O: Origin>(origin: &O, event: Event, record: &EventRecord<'_>, given: Given, pin: &Pin) -> bool {
    let fence = Light { alone: false };
    let Some(place) = origin.listeners(event).and_then(ListenerList::only) else {
        return false;
    };
    if pin.is_inside() || origin.registry().fences_alone() {
        return false;
    }
    let Some(slot) = pinned(&place, pin, fence) else {
        // Not the only one any more, perhaps.
        pin.clear();
        return false;
    };
    let pass = Pass(pin);
    tell(origin, slot, record, pin, given);
    drop(pass);
    over(origin, fence);
    true
}

/// As [`dispatch`], for threads that came later.
#[inline(never)]
fn dispatch_beside<O: Origin>(origin: &O, event: Event, record: &EventRecord<'_>, given: Given) {
    if !near().is_some_and(|pin| lone(origin, event, record, given, pin)) {
        dispatch_to_all(origin, record, given);
    }
}

/// As [`dispatch`], for any thread, any number of listeners, and where the kernel has no membarrier.
#[inline(never)]
fn dispatch_to_all<O: Origin>(origin: &O, record: &EventRecord<'_>, given: Given) {
    let fence = if origin.registry().fences_alone() { Light { alone: true } } else { pins().light() };
    if fence.alone {
        return dispatch_with_fences(origin, record, given);
    }
    walk(origin, record, given, mine(), Light { alone: false });
}

/// As [`dispatch`], where the kernel has no membarrier.
#[cold]
#[inline(never)]
fn dispatch_with_fences<O: Origin>(origin: &O, record: &EventRecord<'_>, given: Given) {
    walk(origin, record, given, mine(), Light { alone: true });
}

#[inline(always)]
fn walk<O: Origin>(origin: &O, record: &EventRecord<'_>, given: Given, pin: &Pin, fence: Light) {
    // Event rule 8.
    if pin.is_inside() {
        return;
    }
    let Some(listeners) = origin.listeners(record.event) else { return };
    let pass = Pass(pin);
    let mut places = listeners.places();
    while let Some(place) = places.next() {
        // A place that holds another slot by now: whoever listens all the time is not in it.
        if let Some(slot) = pinned(&place, pin, fence) {
            // Event rule 9: whoever comes after a C function must not find what that has written.
            tell(origin, slot, record, pin, if places.are_over() { given } else { Given::NOTHING });
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
fn tell<O: Origin>(origin: &O, slot: &Slot, record: &EventRecord<'_>, pin: &Pin, given: Given) {
    // SAFETY: the pin stays until the pass goes on; nobody reads the description after who is told last (event rule 9).
    let returned = unsafe { held(slot).call(record, pin, given) };
    if O::HAS_C && returned != 0 {
        fail(origin, record, pin, returned);
    }
    pin.count();
}

/// What the thread is inside of has returned `returned`, which ends the job.
#[cold]
#[inline(never)]
fn fail<O: Origin>(origin: &O, record: &EventRecord<'_>, pin: &Pin, returned: c_int) {
    // Not kept by who calls, whose usual case has no use for it after the call.
    let Some(called) = running(pin) else { return };
    called.fail(record, origin.comm_of(record), &format_args!("returned {returned}"));
}

/// What the slot holds that the owner of `pin`, who asks, is inside of.
#[inline(always)]
fn running(pin: &Pin) -> Option<&Head> {
    let slot = core::ptr::with_exposed_provenance::<Slot>(pin.slot()?);
    // SAFETY: an address that a place held, and so that of a slot; slots stay (event rule 1) as long as the registry, which the pass
    // that is under way borrows.
    let slot = unsafe { &*slot };
    // SAFETY: it is pinned, by the thread that asks, and called, or about to be.
    Some(unsafe { held(slot) })
}

/// What the callback that runs on the calling thread, whose pin this is, is told of by [`Pin::set_telling`], and how that is to be
/// read ([`Listen::told_as`](super::Listen::told_as)); `None` if it is none of those that use that.
#[inline(always)]
pub(crate) fn telling(pin: &Pin) -> Option<(*const c_void, NonNull<c_void>)> {
    let how = running(pin)?.told_as()?;
    Some((pin.telling(), how))
}
