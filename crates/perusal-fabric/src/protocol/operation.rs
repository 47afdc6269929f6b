//! Operations under way, and where their ends are reported.

use crate::api::*;
use crate::operands::arithmetic::Family;
use crate::operands::key::TagPattern;
use crate::operands::region::{Region, Remote};
use crate::operands::spans::Spans;
use crate::protocol::direct::Direct;
use crate::protocol::queue::{Completion, Counter, Queue};
use crate::protocol::trace::Traced;
use libc::c_void;
use std::rc::Rc;

/// A receive.
#[derive(Debug)]
pub struct Receive {
    pub spans: Spans,
    pub context: *mut c_void,
    pub pattern: TagPattern,
    pub tagged: bool,
    pub completion: bool,
    /// Of a buffer for several messages: how many bytes are taken,
    /// and how many messages are still on their way into it.
    pub several: Option<Several>,
    /// Its id in the trace; 0 without one.
    pub trace: u64,
}

/// The state of a buffer for several messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Several {
    pub used: usize,
    pub under_way: u32,
    pub full: bool,
}

/// A message on its way into a buffer.
#[derive(Debug)]
pub struct Arriving {
    pub peer: u32,
    pub spans: Spans,
    pub filled: usize,
    pub wanted: usize,
    pub message: Message,
    pub receive: Taken,
    /// The sender's number of the message.
    pub send: u64,
    /// What the bytes are, if they are no message.
    pub access: Option<Arrival>,
    /// What the sender copies here itself.
    pub part: Option<Part>,
    /// The core provider has the buffer (network rule 1).
    pub held: bool,
}

impl Arriving {
    /// A message of which nothing is here yet, and `wanted` bytes go to `spans`.
    pub fn new(message: Message, spans: Spans, wanted: usize, receive: Taken) -> Self {
        Self {
            peer: message.peer,
            spans,
            filled: 0,
            wanted,
            message,
            receive,
            send: 0,
            access: None,
            part: None,
            held: false,
        }
    }
}

/// What the sender of a message copies into the receive's buffer itself.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Bytes that are the sender's to copy.
    pub missing: usize,
    /// This endpoint's own copy has failed.
    pub failed: bool,
}

/// Bytes that arrive and are no message.
#[derive(Debug)]
pub enum Arrival {
    /// What an access of this endpoint's brings back: the flags of its completion.
    Result(u64),
    /// What a peer writes into regions, and the data that comes with it.
    Written(Vec<Rc<Region>>, Option<u64>),
}

/// What a completion needs of the receive.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    pub context: *mut c_void,
    pub completion: bool,
    /// The number of the receive whose buffer takes several messages.
    pub several: Option<u32>,
    /// The receive's id in the trace.
    pub trace: u64,
}

/// What is known of a message before its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub peer: u32,
    pub kind: u8,
    pub tag: u64,
    pub data: u64,
    pub len: usize,
}

/// A message that no receive was posted for.
#[derive(Debug)]
pub struct Unexpected {
    pub message: Message,
    pub body: Body,
    /// Its id in the trace; 0 without one.
    pub trace: u64,
}

#[derive(Debug)]
pub enum Body {
    Here(Box<[u8]>),
    There(There),
}

/// Where the bytes of a message are.
#[derive(Debug, Clone, Copy)]
pub struct There {
    /// The sender's number of the message.
    pub send: u64,
    /// Their address in the sender's process, if they are in one piece; else 0. On another node: whether the core
    /// provider can take them from there.
    pub at: u64,
    /// How often the sender had ended announced sends before (cancel rule).
    pub cancels: u32,
}

/// A send whose bytes the peer asks for.
#[derive(Debug)]
pub struct Sending {
    pub peer: u32,
    pub spans: Spans,
    /// Bytes of the operation, whether they are in `spans` or have left.
    pub len: usize,
    pub sent: usize,
    pub wanted: usize,
    pub number: u64,
    /// The peer says when all is received; until then the send is not complete.
    pub confirmed: bool,
    pub context: *mut c_void,
    pub flags: u64,
    pub completion: bool,
    /// Keeps the bytes that `spans` refers to, where they are not the caller's.
    pub own: Option<Box<[u8]>>,
    /// The regions that a peer reads, if that is what is sent.
    pub regions: Vec<Rc<Region>>,
    /// What the core provider does with the bytes.
    pub direct: Direct,
    /// What the trace says at its end, of a message.
    pub traced: Traced,
}

/// An access to memory that a peer has registered.
#[derive(Debug)]
pub struct Access {
    pub spans: Spans,
    pub to: u64,
    pub pieces: Vec<Remote>,
    pub data: Option<u64>,
    pub context: *mut c_void,
    pub completion: bool,
    /// The caller has its bytes back when the call returns.
    pub inject: bool,
    /// The peer performs it, behind all that was sent to it before (FI_FENCE).
    pub fenced: bool,
}

/// What an atomic operation has besides: its bytes to send are the access's own.
#[derive(Debug)]
pub struct Atomic {
    pub datatype: u32,
    pub op: u32,
    pub family: Family,
    pub compare: Spans,
    pub result: Spans,
}

/// A send that is announced: of more bytes than one record takes, or complete only when it is received.
#[derive(Debug)]
pub struct Send {
    pub spans: Spans,
    pub to: u64,
    pub tag: Option<u64>,
    pub data: Option<u64>,
    pub context: *mut c_void,
    pub completion: bool,
    /// Complete only when the message is at the peer's endpoint.
    pub delivery: bool,
    /// Complete only when a receive has taken the message.
    pub matched: bool,
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
    /// Count accesses, each those that its flags name: FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE.
    pub access_counters: Vec<(u64, Rc<Counter>)>,
    /// A message of a sender that the address vector does not have is reported as an error that names it
    /// (FI_SOURCE_ERR).
    pub names_strangers: bool,
}

impl Reports {
    /// FI_SEND, FI_RECV: for which there is a queue.
    pub fn queues(&self) -> u64 {
        let has = |queue: &Option<_>, which| if queue.is_some() { which } else { 0 };
        has(&self.send_queue, FI_SEND) | has(&self.receive_queue, FI_RECV)
    }

    /// The operations that a counter counts.
    pub fn counted(&self) -> u64 {
        let has = |counters: &Vec<_>, which| if counters.is_empty() { 0 } else { which };
        let messages = has(&self.send_counters, FI_SEND) | has(&self.receive_counters, FI_RECV);
        self.access_counters.iter().fold(messages, |counted, one| counted | one.0)
    }

    #[inline(always)]
    pub fn sent(&self, context: *mut c_void, flags: u64, len: usize, completion: bool, error: i32) {
        if let (true, Some(queue)) = (completion || error != 0, &self.send_queue) {
            let entry = CqEntry { context, flags, len: 0, buf: std::ptr::null_mut(), data: 0, tag: 0 };
            queue.push(Completion { entry, source: FI_ADDR_NOTAVAIL, error, overflow: 0 });
        }
        self.send_counters.iter().for_each(|counter| counter.count(error != 0, len));
    }

    /// Reports the end of a send or an access of `len` bytes, as its flags tell.
    pub fn ended(&self, context: *mut c_void, flags: u64, len: usize, completion: bool, error: i32) {
        if flags & (FI_SEND | FI_RECV) != 0 {
            return self.sent(context, flags, len, completion, error);
        }
        if let (true, Some(queue)) = (completion || error != 0, &self.send_queue) {
            let entry = CqEntry { context, flags, len: 0, buf: std::ptr::null_mut(), data: 0, tag: 0 };
            queue.push(Completion { entry, source: FI_ADDR_NOTAVAIL, error, overflow: 0 });
        }
        self.count_access(flags, len, error);
    }

    fn count_access(&self, flags: u64, len: usize, error: i32) {
        let named = self.access_counters.iter().filter(|one| one.0 & flags != 0);
        named.for_each(|one| one.1.count(error != 0, len));
    }

    /// Reports what a peer has done in a region: `flags` is FI_REMOTE_READ or FI_REMOTE_WRITE,
    /// with FI_RMA or FI_ATOMIC.
    pub fn accessed(&self, flags: u64, regions: &[Rc<Region>], data: Option<u64>, len: usize, source: u64) {
        if let (Some(data), Some(queue)) = (data, &self.receive_queue) {
            let flags = flags | FI_REMOTE_CQ_DATA;
            let none = std::ptr::null_mut();
            let entry = CqEntry { context: none, flags, len, buf: none, data, tag: 0 };
            queue.push(Completion { entry, source, error: 0, overflow: 0 });
        }
        self.count_access(flags, len, 0);
        regions.iter().for_each(|region| region.count(flags, len));
    }

    #[inline(always)]
    pub fn received(&self, entry: CqEntry, source: u64, completion: bool, error: i32, overflow: usize) {
        if let (true, Some(queue)) = (completion || error != 0, &self.receive_queue) {
            queue.push(Completion { entry, source, error, overflow });
        }
        self.receive_counters.iter().for_each(|counter| counter.count(error != 0, entry.len));
    }
}
