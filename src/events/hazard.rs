//! HazardDomain: which slot each thread may be inside of, written by plain stores and read by the control side alone.
//!
//! Two pairs of a store and a later load must not pass each other; each side stores what the other loads:
//!
//! | | dispatcher stores, then loads | control side stores, then loads |
//! |---|---|---|
//! | event rule 6 | its hazard, a row's place | the place, all hazard pointers |
//! | event rule 7 | its hazard, `wanted` | `wanted`, all hazard pointers |
//!
//! The dispatcher is on every event's way, the control side hardly ever is: so the dispatcher has [`LightFence`], a compiler
//! fence where the kernel has `membarrier(2)`, and the control side pays with [`HazardDomain::heavy_fence`].
//!
//! A thread has one hazard for all registries. They are the process's, never freed, and given on to the next thread of the same
//! name: so the hazard of the thread that came first, in most programs the only one, is at an address known to the linker, and to
//! know that it is ours takes two loads and a comparison ([`of_first_thread`]). Another thread's is, if no other came before it, at the place
//! that its name gives it in a table ([`of_hashed_thread`]): thread-local storage, which is a call in a shared library, is for those that
//! find their place taken.

use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, compiler_fence, fence,
    membarrier, thread_id,
};
use core::ffi::c_void;

/// A function that is `const` where atomics may be made so: loom's may not.
macro_rules! const_unless_loom {
    (fn $($rest:tt)*) => {
        #[cfg(not(perusal_loom))]
        const fn $($rest)*
        #[cfg(perusal_loom)]
        fn $($rest)*
    };
}

/// What a hazard holds while foreign code runs in a callback that is no pass; no slot lies there.
const NO_SLOT: usize = 1;

/// HazardDomain of threads that came later, at places that follow from their names; a power of two.
const NEAR: usize = if cfg!(perusal_loom) { 1 } else { 64 };

/// The place of thread `me` among so many.
#[inline(always)]
fn place(me: usize) -> usize {
    // Threads are named by addresses at the ends of stacks, which lie a stack and a guard apart. With this factor sixteen threads in a row have
    // places of their own, whatever the usual size of both.
    let mixed = (me as u64).wrapping_mul(0xcee4_6235_03e2_7281);
    (((mixed >> 32) * NEAR as u64) >> 32) as usize
}

/// What one thread tells the control side, and what it keeps for itself of the scopes that it is inside of.
#[derive(Debug)]
pub(crate) struct HazardRecord {
    /// Names the thread; 0: none yet.
    owner: AtomicUsize,
    /// The same, once it has one and the control side fences for all.
    near: AtomicUsize,
    /// Address of the slot whose callback the owner runs, or is about to; 0: it is inside of no callback.
    slot: AtomicUsize,
    /// Callbacks that the owner has run.
    delivered: AtomicU64,
    /// What the listener in `slot` is subject a function, if it is one that leaves this here. Here and below: the owner's alone.
    subject: AtomicPtr<c_void>,
    /// What the function has memo for once, and `delivered` then: it is for that call alone.
    memo: AtomicU64,
    memo_in: AtomicU64,
    /// What is delivered at a safe place, where other callbacks may run meanwhile.
    instance: AtomicPtr<c_void>,
    /// Callbacks that are no pass, inside of each other or of a pass.
    scopes: AtomicU32,
    /// The depth of the outermost callback that was refused the PERUSE lock, 0 if none was; and `delivered` then, for a refusal ends with
    /// the callback.
    refused_at: AtomicU32,
    refused_in: AtomicU64,
    next: AtomicPtr<CachePadded<HazardRecord>>,
}

// Relaxed, in all that is the owner's alone: what one thread writes for itself is on no edge.
impl HazardRecord {
    const_unless_loom! {
        fn new(owner: usize) -> HazardRecord {
            HazardRecord {
                owner: AtomicUsize::new(owner),
                near: AtomicUsize::new(0),
                slot: AtomicUsize::new(0),
                delivered: AtomicU64::new(0),
                subject: AtomicPtr::new(core::ptr::null_mut()),
                memo: AtomicU64::new(0),
                memo_in: AtomicU64::new(u64::MAX),
                instance: AtomicPtr::new(core::ptr::null_mut()),
                scopes: AtomicU32::new(0),
                refused_at: AtomicU32::new(0),
                refused_in: AtomicU64::new(0),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// From now on the thread may be inside of `slot`, and is inside of no other. The caller then fences ([`LightFence`]).
    #[inline(always)]
    pub(super) fn set(&self, slot: usize) {
        // Release: edge 4, pairs with Acquire in `HazardDomain::busy`: the callback that was protected before is over.
        self.slot.store(slot, Ordering::Release);
    }

    /// From now on the thread is inside of no slot. The caller then fences ([`LightFence`]).
    #[inline(always)]
    pub(super) fn clear(&self) {
        self.set(0);
    }

    /// Address of the slot that the thread is inside of; `None` outside of passes.
    #[inline(always)]
    pub(super) fn slot(&self) -> Option<usize> {
        let slot = self.slot.load(Ordering::Relaxed);
        (slot > NO_SLOT).then_some(slot)
    }

    /// Whether the thread is inside a callback.
    #[inline(always)]
    pub(super) fn is_inside(&self) -> bool {
        self.slot.load(Ordering::Relaxed) != 0
    }

    /// A callback is over.
    #[inline(always)]
    pub(super) fn count(&self) {
        // No locked instruction: a sample for others, with one writer.
        self.delivered.store(self.delivered.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many scopes the thread is inside of.
    pub(super) fn depth(&self) -> u32 {
        self.scopes.load(Ordering::Relaxed) + u32::from(self.slot().is_some())
    }

    /// A callback that is no pass begins.
    pub(super) fn enter(&self) {
        self.scopes.store(self.scopes.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if !self.is_inside() {
            self.set(NO_SLOT);
        }
    }

    /// A callback that is no pass ends.
    pub(super) fn leave(&self) {
        if self.refused_at.load(Ordering::Relaxed) == self.depth() {
            self.refused_at.store(0, Ordering::Relaxed);
        }
        let left = self.scopes.load(Ordering::Relaxed) - 1;
        self.scopes.store(left, Ordering::Relaxed);
        if left == 0 && self.slot.load(Ordering::Relaxed) == NO_SLOT {
            self.clear();
        }
    }

    /// Whether the callback that runs here, or one around it, was refused the PERUSE lock.
    pub(super) fn is_refused(&self) -> bool {
        self.refused_at.load(Ordering::Relaxed) != 0
            && self.refused_in.load(Ordering::Relaxed) == self.delivered.load(Ordering::Relaxed)
    }

    /// Marks the present callback as refused; outside of scopes there is nothing to mark.
    pub(super) fn refuse(&self) {
        if !self.is_refused() {
            self.refused_at.store(self.depth(), Ordering::Relaxed);
            self.refused_in.store(self.delivered.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// From now on a function is delivered of `what`, until the next slot is protected, or none.
    #[inline(always)]
    pub(crate) fn set_subject(&self, what: *const c_void) {
        self.subject.store(what.cast_mut(), Ordering::Relaxed);
    }

    /// What the last [`Self::set_subject`] has left, which the slot that is protected must have done.
    #[inline(always)]
    pub(super) fn subject(&self) -> *const c_void {
        self.subject.load(Ordering::Relaxed)
    }

    /// What [`Self::set_memo`] has left during the present call of a function; 0 if nothing.
    pub(crate) fn memo(&self) -> u64 {
        let now = self.memo_in.load(Ordering::Relaxed) == self.delivered.load(Ordering::Relaxed);
        if now { self.memo.load(Ordering::Relaxed) } else { 0 }
    }

    /// Leaves something to be found for the rest of the present call of a function.
    pub(crate) fn set_memo(&self, memo: u64) {
        self.memo.store(memo, Ordering::Relaxed);
        self.memo_in.store(self.delivered.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What a listener has left here last.
    #[inline(always)]
    pub(crate) fn instance(&self) -> *mut c_void {
        self.instance.load(Ordering::Relaxed)
    }

    /// Leaves something here for the thread's other functions; who leaves something puts back what was there.
    #[inline(always)]
    pub(crate) fn set_instance(&self, instance: *mut c_void) {
        self.instance.store(instance, Ordering::Relaxed);
    }
}

/// The fence on a dispatcher's side: between a store to its hazard and a load that [`HazardDomain::heavy_fence`] orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct LightFence {
    /// Whether it must do without the control side's help.
    pub(super) alone: bool,
}

impl LightFence {
    #[inline(always)]
    pub(super) fn issue(self) {
        if self.alone || cfg!(perusal_loom) {
            fence(Ordering::SeqCst);
        } else {
            // The processor fence is the control side's membarrier, which makes every running thread of the process execute
            // one between two of its instructions: so only the compiler must keep the order.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// The hazard pointers of all threads that ever memo for one, and how the two sides fence.
#[derive(Debug)]
pub(super) struct HazardDomain {
    /// Whether the control side fences for all: set before the first handle is active, and never cleared.
    asymmetric: AtomicBool,
    /// How many registries wait for a pass to end.
    wanted: AtomicU32,
    /// The name of the first hazard's owner, once it has one and the control side fences for all.
    first_owner: AtomicUsize,
    first: CachePadded<HazardRecord>,
    /// Each of the thread that came first of those that have this [`place`].
    near: [CachePadded<HazardRecord>; NEAR],
}

#[cfg(not(perusal_loom))]
static PINS: HazardDomain = HazardDomain::new();

#[cfg(perusal_loom)]
crate::sync::lazy_static! {
    static ref PINS: HazardDomain = HazardDomain::new();
}

/// The process's hazard pointers.
#[inline(always)]
pub(super) fn domain() -> &'static HazardDomain {
    &PINS
}

#[cfg(not(perusal_loom))]
crate::sync::thread_local! {
    /// The thread's hazard, once it has been looked for.
    static MINE: core::cell::Cell<*const HazardRecord> = const { core::cell::Cell::new(core::ptr::null()) };
}

/// The first hazard, if it is the calling thread's, and light fences need nothing of the processor.
#[inline(always)]
pub(super) fn of_first_thread() -> Option<&'static HazardRecord> {
    // Relaxed: only we can have written our name.
    (domain().first_owner.load(Ordering::Relaxed) == thread_id()).then(|| &*domain().first)
}

/// As [`of_first_thread`], for threads that came later and found their place free.
#[inline(always)]
pub(super) fn of_hashed_thread() -> Option<&'static HazardRecord> {
    let me = thread_id();
    let hazard = &*domain().near[place(me)];
    // Relaxed: as in `of_first_thread`.
    (hazard.near.load(Ordering::Relaxed) == me).then_some(hazard)
}

/// The calling thread's hazard, which it alone writes.
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
    // SAFETY: null, or a hazard of this thread's: none is ever freed.
    let hazard = unsafe { found.as_ref() }.unwrap_or_else(|| domain().of(thread_id()));
    MINE.set(hazard);
    domain().instance(hazard);
    hazard
}

#[cfg(perusal_loom)]
fn look_up() -> &'static HazardRecord {
    let hazard = domain().of(thread_id());
    domain().instance(hazard);
    hazard
}

impl HazardDomain {
    const_unless_loom! {
        fn new() -> HazardDomain {
            HazardDomain {
                asymmetric: AtomicBool::new(false),
                wanted: AtomicU32::new(0),
                first_owner: AtomicUsize::new(0),
                first: CachePadded::new(HazardRecord::new(0)),
                near: nobodys(),
            }
        }
    }

    /// Lets dispatchers do without a processor fence where the kernel allows that. OwnedCallback before a handle becomes active.
    #[cfg(not(perusal_loom))]
    pub(super) fn prepare(&self) {
        // Relaxed: who has not seen it yet fences, which is right too.
        if !self.asymmetric.load(Ordering::Relaxed) && membarrier::join_private() {
            self.asymmetric.store(true, Ordering::Relaxed);
        }
    }

    /// loom has no asymmetric fences: both sides fence, always.
    #[cfg(perusal_loom)]
    pub(super) fn prepare(&self) {}

    /// The calling thread, whose hazard this is, may take the short way to it as soon as it need not fence itself. (In a model it does,
    /// but by the same steps.)
    fn instance(&self, hazard: &HazardRecord) {
        if self.light_fence().alone && !cfg!(perusal_loom) {
            return;
        }
        // Relaxed, both: read for what it is by the owner alone, which is us.
        hazard.near.store(thread_id(), Ordering::Relaxed);
        if core::ptr::eq(hazard, &*self.first) {
            self.first_owner.store(thread_id(), Ordering::Relaxed);
        }
    }

    /// The fence of a dispatcher, for one pass.
    #[inline(always)]
    pub(super) fn light_fence(&self) -> LightFence {
        // Relaxed: as in `prepare`.
        LightFence { alone: !self.asymmetric.load(Ordering::Relaxed) }
    }

    /// The control side: between its stores and the look at the hazard pointers.
    pub(super) fn heavy_fence(&self) {
        fence(Ordering::SeqCst);
        // Relaxed: set before any handle was active, on this thread or on one that had the control lock before.
        if self.asymmetric.load(Ordering::Relaxed) {
            membarrier::issue_private();
        }
    }

    /// Whether a pass that ends is to look after the control side.
    #[inline(always)]
    pub(super) fn wanted(&self) -> bool {
        // Relaxed: ordered by the fences (event rule 7).
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// One registry more, or less, asks passes that end to look after it.
    pub(super) fn want(&self, more: bool) {
        // Relaxed: as in `wanted`.
        if more {
            self.wanted.fetch_add(1, Ordering::Relaxed);
        } else {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The hazard of thread `me`, which is not 0.
    ///
    /// Threads are named by addresses, so a hazard whose thread has ended goes to the next one of that name: there are as many hazard pointers as
    /// threads at a time. Those for which there is no other place are allocated.
    pub(super) fn of(&self, me: usize) -> &HazardRecord {
        // Of those in this order the first that is free: what was once taken stays so, and whoever looks again finds the same.
        let here = [&self.first, &self.near[place(me)]];
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

    /// Whether the hazard is that of thread `me`, or becomes it now.
    fn is_of(&self, hazard: &HazardRecord, me: usize) -> bool {
        // Relaxed: only we write our name. That a free hazard becomes ours is the exchange's business.
        let owner = hazard.owner.load(Ordering::Relaxed);
        owner == me || owner == 0 && self.claim(hazard, me)
    }

    fn claim(&self, hazard: &HazardRecord, me: usize) -> bool {
        // Relaxed: the hazard was empty, and stays so until its owner's first `set`.
        hazard.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn next(&self, hazard: &HazardRecord) -> Option<&CachePadded<HazardRecord>> {
        // Acquire: pairs with AcqRel in `append`, publishes the hazard.
        let next = hazard.next.load(Ordering::Acquire);
        // SAFETY: a hazard that is there was leaked by `append` and is freed with all of them, which self borrows.
        unsafe { next.as_ref() }
    }

    /// Hangs a new hazard of thread `me` behind `last`; the one that hangs there, if another thread was faster.
    #[cold]
    fn append(&self, last: &HazardRecord, me: usize) -> &CachePadded<HazardRecord> {
        let new = Box::into_raw(Box::new(CachePadded::new(HazardRecord::new(me))));
        // AcqRel: pairs with Acquire in `next`; publishes ours, or shows theirs.
        match last.next.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made; freed with all of them, which self borrows.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: just made, and nobody has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: published by another `append`; freed with all of them, which self borrows.
                unsafe { &*there }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &HazardRecord> {
        let listed = core::iter::successors(Some(&self.first), |hazard| self.next(hazard));
        listed.chain(&self.near).map(|hazard| &**hazard)
    }

    /// Whether some thread may be inside of `slot`. A no is final for who has shut the slot and called [`Self::heavy_fence`] since.
    pub(super) fn busy(&self, slot: usize) -> bool {
        // Acquire: edge 4, pairs with Release in `HazardRecord::set`: the callback is over.
        self.all().any(|hazard| hazard.slot.load(Ordering::Acquire) == slot)
    }

    /// Callbacks that were run on all threads.
    pub(super) fn delivered(&self) -> u64 {
        // Relaxed: a sample.
        self.all().map(|hazard| hazard.delivered.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Whether no thread is inside of any slot that `ours` knows. As in `busy`.
    pub(super) fn idle(&self, ours: impl Fn(usize) -> bool) -> bool {
        // Acquire: as in `busy`.
        !self.all().any(|hazard| ours(hazard.slot.load(Ordering::Acquire)))
    }
}

#[cfg(not(perusal_loom))]
const fn nobodys() -> [CachePadded<HazardRecord>; NEAR] {
    [const { CachePadded::new(HazardRecord::new(0)) }; NEAR]
}

#[cfg(perusal_loom)]
fn nobodys() -> [CachePadded<HazardRecord>; NEAR] {
    core::array::from_fn(|_| CachePadded::new(HazardRecord::new(0)))
}

impl Drop for HazardDomain {
    fn drop(&mut self) {
        // Relaxed: borrowed mutably, so whatever others did happened before.
        let mut next = self.first.next.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: leaked by `append`, and nobody else can be looking (self is borrowed mutably).
            let hazard = unsafe { Box::from_raw(next) };
            next = hazard.next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_pin_and_shares_it_with_nobody() {
        let pins = HazardDomain::new();
        let threads: Vec<usize> = (1..=4 * NEAR).map(|n| n << 12).collect();
        let found = || threads.iter().map(|me| core::ptr::from_ref(pins.of(*me))).collect::<Vec<_>>();
        let first = found();
        assert_eq!(first.iter().collect::<std::collections::HashSet<_>>().len(), threads.len());
        assert_eq!(found(), first);
        assert!(core::ptr::eq(first[0], &*pins.first) && pins.all().count() >= threads.len());
    }

    #[test]
    fn sixteen_threads_in_a_row_have_places_of_their_own() {
        for (stack, guard) in
            (14..=28).flat_map(|bits| [0, 1, 16].map(|pages| (1_usize << bits, pages << 12)))
        {
            let threads = (0..16).map(|n| 0x7f12_3456_76c0 - n * (stack + guard));
            let places: std::collections::HashSet<_> = threads.map(place).collect();
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
    fn threads_that_come_at_once_get_different_pins() {
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
