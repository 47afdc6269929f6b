//! From a record to a receive or the unexpected queue. Called by who drives progress.

use crate::engine::Engine;
use crate::engine::message_events::{match_event, message_event, request_event, searched, searched_event};
use crate::engine::tx::unpack;
use crate::engine::{Operation, Ref, Stage};
use crate::engine::{Payload, UnexpectedMessage};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::matching::Envelope;
use crate::protocol::{Control, Kind};
use crate::request::{Status, Then};
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;

impl Engine {
    /// Acts on one record that `from` (a rank of the job) sent. `SHARED` is [`Engine::shared`].
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the record makes no sense here: the ring is spoiled.
    #[inline(always)]
    pub(crate) fn handle<const SHARED: bool>(&self, from: u32, header: &Header, data: &[u8]) -> Result<()> {
        if header.kind == Kind::Eager as u8 && self.arrive_alone::<SHARED>(from, header, data) {
            return Ok(());
        }
        self.handle_rare(from, header, data)
    }

    #[inline(never)]
    fn handle_rare(&self, from: u32, header: &Header, data: &[u8]) -> Result<()> {
        let Some(kind) = Kind::of(header.kind) else {
            return Err(corrupt(from, format!("unknown kind of record {}", header.kind)));
        };
        match kind {
            Kind::Eager => self.arrive(from, header, data, false),
            Kind::EagerSync => self.arrive(from, header, data, true),
            Kind::Announce => self.arrive_announced(from, header, Control::read(data)),
            Kind::Ack => self.on_ack(from, header.id),
            Kind::Clear => self.on_clear(from, header.id, Control::read(data)),
            Kind::Chunk => self.on_chunk(from, header.id, data),
            Kind::Halves => self.on_halves(from, header.id, Control::read(data)),
            Kind::HalfDone => self.on_half_done(from, header.id, Control::read(data)),
            Kind::Fill => self.on_fill(from, header.id, Control::read(data)),
            Kind::Filled => self.on_filled(from, header.id, Control::read(data)),
            Kind::Finish => self.on_finish(from, header.id, Control::read(data)),
            Kind::Cancel => self.on_cancel(from, header),
            Kind::CancelReply => self.on_cancel_reply(from, header.id, Control::read(data)),
            Kind::Train => self.on_train(from, header, Control::read(data)),
            Kind::Piece => self.on_piece(from, data),
        }
    }

    #[inline]
    fn arrive(&self, from: u32, header: &Header, data: &[u8], synchronous: bool) -> Result<()> {
        let matched = self.match_posted(from, header, data.len(), |event_id| UnexpectedMessage {
            world: from,
            id: header.id,
            synchronous,
            event_id,
            payload: Payload::copy(data),
        })?;
        let Some(request) = matched else { return Ok(()) };
        self.deliver(request, data);
        if synchronous { self.acknowledge(from, header.id) } else { Ok(()) }
    }

    fn arrive_announced(&self, from: u32, header: &Header, control: Control) -> Result<()> {
        let [total, addr, place, _] = control.0;
        let total = usize::try_from(total).map_err(|_| corrupt(from, format!("announced {total} bytes")))?;
        let place = self.check_place(from, place, total)?;
        let matched = self.match_posted(from, header, total, |event_id| UnexpectedMessage {
            world: from,
            id: header.id,
            synchronous: false,
            event_id,
            payload: Payload::Announced { total, addr, place },
        })?;
        match matched {
            Some(request) => self.accept_large(request, header.id, total, addr, place),
            None => Ok(()),
        }
    }

    /// Looks for a receive; if there is none, keeps the message that `keep` makes.
    #[inline]
    pub(crate) fn match_posted(
        &self,
        from: u32,
        header: &Header,
        bytes: usize,
        keep: impl FnOnce(isize) -> UnexpectedMessage,
    ) -> Result<Option<Ref>> {
        let Some(context) = self.context(header.context) else {
            return Err(corrupt(from, format!("context id {} is out of range", header.context)));
        };
        // SAFETY: an open context, or one that we have just made; closed ones go only when their communicator is freed
        // here, which a message for it must not outlive (MPI 5.0 §7.4.3: freed when all that is pending is over).
        let context = unsafe { context.as_ref() };
        let envelope = Envelope { source: header.source, tag: header.tag };
        let mut queues = context.queues.lock(self.shared);
        let (id, search) = if context.observed() { (self.fresh_id(), self.fresh_id()) } else { (0, 0) };
        message_event(context, id, Event::MsgArrived, &envelope, bytes);
        message_event(context, search, Event::SearchPostedQBegin, &envelope, bytes);
        let found = queues.posted.take(&envelope);
        let end = || searched(queues.posted.last_attempts(), found.is_some());
        searched_event(context, search, Event::SearchPostedQEnd, &envelope, bytes, end);
        let Some(request) = found else {
            let arrived = keep(id);
            self.note_unexpected(context, 1, arrived.held(), self.shared);
            queues.unexpected.insert(envelope, arrived);
            message_event(context, id, Event::MsgInsertInUnexQ, &envelope, bytes);
            return Ok(None);
        };
        self.note_posted(context, -1);
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { request.body() };
        // Under the queues, where who cancels looks.
        body.stage = Stage::Idle;
        body.peer = header.source as i32;
        body.tag = header.tag;
        body.world = from;
        body.total = bytes;
        match_event(context, id, body);
        request_event(context, request, Event::ReqRemoveFromPostedQ);
        Ok(Some(request))
    }

    /// Copies a whole message to its receive and completes it.
    #[inline]
    pub(crate) fn deliver(&self, request: Ref, data: &[u8]) {
        // SAFETY: request rule 2: matched, so it belongs to who holds the message.
        let body = unsafe { request.body() };
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { body.context.expect("an active receive").as_ref() };
        let taken = data.len().min(body.bytes);
        request_event(context, request, Event::ReqXferBegin);
        // SAFETY: the user's buffer stays valid until the request completes; `taken` fits.
        unsafe { unpack(body, 0, &data[..taken]) };
        request_event(context, request, Event::ReqXferEnd);
        let protocol = if data.len() <= INLINE { ProtocolKind::Inline } else { ProtocolKind::Eager };
        self.count_received(protocol, taken, self.shared);
        self.finish_receive(request, data.len());
    }

    #[inline(always)]
    pub(crate) fn count_received(&self, protocol: ProtocolKind, bytes: usize, shared: bool) {
        self.telemetry().count_received(protocol, 1, bytes as u64, shared);
    }

    /// Completes a receive whose message had `sent` bytes.
    #[inline(always)]
    pub(crate) fn finish_receive(&self, request: Ref, sent: usize) {
        // SAFETY: request rule 2, as in `deliver`.
        let body = unsafe { request.body() };
        body.status =
            Status { source: body.peer, tag: body.tag, bytes: sent.min(body.bytes) as u64, ..Status::EMPTY };
        if sent > body.bytes {
            body.error = Some(Box::new(Error::Truncate { sent: sent as u64, room: body.bytes as u64 }));
        }
        self.finish(request);
    }

    /// Completes a request: the engine's last touch (request rule 3).
    #[inline]
    pub(crate) fn finish(&self, request: Ref) {
        // SAFETY: request rule 2: the caller has it.
        let body = unsafe { request.body() };
        body.stage = Stage::Done;
        if let Some(context) = body.context {
            // SAFETY: the request counts as pending on the context.
            request_event(unsafe { context.as_ref() }, request, Event::ReqComplete);
        }
        self.complete(request, self.shared);
    }

    /// The last step of [`Self::finish`].
    #[inline(always)]
    pub(crate) fn complete(&self, request: Ref, shared: bool) {
        if shared {
            return self.complete_beside_others(request);
        }
        if request.state().complete(false) == Then::Release {
            self.release_request(request);
        }
    }

    #[inline(never)]
    fn complete_beside_others(&self, request: Ref) {
        let (then, awaited) = request.state().complete_beside_others();
        if then == Then::Release {
            self.release_request(request);
        }
        self.notify_completion(awaited);
    }

    /// Tells a synchronous sender that its message has been matched.
    pub(crate) fn acknowledge(&self, world: u32, id: u32) -> Result<()> {
        self.answer(world, Kind::Ack, id, Control::default())
    }

    /// Sends an answer about the peer's request `id`.
    pub(crate) fn answer(&self, world: u32, kind: Kind, id: u32, control: Control) -> Result<()> {
        self.send_control(
            world,
            Header { kind: kind as u8, context: 0, tag: 0, source: self.rank, id },
            control,
        )
    }

    fn on_ack(&self, from: u32, id: u32) -> Result<()> {
        let request = self.own_send(from, id, |stage| stage == Stage::AwaitsAck)?;
        self.finish(request);
        Ok(())
    }

    /// The send that a peer speaks of: ours, active, to that peer, and at a stage that the answer fits.
    pub(crate) fn own_send(&self, from: u32, id: u32, fits: impl FnOnce(Stage) -> bool) -> Result<Ref> {
        self.own_request(from, id, Operation::Send, fits)
    }

    /// The request that a peer speaks of, checked as [`Self::own_send`] does.
    pub(crate) fn own_request(
        &self,
        from: u32,
        id: u32,
        operation: Operation,
        fits: impl FnOnce(Stage) -> bool,
    ) -> Result<Ref> {
        let wrong = || corrupt(from, format!("an answer about request {id}, which waits for none"));
        let request =
            self.requests.get(id as usize).filter(|request| request.state().is_active()).ok_or_else(wrong)?;
        // SAFETY: request rule 2: an active request that awaits a peer's answer belongs to progress, which we drive; one
        // that awaits none is only read here, and the record is refused.
        let body = unsafe { request.body() };
        if body.operation == operation && body.world == from && fits(body.stage) {
            Ok(request)
        } else {
            Err(wrong())
        }
    }
}

/// What a spoiled ring is called.
#[cold]
pub(crate) fn corrupt(rank: u32, what: String) -> Error {
    Error::Corrupt { rank, what }
}
