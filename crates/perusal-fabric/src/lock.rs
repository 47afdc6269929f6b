//! The lock of a domain.

use perusal::internals::sync::{AtomicU32, Ordering, yield_now};

/// The lock of a domain and all that belongs to it. It is taken only if the caller did not promise to use one thread at
/// a time for each domain (FI_THREAD_DOMAIN): what FI_THREAD_COMPLETION lets threads do at once shares the domain's
/// regions.
#[derive(Debug, Default)]
pub struct Lock {
    needed: bool,
    taken: AtomicU32,
}

impl Lock {
    /// A lock that is taken if threads may call at once.
    pub fn new(needed: bool) -> Self {
        Self { needed, taken: AtomicU32::new(0) }
    }

    /// Whether threads may call at once.
    pub fn is_needed(&self) -> bool {
        self.needed
    }

    /// Takes the lock until the result is dropped.
    #[inline(always)]
    pub fn lock(&self) -> Locked<'_> {
        if self.needed {
            self.wait();
        }
        Locked(self)
    }

    #[inline(never)]
    fn wait(&self) {
        // Acquire: domain edge, pairs with Release in `Locked::drop`: what the other thread did is there.
        while self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            yield_now();
        }
    }
}

/// The lock is taken.
pub struct Locked<'a>(&'a Lock);

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.needed {
            // Release: domain edge, pairs with Acquire in `wait`.
            self.0.taken.store(0, Ordering::Release);
        }
    }
}
