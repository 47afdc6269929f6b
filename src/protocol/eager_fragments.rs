//! Eager fragments: messages of medium size are sent in several records before a receive is known, so that both ranks
//! copy at once and nobody waits for an answer.
//!
//! The first record says how much comes; the fragments are the very next records of the ring. The sender sends them
//! only if there is room for all of them, so for the sender the message is what an eager one is: over when it is
//! pushed. On the receiver the fragments go to the buffer of the receive that the first record has met. If there is
//! none, or somebody observes the match context, they are put together,
//! and the message arrives when its last fragment does, as an eager one.

use super::content::Arrival;
use super::deliver::Tally;
use super::eager::{cancel_id, header_of};
use super::record::{Control, Kind};
use crate::arch::copy_slice;
use crate::engine::message_events::request_event;
use crate::engine::specialization::{AsStarted, Unobserved};
use crate::engine::{Body, Contents, CopyRates, CopyRoute, Engine, Ref, TxQueue, corrupt, timed};
use crate::error::Result;
use crate::events::Event;
use crate::matching::Envelope;
use crate::ring::{Header, INLINE};
use crate::scratch::Scratch;
use crate::shm::telemetry::ProtocolKind;

/// Bytes that a peer may hold for unexpected messages; beyond, it is asked before it gets more.
const HELD: u64 = 4 << 20;
/// Bytes of one fragment where the ring is large enough for several.
const FRAGMENT: usize = 16 << 10;

/// A message of which a part has come.
#[derive(Debug)]
pub(crate) struct Assembly {
    first: Header,
    total: usize,
    moved: usize,
    target: FragmentTarget,
}

impl Assembly {
    /// The receive that the message was for, of which no more will come.
    pub(super) fn receive(self) -> Option<Ref> {
        match self.target {
            FragmentTarget::Receive(request) => Some(request),
            FragmentTarget::Whole(_) => None,
        }
    }
}

/// Where the fragments go.
#[derive(Debug)]
enum FragmentTarget {
    /// To the buffer of this receive.
    Receive(Ref),
    /// Together.
    Whole(Scratch),
}

/// The protocol of eager fragments of an engine.
#[derive(Clone, Copy)]
pub(super) struct EagerFragments<'e> {
    pub(super) engine: &'e Engine,
}

impl<'e> EagerFragments<'e> {
    /// Sends a message in fragments, or by rendezvous if the ring has no room for all of them.
    pub(crate) fn send(self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: we have just activated it and nobody else knows it.
        let body = unsafe { request.body() };
        let world = body.world.get();
        let held = self.engine.job.telemetry(world).unexpected_bytes.now.get();
        let sent = held <= HELD
            && self.engine.transmit().with(world, |tx| self.push_fragments(tx, request, body))?;
        if sent { Ok(()) } else { self.engine.rendezvous().send_rts(request) }
    }

    /// Pushes the first record and all fragments; false, and nothing done,
    /// if there is no room or others wait before us.
    fn push_fragments(self, tx: &mut TxQueue, request: Ref, body: &Body) -> bool {
        let most = FRAGMENT.min(tx.producer.max_payload() / 2).max(INLINE);
        if !tx.deferred.is_empty() || !tx.producer.room_for_fragments(body.bytes.get(), most) {
            return false;
        }
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() };
        let (total, contents) = (body.bytes.get() as u64, body.contents.get());
        let (kind, payload) = Control::First { total, contents }.write();
        let first = header_of(kind, context, body, cancel_id(request.id(), body));
        let mut pushed = tx.producer.try_push(&first, payload.len(), |to| to.copy_from_slice(&payload));
        let rates = self.rates_of(body, body.bytes.get());
        let (mut at, mut event) = (0, Event::ReqXferBegin);
        while at < body.bytes.get() {
            let len = most.min(body.bytes.get() - at);
            request_event(context, request, event);
            event = Event::ReqXferContinue;
            let header = Header { kind: Kind::Fragment as u8, id: 0, ..first };
            // SAFETY: the user's buffer stays valid until the request completes; the fragment lies within it.
            let push = || tx.producer.try_push(&header, len, |to| unsafe { body.pack(at, to) });
            let (fragment, ticks) = timed(len, push);
            pushed &= fragment;
            if let Some(rates) = rates {
                rates.filled(len, ticks);
            }
            at += len;
            if at < body.bytes.get() {
                // The receiver should begin to copy while we copy the next one.
                self.engine.transmit().notify(tx);
            }
        }
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        self.engine.telemetry().count_sent(ProtocolKind::Chunked, body.bytes.get(), self.engine.shared);
        request_event(context, request, Event::ReqXferEnd);
        self.engine.requests().finish(request);
        true
    }

    /// What is learned of copies to or from the peer of a message of `bytes` bytes, if that might go another way.
    fn rates_of(self, body: &Body, bytes: usize) -> Option<&'e CopyRates> {
        let policy = &self.engine.protocol_state().copy;
        if body.is_bytes() { policy.rates_of(self.engine, body, bytes) } else { None }
    }

    /// The first record of a message in fragments.
    pub(super) fn on_first(self, from: u32, header: &Header, total: u64, contents: Contents) -> Result<()> {
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let most = self.engine.config.shape().ring_bulk as usize;
        if total == 0 || total > most {
            return Err(corrupt(
                from,
                format!("a message of {total} bytes in fragments, where {most} fit the ring"),
            ));
        }
        let mut assembly = self.engine.protocol_state().assemblies[from as usize].lock(self.engine.shared);
        if let Some(other) = &*assembly {
            let missing = other.total - other.moved;
            return Err(corrupt(from, format!("a new message where {missing} bytes of another are missing")));
        }
        let target = match self.match_first(from, header, total)? {
            Some(request) => {
                // SAFETY: request rule 2: matched, so it belongs to the thread that has the message.
                let body = unsafe { request.body() };
                body.contents.set(contents);
                self.engine.protocol_state().copy.note_received(body, total);
                FragmentTarget::Receive(request)
            }
            None => FragmentTarget::Whole(Scratch::of(total)?),
        };
        *assembly = Some(Box::new(Assembly { first: *header, total, moved: 0, target }));
        Ok(())
    }

    /// Takes the receive that the message is for, if there is one and nobody observes the match context.
    fn match_first(self, from: u32, header: &Header, total: usize) -> Result<Option<Ref>> {
        let context = self.engine.delivery().context_of(from, header)?;
        if context.observed() {
            return Ok(None);
        }
        let mut tally = Tally::on(context);
        let envelope = Envelope { source: header.source, tag: header.tag };
        let mut queues = context.queues.lock(self.engine.shared);
        let request = self.engine.delivery().take_posted::<AsStarted, Unobserved>(
            &mut tally,
            context,
            &mut queues,
            from,
            &envelope,
            total,
            0,
        );
        self.engine.delivery().settle(&mut tally);
        Ok(request)
    }

    /// A fragment of the message that is under way.
    pub(super) fn on_fragment(self, from: u32, data: &[u8]) -> Result<()> {
        let mut place = self.engine.protocol_state().assemblies[from as usize].lock(self.engine.shared);
        let missing = place.as_ref().map_or(0, |assembly| assembly.total - assembly.moved);
        let Some(assembly) = place.as_deref_mut().filter(|_| !data.is_empty() && data.len() <= missing)
        else {
            return Err(corrupt(
                from,
                format!("a fragment of {} bytes where {missing} are missing", data.len()),
            ));
        };
        match &mut assembly.target {
            FragmentTarget::Receive(request) => {
                // SAFETY: request rule 2: matched, so it belongs to the thread that has the message.
                let body = unsafe { request.body() };
                let taken = data.len().min(body.bytes.get().saturating_sub(assembly.moved));
                if taken > 0 {
                    // SAFETY: the user's buffer stays valid until the request completes; what is taken fits.
                    let copy = || unsafe { body.unpack(assembly.moved, &data[..taken]) };
                    match self.rates_of(body, assembly.total) {
                        Some(rates) => rates.time(CopyRoute::Ring, taken, copy),
                        None => copy(),
                    }
                }
            }
            FragmentTarget::Whole(whole) => {
                copy_slice(data, &mut whole[assembly.moved..][..data.len()]);
            }
        }
        assembly.moved += data.len();
        if assembly.moved < assembly.total {
            return Ok(());
        }
        let assembly = place.take().expect("just looked at");
        drop(place);
        self.on_last(from, *assembly)
    }

    /// The last fragment has come.
    fn on_last(self, from: u32, assembly: Assembly) -> Result<()> {
        match assembly.target {
            FragmentTarget::Receive(request) => {
                // SAFETY: request rule 2: matched, so it belongs to the thread that has the message.
                let body = unsafe { request.body() };
                if let Some(rates) = self.rates_of(body, assembly.total) {
                    rates.count();
                }
                self.engine.delivery().count_received(
                    ProtocolKind::Chunked,
                    assembly.total.min(body.bytes.get()),
                    self.engine.shared,
                );
                self.engine.requests().finish_receive(request, assembly.total);
            }
            FragmentTarget::Whole(whole) => {
                let context = self.engine.delivery().context_of(from, &assembly.first)?;
                self.engine.delivery().arrive(context, Arrival::of(from, &assembly.first, whole));
            }
        }
        Ok(())
    }
}
