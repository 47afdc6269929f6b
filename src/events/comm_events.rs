//! One communicator's share: its gate, and for each event the handles to walk when the gate is open.

use super::registry::Registry;
use super::spec::{Callback, Failure, Occurrence};
use super::state::Leave;
use super::upcall::Upcall;
use super::{EVENTS, Event, Gate, Handle, Spec};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Handles in one link of a row.
const LINK: usize = if cfg!(perusal_loom) { 1 } else { 7 };

/// A link of a row; 64 bytes. Links are added, filled and emptied under the control lock, and freed with the row.
#[derive(Debug)]
struct Link {
    handles: [AtomicU64; LINK],
    next: AtomicPtr<Link>,
}

/// The handles of one event on one communicator, in no order; 0 is an empty place.
#[derive(Debug)]
struct Row(AtomicPtr<Link>);

impl Row {
    fn new() -> Row {
        Row(AtomicPtr::new(core::ptr::null_mut()))
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        let mut at = &self.0;
        core::iter::from_fn(move || {
            // Acquire: pairs with Release in `insert`; publishes the link.
            let link = at.load(Ordering::Acquire);
            // SAFETY: a link that is there was leaked by `insert` and is freed in `drop` only, which borrows the row
            // mutably (event rule 1).
            let link = unsafe { link.as_ref() }?;
            at = &link.next;
            Some(link)
        })
    }

    fn places(&self) -> impl Iterator<Item = &AtomicU64> {
        self.links().flat_map(|link| &link.handles)
    }

    /// Adds `handle`; the control lock is held.
    fn insert(&self, handle: Handle) {
        // Relaxed: only holders of the control lock write places.
        if let Some(free) = self.places().find(|place| place.load(Ordering::Relaxed) == 0) {
            // Relaxed: a handle is a number; what it leads to is published by its state word (edge 4).
            free.store(handle.bits(), Ordering::Relaxed);
            return;
        }
        let link = Box::new(Link {
            handles: core::array::from_fn(|i| AtomicU64::new(if i == 0 { handle.bits() } else { 0 })),
            next: AtomicPtr::new(core::ptr::null_mut()),
        });
        let end = self.links().last().map_or(&self.0, |last| &last.next);
        // Release: pairs with Acquire in `links`; publishes the link.
        end.store(Box::into_raw(link), Ordering::Release);
    }

    /// Removes `handle`; the control lock is held.
    fn remove(&self, handle: Handle) {
        // Relaxed: as in `insert`.
        if let Some(place) = self.places().find(|place| place.load(Ordering::Relaxed) == handle.bits()) {
            place.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // Relaxed: self is borrowed mutably, so whatever others did happened before.
        let mut link = self.0.load(Ordering::Relaxed);
        while !link.is_null() {
            // SAFETY: `insert` leaked this box, and nobody else can be looking (self is borrowed mutably).
            let owned = unsafe { Box::from_raw(link) };
            link = owned.next.load(Ordering::Relaxed);
        }
    }
}

/// The events of one communicator. Made by [`Registry::attach`], shut by [`Registry::detach`].
#[derive(Debug)]
#[repr(C)]
pub struct CommEvents {
    /// Tested by every event site.
    pub gate: Gate,
    /// Set by `detach`; read and written under the control lock.
    freed: AtomicBool,
    comm: AtomicUsize,
    registry: Arc<Registry>,
    /// Open windows of each event; read and written under the control lock.
    windows: [AtomicU32; EVENTS],
    rows: [Row; EVENTS],
}

impl CommEvents {
    pub(super) fn new(registry: Arc<Registry>, comm: usize) -> CommEvents {
        CommEvents {
            gate: Gate::new(),
            freed: AtomicBool::new(false),
            comm: AtomicUsize::new(comm),
            registry,
            windows: core::array::from_fn(|_| AtomicU32::new(0)),
            rows: core::array::from_fn(|_| Row::new()),
        }
    }

    /// The communicator's handle, as `spec.comm` reports it.
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

    /// Calls the callback of every handle of `event` that is active here. The caller has found `gate.open(event)`.
    ///
    /// Allocates nothing and waits for nobody. Callbacks run on the calling thread, in no particular order, each told
    /// `unique_id` and `spec`. A callback that fails ends the job by way of the registry's fatal hook; should the hook
    /// return, the remaining callbacks still run.
    #[cold]
    #[inline(never)]
    pub fn raise(&self, event: Event, unique_id: isize, spec: &Spec) {
        if !cfg!(feature = "peruse") {
            return;
        }
        for place in self.rows[event.index()].places() {
            // Relaxed: a handle is a number; `enter` decides whether it still means anything (event rule 2).
            let bits = place.load(Ordering::Relaxed);
            if let Some(handle) = Handle::from_bits(bits) {
                self.call(&Occurrence { event, handle, unique_id, spec });
            }
        }
    }

    fn call(&self, what: &Occurrence<'_>) {
        let Some(slot) = self.registry.slots.get(what.handle.index()) else { return };
        if !slot.state.enter(what.handle.generation()) {
            return;
        }
        // Until the slot is left: the last to leave drops what the callback owned, which is foreign code as well.
        let _upcall = Upcall::enter();
        let inside = Inside { registry: &self.registry, handle: what.handle };
        // Relaxed: published by the state word (edge 4); replaced only while the handle is inactive (event rule 3).
        let callback = slot.callback.load(Ordering::Relaxed);
        // SAFETY: between `enter` and `leave` the slot's callback is a box that nobody frees (event rule 3).
        let callback = unsafe { &*callback };
        if let Err(failure) = callback.call(what) {
            self.registry.fatal(fatal_text(what, callback, failure));
        }
        drop(inside);
    }

    /// Adds a handle of `event`; the control lock is held.
    pub(super) fn insert(&self, event: Event, handle: Handle) {
        self.rows[event.index()].insert(handle);
    }

    /// Removes a handle of `event`; the control lock is held.
    pub(super) fn remove(&self, event: Event, handle: Handle) {
        self.rows[event.index()].remove(handle);
    }

    /// Counts one more open window of `event`; the control lock is held.
    pub(super) fn open_window(&self, event: Event) {
        // Relaxed, here and below: the control lock orders these.
        if self.windows[event.index()].fetch_add(1, Ordering::Relaxed) == 0 && !self.is_freed() {
            self.gate.set(event, true);
        }
    }

    /// Counts one open window of `event` less; the control lock is held.
    pub(super) fn close_window(&self, event: Event) {
        if self.windows[event.index()].fetch_sub(1, Ordering::Relaxed) == 1 {
            self.gate.set(event, false);
        }
    }

    /// Whether `detach` was here; the control lock is held.
    pub(super) fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Marks the communicator freed; the control lock is held.
    pub(super) fn set_freed(&self) {
        self.freed.store(true, Ordering::Relaxed);
        self.gate.shut();
    }
}

/// The time between a successful `enter` and its `leave`, kept even if something between them unwinds.
struct Inside<'a> {
    registry: &'a Registry,
    handle: Handle,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let Some(slot) = self.registry.slots.get(self.handle.index()) else { return };
        if slot.state.leave() == Leave::LastOfReleased {
            self.registry.finish(self.handle);
        }
    }
}

#[cold]
fn fatal_text(what: &Occurrence<'_>, callback: &Callback, failure: Failure) -> String {
    format!(
        "PERUSE callback at {:#x} {failure} for event {} (handle {:#x}, communicator {:#x}, unique id {:#x}); \
         a callback's non-success return ends the job (PERUSE 2.0, section 5.1.2)",
        callback.address(),
        what.event.row().name.to_string_lossy(),
        what.handle.raw(),
        what.spec.comm,
        what.unique_id,
    )
}
