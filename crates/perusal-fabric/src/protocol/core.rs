//! The state of an endpoint, and the protocol: sends, and records that arrive.

use crate::api::*;
use crate::names::address::Address;
use crate::names::name::Name;
use crate::operands::key::TagPattern;
use crate::operands::region::Regions;
use crate::operands::spans::Spans;
use crate::peers::directory::Directory;
use crate::peers::{Outgoing, Peers, Waiting};
use crate::protocol::direct::{self, Direct};
use crate::protocol::operation::{
    Arrival, Arriving, Body, Message, Receive, Reports, Send, Sending, There, Unexpected,
};
use crate::protocol::slab::{Numbered, Slab};
use crate::protocol::trace::{Trace, Traced};
use crate::protocol::wire;
use libc::c_void;
use perusal::internals::engine::CopyRoute;
use perusal::internals::matching::{PostedQueue, UnexpectedQueue};
use perusal::internals::ring::Header;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Largest message in bytes that is sent as one record, and that fi_inject takes.
pub const EAGER_LIMIT: usize = 16 << 10;
/// Bytes of a record of a longer message.
const FRAGMENT: usize = 32 << 10;

/// The flags of a send's completion.
#[inline(always)]
pub(crate) fn send_flags(tag: Option<u64>) -> u64 {
    FI_SEND | if tag.is_some() { FI_TAGGED } else { FI_MSG }
}

/// All but the rings to this endpoint.
#[derive(Debug)]
pub struct Core {
    pub peers: Peers,
    pub reports: Reports,
    /// Whether receives look at the sender that they name: those without a tag, and those with one (FI_DIRECTED_RECV,
    /// FI_TAGGED_DIRECTED_RECV).
    pub directed: [bool; 2],
    /// Such receives name one (FI_EXACT_DIRECTED_RECV).
    pub exact: bool,
    /// Numbers of peers by fi_addr_t.
    directory: Directory,
    pub(crate) posted: PostedQueue<u32, TagPattern>,
    pub(crate) unexpected: UnexpectedQueue<Unexpected, TagPattern>,
    /// How many of these are buffers for several messages.
    pub(crate) posted_several: usize,
    pub(crate) posted_plain: VecDeque<u32>,
    pub(crate) unexpected_plain: VecDeque<Unexpected>,
    pub(crate) receives: Slab<Receive>,
    pub(crate) arriving: Numbered<Arriving>,
    pub(crate) sends: Numbered<Sending>,
    pub(crate) claimed: Vec<(*mut c_void, Unexpected)>,
    pub min_multi_recv: usize,
    /// Whether there are CPUs for sender and receiver at once: then both copy a long message.
    pub shares: bool,
    /// What peers may access; `None`: no accesses are served.
    pub regions: Option<Rc<Regions>>,
    /// FI_REMOTE_READ, FI_REMOTE_WRITE: what peers may do by this endpoint, whatever a region allows.
    pub serves: u64,
    /// How often announced sends were ended while peers could still copy (cancel rule).
    pub(crate) cancels: u32,
    /// Where all this is recorded.
    pub trace: Option<Box<Trace>>,
}

impl Core {
    /// The state of an endpoint with this address that has met nobody.
    pub fn new(address: Address) -> Self {
        Self {
            peers: Peers::new(address),
            reports: Reports::default(),
            directed: [false; 2],
            exact: false,
            directory: Directory::default(),
            posted: PostedQueue::new(),
            unexpected: UnexpectedQueue::new(),
            posted_several: 0,
            posted_plain: VecDeque::new(),
            unexpected_plain: VecDeque::new(),
            receives: Slab::default(),
            arriving: Numbered::default(),
            sends: Numbered::default(),
            claimed: Vec::new(),
            min_multi_recv: 64,
            shares: true,
            regions: None,
            serves: FI_REMOTE_READ | FI_REMOTE_WRITE,
            cancels: 0,
            trace: None,
        }
    }

    /// The address vector says that `fi_addr` is the endpoint with this name, and completions are to say so.
    pub fn introduce(&mut self, fi_addr: u64, name: impl Into<Name>) {
        self.introduce_as(fi_addr, name.into(), fi_addr);
    }

    /// The same, where completions are to call it `source`.
    pub fn introduce_as(&mut self, fi_addr: u64, name: Name, source: u64) {
        let number = self.peers.named(name);
        self.directory.insert(fi_addr, number);
        self.peers.all[number as usize].add_number(fi_addr, source);
    }

    /// Completions call the endpoint behind `fi_addr` `source` from now on.
    pub fn rename(&mut self, fi_addr: u64, source: u64) {
        if let Some(number) = self.directory.get(fi_addr) {
            self.peers.all[number as usize].rename(fi_addr, source);
        }
    }

    /// The address vector does not have `fi_addr` any more.
    pub fn forget(&mut self, fi_addr: u64) {
        if let Some(number) = self.directory.remove(fi_addr) {
            self.peers.all[number as usize].remove_number(fi_addr);
        }
    }

    /// Forgets `fi_addr`, and ends what is under way with the endpoint behind it. Receives that name the endpoint stay
    /// while it has another number: its messages still come.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if the address vector does not have it.
    pub fn remove(&mut self, fi_addr: u64) -> Result<(), i32> {
        let peer = self.peer_of(fi_addr).ok_or(FI_EINVAL)?;
        self.forget(fi_addr);
        self.end_with(peer);
        if !self.peers.all[peer as usize].is_known() {
            self.end_receives_from(peer, FI_ESHUTDOWN);
        }
        Ok(())
    }

    /// Forgets peers that the address vector does not have, with which no ring is shared, and with whom nothing is
    /// under way. Returns their numbers, which the next ones get.
    pub fn forget_strangers(&mut self) -> BTreeSet<u32> {
        let mut strangers: BTreeSet<u32> =
            (0..self.peers.all.len() as u32).filter(|&peer| self.peers.is_stranger(peer)).collect();
        if !strangers.is_empty() {
            let named = self.receives.iter().filter_map(|one| one.1.pattern.peer);
            let arriving = self.arriving.iter().map(|one| one.1.peer);
            let sent_to = self.sends.iter().map(|one| one.1.peer);
            named.chain(arriving).chain(sent_to).for_each(|peer| _ = strangers.remove(&peer));
            strangers.retain(|&peer| self.peers.forget(peer));
        }
        strangers
    }

    /// Whether the endpoint behind `fi_addr` is closed, or its process has ended, or nobody knows of it.
    pub fn has_left(&mut self, fi_addr: u64) -> bool {
        self.peer_of(fi_addr).is_none_or(|peer| self.peers.all[peer as usize].has_ended())
    }

    #[inline(always)]
    pub(crate) fn peer_of(&self, fi_addr: u64) -> Option<u32> {
        self.directory.get(fi_addr)
    }

    /// The pattern of a receive.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if the address vector does not have the sender, or if none is named where one is to be.
    #[inline(always)]
    pub fn pattern(&self, tagged: bool, from: u64, tag: u64, ignore: u64) -> Result<TagPattern, i32> {
        let directed = self.directed[usize::from(tagged)];
        if !directed || from == FI_ADDR_UNSPEC {
            if directed && self.exact {
                return Err(FI_EINVAL);
            }
            return Ok(TagPattern { peer: None, tag, ignore });
        }
        let peer = self.peer_of(from).ok_or(FI_EINVAL)?;
        Ok(TagPattern { peer: Some(peer), tag, ignore })
    }

    /// Whether an operation with FI_FENCE may begin: all former ones with the peer have ended. Those that follow it
    /// find them so, too.
    ///
    /// # Errors
    ///
    /// FI_EAGAIN if one has not, FI_EINVAL for an unknown peer.
    pub fn fence(&self, to: u64) -> Result<(), i32> {
        let peer = self.peer_of(to).ok_or(FI_EINVAL)?;
        // What a peer reads or writes here is no operation of this endpoint's.
        let own = |one: &Arriving| one.peer == peer && matches!(one.access, Some(Arrival::Result(_)));
        let sends = self.sends.iter().any(|(_, send)| send.peer == peer && send.regions.is_empty());
        if sends || self.arriving.iter().any(|(_, one)| own(one)) { Err(FI_EAGAIN) } else { Ok(()) }
    }

    // Sends.

    /// Sends a message of at most [`EAGER_LIMIT`] bytes, as one record: it is over when the call returns.
    ///
    /// # Errors
    ///
    /// FI_EAGAIN if there is no room now, FI_EINVAL for an unknown peer,
    /// FI_EHOSTUNREACH or FI_ESHUTDOWN for one that is gone.
    #[inline(always)]
    pub fn send_eager(
        &mut self,
        to: u64,
        tag: Option<u64>,
        data: Option<u64>,
        spans: &Spans,
        context: *mut c_void,
        completion: bool,
    ) -> Result<(), i32> {
        let peer = self.peer_of(to).ok_or(FI_EINVAL)?;
        let (kind, flags) = (wire::EAGER | wire::bits(tag, data), send_flags(tag));
        let header = wire::envelope(kind, tag.unwrap_or(0), data.unwrap_or(0));
        let began = self.trace_time();
        let outgoing = self.outgoing_for_new(peer)?;
        if !outgoing.push(&header, spans.len(), |to| spans.read(0, to)) {
            return Err(self.peers.refuse(peer));
        }
        if self.trace.is_some() {
            self.trace_eager(began, peer, tag, spans.len());
        }
        self.reports.sent(context, flags, spans.len(), completion, 0);
        Ok(())
    }

    /// Sends an RTS: the peer asks for the bytes, or confirms the message.
    ///
    /// # Errors
    ///
    /// As [`Core::send_eager`].
    #[inline(never)]
    pub fn announce(&mut self, send: Send) -> Result<(), i32> {
        let peer = self.peer_of(send.to).ok_or(FI_EINVAL)?;
        self.outgoing_for_new(peer)?;
        if self.goes_at_once(peer, &send) {
            return self.send_at_once(peer, send);
        }
        let Send { spans, tag, data, context, completion, delivery, own, .. } = send;
        let confirm = if delivery { wire::CONFIRM } else { 0 };
        let kind = wire::RTS | wire::bits(tag, data) | confirm;
        let header = wire::envelope(kind, tag.unwrap_or(0), data.unwrap_or(0));
        let (len, at) = (spans.len() as u64, self.place_of(peer, &spans));
        let began = self.trace_time();
        let number = self.sends.insert(Sending {
            peer,
            len: spans.len(),
            spans,
            sent: 0,
            wanted: usize::MAX,
            number: 0,
            confirmed: delivery,
            context,
            flags: send_flags(tag),
            completion,
            own,
            regions: Vec::new(),
            direct: Direct::default(),
            traced: Traced::default(),
        });
        let words = [len, number, at, u64::from(self.cancels)];
        if !self.peers.outgoing(peer)?.push(&header, 32, |to| wire::words(words, to)) {
            self.sends.remove(number);
            return Err(self.peers.refuse(peer));
        }
        if self.trace.is_some() {
            self.trace_announced(number, began, tag);
        }
        Ok(())
    }

    /// The way to a peer for a new message, which goes behind all that waits.
    #[inline(always)]
    fn outgoing_for_new(&mut self, peer: u32) -> Result<&mut Outgoing, i32> {
        let one = &self.peers.all[peer as usize];
        if !one.waiting.is_empty() || one.outgoing.is_none() {
            self.make_ready(peer)?;
        }
        self.peers.all[peer as usize].outgoing.as_mut().ok_or(FI_ESHUTDOWN)
    }

    #[cold]
    fn make_ready(&mut self, peer: u32) -> Result<(), i32> {
        if !self.peers.all[peer as usize].waiting.is_empty() && !self.push_waiting_to(peer) {
            return Err(self.peers.refuse(peer));
        }
        self.peers.outgoing(peer).map(|_| ())
    }

    pub fn push_waiting(&mut self) -> bool {
        let mut any = false;
        for peer in self.peers.with_waiting.clone() {
            any |= self.push_some_to(peer);
        }
        any
    }

    /// Returns whether nothing waits any more.
    #[cold]
    pub(crate) fn push_waiting_to(&mut self, peer: u32) -> bool {
        self.push_some_to(peer);
        self.peers.all[peer as usize].waiting.is_empty()
    }

    pub(crate) fn push_some_to(&mut self, peer: u32) -> bool {
        let (sends, reports, trace) = (&mut self.sends, &self.reports, &self.trace);
        self.peers.push_waiting_of(peer, &mut |(number, outgoing)| {
            // One that was taken away has ended.
            let Some(send) = sends.get(number) else { return Some(true) };
            if send.direct.tag != 0 {
                return Some(direct::push(number, send, outgoing));
            }
            while send.sent < send.wanted {
                let len = FRAGMENT.min(send.wanted - send.sent);
                let (spans, sent) = (&send.spans, send.sent);
                let header = wire::control(wire::DATA, send.number);
                if !outgoing.push(&header, len, |to| spans.fill(sent, to)) {
                    return Some(false);
                }
                send.sent += len;
            }
            if !send.confirmed {
                if send.regions.is_empty() {
                    reports.sent(send.context, send.flags, send.len, send.completion, 0);
                } else {
                    reports.accessed(send.flags, &send.regions, None, send.wanted, FI_ADDR_NOTAVAIL);
                }
                trace.iter().for_each(|trace| trace.sent(&send.traced));
                sends.remove(number);
            }
            Some(true)
        })
    }

    // Records.

    /// Takes a record from a peer.
    #[inline(always)]
    pub fn take(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let kind = header.kind & wire::KIND;
        if kind == wire::EAGER {
            let (tag, data) = (wire::tag(header), wire::data(header));
            let message = Message { peer, kind: header.kind, tag, data, len: payload.len() };
            match self.receive_for(&message) {
                Some(number) => self.deliver(number, message, payload),
                None => self.keep_here(message, payload),
            }
            return;
        }
        self.take_other(peer, header, payload);
    }

    #[inline(never)]
    fn take_other(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        match header.kind & wire::KIND {
            wire::RTS => self.take_announcement(peer, header, payload),
            wire::NUMBERED => self.take_numbered(peer, header, payload),
            wire::CTS => self.take_clearance(peer, header, payload),
            wire::DATA => self.take_data(peer, header, payload),
            wire::FIN => {
                let number = wire::number(header);
                let copied = |send: &Sending| send.wanted == usize::MAX || send.confirmed;
                if self.sends.get(number).is_some_and(|send| send.peer == peer && copied(send)) {
                    self.end_send(number, wire::error(payload));
                }
            }
            wire::SHARE => self.copy_own_part(peer, header, payload),
            wire::FILLED => self.filled(peer, header, payload),
            wire::WRITE..=wire::NOTICE => self.take_access(peer, header, payload),
            // A peer of this version sends nothing else.
            _ => {}
        }
    }

    fn take_announcement(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let (tag, data) = (wire::tag(header), wire::data(header));
        let len = usize::try_from(wire::word(payload, 0)).unwrap_or(usize::MAX);
        let message = Message { peer, kind: header.kind, tag, data, len };
        let [send, at, cancels] = [1, 2, 3].map(|at| wire::word(payload, at));
        let send = There { send, at, cancels: cancels as u32 };
        match self.receive_for(&message) {
            Some(number) => self.fetch(number, message, send),
            None => self.keep(Unexpected { message, body: Body::There(send), trace: self.trace_kept() }),
        }
    }

    /// A whole message whose sender waits for a FIN.
    fn take_numbered(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let (tag, data) = (wire::tag(header), wire::data(header));
        let Some(bytes) = payload.get(8..) else { return };
        let message = Message { peer, kind: header.kind, tag, data, len: bytes.len() };
        match self.receive_for(&message) {
            Some(number) => self.deliver(number, message, bytes),
            None => self.keep_here(message, bytes),
        }
        let send = wire::word(payload, 0);
        self.peers.control(peer, wire::control(wire::FIN, send), [0; 3]);
    }

    /// A receiver says how much of an announced message it wants.
    fn take_clearance(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let number = wire::number(header);
        let [receive, wanted] = [0, 1].map(|at| wire::word(payload, at));
        let Some(send) = self.sends.get(number).filter(|send| send.peer == peer) else {
            // A send that was ended: nothing comes.
            if wanted > 0 {
                let failed = wire::control(wire::FAIL, receive);
                self.peers.control(peer, failed, [FI_ESHUTDOWN as u64, 0, 0]);
            }
            return;
        };
        if send.wanted == usize::MAX {
            send.number = receive;
            send.wanted = send.spans.len().min(wanted as usize);
            send.direct.tag = if send.wanted > 0 { wire::word(payload, 2) } else { 0 };
            self.peers.wait(peer, Waiting::Stream(number));
            self.push_some_to(peer);
        }
    }

    fn take_data(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let number = wire::number(header);
        let known =
            self.arriving.get(number).filter(|one| one.peer == peer && one.part.is_none() && !one.held);
        let Some(arriving) = known else { return };
        let here = payload.len().min(arriving.wanted - arriving.filled);
        let rates = &self.peers.all[peer as usize].rates;
        rates.time(CopyRoute::Ring, here, || arriving.spans.write(arriving.filled, &payload[..here]));
        arriving.filled += here;
        if arriving.filled == arriving.wanted {
            self.arrived(number, 0);
        }
    }

    pub(crate) fn end_send(&mut self, number: u64, error: i32) {
        if let Some(send) = self.sends.get(number).filter(|send| send.direct.held) {
            send.direct.ends_with = Some(error);
            return;
        }
        if let Some(send) = self.sends.remove(number) {
            self.trace.iter().for_each(|trace| trace.sent(&send.traced));
            // What a peer reads is no operation of this endpoint's.
            if send.regions.is_empty() {
                if send.flags & (FI_RMA | FI_ATOMIC) != 0 {
                    self.peers.answered(send.peer);
                }
                self.reports.ended(send.context, send.flags, send.len, send.completion, error);
            }
        }
    }

    /// Whether something is under way whose end the caller does not wait for:
    /// it asked for no completion, or has its buffer back.
    pub fn has_unfinished(&self) -> bool {
        !self.peers.with_waiting.is_empty()
            || self.sends.iter().any(|(_, send)| !send.completion || send.own.is_some())
            || self.arriving.iter().any(|(_, one)| one.access.is_some() && !one.receive.completion)
    }

    /// Ends what a peer has not sent to its end, and will not.
    pub fn end_arriving_from(&mut self, peer: u32) {
        self.end_arriving(|one| one.peer == peer);
    }

    fn end_arriving(&mut self, ends: impl Fn(&Arriving) -> bool) {
        let arriving: Vec<u64> = self.arriving.iter().filter(|one| ends(one.1)).map(|one| one.0).collect();
        arriving.into_iter().for_each(|number| self.arrived(number, FI_ESHUTDOWN));
    }

    /// Whether a peer copies into a buffer of this endpoint's.
    pub fn awaits_part(&self) -> bool {
        self.arriving.iter().any(|(_, one)| one.part.is_some())
    }

    /// Ends what is under way with a peer that is closed, or whose process has ended,
    /// or that is not to be known any more.
    pub fn end_with(&mut self, peer: u32) {
        let ended = self.peers.all[peer as usize].has_ended();
        self.peers.detach(peer);
        self.peers.all[peer as usize].waiting.clear();
        self.peers.with_waiting.retain(|&other| other != peer);
        let sends: Vec<u64> = self.sends.iter().filter(|one| one.1.peer == peer).map(|one| one.0).collect();
        sends.into_iter().for_each(|number| self.end_send(number, FI_ESHUTDOWN));
        let ends = |one: &Arriving| one.peer == peer && (ended || one.part.is_none());
        self.end_arriving(ends);
    }
}
