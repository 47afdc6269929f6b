//! The windows of a whole job, and who waited for whose lock.

use super::flows::RecordIndex;
use super::model::{RankTrace, RecordPayload, Trace, WindowInfo};
use super::objects::JobObjects;
use crate::events::Event;
use std::collections::{BTreeMap, HashMap};

/// All windows of a job, each once.
pub type JobWindows<'a> = JobObjects<'a, WindowInfo>;

impl<'a> JobWindows<'a> {
    /// Those of a trace.
    #[must_use]
    pub fn of(trace: &'a Trace) -> Self {
        Self::collect(trace, |rank| &rank.windows, |window| &window.comm)
    }

    /// The name of a window, or what it is called without one.
    #[must_use]
    pub fn name(&self, number: usize) -> String {
        match self.all.get(number).map(|window| &window.comm) {
            Some(comm) if !comm.name.is_empty() => comm.name.clone(),
            Some(comm) => format!("window {}", comm.context),
            None => String::new(),
        }
    }
}

/// A rank's wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockWait {
    /// Which window.
    pub window: usize,
    /// Who waited; here and below ranks of the job.
    pub rank: u32,
    /// Whose memory was locked.
    pub target: u32,
    /// Who held the lock for most of the wait; as far as the records show.
    pub holder: Option<u32>,
    /// When it began.
    pub begin: u64,
    /// When it was over, or the rank's trace.
    pub end: u64,
    /// The record at which it was over, if it was.
    pub ended: Option<RecordIndex>,
    /// The release by another rank that ended it, if that is recorded.
    pub released: Option<RecordIndex>,
}

/// A lock that a rank held.
struct Hold {
    begin: u64,
    end: u64,
    release: Option<RecordIndex>,
}

/// The holds of each window and target by rank, in the order of their begin. Those of one rank do not overlap.
type Holds = HashMap<(usize, u32), BTreeMap<u32, Vec<Hold>>>;

/// All waits for locks, by rank and time.
#[must_use]
pub fn lock_waits(trace: &Trace, windows: &JobWindows<'_>) -> Vec<LockWait> {
    let (mut holds, mut waits) = (Holds::new(), Vec::new());
    for (place, rank) in trace.ranks.iter().enumerate() {
        walk(place, rank, windows, &mut holds, &mut waits);
    }
    holds.values_mut().flat_map(BTreeMap::values_mut).for_each(|all| all.sort_by_key(|hold| hold.begin));
    for wait in &mut waits {
        let Some(holds) = holds.get(&(wait.window, wait.target)) else { continue };
        let (mut longest, mut nearest) = (0, u64::MAX);
        for (rank, holds) in holds.iter().filter(|(rank, _)| **rank != wait.rank) {
            let first = holds.partition_point(|hold| hold.end <= wait.begin);
            let during = || holds[first..].iter().take_while(|hold| hold.begin < wait.end);
            let held = |hold: &Hold| hold.end.min(wait.end).saturating_sub(hold.begin.max(wait.begin));
            let sum: u64 = during().map(held).sum();
            // Of equals the lowest rank.
            if sum > longest {
                (longest, wait.holder) = (sum, Some(*rank));
            }
            // A release is recorded when it is done, perhaps after the lock has passed on.
            for hold in during().filter(|hold| hold.release.is_some()) {
                if hold.end.abs_diff(wait.end) < nearest {
                    (nearest, wait.released) = (hold.end.abs_diff(wait.end), hold.release);
                }
            }
        }
    }
    waits
}

/// What one rank held, and waited for.
fn walk(
    place: usize,
    rank: &RankTrace,
    windows: &JobWindows<'_>,
    holds: &mut Holds,
    waits: &mut Vec<LockWait>,
) {
    let mut held: HashMap<(usize, i32), u64> = HashMap::new();
    let mut open: HashMap<(usize, u64), usize> = HashMap::new();
    let last = rank.records.last().map_or(0, |record| record.when);
    let members = |window: usize| windows.all.get(window).map_or(&[][..], |window| &window.comm.group);
    let mut hold = |window: usize, target: i32, begin: u64, end: u64, release: Option<RecordIndex>| {
        let group = members(window);
        let targets = match usize::try_from(target) {
            Ok(target) => group.get(target..=target).unwrap_or_default(),
            Err(_) => group,
        };
        for target in targets {
            let of_target = holds.entry((window, *target)).or_default();
            of_target.entry(rank.rank).or_default().push(Hold { begin, end, release });
        }
    };
    for (index, record) in rank.records.iter().enumerate() {
        let RecordPayload::Lock { target, holder, .. } = record.payload else { continue };
        let Some(window) = windows.number(place, record) else { continue };
        let here = RecordIndex { rank: rank.rank, index };
        match record.event {
            Event::WinLockAcquired => drop(held.insert((window, target), record.when)),
            Event::WinLockReleased => {
                if let Some(begin) = held.remove(&(window, target)) {
                    hold(window, target, begin, record.when, Some(here));
                }
            }
            Event::WinLockWaitBegin => {
                let member = |rank: i32| members(window).get(usize::try_from(rank).ok()?).copied();
                let Some(target) = member(target) else { continue };
                open.insert((window, record.id), waits.len());
                waits.push(LockWait {
                    window,
                    rank: rank.rank,
                    target,
                    holder: member(holder),
                    begin: record.when,
                    end: last,
                    ended: None,
                    released: None,
                });
            }
            Event::WinLockWaitEnd => {
                if let Some(at) = open.remove(&(window, record.id)) {
                    (waits[at].end, waits[at].ended) = (record.when, Some(here));
                }
            }
            _ => {}
        }
    }
    for ((window, target), begin) in held {
        hold(window, target, begin, u64::MAX, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Record;
    use super::super::synthetic::Synthetic;
    use super::*;

    fn lock(event: Event, id: u64, target: i32, holder: i32) -> Record {
        Record {
            context: 8,
            payload: RecordPayload::Lock { target, lock: 2, holder },
            ..Synthetic::record(event, id)
        }
    }

    #[test]
    fn a_wait_is_charged_to_who_held_the_lock_for_most_of_it() {
        let mut job = Synthetic::new(4);
        job.window(1, 8, "shelf", &[3, 0, 1]);
        // Of the window's ranks 0, 1 and 2, the first is rank 3 of the job.
        job.push(3, 100, &lock(Event::WinLockAcquired, 1, 2, -1));
        job.push(0, 150, &lock(Event::WinLockWaitBegin, 2, 2, 0));
        job.push(3, 200, &lock(Event::WinLockReleased, 1, 2, 0));
        job.push(1, 205, &lock(Event::WinLockAcquired, 3, -1, -1));
        job.push(1, 400, &lock(Event::WinLockReleased, 3, -1, -1));
        job.push(0, 398, &lock(Event::WinLockWaitEnd, 2, 2, 0));
        // Nobody is known to hold what this one waits for, but for what its records say.
        job.push(0, 500, &lock(Event::WinLockWaitBegin, 4, 0, 2));
        job.push(0, 600, &lock(Event::WinLockReleased, 9, 1, 2));
        let trace = job.trace();
        let windows = JobWindows::of(&trace);
        assert_eq!((windows.all.len(), windows.name(0)), (1, "shelf".to_owned()));
        let waits = lock_waits(&trace, &windows);
        let base = 1;
        let found: Vec<_> =
            waits.iter().map(|w| (w.rank, w.target, w.holder, w.begin + base, w.end + base)).collect();
        assert_eq!(found, [(0, 1, Some(1), 150, 398), (0, 3, Some(1), 500, 600)]);
        let released = waits[0].released.expect("the release is recorded");
        assert_eq!(trace.ranks[1].records[released.index].when + base, 400);
        assert!(waits[0].ended.is_some() && waits[1].ended.is_none() && waits[1].released.is_none());
    }

    #[test]
    fn a_context_that_comes_again_is_another_window() {
        let mut job = Synthetic::new(2);
        job.window(1, 8, "first", &[0, 1]);
        for rank in 0..2 {
            job.push(rank, 50, &Record { context: 8, ..Synthetic::record(Event::WinFreed, 0) });
        }
        job.window(60, 8, "second", &[0, 1]);
        let trace = job.trace();
        let windows = JobWindows::of(&trace);
        assert_eq!([windows.name(0), windows.name(1)], ["first", "second"]);
        let at = |when| Record { when, context: 8, ..Synthetic::record(Event::WinSyncBegin, 1) };
        let number = |rank: usize, when| windows.number(rank, &at(when));
        assert_eq!([number(0, 10), number(1, 10), number(0, 70), number(1, 70)], [0, 0, 1, 1].map(Some));
    }
}
