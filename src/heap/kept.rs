//! Memory that is not remapped ([`super::remap`]): that of windows, to which other ranks may write at any time.
//!
//! **Process-wide state**: `KEPT`, as memory is.

use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

static KEPT: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// Nobody panics with the lock held.
fn lock() -> MutexGuard<'static, Vec<Range<usize>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that stays what it is until this is dropped.
#[derive(Debug)]
pub struct KeptMemory(Range<usize>);

impl KeptMemory {
    /// Keeps `bytes` bytes at `addr` what they are. What has been remapped already stays so.
    #[must_use]
    pub fn new(addr: u64, bytes: u64) -> Self {
        let kept = addr as usize..addr.saturating_add(bytes) as usize;
        lock().push(kept.clone());
        Self(kept)
    }

    /// Where it begins.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.0.start as u64
    }
}

impl Drop for KeptMemory {
    fn drop(&mut self) {
        let mut all = lock();
        if let Some(at) = all.iter().position(|kept| *kept == self.0) {
            all.swap_remove(at);
        }
    }
}

/// Whether some of these pages are kept.
pub(super) fn are_kept(pages: &Range<usize>) -> bool {
    lock().iter().any(|kept| kept.start < pages.end && pages.start < kept.end)
}
