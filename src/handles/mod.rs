//! Tables from the integer in a C handle to the object that it names.
//!
//! A handle is `4096 + (generation << 22 | index)`: outside the predefined range 1..=4095, never zero, and a positive
//! `int`, so that `MPI_X_toint` is the identity. Each kind of object has 32 generations of its own, so no table takes
//! the handle of another kind. A slot moves to its next generation each time its object is removed, so a stale handle
//! is refused until its slot has been used 32 times more; free slots are taken oldest first.
//!
//! # Rules
//! - **Handle rule 1.** A slot's `state` holds `generation`, `PRESENT` and a count of readers. Only `TableSlot::enter`
//!   and `TableSlot::leave` change the count, only `publish` sets `PRESENT`, only `TableSlot::withdraw` clears it.
//! - **Handle rule 2.** A reader looks at `value` only between `enter` and `leave`,
//!   and only if `enter` saw `PRESENT` with its generation.
//! - **Handle rule 3.** `value` is written only by the one who holds the slot's index from the free list and has not
//!   published it, or who cleared `PRESENT` and then saw the count of readers fall to zero.
//!   So no one reads it meanwhile (handle rule 2).
//! - **Handle rule 4.** Chunks are published once and never moved or freed before the table is dropped.

use crate::error::{Error, Result};
use crate::sync::{AtomicPtr, AtomicU32, Cell, Mutex, MutexGuard, Ordering, spin_loop, yield_now};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// The first handle value that is not predefined.
pub const FIRST: usize = 4096;
const INDEX_BITS: u32 = 22;
const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;
/// Generations of a kind, a power of two.
const GENERATIONS: u32 = 32;
/// One past the greatest handle value that a table gives out.
const END: usize = FIRST + ((HandleKind::COUNT * GENERATIONS as usize) << INDEX_BITS);
const _: () = assert!(END <= i32::MAX as usize, "MPI_X_toint is the identity");

/// Slots of the first chunk; each further one is as large as all before it.
/// Small under loom, so that slots are used again.
const CHUNK0: usize = if cfg!(perusal_loom) { 1 } else { 64 };
const CHUNKS: usize = (INDEX_MASK + 1).ilog2() as usize - CHUNK0.ilog2() as usize + 1;

const PRESENT: u32 = 1 << 31;
const GENERATION_SHIFT: u32 = 22;
const GENERATION: u32 = 0x1ff << GENERATION_SHIFT;
const READERS: u32 = (1 << GENERATION_SHIFT) - 1;

/// What the handles of a table name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleKind {
    /// An operation that is not one message. Its handles are small enough to be moved behind those of the engine's
    /// requests.
    Task,
    /// A communicator.
    Comm,
    /// A datatype.
    Datatype,
    /// A reduction operation.
    Op,
    /// A group.
    Group,
    /// An info object.
    Info,
    /// A file.
    File,
    /// A window.
    Win,
    /// An error handler.
    Errhandler,
    /// A session.
    Session,
    /// A matched message.
    Message,
    /// A control variable's handle.
    Cvar,
    /// An event registration.
    EventRegistration,
}

impl HandleKind {
    const COUNT: usize = 13;

    /// The first of its generations.
    const fn generation(self) -> u32 {
        self as u32 * GENERATIONS
    }

    /// What users call its objects.
    fn plural(self) -> &'static str {
        match self {
            Self::Task => "requests",
            Self::Comm => "communicators",
            Self::Datatype => "datatypes",
            Self::Op => "operations",
            Self::Group => "groups",
            Self::Info => "info objects",
            Self::File => "files",
            Self::Win => "windows",
            Self::Errhandler => "error handlers",
            Self::Session => "sessions",
            Self::Message => "messages of matched probes",
            Self::Cvar => "handles of control variables",
            Self::EventRegistration => "event registrations",
        }
    }
}

const _: () = assert!(HandleKind::EventRegistration as usize + 1 == HandleKind::COUNT);

struct TableSlot<T> {
    state: AtomicU32,
    value: Cell<Option<Arc<T>>>,
}

impl<T> TableSlot<T> {
    fn new(kind: HandleKind) -> Self {
        Self { state: AtomicU32::new(kind.generation() << GENERATION_SHIFT), value: Cell::new(None) }
    }

    /// Announces a reader (handle rule 1). True if the slot holds an object of `generation`;
    /// `leave` must follow either way.
    fn enter(&self, generation: u32) -> bool {
        // Acquire: handles edge 1, pairs with the Release in `publish`.
        let before = self.state.fetch_add(1, Ordering::Acquire);
        before & (PRESENT | GENERATION) == PRESENT | generation << GENERATION_SHIFT
    }

    fn leave(&self) {
        // Release: handles edge 2, pairs with the Acquire in `withdraw`: our look at the value is over.
        self.state.fetch_sub(1, Ordering::Release);
    }

    /// Makes the value that the caller has just written visible; gives the generation.
    fn publish(&self) -> u32 {
        // Release: handles edge 1, pairs with the Acquire in `enter`.
        (self.state.fetch_or(PRESENT, Ordering::Release) & GENERATION) >> GENERATION_SHIFT
    }

    /// Takes the object of `generation` out and moves the slot to the next generation.
    fn retire(&self, generation: u32) -> Option<Arc<T>> {
        let first = generation & !(GENERATIONS - 1);
        self.withdraw(generation, first | ((generation + 1) % GENERATIONS))
    }

    /// Puts `object` in the place of the one of `generation`. Meanwhile there is none.
    fn replace(&self, generation: u32, object: Arc<T>) -> Option<Arc<T>> {
        let old = self.withdraw(generation, generation)?;
        // SAFETY: handle rule 3: `withdraw` cleared PRESENT and saw no reader since, and only `publish`,
        // below, sets it again.
        self.value.with_mut(|value| unsafe { *value = Some(object) });
        self.publish();
        Some(old)
    }

    /// Takes the object of `generation` out and leaves the slot empty, at generation `next`.
    fn withdraw(&self, generation: u32, next: u32) -> Option<Arc<T>> {
        // Relaxed: only a guess for the exchange below.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & (PRESENT | GENERATION) != PRESENT | generation << GENERATION_SHIFT {
                return None;
            }
            let free = state & READERS | next << GENERATION_SHIFT;
            // Relaxed: the loop below ends with an Acquire of what this continues (an exchange is part of the release
            // sequences of edges 1 and 2).
            match self.state.compare_exchange_weak(state, free, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // A reader stays for the time of one reference count; a descheduled one is what the yield is for.
        let mut tries = 0;
        // Acquire: handles edges 1 and 2, pairs with the Release in `publish` and in `leave`.
        while self.state.load(Ordering::Acquire) & READERS != 0 {
            tries += 1;
            if tries < 64 { spin_loop() } else { yield_now() }
        }
        // SAFETY: handle rule 3: we cleared PRESENT and saw no reader since; the index is not yet on the free list.
        self.value.with_mut(|value| unsafe { (*value).take() })
    }
}

/// Objects of one kind, found by handle. Lookup takes no lock; insert and remove take a short one.
pub struct HandleTable<T> {
    kind: HandleKind,
    chunks: [AtomicPtr<TableSlot<T>>; CHUNKS],
    free: Mutex<FreeHandles>,
}

struct FreeHandles {
    fresh: usize,
    used: VecDeque<u32>,
}

// SAFETY: the table hands out `Arc<T>` clones and `&T`, and moves `Arc<T>` between threads: what `Arc<T>: Send + Sync`
// needs. Access to slots follows handle rules 1 to 4.
unsafe impl<T: Send + Sync> Sync for HandleTable<T> {}
// SAFETY: the table owns the chunks that its pointers lead to, and the `Arc<T>`s in them, which are `Send`.
unsafe impl<T: Send + Sync> Send for HandleTable<T> {}

impl<T> HandleTable<T> {
    /// An empty table; allocates nothing.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new(kind: HandleKind) -> Self {
        Self {
            kind,
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS],
            free: Mutex::new(FreeHandles { fresh: 0, used: VecDeque::new() }),
        }
    }

    /// The same with loom's types, which cannot be made in a constant.
    #[cfg(perusal_loom)]
    #[must_use]
    pub fn new(kind: HandleKind) -> Self {
        Self {
            kind,
            chunks: std::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            free: Mutex::new(FreeHandles { fresh: 0, used: VecDeque::new() }),
        }
    }

    /// Gives `object` a handle.
    ///
    /// # Errors
    /// [`Error::NoMem`] if 4,194,304 objects of this kind are alive.
    pub fn insert(&self, object: Arc<T>) -> Result<usize> {
        let index = self.claim().ok_or_else(|| {
            let what = self.kind.plural();
            Error::NoMem(format!("there are {} {what}, and handles for no more: free some", INDEX_MASK + 1))
        })?;
        let slot = self.slot(index).expect("claim made the chunk");
        // SAFETY: handle rule 3: `claim` gave the index to us alone and the slot is not published.
        slot.value.with_mut(|value| unsafe { *value = Some(object) });
        let generation = slot.publish() as usize;
        Ok(FIRST + (generation << INDEX_BITS | index))
    }

    /// The object of `handle`, kept alive by the clone;
    /// `None` if the handle is predefined, unknown, stale or of another kind.
    #[must_use]
    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        let (slot, generation) = self.find(handle)?;
        let object = if slot.enter(generation) {
            // SAFETY: handle rule 2: between `enter` and `leave`, and `enter` saw it present.
            slot.value.with(|value| unsafe { (*value).clone() })
        } else {
            None
        };
        slot.leave();
        object
    }

    /// The object of `handle` without counting a reference: for the hot path of a message.
    ///
    /// # Safety
    /// Until the reference is dropped nobody removes `handle`, or somebody else keeps the object alive. MPI asks this
    /// of the program for every handle it passes (MPI 5.0 §11.6.2:
    /// a handle must not be freed while another thread uses it).
    #[must_use]
    #[inline]
    pub unsafe fn peek(&self, handle: usize) -> Option<&T> {
        let (slot, generation) = self.find(handle)?;
        // Acquire: handles edge 1, pairs with the Release in `publish`.
        let state = slot.state.load(Ordering::Acquire);
        if state & (PRESENT | GENERATION) != PRESENT | generation << GENERATION_SHIFT {
            return None;
        }
        // SAFETY: published, and the caller promises that no one retires it, so no one writes `value` (handle rule 3).
        slot.value.with(|value| unsafe { (*value).as_deref() })
    }

    /// Puts `object` in the place of the one that `handle` names, and gives that back. `None` if there was none. A
    /// reader at the same time finds the old one, the new one, or none.
    pub fn replace(&self, handle: usize, object: Arc<T>) -> Option<Arc<T>> {
        let (slot, generation) = self.find(handle)?;
        slot.replace(generation, object)
    }

    /// Takes the object out; the handle is stale from now on. `None` if it was not there (of two removers, one wins).
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let (slot, generation) = self.find(handle)?;
        let object = slot.retire(generation);
        if object.is_some() {
            self.lock().used.push_back(((handle - FIRST) & INDEX_MASK) as u32);
        }
        object
    }

    /// Handles that are alive now, in no order; for reports of what was not freed.
    #[must_use]
    pub fn handles(&self) -> Vec<usize> {
        let fresh = self.lock().fresh;
        let state = |index| self.slot(index).map_or(0, |slot| slot.state.load(Ordering::Relaxed));
        (0..fresh)
            .map(|index| (index, state(index)))
            .filter(|(_, state)| state & PRESENT != 0)
            .map(|(index, state)| {
                FIRST + (((state & GENERATION) >> GENERATION_SHIFT) as usize) * (INDEX_MASK + 1) + index
            })
            .collect()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let free = self.lock();
        free.fresh - free.used.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, FreeHandles> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim(&self) -> Option<usize> {
        let mut free = self.lock();
        // Fresh slots first up to a chunk, then the one that has been free for longest:
        // a stale handle is refused for long.
        if free.used.len() >= CHUNK0 || free.fresh > INDEX_MASK {
            return free.used.pop_front().map(|index| index as usize);
        }
        let index = free.fresh;
        free.fresh += 1;
        let (chunk, _) = locate(index);
        // Relaxed: chunks are only made here, under the lock.
        if self.chunks[chunk].load(Ordering::Relaxed).is_null() {
            let slots: Box<[TableSlot<T>]> =
                (0..chunk_len(chunk)).map(|_| TableSlot::new(self.kind)).collect();
            // Release: handles edge 3, pairs with the Acquire in `slot`; handle rule 4.
            self.chunks[chunk].store(Box::into_raw(slots).cast(), Ordering::Release);
        }
        Some(index)
    }

    fn find(&self, handle: usize) -> Option<(&TableSlot<T>, u32)> {
        if !(FIRST..END).contains(&handle) {
            return None;
        }
        let number = handle - FIRST;
        Some((self.slot(number & INDEX_MASK)?, (number >> INDEX_BITS) as u32))
    }

    fn slot(&self, index: usize) -> Option<&TableSlot<T>> {
        let (chunk, offset) = locate(index);
        // Acquire: handles edge 3, pairs with the Release in `claim`.
        let base = self.chunks[chunk].load(Ordering::Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: handle rule 4: the chunk lives as long as the table and has chunk_len(chunk) slots,
        // of which `offset` is one.
        Some(unsafe { &*base.add(offset) })
    }
}

impl<T> Drop for HandleTable<T> {
    fn drop(&mut self) {
        for (chunk, base) in self.chunks.iter().enumerate() {
            // Relaxed: nobody else has the table any more.
            let base = base.load(Ordering::Relaxed);
            if !base.is_null() {
                let slots = core::ptr::slice_from_raw_parts_mut(base, chunk_len(chunk));
                // SAFETY: made by Box::into_raw of a slice of this length in `claim`, freed only here.
                drop(unsafe { Box::from_raw(slots) });
            }
        }
    }
}

const fn chunk_len(chunk: usize) -> usize {
    if chunk == 0 { CHUNK0 } else { CHUNK0 << (chunk - 1) }
}

/// Chunk and offset of a slot: with C = CHUNK0, chunk 0 has slots 0..C, chunk k ≥ 1 has C·2^(k-1)..C·2^k.
#[inline]
const fn locate(index: usize) -> (usize, usize) {
    if index < CHUNK0 {
        return (0, index);
    }
    let chunk = (index / CHUNK0).ilog2() as usize + 1;
    (chunk, index - (CHUNK0 << (chunk - 1)))
}

#[cfg(all(test, not(perusal_loom)))]
mod tests;
