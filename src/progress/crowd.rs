//! Threads of this rank that wait while another one drives progress (MPI_THREAD_MULTIPLE).

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, fence};
use core::time::Duration;

/// Where they meet.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    waiters: AtomicU32,
    /// How often all were told; changed under the mutex.
    told: Mutex<u32>,
    bell: Condvar,
}

impl Crowd {
    fn told(&self) -> crate::sync::MutexGuard<'_, u32> {
        self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sleeps until [`Crowd::tell`], `at_most` at the longest, unless `enough` holds. `enough` is asked with no lock of
    /// this crowd held (it may take others, under which somebody tells), and after this thread can be seen by `tell`.
    pub fn wait(&self, at_most: Duration, enough: impl FnOnce() -> bool) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let before = *self.told();
        // Crowd edge: our count, then a look at what we wait for; `tell`'s caller changes that, then looks at the count.
        // Who tells after our look has changed `told` since `before`.
        fence(Ordering::SeqCst);
        if !enough() {
            let told = self.told();
            if *told == before {
                drop(self.bell.wait_timeout(told, at_most));
            }
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who wait: something has completed, or progress has no driver any more.
    #[inline]
    pub fn tell(&self) {
        // Crowd edge: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            let mut told = self.told();
            *told = told.wrapping_add(1);
            drop(told);
            self.bell.notify_all();
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
        crowd.wait(Duration::from_secs(3600), || {
            // Another thread completes and tells at the worst moment: after this look, before the sleep.
            let seen = done.load(Ordering::Relaxed);
            done.store(true, Ordering::Relaxed);
            crowd.tell();
            seen
        });
        assert!(start.elapsed() < Duration::from_secs(3000));
    }
}
