//! Whether giving the CPU away helps.
//!
//! Among ranks that wait for each other it does: each has the CPU for a microsecond, and who is awaited comes soon. Beside something
//! that computes (another program, a rank of this job that is not waiting) it does not: that has the CPU for a whole slice, and
//! the kernel puts who gave it away behind it again and again. Then a sleep is better, whose waking comes at once.

use crate::arch::clock::now;
use crate::engine::Engine;
use crate::sync::{AtomicU32, Ordering, yield_now};
use crate::variables::JobShape;

/// Nanoseconds that come and go with a yield on a quiet machine, generously, beside the time that other ranks need.
const QUICK: u64 = 200_000;
/// Nanoseconds that another rank on this CPU may take to send and receive what it has, before it waits again.
/// With a few ranks on a CPU their turns are shorter than the slice of something that computes, which is about three
/// milliseconds; with many the slice is a small part of the turn, and sleeping would cost more.
const OTHERS: u64 = 150_000;
/// Most yields that are left out after slow ones.
const MOST: u32 = 255;

/// Times in a row that polling was of no use before it is given up.
const VAIN: u32 = 8;
/// How often it is then tried all the same.
const TRIED: u32 = 32;

/// Ranks on a CPU that are many: there a conversation of two, which polling serves, has few moments in which both run.
const MANY: u32 = 16;
/// Waits that polling must end from one yield to the next to have been of use where many ranks share a CPU: in a conversation with one
/// that runs at the same time it ends hundreds. If it ends a few only, they are messages that would have been there anyway after the
/// yield that they did not save, and ranks that have work to do have waited for the CPU meanwhile.
const WORTH: u32 = 16;

/// What this rank has found out.
#[derive(Debug, Default)]
pub(crate) struct Yielding {
    /// Yields in a row before which polling was of no use: who is awaited shares our CPU, or computes.
    vain: AtomicU32,
    /// Waits that polling has ended since the last yield.
    ended: AtomicU32,
    /// How many those must be.
    worth: u32,
    /// Yields to be left out.
    skip: AtomicU32,
    /// How many were left out last time.
    penalty: AtomicU32,
}

/// How many ranks there are for each CPU that they may use, rounded down.
pub(crate) fn sharers(place: &JobShape) -> u32 {
    place.ranks / place.usable_cpus.max(1)
}

impl Yielding {
    /// What a rank has found out that has just begun, where so many ranks share a CPU.
    pub fn new(sharers: u32) -> Self {
        Self { worth: if sharers < MANY { 1 } else { WORTH }, ..Self::default() }
    }

    /// Whether a wait may be over before the CPU is given away: then polling pays. Where who is awaited never runs at the same
    /// time, polling only keeps it from running.
    #[inline(always)]
    pub fn polling_pays(&self) -> bool {
        // Relaxed, here and below: hints of one rank to itself.
        let vain = self.vain.load(Ordering::Relaxed);
        vain < VAIN || vain.is_multiple_of(TRIED)
    }

    /// Polling has ended a wait.
    #[inline(always)]
    pub fn polled_well(&self) {
        if self.vain.load(Ordering::Relaxed) != 0 {
            self.count_ended();
        }
    }

    #[inline(never)]
    fn count_ended(&self) {
        let ended = self.ended.load(Ordering::Relaxed) + 1;
        if ended >= self.worth {
            self.vain.store(0, Ordering::Relaxed);
        }
        self.ended.store(if ended >= self.worth { 0 } else { ended }, Ordering::Relaxed);
    }

    /// The CPU is given away, for polling has not ended the wait. How often in a row it has been of no use.
    pub(super) fn polled_in_vain(&self) -> u32 {
        let vain = self.vain.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.vain.store(vain, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
        vain
    }

    /// Whether to yield now. After slow ones, only now and then, to see whether it has become better.
    fn is_worth_it(&self) -> bool {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
        }
        skip == 0
    }

    /// A yield took that many nanoseconds, where `usual` would have been good.
    fn took(&self, nanoseconds: u64, usual: u64) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        if nanoseconds > usual {
            let more = (2 * penalty + 1).min(MOST);
            self.penalty.store(more, Ordering::Relaxed);
            self.skip.store(more, Ordering::Relaxed);
        } else if penalty > 0 {
            self.penalty.store(penalty / 2, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Gives the CPU to somebody else, unless that has been found not to help: then the caller had better sleep.
    pub(super) fn give_way(&self) -> bool {
        if !self.yielding.is_worth_it() {
            return false;
        }
        self.telemetry().yields.add(1);
        let before = now();
        yield_now();
        let others = u64::from(sharers(self.config.shape()));
        self.yielding.took(now().saturating_sub(before), QUICK + OTHERS * others);
        true
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    /// How many of so many asked-for yields are made if each takes that long.
    fn made(yielding: &Yielding, asked: u32, nanoseconds: u64) -> u32 {
        let worth = (0..asked).filter(|_| {
            let worth = yielding.is_worth_it();
            if worth {
                yielding.took(nanoseconds, QUICK);
            }
            worth
        });
        worth.count() as u32
    }

    #[test]
    fn quick_yields_are_all_made_and_slow_ones_hardly() {
        let yielding = Yielding::new(1);
        assert_eq!(made(&yielding, 1000, QUICK), 1000);
        // After the first one 1 is left out, then 3, 7 … up to 255.
        assert_eq!(made(&yielding, 1000, QUICK + 1), 10);
    }

    #[test]
    fn polling_that_is_always_in_vain_is_tried_now_and_then_only() {
        let yielding = Yielding::new(1);
        let tried = (0..1000)
            .filter(|_| {
                let pays = yielding.polling_pays();
                yielding.polled_in_vain();
                pays
            })
            .count();
        assert_eq!(tried, 8 + 1000_usize.div_ceil(32) - 1);
        yielding.polled_well();
        assert!(yielding.polling_pays());
    }

    #[test]
    fn where_many_share_a_cpu_polling_must_end_many_waits_to_be_of_use() {
        for (sharers, ended, pays) in [(MANY, WORTH - 1, false), (MANY, WORTH, true), (MANY - 1, 1, true)] {
            let yielding = Yielding::new(sharers);
            for _ in 0..VAIN {
                (0..ended).for_each(|_| yielding.polled_well());
                yielding.polled_in_vain();
            }
            assert_eq!(yielding.polling_pays(), pays, "{sharers} {ended}");
        }
    }

    #[test]
    fn when_yields_have_become_quick_again_they_are_made() {
        let yielding = Yielding::new(1);
        made(&yielding, 1000, QUICK + 1);
        made(&yielding, MOST + 1, 1000);
        assert_eq!(made(&yielding, 100, 1000), 100);
    }
}
