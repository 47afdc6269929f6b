//! What a stream is in the middle of, as slices that lie within each other: calls, sends and receives that begin,
//! arrivals, searches, sleeps.
//!
//! The beginning of a send or a receive, and an arrival, has no end of its own. It is a *run*: records that follow each
//! other in one stream and speak of one request or one message, with the searches between them.

use super::super::model::{Record, RecordPayload};
use crate::events::{CollMode, Event, FileMode};
use std::collections::BTreeMap;

/// What a slice stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceKind {
    /// A call of the program's, by the function's number.
    Call(u16),
    /// A send begins, as far as it gets at once.
    Send,
    /// A receive begins.
    Receive,
    /// A message arrives.
    Arrival,
    /// The posted queue is searched.
    SearchPosted,
    /// The unexpected queue is searched.
    SearchUnexpected,
    /// The rank sleeps.
    Sleep,
    /// A blocking collective operation, by its number. The others are no part of what the stream does.
    Collective(u16),
    /// A one-sided operation, by its number.
    OneSided(u8),
    /// A call that synchronises a window, by its number.
    Synchronization(u8),
    /// An access to a file that its caller waits for, by the number of its operation.
    FileAccess(u8),
    /// The wait for a lock in such a call or access.
    LockWait,
}

/// The begin or the end of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Begin or end.
    pub enter: bool,
    /// Of what.
    pub kind: SliceKind,
    /// When.
    pub when: u64,
    /// In which stream.
    pub stream: u16,
}

/// A walk along a rank's records.
#[derive(Debug, Default)]
pub struct Slices {
    /// What is open in each stream, outermost first.
    tracks: BTreeMap<u16, Vec<Open>>,
    /// Collectives and synchronisations in a call of the program's are that call, which has the same name.
    once: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    kind: SliceKind,
    id: u64,
    /// Of a run: its last record so far.
    last: u64,
    /// Of a run: whether it is known that nothing more belongs to it.
    over: bool,
}

impl SliceKind {
    fn is_run(self) -> bool {
        matches!(self, SliceKind::Send | SliceKind::Receive | SliceKind::Arrival)
    }

    /// Whether it is the search of a queue.
    pub fn is_search(self) -> bool {
        matches!(self, SliceKind::SearchPosted | SliceKind::SearchUnexpected)
    }

    /// What an event begins or ends, and which of the two.
    fn of(record: &Record) -> Option<(SliceKind, bool)> {
        Some(match (record.event, record.payload) {
            (Event::CallBegin | Event::CallEnd, RecordPayload::Call { function }) => {
                (SliceKind::Call(function), record.event == Event::CallBegin)
            }
            (Event::ReqActivate, _) => (if record.send { SliceKind::Send } else { SliceKind::Receive }, true),
            (Event::MsgArrived, _) => (SliceKind::Arrival, true),
            (Event::SearchPostedQBegin, _) => (SliceKind::SearchPosted, true),
            (Event::SearchPostedQEnd, _) => (SliceKind::SearchPosted, false),
            (Event::SearchUnexQBegin, _) => (SliceKind::SearchUnexpected, true),
            (Event::SearchUnexQEnd, _) => (SliceKind::SearchUnexpected, false),
            (Event::BellSleep, _) => (SliceKind::Sleep, true),
            (Event::BellWake, _) => (SliceKind::Sleep, false),
            (Event::CollBegin | Event::CollEnd, RecordPayload::Coll { operation, mode, .. })
                if mode == CollMode::Blocking as u8 =>
            {
                (SliceKind::Collective(operation), record.event == Event::CollBegin)
            }
            (Event::WinReqActivate | Event::WinReqComplete, RecordPayload::Rma { operation, .. }) => {
                (SliceKind::OneSided(operation), record.event == Event::WinReqActivate)
            }
            (Event::WinSyncBegin | Event::WinSyncEnd, RecordPayload::Sync { call, .. }) => {
                (SliceKind::Synchronization(call), record.event == Event::WinSyncBegin)
            }
            (
                Event::FileReqActivate | Event::FileReqComplete,
                RecordPayload::File { operation, mode, .. },
            ) if mode != FileMode::Nonblocking as u8 => {
                (SliceKind::FileAccess(operation), record.event == Event::FileReqActivate)
            }
            (Event::WinLockWaitBegin | Event::FileLockWaitBegin, _) => (SliceKind::LockWait, true),
            (Event::WinLockWaitEnd | Event::FileLockWaitEnd, _) => (SliceKind::LockWait, false),
            _ => return None,
        })
    }
}

impl Open {
    /// Whether a record that comes next in the stream is part of this run.
    fn has(&self, record: &Record, kind: Option<(SliceKind, bool)>) -> bool {
        let search = kind.is_some_and(|(kind, _)| kind.is_search());
        let begins = kind.is_some_and(|(kind, _)| kind.is_run());
        let removal = self.kind == SliceKind::Receive
            && record.event == Event::MsgRemoveFromUnexQ
            && record.payload != RecordPayload::Cancelled;
        let own = record.id == self.id && record.event.info().is_of_message();
        !self.over && !begins && (own || search || removal)
    }
}

impl Slices {
    /// A walk in which collectives and synchronisations have no slice beside that of the call that they are.
    pub fn each_once() -> Self {
        Self { once: true, ..Self::default() }
    }

    /// Puts into `edges` what begins and ends with the next record, in order.
    pub fn step(&mut self, record: &Record, edges: &mut Vec<Edge>) {
        let mut kind = SliceKind::of(record);
        let Record { stream, when, id, .. } = *record;
        let track = self.tracks.entry(stream).or_default();
        if let Some(run) = track.iter().position(|open| open.kind.is_run())
            && !track[run].has(record, kind)
        {
            close(track, run, None, stream, edges);
        }
        if self.once
            && let Some((SliceKind::Collective(_) | SliceKind::Synchronization(_), _)) = kind
            && track.iter().any(|open| matches!(open.kind, SliceKind::Call(_)))
        {
            kind = None;
        }
        match kind {
            Some((kind, true)) => {
                track.push(Open { kind, id, last: when, over: false });
                edges.push(Edge { enter: true, kind, when, stream });
            }
            Some((kind, false)) => {
                let begun = track.iter().rposition(|open| {
                    open.kind == kind
                        && (open.id == id || matches!(kind, SliceKind::Sleep | SliceKind::Collective(_)))
                });
                if let Some(begun) = begun {
                    close(track, begun, Some(when), stream, edges);
                }
            }
            None => {}
        }
        if let Some(run) = track.iter_mut().find(|open| open.kind.is_run()) {
            run.last = when;
            run.over |= matches!(record.event, Event::MsgInsertInUnexQ | Event::MsgMatchPostedReq);
        }
    }

    /// Ends all that is open at the end of the trace.
    pub fn finish(&mut self, last: u64, edges: &mut Vec<Edge>) {
        for (stream, track) in &mut self.tracks {
            if let Some(run) = track.iter().position(|open| open.kind.is_run()) {
                close(track, run, None, *stream, edges);
            }
            close(track, 0, Some(last), *stream, edges);
        }
    }
}

/// Ends what is open from place `from` inwards; at the end of the run if no time is given.
fn close(track: &mut Vec<Open>, from: usize, when: Option<u64>, stream: u16, edges: &mut Vec<Edge>) {
    while track.len() > from {
        let Some(Open { kind, .. }) = track.last().copied() else { return };
        let when = when.or(track.get(from).map(|run| run.last)).unwrap_or(0);
        edges.push(Edge { enter: false, kind, when, stream });
        track.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{Synthetic, SyntheticMessage};
    use super::*;

    fn edges(job: &Synthetic, rank: usize) -> Vec<(SliceKind, bool)> {
        let trace = job.trace();
        let records = &trace.ranks[rank].records;
        let (mut slices, mut edges) = (Slices::default(), Vec::new());
        records.iter().for_each(|record| slices.step(record, &mut edges));
        slices.finish(records.last().map_or(0, |record| record.when), &mut edges);
        assert!(edges.is_sorted_by_key(|edge| edge.when), "{edges:?}");
        let mut open = Vec::new();
        for edge in &edges {
            if edge.enter {
                open.push(edge.kind);
            } else {
                assert_eq!(open.pop(), Some(edge.kind), "slices lie within each other: {edges:?}");
            }
        }
        assert!(open.is_empty(), "{open:?}");
        edges.iter().map(|edge| (edge.kind, edge.enter)).collect()
    }

    #[test]
    fn searches_lie_within_the_arrival_or_the_receive_that_makes_them() {
        let mut job = Synthetic::new(2);
        job.message(&SyntheticMessage {
            from: 0,
            to: 1,
            sent: 1000,
            posted: 9000,
            ..SyntheticMessage::default()
        });
        assert_eq!(edges(&job, 0), [(SliceKind::Send, true), (SliceKind::Send, false)]);
        let within = |run, search| [(run, true), (search, true), (search, false), (run, false)];
        let both = [
            within(SliceKind::Arrival, SliceKind::SearchPosted),
            within(SliceKind::Receive, SliceKind::SearchUnexpected),
        ];
        assert_eq!(edges(&job, 1), both.as_flattened());
    }

    #[test]
    fn what_a_killed_rank_left_open_ends_with_its_trace() {
        let mut job = Synthetic::new(1);
        let of = |event, id| Synthetic::record(event, id);
        let all = Record {
            payload: RecordPayload::Coll {
                operation: 7,
                root: crate::events::CollRoot::default(),
                algorithm: 0,
                mode: 0,
                bytes: 0,
            },
            ..of(Event::CollBegin, 3)
        };
        job.span(0, 5, 500, &all, Event::CollEnd);
        job.push(0, 10, &of(Event::BellSleep, 0)).push(0, 20, &of(Event::BellWake, 0));
        job.push(0, 600, &of(Event::BellSleep, 0)).push(0, 700, &of(Event::RingFull, 0));
        let sleep = |enter| (SliceKind::Sleep, enter);
        let all = |enter| (SliceKind::Collective(7), enter);
        let expected = [all(true), sleep(true), sleep(false), all(false), sleep(true), sleep(false)];
        assert_eq!(edges(&job, 0), expected);
    }

    #[test]
    fn collectives_in_the_background_have_no_slice() {
        let mut job = Synthetic::new(1);
        let begin = |id, mode: CollMode| Record {
            payload: RecordPayload::Coll {
                operation: 1,
                root: crate::events::CollRoot::default(),
                algorithm: 0,
                mode: mode as u8,
                bytes: 0,
            },
            ..Synthetic::record(Event::CollBegin, id)
        };
        job.span(0, 5, 25, &begin(1, CollMode::Nonblocking), Event::CollEnd);
        job.span(0, 10, 30, &begin(2, CollMode::Blocking), Event::CollEnd);
        job.span(0, 20, 40, &begin(3, CollMode::Persistent), Event::CollEnd);
        assert_eq!(edges(&job, 0), [(SliceKind::Collective(1), true), (SliceKind::Collective(1), false)]);
    }
}
