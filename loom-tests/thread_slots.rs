//! Thread slots: a slot is one thread's alone until it gives it back, and the next owner finds all that was done in it.
//! So what lies there is changed by plain loads and stores, as counts are, or without a lock, as lists are.
//!
//! A model's thread does what a thread of the process does from its first call to its end (`thread_slots::imp`): claims
//! a slot, works in it, and gives it back; if there is none, it works in a shared one with locked instructions.
//!
//! Run:   .ci/loom thread_slots
//! Bound: 2 slots with an owner (`OWNED_SLOTS`); 2 and 3 threads, every interleaving with at most 3 preemptions
//!        (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Acquire of `ThreadSlots::claim`, and the Release of `give_back`;
//! - `claim`, and `give_back`, by a load and a store;
//! - `claim` without a look whether all are taken;
//! - `give_back` that does nothing;
//! - `share` that deals out slots with owners, too.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::sync::{AtomicU32, AtomicU64, OWNED_SLOTS, Ordering, THREAD_SLOTS, ThreadSlots};

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

/// A process: who owns which slot, and what lies in the slots.
struct Process {
    slots: ThreadSlots,
    /// As a telemetry page's counts are.
    counts: [AtomicU64; THREAD_SLOTS],
    /// As a slab's free slots are.
    lists: [Plain<u32>; OWNED_SLOTS],
}

impl Process {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: ThreadSlots::new(),
            counts: core::array::from_fn(|_| AtomicU64::new(0)),
            lists: core::array::from_fn(|_| Plain::new(0)),
        })
    }

    /// Counts and puts something on the list, as the owner of a slot does.
    fn work_in(&self, slot: usize) {
        let count = &self.counts[slot];
        // Relaxed: thread slot rule 1, there is one writer.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Thread slot rule 1.
        self.lists[slot].update(|list| *list += 1);
    }

    /// A thread's life. Whether it had a slot of its own.
    fn live(&self) -> bool {
        match self.slots.claim() {
            Some(slot) => {
                self.work_in(slot);
                self.slots.give_back(slot);
                true
            }
            None => {
                self.counts[self.slots.share()].fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// What all slots together have counted.
    fn counted(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// What lies on the lists of all slots that have owners.
    fn listed(&self) -> u32 {
        self.lists.iter().map(|list| list.get()).sum()
    }
}

fn spawn<R: 'static>(process: &Arc<Process>, life: fn(&Process) -> R) -> thread::JoinHandle<R> {
    let process = process.clone();
    thread::spawn(move || life(&process))
}

#[test]
fn nothing_is_lost_when_more_threads_come_than_there_are_slots() {
    model(|| {
        let process = Process::new();
        let others = [(); OWNED_SLOTS].map(|()| spawn(&process, Process::live));
        let owned = u32::from(process.live());
        let owned = others.into_iter().fold(owned, |n, other| n + u32::from(other.join().expect("a thread")));
        assert_eq!((process.counted(), process.listed()), (OWNED_SLOTS as u64 + 1, owned));
        assert_eq!(process.slots.owned(), 0, "all have given theirs back");
    });
}

#[test]
fn a_slot_is_had_again_with_all_that_was_done_in_it() {
    model(|| {
        let process = Process::new();
        // But for one they are taken, so it goes from hand to hand.
        let kept: Vec<usize> = (1..OWNED_SLOTS).map(|_| process.slots.claim().expect("a slot")).collect();
        let counted = Arc::new(AtomicU32::new(0));
        let one = || {
            let (process, counted) = (process.clone(), counted.clone());
            thread::spawn(move || {
                if process.live() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        [one(), one()].into_iter().for_each(|thread| thread.join().expect("a thread"));
        let counted = counted.load(Ordering::Relaxed);
        assert!((1..=2).contains(&counted), "the first to come has it");
        assert_eq!((process.counted(), process.listed()), (2, counted));
        assert_eq!(process.slots.claim(), Some(OWNED_SLOTS - 1), "it is free again");
        kept.into_iter().for_each(|slot| process.slots.give_back(slot));
        assert_eq!(process.slots.owned(), 1);
    });
}

#[test]
fn who_gives_a_slot_back_takes_none_from_who_claims_another_at_the_time() {
    model(|| {
        let process = Process::new();
        let first = process.slots.claim().expect("a slot");
        let other = spawn(&process, |process| {
            let own = process.slots.claim().expect("another slot");
            process.work_in(own);
            own
        });
        process.work_in(first);
        process.slots.give_back(first);
        let again = process.slots.claim().expect("a slot is free");
        let own = other.join().expect("a thread");
        assert_ne!(own, again, "two owners of one slot");
        assert_eq!(process.slots.owned(), 2);
        process.work_in(again);
        process.work_in(own);
        assert_eq!((process.counted(), process.listed()), (4, 4));
    });
}
