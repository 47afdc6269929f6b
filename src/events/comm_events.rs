//! The events of one communicator, of one window, or of one file: its gate, and its listener lists.

use super::callback::WritableSpec;
use super::dispatch::dispatch;
use super::listeners::{ListenerList, ListenerTable};
use super::registry::Registry;
use super::slots::HandleSlot;
use super::{Binding, Event, EventPayload, EventRecord, Gate, Spec};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use num_enum::FromPrimitive;
use std::sync::{Arc, PoisonError};

/// A communicator, or the window or file that it belongs to, as reports of hangs name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommAbout {
    /// Which of these it is.
    pub kind: AboutKind,
    /// Its name (MPI_Comm_set_name, MPI_Win_set_name, MPI_File_open); empty if it has none.
    pub name: String,
    /// Its members as ranks of the job, of both groups of an intercommunicator; empty if they are not known.
    pub members: Vec<u32>,
}

/// What a communicator in a report belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromPrimitive)]
#[repr(u64)]
pub enum AboutKind {
    /// The program: it is a communicator of its own.
    #[default]
    Comm = 0,
    /// A window.
    Window = 1,
    /// A file.
    File = 2,
}

impl From<Binding> for AboutKind {
    fn from(binding: Binding) -> Self {
        match binding {
            Binding::Window => Self::Window,
            Binding::File => Self::File,
            Binding::Communicator | Binding::Nothing => Self::Comm,
        }
    }
}

/// The events of one communicator, of one window, or of one file. Made by [`Registry::attach`],
/// [`Registry::attach_window`] and [`Registry::attach_file`], shut by [`Registry::detach`].
#[derive(Debug)]
#[repr(C)]
pub struct CommEvents {
    /// Tested by every event site.
    pub gate: Gate,
    /// Set by `detach`; read and written under the control lock.
    freed: AtomicBool,
    comm: AtomicUsize,
    /// Which event types it has: those of communicators, of windows or of files.
    binding: Binding,
    registry: Arc<Registry>,
    listeners: ListenerTable,
    /// What reports of hangs say of the communicator.
    about: Mutex<CommAbout>,
}

impl CommEvents {
    pub(super) fn new(registry: Arc<Registry>, binding: Binding, comm: usize) -> CommEvents {
        CommEvents {
            gate: Gate::new(),
            freed: AtomicBool::new(false),
            comm: AtomicUsize::new(comm),
            binding,
            registry,
            listeners: ListenerTable::new(),
            about: Mutex::new(CommAbout { kind: binding.into(), ..CommAbout::default() }),
        }
    }

    /// What reports of hangs say of the communicator.
    pub fn about(&self) -> MutexGuard<'_, CommAbout> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which event types it has: [`Binding::Communicator`], [`Binding::Window`] or [`Binding::File`].
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// The handle of the communicator, window or file, as `spec.comm` reports it.
    #[must_use]
    pub fn comm(&self) -> usize {
        // Relaxed: set before the communicator is handed to anybody.
        self.comm.load(Ordering::Relaxed)
    }

    /// Sets the communicator's handle, for a communicator that gets it after it was made.
    pub fn set_comm(&self, comm: usize) {
        // Relaxed: as in `comm`.
        self.comm.store(comm, Ordering::Relaxed);
    }

    /// The registry that this belongs to.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Emits an event: calls every handle of `record.event` that is active here, and every global subscriber to it. The
    /// caller has found `gate.is_open(event)`.
    ///
    /// Allocates nothing and waits for nobody. Callbacks run on the calling thread, in no particular order. One that
    /// fails ends the job by way of the registry's fatal hook;
    /// should the hook return, the remaining callbacks still run.
    #[inline(always)]
    pub fn emit(&self, record: &EventRecord<'_>) {
        self.emit_event(record.event, record);
    }

    #[inline(never)]
    fn emit_event(&self, event: Event, record: &EventRecord<'_>) {
        dispatch(self, event, record, WritableSpec::NOTHING);
    }

    /// As [`Self::emit`], with a spec that the caller has made for this one event: a C function that is the only
    /// listener receives it itself, not a copy.
    #[inline(always)]
    pub fn emit_once(
        &self,
        event: Event,
        id: isize,
        context: u32,
        payload: EventPayload<'_>,
        mut spec: Spec,
    ) {
        let spec = &raw mut spec;
        // SAFETY: it is on this stack until this returns, and dispatch reads it no more once a listener may write to it
        // (event rule 9).
        let record = EventRecord { event, id, context, spec: unsafe { &*spec }, payload };
        // SAFETY: it is on this stack until the event has been delivered; nobody reads it afterwards (event rule 9).
        dispatch(self, event, &record, unsafe { WritableSpec::new(spec) });
    }

    /// The listener list of `event`, if there is one.
    #[inline(always)]
    pub(super) fn listeners(&self, event: Event) -> Option<&ListenerList> {
        self.listeners.get(event)
    }

    /// The handle of `slot` is active and listens to `event` here; the control lock is held.
    pub(super) fn begin(&self, event: Event, slot: &HandleSlot) {
        self.listeners.make(event).insert(slot);
        if !self.is_freed() {
            self.gate.open_for(event);
        }
    }

    /// It listens no more; the control lock is held. Returns the number of gates that shut.
    #[must_use]
    pub(super) fn end(&self, event: Event, slot: &HandleSlot) -> usize {
        let listeners = self.listeners.make(event);
        listeners.remove(slot);
        if listeners.is_empty() { self.gate.shut_for(event) } else { 0 }
    }

    /// Whether `detach` was here; the control lock is held.
    pub(super) fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Marks the communicator freed; the control lock is held.
    pub(super) fn set_freed(&self) {
        self.freed.store(true, Ordering::Relaxed);
    }
}
