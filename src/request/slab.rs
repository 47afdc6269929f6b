//! Where requests live: chunks that never move, ids that grow stale.

use super::state::RequestState;
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicUsize, CachePadded, Cell, ConditionalLock, OWNED_SLOTS, Ordering,
    THREAD_SLOTS, thread_slot,
};
use core::ptr::NonNull;

/// Ids begin here, above the ABI's predefined handles, so that an id is its own C handle.
const FIRST: u32 = 4096;
const INDEX_BITS: u32 = 22;
const INDEX: u32 = (1 << INDEX_BITS) - 1;
const GENERATIONS: u32 = 256;
/// Slots of the first chunk; each further one is twice as large. A model has few.
const CHUNK: u32 = if cfg!(perusal_loom) { 2 } else { 256 };
const CHUNKS: usize = 14;
const CAPACITY: u32 = chunk_start(CHUNKS as u32);
const _: () = assert!(CAPACITY <= INDEX);
const LIVE: u32 = 1 << 31;
/// Free slots that a thread slot gets at a time.
const HANDFUL: usize = 32;
/// Free slots that a thread slot keeps at most; half of them then go back to the common list.
const HEAP: usize = 256;

const fn chunk_start(chunk: u32) -> u32 {
    ((1 << chunk) - 1) * CHUNK
}

/// The chunk of a slot.
#[inline(always)]
fn chunk_of(index: u32) -> u32 {
    (index / CHUNK + 1).ilog2()
}

/// One slot; what every request needs of it lies in its first lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RequestSlot<B> {
    /// State word.
    pub state: RequestState,
    /// Generation, and LIVE while a request is in it.
    tag: AtomicU32,
    index: u32,
    body: Cell<B>,
}

/// A request in its slot: a plain pointer, valid as long as the slab.
pub struct Ref<B>(NonNull<RequestSlot<B>>);

impl<B> Clone for Ref<B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Ref<B> {}

impl<B> PartialEq for Ref<B> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<B> Eq for Ref<B> {}

impl<B> core::fmt::Debug for Ref<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Ref").field(&self.id()).finish()
    }
}

// SAFETY: slots live as long as the engine that uses the reference, and request rule 2 says which thread uses a body
// when; bodies may change threads.
unsafe impl<B: Send> Send for Ref<B> {}
// SAFETY: a shared reference gives what a copy gives, and copies may be sent.
unsafe impl<B: Send> Sync for Ref<B> {}

impl<B> Ref<B> {
    #[inline(always)]
    fn slot(&self) -> &RequestSlot<B> {
        // SAFETY: chunks are freed only with the slab, which outlives every reference (slab documentation).
        unsafe { self.0.as_ref() }
    }

    /// The state word.
    #[inline(always)]
    pub fn state(&self) -> &RequestState {
        &self.slot().state
    }

    /// The name under which peers and users know this request: 4096 ≤ id < 2³¹.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        // Relaxed: asked by the thread that holds the request, so its generation stands still.
        let generation = self.slot().tag.load(Ordering::Relaxed) & !LIVE;
        FIRST + (generation << INDEX_BITS | self.slot().index)
    }

    /// Whether the operation is over, and also if none has begun: a persistent request between two starts.
    #[inline(always)]
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Whether it is a persistent request between two starts.
    #[inline(always)]
    #[must_use]
    pub fn is_inactive(&self) -> bool {
        self.state().is_inactive()
    }

    /// The body.
    ///
    /// # Safety
    ///
    /// The caller has it by request rule 2, as long as it uses the reference.
    #[inline(always)]
    pub unsafe fn body<'a>(self) -> &'a B
    where
        B: 'a,
    {
        // SAFETY: the slot is valid, for chunks are freed only with the slab.
        let slot = unsafe { self.0.as_ref() };
        // A body is written through its reference, too: the thread that has it has it alone, and a checker can see
        // that. SAFETY: as valid as the slot; nobody takes a reference that excludes others.
        slot.body.with_mut(|body| unsafe { &*body })
    }
}

/// All requests of one engine. References and ids must not be used after the slab is dropped.
#[derive(Debug)]
pub struct Slab<B> {
    chunks: [AtomicPtr<RequestSlot<B>>; CHUNKS],
    free: CachePadded<ConditionalLock<FreeSlots<B>>>,
    /// Free slots at hand for the threads of each thread slot, where several threads may be inside.
    hands: [CachePadded<Hand<B>>; THREAD_SLOTS],
}

/// Free slots at hand for the threads of a thread slot. Those of an owned thread slot are the owner's alone (thread
/// slot rule 1); the locks of the others come before that of the common list, and nobody takes two of them at once.
#[derive(Debug)]
struct Hand<B> {
    slots: ConditionalLock<Vec<Ref<B>>>,
    /// How many, for who counts.
    len: AtomicUsize,
}

impl<B> Default for Hand<B> {
    fn default() -> Self {
        Self { slots: ConditionalLock::new(Vec::new()), len: AtomicUsize::new(0) }
    }
}

impl<B> Hand<B> {
    /// Runs `work` on the slots of the calling thread's lane.
    #[inline(always)]
    fn with<R>(hands: &[CachePadded<Self>; THREAD_SLOTS], work: impl FnOnce(&mut Vec<Ref<B>>) -> R) -> R {
        let thread = thread_slot();
        hands[thread].run(thread >= OWNED_SLOTS, work)
    }

    #[inline(always)]
    fn run<R>(&self, shared: bool, work: impl FnOnce(&mut Vec<Ref<B>>) -> R) -> R {
        let mut slots = self.slots.lock(shared);
        let result = work(&mut slots);
        // Relaxed: a sample; one writer, under the lock or by thread slot rule 1.
        self.len.store(slots.len(), Ordering::Relaxed);
        result
    }
}

#[derive(Debug)]
struct FreeSlots<B> {
    slots: Vec<Ref<B>>,
    fresh: u32,
}

impl<B: Default> Default for Slab<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Default> Slab<B> {
    /// An empty slab.
    pub fn new() -> Self {
        Self {
            chunks: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            free: CachePadded::new(ConditionalLock::new(FreeSlots { slots: Vec::new(), fresh: 0 })),
            hands: core::array::from_fn(|_| CachePadded::default()),
        }
    }

    /// An inactive request with a default body, or `None` when more than four million are alive.
    #[inline(always)]
    pub fn take(&self, shared: bool) -> Option<Ref<B>> {
        let request = if shared { self.take_at_hand()? } else { self.take_free(&mut self.free.lock(false))? };
        let tag = &request.slot().tag;
        // Relaxed: the id becomes known to others through a ring or the user, which publish it.
        tag.store(tag.load(Ordering::Relaxed) | LIVE, Ordering::Relaxed);
        Some(request)
    }

    #[inline(always)]
    fn take_free(&self, free: &mut FreeSlots<B>) -> Option<Ref<B>> {
        match free.slots.pop() {
            Some(request) => Some(request),
            None => self.fresh(free),
        }
    }

    /// A free slot of the thread's hand.
    #[inline(never)]
    fn take_at_hand(&self) -> Option<Ref<B>> {
        let taken = Hand::with(&self.hands, |hand| hand.pop().or_else(|| self.refill(hand)));
        taken.or_else(|| self.take_from_others())
    }

    #[cold]
    fn refill(&self, hand: &mut Vec<Ref<B>>) -> Option<Ref<B>> {
        let mut free = self.free.lock(true);
        let taken = self.take_free(&mut free)?;
        let rest = free.slots.len().saturating_sub(HANDFUL);
        hand.extend(free.slots.drain(rest..));
        Some(taken)
    }

    /// All slots are alive, or at hand for other threads. What owners of thread slots have at hand, a few hundred of
    /// millions, stays with them.
    #[cold]
    fn take_from_others(&self) -> Option<Ref<B>> {
        self.hands[OWNED_SLOTS..].iter().find_map(|hand| hand.run(true, Vec::pop))
    }

    #[inline(never)]
    fn give_back_at_hand(&self, request: Ref<B>) {
        Hand::with(&self.hands, |hand| {
            hand.push(request);
            if hand.len() > HEAP {
                // The oldest: the others are in this processor's cache.
                self.free.lock(true).slots.extend(hand.drain(..HEAP / 2));
            }
        });
    }

    #[cold]
    fn fresh(&self, free: &mut FreeSlots<B>) -> Option<Ref<B>> {
        let first = free.fresh;
        if first >= CAPACITY {
            return None;
        }
        let number = chunk_of(first);
        let slots: Box<[RequestSlot<B>]> = (first..chunk_start(number + 1))
            .map(|index| RequestSlot {
                state: RequestState::new(),
                tag: AtomicU32::new(0),
                index,
                body: Cell::new(B::default()),
            })
            .collect();
        let len = slots.len();
        // From here on the slots are reached by this pointer alone,
        // so that no reference to all of them ends its right to one.
        let chunk =
            NonNull::new(Box::into_raw(slots).cast::<RequestSlot<B>>()).expect("a box is nowhere at zero");
        // Release: "request slots" edge, pairs with Acquire in `slot_in` and `alive_ones`, publishes the slots.
        self.chunks[number as usize].store(chunk.as_ptr(), Ordering::Release);
        free.fresh = chunk_start(number + 1);
        // SAFETY: the chunk has `len` slots.
        free.slots.extend((0..len).rev().map(|at| Ref(unsafe { chunk.add(at) })));
        free.slots.pop()
    }

    /// Gives a slot back; its id is stale from now on.
    ///
    /// The caller is the one that request rule 4 tells to, and leaves the body without owned parts it cares for.
    #[inline(always)]
    pub fn release(&self, request: Ref<B>, shared: bool) {
        let slot = request.slot();
        let generation = slot.tag.load(Ordering::Relaxed) & !LIVE;
        // Relaxed: a peer's stale id is refused or not; either is a corrupt record that harms nobody's memory.
        slot.tag.store((generation + 1) % GENERATIONS, Ordering::Relaxed);
        slot.state.reset();
        if shared {
            self.give_back_at_hand(request);
        } else {
            self.free.lock(false).slots.push(request);
        }
    }

    /// The request of that name, if it is alive.
    #[inline(always)]
    pub fn get(&self, id: usize) -> Option<Ref<B>> {
        // What is below the first id, or no 32-bit number, has a generation that no slot ever has.
        let at = id.wrapping_sub(FIRST as usize);
        let index = at as u32 & INDEX;
        let slot = if index < CHUNK { self.slot_in(0, index)? } else { self.slot_behind(index)? };
        // SAFETY: a published slot, reached by shared reference alone.
        let tag = unsafe { slot.as_ref() }.tag.load(Ordering::Relaxed);
        ((tag as usize).wrapping_sub(LIVE as usize) == at >> INDEX_BITS).then_some(Ref(slot))
    }

    /// The slot of that index behind the first chunk, which has enough for most programs.
    #[inline(never)]
    fn slot_behind(&self, index: u32) -> Option<NonNull<RequestSlot<B>>> {
        let number = chunk_of(index);
        self.slot_in(number, index - chunk_start(number))
    }

    #[inline(always)]
    fn slot_in(&self, number: u32, at: u32) -> Option<NonNull<RequestSlot<B>>> {
        // Acquire: "request slots" edge, pairs with Release in `fresh`.
        let chunk = NonNull::new(self.chunks.get(number as usize)?.load(Ordering::Acquire))?;
        // SAFETY: a published chunk has all the slots whose indices `chunk_of` maps to it.
        Some(unsafe { chunk.add(at as usize) })
    }

    /// All requests that are alive: of those that come or go meanwhile, each as it was at some moment.
    pub fn alive_ones(&self) -> impl Iterator<Item = Ref<B>> + '_ {
        (0..CHUNKS as u32).flat_map(move |number| {
            // Acquire: "request slots" edge, pairs with Release in `fresh`.
            let chunk = NonNull::new(self.chunks[number as usize].load(Ordering::Acquire));
            let slots = if chunk.is_some() { CHUNK << number } else { 0 };
            (0..slots).filter_map(move |index| {
                // SAFETY: a published chunk has all its slots.
                let request = Ref(unsafe { chunk?.add(index as usize) });
                (request.slot().tag.load(Ordering::Relaxed) & LIVE != 0).then_some(request)
            })
        })
    }

    /// Number of requests alive; while others take and release some, about so many.
    pub fn alive(&self, shared: bool) -> usize {
        // Relaxed: a sample.
        let at_hand: usize = self.hands.iter().map(|hand| hand.len.load(Ordering::Relaxed)).sum();
        let free = self.free.lock(shared);
        (free.fresh as usize).saturating_sub(free.slots.len() + at_hand)
    }
}

impl<B> Drop for Slab<B> {
    fn drop(&mut self) {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let chunk = chunk.load(Ordering::Relaxed);
            if !chunk.is_null() {
                let slots = core::ptr::slice_from_raw_parts_mut(chunk, (CHUNK as usize) << number);
                // SAFETY: leaked by `fresh` from a box of exactly this length, and freed only here.
                drop(unsafe { Box::from_raw(slots) });
            }
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    type Slab = super::Slab<u64>;
    type Ref = super::Ref<u64>;

    #[test]
    fn an_id_finds_its_request_until_it_is_released() {
        let slab = Slab::new();
        let request = slab.take(false).expect("room");
        let id = request.id();
        assert!((4096..1 << 31).contains(&id));
        assert_eq!(slab.get(id as usize), Some(request));
        slab.release(request, false);
        assert_eq!(slab.get(id as usize), None);
        let again = slab.take(false).expect("room");
        assert_eq!((again, slab.get(id as usize)), (request, None), "same slot, another name");
        assert_ne!(again.id(), id);
    }

    #[test]
    fn ids_that_were_never_given_out_find_nothing() {
        let slab = Slab::new();
        let far = [1 << 32, (1 << 32) + 4096, usize::MAX, usize::MAX - 4095];
        for id in [0, 1, 4095, 4096, 5000, u32::MAX as usize].into_iter().chain(far) {
            assert_eq!(slab.get(id), None, "{id}");
        }
        let request = slab.take(false).expect("room");
        let id = request.id() as usize;
        assert_eq!(slab.get(id), Some(request));
        // Its name with something above, in numbers that no id is.
        for wrong in
            [id + (1 << 31), id + (1 << 32), id + (1 << 40), id + (1 << 53), id.wrapping_sub(1 << 22)]
        {
            assert_eq!(slab.get(wrong), None, "{wrong:#x}");
        }
    }

    #[test]
    fn slots_behind_the_first_chunk_are_found_too() {
        let slab = Slab::new();
        let all: Vec<Ref> = (0..4 * CHUNK).map(|_| slab.take(false).expect("room")).collect();
        assert!(all.iter().all(|request| slab.get(request.id() as usize) == Some(*request)));
    }

    #[test]
    fn many_requests_have_names_of_their_own() {
        let slab = Slab::new();
        let all: Vec<Ref> = (0..1000).map(|_| slab.take(true).expect("room")).collect();
        let mut ids: Vec<u32> = all.iter().map(Ref::id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), slab.alive(true)), (1000, 1000));
        let mut found: Vec<u32> = slab.alive_ones().map(|request| request.id()).collect();
        found.sort_unstable();
        assert_eq!(found, ids);
        all.iter().for_each(|&request| slab.release(request, true));
        assert_eq!(slab.alive(true), 0);
    }

    #[test]
    fn slots_that_one_thread_takes_and_another_releases_are_used_again() {
        let slab = Slab::new();
        // Interpreted, a round takes seconds.
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let all: Vec<Ref> = (0..500).map(|_| slab.take(true).expect("room")).collect();
            let slab = &slab;
            std::thread::scope(|scope| {
                let release = move || all.into_iter().for_each(|request| slab.release(request, true));
                scope.spawn(release).join().unwrap();
            });
            assert_eq!(slab.alive(true), 0);
        }
        assert!(slab.free.lock(true).fresh < 500 + CHUNK * 16, "{}", slab.free.lock(true).fresh);
    }
}
