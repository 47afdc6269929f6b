//! The store-load fence of two sides that are not equally busy:
//! a light barrier on the busy side, a heavy one on the other.

use super::{Ordering, compiler_fence, fence, membarrier};

/// Whether processes of another job, whose light barrier binds only the compiler, rely on this process's heavy one.
#[cfg(not(perusal_loom))]
static OTHERS_RELY: super::AtomicBool = super::AtomicBool::new(false);

/// Has every heavy barrier of this process serve processes of [`AsymmetricFence::Membarrier`], too.
/// They send nothing before that.
///
/// # Errors
///
/// Where the kernel, or a sandbox, has no `membarrier` for this process.
#[cfg(not(perusal_loom))]
pub fn serve_membarrier() -> std::io::Result<()> {
    if !membarrier::is_there() {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    // Relaxed: this process tells the others later that they may send.
    OTHERS_RELY.store(true, Ordering::Relaxed);
    Ok(())
}

#[cfg(not(perusal_loom))]
fn serve_others() {
    // Relaxed: see `serve_membarrier`.
    if OTHERS_RELY.load(Ordering::Relaxed) {
        membarrier::issue();
    }
}

/// In a model there is no kernel.
///
/// # Errors
///
/// Always.
#[cfg(perusal_loom)]
pub fn serve_membarrier() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(perusal_loom)]
fn serve_others() {}

/// Which instructions the light and the heavy barrier are. All ranks of a job agree on it.
///
/// Each side stores one word and then loads the word that the other side stores, with its barrier in between. Then at
/// least one of the two loads sees the other side's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsymmetricFence {
    /// Both barriers are a processor fence: right everywhere; a few nanoseconds a message. Cheaper than the other
    /// when ranks outnumber CPUs, because then somebody goes to sleep at nearly every message.
    Processor,
    /// The light barrier binds only the compiler; the heavy one is `membarrier(2)`, which interrupts all others.
    Membarrier,
}

impl AsymmetricFence {
    /// Prepares this process for the form that its job has chosen.
    ///
    /// # Errors
    ///
    /// What the kernel (or a sandbox) says when it refuses `membarrier` although the job counts on it.
    pub fn join(processor: bool) -> std::io::Result<Self> {
        if processor { Ok(Self::Processor) } else { membarrier::register().map(|()| Self::Membarrier) }
    }

    /// The busy side: between a store and a load, against [`Self::heavy_barrier`] on the other side.
    #[inline(always)]
    #[cfg_attr(perusal_loom, track_caller)]
    pub fn light_barrier(self) {
        match self {
            Self::Processor => fence(Ordering::SeqCst),
            // The processor fence comes from the other side's membarrier, which makes every running member of the
            // job execute one between two of its instructions; so only the compiler must keep the order.
            Self::Membarrier => compiler_fence(Ordering::SeqCst),
        }
    }

    /// The other side: between a store and a load, against [`Self::light_barrier`] on the busy side.
    #[inline]
    #[cfg_attr(perusal_loom, track_caller)]
    pub fn heavy_barrier(self) {
        match self {
            Self::Processor => {
                fence(Ordering::SeqCst);
                serve_others();
            }
            // In a model the kernel's barrier is none: what is shown with it holds without.
            Self::Membarrier if cfg!(perusal_loom) => {}
            Self::Membarrier => membarrier::issue(),
        }
    }
}
