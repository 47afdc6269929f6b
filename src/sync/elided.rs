//! A lock that costs nothing where MPI promises that there is one thread.

use super::{Cell, Mutex, MutexGuard, spin_loop};

/// Pauses of the processor before a second look at a lock that was not to be had, twice as many before each further one.
const FIRST: u32 = 16;
/// Such looks before a sleep: a few microseconds.
const BACK_OFF: u32 = 5;

/// A mutex over `T` that a job below MPI_THREAD_MULTIPLE does not take.
///
/// Elision rule: whoever passes `shared = false` promises that no other thread uses what the lock protects at the time. The engine
/// takes the promise at MPI_Init_thread (below MPI_THREAD_MULTIPLE it is the program's duty, MPI 5.0 §11.6.2) and
/// passes the same value ever after; for what lies in a lane with an owner it is lane rule 1 that promises it. Guards must not be nested
/// on one lock: a second one would alias the first.
#[derive(Debug, Default)]
pub struct Elided<T> {
    mutex: Mutex<()>,
    value: Cell<T>,
}

// SAFETY: `value` is reached only through a guard, of which there is one at a time: by the mutex, or by the promise
// of the elision rule. So `T` moves between threads but is never shared.
unsafe impl<T: Send> Sync for Elided<T> {}
// SAFETY: owning the lock is owning the value.
unsafe impl<T: Send> Send for Elided<T> {}

impl<T> Elided<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self { mutex: Mutex::new(()), value: Cell::new(value) }
    }

    /// Takes the lock if `shared`, else trusts the elision rule.
    #[inline(always)]
    pub fn lock(&self, shared: bool) -> ElidedGuard<'_, T> {
        let held = if shared { Some(self.lock_slow()) } else { None };
        ElidedGuard { value: &self.value, _held: held }
    }

    #[inline(never)]
    fn lock_slow(&self) -> MutexGuard<'_, ()> {
        match self.attempt() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// What these locks protect takes less time than it takes to move it from one processor to the other. So who does not get
    /// the lock leaves its line alone for a while, in which the other goes on with all that at hand, before it looks again.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, ()> {
        // A model has no time to pass.
        let rounds = if cfg!(perusal_loom) { 0 } else { BACK_OFF };
        for round in 0..rounds {
            (0..FIRST << round).for_each(|_| spin_loop());
            if let Some(guard) = self.attempt() {
                return guard;
            }
        }
        // A panic under the lock ends the process at the C boundary, so a poisoned lock is only seen by tests.
        self.mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// As [`Self::lock`], but `None` if another thread has it.
    #[inline(always)]
    pub fn try_lock(&self, shared: bool) -> Option<ElidedGuard<'_, T>> {
        let held = if shared { Some(self.try_lock_slow()?) } else { None };
        Some(ElidedGuard { value: &self.value, _held: held })
    }

    #[inline(never)]
    fn try_lock_slow(&self) -> Option<MutexGuard<'_, ()>> {
        self.attempt()
    }

    #[inline(always)]
    fn attempt(&self) -> Option<MutexGuard<'_, ()>> {
        use std::sync::TryLockError;
        match self.mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Access to what an [`Elided`] lock protects.
pub struct ElidedGuard<'a, T> {
    value: &'a Cell<T>,
    _held: Option<MutexGuard<'a, ()>>,
}

impl<T> core::ops::Deref for ElidedGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, and this borrow of it is shared.
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> core::ops::DerefMut for ElidedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and this borrow of it is exclusive.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}
