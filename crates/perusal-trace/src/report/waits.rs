//! When a rank waited, and for whom. A trace says when a rank slept, and what happened when it woke: what ended the
//! sleep is what the rank had waited for. A wait that was too short for sleep is seen as a gap between the rank's own
//! records.

use super::flow::{RankFlows, came};
use crate::events::Event;
use crate::shm::telemetry::Waiting;
use crate::trace::flows::Flow;
use crate::trace::{RankTrace, Record, RecordPayload, Trace};
use core::ops::Range;
use std::collections::HashMap;

/// A rank polls for 50 µs at most before it sleeps (unless PERUSAL_SPIN_US says more). A gap up to this long that ends
/// with a message taken up at once was spent polling, not computing.
pub const SHORT: u64 = 60_000;

/// Why a rank waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The send of this message (an index of the flows) had not begun.
    LateSender(usize),
    /// The receive of this message was not posted.
    LateReceiver(usize),
    /// Others had not come to a collective operation, or a fence.
    Collective,
    /// Another held a lock.
    Lock,
    /// Another had not exposed its memory, or not completed its accesses.
    Epoch,
}

/// A stretch of waiting. Those of a rank are disjoint and ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CausedWait {
    /// When it began.
    pub begin: u64,
    /// When what was waited for came about.
    pub end: u64,
    /// The rank that was waited for.
    pub on: u32,
    /// Why.
    pub cause: Cause,
}

/// Adds to the waits of each rank of the trace that `rank` waited for a lock, if it is known who held it.
pub fn charge_lock(
    trace: &Trace,
    waits: &mut [Vec<CausedWait>],
    rank: u32,
    holder: Option<u32>,
    when: Range<u64>,
) {
    let place = trace.ranks.iter().position(|other| other.rank == rank);
    if let (Some(place), Some(on), false) = (place, holder, when.is_empty()) {
        waits[place].push(CausedWait { begin: when.start, end: when.end, on, cause: Cause::Lock });
    }
}

/// A sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slept {
    /// When the rank fell asleep.
    pub begin: u64,
    /// When it began to wait: its record before, if it polled from then on.
    pub since: u64,
    /// When it woke, or its trace ends.
    pub end: u64,
    /// For what.
    pub kind: Waiting,
    /// For which rank, if for one.
    pub peer: Option<u32>,
}

/// A rank's sleeps, in the order of their begin.
#[must_use]
pub fn sleeps(trace: &RankTrace) -> Vec<Slept> {
    let mut open: HashMap<u16, Slept> = HashMap::new();
    let mut over = vec![];
    let mut before = 0;
    for record in &trace.records {
        match (record.event, record.payload) {
            (Event::BellSleep, RecordPayload::Sleep { waiting, .. }) => {
                let peer = u32::try_from(record.peer).ok();
                let begin = record.when;
                let kind = Waiting::from_number(u64::from(waiting));
                let since = if begin - before <= SHORT { before } else { begin };
                open.insert(record.stream, Slept { begin, since, end: begin, kind, peer });
            }
            (Event::BellWake, _) => {
                over.extend(open.remove(&record.stream).map(|slept| Slept { end: record.when, ..slept }));
            }
            _ => {}
        }
        before = record.when;
    }
    let last = trace.records.last().map_or(0, |record| record.when);
    over.extend(open.into_values().map(|slept| Slept { end: last, ..slept }));
    over.sort_by_key(|slept| (slept.begin, slept.end));
    over
}

/// What a rank did that can end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    /// This message came.
    Arrived(usize),
    /// The send of this message went on.
    Granted(usize),
    /// A transfer from or to this rank of the job, if it is known, went on.
    Moved(Option<u32>),
    /// The program ran again: a completion was returned to it, or it began something.
    Free,
}

/// The waiting of a rank for messages and receives.
#[must_use]
pub fn for_messages(trace: &RankTrace, slept: &[Slept], flows: &[Flow], own: &RankFlows) -> Vec<CausedWait> {
    let ends = ends(trace, flows, own);
    let mut waits: Vec<CausedWait> = slept.iter().filter_map(|slept| asleep(slept, &ends, flows)).collect();
    waits.extend(ends.iter().filter_map(|(when, end)| awake(*when, *end, trace, flows)));
    waits
}

/// Sorts and makes disjoint: of two that overlap, the second begins when the first ends.
#[must_use]
pub fn in_order(mut waits: Vec<CausedWait>) -> Vec<CausedWait> {
    waits.sort_by_key(|wait| (wait.begin, wait.end));
    let mut until = 0;
    waits.retain_mut(|wait| {
        wait.begin = wait.begin.max(until);
        until = until.max(wait.end);
        wait.begin < wait.end
    });
    waits
}

fn ends(trace: &RankTrace, flows: &[Flow], own: &RankFlows) -> Vec<(u64, WaitEnd)> {
    let mut ends: Vec<(u64, WaitEnd)> =
        own.to.iter().map(|&(arrived, flow)| (arrived, WaitEnd::Arrived(flow))).collect();
    let mut sends: HashMap<u64, usize> = HashMap::new();
    let mut outgoing = own.from.iter().peekable();
    for (index, record) in trace.records.iter().enumerate() {
        if let Some((_, flow)) = outgoing.next_if(|(at, _)| *at == index) {
            sends.insert(record.id, *flow);
        }
        if let Some(end) = end_of(trace, record, &sends) {
            ends.push((record.when, end));
        }
    }
    debug_assert!(own.to.iter().all(|(_, flow)| *flow < flows.len()));
    // A stable sort: an arrival comes before what it makes go on in the same nanosecond.
    ends.sort_by_key(|(when, _)| *when);
    ends
}

fn end_of(trace: &RankTrace, record: &Record, sends: &HashMap<u64, usize>) -> Option<WaitEnd> {
    Some(match record.event {
        Event::ReqXferBegin | Event::ReqComplete if record.send => match sends.get(&record.id) {
            Some(flow) => WaitEnd::Granted(*flow),
            None => WaitEnd::Moved(trace.world_peer(record)),
        },
        Event::ReqXferBegin | Event::ReqXferContinue | Event::ReqXferEnd | Event::ReqComplete => {
            WaitEnd::Moved(trace.world_peer(record))
        }
        Event::ReqActivate
        | Event::ReqNotify
        | Event::CollBegin
        | Event::CollEnd
        | Event::WinReqActivate
        | Event::WinSyncBegin
        | Event::FileReqActivate => WaitEnd::Free,
        _ => return None,
    })
}

/// What a sleep was spent waiting for: the first thing after it that it can have been about.
fn asleep(slept: &Slept, ends: &[(u64, WaitEnd)], flows: &[Flow]) -> Option<CausedWait> {
    let about = About::of(slept.kind)?;
    let named = |rank: u32| slept.peer.is_none_or(|peer| peer == rank);
    let after = ends.partition_point(|(when, _)| *when < slept.end);
    for (_, end) in &ends[after..] {
        match *end {
            WaitEnd::Free => return None,
            // What a wait for one rank lets pass by is the business of another.
            WaitEnd::Moved(peer) if peer.is_none_or(named) => return None,
            WaitEnd::Arrived(flow) if about.messages && named(flows[flow].source) => {
                if about.probe {
                    let Flow { source, sent, .. } = flows[flow];
                    return stretch(slept.since, slept.end.min(sent), source, Cause::LateSender(flow));
                }
                if taken_at_once(&flows[flow]) {
                    return late_sender(slept.since, slept.end, flow, flows);
                }
            }
            WaitEnd::Granted(flow) if about.receives && named(flows[flow].dest) => {
                return late_receiver(slept.since, slept.end, flow, flows);
            }
            WaitEnd::Moved(_) | WaitEnd::Arrived(_) | WaitEnd::Granted(_) => {}
        }
    }
    None
}

/// What a sleep of a kind can be about.
struct About {
    messages: bool,
    receives: bool,
    probe: bool,
}

impl About {
    /// `None` for sleeps that other ranks' messages and receives do not end.
    fn of(kind: Waiting) -> Option<About> {
        let (messages, receives) = match kind {
            Waiting::Collective
            | Waiting::Operation
            | Waiting::Agreement
            | Waiting::Finalize
            | Waiting::Lock
            | Waiting::Epoch
            | Waiting::Outside
            | Waiting::Partitions => return None,
            Waiting::Receive | Waiting::Probe => (true, false),
            Waiting::Send | Waiting::Room => (false, true),
            // What a spoiled trace does not say may have been anything.
            Waiting::Any | Waiting::All | Waiting::Nothing => (true, true),
        };
        Some(About { messages, receives, probe: kind == Waiting::Probe })
    }
}

/// A wait too short for sleep, from the rank's record before to what ended it.
fn awake(when: u64, end: WaitEnd, trace: &RankTrace, flows: &[Flow]) -> Option<CausedWait> {
    let before = trace.records.partition_point(|record| record.when < when).checked_sub(1)?;
    let quiet = &trace.records[before];
    // Woken: the sleep has been accounted for.
    if matches!(quiet.event, Event::BellWake | Event::BellSleep) || when - quiet.when > 2 * SHORT {
        return None;
    }
    let wait = match end {
        WaitEnd::Arrived(flow) if taken_at_once(&flows[flow]) => late_sender(quiet.when, when, flow, flows)?,
        // A small send is over without its receiver.
        WaitEnd::Granted(flow)
            if flows[flow].incoming.as_ref().and_then(came).is_some_and(|came| came <= when) =>
        {
            late_receiver(quiet.when, when, flow, flows)?
        }
        _ => return None,
    };
    (wait.end - wait.begin <= SHORT && when - wait.end <= SHORT).then_some(wait)
}

fn taken_at_once(flow: &Flow) -> bool {
    flow.incoming.is_some_and(|incoming| !incoming.unexpected)
}

/// The part of a stretch at the receiver in which its receive was posted, and the send had not begun.
fn late_sender(begin: u64, end: u64, flow: usize, flows: &[Flow]) -> Option<CausedWait> {
    let Flow { source, sent, incoming, .. } = &flows[flow];
    let posted = incoming.as_ref()?.posted?;
    stretch(begin.max(posted), end.min(*sent), *source, Cause::LateSender(flow))
}

/// The part of a stretch at the sender in which the receive was not posted.
fn late_receiver(begin: u64, end: u64, flow: usize, flows: &[Flow]) -> Option<CausedWait> {
    let Flow { dest, sent, incoming, .. } = &flows[flow];
    let came = came(incoming.as_ref()?).unwrap_or(u64::MAX);
    stretch(begin.max(*sent), end.min(came), *dest, Cause::LateReceiver(flow))
}

fn stretch(begin: u64, end: u64, on: u32, cause: Cause) -> Option<CausedWait> {
    (begin < end).then_some(CausedWait { begin, end, on, cause })
}

/// All waiting of a rank, with or without a known cause: disjoint and ascending.
#[must_use]
pub fn stretches(slept: &[Slept], waits: &[CausedWait]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = slept.iter().map(|slept| (slept.since, slept.end)).collect();
    all.extend(waits.iter().map(|wait| (wait.begin, wait.end)));
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = vec![];
    for (begin, end) in all {
        match joined.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    joined.retain(|(begin, end)| begin < end);
    joined
}
