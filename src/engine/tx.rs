//! The way into a peer's ring, and what waits for room there.

use super::context::MatchContext;
use super::message_events::request_event;
use super::notification::NotificationMode;
use super::operation::{Body, Layout, Ref, Stage};
use crate::engine::parts::Deferred;
use crate::engine::{Engine, Outgoing};
use crate::error::Result;
use crate::events::Event;
use crate::protocol::rendezvous::longest_chunk;
use crate::protocol::{Control, Kind};
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;
use crate::sync::AsymmetricFence;
use core::hint::cold_path;

/// Bytes from which a run is copied by whole lines.
const LONG: usize = 8 << 10;

impl Engine {
    /// Runs `work` on the way to `peer`, establishing it first if need be, and rings the peer if told to.
    #[inline]
    pub(crate) fn with_outgoing<R>(&self, peer: u32, work: impl FnOnce(&mut Outgoing) -> R) -> Result<R> {
        let there = &self.peers[peer as usize];
        let mut out = there.out.lock(self.shared);
        let out = match &mut *out {
            Some(out) => out,
            none => none.insert(Outgoing::establish(&self.job, peer)?),
        };
        let result = work(out);
        self.ring_if_needed(peer, out);
        Ok(result)
    }

    /// After a commit: rings the peer's doorbell if it does not look at our ring by itself (ring rule 7, doorbell rule 1), or says how much
    /// there is, where ranks look at that (doorbell rule 6).
    #[inline(always)]
    pub(crate) fn ring_if_needed(&self, peer: u32, out: &Outgoing) {
        if self.notification != NotificationMode::Flag {
            cold_path();
            return self.tell(peer, out);
        }
        AsymmetricFence::Membarrier.light_barrier();
        if out.producer.must_ring() {
            self.ring(peer);
        }
    }

    /// The same where ranks outnumber CPUs, or the kernel has no membarrier.
    #[inline(never)]
    fn tell(&self, peer: u32, out: &Outgoing) {
        if self.notification == NotificationMode::Counter {
            return self.say(peer, out);
        }
        self.fences.light_barrier();
        if out.producer.must_ring() {
            self.ring(peer);
        }
    }

    /// Says how much has been committed to a peer, and wakes it if it sleeps (doorbell rule 6, side A).
    #[inline(always)]
    fn say(&self, peer: u32, out: &Outgoing) {
        let doorbell = &self.peers[peer as usize].doorbell;
        doorbell.say(self.rank as usize, out.producer.position());
        self.fences.light_barrier();
        if doorbell.is_asleep() {
            self.telemetry().wakes.add(1);
            doorbell.wake();
        }
    }

    /// Rings a peer's doorbell.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring(&self, peer: u32) {
        self.telemetry().wakes.add(1);
        self.peers[peer as usize].doorbell.ring(self.rank as usize);
    }

    /// Puts `bytes` bytes from `addr` into the ring to `peer`; false, and nothing done, if there is no ring yet (as to
    /// this rank itself), no room, or others wait before us. `MORE`: it may be one of many.
    #[inline(always)]
    pub(crate) fn push_at_once<const SHARED: bool, const MORE: bool>(
        &self,
        peer: u32,
        header: Header,
        addr: *const u8,
        bytes: usize,
    ) -> bool {
        let mut out = self.peers[peer as usize].out.lock(SHARED);
        let Some(out) = out.as_deref_mut() else { return false };
        // Where ranks outnumber CPUs the receiver keeps no distance, and would take the line away.
        let hurry = MORE && self.notification == NotificationMode::Flag;
        let pushed = out.deferred.is_empty()
            && out.producer.try_push_one(&header, bytes, hurry, |to| {
                // SAFETY: the sender's buffer is valid for `bytes` bytes (promise of the call), and the ring's memory
                // is none of it.
                unsafe { copy_in(addr, to) };
            });
        if pushed {
            self.count_sent(bytes, SHARED);
            self.ring_if_needed(peer, out);
        }
        pushed
    }

    #[inline(always)]
    pub(crate) fn count_sent(&self, bytes: usize, shared: bool) {
        let protocol = if bytes <= INLINE { ProtocolKind::Inline } else { ProtocolKind::Eager };
        self.telemetry().count_sent(protocol, bytes, shared);
    }

    /// Puts a small send into the ring and moves its request on; false, and nothing done, if there is no room.
    pub(crate) fn push_request(&self, out: &mut Outgoing, request: Ref) -> bool {
        // SAFETY: request rule 2: the send is active and in our hands: not yet pushed.
        let body = unsafe { request.body() };
        if !out.producer.room(body.bytes) {
            return false;
        }
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { body.context.expect("an active send").as_ref() };
        request_event(context, request, Event::ReqXferBegin);
        let kind = if body.synchronous { Kind::EagerSync } else { Kind::Eager };
        let header = Header {
            kind: kind as u8,
            context: context.id(),
            tag: body.tag,
            source: body.source,
            id: name(request.id(), body),
        };
        if body.synchronous {
            // Before the push: the answer may be here before we are back.
            body.stage = Stage::AwaitsAck;
        }
        let synchronous = body.synchronous;
        self.count_sent(body.bytes, self.shared);
        if synchronous && context.observed() {
            return push_observed(out, &header, context, request);
        }
        // SAFETY: the user's buffer stays valid until the request completes.
        let pushed = out.producer.try_push(&header, body.bytes, |to| unsafe { pack(body, 0, to) });
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        if !synchronous {
            // Nobody answers it, so it is ours after the commit, too.
            request_event(context, request, Event::ReqXferEnd);
            self.finish(request);
        }
        true
    }

    /// Puts a send behind what waits for room.
    pub(crate) fn defer(&self, peer: u32, out: &mut Outgoing, request: Ref) {
        // SAFETY: as in `push_request`.
        unsafe { request.body() }.stage = Stage::Deferred;
        out.deferred.push_back(Deferred::Send(request));
        self.list(peer, out);
    }

    /// Sends a control record, or puts it behind what waits for room.
    pub(crate) fn send_control(&self, peer: u32, header: Header, control: Control) -> Result<()> {
        self.with_outgoing(peer, |out| {
            let pushed = out.deferred.is_empty() && push_control(out, &header, &control);
            if !pushed {
                out.deferred.push_back(Deferred::Control(header, control));
                self.list(peer, out);
            }
        })
    }

    /// Notes that something waits for room to `peer`, so that progress comes back to it.
    pub(crate) fn list(&self, peer: u32, out: &mut Outgoing) {
        self.telemetry().ring_full.add(1);
        self.note_full(peer, out);
        if !out.listed {
            out.listed = true;
            self.backlog.lock(self.shared).push(peer);
            if self.shared {
                // Another thread may be asleep as the one that drives progress; it must ask for credit.
                self.doorbell.wake();
            }
        }
    }

    /// Moves on what waits for room, to every peer. Returns whether anything moved.
    pub(crate) fn pump_backlog(&self) -> bool {
        let peers = core::mem::take(&mut *self.backlog.lock(self.shared));
        let mut moved = false;
        for peer in peers {
            let done = self.with_outgoing(peer, |out| {
                moved |= self.pump(out);
                out.listed = !out.idle();
                out.listed
            });
            match done {
                Ok(true) => self.backlog.lock(self.shared).push(peer),
                Ok(false) => {}
                Err(error) => self.fail(error),
            }
        }
        moved
    }

    /// Asks every peer of the backlog for credit (ring rule 6, doorbell rule 2); the caller fences and then pumps once more.
    pub(crate) fn want_credit(&self) {
        let peers = self.backlog.lock(self.shared);
        for &peer in peers.iter() {
            if let Some(out) = &*self.peers[peer as usize].out.lock(self.shared) {
                out.producer.want_credit();
            }
        }
    }

    /// Whether a peer of the backlog has room again.
    pub(crate) fn backlog_has_room(&self) -> bool {
        let peers = self.backlog.lock(self.shared);
        peers.iter().any(|&peer| {
            let mut out = self.peers[peer as usize].out.lock(self.shared);
            out.as_mut().is_some_and(|out| match out.deferred.front() {
                Some(Deferred::Control(..)) => out.producer.room(Control::BYTES),
                // SAFETY: request rule 2: deferred, so it belongs to who has the way to the peer.
                Some(Deferred::Send(request)) => out.producer.room(unsafe { request.body() }.bytes),
                None => out.producer.room(longest_chunk(out)),
            })
        })
    }

    fn pump(&self, out: &mut Outgoing) -> bool {
        let mut moved = false;
        while let Some(first) = out.deferred.pop_front() {
            let pushed = match &first {
                Deferred::Control(header, control) => push_control(out, header, control),
                Deferred::Send(request) => self.push_request(out, *request),
            };
            if !pushed {
                out.deferred.push_front(first);
                return moved;
            }
            moved = true;
        }
        moved | self.pump_streams(out)
    }
}

/// The id that a small message carries, by which its sender may ask to have it back: what carries a buffered send's data
/// is gone by then, and its sender has another request.
#[inline(always)]
pub(crate) fn name(id: u32, body: &Body) -> u32 {
    if body.twin == 0 { id } else { body.twin }
}

fn push_control(out: &mut Outgoing, header: &Header, control: &Control) -> bool {
    out.producer.try_push(header, Control::BYTES, |to| control.write(to))
}

/// Copies a payload into the ring; the commonest sizes without a call.
///
/// # Safety
///
/// `from` is valid for reads of `to.len()` bytes and does not overlap `to`.
#[inline(always)]
unsafe fn copy_in(from: *const u8, to: &mut [u8]) {
    match to.len() {
        // SAFETY: eight bytes at both ends, as the caller promises.
        8 => unsafe { to.as_mut_ptr().cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        // SAFETY: four bytes at both ends, as the caller promises.
        4 => unsafe { to.as_mut_ptr().cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()) },
        0 => {}
        len => {
            // So that what the calls would destroy is kept elsewhere only if they are made.
            cold_path();
            // SAFETY: the caller's promise.
            unsafe {
                if len >= LONG {
                    copy_long(from, to.as_mut_ptr(), len);
                } else {
                    core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), len);
                }
            }
        }
    }
}

/// Copies a payload out of the ring; the commonest sizes without a call.
///
/// # Safety
///
/// `to` is valid for writes of `data.len()` bytes and does not overlap `data`.
#[inline(always)]
pub(crate) unsafe fn copy_out(data: &[u8], to: *mut u8) {
    match data.len() {
        // SAFETY: eight bytes at both ends, as the caller promises.
        8 => unsafe { to.cast::<[u8; 8]>().write(data.as_ptr().cast::<[u8; 8]>().read()) },
        // SAFETY: four bytes at both ends, as the caller promises.
        4 => unsafe { to.cast::<[u8; 4]>().write(data.as_ptr().cast::<[u8; 4]>().read()) },
        0 => {}
        len => {
            // As in `copy_in`.
            cold_path();
            // SAFETY: the caller's promise.
            unsafe {
                if len >= LONG {
                    copy_long(data.as_ptr(), to, len);
                } else {
                    core::ptr::copy_nonoverlapping(data.as_ptr(), to, len);
                }
            }
        }
    }
}

/// [`crate::arch::copy_long`], out of the way of what is short.
///
/// # Safety
///
/// As [`crate::arch::copy_long`].
#[inline(never)]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { crate::arch::copy_long(from, to, len) };
}

/// Copies bytes `[from, from + to.len())` of a send's data.
///
/// # Safety
///
/// The user's buffer is valid, and `from + to.len()` is at most the body's bytes.
#[inline]
pub(crate) unsafe fn pack(body: &Body, from: usize, to: &mut [u8]) {
    debug_assert!(from + to.len() <= body.bytes);
    match &body.layout {
        // SAFETY: the caller's promise.
        Layout::Bytes => unsafe { copy_in(body.addr.wrapping_add(from), to) },
        Layout::Typed(datatype) => {
            // SAFETY: the caller's promise.
            let packed = unsafe { datatype.pack(body.count, body.addr, from, to) };
            debug_assert_eq!(packed, to.len());
        }
    }
}

/// Puts `data` at bytes `[at, at + data.len())` of a receive's data.
///
/// # Safety
///
/// The user's buffer is valid, and `at + data.len()` is at most the body's bytes.
#[inline]
pub(crate) unsafe fn unpack(body: &Body, at: usize, data: &[u8]) {
    debug_assert!(at + data.len() <= body.bytes);
    match &body.layout {
        Layout::Bytes => {
            // SAFETY: the caller's promise; ring and heap memory do not overlap the user's buffer.
            unsafe { copy_out(data, body.addr.wrapping_add(at)) }
        }
        Layout::Typed(datatype) => {
            // SAFETY: the caller's promise.
            let unpacked = unsafe { datatype.unpack(body.count, body.addr, at, data) };
            debug_assert_eq!(unpacked, data.len());
        }
    }
}

/// Pushes a synchronous send that somebody observes: the answer may come, and complete it, as soon as it is committed, so
/// its transfer ends before that.
#[cold]
#[inline(never)]
fn push_observed(out: &mut Outgoing, header: &Header, context: &MatchContext, request: Ref) -> bool {
    // SAFETY: request rule 2: the send is active and not yet pushed, so it belongs to who pushes it.
    let body = unsafe { request.body() };
    out.producer.try_push(header, body.bytes, |to| {
        // SAFETY: the user's buffer stays valid until the request completes.
        unsafe { pack(body, 0, to) };
        request_event(context, request, Event::ReqXferEnd);
    })
}
