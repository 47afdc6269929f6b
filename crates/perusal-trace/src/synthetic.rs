//! Traces of jobs that never ran: the bytes that ranks would have written, for tests of what reads them.
//!
//! ```
//! use perusal_trace::synthetic::{Synthetic, SyntheticMessage};
//!
//! let mut job = Synthetic::new(2);
//! let early = SyntheticMessage { from: 0, to: 1, tag: 7, bytes: 64, sent: 1000, posted: 9000, ..Default::default() };
//! job.message(&early);
//! let trace = job.trace();
//! assert_eq!(trace.ranks[1].unexpected_high, 1);
//! ```

use super::format::{self, RawRecord, TraceHeader, header, put_u32, put_u64, rank as block, window};
use super::model::{Record, RecordPayload, Trace};
use super::reader::read_bytes;
use crate::events::{Event, Words};
use std::collections::BTreeMap;

/// A record: when, and its words.
type Timed = (u64, [u64; 4]);

/// A job in the making. Times are nanoseconds; they need not come in order.
#[derive(Debug, Clone)]
pub struct Synthetic {
    trace_header: TraceHeader,
    /// By rank and stream.
    streams: BTreeMap<(u32, u16), Vec<Timed>>,
    groups: BTreeMap<u32, Vec<u32>>,
    dropped: BTreeMap<u32, u64>,
    next_id: u64,
    status: Option<i32>,
    killed: Vec<u32>,
}

/// A message from its send to its receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyntheticMessage {
    /// Context of the communicator; 0 is MPI_COMM_WORLD's.
    pub context: u32,
    /// Rank of the sender in the communicator.
    pub from: u32,
    /// Rank of the receiver.
    pub to: u32,
    /// The tag.
    pub tag: i32,
    /// Bytes.
    pub bytes: u64,
    /// When the send begins.
    pub sent: u64,
    /// When the receive begins; `u64::MAX` if it never does.
    pub posted: u64,
    /// Whether the receive names MPI_ANY_SOURCE.
    pub any_source: bool,
}

impl Synthetic {
    /// Nanoseconds from a send's begin to its message's arrival.
    pub const TRAVEL: u64 = 50;
    /// Nanoseconds that a search and a copy take.
    pub const STEP: u64 = 10;

    /// A job of `ranks` ranks that recorded nothing so far, and came to its end.
    #[must_use]
    pub fn new(ranks: u32) -> Synthetic {
        Synthetic {
            trace_header: TraceHeader {
                ranks,
                limit: 1 << 30,
                ticks_per_second: 1_000_000_000,
                command: "synthetic".into(),
                host: "nowhere".into(),
                ..TraceHeader::default()
            },
            streams: BTreeMap::new(),
            groups: BTreeMap::from([(0, (0..ranks).collect())]),
            dropped: BTreeMap::new(),
            next_id: 1,
            status: Some(0),
            killed: Vec::new(),
        }
    }

    /// A record of `event` with this id on MPI_COMM_WORLD, all else zero: to be changed and pushed.
    #[must_use]
    pub fn record(event: Event, id: u64) -> Record {
        Record {
            when: 0,
            event,
            id,
            context: 0,
            peer: 0,
            tag: 0,
            bytes: 0,
            send: false,
            stream: 0,
            posted: 0,
            unexpected: 0,
            payload: RecordPayload::None,
        }
    }

    /// An id that no request, message or search of this job has had.
    pub fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// One record of `rank` (in the job) at `when`; the reader says its queue lengths.
    pub fn push(&mut self, rank: u32, when: u64, record: &Record) -> &mut Self {
        let Record { event, id, context, send, .. } = *record;
        let words = words(record);
        let entry = RawRecord { ticks: when, event: event.code(), id, context, send, words };
        self.streams.entry((rank, record.stream)).or_default().push((when, entry.pack()));
        self
    }

    /// A communicator that all of `group` (ranks of the job) make at `when`.
    pub fn communicator(&mut self, when: u64, context: u32, name: &str, group: &[u32]) -> &mut Self {
        self.groups.insert(context, group.to_vec());
        let ranks: Vec<u8> = group.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        for rank in group {
            let size = group.len() as u32;
            self.long(*rank, when, Event::CommCreated, context, size, &ranks);
            if !name.is_empty() {
                self.long(*rank, when, Event::CommNamed, context, 0, name.as_bytes());
            }
        }
        self
    }

    /// A window that all of `group` (ranks of the job) make at `when`, of memory that they map.
    pub fn window(&mut self, when: u64, context: u32, name: &str, group: &[u32]) -> &mut Self {
        let ranks: Vec<u8> = group.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        for rank in group {
            self.long(*rank, when, Event::WinCreated, context, group.len() as u32, &ranks);
            let payload = RecordPayload::Window { flavor: 1, reach: 0, bytes: 4096 };
            self.push(*rank, when, &Record { context, payload, ..Self::record(Event::WinPlaced, 0) });
            if !name.is_empty() {
                self.long(*rank, when, Event::WinNamed, context, 0, name.as_bytes());
            }
        }
        self
    }

    /// A file that all of `group` (ranks of the job) open at `when`.
    pub fn file(&mut self, when: u64, context: u32, name: &str, group: &[u32]) -> &mut Self {
        let ranks: Vec<u8> = group.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        for rank in group {
            self.long(*rank, when, Event::FileOpened, context, group.len() as u32, &ranks);
            self.long(*rank, when, Event::FileNamed, context, 0, name.as_bytes());
        }
        self
    }

    fn long(&mut self, rank: u32, when: u64, event: Event, context: u32, size: u32, carried: &[u8]) {
        let third = carried.len() as u64;
        let head = RawRecord {
            ticks: when,
            event: event.code(),
            context,
            words: Words { first: size, second: size, third },
            ..RawRecord::default()
        };
        let stream = self.streams.entry((rank, 0)).or_default();
        stream.push((when, head.pack()));
        stream
            .extend(carried.chunks(format::CARRIED).map(|part| (when, RawRecord::continuation(when, part))));
    }

    /// A message: all events of its send, its arrival, its match and its receive.
    pub fn message(&mut self, message: &SyntheticMessage) -> &mut Self {
        let SyntheticMessage { context, from, to, tag, bytes, sent, posted, any_source } = *message;
        let group = &self.groups[&context];
        let (source, dest) = (group[from as usize], group[to as usize]);
        let (send, receive, arrival) = (self.id(), self.id(), self.id());
        let of = |event, id| Record { context, tag, bytes, ..Self::record(event, id) };
        let out = |event| Record { peer: to as i32, send: true, ..of(event, send) };
        for (after, event) in
            [Event::ReqActivate, Event::ReqXferBegin, Event::ReqXferEnd, Event::ReqComplete, Event::ReqNotify]
                .into_iter()
                .enumerate()
        {
            self.push(source, sent + after as u64, &out(event));
        }
        let peer = from as i32;
        let asked = if any_source { -1 } else { peer };
        let message = |event| Record { peer, ..of(event, arrival) };
        let request = |event| Record { peer, ..of(event, receive) };
        let arrived = sent + Self::TRAVEL;
        let early = posted > arrived;
        self.push(dest, arrived, &message(Event::MsgArrived));
        self.search(dest, arrived, Record { peer, ..of(Event::SearchPostedQBegin, 0) }, !early);
        let found = arrived + Self::STEP;
        if early {
            self.push(dest, found, &message(Event::MsgInsertInUnexQ));
        }
        if posted == u64::MAX {
            return self;
        }
        self.push(dest, posted, &Record { peer: asked, ..request(Event::ReqActivate) });
        self.search(dest, posted, Record { peer: asked, ..of(Event::SearchUnexQBegin, 0) }, early);
        let mut matched = posted + Self::STEP;
        if early {
            self.push(dest, matched, &request(Event::ReqMatchUnex));
            self.push(dest, matched, &message(Event::MsgRemoveFromUnexQ));
        } else {
            self.push(dest, matched, &Record { peer: asked, ..request(Event::ReqInsertInPostedQ) });
            matched = matched.max(found);
            self.push(dest, matched, &message(Event::MsgMatchPostedReq));
            self.push(dest, matched, &request(Event::ReqRemoveFromPostedQ));
        }
        self.push(dest, matched, &request(Event::ReqXferBegin));
        for event in [Event::ReqXferEnd, Event::ReqComplete, Event::ReqNotify] {
            self.push(dest, matched + Self::STEP, &request(event));
        }
        self
    }

    /// A search of `rank` that begins at `when`: of the posted queue for a message, or of the unexpected one for a
    /// receive, as `begin` says; the id is made here.
    pub fn search(&mut self, rank: u32, when: u64, begin: Record, hit: bool) -> &mut Self {
        let id = self.id();
        let end = if begin.event == Event::SearchPostedQBegin {
            Event::SearchPostedQEnd
        } else {
            Event::SearchUnexQEnd
        };
        self.push(rank, when, &Record { id, ..begin });
        let payload = RecordPayload::Search { depth: 1, hit };
        self.push(rank, when + Self::STEP, &Record { id, event: end, payload, ..begin })
    }

    /// Something of `rank` that takes from `begin` to `end`: the record of its begin, and the event of its end.
    pub fn span(&mut self, rank: u32, begin: u64, end: u64, what: &Record, over: Event) -> &mut Self {
        self.push(rank, begin, what);
        self.push(rank, end, &Record { event: over, ..*what })
    }

    /// So many events more of `rank` happened and were not recorded.
    pub fn drop_events(&mut self, rank: u32, count: u64) -> &mut Self {
        *self.dropped.entry(rank).or_default() += count;
        self
    }

    /// `rank` never came to MPI_Finalize.
    pub fn kill(&mut self, rank: u32) -> &mut Self {
        self.killed.push(rank);
        self
    }

    /// How the job ended; `None`: it has not.
    pub fn ended(&mut self, status: Option<i32>) -> &mut Self {
        self.status = status;
        self
    }

    /// What the header says of the job.
    pub fn trace_header(&mut self) -> &mut TraceHeader {
        &mut self.trace_header
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.trace_header.bytes();
        if let Some(status) = self.status {
            put_u32(&mut bytes, header::ENDED, 1);
            put_u32(&mut bytes, header::STATUS, status.cast_unsigned());
        }
        for rank in 0..self.trace_header.ranks {
            let at = format::HEADER + u64::from(rank) * format::RANK_BLOCK;
            put_u32(&mut bytes, at + block::PID, 1000 + rank);
            put_u32(&mut bytes, at + block::FINALIZED, u32::from(!self.killed.contains(&rank)));
            let dropped = self.dropped.get(&rank).copied().unwrap_or(0);
            let of_rank = self.streams.range((rank, 0)..=(rank, u16::MAX)).flat_map(|(_, records)| records);
            let number = |(_, words): &&Timed| RawRecord::unpack(*words).map_or(0, |entry| entry.event);
            let continued = of_rank.filter(|record| number(record) == format::CONTINUATION).count();
            put_u64(&mut bytes, at + block::CONTINUED, continued as u64);
            put_u64(&mut bytes, at + block::DROPPED + u64::from(Event::MsgArrived.code()) * 8, dropped);
        }
        for ((rank, stream), records) in &self.streams {
            let mut records = records.clone();
            records.sort_by_key(|(when, _)| *when);
            let in_window = (format::UNIT - format::WINDOW_HEADER) / format::RECORD;
            for (sequence, records) in (0..).zip(records.chunks(in_window as usize)) {
                bytes.extend(window_of(*rank, *stream, sequence, records));
            }
        }
        let next = bytes.len() as u64;
        put_u64(&mut bytes, header::NEXT, next);
        bytes
    }

    /// What a reader makes of it.
    ///
    /// # Panics
    /// Never: the bytes are those of a sound trace.
    #[must_use]
    pub fn trace(&self) -> Trace {
        read_bytes(&self.bytes()).expect("a sound trace")
    }
}

fn window_of(rank: u32, stream: u16, sequence: u32, records: &[Timed]) -> Vec<u8> {
    let mut bytes = vec![0; format::UNIT as usize];
    put_u64(&mut bytes, window::MAGIC, format::WINDOW_MAGIC);
    put_u32(&mut bytes, window::RANK, rank);
    put_u32(&mut bytes, window::STREAM, u32::from(stream));
    put_u32(&mut bytes, window::SEQUENCE, sequence);
    put_u32(&mut bytes, window::UNITS, 1);
    for (record, (_, words)) in (0..).zip(records) {
        for (word, value) in (0..).zip(words) {
            put_u64(&mut bytes, format::WINDOW_HEADER + record * format::RECORD + word * 8, *value);
        }
    }
    bytes
}

/// The words of [`RawRecord`] that say what a record's own fields say.
fn words(record: &Record) -> Words {
    let Record { peer, tag, bytes, payload, .. } = *record;
    let mut words = Words { first: peer.cast_unsigned(), second: tag.cast_unsigned(), third: bytes };
    payload.pack(&mut words);
    words
}
