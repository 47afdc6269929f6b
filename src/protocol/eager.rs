//! The short ways: small messages of plain bytes on a context that nobody observes.
//!
//! Each does what the general way does, in the same order, where nothing unusual stands in between: no event site is
//! passed, no datatype packed, no peer answered. A short way that cannot be taken says so and has done nothing; the caller
//! then takes the general one, which finds out what is unusual. So nothing here can fail.
//!
//! All of it is compiled twice: with locks, and without (conditional lock rule 1), so that below
//! MPI_THREAD_MULTIPLE not even a branch is left of them. `SHARED` is [`Engine::shared`].

use crate::comm::Comm;
use crate::engine::Engine;
use crate::engine::tx::copy_out;
use crate::engine::{MatchContext, Queues};
use crate::engine::{Operation, Ref, Stage};
use crate::p2p::Run;
use crate::p2p::args;
use crate::protocol::Kind;
use crate::protocol::pattern;
use crate::request::Status;
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;
use core::num::NonZeroU32;
use core::ptr::NonNull;

/// What the unexpected queue has for a receive.
enum Kept {
    /// No message that it takes.
    Nothing,
    /// One that is not here as a whole, does not fit, or whose sender awaits an answer. Nothing was done.
    Unfit,
    /// One that it got: its status, and the sender's rank in the job.
    Given(Status, u32),
}

impl Engine {
    /// The short way of a blocking send: no request. False, with nothing done, if it cannot be taken.
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn send_at_once(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        // SAFETY: the caller's promise.
        !context.observed() && unsafe { self.send_unobserved(context, comm, addr, bytes, dest, tag) }
    }

    /// As [`Self::send_at_once`], where the caller knows already that nobody observes the context.
    ///
    /// # Safety
    ///
    /// As [`Self::send_at_once`].
    #[inline(always)]
    pub unsafe fn send_unobserved(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        if self.shared {
            // SAFETY: the caller's promise.
            return unsafe { self.send_shared(context, comm, addr, bytes, dest, tag) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.send_in::<false>(context, comm, addr, bytes, dest, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::send_at_once`].
    #[inline(never)]
    unsafe fn send_shared(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.send_in::<true>(context, comm, addr, bytes, dest, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::send_at_once`].
    #[inline(always)]
    unsafe fn send_in<const SHARED: bool>(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        if bytes > self.config.eager_limit() {
            return false;
        }
        let to = comm.world_rank_of(dest);
        if SHARED && to == self.rank {
            // SAFETY: the caller's promise; small, as just seen.
            unsafe { self.pass_to_self(context, (comm.rank(), tag), addr, bytes, 0) };
            return true;
        }
        let header =
            Header { kind: Kind::Eager as u8, context: context.id(), tag, source: comm.rank(), id: 0 };
        self.push_at_once::<SHARED, false>(to, header, addr, bytes)
    }

    /// The short way of a send whose request is complete when its user gets it: its id. `None`, with nothing done, if it cannot
    /// be taken.
    ///
    /// # Safety
    ///
    /// `run` is valid for reads.
    #[inline(always)]
    pub unsafe fn isend_unobserved(&self, comm: &Comm, run: Run, dest: i32, tag: i32) -> Option<NonZeroU32> {
        if self.shared {
            // SAFETY: the caller's promise.
            return unsafe { self.isend_shared(comm, run, dest, tag) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.isend_in::<false>(comm, run, dest, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::isend_unobserved`].
    #[inline(never)]
    unsafe fn isend_shared(&self, comm: &Comm, run: Run, dest: i32, tag: i32) -> Option<NonZeroU32> {
        // SAFETY: the caller's promise.
        unsafe { self.isend_in::<true>(comm, run, dest, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::isend_unobserved`].
    #[inline(always)]
    unsafe fn isend_in<const SHARED: bool>(
        &self,
        comm: &Comm,
        run: Run,
        dest: i32,
        tag: i32,
    ) -> Option<NonZeroU32> {
        if run.bytes > self.config.eager_limit() {
            return None;
        }
        let context = comm.p2p();
        let (to, source) = (comm.world_rank_of(dest), comm.rank());
        let request = self.requests.take(SHARED)?;
        let id = request.id();
        if SHARED && to == self.rank {
            // SAFETY: the caller's promise; small, as just seen.
            unsafe { self.pass_to_self(context, (source, tag), run.addr, run.bytes, id) };
        } else {
            let header = Header { kind: Kind::Eager as u8, context: context.id(), tag, source, id };
            if !self.push_at_once::<SHARED, true>(to, header, run.addr, run.bytes) {
                self.requests.release(request, SHARED);
                return None;
            }
        }
        context.retain(SHARED);
        // SAFETY: request rule 2: just taken; nobody answers an eager send.
        let body = unsafe { request.body() };
        args::fill_run(body, Operation::Send, &run, source, (dest, to), tag);
        body.context = Some(NonNull::from(context));
        body.status = Status::EMPTY;
        body.stage = Stage::Done;
        request.state().complete_at_once();
        NonZeroU32::new(id)
    }

    /// As [`Self::receive_unobserved`] if nobody observes the communicator, and `source` is a rank.
    ///
    /// # Safety
    ///
    /// As [`Self::receive_unobserved`].
    #[inline]
    pub unsafe fn receive_at_once(
        &self,
        comm: &Comm,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
    ) -> Option<Status> {
        if source < 0 || comm.p2p().observed() {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { self.receive_unobserved(comm.p2p(), comm, addr, room, source, tag) }
    }

    /// The short way of a blocking receive of bytes, from a rank or from any, on a context that nobody observes: no
    /// request. The message is unexpected already, or it is the next one in its sender's ring, for which this waits a
    /// moment. `None`, with nothing done, in all other cases, and where something else wants progress.
    ///
    /// # Safety
    ///
    /// `addr` is valid for writes of `room` bytes, untouched by others until the call returns.
    #[inline(always)]
    pub unsafe fn receive_unobserved(
        &self,
        context: &MatchContext,
        comm: &Comm,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
    ) -> Option<Status> {
        if self.shared {
            // SAFETY: the caller's promise.
            return unsafe { self.receive_shared(context, addr, room, source, tag) };
        }
        let mut queues = context.queues.lock(false);
        if !queues.unexpected.is_empty() {
            // SAFETY: the caller's promise.
            match unsafe { self.receive_kept::<false>(context, &mut queues, (addr, room), source, tag) } {
                Kept::Given(status, _) => return Some(status),
                Kept::Unfit => return None,
                Kept::Nothing => {}
            }
        }
        // What comes may be for a receive that was posted before.
        if !queues.posted.is_empty() || self.wants_progress() {
            return None;
        }
        drop(queues);
        // SAFETY: the caller's promise.
        unsafe {
            if source < 0 {
                self.receive_next::<true>(context, 0, addr, room, source, tag)
            } else {
                self.receive_next::<false>(context, comm.world_rank_of(source), addr, room, source, tag)
            }
        }
        .status()
    }

    /// As [`Self::receive_unobserved`] where several threads may be inside: the rings may be in other hands.
    ///
    /// # Safety
    ///
    /// As [`Self::receive_unobserved`].
    #[inline(never)]
    unsafe fn receive_shared(
        &self,
        context: &MatchContext,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
    ) -> Option<Status> {
        let mut queues = context.queues.lock(true);
        // SAFETY: the caller's promise.
        match unsafe { self.receive_kept::<true>(context, &mut queues, (addr, room), source, tag) } {
            Kept::Given(status, _) => Some(status),
            Kept::Unfit | Kept::Nothing => None,
        }
    }

    /// Whether something waits for progress that a look into one ring does not make.
    #[inline(always)]
    pub(crate) fn wants_progress(&self) -> bool {
        self.has_backlog::<false>() || self.has_background()
    }

    /// Gives a receive its message out of the unexpected queue, copied from where it lies.
    ///
    /// # Safety
    ///
    /// `addr` is valid for writes of `room` bytes.
    #[inline(always)]
    unsafe fn receive_kept<const SHARED: bool>(
        &self,
        context: &MatchContext,
        queues: &mut Queues,
        (addr, room): (*mut u8, usize),
        source: i32,
        tag: i32,
    ) -> Kept {
        let queue = &mut queues.unexpected;
        let Some(found) = queue.find(&pattern(source, tag)) else { return Kept::Nothing };
        let (envelope, arrived) = queue.at(found);
        let Some(data) = arrived.whole() else { return Kept::Unfit };
        let bytes = data.len();
        if bytes > room {
            return Kept::Unfit;
        }
        // SAFETY: the caller's promise; it fits; the engine's memory is none of the buffer.
        unsafe { copy_out(data, addr) };
        let status = status_of(envelope.source, envelope.tag, bytes);
        let (world, held) = (arrived.world, arrived.held());
        queue.discard(found);
        self.note_unexpected(context, -1, held, SHARED);
        self.count_received(protocol_of(bytes), bytes, SHARED);
        Kept::Given(status, world)
    }

    /// The short way of starting a receive, from a rank or from any: its request's id. `None`, with nothing done, if it cannot be
    /// taken.
    ///
    /// # Safety
    ///
    /// `run` is valid for writes, and untouched by others until the request is complete.
    #[inline(always)]
    pub unsafe fn irecv_unobserved(
        &self,
        comm: &Comm,
        run: Run,
        source: i32,
        tag: i32,
    ) -> Option<NonZeroU32> {
        if self.shared {
            // SAFETY: the caller's promise.
            return unsafe { self.irecv_shared(comm, run, source, tag) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.irecv_in::<false>(comm, run, source, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::irecv_unobserved`].
    #[inline(never)]
    unsafe fn irecv_shared(&self, comm: &Comm, run: Run, source: i32, tag: i32) -> Option<NonZeroU32> {
        // SAFETY: the caller's promise.
        unsafe { self.irecv_in::<true>(comm, run, source, tag) }
    }

    /// # Safety
    ///
    /// As [`Self::irecv_unobserved`].
    #[inline(always)]
    unsafe fn irecv_in<const SHARED: bool>(
        &self,
        comm: &Comm,
        run: Run,
        source: i32,
        tag: i32,
    ) -> Option<NonZeroU32> {
        let request = self.requests.take(SHARED)?;
        let context = comm.p2p();
        let mut queues = context.queues.lock(SHARED);
        let buffer = (run.addr, run.bytes);
        let world = if source < 0 { u32::MAX } else { comm.world_rank_of(source) };
        let mut got = None;
        if !queues.unexpected.is_empty() {
            // SAFETY: the caller's promise.
            match unsafe { self.irecv_kept::<SHARED>(context, &mut queues, buffer, source, tag) } {
                Kept::Given(status, world) => got = Some((status, world)),
                Kept::Nothing => {}
                Kept::Unfit => {
                    self.requests.release(request, SHARED);
                    return None;
                }
            }
        }
        if !SHARED && got.is_none() && queues.posted.is_empty() && !self.wants_progress() {
            // SAFETY: the caller's promise.
            let next = unsafe {
                if source < 0 {
                    self.try_next::<true>(context, world, run.addr, run.bytes, source, tag)
                } else {
                    self.try_next::<false>(context, world, run.addr, run.bytes, source, tag)
                }
            };
            got = next.status().map(|status| (status, next.world()));
        }
        context.retain(SHARED);
        // SAFETY: request rule 2: just taken, and not yet in a queue.
        let body = unsafe { request.body() };
        if let Some((status, world)) = got {
            args::fill_run(body, Operation::Receive, &run, comm.rank(), (status.source, world), status.tag);
            body.context = Some(NonNull::from(context));
            body.total = status.bytes as usize;
            body.status = status;
            body.stage = Stage::Done;
            request.state().complete_at_once();
            return NonZeroU32::new(request.id());
        }
        args::fill_run(body, Operation::Receive, &run, comm.rank(), (source, world), tag);
        body.context = Some(NonNull::from(context));
        body.stage = Stage::Posted;
        request.state().activate();
        queues.posted.insert(pattern(source, tag), request);
        self.note_posted_beside(context, 1, SHARED);
        NonZeroU32::new(request.id())
    }

    /// [`Self::receive_kept`], apart from a receive that mostly finds nothing kept.
    ///
    /// # Safety
    ///
    /// As [`Self::receive_kept`].
    #[inline(never)]
    unsafe fn irecv_kept<const SHARED: bool>(
        &self,
        context: &MatchContext,
        queues: &mut Queues,
        buffer: (*mut u8, usize),
        source: i32,
        tag: i32,
    ) -> Kept {
        // SAFETY: the caller's promise.
        unsafe { self.receive_kept::<SHARED>(context, queues, buffer, source, tag) }
    }

    /// The outcome of a request that is complete, did not fail and does not persist, on a face where nobody listens to
    /// anything: `look` sees its status, and the request is gone. False, with nothing done, in all other cases.
    #[inline(always)]
    pub fn take_plainly(&self, request: Ref, look: impl FnOnce(&Status)) -> bool {
        let plain = self.is_plainly_over(request);
        if plain {
            // SAFETY: request rule 2: complete, so it is its user's.
            look(unsafe { &request.body().status });
            self.release_plain(request);
        }
        plain
    }

    /// Whether [`Self::take_plainly`] would take its outcome.
    #[inline(always)]
    #[must_use]
    pub fn is_plainly_over(&self, request: Ref) -> bool {
        // SAFETY: request rule 2: complete, so it is its user's.
        request.state().is_complete() && !unsafe { request.body() }.owns()
    }
}

#[inline(always)]
pub(crate) fn status_of(source: u32, tag: i32, bytes: usize) -> Status {
    Status { source: source as i32, tag, bytes: bytes as u64, ..Status::EMPTY }
}

#[inline(always)]
pub(crate) fn protocol_of(bytes: usize) -> ProtocolKind {
    if bytes <= INLINE { ProtocolKind::Inline } else { ProtocolKind::Eager }
}
