//! Which of several places a thread uses, so that threads seldom write to one cache line.

/// How many places there are. Threads beyond that share.
pub const LANES: usize = 8;

#[cfg(not(perusal_loom))]
mod imp {
    use super::LANES;
    use crate::sync::{AtomicUsize, Ordering};
    use core::cell::Cell;

    const NONE: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);

    std::thread_local! {
        static LANE: Cell<usize> = const { Cell::new(NONE) };
    }

    /// The calling thread's place, below [`LANES`]; the same as long as it lives.
    #[inline]
    pub fn lane() -> usize {
        match LANE.get() {
            NONE => choose(),
            lane => lane,
        }
    }

    #[cold]
    fn choose() -> usize {
        // Relaxed: a counter.
        let lane = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
        LANE.set(lane);
        lane
    }
}

#[cfg(perusal_loom)]
mod imp {
    /// A static cannot hold one of loom's atomics: all threads share.
    pub fn lane() -> usize {
        0
    }
}

pub use imp::lane;
