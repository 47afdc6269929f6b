//! Trains: messages of medium size that are sent in pieces before a receive is known, so that both ranks copy at once and
//! nobody waits for an answer.
//!
//! A head says how much comes; the pieces are the very next records of the ring. The sender sends a train only if there is room
//! for all of it, so for the sender it is what an eager message is: over when it is pushed. On the receiver the pieces go
//! straight to the receive that the head has met. If there is none, or somebody observes the context, they are put together,
//! and the message arrives when its last piece does, as an eager one.

use crate::engine::message_events::request_event;
use crate::engine::tx::{name, pack, unpack};
use crate::engine::{Body, Ref};
use crate::engine::{Engine, Outgoing};
use crate::engine::{MatchContext, Payload, UnexpectedMessage};
use crate::error::Result;
use crate::events::Event;
use crate::matching::Envelope;
use crate::protocol::corrupt;
use crate::protocol::{Control, Kind};
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;

/// Bytes that a peer may hold for unexpected messages; beyond, it is asked before it gets more.
const HELD: u64 = 4 << 20;
/// Bytes of one piece where the ring is large enough for several.
const PIECE: usize = 16 << 10;

/// A message of which a part has come.
#[derive(Debug)]
pub(crate) struct Train {
    head: Header,
    total: usize,
    moved: usize,
    target: Target,
}

/// Where its pieces go.
#[derive(Debug)]
enum Target {
    /// To the buffer of this receive.
    Receive(Ref),
    /// Together.
    Whole(Vec<u8>),
}

impl Engine {
    /// Sends a message as a train, or announces it if the ring has no room for all of it.
    pub(crate) fn send_train(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: we have just activated it and nobody else knows it.
        let body = unsafe { request.body() };
        let world = body.world;
        let held = self.job.telemetry(world).unexpected_bytes.now.get();
        let sent = held <= HELD && self.with_outgoing(world, |out| self.push_train(out, request, body))?;
        if sent { Ok(()) } else { self.announce(request) }
    }

    /// Pushes the head and all pieces; false, and nothing done, if there is no room or others wait before us.
    fn push_train(&self, out: &mut Outgoing, request: Ref, body: &mut Body) -> bool {
        let piece = piece_bytes(out);
        if !out.deferred.is_empty() || !out.producer.room_for_pieces(body.bytes, piece) {
            return false;
        }
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { body.context.expect("an active send").as_ref() };
        let head = Header {
            kind: Kind::Train as u8,
            context: context.id(),
            tag: body.tag,
            source: body.source,
            id: name(request.id(), body),
        };
        let control = Control([body.bytes as u64, 0, 0, 0]);
        let mut pushed = out.producer.try_push(&head, Control::BYTES, |to| control.write(to));
        let (mut at, mut event) = (0, Event::ReqXferBegin);
        while at < body.bytes {
            let len = piece.min(body.bytes - at);
            request_event(context, request, event);
            event = Event::ReqXferContinue;
            let header = Header { kind: Kind::Piece as u8, id: 0, ..head };
            // SAFETY: the user's buffer stays valid until the request completes; the piece lies within it.
            pushed &= out.producer.try_push(&header, len, |to| unsafe { pack(body, at, to) });
            at += len;
            if at < body.bytes {
                // The receiver should begin to copy while we copy the next one.
                self.ring_if_needed(out.peer, out);
            }
        }
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        self.count_copied_out(ProtocolKind::Chunked, body.bytes);
        request_event(context, request, Event::ReqXferEnd);
        self.finish(request);
        true
    }

    pub(crate) fn count_copied_out(&self, protocol: ProtocolKind, bytes: usize) {
        self.telemetry().count_sent(protocol, bytes, self.shared);
    }

    /// The head of a train.
    pub(crate) fn on_train(&self, from: u32, header: &Header, control: Control) -> Result<()> {
        let total = usize::try_from(control.0[0]).unwrap_or(usize::MAX);
        let most = self.config.shape().ring_bulk as usize;
        if total == 0 || total > most {
            return Err(corrupt(
                from,
                format!("a message of {total} bytes in pieces, where {most} fit the ring"),
            ));
        }
        let mut train = self.peers[from as usize].train.lock(self.shared);
        if let Some(train) = &*train {
            let missing = train.total - train.moved;
            return Err(corrupt(from, format!("a new message where {missing} bytes of another are missing")));
        }
        let target = match self.meet(from, header, total)? {
            Some(request) => Target::Receive(request),
            None => Target::Whole(Vec::with_capacity(total)),
        };
        *train = Some(Box::new(Train { head: *header, total, moved: 0, target }));
        Ok(())
    }

    /// Takes the receive that the message is for, if there is one and nobody observes the context.
    fn meet(&self, from: u32, header: &Header, total: usize) -> Result<Option<Ref>> {
        let Some(context) = self.context(header.context) else {
            return Err(corrupt(from, format!("context id {} is out of range", header.context)));
        };
        // SAFETY: as in `match_posted`.
        let context: &MatchContext = unsafe { context.as_ref() };
        if context.observed() {
            return Ok(None);
        }
        let envelope = Envelope { source: header.source, tag: header.tag };
        let mut queues = context.queues.lock(self.shared);
        let Some(request) = queues.posted.take(&envelope) else { return Ok(None) };
        self.note_posted(context, -1);
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { request.body() };
        body.peer = header.source as i32;
        body.tag = header.tag;
        body.world = from;
        body.total = total;
        Ok(Some(request))
    }

    /// A piece of the train that is under way.
    pub(crate) fn on_piece(&self, from: u32, data: &[u8]) -> Result<()> {
        let mut place = self.peers[from as usize].train.lock(self.shared);
        let missing = place.as_ref().map_or(0, |train| train.total - train.moved);
        let Some(train) = place.as_deref_mut().filter(|_| !data.is_empty() && data.len() <= missing) else {
            return Err(corrupt(
                from,
                format!("a piece of {} bytes where {missing} are missing", data.len()),
            ));
        };
        match &mut train.target {
            Target::Receive(request) => {
                // SAFETY: request rule 2: matched, so it belongs to who holds the message.
                let body = unsafe { request.body() };
                let taken = data.len().min(body.bytes.saturating_sub(train.moved));
                if taken > 0 {
                    // SAFETY: the user's buffer stays valid until the request completes; what is taken fits.
                    unsafe { unpack(body, train.moved, &data[..taken]) };
                }
            }
            Target::Whole(whole) => whole.extend_from_slice(data),
        }
        train.moved += data.len();
        if train.moved < train.total {
            return Ok(());
        }
        let train = place.take().expect("just looked at");
        drop(place);
        self.train_is_here(from, *train)
    }

    fn train_is_here(&self, from: u32, train: Train) -> Result<()> {
        match train.target {
            Target::Receive(request) => {
                // SAFETY: request rule 2, as in `on_piece`.
                let room = unsafe { request.body() }.bytes;
                self.count_received(ProtocolKind::Chunked, train.total.min(room), self.shared);
                self.finish_receive(request, train.total);
                Ok(())
            }
            Target::Whole(whole) => self.arrive_whole(from, &train.head, whole),
        }
    }

    /// A message that was put together arrives.
    fn arrive_whole(&self, from: u32, header: &Header, whole: Vec<u8>) -> Result<()> {
        let bytes = whole.len();
        let mut whole = Some(whole);
        let matched = self.match_posted(from, header, bytes, |event_id| UnexpectedMessage {
            world: from,
            id: header.id,
            synchronous: false,
            event_id,
            payload: whole
                .take()
                .map_or(Payload::Small(0, [0; INLINE]), |whole| Payload::Whole(whole.into())),
        })?;
        if let (Some(request), Some(whole)) = (matched, whole) {
            self.deliver(request, &whole);
        }
        Ok(())
    }
}

/// Bytes of one piece: both ranks should copy at once, and a record be worth its cell.
fn piece_bytes(out: &Outgoing) -> usize {
    PIECE.min(out.producer.max_payload() / 2).max(INLINE)
}
