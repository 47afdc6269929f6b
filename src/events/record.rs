//! What is told of one event, and who may listen to all of them.

use super::spec::Spec;
use super::{CATALOG, Event};

/// A set of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSet(u32);

impl EventSet {
    /// No event.
    pub const NONE: EventSet = EventSet(0);
    /// Every event of the catalogue.
    pub const ALL: EventSet = EventSet(u32::MAX >> (u32::BITS as usize - super::EVENTS));
    /// What the PERUSE face shows.
    pub const PERUSE: EventSet = EventSet(u32::MAX >> (u32::BITS as usize - super::PERUSE_EVENTS));

    /// The set with `event` too.
    #[must_use]
    pub const fn with(self, event: Event) -> EventSet {
        EventSet(self.0 | event.bit())
    }

    /// The set without `event`.
    #[must_use]
    pub const fn without(self, event: Event) -> EventSet {
        EventSet(self.0 & !event.bit())
    }

    /// Whether `event` is in it.
    #[must_use]
    pub const fn has(self, event: Event) -> bool {
        self.0 & event.bit() != 0
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its events, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        CATALOG.iter().map(|row| row.event).filter(move |event| self.has(*event))
    }
}

impl From<Event> for EventSet {
    fn from(event: Event) -> EventSet {
        EventSet::NONE.with(event)
    }
}

impl FromIterator<Event> for EventSet {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> EventSet {
        events.into_iter().fold(EventSet::NONE, EventSet::with)
    }
}

/// What is told of one event, whatever its kind. It lies on the stack of who raises it.
#[derive(Debug, Clone, Copy)]
pub struct EventRecord<'a> {
    /// Which event.
    pub event: Event,
    /// Relates events: see [`Identity`](super::Identity).
    pub id: isize,
    /// Context id of the communicator (even: point-to-point); [`EventRecord::NO_CONTEXT`] if the event has none.
    pub context: u32,
    /// The request or message; [`Spec::NOTHING`] if the event has none.
    pub spec: &'a Spec,
    /// What this kind of event tells besides.
    pub payload: EventPayload<'a>,
}

impl<'a> EventRecord<'a> {
    /// The context of an event without a communicator.
    pub const NO_CONTEXT: u32 = u32::MAX;

    /// A record without context and payloads.
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

/// What a kind of event tells besides the [`Spec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPayload<'a> {
    /// Nothing.
    None,
    /// A collective operation.
    Coll {
        /// A [`Collective`](super::Collective).
        operation: u16,
        /// An [`Algorithm`](super::Algorithm); at the beginning it may be unknown.
        algorithm: u16,
        /// A [`CollMode`](super::CollMode).
        mode: u8,
        /// Bytes that this rank contributes, or gets if it contributes nothing.
        bytes: u64,
    },
    /// A copy engine at work.
    Copy {
        /// 0 chunks, 1 read, 2 halves, 3 direct.
        engine: u8,
        /// Bytes to move; at the end, bytes moved.
        bytes: u64,
        /// The other rank, in the job.
        peer: u32,
    },
    /// Sleep and waking.
    Sleep {
        /// What is waited for: `shm::telemetry::Waiting` as a number; 0 if that is not known.
        waiting: u8,
        /// For which rank of the job; `u32::MAX` for any or several.
        peer: u32,
    },
    /// A full ring.
    Ring {
        /// The ring's receiver, in the job.
        peer: u32,
        /// Records and messages that wait for room there.
        waiting: u32,
    },
    /// A communicator.
    Comm {
        /// Its ranks; of an intercommunicator, the remote ones.
        size: u32,
        /// Job rank of each of them.
        group: &'a [u32],
    },
    /// A name; what is no UTF-8 in it is replaced.
    Name(&'a str),
    /// An error.
    Error {
        /// Its class.
        class: i32,
        /// Its code.
        code: i32,
    },
    /// Where a rank runs.
    Placement {
        /// The lowest CPU that it may run on; `u32::MAX` if that is not known.
        cpu: u32,
        /// 0: on any CPU of the machine; 1: it is bound to some of them.
        policy: u8,
    },
    /// A cancel takes the receive out of the posted queue, not a message.
    Cancelled,
    /// The end of a search.
    Search {
        /// Queue entries that were compared.
        depth: u32,
        /// Whether something was found.
        hit: bool,
    },
}

/// A listener to events of all communicators, those to come included, and of the engine's own.
///
/// # Contract
/// - `on_event` runs on the thread that passes the site, perhaps with the locks held that [`crate::engine`] names. It must not block.
/// - It must not call MPI: such a call gets an error. What it causes inside the engine is not told to anybody.
/// - It may use everything in [`crate::events`]: register, release, tap, drop its own [`GlobalSubscription`](super::GlobalSubscription).
/// - It may run on several threads at once, if the job has MPI_THREAD_MULTIPLE.
/// - A panic ends the job.
/// - When its handle has been dropped, it neither runs nor will run. (Dropped inside of `on_event`, or by the owner of the PERUSE
///   lock: no call begins any more, and the last one to end lets the tap go.)
pub trait GlobalSubscriber: Send + Sync {
    /// Something has happened. What is borrowed is gone when this returns.
    fn on_event(&self, record: &EventRecord<'_>);
}

impl<F: Fn(&EventRecord<'_>) + Send + Sync> GlobalSubscriber for F {
    fn on_event(&self, record: &EventRecord<'_>) {
        self(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_nothing_else() {
        let set: EventSet = [Event::ReqActivate, Event::RingFull].into_iter().collect();
        assert!(set.has(Event::RingFull) && !set.has(Event::ReqNotify) && !set.is_empty());
        assert_eq!(set.iter().collect::<Vec<_>>(), [Event::ReqActivate, Event::RingFull]);
        assert_eq!(set.without(Event::RingFull), Event::ReqActivate.into());
        assert_eq!(EventSet::ALL.iter().count(), crate::events::EVENTS);
        assert!(EventSet::PERUSE.iter().all(Event::is_peruse));
        assert_eq!(EventSet::PERUSE.iter().count(), crate::events::PERUSE_EVENTS);
    }
}
