//! A word of the bitmap of granules that are allocated (heap rule 1).

use crate::sync::{AtomicU64, Ordering};

/// 64 granules; a bit that is set is an allocated one.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct BitmapWord(AtomicU64);

impl BitmapWord {
    /// Returns the bits as they are about now.
    #[must_use]
    pub fn load(&self) -> u64 {
        // Relaxed: a look in advance; `set` decides.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the bits of `mask`, none of which is set.
    ///
    /// # Errors
    /// Those that are set; nothing has changed then.
    pub fn set(&self, mask: u64) -> Result<(), u64> {
        let mut seen = self.load();
        while seen & mask == 0 {
            // Acquire: "heap" edge, pairs with Release in `clear`: the former owner of the granules has given their
            // memory back.
            match self.0.compare_exchange_weak(seen, seen | mask, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
        Err(seen & mask)
    }

    /// Clears the bits of `mask`, which the caller has set.
    pub fn clear(&self, mask: u64) {
        // Release: "heap" edge, pairs with Acquire in `set`.
        self.0.fetch_and(!mask, Ordering::Release);
    }
}
