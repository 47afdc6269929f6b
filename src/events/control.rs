//! What the control side keeps of handles, under its lock.

use super::callback::OwnedCallback;
use super::comm_events::CommEvents;
use super::slots::HandleSlot;
use super::{Event, EventSet, Handle};
use crate::sync::Ordering;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub(super) struct ControlState {
    /// One for each slot that was ever used, at the slot's index.
    pub(super) entries: Vec<HandleEntry>,
    /// Indices of free slots.
    pub(super) free: Vec<usize>,
    /// Every communicator that was attached and is still there, and perhaps some that are not.
    pub(super) comms: Vec<Weak<CommEvents>>,
    /// Handles that are released and not retired, because a dispatch was inside (event rule 5).
    pub(super) releasing: Vec<Handle>,
    /// Whether dispatches that end are requested to settle what this registry waits for.
    pub(super) wants_settling: bool,
    /// Gates that have shut and still hold the fast path back: a callback may be running that came through one.
    pub(super) shut_gates: usize,
    /// Threads that are dropping what retired handles owned.
    pub(super) dropping: usize,
}

impl ControlState {
    pub(super) fn comms(&self) -> impl Iterator<Item = Arc<CommEvents>> {
        self.comms.iter().filter_map(Weak::upgrade)
    }

    /// Notes a communicator; those that are gone are forgotten before the list grows.
    pub(super) fn note(&mut self, comm: &Arc<CommEvents>) {
        if self.comms.len() == self.comms.capacity() {
            self.comms.retain(|weak| weak.strong_count() > 0);
        }
        self.comms.push(Arc::downgrade(comm));
    }

    /// All global subscribers: the index of the slot, and what they listen to.
    pub(super) fn global_subscribers(&self) -> impl Iterator<Item = (usize, EventSet)> {
        self.entries.iter().map(|entry| entry.global_events).enumerate()
    }
}

/// What the control side keeps of one handle.
#[derive(Default)]
pub(super) struct HandleEntry {
    /// The communicator that the handle was registered with.
    pub(super) home: Weak<CommEvents>,
    /// Every communicator that it listens on while it is active, `home` among them.
    pub(super) attached: Vec<Weak<CommEvents>>,
    pub(super) propagate: bool,
    /// What it listens to on all communicators, if it is a global subscriber that is not released.
    pub(super) global_events: EventSet,
    /// Callbacks that were replaced while a dispatch may have been inside one.
    pub(super) replaced: Vec<OwnedCallback>,
}

impl HandleEntry {
    pub(super) fn attached(&self) -> impl Iterator<Item = Arc<CommEvents>> {
        self.attached.iter().filter_map(Weak::upgrade)
    }
    pub(super) fn is_attached_to(&self, comm: &CommEvents) -> bool {
        self.attached.iter().any(|weak| core::ptr::eq(weak.as_ptr(), comm))
    }
}

/// What a global subscriber's slot has in the place of an event type.
pub(super) const NO_EVENT: u32 = 0;

/// The event type of the slot's handle; none if that is a global subscriber.
pub(super) fn event_of(slot: &HandleSlot) -> Option<Event> {
    // Acquire: pairs with Release in `occupy`.
    let code = slot.event.load(Ordering::Acquire) as u16;
    (code != 0).then(|| Event::new(code))
}
