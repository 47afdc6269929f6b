//! Match contexts: what a context id means in one rank.
//! Two queues, the gate of its communicator's events, and how long it lives.

use super::attached_buffer::Buffers;
use super::copy_rates::Contents;
use super::message_events::ArrivalNumbers;
use super::operation::Ref;
use crate::arch::copy_slice;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::events::{CommEvents, Event, EventPayload, Gate, Spec};
use crate::limits::CONTEXTS;
use crate::matching::{PostedQueue, UnexpectedQueue};
use crate::scratch::Scratch;
use crate::shm::telemetry::Counter;
use crate::sync::{AtomicPtr, AtomicU32, ConditionalLock, Mutex, Ordering};
use crate::variables::Config;
use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::handle_alloc_error;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

/// A message that no receive has matched yet.
#[derive(Debug)]
pub(crate) struct UnexpectedMessage {
    /// The sender's rank in the job.
    pub world: u32,
    /// The sender's request.
    pub id: u32,
    /// Whether the sender awaits the match.
    pub synchronous: bool,
    /// Its id in events.
    pub event_id: isize,
    /// What there is of it.
    pub payload: Payload,
}

// With the 56 bytes that the queue adds, an entry is two cache lines.
const _: () = assert!(size_of::<Option<UnexpectedMessage>>() <= 72);

/// Ready to send: the announcement of a message that waits at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rts {
    /// Bytes.
    pub total: usize,
    /// Address in the sender, if the message is one run of bytes there; else 0.
    pub addr: u64,
    /// Its place in the shared heap, if it is to be copied from there; else 0.
    pub place: u64,
    /// Whether the sender has yet to find out, and to say, that the message lies there.
    pub is_unchecked: bool,
    /// What the sender knows of its bytes.
    pub contents: Contents,
    /// What else the sender has announced that is not copied yet.
    pub others: Announced,
}

/// Messages that a rank has announced before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Announced {
    /// None.
    Nothing,
    /// Some, to other ranks only.
    Elsewhere,
    /// Some to the same rank.
    There,
}

impl Announced {
    /// What a peer says by its number.
    pub fn of(number: u64) -> Option<Self> {
        [Self::Nothing, Self::Elsewhere, Self::There].get(usize::try_from(number).ok()?).copied()
    }
}

/// What there is of a message that is not matched.
#[derive(Debug)]
pub(crate) enum Payload {
    /// A few bytes.
    Small(u8, [u8; crate::ring::INLINE]),
    /// All of it.
    Whole(Scratch),
    /// Only an announcement.
    Announced(Rts),
    /// A send of this rank to itself.
    Local(Ref),
}

impl Payload {
    /// A copy of `bytes`.
    pub fn copy(bytes: &[u8]) -> Self {
        if bytes.len() <= crate::ring::INLINE {
            let mut small = [0; crate::ring::INLINE];
            match bytes.first_chunk::<8>() {
                // The commonest size, without a call.
                Some(word) if bytes.len() == 8 => *small.first_chunk_mut().expect("it is longer") = *word,
                _ => small[..bytes.len()].copy_from_slice(bytes),
            }
            Self::Small(bytes.len() as u8, small)
        } else {
            let mut whole = Self::room(bytes.len());
            copy_slice(bytes, &mut whole);
            Self::Whole(whole)
        }
    }

    /// Room for a message of `len` bytes. Without memory the process ends: a message cannot be refused.
    pub fn room(len: usize) -> Scratch {
        Scratch::of(len)
            .unwrap_or_else(|_| handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>())))
    }
}

impl UnexpectedMessage {
    /// Bytes of the message.
    pub fn bytes(&self) -> usize {
        match &self.payload {
            Payload::Small(len, _) => usize::from(*len),
            Payload::Whole(bytes) => bytes.len(),
            Payload::Announced(rts) => rts.total,
            // SAFETY: request rule 2: a send in the unexpected queue belongs to the thread that has the queues.
            Payload::Local(send) => unsafe { send.body() }.bytes.get(),
        }
    }

    /// Its bytes, if it is here as a whole and nobody awaits an answer.
    #[inline(always)]
    pub fn whole(&self) -> Option<&[u8]> {
        if self.synchronous {
            return None;
        }
        match &self.payload {
            Payload::Small(len, bytes) => bytes.get(..usize::from(*len)),
            Payload::Whole(bytes) => Some(bytes),
            Payload::Announced(_) | Payload::Local(_) => None,
        }
    }

    /// Bytes of memory of its own that it holds.
    #[inline(always)]
    pub fn held(&self) -> usize {
        match &self.payload {
            Payload::Whole(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// The two queues of one context.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Receives that wait for a message.
    pub posted: PostedQueue<Ref>,
    /// Messages that wait for a receive.
    pub unexpected: UnexpectedQueue<UnexpectedMessage>,
    /// The next sequence number of each member's messages, as events tell it.
    pub arrivals: ArrivalNumbers,
}

/// One context id: point-to-point or collective messages of one communicator. No other object shares its cache lines,
/// because other threads use other contexts.
#[repr(align(128))]
pub struct MatchContext {
    /// The communicator's gate; a closed one while it has none. Every event site reads this pointer and the mask behind
    /// it, and nothing else.
    gate: AtomicPtr<Gate>,
    /// The communicator's events; null while it has none.
    events: AtomicPtr<CommEvents>,
    id: u32,
    /// Receives posted here; changed by the thread that has the queues, read by others too.
    pub posted: Counter,
    /// Messages unexpected here.
    pub unexpected: Counter,
    /// Requests on it.
    pending: AtomicU32,
    /// 1 while a communicator is open on it.
    open: AtomicU32,
    pub(crate) queues: ConditionalLock<Queues>,
    /// What is wrong with the communicator ([`super::failures::Trouble`]).
    pub(super) trouble: AtomicU32,
    /// When this rank has noticed the death of a member.
    pub(super) failed_since: OnceLock<Instant>,
    /// The context of the point-to-point messages of the communicator whose trouble is this one's,
    /// too, if there is one.
    pub(super) tied_to: OnceLock<u32>,
    /// The number of the latest death that its user has acknowledged.
    pub(super) acknowledged: AtomicU32,
    /// The communicator's attached buffer.
    buffers: Buffers,
    /// That of its session, if it comes from one.
    session_buffers: OnceLock<Buffers>,
    /// The communicator's error handler, which its requests need when it has been freed.
    errhandler: OnceLock<Arc<ErrhandlerSlot>>,
}

/// A communicator on which an error is raised.
#[derive(Debug, Clone)]
pub struct RaisingComm {
    /// Its handle, which names it no more if it has been freed.
    pub handle: usize,
    /// Its error handler.
    pub errhandler: Option<Errhandler>,
}

impl core::fmt::Debug for MatchContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MatchContext").field("id", &self.id).finish_non_exhaustive()
    }
}

impl MatchContext {
    fn new(id: u32, short: usize) -> Self {
        Self {
            gate: AtomicPtr::new(core::ptr::from_ref(Gate::closed()).cast_mut()),
            events: AtomicPtr::new(core::ptr::null_mut()),
            id,
            posted: Counter::default(),
            unexpected: Counter::default(),
            pending: AtomicU32::new(0),
            open: AtomicU32::new(0),
            queues: ConditionalLock::new(Queues {
                posted: PostedQueue::with_short(short),
                unexpected: UnexpectedQueue::with_short(short),
                arrivals: ArrivalNumbers::default(),
            }),
            trouble: AtomicU32::new(0),
            failed_since: OnceLock::new(),
            tied_to: OnceLock::new(),
            acknowledged: AtomicU32::new(0),
            buffers: Buffers::default(),
            session_buffers: OnceLock::new(),
            errhandler: OnceLock::new(),
        }
    }

    /// The communicator's attached buffer.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Tells it the attached buffer of the communicator's session.
    pub(crate) fn set_session_buffers(&self, buffers: &Buffers) {
        let _ = self.session_buffers.set(buffers.clone());
    }

    /// Tells it the communicator's error handler.
    pub(crate) fn set_errhandler(&self, errhandler: Arc<ErrhandlerSlot>) {
        let _ = self.errhandler.set(errhandler);
    }

    /// The communicator, as what an error of a request is raised on:
    /// it lives until its requests are over (MPI 5.0 §7.4.3).
    pub(crate) fn raises_on(&self) -> RaisingComm {
        let errhandler = self.errhandler.get().map(|slot| slot.get());
        RaisingComm { handle: self.handle(), errhandler }
    }

    /// Which buffer a buffered send takes: that of the communicator if one is attached, else that of its session, else
    /// `process`, the process's (MPI 5.0 §3.6).
    pub(crate) fn buffers_or<'a>(&'a self, process: &'a Buffers) -> &'a Buffers {
        let own = core::iter::once(&self.buffers).chain(self.session_buffers.get());
        own.into_iter().find(|buffers| buffers.is_attached()).unwrap_or(process)
    }

    /// Its context id.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The communicator's handle, as events name it.
    #[inline]
    pub fn handle(&self) -> usize {
        self.events().map_or(0, CommEvents::comm)
    }

    /// Gives the context its communicator's events.
    pub fn observe(&self, events: Arc<CommEvents>) {
        // Release: pairs with Acquire in `gate`, publishes the gate, which lies in the events that we keep.
        self.gate.store(core::ptr::from_ref(&events.gate).cast_mut(), Ordering::Release);
        let events = Arc::into_raw(events).cast_mut();
        // AcqRel: pairs with Acquire in `events`; the old ones, if any, are ours to drop.
        let old = self.events.swap(events, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: came from `into_raw` here, and a context gets new events only while nothing is pending on it.
            drop(unsafe { Arc::from_raw(old) });
        }
    }

    /// The communicator's events.
    #[inline(always)]
    pub fn events(&self) -> Option<&CommEvents> {
        // Acquire: pairs with AcqRel in `observe`, publishes the events.
        let events = self.events.load(Ordering::Acquire);
        // SAFETY: points into an `Arc` that this context holds until it is dropped.
        unsafe { events.as_ref() }
    }

    #[inline(always)]
    fn gate(&self) -> &Gate {
        // Acquire: pairs with Release in `observe`.
        let gate = self.gate.load(Ordering::Acquire);
        // SAFETY: never null; it is static, or lies in the events that this context holds until it is dropped, or gets
        // others, which happens only while nothing is pending on it.
        unsafe { &*gate }
    }

    /// From now on it seems to have listeners to all events.
    pub(super) fn open_gate(&self) {
        // Release: as in `observe`.
        self.gate.store(core::ptr::from_ref(Gate::open()).cast_mut(), Ordering::Release);
        #[cfg(not(perusal_loom))]
        crate::events::hold_fast_path(true);
    }

    /// Looks at the queues, so that a model sees whether they are there.
    #[cfg(perusal_loom)]
    pub fn look(&self) {
        let _ = self.queues.lock(true).posted.is_empty();
    }

    /// Whether anybody listens to anything on it.
    #[inline(always)]
    pub fn observed(&self) -> bool {
        cfg!(feature = "peruse") && self.gate().is_any_open()
    }

    /// Whether anybody listens to `event` on it.
    #[inline(always)]
    pub(crate) fn has_listener(&self, event: Event) -> bool {
        cfg!(feature = "peruse") && self.gate().is_open(event)
    }

    /// Emits `event` to its listeners; `spec` makes the rest from the communicator's handle.
    #[inline(always)]
    pub(crate) fn emit(
        &self,
        event: Event,
        id: isize,
        payload: EventPayload<'_>,
        spec: impl FnOnce(usize) -> Spec,
    ) {
        if let Some(events) = self.events() {
            events.emit_once(event, id, self.id, payload, spec(events.comm()));
        }
    }

    /// Counts a request as pending.
    #[inline(always)]
    pub fn retain(&self, shared: bool) {
        if shared {
            // Relaxed: the one who retains has the communicator, so the count cannot fall to its end meanwhile.
            self.pending.fetch_add(1, Ordering::Relaxed);
        } else {
            self.pending.store(self.pending.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// A request is over. True if it was the last one of a closed context: the caller takes the context away.
    #[inline(always)]
    pub fn release(&self, shared: bool) -> bool {
        let left = if shared {
            // AcqRel: the last to leave must see all that others did to the context.
            self.pending.fetch_sub(1, Ordering::AcqRel) - 1
        } else {
            let left = self.pending.load(Ordering::Relaxed) - 1;
            self.pending.store(left, Ordering::Relaxed);
            left
        };
        left == 0 && self.open.load(Ordering::Acquire) == 0
    }

    /// A communicator opens on it. An open context counts one for it,
    /// so that `release` and `close` agree on who is last.
    pub fn reopen(&self) {
        if self.open.swap(1, Ordering::AcqRel) == 0 {
            self.pending.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The communicator is freed. True if nothing is pending: the caller takes the context away.
    pub fn close(&self, shared: bool) -> bool {
        self.open.store(0, Ordering::Release);
        self.release(shared)
    }
}

impl Drop for MatchContext {
    fn drop(&mut self) {
        // Relaxed, here and in the next drop: borrowed mutably, so whatever others did happened before.
        if self.trouble.load(Ordering::Relaxed) != 0 {
            #[cfg(not(perusal_loom))]
            crate::events::hold_fast_path(false);
        }
        let events = self.events.load(Ordering::Relaxed);
        if !events.is_null() {
            // SAFETY: came from `into_raw` in `observe`; nobody uses the context any more.
            drop(unsafe { Arc::from_raw(events) });
        }
    }
}

/// In a model, few: loom watches each.
const CHUNK: usize = if cfg!(perusal_loom) { 2 } else { 512 };
const CHUNKS: usize = if cfg!(perusal_loom) { 1 } else { (CONTEXTS as usize * 2).div_ceil(CHUNK) };
type Chunk = [AtomicPtr<MatchContext>; CHUNK];

/// All contexts of an engine, by context id.
#[derive(Debug)]
pub struct MatchContexts {
    chunks: [AtomicPtr<Chunk>; CHUNKS],
    /// Held by a thread that takes a context away, and by one that looks at all.
    removal: Mutex<()>,
}

impl Default for MatchContexts {
    fn default() -> Self {
        Self::new()
    }
}

impl MatchContexts {
    /// A table without any context.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chunks: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            removal: Mutex::default(),
        }
    }

    /// The context of a context, if it is there.
    #[inline(always)]
    pub fn get(&self, id: u32) -> Option<NonNull<MatchContext>> {
        // Acquire: pairs with AcqRel in `make`, publishes chunk and context.
        let chunk = self.chunks.get(id as usize / CHUNK)?.load(Ordering::Acquire);
        // SAFETY: a published chunk lives as long as the table.
        let chunk = unsafe { chunk.as_ref() }?;
        NonNull::new(chunk[id as usize % CHUNK].load(Ordering::Acquire))
    }

    /// The context of a context, made if it is not there; `None` if no context can have this id.
    #[inline(always)]
    pub(crate) fn get_or_make(&self, id: u32, config: &Config) -> Option<NonNull<MatchContext>> {
        match self.get(id) {
            Some(context) => Some(context),
            None => self.make(id, config.match_short()),
        }
    }

    /// The context of a context, made if it is not there, with queues that are short up to `short` entries.
    #[cold]
    pub fn make(&self, id: u32, short: usize) -> Option<NonNull<MatchContext>> {
        let slot = self.chunks.get(id as usize / CHUNK)?;
        let empty = |_| AtomicPtr::new(core::ptr::null_mut());
        let chunk = install(slot, || Box::new(core::array::from_fn(empty)));
        // SAFETY: a published chunk lives as long as the table.
        let chunk = unsafe { chunk.as_ref() };
        Some(install(&chunk[id as usize % CHUNK], || Box::new(MatchContext::new(id, short))))
    }

    /// Every context that is there. While other threads may take contexts away, none of them may be used.
    pub fn all(&self) -> impl Iterator<Item = NonNull<MatchContext>> + '_ {
        let chunks = self.chunks.iter().filter_map(|chunk| {
            // Acquire: pairs with AcqRel in `make`, publishes the chunk.
            let chunk = chunk.load(Ordering::Acquire);
            // SAFETY: a published chunk lives as long as the table.
            unsafe { chunk.as_ref() }
        });
        // Acquire: pairs with AcqRel in `make`, publishes the context.
        chunks.flatten().filter_map(|context| NonNull::new(context.load(Ordering::Acquire)))
    }

    /// Calls `look` with every context that is there.
    /// None is taken away meanwhile, so `look` must not release a request.
    pub fn for_each(&self, mut look: impl FnMut(&MatchContext)) {
        let _removal = self.removal.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nobody takes a context away while we have the lock.
        self.all().for_each(|context| look(unsafe { context.as_ref() }));
    }

    /// Takes a context away. The caller is the last to hold it.
    pub fn remove(&self, id: u32) {
        let _removal = self.removal.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = self.chunks[id as usize / CHUNK].load(Ordering::Acquire);
        // SAFETY: a published chunk lives as long as the table.
        let Some(chunk) = (unsafe { chunk.as_ref() }) else { return };
        let context = chunk[id as usize % CHUNK].swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !context.is_null() {
            // SAFETY: came from a box in `make`; the caller is the last to hold it.
            drop(unsafe { Box::from_raw(context) });
        }
    }
}

/// Puts a new object into an empty slot; of two who try, one wins and both get the winner's.
fn install<T>(slot: &AtomicPtr<T>, make: impl FnOnce() -> Box<T>) -> NonNull<T> {
    // Acquire: pairs with AcqRel below.
    if let Some(there) = NonNull::new(slot.load(Ordering::Acquire)) {
        return there;
    }
    let made = NonNull::from(Box::leak(make()));
    // AcqRel: publishes what we made, or shows what another made.
    match slot.compare_exchange(core::ptr::null_mut(), made.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: ours, from the box above, and nobody has seen it.
            drop(unsafe { Box::from_raw(made.as_ptr()) });
            NonNull::new(there).expect("the exchange failed because the slot was not empty")
        }
    }
}

impl Drop for MatchContexts {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let chunk = chunk.load(Ordering::Relaxed);
            if chunk.is_null() {
                continue;
            }
            // SAFETY: came from a box in `make`; nobody uses the table any more.
            let chunk = unsafe { Box::from_raw(chunk) };
            for context in chunk.iter() {
                let context = context.load(Ordering::Relaxed);
                if !context.is_null() {
                    // SAFETY: came from a box in `make`; nobody uses the table any more.
                    drop(unsafe { Box::from_raw(context) });
                }
            }
        }
    }
}
