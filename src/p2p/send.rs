//! From a call to a record in the ring.

use super::args::{self, Data, SendBuf};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::engine::MatchContext;
use crate::engine::Mode;
use crate::engine::message_events::request_event;
use crate::engine::{Layout, Operation, Ref, Stage};
use crate::error::Result;
use crate::events::Event;

impl Engine {
    /// Blocking send. `dest` and `tag` have been checked (`dest` is a rank of the peers, or MPI_PROC_NULL).
    ///
    /// # Errors
    ///
    /// [`crate::Error::PeerGone`] when the receiver died, [`crate::Error::BsendSpace`] for a buffered send without
    /// room, [`crate::Error::Segment`] when the ring's memory cannot be had.
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for reads and not written until the call returns.
    #[inline]
    pub unsafe fn send(&self, comm: &Comm, buf: &SendBuf<'_>, dest: i32, tag: i32, mode: Mode) -> Result<()> {
        let data = Data::from(buf);
        if dest == crate::abi::MPI_PROC_NULL {
            if !comm.p2p().observed() {
                return Ok(());
            }
        } else if matches!(mode, Mode::Standard | Mode::Ready)
            && matches!(data.layout, Layout::Bytes)
            // SAFETY: the caller's promise.
            && unsafe { self.send_at_once(comm.p2p(), comm, data.addr, data.bytes, dest, tag) }
        {
            return Ok(());
        }
        // SAFETY: the caller's promise, kept until `wait` returns.
        let request = unsafe { self.isend(comm, buf, dest, tag, mode) }?;
        self.wait(request).map(drop)
    }

    /// Starts a send; the request completes when the buffer may be used again (synchronous: when it is matched too).
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for reads and not written until the request is complete.
    pub unsafe fn isend(
        &self,
        comm: &Comm,
        buf: &SendBuf<'_>,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Ref> {
        let request = self.prepare_send(comm.p2p(), comm, Data::from(buf), dest, tag, mode)?;
        self.start_send(request, mode)?;
        Ok(request)
    }

    /// A send that is ready to be started, as MPI_Send_init leaves it.
    pub(crate) fn prepare_send(
        &self,
        context: &MatchContext,
        comm: &Comm,
        data: Data,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Ref> {
        let request = self.new_request(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        args::fill(body, Operation::Send, data, comm, dest, tag);
        body.context = Some(context.into());
        body.synchronous = mode == Mode::Synchronous;
        Ok(request)
    }

    /// Activates a prepared send.
    pub(crate) fn start_send(&self, request: Ref, mode: Mode) -> Result<()> {
        // SAFETY: request rule 2: not yet active.
        let body = unsafe { request.body() };
        let context = body.context.expect("prepared on a context");
        // SAFETY: the request counts as pending on it.
        let context = unsafe { context.as_ref() };
        request.state().activate();
        request_event(context, request, Event::ReqActivate);
        if body.peer == crate::abi::MPI_PROC_NULL {
            self.finish(request);
            return Ok(());
        }
        let started = match mode {
            Mode::Buffered => self.start_buffered(request),
            _ if body.world == self.rank => self.send_to_self(context, request),
            _ if body.bytes <= self.config.eager_limit() => self.send_eager(request),
            Mode::Standard | Mode::Ready
                if body.bytes <= self.config.fragments_limit() && self.place_of_send(body) == 0 =>
            {
                self.send_train(request)
            }
            _ => self.announce(request),
        };
        if started.is_err() {
            self.abandon(request);
        }
        started
    }

    /// Ends a request that could not be started.
    fn abandon(&self, request: Ref) {
        let _ = request.state().complete(self.shared);
        // SAFETY: request rule 2: over, and its user has not got it.
        if !unsafe { request.body() }.persistent {
            self.release_request(request);
        } else {
            request.state().reset();
        }
    }

    /// Puts a small message into the ring, or behind what waits for room there.
    pub(crate) fn send_eager(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: we have just activated it and nobody else knows it.
        let world = unsafe { request.body() }.world;
        self.with_outgoing(world, |out| {
            if !(out.deferred.is_empty() && self.push_request(out, request)) {
                self.defer(world, out, request);
            }
        })
    }

    /// Announces a large message.
    pub(crate) fn announce(&self, request: Ref) -> Result<()> {
        // SAFETY: as in `send_eager`.
        let body = unsafe { request.body() };
        body.stage = Stage::Announced;
        let (header, control) = self.announcement(request);
        self.send_control(body.world, header, control)
    }
}
