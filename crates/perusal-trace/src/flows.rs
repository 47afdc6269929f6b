//! For each send, its receive: the message's way between two ranks, and which side was late.
//!
//! Messages between two ranks with one context and tag do not overtake each other (MPI 5.0 §3.5), so the k-th that
//! arrives is the k-th that was sent. The receiver's record of an arrival leads by the message's id to its match, and
//! by the order of the records to the receive.
//!
//! Two things can shift the count: sends of the same rank, peer, communicator and tag that several threads start at
//! once (their order is not defined), and a send that was cancelled before it left. A third can exchange two receives:
//! no record leads from a message that a matched probe took to its receive, so of several with the same sender,
//! communicator and tag the oldest counts as received first.

use super::model::{Record, RecordPayload, Trace};
use crate::events::Event;
use std::collections::{HashMap, VecDeque};

/// A record of a trace, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordIndex {
    /// The rank.
    pub rank: u32,
    /// The index in that rank's records.
    pub index: usize,
}

/// A message, from send to receive. Times are those of [`Record::when`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// World rank of the sender.
    pub source: u32,
    /// World rank of the receiver.
    pub dest: u32,
    /// Context of the communicator.
    pub context: u32,
    /// The tag.
    pub tag: i32,
    /// Bytes sent.
    pub bytes: u64,
    /// When the send began.
    pub sent: u64,
    /// The record of that.
    pub send: RecordIndex,
    /// What is known of the other side.
    pub incoming: Option<MessageArrival>,
}

/// The receiver's side of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageArrival {
    /// When the receiver saw the message. Of one that came before the communicator was there, there is no record:
    /// the send's begin.
    pub arrived: u64,
    /// Whether it came before its receive, and lay in the unexpected queue.
    pub unexpected: bool,
    /// When it was matched; `None` if it never was, or its sender took it back.
    pub matched: Option<u64>,
    /// The record of the match, or else of the arrival.
    pub place: RecordIndex,
    /// When the receive that took it began; `None` if it never was received.
    pub posted: Option<u64>,
    /// When that receive was complete.
    pub completed: Option<u64>,
}

impl Flow {
    /// Nanoseconds for which the receive was there and the send had not begun; `None` if the sender was not late.
    #[must_use]
    pub fn late_sender(&self) -> Option<u64> {
        let posted = self.incoming?.posted?;
        (posted < self.sent).then(|| self.sent - posted)
    }

    /// Nanoseconds for which the message lay in the unexpected queue until its receive came; `None` if the receiver was
    /// not late, or the message was never received.
    #[must_use]
    pub fn late_receiver(&self) -> Option<u64> {
        let incoming = self.incoming.filter(|incoming| incoming.unexpected)?;
        // A probe that takes the message is where its receiver came to it.
        let taken = incoming.posted.into_iter().chain(incoming.matched).min()?;
        Some(taken.saturating_sub(incoming.arrived))
    }
}

/// All messages of a trace, by the time of their sends.
#[must_use]
pub fn flows(trace: &Trace) -> Vec<Flow> {
    let mut by_key: HashMap<FlowKey, Ends> = HashMap::new();
    for rank in &trace.ranks {
        let mut walk = ReceiverWalk { rank: rank.rank, ..ReceiverWalk::default() };
        for (index, record) in rank.records.iter().enumerate() {
            let world = match record.event {
                Event::ReqActivate | Event::MsgArrived | Event::MsgRemoveFromUnexQ | Event::ReqMatchUnex => {
                    rank.world_peer(record)
                }
                _ => None,
            };
            if record.event == Event::ReqActivate && record.send {
                let Some(dest) = world else { continue };
                let key = FlowKey { source: rank.rank, dest, context: record.context, tag: record.tag };
                let send = (record.when, record.bytes, RecordIndex { rank: rank.rank, index });
                by_key.entry(key).or_default().sends.push(send);
            }
            walk.step(index, record, world);
        }
        for (key, incoming) in walk.arrivals() {
            by_key.entry(key).or_default().arrivals.push(incoming);
        }
    }
    let mut flows: Vec<Flow> = by_key.into_iter().flat_map(|(key, ends)| ends.meet(key)).collect();
    flows.sort_by_key(|flow| (flow.sent, flow.source, flow.send.index));
    flows
}

/// What messages have in common that keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FlowKey {
    source: u32,
    dest: u32,
    context: u32,
    tag: i32,
}

#[derive(Default)]
struct Ends {
    sends: Vec<(u64, u64, RecordIndex)>,
    arrivals: Vec<MessageArrival>,
}

impl Ends {
    fn meet(self, key: FlowKey) -> impl Iterator<Item = Flow> {
        let FlowKey { source, dest, context, tag } = key;
        let arrivals = self.arrivals.into_iter().map(Some).chain(std::iter::repeat(None));
        self.sends.into_iter().zip(arrivals).map(move |((sent, bytes, send), incoming)| {
            // An early message has no time of its own.
            let incoming =
                incoming.map(|incoming| MessageArrival { arrived: incoming.arrived.max(sent), ..incoming });
            Flow { source, dest, context, tag, bytes, sent, send, incoming }
        })
    }
}

/// A receive request, from one activation to the next.
#[derive(Clone, Copy)]
struct Life {
    activated: u64,
    message: Option<usize>,
}

/// What a walk along one rank's records knows.
#[derive(Default)]
struct ReceiverWalk {
    rank: u32,
    /// Messages in the order of their arrival; those that came before their communicator was there are `early`.
    messages: Vec<(FlowKey, MessageArrival)>,
    early: Vec<usize>,
    by_id: HashMap<u64, usize>,
    requests: HashMap<u64, Life>,
    /// By stream: what the record just before leaves to be said of a message or a request.
    pending: HashMap<u16, Pending>,
    /// Messages that a matched probe took, until a receive comes for them.
    probed: HashMap<FlowKey, VecDeque<usize>>,
}

#[derive(Clone, Copy)]
enum Pending {
    /// A message has met a posted receive, which is named next.
    Message(usize),
    /// A receive has met an unexpected message, which is named next, unless a probe has taken it before.
    Request(u64, Option<FlowKey>),
}

impl ReceiverWalk {
    fn step(&mut self, index: usize, record: &Record, world: Option<u32>) {
        let pending = self.pending.remove(&record.stream);
        let key =
            world.map(|source| FlowKey { source, dest: self.rank, context: record.context, tag: record.tag });
        let place = RecordIndex { rank: self.rank, index };
        let withdrawn = record.payload == RecordPayload::Cancelled;
        if record.event != Event::MsgRemoveFromUnexQ || withdrawn {
            self.settle_probed(pending);
        }
        match record.event {
            Event::ReqActivate if !record.send => {
                self.requests.insert(record.id, Life { activated: record.when, message: None });
            }
            Event::MsgArrived => self.arrive(key, record, place),
            Event::MsgInsertInUnexQ => {
                if let Some(message) = self.by_id.get(&record.id) {
                    self.messages[*message].1.unexpected = true;
                }
            }
            Event::MsgMatchPostedReq => {
                if let Some(message) = self.by_id.remove(&record.id) {
                    self.matched(message, record.when, place);
                    self.pending.insert(record.stream, Pending::Message(message));
                }
            }
            Event::ReqRemoveFromPostedQ => {
                if let Some(Pending::Message(message)) = pending {
                    self.link(message, record.id);
                }
            }
            Event::ReqMatchUnex => drop(self.pending.insert(record.stream, Pending::Request(record.id, key))),
            // No receive will come for it.
            Event::MsgRemoveFromUnexQ if withdrawn => drop(self.leave_queue(key, record, place)),
            Event::MsgRemoveFromUnexQ => self.taken_from_queue(key, record, place, pending),
            Event::ReqComplete => {
                let message = self.requests.get(&record.id).and_then(|life| life.message);
                if let Some(message) = message.filter(|_| !record.send) {
                    self.messages[message].1.completed.get_or_insert(record.when);
                }
            }
            _ => {}
        }
    }

    fn arrive(&mut self, key: Option<FlowKey>, record: &Record, place: RecordIndex) {
        let Some(key) = key else { return };
        let incoming = MessageArrival {
            arrived: record.when,
            unexpected: false,
            matched: None,
            place,
            posted: None,
            completed: None,
        };
        self.by_id.insert(record.id, self.messages.len());
        self.messages.push((key, incoming));
    }

    /// The message that leaves the queue. One that came before its communicator was there is known from now on.
    fn leave_queue(&mut self, key: Option<FlowKey>, record: &Record, place: RecordIndex) -> Option<usize> {
        self.by_id.remove(&record.id).or_else(|| {
            let key = key?;
            self.early.push(self.messages.len());
            let incoming = MessageArrival {
                arrived: 0,
                unexpected: true,
                matched: None,
                place,
                posted: None,
                completed: None,
            };
            self.messages.push((key, incoming));
            Some(self.messages.len() - 1)
        })
    }

    fn taken_from_queue(
        &mut self,
        key: Option<FlowKey>,
        record: &Record,
        place: RecordIndex,
        pending: Option<Pending>,
    ) {
        let Some(message) = self.leave_queue(key, record, place) else { return };
        self.matched(message, record.when, place);
        match pending {
            Some(Pending::Request(request, _)) => self.link(message, request),
            _ => self.probed.entry(self.messages[message].0).or_default().push_back(message),
        }
    }

    /// A receive whose match names no message in the next record takes the one that a probe took before.
    fn settle_probed(&mut self, pending: Option<Pending>) {
        let Some(Pending::Request(request, Some(key))) = pending else { return };
        if let Some(message) = self.probed.get_mut(&key).and_then(VecDeque::pop_front) {
            self.link(message, request);
        }
    }

    fn matched(&mut self, message: usize, when: u64, place: RecordIndex) {
        let incoming = &mut self.messages[message].1;
        incoming.matched = Some(when);
        incoming.place = place;
    }

    fn link(&mut self, message: usize, request: u64) {
        let Some(life) = self.requests.get_mut(&request) else { return };
        life.message = Some(message);
        self.messages[message].1.posted = Some(life.activated);
    }

    /// All messages in the order in which they arrived.
    fn arrivals(self) -> impl Iterator<Item = (FlowKey, MessageArrival)> {
        let early: Vec<_> = self.early.iter().map(|message| self.messages[*message]).collect();
        let mut is_early = vec![false; self.messages.len()];
        self.early.iter().for_each(|message| is_early[*message] = true);
        let others = self.messages.into_iter().zip(is_early).filter(|(_, early)| !early);
        early.into_iter().chain(others.map(|(message, _)| message))
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Synthetic, SyntheticMessage};
    use super::*;

    #[test]
    fn the_kth_send_meets_the_kth_arrival_of_its_tag() {
        let mut job = Synthetic::new(3);
        for (k, tag) in [(0, 7), (1, 8), (2, 7), (3, 7)] {
            let at = 1000 + k * 100;
            job.message(&SyntheticMessage {
                from: 0,
                to: 2,
                tag,
                bytes: 10 + k,
                sent: at,
                posted: 5000 + at,
                ..SyntheticMessage::default()
            });
        }
        job.message(&SyntheticMessage {
            from: 1,
            to: 2,
            tag: 7,
            bytes: 99,
            sent: 900,
            posted: 100,
            ..SyntheticMessage::default()
        });
        let flows = flows(&job.trace());
        let found: Vec<_> = flows.iter().map(|flow| (flow.source, flow.tag, flow.bytes)).collect();
        assert_eq!(found, [(1, 7, 99), (0, 7, 10), (0, 8, 11), (0, 7, 12), (0, 7, 13)]);
        for flow in &flows[1..] {
            let incoming = flow.incoming.expect("arrived");
            assert!(incoming.unexpected && incoming.completed.is_some());
            assert_eq!(incoming.posted, Some(flow.sent + 5000));
            assert_eq!(flow.late_receiver(), Some(5000 - Synthetic::TRAVEL));
            assert_eq!(flow.late_sender(), None);
        }
        assert_eq!(flows[0].late_sender(), Some(800));
        assert_eq!(flows[0].late_receiver(), None);
    }

    #[test]
    fn a_message_that_nobody_receives_has_arrived_and_is_not_matched() {
        let mut job = Synthetic::new(2);
        job.message(&SyntheticMessage {
            from: 0,
            to: 1,
            sent: 10,
            posted: u64::MAX,
            ..SyntheticMessage::default()
        });
        let flows = flows(&job.trace());
        let incoming = flows[0].incoming.expect("arrived");
        assert_eq!((incoming.matched, incoming.posted, incoming.completed), (None, None, None));
        assert_eq!(flows[0].late_receiver(), None);
    }

    #[test]
    fn peers_are_ranks_of_their_communicator() {
        let mut job = Synthetic::new(3);
        job.communicator(5, 8, "odd ones", &[2, 0]);
        job.message(&SyntheticMessage {
            context: 8,
            from: 0,
            to: 1,
            sent: 20,
            posted: 10,
            ..SyntheticMessage::default()
        });
        let trace = job.trace();
        let flows = flows(&trace);
        assert_eq!((flows.len(), flows[0].source, flows[0].dest), (1, 2, 0));
        let record = trace.ranks[2].records[flows[0].send.index];
        assert_eq!((record.event, record.peer), (Event::ReqActivate, 1));
        assert_eq!(trace.ranks[2].communicator(8, 20).expect("made").name, "odd ones");
    }

    #[test]
    fn a_message_that_came_before_its_communicator_came_at_the_earliest_when_it_was_sent() {
        use Event as E;
        let mut job = Synthetic::new(2);
        let send = Record { send: true, peer: 1, ..Synthetic::record(E::ReqActivate, 3) };
        job.push(0, 10, &send);
        for (when, event, id) in
            [(40, E::ReqActivate, 5), (41, E::ReqMatchUnex, 5), (41, E::MsgRemoveFromUnexQ, 100)]
        {
            job.push(1, when, &Synthetic::record(event, id));
        }
        let flows = flows(&job.trace());
        let incoming = flows[0].incoming.expect("arrived");
        assert_eq!((incoming.arrived, incoming.posted, incoming.matched), (0, Some(30), Some(31)));
        assert_eq!(flows[0].late_receiver(), Some(30));
    }

    #[test]
    fn a_message_that_a_probe_took_goes_to_the_receive_that_comes_for_it() {
        use Event as E;
        let mut job = Synthetic::new(2);
        let send = Record { send: true, peer: 1, ..Synthetic::record(E::ReqActivate, 3) };
        job.push(0, 10, &send);
        for (when, event, id) in [
            (20, E::MsgArrived, 100),
            (21, E::MsgInsertInUnexQ, 100),
            (30, E::SearchUnexQEnd, 101),
            (31, E::MsgRemoveFromUnexQ, 100),
            (40, E::ReqActivate, 5),
            (41, E::ReqMatchUnex, 5),
            (42, E::ReqXferBegin, 5),
            (50, E::ReqComplete, 5),
        ] {
            job.push(1, when, &Synthetic::record(event, id));
        }
        let flows = flows(&job.trace());
        let incoming = flows[0].incoming.expect("arrived");
        assert_eq!((incoming.matched, incoming.posted, incoming.completed), (Some(21), Some(30), Some(40)));
        assert_eq!(flows[0].late_receiver(), Some(11));
    }

    #[test]
    fn a_message_that_its_sender_took_back_has_no_receive_and_leaves_the_next_one_to_its_own() {
        use Event as E;
        let mut job = Synthetic::new(2);
        for (when, id) in [(10, 3), (50, 4)] {
            let send = Record { send: true, peer: 1, ..Synthetic::record(E::ReqActivate, id) };
            job.push(0, when, &send);
        }
        let gone = Record {
            payload: RecordPayload::Cancelled,
            bytes: 8,
            ..Synthetic::record(E::MsgRemoveFromUnexQ, 100)
        };
        for (when, event, id) in [(20, E::MsgArrived, 100), (21, E::MsgInsertInUnexQ, 100)] {
            job.push(1, when, &Synthetic::record(event, id));
        }
        job.push(1, 40, &gone);
        for (when, event, id) in [
            (60, E::MsgArrived, 101),
            (61, E::MsgInsertInUnexQ, 101),
            (70, E::MsgRemoveFromUnexQ, 101),
            (80, E::ReqActivate, 5),
            (81, E::ReqMatchUnex, 5),
            (82, E::ReqXferBegin, 5),
            (90, E::ReqComplete, 5),
        ] {
            job.push(1, when, &Synthetic::record(event, id));
        }
        let trace = job.trace();
        assert_eq!(trace.ranks[1].unexpected_high, 1);
        let flows = flows(&trace);
        let incoming: Vec<_> = flows.iter().map(|flow| flow.incoming.expect("arrived")).collect();
        let [taken_back, received] = incoming[..] else { panic!("{flows:?}") };
        assert_eq!((taken_back.arrived, taken_back.matched, taken_back.posted), (10, None, None));
        assert_eq!((received.matched, received.posted, received.completed), (Some(60), Some(70), Some(80)));
        assert_eq!((flows[0].late_receiver(), flows[1].late_receiver()), (None, Some(10)));
    }
}
