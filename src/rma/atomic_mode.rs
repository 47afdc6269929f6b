//! Whether an accumulate of one value is an instruction of the processor's, or takes a lock as one of many values does.
//!
//! The two do not exclude each other, so a job has one mode at a time. It begins with instructions, and goes over to
//! locks when the first operation needs one, for good.
//!
//! - **Atomic mode rule 1.** A rank performs an instruction on a window's memory only between [`AtomicMode::enter`] and
//!   the drop of what that returns, and from one thread at a time.
//! - **Atomic mode rule 2.** A rank takes a lock only after it has seen the mode closed: it has announced so, and seen
//!   every rank's mark clear.

use crate::sync::{AsymmetricFence, AtomicU32, Ordering};

/// The mode of a job, in memory that all ranks see. Zero: instructions.
#[derive(Debug, Default)]
pub struct AtomicMode(AtomicU32);

/// Says that its rank is about to perform an instruction, in memory that all ranks see. Zero: it is not.
#[derive(Debug, Default)]
pub struct Mark(AtomicU32);

const OPEN: u32 = 0;
const CLOSING: u32 = 1;
const CLOSED: u32 = 2;

impl AtomicMode {
    /// Lets the rank of `mark` perform one instruction; `None` where locks are to be taken.
    #[inline(always)]
    pub fn enter<'a>(&self, mark: &'a Mark, fences: AsymmetricFence) -> Option<Entered<'a>> {
        // Relaxed: only the barrier orders it, against that of `announce`: either this rank sees the mode,
        // or the closing one this mark.
        mark.0.store(1, Ordering::Relaxed);
        fences.light_barrier();
        let entered = Entered(mark);
        // Relaxed: see above.
        (self.0.load(Ordering::Relaxed) == OPEN).then_some(entered)
    }

    /// Whether locks may be taken: no instruction is under way, and none will be.
    #[inline(always)]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: "atomic mode" edge, pairs with Release in `close`: what instructions have written is seen.
        self.0.load(Ordering::Acquire) == CLOSED
    }

    /// Announces that locks are to be taken. The caller then waits until all marks are clear,
    /// and calls [`close`](Self::close).
    pub fn announce(&self, fences: AsymmetricFence) {
        // Relaxed, both: the barrier orders it.
        let _ = self.0.compare_exchange(OPEN, CLOSING, Ordering::Relaxed, Ordering::Relaxed);
        fences.heavy_barrier();
    }

    /// All marks have been seen clear since [`announce`](Self::announce).
    pub fn close(&self) {
        // Release: "atomic mode" edge, pairs with Acquire in `is_closed`.
        self.0.store(CLOSED, Ordering::Release);
    }
}

impl Mark {
    /// Whether its rank performs no instruction now.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        // Acquire: "atomic mark" edge, pairs with Release in the drop of `Entered`.
        self.0.load(Ordering::Acquire) == 0
    }
}

/// The right to perform an instruction.
#[derive(Debug)]
pub struct Entered<'a>(&'a Mark);

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: "atomic mark" edge, pairs with Acquire in `is_clear`.
        self.0.0.store(0, Ordering::Release);
    }
}
