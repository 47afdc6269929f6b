//! Loopback: a rank's messages to itself. No ring; the two requests meet in the queues.

use super::content::{Arrival, Content, OwnedContent};
use super::deliver::Tally;
use super::eager::{Destination, cancel_id};
use crate::engine::message_events::request_event;
use crate::engine::specialization::{Locked, Unobserved};
use crate::engine::{Body, Engine, MatchContext, Mode, Payload, Ref, Stage};
use crate::events::Event;
use crate::matching::Envelope;
use crate::ring::Room;
use crate::shm::telemetry::ProtocolKind;

/// Bytes that a copy between two layouts takes at a time.
const PIECE: usize = 16 << 10;

/// A send of this rank, active, on its way to a receive of this rank.
#[derive(Clone, Copy)]
pub(super) struct OwnSend {
    pub send: Ref,
    /// Whether a copy of its data is kept if there is no receive: the send is then over.
    pub copied: bool,
}

impl OwnSend {
    fn body(&self) -> &Body {
        // SAFETY: request rule 2: the send is active and in no other hands:
        // just activated, or taken out of the unexpected queue.
        unsafe { self.send.body() }
    }

    /// Copies the first `len` bytes of its data, piece by piece where they do not lie in one run.
    fn pieces(&self, len: usize, mut take: impl FnMut(usize, &[u8])) {
        let mut piece = vec![0; PIECE.min(len)];
        let mut done = 0;
        while done < len {
            let next = PIECE.min(len - done);
            // SAFETY: the send's buffer is valid until its request completes; the piece lies within it.
            unsafe { self.body().pack(done, &mut Room::near(&mut piece[..next])) };
            take(done, &piece[..next]);
            done += next;
        }
    }
}

impl Content for OwnSend {
    fn bytes(&self) -> usize {
        self.body().bytes.get()
    }

    fn keep(self) -> Payload {
        if self.copied { copy_of(self.body()) } else { Payload::Local(self.send) }
    }
}

impl OwnedContent for OwnSend {
    fn protocol(&self) -> ProtocolKind {
        ProtocolKind::Loopback
    }

    unsafe fn copy_to(&self, addr: *mut u8) {
        let from = self.body();
        if from.is_bytes() {
            // SAFETY: both buffers are valid until their requests complete; a program may err and let them overlap.
            return unsafe { core::ptr::copy(from.addr.get(), addr, from.bytes.get()) };
        }
        self.pieces(from.bytes.get(), |at, piece| {
            // SAFETY: the receive's buffer is valid for all of the bytes, and the piece is ours.
            unsafe { core::ptr::copy_nonoverlapping(piece.as_ptr(), addr.wrapping_add(at), piece.len()) };
        });
    }

    unsafe fn unpack_to(&self, to: &Body, len: usize) {
        let from = self.body();
        if from.is_bytes() && to.is_bytes() {
            // SAFETY: both buffers are valid until their requests complete; a program may err and let them overlap.
            return unsafe { core::ptr::copy(from.addr.get(), to.addr.get(), len) };
        }
        // SAFETY: the receive's buffer is valid until its request completes, and `len` bytes fit it.
        self.pieces(len, |at, piece| unsafe { to.unpack(at, piece) });
    }

    fn sent(&self, engine: &Engine) {
        engine.loopback().finish_own_send(self.send);
    }
}

/// Plain bytes of a small send of this rank that has no request, or one that is over.
#[derive(Clone, Copy)]
struct OwnBytes {
    addr: *const u8,
    len: usize,
}

impl Content for OwnBytes {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn keep(self) -> Payload {
        // Without bytes the address may be anything.
        let addr = if self.len == 0 { [].as_ptr() } else { self.addr };
        // SAFETY: the sender's buffer is valid until its call returns.
        Payload::copy(unsafe { core::slice::from_raw_parts(addr, self.len) })
    }
}

impl OwnedContent for OwnBytes {
    #[inline(always)]
    fn protocol(&self) -> ProtocolKind {
        ProtocolKind::Loopback
    }

    #[inline(always)]
    unsafe fn copy_to(&self, addr: *mut u8) {
        // SAFETY: both buffers are valid until the receive completes; a program may err and let them overlap.
        unsafe { move_over(self.addr, addr, self.len) };
    }

    unsafe fn unpack_to(&self, to: &Body, len: usize) {
        if len > 0 {
            // SAFETY: the sender's buffer is valid until its call returns; `len` bytes fit the receive's.
            unsafe { to.unpack(0, core::slice::from_raw_parts(self.addr, len)) };
        }
    }
}

/// An engine's messages to itself ([`Engine::loopback`]).
#[derive(Clone, Copy)]
pub(crate) struct Loopback<'e> {
    pub(super) engine: &'e Engine,
}

impl Loopback<'_> {
    /// Sends to this rank itself.
    pub(crate) fn send(self, context: &MatchContext, send: Ref) {
        // SAFETY: request rule 2: activated by us, and nobody else knows it yet.
        let body = unsafe { send.body() };
        let copied = body.mode.get() != Mode::Synchronous && self.engine.may_be_eager(body.bytes.get());
        let message = Arrival {
            from: self.engine.rank,
            envelope: Envelope { source: body.source.get(), tag: body.tag.get() },
            id: cancel_id(send.id(), body),
            synchronous: false,
            content: OwnSend { send, copied },
        };
        // A receive finds it at this stage.
        body.stage.set(Stage::AwaitsCts);
        if !self.engine.delivery().arrive(context, message) && copied {
            self.finish_own_send(send);
        }
    }

    /// Sends plain bytes that nobody observes to this rank itself, where several threads may be inside: they meet their
    /// receive, or are kept, and the sender is done. `id`: the sender's request, or 0.
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes, which are at most the eager limit.
    #[inline(never)]
    pub(super) unsafe fn send_now(self, to: Destination<'_>, addr: *const u8, bytes: usize, id: u32) {
        self.engine.telemetry().count_sent(ProtocolKind::Loopback, bytes, true);
        let envelope = Envelope { source: to.source, tag: to.tag };
        let content = OwnBytes { addr, len: bytes };
        let message = Arrival { from: self.engine.rank, envelope, id, synchronous: false, content };
        let mut tally = Tally::default();
        let matched =
            self.engine.delivery().match_posted::<Locked, Unobserved, _>(&mut tally, to.context, message);
        if let Some((receive, content)) = matched {
            self.engine
                .delivery()
                .deliver::<Locked, Unobserved, _>(&mut tally, to.context, receive, &envelope, content);
            self.engine.delivery().publish(&mut tally, ProtocolKind::Loopback, true);
        }
    }

    /// A send to this rank itself is over.
    fn finish_own_send(self, send: Ref) {
        // SAFETY: request rule 2: its message is kept or copied, so it is in no other hands.
        let body = unsafe { send.body() };
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() };
        request_event(context, send, Event::ReqXferBegin);
        request_event(context, send, Event::ReqXferEnd);
        self.engine.telemetry().count_sent(ProtocolKind::Loopback, body.bytes.get(), self.engine.shared);
        self.engine.requests().finish(send);
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
        // SAFETY: eight bytes at both ends, as the caller says.
        8 => unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        0 => {}
        // SAFETY: so many bytes at both ends, as the caller says.
        bytes => unsafe { core::ptr::copy(from, to, bytes) },
    }
}

fn copy_of(body: &Body) -> Payload {
    if body.is_bytes() {
        if body.bytes.get() == 0 {
            return Payload::copy(&[]);
        }
        // SAFETY: the user's buffer is valid until the send completes, and nobody writes to it.
        return Payload::copy(unsafe { core::slice::from_raw_parts(body.addr.get(), body.bytes.get()) });
    }
    let mut bytes = Payload::room(body.bytes.get());
    // SAFETY: the user's buffer is valid until the send completes.
    unsafe { body.pack(0, &mut Room::near(&mut bytes)) };
    if bytes.len() <= crate::ring::INLINE { Payload::copy(&bytes) } else { Payload::Whole(bytes) }
}
