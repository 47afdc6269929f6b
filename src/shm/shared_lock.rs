//! A lock for short work on memory that several processes share.

use crate::sync::{AtomicU32, Ordering};

/// A lock in shared memory; zero is free, else it is held under that number. Its holder does a few dozen accesses and
/// waits for nothing, so a thread that does not get it tries again.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SharedLock(AtomicU32);

impl SharedLock {
    /// Takes the lock under a number, which is not zero, if it is free.
    #[inline(always)]
    #[must_use]
    pub fn try_hold(&self, number: u32) -> Option<SharedLockGuard<'_>> {
        self.take_from(0, number)
    }

    /// Takes the lock from a holder that will never release it: one that has died.
    #[cold]
    #[must_use]
    pub fn take_over(&self, dead: u32, number: u32) -> Option<SharedLockGuard<'_>> {
        self.take_from(dead, number)
    }

    #[inline(always)]
    fn take_from(&self, holder: u32, number: u32) -> Option<SharedLockGuard<'_>> {
        // Acquire: "shared lock" edge, pairs with Release in the drop of `SharedLockGuard`; a holder that has died has
        // passed on what it saw.
        let taken = self.0.compare_exchange(holder, number, Ordering::Acquire, Ordering::Relaxed);
        // A guard that is made is dropped: there must be none of a lock that another holds.
        taken.is_ok().then(|| SharedLockGuard(self))
    }

    /// The number under which it is held just now, if it is: a hint for a thread that waits.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        // Relaxed: `try_hold` decides.
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }
}

/// A [`SharedLock`] that is held.
#[derive(Debug)]
pub struct SharedLockGuard<'a>(&'a SharedLock);

impl Drop for SharedLockGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: "shared lock" edge, pairs with Acquire in `take_from`.
        self.0.0.store(0, Ordering::Release);
    }
}
