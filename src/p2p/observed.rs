//! Lean ways of calls that somebody listens to: of runs of bytes, between ranks, with all their events.
//!
//! They begin a request as the short ways do, without a datatype and without the detours of errors, and go on as every call that is
//! observed: so the events are the same ones, in the same order.

use super::args::{self, Run};
use crate::abi;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::engine::Mode;
use crate::engine::message_events::request_event;
use crate::engine::{Operation, Ref, Stage};
use crate::error::Result;
use crate::events::Event;
use crate::request::Status;
use core::ptr::NonNull;

impl Engine {
    /// Starts a send of `run` to a rank of the peers. `mode` is not [`Mode::Buffered`].
    ///
    /// # Errors
    ///
    /// As [`Self::isend`].
    ///
    /// # Safety
    ///
    /// `run` is valid for reads and not written until the request is complete.
    #[inline(always)]
    pub unsafe fn isend_told(&self, comm: &Comm, run: &Run, dest: i32, tag: i32, mode: Mode) -> Result<Ref> {
        let to = (dest, comm.world_rank_of(dest));
        let request = self.begin(comm, Operation::Send, run, to, tag)?;
        // SAFETY: request rule 2: just taken, not active.
        unsafe { request.body() }.synchronous = matches!(mode, Mode::Synchronous);
        self.start_send(request, mode)?;
        Ok(request)
    }

    /// Starts a receive into `run` from a rank of the peers, or from any.
    ///
    /// # Errors
    ///
    /// As [`Self::irecv`].
    ///
    /// # Safety
    ///
    /// `run` is valid for writes and untouched by others until the request is complete.
    #[inline(always)]
    pub unsafe fn irecv_told(&self, comm: &Comm, run: &Run, source: i32, tag: i32) -> Result<Ref> {
        let world = if source == abi::MPI_ANY_SOURCE { u32::MAX } else { comm.world_rank_of(source) };
        let request = self.begin(comm, Operation::Receive, run, (source, world), tag)?;
        self.start_recv(request)?;
        Ok(request)
    }

    #[inline(always)]
    fn begin(&self, comm: &Comm, operation: Operation, run: &Run, peer: (i32, u32), tag: i32) -> Result<Ref> {
        let context = comm.p2p();
        let request = self.new_request(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        args::fill_run(body, operation, run, comm.rank(), peer, tag);
        body.context = Some(NonNull::from(context));
        body.status = Status::EMPTY;
        body.stage = Stage::Idle;
        Ok(request)
    }

    /// As [`Self::take_plainly`], on a face where somebody listens.
    #[inline(always)]
    pub fn take_told(&self, request: Ref, look: impl FnOnce(&Status)) -> bool {
        let plain = self.is_plainly_over(request);
        if plain {
            // SAFETY: request rule 2: complete, so it is its user's.
            let body = unsafe { request.body() };
            if let Some(context) = body.context {
                // SAFETY: the request counts as pending on the context.
                request_event(unsafe { context.as_ref() }, request, Event::ReqNotify);
            }
            look(&body.status);
            self.release_plain(request);
        }
        plain
    }
}
