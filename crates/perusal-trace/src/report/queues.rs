//! One rank's queues: their lengths over time, how long entries stay, how searches go, and how long requests live.

use super::distribution::{Edges, ValueCounter};
use super::series::{BinnedSeries, TimeGrid};
use super::types::{Amount, Bin, QueueReport, RankReport};
use crate::events::Event;
use crate::trace::{RankTrace, Record, RecordPayload};
use std::collections::HashMap;

/// Where bins begin, of times and of counts.
#[derive(Debug)]
pub struct Scales {
    /// Of nanoseconds.
    pub times: Edges,
    /// Of entries.
    pub counts: Edges,
}

impl Default for Scales {
    fn default() -> Self {
        Self { times: Edges::times(), counts: Edges::counts() }
    }
}

/// What is found out of one rank alone: posted and unexpected length over time,
/// and the rank itself without its waiting.
#[derive(Debug)]
pub struct Alone {
    /// The rank.
    pub rank: RankReport,
    /// Length of its posted queue.
    pub posted: Vec<Bin>,
    /// Length of its unexpected queue.
    pub unexpected: Vec<Bin>,
}

/// Goes through a rank's records once.
#[must_use]
pub fn walk(trace: &RankTrace, grid: TimeGrid, scales: &Scales) -> Alone {
    let mut state = QueueWalk::new(grid, scales);
    for record in &trace.records {
        state.pass(record);
    }
    state.finish(trace)
}

struct QueueWalk<'s> {
    posted: Watch<'s>,
    unexpected: Watch<'s>,
    requests: HashMap<u64, u64>,
    sends: ValueCounter<'s>,
    receives: ValueCounter<'s>,
    sent: Amount,
    received: Amount,
}

impl<'s> QueueWalk<'s> {
    fn new(grid: TimeGrid, scales: &'s Scales) -> Self {
        Self {
            posted: Watch::new(grid, scales),
            unexpected: Watch::new(grid, scales),
            requests: HashMap::new(),
            sends: ValueCounter::new(&scales.times),
            receives: ValueCounter::new(&scales.times),
            sent: Amount::default(),
            received: Amount::default(),
        }
    }

    fn pass(&mut self, record: &Record) {
        self.posted.length(record.when, record.posted);
        self.unexpected.length(record.when, record.unexpected);
        match record.event {
            Event::ReqActivate => self.activated(record),
            Event::ReqNotify => self.notified(record),
            Event::ReqInsertInPostedQ => self.posted.inserted(record),
            Event::ReqRemoveFromPostedQ => self.posted.removed(record),
            Event::MsgInsertInUnexQ => self.unexpected.inserted(record),
            Event::MsgRemoveFromUnexQ => self.unexpected.removed(record),
            Event::SearchPostedQBegin => self.posted.search_began(record),
            Event::SearchPostedQEnd => self.posted.search_ended(record),
            Event::SearchUnexQBegin => self.unexpected.search_began(record),
            Event::SearchUnexQEnd => self.unexpected.search_ended(record),
            Event::MsgMatchPostedReq | Event::ReqMatchUnex => add(&mut self.received, record),
            _ => {}
        }
    }

    fn activated(&mut self, record: &Record) {
        self.requests.insert(record.id, record.when);
        if record.send && record.peer >= 0 {
            add(&mut self.sent, record);
        }
    }

    fn notified(&mut self, record: &Record) {
        if let Some(since) = self.requests.remove(&record.id) {
            let lives = if record.send { &mut self.sends } else { &mut self.receives };
            lives.add(record.when.saturating_sub(since));
        }
    }

    fn finish(self, trace: &RankTrace) -> Alone {
        let (first, last) = (trace.records.first(), trace.records.last());
        let end = last.map_or(0, |record| record.when);
        let (posted, posted_series) = self.posted.finish(end);
        let (unexpected, unexpected_series) = self.unexpected.finish(end);
        let rank = RankReport {
            rank: trace.rank,
            records: trace.records.len() as u64,
            dropped: trace.dropped,
            complete: trace.complete,
            active_ns: end - first.map_or(end, |record| record.when),
            sent: self.sent,
            received: self.received,
            unexpected,
            posted,
            send_requests: self.sends.finish(),
            receive_requests: self.receives.finish(),
            ..RankReport::default()
        };
        Alone { rank, posted: posted_series, unexpected: unexpected_series }
    }
}

fn add(amount: &mut Amount, record: &Record) {
    amount.messages += 1;
    amount.bytes += record.bytes;
}

/// One of the two queues.
struct Watch<'s> {
    queue: QueueReport,
    now: u32,
    since: u64,
    changes: BinnedSeries,
    inside: HashMap<u64, u64>,
    residence: ValueCounter<'s>,
    searching: HashMap<u64, u64>,
    time: ValueCounter<'s>,
    depth: ValueCounter<'s>,
}

impl<'s> Watch<'s> {
    fn new(grid: TimeGrid, scales: &'s Scales) -> Self {
        Self {
            queue: QueueReport::default(),
            now: 0,
            since: 0,
            changes: BinnedSeries::new(grid),
            inside: HashMap::new(),
            residence: ValueCounter::new(&scales.times),
            searching: HashMap::new(),
            time: ValueCounter::new(&scales.times),
            depth: ValueCounter::new(&scales.counts),
        }
    }

    fn length(&mut self, when: u64, length: u32) {
        if length == self.now {
            return;
        }
        if self.now == 0 {
            self.since = when;
        } else if length == 0 {
            self.queue.occupied_ns += when - self.since;
        }
        if length > self.queue.high {
            self.queue.high = length;
            self.queue.high_at_ns = when;
        }
        self.changes.set(when, length);
        self.now = length;
    }

    fn inserted(&mut self, record: &Record) {
        self.queue.entries += 1;
        self.inside.insert(record.id, record.when);
    }

    fn removed(&mut self, record: &Record) {
        if let Some(since) = self.inside.remove(&record.id) {
            self.residence.add(record.when.saturating_sub(since));
        }
    }

    fn search_began(&mut self, record: &Record) {
        self.searching.insert(record.id, record.when);
    }

    fn search_ended(&mut self, record: &Record) {
        if let Some(since) = self.searching.remove(&record.id) {
            self.time.add(record.when.saturating_sub(since));
        }
        if let RecordPayload::Search { depth, hit } = record.payload {
            self.depth.add(u64::from(depth));
            self.queue.hits += u64::from(hit);
        }
    }

    fn finish(mut self, end: u64) -> (QueueReport, Vec<Bin>) {
        if self.now > 0 {
            self.queue.occupied_ns += end - self.since;
        }
        self.queue.left = self.now;
        self.queue.residence = self.residence.finish();
        self.queue.search_time = self.time.finish();
        self.queue.search_depth = self.depth.finish();
        (self.queue, self.changes.finish())
    }
}
