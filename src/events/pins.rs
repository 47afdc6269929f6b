//! Pins: which slot each thread may be inside of, written by plain stores and read by the control side alone.
//!
//! Two pairs of a store and a later load must not pass each other; each side stores what the other loads:
//!
//! | | dispatcher stores, then loads | control side stores, then loads |
//! |---|---|---|
//! | event rule 6 | its pin, a slot's state | the state, all pins |
//! | event rule 7 | its pin, `wanted` | `wanted`, all pins |
//!
//! The dispatcher is on every event's way, the control side hardly ever is: so the dispatcher has [`Light`], a compiler
//! fence where the kernel has `membarrier(2)`, and the control side pays with [`Pins::heavy`].

use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, Padded, compiler_fence, fence, membarrier,
};

/// What one thread tells the control side.
#[derive(Debug)]
pub(super) struct Pin {
    /// Names the thread; 0: none yet.
    owner: AtomicUsize,
    /// Address of the slot whose callback the owner runs, or is about to; 0: none.
    slot: AtomicUsize,
    /// Callbacks that the owner has run.
    told: AtomicU64,
    next: AtomicPtr<Padded<Pin>>,
}

impl Pin {
    fn new(owner: usize) -> Pin {
        Pin {
            owner: AtomicUsize::new(owner),
            slot: AtomicUsize::new(0),
            told: AtomicU64::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// From now on the thread may be inside of `slot`, and is inside of no other. The caller then fences ([`Light`]).
    #[inline(always)]
    pub(super) fn set(&self, slot: usize) {
        // Release: edge 4, pairs with Acquire in `Pins::busy`: the callback that was pinned before is over.
        self.slot.store(slot, Ordering::Release);
    }

    /// A callback is over.
    #[inline(always)]
    pub(super) fn count(&self) {
        // Relaxed, and no locked instruction: a sample, with one writer.
        self.told.store(self.told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// From now on the thread is inside of no slot. The caller then fences ([`Light`]).
    #[inline(always)]
    pub(super) fn clear(&self) {
        self.set(0);
    }
}

/// The fence on a dispatcher's side: between a store to its pin and a load that [`Pins::heavy`] orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Light {
    /// Whether it must do without the control side's help.
    alone: bool,
}

impl Light {
    #[inline(always)]
    pub(super) fn light(self) {
        if self.alone {
            fence(Ordering::SeqCst);
        } else {
            // The processor fence is the control side's membarrier, which makes every running thread of the process execute
            // one between two of its instructions: so only the compiler must keep the order.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// The pins of all threads that ever raised an event here, and how the two sides fence.
#[derive(Debug)]
pub(super) struct Pins {
    /// Whether the control side fences for all: set before the first handle is active, and never cleared.
    asymmetric: AtomicBool,
    /// Never to be.
    #[cfg(test)]
    symmetric: AtomicBool,
    /// Whether the control side waits for a pass to end.
    wanted: AtomicBool,
    first: Padded<Pin>,
}

impl Pins {
    pub(super) fn new() -> Pins {
        Pins {
            asymmetric: AtomicBool::new(false),
            #[cfg(test)]
            symmetric: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            first: Padded(Pin::new(0)),
        }
    }

    /// Lets dispatchers do without a processor fence where the kernel allows that. Called before a handle becomes active.
    #[cfg(not(perusal_loom))]
    pub(super) fn prepare(&self) {
        #[cfg(test)]
        if self.symmetric.load(Ordering::Relaxed) {
            return;
        }
        // Relaxed: who has not seen it yet fences, which is right too.
        if !self.asymmetric.load(Ordering::Relaxed) && membarrier::join_private() {
            self.asymmetric.store(true, Ordering::Relaxed);
        }
    }

    /// loom has no asymmetric fences: both sides fence.
    #[cfg(perusal_loom)]
    pub(super) fn prepare(&self) {}

    /// Dispatchers fence themselves, as where the kernel has no membarrier. Called before the first handle is made.
    #[cfg(test)]
    pub(super) fn do_without_membarrier(&self) {
        self.symmetric.store(true, Ordering::Relaxed);
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
        // Relaxed: it is set under the control lock, which callers hold.
        if self.asymmetric.load(Ordering::Relaxed) {
            membarrier::issue_private();
        }
    }

    /// Whether a pass that ends is to look after the control side.
    #[inline(always)]
    pub(super) fn wanted(&self) -> bool {
        // Relaxed: ordered by the fences (event rule 7).
        self.wanted.load(Ordering::Relaxed)
    }

    /// Asks passes that end to look after the control side, or no more. The control lock is held.
    pub(super) fn want(&self, wanted: bool) {
        // Relaxed: as in `wanted`.
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// The calling thread's pin, which it alone writes. `me` names the thread and is not 0.
    ///
    /// Threads are named by addresses, so a pin whose thread has ended goes to the next one of that name: there are as many pins as
    /// threads at a time. All but the first are allocated.
    pub(super) fn of(&self, me: usize) -> &Pin {
        let mut pin: &Padded<Pin> = &self.first;
        loop {
            // Relaxed: only we write our name. That a free pin becomes ours is the exchange's business.
            let owner = pin.owner.load(Ordering::Relaxed);
            if owner == me || owner == 0 && self.claim(pin, me) {
                return pin;
            }
            pin = self.next(pin).unwrap_or_else(|| self.append(pin, me));
        }
    }

    fn claim(&self, pin: &Pin, me: usize) -> bool {
        // Relaxed: the pin was empty, and stays so until its owner's first `set`.
        pin.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn next(&self, pin: &Pin) -> Option<&Padded<Pin>> {
        // Acquire: pairs with AcqRel in `append`, publishes the pin.
        let next = pin.next.load(Ordering::Acquire);
        // SAFETY: a pin that is there was leaked by `append` and is freed with the registry, which self borrows.
        unsafe { next.as_ref() }
    }

    /// Hangs a new pin of thread `me` behind `last`; the one that hangs there, if another thread was faster.
    #[cold]
    fn append(&self, last: &Pin, me: usize) -> &Padded<Pin> {
        let new = Box::into_raw(Box::new(Padded(Pin::new(me))));
        // AcqRel: pairs with Acquire in `next`; publishes ours, or shows theirs.
        match last.next.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made; freed with the registry, which self borrows.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: just made, and nobody has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: published by another `append`; freed with the registry, which self borrows.
                unsafe { &*there }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Pin> {
        core::iter::successors(Some(&self.first), |pin| self.next(pin)).map(|pin| &**pin)
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

    /// Whether no thread is inside of any slot.
    pub(super) fn idle(&self) -> bool {
        // Acquire: as in `busy`.
        self.all().all(|pin| pin.slot.load(Ordering::Acquire) == 0)
    }
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
        let [one, two, three] = [11, 22, 33].map(|me| core::ptr::from_ref(pins.of(me)));
        assert!(one != two && two != three && one != three);
        assert_eq!(core::ptr::from_ref(pins.of(22)), two);
    }

    #[test]
    fn a_slot_is_busy_while_any_pin_names_it() {
        let pins = Pins::new();
        pins.of(1).set(0x1000);
        pins.of(2).set(0x2000);
        assert!(pins.busy(0x1000) && pins.busy(0x2000) && !pins.busy(0x3000) && !pins.idle());
        pins.of(1).set(0x2000);
        assert!(!pins.busy(0x1000));
        pins.of(1).clear();
        pins.of(2).clear();
        assert!(pins.idle() && !pins.busy(0x2000));
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
