//! Hazard pointers: which slot each thread may be inside of,
//! written by plain stores and read by the control side alone.
//!
//! Two pairs of a store and a later load must not pass each other; each side stores what the other loads:
//!
//! | | a dispatch stores, then loads | the control side stores, then loads |
//! |---|---|---|
//! | event rule 6 | its hazard pointer, an entry of a listener list | the entry, all hazard pointers |
//! | event rule 7 | its hazard pointer, `wanted` | `wanted`, all hazard pointers |
//!
//! A dispatch is on every event's path, the control side hardly ever runs. So a dispatch has [`LightFence`], a compiler
//! fence where the kernel has `membarrier(2)`, and the control side pays with [`HazardDomain::heavy_fence`].
//!
//! A thread has one [`HazardRecord`] for all registries. Records belong to the process, are never freed, and are given
//! to the next thread with the same id. The record of the thread that came first, in most programs the only one, is at
//! an address that the linker knows, and two loads and a comparison say whether it is the caller's
//! ([`of_first_thread`]). Another thread's is, if no other came before it, where the hash of its id points in a table
//! ([`of_hashed_thread`]). Thread-local storage, which is a call in a shared library, is for threads that find that
//! taken.

use super::hazard_record::{HazardRecord, const_unless_loom};
#[cfg(not(perusal_loom))]
use crate::sync::membarrier;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicUsize, CachePadded, Ordering, compiler_fence, fence, thread_id,
};

/// Records of threads that came later, found by the hash of their id; a power of two.
const HASHED: usize = if cfg!(perusal_loom) { 1 } else { 64 };

/// Which of the hashed records thread `me` has.
#[inline(always)]
fn hash(me: usize) -> usize {
    // Thread ids are addresses at the ends of stacks, which lie a stack and a guard apart. With this factor sixteen
    // threads in a row have different hashes, whatever the usual size of both.
    let mixed = (me as u64).wrapping_mul(0xcee4_6235_03e2_7281);
    (((mixed >> 32) * HASHED as u64) >> 32) as usize
}

/// The fence on a dispatch's side: between a store to its hazard pointer and a load that [`HazardDomain::heavy_fence`]
/// orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct LightFence {
    /// Whether it must do without the control side's help.
    pub(super) alone: bool,
}

impl LightFence {
    #[inline(always)]
    pub(super) fn issue(self) {
        if self.alone {
            fence(Ordering::SeqCst);
        } else {
            // The processor fence is the control side's membarrier, which makes every running thread of the process
            // execute one between two of its instructions: so only the compiler must keep the order.
            compiler_fence(Ordering::SeqCst);
            self.interrupt();
        }
    }

    /// Nothing but in a model, where it is a place at which the control side's membarrier may interrupt the thread.
    ///
    /// loom cannot run a fence on a thread that has stopped somewhere. So the thread runs it here, before it goes on
    /// with what the fence orders, if there was a barrier since its last one. It learns that from a word that loom does
    /// not know, and which therefore orders nothing. The other half of what the interrupt does is in
    /// [`HazardDomain::read`].
    #[inline(always)]
    pub(super) fn interrupt(self) {
        #[cfg(perusal_loom)]
        if !self.alone {
            let barriers = domain().barriers.load(Ordering::Relaxed);
            if SEEN.with(|seen| seen.replace(barriers) != barriers) {
                fence(Ordering::SeqCst);
            }
        }
    }
}

#[cfg(perusal_loom)]
crate::sync::thread_local! {
    /// Barriers that the thread has executed a fence for.
    static SEEN: core::cell::Cell<usize> = core::cell::Cell::new(0);
}

/// The hazard records of all threads that ever asked for one, and how the two sides fence.
#[derive(Debug)]
pub(super) struct HazardDomain {
    /// Whether the control side fences for all: set before the first handle is active, and never cleared.
    asymmetric: AtomicBool,
    /// How many registries have requested that dispatches that end settle what they wait for.
    wanted: AtomicU32,
    /// How often the control side has called membarrier.
    #[cfg(perusal_loom)]
    barriers: crate::sync::UnmodelledUsize,
    /// The id of the first record's owner, once the thread knows it and the control side fences for all.
    first_owner: AtomicUsize,
    first: CachePadded<HazardRecord>,
    /// Each belongs to the first thread that came of those with this [`hash`].
    hashed: [CachePadded<HazardRecord>; HASHED],
}

/// Whether the models have the asymmetric fence. (With PERUSAL_MODEL_FENCES at compile time both sides have a processor
/// fence, as where the kernel has no membarrier.)
const MODELS_MEMBARRIER: bool = cfg!(perusal_loom) && option_env!("PERUSAL_MODEL_FENCES").is_none();

#[cfg(not(perusal_loom))]
static DOMAIN: HazardDomain = HazardDomain::new();

#[cfg(perusal_loom)]
crate::sync::lazy_static! {
    static ref DOMAIN: HazardDomain = HazardDomain::new();
}

/// The process's hazard domain.
#[inline(always)]
pub(super) fn domain() -> &'static HazardDomain {
    &DOMAIN
}

#[cfg(not(perusal_loom))]
crate::sync::thread_local! {
    /// The thread's record, once it has been looked up.
    static MINE: core::cell::Cell<*const HazardRecord> = const { core::cell::Cell::new(core::ptr::null()) };
}

/// The first record, if it is the calling thread's and light fences need nothing of the processor.
#[inline(always)]
pub(super) fn of_first_thread() -> Option<&'static HazardRecord> {
    // Relaxed: only this thread can have written its id.
    (domain().first_owner.load(Ordering::Relaxed) == thread_id()).then(|| &*domain().first)
}

/// As [`of_first_thread`], for threads that came later and found the record of their hash free.
#[inline(always)]
pub(super) fn of_hashed_thread() -> Option<&'static HazardRecord> {
    let me = thread_id();
    let hazard = &*domain().hashed[hash(me)];
    // Relaxed: as in `of_first_thread`.
    (hazard.known_owner.load(Ordering::Relaxed) == me).then_some(hazard)
}

/// The calling thread's record, which it alone writes.
#[inline(always)]
pub(crate) fn of_this_thread() -> &'static HazardRecord {
    of_first_thread().unwrap_or_else(of_later_thread)
}

/// As [`of_this_thread`], for threads that came later.
#[inline(never)]
pub(super) fn of_later_thread() -> &'static HazardRecord {
    of_hashed_thread().unwrap_or_else(look_up)
}

#[cfg(not(perusal_loom))]
#[cold]
#[inline(never)]
fn look_up() -> &'static HazardRecord {
    let found = MINE.get();
    // SAFETY: null, or a record of the process's domain, which is a static and frees none.
    let hazard = unsafe { found.as_ref() }.unwrap_or_else(|| domain().of(thread_id()));
    MINE.set(hazard);
    domain().note(hazard);
    hazard
}

#[cfg(perusal_loom)]
fn look_up() -> &'static HazardRecord {
    let hazard = domain().of(thread_id());
    domain().note(hazard);
    hazard
}

impl HazardDomain {
    const_unless_loom! {
        fn new() -> HazardDomain {
            HazardDomain {
                asymmetric: AtomicBool::new(MODELS_MEMBARRIER),
                wanted: AtomicU32::new(0),
                #[cfg(perusal_loom)]
                barriers: crate::sync::UnmodelledUsize::new(0),
                first_owner: AtomicUsize::new(0),
                first: CachePadded::new(HazardRecord::new(0)),
                hashed: free_records(),
            }
        }
    }

    /// Lets dispatches do without a processor fence where the kernel allows that.
    /// Called before a handle becomes active.
    #[cfg(not(perusal_loom))]
    pub(super) fn prepare(&self) {
        // Relaxed: a thread that has not seen it yet fences, which is right too.
        if !self.asymmetric.load(Ordering::Relaxed) && membarrier::join_private() {
            self.asymmetric.store(true, Ordering::Relaxed);
        }
    }

    /// A model has them from the beginning, or never.
    #[cfg(perusal_loom)]
    pub(super) fn prepare(&self) {}

    /// Lets the calling thread, whose record this is, find it by one comparison as soon as it need not fence itself.
    fn note(&self, hazard: &HazardRecord) {
        if self.light_fence().alone {
            return;
        }
        // Relaxed, both: compared with the ids of other threads, which are different.
        hazard.known_owner.store(thread_id(), Ordering::Relaxed);
        if core::ptr::eq(hazard, &*self.first) {
            self.first_owner.store(thread_id(), Ordering::Relaxed);
        }
    }

    /// The fence of one dispatch.
    #[inline(always)]
    pub(super) fn light_fence(&self) -> LightFence {
        // Relaxed: a thread that sees it late fences, as in `prepare`.
        LightFence { alone: !self.asymmetric.load(Ordering::Relaxed) }
    }

    /// Orders the control side's stores before its look at the hazard pointers.
    pub(super) fn heavy_fence(&self) {
        fence(Ordering::SeqCst);
        // Relaxed: set before any handle was active, on this thread or on one that had the control lock before.
        if self.asymmetric.load(Ordering::Relaxed) {
            #[cfg(not(perusal_loom))]
            membarrier::issue_private();
            #[cfg(perusal_loom)]
            self.barriers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The hazard pointer of a thread, as the control side reads it after its fence.
    fn read(&self, hazard: &HazardRecord) -> usize {
        // In a model: what the thread stored before membarrier interrupted it is there, and an exchange sees what is
        // newest. It fails, for loom would not order what it stores before the thread's next store.
        #[cfg(perusal_loom)]
        if self.asymmetric.load(Ordering::Relaxed) {
            let never = usize::MAX;
            let found = hazard.slot.compare_exchange(never, never, Ordering::Acquire, Ordering::Acquire);
            return found.unwrap_or_else(|found| found);
        }
        // Acquire: edge 4, pairs with Release in `HazardRecord::set`: the callback is over.
        hazard.slot.load(Ordering::Acquire)
    }

    /// Whether a dispatch that ends is to settle what a registry waits for.
    #[inline(always)]
    pub(super) fn wanted(&self) -> bool {
        // Relaxed: ordered by the fences (event rule 7).
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Counts one registry more, or less, that requests this.
    pub(super) fn want(&self, more: bool) {
        // Relaxed: as in `wanted`.
        if more {
            self.wanted.fetch_add(1, Ordering::Relaxed);
        } else {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The record of thread `me`, which is not 0.
    ///
    /// Thread ids are addresses, so the record of a thread that has ended goes to the next thread with that id: there
    /// are as many records as threads at a time. Those for which there is no other place are allocated.
    pub(super) fn of(&self, me: usize) -> &HazardRecord {
        // The first of these that is free: a record that was taken stays taken, so a second look finds the same one.
        let here = [&self.first, &self.hashed[hash(me)]];
        if let Some(hazard) = here.into_iter().find(|hazard| self.is_of(hazard, me)) {
            return hazard;
        }
        let mut hazard = &self.first;
        loop {
            hazard = self.next(hazard).unwrap_or_else(|| self.append(hazard, me));
            if self.is_of(hazard, me) {
                return hazard;
            }
        }
    }

    /// Whether the record is that of thread `me`, or becomes it now.
    fn is_of(&self, hazard: &HazardRecord, me: usize) -> bool {
        // Relaxed: only thread `me` writes that id; the exchange in `claim` decides who gets a free record.
        let owner = hazard.owner.load(Ordering::Relaxed);
        owner == me || owner == 0 && self.claim(hazard, me)
    }

    fn claim(&self, hazard: &HazardRecord, me: usize) -> bool {
        // Relaxed: the hazard pointer is 0, and stays so until its owner's first `set`.
        hazard.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn next(&self, hazard: &HazardRecord) -> Option<&CachePadded<HazardRecord>> {
        // In a model, as in `read`: an exchange that fails.
        #[cfg(perusal_loom)]
        if self.asymmetric.load(Ordering::Relaxed) {
            let never = core::ptr::dangling_mut();
            let next = hazard.next.compare_exchange(never, never, Ordering::Acquire, Ordering::Acquire);
            // SAFETY: null, or a record that `append` leaked; `drop` alone frees it, and borrows self mutably.
            return unsafe { next.unwrap_or_else(|there| there).as_ref() };
        }
        // Acquire: pairs with Release in `append`, publishes the record.
        let next = hazard.next.load(Ordering::Acquire);
        // SAFETY: null, or a record that `append` leaked; `drop` alone frees it, and borrows self mutably.
        unsafe { next.as_ref() }
    }

    /// Appends a new record of thread `me` behind `last`; returns the one that is there, if another thread was faster.
    #[cold]
    fn append(&self, last: &HazardRecord, me: usize) -> &CachePadded<HazardRecord> {
        let new = Box::into_raw(Box::new(CachePadded::new(HazardRecord::new(me))));
        // Release: pairs with Acquire in `next`, and with the Acquire of another thread that fails here;
        // publishes the record.
        match last.next.compare_exchange(core::ptr::null_mut(), new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: leaked above; `drop` alone frees it, and borrows self mutably.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: leaked above, and the exchange published it to nobody.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another `append` published it; `drop` alone frees it, and borrows self mutably.
                unsafe { &*there }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &HazardRecord> {
        let listed = core::iter::successors(Some(&self.first), |hazard| self.next(hazard));
        listed.chain(&self.hashed).map(|hazard| &**hazard)
    }

    /// Whether some thread may be inside `slot`. A no is final if the slot left all lists and [`Self::heavy_fence`] was
    /// called since.
    pub(super) fn busy(&self, slot: usize) -> bool {
        self.all().any(|hazard| self.read(hazard) == slot)
    }

    /// Callbacks that were run on all threads.
    pub(super) fn delivered(&self) -> u64 {
        // Relaxed: a sample.
        self.all().map(|hazard| hazard.delivered.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Whether no thread is inside any slot that `ours` knows; final as for [`busy`](Self::busy).
    pub(super) fn idle(&self, ours: impl Fn(usize) -> bool) -> bool {
        !self.all().any(|hazard| ours(self.read(hazard)))
    }
}

#[cfg(not(perusal_loom))]
const fn free_records() -> [CachePadded<HazardRecord>; HASHED] {
    [const { CachePadded::new(HazardRecord::new(0)) }; HASHED]
}

#[cfg(perusal_loom)]
fn free_records() -> [CachePadded<HazardRecord>; HASHED] {
    core::array::from_fn(|_| CachePadded::new(HazardRecord::new(0)))
}

impl Drop for HazardDomain {
    fn drop(&mut self) {
        // Relaxed: borrowed mutably, so whatever others did happened before.
        let mut next = self.first.next.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: `append` leaked it, and self is borrowed mutably, so nobody else looks.
            let hazard = unsafe { Box::from_raw(next) };
            next = hazard.next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_record_and_shares_it_with_nobody() {
        let pins = HazardDomain::new();
        let threads: Vec<usize> = (1..=4 * HASHED).map(|n| n << 12).collect();
        let found = || threads.iter().map(|me| core::ptr::from_ref(pins.of(*me))).collect::<Vec<_>>();
        let first = found();
        assert_eq!(first.iter().collect::<std::collections::HashSet<_>>().len(), threads.len());
        assert_eq!(found(), first);
        assert!(core::ptr::eq(first[0], &*pins.first) && pins.all().count() >= threads.len());
    }

    #[test]
    fn sixteen_threads_in_a_row_have_different_hashes() {
        for (stack, guard) in
            (14..=28).flat_map(|bits| [0, 1, 16].map(|pages| (1_usize << bits, pages << 12)))
        {
            let threads = (0..16).map(|n| 0x7f12_3456_76c0 - n * (stack + guard));
            let places: std::collections::HashSet<_> = threads.map(hash).collect();
            assert_eq!(places.len(), 16, "stacks of {stack:#x} bytes and {guard:#x}");
        }
    }

    #[test]
    fn a_slot_is_busy_while_any_pin_names_it() {
        let pins = HazardDomain::new();
        pins.of(1).set(0x1000);
        pins.of(2).set(0x2000);
        assert!(pins.busy(0x1000) && pins.busy(0x2000) && !pins.busy(0x3000) && !pins.idle(|_| true));
        pins.of(1).set(0x2000);
        assert!(!pins.busy(0x1000));
        pins.of(1).clear();
        pins.of(2).clear();
        assert!(pins.idle(|slot| slot != 0) && !pins.busy(0x2000));
    }

    #[test]
    fn threads_that_come_at_once_get_different_records() {
        let pins = HazardDomain::new();
        let found: Vec<usize> = std::thread::scope(|s| {
            let threads: Vec<_> = (1..=8)
                .map(|me| {
                    let pins = &pins;
                    s.spawn(move || core::ptr::from_ref(pins.of(me)) as usize)
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for (at, hazard) in found.iter().enumerate() {
            assert!(!found[at + 1..].contains(hazard));
        }
    }
}
