//! The control side: register, activate, deactivate, release, propagate. Rare, and under one lock that no callback runs in.

use super::comm_events::CommEvents;
use super::control::{Control, Entry, NO_EVENT, bound, event_of, is_bound};
use super::gate::Windows;
use super::lock::Lock;
use super::pins::Pins;
use super::rows::Row;
use super::slots::{Slot, Slots};
use super::spec::{Callback, CommCallback};
use super::state::View;
use super::{EVENTS, Event, Events, Gate, Handle};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use core::ffi::c_void;
use std::sync::{Arc, PoisonError};

/// Why a call on the registry failed; the C face maps each to one PERUSE error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// PERUSE_ERR_EVENT_HANDLE: null, released, never given out, or active where it must not be.
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

#[cfg(not(perusal_loom))]
fn new_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: a counter.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A static cannot hold one of loom's atomics; a model has one registry, and threads of its own.
#[cfg(perusal_loom)]
fn new_id() -> u64 {
    1
}

/// What ends the job, given the reason; it is not expected to return.
pub type Fatal = Box<dyn Fn(String) + Send + Sync>;

/// All event handles and taps of one engine, and its PERUSE lock.
pub struct Registry {
    /// Tested by every site of an event that is bound to nothing.
    pub gate: Gate,
    /// Open windows behind `gate`.
    windows: Windows,
    /// The taps of each event.
    pub(super) taps: [Row; EVENTS],
    pub(super) slots: Slots,
    pub(super) pins: Pins,
    /// No other registry of the process has it, ever.
    pub(super) id: u64,
    control: Mutex<Control>,
    /// Tells those who wait in `release` that some handle is retired.
    pub(super) retired: Condvar,
    initialised: AtomicBool,
    fatal: Fatal,
    lock: Lock,
    next_id: AtomicU64,
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
        Arc::new(Registry {
            gate: Gate::new(),
            windows: Windows::new(),
            taps: core::array::from_fn(|_| Row::new()),
            slots: Slots::new(),
            pins: Pins::new(),
            id: new_id(),
            control: Mutex::new(Control::default()),
            retired: Condvar::new(),
            initialised: AtomicBool::new(false),
            fatal,
            lock: Lock::new(),
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
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// An id for events that no request or message has, and none before has had.
    #[must_use]
    pub fn fresh_id(&self) -> isize {
        // Relaxed: a counter.
        self.next_id.fetch_add(1, Ordering::Relaxed) as isize
    }

    pub(super) fn fatal(&self, text: String) {
        (self.fatal)(text);
    }

    /// The events of a new communicator whose handle is `comm`.
    #[must_use]
    pub fn attach(self: &Arc<Self>, comm: usize) -> Arc<CommEvents> {
        let events = Arc::new(CommEvents::new(self.clone(), comm));
        let mut control = self.control();
        control.note(&events);
        for tapped in control.tapped() {
            bound(tapped).for_each(|event| events.open_window(event));
        }
        events
    }

    /// The communicator is freed: its handles are dead wherever they are attached, and those of others leave it.
    ///
    /// A callback that has begun on another thread may still be running when this returns.
    pub fn detach(&self, comm: &CommEvents) {
        let mut control = self.control();
        let mut shut = comm.set_freed();
        for (index, entry) in control.entries.iter_mut().enumerate() {
            if !entry.is_attached_to(comm) {
                continue;
            }
            let Some((slot, handle, event)) = self.occupant(index) else { continue };
            if core::ptr::eq(entry.home.as_ptr(), comm) {
                if slot.state.view(handle.generation()) == View::Active {
                    shut += entry.attached().map(|there| there.close_window(event)).sum::<usize>();
                }
                slot.state.kill();
            } else {
                comm.remove(event, slot);
                entry.attached.retain(|weak| !core::ptr::eq(weak.as_ptr(), comm));
            }
        }
        control.owed += shut;
        drop(self.shut(control));
    }

    /// `new` is a duplicate of `old`: handles whose propagation mode is on are attached to it, window status included.
    ///
    /// One handle then listens on both communicators: `spec.comm` says which one an event is of, [`object`](Self::object)
    /// stays the one that the handle was registered with, and activation concerns both.
    pub fn propagate(&self, old: &CommEvents, new: &Arc<CommEvents>) {
        let mut control = self.control();
        for (index, entry) in control.entries.iter_mut().enumerate() {
            if !entry.propagate || !entry.is_attached_to(old) || new.is_freed() {
                continue;
            }
            let Some((slot, handle, event)) = self.occupant(index) else { continue };
            match slot.state.view(handle.generation()) {
                View::Active => new.open_window(event),
                View::Inactive => {}
                View::Dead | View::Stale => continue,
            }
            new.insert(event, slot);
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
        if !cfg!(feature = "peruse") || !is_bound(event) {
            return Err(EventError::Event);
        }
        let mut control = self.control();
        if comm.is_freed() {
            return Err(EventError::Comm);
        }
        let home = Arc::downgrade(comm);
        let entry = Entry { home: home.clone(), attached: vec![home], ..Entry::default() };
        let (handle, slot) = self.occupy(&mut control, entry, event as u32, callback)?;
        slot.state.open();
        comm.insert(event, slot);
        Ok(handle)
    }

    #[cfg(test)]
    pub(super) fn known_communicators(&self) -> usize {
        self.control().comms.len()
    }

    /// Registers and activates what listens to `events` everywhere; see [`tap`](Self::tap).
    ///
    /// # Errors
    /// As for [`register`](Self::register), but `Comm`.
    pub(super) fn register_tap(&self, events: Events, callback: Callback) -> Result<Handle, EventError> {
        if !cfg!(feature = "peruse") {
            return Err(EventError::Event);
        }
        let mut control = self.control();
        let entry = Entry { tapped: events, ..Entry::default() };
        let (handle, slot) = self.occupy(&mut control, entry, NO_EVENT, callback)?;
        slot.state.open();
        slot.state.activate();
        events.iter().for_each(|event| self.taps[event.index()].insert(slot));
        self.open_everywhere(&control, events);
        Ok(handle)
    }

    /// Takes a free slot for a new handle, which stays released.
    fn occupy(
        &self,
        control: &mut Control,
        entry: Entry,
        event: u32,
        callback: Callback,
    ) -> Result<(Handle, &Slot), EventError> {
        self.pins.prepare();
        let index = control.free.pop().unwrap_or(control.entries.len());
        let slot = self.slots.grow(index).ok_or(EventError::Full)?;
        if index == control.entries.len() {
            control.entries.push(Entry::default());
        }
        control.entries[index] = entry;
        // Release: pairs with Acquire in `event_of`, so that who reads this through a stale handle sees the generation too.
        slot.event.store(event, Ordering::Release);
        // Relaxed: published by the state word's Release in `activate` (edge 4).
        slot.callback.store(Box::into_raw(Box::new(callback)), Ordering::Relaxed);
        Ok((Handle::new(index, slot.state.generation()), slot))
    }

    /// One more tap of `events`.
    fn open_everywhere(&self, control: &Control, events: Events) {
        events.iter().filter(|event| !is_bound(*event)).for_each(|event| {
            self.windows.open(event, Some(&self.gate));
        });
        for comm in control.comms() {
            bound(events).for_each(|event| comm.open_window(event));
        }
    }

    /// One tap of `events` less. Gives the number of gates that shut.
    fn close_everywhere(&self, control: &Control, events: Events) -> usize {
        let own = events.iter().filter(|event| !is_bound(*event));
        let shut: usize = own.map(|event| self.windows.close(event, &self.gate)).sum();
        let there =
            |comm: Arc<CommEvents>| bound(events).map(|event| comm.close_window(event)).sum::<usize>();
        shut + control.comms().map(there).sum::<usize>()
    }

    /// A handle's windows, or a tap's, open or shut. Gives the number of gates that shut.
    pub(super) fn switch(&self, control: &Control, handle: Handle, slot: &Slot, open: bool) -> usize {
        let entry = &control.entries[handle.index()];
        match (event_of(slot), open) {
            (Some(event), true) => entry.attached().for_each(|comm| comm.open_window(event)),
            (Some(event), false) => return entry.attached().map(|comm| comm.close_window(event)).sum(),
            (None, true) => self.open_everywhere(control, entry.tapped),
            (None, false) => return self.close_everywhere(control, entry.tapped),
        }
        0
    }

    /// Opens the handle's window (PERUSE 2.0 §5.2.8); an open one stays open.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn activate(&self, handle: Handle) -> Result<(), EventError> {
        let control = self.control();
        let (slot, view) = self.living(handle)?;
        if view == View::Inactive {
            slot.state.activate();
            self.switch(&control, handle, slot, true);
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
        let (slot, view) = self.living(handle)?;
        if view == View::Active {
            slot.state.deactivate();
            let shut = self.switch(&control, handle, slot, false);
            control.owed += shut;
            drop(self.shut(control));
        }
        Ok(())
    }

    /// Frees the handle (PERUSE 2.0 §5.2.10), also when its communicator is freed already.
    ///
    /// When this has returned, no callback of the handle runs or will run, and what the callback owned is dropped.
    /// Called from inside a callback, or by the owner of the PERUSE lock, it does not wait for callbacks on other
    /// threads (they might be waiting for the caller): then no callback *begins* any more, and the last one to end
    /// frees the handle.
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
    /// `Handle` for a stale or active handle, `Object` if its communicator is freed.
    pub fn set_callback(&self, handle: Handle, callback: Callback) -> Result<(), EventError> {
        let mut control = self.control();
        let slot = self.inactive(handle)?;
        let new = Box::into_raw(Box::new(callback));
        // Release: pairs with Acquire in `Registry::call`, which may have found the handle active before. Only holders of the
        // control lock write.
        let old = slot.callback.swap(new, Ordering::Release);
        let replaced = &mut control.entries[handle.index()].replaced;
        // SAFETY: the slot owned this leaked box. It goes to `replaced` and stays there while anybody is inside.
        replaced.push(unsafe { Box::from_raw(old) });
        // Inactive under the control lock, and then no pin on it: nobody can hold one of the replaced callbacks (event rule 6).
        self.pins.heavy();
        let unused = if self.pins.busy(slot.address()) { Vec::new() } else { core::mem::take(replaced) };
        drop(control);
        self.drop_foreign(unused);
        Ok(())
    }

    /// The C callback and parameter of a handle, active or not (PERUSE 2.0 §5.1.2; §5.2.14 is stricter). `None` for a closure.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn callback(&self, handle: Handle) -> Result<Option<(CommCallback, *mut c_void)>, EventError> {
        let _control = self.control();
        let (slot, _) = self.living(handle)?;
        // Relaxed: written under the control lock, which is held.
        let callback = slot.callback.load(Ordering::Relaxed);
        // SAFETY: a handle that is not released owns its callback, and only holders of the control lock free it (event rule 3).
        Ok(match unsafe { &*callback } {
            Callback::C { function, param } => Some((*function, *param)),
            Callback::Rust(_) | Callback::Tap(_) => None,
        })
    }

    /// The event that the handle was registered for (PERUSE 2.0 §5.2.11). Takes no lock: callbacks ask this every time.
    ///
    /// # Errors
    /// `Handle` for a stale handle or a tap, `Object` if its communicator is freed.
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

    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a handle that is not stale, and how it looks.
    pub(super) fn look(&self, handle: Handle) -> Result<(&Slot, View), EventError> {
        let slot = self.slots.get(handle.index()).ok_or(EventError::Handle)?;
        match slot.state.view(handle.generation()) {
            View::Stale => Err(EventError::Handle),
            view => Ok((slot, view)),
        }
    }

    /// As `look`, for a handle whose communicator lives.
    fn living(&self, handle: Handle) -> Result<(&Slot, View), EventError> {
        match self.look(handle)? {
            // A tap is not for who guesses its number.
            (slot, _) if event_of(slot).is_none() => Err(EventError::Handle),
            (_, View::Dead) => Err(EventError::Object),
            found => Ok(found),
        }
    }

    /// As `living`, for a handle that is inactive.
    fn inactive(&self, handle: Handle) -> Result<&Slot, EventError> {
        match self.living(handle)? {
            (slot, View::Inactive) => Ok(slot),
            _ => Err(EventError::Handle),
        }
    }

    /// The handle that holds slot `index`, with its event, unless it is a tap. The control lock is held.
    fn occupant(&self, index: usize) -> Option<(&Slot, Handle, Event)> {
        let slot = self.slots.get(index)?;
        let handle = Handle::new(index, slot.state.generation());
        (slot.state.view(handle.generation()) != View::Stale).then_some(())?;
        event_of(slot).map(|event| (slot, handle, event))
    }
}
