//! The yields of a caller that gives its CPU away after each of its polls, whoever waits for the CPU: MPICH does.
//!
//! `libperusal-yield.so` (`preload/yield.c`), where it is preloaded, leaves such a yield out when the provider has said
//! after the poll that nobody is known to need the CPU.

use perusal::internals::sync::{AtomicU32, Ordering};

/// The word of the preloaded library, if there is one.
#[derive(Debug)]
pub struct Yields(Option<&'static AtomicU32>);

impl Yields {
    /// Looks for the library in this process.
    pub fn find() -> Self {
        // SAFETY: a plain call. The library defines the name as an aligned word, which lives as long as the process, as
        // everything preloaded does.
        Self(unsafe {
            let word = libc::dlsym(libc::RTLD_DEFAULT, c"perusal_skip_yield".as_ptr());
            word.cast::<AtomicU32>().as_ref()
        })
    }

    /// Says whether the yield that may follow this poll is for nothing.
    #[inline(always)]
    pub fn are_for_nothing(&self, they_are: bool) {
        if let Some(word) = self.0 {
            // Relaxed: a hint, and of this thread to itself in most programs.
            word.store(u32::from(they_are), Ordering::Relaxed);
        }
    }
}
