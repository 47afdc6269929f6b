//! Conditional locks: they cost nothing where MPI promises that there is one thread.

use super::{Cell, Mutex, MutexGuard, spin_loop};

/// Pauses of the processor before the second attempt at a contended lock; twice as many before each further one.
const FIRST_PAUSES: u32 = 16;
/// Attempts before a sleep: a few microseconds.
const ATTEMPTS: u32 = 5;

/// A mutex over `T` that is taken only under MPI_THREAD_MULTIPLE.
///
/// **Conditional lock rule 1.** With `shared = false` no other thread uses the value while the guard lives. Below
/// MPI_THREAD_MULTIPLE that is the program's duty (MPI 5.0 §11.6.2), and the engine passes the same `shared` from
/// MPI_Init_thread on; the value of a thread slot with an owner is the owner's by thread slot rule 1. Guards of one
/// lock are never nested: a second one would alias the first.
#[derive(Debug, Default)]
pub struct ConditionalLock<T> {
    mutex: Mutex<()>,
    value: Cell<T>,
}

// SAFETY: `value` is reached only through a guard, of which there is one at a time: by the mutex, or by conditional
// lock rule 1. So `T` moves between threads but is never shared.
unsafe impl<T: Send> Sync for ConditionalLock<T> {}
// SAFETY: to own the lock is to own the value.
unsafe impl<T: Send> Send for ConditionalLock<T> {}

impl<T> ConditionalLock<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self { mutex: Mutex::new(()), value: Cell::new(value) }
    }

    /// Takes the lock if `shared`; else conditional lock rule 1 keeps others out.
    #[inline(always)]
    pub fn lock(&self, shared: bool) -> ConditionalGuard<'_, T> {
        let held = if shared { Some(self.lock_slow()) } else { None };
        ConditionalGuard { value: &self.value, _held: held }
    }

    #[inline(never)]
    fn lock_slow(&self) -> MutexGuard<'_, ()> {
        match self.attempt() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// What these locks protect takes less time to use than to move from one processor to another. So a thread that
    /// does not get the lock leaves its line alone for a while, in which the holder keeps everything in its cache,
    /// and then tries again.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, ()> {
        // In a model no time passes.
        let rounds = if cfg!(perusal_loom) { 0 } else { ATTEMPTS };
        for round in 0..rounds {
            (0..FIRST_PAUSES << round).for_each(|_| spin_loop());
            if let Some(guard) = self.attempt() {
                return guard;
            }
        }
        // A panic under the lock ends the process at the C boundary, so a poisoned lock is only seen by tests.
        self.mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// As [`Self::lock`], but `None` if another thread has it.
    #[inline(always)]
    pub fn try_lock(&self, shared: bool) -> Option<ConditionalGuard<'_, T>> {
        let held = if shared { Some(self.try_lock_slow()?) } else { None };
        Some(ConditionalGuard { value: &self.value, _held: held })
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

/// Access to what a [`ConditionalLock`] protects.
pub struct ConditionalGuard<'a, T> {
    value: &'a Cell<T>,
    _held: Option<MutexGuard<'a, ()>>,
}

impl<T> core::ops::Deref for ConditionalGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time (conditional lock rule 1),
        // and it is borrowed shared as long as the result.
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> core::ops::DerefMut for ConditionalGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time (conditional lock rule 1),
        // and it is borrowed exclusively as long as the result.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}
