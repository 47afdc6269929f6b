//! Collective operations: who was inside for how long, and who came last.

use super::types;
use super::waits::{Cause, CausedWait, SHORT, Slept};
use crate::events::{
    Algorithm, CollMode, Collective, Event, FileMode, FileOperation, FilePointer, WindowSync,
};
use crate::shm::telemetry::Waiting;
use crate::trace::{RankTrace, Record, RecordPayload, Trace};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One rank's part in one operation.
#[derive(Debug, Clone, Copy)]
struct CollectiveCall {
    rank: u32,
    begin: u64,
    /// `None` if the trace ends inside.
    end: Option<u64>,
    operation: u16,
    algorithm: u16,
    bytes: u64,
    /// A [`CollMode`].
    mode: u8,
}

/// A rank that waits in a blocking operation sleeps after this at the latest, even where it gives its CPU away to
/// others before. Longer stretches awake, without any record, are the program's own.
const AWAKE: u64 = 20_000_000;

/// MPI_Win_fence, which all members of a window call in the same order, as an operation.
const FENCE: u16 = u16::MAX;

/// Collective accesses to files, which all who have opened one call in the same order, as operations: from this number
/// on, by operation and pointer.
const FILE: u16 = u16::MAX - 6;

fn of_file(operation: u8, pointer: u8) -> u16 {
    FILE + 3 * u16::from(operation.min(1)) + u16::from(pointer.min(2))
}

/// The n-th operation on a communicator: all members call them in the same order (MPI 5.0 §6.1). Starts of persistent
/// ones are numbered apart: each may be started in any order (§6.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct OperationInstance {
    communicator: usize,
    started: bool,
    number: u32,
}

/// The table, what cost most first, and each rank's waiting for the last one. `slept` are the sleeps of each rank.
#[must_use]
pub fn collectives(
    trace: &Trace,
    slept: &[Vec<Slept>],
) -> (Vec<types::CollectiveReport>, Vec<Vec<CausedWait>>) {
    let mut known = JobCommunicators::default();
    let mut instances: BTreeMap<OperationInstance, Vec<CollectiveCall>> = BTreeMap::new();
    for rank in 0..trace.ranks.len() {
        calls(trace, rank, &mut known, &mut instances);
    }
    let mut rows: BTreeMap<(usize, u16, u8), CollectiveRow> = BTreeMap::new();
    let mut waits = vec![vec![]; trace.ranks.len()];
    for (instance, calls) in &instances {
        let communicator = &known.all[instance.communicator];
        for call in calls {
            rows.entry((instance.communicator, call.operation, call.mode)).or_default().call(call);
        }
        // Without all members it is not known which came last.
        let Some(last) = calls.iter().max_by_key(|call| call.begin) else { continue };
        let differs = |call: &CollectiveCall| (call.operation, call.mode) != (last.operation, last.mode);
        if calls.len() != communicator.size || calls.iter().any(differs) {
            continue;
        }
        let row = rows.entry((instance.communicator, last.operation, last.mode)).or_default();
        let mut cost = 0;
        for call in calls {
            let until = call.end.unwrap_or(u64::MAX).min(last.begin);
            let mut waited = 0;
            for (begin, end) in waiting(&slept[call.rank as usize], call, until) {
                waits[call.rank as usize].push(CausedWait {
                    begin,
                    end,
                    on: last.rank,
                    cause: Cause::Collective,
                });
                waited += end - begin;
            }
            row.waited(call.begin, waited);
            cost += waited;
        }
        if cost > 0 {
            row.came_last(last.rank, cost);
        }
    }
    let mut table: Vec<_> = rows.into_iter().map(|(key, row)| row.finish(key, &known)).collect();
    table.sort_by_key(|row| std::cmp::Reverse((row.waited_ns, row.inside_ns)));
    (table, waits)
}

/// The parts of a call up to `end` that were spent waiting: asleep, or awake between sleeps for a short time. What was
/// longer was the program's own, between the begin of a nonblocking operation and its wait.
fn waiting(slept: &[Slept], call: &CollectiveCall, end: u64) -> Vec<(u64, u64)> {
    let first = slept.partition_point(|slept| slept.end <= call.begin);
    let blocks = call.mode == CollMode::Blocking as u8;
    // A rank that waits for the request of an operation in the background may wait for others at the same time, but not
    // for a message alone.
    const REQUESTS: [Waiting; 4] = [Waiting::Any, Waiting::All, Waiting::Collective, Waiting::Operation];
    let inside = slept[first..].iter().take_while(|slept| slept.begin < end);
    let inside = inside.filter(|slept| blocks || REQUESTS.contains(&slept.kind));
    let most = if blocks { AWAKE } else { SHORT };
    let (mut parts, mut at) = (vec![], call.begin);
    let mut add = |from: u64, to: u64| {
        if from < to {
            parts.push((from, to));
        }
    };
    for slept in inside {
        let from = if slept.begin.saturating_sub(at) <= most { at } else { slept.begin.max(at) };
        add(from, slept.end.min(end));
        at = at.max(slept.end.min(end));
    }
    if end.saturating_sub(at) <= most {
        add(at, end);
    }
    parts
}

fn calls(
    trace: &Trace,
    rank: usize,
    known: &mut JobCommunicators,
    instances: &mut BTreeMap<OperationInstance, Vec<CollectiveCall>>,
) {
    let of = &trace.ranks[rank];
    let mut numbers: HashMap<(usize, bool), u32> = HashMap::new();
    let mut numbered: HashMap<(u32, u64), usize> = HashMap::new();
    let mut open: HashMap<u64, (OperationInstance, usize)> = HashMap::new();
    for record in &of.records {
        let (operation, algorithm, mode, begins) = match record.payload {
            RecordPayload::Coll { operation, algorithm, mode, .. } => {
                (operation, algorithm, mode, record.event == Event::CollBegin)
            }
            RecordPayload::Sync { call, .. } if call == WindowSync::Fence as u8 => (
                FENCE,
                Algorithm::Unknown as u16,
                CollMode::Blocking as u8,
                record.event == Event::WinSyncBegin,
            ),
            RecordPayload::File { operation, pointer, mode, .. }
                if mode == FileMode::Collective as u8
                    && matches!(record.event, Event::FileReqActivate | Event::FileReqComplete) =>
            {
                let (operation, begins) =
                    (of_file(operation, pointer), record.event == Event::FileReqActivate);
                (operation, Algorithm::Unknown as u16, CollMode::Blocking as u8, begins)
            }
            _ => continue,
        };
        if begins {
            // A context means one communicator from its making on; finding out which is too long for every call.
            let made = of.group_of(record).map_or(0, |comm| comm.created);
            let communicator =
                *numbered.entry((record.context, made)).or_insert_with(|| known.number(of, record));
            let started = mode == CollMode::Persistent as u8;
            let number = numbers.entry((communicator, started)).or_default();
            let instance = OperationInstance { communicator, started, number: *number };
            *number += 1;
            let calls = instances.entry(instance).or_default();
            open.insert(record.id, (instance, calls.len()));
            let (rank, begin, bytes) = (of.rank, record.when, record.bytes);
            calls.push(CollectiveCall { rank, begin, end: None, operation, algorithm, bytes, mode });
        } else if let Some((instance, at)) = open.remove(&record.id)
            && let Some(call) = instances.get_mut(&instance).and_then(|calls| calls.get_mut(at))
        {
            call.end = Some(record.when);
            // What was chosen may be known at the end only.
            call.algorithm = algorithm;
        }
    }
}

/// The communicators of the whole job: one for each that several ranks made together.
#[derive(Default)]
struct JobCommunicators {
    all: Vec<KnownCommunicator>,
    by_identity: HashMap<(u32, Arc<[u32]>, usize), usize>,
}

struct KnownCommunicator {
    context: u32,
    name: String,
    size: usize,
}

impl JobCommunicators {
    fn number(&mut self, rank: &RankTrace, record: &Record) -> usize {
        let (comm, context) = (rank.group_of(record), record.context);
        let group = comm.map_or_else(Arc::default, |comm| Arc::clone(&comm.group));
        // A context comes again for other communicators, perhaps of the same group: which one in turn it is.
        let turn = rank
            .communicators
            .iter()
            .chain(rank.windows.iter().map(|window| &window.comm))
            .chain(&rank.files)
            .filter(|other| other.context == context && other.group == group)
            .position(|other| comm.is_some_and(|comm| std::ptr::eq(comm, other)))
            .unwrap_or(0);
        let name = match comm {
            Some(comm) if comm.name.is_empty() && record.is_of_window() => format!("window {context}"),
            Some(comm) if comm.name.is_empty() && record.is_of_file() => format!("file {context}"),
            _ => super::communicators::name(comm, context),
        };
        let size = group.len();
        *self.by_identity.entry((context, group, turn)).or_insert_with(|| {
            self.all.push(KnownCommunicator { context, name, size });
            self.all.len() - 1
        })
    }
}

#[derive(Default)]
struct CollectiveRow {
    sums: types::CollectiveReport,
    bytes: u64,
    last: BTreeMap<u32, (u64, u64)>,
    algorithms: Vec<u16>,
}

impl CollectiveRow {
    fn call(&mut self, call: &CollectiveCall) {
        self.sums.calls += 1;
        self.bytes = self.bytes.saturating_add(call.bytes);
        self.sums.inside_ns += call.end.map_or(0, |end| end.saturating_sub(call.begin));
        if !self.algorithms.contains(&call.algorithm) {
            self.algorithms.push(call.algorithm);
        }
    }

    fn waited(&mut self, at: u64, waited: u64) {
        self.sums.waited_ns += waited;
        if waited > self.sums.longest_ns {
            (self.sums.longest_ns, self.sums.longest_at_ns) = (waited, at);
        }
    }

    fn came_last(&mut self, rank: u32, cost: u64) {
        let last = self.last.entry(rank).or_default();
        last.0 += 1;
        last.1 += cost;
    }

    fn finish(
        self,
        (communicator, operation, mode): (usize, u16, u8),
        known: &JobCommunicators,
    ) -> types::CollectiveReport {
        let KnownCommunicator { context, name, .. } = &known.all[communicator];
        let last = self.last.into_iter();
        let mut last: Vec<_> =
            last.map(|(rank, (times, cost_ns))| types::Last { rank, times, cost_ns }).collect();
        last.sort_by_key(|last| std::cmp::Reverse(last.cost_ns));
        let algorithms =
            self.algorithms.into_iter().filter(|algorithm| *algorithm != Algorithm::Unknown as u16);
        types::CollectiveReport {
            operation: operation_name(operation, mode),
            mode: named(CollMode::NAMES, mode.into()),
            communicator: name.clone(),
            context: *context,
            bytes: self.bytes / self.sums.calls.max(1),
            last,
            algorithms: algorithms.map(|number| named(Algorithm::NAMES, number).replace('_', " ")).collect(),
            ..self.sums
        }
    }
}

/// "MPI_Reduce_scatter" of "reduce_scatter"; "MPI_Ireduce_scatter" and "MPI_Reduce_scatter_init" of the other modes.
fn operation_name(operation: u16, mode: u8) -> String {
    if operation == FENCE {
        return "MPI_Win_fence".into();
    }
    for (direction, name) in [(FileOperation::Read, "read"), (FileOperation::Write, "write")] {
        for (pointer, end) in [
            (FilePointer::Explicit, "_at_all"),
            (FilePointer::Individual, "_all"),
            (FilePointer::Shared, "_ordered"),
        ] {
            if operation == of_file(direction as u8, pointer as u8) {
                return format!("MPI_File_{name}{end}");
            }
        }
    }
    let name = named(Collective::NAMES, operation);
    if mode == CollMode::Nonblocking as u8 {
        return format!("MPI_I{name}");
    }
    let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
    let end = if mode == CollMode::Persistent as u8 { "_init" } else { "" };
    format!("MPI_{}{rest}{end}", first.to_uppercase())
}

fn named(names: &[&core::ffi::CStr], number: u16) -> String {
    names
        .get(usize::from(number))
        .map_or_else(|| format!("number {number}"), |name| name.to_string_lossy().into_owned())
}
