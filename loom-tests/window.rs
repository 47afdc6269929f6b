//! The lock of a rank's memory in a window: an exclusive lock excludes everybody, shared ones exclude exclusive ones,
//! a member that holds the lock sees what was done under it before, and one that goes to sleep for it is woken. Post,
//! start, complete and wait: an origin sees what its target stored before, a target what all its origins put. Two that
//! store, flush and load do not both miss the other's store. What a member has attached to a dynamic window its origins
//! find, while it attaches and detaches other memory.
//!
//! Run:   .ci/loom window
//! Bound: 2 and 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//!
//! Time:  less than a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - each Release of `release`, for exclusive and for shared locks;
//! - the Release of the turn that a shared lock passes on;
//! - each Acquire of `is_granted`, and that of `try_acquire`;
//! - the fences of `SleepMark::set`;
//! - the Release of `EpochCount::add` and the Acquire of `EpochCount::since`;
//! - the fence of `StoreFlag::complete`;
//! - the Release of `NewestTable::push` and the Acquire of `NewestTable::cover`.
//!
//! That a turn is passed on at all, the lock's unit tests check.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::rma::attached::{NewestTable, RegionTable};
use perusal::internals::rma::control::{EpochCount, StoreFlag};
use perusal::internals::rma::lock::LockWords;
use perusal::internals::sync::{
    AsymmetricFence, AtomicU32, AtomicU64, Ordering, SleepMark, has_sleepers, take_sleepers,
};

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(2, body);
}

/// A rank's memory with its lock.
struct Memory {
    lock: LockWords,
    value: Plain<u32>,
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: LockWords::default(), value: Plain::new(0) })
    }

    /// Joins the queue and asks twice. A rank that is not granted the lock by then gives up, and all behind it: loom
    /// has no end of waiting, and every order in which the lock is granted is among those that it tries.
    fn acquire(&self, exclusive: bool) -> bool {
        let ticket = self.lock.take_ticket(exclusive);
        self.lock.is_granted(ticket) || {
            thread::yield_now();
            self.lock.is_granted(ticket)
        }
    }

    /// Returns the value before.
    fn add(&self) -> Option<u32> {
        self.acquire(true).then(|| self.add_held())
    }

    /// The same, if the lock is free.
    fn try_add(&self) -> Option<u32> {
        self.lock.try_acquire(true).then(|| self.add_held())
    }

    fn add_held(&self) -> u32 {
        let before = self.value.update(|value| {
            *value += 1;
            *value - 1
        });
        self.lock.release(true);
        before
    }

    fn read(&self) -> Option<u32> {
        self.acquire(false).then(|| self.read_held())
    }

    fn try_read(&self) -> Option<u32> {
        self.lock.try_acquire(false).then(|| self.read_held())
    }

    /// Held, so that nobody writes.
    fn read_held(&self) -> u32 {
        let value = self.value.get();
        self.lock.release(false);
        value
    }
}

/// Runs each of `bodies` in a thread.
fn threads(bodies: &[fn(&Memory)]) {
    let memory = Memory::new();
    let others: Vec<_> = bodies[1..]
        .iter()
        .map(|body| {
            let (memory, body) = (memory.clone(), *body);
            thread::spawn(move || body(&memory))
        })
        .collect();
    bodies[0](&memory);
    others.into_iter().for_each(|other| other.join().unwrap());
}

fn add(memory: &Memory) {
    memory.add();
}

fn read(memory: &Memory) {
    memory.read();
}

#[test]
fn two_that_add_are_both_counted() {
    model(|| {
        let memory = Memory::new();
        let other = memory.clone();
        let adds = thread::spawn(move || other.add());
        let mut before = vec![memory.add(), adds.join().unwrap()];
        before.sort_unstable();
        assert!(before == [Some(0), Some(1)] || before == [None, Some(0)]);
    });
}

#[test]
fn readers_share_and_an_exclusive_lock_waits_for_all_of_them() {
    model(|| threads(&[read, read, add]));
}

#[test]
fn a_reader_behind_two_that_add_sees_both() {
    model(|| {
        threads(&[add, add, |memory| {
            let (first, second) = (memory.read(), memory.read());
            assert!(second.is_none() || first <= second);
        }]);
    });
}

#[test]
fn a_shared_lock_passes_on_what_it_was_shown() {
    // The second reader is granted its lock by the first one's store, not by that of the writer.
    model(|| {
        threads(&[
            |memory| {
                memory.add();
                memory.read();
            },
            read,
        ]);
    });
}

fn try_add(memory: &Memory) {
    memory.try_add();
}

fn try_read(memory: &Memory) {
    memory.try_read();
}

#[test]
fn a_lock_that_is_taken_at_once_excludes_as_one_that_was_waited_for() {
    model(|| threads(&[try_add, try_add, add]));
    model(|| threads(&[try_add, try_read, read]));
    model(|| threads(&[try_read, read, add]));
}

#[test]
fn a_shared_lock_that_is_taken_at_once_passes_on_what_it_was_shown() {
    model(|| {
        threads(&[
            |memory| {
                memory.add();
                memory.try_read();
            },
            read,
            try_read,
        ]);
    });
}

#[test]
fn who_sleeps_for_a_word_is_woken() {
    model(|| {
        let words = Arc::new((AtomicU32::new(0), AtomicU64::new(0), AtomicU32::new(0)));
        let fences = AsymmetricFence::Processor;
        let sleeper = {
            let words = words.clone();
            thread::spawn(move || {
                let (awaited, marks, woken) = (&words.0, &words.1, &words.2);
                SleepMark::new(marks, 3).set(fences);
                if awaited.load(Ordering::Acquire) == 0 {
                    while woken.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                }
                SleepMark::new(marks, 3).clear();
            })
        };
        words.0.store(1, Ordering::Release);
        fences.light_barrier();
        if has_sleepers(&words.1) {
            take_sleepers(core::iter::once(&words.1), |who| {
                assert_eq!(who, 3);
                words.2.store(1, Ordering::Release);
            });
        }
        sleeper.join().unwrap();
    });
}

/// A target's memory, which it exposes to origins again and again, and the counts of both sides.
struct Exposed {
    posts: [EpochCount; 2],
    completed: EpochCount,
    values: [Plain<u32>; 2],
}

impl Exposed {
    fn new() -> Arc<Self> {
        let values = [Plain::new(0), Plain::new(0)];
        Arc::new(Self { posts: Default::default(), completed: EpochCount::default(), values })
    }

    /// Accesses the memory of one of the origins' parts in so many epochs, as long as the target exposes it.
    fn start_and_complete(&self, origin: usize, epochs: u32) {
        for epoch in 1..=epochs {
            if !twice(|| self.posts[origin].since(epoch) == 0) {
                return;
            }
            // Exposed to this origin, whose part it is.
            self.values[origin].update(|value| *value += 1);
            self.completed.add();
        }
    }

    /// Exposes it to `origins` origins, waits for them, and looks at what they have done.
    fn post_and_wait(&self, origins: usize, epochs: u32) {
        for epoch in 1..=epochs {
            for origin in 0..origins {
                // Between two epochs the memory is its owner's.
                self.values[origin].update(|value| *value += 10);
                self.posts[origin].add_alone();
            }
            let all = origins as u32;
            if !twice(|| self.completed.since((epoch - 1) * all) >= all) {
                return;
            }
            for value in &self.values[..origins] {
                // All origins have completed.
                assert_eq!(value.get(), 11 * epoch);
            }
        }
    }
}

/// Asks twice, and gives up then: loom has no end of waiting.
fn twice(done: impl Fn() -> bool) -> bool {
    done() || {
        thread::yield_now();
        done()
    }
}

#[test]
fn an_origin_sees_its_target_s_stores_and_a_target_its_origin_s_epoch_after_epoch() {
    model(|| {
        let exposed = Exposed::new();
        let origin = exposed.clone();
        let origin = thread::spawn(move || origin.start_and_complete(0, 2));
        exposed.post_and_wait(1, 2);
        origin.join().unwrap();
    });
}

#[test]
fn a_target_that_waits_sees_what_each_of_two_origins_has_put() {
    model(|| {
        let exposed = Exposed::new();
        let origins: Vec<_> = (0..2)
            .map(|origin| {
                let exposed = exposed.clone();
                thread::spawn(move || exposed.start_and_complete(origin, 1))
            })
            .collect();
        exposed.post_and_wait(2, 1);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
    });
}

#[test]
fn of_two_that_put_flush_and_get_one_sees_the_other_s_value() {
    model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let put_and_get = |words: &[AtomicU32; 2], own: usize| {
            let stores = StoreFlag::default();
            words[own].store(1, Ordering::Relaxed);
            stores.set();
            stores.complete();
            words[1 - own].load(Ordering::Relaxed)
        };
        let other = {
            let words = words.clone();
            thread::spawn(move || put_and_get(&words, 1))
        };
        let seen = put_and_get(&words, 0);
        assert!(seen + other.join().unwrap() > 0);
    });
}

#[test]
fn what_is_attached_is_found_while_other_memory_is_attached_and_detached() {
    model(|| {
        let shared = Arc::new((NewestTable::default(), [RegionTable::default(), RegionTable::default()]));
        // Before the origin learns of it.
        shared.0.push(&shared.1[0], 1);
        assert!(shared.1[0].add(100, 10));
        let origin = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (newest, tables) = &*shared;
                let at = |place: u64| tables.get(place as usize - 1);
                assert!(newest.cover(at, 100, 10));
                assert!(!newest.cover(at, 99, 2));
            })
        };
        let (newest, tables) = &*shared;
        assert!(tables[1].add(500, 5));
        newest.push(&tables[1], 2);
        tables[1].remove(500, 5);
        assert!(tables[1].add(300, 9));
        origin.join().unwrap();
    });
}
