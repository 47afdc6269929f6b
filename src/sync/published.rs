//! Words by which one thread tells others how far something is:
//! a thread that reads what was set sees all that was done before.

use super::{AtomicBool, AtomicPtr, AtomicU8, Ordering};
use core::ptr;

/// Whether something is so far: over, or open.
#[derive(Debug, Default)]
pub struct PublishedFlag(AtomicBool);

impl PublishedFlag {
    /// Holds `is_set`.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new(is_set: bool) -> Self {
        Self(AtomicBool::new(is_set))
    }

    /// Holds `is_set`.
    #[cfg(perusal_loom)]
    #[must_use]
    pub fn new(is_set: bool) -> Self {
        Self(AtomicBool::new(is_set))
    }

    /// Sets the flag, or takes it back.
    pub fn set(&self, is_set: bool) {
        // Release: pairs with Acquire in `is_set`.
        self.0.store(is_set, Ordering::Release);
    }

    /// Whether it is set.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with Release in `set`.
        self.0.load(Ordering::Acquire)
    }
}

/// How far something is that has more than two stages.
#[derive(Debug, Default)]
pub struct PublishedStage(AtomicU8);

impl PublishedStage {
    /// Holds stage 0.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Moves on to `stage`.
    pub fn set(&self, stage: u8) {
        // Release: pairs with Acquire in `get`.
        self.0.store(stage, Ordering::Release);
    }

    /// Moves on from `before` to `stage`; any other stage stays.
    pub fn advance(&self, before: u8, stage: u8) {
        // Release: pairs with Acquire in `get`. Relaxed: a stage that stays is not looked at.
        let _ = self.0.compare_exchange(before, stage, Ordering::Release, Ordering::Relaxed);
    }

    /// Returns the stage.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u8 {
        // Acquire: pairs with Release in `set`.
        self.0.load(Ordering::Acquire)
    }
}

/// Something that lasts as long as the process, while it has a name.
#[derive(Debug)]
pub struct PublishedRef<T: 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> PublishedRef<T> {
    /// Names nothing.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Names nothing.
    #[cfg(perusal_loom)]
    #[must_use]
    pub fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Names `it`, or nothing.
    pub fn set(&self, it: Option<&'static T>) {
        let it = it.map_or(ptr::null(), ptr::from_ref);
        // Release: pairs with Acquire in `get`.
        self.0.store(it.cast_mut(), Ordering::Release);
    }

    /// Returns what it names.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with Release in `set`.
        let it = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a reference that `set` has got, which is good for ever;
        // it is only shared, and `T` is `Sync`.
        unsafe { it.as_ref() }
    }
}
