//! A registration handle: what it listens to, which functions it calls, and how it ends (MPI 5.0 §15.3.8,
//! handle allocation).
//!
//! # Rules
//! - An event reaches a registration only through the listener that the registry owns: an [`ImmediateListener`], a
//!   [`FilteredListener`], a [`BufferedListener`] or a [`CountingListener`], one at a time. The registry keeps those
//!   that were replaced while a dispatch may be inside. All of them share a [`ListenerGuard`], which is dropped when
//!   none of them runs or will run. So all that is left to deliver is there when that drop calls
//!   [`Registration::settle`].
//! - No lock of this module is held over a tool's function, nor over a release of the registry, which may wait for one.

use super::buffer_chain::{BufferChain, EventBuffer};
use super::callback_table::{CallbackPointer, CallbackTable};
use super::delivery;
use super::instance::{Instance, InstanceStack, QueuedEvent};
use super::listener::{
    BufferedListener, CountingListener, FilteredListener, ImmediateListener, ListenerForm, ListenerGuard,
    with_listener,
};
use super::safety::{LEVELS, Safety};
use super::source;
use super::types::ToolEventType;
use crate::events::{CommEvents, EventError, EventSet, GlobalSubscription, Handle, Registry, hold_fast_path};
use crate::limits::EVENT_BUFFER;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, epoch};
use core::ffi::{c_int, c_void};
use core::ptr;
use std::sync::{Arc, PoisonError, Weak};

/// MPI_T_event_cb_function.
pub type EventFunction = unsafe extern "C" fn(*mut c_void, usize, c_int, *mut c_void);
/// MPI_T_event_free_cb_function.
pub type FreeFunction = unsafe extern "C" fn(usize, c_int, *mut c_void);
/// MPI_T_event_dropped_cb_function.
pub type DroppedFunction = unsafe extern "C" fn(i64, usize, c_int, c_int, *mut c_void);

/// One MPI_T_event_registration.
#[derive(Debug)]
pub struct Registration {
    /// Its event type.
    pub event_type: &'static ToolEventType,
    /// The registry whose events it receives.
    registry: Arc<Registry>,
    /// Its handle, set before any event can reach it.
    number: AtomicUsize,
    /// Its index among all registrations.
    place: AtomicUsize,
    /// What is called at a safe point, by the level that is required there.
    callbacks: CallbackTable<LEVELS>,
    /// A [`DroppedFunction`], or null: then drops are not counted.
    on_drop: AtomicPtr<c_void>,
    /// Events that found no function for the level, and were not reported yet;
    /// the buffer counts those that found no room.
    without_function: AtomicU64,
    /// Where events wait, if there is a buffer.
    buffers: BufferChain<QueuedEvent>,
    /// The listener is gone: no event will come any more.
    silent: AtomicBool,
    /// Whether it has been freed; set under the lock of `control`.
    closing: AtomicBool,
    control: Mutex<RegistrationState>,
}

#[derive(Debug)]
struct RegistrationState {
    calls: [Option<CallbackPointer>; LEVELS],
    /// Entries of the buffer in force, and that buffer; 0 and none: functions are called at once.
    entries: usize,
    into: Option<Arc<EventBuffer<QueuedEvent>>>,
    hold: RegistryHold,
    /// There as long as `hold` keeps it.
    listener: Weak<ListenerGuard>,
    free: Option<FreeCallback>,
}

/// What keeps the listener in the registry.
#[derive(Debug)]
enum RegistryHold {
    /// A type of no object, to which no function has been registered yet.
    NotYet,
    Everywhere(GlobalSubscription),
    /// Of one communicator; active once a function has been registered.
    Bound(Handle),
    /// Released.
    Nothing,
}

#[derive(Debug)]
struct FreeCallback {
    function: FreeFunction,
    data: *mut c_void,
}

// SAFETY: functions and data are words that only the tool's callbacks interpret; the safety level that the tool gave
// with each (MPI 5.0 §15.3.8) says from which threads it may be called.
unsafe impl Send for RegistrationState {}

/// Why there is no registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationError {
    /// No memory for a buffer of that size.
    Memory,
    /// The registry has no handle left, or holds no events.
    Handles,
    /// The communicator is freed.
    Object,
    /// The registration is freed.
    Closing,
}

impl Registration {
    /// A registration that receives no events of `registry` yet. `entries`: of the buffer; 0 for none.
    ///
    /// # Errors
    /// `Memory` if there is none for the buffer.
    pub fn new(
        event_type: &'static ToolEventType,
        entries: usize,
        registry: Arc<Registry>,
    ) -> Result<Arc<Registration>, RegistrationError> {
        let buffers = BufferChain::new();
        let entries = entries.min(EVENT_BUFFER);
        let into =
            if entries > 0 { Some(buffers.add(entries).ok_or(RegistrationError::Memory)?) } else { None };
        Ok(Arc::new(Registration {
            event_type,
            registry,
            number: AtomicUsize::new(0),
            place: AtomicUsize::new(0),
            callbacks: CallbackTable::new(),
            on_drop: AtomicPtr::new(ptr::null_mut()),
            without_function: AtomicU64::new(0),
            buffers,
            silent: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            control: Mutex::new(RegistrationState {
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
        // Relaxed: events come through the registry, which publishes it (edge 4).
        self.number.store(number, Ordering::Relaxed);
        let Some(comm) = comm else { return Ok(()) };
        let listener = Arc::new(ListenerGuard(self.clone()));
        let mut control = self.control();
        let form = self.form(&control, &listener);
        let made =
            with_listener!(form, it => comm.registry().register_listener(comm, self.event_type.event, it));
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
        let first = self.buffers.is_empty();
        control.into = if entries > 0 {
            Some(self.buffers.add(entries).ok_or(RegistrationError::Memory)?)
        } else {
            None
        };
        control.entries = entries;
        if first {
            // Until it is forgotten.
            hold_fast_path(true);
        }
        self.apply(&control);
        Ok(())
    }

    /// Whether something may wait, or might have: it has a buffer, or had one.
    pub(super) fn may_keep(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// Whether it has been freed, and only waits for the end.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        // Relaxed: a thread that must not miss the freeing reads this under the lock.
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
    /// `Handles` if the registry has none left, `Closing` if the registration has been freed.
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
        self.apply(&control);
        if function.is_some() { self.listen(&mut control) } else { Ok(()) }
    }

    /// Takes the functions of every level away; events are dropped from then on.
    pub(super) fn mute(&self) {
        let mut control = self.control();
        control.calls = [None; LEVELS];
        self.apply(&control);
    }

    /// The level that is required where events happen has changed.
    pub(super) fn require(&self) {
        self.apply(&self.control());
    }

    /// Puts in force what is registered: the function for the lowest level that holds where another is required.
    fn apply(&self, control: &RegistrationState) {
        self.callbacks.set(core::array::from_fn(|required| {
            control.function_for(required).unwrap_or(CallbackPointer::NONE)
        }));
        let handle = match &control.hold {
            RegistryHold::Everywhere(subscription) => subscription.handle(),
            RegistryHold::Bound(handle) => Some(*handle),
            RegistryHold::NotYet | RegistryHold::Nothing => None,
        };
        if let (Some(handle), Some(listener)) = (handle, control.listener.upgrade()) {
            let form = self.form(control, &listener);
            // It cannot fail: `hold` owns the handle, and is locked.
            let _ = with_listener!(form, it => self.registry.set_listener(handle, it));
        }
    }

    /// The listener that the registry is to have.
    fn form(&self, control: &RegistrationState, listener: &Arc<ListenerGuard>) -> ListenerForm {
        if let Some(into) = &control.into {
            return ListenerForm::Buffered(BufferedListener { into: into.clone(), of: listener.clone() });
        }
        let level = delivery::level_at_once();
        let function =
            control.function_for(level.index()).and_then(|call| Some((call.function()?, call.data)));
        let Some((function, data)) = function else {
            return ListenerForm::Counting(CountingListener(listener.clone()));
        };
        let (number, level, event_type) = (self.number(), level.to_c(), self.event_type);
        let at_once = ImmediateListener { function, data, number, level, event_type, _of: listener.clone() };
        if event_type.has_filter() {
            ListenerForm::Filtered(FilteredListener(at_once))
        } else {
            ListenerForm::Immediate(at_once)
        }
    }

    fn listen(self: &Arc<Self>, control: &mut RegistrationState) -> Result<(), RegistrationError> {
        match control.hold {
            RegistryHold::NotYet => {
                let listener = Arc::new(ListenerGuard(self.clone()));
                let form = self.form(control, &listener);
                let events = EventSet::from(self.event_type.event);
                let subscription = with_listener!(form, it => self.registry.listen_globally(events, it));
                if subscription.handle().is_none() {
                    return Err(RegistrationError::Handles);
                }
                control.hold = RegistryHold::Everywhere(subscription);
                control.listener = Arc::downgrade(&listener);
            }
            // A communicator that was freed meanwhile emits no events any more: that is no error.
            RegistryHold::Bound(handle) => drop(self.registry.activate(handle)),
            RegistryHold::Everywhere(_) | RegistryHold::Nothing => {}
        }
        Ok(())
    }

    /// Counts an event that found no function for the level.
    #[cold]
    pub(super) fn miss(&self) {
        // Relaxed: without a handler nothing is counted, and the count publishes nothing.
        if !self.on_drop.load(Ordering::Relaxed).is_null() {
            self.without_function.fetch_add(1, Ordering::Relaxed);
            delivery::something_waits();
        }
    }

    /// Makes `function` the handler of drops. Reports to the handler before what was not reported yet.
    pub fn set_dropped_handler(&self, function: Option<DroppedFunction>, level: Safety) {
        self.report_drops(level);
        // Release: pairs with Acquire in `report_drops`: what the tool wrote before, its function finds.
        let before =
            self.on_drop.swap(function.map_or(ptr::null_mut(), |f| f as *mut c_void), Ordering::Release);
        if before.is_null() {
            // What was dropped while there was no handler is not reported.
            self.take_drops();
        }
    }

    fn take_drops(&self) -> u64 {
        // Relaxed: each drop is in one answer.
        self.buffers.dropped() + self.without_function.swap(0, Ordering::Relaxed)
    }

    /// Reports how many events were dropped since the last report, if there is a handler, and a function for the level.
    pub(super) fn report_drops(&self, level: Safety) {
        // Acquire: pairs with Release in `set_dropped_handler`.
        let handler = self.on_drop.load(Ordering::Acquire);
        let call = self.callbacks.get(level.index());
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

    /// Begins a pass: what waits now is delivered in it, after a report of what was dropped before.
    pub(super) fn begin_pass(&self) {
        self.buffers.begin_pass();
    }

    /// Delivers what waited when the pass began, and then ends the registration if it is closing and `may_end`.
    pub(super) fn deliver(self: &Arc<Self>, level: Safety, may_end: bool) {
        // Held for the whole delivery, so that the table's own guards, one for each event, need no fence.
        let _guard = epoch::pin();
        let empty = self.buffers.take(|queued| {
            let call = self.callbacks.get(level.index());
            let Some(function) = call.function() else {
                return self.miss();
            };
            let record = queued.record();
            InstanceStack::of_this_thread().during(
                &Instance::late(self.event_type, &record, &queued),
                |instance| {
                    // SAFETY: the tool registered the function to be called with this data at this level; the instance
                    // lives until it returns.
                    unsafe { function(instance, self.number(), level.to_c(), call.data) };
                },
            );
        });
        // Relaxed: set before this pass was requested, which the turn orders.
        if empty && may_end && self.may_keep() && self.silent.load(Ordering::Relaxed) {
            self.report_drops(level);
            self.finish(level);
        }
    }

    /// Whether there is a function for what waits, where this level is required.
    pub(super) fn has_function(&self, level: Safety) -> bool {
        !self.callbacks.get(level.index()).function.is_null()
    }

    /// Closes it: no event comes any more; what waits is delivered; then `free` is called and the handle is gone. False
    /// if it is closing already.
    pub fn close(&self, free: Option<FreeFunction>, data: *mut c_void) -> bool {
        let mut control = self.control();
        // Relaxed: the lock orders the threads that free it.
        if self.closing.swap(true, Ordering::Relaxed) {
            return false;
        }
        control.free = free.map(|function| FreeCallback { function, data });
        let hold = core::mem::replace(&mut control.hold, RegistryHold::Nothing);
        drop(control);
        match hold {
            RegistryHold::Everywhere(subscription) => drop(subscription),
            // `Object`: the communicator is freed, and the handle released all the same.
            RegistryHold::Bound(handle) => drop(self.registry.release(handle)),
            RegistryHold::NotYet | RegistryHold::Nothing => self.settle(),
        }
        true
    }

    /// No event will come any more: ends at once if nothing can be waiting, else leaves that to a pass.
    pub(super) fn settle(&self) {
        // Relaxed: read in a pass, which `something_ends` orders, or by this thread.
        self.silent.store(true, Ordering::Relaxed);
        if self.may_keep() {
            delivery::something_ends();
        } else {
            let level = delivery::level_here();
            self.report_drops(level);
            self.finish(level);
        }
    }

    /// Calls the tool's free function, and gives the handle up after it.
    fn finish(&self, level: Safety) {
        let free = self.control().free.take();
        if let Some(FreeCallback { function, data }) = free {
            // SAFETY: the tool gave it to be called once, when nothing of the handle is pending.
            unsafe { function(self.number(), level.to_c(), data) };
        }
        delivery::forget(self.number());
    }

    #[inline(always)]
    fn number(&self) -> usize {
        // Relaxed: `bind` set it before any event, which the registry orders (edge 4).
        self.number.load(Ordering::Relaxed)
    }

    /// Its index among all registrations; read and written under their lock.
    pub(super) fn place(&self) -> usize {
        // Relaxed: their lock orders it.
        self.place.load(Ordering::Relaxed)
    }

    /// Sets its index.
    pub(super) fn set_place(&self, place: usize) {
        // Relaxed: their lock orders it.
        self.place.store(place, Ordering::Relaxed);
    }

    /// Whether a pass has drops to report.
    pub(super) fn has_drops(&self) -> bool {
        // Relaxed: hints; whatever a pass must report was counted before the pass's first step (edge 5).
        !self.on_drop.load(Ordering::Relaxed).is_null()
            && (self.without_function.load(Ordering::Relaxed) > 0 || self.buffers.has_dropped())
    }

    /// Whether a pass has something to deliver, or to end.
    pub(super) fn has_part(&self) -> bool {
        // Relaxed: set before this pass was requested, which the turn orders.
        self.buffers.has_part() || self.may_keep() && self.silent.load(Ordering::Relaxed)
    }

    fn control(&self) -> MutexGuard<'_, RegistrationState> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistrationState {
    /// The function for the lowest level that holds where this one is required.
    fn function_for(&self, required: usize) -> Option<CallbackPointer> {
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
