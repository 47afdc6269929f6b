//! Pins: which slot each thread may be inside of, written by plain stores and read by the control side alone.
//!
//! Two pairs of a store and a later load must not pass each other; each side stores what the other loads:
//!
//! | | dispatcher stores, then loads | control side stores, then loads |
//! |---|---|---|
//! | event rule 6 | its pin, a row's place | the place, all pins |
//! | event rule 7 | its pin, `wanted` | `wanted`, all pins |
//!
//! The dispatcher is on every event's way, the control side hardly ever is: so the dispatcher has [`Light`], a compiler
//! fence where the kernel has `membarrier(2)`, and the control side pays with [`Pins::heavy`].
//!
//! A thread has one pin for all registries. They are the process's, never freed, and given on to the next thread of the same
//! name: so the pin of the thread that came first, in most programs the only one, is at an address known to the linker, and to
//! know that it is ours takes two loads and a comparison ([`first`]). Another thread's is, if no other came before it, at the place
//! that its name gives it in a table ([`near`]): thread-local storage, which is a call in a shared library, is for those that
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

/// What a pin holds while foreign code runs in an upcall that is no pass; no slot lies there.
const NO_SLOT: usize = 1;

/// Pins of threads that came later, at places that follow from their names; a power of two.
const NEAR: usize = if cfg!(perusal_loom) { 1 } else { 64 };

/// The place of thread `me` among so many.
#[inline(always)]
fn place(me: usize) -> usize {
    // Threads are named by addresses at the ends of stacks, which lie a stack and a guard apart. With this factor sixteen threads in a row have
    // places of their own, whatever the usual size of both.
    let mixed = (me as u64).wrapping_mul(0xcee4_6235_03e2_7281);
    (((mixed >> 32) * NEAR as u64) >> 32) as usize
}

/// What one thread tells the control side, and what it keeps for itself of the upcalls that it is inside of.
#[derive(Debug)]
pub(crate) struct Pin {
    /// Names the thread; 0: none yet.
    owner: AtomicUsize,
    /// The same, once it has one and the control side fences for all.
    near: AtomicUsize,
    /// Address of the slot whose callback the owner runs, or is about to; 0: it is inside of no upcall.
    slot: AtomicUsize,
    /// Callbacks that the owner has run.
    told: AtomicU64,
    /// What the listener in `slot` is telling a function, if it is one that leaves this here. Here and below: the owner's alone.
    telling: AtomicPtr<c_void>,
    /// What the function has asked for once, and `told` then: it is for that call alone.
    asked: AtomicU64,
    asked_in: AtomicU64,
    /// What is told at a safe place, where other callbacks may run meanwhile.
    note: AtomicPtr<c_void>,
    /// Upcalls that are no pass, inside of each other or of a pass.
    upcalls: AtomicU32,
    /// The depth of the outermost upcall that was refused the PERUSE lock, 0 if none was; and `told` then, for a refusal ends with
    /// the callback.
    refused_at: AtomicU32,
    refused_in: AtomicU64,
    next: AtomicPtr<CachePadded<Pin>>,
}

// Relaxed, in all that is the owner's alone: what one thread writes for itself is on no edge.
impl Pin {
    const_unless_loom! {
        fn new(owner: usize) -> Pin {
            Pin {
                owner: AtomicUsize::new(owner),
                near: AtomicUsize::new(0),
                slot: AtomicUsize::new(0),
                told: AtomicU64::new(0),
                telling: AtomicPtr::new(core::ptr::null_mut()),
                asked: AtomicU64::new(0),
                asked_in: AtomicU64::new(u64::MAX),
                note: AtomicPtr::new(core::ptr::null_mut()),
                upcalls: AtomicU32::new(0),
                refused_at: AtomicU32::new(0),
                refused_in: AtomicU64::new(0),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// From now on the thread may be inside of `slot`, and is inside of no other. The caller then fences ([`Light`]).
    #[inline(always)]
    pub(super) fn set(&self, slot: usize) {
        // Release: edge 4, pairs with Acquire in `Pins::busy`: the callback that was pinned before is over.
        self.slot.store(slot, Ordering::Release);
    }

    /// From now on the thread is inside of no slot. The caller then fences ([`Light`]).
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

    /// Whether the thread is inside an upcall.
    #[inline(always)]
    pub(super) fn is_inside(&self) -> bool {
        self.slot.load(Ordering::Relaxed) != 0
    }

    /// A callback is over.
    #[inline(always)]
    pub(super) fn count(&self) {
        // No locked instruction: a sample for others, with one writer.
        self.told.store(self.told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many upcalls the thread is inside of.
    pub(super) fn depth(&self) -> u32 {
        self.upcalls.load(Ordering::Relaxed) + u32::from(self.slot().is_some())
    }

    /// An upcall that is no pass begins.
    pub(super) fn enter(&self) {
        self.upcalls.store(self.upcalls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if !self.is_inside() {
            self.set(NO_SLOT);
        }
    }

    /// An upcall that is no pass ends.
    pub(super) fn leave(&self) {
        if self.refused_at.load(Ordering::Relaxed) == self.depth() {
            self.refused_at.store(0, Ordering::Relaxed);
        }
        let left = self.upcalls.load(Ordering::Relaxed) - 1;
        self.upcalls.store(left, Ordering::Relaxed);
        if left == 0 && self.slot.load(Ordering::Relaxed) == NO_SLOT {
            self.clear();
        }
    }

    /// Whether the upcall that runs here, or one around it, was refused the PERUSE lock.
    pub(super) fn is_refused(&self) -> bool {
        self.refused_at.load(Ordering::Relaxed) != 0
            && self.refused_in.load(Ordering::Relaxed) == self.told.load(Ordering::Relaxed)
    }

    /// Marks the present upcall as refused; outside of upcalls there is nothing to mark.
    pub(super) fn refuse(&self) {
        if !self.is_refused() {
            self.refused_at.store(self.depth(), Ordering::Relaxed);
            self.refused_in.store(self.told.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// From now on a function is told of `what`, until the next slot is pinned, or none.
    #[inline(always)]
    pub(crate) fn set_telling(&self, what: *const c_void) {
        self.telling.store(what.cast_mut(), Ordering::Relaxed);
    }

    /// What the last [`Self::set_telling`] has left, which the slot that is pinned must have done.
    #[inline(always)]
    pub(super) fn telling(&self) -> *const c_void {
        self.telling.load(Ordering::Relaxed)
    }

    /// What [`Self::set_asked`] has left during the present call of a function; 0 if nothing.
    pub(crate) fn asked(&self) -> u64 {
        let now = self.asked_in.load(Ordering::Relaxed) == self.told.load(Ordering::Relaxed);
        if now { self.asked.load(Ordering::Relaxed) } else { 0 }
    }

    /// Leaves something to be found for the rest of the present call of a function.
    pub(crate) fn set_asked(&self, asked: u64) {
        self.asked.store(asked, Ordering::Relaxed);
        self.asked_in.store(self.told.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What a listener has left here last.
    #[inline(always)]
    pub(crate) fn note(&self) -> *mut c_void {
        self.note.load(Ordering::Relaxed)
    }

    /// Leaves something here for the thread's other functions; who leaves something puts back what was there.
    #[inline(always)]
    pub(crate) fn set_note(&self, note: *mut c_void) {
        self.note.store(note, Ordering::Relaxed);
    }
}

/// The fence on a dispatcher's side: between a store to its pin and a load that [`Pins::heavy`] orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Light {
    /// Whether it must do without the control side's help.
    pub(super) alone: bool,
}

impl Light {
    #[inline(always)]
    pub(super) fn light(self) {
        if self.alone || cfg!(perusal_loom) {
            fence(Ordering::SeqCst);
        } else {
            // The processor fence is the control side's membarrier, which makes every running thread of the process execute
            // one between two of its instructions: so only the compiler must keep the order.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// The pins of all threads that ever asked for one, and how the two sides fence.
#[derive(Debug)]
pub(super) struct Pins {
    /// Whether the control side fences for all: set before the first handle is active, and never cleared.
    asymmetric: AtomicBool,
    /// How many registries wait for a pass to end.
    wanted: AtomicU32,
    /// The name of the first pin's owner, once it has one and the control side fences for all.
    first_owner: AtomicUsize,
    first: CachePadded<Pin>,
    /// Each of the thread that came first of those that have this [`place`].
    near: [CachePadded<Pin>; NEAR],
}

#[cfg(not(perusal_loom))]
static PINS: Pins = Pins::new();

#[cfg(perusal_loom)]
crate::sync::lazy_static! {
    static ref PINS: Pins = Pins::new();
}

/// The process's pins.
#[inline(always)]
pub(super) fn pins() -> &'static Pins {
    &PINS
}

#[cfg(not(perusal_loom))]
crate::sync::thread_local! {
    /// The thread's pin, once it has been looked for.
    static MINE: core::cell::Cell<*const Pin> = const { core::cell::Cell::new(core::ptr::null()) };
}

/// The first pin, if it is the calling thread's, and light fences need nothing of the processor.
#[inline(always)]
pub(super) fn first() -> Option<&'static Pin> {
    // Relaxed: only we can have written our name.
    (pins().first_owner.load(Ordering::Relaxed) == thread_id()).then(|| &*pins().first)
}

/// As [`first`], for threads that came later and found their place free.
#[inline(always)]
pub(super) fn near() -> Option<&'static Pin> {
    let me = thread_id();
    let pin = &*pins().near[place(me)];
    // Relaxed: as in `first`.
    (pin.near.load(Ordering::Relaxed) == me).then_some(pin)
}

/// The calling thread's pin, which it alone writes.
#[inline(always)]
pub(crate) fn mine() -> &'static Pin {
    first().unwrap_or_else(beside)
}

/// As [`mine`], for threads that came later.
#[inline(never)]
pub(super) fn beside() -> &'static Pin {
    near().unwrap_or_else(find)
}

#[cfg(not(perusal_loom))]
#[cold]
#[inline(never)]
fn find() -> &'static Pin {
    let found = MINE.get();
    // SAFETY: null, or a pin of this thread's: none is ever freed.
    let pin = unsafe { found.as_ref() }.unwrap_or_else(|| pins().of(thread_id()));
    MINE.set(pin);
    pins().note(pin);
    pin
}

#[cfg(perusal_loom)]
fn find() -> &'static Pin {
    let pin = pins().of(thread_id());
    pins().note(pin);
    pin
}

impl Pins {
    const_unless_loom! {
        fn new() -> Pins {
            Pins {
                asymmetric: AtomicBool::new(false),
                wanted: AtomicU32::new(0),
                first_owner: AtomicUsize::new(0),
                first: CachePadded::new(Pin::new(0)),
                near: nobodys(),
            }
        }
    }

    /// Lets dispatchers do without a processor fence where the kernel allows that. Called before a handle becomes active.
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

    /// The calling thread, whose pin this is, may take the short way to it as soon as it need not fence itself. (In a model it does,
    /// but by the same steps.)
    fn note(&self, pin: &Pin) {
        if self.light().alone && !cfg!(perusal_loom) {
            return;
        }
        // Relaxed, both: read for what it is by the owner alone, which is us.
        pin.near.store(thread_id(), Ordering::Relaxed);
        if core::ptr::eq(pin, &*self.first) {
            self.first_owner.store(thread_id(), Ordering::Relaxed);
        }
    }

    /// The fence of a dispatcher, for one pass.
    #[inline(always)]
    pub(super) fn light(&self) -> Light {
        // Relaxed: as in `prepare`.
        Light { alone: !self.asymmetric.load(Ordering::Relaxed) }
    }

    /// The control side: between its stores and the look at the pins.
    pub(super) fn heavy(&self) {
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

    /// The pin of thread `me`, which is not 0.
    ///
    /// Threads are named by addresses, so a pin whose thread has ended goes to the next one of that name: there are as many pins as
    /// threads at a time. Those for which there is no other place are allocated.
    pub(super) fn of(&self, me: usize) -> &Pin {
        // Of those in this order the first that is free: what was once taken stays so, and whoever looks again finds the same.
        let here = [&self.first, &self.near[place(me)]];
        if let Some(pin) = here.into_iter().find(|pin| self.is_of(pin, me)) {
            return pin;
        }
        let mut pin = &self.first;
        loop {
            pin = self.next(pin).unwrap_or_else(|| self.append(pin, me));
            if self.is_of(pin, me) {
                return pin;
            }
        }
    }

    /// Whether the pin is that of thread `me`, or becomes it now.
    fn is_of(&self, pin: &Pin, me: usize) -> bool {
        // Relaxed: only we write our name. That a free pin becomes ours is the exchange's business.
        let owner = pin.owner.load(Ordering::Relaxed);
        owner == me || owner == 0 && self.claim(pin, me)
    }

    fn claim(&self, pin: &Pin, me: usize) -> bool {
        // Relaxed: the pin was empty, and stays so until its owner's first `set`.
        pin.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn next(&self, pin: &Pin) -> Option<&CachePadded<Pin>> {
        // Acquire: pairs with AcqRel in `append`, publishes the pin.
        let next = pin.next.load(Ordering::Acquire);
        // SAFETY: a pin that is there was leaked by `append` and is freed with all of them, which self borrows.
        unsafe { next.as_ref() }
    }

    /// Hangs a new pin of thread `me` behind `last`; the one that hangs there, if another thread was faster.
    #[cold]
    fn append(&self, last: &Pin, me: usize) -> &CachePadded<Pin> {
        let new = Box::into_raw(Box::new(CachePadded::new(Pin::new(me))));
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

    fn all(&self) -> impl Iterator<Item = &Pin> {
        let listed = core::iter::successors(Some(&self.first), |pin| self.next(pin));
        listed.chain(&self.near).map(|pin| &**pin)
    }

    /// Whether some thread may be inside of `slot`. A no is final for who has shut the slot and called [`Self::heavy`] since.
    pub(super) fn busy(&self, slot: usize) -> bool {
        // Acquire: edge 4, pairs with Release in `Pin::set`: the callback is over.
        self.all().any(|pin| pin.slot.load(Ordering::Acquire) == slot)
    }

    /// Callbacks that were run on all threads.
    pub(super) fn told(&self) -> u64 {
        // Relaxed: a sample.
        self.all().map(|pin| pin.told.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Whether no thread is inside of any slot that `ours` knows. As in `busy`.
    pub(super) fn idle(&self, ours: impl Fn(usize) -> bool) -> bool {
        // Acquire: as in `busy`.
        !self.all().any(|pin| ours(pin.slot.load(Ordering::Acquire)))
    }
}

#[cfg(not(perusal_loom))]
const fn nobodys() -> [CachePadded<Pin>; NEAR] {
    [const { CachePadded::new(Pin::new(0)) }; NEAR]
}

#[cfg(perusal_loom)]
fn nobodys() -> [CachePadded<Pin>; NEAR] {
    core::array::from_fn(|_| CachePadded::new(Pin::new(0)))
}

impl Drop for Pins {
    fn drop(&mut self) {
        // Relaxed: borrowed mutably, so whatever others did happened before.
        let mut next = self.first.next.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: leaked by `append`, and nobody else can be looking (self is borrowed mutably).
            let pin = unsafe { Box::from_raw(next) };
            next = pin.next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_pin_and_shares_it_with_nobody() {
        let pins = Pins::new();
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
        let pins = Pins::new();
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
        let pins = Pins::new();
        let found: Vec<usize> = std::thread::scope(|s| {
            let threads: Vec<_> = (1..=8)
                .map(|me| {
                    let pins = &pins;
                    s.spawn(move || core::ptr::from_ref(pins.of(me)) as usize)
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for (at, pin) in found.iter().enumerate() {
            assert!(!found[at + 1..].contains(pin));
        }
    }
}
