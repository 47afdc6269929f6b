//! What an event type is: a number that leads to a row of the table.

use super::table::{CATALOG, Field, PayloadKind};
use crate::limits::EVENT_TYPES;
use crate::variables::Category;
pub use crate::variables::Verbosity;
use core::ffi::CStr;
use core::num::NonZeroU16;

/// An event type: a phase in the life of a request or message (PERUSE 2.0 §4.3, §4.4),
/// or something that the engine does.
///
/// It is the number of a row of [`CATALOG`]. Trace files have it as their code, and 0 is PERUSE_EVENT_INVALID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(NonZeroU16);

/// What one listens on to receive an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// One communicator, or all of them.
    Communicator,
    /// One window, or all of them.
    Window,
    /// One file, or all of them.
    File,
    /// Nothing: the event is the engine's own.
    Nothing,
}

/// What an event's unique id identifies, from which event to which (PERUSE 2.0 §5.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A request, from REQ_ACTIVATE to REQ_NOTIFY.
    Request,
    /// An incoming message, from MSG_ARRIVED to MSG_REMOVE_FROM_UNEX_Q or MSG_MATCH_POSTED_REQ.
    Message,
    /// One search of the posted queue, from its BEGIN to its END.
    PostedSearch,
    /// One search of the unexpected queue, from its BEGIN to its END.
    UnexpectedSearch,
    /// One collective operation, from CollBegin to CollEnd.
    Collective,
    /// The request whose message a copy engine moves, from CopyBegin to CopyEnd.
    Copy,
    /// A one-sided operation, from WIN_REQ_ACTIVATE to WIN_REQ_COMPLETE.
    OneSided,
    /// A call that synchronises a window, from WIN_SYNC_BEGIN to WIN_SYNC_END, and the waits for locks in it.
    Synchronization,
    /// An access to a file, from FILE_REQ_ACTIVATE to FILE_REQ_COMPLETE, and what happens for it.
    FileAccess,
    /// A spawn of processes, from SPAWN_BEGIN to SPAWN_END.
    Spawn,
    /// Nothing: the id is 0.
    Nothing,
}

/// How a trace's exporters show an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As the beginning, the end or a point of something that an exporter knows: a request, a search, a sleep.
    Paired,
    /// As a point in time with its label and its payload.
    Instant,
}

/// One row of the table: all that there is to know about an event type.
#[derive(Debug)]
pub struct EventInfo {
    /// The event type that the row describes.
    pub event: Event,
    /// The name that queries return.
    pub name: &'static CStr,
    /// Other spellings that [`Event::by_name`] takes.
    pub aliases: &'static [&'static CStr],
    /// Its number in `peruse.h`, if PERUSE has it.
    pub peruse: Option<i32>,
    /// One sentence for people.
    pub description: &'static str,
    /// What the unique id stands for.
    pub identity: Identity,
    /// Where in the engine it is emitted.
    pub fires: &'static str,
    /// What one listens on to receive it.
    pub binding: Binding,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// Its branch of the tree of categories.
    pub category: Category,
    /// What its records hold, in this order: [`EventRecord::read`](super::EventRecord::read) returns each.
    pub fields: &'static [Field],
    /// Which payload its records carry.
    pub payload: PayloadKind,
    /// How exporters show it.
    pub shown: Shown,
}

impl EventInfo {
    /// Whether its records are those of a request, a message or a search, and so have peer, tag and bytes.
    #[must_use]
    pub const fn is_of_message(&self) -> bool {
        use Identity::{Message, PostedSearch, Request, UnexpectedSearch};
        matches!(self.identity, Request | Message | PostedSearch | UnexpectedSearch)
    }

    /// What exports call it: the name without the prefix that all names have, in small letters.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.name.to_string_lossy();
        let short =
            ["PERUSE_COMM_", "PERUSE_", "PERUSAL_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        short.unwrap_or(&name).to_ascii_lowercase()
    }
}

impl Event {
    /// The event type of row `number`, counted from 1, of whatever table.
    ///
    /// # Panics
    /// Where the number is 0 or beyond [`EVENT_TYPES`]: when a table is compiled.
    pub(super) const fn new(number: u16) -> Event {
        assert!(number as usize <= EVENT_TYPES, "listeners and gates have room for so many event types");
        match NonZeroU16::new(number) {
            Some(number) => Event(number),
            None => panic!("event types are counted from 1"),
        }
    }

    /// The event type of this number, if there is one.
    #[must_use]
    pub fn by_number(number: i32) -> Option<Event> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        CATALOG.get(index).map(|info| info.event)
    }

    /// The event type that has this number in `peruse.h`, if there is one.
    #[must_use]
    pub fn by_peruse_number(number: i32) -> Option<Event> {
        CATALOG.iter().find(|info| info.peruse == Some(number)).map(|info| info.event)
    }

    /// The event type of this name, in any of its spellings.
    #[must_use]
    pub fn by_name(name: &CStr) -> Option<Event> {
        CATALOG.iter().find(|info| info.name == name || info.aliases.contains(&name)).map(|info| info.event)
    }

    /// Whether PERUSE has it.
    #[must_use]
    pub const fn is_peruse(self) -> bool {
        CATALOG[self.index()].peruse.is_some()
    }

    /// Its number: 1 to [`EVENTS`](super::EVENTS).
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0.get() as i32
    }

    /// Its number, as trace files have it.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.0.get()
    }

    /// Its row of the table.
    #[must_use]
    pub fn info(self) -> &'static EventInfo {
        &CATALOG[self.index()]
    }

    /// Its place in tables, from 0.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl core::fmt::Debug for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match CATALOG.get(self.index()) {
            Some(info) => f.write_str(&info.name.to_string_lossy()),
            None => write!(f, "event type {}", self.0),
        }
    }
}

/// A string literal that ends with a zero, as C has it.
///
/// # Panics
/// If it does not: when a table is compiled.
pub(super) const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a zero at the end, and nowhere else"),
    }
}

/// Declares event types; see `table`.
macro_rules! event_types {
    ($(
        $event:ident = $number:literal, $name:literal $(or $alias:literal)? $(peruse $peruse:literal)? {
            binding: $binding:ident, verbosity: $verbosity:ident, category: $category:ident, identity: $identity:ident,
            fields: $fields:expr, payload: $payload:ident, shown: $shown:ident,
            what: $what:literal,
            fires: $fires:literal,
        }
    )*) => {
        /// The event types of the table.
        #[allow(non_upper_case_globals)]
        impl Event {
            $(#[doc = concat!("`", $name, "`: ", $what, ".")]
            pub const $event: Event = Event::new($number);)*
        }

        /// The table of event types, in the order of their numbers.
        pub static CATALOG: [EventInfo; EVENTS] = [$(EventInfo {
            event: Event::$event,
            name: c_string(concat!($name, "\0")),
            aliases: &[$(c_string(concat!($alias, "\0")))?],
            peruse: event_types!(@ $($peruse)?),
            description: $what,
            identity: Identity::$identity,
            fires: $fires,
            binding: Binding::$binding,
            verbosity: Verbosity::$verbosity,
            category: Category::$category,
            fields: $fields,
            payload: PayloadKind::$payload,
            shown: Shown::$shown,
        }),*];

        /// How many event types there are; they are numbered from 1 to this.
        pub const EVENTS: usize = [$($number),*].len();
    };
    (@) => { None };
    (@ $peruse:literal) => { Some($peruse) };
}
pub(super) use event_types;

#[cfg(test)]
mod tests {
    use super::super::{EVENTS, PERUSE_EVENTS};
    use super::*;

    #[test]
    fn every_spelling_leads_to_one_event() {
        for row in &CATALOG {
            assert_eq!(Event::by_name(row.name), Some(row.event));
            for alias in row.aliases {
                assert_eq!(Event::by_name(alias), Some(row.event));
            }
        }
        let spellings: Vec<_> = CATALOG.iter().flat_map(|r| r.aliases.iter().chain([&r.name])).collect();
        for (index, name) in spellings.iter().enumerate() {
            assert!(!spellings[index + 1..].contains(name), "{name:?} stands twice");
        }
    }

    #[test]
    fn numbers_lead_back_to_their_rows_and_the_first_are_peruses() {
        for row in &CATALOG {
            assert_eq!(Event::by_number(row.event.number()), Some(row.event));
            let own = row.peruse.map(|number| (Event::by_peruse_number(number), number));
            assert_eq!(own, row.event.is_peruse().then_some((Some(row.event), row.event.number())));
        }
        let of_comm = |row: &&EventInfo| row.event.is_peruse() && row.binding == Binding::Communicator;
        assert!(CATALOG[..PERUSE_EVENTS].iter().all(|row| of_comm(&row)));
        assert_eq!(CATALOG.iter().filter(of_comm).count(), PERUSE_EVENTS);
    }

    #[test]
    fn numbers_and_names_outside_the_table_are_no_events() {
        for number in [i32::MIN, -1, 0, EVENTS as i32 + 1, i32::MAX] {
            assert_eq!(Event::by_number(number), None);
        }
        for name in [c"", c"PERUSE_COMM_REQ_ACTIVATE ", c"peruse_comm_req_activate", c"PERUSE_EVENT_INVALID"]
        {
            assert_eq!(Event::by_name(name), None);
        }
    }

    #[test]
    fn labels_are_names_without_their_prefix() {
        assert_eq!(Event::ReqActivate.info().label(), "req_activate");
        assert_eq!(Event::RingFull.info().label(), "ring_full");
    }
}
