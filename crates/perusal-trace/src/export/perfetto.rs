//! Chrome's Trace Event Format as JSON, which Perfetto reads: ranks are processes, streams are their threads.
//!
//! | of the trace | in JSON |
//! |---|---|
//! | what a stream does: calls of the program's, a send or receive that begins, a message that arrives, searches within them, one-sided operations, calls that synchronise a window, waits for locks within them, sleeps | slices of the thread (`B`, `E`) |
//! | what overlaps: requests, transfers, messages in the unexpected queue, collectives, copy engines, epochs of windows | asynchronous slices of the process (`b`, `e`) |
//! | lengths of the two queues | counters (`C`) |
//! | messages | flows (`s`, `f`) from the slice of the send to that in which the message was matched |
//! | locks that were waited for | flows from the slice in which they were released to the wait that this ended |
//! | lifecycle, full rings, error handlers, partitions that become ready, arrive or are asked about | instants (`i`) |

use super::super::flows::{Flow, RecordIndex, flows};
use super::super::model::{RankTrace, Record, RecordPayload, Trace};
use super::super::windows::{JobWindows, LockWait, lock_waits};
use super::labels;
use super::slices::{Edge, SliceKind, Slices};
use crate::events::{Event, Field, Shown, WindowSync};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the trace as JSON.
///
/// # Errors
/// Those of `out`.
pub fn perfetto(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut json = Json { out, next_id: 0, text: String::new(), comma: false };
    json.begin(trace)?;
    let flows = flows(trace);
    let mut ends = ends_by_rank(trace.ranks.len(), &flows);
    let waits = lock_waits(trace, &JobWindows::of(trace));
    let mut locks = locks_by_rank(trace, &waits, flows.len());
    for rank in &trace.ranks {
        json.name_rank(rank)?;
        let ends = core::mem::take(&mut ends[rank.rank as usize]);
        let locks = core::mem::take(&mut locks[rank.rank as usize]);
        Page { json: &mut json, rank, flows: &flows, ends, locks, open: HashMap::new() }.write()?;
    }
    writeln!(json.out, "\n]}}")
}

/// For each rank, what flow begins or ends at which of its records.
fn ends_by_rank(ranks: usize, flows: &[Flow]) -> Vec<HashMap<usize, FlowEnd>> {
    let mut ends = vec![HashMap::new(); ranks];
    let mut note = |place: RecordIndex, end: FlowEnd| {
        ends[place.rank as usize].insert(place.index, end);
    };
    for (number, flow) in flows.iter().enumerate() {
        // A message that was never matched has no end to draw to.
        if let Some(incoming) = flow.incoming.filter(|incoming| incoming.matched.is_some()) {
            note(flow.send, FlowEnd { flow: number, begins: true });
            note(incoming.place, FlowEnd { flow: number, begins: false });
        }
    }
    ends
}

/// For each rank, the flows of locks that begin or end at which of its records: a release may end several waits.
fn locks_by_rank(
    trace: &Trace,
    waits: &[LockWait],
    before: usize,
) -> Vec<HashMap<usize, Vec<(FlowEnd, u64)>>> {
    let mut ends: Vec<HashMap<usize, Vec<(FlowEnd, u64)>>> = vec![HashMap::new(); trace.ranks.len()];
    for (number, wait) in waits.iter().enumerate() {
        let (Some(released), Some(ended)) = (wait.released, wait.ended) else { continue };
        let when = |place: RecordIndex| trace.ranks[place.rank as usize].records[place.index].when;
        let (from, to) = (when(released), when(ended));
        for (place, begins) in [(released, true), (ended, false)] {
            let end = FlowEnd { flow: before + number, begins };
            // A flow does not go back in time: a release is recorded when it is done,
            // perhaps after the lock has passed on.
            let at = if begins { from.min(to) } else { to };
            ends[place.rank as usize].entry(place.index).or_default().push((end, at));
        }
    }
    ends
}

#[derive(Clone, Copy)]
struct FlowEnd {
    flow: usize,
    begins: bool,
}

/// The document so far.
struct Json<'a> {
    out: &'a mut dyn Write,
    next_id: u64,
    /// Where the next event is put together.
    text: String,
    comma: bool,
}

/// Names and values, for `args`.
type Args<'a> = &'a [(&'a str, String)];

impl Json<'_> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let job = &trace.job;
        let status = job.status.map_or_else(|| "unknown".into(), |status| status.to_string());
        let about = [
            ("command", job.command.clone()),
            ("host", job.host.clone()),
            ("version", format!("perusal {}", job.version)),
            ("exit status", status),
            ("events without a record", trace.dropped().to_string()),
        ];
        self.text.clear();
        put_args(&mut self.text, "otherData", &about);
        write!(self.out, "{{\"displayTimeUnit\":\"ns\"{},\"traceEvents\":[", self.text)
    }

    fn name_rank(&mut self, rank: &RankTrace) -> io::Result<()> {
        let bound = if rank.cpus.is_empty() { String::new() } else { format!(" (CPUs {})", rank.cpus) };
        let cut = if rank.complete { "" } else { ", cut off" };
        let number = rank.rank;
        self.meta(number, 0, "process_name", "name", &quoted(&format!("rank {number}{bound}{cut}")))?;
        self.meta(number, 0, "process_sort_index", "sort_index", &number.to_string())?;
        for stream in 0..rank.streams {
            let name =
                if rank.streams == 1 { "messages".into() } else { format!("messages, stream {stream}") };
            self.meta(number, thread(stream), "thread_name", "name", &quoted(&name))?;
        }
        Ok(())
    }

    fn meta(&mut self, pid: u32, tid: u32, name: &str, what: &str, value: &str) -> io::Result<()> {
        self.head("M", name, "__metadata", pid, tid, 0);
        let _ = write!(self.text, ",\"args\":{{\"{what}\":{value}}}");
        self.end()
    }

    /// What every event has.
    fn head(&mut self, phase: &str, name: &str, category: &str, pid: u32, tid: u32, when: u64) {
        self.text.clear();
        self.text.push_str(if self.comma { ",\n" } else { "\n" });
        self.comma = true;
        let (micro, nano) = (when / 1000, when % 1000);
        let _ = write!(
            self.text,
            "{{\"ph\":\"{phase}\",\"name\":{},\"cat\":\"{category}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{micro}.{nano:03}",
            quoted(name)
        );
    }

    fn id(&mut self, id: u64) {
        let _ = write!(self.text, ",\"id\":\"{id:#x}\"");
    }

    fn args(&mut self, args: Args<'_>) {
        if !args.is_empty() {
            put_args(&mut self.text, "args", args);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.text.push('}');
        self.out.write_all(self.text.as_bytes())
    }
}

fn put_args(text: &mut String, name: &str, args: Args<'_>) {
    let _ = write!(text, ",\"{name}\":{{");
    for (index, (name, value)) in args.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Numbers as such, so that they can be summed up and sorted.
        match value.parse::<i64>() {
            Ok(number) => drop(write!(text, "{comma}{}:{number}", quoted(name))),
            Err(_) => drop(write!(text, "{comma}{}:{}", quoted(name), quoted(value))),
        }
    }
    text.push('}');
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if (c as u32) < 0x20 => drop(write!(quoted, "\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Threads are numbered from 1; 0 stands for the process.
fn thread(stream: u16) -> u32 {
    u32::from(stream) + 1
}

/// One rank's part.
struct Page<'a, 'b> {
    json: &'a mut Json<'b>,
    rank: &'a RankTrace,
    flows: &'a [Flow],
    ends: HashMap<usize, FlowEnd>,
    locks: HashMap<usize, Vec<(FlowEnd, u64)>>,
    /// Asynchronous slices that have not ended: by category and record's id, with the id in the document and the name.
    open: HashMap<(&'static str, u64), (u64, String)>,
}

impl Page<'_, '_> {
    fn write(&mut self) -> io::Result<()> {
        let mut queues = (u32::MAX, u32::MAX);
        let mut slices = Slices::default();
        let mut edges = Vec::new();
        for (index, record) in self.rank.records.iter().enumerate() {
            slices.step(record, &mut edges);
            for edge in edges.drain(..) {
                self.edge(&edge, Some(record))?;
            }
            self.flow(index, record)?;
            self.lock_flows(index, record)?;
            self.instant(record)?;
            self.beside(record)?;
            self.epochs(record)?;
            if (record.posted, record.unexpected) != queues {
                self.count("posted queue", record.when, queues.0, record.posted)?;
                self.count("unexpected queue", record.when, queues.1, record.unexpected)?;
                queues = (record.posted, record.unexpected);
            }
        }
        let last = self.rank.records.last().map_or(0, |record| record.when);
        slices.finish(last, &mut edges);
        for edge in edges {
            self.edge(&edge, None)?;
        }
        self.close_all(last)
    }

    /// The begin or end of a slice of a thread; `record` is what it came with.
    fn edge(&mut self, edge: &Edge, record: Option<&Record>) -> io::Result<()> {
        let of_window: String;
        let (name, category) = match edge.kind {
            SliceKind::Call(function) => (labels::function(function), "call"),
            SliceKind::OneSided(operation) => {
                of_window = labels::one_sided(operation);
                (of_window.as_str(), "one-sided")
            }
            SliceKind::Synchronization(call) => {
                of_window = labels::synchronization(call);
                (of_window.as_str(), "synchronization")
            }
            SliceKind::FileAccess(operation) => {
                of_window = labels::file_access(operation);
                (of_window.as_str(), "file")
            }
            SliceKind::LockWait => ("wait for lock", "synchronization"),
            SliceKind::Send => ("send", "message"),
            SliceKind::Receive => ("receive", "message"),
            SliceKind::Arrival => ("arrival", "message"),
            SliceKind::SearchPosted => ("search posted queue", "search"),
            SliceKind::SearchUnexpected => ("search unexpected queue", "search"),
            SliceKind::Sleep => ("sleep", "sleep"),
            // Among those that overlap as well, beside the threads.
            SliceKind::Collective(_) => return Ok(()),
        };
        let phase = if edge.enter { "B" } else { "E" };
        self.json.head(phase, name, category, self.rank.rank, thread(edge.stream), edge.when);
        if let Some(record) = record {
            let of_search = edge.kind.is_search() && matches!(record.payload, RecordPayload::Search { .. });
            let args = match edge.kind {
                SliceKind::Send | SliceKind::Receive | SliceKind::Arrival if edge.enter => {
                    message_args(self.rank, record)
                }
                SliceKind::Sleep if edge.enter => labels::payload(record),
                SliceKind::FileAccess(_) | SliceKind::LockWait if record.is_of_file() => {
                    file_args(self.rank, record)
                }
                SliceKind::OneSided(_) | SliceKind::Synchronization(_) | SliceKind::LockWait
                    if edge.enter =>
                {
                    window_args(self.rank, record)
                }
                _ if of_search && !edge.enter => labels::payload(record),
                _ => vec![],
            };
            self.json.args(&args);
        }
        self.json.end()
    }

    fn instant(&mut self, record: &Record) -> io::Result<()> {
        if record.event.info().shown != Shown::Instant {
            return Ok(());
        }
        let (name, thread) = (labels::event(record.event), thread(record.stream));
        let of_partition = matches!(record.payload, RecordPayload::Partition { .. });
        let category = if of_partition { "partition" } else { "lifecycle" };
        self.json.head("i", &name, category, self.rank.rank, thread, record.when);
        self.json.text.push_str(",\"s\":\"t\"");
        let mut args = labels::payload(record);
        if of_partition {
            args.push(("peer", who(record.peer)));
        }
        args.extend(labels::communicator(self.rank, record).map(|name| ("communicator", name)));
        self.json.args(&args);
        self.json.end()
    }

    fn count(&mut self, name: &str, when: u64, before: u32, now: u32) -> io::Result<()> {
        if before == now {
            return Ok(());
        }
        self.json.head("C", name, "queue", self.rank.rank, 0, when);
        self.json.args(&[("entries", now.to_string())]);
        self.json.end()
    }

    fn flow(&mut self, index: usize, record: &Record) -> io::Result<()> {
        let Some(end) = self.ends.get(&index).copied() else { return Ok(()) };
        let flow = &self.flows[end.flow];
        let phase = if end.begins { "s" } else { "f" };
        // A flow does not go back in time, whatever two clocks say.
        let when = record.when.max(flow.sent);
        self.json.head(phase, "message", "flow", self.rank.rank, thread(record.stream), when);
        self.json.id(end.flow as u64);
        if !end.begins {
            self.json.text.push_str(",\"bp\":\"e\"");
        }
        self.json.end()
    }

    /// Arrows from the release of a lock to the wait that it ended.
    fn lock_flows(&mut self, index: usize, record: &Record) -> io::Result<()> {
        for (end, when) in self.locks.remove(&index).unwrap_or_default() {
            let phase = if end.begins { "s" } else { "f" };
            self.json.head(phase, "lock", "flow", self.rank.rank, thread(record.stream), when);
            self.json.id(end.flow as u64);
            if !end.begins {
                self.json.text.push_str(",\"bp\":\"e\"");
            }
            self.json.end()?;
        }
        Ok(())
    }

    /// Epochs of windows, which last from one call to another.
    fn epochs(&mut self, record: &Record) -> io::Result<()> {
        // A window has one epoch of each kind at a time, or one for each target; the key is none that a record's id is.
        let key = |kind: u64, target: i32| {
            kind << 60 | u64::from(record.context) << 32 | u64::from(target.cast_unsigned())
        };
        let who = |target: i32| if target < 0 { "all".into() } else { target.to_string() };
        let args = window_args(self.rank, record);
        match (record.event, record.payload) {
            (Event::WinLockAcquired, RecordPayload::Lock { target, .. }) => {
                self.open_as(record, "epoch", key(1, target), format!("lock of {}", who(target)), &args)
            }
            (Event::WinLockReleased, RecordPayload::Lock { target, .. }) => {
                self.close_as(record, "epoch", key(1, target))
            }
            (Event::WinAccessBegin, RecordPayload::Epoch { target }) => {
                self.open_as(record, "epoch", key(2, target), format!("access to {}", who(target)), &args)
            }
            (Event::WinAccessEnd, RecordPayload::Epoch { target }) => {
                self.close_as(record, "epoch", key(2, target))
            }
            (Event::WinExposeBegin, _) => self.open_as(record, "epoch", key(3, -1), "exposure".into(), &args),
            (Event::WinExposeEnd, _) => self.close_as(record, "epoch", key(3, -1)),
            (Event::WinFenceEpoch, _) => {
                self.open_as(record, "epoch", key(4, -1), "fence epoch".into(), &args)
            }
            // The next fence ends an epoch; so does the window's end.
            (Event::WinSyncBegin, RecordPayload::Sync { call, .. }) if call == WindowSync::Fence as u8 => {
                self.close_as(record, "epoch", key(4, -1))
            }
            (Event::WinFreed, _) => self.close_as(record, "epoch", key(4, -1)),
            _ => Ok(()),
        }
    }

    /// What overlaps with other things of its kind.
    fn beside(&mut self, record: &Record) -> io::Result<()> {
        let name =
            |what: &str| format!("{what} {} {}", if record.send { "to" } else { "from" }, who(record.peer));
        match (record.event, record.payload) {
            (Event::ReqActivate, _) => {
                let what = if record.send { "send" } else { "receive" };
                self.open(record, "request", name(what), &message_args(self.rank, record))
            }
            (Event::ReqComplete, _) => self.close(record, "request"),
            (Event::PartStart, _) => {
                let what = if record.send { "partitioned send" } else { "partitioned receive" };
                let mut args = message_args(self.rank, record);
                args.extend(labels::payload(record));
                self.open(record, "request", name(what), &args)
            }
            (Event::PartComplete, _) => self.close(record, "request"),
            (Event::PartXferBegin, RecordPayload::Partition { partition, .. }) => {
                let what = name(&format!("partition {partition}"));
                self.open_as(record, "transfer", partition_key(record.id, partition), what, &[])
            }
            (Event::PartXferEnd, RecordPayload::Partition { partition, .. }) => {
                self.close_as(record, "transfer", partition_key(record.id, partition))
            }
            (Event::ReqXferBegin, _) => {
                self.open(record, "transfer", name("transfer"), &message_args(self.rank, record))
            }
            (Event::ReqXferEnd, _) => self.close(record, "transfer"),
            (Event::MsgInsertInUnexQ, _) => {
                self.open(record, "unexpected", name("unexpected"), &message_args(self.rank, record))
            }
            (Event::MsgRemoveFromUnexQ, _) => self.close(record, "unexpected"),
            (Event::CollBegin, RecordPayload::Coll { operation, .. }) => {
                let mut args = labels::payload(record);
                args.push(("bytes", record.bytes.to_string()));
                args.extend(labels::communicator(self.rank, record).map(|name| ("communicator", name)));
                self.open(record, "collective", labels::value(Field::Collective, operation), &args)
            }
            (Event::CollEnd, _) => self.close(record, "collective"),
            (Event::CopyBegin, RecordPayload::Copy { engine, .. }) => {
                let args = [("rank", who(record.peer)), ("bytes", record.bytes.to_string())];
                self.open(
                    record,
                    "copy",
                    format!("copy by {}", labels::value(Field::CopyEngine, engine)),
                    &args,
                )
            }
            (Event::CopyEnd, _) => self.close(record, "copy"),
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        record: &Record,
        category: &'static str,
        name: String,
        args: Args<'_>,
    ) -> io::Result<()> {
        self.open_as(record, category, record.id, name, args)
    }

    fn open_as(
        &mut self,
        record: &Record,
        category: &'static str,
        key: u64,
        name: String,
        args: Args<'_>,
    ) -> io::Result<()> {
        self.close_as(record, category, key)?;
        self.json.next_id += 1;
        let id = self.json.next_id;
        self.json.head("b", &name, category, self.rank.rank, thread(record.stream), record.when);
        self.json.id(id);
        self.json.args(args);
        self.open.insert((category, key), (id, name));
        self.json.end()
    }

    fn close(&mut self, record: &Record, category: &'static str) -> io::Result<()> {
        self.close_as(record, category, record.id)
    }

    fn close_as(&mut self, record: &Record, category: &'static str, key: u64) -> io::Result<()> {
        let Some((id, name)) = self.open.remove(&(category, key)) else { return Ok(()) };
        self.json.head("e", &name, category, self.rank.rank, thread(record.stream), record.when);
        self.json.id(id);
        let args = if category == "collective" { labels::payload(record) } else { vec![] };
        self.json.args(&args);
        self.json.end()
    }

    /// The trace ends here, and all that is open with it.
    fn close_all(&mut self, last: u64) -> io::Result<()> {
        let mut open: Vec<_> = core::mem::take(&mut self.open).into_iter().collect();
        open.sort_by_key(|(_, (id, _))| *id);
        for ((category, _), (id, name)) in open {
            self.json.head("e", &name, category, self.rank.rank, 1, last);
            self.json.id(id);
            self.json.args(&[("over", "no".into())]);
            self.json.end()?;
        }
        Ok(())
    }
}

fn who(peer: i32) -> String {
    if peer < 0 { "any".into() } else { peer.to_string() }
}

/// A key for what is open of a partition, which no record's id is.
fn partition_key(id: u64, partition: u32) -> u64 {
    1 << 63 | id << 31 ^ u64::from(partition)
}

fn message_args(rank: &RankTrace, record: &Record) -> Vec<(&'static str, String)> {
    let Record { peer, tag, bytes, .. } = *record;
    let mut args = vec![("peer", who(peer)), ("tag", tag.to_string()), ("bytes", bytes.to_string())];
    args.extend(labels::communicator(rank, record).map(|name| ("communicator", name)));
    args
}

/// What is said of an event of a window.
fn window_args(rank: &RankTrace, record: &Record) -> Vec<(&'static str, String)> {
    let mut args = labels::payload(record);
    if matches!(record.payload, RecordPayload::Rma { .. }) {
        args.push(("target", record.peer.to_string()));
        args.push(("bytes", record.bytes.to_string()));
    }
    args.extend(labels::communicator(rank, record).map(|name| ("window", name)));
    args
}

fn file_args(rank: &RankTrace, record: &Record) -> Vec<(&'static str, String)> {
    // Of an access, what is known as it begins.
    let mut args = labels::payload(record);
    args.retain(|(name, value)| {
        !matches!((*name, value.as_str()), ("accesses", "0") | ("offset", "18446744073709551615"))
    });
    if matches!(record.payload, RecordPayload::File { .. }) {
        args.push(("bytes", record.bytes.to_string()));
    }
    args.extend(labels::communicator(rank, record).map(|name| ("file", name)));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_json_wants_them() {
        assert_eq!(quoted("a\"b\\c\n\u{1}é"), "\"a\\\"b\\\\c\\u000a\\u0001é\"");
    }
}
