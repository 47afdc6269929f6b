//! A lock for short work on memory that several processes share.

use crate::sync::{AtomicU32, Ordering};

/// A lock in shared memory; zero is free. Its holder does a few dozen accesses and waits for nothing, so who does not get it tries again.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SharedLock(AtomicU32);

impl SharedLock {
    /// Takes the lock, if it is free.
    #[inline(always)]
    #[must_use]
    pub fn try_hold(&self) -> Option<SharedLockGuard<'_>> {
        // Acquire: "shared lock" edge, pairs with Release in the drop of `SharedLockGuard`.
        let taken = self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        // A guard that is made is dropped: there must be none of a lock that another holds.
        taken.is_ok().then(|| SharedLockGuard(self))
    }
}

impl SharedLock {
    /// Whether nobody holds it just now: a hint for who waits.
    #[must_use]
    pub fn is_free(&self) -> bool {
        // Relaxed: `try_hold` decides.
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A [`SharedLock`] that is held.
#[derive(Debug)]
pub struct SharedLockGuard<'a>(&'a SharedLock);

impl Drop for SharedLockGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: "shared lock" edge, pairs with Acquire in `try_hold`.
        self.0.0.store(0, Ordering::Release);
    }
}
