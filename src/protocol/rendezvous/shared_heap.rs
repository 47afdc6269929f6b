//! Copy engine between buffers in the shared heap: one copy, by whoever sees both ends,
//! or by both at once (a cooperative copy).
//!
//! | whose buffer lies in the heap | who copies |
//! |---|---|
//! | the sender's | the receiver, into any layout |
//! | both | from `copy_share_from` bytes on both of them, by [`Claims`]; else the receiver |
//! | the receiver's | the sender, from any layout, once the receiver has said where |
//!
//! A buffer that has been remapped ([`crate::heap::remap`]) lies in the heap, too; both copy from 256 KiB on. To ask
//! the kernel whether it still does takes 0.2 to 0.6 microseconds. So the sender of a shorter one asks when it has
//! announced the message, and its receiver, which copies meanwhile, believes its copy when the sender says that the
//! message is there.
//!
//! What a peer says of a place is checked against the heap before it is used ([`crate::heap`], rule 3: a place inside
//! of it is always memory); what lies there may be changed by anybody at any time, as the ring's bytes may. A place
//! that overlaps our own buffer, which a window's memory may and a lie can, is not copied from, nor to:
//! such a message goes another way.

use super::Rendezvous;
use super::{Claims, CopyEngine, Garbage, Split, emit};
use crate::arch::copy_long;
use crate::engine::{Body, Contents, Engine, Ref, Rts, Stage, corrupt};
use crate::error::Result;
use crate::events::Event;
use crate::heap::{BufferUse, Heap, map_around};
use crate::protocol::Control;
use crate::ring::{PROTOCOL_WORDS, ProtocolWords, Room};
use crate::shm::telemetry::ProtocolKind;
use crate::sync::Ordering;
use crate::variables::{CopyChoice, ValueSource, VariableId};
use core::ops::Range;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 3, takes, begin };

/// Most bytes of a message whose program has stored into a buffer since it last sent it that go through the ring though
/// the buffer has been remapped: they lie in the sender's cache.
const LONGEST_CHANGED: usize = 128 << 10;
/// The same where ranks outnumber CPUs, so that many of these messages lie in one cache.
const LONGEST_CHANGED_IN_TURN: usize = LONGEST_CHANGED / 2;
/// How many times as long they may be where writers may go past the cache: there lines that another CPU has stored cost
/// more.
const CHANGED_STREAMED: usize = 2;

/// Bytes of a message from which its sender helps to copy it to a remapped buffer: to find the buffer's place, and to
/// fetch its edge, takes time.
const SHARED_REMAPPED: usize = 256 << 10;

/// What a sender says of the place that it has announced.
const UNKNOWN: u64 = 0;
const IS_THERE: u64 = 1;
const IS_GONE: u64 = 2;

/// How often the receiver looks for that: for longer than it takes a sender that runs.
const LOOKS: u32 = 1000;

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
    let total = rts.total;
    if rts.place == 0 {
        let own = own_place(engine, body, total);
        return (own != 0).then_some(CopyPlan::Sender { own });
    }
    let from = source(engine, body, rts)?;
    // With several threads another one may complete the sender's part while we copy ours: two owners of one body. And
    // where both have a message for each other each copies one.
    let alone = engine.shared || rts.is_unchecked || engine.protocol_state().copy.sends_itself();
    let helps = total >= engine.config.share_from()
        || is_share_ours(engine) && engine.protocol_state().copy.halves_in_turn(engine, rts);
    if alone || !helps {
        return Some(CopyPlan::Receiver(from));
    }
    let own = match own_place(engine, body, total) {
        0 if total >= SHARED_REMAPPED => engine.rendezvous().remapped_place(body, total, false),
        own => own,
    };
    Some(if own != 0 { CopyPlan::Both { from, own } } else { CopyPlan::Receiver(from) })
}

/// Whether nobody has said from how many bytes on both ranks copy.
fn is_share_ours(engine: &Engine) -> bool {
    matches!(engine.config.source(VariableId::CopyShareFrom), ValueSource::Default)
}

/// Whether a message of so many bytes goes through the ring if its program has stored into its buffer since it last
/// sent that, which may be remapped otherwise.
pub(super) fn may_be_remapped(engine: &Engine, bytes: usize) -> bool {
    let shape = engine.config.shape();
    let longest = if shape.is_oversubscribed() { LONGEST_CHANGED_IN_TURN } else { LONGEST_CHANGED };
    let times = if shape.streams { CHANGED_STREAMED } else { 1 };
    bytes <= longest * times && engine.config.remap_after().is_some() && !engine.job.are_threads()
}

/// Where the bytes that a receive wants lie in the heap, if the program has its memory from there; else 0.
fn own_place(engine: &Engine, body: &Body, total: usize) -> u64 {
    match Heap::mapped(&engine.job) {
        Some(heap) if total >= engine.config.direct_from() => place_of(heap, body, total),
        _ => 0,
    }
}

/// Where a message lies that has been announced in the heap, and is to be copied from there.
fn source(engine: &Engine, body: &Body, rts: &Rts) -> Option<*const u8> {
    let from = Heap::of(&engine.job)?.at(rts.place, rts.total as u64)?.as_ptr().cast_const();
    (!body.overlaps(from, rts.total)).then_some(from)
}

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    engine.rendezvous().copies_in_heap()
        && !engine.is_guest(body.world.get())
        && match rts.place {
            0 => own_place(engine, body, rts.total) != 0,
            _ => source(engine, body, rts).is_some(),
        }
}

fn begin(engine: &Engine, request: Ref, rts: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    match plan(engine, body, rts) {
        // SAFETY: `plan` has found the message's bytes in the heap from there on, and not in our buffer.
        Some(CopyPlan::Receiver(from)) => unsafe {
            engine.rendezvous().copy_from_heap(request, from, rts.is_unchecked)
        },
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
    pub(crate) fn place_of_send(self, body: &Body) -> u64 {
        let (engine, bytes) = (self.engine, body.bytes.get());
        let goes = bytes >= engine.config.direct_from()
            && self.copies_in_heap()
            && body.world.get() != engine.rank
            && !engine.is_guest(body.world.get());
        let own = if goes { own_place(engine, body, bytes) } else { 0 };
        let is_changed = body.contents.get() == Contents::Changed && may_be_remapped(engine, bytes);
        if own != 0 || !goes || is_changed {
            return own;
        }
        if let Some(place) = self.unchecked_place(body, bytes) {
            body.is_unchecked.set(true);
            return place;
        }
        self.remapped_place(body, bytes, true)
    }

    /// Whether the message of the `bytes` bytes at `addr` to `to` is copied from there by its receiver, though it is no
    /// longer than `eager_limit`: the program has them from the shared heap, and nobody has said what is to be eager.
    pub(crate) fn copies_from_heap(self, to: u32, addr: *const u8, bytes: usize) -> bool {
        let place = || Heap::mapped(&self.engine.job)?.place_of(addr, bytes);
        bytes > self.engine.config.eager_from_anywhere()
            && self.copies_in_heap()
            && place().is_some()
            && !self.engine.is_guest(to)
    }

    /// Where a buffer of other memory lies in the heap since it was remapped; else 0.
    fn remapped_place(self, body: &Body, bytes: usize, is_sent: bool) -> u64 {
        let is_quiet = !self.engine.shared && !self.engine.protocol_state().copy.sends_itself();
        let buffer_use = BufferUse { is_sent, is_quiet };
        // SAFETY: the first bytes of a buffer of one run, of a send or of a receive that is matched.
        let place = || unsafe { self.engine.remapped_place(body.addr.get(), bytes, buffer_use) };
        if body.is_bytes() { place().unwrap_or(0) } else { 0 }
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

    /// Copies a message to the buffer of its receive. If its sender finds that it is not there, or does not say in time
    /// that it is, it comes in another way.
    ///
    /// # Safety
    ///
    /// The bytes that the receive wants are in the heap from `from` on, and not in its buffer.
    unsafe fn copy_from_heap(self, request: Ref, from: *const u8, is_unchecked: bool) -> Result<()> {
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
        if is_unchecked && !self.is_confirmed(body.world.get()) {
            return self.fall_back(request);
        }
        self.finish_copied(request, ProtocolKind::Direct)
    }

    /// The words beside the ring from `from` to `to`.
    ///
    /// # Safety
    /// The ring's memory has been taken, as it is before a record goes through it.
    unsafe fn words(self, from: u32, to: u32) -> &'e ProtocolWords {
        let ring = self.engine.job.ring(from, to).control;
        // SAFETY: the words lie in the ring's control, aligned, and are atomics to all; its memory has been taken, as
        // the caller says, and the job's memory lives as long as the engine.
        unsafe { &*ring.add(PROTOCOL_WORDS).cast::<ProtocolWords>() }
    }

    /// What is still to be taken of a message that `from` sends to `to`, both at work on it.
    fn claims(self, from: u32, to: u32) -> Claims<'e> {
        // SAFETY: the ring's memory was taken before the announcement went through it.
        Claims::over(unsafe { &self.words(from, to).claims })
    }

    /// Where a send's remapped buffer lies, if that can be checked when it has been announced ([`Self::confirm`]): the
    /// receiver copies meanwhile. There is one word for that beside the ring to it, so no other message to it may be
    /// announced; and this rank must run meanwhile, so nobody is woken who might take its CPU.
    fn unchecked_place(self, body: &Body, bytes: usize) -> Option<u64> {
        let engine = self.engine;
        let peer = &engine.peers[body.world.get() as usize];
        let may_wait = bytes < SHARED_REMAPPED
            && body.is_bytes()
            && !engine.shared
            && engine.config.remap_after().is_some()
            && peer.has_quiet_ring(engine.shared)
            && !peer.doorbell.is_asleep();
        let buffers = if may_wait { engine.remapped_buffers()? } else { return None };
        // SAFETY: the bytes are those of a send, which nobody writes to before it ends.
        unsafe { buffers.unchecked_place_of(body.addr.get(), bytes) }
    }

    /// Finds out whether a message that is about to be announced lies where it was, once `announce` has announced it,
    /// and says so to its receiver.
    pub(super) fn confirm(self, body: &Body, announce: impl FnOnce() -> Result<()>) -> Result<()> {
        // SAFETY: there is a ring to the receiver (`unchecked_place`).
        let word = unsafe { &self.words(self.engine.rank, body.world.get()).checked };
        // Relaxed, as all here: it publishes no bytes. The receiver sees this store or a later one, for it has seen the
        // announcement (edge 1), and nothing else is announced to it.
        word.store(UNKNOWN, Ordering::Relaxed);
        announce()?;
        let buffers = self.engine.remapped_buffers();
        let is_there = buffers.is_some_and(|buffers| buffers.is_there(body.addr.get(), body.bytes.get()));
        word.store(if is_there { IS_THERE } else { IS_GONE }, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the sender says that the message lies where it has been copied from.
    fn is_confirmed(self, from: u32) -> bool {
        // SAFETY: the ring's memory was taken before the announcement went through it.
        let word = unsafe { &self.words(from, self.engine.rank).checked };
        for _ in 0..LOOKS {
            // Relaxed: see `confirm`.
            match word.load(Ordering::Relaxed) {
                UNKNOWN => crate::sync::spin_loop(),
                said => return said == IS_THERE,
            }
        }
        false
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
            _ if body.place.get() == 0 => {
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
        unsafe { map_around(to, bytes) };
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
                map_around(to.add(part.start), part.len());
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
            if let Some(buffers) = self.engine.remapped_buffers() {
                let written = body.moved.get()..body.wanted.get();
                // SAFETY: a receive that is under way.
                unsafe { buffers.fetch_edges(body.addr.get(), body.wanted.get(), written) };
            }
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

fn spoiled(total: usize) -> String {
    format!("what is left of a shared copy of {total} bytes makes no sense")
}
