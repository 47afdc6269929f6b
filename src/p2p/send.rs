//! MPI_Send and its modes, blocking and not.
//!
//! Each verb has a slow path, and a fast path for plain bytes that says no where anything is unusual and has then done
//! nothing.

use super::args::SendBuf;
use crate::comm::Comm;
use crate::engine::specialization::{Locked, Locking, Unlocked, apart};
use crate::engine::{Data, Engine, Layout, MatchContext, Mode, Ref, RequestOperation, Run, Stage};
use crate::error::Result;
use crate::protocol::Destination;
use crate::request::MessageStatus;
use core::num::NonZeroU32;
use core::ptr::NonNull;

impl Engine {
    /// Blocking send. `dest` and `tag` have been checked (`dest` is a rank of the peers, or MPI_PROC_NULL).
    ///
    /// # Errors
    ///
    /// [`crate::Error::RankFailed`] when the receiver died, [`crate::Error::BsendSpace`] for a buffered send without
    /// room, [`crate::Error::Segment`] when the ring's memory cannot be had.
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for reads and not written until the call returns.
    #[inline]
    pub unsafe fn send(&self, comm: &Comm, buf: &SendBuf<'_>, dest: i32, tag: i32, mode: Mode) -> Result<()> {
        let data = Data::from(buf);
        let context = comm.p2p();
        if dest == crate::abi::MPI_PROC_NULL {
            if !context.observed() {
                return Ok(());
            }
        } else if matches!(mode, Mode::Standard | Mode::Ready)
            && matches!(data.layout, Layout::Bytes)
            && !context.observed()
            // SAFETY: the buffer is valid until the call returns.
            && unsafe { self.send_fast::<false>(context, comm, data.addr, data.bytes, dest, tag) }
        {
            return Ok(());
        }
        // SAFETY: the buffer is valid until the call returns, which `wait` does not before the request is complete.
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

    /// Starts a send of plain bytes to a rank of the peers, which somebody may observe.
    /// `mode` is not [`Mode::Buffered`].
    ///
    /// # Errors
    ///
    /// As [`Self::isend`].
    ///
    /// # Safety
    ///
    /// `run` is valid for reads and not written until the request is complete.
    #[inline(always)]
    pub unsafe fn isend_run(&self, comm: &Comm, run: &Run, dest: i32, tag: i32, mode: Mode) -> Result<Ref> {
        let to = (dest, comm.world_rank_of(dest));
        let request = self.prepare_run(comm, RequestOperation::Send, run, to, tag)?;
        // SAFETY: request rule 2: just taken, not active.
        unsafe { request.body() }.mode.set(mode);
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
        let request = self.prepare(context, comm, RequestOperation::Send, data, dest, tag)?;
        // SAFETY: request rule 2: just taken, not active.
        unsafe { request.body() }.mode.set(mode);
        Ok(request)
    }

    /// An operation with `peer` that is ready to be started.
    pub(super) fn prepare(
        &self,
        context: &MatchContext,
        comm: &Comm,
        operation: RequestOperation,
        data: Data,
        peer: i32,
        tag: i32,
    ) -> Result<Ref> {
        let world = if peer >= 0 { comm.world_rank_of(peer) } else { u32::MAX };
        let request = self.requests().take(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        body.fill(operation, data, comm.rank(), (peer, world), tag);
        body.context.set(Some(NonNull::from(context)));
        Ok(request)
    }

    /// As [`Self::prepare`], of plain bytes. `peer`: its rank, also in the job.
    #[inline(always)]
    pub(super) fn prepare_run(
        &self,
        comm: &Comm,
        operation: RequestOperation,
        run: &Run,
        peer: (i32, u32),
        tag: i32,
    ) -> Result<Ref> {
        let context = comm.p2p();
        let request = self.requests().take(context)?;
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        body.fill_run(operation, run, comm.rank(), peer, tag);
        body.context.set(Some(NonNull::from(context)));
        body.status.set(MessageStatus::EMPTY);
        body.stage.set(Stage::Idle);
        Ok(request)
    }

    /// A blocking send of plain bytes that nobody observes, without a request. False, with nothing done, if it is not
    /// to be had so: the message is not small, or has no room in the ring.
    /// The caller has seen that nobody observes the match context. `MORE`: it may be one of many.
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn send_fast<const MORE: bool>(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        if self.shared {
            // SAFETY: the bytes are valid, as the caller says.
            return apart(move || unsafe {
                self.send_in::<Locked, MORE>(context, comm, addr, bytes, dest, tag)
            });
        }
        // SAFETY: the bytes are valid, as the caller says.
        unsafe { self.send_in::<Unlocked, MORE>(context, comm, addr, bytes, dest, tag) }
    }

    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes.
    #[inline(always)]
    unsafe fn send_in<L: Locking, const MORE: bool>(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        if bytes > self.config.eager_from_anywhere() {
            return false;
        }
        let to = Destination { context, source: comm.rank(), world: comm.world_rank_of(dest), tag };
        // SAFETY: the bytes are valid, as the caller says.
        unsafe { self.eager().send_now::<L, MORE>(to, addr, bytes, 0) }
    }

    /// As [`Self::send_fast`], with a request that is complete when its user gets it: its id.
    ///
    /// # Safety
    ///
    /// `run` is valid for reads.
    #[inline(always)]
    pub unsafe fn isend_fast(&self, comm: &Comm, run: Run, dest: i32, tag: i32) -> Option<NonZeroU32> {
        if self.shared {
            // SAFETY: the bytes are valid, as the caller says.
            return apart(move || unsafe { self.isend_in::<Locked>(comm, run, dest, tag) });
        }
        // SAFETY: the bytes are valid, as the caller says.
        unsafe { self.isend_in::<Unlocked>(comm, run, dest, tag) }
    }

    /// # Safety
    ///
    /// `run` is valid for reads.
    #[inline(always)]
    unsafe fn isend_in<L: Locking>(&self, comm: &Comm, run: Run, dest: i32, tag: i32) -> Option<NonZeroU32> {
        if run.bytes > self.config.eager_from_anywhere() {
            return None;
        }
        let context = comm.p2p();
        let (world, source) = (comm.world_rank_of(dest), comm.rank());
        let request = self.slab.take(L::shared(self))?;
        let id = request.id();
        let to = Destination { context, source, world, tag };
        // SAFETY: the bytes are valid, as the caller says.
        if !unsafe { self.eager().send_now::<L, true>(to, run.addr, run.bytes, id) } {
            self.slab.release(request, L::shared(self));
            return None;
        }
        context.retain(L::shared(self));
        // SAFETY: request rule 2: just taken; nobody answers an eager send.
        let body = unsafe { request.body() };
        body.fill_run(RequestOperation::Send, &run, source, (dest, world), tag);
        body.context.set(Some(NonNull::from(context)));
        body.status.set(MessageStatus::EMPTY);
        body.stage.set(Stage::Done);
        request.state().complete_at_once();
        NonZeroU32::new(id)
    }
}
