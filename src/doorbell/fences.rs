//! The one place with store-load fences, and who pays for them.

use crate::error::{Error, Result};
use crate::sync::{Ordering, compiler_fence, fence, membarrier};

/// Who issues the full fence of a store-load pair (bell rules 1 and 2). All ranks of a job agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fences {
    /// Both sides issue a processor fence: right everywhere; a few nanoseconds a message. Cheaper than the other
    /// when ranks outnumber CPUs, because then somebody goes to sleep at nearly every message.
    BothSides,
    /// The side that is about to sleep interrupts all others with `membarrier(2)`; a message costs nothing.
    Sleeper,
}

impl Fences {
    /// Prepares this process for the job's choice.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] when the kernel (or a sandbox) refuses `membarrier` although the job counts on it.
    pub fn join(both_sides: bool) -> Result<Self> {
        if both_sides {
            return Ok(Self::BothSides);
        }
        membarrier::register().map(|()| Self::Sleeper).map_err(|error| {
            Error::Other(format!(
                "membarrier(2): {error}; set PERUSAL_SENDER_FENCES=1 for the whole job to do without it"
            ))
        })
    }

    /// Side A: between a store and a load that side B orders with [`Self::heavy`].
    #[inline(always)]
    pub fn light(self) {
        match self {
            Self::BothSides => fence(Ordering::SeqCst),
            // The processor fence comes from the other side's membarrier, which makes every running member of the
            // job execute one between two of its instructions; so only the compiler must keep the order.
            Self::Sleeper => compiler_fence(Ordering::SeqCst),
        }
    }

    /// Side B: between a store and a load that side A orders with [`Self::light`].
    #[inline]
    pub fn heavy(self) {
        match self {
            Self::BothSides => fence(Ordering::SeqCst),
            Self::Sleeper => membarrier::issue(),
        }
    }
}
