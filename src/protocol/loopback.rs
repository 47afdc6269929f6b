//! A rank's messages to itself: no ring, the two requests meet in the queues.

use super::eager::status_of;
use crate::engine::Engine;
use crate::engine::message_events::request_event;
use crate::engine::tx::{name, pack, unpack};
use crate::engine::{Body, Layout, Ref, Stage};
use crate::engine::{MatchContext, Payload, UnexpectedMessage};
use crate::error::Result;
use crate::events::Event;
use crate::matching::Envelope;
use crate::protocol::Kind;
use crate::ring::Header;
use crate::shm::telemetry::ProtocolKind;

/// Bytes that a copy between two layouts takes at a time.
const PIECE: usize = 16 << 10;

impl Engine {
    /// Sends to this rank itself.
    pub(crate) fn send_to_self(&self, context: &MatchContext, send: Ref) -> Result<()> {
        // SAFETY: request rule 2: activated by us, and nobody else knows it yet.
        let body = unsafe { send.body() };
        let header = Header {
            kind: Kind::Eager as u8,
            context: context.id(),
            tag: body.tag,
            source: body.source,
            id: name(send.id(), body),
        };
        let buffered = !body.synchronous && body.bytes <= self.config.eager_limit();
        let matched = self.match_posted(self.rank, &header, body.bytes, |event_id| {
            let payload = if buffered { copy_of(body) } else { Payload::Local(send) };
            body.stage = Stage::Announced;
            UnexpectedMessage { world: self.rank, id: header.id, synchronous: false, event_id, payload }
        })?;
        match matched {
            Some(receive) => self.deliver_local(send, receive),
            None if buffered => self.local_send_over(send),
            None => {}
        }
        Ok(())
    }

    /// Copies from a send of this rank to a receive of this rank and completes both.
    pub(crate) fn deliver_local(&self, send: Ref, receive: Ref) {
        // SAFETY: request rule 2: both are matched with each other, so they are ours; they are two slots.
        let (from, to) = unsafe { (send.body(), receive.body()) };
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { to.context.expect("an active receive").as_ref() };
        request_event(context, receive, Event::ReqXferBegin);
        let bytes = from.bytes.min(to.bytes);
        copy(from, to, bytes);
        request_event(context, receive, Event::ReqXferEnd);
        self.count_received(ProtocolKind::Loopback, bytes, self.shared);
        let sent = from.bytes;
        self.local_send_over(send);
        self.finish_receive(receive, sent);
    }

    /// The short way of a small message to this rank itself where several threads may be inside, on a context that nobody observes: it
    /// meets its receive, or is kept, and its sender is done. `source`: its sender's rank in the communicator; `id`: its sender's request, or 0.
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes, which are at most the eager limit.
    #[inline(never)]
    pub(crate) unsafe fn pass_to_self(
        &self,
        context: &MatchContext,
        (source, tag): (u32, i32),
        addr: *const u8,
        bytes: usize,
        id: u32,
    ) {
        self.telemetry().count_sent(ProtocolKind::Loopback, bytes, true);
        let envelope = Envelope { source, tag };
        let mut queues = context.queues.lock(true);
        let Some(receive) = queues.posted.take_uncounted(&envelope) else {
            // SAFETY: the caller's promise; without bytes the address may be anything.
            let data =
                unsafe { core::slice::from_raw_parts(if bytes == 0 { [].as_ptr() } else { addr }, bytes) };
            let payload = Payload::copy(data);
            let arrived =
                UnexpectedMessage { world: self.rank, id, synchronous: false, event_id: 0, payload };
            self.note_unexpected(context, 1, arrived.held(), true);
            queues.unexpected.insert(envelope, arrived);
            return;
        };
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { receive.body() };
        // Under the queues, where who cancels looks.
        body.stage = Stage::Done;
        body.peer = source as i32;
        body.tag = tag;
        body.world = self.rank;
        self.note_posted(context, -1);
        drop(queues);
        body.total = bytes;
        let taken = bytes.min(body.bytes);
        match &body.layout {
            // SAFETY: both buffers are valid until the receive completes; a program may err and let them overlap.
            Layout::Bytes => unsafe { move_over(addr, body.addr, taken) },
            Layout::Typed(_) if taken == 0 => {}
            Layout::Typed(_) => {
                // SAFETY: the caller's promise.
                let data = unsafe { core::slice::from_raw_parts(addr, taken) };
                // SAFETY: the user's buffer stays valid until the request completes; `taken` fits.
                unsafe { unpack(body, 0, data) };
            }
        }
        self.count_received(ProtocolKind::Loopback, taken, true);
        if bytes > body.bytes {
            return self.finish_receive(receive, bytes);
        }
        body.status = status_of(source, tag, bytes);
        self.complete(receive, true);
    }

    fn local_send_over(&self, send: Ref) {
        // SAFETY: request rule 2, as in `deliver_local`.
        let body = unsafe { send.body() };
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { body.context.expect("an active send").as_ref() };
        request_event(context, send, Event::ReqXferBegin);
        request_event(context, send, Event::ReqXferEnd);
        self.telemetry().count_sent(ProtocolKind::Loopback, body.bytes, self.shared);
        self.finish(send);
    }
}

/// Copies bytes that may overlap; the commonest size without a call.
///
/// # Safety
///
/// `from` is valid for reads of `bytes` bytes, `to` for writes.
#[inline(always)]
unsafe fn move_over(from: *const u8, to: *mut u8, bytes: usize) {
    match bytes {
        // SAFETY: eight bytes at both ends, as the caller promises.
        8 => unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        0 => {}
        // SAFETY: the caller's promise.
        bytes => unsafe { core::ptr::copy(from, to, bytes) },
    }
}

fn copy_of(body: &Body) -> Payload {
    if matches!(body.layout, Layout::Bytes) {
        if body.bytes == 0 {
            return Payload::copy(&[]);
        }
        // SAFETY: the user's buffer is valid until the send completes, and nobody writes to it.
        return Payload::copy(unsafe { core::slice::from_raw_parts(body.addr, body.bytes) });
    }
    let mut bytes = vec![0; body.bytes];
    // SAFETY: the user's buffer is valid until the send completes.
    unsafe { pack(body, 0, &mut bytes) };
    if bytes.len() <= crate::ring::INLINE { Payload::copy(&bytes) } else { Payload::Whole(bytes.into()) }
}

/// Copies `bytes` bytes of data from one layout to another.
fn copy(from: &Body, to: &Body, bytes: usize) {
    if let (Layout::Bytes, Layout::Bytes) = (&from.layout, &to.layout) {
        // SAFETY: both buffers are valid until their requests complete; a program may err and let them overlap.
        return unsafe { core::ptr::copy(from.addr, to.addr, bytes) };
    }
    let mut piece = vec![0; PIECE.min(bytes)];
    let mut done = 0;
    while done < bytes {
        let len = PIECE.min(bytes - done);
        // SAFETY: both buffers are valid until their requests complete; the piece lies within both.
        unsafe {
            pack(from, done, &mut piece[..len]);
            unpack(to, done, &piece[..len]);
        }
        done += len;
    }
}
