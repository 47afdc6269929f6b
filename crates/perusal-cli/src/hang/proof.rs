//! Whether a job is deadlocked, from three looks at its memory.
//!
//! A rank in a wait polls its rings and asks whether the wait is over, then blocks for a tenth of a second at most. It counts blocks before which
//! something had happened, and blocks before which nothing had. Say that from the first look to the third every rank stays in one wait, counts
//! no block of the first kind, and between the second and the third look counts two of the second kind. Then no rank has handled, sent or
//! ended anything since the first look was over; and after that each has polled once, in vain, so that nothing was under way to it. What a rank
//! in a wait does follows from what it handles only, so nothing will ever happen, unless somebody else acts: a thread of the program that is
//! not in MPI, or something outside of the job. Guests count as ranks where their job's memory is known, and where whoever has met them is a guest, too. A job with such a thread, or with a wait for something outside, is never called deadlocked.

use std::time::{Duration, Instant};

use perusal::internals::shm::telemetry::Waiting;
use perusal::internals::shm::{RankState, is_gone};

use super::Scene;
use super::process::ProcessView;

/// Between two looks: more than twice as long as a rank blocks.
const BETWEEN: Duration = Duration::from_millis(250);
/// Functions that wait for requests of any kind, all of which other ranks complete, or threads.
const WAITS: [&str; 4] = ["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];

/// One rank in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It takes part no more.
    Over,
    /// Its wait, and its blocks of both kinds.
    Waits { number: u64, stirred: u64, vain: u64 },
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
        let Some(looks) = look_at_all(scene).filter(|_| self.on) else {
            *self = Self::new(self.on);
            return false;
        };
        let same = |then: &[Look]| {
            then.len() == looks.len() && then.iter().zip(&looks).all(|(then, now)| is_unstirred(*then, *now))
        };
        match (&self.first, &self.second) {
            (Some(first), _) if !same(first) => {
                *self = Self { first: Some(looks), ..Self::new(true) };
                false
            }
            (Some(_), Some((second, at))) => {
                let polled = |(then, now): (&Look, &Look)| match (then, now) {
                    (Look::Waits { vain: then, .. }, Look::Waits { vain: now, .. }) => {
                        now.wrapping_sub(*then) >= 2
                    }
                    _ => true,
                };
                second.len() == looks.len()
                    && at.elapsed() >= BETWEEN
                    && second.iter().zip(&looks).all(polled)
                    && may_be_proved(scene)
            }
            (Some(_), None) => {
                self.second = Some((looks, Instant::now()));
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
}

fn is_unstirred(then: Look, now: Look) -> bool {
    match (then, now) {
        (Look::Waits { number: a, stirred: b, .. }, Look::Waits { number, stirred, .. }) => {
            (a, b) == (number, stirred)
        }
        // An end between two looks may have been preceded by a message.
        (then, now) => then == now,
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
            let (number, wait) = page.waiting.numbered()?;
            (wait.kind != Waiting::Outside).then_some(Look::Waits {
                number,
                stirred: page.stirred_blocks.get(),
                vain: page.vain_blocks.get(),
            })
        }
        _ => None,
    }
}

/// Whether nobody but the ranks that wait could end their waits.
fn may_be_proved(scene: &Scene<'_>) -> bool {
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
        let one_thread = ProcessView::of(entry.pid()).threads == 1;
        let known = wait.kind != Waiting::Any || WAITS.contains(&detail.call.as_str());
        one_thread && known
    };
    (0..scene.own.places_in_use()).all(is_bound) && scene.is_closed()
}
