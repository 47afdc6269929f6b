//! The trace of an endpoint: a record for what its messages and queues do, in the file that [`VARIABLE`] names.
//!
//! A trace of ranks has its format; the endpoints join it as its ranks. What stands for a communicator is all of a tag
//! but its lower 31 bits, which are the record's tag: messages that are alike in both keep their order. (MPICH has the
//! tag of MPI in these bits, and the communicator above them.)
//! Every function is called behind a look at whether there is a trace.

use crate::names::address::Address;
use crate::operands::key::TagPattern;
use crate::peers::Peers;
use crate::protocol::core::Core;
use crate::protocol::operation::{Message, Receive, Unexpected};
use crate::protocol::wire;
use perusal::internals::error::report;
use perusal::internals::events::{Event, Words};
use perusal::internals::trace::format::RawRecord;
use perusal::internals::trace::{Member, MemberRecorder};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;

/// The file, which `perusal fabric --trace` makes for the program that it starts.
pub const VARIABLE: &str = "PERUSAL_FABRIC_TRACE";

/// Where launchers say which rank of how many a process is: the ranks of the trace are to be those of the MPI.
const RANKS: [(&str, &str); 2] = [("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")];

/// The bits of a tag that are the tag of its records.
const TAG_BITS: u32 = 31;
const TAG: u64 = (1 << TAG_BITS) - 1;
/// What stands for the other bits of messages without tags.
const UNTAGGED: u64 = 1 << (64 - TAG_BITS);
/// The size of a removal in which nobody has received anything.
const CANCELLED: u64 = 1 << 63;

/// What the records of an operation have in common. The id 0 is of none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traced {
    pub id: u64,
    context: u32,
    peer: u32,
    tag: u32,
    bytes: u64,
    send: bool,
}

/// The recorder of an endpoint.
#[derive(Debug)]
pub struct Trace {
    recorder: MemberRecorder,
    /// The id that was given last.
    last: u64,
    /// The time of the last record: within a stream it does not go back.
    latest: Cell<u64>,
    /// Of the message that has arrived last, in case it is kept.
    arrived: u64,
    /// Ranks of peers in the trace, by number; `None`: they are not in it.
    ranks: HashMap<u32, (Address, Option<u32>)>,
    /// Contexts by what stands for them.
    contexts: HashMap<u64, u32>,
}

impl Trace {
    /// Joins the trace that the environment names, if it names one. One that cannot be joined keeps no program from
    /// running: what is wrong is said on standard error.
    pub fn of_environment(address: Address) -> Option<Box<Self>> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        let (wanted, size) = place(|name| std::env::var(name).ok());
        let recorder = MemberRecorder::join(Path::new(&path), member(address), wanted, size)
            .inspect_err(|error| {
                report(format_args!("an endpoint of process {} is not traced: {error}", address.pid));
            })
            .ok()?;
        Some(Box::new(Self {
            recorder,
            last: 0,
            latest: Cell::new(0),
            arrived: 0,
            ranks: HashMap::new(),
            contexts: HashMap::new(),
        }))
    }

    /// The time, for a record of something that happens first.
    pub fn now(&self) -> u64 {
        self.recorder.now()
    }

    /// The endpoint closes.
    pub fn finish(&self) {
        self.recorder.finish();
    }

    fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn rank(&mut self, peers: &Peers, peer: u32) -> u32 {
        let Some(address) = peers.all.get(peer as usize).map(|one| one.address) else { return u32::MAX };
        let known = || (address, self.recorder.rank_of(member(address)));
        let entry = self.ranks.entry(peer).or_insert_with(known);
        // A number may be another peer's by now.
        if entry.0 != address {
            *entry = known();
        }
        // A peer of another node is in no trace of this one, as the rank of "any".
        entry.1.unwrap_or(u32::MAX)
    }

    fn context(&mut self, tag: Option<u64>) -> u32 {
        let upper = tag.map_or(UNTAGGED, |tag| tag >> TAG_BITS);
        if let Some(&context) = self.contexts.get(&upper) {
            return context;
        }
        let context = self.recorder.label(upper).map_or(u32::MAX, |label| 2 * label);
        self.contexts.insert(upper, context);
        if context != u32::MAX {
            let name = tag.map_or("messages without tags".to_owned(), |_| {
                format!("tags from {:#x} on", upper << TAG_BITS)
            });
            self.recorder.name_context(context, &name);
            self.latest.set(self.now());
        }
        context
    }

    fn traced(&mut self, peers: &Peers, peer: Option<u32>, tag: Option<u64>, bytes: usize) -> Traced {
        let peer = peer.map_or(u32::MAX, |peer| self.rank(peers, peer));
        let (context, tag) = (self.context(tag), (tag.unwrap_or(0) & TAG) as u32);
        Traced { id: 0, context, peer, tag, bytes: bytes as u64, send: false }
    }

    fn of_message(&mut self, peers: &Peers, message: &Message) -> Traced {
        let tag = (message.kind & wire::TAGGED != 0).then_some(message.tag);
        self.traced(peers, Some(message.peer), tag, message.len)
    }

    fn put(&self, event: Event, id: u64, traced: &Traced) {
        self.put_at(self.now(), event, id, traced);
    }

    fn put_at(&self, ticks: u64, event: Event, id: u64, traced: &Traced) {
        let Traced { context, peer, tag, bytes, send, .. } = *traced;
        let ticks = ticks.max(self.latest.get());
        self.latest.set(ticks);
        let words = Words { first: peer, second: tag, third: bytes };
        self.recorder.record(RawRecord { ticks, event: event.code(), id, context, send, words });
    }

    /// The send that is described ends.
    #[cold]
    pub fn sent(&self, traced: &Traced) {
        if traced.id != 0 {
            self.put(Event::ReqComplete, traced.id, traced);
        }
    }

    fn is_posted(&mut self, peers: &Peers, receive: &Receive) -> Traced {
        self.asked_for(peers, receive.pattern, receive.tagged, receive.spans.len())
    }

    fn asked_for(&mut self, peers: &Peers, pattern: TagPattern, tagged: bool, len: usize) -> Traced {
        self.traced(peers, pattern.peer, tagged.then_some(pattern.tag), len)
    }
}

/// Which rank a process has that is one of how many, if its launcher says so.
fn place(variable: impl Fn(&str) -> Option<String>) -> (Option<u32>, u32) {
    let number = |name| variable(name).and_then(|value| value.parse().ok());
    let known = RANKS.iter().find_map(|(rank, size)| Some((number(rank)?, number(size).unwrap_or(0))));
    known.map_or((None, 0), |(rank, size)| (Some(rank), size))
}

fn member(address: Address) -> Member {
    Member { pid: address.pid, name: [u64::from(address.fd), address.nonce] }
}

impl Core {
    /// The time, if there is a trace.
    #[inline(always)]
    pub(crate) fn trace_time(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.now())
    }

    /// A send has begun at `began`. Returns what its end is to be recorded with.
    fn trace_send(&mut self, began: u64, peer: u32, tag: Option<u64>, bytes: usize) -> Traced {
        let Some(trace) = &mut self.trace else { return Traced::default() };
        let (traced, id) = (trace.traced(&self.peers, Some(peer), tag, bytes), trace.next_id());
        let traced = Traced { id, send: true, ..traced };
        trace.put_at(began, Event::ReqActivate, id, &traced);
        traced
    }

    /// An announced send has begun at `began`: its end is to be recorded, too.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_announced(&mut self, number: u64, began: u64, tag: Option<u64>) {
        let Some((peer, len)) = self.sends.get(number).map(|send| (send.peer, send.len)) else { return };
        let traced = self.trace_send(began, peer, tag, len);
        if let Some(send) = self.sends.get(number) {
            send.traced = traced;
        }
    }

    /// A send that has begun at `began` is over.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_eager(&mut self, began: u64, peer: u32, tag: Option<u64>, bytes: usize) {
        let traced = self.trace_send(began, peer, tag, bytes);
        self.trace.iter().for_each(|trace| trace.sent(&traced));
    }

    /// A message arrives, and a posted receive takes it, or none.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_arrival(&mut self, message: &Message, receive: Option<u32>) {
        let Some(trace) = &mut self.trace else { return };
        let (traced, id) = (trace.of_message(&self.peers, message), trace.next_id());
        trace.put(Event::MsgArrived, id, &traced);
        match receive.and_then(|number| self.receives.at(number)) {
            Some(receive) => {
                trace.put(Event::MsgMatchPostedReq, id, &traced);
                trace.put(Event::ReqRemoveFromPostedQ, receive.trace, &traced);
            }
            None => {
                trace.put(Event::MsgInsertInUnexQ, id, &traced);
                trace.arrived = id;
            }
        }
    }

    /// The id of the message that has arrived last.
    #[inline(always)]
    pub(crate) fn trace_kept(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.arrived)
    }

    /// A receive of `len` bytes begins: returns its id. (By value: the receive itself is in registers.)
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_receive(&mut self, pattern: TagPattern, tagged: bool, len: usize) -> u64 {
        let Some(trace) = &mut self.trace else { return 0 };
        let (traced, id) = (trace.asked_for(&self.peers, pattern, tagged, len), trace.next_id());
        trace.put(Event::ReqActivate, id, &traced);
        id
    }

    /// A receive has found no message, and is posted.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_posted(&mut self, number: u32) {
        let (Some(trace), Some(receive)) = (&mut self.trace, self.receives.at(number)) else { return };
        let traced = trace.is_posted(&self.peers, receive);
        trace.put(Event::ReqInsertInPostedQ, receive.trace, &traced);
    }

    /// A buffer for several messages has taken one, and is posted for the next one, as a receive of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_posted_again(&mut self, number: u32) {
        let (Some(trace), Some(receive)) = (&mut self.trace, self.receives.get(number)) else { return };
        let traced = trace.is_posted(&self.peers, receive);
        receive.trace = trace.next_id();
        trace.put(Event::ReqActivate, receive.trace, &traced);
        trace.put(Event::ReqInsertInPostedQ, receive.trace, &traced);
    }

    /// A receive takes a message that was kept, or that a probe has taken before (`claimed`).
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_unexpected(&mut self, number: u32, unexpected: &Unexpected, claimed: bool) {
        let (Some(trace), Some(receive)) = (&mut self.trace, self.receives.at(number)) else { return };
        let traced = trace.of_message(&self.peers, &unexpected.message);
        trace.put(Event::ReqMatchUnex, receive.trace, &traced);
        if !claimed {
            trace.put(Event::MsgRemoveFromUnexQ, unexpected.trace, &traced);
        }
        if receive.several.is_some() {
            trace.put(Event::ReqRemoveFromPostedQ, receive.trace, &traced);
        }
    }

    /// A probe takes a message that was kept, for a receive to come, or to have it thrown away.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_probed(&mut self, unexpected: &Unexpected, thrown_away: bool) {
        let Some(trace) = &mut self.trace else { return };
        let mut traced = trace.of_message(&self.peers, &unexpected.message);
        traced.bytes |= if thrown_away { CANCELLED } else { 0 };
        trace.put(Event::MsgRemoveFromUnexQ, unexpected.trace, &traced);
    }

    /// The first bytes of a message that its sender still has are about to move.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_transfer(&mut self, id: u64, message: &Message) {
        let Some(trace) = &mut self.trace else { return };
        let traced = trace.of_message(&self.peers, message);
        trace.put(Event::ReqXferBegin, id, &traced);
    }

    /// A receive is over, with this message.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_received(&mut self, id: u64, message: &Message) {
        let Some(trace) = &mut self.trace else { return };
        let traced = trace.of_message(&self.peers, message);
        if message.kind & wire::KIND == wire::RTS {
            trace.put(Event::ReqXferEnd, id, &traced);
        }
        trace.put(Event::ReqComplete, id, &traced);
    }

    /// A posted receive is taken back.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_cancelled(&mut self, number: u32) {
        let (Some(trace), Some(receive)) = (&mut self.trace, self.receives.at(number)) else { return };
        let mut traced = trace.is_posted(&self.peers, receive);
        let id = receive.trace;
        traced.bytes = CANCELLED;
        trace.put(Event::ReqRemoveFromPostedQ, id, &traced);
        traced.bytes = 0;
        trace.put(Event::ReqComplete, id, &traced);
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_process_has_the_rank_that_its_launcher_says() {
        let of = |set: &'static [(&'static str, &'static str)]| {
            place(move |name| set.iter().find(|one| one.0 == name).map(|one| one.1.to_owned()))
        };
        assert_eq!(of(&[]), (None, 0));
        assert_eq!(of(&[("PMI_RANK", "3"), ("PMI_SIZE", "4")]), (Some(3), 4));
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]), (Some(1), 2));
        assert_eq!(of(&[("PMI_RANK", "x"), ("PMI_SIZE", "4")]), (None, 0));
    }
}
