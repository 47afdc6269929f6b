//! What a reader yields: the job, its ranks, and their records in the order of time.

use crate::events::{Binding, Event, EventPayload};
use std::sync::Arc;

/// A trace in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// What the ranks had in common.
    pub job: JobInfo,
    /// One for each rank, in their order.
    pub ranks: Vec<RankTrace>,
}

/// What the ranks of a traced job had in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobInfo {
    /// Program and arguments of the first program of the job, as typed.
    pub command: String,
    /// Name of the machine.
    pub host: String,
    /// Version of perusal that wrote the trace.
    pub version: String,
    /// When the launcher made the trace: nanoseconds since 1970.
    pub started: u64,
    /// Exit status of the job; `None` while it runs, or if the launcher did not live to say it.
    pub status: Option<i32>,
    /// From the first record to the last, nanoseconds.
    pub duration: u64,
    /// Whether its ranks are endpoints under another MPI, of whose calls and waits nothing is known.
    pub of_endpoints: bool,
    /// If what came later than so many nanoseconds was left out, because the reader was asked to.
    pub cut: Option<u64>,
}

/// What one rank recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankTrace {
    /// Its rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Process id; 0 if the rank never began to record.
    pub pid: u32,
    /// CPUs that the launcher bound it to, as "0-3,8"; empty if it was not bound.
    pub cpus: String,
    /// Sources of records, one for each thread that was inside MPI at once; records name theirs by a number below this.
    pub streams: u16,
    /// Its communicators, in the order in which they were made; none if it never began to record.
    pub communicators: Vec<CommInfo>,
    /// Its windows, in the order in which they were made.
    pub windows: Vec<WindowInfo>,
    /// The files that it opened, in that order: name, members, when each was opened and closed.
    pub files: Vec<CommInfo>,
    /// All that is known, in the order of time.
    pub records: Vec<Record>,
    /// Events that happened and have no record: the limit was reached, or the disk was full. They are the last ones.
    pub dropped: u64,
    /// Why it stopped recording before its limit: an errno, such as ENOSPC; 0 if it did not.
    pub stopped_by: i32,
    /// Records that made no sense and were left out, or are missing where others follow; 0 unless the file is spoiled.
    pub unreadable: u64,
    /// Whether the rank came to MPI_Finalize; if not, it ended before, or the trace was read meanwhile.
    pub complete: bool,
    /// Most entries that the posted queue ever had.
    pub posted_high: u32,
    /// Most entries that the unexpected queue ever had.
    pub unexpected_high: u32,
}

/// A communicator as one rank knew it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommInfo {
    /// The context id of its messages; may come again after the communicator is freed.
    pub context: u32,
    /// The name it was given; empty if none.
    pub name: String,
    /// World ranks of those whom a `peer` names: of an intercommunicator, the other side.
    /// That of MPI_COMM_WORLD is one for all ranks.
    pub group: Arc<[u32]>,
    /// When it was made, on the clock of [`Record::when`].
    pub created: u64,
    /// When it was freed here, if it was.
    pub freed: Option<u64>,
}

/// A window as one rank knew it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowInfo {
    /// Its context, name and members, and when it was made and freed: as of a communicator.
    pub comm: CommInfo,
    /// How it was made: 0 create, 1 allocate, 2 dynamic, 3 shared.
    pub flavor: u8,
    /// The slowest way in which the rank reaches another's memory: a [`WindowReach`](crate::events::WindowReach).
    pub reach: u8,
    /// Bytes of the rank's own part.
    pub bytes: u64,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the job's first record; the same clock for all ranks.
    pub when: u64,
    /// Which event.
    pub event: Event,
    /// Relates the events of one request, message, search, collective or copy; given again when that is over.
    pub id: u64,
    /// Context of the communicator; [`Record::NO_CONTEXT`] if the event has none.
    pub context: u32,
    /// Rank of the other side in the communicator, or of the target in the window; in the job where there is no
    /// context. Negative: any, all, none, or not known.
    pub peer: i32,
    /// The tag; what the user gave until the real one is known.
    pub tag: i32,
    /// Bytes of the message or one-sided operation, or of the room that a receive offers until it is matched.
    pub bytes: u64,
    /// Whether the request is a send.
    pub send: bool,
    /// Which of the rank's streams it comes from.
    pub stream: u16,
    /// Receives in the posted queue after the event.
    pub posted: u32,
    /// Messages in the unexpected queue after the event.
    pub unexpected: u32,
    /// What belongs to this kind of event alone.
    pub payload: RecordPayload,
}

/// What belongs to this type of event alone. The ranks of a communicator and names are in [`RankTrace::communicators`],
/// not here.
pub type RecordPayload = EventPayload<'static>;

impl Record {
    /// The `context` of an event that belongs to no communicator.
    pub const NO_CONTEXT: u32 = u32::MAX;

    /// Whether it is of a window, and so its context a window's.
    #[must_use]
    pub fn is_of_window(&self) -> bool {
        self.event.info().binding == Binding::Window
            || matches!(self.event, Event::WinCreated | Event::WinPlaced | Event::WinNamed | Event::WinFreed)
    }
}

impl Record {
    /// Whether it is of a file, and so its context a file's.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.event.info().binding == Binding::File
            || matches!(self.event, Event::FileOpened | Event::FileNamed | Event::FileClosed)
    }
}

impl Trace {
    /// Events that have no record, of all ranks.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        // A spoiled file may claim anything.
        self.ranks.iter().fold(0, |sum: u64, rank| sum.saturating_add(rank.dropped))
    }

    /// Records of all ranks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranks.iter().map(|rank| rank.records.len()).sum()
    }

    /// Whether there is no record at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl RankTrace {
    /// The communicator that a context stood for at a time.
    #[must_use]
    pub fn communicator(&self, context: u32, when: u64) -> Option<&CommInfo> {
        of_time(self.communicators.iter(), |comm| comm, context, when)
    }

    /// The window that a context stood for at a time.
    #[must_use]
    pub fn window(&self, context: u32, when: u64) -> Option<&WindowInfo> {
        of_time(self.windows.iter(), |window| &window.comm, context, when)
    }

    /// The file that a context stood for at a time.
    #[must_use]
    pub fn file(&self, context: u32, when: u64) -> Option<&CommInfo> {
        of_time(self.files.iter(), |file| file, context, when)
    }

    /// What a record's context stands for: a communicator, or a window or a file with its members.
    #[must_use]
    pub fn group_of(&self, record: &Record) -> Option<&CommInfo> {
        if record.is_of_window() {
            return self.window(record.context, record.when).map(|window| &window.comm);
        }
        if record.is_of_file() {
            return self.file(record.context, record.when);
        }
        self.communicator(record.context, record.when)
    }

    /// The rank in MPI_COMM_WORLD of a record's peer; `None` if the record names none.
    #[must_use]
    pub fn world_peer(&self, record: &Record) -> Option<u32> {
        let peer = usize::try_from(record.peer).ok()?;
        if record.context == Record::NO_CONTEXT {
            return u32::try_from(peer).ok();
        }
        self.group_of(record)?.group.get(peer).copied()
    }
}

/// What a context meant at a time, of those that had it in turn.
fn of_time<'a, T>(
    all: impl DoubleEndedIterator<Item = &'a T> + Clone,
    comm: impl Fn(&T) -> &CommInfo,
    context: u32,
    when: u64,
) -> Option<&'a T> {
    let mut of_context = all.filter(|one| comm(one).context == context);
    // Records of a message may come before the communicator is made here, and after it is freed.
    let first = of_context.clone().next();
    of_context.rfind(|one| comm(one).created <= when).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(context: u32, group: &[u32], created: u64, freed: Option<u64>) -> CommInfo {
        CommInfo { context, name: String::new(), group: group.into(), created, freed }
    }

    #[test]
    fn a_context_that_comes_again_means_the_communicator_of_its_time() {
        let rank = RankTrace {
            communicators: vec![comm(4, &[0, 1], 10, Some(20)), comm(4, &[2, 0], 30, None)],
            ..RankTrace::default()
        };
        let group = |when| rank.communicator(4, when).map(|comm| comm.group[0]);
        assert_eq!([group(5), group(10), group(25), group(30)], [Some(0), Some(0), Some(0), Some(2)]);
        assert_eq!(rank.communicator(6, 10), None);
    }
}
