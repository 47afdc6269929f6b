//! The control side: register, activate, deactivate, release, propagate.
//! Rare, and under one lock that no callback runs in.

use super::callback::{CFunction, CallbackRef, Listener, OwnedCallback};
use super::callback_state::hold_fast_path;
use super::comm_events::CommEvents;
use super::control::{ControlState, HandleEntry, NO_EVENT, event_of};
use super::event::{Binding, EventInfo};
use super::hazard::domain;
use super::listeners::ListenerTable;
use super::lock::PeruseLock;
use super::slots::{HandleSlot, SlotTable};
use super::spec::Callback;
use super::state::HandleStatus;
use super::{CATALOG, Event, EventSet, Gate, Handle};
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, WaitWord};
use std::sync::{Arc, PoisonError};

/// Why a call on the registry failed; the C bindings map each to one PERUSE error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// PERUSE_ERR_EVENT_HANDLE: null, released, never made, or active where it must not be.
    #[error("invalid event handle, or one that is active where it must be inactive")]
    Handle,
    /// PERUSE_ERR_MPI_OBJECT: the communicator is freed.
    #[error("the communicator of this event handle is freed")]
    Object,
    /// PERUSE_ERR_COMM: the communicator to register with is freed.
    #[error("invalid communicator")]
    Comm,
    /// PERUSE_ERR_EVENT: communicators have no such event, or events are compiled out.
    #[error(
        "no event of a communicator, or a library that was built without events (cargo feature `peruse`)"
    )]
    Event,
    /// PERUSE_ERR_MALLOC: no handle is left.
    #[error("no event handle is left")]
    Full,
}

/// Ends the job for the reason that it receives; it is not expected to return.
pub type Fatal = Box<dyn Fn(String) + Send + Sync>;

/// All event handles and global subscribers of one engine, and its PERUSE lock.
pub struct Registry {
    /// Tested by every site of an event that is bound to nothing.
    pub gate: Gate,
    /// Those who listen to an event type that is bound to nothing; of the others, the communicators have the lists.
    pub(super) listeners: ListenerTable,
    /// The event types that there are.
    table: &'static [EventInfo],
    pub(super) slots: SlotTable,
    control: Mutex<ControlState>,
    /// Counts the handles that were retired: what a release waits for.
    pub(super) retired: WaitWord,
    initialised: AtomicBool,
    /// Before the first handle is made: do without membarrier.
    #[cfg(test)]
    pub(super) alone: AtomicBool,
    fatal: Fatal,
    lock: PeruseLock,
    next_id: AtomicU64,
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Nobody can be inside any more.
        let control = self.control.get_mut().unwrap_or_else(PoisonError::into_inner);
        (0..core::mem::take(&mut control.shut_gates)).for_each(|_| hold_fast_path(false));
        if core::mem::take(&mut control.wants_settling) {
            domain().want(false);
        }
    }
}

/// Ids from here on are the registry's; the engine's are below, requests' further below.
const FIRST_ID: u64 = 1 << 56;

impl core::fmt::Debug for Registry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    /// An empty registry. `fatal` ends the job when a callback fails.
    #[must_use]
    pub fn new(fatal: Fatal) -> Arc<Registry> {
        Registry::with_table(&CATALOG, fatal)
    }

    /// As [`new`](Self::new), with the event types of another table.
    pub(super) fn with_table(table: &'static [EventInfo], fatal: Fatal) -> Arc<Registry> {
        Arc::new(Registry {
            gate: Gate::new(),
            listeners: ListenerTable::new(),
            table,
            slots: SlotTable::new(),
            control: Mutex::new(ControlState::default()),
            retired: WaitWord::new(0),
            initialised: AtomicBool::new(false),
            #[cfg(test)]
            alone: AtomicBool::new(false),
            fatal,
            lock: PeruseLock::new(),
            next_id: AtomicU64::new(FIRST_ID),
        })
    }

    /// PERUSE_Init's mark: whether it was called, and the call itself.
    #[must_use]
    pub fn is_initialised(&self) -> bool {
        // Relaxed: a mark that publishes nothing.
        self.initialised.load(Ordering::Relaxed)
    }

    /// Sets PERUSE_Init's mark; again is no error (PERUSE 2.0 §5.2.1).
    pub fn initialise(&self) {
        // Relaxed: as in `is_initialised`.
        self.initialised.store(true, Ordering::Relaxed);
    }

    /// The lock behind PERUSE_Lock and PERUSE_Unlock.
    #[must_use]
    pub fn lock(&self) -> &PeruseLock {
        &self.lock
    }

    /// An id for events that no request or message has, and none before has had.
    #[must_use]
    pub fn fresh_id(&self) -> isize {
        // Relaxed: a counter.
        self.next_id.fetch_add(1, Ordering::Relaxed) as isize
    }

    /// Whether both sides fence for themselves here, as where the kernel has no membarrier.
    #[inline(always)]
    pub(super) fn fences_alone(&self) -> bool {
        #[cfg(test)]
        return self.alone.load(Ordering::Relaxed);
        #[cfg(not(test))]
        false
    }

    pub(super) fn fatal(&self, text: String) {
        (self.fatal)(text);
    }

    /// The events of a new communicator whose handle is `comm`.
    #[must_use]
    pub fn attach(self: &Arc<Self>, comm: usize) -> Arc<CommEvents> {
        self.attach_object(Binding::Communicator, comm)
    }

    /// The events of a new window whose handle is `win`; 0 for one that is not known yet ([`CommEvents::set_comm`]).
    #[must_use]
    pub fn attach_window(self: &Arc<Self>, win: usize) -> Arc<CommEvents> {
        self.attach_object(Binding::Window, win)
    }

    /// The events of a file whose handle is not known yet ([`CommEvents::set_comm`]).
    #[must_use]
    pub fn attach_file(self: &Arc<Self>) -> Arc<CommEvents> {
        self.attach_object(Binding::File, 0)
    }

    fn attach_object(self: &Arc<Self>, binding: Binding, handle: usize) -> Arc<CommEvents> {
        let events = Arc::new(CommEvents::new(self.clone(), binding, handle));
        let mut control = self.control();
        control.note(&events);
        for (index, global_events) in control.global_subscribers() {
            let Some(slot) = self.slots.get(index) else { continue };
            self.bound(&events, global_events).for_each(|event| events.begin(event, slot));
        }
        events
    }

    /// The communicator is freed: its handles are dead wherever they are attached, and those of others leave it. Global
    /// subscribers hear the rest of what is pending on it.
    ///
    /// A callback that has begun on another thread may still be running when this returns.
    pub fn detach(&self, comm: &CommEvents) {
        let mut control = self.control();
        comm.set_freed();
        let mut shut = 0;
        for (index, entry) in control.entries.iter_mut().enumerate() {
            if !entry.is_attached_to(comm) {
                continue;
            }
            let Some((slot, handle, event)) = self.occupant(index) else { continue };
            let active = slot.state.status(handle.generation()) == HandleStatus::Active;
            if core::ptr::eq(entry.home.as_ptr(), comm) {
                if active {
                    shut += entry.attached().map(|there| there.end(event, slot)).sum::<usize>();
                }
                slot.state.kill();
            } else {
                shut += if active { comm.end(event, slot) } else { 0 };
                entry.attached.retain(|weak| !core::ptr::eq(weak.as_ptr(), comm));
            }
        }
        control.shut_gates += shut;
        drop(self.shut(control));
    }

    /// `new` is a duplicate of `old`: handles whose propagation mode is on are attached to it, window status included.
    ///
    /// One handle then listens on both communicators: `spec.comm` says which one an event is of,
    /// [`object`](Self::object) stays the one that the handle was registered with, and activation concerns both.
    pub fn propagate(&self, old: &CommEvents, new: &Arc<CommEvents>) {
        let mut control = self.control();
        for (index, entry) in control.entries.iter_mut().enumerate() {
            if !entry.propagate || !entry.is_attached_to(old) || new.is_freed() {
                continue;
            }
            let Some((slot, handle, event)) = self.occupant(index) else { continue };
            match slot.state.status(handle.generation()) {
                HandleStatus::Active => new.begin(event, slot),
                HandleStatus::Inactive => {}
                HandleStatus::Dead | HandleStatus::Stale => continue,
            }
            entry.attached.push(Arc::downgrade(new));
        }
    }

    /// A new, inactive handle of `event` on `comm` (PERUSE 2.0 §5.2.7).
    ///
    /// # Errors
    /// `Comm` if the communicator is freed, `Event` if communicators have no such event, `Full` if no handle is left.
    pub fn register(
        &self,
        comm: &Arc<CommEvents>,
        event: Event,
        callback: Callback,
    ) -> Result<Handle, EventError> {
        if !callback.suits(comm.binding()) {
            return Err(EventError::Event);
        }
        self.register_with(comm, event, |handle| OwnedCallback::new(self, handle, callback))
    }

    /// As [`register`](Self::register), for a listener of the library's own.
    pub(crate) fn register_listener<L: Listener>(
        &self,
        comm: &Arc<CommEvents>,
        event: Event,
        listener: L,
    ) -> Result<Handle, EventError> {
        self.register_with(comm, event, |handle| OwnedCallback::of_listener(self, handle, listener))
    }

    fn register_with(
        &self,
        comm: &Arc<CommEvents>,
        event: Event,
        make: impl FnOnce(Handle) -> OwnedCallback,
    ) -> Result<Handle, EventError> {
        if !cfg!(feature = "peruse") || self.binding(event) != Some(comm.binding()) {
            return Err(EventError::Event);
        }
        let mut control = self.control();
        if comm.is_freed() {
            return Err(EventError::Comm);
        }
        let home = Arc::downgrade(comm);
        let entry = HandleEntry { home: home.clone(), attached: vec![home], ..HandleEntry::default() };
        let (handle, slot) = self.occupy(&mut control, entry, event.code().into(), make)?;
        slot.state.open();
        Ok(handle)
    }

    #[cfg(test)]
    pub(super) fn known_communicators(&self) -> usize {
        self.control().comms.len()
    }

    /// Registers and activates what listens to `events` everywhere; see
    /// [`subscribe_globally`](Self::subscribe_globally).
    ///
    /// # Errors
    /// As for [`register`](Self::register), but `Comm`.
    pub(super) fn register_global(
        &self,
        events: EventSet,
        make: impl FnOnce(Handle) -> OwnedCallback,
    ) -> Result<Handle, EventError> {
        if !cfg!(feature = "peruse") {
            return Err(EventError::Event);
        }
        let mut control = self.control();
        let entry = HandleEntry { global_events: events, ..HandleEntry::default() };
        let (handle, slot) = self.occupy(&mut control, entry, NO_EVENT, make)?;
        slot.state.open();
        slot.state.activate();
        self.begin_everywhere(&control, events, slot);
        Ok(handle)
    }

    /// Takes a free slot for a new handle, which stays released.
    fn occupy(
        &self,
        control: &mut ControlState,
        entry: HandleEntry,
        event: u32,
        make: impl FnOnce(Handle) -> OwnedCallback,
    ) -> Result<(Handle, &HandleSlot), EventError> {
        if !self.fences_alone() {
            domain().prepare();
        }
        let index = control.free.pop().unwrap_or(control.entries.len());
        let slot = self.slots.grow(index).ok_or(EventError::Full)?;
        if index == control.entries.len() {
            control.entries.push(HandleEntry::default());
        }
        control.entries[index] = entry;
        // Release: pairs with Acquire in `event_of`, so that a thread that reads this through a stale handle sees the
        // generation too.
        slot.event.store(event, Ordering::Release);
        let handle = Handle::new(index, slot.state.generation());
        // Relaxed: published by the Release with which the slot enters a listener list (edge 4).
        slot.callback.store(make(handle).into_raw(), Ordering::Relaxed);
        Ok((handle, slot))
    }

    /// A global subscriber begins to listen to `events`.
    fn begin_everywhere(&self, control: &ControlState, events: EventSet, slot: &HandleSlot) {
        events.iter().filter(|event| !self.is_bound(*event)).for_each(|event| {
            self.listeners.make(event).insert(slot);
            self.gate.open_for(event);
        });
        for comm in control.comms() {
            self.bound(&comm, events).for_each(|event| comm.begin(event, slot));
        }
    }

    /// A global subscriber listens no more. Gives the number of gates that shut.
    fn end_everywhere(&self, control: &ControlState, events: EventSet, slot: &HandleSlot) -> usize {
        let own = events.iter().filter(|event| !self.is_bound(*event));
        let shut = own.map(|event| {
            let listeners = self.listeners.make(event);
            listeners.remove(slot);
            if listeners.is_empty() { self.gate.shut_for(event) } else { 0 }
        });
        let there = |comm: Arc<CommEvents>| {
            self.bound(&comm, events).map(|event| comm.end(event, slot)).sum::<usize>()
        };
        shut.sum::<usize>() + control.comms().map(there).sum::<usize>()
    }

    /// A handle or global subscriber that was active listens no more. Gives the number of gates that shut.
    pub(super) fn silence(&self, control: &mut ControlState, handle: Handle, slot: &HandleSlot) -> usize {
        let entry = &mut control.entries[handle.index()];
        match event_of(slot) {
            Some(event) => entry.attached().map(|comm| comm.end(event, slot)).sum(),
            None => {
                let global_events = core::mem::take(&mut entry.global_events);
                self.end_everywhere(control, global_events, slot)
            }
        }
    }

    /// Opens the handle's window (PERUSE 2.0 §5.2.8); an open one stays open.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn activate(&self, handle: Handle) -> Result<(), EventError> {
        let control = self.control();
        let (slot, status) = self.living(handle)?;
        if let (HandleStatus::Inactive, Some(event)) = (status, event_of(slot)) {
            slot.state.activate();
            control.entries[handle.index()].attached().for_each(|comm| comm.begin(event, slot));
        }
        Ok(())
    }

    /// Closes the handle's window (PERUSE 2.0 §5.2.9); a closed one stays closed.
    ///
    /// No callback begins once this has returned. One that had begun on another thread may still be running:
    /// [`release`](Self::release) waits for it, this does not.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn deactivate(&self, handle: Handle) -> Result<(), EventError> {
        let mut control = self.control();
        let (slot, status) = self.living(handle)?;
        if status == HandleStatus::Active {
            slot.state.deactivate();
            let shut = self.silence(&mut control, handle, slot);
            control.shut_gates += shut;
            drop(self.shut(control));
        }
        Ok(())
    }

    /// Frees the handle (PERUSE 2.0 §5.2.10), also when its communicator is freed already.
    ///
    /// When this has returned, no callback of the handle runs or will run, and what the callback owned is dropped.
    /// A call from inside a callback, or by the owner of the PERUSE lock, does not wait for callbacks on other threads:
    /// they might be waiting for the caller. After it no callback *begins* any more, and the last one to end frees the
    /// handle.
    ///
    /// # Errors
    /// `Handle` for a stale handle. `Object` if the communicator is freed; the handle is released all the same.
    pub fn release(&self, handle: Handle) -> Result<(), EventError> {
        // A number that was guessed.
        self.slots.get(handle.index()).and_then(event_of).ok_or(EventError::Handle)?;
        self.end(handle)
    }

    /// Replaces the callback of an inactive handle (PERUSE 2.0 §5.2.13).
    ///
    /// A callback that began before the window was closed may still be running with the old function and parameter.
    ///
    /// # Errors
    /// `Handle` for a stale or active handle, or a function for the events of another kind of object; `Object` if its
    /// communicator is freed.
    pub fn set_callback(&self, handle: Handle, callback: Callback) -> Result<(), EventError> {
        let control = self.control();
        let slot = self.inactive(handle)?;
        let event = event_of(slot).and_then(|event| self.binding(event));
        if !event.is_some_and(|binding| callback.suits(binding)) {
            return Err(EventError::Handle);
        }
        self.replace(control, handle, slot, OwnedCallback::new(self, handle, callback));
        Ok(())
    }

    /// Makes `listener` what the handle calls, active or not: an event meets the old one or the new one. The old one is
    /// dropped as soon as nobody is inside of the handle, perhaps with it.
    ///
    /// # Errors
    /// `Handle` for a stale handle.
    pub(crate) fn set_listener<L: Listener>(&self, handle: Handle, listener: L) -> Result<(), EventError> {
        let control = self.control();
        let (slot, _) = self.live_slot(handle)?;
        self.replace(control, handle, slot, OwnedCallback::of_listener(self, handle, listener));
        Ok(())
    }

    fn replace(
        &self,
        mut control: MutexGuard<'_, ControlState>,
        handle: Handle,
        slot: &HandleSlot,
        new: OwnedCallback,
    ) {
        // Release: pairs with Acquire in `Protected::callback`. Only holders of the control lock write.
        let old = slot.callback.swap(new.into_raw(), Ordering::Release);
        let replaced = &mut control.entries[handle.index()].replaced;
        // SAFETY: the slot owned it. It goes to `replaced` and stays there while anybody is inside.
        replaced.extend(unsafe { OwnedCallback::from_raw(old) });
        // The new one is there, and then no hazard on the slot: nobody can hold one that was replaced (event rule 6).
        domain().heavy_fence();
        let unused = if domain().busy(slot.address()) { Vec::new() } else { core::mem::take(replaced) };
        drop(control);
        self.drop_foreign(unused);
    }

    /// The C callback of a handle with its parameter, active or not (PERUSE 2.0 §5.1.2; §5.2.14 is stricter).
    /// `None` for a closure.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn callback(&self, handle: Handle) -> Result<Option<CFunction>, EventError> {
        let _control = self.control();
        let (slot, _) = self.living(handle)?;
        // Relaxed: written under the control lock, which is held.
        let called = slot.callback.load(Ordering::Relaxed);
        // SAFETY: a handle that is not released owns its callback,
        // and only holders of the control lock free it (event rule 3).
        Ok(unsafe { CallbackRef::new(called) }.c())
    }

    /// The event that the handle was registered for (PERUSE 2.0 §5.2.11). Takes no lock: callbacks ask this every time.
    ///
    /// # Errors
    /// `Handle` for a stale handle or a global subscriber, `Object` if its communicator is freed.
    pub fn event(&self, handle: Handle) -> Result<Event, EventError> {
        let (slot, _) = self.living(handle)?;
        let event = event_of(slot).ok_or(EventError::Handle)?;
        // Had the event been the slot's next owner's, this second look would see that owner's generation.
        self.living(handle).map(|_| event)
    }

    /// The handle of the communicator that `handle` was registered with (PERUSE 2.0 §5.2.12).
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if that communicator is freed.
    pub fn object(&self, handle: Handle) -> Result<usize, EventError> {
        let control = self.control();
        self.living(handle)?;
        let home = control.entries[handle.index()].home.upgrade();
        home.map(|comm| comm.comm()).ok_or(EventError::Object)
    }

    /// Sets whether an inactive handle is carried over to duplicates of its communicator (PERUSE 2.0 §5.2.15).
    ///
    /// Duplicates that are there already keep what they have.
    ///
    /// # Errors
    /// `Handle` for a stale or active handle, `Object` if its communicator is freed.
    pub fn set_propagation(&self, handle: Handle, on: bool) -> Result<(), EventError> {
        let mut control = self.control();
        self.inactive(handle)?;
        control.entries[handle.index()].propagate = on;
        Ok(())
    }

    /// What one listens on to receive `event`.
    fn binding(&self, event: Event) -> Option<Binding> {
        self.table.get(event.index()).map(|info| info.binding)
    }

    /// Whether `event` is one of communicators or windows.
    fn is_bound(&self, event: Event) -> bool {
        self.binding(event).is_some_and(|binding| binding != Binding::Nothing)
    }

    /// The event types of the set that `object` has.
    fn bound(&self, object: &CommEvents, events: EventSet) -> impl Iterator<Item = Event> {
        let binding = object.binding();
        events.iter().filter(move |event| self.binding(*event) == Some(binding))
    }

    /// The name of an event type.
    pub(super) fn name_of(&self, event: Event) -> std::borrow::Cow<'static, str> {
        self.table.get(event.index()).map_or("".into(), |info| info.name.to_string_lossy())
    }

    pub(super) fn control(&self) -> MutexGuard<'_, ControlState> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a handle that is not stale, and its status.
    pub(super) fn live_slot(&self, handle: Handle) -> Result<(&HandleSlot, HandleStatus), EventError> {
        let slot = self.slots.get(handle.index()).ok_or(EventError::Handle)?;
        match slot.state.status(handle.generation()) {
            HandleStatus::Stale => Err(EventError::Handle),
            status => Ok((slot, status)),
        }
    }

    /// As `look`, for a handle whose communicator lives.
    fn living(&self, handle: Handle) -> Result<(&HandleSlot, HandleStatus), EventError> {
        match self.live_slot(handle)? {
            // The handle of a global subscriber is nobody's but its subscription's.
            (slot, _) if event_of(slot).is_none() => Err(EventError::Handle),
            (_, HandleStatus::Dead) => Err(EventError::Object),
            found => Ok(found),
        }
    }

    /// As `living`, for a handle that is inactive.
    fn inactive(&self, handle: Handle) -> Result<&HandleSlot, EventError> {
        match self.living(handle)? {
            (slot, HandleStatus::Inactive) => Ok(slot),
            _ => Err(EventError::Handle),
        }
    }

    /// The handle that holds slot `index`, with its event, unless it is a global subscriber. The control lock is held.
    fn occupant(&self, index: usize) -> Option<(&HandleSlot, Handle, Event)> {
        let slot = self.slots.get(index)?;
        let handle = Handle::new(index, slot.state.generation());
        (slot.state.status(handle.generation()) != HandleStatus::Stale).then_some(())?;
        event_of(slot).map(|event| (slot, handle, event))
    }
}
