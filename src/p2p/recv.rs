//! MPI_Recv, blocking and not.
//!
//! As with sends, each verb has a slow path, and a fast path for plain bytes that says no where anything is unusual.

use super::args::RecvBuf;
use crate::abi;
use crate::comm::Comm;
use crate::engine::specialization::{Locked, Locking, Unlocked, Unobserved, apart};
use crate::engine::{Data, Engine, MatchContext, Queues, RecvMemory, Ref, RequestOperation, Run, Stage};
use crate::error::Result;
use crate::protocol::{Claim, pattern};
use crate::request::MessageStatus;
use core::num::NonZeroU32;
use core::ptr::NonNull;

impl Engine {
    /// Blocking receive. `source` and `tag` have been checked.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Truncate`] when the message is larger than the buffer, [`crate::Error::RankFailed`] when who is
    /// waited for died, [`crate::Error::Corrupt`] when a peer spoiled its ring.
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for writes and untouched by others until the call returns.
    pub unsafe fn recv(
        &self,
        comm: &Comm,
        buf: &RecvBuf<'_>,
        source: i32,
        tag: i32,
    ) -> Result<MessageStatus> {
        // SAFETY: the buffer is valid until the call returns.
        let (status, error) = unsafe { self.receive(comm, buf, source, tag) }?;
        error.map_or(Ok(status), Err)
    }

    /// As [`Self::recv`], but gives the status also when the receive itself failed (of a truncated message).
    ///
    /// # Errors
    ///
    /// Those that make waiting pointless.
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
    ) -> Result<(MessageStatus, Option<crate::Error>)> {
        if source == abi::MPI_PROC_NULL && !comm.p2p().observed() {
            return Ok((MessageStatus::PROC_NULL, None));
        }
        // SAFETY: the buffer is valid until the call returns, which it does not before the wait is over.
        let request = unsafe { self.irecv(comm, buf, source, tag) }?;
        self.wait_for_good(request)?;
        Ok(self.take_outcome(request))
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

    /// Starts a receive of plain bytes from a rank of the peers, or from any, which somebody may observe.
    ///
    /// # Errors
    ///
    /// As [`Self::irecv`].
    ///
    /// # Safety
    ///
    /// `run` is valid for writes and untouched by others until the request is complete.
    #[inline(always)]
    pub unsafe fn irecv_run(&self, comm: &Comm, run: &Run, source: i32, tag: i32) -> Result<Ref> {
        let request =
            self.prepare_run(comm, RequestOperation::Receive, run, (source, world_of(comm, source)), tag)?;
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
        self.prepare(context, comm, RequestOperation::Receive, data, source, tag)
    }

    /// As [`Self::receive_fast`] if nobody observes the communicator, and `source` is a rank.
    #[inline]
    pub fn receive_unless_observed(
        &self,
        comm: &Comm,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> Option<MessageStatus> {
        if source < 0 || comm.p2p().observed() {
            return None;
        }
        self.receive_fast(comm.p2p(), comm, room, source, tag)
    }

    /// A blocking receive of plain bytes, from a rank or from any, on a match context that nobody observes, without a
    /// request. The message is unexpected already, or it is the next one in its sender's ring, for which this waits a
    /// moment. `None`, with nothing done, in all other cases, and where something else wants progress.
    #[inline(always)]
    pub fn receive_fast(
        &self,
        context: &MatchContext,
        comm: &Comm,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> Option<MessageStatus> {
        self.receive_soon::<false>(context, comm, room, source, tag)
    }

    /// [`Self::receive_fast`]; `BRIEF`: the moment is a short one, for a caller that does not wait.
    #[inline(always)]
    pub(in crate::p2p) fn receive_soon<const BRIEF: bool>(
        &self,
        context: &MatchContext,
        comm: &Comm,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> Option<MessageStatus> {
        if self.shared {
            return apart(move || self.receive_in::<Locked, BRIEF>(context, comm, room, source, tag));
        }
        self.receive_in::<Unlocked, BRIEF>(context, comm, room, source, tag)
    }

    #[inline(always)]
    fn receive_in<L: Locking, const BRIEF: bool>(
        &self,
        context: &MatchContext,
        comm: &Comm,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> Option<MessageStatus> {
        let mut queues = context.queues.lock(L::shared(self));
        if !queues.unexpected.is_empty() {
            let pattern = pattern(source, tag);
            match self.delivery().claim::<L, Unobserved>(context, &mut queues, Some(room), &pattern, None) {
                Claim::Given(status, _) => return Some(status),
                Claim::Unfit(_) => return None,
                Claim::Nothing => {}
            }
        }
        // Beside other threads the rings may be in other hands. What comes may be for a receive that was posted before.
        if L::shared(self) || !queues.posted.is_empty() || self.polled_receive().wants_progress() {
            return None;
        }
        drop(queues);
        let polled = self.polled_receive();
        let got = if source < 0 {
            polled.receive_next::<true, BRIEF>(context, 0, room, source, tag)
        } else {
            polled.receive_next::<false, BRIEF>(context, comm.world_rank_of(source), room, source, tag)
        };
        got.status()
    }

    /// As [`Self::irecv`], of plain bytes on a match context that nobody observes: its request's id. `None`, with
    /// nothing done, if it is not to be had so.
    ///
    /// # Safety
    ///
    /// `run` is valid for writes, and untouched by others until the request is complete.
    #[inline(always)]
    pub unsafe fn irecv_fast(&self, comm: &Comm, run: Run, source: i32, tag: i32) -> Option<NonZeroU32> {
        if self.shared {
            // SAFETY: the buffer is valid, as the caller says.
            return apart(move || unsafe { self.irecv_in::<Locked>(comm, run, source, tag) });
        }
        // SAFETY: the buffer is valid, as the caller says.
        unsafe { self.irecv_in::<Unlocked>(comm, run, source, tag) }
    }

    /// # Safety
    ///
    /// `run` is valid for writes, and untouched by others until the request is complete.
    #[inline(always)]
    unsafe fn irecv_in<L: Locking>(
        &self,
        comm: &Comm,
        run: Run,
        source: i32,
        tag: i32,
    ) -> Option<NonZeroU32> {
        let request = self.slab.take(L::shared(self))?;
        let context = comm.p2p();
        let mut queues = context.queues.lock(L::shared(self));
        let world = world_of(comm, source);
        let mut got = None;
        // SAFETY: the run is valid for writes until the request is complete, which nobody has before this returns.
        let room = unsafe { RecvMemory::new(run.addr, run.bytes) };
        if !queues.unexpected.is_empty() {
            match self.claim_apart::<L>(context, &mut queues, room, source, tag) {
                Claim::Given(status, world) => got = Some((status, world)),
                Claim::Nothing => {}
                Claim::Unfit(_) => {
                    self.slab.release(request, L::shared(self));
                    return None;
                }
            }
        }
        if !L::shared(self)
            && got.is_none()
            && queues.posted.is_empty()
            && !self.polled_receive().wants_progress()
        {
            let polled = self.polled_receive();
            let next = if source < 0 {
                polled.try_next::<true>(context, world, room, source, tag)
            } else {
                polled.try_next::<false>(context, world, room, source, tag)
            };
            got = next.status().map(|status| (status, next.world()));
        }
        context.retain(L::shared(self));
        // SAFETY: request rule 2: just taken, and not yet in a queue.
        let body = unsafe { request.body() };
        if let Some((status, world)) = got {
            body.fill_run(RequestOperation::Receive, &run, comm.rank(), (status.source, world), status.tag);
            body.context.set(Some(NonNull::from(context)));
            body.total.set(status.bytes as usize);
            body.status.set(status);
            body.stage.set(Stage::Done);
            request.state().complete_at_once();
            return NonZeroU32::new(request.id());
        }
        body.fill_run(RequestOperation::Receive, &run, comm.rank(), (source, world), tag);
        body.context.set(Some(NonNull::from(context)));
        request.state().activate();
        self.delivery().post::<L>(context, &mut queues, pattern(source, tag), request);
        NonZeroU32::new(request.id())
    }

    /// [`crate::protocol::Delivery::claim`], apart from a receive that mostly finds nothing.
    #[inline(never)]
    fn claim_apart<L: Locking>(
        &self,
        context: &MatchContext,
        queues: &mut Queues,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> Claim {
        self.delivery().claim::<L, Unobserved>(context, queues, Some(room), &pattern(source, tag), None)
    }
}

/// The job rank of the peer `source`, which may be any.
#[inline(always)]
fn world_of(comm: &Comm, source: i32) -> u32 {
    if source < 0 { u32::MAX } else { comm.world_rank_of(source) }
}
