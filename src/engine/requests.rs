//! A request's life in the engine: made on a match context, completed, released.

use super::message_events::request_event;
use super::operation::{Body, Ref, RequestOperation, Stage};
use super::specialization::{Locked, Locking, Unlocked, apart};
use super::{Engine, MatchContext, corrupt};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::request::{MessageStatus, Then};

/// The requests of an engine ([`Engine::requests`]).
#[derive(Debug, Clone, Copy)]
pub struct Requests<'e> {
    pub(super) engine: &'e Engine,
}

impl Requests<'_> {
    /// A new request on `context`, counted as pending there.
    #[inline(always)]
    pub(crate) fn take(self, context: &MatchContext) -> Result<Ref> {
        let request = self
            .engine
            .slab
            .take(self.engine.shared)
            .ok_or_else(|| Error::NoMem("too many requests are alive".into()))?;
        context.retain(self.engine.shared);
        Ok(request)
    }

    /// The request of that name, if it is alive.
    #[inline(always)]
    #[must_use]
    pub fn get(self, id: usize) -> Option<Ref> {
        self.engine.slab.get(id)
    }

    /// Completes a receive whose message had `sent` bytes.
    #[inline(always)]
    pub(crate) fn finish_receive(self, request: Ref, sent: usize) {
        // SAFETY: request rule 2: the receive is matched, so it belongs to the thread that has its message.
        let body = unsafe { request.body() };
        body.status.set(MessageStatus {
            source: body.peer.get(),
            tag: body.tag.get(),
            bytes: sent.min(body.bytes.get()) as u64,
            ..MessageStatus::EMPTY
        });
        if sent > body.bytes.get() {
            let error = Error::Truncate { sent: sent as u64, room: body.bytes.get() as u64 };
            body.error.set(Some(Box::new(error)));
        }
        self.finish(request);
    }

    /// Completes a request: the engine's last touch (request rule 3).
    #[inline]
    pub(crate) fn finish(self, request: Ref) {
        // SAFETY: request rule 2: a request is completed by the thread that has it.
        let body = unsafe { request.body() };
        body.stage.set(Stage::Done);
        if let Some(context) = body.context.get() {
            // SAFETY: the request counts as pending on the context.
            request_event(unsafe { context.as_ref() }, request, Event::ReqComplete);
        }
        self.complete(request, self.engine.shared);
    }

    /// The last step of [`Self::finish`].
    #[inline(always)]
    pub(crate) fn complete(self, request: Ref, shared: bool) {
        if shared {
            return self.complete_shared(request);
        }
        if request.state().complete(false) == Then::Release {
            self.release(request);
        }
    }

    #[inline(never)]
    fn complete_shared(self, request: Ref) {
        let (then, awaited) = request.state().complete_shared();
        if then == Then::Release {
            self.release(request);
        }
        self.engine.progress().notify_completion(awaited);
    }

    /// Gives a request's slot back (request rule 4: to be called once).
    #[inline]
    pub(crate) fn release(self, request: Ref) {
        // SAFETY: request rule 2: the request is over, or was never activated, and the caller is the one to release it.
        let body = unsafe { request.body() };
        if body.owns() {
            body.shed();
        }
        self.release_plain(request);
    }

    /// As [`Self::release`], of one that owns nothing.
    #[inline(always)]
    pub(crate) fn release_plain(self, request: Ref) {
        if self.engine.shared {
            apart(move || self.release_in::<Locked>(request))
        } else {
            self.release_in::<Unlocked>(request)
        }
    }

    #[inline(always)]
    fn release_in<L: Locking>(self, request: Ref) {
        // SAFETY: request rule 2: over or never activated, and in the hands of the thread that releases it.
        let body = unsafe { request.body() };
        let context = body.context.take();
        self.engine.slab.release(request, L::shared(self.engine));
        if let Some(context) = context {
            // SAFETY: the request was counted as pending on the context until now, so the context is there.
            if unsafe { context.as_ref() }.release(L::shared(self.engine)) {
                self.engine.close_context(context);
            }
        }
    }

    /// The send that a peer speaks of: ours, active, to that peer, and at a stage that the answer fits.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if there is none.
    pub(crate) fn own_send(self, from: u32, id: u32, fits: impl FnOnce(Stage) -> bool) -> Result<Ref> {
        self.own_request(from, id, RequestOperation::Send, fits)
    }

    /// The receive that a peer speaks of, checked as [`Self::own_send`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if there is none.
    pub(crate) fn own_receive(self, from: u32, id: u32, fits: impl FnOnce(Stage) -> bool) -> Result<Ref> {
        self.own_request(from, id, RequestOperation::Receive, fits)
    }

    fn own_request(
        self,
        from: u32,
        id: u32,
        operation: RequestOperation,
        fits: impl FnOnce(Stage) -> bool,
    ) -> Result<Ref> {
        let wrong = || corrupt(from, format!("an answer about request {id}, which waits for none"));
        let request = self
            .engine
            .slab
            .get(id as usize)
            .filter(|request| request.state().is_active())
            .ok_or_else(wrong)?;
        // SAFETY: request rule 2: an active request that awaits a peer's answer belongs to progress, which we run; one
        // that awaits none is only read here, and the record is refused.
        let body: &Body = unsafe { request.body() };
        if body.operation.get() == operation && body.world.get() == from && fits(body.stage.get()) {
            Ok(request)
        } else {
            Err(wrong())
        }
    }
}
