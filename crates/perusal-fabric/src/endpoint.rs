//! An endpoint: its memory, its peers, its receives and sends, and the progress of all.

use crate::address::Address;
use crate::api::*;
use crate::key::{TagKey, TagPattern};
use crate::peers::{Peers, Waiting};
use crate::queue::{Completion, Counter, Queue};
use crate::segment::{self, Segment};
use crate::slab::Slab;
use crate::spans::Spans;
use crate::wire;
use core::time::Duration;
use libc::c_void;
use perusal::internals::matching::{PostedQueue, UnexpectedQueue};
use perusal::internals::ring::{Consumer, Header, MappedRing};
use perusal::internals::sync::AsymmetricFence;
use std::collections::VecDeque;
use std::rc::Rc;

/// Largest message in bytes that is sent as one record, and that fi_inject takes.
pub const EAGER_LIMIT: usize = 16 << 10;
/// Bytes of a record of a longer message.
const FRAGMENT: usize = 32 << 10;
/// Records taken from one ring before the others are looked at.
const BATCH: usize = 64;
/// Polls in vain after which an endpoint whose processes outnumber the CPUs gives its CPU away.
const PATIENCE: u32 = 16;
/// Polls in vain after which any endpoint gives its CPU away at times.
const LONG: u32 = 1000;

/// The ring from a peer.
#[derive(Debug)]
struct Incoming {
    consumer: Consumer<MappedRing>,
    slot: usize,
    peer: u32,
}

/// A receive.
#[derive(Debug)]
pub struct Receive {
    pub spans: Spans,
    pub context: *mut c_void,
    pub pattern: TagPattern,
    pub tagged: bool,
    pub completion: bool,
    /// Of a buffer for several messages: how many bytes are taken, and how many messages are still on their way into it.
    pub several: Option<Several>,
}

/// The state of a buffer for several messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Several {
    used: usize,
    under_way: u32,
    full: bool,
}

/// A message on its way into a buffer.
#[derive(Debug)]
struct Arriving {
    peer: u32,
    spans: Spans,
    filled: usize,
    wanted: usize,
    message: Message,
    receive: Taken,
    /// The sender's number of the message.
    send: u32,
}

/// What a completion needs of the receive.
#[derive(Debug, Clone, Copy)]
struct Taken {
    context: *mut c_void,
    completion: bool,
    /// The number of the receive whose buffer takes several messages.
    several: Option<u32>,
}

/// What is known of a message before its bytes.
#[derive(Debug, Clone, Copy)]
struct Message {
    peer: u32,
    kind: u8,
    tag: u64,
    data: u64,
    len: usize,
}

/// A message that no receive was posted for.
#[derive(Debug)]
struct Unexpected {
    message: Message,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Here(Box<[u8]>),
    /// The number of the send.
    There(u32),
}

/// A send whose bytes the peer asks for.
#[derive(Debug)]
struct Sending {
    peer: u32,
    spans: Spans,
    sent: usize,
    wanted: usize,
    number: u32,
    /// The peer says when all is received; until then the send is not complete.
    confirmed: bool,
    context: *mut c_void,
    flags: u64,
    completion: bool,
    /// Keeps the bytes that `spans` refers to, where they are not the caller's.
    _own: Option<Box<[u8]>>,
}

/// What a send is asked to do.
#[derive(Debug)]
pub struct Send {
    pub spans: Spans,
    pub to: u64,
    pub tag: Option<u64>,
    pub data: Option<u64>,
    pub context: *mut c_void,
    /// A completion is wanted; an inject has none.
    pub completion: bool,
    pub inject: bool,
    /// Complete only when the message is received.
    pub delivery: bool,
    /// The bytes, where the caller's buffers do not last as long as the send.
    pub own: Option<Box<[u8]>>,
}

impl Send {
    /// Copies the bytes: from now on the caller's buffers are not needed.
    pub fn keep_bytes(&mut self) {
        let mut bytes = vec![0; self.spans.len()].into_boxed_slice();
        self.spans.read(0, &mut bytes);
        // SAFETY: the box moves with the send, and its bytes stay where they are until the send ends.
        self.spans = unsafe { Spans::one(bytes.as_ptr().cast(), bytes.len()) };
        self.own = Some(bytes);
    }
}

/// Where completions go.
#[derive(Debug, Default)]
pub struct Reports {
    pub send_queue: Option<Rc<Queue>>,
    pub receive_queue: Option<Rc<Queue>>,
    pub send_counters: Vec<Rc<Counter>>,
    pub receive_counters: Vec<Rc<Counter>>,
}

impl Reports {
    fn sent(&self, context: *mut c_void, flags: u64, completion: bool, error: i32) {
        if let (true, Some(queue)) = (completion || error != 0, &self.send_queue) {
            let entry =
                CqEntry { context, flags, len: 0, buf: core::ptr::null_mut(), data: 0, tag: 0 };
            queue.push(Completion { entry, source: FI_ADDR_NOTAVAIL, error, overflow: 0 });
        }
        self.send_counters.iter().for_each(|counter| counter.count(error != 0));
    }

    fn received(&self, entry: CqEntry, source: u64, completion: bool, error: i32, overflow: usize) {
        if let (true, Some(queue)) = (completion || error != 0, &self.receive_queue) {
            queue.push(Completion { entry, source, error, overflow });
        }
        self.receive_counters.iter().for_each(|counter| counter.count(error != 0));
    }
}

/// All but the rings to this endpoint.
#[derive(Debug)]
pub struct Core {
    pub peers: Peers,
    pub reports: Reports,
    /// Whether receives look at the sender that they name (FI_DIRECTED_RECV).
    pub directed: bool,
    /// Numbers of peers by fi_addr_t; u32::MAX where not known yet.
    by_fi_addr: Vec<u32>,
    posted: PostedQueue<u32, TagPattern>,
    unexpected: UnexpectedQueue<Unexpected, TagPattern>,
    posted_plain: VecDeque<u32>,
    unexpected_plain: VecDeque<Unexpected>,
    receives: Slab<Receive>,
    arriving: Slab<Arriving>,
    sends: Slab<Sending>,
    claimed: Vec<(*mut c_void, Unexpected)>,
    pub min_multi_recv: usize,
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    pub address: Address,
    incoming: Vec<Incoming>,
    last: usize,
    changes: u32,
    idle: u32,
    cpus: usize,
    fence: AsymmetricFence,
    pub core: Core,
    /// Behind what points into it.
    segment: Segment,
}

impl Endpoint {
    /// # Errors
    ///
    /// The number of the error.
    pub fn new() -> Result<Self, i32> {
        let (segment, address) = Segment::new()?;
        let fence = segment.fence()?;
        let core = Core {
            peers: Peers::new(address),
            reports: Reports::default(),
            directed: false,
            by_fi_addr: Vec::new(),
            posted: PostedQueue::new(),
            unexpected: UnexpectedQueue::new(),
            posted_plain: VecDeque::new(),
            unexpected_plain: VecDeque::new(),
            receives: Slab::default(),
            arriving: Slab::default(),
            sends: Slab::default(),
            claimed: Vec::new(),
            min_multi_recv: 64,
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { address, incoming: Vec::new(), last: 0, changes: 0, idle: 0, cpus, fence, core, segment })
    }

    /// Takes what has arrived and sends what waits. Returns whether there was anything.
    #[inline]
    pub fn progress(&mut self) -> bool {
        if self.segment.changes() != self.changes {
            self.look_at_slots();
        }
        let mut any = false;
        let count = self.incoming.len();
        for step in 0..count {
            let at = if self.last + step < count { self.last + step } else { self.last + step - count };
            let Incoming { consumer, peer, .. } = &mut self.incoming[at];
            let mut taken = 0;
            while taken < BATCH {
                match consumer.poll(|header, payload| self.core.take(*peer, header, payload)) {
                    Ok(Some(())) => taken += 1,
                    Ok(None) => break,
                    Err(_) => {
                        self.drop_peer(at);
                        return true;
                    }
                }
            }
            if taken > 0 {
                consumer.return_credit();
                self.last = at;
                any = true;
            }
        }
        if !self.core.peers.with_waiting.is_empty() {
            any |= self.core.push_waiting();
        }
        if any {
            self.idle = 0;
        } else {
            self.wait_a_little();
        }
        any
    }

    #[inline]
    fn wait_a_little(&mut self) {
        self.idle = self.idle.wrapping_add(1);
        let crowded = self.idle >= PATIENCE && self.incoming.len() >= self.cpus;
        // Whoever is awaited may be waiting for this very CPU.
        let long = self.idle >= LONG && self.idle.is_multiple_of(PATIENCE);
        if crowded || long {
            std::thread::yield_now();
        }
        if self.idle.is_multiple_of(1 << 16) {
            self.look_for_the_dead();
        }
    }

    #[cold]
    fn look_at_slots(&mut self) {
        self.changes = self.segment.changes();
        for slot in 0..segment::SLOTS {
            let known = self.incoming.iter().position(|one| one.slot == slot);
            match (self.segment.state(slot), known) {
                (segment::READY, None) => {
                    let sender = self.segment.sender(slot);
                    let peer = self.core.peers.number(sender);
                    let consumer = Consumer::resume(self.segment.ring(slot));
                    consumer.disable_notification();
                    self.incoming.push(Incoming { consumer, slot, peer });
                }
                (segment::CLOSED, known) => {
                    let sender = self.segment.sender(slot);
                    let peer = self.core.peers.number(sender);
                    let ring = self.segment.ring(slot);
                    let mut consumer = match known {
                        Some(at) => {
                            self.last = 0;
                            self.incoming.swap_remove(at).consumer
                        }
                        None => Consumer::resume(ring),
                    };
                    while let Ok(Some(())) =
                        consumer.poll(|header, payload| self.core.take(peer, header, payload))
                    {}
                    consumer.retire();
                    self.segment.free(slot);
                }
                _ => {}
            }
        }
    }

    /// Ends what is under way with peers whose process has ended, and gives their slots back.
    #[cold]
    fn look_for_the_dead(&mut self) {
        let mut at = 0;
        while at < self.incoming.len() {
            let one = &self.incoming[at];
            if !one.consumer.ready() && self.core.peers.all[one.peer as usize].has_ended() {
                self.drop_peer(at);
            } else {
                at += 1;
            }
        }
        for peer in 0..self.core.peers.all.len() as u32 {
            if self.core.peers.all[peer as usize].outgoing.is_some()
                && self.core.peers.all[peer as usize].has_ended()
            {
                self.core.end_with(peer);
            }
        }
    }

    #[cold]
    fn drop_peer(&mut self, at: usize) {
        self.last = 0;
        let Incoming { mut consumer, slot, peer } = self.incoming.swap_remove(at);
        self.core.peers.all[peer as usize].dead = true;
        self.core.end_with(peer);
        consumer.retire();
        // The next sender goes on where the owner's end is: the dead one left no word about its own.
        let control = perusal::internals::ring::Storage::control(consumer.storage());
        let order = core::sync::atomic::Ordering::Relaxed;
        // Relaxed: published by `free` (slot rule 1).
        control.producer.tail.store(control.consumer.head.load(order), order);
        control.producer.bulk_tail.store(control.consumer.bulk_head.load(order), order);
        self.segment.free(slot);
    }

    /// Sleeps until something arrives, for at most so many milliseconds.
    pub fn sleep(&mut self, milliseconds: u64) {
        let bell = self.segment.doorbell();
        self.incoming.iter().for_each(|one| one.consumer.enable_notification());
        let at_most = if self.core.peers.with_waiting.is_empty() { milliseconds.min(100) } else { 1 };
        let (incoming, segment, changes) = (&self.incoming, &self.segment, self.changes);
        let reason = || segment.changes() != changes || incoming.iter().any(|one| one.consumer.ready());
        bell.sleep(self.fence, Duration::from_millis(at_most), reason);
        (0..bell.words()).for_each(|at| {
            if bell.has_flags(at) {
                bell.take_flags(at);
            }
        });
        self.incoming.iter().for_each(|one| one.consumer.disable_notification());
        self.look_for_the_dead();
    }
}

impl Core {
    /// The address vector says that `fi_addr` is the endpoint with this address.
    pub fn introduce(&mut self, fi_addr: u64, address: Address) {
        let number = self.peers.number(address);
        let at = fi_addr as usize;
        if self.by_fi_addr.len() <= at {
            self.by_fi_addr.resize(at + 1, u32::MAX);
        }
        self.by_fi_addr[at] = number;
        let peer = &mut self.peers.all[number as usize];
        if peer.fi_addr == FI_ADDR_NOTAVAIL {
            peer.fi_addr = fi_addr;
        }
    }

    /// The address vector does not have `fi_addr` any more.
    pub fn forget(&mut self, fi_addr: u64) {
        if let Some(number) = self.by_fi_addr.get_mut(fi_addr as usize) {
            if let Some(peer) = self.peers.all.get_mut(*number as usize) {
                peer.fi_addr = FI_ADDR_NOTAVAIL;
            }
            *number = u32::MAX;
        }
    }

    #[inline(always)]
    fn peer_of(&self, fi_addr: u64) -> Option<u32> {
        self.by_fi_addr.get(fi_addr as usize).copied().filter(|&peer| peer != u32::MAX)
    }

    /// The pattern of a receive.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if the address vector does not have the sender.
    #[inline(always)]
    pub fn pattern(&self, from: u64, tag: u64, ignore: u64) -> Result<TagPattern, i32> {
        if !self.directed || from == FI_ADDR_UNSPEC {
            return Ok(TagPattern { peer: None, tag, ignore });
        }
        let peer = self.peer_of(from).ok_or(FI_EINVAL)?;
        Ok(TagPattern { peer: Some(peer), tag, ignore })
    }

    // Sends.

    /// # Errors
    ///
    /// FI_EAGAIN if there is no room now, FI_EINVAL for an unknown peer, FI_EHOSTUNREACH or FI_ESHUTDOWN for one that is gone.
    #[inline(always)]
    pub fn send(&mut self, send: Send) -> Result<(), i32> {
        let peer = self.peer_of(send.to).ok_or(FI_EINVAL)?;
        let len = send.spans.len();
        let tagged = if send.tag.is_some() { wire::TAGGED } else { 0 };
        let kind = tagged | if send.data.is_some() { wire::HAS_DATA } else { 0 };
        let (tag, data) = (send.tag.unwrap_or(0), send.data.unwrap_or(0));
        if !self.peers.all[peer as usize].waiting.is_empty() && !self.push_waiting_to(peer) {
            return Err(self.peers.refuse(peer));
        }
        let flags = FI_SEND | if send.tag.is_some() { FI_TAGGED } else { FI_MSG };
        let outgoing = self.peers.outgoing(peer)?;
        if len <= EAGER_LIMIT && !send.delivery {
            let header = wire::envelope(wire::EAGER | kind, tag, data);
            if !outgoing.push(&header, len, |to| send.spans.read(0, to)) {
                return Err(self.peers.refuse(peer));
            }
            self.reports.sent(send.context, flags, send.completion && !send.inject, 0);
            return Ok(());
        }
        if send.inject {
            return Err(FI_EMSGSIZE);
        }
        let number = self.sends.insert(Sending {
            peer,
            spans: send.spans,
            sent: 0,
            wanted: usize::MAX,
            number: 0,
            confirmed: send.delivery,
            context: send.context,
            flags,
            completion: send.completion,
            _own: send.own,
        });
        let confirm = if send.delivery { wire::CONFIRM } else { 0 };
        let header = wire::envelope(wire::RTS | kind | confirm, tag, data);
        let words = [len as u64, u64::from(number)];
        if !self.peers.outgoing(peer)?.push(&header, 16, |to| wire::words(words, to)) {
            self.sends.remove(number);
            return Err(self.peers.refuse(peer));
        }
        Ok(())
    }

    fn push_waiting(&mut self) -> bool {
        let mut any = false;
        for peer in self.peers.with_waiting.clone() {
            any |= self.push_some_to(peer);
        }
        any
    }

    /// Returns whether nothing waits any more.
    #[cold]
    fn push_waiting_to(&mut self, peer: u32) -> bool {
        self.push_some_to(peer);
        self.peers.all[peer as usize].waiting.is_empty()
    }

    fn push_some_to(&mut self, peer: u32) -> bool {
        let (sends, reports) = (&mut self.sends, &self.reports);
        self.peers.push_waiting_of(peer, &mut |(number, outgoing)| {
            let Some(send) = sends.get(number) else { return Some(true) };
            while send.sent < send.wanted {
                let len = FRAGMENT.min(send.wanted - send.sent);
                let (spans, sent) = (&send.spans, send.sent);
                let header = wire::control(wire::DATA, send.number);
                if !outgoing.push(&header, len, |to| spans.read(sent, to)) {
                    return Some(false);
                }
                send.sent += len;
            }
            if !send.confirmed {
                reports.sent(send.context, send.flags, send.completion, 0);
                sends.remove(number);
            }
            Some(true)
        })
    }

    // Records.

    /// Takes a record from a peer.
    #[inline(always)]
    fn take(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let kind = header.kind & wire::KIND;
        if kind == wire::EAGER {
            let (tag, data) = (wire::tag(header), wire::data(header));
            let message = Message { peer, kind: header.kind, tag, data, len: payload.len() };
            match self.receive_for(&message) {
                Some(number) => self.deliver(number, message, payload),
                None => self.keep(Unexpected { message, body: Body::Here(payload.into()) }),
            }
            return;
        }
        self.take_other(peer, header, payload);
    }

    #[inline(never)]
    fn take_other(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        match header.kind & wire::KIND {
            wire::RTS => {
                let (tag, data) = (wire::tag(header), wire::data(header));
                let len = usize::try_from(wire::word(payload, 0)).unwrap_or(usize::MAX);
                let message = Message { peer, kind: header.kind, tag, data, len };
                let send = wire::word(payload, 1) as u32;
                match self.receive_for(&message) {
                    Some(number) => self.fetch(number, message, send),
                    None => self.keep(Unexpected { message, body: Body::There(send) }),
                }
            }
            wire::CTS => {
                let number = header.context;
                let Some(send) = self.sends.get(number).filter(|send| send.peer == peer) else { return };
                if send.wanted == usize::MAX {
                    send.number = wire::word(payload, 0) as u32;
                    send.wanted = send.spans.len().min(wire::word(payload, 1) as usize);
                    self.peers.wait(peer, Waiting::Stream(number));
                    self.push_some_to(peer);
                }
            }
            wire::DATA => {
                let number = header.context;
                let Some(arriving) = self.arriving.get(number).filter(|one| one.peer == peer) else { return };
                let here = payload.len().min(arriving.wanted - arriving.filled);
                arriving.spans.write(arriving.filled, &payload[..here]);
                arriving.filled += here;
                if arriving.filled == arriving.wanted {
                    self.arrived(number, 0);
                }
            }
            wire::FIN => {
                let number = header.context;
                if self.sends.get(number).is_some_and(|send| send.peer == peer && send.confirmed) {
                    self.end_send(number, 0);
                }
            }
            // A peer of this version sends nothing else.
            _ => {}
        }
    }

    fn end_send(&mut self, number: u32, error: i32) {
        if let Some(send) = self.sends.remove(number) {
            self.reports.sent(send.context, send.flags, send.completion, error);
        }
    }

    /// The posted receive that takes this message.
    #[inline(always)]
    fn receive_for(&mut self, message: &Message) -> Option<u32> {
        if message.kind & wire::TAGGED != 0 {
            return self.posted.take(&TagKey { peer: message.peer, tag: message.tag });
        }
        let receives = &mut self.receives;
        let at = self.posted_plain.iter().position(|&number| {
            receives
                .get(number)
                .is_some_and(|receive| receive.pattern.peer.is_none_or(|peer| peer == message.peer))
        })?;
        let number = self.posted_plain[at];
        if self.receives.get(number).is_none_or(|receive| receive.several.is_none()) {
            self.posted_plain.remove(at);
        }
        Some(number)
    }

    fn keep(&mut self, unexpected: Unexpected) {
        let message = &unexpected.message;
        if message.kind & wire::TAGGED != 0 {
            self.unexpected.insert(TagKey { peer: message.peer, tag: message.tag }, unexpected);
        } else {
            self.unexpected_plain.push_back(unexpected);
        }
    }

    /// Takes a buffer for a message: of a receive for one message all, of one for several a part.
    #[inline(always)]
    fn buffer(&mut self, number: u32, len: usize) -> Option<(Spans, Taken)> {
        if self.receives.get(number)?.several.is_none() {
            let receive = self.receives.remove(number)?;
            let taken = Taken { context: receive.context, completion: receive.completion, several: None };
            return Some((receive.spans, taken));
        }
        let least = self.min_multi_recv;
        let receive = self.receives.get(number)?;
        let capacity = receive.spans.len();
        let state = receive.several.as_mut()?;
        let spans = receive.spans.part(state.used, len);
        state.used = state.used.saturating_add(len).min(capacity);
        state.under_way += 1;
        state.full = capacity - state.used < least.max(1);
        let taken = Taken { context: receive.context, completion: receive.completion, several: Some(number) };
        if state.full {
            self.posted_plain.retain(|&other| other != number);
        }
        Some((spans, taken))
    }

    #[inline(always)]
    fn deliver(&mut self, number: u32, message: Message, payload: &[u8]) {
        if let Some((spans, taken)) = self.buffer(number, message.len) {
            spans.write(0, payload);
            self.received(&spans, taken, message, 0);
        }
    }

    /// Asks for the bytes of a message.
    fn fetch(&mut self, number: u32, message: Message, send: u32) {
        let Some((spans, receive)) = self.buffer(number, message.len) else { return };
        let wanted = message.len.min(spans.len());
        let peer = message.peer;
        let arriving = Arriving { peer, spans, filled: 0, wanted, message, receive, send };
        let number = self.arriving.insert(arriving);
        self.peers.control(peer, wire::control(wire::CTS, send), [u64::from(number), wanted as u64, 0]);
        if wanted == 0 {
            self.arrived(number, 0);
        }
    }

    fn arrived(&mut self, number: u32, error: i32) {
        let Some(Arriving { spans, message, receive, send, .. }) = self.arriving.remove(number) else { return };
        if error == 0 && message.kind & wire::CONFIRM != 0 {
            self.peers.control(message.peer, wire::control(wire::FIN, send), [0; 3]);
        }
        self.received(&spans, receive, message, error);
    }

    /// Reports a message that is received.
    #[inline(always)]
    fn received(&mut self, spans: &Spans, taken: Taken, message: Message, error: i32) {
        let overflow = message.len.saturating_sub(spans.len());
        let error = if error == 0 && overflow > 0 { FI_ETRUNC } else { error };
        let entry = self.entry(taken.context, spans, &message, message.len - overflow);
        let source = self.peers.all[message.peer as usize].fi_addr;
        self.reports.received(entry, source, taken.completion, error, overflow);
        if let Some(number) = taken.several {
            self.part_done(number);
        }
    }

    fn entry(&self, context: *mut c_void, spans: &Spans, message: &Message, len: usize) -> CqEntry {
        let tagged = if message.kind & wire::TAGGED != 0 { FI_TAGGED } else { FI_MSG };
        let data = if message.kind & wire::HAS_DATA != 0 { FI_REMOTE_CQ_DATA } else { 0 };
        let flags = FI_RECV | tagged | data;
        CqEntry { context, flags, len, buf: spans.start(), data: message.data, tag: message.tag }
    }

    /// One message of a buffer for several is complete: the last one gives the buffer back.
    fn part_done(&mut self, number: u32) {
        let Some(receive) = self.receives.get(number) else { return };
        let Some(state) = receive.several.as_mut() else { return };
        state.under_way -= 1;
        if state.full && state.under_way == 0 {
            self.give_back(number);
        }
    }

    /// Reports that a buffer for several messages is the caller's again.
    fn give_back(&mut self, number: u32) {
        let Some(receive) = self.receives.remove(number) else { return };
        let entry = CqEntry {
            context: receive.context,
            flags: FI_MULTI_RECV | FI_RECV | FI_MSG,
            len: 0,
            buf: core::ptr::null_mut(),
            data: 0,
            tag: 0,
        };
        if let Some(queue) = &self.reports.receive_queue {
            let mut done = queue.done.borrow_mut();
            // The flag goes to the last message of the buffer where that is not read yet.
            match done.iter_mut().rev().find(|last| last.entry.context == receive.context && last.error == 0) {
                Some(last) if receive.completion => last.entry.flags |= FI_MULTI_RECV,
                _ => done.push_back(Completion { entry, source: FI_ADDR_NOTAVAIL, error: 0, overflow: 0 }),
            }
        }
    }

    // Receives.

    /// Posts a receive, or completes it with a message that is here.
    #[inline(always)]
    pub fn receive(&mut self, receive: Receive) {
        let pattern = receive.pattern;
        if receive.tagged {
            let found = if self.unexpected.is_empty() { None } else { self.unexpected.take(&pattern) };
            let number = self.receives.insert(receive);
            match found {
                None => self.posted.insert(pattern, number),
                Some((_, unexpected)) => self.give(number, unexpected),
            }
            return;
        }
        let several = receive.several.is_some();
        let number = self.receives.insert(receive);
        self.posted_plain.push_back(number);
        while let Some(at) = self.find_plain(&pattern) {
            if !self.posted_plain.contains(&number) {
                break;
            }
            if !several {
                self.posted_plain.retain(|&other| other != number);
            }
            if let Some(unexpected) = self.unexpected_plain.remove(at) {
                self.give(number, unexpected);
            }
        }
    }

    fn find_plain(&self, pattern: &TagPattern) -> Option<usize> {
        let takes = |one: &Unexpected| pattern.peer.is_none_or(|peer| peer == one.message.peer);
        self.unexpected_plain.iter().position(takes)
    }

    fn give(&mut self, number: u32, unexpected: Unexpected) {
        match unexpected.body {
            Body::Here(bytes) => self.deliver(number, unexpected.message, &bytes),
            Body::There(send) => self.fetch(number, unexpected.message, send),
        }
    }

    /// Looks for a message without receiving it, as FI_PEEK, FI_CLAIM and FI_DISCARD of `flags` say. Its report goes to the queue.
    pub fn peek(&mut self, tagged: bool, pattern: &TagPattern, context: *mut c_void, flags: u64) {
        let none = Spans::none();
        let remove = flags & (FI_CLAIM | FI_DISCARD) != 0;
        let message = if tagged {
            self.unexpected.find(pattern).map(|found| (found, self.unexpected.at(found).1.message))
        } else {
            None
        };
        let plain = if tagged { None } else { self.find_plain(pattern) };
        let (message, taken) = match (message, plain) {
            (Some((found, message)), _) => {
                (message, if remove { Some(self.unexpected.take_found(found).1) } else { None })
            }
            (None, Some(at)) => {
                let message = self.unexpected_plain[at].message;
                (message, if remove { self.unexpected_plain.remove(at) } else { None })
            }
            (None, None) => {
                let flags = FI_RECV | if tagged { FI_TAGGED } else { FI_MSG };
                let entry = CqEntry { context, flags, len: 0, buf: none.start(), data: 0, tag: pattern.tag };
                self.report(entry, FI_ADDR_NOTAVAIL, FI_ENOMSG);
                return;
            }
        };
        let entry = self.entry(context, &none, &message, message.len);
        let source = self.peers.all[message.peer as usize].fi_addr;
        self.report(entry, source, 0);
        match taken {
            Some(unexpected) if flags & FI_CLAIM != 0 => self.claimed.push((context, unexpected)),
            Some(unexpected) => self.discard(unexpected),
            None => {}
        }
    }

    /// Reports what is no operation's end: nothing is counted.
    fn report(&self, entry: CqEntry, source: u64, error: i32) {
        if let Some(queue) = &self.reports.receive_queue {
            queue.push(Completion { entry, source, error, overflow: 0 });
        }
    }

    /// Receives, or discards, the message that was claimed with this context.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if there is none.
    pub fn take_claimed(&mut self, receive: Receive, flags: u64) -> Result<(), i32> {
        let at = self.claimed.iter().position(|one| one.0 == receive.context).ok_or(FI_EINVAL)?;
        let (context, unexpected) = self.claimed.swap_remove(at);
        if flags & FI_DISCARD != 0 {
            let entry = self.entry(context, &Spans::none(), &unexpected.message, 0);
            self.report(entry, FI_ADDR_NOTAVAIL, 0);
            self.discard(unexpected);
        } else {
            let number = self.receives.insert(receive);
            self.give(number, unexpected);
        }
        Ok(())
    }

    /// Tells the sender of a message that nobody wants its bytes.
    fn discard(&mut self, unexpected: Unexpected) {
        if let Body::There(send) = unexpected.body {
            let peer = unexpected.message.peer;
            self.peers.control(peer, wire::control(wire::CTS, send), [0; 3]);
            if unexpected.message.kind & wire::CONFIRM != 0 {
                self.peers.control(peer, wire::control(wire::FIN, send), [0; 3]);
            }
        }
    }

    /// Cancels the posted receive with this context, if there is one.
    pub fn cancel(&mut self, context: *mut c_void) {
        let found = self.receives.iter().find(|(_, receive)| receive.context == context);
        let Some((number, pattern, tagged)) =
            found.map(|(number, receive)| (number, receive.pattern, receive.tagged))
        else {
            return;
        };
        if tagged {
            self.posted.remove(&pattern, number);
        } else {
            self.posted_plain.retain(|&other| other != number);
            let under_way = self.receives.get(number).and_then(|one| one.several).is_some_and(|one| one.under_way > 0);
            if under_way {
                return;
            }
        }
        self.receives.remove(number);
        let flags = FI_RECV | if tagged { FI_TAGGED } else { FI_MSG };
        let entry =
            CqEntry { context, flags, len: 0, buf: core::ptr::null_mut(), data: 0, tag: pattern.tag };
        self.reports.received(entry, FI_ADDR_NOTAVAIL, true, FI_ECANCELED, 0);
    }

    /// Ends what is under way with a peer whose process has ended.
    fn end_with(&mut self, peer: u32) {
        self.peers.all[peer as usize].outgoing = None;
        self.peers.all[peer as usize].waiting.clear();
        self.peers.with_waiting.retain(|&other| other != peer);
        let sends: Vec<u32> = self.sends.iter().filter(|one| one.1.peer == peer).map(|one| one.0).collect();
        sends.into_iter().for_each(|number| self.end_send(number, FI_ESHUTDOWN));
        let arriving: Vec<u32> =
            self.arriving.iter().filter(|one| one.1.peer == peer).map(|one| one.0).collect();
        arriving.into_iter().for_each(|number| self.arrived(number, FI_ESHUTDOWN));
    }
}
