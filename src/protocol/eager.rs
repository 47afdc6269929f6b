//! Eager: a small message is one record with its payload, sent before a receive is known.
//!
//! A send of plain bytes that nobody observes needs no request: [`Eager::send_now`]. Any other one has a request, whose
//! payload [`Eager::send`] packs. On the receiver, small messages that wait in one ring are taken as a run
//! ([`Eager::take_run`]): what they have in common is done once for all of them.

use super::content::{Arrival, protocol_of};
use super::deliver::Tally;
use super::record::Kind;
use crate::engine::message_events::request_event;
use crate::engine::payload::{copy_in, copy_in_short};
use crate::engine::specialization::{Known, Locking, Unobserved};
use crate::engine::{Body, Engine, MatchContext, Mode, NotificationMode, Ref, Stage, TxQueue};
use crate::error::Result;
use crate::events::Event;
use crate::ring::{Consumer, Header, INLINE, MappedRing};
use crate::shm::telemetry::ProtocolKind;
use core::hint::cold_path;
use core::ptr::NonNull;

/// Where a message goes, as `comm` has translated it.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub context: &'a MatchContext,
    /// The sender's rank in the communicator.
    pub source: u32,
    /// The receiver's rank in the job.
    pub world: u32,
    pub tag: i32,
}

impl Destination<'_> {
    /// The header of an eager record that goes there, of the send with that id.
    #[inline(always)]
    fn header(&self, id: u32) -> Header {
        let Self { context, source, tag, .. } = *self;
        Header { kind: Kind::Eager as u8, context: context.id(), tag, source, id }
    }
}

/// The header of a record that carries a send, or its beginning.
pub(super) fn header_of(kind: Kind, context: &MatchContext, body: &Body, id: u32) -> Header {
    Header { kind: kind as u8, context: context.id(), tag: body.tag.get(), source: body.source.get(), id }
}

/// The id that a small message carries, by which its sender may ask to have it back: what carries a buffered send's
/// data is gone by then, and its sender has another request.
#[inline(always)]
pub(crate) fn cancel_id(id: u32, body: &Body) -> u32 {
    if body.counterpart.get() == 0 { id } else { body.counterpart.get() }
}

/// The eager protocol of an engine ([`Engine::eager`]).
#[derive(Clone, Copy)]
pub(crate) struct Eager<'e> {
    pub(super) engine: &'e Engine,
}

impl Eager<'_> {
    /// Sends plain bytes that nobody observes, at once: into the receiver's ring or, where several threads may be
    /// inside, to this rank itself. False, with nothing done, if there is no ring yet (as to this rank itself), no
    /// room, or others wait before us. `id`: the send's request, or 0; `MORE`: it may be one of many.
    /// The message is small ([`Engine::is_eager`]).
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes.
    #[inline(always)]
    pub(crate) unsafe fn send_now<L: Locking, const MORE: bool>(
        self,
        to: Destination<'_>,
        addr: *const u8,
        bytes: usize,
        id: u32,
    ) -> bool {
        if L::shared(self.engine) && to.world == self.engine.rank {
            // SAFETY: the bytes are valid, as the caller says.
            unsafe { self.engine.loopback().send_now(to, addr, bytes, id) };
            return true;
        }
        let mut tx = self.engine.peers[to.world as usize].tx.lock(L::shared(self.engine));
        let Some(tx) = tx.as_deref_mut() else { return false };
        // Where ranks outnumber CPUs the receiver keeps no distance, and would take the line away.
        let prefetch = MORE && self.engine.notification == NotificationMode::Flag;
        let header = || to.header(id);
        let pushed = if !tx.deferred.is_empty() {
            false
        } else if bytes <= INLINE {
            tx.producer.try_push_inline(&header(), bytes, prefetch, |to| {
                // SAFETY: the sender's buffer is valid for `bytes` bytes, and the ring's memory is none of it.
                unsafe { copy_in_short(addr, to) };
            })
        } else {
            cold_path();
            tx.producer.try_push_long(header(), bytes, prefetch, |room| {
                // SAFETY: the sender's buffer is valid for `bytes` bytes, and a block or the bulk area is none of it.
                unsafe { copy_in(addr, room) };
            })
        };
        if pushed {
            self.engine.telemetry().count_sent(protocol_of(bytes), bytes, L::shared(self.engine));
            self.engine.transmit().notify(tx);
        }
        pushed
    }

    /// Puts a small message into the ring, or behind what waits for room there.
    pub(crate) fn send(self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: we have just activated it and nobody else knows it.
        let world = unsafe { request.body() }.world.get();
        self.engine.transmit().with(world, |tx| {
            if !(tx.deferred.is_empty() && self.push_request(tx, request)) {
                self.engine.transmit().defer(tx, request);
            }
        })
    }

    /// Puts a small send into the ring and moves its request on; false, and nothing done, if there is no room.
    pub(crate) fn push_request(self, tx: &mut TxQueue, request: Ref) -> bool {
        // SAFETY: request rule 2: the send is active and in our hands: not yet pushed.
        let body = unsafe { request.body() };
        if !tx.producer.room(body.bytes.get()) {
            return false;
        }
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() };
        request_event(context, request, Event::ReqXferBegin);
        let synchronous = body.mode.get() == Mode::Synchronous;
        let kind = if synchronous { Kind::EagerSynchronous } else { Kind::Eager };
        let header = header_of(kind, context, body, cancel_id(request.id(), body));
        if synchronous {
            // Before the push: the answer may be here before we are back.
            body.stage.set(Stage::AwaitsMatch);
        }
        self.engine.telemetry().count_sent(
            protocol_of(body.bytes.get()),
            body.bytes.get(),
            self.engine.shared,
        );
        if synchronous && context.observed() {
            return push_observed(tx, &header, context, request);
        }
        // SAFETY: the user's buffer stays valid until the request completes.
        let pushed = tx.producer.try_push(&header, body.bytes.get(), |to| unsafe { body.pack(0, to) });
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        if !synchronous {
            // Nobody answers it, so it is ours after the commit, too.
            request_event(context, request, Event::ReqXferEnd);
            body.forget_datatype();
            self.engine.requests().finish(request);
        }
        true
    }

    /// Tells a synchronous sender that its message has been matched.
    pub(crate) fn acknowledge(self, world: u32, id: u32) -> Result<()> {
        self.engine.answer(world, id, super::Control::Matched)
    }

    /// The receiver has matched a synchronous message.
    pub(super) fn on_matched(self, from: u32, id: u32) -> Result<()> {
        let request = self.engine.requests().own_send(from, id, |stage| stage == Stage::AwaitsMatch)?;
        self.engine.requests().finish(request);
        Ok(())
    }

    /// Takes records of `from` (a rank of the job) as long as each is a small message on a match context that is there
    /// and not observed, and `most` at most. How many those were. `SHARED` is [`Engine::is_shared`].
    #[inline(always)]
    pub(crate) fn take_run<const SHARED: bool>(
        self,
        from: u32,
        consumer: &mut Consumer<MappedRing>,
        most: usize,
    ) -> usize {
        let mut tally = Tally::default();
        let taken = consumer.poll_batch(most, |header, data| {
            self.take_eager::<Known<SHARED>>(&mut tally, from, header, data)
        });
        self.engine.delivery().publish(&mut tally, ProtocolKind::Inline, SHARED);
        taken
    }

    /// The same for one eager message, which may have its payload anywhere.
    /// False, with nothing done, if it must go the slow path.
    #[inline]
    pub(crate) fn take_one_eager<const SHARED: bool>(self, from: u32, header: &Header, data: &[u8]) -> bool {
        let mut tally = Tally::default();
        let taken = self.take_eager::<Known<SHARED>>(&mut tally, from, header, data);
        self.engine.delivery().publish(&mut tally, protocol_of(data.len()), SHARED);
        taken
    }

    #[inline(always)]
    fn take_eager<L: Locking>(self, tally: &mut Tally, from: u32, header: &Header, data: &[u8]) -> bool {
        if header.kind != Kind::Eager as u8 {
            return false;
        }
        let known =
            if L::shared(self.engine) || tally.context_id != header.context { None } else { tally.context };
        let Some(context) = known.or_else(|| self.turn_to(tally, header.context)) else { return false };
        // SAFETY: an open context: closed ones go only when their communicator is freed here, which a message for it
        // must not outlive (MPI 5.0 §7.4.3); and one that is known has been there since the last message, for no
        // request has been let go of.
        let context = unsafe { context.as_ref() };
        let message = Arrival::of(from, header, data);
        let envelope = message.envelope;
        if let Some((request, data)) =
            self.engine.delivery().match_posted::<L, Unobserved, _>(tally, context, message)
        {
            self.engine.delivery().deliver::<L, Unobserved, _>(tally, context, request, &envelope, data);
        }
        true
    }

    /// The match context of that id, if it is there and nobody observes it.
    #[inline(never)]
    fn turn_to(self, tally: &mut Tally, context_id: u32) -> Option<NonNull<MatchContext>> {
        self.engine.delivery().settle(tally);
        let context = self.engine.contexts.get(context_id)?;
        // SAFETY: an open context: closed ones go only when their communicator is freed here, which a message for it
        // must not outlive (MPI 5.0 §7.4.3).
        if unsafe { context.as_ref() }.observed() {
            return None;
        }
        (tally.context_id, tally.context) = (context_id, Some(context));
        Some(context)
    }
}

/// Pushes a synchronous send that somebody observes: the answer may come, and complete it, as soon as it is committed,
/// so its transfer ends before that.
#[cold]
#[inline(never)]
fn push_observed(tx: &mut TxQueue, header: &Header, context: &MatchContext, request: Ref) -> bool {
    // SAFETY: request rule 2: the send is active and not yet pushed, so it belongs to the thread that pushes it.
    let body = unsafe { request.body() };
    tx.producer.try_push(header, body.bytes.get(), |to| {
        // SAFETY: the user's buffer stays valid until the request completes.
        unsafe { body.pack(0, to) };
        request_event(context, request, Event::ReqXferEnd);
    })
}
