//! The files of a whole job, and who waited for whose lock of a part of one.

use super::model::{CommInfo, Record, RecordPayload, Trace};
use super::objects::JobObjects;
use crate::events::Event;
use std::collections::{BTreeMap, HashMap};

/// All files that a job opened, each opening once.
pub type JobFiles<'a> = JobObjects<'a, CommInfo>;

impl<'a> JobFiles<'a> {
    /// Those of a trace.
    #[must_use]
    pub fn of(trace: &'a Trace) -> Self {
        Self::collect(trace, |rank| &rank.files, |file| file)
    }

    /// The name that a file was opened with.
    #[must_use]
    pub fn name(&self, number: usize) -> String {
        match self.all.get(number) {
            Some(file) if !file.name.is_empty() => file.name.clone(),
            Some(file) => format!("file {}", file.context),
            None => String::new(),
        }
    }
}

/// A rank's wait for the lock of a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLockWait {
    /// Which file.
    pub file: usize,
    /// Who waited; here and below ranks of the job.
    pub rank: u32,
    /// Who held a lock of some of these bytes for most of the wait; `None` if no rank of the job is recorded to.
    pub holder: Option<u32>,
    /// When it began.
    pub begin: u64,
    /// When it was over, or the rank's trace.
    pub end: u64,
}

/// Bytes of a file: the first, and that behind the last.
#[derive(Debug, Clone, Copy)]
struct Part {
    from: u64,
    to: u64,
    shared: bool,
}

impl Part {
    fn of(record: &Record) -> Option<Part> {
        let RecordPayload::FileLock { length, lock, offset } = record.payload else { return None };
        let to = if length == u32::MAX { u64::MAX } else { offset.saturating_add(length.into()) };
        Some(Part { from: offset, to, shared: lock == crate::events::WindowLock::Shared as u8 })
    }

    /// Whether one of the two keeps the other from being locked.
    fn excludes(&self, other: &Part) -> bool {
        self.from < other.to && other.from < self.to && !(self.shared && other.shared)
    }
}

/// A lock that a rank held.
struct Hold {
    rank: u32,
    part: Part,
    begin: u64,
    end: u64,
}

/// All waits for locks of files, by rank and time.
#[must_use]
pub fn file_lock_waits(trace: &Trace, files: &JobFiles<'_>) -> Vec<FileLockWait> {
    let mut holds: HashMap<usize, Vec<Hold>> = HashMap::new();
    let mut waits: Vec<(FileLockWait, Part)> = vec![];
    for (place, rank) in trace.ranks.iter().enumerate() {
        let mut held: HashMap<(usize, u64), (u64, Part)> = HashMap::new();
        let mut open: HashMap<(usize, u64), usize> = HashMap::new();
        let last = rank.records.last().map_or(0, |record| record.when);
        for record in &rank.records {
            let Some(part) = Part::of(record) else { continue };
            let Some(file) = files.number(place, record) else { continue };
            let key = (file, record.id);
            match record.event {
                Event::FileLockAcquired => drop(held.insert(key, (record.when, part))),
                Event::FileLockReleased => {
                    if let Some((begin, part)) = held.remove(&key) {
                        let hold = Hold { rank: rank.rank, part, begin, end: record.when };
                        holds.entry(file).or_default().push(hold);
                    }
                }
                Event::FileLockWaitBegin => {
                    open.insert(key, waits.len());
                    let (begin, rank) = (record.when, rank.rank);
                    waits.push((FileLockWait { file, rank, holder: None, begin, end: last }, part));
                }
                Event::FileLockWaitEnd => {
                    if let Some(at) = open.remove(&key) {
                        waits[at].0.end = record.when;
                    }
                }
                _ => {}
            }
        }
        for ((file, _), (begin, part)) in held {
            let hold = Hold { rank: rank.rank, part, begin, end: u64::MAX };
            holds.entry(file).or_default().push(hold);
        }
    }
    // Few locks are held at once, but many in a run: those that a wait cannot have met are not looked at.
    let mut longest: HashMap<usize, u64> = HashMap::new();
    for (file, holds) in &mut holds {
        holds.sort_by_key(|hold| hold.begin);
        let most = holds.iter().map(|hold| hold.end - hold.begin).max();
        longest.insert(*file, most.unwrap_or(0));
    }
    for (wait, part) in &mut waits {
        let Some(holds) = holds.get(&wait.file) else { continue };
        let from = wait.begin.saturating_sub(longest[&wait.file]);
        let first = holds.partition_point(|hold| hold.begin < from);
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for hold in holds[first..].iter().take_while(|hold| hold.begin < wait.end) {
            if hold.rank != wait.rank && hold.part.excludes(part) {
                let during = hold.end.min(wait.end).saturating_sub(hold.begin.max(wait.begin));
                *sums.entry(hold.rank).or_default() += during;
            }
        }
        // Of equals the lowest rank.
        let most = sums.into_iter().filter(|(_, ns)| *ns > 0).rev().max_by_key(|(_, ns)| *ns);
        wait.holder = most.map(|(rank, _)| rank);
    }
    waits.into_iter().map(|(wait, _)| wait).collect()
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Synthetic;
    use super::*;

    fn lock(event: Event, id: u64, offset: u64, length: u32, lock: u8) -> Record {
        Record {
            context: 8,
            payload: RecordPayload::FileLock { length, lock, offset },
            ..Synthetic::record(event, id)
        }
    }

    #[test]
    fn a_wait_is_charged_to_who_locked_the_same_bytes() {
        let mut job = Synthetic::new(4);
        job.file(1, 8, "/data/out", &[0, 1, 2, 3]);
        let (shared, exclusive) = (1, 2);
        // Rank 2 has other bytes, and rank 3 only reads, as the waiter does.
        for (rank, offset, how) in [(0, 100, exclusive), (2, 500, exclusive), (3, 100, shared)] {
            job.push(rank, 10, &lock(Event::FileLockAcquired, 1, offset, 100, how));
            job.push(rank, 300, &lock(Event::FileLockReleased, 1, offset, 100, how));
        }
        job.push(1, 50, &lock(Event::FileLockWaitBegin, 7, 150, 20, shared));
        job.push(1, 301, &lock(Event::FileLockWaitEnd, 7, 150, 20, shared));
        // Nobody in the job holds these.
        job.push(1, 400, &lock(Event::FileLockWaitBegin, 8, 150, 1, exclusive));
        job.push(1, 420, &lock(Event::FileLockWaitEnd, 8, 150, 1, exclusive));
        let trace = job.trace();
        let files = JobFiles::of(&trace);
        assert_eq!((files.all.len(), files.name(0)), (1, "/data/out".to_owned()));
        let waits = file_lock_waits(&trace, &files);
        let found: Vec<_> = waits.iter().map(|w| (w.rank, w.end - w.begin)).collect();
        assert_eq!(found, [(1, 251), (1, 20)]);
        assert_eq!((waits[0].holder, waits[1].holder), (Some(0), None));
    }
}
