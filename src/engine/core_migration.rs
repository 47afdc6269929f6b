//! Core migration: of two ranks that talk and share a CPU, one moves to another CPU, where ranks outnumber CPUs.
//!
//! On one CPU every message between them costs a context switch; on two, the transfer of a line, for as long as both
//! have their CPU. The kernel does not know which ranks talk, and leaves ranks that never sleep where they are. So a
//! rank that waits in vain publishes where it runs and for which rank it waits
//! ([`LastYield`](crate::shm::telemetry::LastYield)). When two ranks wait for each other on one CPU, again and again
//! and for no other rank, the higher one moves to another CPU that it may use. It is put there, and not bound there, so
//! its threads and children inherit nothing, and the kernel goes on balancing.
//!
//! Ranks that wait for several others in turn stay: wherever they run, all of them need their turn on a CPU anyway.
//! But each CPU should have as many of them as the others, so ranks begin on the CPUs in turn: of four that start at
//! once the kernel puts three on one of two CPUs in some jobs, and leaves them there. And ranks whose numbers follow
//! each other had better be apart, for programs have them talk, or be the root, one after the other. The kernel mixes
//! them within a second, whenever something else has run for a moment. So a rank that finds itself elsewhere, again and
//! again, goes back.

use crate::arch::clock::now;
use crate::engine::Engine;
use crate::shm::cpus;
use crate::shm::telemetry::Wait;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::variables::VariableId;

/// Waits in vain from one check of the partner's CPU to the next.
const WAITS_PER_CHECK: u32 = 8;
/// Checks in a row that must find the same partner on our CPU:
/// a quarter of a millisecond at least, at a context switch for each wait.
const EVIDENCE: u32 = 16;
/// Nanoseconds from one move to the next, at least: four slices of the scheduler.
const LEAST_GAP: u64 = 12_000_000;
/// The gap doubles up to this while moves follow each other closely: something brings the two together again each time.
const MOST_GAP: u64 = 3_000_000_000;

/// What this rank knows of the ranks with which it shares a core.
/// Relaxed throughout: notes of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(crate) struct CoreMigration {
    /// One more than the partner of the last check; 0 for none.
    partner: AtomicU32,
    /// Checks in a row that have found it on our CPU, waiting for us.
    found: AtomicU32,
    /// The time before which there is no other move, in nanoseconds of the clock.
    not_before: AtomicU64,
    /// The gap that led to it.
    gap: AtomicU64,
    /// One more than the CPU where the rank has begun, or to which it has moved away from a partner; 0 for none.
    home: AtomicU32,
    /// Checks in a row that have found the rank elsewhere.
    away: AtomicU32,
}

impl Engine {
    /// A wait gives the CPU away for the first time, because spinning has not ended it. Of some of these, one looks
    /// whether the awaited rank shares the CPU.
    pub(crate) fn note_vain_spin(&self, why: &dyn Fn() -> Option<Wait>) {
        if self.oversubscription.spun_in_vain().is_multiple_of(WAITS_PER_CHECK) {
            self.core_migration.consider(self, why);
        }
    }
}

impl CoreMigration {
    /// The rank has waited in vain for some time: publishes where it runs, and moves if the awaited rank runs there
    /// too, or if the rank is not where it belongs.
    #[cold]
    pub fn consider(&self, engine: &Engine, why: &dyn Fn() -> Option<Wait>) {
        if !migrates(engine) {
            return;
        }
        let Some(here) = cpus::current() else { return };
        let awaited =
            why().and_then(|wait| wait.peer).filter(|&peer| peer < engine.places() && peer != engine.rank);
        engine.telemetry().last_yield.set(here, awaited);
        let together = awaited.filter(|&peer| {
            let theirs = &engine.job.telemetry(peer).last_yield;
            theirs.cpu() == Some(here) && theirs.partner() == Some(engine.rank)
        });
        let enough = self.note_check(together);
        let leaves = enough && together.is_some_and(|peer| peer < engine.rank);
        let home = self.note_place(here).filter(|_| !leaves);
        if (leaves || home.is_some()) && self.may_move(now()) {
            self.move_from(engine, here, home);
        }
    }

    /// Takes where a check has found the rank. Returns its home, if it has been elsewhere for long.
    fn note_place(&self, here: u32) -> Option<u32> {
        let home = self.home.load(Ordering::Relaxed).checked_sub(1)?;
        let away = if home == here { 0 } else { self.away.load(Ordering::Relaxed) + 1 };
        self.away.store(away % EVIDENCE, Ordering::Relaxed);
        (away == EVIDENCE).then_some(home)
    }

    /// Moves the rank from the CPU `here` to its home, or makes a quieter one its home, if there is one.
    #[cold]
    fn move_from(&self, engine: &Engine, here: u32, home: Option<u32>) {
        let allowed = cpus::affinity();
        let others = (0..engine.job.places_in_use()).filter(|&rank| rank != engine.rank);
        let occupied = others.filter_map(|rank| engine.job.telemetry(rank).last_yield.cpu());
        let occupied = occupied.map(|cpu| cpu as usize);
        let target = match home.map(|home| home as usize) {
            Some(home) => {
                Some(home).filter(|_| allowed.contains(&home) && has_room(home, here as usize, occupied))
            }
            None => quietest(&allowed, here as usize, occupied),
        };
        // Where there is none, or the system forbids it, the next attempt comes after a gap that grows.
        let Some(cpu) = target.filter(|&cpu| cpus::visit(cpu, &allowed)) else { return };
        self.home.store(cpu as u32 + 1, Ordering::Relaxed);
        let telemetry = engine.telemetry();
        telemetry.last_yield.set(cpu as u32, telemetry.last_yield.partner());
        telemetry.moves.add(1);
        engine.emit_move(cpu as u32);
    }

    /// Takes the outcome of a check: `partner` is on our CPU and waits for us, or nobody (`None`).
    /// Returns whether that is evidence enough.
    fn note_check(&self, partner: Option<u32>) -> bool {
        let known = self.partner.load(Ordering::Relaxed);
        let partner = partner.map_or(0, |partner| partner + 1);
        let found = match partner {
            0 => 0,
            _ if partner == known => self.found.load(Ordering::Relaxed) + 1,
            _ => 1,
        };
        self.partner.store(partner, Ordering::Relaxed);
        self.found.store(found % EVIDENCE, Ordering::Relaxed);
        found == EVIDENCE
    }

    /// Whether the rank may move at this time. If so, determines when it may again.
    fn may_move(&self, now: u64) -> bool {
        let (gap, not_before) = (self.gap.load(Ordering::Relaxed), self.not_before.load(Ordering::Relaxed));
        if now < not_before {
            return false;
        }
        let gap = if now - not_before < 8 * gap { (2 * gap).min(MOST_GAP) } else { LEAST_GAP };
        self.gap.store(gap, Ordering::Relaxed);
        self.not_before.store(now + gap, Ordering::Relaxed);
        true
    }
}

/// Returns, of the CPUs in `allowed` other than `here`, the one on which the fewest ranks run; of several the nearest
/// by number, which most likely shares caches. `occupied`: the CPU of each rank.
fn quietest(allowed: &[usize], here: usize, occupied: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let others = allowed.iter().copied().filter(|&cpu| cpu != here);
    others
        .min_by_key(|&cpu| (occupied.clone().filter(|&occupied| occupied == cpu).count(), cpu.abs_diff(here)))
}

/// Whether a rank may go home from the CPU `here`: at most one rank more runs there. That one perhaps belongs here, and
/// goes next. `occupied`: the CPUs of the others.
fn has_room(home: usize, here: usize, occupied: impl Iterator<Item = usize>) -> bool {
    let more = |sum: i64, cpu| sum + i64::from(cpu == home) - i64::from(cpu == here);
    occupied.fold(0, more) <= 1
}

/// Whether the ranks of `engine`'s job migrate: not where the user has bound them.
fn migrates(engine: &Engine) -> bool {
    let bound = engine.config.text(VariableId::BindTo);
    engine.config.number(VariableId::KeepApart) == 1
        && (bound.is_empty() || bound.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("none")))
}

/// The CPU on which a rank begins.
fn first_cpu(allowed: &[usize], rank: u32) -> Option<usize> {
    (allowed.len() > 1).then(|| allowed[rank as usize % allowed.len()])
}

/// A rank begins: on its CPU, where ranks outnumber CPUs and migrate.
pub(super) fn begin(engine: &Engine) {
    if !engine.config.shape().is_oversubscribed() || engine.job.are_threads() || !migrates(engine) {
        return;
    }
    let allowed = cpus::affinity();
    // Where the system forbids it, the rank stays where it is.
    if let Some(cpu) = first_cpu(&allowed, engine.rank).filter(|&cpu| cpus::visit(cpu, &allowed)) {
        engine.core_migration.home.store(cpu as u32 + 1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn ranks_begin_on_the_cpus_in_turn() {
        let begin = |allowed: &[usize]| (0..5).map(|rank| first_cpu(allowed, rank)).collect::<Vec<_>>();
        assert_eq!(begin(&[1, 4]), [1, 4, 1, 4, 1].map(Some));
        assert_eq!(begin(&[3]), [None; 5], "there is no choice");
    }

    #[test]
    fn only_the_same_partner_again_and_again_is_evidence() {
        let core_migration = CoreMigration::default();
        let looks = |partner, n| (0..n).filter(|_| core_migration.note_check(partner)).count();
        assert_eq!(looks(Some(3), EVIDENCE - 1), 0);
        assert_eq!(looks(None, 1), 0, "the partner ran elsewhere");
        assert_eq!(looks(Some(3), EVIDENCE - 1), 0);
        assert_eq!(looks(Some(4), EVIDENCE - 1), 0, "another partner");
        assert_eq!(looks(Some(4), 1), 1);
        assert_eq!(looks(Some(4), 3 * EVIDENCE), 3, "each time anew");
    }

    #[test]
    fn a_rank_goes_home_when_it_is_elsewhere_again_and_again() {
        let core_migration = CoreMigration::default();
        let looks = |here, n| (0..n).filter_map(|_| core_migration.note_place(here)).collect::<Vec<_>>();
        assert_eq!(looks(7, 3 * EVIDENCE), [], "it has no home");
        core_migration.home.store(1 + 2, Ordering::Relaxed);
        assert_eq!(looks(7, EVIDENCE - 1), []);
        assert_eq!(looks(2, 1), []);
        assert_eq!(looks(7, EVIDENCE - 1), [], "it has been at home meanwhile");
        assert_eq!(looks(7, 1 + EVIDENCE), [2, 2], "each time anew");
    }

    #[test]
    fn a_rank_goes_home_unless_many_more_are_there() {
        for (others, may) in
            [(&[0, 1, 1][..], true), (&[1, 1], false), (&[0, 0, 1], true), (&[5, 1], true), (&[], true)]
        {
            assert_eq!(has_room(1, 0, others.iter().copied()), may, "{others:?}");
        }
    }

    #[test]
    fn moves_that_follow_each_other_become_rarer_and_rare_ones_do_not() {
        let core_migration = CoreMigration::default();
        let mut moves = vec![];
        for now in (0..20_000_000_000).step_by(1_000_000) {
            if core_migration.may_move(now) {
                moves.push(now / 1_000_000);
            }
        }
        assert_eq!(moves[..5], [0, 12, 36, 84, 180]);
        assert_eq!(moves.len(), 9 + 5, "up to one in three seconds: {moves:?}");
        let later = 200_000_000_000;
        assert!(core_migration.may_move(later) && core_migration.may_move(later + LEAST_GAP));
    }

    #[test]
    fn the_cpu_with_the_fewest_ranks_is_taken_and_never_the_own_or_one_that_is_not_allowed() {
        let occupied = [0, 0, 1, 1, 2, 7].into_iter();
        assert_eq!(quietest(&[0, 1, 2], 0, occupied.clone()), Some(2));
        assert_eq!(quietest(&[0, 1], 0, occupied.clone()), Some(1), "although as many run there as here");
        assert_eq!(quietest(&[0, 1, 2, 3, 6], 2, occupied.clone()), Some(3));
        assert_eq!(quietest(&[0], 0, occupied.clone()), None);
        assert_eq!(quietest(&[5], 0, occupied), Some(5));
    }
}
