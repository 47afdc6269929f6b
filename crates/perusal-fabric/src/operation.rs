//! Operations under way, and where their ends are reported.

use crate::api::*;
use crate::key::TagPattern;
use crate::queue::{Completion, Counter, Queue};
use crate::spans::Spans;
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
    /// Of a buffer for several messages: how many bytes are taken, and how many messages are still on their way into it.
    pub several: Option<Several>,
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
    pub send: u32,
}

/// What a completion needs of the receive.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    pub context: *mut c_void,
    pub completion: bool,
    /// The number of the receive whose buffer takes several messages.
    pub several: Option<u32>,
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
    pub send: u32,
    /// Their address in the sender's process, if they are in one piece; else 0.
    pub at: u64,
}

/// A send whose bytes the peer asks for.
#[derive(Debug)]
pub struct Sending {
    pub peer: u32,
    pub spans: Spans,
    pub sent: usize,
    pub wanted: usize,
    pub number: u32,
    /// The peer says when all is received; until then the send is not complete.
    pub confirmed: bool,
    pub context: *mut c_void,
    pub flags: u64,
    pub completion: bool,
    /// Keeps the bytes that `spans` refers to, where they are not the caller's.
    pub own: Option<Box<[u8]>>,
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
    pub fn sent(&self, context: *mut c_void, flags: u64, completion: bool, error: i32) {
        if let (true, Some(queue)) = (completion || error != 0, &self.send_queue) {
            let entry = CqEntry { context, flags, len: 0, buf: std::ptr::null_mut(), data: 0, tag: 0 };
            queue.push(Completion { entry, source: FI_ADDR_NOTAVAIL, error, overflow: 0 });
        }
        self.send_counters.iter().for_each(|counter| counter.count(error != 0));
    }

    pub fn received(&self, entry: CqEntry, source: u64, completion: bool, error: i32, overflow: usize) {
        if let (true, Some(queue)) = (completion || error != 0, &self.receive_queue) {
            queue.push(Completion { entry, source, error, overflow });
        }
        self.receive_counters.iter().for_each(|counter| counter.count(error != 0));
    }
}
