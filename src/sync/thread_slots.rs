//! Thread slots: the number of the shard that a thread uses of per-thread counters and free lists, so that threads do
//! not write to one cache line.
//!
//! # Rule
//!
//! - **Thread slot rule 1 (one owner).** A slot below [`OWNED_SLOTS`] belongs to one thread of the process from the
//!   time it first asks until it ends; then another may have it, which sees all that the former owner did. So what lies
//!   in such a slot needs no lock, and is changed by plain loads and stores. Threads for which none is left share the
//!   slots from [`OWNED_SLOTS`] on.

use super::{AtomicU32, AtomicUsize, Ordering};

/// Slots with an owner. Few in a model, so that they run out.
pub const OWNED_SLOTS: usize = if cfg!(perusal_loom) { 2 } else { 16 };
/// All slots.
pub const THREAD_SLOTS: usize = OWNED_SLOTS + 4;

const ALL: u32 = (1 << OWNED_SLOTS) - 1;

/// Which slots have an owner. (A type of its own, so that a model has some without the process.)
#[derive(Debug)]
pub struct ThreadSlots {
    /// A bit for each slot that has an owner.
    owned: AtomicU32,
    /// How many threads share the other slots.
    sharers: AtomicUsize,
}

impl Default for ThreadSlots {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadSlots {
    /// Slots that nobody owns.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { owned: AtomicU32::new(0), sharers: AtomicUsize::new(0) }
    }

    /// Slots that nobody owns.
    #[cfg(perusal_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { owned: AtomicU32::new(0), sharers: AtomicUsize::new(0) }
    }

    /// Returns the lowest slot without an owner; the caller's from now on, until it gives it back.
    pub fn claim(&self) -> Option<usize> {
        let lowest = |owned: u32| (owned != ALL).then(|| owned.trailing_ones());
        // Acquire: thread slot edge, pairs with Release in `give_back`. Relaxed where it fails: nothing is read then.
        let found = self.owned.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            lowest(owned).map(|slot| owned | 1 << slot)
        });
        Some(lowest(found.ok()?)? as usize)
    }

    /// Leaves a slot, which the caller owns, to whoever claims it next.
    pub fn give_back(&self, slot: usize) {
        // Release: thread slot edge, pairs with Acquire in `claim`: the next owner sees what we did.
        self.owned.fetch_and(!(1 << slot), Ordering::Release);
    }

    /// Returns one of the slots that have no owner, for a thread that can own none.
    pub fn share(&self) -> usize {
        // Relaxed: a counter.
        OWNED_SLOTS + self.sharers.fetch_add(1, Ordering::Relaxed) % (THREAD_SLOTS - OWNED_SLOTS)
    }

    /// How many slots have an owner now.
    pub fn owned(&self) -> usize {
        // Relaxed: a sample.
        self.owned.load(Ordering::Relaxed).count_ones() as usize
    }
}

#[cfg(not(perusal_loom))]
mod imp {
    use super::{OWNED_SLOTS, ThreadSlots};
    use core::cell::Cell;

    const NONE: usize = usize::MAX;

    /// The slots of this process: state that is process-wide, because threads are.
    static PROCESS: ThreadSlots = ThreadSlots::new();

    std::thread_local! {
        // Apart from its end: this one has no destructor, so that asking costs a load.
        static SLOT: Cell<usize> = const { Cell::new(NONE) };
        static TENURE: Tenure = const { Tenure(Cell::new(NONE)) };
    }

    /// Gives the slot back when the thread ends.
    struct Tenure(Cell<usize>);

    impl Drop for Tenure {
        fn drop(&mut self) {
            // Destructors that run later may still count.
            SLOT.set(OWNED_SLOTS);
            PROCESS.give_back(self.0.get());
        }
    }

    /// Returns the calling thread's slot, below [`THREAD_SLOTS`](super::THREAD_SLOTS); the same as long as it lives.
    #[inline]
    pub fn thread_slot() -> usize {
        match SLOT.get() {
            NONE => choose(),
            slot => slot,
        }
    }

    /// Has the calling thread, which is none of the program's and has used no slot, share one that has no owner.
    pub fn share_slot() {
        SLOT.set(PROCESS.share());
    }

    /// How many threads of the process own a slot: those that have used MPI and live,
    /// if they are not more than [`OWNED_SLOTS`].
    pub fn slots_owned() -> usize {
        PROCESS.owned()
    }

    #[cold]
    fn choose() -> usize {
        let slot = PROCESS.claim().and_then(keep).unwrap_or_else(|| PROCESS.share());
        SLOT.set(slot);
        slot
    }

    /// Where thread-local destructors run already, a slot is not to be had: it would not be given back.
    fn keep(slot: usize) -> Option<usize> {
        let kept = TENURE.try_with(|tenure| tenure.0.set(slot)).is_ok();
        if !kept {
            PROCESS.give_back(slot);
        }
        kept.then_some(slot)
    }

    #[cfg(test)]
    mod tests {
        use super::super::THREAD_SLOTS;
        use super::*;

        #[test]
        fn threads_that_live_at_the_same_time_have_slots_of_their_own_or_shared_ones() {
            let all = std::sync::Barrier::new(THREAD_SLOTS);
            let slots: Vec<usize> = std::thread::scope(|scope| {
                let one = || {
                    let slot = thread_slot();
                    all.wait();
                    assert_eq!(slot, super::thread_slot(), "it stays");
                    slot
                };
                let threads: Vec<_> = (0..THREAD_SLOTS).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic in here")).collect()
            });
            let mut own: Vec<usize> = slots.iter().copied().filter(|&slot| slot < OWNED_SLOTS).collect();
            own.sort_unstable();
            own.dedup();
            let shared = slots.iter().filter(|&&slot| (OWNED_SLOTS..THREAD_SLOTS).contains(&slot)).count();
            assert_eq!(own.len() + shared, THREAD_SLOTS, "{slots:?}");
        }

        #[test]
        fn a_slot_is_had_again_when_its_owner_has_ended() {
            for _ in 0..4 * OWNED_SLOTS {
                let slot = std::thread::spawn(thread_slot).join().expect("no panic in here");
                // Tests that run at the same time have slots too, but hardly all of them for all of this time.
                assert!(slot < THREAD_SLOTS);
            }
            assert!(
                (0..100 * OWNED_SLOTS)
                    .any(|_| std::thread::spawn(thread_slot).join().expect("no panic in here") < OWNED_SLOTS),
                "slots are not given back"
            );
        }
    }
}

#[cfg(perusal_loom)]
mod imp {
    /// A static cannot hold one of loom's atomics: all threads share.
    /// (`loom-tests/thread_slots.rs` claims slots without this.)
    pub fn thread_slot() -> usize {
        super::OWNED_SLOTS
    }
    /// All do.
    pub fn share_slot() {}
    /// So nobody owns a slot.
    pub fn slots_owned() -> usize {
        0
    }
}

pub use imp::{share_slot, slots_owned, thread_slot};
