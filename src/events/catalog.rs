//! The catalogue: every event perusal knows, in one table. Names, numbers and documentation come from here alone.

use core::ffi::CStr;

/// An event descriptor: a phase in the life of a request or message (PERUSE 2.0 §4.3, §4.4).
///
/// The discriminant is the number that the C face shows; 0 is PERUSE_EVENT_INVALID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Event {
    /// PERUSE_COMM_REQ_ACTIVATE.
    ReqActivate = 1,
    /// PERUSE_COMM_REQ_MATCH_UNEX.
    ReqMatchUnex,
    /// PERUSE_COMM_REQ_INSERT_IN_POSTED_Q.
    ReqInsertInPostedQ,
    /// PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q.
    ReqRemoveFromPostedQ,
    /// PERUSE_COMM_REQ_XFER_BEGIN.
    ReqXferBegin,
    /// PERUSE_COMM_REQ_XFER_END.
    ReqXferEnd,
    /// PERUSE_COMM_REQ_COMPLETE.
    ReqComplete,
    /// PERUSE_COMM_REQ_NOTIFY.
    ReqNotify,
    /// PERUSE_COMM_MSG_ARRIVED.
    MsgArrived,
    /// PERUSE_COMM_MSG_INSERT_IN_UNEX_Q.
    MsgInsertInUnexQ,
    /// PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q.
    MsgRemoveFromUnexQ,
    /// PERUSE_COMM_MSG_MATCH_POSTED_REQ.
    MsgMatchPostedReq,
    /// PERUSE_COMM_SEARCH_POSTED_Q_BEGIN.
    SearchPostedQBegin,
    /// PERUSE_COMM_SEARCH_POSTED_Q_END.
    SearchPostedQEnd,
    /// PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN, also spelled PERUSE_COMM_SEARCH_UNEX_Q_BEGIN.
    SearchUnexQBegin,
    /// PERUSE_COMM_SEARCH_UNEX_Q_END.
    SearchUnexQEnd,
    /// PERUSE_COMM_REQ_XFER_CONTINUE, numbered PERUSE_FIRST_CUSTOM_EVENT.
    ReqXferContinue,
}

/// How many events there are; they are numbered from 1 to this.
pub const EVENTS: usize = 17;

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
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct Row {
    /// The event that the row describes.
    pub event: Event,
    /// The name that queries give out.
    pub name: &'static CStr,
    /// Other spellings that [`Event::by_name`] takes.
    pub aliases: &'static [&'static CStr],
    /// One sentence for people.
    pub description: &'static str,
    /// What the unique id stands for. All events of the catalogue bind to communicators.
    pub identity: Identity,
    /// Where in the engine it is raised.
    pub fires: &'static str,
}

macro_rules! rows {
    ($($event:ident $name:literal $([$alias:literal])? $identity:ident: $text:literal; $fires:literal)*) => {
        [$(Row {
            event: Event::$event,
            name: $name,
            aliases: &[$($alias)?],
            description: $text,
            identity: Identity::$identity,
            fires: $fires,
        }),*]
    };
}

/// The catalogue, in the order of the events' numbers.
pub static CATALOG: [Row; EVENTS] = rows! {
    ReqActivate c"PERUSE_COMM_REQ_ACTIVATE" Request:
        "a send or receive request becomes active"; "p2p: entry of every send and receive verb, start of a persistent request"
    ReqMatchUnex c"PERUSE_COMM_REQ_MATCH_UNEX" Request:
        "a receive request is matched to a message of the unexpected queue"; "p2p: a receive is posted and finds its message"
    ReqInsertInPostedQ c"PERUSE_COMM_REQ_INSERT_IN_POSTED_Q" Request:
        "a receive request found no message and enters the posted queue"; "p2p: a receive is posted and finds none"
    ReqRemoveFromPostedQ c"PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q" Request:
        "a receive request leaves the posted queue: matched, or cancelled"; "progress: a message finds its receive; p2p: cancel"
    ReqXferBegin c"PERUSE_COMM_REQ_XFER_BEGIN" Request:
        "the first byte of the request's message is scheduled or has come"; "wire: first payload byte, control records excluded"
    ReqXferEnd c"PERUSE_COMM_REQ_XFER_END" Request:
        "the last byte of the request's message is scheduled or has come"; "wire: last payload byte"
    ReqComplete c"PERUSE_COMM_REQ_COMPLETE" Request:
        "the request is complete inside the library"; "request: transition to complete"
    ReqNotify c"PERUSE_COMM_REQ_NOTIFY" Request:
        "the user is told of the completion"; "p2p: wait, test, and the return of blocking verbs"
    MsgArrived c"PERUSE_COMM_MSG_ARRIVED" Message:
        "a message that takes part in matching has arrived"; "progress: an envelope is taken from a ring"
    MsgInsertInUnexQ c"PERUSE_COMM_MSG_INSERT_IN_UNEX_Q" Message:
        "a message found no posted receive and enters the unexpected queue"; "progress: after the search of the posted queue"
    MsgRemoveFromUnexQ c"PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q" Message:
        "a message leaves the unexpected queue"; "p2p: a receive or matched probe takes it"
    MsgMatchPostedReq c"PERUSE_COMM_MSG_MATCH_POSTED_REQ" Message:
        "a message is matched to a posted receive on arrival"; "progress: after the search of the posted queue"
    SearchPostedQBegin c"PERUSE_COMM_SEARCH_POSTED_Q_BEGIN" PostedSearch:
        "the search of the posted queue for an incoming message begins"; "matching, by way of progress"
    SearchPostedQEnd c"PERUSE_COMM_SEARCH_POSTED_Q_END" PostedSearch:
        "the search of the posted queue for an incoming message ends"; "matching, by way of progress"
    SearchUnexQBegin c"PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN" [c"PERUSE_COMM_SEARCH_UNEX_Q_BEGIN"] UnexpectedSearch:
        "the search of the unexpected queue for a receive begins"; "matching, by way of p2p"
    SearchUnexQEnd c"PERUSE_COMM_SEARCH_UNEX_Q_END" [c"PERUSE_COMM_SEARCH_UNEX_QUEUE_END"] UnexpectedSearch:
        "the search of the unexpected queue for a receive ends"; "matching, by way of p2p"
    ReqXferContinue c"PERUSE_COMM_REQ_XFER_CONTINUE" Request:
        "a further piece of a large message is scheduled or has come"; "wire: each payload chunk after the first"
};

impl Event {
    /// The event of this number, if there is one.
    #[must_use]
    pub fn by_number(number: i32) -> Option<Event> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        CATALOG.get(index).map(|row| row.event)
    }

    /// The event of this name, in any of its spellings.
    #[must_use]
    pub fn by_name(name: &CStr) -> Option<Event> {
        CATALOG.iter().find(|row| row.name == name || row.aliases.contains(&name)).map(|row| row.event)
    }

    /// The event's number: 1 to [`EVENTS`].
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The event's row of the catalogue.
    #[must_use]
    pub fn row(self) -> &'static Row {
        &CATALOG[self.index()]
    }

    /// The event's place in tables: 0 to `EVENTS - 1`.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }

    /// The event's bit in a [`Gate`](super::Gate)'s mask.
    #[inline(always)]
    pub(crate) const fn bit(self) -> u32 {
        1 << self.index()
    }
}

const _: () = assert!(EVENTS <= u32::BITS as usize, "a gate's mask has one bit for each event");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_numbers() {
        for (index, row) in CATALOG.iter().enumerate() {
            assert_eq!(row.event.index(), index, "{:?}", row.name);
            assert_eq!(Event::by_number(row.event.number()), Some(row.event));
        }
    }

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
    fn numbers_and_names_outside_the_table_are_no_events() {
        for number in [i32::MIN, -1, 0, EVENTS as i32 + 1, i32::MAX] {
            assert_eq!(Event::by_number(number), None);
        }
        for name in [c"", c"PERUSE_COMM_REQ_ACTIVATE ", c"peruse_comm_req_activate", c"PERUSE_EVENT_INVALID"]
        {
            assert_eq!(Event::by_name(name), None);
        }
    }
}
