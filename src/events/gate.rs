//! The gate: what an event site pays when nobody listens — one relaxed load and one branch.

use super::upcall::hold_fast_path;
use super::{EVENTS, Event};
use crate::sync::{AtomicU32, Ordering};

/// Which events of one communicator, or of the engine itself, have an open window: a bit for each.
///
/// A closed gate proves that no handle of that event is active *as far as this thread can know*: an activation that
/// happened before (on this thread, or handed over by any synchronisation) is seen, one that races may not be.
#[derive(Debug)]
pub struct Gate(AtomicU32);

#[cfg(not(perusal_loom))]
static CLOSED: Gate = Gate(AtomicU32::new(0));

impl Gate {
    /// A gate that is shut.
    pub(super) fn new() -> Gate {
        Gate(AtomicU32::new(0))
    }

    /// A gate that is never open, for what has no communicator yet: so that no site asks whether there is one.
    pub(crate) fn closed() -> &'static Gate {
        #[cfg(not(perusal_loom))]
        return &CLOSED;
        // A static cannot hold one of loom's atomics.
        #[cfg(perusal_loom)]
        return Box::leak(Box::new(Gate::new()));
    }

    /// Whether anybody listens to `event`. Constant `false` without the feature `peruse`.
    #[inline(always)]
    #[must_use]
    pub fn is_open(&self, event: Event) -> bool {
        // Relaxed: a hint; what a callback reads is published by the handle's state word (edge 4).
        cfg!(feature = "peruse") && self.0.load(Ordering::Relaxed) & event.bit() != 0
    }

    /// Whether anybody listens to any event. Constant `false` without the feature `peruse`.
    #[inline(always)]
    #[must_use]
    pub fn is_any_open(&self) -> bool {
        // Relaxed: as in `open`.
        cfg!(feature = "peruse") && self.0.load(Ordering::Relaxed) != 0
    }

    /// Opens the gate for `event`. Callers of this and the next two hold the registry's control lock.
    pub(super) fn open_for(&self, event: Event) {
        // Relaxed: as in `open`.
        if self.0.fetch_or(event.bit(), Ordering::Relaxed) == 0 {
            hold_fast_path(true);
        }
    }

    /// Shuts the gate for `event`. Gives 1 if it is shut altogether then, which the process is to rest from, else 0.
    #[must_use]
    fn shut_for(&self, event: Event) -> usize {
        // Relaxed: as in `open`.
        usize::from(self.0.fetch_and(!event.bit(), Ordering::Relaxed) == event.bit())
    }

    /// Shuts the gate for every event; the result is as for one event.
    #[must_use]
    pub(super) fn shut(&self) -> usize {
        // Relaxed: as in `open`.
        usize::from(self.0.swap(0, Ordering::Relaxed) != 0)
    }
}

/// How many windows are open behind a gate, by event. Read and written under the control lock.
#[derive(Debug)]
pub(super) struct Windows([AtomicU32; EVENTS]);

impl Windows {
    pub(super) fn new() -> Windows {
        Windows(core::array::from_fn(|_| AtomicU32::new(0)))
    }

    /// Counts one window of `event` more and opens the gate, if there is one to open.
    pub(super) fn open(&self, event: Event, gate: Option<&Gate>) {
        // Relaxed, here and below: the control lock orders these.
        if self.0[event.index()].fetch_add(1, Ordering::Relaxed) == 0
            && let Some(gate) = gate
        {
            gate.open_for(event);
        }
    }

    /// Counts one window of `event` less and shuts the gate behind the last; the result is that of [`Gate::shut`].
    #[must_use]
    pub(super) fn close(&self, event: Event, gate: &Gate) -> usize {
        if self.0[event.index()].fetch_sub(1, Ordering::Relaxed) == 1 { gate.shut_for(event) } else { 0 }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Nobody can raise anything here any more.
        if self.shut() > 0 {
            hold_fast_path(false);
        }
    }
}
