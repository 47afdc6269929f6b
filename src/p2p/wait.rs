//! Waiting for requests, and what becomes of a request that is over (MPI 5.0 §3.7.3, §3.7.5).

use crate::arch::clock::now;
use crate::engine::message_events::request_event;
use crate::engine::specialization::{Observation, Observed, Unobserved};
use crate::engine::{Engine, RaisingComm, Ref, RequestOperation};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::request::{MessageStatus, Then};
use crate::shm::telemetry::{Wait, Waiting};

/// What has become of a request whose outcome has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is gone, and nothing names it any more.
    Gone,
    /// It persists, and may be started again.
    Inactive,
}

impl Engine {
    /// Waits for a request and takes its outcome; the request is gone afterwards (a persistent one is inactive).
    ///
    /// # Errors
    ///
    /// What the operation failed with; [`Error::RankFailed`] or [`Error::Corrupt`] when waiting has become pointless:
    /// the request is then left as it is.
    pub fn wait(&self, request: Ref) -> Result<MessageStatus> {
        self.wait_complete(request)?;
        match self.take_outcome(request) {
            (status, None) => Ok(status),
            (_, Some(error)) => Err(error),
        }
    }

    /// Waits until a request is complete and leaves it so.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    #[inline(always)]
    pub fn wait_complete(&self, request: Ref) -> Result<()> {
        if self.is_over_at_once(request) { Ok(()) } else { self.wait_for_end(request) }
    }

    /// As [`Self::wait_complete`], for a request that nobody can wait for again: a receive from any source that would
    /// wait for deaths to be acknowledged is over, and has failed.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    #[inline(always)]
    pub fn wait_for_good(&self, request: Ref) -> Result<()> {
        match self.wait_complete(request) {
            Err(Error::ProcFailedPending { rank, how }) => {
                self.give_up(request, Error::ProcFailed { rank, how })
            }
            waited => waited,
        }
    }

    #[cold]
    fn give_up(&self, request: Ref, error: Error) -> Result<()> {
        self.cancel(request)?;
        // It may have met its message at the last moment.
        self.wait_complete(request)?;
        // SAFETY: request rule 2: complete, so it is its user's.
        let body = unsafe { request.body() };
        let status = body.status.get();
        if status.cancelled {
            body.status.set(MessageStatus { cancelled: false, ..status });
            body.error.set(Some(Box::new(error)));
        }
        Ok(())
    }

    /// Whether a request is complete, after one look at what is here already if it is not and there is one thread: the
    /// commonest end of a wait, for which nothing is prepared.
    #[inline(always)]
    pub fn is_over_at_once(&self, request: Ref) -> bool {
        let state = request.state();
        state.is_complete()
            || !self.shared
                && (self.polled_receive().await_alone(request) || {
                    self.progress().poll_unshared();
                    state.is_complete()
                })
    }

    #[inline(never)]
    fn wait_for_end(&self, request: Ref) -> Result<()> {
        let why = || Some(self.describe(request));
        self.progress().wait_until_over(why, || Some(request), || request.state().is_complete())
    }

    /// Looks whether a request is complete, after one look at what has come in if it is not.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn test_complete(&self, request: Ref) -> Result<bool> {
        if request.state().is_complete() {
            return Ok(true);
        }
        self.progress().poll_for_program(true)?;
        self.check_pending(request)?;
        Ok(request.state().is_complete())
    }

    /// Waits for several messages, as long as `left` gives one that is not over.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    #[inline]
    pub fn wait_while(&self, mut left: impl FnMut() -> Option<Ref>) -> Result<()> {
        let waited_for = core::cell::Cell::new(None);
        let why = || waited_for.get().map(|request| self.describe(request));
        self.progress().wait_until_over(
            why,
            || waited_for.get(),
            || {
                waited_for.set(left());
                waited_for.get().is_none()
            },
        )
    }

    /// Looks once at what has come in, where there is one thread: what precedes a longer wait.
    #[inline]
    pub fn look_in(&self) {
        if !self.shared {
            self.progress().poll_unshared();
        }
    }

    /// Asks `over`, and if it says no, once more after one look at what has come in.
    ///
    /// # Errors
    ///
    /// Those of `over`, and as [`Engine::wait`].
    pub fn look_for(&self, mut over: impl FnMut() -> Result<bool>) -> Result<bool> {
        if over()? {
            return Ok(true);
        }
        self.progress().poll_for_program(true)?;
        over()
    }

    /// Takes the outcome and, if it is complete, the request; `None` while it is not.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn test(&self, request: Ref) -> Result<Option<MessageStatus>> {
        if !self.test_complete(request)? {
            return Ok(None);
        }
        match self.take_outcome(request) {
            (status, None) => Ok(Some(status)),
            (_, Some(error)) => Err(error),
        }
    }

    /// The outcome of a complete request, which stays (MPI_Request_get_status).
    pub fn look_at_outcome(&self, request: Ref) -> (MessageStatus, Option<Error>) {
        debug_assert!(request.state().is_complete());
        // SAFETY: request rule 2: complete, so it is its user's.
        let body = unsafe { request.body() };
        let error = body.failure();
        (outcome(body.status.get(), error.as_ref()), error)
    }

    /// The communicator that the error of a complete request is raised on; `None` if it did not fail.
    #[inline]
    pub fn failed_on(&self, request: Ref) -> Option<RaisingComm> {
        debug_assert!(request.is_over());
        // SAFETY: request rule 2: complete, so it is its user's.
        let body = unsafe { request.body() };
        if !body.has_failed() {
            return None;
        }
        // SAFETY: the request counts as pending on the context.
        body.context.get().map(|context| unsafe { context.as_ref() }.raises_on())
    }

    /// The communicator of a request that its user has and that is active.
    pub fn comm_of(&self, request: Ref) -> Option<RaisingComm> {
        // SAFETY: request rule 2: the context of an active request does not change.
        let context = unsafe { request.body() }.context.get();
        // SAFETY: the request counts as pending on the context.
        context.map(|context| unsafe { context.as_ref() }.raises_on())
    }

    /// Takes the outcome of a complete request: its user is notified. The slot goes back, or a persistent request
    /// becomes inactive.
    pub fn take_outcome(&self, request: Ref) -> (MessageStatus, Option<Error>) {
        debug_assert!(request.state().is_complete());
        // SAFETY: request rule 2: complete, so it is its user's.
        let body = unsafe { request.body() };
        if let Some(context) = body.context.get() {
            // SAFETY: the request counts as pending on the context.
            request_event(unsafe { context.as_ref() }, request, Event::ReqNotify);
        }
        let error = body.error.take();
        let status = outcome(body.status.get(), error.as_deref());
        if body.persistent.get() {
            request.state().reset();
        } else {
            self.requests().release(request);
        }
        (status, error.map(|error| *error))
    }

    /// Takes the outcome of a request that is complete and did not fail, on a match context that nobody observes:
    /// `look` sees its status. `None`, with nothing done, in all other cases.
    #[inline(always)]
    pub fn try_take(&self, request: Ref, look: impl FnOnce(&MessageStatus)) -> Option<Taken> {
        self.try_take_in::<Unobserved>(request, look)
    }

    /// As [`Self::try_take`], where somebody may observe.
    #[inline(always)]
    pub fn try_take_observed(&self, request: Ref, look: impl FnOnce(&MessageStatus)) -> Option<Taken> {
        self.try_take_in::<Observed>(request, look)
    }

    #[inline(always)]
    fn try_take_in<O: Observation>(&self, request: Ref, look: impl FnOnce(&MessageStatus)) -> Option<Taken> {
        if !self.is_plainly_over(request) {
            return None;
        }
        // SAFETY: request rule 2: complete, so it is its user's.
        let body = unsafe { request.body() };
        if O::EVENTS
            && let Some(context) = body.context.get()
        {
            // SAFETY: the request counts as pending on the context.
            request_event(unsafe { context.as_ref() }, request, Event::ReqNotify);
        }
        look(&body.status.get());
        if body.persistent.get() {
            request.state().reset();
            return Some(Taken::Inactive);
        }
        self.requests().release_plain(request);
        Some(Taken::Gone)
    }

    /// Whether [`Self::try_take`] would take its outcome.
    #[inline(always)]
    #[must_use]
    pub fn is_plainly_over(&self, request: Ref) -> bool {
        // SAFETY: request rule 2: complete, so it is its user's.
        request.state().is_complete() && !unsafe { request.body() }.is_unusual()
    }

    /// Lets go of a request without waiting for it (MPI_Request_free).
    pub fn free_request(&self, request: Ref) {
        if request.state().detach() == Then::Release {
            self.requests().release(request);
        }
    }

    /// What a wait for this request says of itself to an observer.
    fn describe(&self, request: Ref) -> Wait {
        // SAFETY: request rule 2: these fields change at most once, when a receive is matched; an observer takes what
        // it sees as a sample.
        let body = unsafe { request.body() };
        let peer = if body.peer.get() >= 0 { Some(body.world.get()) } else { None };
        // SAFETY: an active request counts as pending on its context.
        let context_id = body.context.get().map_or(0, |context| unsafe { context.as_ref() }.id());
        let kind = match body.operation.get() {
            _ if context_id % 2 == 1 => Waiting::Collective,
            RequestOperation::Send => Waiting::Send,
            RequestOperation::Receive => Waiting::Receive,
        };
        Wait {
            kind,
            peer,
            tag: (body.tag.get() >= 0).then_some(body.tag.get()),
            context: context_id,
            since: now(),
        }
    }
}

fn outcome(status: MessageStatus, error: Option<&Error>) -> MessageStatus {
    MessageStatus { error: error.map_or(crate::abi::MPI_SUCCESS, Error::class), ..status }
}
