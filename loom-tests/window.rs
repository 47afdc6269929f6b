//! The lock of a rank's memory in a window: an exclusive lock excludes everybody, shared ones exclude exclusive ones, who holds the lock
//! sees what was done under it before, and who goes to sleep for it is woken.
//!
//! Run:   .ci/loom window
//! Bound: 2 and 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//!
//! Time:  less than a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time): each Release of
//! `release`, for exclusive and for shared locks; the Release of the turn that a shared lock passes on; each Acquire of `is_granted`; the
//! fences of `SleepMark::set`. That a turn is passed on at all, the lock's unit tests check.
#![cfg(perusal_loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::rma::lock::LockWords;
use perusal::internals::sync::{
    AsymmetricFence, AtomicU32, AtomicU64, Ordering, SleepMark, has_sleepers, take_sleepers,
};

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2.max(builder.preemption_bound.unwrap_or(0)));
    builder.check(body);
}

/// A rank's memory with its lock.
struct Memory {
    lock: LockWords,
    value: UnsafeCell<u32>,
}

// SAFETY: loom watches the cell: an access that the lock does not order is a failure.
unsafe impl Send for Memory {}
// SAFETY: see above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: LockWords::default(), value: UnsafeCell::new(0) })
    }

    /// Joins the queue and asks twice. Who is not granted the lock by then gives up, and all behind it: loom has no end of waiting, and every
    /// order in which the lock is granted is among those that it tries.
    fn acquire(&self, exclusive: bool) -> bool {
        let ticket = self.lock.take_ticket(exclusive);
        self.lock.is_granted(ticket) || {
            thread::yield_now();
            self.lock.is_granted(ticket)
        }
    }

    /// Returns the value before.
    fn add(&self) -> Option<u32> {
        self.acquire(true).then(|| {
            // SAFETY: held exclusively.
            let before = self.value.with_mut(|value| unsafe {
                *value += 1;
                *value - 1
            });
            self.lock.release(true);
            before
        })
    }

    fn read(&self) -> Option<u32> {
        self.acquire(false).then(|| {
            // SAFETY: held, so that nobody writes.
            let value = self.value.with(|value| unsafe { *value });
            self.lock.release(false);
            value
        })
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
    // The second reader is granted its lock by the first one's store, not by that of who wrote.
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
