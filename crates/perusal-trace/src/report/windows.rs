//! One-sided communication: what each window was used for, bytes between ranks, and who waited for whom to lock,
//! expose or complete.

use super::types::{Accesses, EpochReport, LockWaitReport, OneSidedCell, WindowReport};
use super::waits::{Cause, CausedWait, charge_lock};
use super::words;
use crate::events::{Event, Field, FieldValue, RmaOperation, WindowSync};
use crate::trace::windows::{JobWindows, lock_waits};
use crate::trace::{RankTrace, Record, RecordPayload, Trace, WindowInfo};
use std::collections::{BTreeMap, HashMap};

/// What is found of windows.
pub struct OneSided {
    /// The windows, those with most bytes first.
    pub windows: Vec<WindowReport>,
    /// By origin and target.
    pub cells: Vec<OneSidedCell>,
    /// What cost most first.
    pub lock_waits: Vec<LockWaitReport>,
    /// Each rank's waiting for others at windows, but for fences.
    pub waits: Vec<Vec<CausedWait>>,
}

/// An epoch that is open at a rank: its kind and target.
type EpochKey = (&'static str, i32);

/// Looks at a trace.
#[must_use]
pub fn one_sided(trace: &Trace) -> OneSided {
    let job = JobWindows::of(trace);
    let mut windows: Vec<WindowReport> =
        job.all.iter().enumerate().map(|(number, window)| described(job.name(number), window)).collect();
    let mut cells: BTreeMap<(u32, u32), OneSidedCell> = BTreeMap::new();
    let mut waits = vec![vec![]; trace.ranks.len()];
    let exposures = Exposures::of(trace, &job);
    for (place, rank) in trace.ranks.iter().enumerate() {
        let mut open: HashMap<(usize, EpochKey), u64> = HashMap::new();
        let mut calls: HashMap<(usize, u64), u64> = HashMap::new();
        let mut begun: HashMap<usize, u64> = HashMap::new();
        let last = rank.records.last().map_or(0, |record| record.when);
        for record in rank.records.iter().filter(|record| record.is_of_window()) {
            let Some(number) = job.number(place, record) else { continue };
            let window = &mut windows[number];
            operation(window, &mut cells, rank, record);
            match (record.event, record.payload) {
                (Event::WinSyncBegin, _) => {
                    calls.insert((number, record.id), record.when);
                    begun.insert(number, record.when);
                }
                (Event::WinSyncEnd, _) => {
                    let began = calls.remove(&(number, record.id));
                    window.synchronizing_ns += began.map_or(0, |began| record.when.saturating_sub(began));
                }
                (Event::WinAccessBegin, _) => {
                    let since = begun.insert(number, record.when).unwrap_or(record.when);
                    let target = job.all[number].comm.group.get(record.peer as usize).copied();
                    let exposed = target.and_then(|target| exposures.before(number, target, record.when));
                    waits[place].extend(wait(since, exposed, target, record.when));
                }
                (Event::WinExposeEnd, _) => {
                    let since = begun.get(&number).copied().unwrap_or(record.when);
                    let last = exposures.last_completion(number, rank.rank, record.when);
                    waits[place].extend(wait(
                        since,
                        last.map(|last| last.0),
                        last.map(|last| last.1),
                        record.when,
                    ));
                }
                _ => {}
            }
            match epoch(record) {
                Some((key, true)) => drop(open.insert((number, key), record.when)),
                Some((key, false)) => {
                    if let Some(began) = open.remove(&(number, key)) {
                        close(window, key.0, record.when.saturating_sub(began));
                    }
                }
                None => {}
            }
        }
        for ((number, (kind, _)), began) in open {
            close(&mut windows[number], kind, last.saturating_sub(began));
        }
    }
    let lock_waits = locks(trace, &job, &mut windows, &mut waits);
    windows.iter_mut().for_each(|window| window.epochs.sort_by_key(|epoch| epoch.kind));
    windows.sort_by_key(|window| {
        let bytes = window.put.bytes + window.get.bytes + window.accumulated.bytes;
        (std::cmp::Reverse(bytes), window.context)
    });
    OneSided { windows, cells: cells.into_values().collect(), lock_waits, waits }
}

fn described(name: String, window: &WindowInfo) -> WindowReport {
    let shown = |field: Field, value: u8| field.show(FieldValue::I32(value.into())).replace('_', " ");
    WindowReport {
        name,
        context: window.comm.context,
        size: window.comm.group.len() as u32,
        members: words::ranks(window.comm.group.to_vec(), 12),
        flavor: shown(Field::Flavor, window.flavor),
        reach: shown(Field::Reach, window.reach),
        ..WindowReport::default()
    }
}

/// Adds an operation that is complete.
fn operation(
    window: &mut WindowReport,
    cells: &mut BTreeMap<(u32, u32), OneSidedCell>,
    rank: &RankTrace,
    record: &Record,
) {
    let (Event::WinReqComplete, RecordPayload::Rma { operation, .. }) = (record.event, record.payload) else {
        return;
    };
    let Some(target) = rank.world_peer(record) else { return };
    let cell = cells.entry((rank.rank, target)).or_insert((rank.rank, target, 0, 0, 0, 0));
    let (sum, bytes) = match operation {
        _ if operation == RmaOperation::Put as u8 => (&mut window.put, &mut cell.3),
        _ if operation == RmaOperation::Get as u8 => (&mut window.get, &mut cell.4),
        _ => (&mut window.accumulated, &mut cell.5),
    };
    cell.2 += 1;
    *bytes = bytes.saturating_add(record.bytes);
    *sum = Accesses { operations: sum.operations + 1, bytes: sum.bytes.saturating_add(record.bytes) };
}

/// What epoch a record begins or ends.
fn epoch(record: &Record) -> Option<(EpochKey, bool)> {
    Some(match (record.event, record.payload) {
        (Event::WinLockAcquired, RecordPayload::Lock { target, .. }) => (("lock", target), true),
        (Event::WinLockReleased, RecordPayload::Lock { target, .. }) => (("lock", target), false),
        (Event::WinAccessBegin, _) => (("access", record.peer), true),
        (Event::WinAccessEnd, _) => (("access", record.peer), false),
        (Event::WinExposeBegin, _) => (("exposure", -1), true),
        (Event::WinExposeEnd, _) => (("exposure", -1), false),
        (Event::WinFenceEpoch, _) => (("fence", -1), true),
        (Event::WinSyncBegin, RecordPayload::Sync { call, .. }) if call == WindowSync::Fence as u8 => {
            (("fence", -1), false)
        }
        (Event::WinFreed, _) => (("fence", -1), false),
        _ => return None,
    })
}

fn close(window: &mut WindowReport, kind: &'static str, ns: u64) {
    let at = window.epochs.iter().position(|epoch| epoch.kind == kind).unwrap_or_else(|| {
        window.epochs.push(EpochReport { kind, ..EpochReport::default() });
        window.epochs.len() - 1
    });
    let sum = &mut window.epochs[at];
    sum.times += 1;
    sum.ns += ns;
    sum.longest_ns = sum.longest_ns.max(ns);
}

/// The part of a call, from `since` to what it waited for, at a rank.
fn wait(since: u64, until: Option<u64>, on: Option<u32>, end: u64) -> Option<CausedWait> {
    let end = until?.min(end);
    (since < end).then_some(CausedWait { begin: since, end, on: on?, cause: Cause::Epoch })
}

/// When ranks exposed their memory, and when others completed their accesses to it.
#[derive(Default)]
struct Exposures {
    exposed: HashMap<(usize, u32), Vec<u64>>,
    completed: HashMap<(usize, u32), Vec<(u64, u32)>>,
}

impl Exposures {
    fn of(trace: &Trace, job: &JobWindows<'_>) -> Exposures {
        let mut all = Exposures::default();
        for (place, rank) in trace.ranks.iter().enumerate() {
            for record in &rank.records {
                if !matches!(record.event, Event::WinExposeBegin | Event::WinAccessEnd) {
                    continue;
                }
                let Some(number) = job.number(place, record) else { continue };
                if record.event == Event::WinExposeBegin {
                    all.exposed.entry((number, rank.rank)).or_default().push(record.when);
                } else if let Some(target) = rank.world_peer(record) {
                    all.completed.entry((number, target)).or_default().push((record.when, rank.rank));
                }
            }
        }
        all.completed.values_mut().for_each(|all| all.sort_unstable());
        all
    }

    /// When the target last exposed its memory before it was accessed.
    fn before(&self, number: usize, target: u32, when: u64) -> Option<u64> {
        let all = self.exposed.get(&(number, target))?;
        all[..all.partition_point(|at| *at <= when)].last().copied()
    }

    /// The last completion before an exposure ended, and whose it was.
    fn last_completion(&self, number: usize, target: u32, when: u64) -> Option<(u64, u32)> {
        let all = self.completed.get(&(number, target))?;
        all[..all.partition_point(|(at, _)| *at <= when)].last().copied()
    }
}

/// The table of waits for locks; each is a wait of its rank's, too, if it is known who held the lock.
fn locks(
    trace: &Trace,
    job: &JobWindows<'_>,
    windows: &mut [WindowReport],
    waits: &mut [Vec<CausedWait>],
) -> Vec<LockWaitReport> {
    let mut rows: BTreeMap<(usize, u32, u32, Option<u32>), LockWaitReport> = BTreeMap::new();
    for wait in lock_waits(trace, job) {
        let ns = wait.end.saturating_sub(wait.begin);
        windows[wait.window].lock_waits += 1;
        windows[wait.window].lock_waited_ns += ns;
        let row = rows.entry((wait.window, wait.target, wait.rank, wait.holder)).or_insert_with(|| {
            let (target, waiter, holder) = (wait.target, wait.rank, wait.holder);
            LockWaitReport {
                window: job.name(wait.window),
                target,
                waiter,
                holder,
                ..LockWaitReport::default()
            }
        });
        row.times += 1;
        row.waited_ns += ns;
        if ns >= row.longest_ns {
            (row.longest_ns, row.longest_at_ns) = (ns, wait.begin);
        }
        charge_lock(trace, waits, wait.rank, wait.holder, wait.begin..wait.end);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.waited_ns));
    rows
}
