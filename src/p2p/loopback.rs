//! A rank's messages to itself: no ring, the two requests meet in the queues.

use super::channel::{Arrived, Channel, Payload};
use super::observe::request_event;
use super::outbox::{name, pack, unpack};
use crate::engine::Engine;
use crate::error::Result;
use crate::events::Event;
use crate::job::telemetry::Protocol;
use crate::request::{Body, Layout, Ref, Stage};
use crate::ring::Header;
use crate::wire::Kind;

/// Bytes that a copy between two layouts takes at a time.
const PIECE: usize = 16 << 10;

impl Engine {
    /// Sends to this rank itself.
    pub(super) fn send_to_self(&self, channel: &Channel, send: Ref) -> Result<()> {
        // SAFETY: request rule 2: activated by us, and nobody else knows it yet.
        let body = unsafe { send.body() };
        let header = Header {
            kind: Kind::Eager as u8,
            context: channel.context(),
            tag: body.tag,
            source: body.source,
            id: name(send.id(), body),
        };
        let buffered = !body.synchronous && body.bytes <= self.config.eager_limit();
        let matched = self.match_posted(self.rank, &header, body.bytes, |event_id| {
            let payload = if buffered { copy_of(body) } else { Payload::Local(send) };
            body.stage = Stage::Announced;
            Arrived { world: self.rank, id: header.id, synchronous: false, event_id, payload }
        })?;
        match matched {
            Some(receive) => self.deliver_local(send, receive),
            None if buffered => self.local_send_over(send),
            None => {}
        }
        Ok(())
    }

    /// Copies from a send of this rank to a receive of this rank and completes both.
    pub(super) fn deliver_local(&self, send: Ref, receive: Ref) {
        // SAFETY: request rule 2: both are matched with each other, so they are ours; they are two slots.
        let (from, to) = unsafe { (send.body(), receive.body()) };
        // SAFETY: the request counts as pending on the channel.
        let channel = unsafe { to.channel.expect("an active receive").as_ref() };
        request_event(channel, receive, Event::ReqXferBegin);
        let bytes = from.bytes.min(to.bytes);
        copy(from, to, bytes);
        request_event(channel, receive, Event::ReqXferEnd);
        self.count_received(Protocol::Loopback, bytes, self.shared);
        let sent = from.bytes;
        self.local_send_over(send);
        self.finish_receive(receive, sent);
    }

    fn local_send_over(&self, send: Ref) {
        // SAFETY: request rule 2, as in `deliver_local`.
        let body = unsafe { send.body() };
        // SAFETY: the request counts as pending on the channel.
        let channel = unsafe { body.channel.expect("an active send").as_ref() };
        request_event(channel, send, Event::ReqXferBegin);
        request_event(channel, send, Event::ReqXferEnd);
        self.telemetry().count_sent(Protocol::Loopback, body.bytes, self.shared);
        self.finish(send);
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
