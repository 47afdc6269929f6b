//! The control side: register, activate, deactivate, release, propagate. Rare, and under one lock that no callback runs in.

use super::catalog::Binding;
use super::comm_events::CommEvents;
use super::gate::Windows;
use super::lock::Lock;
use super::rows::Row;
use super::slots::{Slot, Slots};
use super::spec::{Callback, CommCallback};
use super::state::{LAST_GENERATION, Release, View};
use super::{EVENTS, Event, Events, Gate, Handle, upcall};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, Weak};

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
    control: Mutex<Control>,
    /// Tells those who wait in `release` that some handle is retired.
    retired: Condvar,
    initialised: AtomicBool,
    fatal: Fatal,
    lock: Lock,
    next_id: AtomicU64,
    /// Calls of callbacks and taps.
    pub(super) told: AtomicU64,
}

/// Ids from here on are the registry's; the engine's are below, requests' further below.
const FIRST_ID: u64 = 1 << 56;

#[derive(Default)]
struct Control {
    /// One for each slot that was ever used, at the slot's index.
    entries: Vec<Entry>,
    /// Indices of free slots.
    free: Vec<usize>,
    /// Every communicator that was attached and is still there, and perhaps some that are not.
    comms: Vec<Weak<CommEvents>>,
}

impl Control {
    fn comms(&self) -> impl Iterator<Item = Arc<CommEvents>> {
        self.comms.iter().filter_map(Weak::upgrade)
    }

    /// Notes a communicator; those that are gone are forgotten before the list grows.
    fn note(&mut self, comm: &Arc<CommEvents>) {
        if self.comms.len() == self.comms.capacity() {
            self.comms.retain(|weak| weak.strong_count() > 0);
        }
        self.comms.push(Arc::downgrade(comm));
    }

    /// The sets of all taps.
    fn tapped(&self) -> impl Iterator<Item = Events> {
        self.entries.iter().map(|entry| entry.tapped)
    }
}

/// What the control side keeps of one handle.
#[derive(Default)]
struct Entry {
    /// The communicator that the handle was registered with.
    home: Weak<CommEvents>,
    /// Every communicator whose rows hold the handle, `home` among them.
    attached: Vec<Weak<CommEvents>>,
    propagate: bool,
    /// What it listens to on all communicators, if it is a tap.
    tapped: Events,
    /// Callbacks that were replaced while somebody may have been inside one.
    #[expect(clippy::vec_box, reason = "a callback that somebody is inside of must not move")]
    replaced: Vec<Box<Callback>>,
}

impl Entry {
    fn attached(&self) -> impl Iterator<Item = Arc<CommEvents>> {
        self.attached.iter().filter_map(Weak::upgrade)
    }
    fn is_attached_to(&self, comm: &CommEvents) -> bool {
        self.attached.iter().any(|weak| core::ptr::eq(weak.as_ptr(), comm))
    }
}

/// What a retired handle owned; dropped by the caller after the control lock, for a closure's drop is foreign code.
type Leftovers = (Option<Box<Callback>>, Vec<Box<Callback>>);

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
            control: Mutex::new(Control::default()),
            retired: Condvar::new(),
            initialised: AtomicBool::new(false),
            fatal,
            lock: Lock::new(),
            next_id: AtomicU64::new(FIRST_ID),
            told: AtomicU64::new(0),
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
        comm.set_freed();
        for (index, entry) in control.entries.iter_mut().enumerate() {
            if !entry.is_attached_to(comm) {
                continue;
            }
            let Some((slot, handle, event)) = self.occupant(index) else { continue };
            if core::ptr::eq(entry.home.as_ptr(), comm) {
                if slot.state.view(handle.generation()) == View::Active {
                    entry.attached().for_each(|there| there.close_window(event));
                }
                slot.state.kill();
            } else {
                comm.remove(event, handle);
                entry.attached.retain(|weak| !core::ptr::eq(weak.as_ptr(), comm));
            }
        }
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
            new.insert(event, handle);
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
        comm.insert(event, handle);
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
        events.iter().for_each(|event| self.taps[event.index()].insert(handle));
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

    /// One tap of `events` less.
    fn close_everywhere(&self, control: &Control, events: Events) {
        events.iter().filter(|event| !is_bound(*event)).for_each(|event| {
            self.windows.close(event, &self.gate);
        });
        for comm in control.comms() {
            bound(events).for_each(|event| comm.close_window(event));
        }
    }

    /// A handle's windows, or a tap's, open or shut.
    fn switch(&self, control: &Control, handle: Handle, slot: &Slot, open: bool) {
        let entry = &control.entries[handle.index()];
        match (event_of(slot), open) {
            (Some(event), true) => entry.attached().for_each(|comm| comm.open_window(event)),
            (Some(event), false) => entry.attached().for_each(|comm| comm.close_window(event)),
            (None, true) => self.open_everywhere(control, entry.tapped),
            (None, false) => self.close_everywhere(control, entry.tapped),
        }
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
        let control = self.control();
        let (slot, view) = self.living(handle)?;
        if view == View::Active {
            slot.state.deactivate();
            self.switch(&control, handle, slot, false);
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

    /// As `release`, and taps too.
    pub(super) fn end(&self, handle: Handle) -> Result<(), EventError> {
        let may_wait = !upcall::inside_callback() && !self.lock.is_mine();
        let mut control = self.control();
        let (slot, view) = self.look(handle)?;
        if view == View::Active {
            self.switch(&control, handle, slot, false);
        }
        match slot.state.release() {
            Release::Idle => {
                let leftovers = self.retire(&mut control, handle, slot);
                drop(control);
                drop(leftovers);
            }
            Release::Busy if may_wait => {
                while slot.state.generation() == handle.generation() {
                    control = self.retired.wait(control).unwrap_or_else(PoisonError::into_inner);
                }
            }
            Release::Busy => {}
        }
        if view == View::Dead { Err(EventError::Object) } else { Ok(()) }
    }

    /// The last one left a released handle: retires it and wakes who waits for that.
    pub(super) fn finish(&self, handle: Handle) {
        let Some(slot) = self.slots.get(handle.index()) else { return };
        let mut control = self.control();
        let leftovers = self.take(&mut control, handle, slot);
        drop(control);
        // We are inside the engine, through which nothing may unwind.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(leftovers)));
        // Dropped first: a release that waits promises that what the callback owned is gone.
        let mut control = self.control();
        self.free(&mut control, handle, slot);
        drop(control);
        self.retired.notify_all();
        if let Err(payload) = dropped {
            // Dropping it might panic again.
            core::mem::forget(payload);
            self.fatal("what a PERUSE callback owned panicked when it was dropped".into());
        }
    }

    fn retire(&self, control: &mut Control, handle: Handle, slot: &Slot) -> Leftovers {
        let leftovers = self.take(control, handle, slot);
        self.free(control, handle, slot);
        leftovers
    }

    /// Takes a released, empty handle out of every row and its callback out of the slot (event rule 3).
    fn take(&self, control: &mut Control, handle: Handle, slot: &Slot) -> Leftovers {
        let entry = core::mem::take(&mut control.entries[handle.index()]);
        match event_of(slot) {
            Some(event) => entry.attached().for_each(|comm| comm.remove(event, handle)),
            None => entry.tapped.iter().for_each(|event| self.taps[event.index()].remove(handle)),
        }
        // Relaxed: the control lock orders writers, and nobody is inside.
        let callback = slot.callback.swap(core::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `register` or `set_callback` leaked this box, the slot owned it, and with the handle released and
        // nobody in flight no dispatcher can reach it (event rule 3).
        let callback = (!callback.is_null()).then(|| unsafe { Box::from_raw(callback) });
        (callback, entry.replaced)
    }

    /// Gives the slot to the next handle, unless its generations are used up.
    fn free(&self, control: &mut Control, handle: Handle, slot: &Slot) {
        slot.state.retire();
        if handle.generation() < LAST_GENERATION {
            control.free.push(handle.index());
        }
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
        // Relaxed: published by the state word's Release in `activate` (edge 4).
        let old = slot.callback.swap(new, Ordering::Relaxed);
        let replaced = &mut control.entries[handle.index()].replaced;
        // SAFETY: the slot owned this leaked box. It goes to `replaced` and stays there while anybody is inside.
        replaced.push(unsafe { Box::from_raw(old) });
        // Inactive and empty under the control lock: nobody can hold one of the replaced callbacks (event rule 3).
        let unused = if slot.state.busy() { Vec::new() } else { core::mem::take(replaced) };
        drop(control);
        drop(unused);
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

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a handle that is not stale, and how it looks.
    fn look(&self, handle: Handle) -> Result<(&Slot, View), EventError> {
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

/// What a tap's slot has in the place of an event.
const NO_EVENT: u32 = 0;

/// The event of the slot's handle; none if that is a tap.
fn event_of(slot: &Slot) -> Option<Event> {
    // Acquire: pairs with Release in `occupy`.
    Event::by_number(slot.event.load(Ordering::Acquire).cast_signed())
}

fn is_bound(event: Event) -> bool {
    event.row().binding == Binding::Communicator
}

/// The events of the set that communicators have.
fn bound(events: Events) -> impl Iterator<Item = Event> {
    events.iter().filter(|event| is_bound(*event))
}
