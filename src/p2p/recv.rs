//! From a call to the queues.

use super::args::{self, Data, RecvBuf};
use crate::abi;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::engine::message_events::{request_event, search_event, searched};
use crate::engine::{MatchContext, Payload, UnexpectedMessage};
use crate::engine::{Operation, Ref, Stage};
use crate::error::Result;
use crate::events::{Event, EventPayload};
use crate::matching::Envelope;
use crate::protocol::pattern;
use crate::request::Status;

impl Engine {
    /// Blocking receive. `source` and `tag` have been checked.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Truncate`] when the message is larger than the buffer, [`crate::Error::PeerGone`] when who is
    /// waited for died, [`crate::Error::Corrupt`] when a peer spoiled its ring.
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for writes and untouched by others until the call returns.
    pub unsafe fn recv(&self, comm: &Comm, buf: &RecvBuf<'_>, source: i32, tag: i32) -> Result<Status> {
        if source == abi::MPI_PROC_NULL && !comm.p2p().observed() {
            return Ok(Status::PROC_NULL);
        }
        // SAFETY: the caller's promise, kept until `wait` returns.
        let request = unsafe { self.irecv(comm, buf, source, tag) }?;
        self.wait(request)
    }

    /// As [`Self::recv`], but gives the status also when the receive itself failed (of a truncated message).
    ///
    /// # Errors
    ///
    /// Those that make waiting senseless.
    ///
    /// # Safety
    ///
    /// As [`Self::recv`].
    #[inline]
    pub unsafe fn receive(
        &self,
        comm: &Comm,
        buf: &RecvBuf<'_>,
        source: i32,
        tag: i32,
    ) -> Result<(Status, Option<crate::Error>)> {
        if source == abi::MPI_PROC_NULL && !comm.p2p().observed() {
            return Ok((Status::PROC_NULL, None));
        }
        // SAFETY: the caller's promise, kept until the wait is over.
        let request = unsafe { self.irecv(comm, buf, source, tag) }?;
        self.wait_complete(request)?;
        Ok(self.take_outcome(request))
    }

    /// A receive from MPI_PROC_NULL, complete at once.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoMem`] when too many requests are alive.
    pub fn receive_nothing(&self, comm: &Comm) -> Result<Ref> {
        let data = Data::bytes(core::ptr::null_mut(), 0);
        let request =
            self.prepare_recv(comm.collective(), comm, data, abi::MPI_PROC_NULL, abi::MPI_ANY_TAG)?;
        self.start_recv(request)?;
        Ok(request)
    }

    /// Starts a receive.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoMem`] when too many requests are alive; [`crate::Error::Segment`].
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for writes and untouched by others until the request is complete.
    pub unsafe fn irecv(&self, comm: &Comm, buf: &RecvBuf<'_>, source: i32, tag: i32) -> Result<Ref> {
        let request = self.prepare_recv(comm.p2p(), comm, Data::from(buf), source, tag)?;
        self.start_recv(request)?;
        Ok(request)
    }

    /// A receive that is ready to be started, as MPI_Recv_init leaves it.
    pub(crate) fn prepare_recv(
        &self,
        context: &MatchContext,
        comm: &Comm,
        data: Data,
        source: i32,
        tag: i32,
    ) -> Result<Ref> {
        let request = self.new_request(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        args::fill(body, Operation::Receive, data, comm, source, tag);
        body.context = Some(context.into());
        Ok(request)
    }

    /// Activates a prepared receive: looks for a message that is here already, else posts it.
    pub(crate) fn start_recv(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: not yet active.
        let body = unsafe { request.body() };
        let context = body.context.expect("prepared on a context");
        // SAFETY: the request counts as pending on it.
        let context = unsafe { context.as_ref() };
        request.state().activate();
        request_event(context, request, Event::ReqActivate);
        if body.peer == abi::MPI_PROC_NULL {
            body.status = Status::PROC_NULL;
            self.finish(request);
            return Ok(());
        }
        let pattern = pattern(body.peer, body.tag);
        let mut queues = context.queues.lock(self.shared);
        let search = self.search_id(context);
        search_event(context, request, Event::SearchUnexQBegin, search, || EventPayload::None);
        let found = queues.unexpected.find(&pattern);
        let end = || searched(queues.unexpected.last_attempts(), found.is_some());
        search_event(context, request, Event::SearchUnexQEnd, search, end);
        match found {
            Some(found) => {
                let (envelope, arrived) = queues.unexpected.at(found);
                self.note_unexpected(context, -1, arrived.held(), self.shared);
                self.matched(request, envelope, arrived);
                request_event(context, request, Event::ReqMatchUnex);
                self.removal_event(context, envelope, arrived);
                if !self.shared
                    && let Some(data) = arrived.whole()
                {
                    // Nobody waits for the queues: so it need not be taken out of them for its bytes to be copied.
                    self.deliver(request, data);
                    queues.unexpected.discard(found);
                    return Ok(());
                }
                let (_, arrived) = queues.unexpected.take_found(found);
                drop(queues);
                // As where a message meets a posted receive: the request is lost half-way, and its buffer with it.
                self.accept(request, arrived).inspect_err(|error| self.fail(error.clone()))
            }
            None => {
                queues.posted.insert(pattern, request);
                body.stage = Stage::Posted;
                self.note_posted(context, 1);
                request_event(context, request, Event::ReqInsertInPostedQ);
                Ok(())
            }
        }
    }

    /// From now on the receive has the message's peer and tag.
    #[inline(always)]
    pub(crate) fn matched(&self, request: Ref, envelope: &Envelope, arrived: &UnexpectedMessage) {
        // SAFETY: request rule 2: matched under the queues, so it is ours.
        let body = unsafe { request.body() };
        body.peer = envelope.source as i32;
        body.tag = envelope.tag;
        body.world = arrived.world;
        body.total = arrived.bytes();
    }

    /// Gives a matched receive its message.
    pub(crate) fn accept(&self, request: Ref, arrived: UnexpectedMessage) -> Result<()> {
        let UnexpectedMessage { world, id, synchronous, payload, .. } = arrived;
        match payload {
            Payload::Small(len, bytes) => self.deliver(request, &bytes[..usize::from(len)]),
            Payload::Whole(bytes) => self.deliver(request, &bytes),
            Payload::Announced { total, addr, place } => {
                return self.accept_large(request, id, total, addr, place);
            }
            Payload::Local(send) => self.deliver_local(send, request),
        }
        if synchronous { self.acknowledge(world, id) } else { Ok(()) }
    }

    /// Notes that `change` receives were posted (or taken, if negative). The caller has the context's queues.
    #[inline(always)]
    pub(crate) fn note_posted(&self, context: &MatchContext, change: i64) {
        self.note_posted_beside(context, change, self.shared);
    }

    /// The same of who knows whether other threads may be inside: `shared` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn note_posted_beside(&self, context: &MatchContext, change: i64, shared: bool) {
        context.posted.step(change);
        self.telemetry().change_posted(change, shared);
    }

    /// Notes that `change` messages became unexpected (or were taken), which hold `bytes` bytes of memory. As above;
    /// `shared` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn note_unexpected(&self, context: &MatchContext, change: i64, bytes: usize, shared: bool) {
        let telemetry = self.telemetry();
        context.unexpected.step(change);
        telemetry.change_unexpected(change, shared);
        if bytes > 0 {
            telemetry.unexpected_bytes.change(change * bytes as i64, shared);
        }
    }
}
