//! Threads of this rank that wait while another one drives progress (MPI_THREAD_MULTIPLE).

use crate::sync::{
    AtomicU32, CachePadded, Condvar, Mutex, MutexGuard, Ordering, THREAD_SLOTS, fence, fence_after_exchange,
};
use core::time::Duration;

/// Places to sleep at: one for each lane; a model's threads say themselves which.
const PLACES: usize = if cfg!(perusal_loom) { 3 } else { THREAD_SLOTS };

/// Where a thread sleeps, so that it is woken without another. (Threads without a lane of their own share some.)
#[derive(Debug, Default)]
struct Place {
    /// Who sleeps here, or is about to.
    sleepers: AtomicU32,
    /// How often who sleeps here was told; changed under the mutex.
    told: Mutex<u32>,
    bell: Condvar,
}

impl Place {
    fn told(&self) -> MutexGuard<'_, u32> {
        self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn has_sleepers(&self) -> bool {
        // Relaxed: behind the fence of who tells (crowd edge).
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    fn count_telling(&self) {
        let mut told = self.told();
        *told = told.wrapping_add(1);
    }

    fn tell(&self) {
        self.count_telling();
        self.bell.notify_all();
    }

    fn tell_one(&self) {
        self.count_telling();
        self.bell.notify_one();
    }
}

/// Where threads of a rank meet that wait while another one drives progress.
#[derive(Debug, Default)]
pub struct Crowd {
    /// All who wait.
    sleepers: AtomicU32,
    /// Those of them who wait for something else than the end of one request.
    watchers: AtomicU32,
    places: [CachePadded<Place>; PLACES],
}

impl Crowd {
    /// Sleeps at `place` until told, `at_most` at the longest, unless `enough` holds. `enough` is asked with no lock of
    /// this crowd held (it may take others, under which somebody tells), and after this thread can be seen by who tells.
    /// `watches`: it is to be told of anything that completes; else `enough` has seen to being told of what it waits for.
    pub fn wait(&self, place: usize, at_most: Duration, watches: bool, enough: impl FnOnce() -> bool) {
        let (watches, here) = (u32::from(watches), &self.places[place]);
        self.watchers.fetch_add(watches, Ordering::Relaxed);
        here.sleepers.fetch_add(1, Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let before = *here.told();
        // Crowd edge: our counts, then a look at what we wait for; who tells changes that, then looks at the counts.
        // Who tells after our look has changed `told` since `before`.
        fence(Ordering::SeqCst);
        if !enough() {
            let told = here.told();
            if *told == before {
                drop(here.bell.wait_timeout(told, at_most));
            }
        }
        self.watchers.fetch_sub(watches, Ordering::Relaxed);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        here.sleepers.fetch_sub(1, Ordering::Relaxed);
        // Crowd edge: we are not here any more, then the caller's look for a driver; who stops driving looks behind its fence in
        // `pass_on` who is here. So we see that it has stopped, or it sees that we are gone and wakes another.
        fence_after_exchange();
    }

    /// Something has completed: wakes who sleeps at the place at which that is awaited, and all if one of them watches. The caller
    /// has executed a SeqCst fence (crowd edge: pairs with the fence in `wait`).
    #[inline]
    pub fn tell_behind_fence(&self, awaited: Option<usize>) {
        if let Some(place) = awaited {
            self.tell_at(place);
        }
        if self.watchers.load(Ordering::Relaxed) > 0 {
            self.tell_everybody();
        }
    }

    /// Wakes all who wait, for whatever.
    pub fn tell_all(&self) {
        // Crowd edge: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.tell_everybody();
        }
    }

    /// Progress has no driver any more: wakes one who waits. It drives, or it finds another driver, or it has no reason to wait
    /// any more and passes on in its turn.
    #[inline]
    pub fn pass_on(&self) {
        // Crowd edge: pairs with the fence in `wait`. Who was woken by us and passes on sees at least the sleepers that we
        // saw: the mutex of its place lies between.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.tell_somebody();
        }
    }

    #[cold]
    fn tell_at(&self, place: usize) {
        self.places[place].tell();
    }

    #[cold]
    fn tell_everybody(&self) {
        self.places.iter().filter(|place| place.has_sleepers()).for_each(|place| place.tell());
    }

    #[cold]
    #[inline(never)]
    fn tell_somebody(&self) {
        if let Some(place) = self.places.iter().find(|place| place.has_sleepers()) {
            place.tell_one();
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicBool;

    #[test]
    fn a_waiter_is_told_even_between_its_look_and_its_sleep() {
        let (crowd, done) = (Crowd::default(), AtomicBool::new(false));
        let start = std::time::Instant::now();
        crowd.wait(0, Duration::from_secs(3600), true, || {
            // Another thread completes and tells at the worst moment: after this look, before the sleep.
            let seen = done.load(Ordering::Relaxed);
            done.store(true, Ordering::Relaxed);
            crowd.tell_all();
            seen
        });
        assert!(start.elapsed() < Duration::from_secs(3000));
    }
}
