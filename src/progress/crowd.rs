//! Threads of this rank that wait while another one drives progress (MPI_THREAD_MULTIPLE).

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, fence};
use core::time::Duration;

/// Where they meet.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    waiters: AtomicU32,
    mutex: Mutex<()>,
    bell: Condvar,
}

impl Crowd {
    /// Sleeps until [`Crowd::tell`], `at_most` at the longest, unless `enough` holds. `enough` is asked after this
    /// thread can be seen by `tell`: crowd edge, below.
    pub fn wait(&self, at_most: Duration, enough: impl FnOnce() -> bool) {
        let guard = self.mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Crowd edge: our count, then a look at what we wait for; `tell`'s caller changes that, then looks at the count.
        fence(Ordering::SeqCst);
        if !enough() {
            drop(self.bell.wait_timeout(guard, at_most));
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who wait: something has completed, or progress has no driver any more.
    #[inline]
    pub fn tell(&self) {
        // Crowd edge: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            drop(self.mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            self.bell.notify_all();
        }
    }
}
