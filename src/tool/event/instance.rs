//! One event on its way to one function: what an MPI_T_event_instance names,
//! for the time of that call and on that thread.

use super::source;
use super::types::ToolEventType;
use crate::arch::clock;
use crate::events::{Event, EventPayload, EventRecord, HazardRecord, Spec, current_subject, this_thread};
use crate::sync::{AtomicBool, Ordering};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

/// Whether a tool has asked for times: from then on the clock is read before an event's first function is called.
static TIMES: AtomicBool = AtomicBool::new(false);

/// A tool asks for times. If it does so for the first time in a function that is called at once,
/// that function's event has come before.
pub fn expect_times() {
    // Relaxed: whoever finds it unset yet reads the clock when a function asks.
    TIMES.store(true, Ordering::Relaxed);
    let hazard = this_thread();
    if current_subject(hazard).is_some() {
        observed(hazard);
    }
}

/// When the event of the present dispatch was observed: the same for all its listeners.
#[inline(always)]
pub(super) fn observed(hazard: &HazardRecord) -> u64 {
    match hazard.when() {
        0 => {
            let now = clock::ticks();
            hazard.set_when(now);
            now
        }
        when => when,
    }
}

/// An event that waits in a buffer: all of an [`EventRecord`] that elements show.
#[derive(Debug, Clone, Copy)]
pub struct QueuedEvent {
    when: u64,
    event: Event,
    context: u32,
    id: isize,
    spec: Spec,
    payload: EventPayload<'static>,
}

/// With its turn, what an entry of a buffer takes.
const _: () = assert!(size_of::<QueuedEvent>() + size_of::<u64>() <= 120);

impl QueuedEvent {
    /// What was observed at `when`, in ticks.
    #[inline]
    #[must_use]
    pub fn of(record: &EventRecord<'_>, when: u64) -> QueuedEvent {
        QueuedEvent {
            when,
            event: record.event,
            context: record.context,
            id: record.id,
            spec: *record.spec,
            payload: record.payload.without_borrows(),
        }
    }

    /// The event's record.
    #[must_use]
    pub fn record(&self) -> EventRecord<'_> {
        EventRecord {
            event: self.event,
            id: self.id,
            context: self.context,
            spec: &self.spec,
            payload: self.payload,
        }
    }
}

/// What a function may ask about while it runs.
#[derive(Debug)]
pub struct Instance<'a> {
    /// Of which type.
    pub event_type: &'static ToolEventType,
    /// What happened.
    pub record: &'a EventRecord<'a>,
    /// Ticks; 0 until they are asked for.
    when: Cell<u64>,
    queued: bool,
    /// The instance around this one: a function that may call MPI can cause events.
    outer: Cell<*const Instance<'static>>,
}

impl<'a> Instance<'a> {
    /// An event that is delivered at once.
    #[inline(always)]
    #[must_use]
    pub fn now(event_type: &'static ToolEventType, record: &'a EventRecord<'a>) -> Instance<'a> {
        Instance { event_type, record, when: Cell::new(0), queued: false, outer: Cell::new(ptr::null()) }
    }

    /// An event that waited in a buffer; `record` is its [`QueuedEvent::record`].
    #[must_use]
    pub fn late(
        event_type: &'static ToolEventType,
        record: &'a EventRecord<'a>,
        queued: &QueuedEvent,
    ) -> Instance<'a> {
        Instance {
            event_type,
            record,
            when: Cell::new(queued.when),
            queued: true,
            outer: Cell::new(ptr::null()),
        }
    }

    /// When it was observed, in ticks of the clock. Of an event that is delivered at once, if no tool has asked for
    /// times before ([`expect_times`]), when this is first asked.
    #[must_use]
    pub fn when(&self) -> u64 {
        if self.when.get() == 0 {
            expect_times();
            self.when.set(clock::ticks());
        }
        self.when.get()
    }

    /// Index of its source.
    #[must_use]
    pub fn source(&self) -> usize {
        if self.queued { source::BUFFERS } else { source::of_this_thread() }
    }
}

/// The instances of events that waited which a thread is inside of, innermost first;
/// its hazard record points to the first.
#[derive(Debug, Clone, Copy)]
pub struct InstanceStack<'a>(&'a HazardRecord);

impl<'a> InstanceStack<'a> {
    /// The calling thread's.
    #[must_use]
    pub fn of_this_thread() -> InstanceStack<'static> {
        InstanceStack(this_thread())
    }

    /// Runs `call` with the handle of `instance`, which is good until `call` returns, on this thread.
    #[inline(always)]
    pub fn during(self, instance: &Instance<'_>, call: impl FnOnce(*mut c_void)) {
        let this = ptr::from_ref(instance).cast_mut().cast::<c_void>();
        instance.outer.set(self.0.instance().cast::<Instance<'static>>().cast_const());
        self.0.set_instance(this);
        call(this);
        self.0.set_instance(instance.outer.get().cast_mut().cast());
    }
}

/// The handle of an event that is delivered at once, for the function that the listener calls next: good until the
/// listener returns, on the thread whose hazard this is.
///
/// It is the record's address; an [`Instance`] is made when a function asks about it. Its event type is what the
/// listener returns ([`Listener::subject_type`](crate::events::Listener::subject_type)).
#[inline(always)]
pub(super) fn of_immediate(hazard: &HazardRecord, record: &EventRecord<'_>) -> *mut c_void {
    let what = ptr::from_ref(record).cast::<c_void>();
    // Relaxed: as in `expect_times`.
    if TIMES.load(Ordering::Relaxed) {
        observed(hazard);
    }
    hazard.set_subject(what);
    what.cast_mut()
}

/// Event type and record of the event that is delivered at once, if `handle` is its address.
///
/// # Safety
/// The result is not used when the function that asks has returned.
#[inline(always)]
unsafe fn immediate<'a>(
    hazard: &HazardRecord,
    handle: usize,
) -> Option<(&'static ToolEventType, &'a EventRecord<'a>)> {
    let (what, event_type) = current_subject(hazard)?;
    if what.addr() != handle {
        return None;
    }
    // SAFETY: of a registration's listeners, which are all that have anything there, each has its type there, and gives
    // functions what `of_immediate` has made of a record; that lives until they have returned.
    Some(unsafe { (event_type.cast::<ToolEventType>().as_ref(), &*what.cast::<EventRecord<'a>>()) })
}

/// The innermost instance of this thread that `handle` names, of events that waited.
///
/// # Safety
/// As for [`immediate`].
unsafe fn queued<'a>(hazard: &HazardRecord, handle: usize) -> Option<&'a Instance<'a>> {
    let mut at = hazard.instance().cast::<Instance<'a>>().cast_const();
    while !at.is_null() {
        // SAFETY: `InstanceStack::during` put it there and takes it away before the instance goes;
        // it is further up on this thread's stack.
        let instance = unsafe { &*at };
        if at.addr() == handle {
            return Some(instance);
        }
        at = instance.outer.get().cast();
    }
    None
}

/// Looks at the instance that `handle` names; `None` if it names none whose function runs on this thread at present.
pub fn with_instance<R>(handle: *mut c_void, with: impl FnOnce(&Instance<'_>) -> R) -> Option<R> {
    let hazard = this_thread();
    // SAFETY: the reference is used only inside `with`, which returns before the tool's callback on this thread does.
    if let Some((event_type, record)) = unsafe { immediate(hazard, handle.addr()) } {
        let instance = Instance::now(event_type, record);
        instance.when.set(hazard.when());
        let found = with(&instance);
        hazard.set_when(instance.when.get());
        return Some(found);
    }
    // SAFETY: the reference is used only inside `with`, which returns before the tool's callback on this thread does.
    unsafe { queued(hazard, handle.addr()) }.map(with)
}

/// As [`with_instance`], for type and record alone.
#[inline(always)]
pub fn read<R>(
    handle: *mut c_void,
    with: impl FnOnce(&'static ToolEventType, &EventRecord<'_>) -> R,
) -> Option<R> {
    let hazard = this_thread();
    // SAFETY: the reference is used only inside `with`, which returns before the tool's callback on this thread does.
    let found = unsafe { immediate(hazard, handle.addr()) };
    // SAFETY: the instance is used only inside `with`, which returns before the tool's callback on this thread does.
    let late =
        || unsafe { queued(hazard, handle.addr()) }.map(|instance| (instance.event_type, instance.record));
    found.or_else(late).map(|(event_type, record)| with(event_type, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventSet, Listener, Registry};
    use crate::sync::AtomicUsize;
    use crate::tool::event::types;
    use core::ptr::NonNull;
    use std::sync::Arc;

    /// A listener that hands out what it receives.
    struct HandsOut<F>(F);

    impl<F: Fn(*mut c_void, &EventRecord<'_>) + Send + Sync + 'static> Listener for HandsOut<F> {
        fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord) {
            (self.0)(of_immediate(hazard, record), record);
        }

        fn subject_type(&self) -> Option<NonNull<c_void>> {
            Some(NonNull::from(&types::TYPES[8]).cast())
        }
    }

    fn instance<R>(check: impl FnOnce(&Instance<'_>) -> R) -> R {
        let spec = Spec { tag: 9, ..Spec::NOTHING };
        let record = EventRecord::new(Event::MsgArrived, 5, &spec);
        check(&Instance::now(&types::TYPES[8], &record))
    }

    #[test]
    fn an_instance_is_known_while_its_function_runs_on_its_thread_and_only_there() {
        let mut kept = 0;
        instance(|outer| {
            let enter = |handle: *mut c_void| {
                kept = handle as usize;
                assert_eq!(with_instance(handle, |i| i.record.id), Some(5));
                instance(|inner| {
                    let within = |within: *mut c_void| {
                        assert_ne!(within, handle);
                        assert!(
                            with_instance(within, |_| ()).is_some()
                                && with_instance(handle, |_| ()).is_some()
                        );
                    };
                    InstanceStack::of_this_thread().during(inner, within);
                });
                let there = std::thread::spawn(move || with_instance(kept as *mut c_void, |_| ()).is_some());
                assert!(!there.join().unwrap());
            };
            InstanceStack::of_this_thread().during(outer, enter);
        });
        assert!(with_instance(kept as *mut c_void, |_| ()).is_none());
        assert!(with_instance(ptr::null_mut(), |_| ()).is_none());
    }

    #[test]
    fn an_event_delivered_at_once_is_known_by_its_record_during_that_call_alone() {
        let (one, two) = (
            EventRecord::new(Event::MsgArrived, 5, &Spec::NOTHING),
            EventRecord::new(Event::ReqNotify, 6, &Spec::NOTHING),
        );
        let registry = Registry::new(Box::new(|why| panic!("{why}")));
        let (kept, calls) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let counted = calls.clone();
        let check = move |handle: *mut c_void, record: &EventRecord<'_>| {
            let before =
                ptr::with_exposed_provenance_mut(kept.swap(handle.expose_provenance(), Ordering::Relaxed));
            assert!(with_instance(before, |_| ()).is_none() && read(before, |_, _| ()).is_none());
            let when = with_instance(handle, |i| i.when()).unwrap();
            assert!(when > 0 && with_instance(handle, |i| i.when()) == Some(when), "it stands still");
            let seen = with_instance(handle, |i| (i.record.id, i.source()));
            assert_eq!(seen, Some((record.id, source::of_this_thread())));
            assert_eq!(
                read(handle, |event_type, seen| (event_type.event, seen.id)),
                Some((types::TYPES[8].event, record.id))
            );
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let heard = registry.listen_globally(EventSet::ALL, HandsOut(check));
        let world = registry.attach(1);
        world.emit(&one);
        world.emit(&two);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert!(with_instance(ptr::from_ref(&two).cast_mut().cast(), |_| ()).is_none());
        drop(heard);
        // A subscriber of the library receives the same record, but hands out no instance.
        let check = |record: &EventRecord<'_>| {
            assert!(with_instance(ptr::from_ref(record).cast_mut().cast(), |_| ()).is_none())
        };
        let subscription = registry.subscribe_globally(EventSet::ALL, Arc::new(check));
        world.emit(&two);
        drop(subscription);
    }

    #[test]
    fn the_time_of_an_instance_stands_still_once_asked() {
        instance(|i| {
            let when = i.when();
            assert_eq!(when, i.when());
            assert!(when <= clock::ticks());
        });
    }

    #[test]
    fn a_queued_event_has_every_element_of_its_record() {
        let spec = Spec { comm: 1, count: 2, datatype: 3, peer: 4, tag: 5, bytes: 6, ..Spec::NOTHING };
        let payloads = [
            EventPayload::Coll {
                operation: 1,
                root: crate::events::CollRoot(Some(3)),
                algorithm: 2,
                mode: 1,
                bytes: 3,
            },
            EventPayload::Copy { engine: 1, bytes: 2, peer: 3 },
            EventPayload::Sleep { waiting: 1, peer: 2 },
            EventPayload::Ring { peer: 1, waiting: 2 },
            EventPayload::Comm { size: 3, group: &[1, 2, 3] },
            EventPayload::Name("a communicator"),
            EventPayload::Error { class: 1, code: 2 },
            EventPayload::Placement { cpu: 1, policy: 1 },
            EventPayload::Search { depth: 4, hit: true },
            EventPayload::Cancelled,
            EventPayload::None,
        ];
        for event_type in types::TYPES.iter() {
            for payload in payloads {
                let record =
                    EventRecord { payload, context: 8, ..EventRecord::new(event_type.event, -7, &spec) };
                let queued = QueuedEvent::of(&record, clock::ticks());
                let (mut direct, mut kept) = ([0_u8; 128], [0_u8; 128]);
                assert!(event_type.extent() <= direct.len());
                // SAFETY: both are as long as the extent.
                unsafe {
                    event_type.copy(&record, direct.as_mut_ptr());
                    event_type.copy(&queued.record(), kept.as_mut_ptr());
                }
                assert_eq!(direct, kept, "{:?} with {payload:?}", event_type.name);
            }
        }
    }
}
