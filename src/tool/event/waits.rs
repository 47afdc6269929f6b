//! The words that say whether a pass has anything to do.

use crate::sync::{AtomicBool, Ordering};

/// Whether something waits for a safe point, and whether a registration is over but for what waits.
#[derive(Debug, Default)]
pub struct Waits {
    waits: AtomicBool,
    ends: AtomicBool,
}

impl Waits {
    /// Nothing waits.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { waits: AtomicBool::new(false), ends: AtomicBool::new(false) }
    }

    /// Notes that something waits.
    #[inline]
    pub fn something_waits(&self) {
        // Release: "waits" edge, pairs with Acquire in `take`;
        // an exchange, so that the store of another thread after it does not hide it.
        self.waits.swap(true, Ordering::Release);
    }

    /// Notes that a registration is over but for what waits.
    pub fn something_ends(&self) {
        self.something_waits();
        // Release: "waits" edge, pairs with Acquire in `take_end`.
        self.ends.store(true, Ordering::Release);
    }

    /// Whether something may wait.
    #[inline(always)]
    #[must_use]
    pub fn waits(&self) -> bool {
        // Relaxed: a hint; `take` decides.
        self.waits.load(Ordering::Relaxed)
    }

    /// Whether something waits, which the caller's pass sees; from now on nothing does.
    #[must_use]
    pub fn take(&self) -> bool {
        // Acquire: "waits" edge, pairs with Release in `something_waits`: what waits is there.
        self.waits.swap(false, Ordering::Acquire)
    }

    /// Whether a registration is over but for what waits, for which another pass is made.
    #[must_use]
    pub fn take_end(&self) -> bool {
        // Acquire: "waits" edge, pairs with Release in `something_ends`: that something waits is seen, too.
        self.ends.swap(false, Ordering::Acquire)
    }
}
