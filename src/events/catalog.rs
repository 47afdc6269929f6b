//! The catalogue: every event perusal knows, in one table. Names, numbers and documentation come from here alone.
//!
//! The first [`PERUSE_EVENTS`] are what the PERUSE face shows. All of them are what Rust's [`GlobalSubscriber`](super::GlobalSubscriber) and MPI_T see.

use super::field::{COLLECTIVE, COPY, Field, MESSAGE, REQUEST, SEARCH, SEARCH_END};
use core::ffi::CStr;

/// An event descriptor: a phase in the life of a request or message (PERUSE 2.0 §4.3, §4.4), or something that the engine does.
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
    /// A collective operation begins at this rank; [`EventPayload::Coll`](super::EventPayload::Coll).
    CollBegin,
    /// A collective operation is over at this rank; [`EventPayload::Coll`](super::EventPayload::Coll).
    CollEnd,
    /// MPI may be used: MPI_Init is about to return, or the first session is open.
    Initialized,
    /// MPI_Finalize has begun, or the last session closes.
    Finalizing,
    /// A communicator is there; [`EventPayload::Comm`](super::EventPayload::Comm).
    CommCreated,
    /// A communicator's handle is gone; [`EventPayload::Comm`](super::EventPayload::Comm).
    CommFreed,
    /// A communicator has got a name; [`EventPayload::Name`](super::EventPayload::Name).
    CommNamed,
    /// An error handler is about to be invoked, MPI_ERRORS_RETURN among them; [`EventPayload::Error`](super::EventPayload::Error).
    ErrhandlerInvoked,
    /// The rank knows where it runs; [`EventPayload::Placement`](super::EventPayload::Placement).
    Placed,
    /// The rank goes to sleep on its doorbell; [`EventPayload::Sleep`](super::EventPayload::Sleep).
    BellSleep,
    /// The rank is awake again; [`EventPayload::Sleep`](super::EventPayload::Sleep).
    BellWake,
    /// A copy engine begins on a large message; [`EventPayload::Copy`](super::EventPayload::Copy).
    CopyBegin,
    /// A copy engine is done, or has failed; [`EventPayload::Copy`](super::EventPayload::Copy) with the bytes that it moved.
    CopyEnd,
    /// Something waits for room in the ring to a peer; [`EventPayload::Ring`](super::EventPayload::Ring).
    RingFull,
}

/// How many events there are; they are numbered from 1 to this.
pub const EVENTS: usize = 31;

/// How many of them the PERUSE face shows: those numbered from 1 to this.
pub const PERUSE_EVENTS: usize = 17;

/// What one listens on to hear an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// One communicator, or all of them.
    Communicator,
    /// Nothing: the event is the engine's own.
    Nothing,
}

/// For whom an event is of interest, and in how much payload: the nine levels of MPI 5.0 §15.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// MPI_T_VERBOSITY_USER_BASIC.
    UserBasic,
    /// MPI_T_VERBOSITY_USER_DETAIL.
    UserDetail,
    /// MPI_T_VERBOSITY_USER_ALL.
    UserAll,
    /// MPI_T_VERBOSITY_TUNER_BASIC.
    TunerBasic,
    /// MPI_T_VERBOSITY_TUNER_DETAIL.
    TunerDetail,
    /// MPI_T_VERBOSITY_TUNER_ALL.
    TunerAll,
    /// MPI_T_VERBOSITY_MPIDEV_BASIC.
    MpidevBasic,
    /// MPI_T_VERBOSITY_MPIDEV_DETAIL.
    MpidevDetail,
    /// MPI_T_VERBOSITY_MPIDEV_ALL.
    MpidevAll,
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
    /// Nothing: the id is 0.
    Nothing,
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct EventInfo {
    /// The event that the row describes.
    pub event: Event,
    /// The name that queries give out.
    pub name: &'static CStr,
    /// Other spellings that [`Event::by_name`] takes.
    pub aliases: &'static [&'static CStr],
    /// One sentence for people.
    pub description: &'static str,
    /// What the unique id stands for.
    pub identity: Identity,
    /// Where in the engine it is raised.
    pub fires: &'static str,
    /// What one listens on to hear it.
    pub binding: Binding,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// What it tells, in this order: [`EventRecord::read`](super::EventRecord::read) gives each.
    pub elements: &'static [Field],
}

macro_rules! rows {
    ($($event:ident $name:literal $([$alias:literal])? $identity:ident $binding:ident $verbosity:ident $elements:expr,
        $text:literal; $fires:literal)*) => {
        [$(EventInfo {
            event: Event::$event,
            name: $name,
            aliases: &[$($alias)?],
            description: $text,
            identity: Identity::$identity,
            fires: $fires,
            binding: Binding::$binding,
            verbosity: Verbosity::$verbosity,
            elements: $elements,
        }),*]
    };
}

/// The catalogue, in the order of the events' numbers.
pub static CATALOG: [EventInfo; EVENTS] = rows! {
    ReqActivate c"PERUSE_COMM_REQ_ACTIVATE" Request Communicator UserBasic REQUEST,
        "a send or receive request becomes active"; "p2p: entry of every send and receive verb, start of a persistent request"
    ReqMatchUnex c"PERUSE_COMM_REQ_MATCH_UNEX" Request Communicator UserDetail REQUEST,
        "a receive request is matched to a message of the unexpected queue"; "p2p: a receive is posted and finds its message"
    ReqInsertInPostedQ c"PERUSE_COMM_REQ_INSERT_IN_POSTED_Q" Request Communicator UserDetail REQUEST,
        "a receive request found no message and enters the posted queue"; "p2p: a receive is posted and finds none"
    ReqRemoveFromPostedQ c"PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q" Request Communicator UserDetail REQUEST,
        "a receive request leaves the posted queue: matched, or cancelled"; "progress: a message finds its receive; p2p: cancel"
    ReqXferBegin c"PERUSE_COMM_REQ_XFER_BEGIN" Request Communicator UserDetail REQUEST,
        "the first byte of the request's message is scheduled or has come"; "wire: first payload byte, control records excluded"
    ReqXferEnd c"PERUSE_COMM_REQ_XFER_END" Request Communicator UserDetail REQUEST,
        "the last byte of the request's message is scheduled or has come"; "wire: last payload byte"
    ReqComplete c"PERUSE_COMM_REQ_COMPLETE" Request Communicator UserBasic REQUEST,
        "the request is complete inside the library"; "request: transition to complete"
    ReqNotify c"PERUSE_COMM_REQ_NOTIFY" Request Communicator UserDetail REQUEST,
        "the user is told of the completion"; "p2p: wait, test, and the return of blocking verbs"
    MsgArrived c"PERUSE_COMM_MSG_ARRIVED" Message Communicator UserDetail MESSAGE,
        "a message that takes part in matching has arrived"; "progress: an envelope is taken from a ring"
    MsgInsertInUnexQ c"PERUSE_COMM_MSG_INSERT_IN_UNEX_Q" Message Communicator UserBasic MESSAGE,
        "a message found no posted receive and enters the unexpected queue"; "progress: after the search of the posted queue"
    MsgRemoveFromUnexQ c"PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q" Message Communicator UserDetail MESSAGE,
        "a message leaves the unexpected queue"; "p2p: a receive or matched probe takes it"
    MsgMatchPostedReq c"PERUSE_COMM_MSG_MATCH_POSTED_REQ" Message Communicator UserDetail MESSAGE,
        "a message is matched to a posted receive on arrival"; "progress: after the search of the posted queue"
    SearchPostedQBegin c"PERUSE_COMM_SEARCH_POSTED_Q_BEGIN" PostedSearch Communicator TunerDetail SEARCH,
        "the search of the posted queue for an incoming message begins"; "matching, by way of progress"
    SearchPostedQEnd c"PERUSE_COMM_SEARCH_POSTED_Q_END" PostedSearch Communicator TunerDetail SEARCH_END,
        "the search of the posted queue for an incoming message ends"; "matching, by way of progress"
    SearchUnexQBegin c"PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN" [c"PERUSE_COMM_SEARCH_UNEX_Q_BEGIN"] UnexpectedSearch Communicator TunerDetail SEARCH,
        "the search of the unexpected queue for a receive begins"; "matching, by way of p2p"
    SearchUnexQEnd c"PERUSE_COMM_SEARCH_UNEX_Q_END" [c"PERUSE_COMM_SEARCH_UNEX_QUEUE_END"] UnexpectedSearch Communicator TunerDetail SEARCH_END,
        "the search of the unexpected queue for a receive ends"; "matching, by way of p2p"
    ReqXferContinue c"PERUSE_COMM_REQ_XFER_CONTINUE" Request Communicator UserAll REQUEST,
        "a further piece of a large message is scheduled or has come"; "wire: each payload chunk after the first"
    CollBegin c"PERUSAL_COLL_BEGIN" Collective Communicator UserBasic COLLECTIVE,
        "a collective operation begins at this rank"; "coll: before the first message of the operation"
    CollEnd c"PERUSAL_COLL_END" Collective Communicator UserBasic COLLECTIVE,
        "a collective operation is over at this rank"; "coll: after its last message"
    Initialized c"PERUSAL_INITIALIZED" Nothing Nothing UserBasic &[],
        "MPI may be used"; "MPI_Init, the first session, or Rust's init"
    Finalizing c"PERUSAL_FINALIZING" Nothing Nothing UserBasic &[],
        "the rank begins to leave the job"; "MPI_Finalize, the last session, or Rust's finish"
    CommCreated c"PERUSAL_COMM_CREATED" Nothing Nothing UserBasic &[Field::Context, Field::Communicator, Field::Size],
        "a communicator has been made"; "comm: when its handle is there"
    CommFreed c"PERUSAL_COMM_FREED" Nothing Nothing UserBasic &[Field::Context, Field::Communicator, Field::Size],
        "a communicator's handle is freed"; "comm: when its handle goes"
    CommNamed c"PERUSAL_COMM_NAMED" Nothing Nothing UserBasic &[Field::Context, Field::Communicator, Field::Name],
        "a communicator has been given a name"; "MPI_Comm_set_name"
    ErrhandlerInvoked c"PERUSAL_ERRHANDLER_INVOKED" Nothing Nothing UserBasic
        &[Field::ErrorClass, Field::ErrorCode, Field::Communicator],
        "an error handler is invoked"; "capi: before the handler, whichever it is"
    Placed c"PERUSAL_PLACED" Nothing Nothing TunerBasic &[Field::Cpu, Field::Placement],
        "the rank knows where it runs"; "when the engine starts, and when the rank has moved by itself"
    BellSleep c"PERUSAL_BELL_SLEEP" Nothing Nothing TunerDetail &[Field::Waiting, Field::World],
        "a rank that waits goes to sleep"; "progress: before the sleep, when nothing is left to do"
    BellWake c"PERUSAL_BELL_WAKE" Nothing Nothing TunerDetail &[Field::Waiting, Field::World],
        "a rank that slept is awake"; "progress: after the sleep, woken or not"
    CopyBegin c"PERUSAL_COPY_BEGIN" Copy Nothing TunerDetail COPY,
        "a copy engine begins on a large message"; "p2p: at the rank that copies; both of them for chunks, halves and a shared direct copy"
    CopyEnd c"PERUSAL_COPY_END" Copy Nothing TunerDetail COPY,
        "a copy engine is done with a large message, or has failed"; "p2p: where it began; bytes are those that were moved"
    RingFull c"PERUSAL_RING_FULL" Nothing Nothing TunerBasic &[Field::World, Field::Queued],
        "something waits for room in the ring to a peer"; "p2p: when it is put behind what waits there"
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

    /// Whether the PERUSE face shows it.
    #[must_use]
    pub const fn is_peruse(self) -> bool {
        self.index() < PERUSE_EVENTS
    }

    /// The event's number: 1 to [`EVENTS`].
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The event's row of the catalogue.
    #[must_use]
    pub fn info(self) -> &'static EventInfo {
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
