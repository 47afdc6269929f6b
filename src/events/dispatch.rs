//! Dispatch: from an event that was raised to those who listen to it.

use super::callback::{CallbackHeader, WritableSpec};
use super::hazard::{HazardRecord, LightFence, domain, of_first_thread, of_hashed_thread, of_this_thread};
use super::listeners::{ListEntry, ListenerList};
use super::registry::Registry;
use super::slots::HandleSlot;
use super::{CommEvents, Event, EventRecord};
use crate::sync::Ordering;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

/// The time of a pass, in which the thread is inside of slots. Ends with it, also where the fatal hook unwinds.
struct DispatchScope<'a>(&'a HazardRecord);

impl Drop for DispatchScope<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Where a row is: what a pass over it must come back to.
pub(super) trait Emitter {
    /// Whether C functions, which can fail by what they return, are in its rows.
    const HAS_C: bool;
    /// Its registry.
    fn registry(&self) -> &Registry;
    /// Its listener list of `event`, if there is one.
    fn listeners(&self, event: Event) -> Option<&ListenerList>;
    /// The communicator of a record that it tells, whatever has become of the description.
    fn comm_of(&self, record: &EventRecord<'_>) -> usize;
}

impl Emitter for CommEvents {
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

impl Emitter for Registry {
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
    /// Tells the global subscribers of `record.event`, an event that is bound to nothing. The caller has found `gate.is_open(event)`.
    ///
    /// As [`CommEvents::emit`] otherwise.
    #[inline(always)]
    pub fn emit(&self, record: &EventRecord<'_>) {
        dispatch(self, record.event, record, WritableSpec::NOTHING);
    }

    /// How often a callback or global subscriber has been told of an event, in this process.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        domain().delivered()
    }
}

/// Tells those in the row of `event`, which is the record's; who is told last is writable what is `writable`.
///
/// Sites know their event when they are compiled: so it comes in a register, and the row need not wait for the record to be written.
/// One listener, on the first thread, is the usual case: all that it needs is here.
#[inline(always)]
pub(super) fn dispatch<O: Emitter>(
    emitter: &O,
    event: Event,
    record: &EventRecord<'_>,
    writable: WritableSpec,
) {
    if !cfg!(feature = "peruse") {
        return;
    }
    let Some(hazard) = of_first_thread() else {
        return dispatch_on_later_thread(emitter, event, record, writable);
    };
    if !dispatch_to_only(emitter, event, record, writable, hazard) {
        dispatch_to_all(emitter, record, writable);
    }
}

/// Tells the listener that is the only one in the row, from a thread that need not fence. False if there is none, or it has left
/// meanwhile: then nobody has been told.
#[inline(always)]
fn dispatch_to_only<O: Emitter>(
    emitter: &O,
    event: Event,
    record: &EventRecord<'_>,
    writable: WritableSpec,
    hazard: &HazardRecord,
) -> bool {
    let fence = LightFence { alone: false };
    let Some(entry) = emitter.listeners(event).and_then(ListenerList::only) else {
        return false;
    };
    if hazard.is_inside() || emitter.registry().fences_alone() {
        return false;
    }
    let Some(slot) = protected(&entry, hazard, fence) else {
        // Not the only one any more, perhaps.
        hazard.clear();
        return false;
    };
    let scope = DispatchScope(hazard);
    deliver(emitter, slot, record, hazard, writable);
    drop(scope);
    finish(emitter, fence);
    true
}

/// As [`dispatch`], for threads that came later.
#[inline(never)]
fn dispatch_on_later_thread<O: Emitter>(
    emitter: &O,
    event: Event,
    record: &EventRecord<'_>,
    writable: WritableSpec,
) {
    if !of_hashed_thread().is_some_and(|hazard| dispatch_to_only(emitter, event, record, writable, hazard)) {
        dispatch_to_all(emitter, record, writable);
    }
}

/// As [`dispatch`], for any thread, any number of listeners, and where the kernel has no membarrier.
#[inline(never)]
fn dispatch_to_all<O: Emitter>(emitter: &O, record: &EventRecord<'_>, writable: WritableSpec) {
    let fence =
        if emitter.registry().fences_alone() { LightFence { alone: true } } else { domain().light_fence() };
    if fence.alone {
        return dispatch_with_fences(emitter, record, writable);
    }
    walk(emitter, record, writable, of_this_thread(), LightFence { alone: false });
}

/// As [`dispatch`], where the kernel has no membarrier.
#[cold]
#[inline(never)]
fn dispatch_with_fences<O: Emitter>(emitter: &O, record: &EventRecord<'_>, writable: WritableSpec) {
    walk(emitter, record, writable, of_this_thread(), LightFence { alone: true });
}

#[inline(always)]
fn walk<O: Emitter>(
    emitter: &O,
    record: &EventRecord<'_>,
    writable: WritableSpec,
    hazard: &HazardRecord,
    fence: LightFence,
) {
    // Event rule 8.
    if hazard.is_inside() {
        return;
    }
    let Some(listeners) = emitter.listeners(record.event) else { return };
    let scope = DispatchScope(hazard);
    let mut walk = listeners.walk();
    while let Some(entry) = walk.next() {
        // A entry that holds another slot by now: whoever listens all the time is not in it.
        if let Some(slot) = protected(&entry, hazard, fence) {
            // Event rule 9: whoever comes after a C function must not find what that has written.
            deliver(
                emitter,
                slot,
                record,
                hazard,
                if walk.are_over() { writable } else { WritableSpec::NOTHING },
            );
        }
    }
    drop(scope);
    finish(emitter, fence);
}

/// A pass has cleared its hazard.
#[inline(always)]
fn finish<O: Emitter>(emitter: &O, fence: LightFence) {
    // Event rule 7.
    fence.issue();
    if domain().wanted() {
        emitter.registry().after_pass();
    }
}

/// The slot, protected, if the entry still holds it.
#[inline(always)]
fn protected<'a>(entry: &ListEntry<'a>, hazard: &HazardRecord, fence: LightFence) -> Option<&'a HandleSlot> {
    // Event rule 6: hazard, fence, look.
    hazard.set(entry.address());
    fence.issue();
    entry.holds()
}

/// What `slot` holds.
///
/// # Safety
/// [`protected`] gave the slot, and the hazard stays while the result is in use.
#[inline(always)]
unsafe fn held(slot: &HandleSlot) -> &CallbackHeader {
    // Acquire: pairs with Release in `Registry::replace`: it may be another one than when the handle was activated.
    let called = slot.callback.load(Ordering::Acquire);
    // SAFETY: the slot was in its entry after it was protected, so what it points to is there, and nobody frees that while the hazard
    // stays (event rules 3 and 6).
    unsafe { &*called }
}

/// Calls what `slot` holds, which [`protected`] gave.
#[inline(always)]
fn deliver<O: Emitter>(
    emitter: &O,
    slot: &HandleSlot,
    record: &EventRecord<'_>,
    hazard: &HazardRecord,
    writable: WritableSpec,
) {
    // SAFETY: the hazard stays until the pass goes on; nobody reads the description after who is told last (event rule 9).
    let returned = unsafe { held(slot).call(record, hazard, writable) };
    if O::HAS_C && returned != 0 {
        fail(emitter, record, hazard, returned);
    }
    hazard.count();
}

/// What the thread is inside of has returned `returned`, which ends the job.
#[cold]
#[inline(never)]
fn fail<O: Emitter>(emitter: &O, record: &EventRecord<'_>, hazard: &HazardRecord, returned: c_int) {
    // Not kept by who calls, whose usual case has no use for it after the call.
    let Some(called) = running(hazard) else { return };
    called.fail(record, emitter.comm_of(record), &format_args!("returned {returned}"));
}

/// What the slot holds that the owner of `hazard`, who asks, is inside of.
#[inline(always)]
fn running(hazard: &HazardRecord) -> Option<&CallbackHeader> {
    let slot = core::ptr::with_exposed_provenance::<HandleSlot>(hazard.slot()?);
    // SAFETY: an address that a entry held, and so that of a slot; slots stay (event rule 1) as long as the registry, which the pass
    // that is under way borrows.
    let slot = unsafe { &*slot };
    // SAFETY: it is protected, by the thread that asks, and called, or about to be.
    Some(unsafe { held(slot) })
}

/// What the callback that runs on the calling thread, whose hazard this is, is told of by [`HazardRecord::set_subject`], and how that is to be
/// read ([`Listener::subject_type`](super::Listener::subject_type)); `None` if it is none of those that use that.
#[inline(always)]
pub(crate) fn current_subject(hazard: &HazardRecord) -> Option<(*const c_void, NonNull<c_void>)> {
    let how = running(hazard)?.subject_type()?;
    Some((hazard.subject(), how))
}
