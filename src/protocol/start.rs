//! Where the verbs hand over: a request begins.

use super::deliver::{Claim, pattern};
use super::selection::{Protocol, select};
use crate::abi;
use crate::engine::message_events::{message_event, request_event, searched, searched_event};
use crate::engine::specialization::{AsStarted, Observed};
use crate::engine::{
    Data, Engine, Layout, MatchContext, Mode, RecvMemory, Ref, RequestOperation, Trouble, UnexpectedMessage,
};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::matching::Envelope;
use crate::request::MessageStatus;
use crate::ring::Room;

impl Engine {
    /// Activates a prepared send.
    ///
    /// # Errors
    ///
    /// [`crate::Error::BsendSpace`] for a buffered send without room,
    /// [`crate::Error::Segment`] when the ring's memory cannot be had.
    pub(crate) fn start_send(&self, request: Ref, mode: Mode) -> Result<()> {
        // SAFETY: request rule 2: not yet active.
        let body = unsafe { request.body() };
        let context = body.context.get().expect("prepared on a match context");
        // SAFETY: the request counts as pending on it.
        let context = unsafe { context.as_ref() };
        request.state().activate();
        request_event(context, request, Event::ReqActivate);
        if body.peer.get() == abi::MPI_PROC_NULL {
            self.requests().finish(request);
            return Ok(());
        }
        if let Some(error) = self.failing().of(context, body) {
            self.failing().end(request, error);
            return Ok(());
        }
        let started = if mode == Mode::Buffered {
            self.send_buffered(request)
        } else {
            self.send_by(select(self, body, mode), request)
        };
        if started.is_err() {
            self.abandon(request);
        }
        started
    }

    /// Sends an active request by `protocol`.
    fn send_by(&self, protocol: Protocol, request: Ref) -> Result<()> {
        match protocol {
            Protocol::Loopback => {
                // SAFETY: request rule 2: just activated, and active, so its context stays.
                let context = unsafe { request.body().active_context() };
                self.loopback().send(context, request);
                Ok(())
            }
            Protocol::Eager => self.eager().send(request),
            Protocol::EagerFragments => self.eager_fragments().send(request),
            Protocol::Rendezvous => self.rendezvous().send_rts(request),
        }
    }

    /// Ends a request that could not be started.
    fn abandon(&self, request: Ref) {
        let _ = request.state().complete(self.shared);
        // SAFETY: request rule 2: over, and its user has not got it.
        if !unsafe { request.body() }.persistent.get() {
            self.requests().release(request);
        } else {
            request.state().reset();
        }
    }

    /// Copies the data of an activated buffered send into the attached buffer, sends it from there, and completes it.
    fn send_buffered(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: activated by us, and nobody else knows it yet.
        let body = unsafe { request.body() };
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() };
        let bytes = body.bytes.get();
        let buffers = context.buffers_or(&self.buffers);
        let mut room = buffers.reserve(bytes);
        if room.is_err() {
            // What receivers have taken meanwhile gives its room back when progress is made.
            self.progress().catch_up(|| {
                room = buffers.reserve(bytes);
                room.is_ok()
            })?;
        }
        let (addr, piece) = room?;
        request_event(context, request, Event::ReqXferBegin);
        // SAFETY: the piece is `bytes` long and ours; the user's buffer is valid until the send completes.
        unsafe { body.pack(0, &mut Room::near(core::slice::from_raw_parts_mut(addr, bytes))) };
        request_event(context, request, Event::ReqXferEnd);
        let carrier = self.requests().take(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let carried = unsafe { carrier.body() };
        let data = Data { addr, count: bytes, layout: Layout::Bytes, bytes, user: body.user.get() };
        let peer = (body.peer.get(), body.world.get());
        carried.fill(RequestOperation::Send, data, body.source.get(), peer, body.tag.get());
        carried.context.set(Some(context.into()));
        carried.keeps.set(Some(Box::new(piece)));
        carrier.state().activate();
        // The carrier is nobody's handle: it releases itself, and with it the piece.
        let _ = carrier.state().detach();
        body.counterpart.set(carrier.id());
        carried.counterpart.set(request.id());
        let sent = self.send_by(select(self, carried, Mode::Buffered), carrier);
        // What has not begun to be sent leaves the buffer at once; its request is the caller's to end.
        self.requests().finish(if sent.is_ok() { request } else { carrier });
        sent
    }

    /// Activates a prepared receive: looks for a message that is here already, else posts it.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Segment`] when the ring's memory for an answer cannot be had.
    pub(crate) fn start_recv(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: not yet active.
        let body = unsafe { request.body() };
        let context = body.context.get().expect("prepared on a match context");
        // SAFETY: the request counts as pending on it.
        let context = unsafe { context.as_ref() };
        request.state().activate();
        request_event(context, request, Event::ReqActivate);
        if body.peer.get() == abi::MPI_PROC_NULL {
            body.status.set(MessageStatus::PROC_NULL);
            self.requests().finish(request);
            return Ok(());
        }
        if context.trouble() & Trouble::REVOKED != 0 && context.id().is_multiple_of(2) {
            self.failing().end(request, Error::Revoked);
            return Ok(());
        }
        let pattern = pattern(body.peer.get(), body.tag.get());
        // Where other threads wait for the queues a message is taken out of them before its bytes are copied.
        let in_place = !self.shared && body.is_bytes();
        // SAFETY: the user's buffer is valid until the request completes.
        let room = in_place.then(|| unsafe { RecvMemory::new(body.addr.get(), body.bytes.get()) });
        let mut queues = context.queues.lock(self.shared);
        let delivery = self.delivery();
        let claim =
            delivery.claim::<AsStarted, Observed>(context, &mut queues, room, &pattern, Some(request));
        match claim {
            Claim::Given(status, _) => {
                drop(queues);
                body.status.set(status);
                self.requests().finish(request);
                Ok(())
            }
            Claim::Unfit(found) => {
                let (_, message) = queues.unexpected.take_found(found);
                drop(queues);
                // As where a message meets a posted receive: the request is lost half-way, and its buffer with it.
                self.delivery().accept(request, message).inspect_err(|error| self.fail(error.clone()))
            }
            Claim::Nothing => {
                // What the dead have sent may still be in their ring: that receive is ended after a poll in vain.
                if let Some(error) = self.failing().among_living(context, body) {
                    drop(queues);
                    self.failing().end(request, error);
                    return Ok(());
                }
                self.delivery().post::<AsStarted>(context, &mut queues, pattern, request);
                request_event(context, request, Event::ReqInsertInPostedQ);
                Ok(())
            }
        }
    }

    /// Takes the oldest unexpected message that a matched probe for `source` and `tag` wants out of the queue.
    pub(crate) fn take_unexpected(
        &self,
        context: &MatchContext,
        source: i32,
        tag: i32,
    ) -> Option<(Envelope, UnexpectedMessage)> {
        let mut queues = context.queues.lock(self.shared);
        let search = self.search_id(context);
        let wanted = Envelope { source: source as u32, tag };
        message_event(context, search, Event::SearchUnexQBegin, &wanted, 0);
        let found = queues.unexpected.take(&pattern(source, tag));
        let end = || searched(queues.unexpected.last_attempts(), found.is_some());
        searched_event(context, search, Event::SearchUnexQEnd, &wanted, 0, end);
        let (envelope, message) = found?;
        self.delivery().count_unexpected(context, -1, message.held(), self.shared);
        self.removal_event(context, &envelope, &message);
        Some((envelope, message))
    }

    /// Activates a prepared receive of a message that [`Self::take_unexpected`] has given.
    ///
    /// # Errors
    ///
    /// As [`Self::start_recv`].
    pub(crate) fn start_matched(
        &self,
        request: Ref,
        envelope: &Envelope,
        message: UnexpectedMessage,
    ) -> Result<()> {
        request.state().activate();
        self.delivery().give_envelope(request, envelope, &message);
        // SAFETY: request rule 2: just activated, and active, so its context stays.
        let context = unsafe { request.body().active_context() };
        request_event(context, request, Event::ReqActivate);
        request_event(context, request, Event::ReqMatchUnex);
        self.delivery().accept(request, message).inspect_err(|error| self.fail(error.clone()))
    }
}
