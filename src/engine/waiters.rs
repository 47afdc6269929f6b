//! Waiters: threads of this rank that block while another one runs progress (MPI_THREAD_MULTIPLE).
//!
//! # Rules
//!
//! Each of these pairs is a store and a later load that must not pass each other,
//! with a SeqCst fence between them on both sides:
//!
//! | | the waiter stores, then loads | the waker stores, then loads |
//! |---|---|---|
//! | Waiters rule 1 | the counts of waiters, what it waits for | what is waited for, the counts of waiters |
//! | Waiters rule 2 | the counts of waiters (it is gone), the poller lock | the poller lock (it is free), the counts of waiters |
//!
//! - **Waiters rule 3.** A waiter reads its place's count of wake-ups before it looks at what it waits for, and blocks
//!   only if the count is still the same, under the place's mutex. So a wake-up between the look and the block is not
//!   lost.
//! - **Waiters rule 4.** A thread that stops polling wakes one waiter; a waiter that is woken and does not poll wakes
//!   the next. So whenever threads wait, one of them polls or is on its way.

use crate::sync::{
    AtomicU32, CachePadded, Condvar, Mutex, MutexGuard, Ordering, THREAD_SLOTS, fence, fence_after_exchange,
};
use core::time::Duration;

/// Places to block at: one for each thread slot. In a model each thread names its own.
const PLACES: usize = if cfg!(perusal_loom) { 3 } else { THREAD_SLOTS };

/// Where the threads of one thread slot block, so that one can be woken without the others.
#[derive(Debug, Default)]
struct Place {
    /// Threads that block here, or are about to.
    sleepers: AtomicU32,
    /// Wake-ups so far; changed under the mutex.
    wakes: Mutex<u32>,
    condition: Condvar,
}

impl Place {
    fn wakes(&self) -> MutexGuard<'_, u32> {
        self.wakes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn has_sleepers(&self) -> bool {
        // Relaxed: behind the waker's fence (waiters rules 1 and 2).
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    fn count_wake(&self) {
        let mut wakes = self.wakes();
        *wakes = wakes.wrapping_add(1);
    }

    fn wake_all(&self) {
        self.count_wake();
        self.condition.notify_all();
    }

    fn wake_one(&self) {
        self.count_wake();
        self.condition.notify_one();
    }
}

/// The threads of a rank that block while another one runs progress.
#[derive(Debug, Default)]
pub struct Waiters {
    /// All of them.
    sleepers: AtomicU32,
    /// Those that wait for something other than the completion of one request.
    any_event: AtomicU32,
    places: [CachePadded<Place>; PLACES],
}

impl Waiters {
    /// Blocks at `place` until woken, `at_most` at the longest, unless `enough` holds.
    ///
    /// `enough` runs when wakers can see this thread, with no lock of `self` held: it may take locks under which others
    /// wake. With `any_event` the thread is woken by whatever completes; else `enough` has arranged for the wake-up.
    pub fn wait(&self, place: usize, at_most: Duration, any_event: bool, enough: impl FnOnce() -> bool) {
        let (any_event, here) = (u32::from(any_event), &self.places[place]);
        // Relaxed, all three: ordered by the fence below (waiters rule 1).
        self.any_event.fetch_add(any_event, Ordering::Relaxed);
        here.sleepers.fetch_add(1, Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let before = *here.wakes();
        // Waiters rule 1, the waiter: pairs with the fences in `wake_all` and of the callers of `wake_after_fence`;
        // and waiters rule 3.
        fence(Ordering::SeqCst);
        if !enough() {
            let wakes = here.wakes();
            if *wakes == before {
                drop(here.condition.wait_timeout(wakes, at_most));
            }
        }
        // Relaxed, all three: ordered by the fence below (waiters rule 2).
        self.any_event.fetch_sub(any_event, Ordering::Relaxed);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        here.sleepers.fetch_sub(1, Ordering::Relaxed);
        // Waiters rule 2, the waiter: pairs with the fence in `pass_on`. The caller tries the poller lock next: it
        // finds the lock free, or the thread that leaves the lock finds that we are gone and wakes another.
        fence_after_exchange();
    }

    /// Wakes those who wait at the place at which a completion is awaited, and all if one of them waits for any event.
    /// The caller has executed a SeqCst fence after the completion (waiters rule 1, the waker:
    /// pairs with the fence in `wait`).
    #[inline]
    pub fn wake_after_fence(&self, awaited: Option<usize>) {
        if let Some(place) = awaited {
            self.wake_at(place);
        }
        // Relaxed: behind the caller's fence.
        if self.any_event.load(Ordering::Relaxed) > 0 {
            self.wake_every_place();
        }
    }

    /// Wakes those who wait for any event: one that completes no request has happened.
    pub fn wake_any_event(&self) {
        // Waiters rule 1, the waker: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        self.wake_after_fence(None);
    }

    /// Wakes all, whatever they wait for.
    pub fn wake_all(&self) {
        // Waiters rule 1, the waker: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        // Relaxed: behind the fence.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_every_place();
        }
    }

    /// Wakes one, because nobody polls any more (waiters rule 4).
    #[inline]
    pub fn pass_on(&self) {
        // Waiters rule 2, the waker: pairs with the second fence in `wait`. A thread that we wake and that passes on
        // sees at least the sleepers that we saw, because the mutex of its place lies between.
        fence(Ordering::SeqCst);
        // Relaxed: behind the fence.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_at(&self, place: usize) {
        self.places[place].wake_all();
    }

    #[cold]
    fn wake_every_place(&self) {
        self.places.iter().filter(|place| place.has_sleepers()).for_each(|place| place.wake_all());
    }

    #[cold]
    #[inline(never)]
    fn wake_one(&self) {
        if let Some(place) = self.places.iter().find(|place| place.has_sleepers()) {
            place.wake_one();
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicBool;

    #[test]
    fn a_wake_up_between_the_look_and_the_block_is_not_lost() {
        let (waiters, done) = (Waiters::default(), AtomicBool::new(false));
        let start = std::time::Instant::now();
        waiters.wait(0, Duration::from_secs(3600), true, || {
            // Another thread completes and wakes at the worst moment: after this look, before the sleep.
            let seen = done.load(Ordering::Relaxed);
            done.store(true, Ordering::Relaxed);
            waiters.wake_all();
            seen
        });
        assert!(start.elapsed() < Duration::from_secs(3000));
    }
}
