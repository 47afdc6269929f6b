//! Core migration: of two ranks that talk and share a CPU, one moves to another CPU, where ranks outnumber CPUs.
//!
//! On one CPU every message between them costs a context switch; on two, the transfer of a line, for as long as both
//! have their CPU. The kernel does not know which ranks talk, and leaves ranks that never sleep where they are. So a
//! rank that waits in vain publishes where it runs and for which rank it waits
//! ([`LastYield`](crate::shm::telemetry::LastYield)). When two ranks wait for each other on one CPU, again and again
//! and for no other rank, the higher one moves to another CPU that it may use, for some seconds. It is put there, and
//! not bound there, so its threads and children inherit nothing, and the kernel goes on balancing.
//!
//! Ranks that wait for several others in turn stay: wherever they run, all of them need their turn on a CPU anyway.
//! (Whether they had better share a CPU with their neighbours, `neighborhood` says: then that is where they go.)
//! But each CPU should have as many of them as the others, so ranks begin on the CPUs in turn: of four that start at
//! once the kernel puts three on one of two CPUs in some jobs, and leaves them there. And ranks whose numbers follow
//! each other had better be apart, for programs have them talk, or be the root, one after the other. The kernel mixes
//! them whenever something else has run for a moment. So a rank that finds itself elsewhere, again and again as it
//! yields, goes back; and seldom, where that turns out to be bad: the CPU is busy with something else.

use super::neighborhood::Neighborhood;
use crate::arch::clock::now;
use crate::engine::Engine;
use crate::engine::oversubscription::VainSpin;
use crate::shm::cpus;
use crate::shm::telemetry::Wait;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, slots_owned};
use crate::variables::VariableId;

/// Waits in vain of which one checks the partner's CPU, on the average: a power of two.
const WAITS_PER_CHECK: u32 = 8;
/// Checks in a row that must find the same partner on our CPU:
/// a quarter of a millisecond at least, at a context switch for each wait.
const EVIDENCE: u32 = 16;
/// Yields from one look at the rank's own CPU to the next.
const YIELDS_PER_LOOK: u64 = 16;
/// Looks in a row that must find the rank away from home. Fewer yields than it takes for a partner to leave: of two
/// that meet, the one that is not at home goes.
const LOOKS_AWAY: u32 = 4;
/// Nanoseconds after which a rank that has left for its partner's sake goes home, to leave again if need be.
const STAY: u64 = 3_000_000_000;
/// Nanoseconds from one move to the next, at least: four slices of the scheduler. So soon shows, too, whether a move
/// was bad.
const LEAST_GAP: u64 = 12_000_000;
/// The gap grows up to this while moves turn out to be bad.
const MOST_GAP: u64 = 3_000_000_000;

/// What this rank knows of the ranks with which it shares a core.
/// Relaxed throughout: notes of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(crate) struct CoreMigration {
    /// One more than the partner of the last check; 0 for none.
    partner: AtomicU32,
    /// Checks in a row that have found it on our CPU, waiting for us.
    found: AtomicU32,
    /// When the rank last moved, in nanoseconds of the clock.
    moved: AtomicU64,
    /// The gap before its next move.
    gap: AtomicU64,
    /// The last move was bad: soon after it the kernel moved the rank again, or a yield was slow.
    regretted: AtomicBool,
    /// One more than the CPU where the rank has begun; 0 for none.
    home: AtomicU32,
    /// Until when the rank is elsewhere for its partner's sake.
    stays_until: AtomicU64,
    /// Looks in a row that have found the rank elsewhere.
    away: AtomicU32,
    neighborhood: Neighborhood,
}

impl Engine {
    /// A wait gives the CPU away for the first time, because spinning has not ended it. Of some of these, one looks
    /// whether the awaited rank shares the CPU. Waits that spinning ends are for ranks on other CPUs, so they say that
    /// there is more than one partner.
    pub(crate) fn note_vain_spin(&self, why: &dyn Fn() -> Option<Wait>) {
        let VainSpin { waits, after_others } = self.oversubscription.spun_in_vain();
        if after_others {
            self.core_migration.found.store(0, Ordering::Relaxed);
        }
        if is_checked(waits) {
            self.core_migration.consider_partner(self, why);
        }
    }
}

impl CoreMigration {
    /// The beginning, in a job of `ranks` ranks.
    pub fn new(ranks: u32) -> Self {
        Self { neighborhood: Neighborhood::new(ranks), ..Self::default() }
    }

    /// The rank has waited in vain for some time: publishes where it runs, and leaves if the awaited rank runs there
    /// too and waits for this one.
    #[cold]
    fn consider_partner(&self, engine: &Engine, why: &dyn Fn() -> Option<Wait>) {
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
        let enough = self.note_check(together) && self.neighborhood.home(engine).is_none();
        if enough && together.is_some_and(|peer| peer < engine.rank) && self.may_move(now()) {
            let allowed = cpus::affinity();
            let target = quietest(&allowed, here as usize, cpus_of_others(engine));
            if target.is_some_and(|cpu| move_to(engine, cpu, &allowed)) {
                self.stays_until.store(now() + STAY, Ordering::Relaxed);
            }
        }
    }

    /// The rank has yielded for the `yields`th time, until `now`. Every so often it looks where it runs, and goes home
    /// if that is elsewhere again and again.
    pub(super) fn note_yield(&self, engine: &Engine, yields: u64, now: u64) {
        if yields.is_multiple_of(YIELDS_PER_LOOK) {
            self.look(engine, now);
        }
    }

    /// Looks where the rank runs. One with several threads has no single place, and a rank without a home either.
    #[cold]
    fn look(&self, engine: &Engine, now: u64) {
        let Some(first) = self.home.load(Ordering::Relaxed).checked_sub(1) else { return };
        if slots_owned() > 1 || !migrates(engine) {
            return;
        }
        let Some(here) = cpus::current() else { return };
        self.neighborhood.note(engine);
        let home = self.neighborhood.home(engine).unwrap_or(first);
        let last = &engine.telemetry().last_yield;
        last.set(here, last.partner());
        let more = || more_at(home, here, cpus_of_others(engine));
        let stays = now < self.stays_until.load(Ordering::Relaxed);
        let at_home = here == home || stays && more() >= 0;
        if self.note_place(at_home, now) && self.may_move(now) {
            let (allowed, home) = (cpus::affinity(), home as usize);
            // One more perhaps belongs here, and goes next.
            if allowed.contains(&home) && more() <= 1 {
                move_to(engine, home, &allowed);
            }
        }
    }

    /// Takes whether a look at the time `now` has found the rank at home. Returns whether it has been away for long.
    fn note_place(&self, at_home: bool, now: u64) -> bool {
        let away = if at_home { 0 } else { self.away.load(Ordering::Relaxed) + 1 };
        if away == 1 {
            self.regret(now);
        }
        self.away.store(away % LOOKS_AWAY, Ordering::Relaxed);
        away == LOOKS_AWAY
    }

    /// At the time `now` something shows that the rank had better not have moved, if it has just done so: a slow yield,
    /// or that it is elsewhere already.
    pub(super) fn regret(&self, now: u64) {
        if now.saturating_sub(self.moved.load(Ordering::Relaxed)) < LEAST_GAP {
            self.regretted.store(true, Ordering::Relaxed);
        }
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

    /// Whether the rank may move at the time `now`. If so, determines when it may again: soon, unless its last move was
    /// bad.
    fn may_move(&self, now: u64) -> bool {
        let gap = self.gap.load(Ordering::Relaxed);
        if now.saturating_sub(self.moved.load(Ordering::Relaxed)) < gap {
            return false;
        }
        let gap = if self.regretted.load(Ordering::Relaxed) { 4 * gap } else { gap / 2 };
        self.gap.store(gap.clamp(LEAST_GAP, MOST_GAP), Ordering::Relaxed);
        self.regretted.store(false, Ordering::Relaxed);
        self.moved.store(now, Ordering::Relaxed);
        true
    }
}

/// Whether the `waits`th wait in vain checks where the partner runs. The waits from one that does to the next are 5, 8
/// or 13: a rank that waits for several others in turn does not see the same one each time.
fn is_checked(waits: u32) -> bool {
    // Multiples of the golden ratio's fraction, of which the first eighth is taken.
    waits.wrapping_mul(0x9E37_79B9) < u32::MAX / WAITS_PER_CHECK
}

/// The CPUs of the other ranks that do not sleep, as far as they have noted them.
fn cpus_of_others(engine: &Engine) -> impl Iterator<Item = usize> + Clone {
    let others = (0..engine.job.places_in_use()).filter(move |&rank| rank != engine.rank);
    let awake = others.map(|rank| engine.job.telemetry(rank)).filter(|other| other.waiting.get().is_none());
    awake.filter_map(|other| other.last_yield.cpu()).map(|cpu| cpu as usize)
}

/// Moves the rank to `cpu`, one of `allowed`. Returns whether the system has permitted that. Otherwise, as where there
/// is nowhere to go, it tries again after a gap.
#[cold]
fn move_to(engine: &Engine, cpu: usize, allowed: &[usize]) -> bool {
    let moved = cpus::visit(cpu, allowed);
    if moved {
        let telemetry = engine.telemetry();
        telemetry.last_yield.set(cpu as u32, telemetry.last_yield.partner());
        telemetry.moves.add(1);
        engine.emit_move(cpu as u32);
    }
    moved
}

/// Returns, of the CPUs in `allowed` other than `here`, the one on which the fewest ranks run; of several the nearest
/// by number, which most likely shares caches. `occupied`: the CPU of each rank.
fn quietest(allowed: &[usize], here: usize, occupied: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let others = allowed.iter().copied().filter(|&cpu| cpu != here);
    others
        .min_by_key(|&cpu| (occupied.clone().filter(|&occupied| occupied == cpu).count(), cpu.abs_diff(here)))
}

/// How many more of the CPUs in `occupied` are `there` than `here`.
fn more_at(there: u32, here: u32, occupied: impl Iterator<Item = usize>) -> i64 {
    let is = |cpu: usize, of: u32| i64::from(cpu == of as usize);
    occupied.map(|cpu| is(cpu, there) - is(cpu, here)).sum()
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
        engine.core_migration.neighborhood.begin(engine.rank, &allowed);
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

    /// Periods in which a rank could wait for its partners, of which it must not always see the same.
    #[test]
    fn checks_of_ranks_that_wait_for_others_in_turn_see_all_of_them() {
        let checked: Vec<u32> = (0..100_000).filter(|&waits| is_checked(waits)).collect();
        assert!(checked.len().abs_diff(100_000 / WAITS_PER_CHECK as usize) < 10, "{}", checked.len());
        for period in 2..64 {
            let longest = checked.chunk_by(|a, b| a % period == b % period).map(<[u32]>::len).max();
            assert!(longest < Some(EVIDENCE as usize / 2), "{period}: {longest:?}");
        }
    }

    #[test]
    fn a_rank_goes_home_when_it_is_elsewhere_again_and_again() {
        let core_migration = CoreMigration::default();
        let looks = |at_home, n| (0..n).filter(|_| core_migration.note_place(at_home, 0)).count();
        assert_eq!(looks(false, LOOKS_AWAY - 1), 0);
        assert_eq!(looks(true, 1), 0);
        assert_eq!(looks(false, LOOKS_AWAY - 1), 0, "it has been at home meanwhile");
        assert_eq!(looks(false, 1 + LOOKS_AWAY), 2, "each time anew");
    }

    #[test]
    fn ranks_on_two_cpus_are_compared() {
        for (others, more) in [(&[0, 1, 1][..], 1), (&[1, 1], 2), (&[0, 0, 1], -1), (&[5, 1], 1), (&[], 0)] {
            assert_eq!(more_at(1, 0, others.iter().copied()), more, "{others:?}");
        }
    }

    /// When a rank moves that always would, in milliseconds, of a few seconds.
    fn moves(core_migration: &CoreMigration, mut each: impl FnMut(u64)) -> Vec<u64> {
        let mut moves = vec![];
        for now in (1_000_000_000..9_000_000_000).step_by(1_000_000) {
            if core_migration.may_move(now) {
                moves.push(now / 1_000_000 - 1000);
                each(now);
            }
        }
        moves
    }

    #[test]
    fn bad_moves_become_rarer_and_good_ones_frequent_again() {
        let core_migration = CoreMigration::default();
        let bad = moves(&core_migration, |now| core_migration.regret(now + LEAST_GAP - 1));
        assert_eq!(bad, [0, 12, 60, 252, 1020, 4020, 7020]);
        let core_migration = CoreMigration { gap: AtomicU64::new(MOST_GAP), ..CoreMigration::default() };
        core_migration.moved.store(1_000_000_000, Ordering::Relaxed);
        let good = moves(&core_migration, |now| core_migration.regret(now + LEAST_GAP));
        assert_eq!(good[..5], [3000, 4500, 5250, 5625, 5813]);
        assert_eq!(good[good.len() - 1] - good[good.len() - 2], LEAST_GAP / 1_000_000);
    }

    #[test]
    fn a_move_is_bad_if_the_rank_is_elsewhere_soon_after() {
        for (after, bad) in [(1, true), (LEAST_GAP - 1, true), (LEAST_GAP, false)] {
            let core_migration = CoreMigration::default();
            assert!(core_migration.may_move(MOST_GAP));
            core_migration.note_place(true, MOST_GAP);
            core_migration.note_place(false, MOST_GAP + after);
            assert_eq!(core_migration.regretted.load(Ordering::Relaxed), bad, "{after}");
        }
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
