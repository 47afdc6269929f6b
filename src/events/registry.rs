//! The control side: register, activate, deactivate, release, propagate. Rare, and under one lock that no callback runs in.

use super::comm_events::CommEvents;
use super::lock::Lock;
use super::slots::{Slot, Slots};
use super::spec::{Callback, CommCallback};
use super::state::{LAST_GENERATION, Release, View};
use super::{Event, Handle, upcall};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
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
    /// PERUSE_ERR_EVENT: events are compiled out.
    #[error("this library was built without events (cargo feature `peruse`)")]
    Event,
    /// PERUSE_ERR_MALLOC: no handle is left.
    #[error("no event handle is left")]
    Full,
}

/// What ends the job, given the reason; it is not expected to return.
pub type Fatal = Box<dyn Fn(String) + Send + Sync>;

/// All event handles of one engine, and its PERUSE lock.
pub struct Registry {
    pub(super) slots: Slots,
    control: Mutex<Control>,
    /// Tells those who wait in `release` that some handle is retired.
    retired: Condvar,
    initialised: AtomicBool,
    fatal: Fatal,
    lock: Lock,
}

#[derive(Default)]
struct Control {
    /// One for each slot that was ever used, at the slot's index.
    entries: Vec<Entry>,
    /// Indices of free slots.
    free: Vec<usize>,
}

/// What the control side keeps of one handle.
#[derive(Default)]
struct Entry {
    /// The communicator that the handle was registered with.
    home: Weak<CommEvents>,
    /// Every communicator whose rows hold the handle, `home` among them.
    attached: Vec<Weak<CommEvents>>,
    propagate: bool,
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
            slots: Slots::new(),
            control: Mutex::new(Control::default()),
            retired: Condvar::new(),
            initialised: AtomicBool::new(false),
            fatal,
            lock: Lock::new(),
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

    pub(super) fn fatal(&self, text: String) {
        (self.fatal)(text);
    }

    /// The events of a new communicator whose handle is `comm`.
    #[must_use]
    pub fn attach(self: &Arc<Self>, comm: usize) -> Arc<CommEvents> {
        Arc::new(CommEvents::new(self.clone(), comm))
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
    /// `Comm` if the communicator is freed, `Event` if events are compiled out, `Full` if no handle is left.
    pub fn register(
        &self,
        comm: &Arc<CommEvents>,
        event: Event,
        callback: Callback,
    ) -> Result<Handle, EventError> {
        if !cfg!(feature = "peruse") {
            return Err(EventError::Event);
        }
        let mut control = self.control();
        if comm.is_freed() {
            return Err(EventError::Comm);
        }
        let index = control.free.pop().unwrap_or(control.entries.len());
        let slot = self.slots.grow(index).ok_or(EventError::Full)?;
        if index == control.entries.len() {
            control.entries.push(Entry::default());
        }
        let home = Arc::downgrade(comm);
        control.entries[index] =
            Entry { home: home.clone(), attached: vec![home], propagate: false, replaced: Vec::new() };
        // Release: pairs with Acquire in `event_of`, so that who reads this through a stale handle sees the generation too.
        slot.event.store(event as u32, Ordering::Release);
        // Relaxed: published by the state word's Release in `activate` (edge 4).
        slot.callback.store(Box::into_raw(Box::new(callback)), Ordering::Relaxed);
        let handle = Handle::new(index, slot.state.generation());
        slot.state.open();
        comm.insert(event, handle);
        Ok(handle)
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
            let event = event_of(slot);
            control.entries[handle.index()].attached().for_each(|comm| comm.open_window(event));
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
            let event = event_of(slot);
            control.entries[handle.index()].attached().for_each(|comm| comm.close_window(event));
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
        let may_wait = !upcall::inside_callback() && !self.lock.is_mine();
        let mut control = self.control();
        let (slot, view) = self.look(handle)?;
        if view == View::Active {
            let event = event_of(slot);
            control.entries[handle.index()].attached().for_each(|comm| comm.close_window(event));
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
        let event = event_of(slot);
        entry.attached().for_each(|comm| comm.remove(event, handle));
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
            Callback::Rust(_) => None,
        })
    }

    /// The event that the handle was registered for (PERUSE 2.0 §5.2.11). Takes no lock: callbacks ask this every time.
    ///
    /// # Errors
    /// `Handle` for a stale handle, `Object` if its communicator is freed.
    pub fn event(&self, handle: Handle) -> Result<Event, EventError> {
        let (slot, _) = self.living(handle)?;
        let event = event_of(slot);
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

    /// The handle that holds slot `index`, with its event. The control lock is held.
    fn occupant(&self, index: usize) -> Option<(&Slot, Handle, Event)> {
        let slot = self.slots.get(index)?;
        let handle = Handle::new(index, slot.state.generation());
        (slot.state.view(handle.generation()) != View::Stale).then(|| (slot, handle, event_of(slot)))
    }
}

/// The slot's event; the slot is or was in use.
fn event_of(slot: &Slot) -> Event {
    // Acquire: pairs with Release in `register`.
    let number = slot.event.load(Ordering::Acquire);
    Event::by_number(number.cast_signed()).expect("a slot in use holds an event's number")
}
