//! Announced messages: the sender says how large, the receiver, once matched, chooses how they are copied.

mod claims;
mod cma;
mod selection;
mod shared_heap;

pub use claims::{Claims, Garbage, Split};
use cma::{read_peer, write_peer};
pub use selection::measure_thresholds;
pub(crate) use selection::{CopyEngine, CopyPolicy};

use crate::arch::copy_nontemporal;
use crate::engine::message_events::request_event;
use crate::engine::tx::{pack, unpack};
use crate::engine::{Body, Layout, Operation, Ref, Stage};
use crate::engine::{Engine, MatchContext, Outgoing};
use crate::error::Result;
use crate::events::Event;
use crate::protocol::corrupt;
use crate::protocol::{Control, Kind};
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;
use core::ptr::NonNull;

/// Bytes from which a message is so long that how soon its first chunk can be copied does not matter.
const LONG: usize = 512 << 10;

/// The context of an active request.
///
/// # Safety
///
/// The request is active, so it counts as pending on its context.
unsafe fn context_of<'a>(body: &Body) -> &'a MatchContext {
    let context: NonNull<MatchContext> = body.context.expect("an active request has a context");
    // SAFETY: the caller's promise.
    unsafe { context.as_ref() }
}

impl Engine {
    /// The record that announces a large send.
    pub(crate) fn announcement(&self, request: Ref) -> (Header, Control) {
        // SAFETY: request rule 2: active, in our hands, not yet announced.
        let body = unsafe { request.body() };
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        let addr = if matches!(body.layout, Layout::Bytes) { body.addr as u64 } else { 0 };
        let header = Header {
            kind: Kind::Announce as u8,
            context: context.id(),
            tag: body.tag,
            source: body.source,
            id: request.id(),
        };
        (header, Control([body.bytes as u64, addr, self.place_of_send(body), 0]))
    }

    /// A receive has met an announced message: begins to copy.
    pub(crate) fn accept_large(
        &self,
        request: Ref,
        id: u32,
        total: usize,
        addr: u64,
        place: u64,
    ) -> Result<()> {
        // SAFETY: request rule 2: matched, so ours.
        let body = unsafe { request.body() };
        body.remote = id;
        body.total = total;
        body.remote_addr = addr;
        body.moved = 0;
        if total > body.bytes {
            // Nothing need be copied: what the buffer holds after an error is undefined (MPI 5.0 §3.2.2).
            let world = body.world;
            self.finish_receive(request, total);
            return self.answer(world, Kind::Finish, id, Control::default());
        }
        if let Some(accepted) = self.accept_straight(request, place) {
            return accepted;
        }
        let contiguous = addr != 0 && matches!(body.layout, Layout::Bytes);
        match self.copy.engine(&self.config, &self.job, total, contiguous) {
            // With several threads another one may meet the sender's half while we copy ours: two owners of one body.
            CopyEngine::Halves if self.shared => self.copy_by_read(request),
            CopyEngine::Chunks => self.ask_for_chunks(request),
            CopyEngine::Direct => self.copy_direct(request),
            CopyEngine::Read => self.copy_by_read(request),
            CopyEngine::Halves => self.ask_for_half(request),
        }
    }

    pub(crate) fn ask_for_chunks(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        let body = unsafe { request.body() };
        body.stage = Stage::Chunks;
        self.copy.expect(body.total);
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Chunks, body.total);
        let (world, remote) = (body.world, body.remote);
        self.answer(world, Kind::Clear, remote, Control([u64::from(request.id()), 0, 0, 0]))
    }

    fn copy_direct(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        let body = unsafe { request.body() };
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        request_event(context, request, Event::ReqXferBegin);
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Direct, body.total);
        let copied = self.job.reach(body.world, || {
            // SAFETY: the ranks are threads of one process; the sender keeps its buffer until `Finish` or until it has
            // withdrawn it, ours is valid until the request completes, and `total` fits (checked). `copy`: the same
            // buffer may be at both ends.
            unsafe { core::ptr::copy(body.remote_addr as *const u8, body.addr, body.total) };
        });
        let moved = if copied.is_some() { body.total } else { 0 };
        self.note_copy(Event::CopyEnd, request, body, CopyEngine::Direct, moved);
        match copied {
            Some(()) => self.receive_copied(request, ProtocolKind::Direct),
            None => self.ask_for_chunks_after_all(request),
        }
    }

    fn copy_by_read(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        let body = unsafe { request.body() };
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        let pid = self.job.roster().entry(body.world).pid();
        request_event(context, request, Event::ReqXferBegin);
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Read, body.total);
        let read = self.job.reach(body.world, || {
            // SAFETY: our buffer is valid for `total` bytes until the request completes.
            unsafe { read_peer(pid, body.remote_addr, body.addr, body.total) }
        });
        let read = matches!(read, Some(Ok(_)));
        self.note_copy(Event::CopyEnd, request, body, CopyEngine::Read, if read { body.total } else { 0 });
        if !read {
            // Forbidden, or the sender is dying: chunks work wherever messages do.
            self.copy.refuse();
            return self.ask_for_chunks_after_all(request);
        }
        self.receive_copied(request, ProtocolKind::Cma)
    }

    /// Another way of copying has failed when the transfer had already begun.
    fn ask_for_chunks_after_all(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        unsafe { request.body() }.status.error = BEGUN;
        self.ask_for_chunks(request)
    }

    fn ask_for_half(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        let body = unsafe { request.body() };
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        let split = (body.total / 2).next_multiple_of(crate::limits::PAGE).min(body.total);
        body.stage = Stage::Halves(false, false);
        let words = [u64::from(request.id()), body.addr as u64, split as u64, body.total as u64];
        let (world, remote, addr) = (body.world, body.remote, body.addr);
        self.answer(world, Kind::Halves, remote, Control(words))?;
        request_event(context, request, Event::ReqXferBegin);
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Halves, split);
        let pid = self.job.roster().entry(world).pid();
        let read = self.job.reach(world, || {
            // SAFETY: our buffer is valid for `split` bytes, and the sender writes only behind them.
            unsafe { read_peer(pid, body.remote_addr, addr, split) }
        });
        let read = matches!(read, Some(Ok(_)));
        if !read {
            self.copy.refuse();
        }
        body.moved = if read { split } else { 0 };
        self.note_copy(Event::CopyEnd, request, body, CopyEngine::Halves, body.moved);
        self.half_over(request, true, read)
    }

    /// One half is over, ours or the sender's; when both are, the message is here, or chunks must bring it.
    fn half_over(&self, request: Ref, own: bool, done: bool) -> Result<()> {
        // SAFETY: request rule 2: a receive at this stage belongs to progress, or to who has just begun it.
        let body = unsafe { request.body() };
        let Stage::Halves(own_over, other_over) = body.stage else { unreachable!("checked by the caller") };
        body.stage = Stage::Halves(own_over | own, other_over | !own);
        if !done {
            body.status.cancelled = true;
        }
        if body.stage != Stage::Halves(true, true) {
            return Ok(());
        }
        if !core::mem::take(&mut body.status.cancelled) {
            return self.receive_copied(request, ProtocolKind::Shared);
        }
        body.moved = 0;
        body.status.error = BEGUN;
        self.ask_for_chunks(request)
    }

    /// The receiver has everything: completes the receive and lets the sender go.
    pub(crate) fn receive_copied(&self, request: Ref, protocol: ProtocolKind) -> Result<()> {
        // SAFETY: request rule 2, as in `accept_large`.
        let body = unsafe { request.body() };
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        request_event(context, request, Event::ReqXferEnd);
        let (world, remote, total) = (body.world, body.remote, body.total);
        self.count_received(protocol, total, self.shared);
        self.finish_receive(request, total);
        self.answer(world, Kind::Finish, remote, Control([protocol as u64, 0, 0, 0]))
    }

    /// The receiver wants chunks.
    pub(crate) fn on_clear(&self, from: u32, id: u32, control: Control) -> Result<()> {
        let request =
            self.own_send(from, id, |stage| matches!(stage, Stage::Announced | Stage::AwaitsFinish))?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        body.remote = control.0[0] as u32;
        body.moved = 0;
        // A transfer that failed half-way has begun already.
        body.status.error = if body.stage == Stage::AwaitsFinish { BEGUN } else { 0 };
        body.stage = Stage::Chunks;
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Chunks, body.bytes);
        self.with_outgoing(from, |out| {
            out.streams.push_back(request);
            if out.deferred.is_empty() {
                self.pump_streams(out);
            }
            if !out.idle() {
                self.list(from, out);
            }
        })
    }

    /// Sends chunks of large messages, one of each in turn, while there is room.
    pub(crate) fn pump_streams(&self, out: &mut Outgoing) -> bool {
        let mut moved = false;
        while let Some(request) = out.streams.pop_front() {
            let pushed = self.push_chunk(out, request);
            match pushed {
                Some(true) => {}
                Some(false) => out.streams.push_back(request),
                None => {
                    out.streams.push_front(request);
                    return moved;
                }
            }
            moved = true;
            // The receiver should begin to copy while we copy the next one.
            self.ring_if_needed(out.peer, out);
        }
        moved
    }

    /// Sends one chunk: `None` if there is no room, else whether it was the last.
    fn push_chunk(&self, out: &mut Outgoing, request: Ref) -> Option<bool> {
        // SAFETY: request rule 2: a stream belongs to who has the way to the peer.
        let body = unsafe { request.body() };
        let len = chunk_bytes(out, body.bytes).min(body.bytes - body.moved);
        if !out.producer.room(len) {
            return None;
        }
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        request_event(context, request, chunk_event(body));
        let header = Header {
            kind: Kind::Chunk as u8,
            context: context.id(),
            tag: 0,
            source: self.rank,
            id: body.remote,
        };
        let pushed = out.producer.try_push(&header, len, |to| {
            // SAFETY: the user's buffer stays valid until the request completes; the piece lies within it.
            unsafe { pack(body, body.moved, to) };
        });
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        body.moved += len;
        if body.moved < body.bytes {
            return Some(false);
        }
        self.note_copy(Event::CopyEnd, request, body, CopyEngine::Chunks, body.bytes);
        self.send_copied(request, ProtocolKind::Chunked);
        Some(true)
    }

    /// The sender is done with its buffer.
    pub(crate) fn send_copied(&self, request: Ref, protocol: ProtocolKind) {
        // SAFETY: request rule 2: in the hands of who calls.
        let body = unsafe { request.body() };
        // SAFETY: active.
        request_event(unsafe { context_of(body) }, request, Event::ReqXferEnd);
        self.count_copied_out(protocol, body.bytes);
        self.finish(request);
    }

    /// A piece of a large message is here.
    pub(crate) fn on_chunk(&self, from: u32, id: u32, data: &[u8]) -> Result<()> {
        let request = self.own_request(from, id, Operation::Receive, |stage| stage == Stage::Chunks)?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        if data.is_empty() || data.len() > body.total - body.moved {
            return Err(corrupt(
                from,
                format!("a chunk of {} bytes where {} are missing", data.len(), body.total - body.moved),
            ));
        }
        // SAFETY: active.
        let context = unsafe { context_of(body) };
        request_event(context, request, chunk_event(body));
        let uncached = self.copy.come(&self.config, data.len()) && matches!(body.layout, Layout::Bytes);
        // SAFETY: the user's buffer stays valid until the request completes; `total` fits it, and the piece `total`; the ring's
        // memory is none of it.
        unsafe {
            if uncached {
                copy_nontemporal(data.as_ptr(), body.addr.wrapping_add(body.moved), data.len());
            } else {
                unpack(body, body.moved, data);
            }
        }
        body.moved += data.len();
        if body.moved == body.total {
            self.note_copy(Event::CopyEnd, request, body, CopyEngine::Chunks, body.total);
            request_event(context, request, Event::ReqXferEnd);
            self.count_received(ProtocolKind::Chunked, body.total, self.shared);
            self.finish_receive(request, body.total);
        }
        Ok(())
    }

    /// The receiver wants our half.
    pub(crate) fn on_halves(&self, from: u32, id: u32, control: Control) -> Result<()> {
        let request = self.own_send(from, id, |stage| stage == Stage::Announced)?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        let [remote, addr, split, end] = control.0;
        if split > end || end != body.bytes as u64 || !matches!(body.layout, Layout::Bytes) {
            return Err(corrupt(
                from,
                format!("a copy of bytes {split}..{end} of a message of {}", body.bytes),
            ));
        }
        // SAFETY: active.
        request_event(unsafe { context_of(body) }, request, Event::ReqXferBegin);
        let (split, len) = (split as usize, (end - split) as usize);
        self.note_copy(Event::CopyBegin, request, body, CopyEngine::Halves, len);
        let pid = self.job.roster().entry(from).pid();
        let written = self.job.reach(from, || {
            // SAFETY: our buffer has `end` bytes and stays valid until the request completes; the peer asked for them.
            unsafe { write_peer(pid, body.addr.wrapping_add(split), addr.wrapping_add(split as u64), len) }
        });
        let written = matches!(written, Some(Ok(_)));
        self.note_copy(Event::CopyEnd, request, body, CopyEngine::Halves, if written { len } else { 0 });
        body.stage = Stage::AwaitsFinish;
        self.answer(from, Kind::HalfDone, remote as u32, Control([u64::from(written), 0, 0, 0]))
    }

    /// The sender's half is over.
    pub(crate) fn on_half_done(&self, from: u32, id: u32, control: Control) -> Result<()> {
        let request =
            self.own_request(from, id, Operation::Receive, |stage| matches!(stage, Stage::Halves(_, false)))?;
        self.half_over(request, false, control.0[0] == 1)
    }

    /// The receiver has everything.
    pub(crate) fn on_finish(&self, from: u32, id: u32, control: Control) -> Result<()> {
        let request =
            self.own_send(from, id, |stage| matches!(stage, Stage::Announced | Stage::AwaitsFinish))?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        let shared = body.stage == Stage::AwaitsFinish;
        if !shared {
            // The receiver copied by itself: begin and end are seen here at one moment (PERUSE 2.0 §3.2).
            // SAFETY: active.
            request_event(unsafe { context_of(body) }, request, Event::ReqXferBegin);
        }
        let protocol = match control.0[0] {
            straight if straight == ProtocolKind::Direct as u64 => ProtocolKind::Direct,
            _ if shared => ProtocolKind::Shared,
            _ => ProtocolKind::Cma,
        };
        self.send_copied(request, protocol);
        Ok(())
    }
}

/// In `status.error` of an active request: its transfer has begun, by another engine than chunks.
const BEGUN: i32 = -1;

/// The event that goes with the next chunk.
fn chunk_event(body: &mut Body) -> Event {
    let first = body.moved == 0 && core::mem::take(&mut body.status.error) != BEGUN;
    if first { Event::ReqXferBegin } else { Event::ReqXferContinue }
}

/// Bytes of the longest chunk: small enough that both ranks copy at once, large enough to be worth a record.
pub(crate) fn longest_chunk(out: &Outgoing) -> usize {
    (out.producer.max_payload() / 2).max(INLINE)
}

/// Bytes of one chunk of a message of `bytes` bytes. Where others wait behind it, the receiver has something to copy anyway.
fn chunk_bytes(out: &Outgoing, bytes: usize) -> usize {
    let most = longest_chunk(out);
    if bytes < LONG && out.streams.is_empty() { (most / 2).max(INLINE) } else { most }
}
