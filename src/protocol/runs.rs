//! Small messages out of one ring, one after the other, on contexts that nobody observes: each to its receive, or among the
//! unexpected ones. What they have in common is done once for all of them.

use super::eager::{protocol_of, status_of};
use crate::engine::Engine;
use crate::engine::tx::{copy_out, unpack};
use crate::engine::{Layout, Ref, Stage};
use crate::engine::{MatchContext, Payload, Queues, UnexpectedMessage};
use crate::matching::Envelope;
use crate::protocol::Kind;
use crate::request::Then;
use crate::ring::{Consumer, Header, MappedRing};
use crate::shm::telemetry::ProtocolKind;
use core::ptr::NonNull;

/// What a run of messages has come to, and what is not told yet.
#[derive(Default)]
struct Passing {
    /// The context of the last message, and its context, which stays while no request is let go of. Not used where several threads
    /// may be inside, any of which may take a context away.
    context_id: u32,
    context: Option<NonNull<MatchContext>>,
    /// Receives on that context that have met their message.
    matched: i64,
    messages: u64,
    bytes: u64,
}

impl Engine {
    /// Takes records of `from` (a rank of the job) as long as each is a small message on a context that is there and not
    /// observed, and `most` at most. How many those were. `SHARED` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn arrive_in_turn<const SHARED: bool>(
        &self,
        from: u32,
        consumer: &mut Consumer<MappedRing>,
        most: usize,
    ) -> usize {
        let mut passing = Passing::default();
        let taken =
            consumer.run(most, |header, data| self.arrive_next::<SHARED>(&mut passing, from, header, data));
        self.pass::<SHARED>(&mut passing, ProtocolKind::Inline);
        taken
    }

    /// The same for one eager message, which may have its payload anywhere. False, with nothing done, if it must go the general
    /// way.
    #[inline]
    pub(crate) fn arrive_alone<const SHARED: bool>(&self, from: u32, header: &Header, data: &[u8]) -> bool {
        let mut passing = Passing::default();
        let taken = self.arrive_next::<SHARED>(&mut passing, from, header, data);
        self.pass::<SHARED>(&mut passing, protocol_of(data.len()));
        taken
    }

    /// The run is over.
    #[inline(always)]
    fn pass<const SHARED: bool>(&self, passing: &mut Passing, protocol: ProtocolKind) {
        self.settle(passing);
        if passing.messages > 0 {
            self.telemetry().count_received(protocol, passing.messages, passing.bytes, SHARED);
        }
    }

    /// One of them. False, with nothing done, if it must go the general way.
    #[inline(always)]
    fn arrive_next<const SHARED: bool>(
        &self,
        passing: &mut Passing,
        from: u32,
        header: &Header,
        data: &[u8],
    ) -> bool {
        if header.kind != Kind::Eager as u8 {
            return false;
        }
        let known = if SHARED || passing.context_id != header.context { None } else { passing.context };
        let Some(context) = known.or_else(|| self.turn_to(passing, header.context)) else { return false };
        // SAFETY: as in `match_posted`; and one that is known has been there since the last message, for no request has been
        // let go of (`let_go`).
        let context = unsafe { context.as_ref() };
        let envelope = Envelope { source: header.source, tag: header.tag };
        let mut queues = context.queues.lock(SHARED);
        let Some(request) = queues.posted.take_uncounted(&envelope) else {
            self.keep(context, &mut queues, from, header, data);
            return true;
        };
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { request.body() };
        // Under the queues, where who cancels looks.
        body.stage = Stage::Done;
        body.peer = header.source as i32;
        body.tag = header.tag;
        body.world = from;
        if SHARED {
            self.note_posted_beside(context, -1, true);
        } else {
            passing.matched += 1;
        }
        drop(queues);
        body.total = data.len();
        if data.len() > body.bytes || !matches!(body.layout, Layout::Bytes) {
            self.arrive_unusually(passing, request, data);
            return true;
        }
        // SAFETY: the user's buffer stays valid until the request completes, and the message fits; the ring is none of it.
        unsafe { copy_out(data, body.addr) };
        passing.messages += 1;
        passing.bytes += data.len() as u64;
        body.status = status_of(header.source, header.tag, data.len());
        if SHARED {
            self.complete(request, true);
        } else if request.state().complete(false) == Then::Release {
            self.let_go(passing, request);
        }
        true
    }

    /// Keeps a message that no receive was posted for.
    #[inline(never)]
    fn keep(&self, context: &MatchContext, queues: &mut Queues, from: u32, header: &Header, data: &[u8]) {
        let payload = Payload::copy(data);
        let arrived =
            UnexpectedMessage { world: from, id: header.id, synchronous: false, event_id: 0, payload };
        self.note_unexpected(context, 1, arrived.held(), self.shared);
        let envelope = Envelope { source: header.source, tag: header.tag };
        queues.unexpected.insert(envelope, arrived);
    }

    /// The context of a context, if it is there and nobody observes it.
    #[inline(never)]
    fn turn_to(&self, passing: &mut Passing, context_id: u32) -> Option<NonNull<MatchContext>> {
        self.settle(passing);
        let context = self.contexts.get(context_id)?;
        // SAFETY: as in `match_posted`.
        if unsafe { context.as_ref() }.observed() {
            return None;
        }
        (passing.context_id, passing.context) = (context_id, Some(context));
        Some(context)
    }

    /// Tells how many receives have met their message, and forgets the context.
    #[inline(always)]
    fn settle(&self, passing: &mut Passing) {
        let matched = core::mem::take(&mut passing.matched);
        if let Some(context) = passing.context.take()
            && matched > 0
        {
            // SAFETY: as in `arrive_next`. Where there are other threads none is counted here.
            self.note_posted_beside(unsafe { context.as_ref() }, -matched, false);
        }
    }

    /// Releases a request whose user has let go of it: it may be the last that keeps the context.
    #[cold]
    #[inline(never)]
    fn let_go(&self, passing: &mut Passing, request: Ref) {
        self.settle(passing);
        self.release_request(request);
    }

    /// A matched message that must be unpacked, or does not fit.
    #[cold]
    #[inline(never)]
    fn arrive_unusually(&self, passing: &mut Passing, request: Ref, data: &[u8]) {
        self.settle(passing);
        // SAFETY: request rule 2: matched, so it belongs to who holds the message.
        let body = unsafe { request.body() };
        let taken = data.len().min(body.bytes);
        // SAFETY: the user's buffer stays valid until the request completes; `taken` fits.
        unsafe { unpack(body, 0, &data[..taken]) };
        self.count_received(protocol_of(data.len()), taken, self.shared);
        self.finish_receive(request, data.len());
    }
}
