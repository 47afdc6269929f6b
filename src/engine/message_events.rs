//! Where events of requests and messages are emitted, and what they say (PERUSE 2.0 §4.3, §5.1.2).

use super::context::{MatchContext, UnexpectedMessage};
use super::operation::{Body, Ref, RequestOperation};
use crate::abi;
use crate::engine::Engine;
use crate::events::{Event, EventPayload, Operation as EventOperation, Spec};
use crate::matching::Envelope;

/// What events say of a request: what the user gave; of a matched receive, the real peer and tag.
#[inline(always)]
fn spec_of(comm: usize, body: &Body) -> Spec {
    Spec {
        comm,
        buf: body.user.get().0.cast(),
        count: body.count.get() as i64,
        datatype: body.user.get().1,
        peer: body.peer.get(),
        tag: body.tag.get(),
        operation: match body.operation.get() {
            RequestOperation::Send => EventOperation::Send,
            RequestOperation::Receive => EventOperation::Recv,
        },
        bytes: body.total.get() as u64,
    }
}

/// Whether a tag is one of the library's own messages on a communicator of the user's, of which no event tells. Users'
/// tags are not negative, but for MPI_ANY_TAG.
#[inline(always)]
fn is_own(tag: i32) -> bool {
    tag < 0 && tag != abi::MPI_ANY_TAG
}

/// Emits a request's event.
#[inline(always)]
pub(crate) fn request_event(context: &MatchContext, request: Ref, event: Event) {
    if context.has_listener(event) {
        emit_request(context, request, event);
    }
}

/// Emits that a cancel takes a receive out of the posted queue.
#[inline(always)]
pub(crate) fn cancelled_event(context: &MatchContext, request: Ref) {
    if context.has_listener(Event::ReqRemoveFromPostedQ) {
        let id = request.id() as isize;
        emit_request_payload(context, request, Event::ReqRemoveFromPostedQ, id, EventPayload::Cancelled);
    }
}

/// Emits the event of a search for a request's message; `id` is 0 if nobody listened when it began. `payload` is called
/// if somebody does now.
#[inline(always)]
pub(crate) fn search_event(
    context: &MatchContext,
    request: Ref,
    event: Event,
    id: isize,
    payload: impl FnOnce() -> EventPayload<'static>,
) {
    if id != 0 && context.has_listener(event) {
        emit_request_payload(context, request, event, id, payload());
    }
}

/// What the event at the end of a search says.
#[inline(always)]
pub(crate) fn searched(compared: usize, hit: bool) -> EventPayload<'static> {
    EventPayload::Search { depth: u32::try_from(compared).unwrap_or(u32::MAX), hit }
}

/// Most events have no payload, which is not handed through memory for them.
#[cold]
#[inline(never)]
fn emit_request(context: &MatchContext, request: Ref, event: Event) {
    emit(context, request, event, request.id() as isize, EventPayload::None);
}

#[cold]
#[inline(never)]
fn emit_request_payload(
    context: &MatchContext,
    request: Ref,
    event: Event,
    id: isize,
    payload: EventPayload<'_>,
) {
    emit(context, request, event, id, payload);
}

#[inline(always)]
fn emit(context: &MatchContext, request: Ref, event: Event, id: isize, payload: EventPayload<'_>) {
    // SAFETY: request rule 2: events of a request are raised by the thread that has its body; the caller holds no
    // reference that it writes through meanwhile.
    let body = unsafe { request.body() };
    // The request that carries a buffered send's copy is none that the user made: the user's has emitted its events.
    if !body.keeps_data() && !is_own(body.tag.get()) {
        context.emit(event, id, payload, |comm| spec_of(comm, body));
    }
}

/// What events say of a message that no receive is known for.
#[inline(always)]
fn message_spec(comm: usize, envelope: &Envelope, bytes: usize) -> Spec {
    Spec {
        comm,
        buf: core::ptr::null_mut(),
        count: bytes as i64,
        datatype: abi::MPI_BYTE,
        peer: envelope.source as i32,
        tag: envelope.tag,
        operation: EventOperation::Recv,
        bytes: bytes as u64,
    }
}

#[cold]
#[inline(never)]
fn emit_message(context: &MatchContext, id: isize, event: Event, envelope: &Envelope, bytes: usize) {
    if !is_own(envelope.tag) {
        context.emit(event, id, EventPayload::None, |comm| message_spec(comm, envelope, bytes));
    }
}

#[cold]
#[inline(never)]
fn emit_message_payload(
    context: &MatchContext,
    id: isize,
    event: Event,
    envelope: &Envelope,
    bytes: usize,
    found: EventPayload<'_>,
) {
    if !is_own(envelope.tag) {
        context.emit(event, id, found, |comm| message_spec(comm, envelope, bytes));
    }
}

/// A sender beyond is none: what a peer has written is not believed.
const SENDERS: u32 = 1 << 16;

/// How many messages of each member have come while somebody listened to arrivals.
#[derive(Debug, Default)]
pub(crate) struct ArrivalNumbers(Vec<u64>);

impl ArrivalNumbers {
    /// The number of the next message from `source`, from 0. Without memory for the counts all have the number 0.
    fn next(&mut self, source: u32) -> u64 {
        let place = source as usize;
        if place >= self.0.len() && source < SENDERS {
            let _ = self.0.try_reserve(place + 1 - self.0.len()).map(|()| self.0.resize(place + 1, 0));
        }
        self.0.get_mut(place).map_or(0, |next| core::mem::replace(next, *next + 1))
    }
}

/// Emits that a message has arrived; `id` is 0 if nobody listens to anything.
#[inline(always)]
pub(crate) fn arrival_event(
    context: &MatchContext,
    numbers: &mut ArrivalNumbers,
    id: isize,
    envelope: &Envelope,
    bytes: usize,
) {
    if id != 0 && context.has_listener(Event::MsgArrived) {
        emit_arrival(context, numbers, id, envelope, bytes);
    }
}

#[cold]
#[inline(never)]
fn emit_arrival(
    context: &MatchContext,
    numbers: &mut ArrivalNumbers,
    id: isize,
    envelope: &Envelope,
    bytes: usize,
) {
    if !is_own(envelope.tag) {
        let payload = EventPayload::Arrival { sequence: numbers.next(envelope.source) };
        context.emit(Event::MsgArrived, id, payload, |comm| message_spec(comm, envelope, bytes));
    }
}

/// Emits a message's event; `id` is 0 if nobody listened when it arrived, and then it has none.
#[inline(always)]
pub(crate) fn message_event(
    context: &MatchContext,
    id: isize,
    event: Event,
    envelope: &Envelope,
    bytes: usize,
) {
    if id != 0 && context.has_listener(event) {
        emit_message(context, id, event, envelope, bytes);
    }
}

/// Emits the event of the end of a search for a message's receive; `id` is 0 if nobody listened when it began. `found`
/// is called if somebody does now.
#[inline(always)]
pub(crate) fn searched_event(
    context: &MatchContext,
    id: isize,
    event: Event,
    envelope: &Envelope,
    bytes: usize,
    found: impl FnOnce() -> EventPayload<'static>,
) {
    if id != 0 && context.has_listener(event) {
        emit_message_payload(context, id, event, envelope, bytes, found());
    }
}

#[cold]
#[inline(never)]
fn emit_match(context: &MatchContext, id: isize, body: &Body) {
    if !is_own(body.tag.get()) {
        context.emit(Event::MsgMatchPostedReq, id, EventPayload::None, |comm| spec_of(comm, body));
    }
}

/// Emits that a message finds a posted receive; `body` is the receive's.
#[inline(always)]
pub(crate) fn match_event(context: &MatchContext, id: isize, body: &Body) {
    if id != 0 && context.has_listener(Event::MsgMatchPostedReq) {
        emit_match(context, id, body);
    }
}

impl Engine {
    /// Emits that a receive or probe takes a message out of the unexpected queue.
    /// One that came while nobody listened gets an id now.
    #[inline(always)]
    pub(crate) fn removal_event(
        &self,
        context: &MatchContext,
        envelope: &Envelope,
        arrived: &UnexpectedMessage,
    ) {
        if context.has_listener(Event::MsgRemoveFromUnexQ) {
            let id = self.id_of(arrived);
            message_event(context, id, Event::MsgRemoveFromUnexQ, envelope, arrived.bytes());
        }
    }

    #[inline(always)]
    fn id_of(&self, arrived: &UnexpectedMessage) -> isize {
        if arrived.event_id == 0 { self.fresh_id() } else { arrived.event_id }
    }

    /// Emits that a cancel takes a message out of the unexpected queue.
    #[cold]
    pub(crate) fn withdrawal_event(
        &self,
        context: &MatchContext,
        envelope: &Envelope,
        arrived: &UnexpectedMessage,
    ) {
        if context.has_listener(Event::MsgRemoveFromUnexQ) {
            let id = self.id_of(arrived);
            let (event, bytes) = (Event::MsgRemoveFromUnexQ, arrived.bytes());
            emit_message_payload(context, id, event, envelope, bytes, EventPayload::Cancelled);
        }
    }

    /// An id for a search, if anybody listens to anything.
    #[inline(always)]
    pub(crate) fn search_id(&self, context: &MatchContext) -> isize {
        if context.observed() { self.fresh_id() } else { 0 }
    }
}
