//! Which of several places a thread uses, so that threads do not write to one cache line.
//!
//! # Rule
//!
//! - **Lane rule 1 (one owner).** A lane below [`OWN`] belongs to one thread of the process from the time it first asks until it ends;
//!   then another may have it, which sees all that the former owner did. So what lies in such a lane needs no lock, and is
//!   changed by plain loads and stores. Threads for which none is left share the lanes from [`OWN`] on.

use super::{AtomicU32, AtomicUsize, Ordering};

/// How many lanes have an owner. Few in a model, so that they run out.
pub const OWN: usize = if cfg!(perusal_loom) { 2 } else { 16 };
/// How many lanes there are.
pub const LANES: usize = OWN + 4;

const ALL: u32 = (1 << OWN) - 1;

/// Who owns which lane. (Apart from the threads of the process, so that a model can have some.)
#[derive(Debug)]
pub struct Lanes {
    /// A bit for each lane that has an owner.
    owned: AtomicU32,
    /// How many have been told to share.
    sharers: AtomicUsize,
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new()
    }
}

impl Lanes {
    /// Lanes that nobody owns.
    #[cfg(not(perusal_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { owned: AtomicU32::new(0), sharers: AtomicUsize::new(0) }
    }

    /// Lanes that nobody owns.
    #[cfg(perusal_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { owned: AtomicU32::new(0), sharers: AtomicUsize::new(0) }
    }

    /// The lowest lane without an owner; the caller's from now on, until it gives it back.
    pub fn claim(&self) -> Option<usize> {
        let lowest = |owned: u32| (owned != ALL).then(|| owned.trailing_ones());
        // Acquire: lane edge, pairs with Release in `give_back`. Relaxed where it fails: nothing is read then.
        let found = self.owned.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            lowest(owned).map(|lane| owned | 1 << lane)
        });
        Some(lowest(found.ok()?)? as usize)
    }

    /// Leaves a lane, which the caller owns, to whoever claims it next.
    pub fn give_back(&self, lane: usize) {
        // Release: lane edge, pairs with Acquire in `claim`: the next owner sees what we did.
        self.owned.fetch_and(!(1 << lane), Ordering::Release);
    }

    /// One of the lanes that have no owner, for who cannot have another.
    pub fn share(&self) -> usize {
        // Relaxed: a counter.
        OWN + self.sharers.fetch_add(1, Ordering::Relaxed) % (LANES - OWN)
    }

    /// How many lanes have an owner now.
    pub fn owners(&self) -> usize {
        // Relaxed: a sample.
        self.owned.load(Ordering::Relaxed).count_ones() as usize
    }
}

#[cfg(not(perusal_loom))]
mod imp {
    use super::{Lanes, OWN};
    use core::cell::Cell;

    const NONE: usize = usize::MAX;

    /// The process's.
    static OURS: Lanes = Lanes::new();

    std::thread_local! {
        // Apart from its end: this one has no destructor, so that asking costs a load.
        static LANE: Cell<usize> = const { Cell::new(NONE) };
        static TENURE: Tenure = const { Tenure(Cell::new(NONE)) };
    }

    /// Gives the lane back when the thread ends.
    struct Tenure(Cell<usize>);

    impl Drop for Tenure {
        fn drop(&mut self) {
            // Destructors that run later may still count.
            LANE.set(OWN);
            OURS.give_back(self.0.get());
        }
    }

    /// The calling thread's lane, below [`LANES`](super::LANES); the same as long as it lives.
    #[inline]
    pub fn lane() -> usize {
        match LANE.get() {
            NONE => choose(),
            lane => lane,
        }
    }

    /// How many threads of the process have a lane of their own: those that have used MPI and live, if they are not more than [`OWN`].
    pub fn owners() -> usize {
        OURS.owners()
    }

    #[cold]
    fn choose() -> usize {
        let lane = OURS.claim().and_then(keep).unwrap_or_else(|| OURS.share());
        LANE.set(lane);
        lane
    }

    /// Where thread-local destructors run already, a lane is not to be had: it would not be given back.
    fn keep(lane: usize) -> Option<usize> {
        let kept = TENURE.try_with(|tenure| tenure.0.set(lane)).is_ok();
        if !kept {
            OURS.give_back(lane);
        }
        kept.then_some(lane)
    }

    #[cfg(test)]
    mod tests {
        use super::super::LANES;
        use super::*;

        #[test]
        fn threads_that_live_at_the_same_time_have_lanes_of_their_own_or_shared_ones() {
            let all = std::sync::Barrier::new(LANES);
            let lanes: Vec<usize> = std::thread::scope(|scope| {
                let one = || {
                    let lane = lane();
                    all.wait();
                    assert_eq!(lane, super::lane(), "it stays");
                    lane
                };
                let threads: Vec<_> = (0..LANES).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic in here")).collect()
            });
            let mut own: Vec<usize> = lanes.iter().copied().filter(|&lane| lane < OWN).collect();
            own.sort_unstable();
            own.dedup();
            let shared = lanes.iter().filter(|&&lane| (OWN..LANES).contains(&lane)).count();
            assert_eq!(own.len() + shared, LANES, "{lanes:?}");
        }

        #[test]
        fn a_lane_is_had_again_when_its_owner_has_ended() {
            for _ in 0..4 * OWN {
                let lane = std::thread::spawn(lane).join().expect("no panic in here");
                // Tests that run beside this one have lanes too, but hardly all of them for all of this time.
                assert!(lane < LANES);
            }
            assert!(
                (0..100 * OWN).any(|_| std::thread::spawn(lane).join().expect("no panic in here") < OWN),
                "lanes are not given back"
            );
        }
    }
}

#[cfg(perusal_loom)]
mod imp {
    /// A static cannot hold one of loom's atomics: all threads share. (`loom-tests/lane.rs` claims lanes without this.)
    pub fn lane() -> usize {
        super::OWN
    }
    /// So nobody owns a lane.
    pub fn owners() -> usize {
        0
    }
}

pub use imp::{lane, owners};
