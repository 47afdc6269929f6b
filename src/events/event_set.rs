//! Sets of event types.

use super::Event;
use super::table::{CATALOG, EVENTS};
use crate::limits::EVENT_TYPES;

const WORDS: usize = EVENT_TYPES.div_ceil(u64::BITS as usize);

/// A set of event types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSet([u64; WORDS]);

impl EventSet {
    /// No event type.
    pub const NONE: EventSet = EventSet([0; WORDS]);
    /// Every event type of the table.
    pub const ALL: EventSet = EventSet::of_table(false);
    /// What PERUSE has.
    pub const PERUSE: EventSet = EventSet::of_table(true);

    const fn of_table(only_peruse: bool) -> EventSet {
        let (mut set, mut index) = (EventSet::NONE, 0);
        while index < EVENTS {
            if !only_peruse || CATALOG[index].peruse.is_some() {
                set = set.with(CATALOG[index].event);
            }
            index += 1;
        }
        set
    }

    const fn bit(event: Event) -> (usize, u64) {
        (event.index() / u64::BITS as usize, 1 << (event.index() % u64::BITS as usize))
    }

    /// The set with `event` too.
    #[must_use]
    pub const fn with(mut self, event: Event) -> EventSet {
        let (word, bit) = EventSet::bit(event);
        self.0[word] |= bit;
        self
    }

    /// The set without `event`.
    #[must_use]
    pub const fn without(mut self, event: Event) -> EventSet {
        let (word, bit) = EventSet::bit(event);
        self.0[word] &= !bit;
        self
    }

    /// Whether `event` is in it.
    #[must_use]
    pub const fn has(self, event: Event) -> bool {
        let (word, bit) = EventSet::bit(event);
        self.0[word] & bit != 0
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == EventSet::NONE
    }

    /// Its event types, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| {
            let rest = |bits: &u64| (bits & (bits - 1) != 0).then_some(bits & (bits - 1));
            let all = core::iter::successors((bits != 0).then_some(bits), rest);
            all.map(move |bits| Event::new((word as u32 * u64::BITS + bits.trailing_zeros() + 1) as u16))
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::PERUSE_EVENTS;

    #[test]
    fn a_set_has_what_was_put_in_and_nothing_else() {
        let set: EventSet = [Event::ReqActivate, Event::RingFull].into_iter().collect();
        assert!(set.has(Event::RingFull) && !set.has(Event::ReqNotify) && !set.is_empty());
        assert_eq!(set.iter().collect::<Vec<_>>(), [Event::ReqActivate, Event::RingFull]);
        assert_eq!(set.without(Event::RingFull), Event::ReqActivate.into());
        assert_eq!(EventSet::ALL.iter().count(), EVENTS);
        assert!(EventSet::PERUSE.iter().all(Event::is_peruse));
        assert_eq!(
            EventSet::PERUSE.iter().take_while(|event| event.number() <= PERUSE_EVENTS as i32).count(),
            PERUSE_EVENTS
        );
        let last = Event::new(EVENT_TYPES as u16);
        assert_eq!(EventSet::NONE.with(last).iter().collect::<Vec<_>>(), [last]);
    }
}
