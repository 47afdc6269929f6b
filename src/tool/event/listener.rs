//! The listeners of a registration: what the registry owns of it, one form at a time.

use super::buffer_chain::EventBuffer;
use super::delivery;
use super::instance::{self, QueuedEvent};
use super::registration::{EventFunction, Registration};
use super::types::ToolEventType;
use crate::events::{EventRecord, HazardRecord, Listener};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::sync::Arc;

/// What all listeners of a registration share: dropped when none of them runs or will run.
#[derive(Debug)]
pub(super) struct ListenerGuard(pub(super) Arc<Registration>);

/// Calls a tool's function where the event happens. It holds all that such a call takes, side by side.
pub(super) struct ImmediateListener {
    pub(super) function: EventFunction,
    pub(super) data: *mut c_void,
    pub(super) number: usize,
    pub(super) level: c_int,
    pub(super) event_type: &'static ToolEventType,
    pub(super) _of: Arc<ListenerGuard>,
}

// SAFETY: function and data are words that only the tool's callback interprets; `level` says from which threads it may
// be called (MPI 5.0 §15.3.8). All other fields are Send and Sync.
unsafe impl Send for ImmediateListener {}
// SAFETY: no field changes after construction; `level` says from which threads the callback may be given `data`
// (MPI 5.0 §15.3.8).
unsafe impl Sync for ImmediateListener {}

impl Listener for ImmediateListener {
    #[inline(always)]
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord) {
        let instance = instance::of_immediate(hazard, record);
        // SAFETY: the tool registered the function to be called with this data at this level; the record, which the
        // instance names, lives until it returns.
        unsafe { (self.function)(instance, self.number, self.level, self.data) };
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(self.event_type).cast())
    }
}

/// An [`ImmediateListener`] of a type that accepts only some records of its event.
pub(super) struct FilteredListener(pub(super) ImmediateListener);

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

/// Puts events into a buffer.
pub(super) struct BufferedListener {
    pub(super) into: Arc<EventBuffer<QueuedEvent>>,
    pub(super) of: Arc<ListenerGuard>,
}

impl Listener for BufferedListener {
    // Out of line: to call a tool's function at once needs less of the stack.
    #[inline(never)]
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord) {
        let event_type = self.of.0.event_type;
        if event_type.has_filter() && !event_type.accepts(record) {
            return;
        }
        if !self.into.push(QueuedEvent::of(record, instance::observed(hazard))) {
            delivery::note_drop();
        }
        delivery::something_waits();
    }

    fn subject_type(&self) -> Option<NonNull<c_void>> {
        Some(NonNull::from(self.of.0.event_type).cast())
    }
}

/// Counts events as dropped: there is no buffer, and no function that may be called at once.
pub(super) struct CountingListener(pub(super) Arc<ListenerGuard>);

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

/// The listener that a registration has in the registry at present.
pub(super) enum ListenerForm {
    Immediate(ImmediateListener),
    Filtered(FilteredListener),
    Buffered(BufferedListener),
    Counting(CountingListener),
}

/// Evaluates `$with` for the listener in `$form`, of whichever type.
macro_rules! with_listener {
    ($form:expr, $listener:ident => $with:expr) => {
        match $form {
            ListenerForm::Immediate($listener) => $with,
            ListenerForm::Filtered($listener) => $with,
            ListenerForm::Buffered($listener) => $with,
            ListenerForm::Counting($listener) => $with,
        }
    };
}
pub(super) use with_listener;

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        // If not, the registry had no handle left, and there is nothing to end.
        if self.0.is_closing() {
            self.0.settle();
        }
    }
}
