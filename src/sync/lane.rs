//! Which of several places a thread uses, so that threads do not write to one cache line.
//!
//! # Rule
//!
//! - **Lane rule 1 (one owner).** A lane below [`OWN`] belongs to one thread of the process from the time it first asks until it ends;
//!   then another may have it, which sees all that the former owner did. So what lies in such a lane needs no lock, and is
//!   changed by plain loads and stores. Threads for which none is left share the lanes from [`OWN`] on.

/// How many lanes have an owner.
pub const OWN: usize = 16;
/// How many lanes there are.
pub const LANES: usize = OWN + 4;

#[cfg(not(perusal_loom))]
mod imp {
    use super::{LANES, OWN};
    use crate::sync::{AtomicU32, AtomicUsize, Ordering};
    use core::cell::Cell;

    const NONE: usize = usize::MAX;
    const ALL: u32 = (1 << OWN) - 1;

    /// A bit for each lane that has an owner.
    static OWNED: AtomicU32 = AtomicU32::new(0);
    static NEXT: AtomicUsize = AtomicUsize::new(0);

    std::thread_local! {
        // Apart from its end: this one has no destructor, so that asking costs a load.
        static LANE: Cell<usize> = const { Cell::new(NONE) };
        static TENURE: Tenure = const { Tenure(Cell::new(NONE)) };
    }

    /// Gives the lane back when the thread ends.
    struct Tenure(Cell<usize>);

    impl Drop for Tenure {
        fn drop(&mut self) {
            let lane = self.0.get();
            // Destructors that run later may still count.
            LANE.set(OWN);
            // Release: lane edge, pairs with Acquire in `claim`: the next owner sees what we did.
            OWNED.fetch_and(!(1 << lane), Ordering::Release);
        }
    }

    /// The calling thread's lane, below [`LANES`]; the same as long as it lives.
    #[inline]
    pub fn lane() -> usize {
        match LANE.get() {
            NONE => choose(),
            lane => lane,
        }
    }

    /// How many threads of the process have a lane of their own: those that have used MPI and live, if they are not more than [`OWN`].
    pub fn owners() -> usize {
        // Relaxed: a sample.
        OWNED.load(Ordering::Relaxed).count_ones() as usize
    }

    #[cold]
    fn choose() -> usize {
        let lane = claim().unwrap_or_else(|| {
            // Relaxed: a counter.
            OWN + NEXT.fetch_add(1, Ordering::Relaxed) % (LANES - OWN)
        });
        LANE.set(lane);
        lane
    }

    /// The lowest lane without an owner, for this thread.
    fn claim() -> Option<usize> {
        let lowest = |owned: u32| (owned != ALL).then(|| owned.trailing_ones());
        // Acquire: lane edge, pairs with Release in `Tenure::drop`. Relaxed where it fails: nothing is read then.
        let found = OWNED.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            lowest(owned).map(|lane| owned | 1 << lane)
        });
        let lane = lowest(found.ok()?)? as usize;
        // Where thread-local destructors run already, the lane is not to be had: it would not be given back.
        if TENURE.try_with(|tenure| tenure.0.set(lane)).is_err() {
            OWNED.fetch_and(!(1 << lane), Ordering::Release);
            return None;
        }
        Some(lane)
    }

    #[cfg(test)]
    mod tests {
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
    /// A static cannot hold one of loom's atomics: all threads share.
    pub fn lane() -> usize {
        super::OWN
    }
    /// So nobody owns a lane.
    pub fn owners() -> usize {
        0
    }
}

pub use imp::{lane, owners};
