//! When a program that polls gives the CPU away, where ranks outnumber CPUs.
//!
//! Ranks that wait for each other by polling give it away at every poll in vain: the awaited rank needs it. A program
//! that works between its polls would lose its CPU at each step. So yields behind which nothing is there count, and
//! ever more polls precede the next one.

use crate::sync::{AtomicU32, Ordering};

/// Polls in vain of a program before it gives the CPU away: about a microsecond, as a wait spins.
const POLLS: u32 = 16;
/// The most such polls, of all ranks on a CPU together, where yields are in vain, too.
const MOST_POLLS: u32 = 1024;
/// Yields in vain in a row, for each rank on the CPU, after which ever more polls precede one:
/// all others have had their turn some times.
const TURNS_IN_VAIN: u32 = 4;
/// Yields in vain that one makes good behind which something was there, for each rank on the CPU.
const HELPFUL: u32 = 4;

/// What a program that polls has found, and whether it was there because the CPU had been given away.
///
/// Relaxed throughout: hints of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(super) struct PollHistory {
    /// Polls in vain, one after the other; [`POLLS`] + 1 once one of them has given the CPU away.
    polls: AtomicU32,
    /// Polls in vain since the CPU was given away.
    kept: AtomicU32,
    /// Yields behind which there was nothing either, less what those that helped count for. Many: the program has work
    /// between its polls, or waits for long.
    vain: AtomicU32,
}

impl PollHistory {
    /// A poll has found something. Returns whether it did before a yield was due.
    pub fn found(&self, ranks_per_cpu: u32) -> bool {
        let polls = self.polls.load(Ordering::Relaxed);
        if polls > POLLS && self.kept.load(Ordering::Relaxed) == 0 {
            let vain = self.vain.load(Ordering::Relaxed);
            self.vain.store(vain.saturating_sub(HELPFUL * ranks_per_cpu.max(1)), Ordering::Relaxed);
        }
        self.polls.store(0, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
        polls < POLLS
    }

    /// A poll was in vain. Returns whether the CPU should be given away.
    /// `learns_among`: the ranks on a CPU, if yields in vain count.
    pub fn in_vain(&self, spinning_pays: bool, learns_among: Option<u32>) -> bool {
        let (polls, kept) = (self.polls.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        let has_yielded = polls > POLLS;
        if has_yielded
            && kept == 0
            && let Some(ranks_per_cpu) = learns_among
        {
            let vain = self.vain.load(Ordering::Relaxed) + 1;
            self.vain.store(
                vain.min(TURNS_IN_VAIN * ranks_per_cpu.max(1) + MOST_POLLS.ilog2()),
                Ordering::Relaxed,
            );
        }
        self.kept.store(kept.saturating_add(1), Ordering::Relaxed);
        if !has_yielded {
            self.polls.store((polls + 1).min(POLLS), Ordering::Relaxed);
        }
        let has_spun = has_yielded || polls >= POLLS || !spinning_pays;
        has_spun && learns_among.is_none_or(|ranks| kept >= self.polls_between_yields(ranks))
    }

    /// Polls in vain from one yield to the next.
    fn polls_between_yields(&self, ranks_per_cpu: u32) -> u32 {
        let ranks = ranks_per_cpu.max(1);
        match self.vain.load(Ordering::Relaxed).saturating_sub(TURNS_IN_VAIN * ranks) {
            0 => 0,
            more => (1 << more).min(MOST_POLLS / ranks),
        }
    }

    /// The CPU is given away. Returns whether it is the first time since something was found.
    pub fn note_yield(&self) -> bool {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(POLLS + 1, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
        polls <= POLLS
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    /// How many of so many polls give the CPU away, where `found` says of each poll, from the polls since the last
    /// yield and the number of that yield, whether something is there.
    fn given_away(ranks_per_cpu: u32, polls: u32, found: impl Fn(u32, u32) -> bool) -> u32 {
        let history = PollHistory::default();
        let (mut since, mut yields) = (0, 0);
        for _ in 0..polls {
            if found(since, yields) {
                history.found(ranks_per_cpu);
                since = 1;
            } else if history.in_vain(false, Some(ranks_per_cpu)) {
                _ = history.note_yield();
                (since, yields) = (0, yields + 1);
            } else {
                since += 1;
            }
        }
        yields
    }

    #[test]
    fn ranks_that_wait_for_each_other_by_polling_give_the_cpu_away_at_every_poll() {
        for ranks in [1, 2, 8, 32] {
            // Each time all others on the CPU have had it twice the message is there.
            let yields = given_away(ranks, 10_000, |since, yields| {
                since == 0 && yields % (2 * ranks) == 0 && yields > 0
            });
            assert!(yields > 4_900, "{ranks}: {yields}");
        }
    }

    #[test]
    fn a_program_that_finds_nothing_for_long_gives_the_cpu_away_now_and_then() {
        for ranks in [1, 2, 8, 32] {
            let yields = given_away(ranks, 100_000, |_, _| false);
            let most = TURNS_IN_VAIN * ranks + MOST_POLLS.ilog2() + 100_000 / (MOST_POLLS / ranks);
            assert!((1..=most).contains(&yields), "{ranks}: {yields}");
        }
    }

    #[test]
    fn a_program_that_works_between_its_polls_keeps_the_cpu_for_some_of_them() {
        // While it has the CPU a message comes with every 64th poll;
        // behind a yield there is one if the others have had time to send it.
        let history = PollHistory::default();
        let (mut yields, mut since_message, mut since_yield) = (0, 0, 0);
        for _ in 0..100_000 {
            if since_message >= 64 {
                history.found(2);
                since_message = 0;
            } else if history.in_vain(false, Some(2)) {
                _ = history.note_yield();
                yields += 1;
                since_message += since_yield;
                since_yield = 0;
            } else {
                since_message += 1;
                since_yield += 1;
            }
        }
        assert!(yields < 20_000, "{yields}");
    }
}
