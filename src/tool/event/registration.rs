//! A registration handle: what it listens to, whom it tells, and how it ends (MPI 5.0 §15.3.8, handle allocation).
//!
//! # Rules
//! - An event reaches a registration through what the registry owns of it alone: an [`ImmediateListener`], a [`BufferedListener`] or a [`CountingListener`], of which
//!   it holds one at a time, and keeps those that were replaced while somebody may be inside. All of them share a [`ListenerGuard`], which is
//!   dropped when none of them runs or will run. So whatever is left to tell is there when [`Registration::settle`] is called from that drop.
//! - No lock of this module is held over a function of a tool, nor over a release of the registry, which may wait for one.

use super::buffer_chain::{BufferChain, EventBuffer};
use super::callback_table::{CallbackPointer, CallbackTable};
use super::delivery;
use super::instance::{self, Instance, InstanceStack, QueuedEvent};
use super::safety::{LEVELS, Safety};
use super::source;
use super::types::ToolEventType;
use crate::events::{
    CommEvents, EventError, EventRecord, EventSet, GlobalSubscription, Handle, HazardRecord, Listener,
    Registry, hold_fast_path,
};
use crate::limits::EVENT_BUFFER;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, epoch};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

/// MPI_T_event_cb_function.
pub type EventFunction = unsafe extern "C" fn(*mut c_void, usize, c_int, *mut c_void);
/// MPI_T_event_free_cb_function.
pub type FreeFunction = unsafe extern "C" fn(usize, c_int, *mut c_void);
/// MPI_T_event_dropped_cb_function.
pub type DroppedFunction = unsafe extern "C" fn(i64, usize, c_int, c_int, *mut c_void);

/// One MPI_T_event_registration.
#[derive(Debug)]
pub struct Registration {
    /// Of which type.
    pub event_type: &'static ToolEventType,
    /// Whose events.
    registry: Arc<Registry>,
    /// Its handle, which is there before anything can be heard.
    number: AtomicUsize,
    /// Its place among all registrations.
    place: AtomicUsize,
    /// What is called from a safe place, by the level that is required.
    later: CallbackTable<LEVELS>,
    /// A [`DroppedFunction`], or null: then drops are not counted.
    on_drop: AtomicPtr<c_void>,
    /// Events that found no function for the level, and are not told yet; those that found no room the buffer counts.
    unheard: AtomicU64,
    /// Where events wait that have a buffer.
    waiting: BufferChain<QueuedEvent>,
    /// The listener is gone: nothing will be heard any more.
    silent: AtomicBool,
    /// Freed, and on its way out; set under the lock of `control`.
    closing: AtomicBool,
    control: Mutex<Control>,
}

#[derive(Debug)]
struct Control {
    calls: [Option<CallbackPointer>; LEVELS],
    /// Entries of the buffer in force, and that buffer; 0 and none: what is heard is told at once.
    entries: usize,
    into: Option<Arc<EventBuffer<QueuedEvent>>>,
    hold: RegistryHold,
    /// While `hold` keeps it, there.
    listener: Weak<ListenerGuard>,
    free: Option<Free>,
}

/// What keeps the listener in the registry.
#[derive(Debug)]
enum RegistryHold {
    /// A type of no object, to which no function has been registered yet.
    NotYet,
    GlobalSubscriber(GlobalSubscription),
    /// Of one communicator; active once a function has been registered.
    Bound(Handle),
    /// Released.
    Nothing,
}

#[derive(Debug)]
struct Free {
    function: FreeFunction,
    data: *mut c_void,
}

// SAFETY: functions and data are words that are handed back to the tool, which promises that they may be used from where the
// safety level says.
unsafe impl Send for Control {}

/// What all that the registry owns of a registration has in common.
#[derive(Debug)]
struct ListenerGuard(Arc<Registration>);

/// A function that is called where events happen: all that such a call takes, side by side.
struct ImmediateListener {
    function: EventFunction,
    data: *mut c_void,
    number: usize,
    level: c_int,
    event_type: &'static ToolEventType,
    _of: Arc<ListenerGuard>,
}

// SAFETY: as for `Control`; all else is Send and Sync.
unsafe impl Send for ImmediateListener {}
// SAFETY: as above.
unsafe impl Sync for ImmediateListener {}

impl Listener for ImmediateListener {
    #[inline(always)]
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord) {
        let instance = instance::at_once(hazard, record);
        // SAFETY: the tool registered it to be called with this data at this level; the instance lives until it returns.
        unsafe { (self.function)(instance, self.number, self.level, self.data) };
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(self.event_type).cast())
    }
}

/// An [`ImmediateListener`] of a type that accepts some of its events alone.
struct FilteredListener(ImmediateListener);

impl Listener for FilteredListener {
    #[inline(always)]
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord) {
        if self.0.event_type.accepts(record) {
            self.0.deliver(record, hazard);
        }
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        self.0.subject_type()
    }
}

/// What has a buffer.
struct BufferedListener {
    into: Arc<EventBuffer<QueuedEvent>>,
    of: Arc<ListenerGuard>,
}

impl Listener for BufferedListener {
    /// Lets an event wait. Apart from what is told at once, which needs less of the stack.
    #[inline(never)]
    fn deliver(&self, record: &EventRecord<'_>, _: &HazardRecord) {
        let event_type = self.of.0.event_type;
        if event_type.has_filter() && !event_type.accepts(record) {
            return;
        }
        if !self.into.push(QueuedEvent::of(record)) {
            delivery::note_drop();
        }
        delivery::something_waits();
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(self.of.0.event_type).cast())
    }
}

/// What has no buffer, and no function that may be called at once.
struct CountingListener(Arc<ListenerGuard>);

impl Listener for CountingListener {
    fn deliver(&self, record: &EventRecord<'_>, _: &HazardRecord) {
        let of = &*self.0.0;
        if !of.event_type.has_filter() || of.event_type.accepts(record) {
            of.miss();
        }
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(self.0.0.event_type).cast())
    }
}

/// What the registry is to own of a registration, as it is at present.
enum ListenerForm {
    ImmediateListener(ImmediateListener),
    FilteredListener(FilteredListener),
    BufferedListener(BufferedListener),
    CountingListener(CountingListener),
}

/// Runs `$with` on what is in `$way`, of whichever type.
macro_rules! on {
    ($way:expr, $listener:ident => $with:expr) => {
        match $way {
            ListenerForm::ImmediateListener($listener) => $with,
            ListenerForm::FilteredListener($listener) => $with,
            ListenerForm::BufferedListener($listener) => $with,
            ListenerForm::CountingListener($listener) => $with,
        }
    };
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        // Relaxed: set by `close`, which is why we are here; else the registry had no handle left, and nothing is over.
        if self.0.closing.load(Ordering::Relaxed) {
            self.0.settle();
        }
    }
}

/// Why there is no registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationError {
    /// No memory for a buffer of that size.
    Memory,
    /// The registry has no handle left, or holds no events.
    Handles,
    /// The communicator is freed.
    Object,
    /// The registration is.
    Closing,
}

impl Registration {
    /// A registration that accepts nothing yet of the events of `registry`. `entries`: of the buffer; 0 for none.
    ///
    /// # Errors
    /// `Memory` if there is none for the buffer.
    pub fn new(
        event_type: &'static ToolEventType,
        entries: usize,
        registry: Arc<Registry>,
    ) -> Result<Arc<Registration>, RegistrationError> {
        let waiting = BufferChain::new();
        let entries = entries.min(EVENT_BUFFER);
        let into =
            if entries > 0 { Some(waiting.add(entries).ok_or(RegistrationError::Memory)?) } else { None };
        Ok(Arc::new(Registration {
            event_type,
            registry,
            number: AtomicUsize::new(0),
            place: AtomicUsize::new(0),
            later: CallbackTable::new(),
            on_drop: AtomicPtr::new(ptr::null_mut()),
            unheard: AtomicU64::new(0),
            waiting,
            silent: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            control: Mutex::new(Control {
                calls: [None; LEVELS],
                entries,
                into,
                hold: RegistryHold::NotYet,
                listener: Weak::new(),
                free: None,
            }),
        }))
    }

    /// Gives it its handle, and binds it to `comm` if it is of a type that is bound. To be called once.
    ///
    /// # Errors
    /// `Object`, `Handles`.
    pub fn bind(
        self: &Arc<Self>,
        number: usize,
        comm: Option<&Arc<CommEvents>>,
    ) -> Result<(), RegistrationError> {
        // Relaxed: what can be heard comes through the registry, which publishes it (edge 4).
        self.number.store(number, Ordering::Relaxed);
        let Some(comm) = comm else { return Ok(()) };
        let listener = Arc::new(ListenerGuard(self.clone()));
        let mut control = self.control();
        let way = self.way(&control, &listener);
        let made = on!(way, it => comm.registry().register_listener(comm, self.event_type.event, it));
        control.hold = RegistryHold::Bound(made.map_err(|error| match error {
            EventError::Comm => RegistrationError::Object,
            _ => RegistrationError::Handles,
        })?);
        control.listener = Arc::downgrade(&listener);
        Ok(())
    }

    /// Entries of its buffer; 0: it has none.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.control().entries
    }

    /// Gives it a buffer of another size, or none (0). What waits stays, and takes no room in the new one.
    ///
    /// # Errors
    /// `Memory` if there is none for the buffer: then the old one is in force.
    pub fn resize(&self, entries: usize) -> Result<(), RegistrationError> {
        let mut control = self.control();
        let entries = entries.min(EVENT_BUFFER);
        if self.is_closing() || entries == control.entries {
            return Ok(());
        }
        let first = self.waiting.is_empty();
        control.into = if entries > 0 {
            Some(self.waiting.add(entries).ok_or(RegistrationError::Memory)?)
        } else {
            None
        };
        control.entries = entries;
        if first {
            // Until it is forgotten.
            hold_fast_path(true);
        }
        self.choose(&control);
        Ok(())
    }

    /// Whether something may wait, or might have: it has a buffer, or had one.
    pub(super) fn may_keep(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether it has been freed, and only waits for the end.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        // Relaxed: who must not miss it asks under the lock.
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether a function is registered for `level`.
    #[must_use]
    pub fn has(&self, level: Safety) -> bool {
        self.control().calls[level.index()].is_some()
    }

    /// Registers the function for `level`, or takes it away. With the first one it begins to listen.
    ///
    /// # Errors
    /// `Handles` if the registry has none left, `Closing` if the registration is on its way out.
    pub fn register(
        self: &Arc<Self>,
        level: Safety,
        function: Option<EventFunction>,
        data: *mut c_void,
    ) -> Result<(), RegistrationError> {
        let mut control = self.control();
        if self.is_closing() {
            return Err(RegistrationError::Closing);
        }
        control.calls[level.index()] =
            function.map(|function| CallbackPointer { function: function as *mut c_void, data });
        self.choose(&control);
        if function.is_some() { self.listen(&mut control) } else { Ok(()) }
    }

    /// Takes the functions of every level away; what is heard is dropped.
    pub(super) fn mute(&self) {
        let mut control = self.control();
        control.calls = [None; LEVELS];
        self.choose(&control);
    }

    /// The level that is required where events happen has changed.
    pub(super) fn require(&self) {
        self.choose(&self.control());
    }

    /// Puts in force what is registered: the function for the lowest level that holds where another is required.
    fn choose(&self, control: &Control) {
        self.later
            .set(core::array::from_fn(|required| control.least(required).unwrap_or(CallbackPointer::NONE)));
        let handle = match &control.hold {
            RegistryHold::GlobalSubscriber(tap) => tap.handle(),
            RegistryHold::Bound(handle) => Some(*handle),
            RegistryHold::NotYet | RegistryHold::Nothing => None,
        };
        if let (Some(handle), Some(listener)) = (handle, control.listener.upgrade()) {
            let way = self.way(control, &listener);
            // It cannot fail: the handle is ours until `hold` is taken.
            let _ = on!(way, it => self.registry.set_listener(handle, it));
        }
    }

    /// What the registry is to call.
    fn way(&self, control: &Control, listener: &Arc<ListenerGuard>) -> ListenerForm {
        if let Some(into) = &control.into {
            return ListenerForm::BufferedListener(BufferedListener {
                into: into.clone(),
                of: listener.clone(),
            });
        }
        let level = delivery::at_once();
        let function = control.least(level.index()).and_then(|call| Some((call.function()?, call.data)));
        let Some((function, data)) = function else {
            return ListenerForm::CountingListener(CountingListener(listener.clone()));
        };
        let (number, level, event_type) = (self.number(), level.to_c(), self.event_type);
        let at_once = ImmediateListener { function, data, number, level, event_type, _of: listener.clone() };
        if event_type.has_filter() {
            ListenerForm::FilteredListener(FilteredListener(at_once))
        } else {
            ListenerForm::ImmediateListener(at_once)
        }
    }

    fn listen(self: &Arc<Self>, control: &mut Control) -> Result<(), RegistrationError> {
        match control.hold {
            RegistryHold::NotYet => {
                let listener = Arc::new(ListenerGuard(self.clone()));
                let way = self.way(control, &listener);
                let events = EventSet::from(self.event_type.event);
                let tap = on!(way, it => self.registry.listen_globally(events, it));
                if tap.handle().is_none() {
                    return Err(RegistrationError::Handles);
                }
                control.hold = RegistryHold::GlobalSubscriber(tap);
                control.listener = Arc::downgrade(&listener);
            }
            // A communicator that is freed meanwhile has no events any more: nothing is wrong.
            RegistryHold::Bound(handle) => drop(self.registry.activate(handle)),
            RegistryHold::GlobalSubscriber(_) | RegistryHold::Nothing => {}
        }
        Ok(())
    }

    /// Counts an event that finds no function for the level.
    #[cold]
    fn miss(&self) {
        // Relaxed: without a handler nothing is recorded, and the count publishes nothing.
        if !self.on_drop.load(Ordering::Relaxed).is_null() {
            self.unheard.fetch_add(1, Ordering::Relaxed);
            delivery::something_waits();
        }
    }

    /// Makes `function` the one that is told of drops. The one before is told what it has not been told yet.
    pub fn set_dropped_handler(&self, function: Option<DroppedFunction>, level: Safety) {
        self.tell_drops(level);
        // Relaxed: a function's address publishes nothing.
        let before =
            self.on_drop.swap(function.map_or(ptr::null_mut(), |f| f as *mut c_void), Ordering::Relaxed);
        if before.is_null() {
            // What was dropped while nobody asked is not recorded.
            self.take_drops();
        }
    }

    fn take_drops(&self) -> u64 {
        // Relaxed: each drop is in one answer.
        self.waiting.dropped() + self.unheard.swap(0, Ordering::Relaxed)
    }

    /// Tells the handler, if there is one and a function for the level, how many were dropped since it was last told.
    pub(super) fn tell_drops(&self, level: Safety) {
        // Relaxed: as in `set_dropped_handler`.
        let handler = self.on_drop.load(Ordering::Relaxed);
        let call = self.later.get(level.index());
        if handler.is_null() || call.function.is_null() {
            return;
        }
        let count = self.take_drops();
        if count == 0 {
            return;
        }
        // SAFETY: not null, so it came from a `DroppedFunction`.
        let handler = unsafe { core::mem::transmute::<*mut c_void, DroppedFunction>(handler) };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // SAFETY: the tool set it to be called with the data of the function for this level (MPI 5.0 §15.3.8).
        unsafe { handler(count, self.number(), source::BUFFERS as c_int, level.to_c(), call.data) };
    }

    /// Begins a pass: what waits now is told in it, and what was dropped before that is told first.
    pub(super) fn begin_pass(&self) {
        self.waiting.begin_pass();
    }

    /// Tells what waited when the pass began, and ends what is over, where that may be.
    pub(super) fn deliver(self: &Arc<Self>, level: Safety, may_end: bool) {
        // Held for the whole delivery, so that the table's own guards, one for each event, need no fence.
        let _guard = epoch::pin();
        let empty = self.waiting.take(|queued| {
            let call = self.later.get(level.index());
            let Some(function) = call.function() else {
                return self.miss();
            };
            let record = queued.record();
            InstanceStack::of_this_thread().during(
                &Instance::late(self.event_type, &record, &queued),
                |instance| {
                    // SAFETY: as in `ImmediateListener::tell`.
                    unsafe { function(instance, self.number(), level.to_c(), call.data) };
                },
            );
        });
        // Relaxed: set before the wish for this pass, which the turn orders.
        if empty && may_end && self.may_keep() && self.silent.load(Ordering::Relaxed) {
            self.tell_drops(level);
            self.finish(level);
        }
    }

    /// Whether there is a function for what waits, where this level is required.
    pub(super) fn can_tell(&self, level: Safety) -> bool {
        !self.later.get(level.index()).function.is_null()
    }

    /// Ends it: no event is heard any more; what waits is told; then `free` is called and the handle is gone. False if
    /// somebody has begun that already.
    pub fn close(&self, free: Option<FreeFunction>, data: *mut c_void) -> bool {
        let mut control = self.control();
        // Relaxed: the lock orders those who close.
        if self.closing.swap(true, Ordering::Relaxed) {
            return false;
        }
        control.free = free.map(|function| Free { function, data });
        let hold = core::mem::replace(&mut control.hold, RegistryHold::Nothing);
        drop(control);
        match hold {
            RegistryHold::GlobalSubscriber(tap) => drop(tap),
            // `Object`: the communicator is freed, and the handle released all the same.
            RegistryHold::Bound(handle) => drop(self.registry.release(handle)),
            RegistryHold::NotYet | RegistryHold::Nothing => self.settle(),
        }
        true
    }

    /// Nothing will be heard any more: ends at once what nothing is left of; leaves the rest to a pass.
    fn settle(&self) {
        // Relaxed: read in a pass, which comes after what `something_ends` says, or by this thread.
        self.silent.store(true, Ordering::Relaxed);
        if self.may_keep() {
            delivery::something_ends();
        } else {
            let level = delivery::here();
            self.tell_drops(level);
            self.finish(level);
        }
    }

    /// Calls the tool's free function, and gives the handle up after it.
    fn finish(&self, level: Safety) {
        let free = self.control().free.take();
        if let Some(Free { function, data }) = free {
            // SAFETY: the tool gave it to be called once, when nothing of the handle is pending.
            unsafe { function(self.number(), level.to_c(), data) };
        }
        delivery::forget(self.number());
    }

    #[inline(always)]
    fn number(&self) -> usize {
        // Relaxed: as in `bind`.
        self.number.load(Ordering::Relaxed)
    }

    /// Its place among all registrations; read and written under their lock.
    pub(super) fn place(&self) -> usize {
        // Relaxed: their lock orders it.
        self.place.load(Ordering::Relaxed)
    }

    /// Sets its place.
    pub(super) fn set_place(&self, place: usize) {
        // Relaxed: as in `place`.
        self.place.store(place, Ordering::Relaxed);
    }

    /// Whether a pass has drops to tell.
    pub(super) fn has_drops(&self) -> bool {
        // Relaxed: hints; whatever a pass must tell was counted before the pass's first step (edge 5).
        !self.on_drop.load(Ordering::Relaxed).is_null()
            && (self.unheard.load(Ordering::Relaxed) > 0 || self.waiting.has_dropped())
    }

    /// Whether a pass has something to tell, or to end.
    pub(super) fn has_part(&self) -> bool {
        // Relaxed: as in `deliver`.
        self.waiting.has_part() || self.may_keep() && self.silent.load(Ordering::Relaxed)
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// The function for the lowest level that holds where this one is required.
    fn least(&self, required: usize) -> Option<CallbackPointer> {
        self.calls[required..].iter().flatten().next().copied()
    }
}

impl CallbackPointer {
    /// The function, if there is one.
    fn function(self) -> Option<EventFunction> {
        // SAFETY: not null, so it came from an `EventFunction`.
        let function = || unsafe { core::mem::transmute::<*mut c_void, EventFunction>(self.function) };
        (!self.function.is_null()).then(function)
    }
}
