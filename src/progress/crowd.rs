//! Threads of this rank that wait while another one drives progress (MPI_THREAD_MULTIPLE).

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, fence};
use core::time::Duration;

/// Where threads of a rank meet that wait while another one drives progress.
#[derive(Debug, Default)]
pub struct Crowd {
    /// All who wait.
    sleepers: AtomicU32,
    /// Those of them who wait for something else than the end of one request.
    watchers: AtomicU32,
    /// How often all were told; changed under the mutex.
    told: Mutex<u32>,
    bell: Condvar,
}

impl Crowd {
    fn told(&self) -> crate::sync::MutexGuard<'_, u32> {
        self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sleeps until told, `at_most` at the longest, unless `enough` holds. `enough` is asked with no lock of
    /// this crowd held (it may take others, under which somebody tells), and after this thread can be seen by who tells.
    /// `watches`: it is to be told of anything that completes; else `enough` has seen to being told of what it waits for.
    pub fn wait(&self, at_most: Duration, watches: bool, enough: impl FnOnce() -> bool) {
        let watches = u32::from(watches);
        self.watchers.fetch_add(watches, Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let before = *self.told();
        // Crowd edge: our counts, then a look at what we wait for; who tells changes that, then looks at the counts.
        // Who tells after our look has changed `told` since `before`.
        fence(Ordering::SeqCst);
        if !enough() {
            let told = self.told();
            if *told == before {
                drop(self.bell.wait_timeout(told, at_most));
            }
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        self.watchers.fetch_sub(watches, Ordering::Relaxed);
    }

    /// Something has completed: wakes all if one of them waits for that (`awaited`), or watches. The caller has executed a
    /// SeqCst fence (crowd edge: pairs with the fence in `wait`).
    #[inline]
    pub fn tell_behind_fence(&self, awaited: bool) {
        if awaited || self.watchers.load(Ordering::Relaxed) > 0 {
            self.count_telling();
            self.bell.notify_all();
        }
    }

    /// Wakes all who wait, for whatever.
    pub fn tell_all(&self) {
        // Crowd edge: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.count_telling();
            self.bell.notify_all();
        }
    }

    /// Progress has no driver any more: wakes one who waits. It drives, or it finds another driver, or it has no reason to wait
    /// any more and passes on in its turn.
    #[inline]
    pub fn pass_on(&self) {
        // Crowd edge: pairs with the fence in `wait`. Who was woken by us and passes on sees at least the sleepers that we
        // saw: the mutex lies between.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.count_telling();
            self.bell.notify_one();
        }
    }

    #[cold]
    #[inline(never)]
    fn count_telling(&self) {
        let mut told = self.told();
        *told = told.wrapping_add(1);
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
        crowd.wait(Duration::from_secs(3600), true, || {
            // Another thread completes and tells at the worst moment: after this look, before the sleep.
            let seen = done.load(Ordering::Relaxed);
            done.store(true, Ordering::Relaxed);
            crowd.tell_all();
            seen
        });
        assert!(start.elapsed() < Duration::from_secs(3000));
    }
}
