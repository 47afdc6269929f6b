//! Dispatch: from an event that was emitted to the callbacks of its listeners.

use super::callback::{CallbackRef, WritableSpec};
use super::hazard::{LightFence, domain, of_first_thread, of_hashed_thread, of_this_thread};
use super::hazard_record::HazardRecord;
use super::listeners::{ListEntry, ListenerList};
use super::registry::Registry;
use super::slots::HandleSlot;
use super::{CommEvents, Event, EventRecord};
use crate::sync::Ordering;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

/// Clears the hazard pointer at the end of a dispatch, and forgets the event's time, also where the fatal hook unwinds.
struct DispatchScope<'a>(&'a HazardRecord);

impl Drop for DispatchScope<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set_when(0);
        self.0.clear();
    }
}

/// What has listener lists: a communicator, or the registry for the events of the engine.
pub(super) trait Emitter {
    /// Whether C functions, which fail by what they return, can be in its lists.
    const HAS_C: bool;
    /// Its registry.
    fn registry(&self) -> &Registry;
    /// Its listener list of `event`, if there is one.
    fn listeners(&self, event: Event) -> Option<&ListenerList>;
    /// The communicator of a record that it emits, also when the record's spec has been overwritten.
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
    // C functions are registered with a communicator.
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
    /// Emits an event that is bound to nothing to its global subscribers. The caller has found `gate.is_open(event)`.
    ///
    /// As [`CommEvents::emit`] otherwise.
    #[inline(always)]
    pub fn emit(&self, record: &EventRecord<'_>) {
        dispatch(self, record.event, record, WritableSpec::NOTHING);
    }

    /// How many records callbacks and global subscribers have received, in this process.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        domain().delivered()
    }
}

/// Calls the listeners of `event`, which is the record's; the last one gets `writable`.
///
/// Sites know their event type when they are compiled: it comes in a register, and finding the list need not wait until
/// the record is written. One listener, on the first thread, is the usual case: all that it needs is inlined here.
#[inline(always)]
pub(super) fn dispatch<E: Emitter>(
    emitter: &E,
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

/// Calls the listener that is the only one in the list, from a thread that need not fence. False if there is none, or
/// it has left meanwhile: then nobody was called.
#[inline(always)]
fn dispatch_to_only<E: Emitter>(
    emitter: &E,
    event: Event,
    record: &EventRecord<'_>,
    writable: WritableSpec,
    hazard: &HazardRecord,
) -> bool {
    let fence = LightFence { alone: false };
    fence.interrupt();
    let Some(entry) = emitter.listeners(event).and_then(ListenerList::only) else {
        return false;
    };
    if hazard.is_inside() || emitter.registry().fences_alone() {
        return false;
    }
    let Some(protected) = Protected::new(&entry, hazard, fence) else {
        // It is perhaps no longer the only one.
        hazard.clear();
        return false;
    };
    let scope = DispatchScope(hazard);
    protected.deliver(emitter, record, writable);
    drop(scope);
    finish(emitter, fence);
    true
}

/// As [`dispatch`], for threads that came later.
#[inline(never)]
fn dispatch_on_later_thread<E: Emitter>(
    emitter: &E,
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
fn dispatch_to_all<E: Emitter>(emitter: &E, record: &EventRecord<'_>, writable: WritableSpec) {
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
fn dispatch_with_fences<E: Emitter>(emitter: &E, record: &EventRecord<'_>, writable: WritableSpec) {
    walk(emitter, record, writable, of_this_thread(), LightFence { alone: true });
}

#[inline(always)]
fn walk<E: Emitter>(
    emitter: &E,
    record: &EventRecord<'_>,
    writable: WritableSpec,
    hazard: &HazardRecord,
    fence: LightFence,
) {
    // Event rule 8.
    if hazard.is_inside() {
        return;
    }
    fence.interrupt();
    let Some(listeners) = emitter.listeners(record.event) else { return };
    let scope = DispatchScope(hazard);
    let mut walk = listeners.walk();
    while let Some(entry) = walk.next() {
        // If the entry holds another slot by now, its former handle has left meanwhile, and so may be left out.
        if let Some(protected) = Protected::new(&entry, hazard, fence) {
            // Event rule 9: no listener may find what a C function before it has written.
            let writable = if walk.is_over() { writable } else { WritableSpec::NOTHING };
            protected.deliver(emitter, record, writable);
        }
    }
    drop(scope);
    finish(emitter, fence);
}

/// Settles what a registry has requested, after the hazard pointer was cleared.
#[inline(always)]
fn finish<E: Emitter>(emitter: &E, fence: LightFence) {
    // Event rule 7.
    fence.issue();
    if domain().wanted() {
        emitter.registry().after_dispatch();
    }
}

/// A slot that a listener list holds, and that the thread's hazard pointer names:
/// nobody frees its callback (event rules 3 and 6).
struct Protected<'a> {
    slot: &'a HandleSlot,
    hazard: &'a HazardRecord,
}

impl<'a> Protected<'a> {
    /// Publishes the hazard pointer to the slot in `entry`; `None` if the entry no longer holds the slot.
    #[inline(always)]
    fn new(entry: &ListEntry<'a>, hazard: &'a HazardRecord, fence: LightFence) -> Option<Protected<'a>> {
        fence.interrupt();
        // Event rule 6: publish, fence, look.
        hazard.set(entry.address());
        fence.issue();
        entry.holds().map(|slot| Protected { slot, hazard })
    }

    /// The slot's callback.
    #[inline(always)]
    fn callback(&self) -> CallbackRef<'_> {
        // Acquire: pairs with Release in `Registry::replace`: it may be another one than when the handle was activated.
        let callback = self.slot.callback.load(Ordering::Acquire);
        // SAFETY: the slot was in its entry after the hazard pointer was published, so it has a callback, which nobody
        // frees while the hazard pointer stays (event rules 3 and 6). The hazard pointer changes when the dispatch goes
        // on, which this borrow precedes.
        unsafe { CallbackRef::new(callback) }
    }

    /// Calls it.
    #[inline(always)]
    fn deliver<E: Emitter>(&self, emitter: &E, record: &EventRecord<'_>, writable: WritableSpec) {
        // SAFETY: the hazard pointer stays until the dispatch goes on; only the last listener gets a writable spec, and
        // no listener comes after it that could read the record's (event rule 9).
        let returned = unsafe { self.callback().call(record, self.hazard, writable) };
        if E::HAS_C && returned != 0 {
            fail(emitter, record, self.hazard, returned);
        }
        self.hazard.count();
    }
}

/// Ends the job, because the callback that the thread is inside of returned `returned`.
#[cold]
#[inline(never)]
fn fail<E: Emitter>(emitter: &E, record: &EventRecord<'_>, hazard: &HazardRecord, returned: c_int) {
    // Looked up again: the usual case has no use for it after the call.
    let Some(running) = running(hazard) else { return };
    running.callback().fail(record, emitter.comm_of(record), &format_args!("returned {returned}"));
}

/// The callback that the owner of `hazard`, which is the calling thread, is inside of.
#[inline(always)]
fn running(hazard: &HazardRecord) -> Option<Protected<'_>> {
    let slot = core::ptr::with_exposed_provenance::<HandleSlot>(hazard.slot()?);
    // SAFETY: a dispatch published it, which had it from a listener list, so a slot lies there; slots stay (event
    // rule 1) as long as the registry, which the dispatch that is under way borrows.
    let slot = unsafe { &*slot };
    Some(Protected { slot, hazard })
}

/// Whether the event callback that runs on the calling thread, if one does,
/// is a C function that was registered with PERUSE.
#[cfg(not(perusal_loom))]
#[must_use]
pub fn inside_peruse_callback() -> bool {
    running(of_this_thread()).is_some_and(|protected| protected.callback().c().is_some())
}

/// The subject that the running callback of the calling thread, whose record this is, left by
/// [`HazardRecord::set_subject`], and what it is ([`Listener::subject_type`](super::Listener::subject_type)); `None` if
/// the callback is none of those that leave one.
#[inline(always)]
pub(crate) fn current_subject(hazard: &HazardRecord) -> Option<(*const c_void, NonNull<c_void>)> {
    let subject_type = running(hazard)?.callback().subject_type()?;
    Some((hazard.subject(), subject_type))
}
