//! Words by which one thread tells others how far something is: who reads what was set sees all that was done before.

use super::{AtomicBool, AtomicU8, Ordering};

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

    /// Returns the stage.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u8 {
        // Acquire: pairs with Release in `set`.
        self.0.load(Ordering::Acquire)
    }
}
