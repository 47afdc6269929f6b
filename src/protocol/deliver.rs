//! A message meets its receive: the one path, for every protocol, from whichever side comes last.
//!
//! [`Delivery::match_posted`] looks for the receive of a message that has come, [`Delivery::claim`] for the message of
//! a receive that begins; [`Delivery::deliver`] copies and completes. What is known at compile time
//! ([`crate::engine::specialization`]) leaves of them the few steps of the fast path: the functions that say `Unlocked`
//! and `Unobserved` are that path, and no other text of it exists.

use super::content::{Arrival, Content, OwnedContent, protocol_of};
use super::loopback::OwnSend;
use crate::abi;
use crate::engine::message_events::{
    arrival_event, match_event, message_event, request_event, search_event, searched, searched_event,
};
use crate::engine::specialization::{AsStarted, Locking, Observation, Observed};
use crate::engine::{
    Engine, MatchContext, Payload, Queues, RecvMemory, Ref, Stage, UnexpectedMessage, corrupt,
};
use crate::error::Result;
use crate::events::{Event, EventPayload};
use crate::matching::{Envelope, FoundMessage, Pattern};
use crate::request::{MessageStatus, Then};
use crate::ring::Header;
use crate::shm::telemetry::ProtocolKind;
use core::ptr::NonNull;

/// What a run of messages adds to counts that others read: published once for all of them.
#[derive(Default)]
pub(crate) struct Tally {
    /// The context id of the last message.
    pub context_id: u32,
    /// Its match context, which stays while no request is let go of. Not kept where several threads may be inside, any
    /// of which may take a context away.
    pub context: Option<NonNull<MatchContext>>,
    /// Receives on that context that have met their message.
    matched: i64,
    messages: u64,
    bytes: u64,
}

impl Tally {
    /// That of one message on `context`.
    #[inline(always)]
    pub fn on(context: &MatchContext) -> Self {
        Self { context: Some(NonNull::from(context)), ..Self::default() }
    }
}

/// What the unexpected message queue has for a receive.
pub(crate) enum Claim {
    /// No message that it takes.
    Nothing,
    /// One that is not here as a whole, does not fit, or whose sender awaits an answer. It is still in the queue.
    Unfit(FoundMessage),
    /// One that it got: its status, and the sender's rank in the job.
    Given(MessageStatus, u32),
}

/// The meeting of messages and receives ([`Engine::delivery`]).
#[derive(Clone, Copy)]
pub(crate) struct Delivery<'e> {
    pub(super) engine: &'e Engine,
}

impl Delivery<'_> {
    /// Looks for the receive of a message. If there is none, the message is unexpected from now on; else the receive is
    /// out of its queue, has the message's envelope, and comes back with the content.
    #[inline(always)]
    pub(crate) fn match_posted<L: Locking, O: Observation, C: Content>(
        self,
        tally: &mut Tally,
        context: &MatchContext,
        message: Arrival<C>,
    ) -> Option<(Ref, C)> {
        let bytes = message.content.bytes();
        let envelope = message.envelope;
        let mut queues = context.queues.lock(L::shared(self.engine));
        let mut id = 0;
        if O::EVENTS && context.observed() {
            id = self.engine.fresh_id();
        }
        match self.take_posted::<L, O>(tally, context, &mut queues, message.from, &envelope, bytes, id) {
            Some(request) => Some((request, message.content)),
            None => {
                self.keep(context, &mut queues, message, id);
                if O::EVENTS {
                    message_event(context, id, Event::MsgInsertInUnexQ, &envelope, bytes);
                }
                None
            }
        }
    }

    /// Takes the oldest posted receive that a message of `bytes` bytes fits out of the queue and gives it the message's
    /// envelope. `id` is the message's in events.
    #[inline(always)]
    pub(crate) fn take_posted<L: Locking, O: Observation>(
        self,
        tally: &mut Tally,
        context: &MatchContext,
        queues: &mut Queues,
        from: u32,
        envelope: &Envelope,
        bytes: usize,
        id: isize,
    ) -> Option<Ref> {
        let request = if O::EVENTS {
            let search = if id != 0 { self.engine.fresh_id() } else { 0 };
            arrival_event(context, &mut queues.arrivals, id, envelope, bytes);
            message_event(context, search, Event::SearchPostedQBegin, envelope, bytes);
            let found = queues.posted.take(envelope);
            let end = || searched(queues.posted.last_attempts(), found.is_some());
            searched_event(context, search, Event::SearchPostedQEnd, envelope, bytes, end);
            found
        } else {
            queues.posted.take_uncounted(envelope)
        }?;
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { request.body() };
        // Under the queues, where who cancels looks.
        body.stage.set(Stage::Done);
        body.peer.set(envelope.source as i32);
        body.tag.set(envelope.tag);
        body.world.set(from);
        body.total.set(bytes);
        if O::EVENTS || L::shared(self.engine) {
            self.count_posted(context, -1, L::shared(self.engine));
        } else {
            tally.matched += 1;
        }
        if O::EVENTS {
            match_event(context, id, body);
            request_event(context, request, Event::ReqRemoveFromPostedQ);
        }
        Some(request)
    }

    /// Keeps a message that no receive was posted for.
    #[inline(never)]
    fn keep<C: Content>(
        self,
        context: &MatchContext,
        queues: &mut Queues,
        message: Arrival<C>,
        event_id: isize,
    ) {
        let Arrival { from, envelope, id, synchronous, content } = message;
        let payload = content.keep();
        let kept = UnexpectedMessage { world: from, id, synchronous, event_id, payload };
        self.count_unexpected(context, 1, kept.held(), self.engine.shared);
        queues.unexpected.insert(envelope, kept);
        if self.engine.shared {
            // Another thread may probe for it.
            self.engine.progress().notify_any_event();
        }
    }

    /// Copies a whole message to its receive and completes it.
    #[inline(always)]
    pub(crate) fn deliver<L: Locking, O: Observation, C: OwnedContent>(
        self,
        tally: &mut Tally,
        context: &MatchContext,
        request: Ref,
        envelope: &Envelope,
        content: C,
    ) {
        // SAFETY: request rule 2: matched, so it belongs to the thread that has the message.
        let body = unsafe { request.body() };
        let bytes = content.bytes();
        if bytes > body.bytes.get() || !body.is_bytes() {
            return self.deliver_rare(tally, context, request, content);
        }
        if O::EVENTS {
            request_event(context, request, Event::ReqXferBegin);
        }
        // SAFETY: the user's buffer stays valid until the request completes, and the message fits.
        unsafe { content.copy_to(body.addr.get()) };
        if O::EVENTS {
            request_event(context, request, Event::ReqXferEnd);
            self.count_received(content.protocol(), bytes, L::shared(self.engine));
        } else {
            tally.messages += 1;
            tally.bytes += bytes as u64;
        }
        content.sent(self.engine);
        body.status.set(status_of(envelope.source, envelope.tag, bytes));
        if O::EVENTS {
            self.settle(tally);
            self.engine.requests().finish(request);
        } else if L::shared(self.engine) {
            self.engine.requests().complete(request, true);
        } else if request.state().complete(false) == Then::Release {
            self.let_go(tally, request);
        }
    }

    /// A matched message that must be unpacked, or does not fit.
    #[cold]
    #[inline(never)]
    fn deliver_rare<C: OwnedContent>(
        self,
        tally: &mut Tally,
        context: &MatchContext,
        request: Ref,
        content: C,
    ) {
        self.settle(tally);
        // SAFETY: request rule 2: matched, so it belongs to the thread that has the message.
        let body = unsafe { request.body() };
        let (bytes, taken) = (content.bytes(), content.bytes().min(body.bytes.get()));
        request_event(context, request, Event::ReqXferBegin);
        // SAFETY: the user's buffer stays valid until the request completes; `taken` fits.
        unsafe { content.unpack_to(body, taken) };
        request_event(context, request, Event::ReqXferEnd);
        body.forget_datatype();
        self.count_received(content.protocol(), taken, self.engine.shared);
        content.sent(self.engine);
        self.engine.requests().finish_receive(request, bytes);
    }

    /// A message that has come as a whole, on the slow path: to its receive or among the unexpected ones. Whether there
    /// was a receive.
    pub(crate) fn arrive<C: OwnedContent>(self, context: &MatchContext, message: Arrival<C>) -> bool {
        let envelope = message.envelope;
        let mut tally = Tally::on(context);
        let matched = self.match_posted::<AsStarted, Observed, C>(&mut tally, context, message);
        let Some((request, content)) = matched else { return false };
        self.deliver::<AsStarted, Observed, C>(&mut tally, context, request, &envelope, content);
        true
    }

    /// Releases a request whose user has let go of it: it may be the last that keeps the context.
    #[cold]
    #[inline(never)]
    fn let_go(self, tally: &mut Tally, request: Ref) {
        self.settle(tally);
        self.engine.requests().release(request);
    }

    /// Publishes how many receives have met their message, and forgets the context.
    #[inline(always)]
    pub(crate) fn settle(self, tally: &mut Tally) {
        let matched = core::mem::take(&mut tally.matched);
        if let Some(context) = tally.context.take()
            && matched > 0
        {
            // SAFETY: there since the last message, for no request has been let go of. Where there are other threads
            // none is counted here.
            self.count_posted(unsafe { context.as_ref() }, -matched, false);
        }
    }

    /// Publishes all that `tally` has; its messages went by `protocol`.
    #[inline(always)]
    pub(crate) fn publish(self, tally: &mut Tally, protocol: ProtocolKind, shared: bool) {
        self.settle(tally);
        if tally.messages > 0 {
            self.engine.telemetry().count_received(protocol, tally.messages, tally.bytes, shared);
        }
    }

    /// Looks for an unexpected message for a receive, and copies the message from where it lies if it is here as a
    /// whole and fits `room`. Observed, a message that is found is the receive's (`request`) whether it fits or not.
    #[inline(always)]
    pub(crate) fn claim<L: Locking, O: Observation>(
        self,
        context: &MatchContext,
        queues: &mut Queues,
        room: Option<RecvMemory<'_>>,
        pattern: &Pattern,
        request: Option<Ref>,
    ) -> Claim {
        let observer = if O::EVENTS { request } else { None };
        let queue = &mut queues.unexpected;
        let search = if O::EVENTS { self.engine.search_id(context) } else { 0 };
        if let Some(request) = observer {
            search_event(context, request, Event::SearchUnexQBegin, search, || EventPayload::None);
        }
        let found = queue.find(pattern);
        if let Some(request) = observer {
            let end = || searched(queue.last_attempts(), found.is_some());
            search_event(context, request, Event::SearchUnexQEnd, search, end);
        }
        let Some(found) = found else { return Claim::Nothing };
        let (envelope, message) = queue.at(found);
        let fits = message.whole().zip(room).filter(|(data, room)| room.fits(data.len()));
        if let Some(request) = observer {
            self.count_unexpected(context, -1, message.held(), L::shared(self.engine));
            self.give_envelope(request, envelope, message);
            request_event(context, request, Event::ReqMatchUnex);
            self.engine.removal_event(context, envelope, message);
        }
        let Some((data, room)) = fits else { return Claim::Unfit(found) };
        let bytes = data.len();
        if let Some(request) = observer {
            request_event(context, request, Event::ReqXferBegin);
        }
        // SAFETY: the message fits, and lies in memory of the engine's, which is no user's.
        unsafe { room.fill(data) };
        if let Some(request) = observer {
            request_event(context, request, Event::ReqXferEnd);
        }
        let status = status_of(envelope.source, envelope.tag, bytes);
        let (world, held) = (message.world, message.held());
        queue.discard(found);
        if !O::EVENTS {
            self.count_unexpected(context, -1, held, L::shared(self.engine));
        }
        self.count_received(protocol_of(bytes), bytes, L::shared(self.engine));
        Claim::Given(status, world)
    }

    /// From now on the receive has the message's peer and tag.
    #[inline(always)]
    pub(crate) fn give_envelope(self, request: Ref, envelope: &Envelope, message: &UnexpectedMessage) {
        // SAFETY: request rule 2: matched under the queues, so it is ours.
        let body = unsafe { request.body() };
        body.peer.set(envelope.source as i32);
        body.tag.set(envelope.tag);
        body.world.set(message.world);
        body.total.set(message.bytes());
    }

    /// Puts a receive into the posted receive queue.
    #[inline(always)]
    pub(crate) fn post<L: Locking>(
        self,
        context: &MatchContext,
        queues: &mut Queues,
        pattern: Pattern,
        request: Ref,
    ) {
        // SAFETY: request rule 2: not in a queue yet, so it belongs to the thread that posts it.
        unsafe { request.body() }.stage.set(Stage::Posted);
        queues.posted.insert(pattern, request);
        self.count_posted(context, 1, L::shared(self.engine));
    }

    /// Gives a matched receive a message that was unexpected and is in no queue any more.
    pub(crate) fn accept(self, request: Ref, message: UnexpectedMessage) -> Result<()> {
        let UnexpectedMessage { world, id, synchronous, payload, .. } = message;
        match payload {
            Payload::Small(len, bytes) => self.accept_whole(request, &bytes[..usize::from(len)]),
            Payload::Whole(bytes) => self.accept_whole(request, &bytes[..]),
            Payload::Announced(rts) => return self.engine.rendezvous().accept_rts(request, id, rts),
            Payload::Local(send) => self.accept_whole(request, OwnSend { send, copied: false }),
        }
        if synchronous { self.engine.eager().acknowledge(world, id) } else { Ok(()) }
    }

    fn accept_whole<C: OwnedContent>(self, request: Ref, content: C) {
        // SAFETY: request rule 2: matched, so it belongs to the thread that has the message;
        // active, so its context stays.
        let body = unsafe { request.body() };
        // SAFETY: the request is active.
        let context = unsafe { body.active_context() };
        let envelope = Envelope { source: body.peer.get() as u32, tag: body.tag.get() };
        self.deliver::<AsStarted, Observed, C>(&mut Tally::default(), context, request, &envelope, content);
    }

    /// The match context that a record names, made if it is not there.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Corrupt`] if there can be none of that id.
    #[inline(always)]
    pub(crate) fn context_of(self, from: u32, header: &Header) -> Result<&MatchContext> {
        let Some(context) = self.engine.context(header.context) else {
            return Err(corrupt(from, format!("context id {} is out of range", header.context)));
        };
        // SAFETY: an open context, or one that we have just made; closed ones go only when their communicator is freed
        // here, which a message for it must not outlive (MPI 5.0 §7.4.3: freed when all that is pending is over).
        Ok(unsafe { context.as_ref() })
    }

    /// Counts one message received.
    #[inline(always)]
    pub(crate) fn count_received(self, protocol: ProtocolKind, bytes: usize, shared: bool) {
        self.engine.telemetry().count_received(protocol, 1, bytes as u64, shared);
    }

    /// Notes that `change` receives were posted (or taken, if negative). The caller has the context's queues; `shared`
    /// is [`Engine::is_shared`].
    #[inline(always)]
    pub(crate) fn count_posted(self, context: &MatchContext, change: i64, shared: bool) {
        context.posted.step(change);
        self.engine.telemetry().change_posted(change, shared);
    }

    /// Notes that `change` messages became unexpected (or were taken), which hold `bytes` bytes of memory. The caller
    /// has the context's queues; `shared` is [`Engine::is_shared`].
    #[inline(always)]
    pub(crate) fn count_unexpected(self, context: &MatchContext, change: i64, bytes: usize, shared: bool) {
        let telemetry = self.engine.telemetry();
        context.unexpected.step(change);
        telemetry.change_unexpected(change, shared);
        if bytes > 0 {
            telemetry.unexpected_bytes.change(change * bytes as i64, shared);
        }
    }
}

/// The pattern of MPI's source and tag arguments.
#[inline(always)]
pub(crate) fn pattern(source: i32, tag: i32) -> Pattern {
    Pattern {
        source: (source != abi::MPI_ANY_SOURCE).then_some(source as u32),
        tag: (tag != abi::MPI_ANY_TAG).then_some(tag),
    }
}

/// The status of a received message.
#[inline(always)]
pub(crate) fn status_of(source: u32, tag: i32, bytes: usize) -> MessageStatus {
    MessageStatus { source: source as i32, tag, bytes: bytes as u64, ..MessageStatus::EMPTY }
}
