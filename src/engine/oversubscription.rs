//! What ranks learn about waiting where they outnumber CPUs:
//! whether spinning pays, each for itself, and whether yielding helps.
//!
//! Among ranks that wait for each other a yield helps: each has the CPU for a microsecond, and the awaited rank comes
//! soon. Besides a computing thread (of another program, or of a rank of this job that does not wait) it does not: that
//! has the CPU for a whole slice, and the kernel puts the thread that yielded behind it again and again. Then a block
//! is better, whose wake-up comes at once: all ranks of the job block for as long as the yield took (decision 47).

use crate::arch::clock::now;
use crate::engine::Engine;
use crate::engine::poll_history::PollHistory;
use crate::sync::{AtomicU32, Ordering, slots_owned, yield_now};
use crate::variables::JobShape;

/// Nanoseconds of a yield that is slow, without the turns of other ranks: less than the slice of a computing thread,
/// three or four milliseconds, and more than two ranks that talk by spinning keep a CPU.
const SLOW_YIELD: u64 = 1_500_000;
/// Nanoseconds that another rank on this CPU may take to send and receive what it has, before it waits again.
const TURN_OF_ANOTHER_RANK: u64 = 150_000;

/// Waits in a row that spinning did not end before it is given up, for each other rank on the CPU: what spinning saves
/// is the turns that they would have.
const VAIN: u32 = 2;
/// The most such waits.
const MOST_VAIN: u32 = 8;
/// Of so many waits one then spins all the same.
const RETRY: u32 = 32;

/// Ranks on a CPU that are many: there two ranks that talk, whom spinning serves, have few moments in which both run.
const MANY_RANKS: u32 = 16;
/// Waits that spinning must end from one yield to the next to have paid: each saves a yield, which takes less than a
/// microsecond of the CPU, and one that spinning does not end costs two or three.
const WORTH: u32 = 4;
/// The same where many ranks share a CPU: in a conversation with a rank that runs at the same time spinning ends
/// hundreds. If it ends a few only, they are messages that would have been there anyway after the yield that they did
/// not save, and ranks that have work to do have waited for the CPU meanwhile.
const WORTH_AMONG_MANY: u32 = 16;

/// Starts of operations in a row whose yield was in vain, after which they do not yield ([`RETRY`]).
const VAIN_STARTS: u32 = 2;

/// What this rank has learned about waits where ranks outnumber CPUs.
/// Relaxed throughout: hints of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(crate) struct Oversubscription {
    spinning: Payoff,
    /// Of yields at starts of operations in the background.
    starting: Payoff,
    reported: ReportedThreads,
    polling: PollHistory,
}

impl Oversubscription {
    /// The beginning, where `ranks_per_cpu` ranks share a CPU.
    pub fn new(ranks_per_cpu: u32) -> Self {
        let worth = if ranks_per_cpu < MANY_RANKS { WORTH } else { WORTH_AMONG_MANY };
        let most_vain = match ranks_per_cpu {
            // Only threads outnumber the CPUs, or the ranks do by a few.
            0 | 1 => MOST_VAIN,
            ranks => (VAIN * (ranks - 1)).min(MOST_VAIN),
        };
        Self {
            spinning: Payoff { worth, most_vain, ..Payoff::default() },
            starting: Payoff { worth: 1, most_vain: VAIN_STARTS, ..Payoff::default() },
            ..Self::default()
        }
    }

    /// Whether a wait may be over before the CPU is given away: then spinning pays. Where the awaited rank never runs
    /// at the same time, spinning only keeps it from running.
    #[inline(always)]
    pub fn spinning_pays(&self) -> bool {
        self.spinning.pays()
    }

    /// Spinning has ended a wait.
    #[inline(always)]
    pub fn spun_well(&self) {
        self.spinning.ended_a_wait();
    }

    /// A program has polled. After some polls in vain, or at once where spinning does not pay, it gives the CPU away.
    /// `by_progress`: what it asks for comes by progress, so that `happened` says whether it may be there.
    pub fn polled(&self, engine: &Engine, happened: bool, by_progress: bool) {
        let ranks = ranks_per_cpu(engine.config.shape());
        if happened {
            if self.polling.found(ranks) {
                self.spun_well();
            }
            return;
        }
        if self.polling.in_vain(self.spinning_pays(), by_progress.then_some(ranks)) {
            // Of the polls in vain that yield, one counts.
            if self.polling.note_yield() {
                self.spun_in_vain();
            }
            // A program that polls cannot block.
            yield_and_time(engine, now());
        }
    }

    /// Gives the CPU away once, for an operation that has begun and needs other ranks to go on: they may come
    /// meanwhile. Not if that has been in vain lately. Returns whether it did.
    pub fn yield_at_start(&self, engine: &Engine) -> bool {
        self.starting.pays() && self.yield_cpu(engine)
    }

    /// An operation needed other ranks when it began. `over`: they have come during the yield.
    pub fn note_start(&self, over: bool) {
        if over {
            self.starting.ended_a_wait();
        } else {
            self.starting.in_vain();
        }
    }

    /// A wait gives the CPU away, because spinning has not ended it. Returns what came before.
    pub fn spun_in_vain(&self) -> VainSpin {
        self.spinning.in_vain()
    }
}

/// A wait that spinning has not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VainSpin {
    /// The number of such waits, with this one, since spinning last was worth it.
    pub waits: u32,
    /// Whether spinning has ended a wait since the last such one.
    pub after_others: bool,
}

/// The number of ranks for each CPU that they may use, rounded down.
pub(crate) fn ranks_per_cpu(shape: &JobShape) -> u32 {
    shape.ranks / shape.usable_cpus.max(1)
}

/// Whether something that is done in the hope that it ends a wait does so: to spin before a yield, or to yield at the
/// start of an operation.
#[derive(Debug, Default)]
struct Payoff {
    /// Waits in a row that it did not end: where it is spinning, the awaited rank shares our CPU, or computes.
    vain: AtomicU32,
    /// Waits that it has ended since the last such one.
    ended: AtomicU32,
    /// How many of them show that it pays.
    worth: u32,
    /// Waits in a row that it did not end, after which it is given up.
    most_vain: u32,
}

impl Payoff {
    #[inline(always)]
    fn pays(&self) -> bool {
        let vain = self.vain.load(Ordering::Relaxed);
        vain < self.most_vain || vain.is_multiple_of(RETRY)
    }

    #[inline(always)]
    fn ended_a_wait(&self) {
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

    fn in_vain(&self) -> VainSpin {
        let waits = self.vain.load(Ordering::Relaxed).wrapping_add(1).max(1);
        let after_others = waits == 1 || self.ended.load(Ordering::Relaxed) != 0;
        self.vain.store(waits, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
        VainSpin { waits, after_others }
    }
}

/// The number of threads, besides its first, that this rank has reported to the job as users of MPI.
#[derive(Debug, Default)]
struct ReportedThreads(AtomicU32);

impl ReportedThreads {
    /// Sets the number. Returns by how much it has grown since it was reported, modulo 2³².
    fn set(&self, threads: u32) -> u32 {
        // Relaxed: a number of its own. Of two threads that report a change, each reports its part of it.
        if self.0.load(Ordering::Relaxed) == threads {
            return 0;
        }
        threads.wrapping_sub(self.0.swap(threads, Ordering::Relaxed))
    }
}

impl Oversubscription {
    /// Whether more threads of the job use MPI than there are CPUs.
    pub fn threads_outnumber_cpus(&self, engine: &Engine) -> bool {
        if !engine.shared {
            return false;
        }
        let (shape, mine) = (engine.config.shape(), slots_owned() as u32);
        // Where ranks are threads of one process, the thread slots count all of them.
        let others = if engine.job.are_threads() {
            0
        } else {
            shape.ranks + self.report_threads(engine, mine.max(1) - 1)
        };
        mine.max(others) > shape.usable_cpus
    }

    /// The rank's threads do not count any more.
    pub fn report_no_threads(&self, engine: &Engine) {
        if engine.shared {
            self.report_threads(engine, 0);
        }
    }

    /// Reports that the rank has `extra` threads besides its first. Returns how many all ranks have.
    fn report_threads(&self, engine: &Engine, extra: u32) -> u32 {
        engine.job.header().count_threads(self.reported.set(extra).cast_signed())
    }

    /// Gives the CPU to another thread, unless yields have been slow lately: then the caller had better block.
    /// Returns whether it did.
    pub fn yield_cpu(&self, engine: &Engine) -> bool {
        let now = now();
        let slow = engine.job.header().yields_are_slow(now);
        if !slow {
            yield_and_time(engine, now);
        }
        !slow
    }
}

/// Gives the CPU to another thread, at the time `before`,
/// and tells the job if that took longer than the turns of the other ranks explain.
fn yield_and_time(engine: &Engine, before: u64) {
    let yields = &engine.telemetry().yields;
    yields.add(1);
    yield_now();
    let after = now();
    let took = after.saturating_sub(before);
    let others = u64::from(ranks_per_cpu(engine.config.shape()));
    if took > SLOW_YIELD + TURN_OF_ANOTHER_RANK * others {
        engine.job.header().yield_was_slow(after, took);
        engine.core_migration.regret(after);
    }
    engine.core_migration.note_yield(engine, yields.get(), after);
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn spinning_that_is_always_in_vain_is_tried_now_and_then_only() {
        let rank = Oversubscription::new(1);
        let tried = (0..1000)
            .filter(|_| {
                let pays = rank.spinning_pays();
                rank.spun_in_vain();
                pays
            })
            .count();
        assert_eq!(tried, MOST_VAIN as usize + 1000_usize.div_ceil(32) - 1);
        (0..WORTH).for_each(|_| rank.spun_well());
        assert!(rank.spinning_pays());
    }

    #[test]
    fn starts_yield_until_that_has_been_in_vain_twice_and_again_once_it_was_not() {
        let rank = Oversubscription::new(4);
        let start = |over| {
            let yields = rank.starting.pays();
            rank.note_start(yields && over);
            yields
        };
        assert!((0..100).all(|_| start(true)));
        assert_eq!((0..320).filter(|_| start(false)).count(), 2 + 9, "each 32nd");
        assert!((0..RETRY).any(|_| start(true)));
        assert!((0..100).all(|_| start(true)));
    }

    #[test]
    fn a_vain_spin_tells_whether_spinning_has_ended_a_wait_before_it() {
        let rank = Oversubscription::new(1);
        let spin = || (rank.spun_in_vain().waits, rank.spun_in_vain().after_others);
        assert!(rank.spun_in_vain().after_others, "the first one");
        assert_eq!(spin(), (2, false));
        rank.spun_well();
        assert!(rank.spun_in_vain().after_others, "one of several that would be worth it");
        assert_eq!(spin(), (5, false));
        (0..WORTH).for_each(|_| rank.spun_well());
        let VainSpin { waits, after_others } = rank.spun_in_vain();
        assert_eq!((waits, after_others), (1, true), "spinning was worth it");
    }

    #[test]
    fn spinning_must_end_several_waits_to_pay_and_many_where_many_share_a_cpu() {
        for (ranks, ended, pays) in [
            (MANY_RANKS - 1, WORTH - 1, false),
            (MANY_RANKS - 1, WORTH, true),
            (MANY_RANKS, WORTH_AMONG_MANY - 1, false),
            (MANY_RANKS, WORTH_AMONG_MANY, true),
        ] {
            let rank = Oversubscription::new(ranks);
            for _ in 0..MOST_VAIN {
                (0..ended).for_each(|_| rank.spun_well());
                rank.spun_in_vain();
            }
            assert_eq!(rank.spinning_pays(), pays, "{ranks} {ended}");
        }
    }

    #[test]
    fn the_more_other_ranks_share_a_cpu_the_longer_spinning_is_tried() {
        for (ranks, most_vain) in [(1, MOST_VAIN), (2, VAIN), (3, 2 * VAIN), (5, MOST_VAIN), (20, MOST_VAIN)]
        {
            let rank = Oversubscription::new(ranks);
            let tried = (0..RETRY).take_while(|_| {
                let pays = rank.spinning_pays();
                rank.spun_in_vain();
                pays
            });
            assert_eq!(tried.count() as u32, most_vain, "{ranks}");
        }
    }
}
