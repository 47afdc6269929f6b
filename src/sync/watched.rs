//! Locks that ThreadSanitizer understands, in place of the standard library's under `--cfg perusal_tsan`.
//!
//! The standard library is compiled without the sanitizer, which therefore does not see how a thread that waited for a
//! lock is ordered behind the one that gave it back. Each lock here has a word beside it that says so once more, in
//! code that is compiled with the sanitizer. So has each cell that is written once: what its value owns was written
//! before the value was there. The value itself is written and read by functions of the standard library, which
//! `tests/thread_sanitizer.txt` names.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

/// What was done under a lock, for the next thread that takes it.
#[derive(Debug, Default)]
struct Order(AtomicU32);

impl Order {
    /// Follows all who said [`after`](Self::after).
    fn before(&self) {
        self.0.load(Ordering::Acquire);
    }
    /// Read-modify-writes, so that each carries what those before it said.
    fn after(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// A guard of `std`, and the word that says when it ends.
#[derive(Debug)]
pub struct Guard<'a, G> {
    // `None` only while a condition variable has it.
    held: Option<G>,
    order: &'a Order,
}

impl<'a, G> Guard<'a, G> {
    fn new(held: G, order: &'a Order) -> Self {
        order.before();
        Self { held: Some(held), order }
    }

    fn result(held: LockResult<G>, order: &'a Order) -> LockResult<Self> {
        match held {
            Ok(held) => Ok(Self::new(held, order)),
            Err(poisoned) => Err(PoisonError::new(Self::new(poisoned.into_inner(), order))),
        }
    }

    fn attempt(held: TryLockResult<G>, order: &'a Order) -> TryLockResult<Self> {
        match held {
            Ok(held) => Ok(Self::new(held, order)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(TryLockError::Poisoned(PoisonError::new(Self::new(poisoned.into_inner(), order))))
            }
        }
    }

    fn release(mut self) -> (G, &'a Order) {
        self.order.after();
        (self.held.take().expect("a guard holds its lock"), self.order)
    }
}

impl<G> Drop for Guard<'_, G> {
    fn drop(&mut self) {
        if self.held.is_some() {
            self.order.after();
        }
    }
}

impl<G: Deref> Deref for Guard<'_, G> {
    type Target = G::Target;
    fn deref(&self) -> &G::Target {
        self.held.as_ref().expect("a guard holds its lock")
    }
}

impl<G: DerefMut> DerefMut for Guard<'_, G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        self.held.as_mut().expect("a guard holds its lock")
    }
}

/// `std::sync::MutexGuard`.
pub type MutexGuard<'a, T> = Guard<'a, std::sync::MutexGuard<'a, T>>;
/// `std::sync::RwLockReadGuard`.
pub type ReadGuard<'a, T> = Guard<'a, std::sync::RwLockReadGuard<'a, T>>;
/// `std::sync::RwLockWriteGuard`.
pub type WriteGuard<'a, T> = Guard<'a, std::sync::RwLockWriteGuard<'a, T>>;

/// `std::sync::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    order: Order,
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex over `value`.
    pub const fn new(value: T) -> Self {
        Self { order: Order(AtomicU32::new(0)), inner: std::sync::Mutex::new(value) }
    }
    /// As `std::sync::Mutex::lock`.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Guard::result(self.inner.lock(), &self.order)
    }
    /// As `std::sync::Mutex::try_lock`.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        Guard::attempt(self.inner.try_lock(), &self.order)
    }
    /// As `std::sync::Mutex::get_mut`.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.order.before();
        self.inner.get_mut()
    }
    /// As `std::sync::Mutex::into_inner`.
    pub fn into_inner(self) -> LockResult<T> {
        self.order.before();
        self.inner.into_inner()
    }
}

/// `std::sync::RwLock`, which also stands for `ShardedLock`.
#[derive(Debug, Default)]
pub struct RwLock<T> {
    order: Order,
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A lock over `value`.
    pub const fn new(value: T) -> Self {
        Self { order: Order(AtomicU32::new(0)), inner: std::sync::RwLock::new(value) }
    }
    /// As `std::sync::RwLock::read`.
    pub fn read(&self) -> LockResult<ReadGuard<'_, T>> {
        Guard::result(self.inner.read(), &self.order)
    }
    /// As `std::sync::RwLock::write`.
    pub fn write(&self) -> LockResult<WriteGuard<'_, T>> {
        Guard::result(self.inner.write(), &self.order)
    }
    /// As `std::sync::RwLock::try_write`.
    pub fn try_write(&self) -> TryLockResult<WriteGuard<'_, T>> {
        Guard::attempt(self.inner.try_write(), &self.order)
    }
}

/// `std::sync::OnceLock`.
#[derive(Debug, Default)]
pub struct OnceLock<T> {
    order: Order,
    inner: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// A cell without a value.
    pub const fn new() -> Self {
        Self { order: Order(AtomicU32::new(0)), inner: std::sync::OnceLock::new() }
    }
    /// As `std::sync::OnceLock::get`.
    pub fn get(&self) -> Option<&T> {
        let value = self.inner.get()?;
        self.order.before();
        Some(value)
    }
    /// As `std::sync::OnceLock::set`.
    pub fn set(&self, value: T) -> Result<(), T> {
        // Before the value is there: whoever finds it follows this.
        self.order.after();
        self.inner.set(value)
    }
}

/// `std::sync::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// A condition variable.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }
    /// As `std::sync::Condvar::notify_one`.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    /// As `std::sync::Condvar::notify_all`.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
    /// As `std::sync::Condvar::wait`.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (held, order) = guard.release();
        Guard::result(self.0.wait(held), order)
    }
    /// As `std::sync::Condvar::wait_timeout`.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at_most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, std::sync::WaitTimeoutResult)> {
        let (held, order) = guard.release();
        match self.0.wait_timeout(held, at_most) {
            Ok((held, over)) => Ok((Guard::new(held, order), over)),
            Err(poisoned) => {
                let (held, over) = poisoned.into_inner();
                Err(PoisonError::new((Guard::new(held, order), over)))
            }
        }
    }
}
