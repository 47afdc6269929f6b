//! From a file to a [`Trace`]. Nothing in a file is believed:
//! it may be torn, from a job that was killed, or not a trace at all.

use super::format::{self, RawRecord, get_u32, get_u64, header, rank as block};
use super::model::{CommInfo, JobInfo, RankTrace, Record, RecordPayload, Trace, WindowInfo};
use super::record_windows::{Window, windows};
use crate::error::{Error, Result};
use crate::events::{Binding, Event};
use crate::shm::contexts;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// More bytes than any message can have: than a process can address. With [`LONGEST`] it keeps sums over all that a
/// spoiled file may hold far from a word's end.
const MOST_BYTES: u64 = 1 << 47;
/// Longer than any job: a hundred days, in ns.
const LONGEST: u64 = 1 << 53;
/// More events of one type than any job raises.
const MOST_EVENTS: u64 = 1 << 55;

/// Records of a full window.
const RECORDS: u64 = (format::UNIT - format::WINDOW_HEADER) / format::RECORD;

/// Reads a trace, of a job that has ended well, was killed, or still runs.
///
/// # Errors
/// [`Error::Trace`] with the path, if the file cannot be read, is no trace, or one of another version. What is torn or
/// spoiled behind a sound header is left out, and counted in [`RankTrace::unreadable`].
pub fn read(path: &Path) -> Result<Trace> {
    read_until(path, None)
}

/// As [`read`], of a job's first `until` nanoseconds alone, as if it had been killed then.
///
/// # Errors
/// As [`read`].
pub fn read_until(path: &Path, until: Option<u64>) -> Result<Trace> {
    with_bytes(path, |bytes| read_bytes_until(bytes, until))
}

/// The most records that [`read_until`] may find, without reading them.
///
/// # Errors
/// As [`read`].
pub fn most_records(path: &Path, until: Option<u64>) -> Result<u64> {
    with_bytes(path, |bytes| {
        let windows = windows(bytes, format::check_header(bytes)?);
        let clock = Clock::of(bytes, &windows);
        let last = last(bytes, &windows, &clock, until);
        let early = windows.iter().filter(|window| begin(bytes, window, &clock) <= last);
        Ok(early.map(|window| window.count as u64).sum())
    })
}

fn with_bytes<R>(path: &Path, read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    let wrong = |what: String| Error::Trace(format!("{}: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let length = file.metadata().map_err(|error| wrong(error.to_string()))?.len();
    if length == 0 {
        return Err(wrong("the file is empty".into()));
    }
    // SAFETY: a private mapping for reading. Bytes that a living job changes under us can be read torn, and everything
    // read is checked as bytes; a file that is cut meanwhile ends this process by SIGBUS, as for any reader by mapping.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| wrong(error.to_string()))?;
    read(&map).map_err(|error| match error {
        Error::Trace(what) => wrong(what),
        other => other,
    })
}

/// How much a trace holds, without reading all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceTally {
    /// Ranks that recorded.
    pub recorded: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks that recorded and did not come to MPI_Finalize.
    pub cut: u32,
    /// Records, without those that go on with the one before them: as many as a reader yields.
    pub records: u64,
    /// Events that have none.
    pub dropped: u64,
    /// An errno for which a rank stopped recording; 0 if none did.
    pub stopped_by: i32,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Counts what a trace holds.
///
/// # Errors
/// As [`read`].
pub fn tally(path: &Path) -> Result<TraceTally> {
    with_bytes(path, |bytes| {
        let count = format::check_header(bytes)?;
        let mut tally = TraceTally { ranks: count, bytes: bytes.len() as u64, ..TraceTally::default() };
        let mut continued = 0_u64;
        for rank in (0..count).map(|rank| rank_block(bytes, rank)).filter(|rank| rank.pid != 0) {
            let at = format::HEADER + u64::from(rank.rank) * format::RANK_BLOCK + block::CONTINUED;
            continued = continued.saturating_add(get_u64(bytes, at).unwrap_or(0));
            tally.recorded += 1;
            tally.cut += u32::from(!rank.complete);
            tally.dropped = tally.dropped.saturating_add(rank.dropped);
            tally.stopped_by = if tally.stopped_by == 0 { rank.stopped_by } else { tally.stopped_by };
        }
        let records: u64 = windows(bytes, count).iter().map(|window| window.count as u64).sum();
        tally.records = records.saturating_sub(continued);
        Ok(tally)
    })
}

/// As [`read`], of a file's bytes.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Trace> {
    read_bytes_until(bytes, None)
}

/// The last moment that is to be read, on the records' own clock.
fn last(bytes: &[u8], windows: &[Window], clock: &Clock, until: Option<u64>) -> u64 {
    let Some(until) = until else { return u64::MAX };
    let first =
        windows.iter().filter(|window| window.count > 0).map(|window| begin(bytes, window, clock)).min();
    first.unwrap_or(0).saturating_add(until)
}

/// When a window's first record was written.
fn begin(bytes: &[u8], window: &Window, clock: &Clock) -> u64 {
    clock.nanoseconds(get_u64(bytes, window.from).map_or(0, format::ticks_of))
}

fn read_bytes_until(bytes: &[u8], until: Option<u64>) -> Result<Trace> {
    let count = format::check_header(bytes)?;
    let windows = windows(bytes, count);
    let clock = Clock::of(bytes, &windows);
    let last_read = last(bytes, &windows, &clock, until);
    let mut is_cut = false;
    let mut ranks: Vec<RankTrace> = (0..count).map(|rank| rank_block(bytes, rank)).collect();
    for of_stream in windows.chunk_by(|a, b| (a.rank, a.stream) == (b.rank, b.stream)) {
        let rank = &mut ranks[of_stream[0].rank as usize];
        // A count of streams that does not fit is of no real trace: the last number stands for the rest.
        let number = rank.streams;
        rank.streams = rank.streams.saturating_add(1);
        if !read_stream(bytes, of_stream, &clock, number, rank, last_read) {
            is_cut = true;
            rank.complete = false;
        }
    }
    let first = ranks.iter().flat_map(|rank| &rank.records).map(|record| record.when).min().unwrap_or(0);
    let world: Arc<[u32]> = (0..count).collect();
    let is_joined = is_joined(bytes);
    for rank in &mut ranks {
        // Those who join have no communicators: their contexts are for all.
        let all = rank.communicators.iter_mut().filter(|comm| comm.group.is_empty());
        all.for_each(|comm| comm.group = Arc::clone(&world));
        if !is_joined {
            name_predefined(rank, &world);
        }
        finish(rank, first);
    }
    let last = ranks.iter().filter_map(|rank| rank.records.last()).map(|record| record.when).max();
    let job = JobInfo { cut: until.filter(|_| is_cut), ..job(bytes, last.unwrap_or(0)) };
    Ok(Trace { job, ranks })
}

/// From ticks to nanoseconds, the same for all ranks, so that what follows something on another rank is later here too.
struct Clock {
    ticks: u64,
    nanoseconds: u64,
}

impl Clock {
    /// A shorter time between the two readings of both clocks says less than what the kernel says of the rate.
    const LONG_ENOUGH: u64 = 50_000_000;

    /// Measured between the trace's making and its last window's, or else as the header says.
    fn of(bytes: &[u8], windows: &[Window]) -> Clock {
        let word = |at| get_u64(bytes, at).unwrap_or(0);
        let (base, since) = (word(header::BASE_TICKS), word(header::BASE_NANOSECONDS));
        let stated = Clock { ticks: word(header::TICKS_PER_SECOND).max(1), nanoseconds: 1_000_000_000 };
        let Some((ticks, nanoseconds)) = windows.iter().filter_map(|window| window.opened).max() else {
            return stated;
        };
        let measured =
            Clock { ticks: ticks.saturating_sub(base), nanoseconds: nanoseconds.saturating_sub(since) };
        let long = measured.nanoseconds >= Clock::LONG_ENOUGH && measured.ticks > 0;
        // Two clocks that disagree by a tenth are no clocks of one machine: the file is spoiled.
        let rate = |clock: &Clock| clock.nanoseconds as f64 / clock.ticks as f64;
        if long && (rate(&measured) / rate(&stated) - 1.0).abs() < 0.1 { measured } else { stated }
    }

    /// Nanoseconds since the base of `ticks` since the base.
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let exact = u128::from(ticks) * u128::from(self.nanoseconds) / u128::from(self.ticks);
        u64::try_from(exact).unwrap_or(u64::MAX)
    }
}

fn rank_block(bytes: &[u8], rank: u32) -> RankTrace {
    let at = format::HEADER + u64::from(rank) * format::RANK_BLOCK;
    let word = |offset| get_u32(bytes, at + offset).unwrap_or(0);
    let cpus: [u8; block::CPUS_LENGTH as usize] = format::get(bytes, at + block::CPUS).unwrap_or([0; _]);
    let cpus = cpus.split(|byte| *byte == 0).next().unwrap_or_default();
    let dropped = |number| get_u64(bytes, at + block::DROPPED + number * 8).unwrap_or(0).min(MOST_EVENTS);
    RankTrace {
        rank,
        pid: word(block::PID),
        cpus: String::from_utf8_lossy(cpus).into_owned(),
        dropped: (0..block::DROPPED_LENGTH).map(dropped).fold(0, u64::saturating_add),
        stopped_by: word(block::ERROR).cast_signed(),
        complete: word(block::FINALIZED) == 1,
        ..RankTrace::default()
    }
}

/// Whether ranks have joined the trace.
fn is_joined(bytes: &[u8]) -> bool {
    get_u32(bytes, header::CAPACITY).is_some_and(|capacity| capacity > 0)
}

fn has_ended(bytes: &[u8]) -> bool {
    get_u32(bytes, header::ENDED) == Some(1)
}

fn job(bytes: &[u8], duration: u64) -> JobInfo {
    let length =
        u64::from(get_u32(bytes, header::TEXT_LENGTH).unwrap_or(0)).min(format::HEADER - header::TEXT);
    let text = bytes.get(header::TEXT as usize..(header::TEXT + length) as usize).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let value = |name: &str| {
        let of = text.lines().filter_map(|line| line.split_once('=')).find(|(found, _)| *found == name);
        of.map_or_else(String::new, |(_, value)| value.to_owned())
    };
    JobInfo {
        command: value("command"),
        host: value("host"),
        version: value("version"),
        started: get_u64(bytes, header::STARTED).unwrap_or(0),
        status: has_ended(bytes).then(|| get_u32(bytes, header::STATUS).unwrap_or(0).cast_signed()),
        duration,
        of_endpoints: is_joined(bytes),
        cut: None,
    }
}

/// What a stream's records so far leave open.
struct StreamReader<'a> {
    rank: &'a mut RankTrace,
    clock: &'a Clock,
    number: u16,
    /// Time does not go back within a stream.
    now: u64,
    /// What goes on in the records that follow: the head, and what has come of it.
    open: Option<(RawRecord, Vec<u8>)>,
}

/// Reads a stream's records up to the moment `last`; false if there are later ones.
fn read_stream(
    bytes: &[u8],
    windows: &[Window],
    clock: &Clock,
    number: u16,
    rank: &mut RankTrace,
    last: u64,
) -> bool {
    let mut stream = StreamReader { rank, clock, number, now: 0, open: None };
    let ended = has_ended(bytes);
    // More windows than the file has room for are missing in no file.
    let most = bytes.len() as u64 / format::UNIT;
    let (mut whole, mut next) = (true, 0);
    'windows: for (place, window) in windows.iter().enumerate() {
        // While the job goes on, what is behind the end as it was when we began is missing.
        let missing = u64::from(window.sequence).saturating_sub(next).min(most);
        if ended && missing > 0 {
            stream.lose(missing * RECORDS);
        }
        next = u64::from(window.sequence) + 1;
        for record in window.records(bytes) {
            let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
            let Some(entry) = RawRecord::unpack([word(0), word(8), word(16), word(24)]) else {
                stream.lose(1);
                continue;
            };
            if entry.event == format::CONTINUATION {
                stream.carry_on(&record[8..]);
            } else if clock.nanoseconds(entry.ticks) > last {
                whole = false;
                break 'windows;
            } else {
                stream.take(entry);
            }
        }
        // A stream goes on in another window when the one before is full.
        let left = window.left(bytes);
        if left > 0 && place + 1 < windows.len() {
            stream.lose(left);
        }
    }
    stream.end();
    whole
}

impl StreamReader<'_> {
    /// Nothing more comes of what goes on in records of its own.
    fn end(&mut self) {
        if let Some((head, carried)) = self.open.take() {
            self.close(head, &carried);
        }
    }

    /// So many records were in a place where there are none.
    fn lose(&mut self, records: u64) {
        self.end();
        self.rank.unreadable = self.rank.unreadable.saturating_add(records);
    }

    fn take(&mut self, entry: RawRecord) {
        self.end();
        let when = self.clock.nanoseconds(entry.ticks);
        let Some(event) = Event::by_number(i32::from(entry.event)).filter(|_| when <= LONGEST) else {
            self.rank.unreadable += 1;
            return;
        };
        self.now = self.now.max(when);
        let record = record(&entry, event, self.now, self.number);
        if record.bytes > MOST_BYTES {
            self.rank.unreadable += 1;
            return;
        }
        self.rank.records.push(record);
        match event {
            Event::CommCreated
            | Event::CommNamed
            | Event::WinCreated
            | Event::WinNamed
            | Event::FileOpened
            | Event::FileNamed => {
                self.open = Some((entry, Vec::new()));
            }
            Event::CommFreed | Event::WinFreed | Event::FileClosed => {
                let now = self.now;
                if let Some(comm) = self.living(event, entry.context) {
                    comm.freed = Some(now);
                }
            }
            Event::WinPlaced => {
                let of = |window: &&mut WindowInfo| window.comm.context == entry.context;
                let window = self.rank.windows.iter_mut().rfind(of);
                if let (Some(window), RecordPayload::Window { flavor, reach, bytes }) =
                    (window, record.payload)
                {
                    *window = WindowInfo { flavor, reach, bytes, comm: core::mem::take(&mut window.comm) };
                }
            }
            _ => {}
        }
    }

    /// The communicator, or the window or file if the event is of one, that has this context and is not freed.
    fn living(&mut self, event: Event, context: u32) -> Option<&mut CommInfo> {
        let living = |comm: &CommInfo| comm.context == context && comm.freed.is_none();
        if matches!(event, Event::WinNamed | Event::WinFreed) {
            let window = self.rank.windows.iter_mut().rfind(|window| living(&window.comm));
            return window.map(|window| &mut window.comm);
        }
        let files = matches!(event, Event::FileNamed | Event::FileClosed);
        let all = if files { &mut self.rank.files } else { &mut self.rank.communicators };
        all.iter_mut().rfind(|comm| living(comm))
    }

    fn carry_on(&mut self, bytes: &[u8]) {
        match &mut self.open {
            Some((head, carried)) if (carried.len() as u64) < head.words.third => {
                let left = usize::try_from(head.words.third).map_or(bytes.len(), |all| all - carried.len());
                carried.extend_from_slice(&bytes[..bytes.len().min(left)]);
            }
            _ => self.rank.unreadable += 1,
        }
    }

    /// All that belongs to `head` is there, or nothing more will come.
    fn close(&mut self, head: RawRecord, carried: &[u8]) {
        if carried.len() as u64 != head.words.third {
            self.rank.unreadable += 1;
            return;
        }
        for named in [Event::CommNamed, Event::WinNamed, Event::FileNamed] {
            if head.event == named.code() {
                let name = String::from_utf8_lossy(carried).into_owned();
                if let Some(comm) = self.living(named, head.context) {
                    comm.name = name;
                }
                return;
            }
        }
        let group = carried.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let comm =
            CommInfo { context: head.context, name: String::new(), group, created: self.now, freed: None };
        if head.event == Event::WinCreated.code() {
            self.rank.windows.push(WindowInfo { comm, ..WindowInfo::default() });
        } else if head.event == Event::FileOpened.code() {
            self.rank.files.push(comm);
        } else {
            self.rank.communicators.push(comm);
        }
    }
}

/// What an entry says, but for the queues.
fn record(entry: &RawRecord, event: Event, when: u64, stream: u16) -> Record {
    let RawRecord { id, context, words, .. } = *entry;
    let info = event.info();
    let payload = match event {
        // The members were named when it was made.
        Event::CommFreed | Event::WinFreed | Event::FileClosed => RecordPayload::None,
        _ => info.payload.unpack(words),
    };
    let (peer, tag, bytes) = if info.is_of_message() {
        (words.first.cast_signed(), words.second.cast_signed(), words.message_bytes(payload))
    } else if info.binding == Binding::Window {
        let bytes = if matches!(payload, RecordPayload::Rma { .. }) { words.third } else { 0 };
        (words.first.cast_signed(), 0, bytes)
    } else if matches!(payload, RecordPayload::File { .. }) {
        (-1, 0, words.third)
    } else {
        (payload.peer().map_or(-1, u32::cast_signed), 0, payload.bytes().unwrap_or(0))
    };
    let send = entry.send && info.is_of_message();
    Record { when, event, id, context, peer, tag, bytes, send, stream, posted: 0, unexpected: 0, payload }
}

/// Puts a rank's streams together, and says how long its queues were.
fn finish(rank: &mut RankTrace, first: u64) {
    // Stable, and a merge of runs that are there: what has the same time keeps its order within a stream.
    rank.records.sort_by_key(|record| record.when);
    for record in &mut rank.records {
        record.when -= first;
    }
    let windows = rank.windows.iter_mut().map(|window| &mut window.comm);
    for comm in rank.communicators.iter_mut().chain(windows).chain(&mut rank.files) {
        comm.created = comm.created.saturating_sub(first);
        comm.freed = comm.freed.map(|freed| freed.saturating_sub(first));
    }
    rank.communicators.sort_by_key(|comm| comm.created);
    rank.windows.sort_by_key(|window| window.comm.created);
    rank.files.sort_by_key(|file| file.created);
    measure_queues(rank);
    number_arrivals(rank);
}

/// Numbers the messages that arrive, by communicator and sender, from 0.
fn number_arrivals(rank: &mut RankTrace) {
    let mut next: HashMap<(u32, i32), u64> = HashMap::new();
    for record in &mut rank.records {
        match (record.event, &mut record.payload) {
            (_, RecordPayload::Arrival { sequence }) => {
                let number = next.entry((record.context, record.peer)).or_default();
                *sequence = core::mem::replace(number, *number + 1);
            }
            // A context that comes again is another communicator.
            (Event::CommCreated, _) => next.retain(|(context, _), _| *context != record.context),
            _ => {}
        }
    }
}

/// MPI_COMM_WORLD and MPI_COMM_SELF are there, whether the trace has records of them or not;
/// but a rank that never was has none.
fn name_predefined(rank: &mut RankTrace, world: &Arc<[u32]>) {
    if rank.pid == 0 && rank.records.is_empty() {
        return;
    }
    // A group of its own for each rank would take memory by the square of the ranks,
    // of which a file of holes may claim many.
    let (own, world) = (Arc::from([rank.rank]), Arc::clone(world));
    for (id, name, group) in
        [(contexts::SELF, "MPI_COMM_SELF", own), (contexts::WORLD, "MPI_COMM_WORLD", world)]
    {
        let context = 2 * id;
        match rank.communicators.iter_mut().find(|comm| comm.context == context) {
            Some(comm) if comm.name.is_empty() => comm.name = name.into(),
            Some(_) => {}
            None => {
                let comm = CommInfo { context, name: name.into(), group, created: 0, freed: None };
                rank.communicators.insert(0, comm);
            }
        }
    }
}

fn measure_queues(rank: &mut RankTrace) {
    let mut posted = 0_u32;
    // By id: a message that came before its communicator was there leaves the queue without having entered it, for the
    // trace.
    let mut unexpected = HashSet::new();
    for record in &mut rank.records {
        match record.event {
            Event::ReqInsertInPostedQ => posted = posted.saturating_add(1),
            Event::ReqRemoveFromPostedQ => posted = posted.saturating_sub(1),
            Event::MsgInsertInUnexQ => drop(unexpected.insert(record.id)),
            Event::MsgRemoveFromUnexQ => drop(unexpected.remove(&record.id)),
            _ => {}
        }
        record.posted = posted;
        record.unexpected = u32::try_from(unexpected.len()).unwrap_or(u32::MAX);
        rank.posted_high = rank.posted_high.max(posted);
        rank.unexpected_high = rank.unexpected_high.max(record.unexpected);
    }
}

#[cfg(test)]
#[path = "reader_test.rs"]
mod tests;
