//! Whether a job is deadlocked, from three looks at its memory.
//!
//! A rank in a wait polls its rings, asks whether the wait is over, and blocks for a tenth of a second at most. It
//! counts its blocks in two words: *stirred* if something had happened before the block, *vain* if nothing had.
//!
//! **The condition.** From the first look to the third every rank stays in one wait and counts no stirred block;
//! between the second and the third it counts two vain ones.
//!
//! **Why it suffices.** No rank has handled, sent or ended anything since the first look was over; after that each has
//! polled once, in vain, so that nothing was under way to it. What a rank in a wait does follows only from what it
//! handles. So nothing will ever happen, unless somebody outside of these waits acts:
//! - a thread of the program that is not in MPI and may call it (MPI_THREAD_MULTIPLE: with any other level none may
//!   while one waits);
//! - a thread of the library's that accesses files;
//! - something outside of the job.
//!
//! The library's thread that makes progress (`progress_thread`) is none of these: a thread that waits keeps the lock of
//! progress from before it publishes its wait to the end of it, and that thread does nothing without the lock.
//!
//! A job with any of these is never called deadlocked. A thread that only another thread of its process could wake is
//! not counted as one that acts, if all threads but those that wait in MPI are such. Guests count as ranks where their
//! job's memory is known, and where every process that has met them is a guest, too.
//!
//! **Several threads of a rank.** Of those that wait in MPI one runs progress; the others publish what they wait for,
//! and how often they have looked in vain whether that is over. They must stay in their waits, too, and each must look
//! twice between the second and the third look of the launcher's: what it saw last is then what all ranks have come to.
//!
//! **When it is asked who else may act:** between the first and the second look. What a thread has sent that has ended
//! by then lies where the ranks poll afterwards, and while all wait no new thread begins. After the third look it would
//! be too late: a thread that sends and ends between that look and the question would be seen by neither.

use std::time::{Duration, Instant};

use perusal::internals::shm::telemetry::{Waiting, WaitingThread};
use perusal::internals::shm::{RankState, is_gone};

use super::Scene;
use super::process::ProcessView;

/// Between two looks: more than twice as long as a rank blocks.
const BETWEEN: Duration = Duration::from_millis(250);
/// Between two looks of the launcher's while a rank is in no wait;
/// it looks at ranks that are not its own children then, too.
pub const CHECK: Duration = Duration::from_millis(500);
/// Looks in vain, and blocks, between the last two looks of the launcher's:
/// what was there before it came has then been looked at.
const LEAST: u64 = 2;

/// One rank in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Look {
    /// It takes part no more.
    Over,
    /// It waits.
    Waits(Waits),
}

/// The waits of one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Waits {
    /// The wait of the thread that runs progress, and that thread by the kernel's number; 0 where there is but one.
    number: u64,
    poller: u64,
    /// Its blocks of both kinds.
    stirred: u64,
    vain: u64,
    /// The other threads that wait.
    others: Vec<WaitingThread>,
}

/// The launcher's looks at its job so far.
#[derive(Debug, Default)]
pub struct Watch {
    /// Whether to look at all.
    on: bool,
    first: Option<Vec<Look>>,
    second: Option<(Vec<Look>, Instant)>,
}

impl Watch {
    /// Looks that are made only if `on`.
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// No further looks.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Looks at the job. Returns true once the job is known to be deadlocked.
    pub fn look(&mut self, scene: &Scene<'_>) -> bool {
        // Before the look: see above.
        let first = self.first.as_ref().filter(|_| self.second.is_none());
        let is_closed = first.is_some_and(|first| may_be_proved(scene, first));
        self.add(is_closed, look_at_all(scene), Instant::now())
    }

    /// Adds a look at all ranks, if one was possible, at a moment. `is_closed`: since the look before, there was a
    /// moment at which nobody but the ranks that wait could act. Returns whether the looks prove that nothing will
    /// happen in the job.
    fn add(&mut self, is_closed: bool, looks: Option<Vec<Look>>, now: Instant) -> bool {
        let Some(looks) = looks.filter(|_| self.on) else {
            *self = Self::new(self.on);
            return false;
        };
        let same = |then: &[Look]| {
            then.len() == looks.len() && then.iter().zip(&looks).all(|(then, now)| is_unstirred(then, now))
        };
        match (&self.first, &self.second) {
            (Some(first), _) if !same(first) => {
                *self = Self { first: Some(looks), ..Self::new(true) };
                false
            }
            (Some(_), Some((second, at))) => {
                let polled = |(then, now): (&Look, &Look)| match (then, now) {
                    (Look::Waits(then), Look::Waits(now)) => now.have_looked_since(then),
                    _ => true,
                };
                second.len() == looks.len()
                    && now.saturating_duration_since(*at) >= BETWEEN
                    && second.iter().zip(&looks).all(polled)
            }
            (Some(_), None) => {
                self.second = is_closed.then_some((looks, now));
                false
            }
            (None, _) => {
                self.first = Some(looks);
                false
            }
        }
    }

    /// When to look again, while a deadlock is possible.
    pub fn next(&self) -> Option<Duration> {
        self.first.as_ref().map(|_| BETWEEN)
    }

    /// When the launcher looks again.
    pub fn pause(&self) -> Duration {
        self.next().map_or(CHECK, |pause| pause.min(CHECK))
    }
}

fn is_unstirred(then: &Look, now: &Look) -> bool {
    match (then, now) {
        (Look::Waits(then), Look::Waits(now)) => now.go_on_from(then),
        // An end between two looks may have been preceded by a message.
        (then, now) => then == now,
    }
}

impl Waits {
    /// Whether they are the waits of a look before, and the rank has handled nothing since.
    fn go_on_from(&self, then: &Self) -> bool {
        let words = |waits: &Self| (waits.number, waits.poller, waits.stirred);
        let numbers = |waits: &Self| -> Vec<_> {
            waits.others.iter().map(|thread| (thread.thread, thread.number)).collect()
        };
        words(self) == words(then) && numbers(self) == numbers(then)
    }

    /// Whether every thread has looked in vain since a look before at the same waits.
    fn have_looked_since(&self, then: &Self) -> bool {
        let looked = |(then, now): (&WaitingThread, &WaitingThread)| {
            u64::from(now.looks.wrapping_sub(then.looks)) >= LEAST
        };
        self.vain.wrapping_sub(then.vain) >= LEAST && then.others.iter().zip(&self.others).all(looked)
    }
}

/// A look at all ranks; `None` if one of them is neither over nor in a wait, or none waits.
fn look_at_all(scene: &Scene<'_>) -> Option<Vec<Look>> {
    let looks: Vec<Look> =
        (0..scene.own.places_in_use()).map(|rank| look_at(scene, rank)).collect::<Option<_>>()?;
    looks.iter().any(|look| *look != Look::Over).then_some(looks)
}

fn look_at(scene: &Scene<'_>, rank: u32) -> Option<Look> {
    let here = scene.own.roster().entry(rank);
    // The launcher of a guest has said how it ended, or has itself ended.
    if here.exit().is_some() || here.guest().is_some() && here.state() == RankState::Dead {
        return Some(Look::Over);
    }
    let (memory, place) = scene.home(rank)?;
    let (entry, page) = (memory.roster().entry(place), memory.telemetry(place));
    if entry.exit().is_some() {
        return Some(Look::Over);
    }
    match entry.state() {
        RankState::Finalized if is_gone(entry.pid()) => Some(Look::Over),
        RankState::Initialised | RankState::Finalizing => {
            let (number, _) = page.waiting.numbered()?;
            Some(Look::Waits(Waits {
                number,
                poller: page.poller.get(),
                stirred: page.stirred_blocks.get(),
                vain: page.vain_blocks.get(),
                others: page.waiting_threads().collect(),
            }))
        }
        _ => None,
    }
}

/// Whether nobody but the ranks that wait could end their waits, which `looks` has.
fn may_be_proved(scene: &Scene<'_>, looks: &[Look]) -> bool {
    let is_bound = |rank| {
        let here = scene.own.roster().entry(rank);
        if here.exit().is_some() || here.guest().is_some() && here.state() == RankState::Dead {
            return true;
        }
        let Some((memory, place)) = scene.home(rank) else { return false };
        let (entry, page) = (memory.roster().entry(place), memory.telemetry(place));
        let Some((number, wait)) = page.waiting.numbered() else {
            return entry.exit().is_some() || is_gone(entry.pid());
        };
        let Some(detail) = page.detail.get(number) else { return false };
        // What a rank says of itself, and a lie of it hurts its own job.
        let alone = || page.threads.get() == 0 && !ProcessView::has_file_thread(entry.pid());
        // Those that were in their waits at the look before and still are at the next one.
        let in_mpi: Vec<u64> = match looks.get(rank as usize) {
            Some(Look::Waits(waits)) => {
                let others = waits.others.iter().map(|thread| u64::from(thread.thread));
                others.chain([waits.poller]).collect()
            }
            _ => vec![],
        };
        let others_sleep =
            || !ProcessView::has_file_thread(entry.pid()) && ProcessView::others_sleep(entry.pid(), &in_mpi);
        // Nothing says that it is no generalized request, which a handler of a signal may complete.
        let may_be_handled =
            || wait.kind == Waiting::Any && ProcessView::catches_more_than_its_end(entry.pid());
        wait.is_closed(|| detail.call)
            && !may_be_handled()
            && (ProcessView::of(entry.pid()).threads == 1 || alone() || others_sleep())
    };
    (0..scene.own.places_in_use()).all(is_bound) && scene.is_closed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::shm::expected_shape;
    use perusal::internals::shm::telemetry::Wait;
    use perusal::internals::variables::{Config, Overrides};

    /// Milliseconds after which a report of a deadlock is there.
    const LIMIT: u64 = 2000;

    /// What one look sees of a rank that comes into its last wait at `begin`, and blocks for `sleep` milliseconds each
    /// time; it counts what it has handled before the wait at `begin`.
    fn seen(moment: u64, begin: u64, sleep: u64) -> Look {
        match moment.checked_sub(begin) {
            None => waits(1, 7, 3),
            Some(since) => waits(2, 8, 3 + since / sleep),
        }
    }

    fn waits(number: u64, stirred: u64, vain: u64) -> Look {
        Look::Waits(Waits { number, stirred, vain, ..Waits::default() })
    }

    /// Milliseconds from the deadlock to its proof, where the launcher has looked at `phase` for the first time and
    /// `begins` has the moment at which each rank comes into its wait; before, it runs, or is in another wait.
    fn takes(phase: u64, begins: &[u64], sleep: u64, runs_before: bool) -> u64 {
        let start = Instant::now();
        let deadlock = *begins.iter().max().expect("a rank");
        let (mut watch, mut moment) = (Watch::new(true), phase);
        loop {
            let look = |begin: &u64| (!runs_before || *begin <= moment).then(|| seen(moment, *begin, sleep));
            let looks = begins.iter().map(look).collect();
            if watch.add(true, looks, start + Duration::from_millis(moment)) {
                return moment.checked_sub(deadlock).expect("no proof before the deadlock");
            }
            moment += u64::try_from(watch.pause().as_millis()).expect("a short pause");
        }
    }

    #[test]
    fn a_deadlock_is_proved_within_two_seconds_whenever_it_comes_between_the_looks() {
        // Time is simulated: what counts is how often the launcher looks, and how long a rank blocks.
        let unset = Overrides::default();
        let defaults = Config::new(&unset, expected_shape(&unset)).expect("good defaults");
        let longest = u64::try_from(defaults.longest_sleep().as_millis()).expect("a short sleep");
        let mut slowest = 0;
        for phase in 0..500 {
            for runs_before in [false, true] {
                for sleep in [1, longest / 2, longest] {
                    for begins in [[1000, 1000, 1000], [700, 1000, 990], [1000, 1037, 1099]] {
                        slowest = slowest.max(takes(phase, &begins, sleep, runs_before));
                    }
                }
            }
        }
        assert!(slowest <= LIMIT, "{slowest} ms");
        // Three looks are needed, and the last two are apart.
        assert!(slowest >= 2 * 250, "{slowest} ms");
    }

    #[test]
    fn ranks_that_handle_something_now_and_then_are_in_no_deadlock() {
        let start = Instant::now();
        let mut watch = Watch::new(true);
        for look in 0..1000_u64 {
            // Something is handled between each two looks, in one wait.
            let looks = vec![waits(1, look, 3 * look), Look::Over];
            assert!(!watch.add(true, Some(looks), start + Duration::from_millis(250 * look)));
        }
    }

    #[test]
    fn what_a_thread_has_sent_before_it_ended_is_polled_for_before_there_is_a_proof() {
        let start = Instant::now();
        let mut watch = Watch::new(true);
        let mut proved = |look: u64, is_closed, vain| {
            let looks = vec![waits(1, 1, vain)];
            watch.add(is_closed, Some(looks), start + Duration::from_millis(250 * look))
        };
        // All have polled in vain for long, and a thread was there that may call MPI.
        assert!((0..9).all(|look| !proved(look, false, 3 * look)));
        // It is gone at the next look, and nobody has polled since: its last message may be under way.
        assert!(!proved(9, true, 27));
        assert!(!proved(10, true, 27));
        assert!(!proved(11, true, 28));
        assert!(proved(12, true, 29));
    }

    #[test]
    fn every_thread_that_waits_must_look_in_vain_and_stay_in_its_wait() {
        let start = Instant::now();
        let proved = |others: &[&[(u64, u32)]]| {
            let mut watch = Watch::new(true);
            others.iter().enumerate().any(|(at, others)| {
                let wait = Wait { kind: Waiting::Receive, peer: None, tag: None, context: 0, since: 0 };
                let thread = |(number, looks): &(u64, u32)| WaitingThread {
                    thread: 9,
                    number: *number,
                    looks: *looks,
                    wait,
                };
                let waits = Waits {
                    number: 1,
                    vain: 3 * at as u64,
                    others: others.iter().map(thread).collect(),
                    ..Waits::default()
                };
                watch.add(true, Some(vec![Look::Waits(waits)]), start + BETWEEN * at as u32)
            })
        };
        assert!(proved(&[&[(1, 5)], &[(1, 7)], &[(1, 9)]]));
        assert!(proved(&[&[(1, 5)], &[(1, u32::MAX)], &[(1, 1)]]), "they are counted modulo 2³²");
        assert!(
            !proved(&[&[(1, 5)], &[(1, 7)], &[(1, 8)]]),
            "it may have looked before the others came to their waits"
        );
        assert!(!proved(&[&[(1, 5)], &[(1, 7)], &[(2, 9)]]), "another wait");
        assert!(!proved(&[&[(1, 5)], &[(1, 7)], &[]]), "a wait that is over");
        assert!(!proved(&[&[], &[(1, 7)], &[(1, 9)]]), "one that has just begun");
    }
}
