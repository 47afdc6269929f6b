//! Copy engine between buffers in the shared heap: one copy, by whoever sees both ends,
//! or by both at once (a cooperative copy).
//!
//! | whose buffer lies in the heap | who copies |
//! |---|---|
//! | the sender's | the receiver, into any layout |
//! | both | from `copy_share_from` bytes on both of them, by [`Claims`]; else the receiver |
//! | the receiver's | the sender, from any layout, once the receiver has said where |
//!
//! What a peer says of a place is checked against the heap before it is used ([`crate::heap`], rule 3: a place inside
//! of it is always memory); what lies there may be changed by anybody at any time, as the ring's bytes may. A place
//! that overlaps our own buffer, which a window's memory may and a lie can, is not copied from, nor to:
//! such a message goes another way.

use super::Rendezvous;
use super::{Claims, CopyEngine, Garbage, Split, emit};
use crate::arch::copy_long;
use crate::engine::{Body, Engine, Ref, Rts, Stage, corrupt};
use crate::error::Result;
use crate::events::Event;
use crate::heap::Heap;
use crate::protocol::Control;
use crate::ring::{PROTOCOL_WORD, Room};
use crate::shm::telemetry::ProtocolKind;
use crate::sync::AtomicU64;
use crate::variables::CopyChoice;
use core::ops::Range;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 3, takes, begin };

/// Bytes after which the kernel maps the pages of a file together when one of them is read.
const AROUND: usize = 64 << 10;

/// Who copies, and between which places of the heap.
enum CopyPlan {
    /// The receiver, from the sender's place.
    Receiver(*const u8),
    /// The sender, to the receiver's place.
    Sender { own: u64 },
    /// Both.
    Both { from: *const u8, own: u64 },
}

fn plan(engine: &Engine, body: &Body, rts: &Rts) -> Option<CopyPlan> {
    if !engine.rendezvous().copies_in_heap() || engine.is_guest(body.world.get()) {
        return None;
    }
    let heap = if rts.place == 0 { Heap::mapped(&engine.job) } else { Heap::of(&engine.job) }?;
    let total = rts.total;
    let own = if total >= engine.config.direct_from() { place_of(heap, body, total) } else { 0 };
    if rts.place == 0 {
        return (own != 0).then_some(CopyPlan::Sender { own });
    }
    let from = heap.at(rts.place, total as u64)?.as_ptr().cast_const();
    if body.overlaps(from, total) {
        return None;
    }
    // With several threads another one may complete the sender's part while we copy ours: two owners of one body.
    let both = own != 0 && total >= engine.config.share_from() && !engine.shared;
    Some(if both { CopyPlan::Both { from, own } } else { CopyPlan::Receiver(from) })
}

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    plan(engine, body, rts).is_some()
}

fn begin(engine: &Engine, request: Ref, rts: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    match plan(engine, body, rts) {
        // SAFETY: `plan` has found the message's bytes in the heap from there on, and not in our buffer.
        Some(CopyPlan::Receiver(from)) => unsafe { engine.rendezvous().copy_from_heap(request, from) },
        Some(CopyPlan::Sender { own }) => engine.rendezvous().ask_sender(request, own),
        Some(CopyPlan::Both { from, own }) => {
            // SAFETY: `plan` has found the message's bytes in the heap from there on, and not in our buffer.
            unsafe { engine.rendezvous().copy_with_sender(request, from, own) }
        }
        // What takes a message goes on taking it: nobody changes the variables in between.
        None => super::ring_chunks::ask(engine, request, false),
    }
}

impl<'e> Rendezvous<'e> {
    /// Where a send's buffer lies in the shared heap, if the message is to be copied from there; else 0.
    #[inline]
    pub(crate) fn place_of_send(self, body: &Body) -> u64 {
        match Heap::mapped(&self.engine.job) {
            Some(heap)
                if body.bytes.get() >= self.engine.config.direct_from()
                    && self.copies_in_heap()
                    && !self.engine.is_guest(body.world.get()) =>
            {
                place_of(heap, body, body.bytes.get())
            }
            _ => 0,
        }
    }

    fn copies_in_heap(self) -> bool {
        matches!(self.engine.config.copy(), CopyChoice::Auto | CopyChoice::Direct)
    }

    /// The place that a peer's RTS names; 0 for none.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Corrupt`] for one outside of the heap.
    pub(in crate::protocol) fn check_place(self, from: u32, place: u64, total: usize) -> Result<u64> {
        // The heap of another job is not mapped here.
        if place == 0 || self.engine.is_guest(from) {
            return Ok(0);
        }
        match Heap::of(&self.engine.job) {
            Some(heap) if heap.at(place, total as u64).is_some() => Ok(place),
            Some(_) => Err(corrupt(from, format!("{total} bytes at {place}, outside of the shared heap"))),
            // Not to be mapped here: it goes another way.
            None => Ok(0),
        }
    }

    /// Copies a message to the buffer of its receive.
    ///
    /// # Safety
    ///
    /// The bytes that the receive wants are in the heap from `from` on, and not in its buffer.
    unsafe fn copy_from_heap(self, request: Ref, from: *const u8) -> Result<()> {
        // SAFETY: request rule 2, matched, so ours.
        let body = unsafe { request.body() };
        emit(request, Event::ReqXferBegin);
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
        if body.is_bytes() {
            // SAFETY: `wanted` bytes from `from` on are in the heap, which stays mapped, and not in our buffer, as the
            // caller promises; that is valid until the request completes and has room for them.
            unsafe { copy_long(from, body.addr.get(), body.wanted.get()) };
        } else {
            // SAFETY: `wanted` bytes from `from` on are in the heap, which stays mapped, and not in our buffer, as the
            // caller promises; they fit it.
            unsafe { body.unpack(0, core::slice::from_raw_parts(from, body.wanted.get())) };
        }
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, body.wanted.get());
        self.finish_copied(request, ProtocolKind::Direct)
    }

    /// What is still to be taken of a message that `from` sends to `to`, both at work on it.
    fn claims(self, from: u32, to: u32) -> Claims<'e> {
        let ring = self.engine.job.ring(from, to).control;
        // SAFETY: the word lies in the ring's control, aligned, and is an atomic to all; the ring's memory was taken
        // before the announcement went through it, and the job's memory lives as long as the engine.
        Claims::over(unsafe { &*ring.add(PROTOCOL_WORD).cast::<AtomicU64>() })
    }

    /// Copies parts of a message to the buffer of its receive, at the place `own`, while the sender copies others.
    ///
    /// # Safety
    ///
    /// The bytes that the receive wants are in the heap from `from` on, and not in its buffer.
    unsafe fn copy_with_sender(self, request: Ref, from: *const u8, own: u64) -> Result<()> {
        // SAFETY: request rule 2, matched, so ours.
        let body = unsafe { request.body() };
        let (world, total, split) = (body.world.get(), body.wanted.get(), Split::of(body.wanted.get()));
        let claims = self.claims(world, self.engine.rank);
        let (turn, first) = claims.open(split);
        body.stage.set(Stage::AwaitsHeapDone);
        let clear = Control::HeapCts { receiver: request.id(), place: own, total: total as u64, turn };
        self.engine.answer(world, body.remote.get(), clear)?;
        emit(request, Event::ReqXferBegin);
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, total);
        // SAFETY: `total` bytes from `from` on are in the heap, as the caller promises; our buffer is valid until the
        // request completes, and they fit it (checked); parts lie within them.
        let copy = |part: Range<usize>| unsafe { copy_part(from, body.addr.get(), part) };
        let moved = copy_parts(first, || claims.take_low(turn, split), copy);
        let moved = moved.map_err(|Garbage| corrupt(world, spoiled(total)))?;
        body.moved.set(moved);
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, moved);
        // If the sender has taken a part, it says when it is done.
        if moved == total { self.finish_copied(request, ProtocolKind::Direct) } else { Ok(()) }
    }

    /// Has the sender copy all of it to our buffer.
    fn ask_sender(self, request: Ref, own: u64) -> Result<()> {
        // SAFETY: request rule 2, matched, so ours.
        let body = unsafe { request.body() };
        body.stage.set(Stage::AwaitsHeapDone);
        let clear =
            Control::HeapCts { receiver: request.id(), place: own, total: body.wanted.get() as u64, turn: 0 };
        self.engine.answer(body.world.get(), body.remote.get(), clear)
    }

    /// The receiver wants us to copy: all of it (turn 0), or what we take of it.
    pub(in crate::protocol) fn on_heap_cts(
        self,
        from: u32,
        id: u32,
        remote: u32,
        (place, end): (u64, u64),
        turn: u32,
    ) -> Result<()> {
        let request = self.engine.requests().own_send(from, id, |stage| stage == Stage::AwaitsCts)?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        let Some(heap) = Heap::of(&self.engine.job) else {
            return self.engine.answer(from, remote, Control::HeapDone { bytes: 0 });
        };
        let to = heap.at(place, end).filter(|_| (1..=body.bytes.get() as u64).contains(&end));
        let Some(to) = to else {
            return Err(corrupt(
                from,
                format!(
                    "a copy of {end} bytes to {place} of the shared heap, of a message of {}",
                    body.bytes.get()
                ),
            ));
        };
        body.wanted.set(end as usize);
        match (turn, body.overlaps(to.as_ptr(), body.wanted.get())) {
            // SAFETY: the bytes that are wanted lie there in the heap (`at`), and not in our buffer.
            (0, false) => unsafe { self.copy_to_heap(request, remote, to.as_ptr()) },
            (0, true) => self.engine.answer(from, remote, Control::HeapDone { bytes: 0 }),
            _ if place_of(heap, body, body.wanted.get()) == 0 => {
                Err(corrupt(from, "a shared copy of a buffer outside of the shared heap".into()))
            }
            (_, true) => Err(corrupt(from, "a shared copy of a buffer to itself".into())),
            // SAFETY: the bytes that are wanted lie there in the heap (`at`), and not in our buffer.
            (_, false) => unsafe { self.copy_parts_to(request, remote, to.as_ptr(), turn) },
        }
    }

    /// Copies a message to its receiver's buffer.
    ///
    /// # Safety
    ///
    /// The heap has room for the bytes that the receiver wants from `to` on, and the send's buffer is elsewhere.
    unsafe fn copy_to_heap(self, request: Ref, remote: u32, to: *mut u8) -> Result<()> {
        // SAFETY: request rule 2, it awaits the receiver, so it belongs to progress.
        let body = unsafe { request.body() };
        let (world, bytes) = (body.world.get(), body.wanted.get());
        emit(request, Event::ReqXferBegin);
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, bytes);
        // SAFETY: so many bytes from `to` on are in the heap, as the caller promises.
        unsafe { map_around(to, 0..bytes) };
        if body.is_bytes() {
            // SAFETY: the user's buffer is valid until the request completes; as many bytes at `to` are in the heap, as
            // the caller promises, and the receiver asked for them there.
            unsafe { copy_long(body.addr.get(), to, bytes) };
        } else {
            // SAFETY: as many bytes at `to` are in the heap, as the caller promises, and no Rust object lies there.
            unsafe { body.pack(0, &mut Room::from(core::slice::from_raw_parts_mut(to, bytes))) };
        }
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, bytes);
        self.finish_sent(request, ProtocolKind::Direct);
        self.engine.answer(world, remote, Control::HeapDone { bytes: bytes as u64 })
    }

    /// Copies what it takes of a message to its receiver's buffer, while the receiver copies the rest.
    ///
    /// # Safety
    ///
    /// The heap has room for the bytes that the receiver wants from `to` on, and the send's buffer is elsewhere.
    unsafe fn copy_parts_to(self, request: Ref, remote: u32, to: *mut u8, turn: u32) -> Result<()> {
        // SAFETY: request rule 2, it awaits the receiver, so it belongs to progress.
        let body = unsafe { request.body() };
        let (world, split) = (body.world.get(), Split::of(body.wanted.get()));
        let claims = self.claims(self.engine.rank, world);
        let garbage = |Garbage| corrupt(world, spoiled(body.wanted.get()));
        let Some(first) = claims.take_high(turn, split).map_err(garbage)? else {
            // The receiver was faster; it says when it is done.
            return Ok(());
        };
        emit(request, Event::ReqXferBegin);
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
        let copy = |part: Range<usize>| {
            // SAFETY: the user's buffer is valid until the request completes; as many bytes at `to` are in the heap, as
            // the caller promises; parts lie within them, and this one is ours (share rule 2).
            unsafe {
                map_around(to, part.clone());
                copy_part(body.addr.get(), to, part);
            }
        };
        let moved = copy_parts(first, || claims.take_high(turn, split), copy).map_err(garbage)?;
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, moved);
        body.stage.set(Stage::AwaitsFin);
        self.engine.answer(world, remote, Control::HeapDone { bytes: moved as u64 })
    }

    /// The sender has copied what it took of a message, or all of it.
    pub(in crate::protocol) fn on_heap_done(self, from: u32, id: u32, bytes: u64) -> Result<()> {
        let request = self.engine.requests().own_receive(from, id, |stage| stage == Stage::AwaitsHeapDone)?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        if body.moved.get() == 0 && bytes == 0 {
            // It cannot map the heap, or its buffer overlaps ours.
            return super::ring_chunks::ask(self.engine, request, false);
        }
        let missing = body.wanted.get() - body.moved.get();
        if bytes != missing as u64 {
            return Err(corrupt(from, format!("a copy of {bytes} bytes where {missing} are missing")));
        }
        if body.moved.get() != 0 {
            return self.finish_copied(request, ProtocolKind::Direct);
        }
        // The sender copied by itself and needs no answer: begin and end are seen here at one moment.
        emit(request, Event::ReqXferBegin);
        emit(request, Event::ReqXferEnd);
        self.engine.delivery().count_received(ProtocolKind::Direct, body.wanted.get(), self.engine.shared);
        self.engine.requests().finish_receive(request, body.total.get());
        Ok(())
    }
}

/// Where the first `len` bytes of a buffer lie in the heap; 0 if not all of them do, or they are not one run.
fn place_of(heap: Heap<'_>, body: &Body, len: usize) -> u64 {
    let place = body.is_bytes().then(|| heap.place_of(body.addr.get(), len));
    place.flatten().unwrap_or(0)
}

/// Copies part after part until none is left. Bytes copied.
fn copy_parts(
    first: Range<usize>,
    next: impl Fn() -> Result<Option<Range<usize>>, Garbage>,
    copy: impl Fn(Range<usize>),
) -> Result<usize, Garbage> {
    let (mut moved, mut part) = (0, Some(first));
    while let Some(range) = part {
        moved += range.len();
        copy(range);
        part = next()?;
    }
    Ok(moved)
}

/// # Safety
///
/// The part lies in what is valid for reads from `from` on, and for writes from `to` on.
unsafe fn copy_part(from: *const u8, to: *mut u8, part: Range<usize>) {
    // SAFETY: the part lies within what is valid at both ends.
    unsafe { copy_long(from.add(part.start), to.add(part.start), part.len()) };
}

/// Has the kernel map the pages of a part before they are written:
/// sixteen at a time, which it does only if they are read.
///
/// # Safety
///
/// The part lies in what is valid for reads from `to` on.
unsafe fn map_around(to: *mut u8, part: Range<usize>) {
    for at in part.step_by(AROUND) {
        // SAFETY: within the part, which is valid for reads, as the caller promises.
        unsafe { to.add(at).read_volatile() };
    }
}

fn spoiled(total: usize) -> String {
    format!("what is left of a shared copy of {total} bytes makes no sense")
}
