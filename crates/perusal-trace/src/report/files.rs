//! Files: what each was used for, and who waited for whom at which.

use super::types::{Accesses, FileReport, FileWaitReport};
use super::waits::{CausedWait, charge_lock};
use super::words;
use crate::events::{Event, FileMode, FileOperation};
use crate::trace::files::{JobFiles, file_lock_waits};
use crate::trace::{RecordPayload, Trace};
use std::collections::{BTreeMap, HashMap};

/// What is found of files.
pub struct AtFiles {
    /// The files, those with most bytes first.
    pub files: Vec<FileReport>,
    /// What cost most first.
    pub waits: Vec<FileWaitReport>,
    /// Each rank's waiting for locks that others held.
    pub of_ranks: Vec<Vec<CausedWait>>,
}

/// Looks at a trace.
#[must_use]
pub fn files(trace: &Trace) -> AtFiles {
    let job = JobFiles::of(trace);
    let mut files: Vec<FileReport> = (0..)
        .zip(&job.all)
        .map(|(number, file)| FileReport {
            name: job.name(number),
            context: file.context,
            size: file.group.len() as u32,
            members: words::ranks(file.group.to_vec(), 4),
            ..FileReport::default()
        })
        .collect();
    for (place, rank) in trace.ranks.iter().enumerate() {
        let mut begun: HashMap<(Event, u64), u64> = HashMap::new();
        for record in &rank.records {
            let RecordPayload::File { operation, mode, accesses, .. } = record.payload else { continue };
            let Some(number) = job.number(place, record) else { continue };
            let file = &mut files[number];
            let mut since = |begin: Event| {
                begun.remove(&(begin, record.id)).map_or(0, |began| record.when.saturating_sub(began))
            };
            match record.event {
                Event::FileReqComplete => {
                    let ns = since(Event::FileReqActivate);
                    let reads = operation == FileOperation::Read as u8;
                    let sum = if reads { &mut file.read } else { &mut file.written };
                    let bytes = sum.bytes.saturating_add(record.bytes);
                    *sum = Accesses { operations: sum.operations + 1, bytes };
                    file.disk_accesses += u64::from(accesses);
                    file.collective += u64::from(mode == FileMode::Collective as u8);
                    if mode == FileMode::Nonblocking as u8 {
                        file.nonblocking += 1;
                    } else {
                        file.inside_ns += ns;
                    }
                }
                Event::FileReqXferEnd => file.moving_ns += since(Event::FileReqXferBegin),
                Event::FilePointerEnd => file.pointer_ns += since(Event::FilePointerBegin),
                Event::FileReqActivate | Event::FileReqXferBegin | Event::FilePointerBegin => {
                    begun.insert((record.event, record.id), record.when);
                }
                _ => {}
            }
        }
    }
    let mut of_ranks = vec![vec![]; trace.ranks.len()];
    let waits = locks(trace, &job, &mut files, &mut of_ranks);
    files.sort_by_key(|file| {
        (std::cmp::Reverse(file.read.bytes.saturating_add(file.written.bytes)), file.context)
    });
    AtFiles { files, waits, of_ranks }
}

/// The table of waits for locks; each is a wait of its rank's, too, if it is known who held the lock.
fn locks(
    trace: &Trace,
    job: &JobFiles<'_>,
    files: &mut [FileReport],
    of_ranks: &mut [Vec<CausedWait>],
) -> Vec<FileWaitReport> {
    let mut rows: BTreeMap<(usize, u32, Option<u32>), FileWaitReport> = BTreeMap::new();
    for wait in file_lock_waits(trace, job) {
        let ns = wait.end.saturating_sub(wait.begin);
        files[wait.file].lock_waits += 1;
        files[wait.file].lock_waited_ns += ns;
        let row = rows.entry((wait.file, wait.rank, wait.holder)).or_insert_with(|| FileWaitReport {
            file: job.name(wait.file),
            waiter: wait.rank,
            holder: wait.holder,
            ..FileWaitReport::default()
        });
        row.times += 1;
        row.waited_ns += ns;
        if ns >= row.longest_ns {
            (row.longest_ns, row.longest_at_ns) = (ns, wait.begin);
        }
        charge_lock(trace, of_ranks, wait.rank, wait.holder, wait.begin..wait.end);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.waited_ns));
    rows
}
