//! The record of one event, and what receives the records of all communicators.

use super::Event;
use super::spec::Spec;
use super::table::EventPayload;

/// The record of one event, of whatever type. It lies on the stack of the site that emits it.
#[derive(Debug, Clone, Copy)]
pub struct EventRecord<'a> {
    /// The type of event.
    pub event: Event,
    /// Relates events: see [`Identity`](super::Identity).
    pub id: isize,
    /// Context id of the communicator (even: point-to-point); [`EventRecord::NO_CONTEXT`] if the event has none.
    pub context: u32,
    /// The request or message; [`Spec::NOTHING`] if the event has none.
    pub spec: &'a Spec,
    /// What this type of event carries besides.
    pub payload: EventPayload<'a>,
}

impl<'a> EventRecord<'a> {
    /// The context of an event without a communicator.
    pub const NO_CONTEXT: u32 = u32::MAX;

    /// A record without context and payload.
    #[must_use]
    pub const fn new(event: Event, id: isize, spec: &'a Spec) -> EventRecord<'a> {
        EventRecord { event, id, context: EventRecord::NO_CONTEXT, spec, payload: EventPayload::None }
    }

    /// A record of the engine's own, without id.
    #[must_use]
    pub const fn of_engine(event: Event, payload: EventPayload<'a>) -> EventRecord<'a> {
        EventRecord { event, id: 0, context: EventRecord::NO_CONTEXT, spec: &Spec::NOTHING, payload }
    }
}

/// Receives the records of events of all communicators, those to come included, and of the engine's own.
///
/// # Contract
/// - `on_event` runs on the thread that passes the site, which may hold locks of the engine. It must not block.
/// - It must not call MPI: such a call returns an error. What it causes inside the engine emits no events.
/// - It may use everything in [`crate::events`]: register, release, subscribe, drop its own
///   [`GlobalSubscription`](super::GlobalSubscription).
/// - It may run on several threads at once, if the job has MPI_THREAD_MULTIPLE.
/// - A panic ends the job.
/// - Once its subscription has been dropped, it neither runs nor will run. (If it is dropped inside `on_event`, or by
///   the owner of the PERUSE lock, no call begins any more, and the last call to end drops the subscriber.)
pub trait GlobalSubscriber: Send + Sync {
    /// Receives one record. What it borrows is gone when this returns.
    fn on_event(&self, record: &EventRecord<'_>);
}

impl<F: Fn(&EventRecord<'_>) + Send + Sync> GlobalSubscriber for F {
    fn on_event(&self, record: &EventRecord<'_>) {
        self(record);
    }
}
