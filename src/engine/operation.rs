//! An operation's body: what it is about, and how far it has come.

use super::attached_buffer::Reservation;
use super::buffer::{Data, Run};
use super::context::MatchContext;
use super::payload::{copy_in, copy_out};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::request::MessageStatus;
use core::ptr::NonNull;

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOperation {
    /// From here to a peer.
    Send,
    /// From a peer to here.
    Receive,
}

/// Send modes (MPI 5.0 §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// MPI_Send.
    Standard,
    /// MPI_Ssend: completes when a receive has matched.
    Synchronous,
    /// MPI_Rsend: the receive is posted already.
    Ready,
    /// MPI_Bsend: completes locally, from the attached buffer.
    Buffered,
}

/// How the elements of the user's buffer lie.
#[derive(Debug, Clone, Default)]
pub enum Layout {
    /// One run of bytes from `addr`.
    #[default]
    Bytes,
    /// Something that must be packed.
    Typed(Datatype),
}

/// How far the copy of a part of a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Not over.
    Pending,
    /// Over.
    Copied,
    /// Over in vain.
    Failed,
}

/// How far the engine has come with an active request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Not active.
    #[default]
    Idle,
    /// A receive in the posted queue.
    Posted,
    /// A send that waits for room in the ring.
    Deferred,
    /// A send whose payload travelled with its envelope and whose match is awaited (synchronous mode).
    AwaitsMatch,
    /// A send that has said that it is ready (or lies in this rank's own unexpected queue) and waits for the receiver's answer.
    AwaitsCts,
    /// Sender or receiver of data that goes through the ring.
    RingData {
        /// Whether another copy engine has begun before.
        begun: bool,
    },
    /// A receive of which each side copies one part.
    Split {
        /// The receiver's part.
        own: Part,
        /// The sender's part.
        other: Part,
    },
    /// A receive whose buffer in the shared heap the sender copies to, all of it or a part, until it says that it is done.
    AwaitsHeapDone,
    /// A send that waits for the receiver to have copied everything.
    AwaitsFin,
    /// No record of a peer is awaited: matched with a message that is here, or over.
    Done,
}

/// A request's body (request rule 2 says whose). The order of its fields is that of their use: what a small message that meets
/// nothing unusual needs lies, with the slot's own words, in the first two cache lines; what events say of it, and what is
/// seldom needed, behind.
#[derive(Debug)]
#[repr(C)]
pub struct Body {
    /// The match context it runs on; counted as pending there, so it stays.
    pub context: Option<NonNull<MatchContext>>,
    /// First byte of the data: the user's address, moved by the true lower bound for [`Layout::Bytes`].
    pub addr: *mut u8,
    /// Bytes of data: to send, or room to receive.
    pub bytes: usize,
    /// The peer as the user gave it; the real one once a receive is matched.
    pub peer: i32,
    /// The tag as the user gave it; the real one once a receive is matched.
    pub tag: i32,
    /// The peer's rank in the job; of a receive once it is matched.
    pub world: u32,
    /// Stage of the work.
    pub stage: Stage,
    /// How the bytes lie.
    pub layout: Layout,
    /// Outcome.
    pub status: MessageStatus,
    /// What went wrong.
    pub error: Option<Box<Error>>,
    /// A buffered send's own copy of the data, if the engine keeps it.
    pub keeps: Option<Box<Reservation>>,
    /// Bytes of the message: of a receive, the room there is until it is matched.
    pub total: usize,
    /// Of a buffered send: the id of the request that carries its data; of that one: the id of the send. Else 0. Of a send only.
    pub counterpart: u32,
    /// The sender's rank in the communicator: what the envelope carries.
    pub source: u32,
    /// Send or receive.
    pub operation: RequestOperation,
    /// Whether the send is synchronous.
    pub synchronous: bool,
    /// Whether the request survives its completion.
    pub persistent: bool,
    /// Elements, as the user gave them.
    pub count: usize,
    /// The user's address and datatype handle, for events.
    pub user: (*mut u8, usize),
    /// Bytes moved so far, of a message that moves in pieces.
    pub moved: usize,
    /// An address in the peer (of a send: where to write the second half; of a receive: where to read).
    pub remote_addr: u64,
    /// The peer's request id, where there is one.
    pub remote: u32,
    /// Of a persistent request: peer, tag, job rank and mode with which each start begins.
    pub template: (i32, i32, u32, Mode),
}

/// A request of an engine.
pub type Ref = crate::request::Ref<Body>;
/// All requests of an engine.
pub type Slab = crate::request::Slab<Body>;

impl Ref {
    /// Whether the request survives its completion.
    #[inline(always)]
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        // SAFETY: request rule 2: set before the user has the request, and never changed.
        unsafe { self.body() }.persistent
    }
}

// Behind the 16 bytes of the slot's own words: the layout ends the first line, what is set at every end the second.
#[cfg(not(perusal_loom))]
const _: () = {
    assert!(core::mem::offset_of!(Body, layout) + size_of::<Layout>() == 64 - 16);
    assert!(core::mem::offset_of!(Body, count) <= 128 - 16);
};

impl Body {
    /// Whether it has anything that must be dropped or reset before its slot goes back.
    #[inline(always)]
    pub(crate) fn owns(&self) -> bool {
        self.persistent
            || !matches!(self.layout, Layout::Bytes)
            || self.error.is_some()
            || self.keeps.is_some()
    }

    /// Drops and resets that.
    #[cold]
    #[inline(never)]
    pub(crate) fn shed(&mut self) {
        self.layout = Layout::Bytes;
        self.error = None;
        self.keeps = None;
        self.persistent = false;
    }

    /// The match context of an active request.
    ///
    /// # Safety
    ///
    /// The request is active, so it counts as pending on its context, which therefore stays.
    #[inline(always)]
    pub(crate) unsafe fn active_context<'a>(&self) -> &'a MatchContext {
        let context = self.context.expect("an active request has a context");
        // SAFETY: counted as pending there, as the caller says; contexts live in boxes that nobody moves.
        unsafe { context.as_ref() }
    }

    /// Prepares an operation on `data`; the rest keeps its default until the engine sets it. `source`: the caller's rank;
    /// `peer`: the peer's, also in the job.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        operation: RequestOperation,
        data: Data,
        source: u32,
        peer: (i32, u32),
        tag: i32,
    ) {
        self.operation = operation;
        self.addr = data.addr;
        self.count = data.count;
        self.layout = data.layout;
        self.user = data.user;
        self.bytes = data.bytes;
        (self.peer, self.world) = peer;
        self.tag = tag;
        self.source = source;
        self.remote = 0;
        self.counterpart = 0;
        self.moved = 0;
        self.total = data.bytes;
        self.status = MessageStatus::EMPTY;
        self.stage = Stage::Idle;
        self.synchronous = false;
    }

    /// As [`Self::fill`], of a slot that was given back or never used, for a run of bytes; status and stage are the caller's to set.
    #[inline(always)]
    pub(crate) fn fill_run(
        &mut self,
        operation: RequestOperation,
        run: &Run,
        source: u32,
        peer: (i32, u32),
        tag: i32,
    ) {
        debug_assert!(!self.owns() && self.context.is_none());
        self.addr = run.addr;
        self.bytes = run.bytes;
        self.count = run.count;
        self.user = (run.addr, run.handle);
        (self.peer, self.world) = peer;
        self.tag = tag;
        self.source = source;
        self.operation = operation;
        self.synchronous = false;
        self.counterpart = 0;
        self.total = run.bytes;
    }

    /// Copies bytes `[from, from + to.len())` of a send's data.
    ///
    /// # Safety
    ///
    /// The user's buffer is valid, and `from + to.len()` is at most the body's bytes.
    #[inline]
    pub(crate) unsafe fn pack(&self, from: usize, to: &mut [u8]) {
        debug_assert!(from + to.len() <= self.bytes);
        match &self.layout {
            // SAFETY: the buffer is valid from there on for as many bytes.
            Layout::Bytes => unsafe { copy_in(self.addr.wrapping_add(from), to) },
            Layout::Typed(datatype) => {
                // SAFETY: the user's buffer is valid, and the bytes are within its data.
                let packed = unsafe { datatype.pack(self.count, self.addr, from, to) };
                debug_assert_eq!(packed, to.len());
            }
        }
    }

    /// Puts `data` at bytes `[at, at + data.len())` of a receive's data.
    ///
    /// # Safety
    ///
    /// The user's buffer is valid, and `at + data.len()` is at most the body's bytes.
    #[inline]
    pub(crate) unsafe fn unpack(&self, at: usize, data: &[u8]) {
        debug_assert!(at + data.len() <= self.bytes);
        match &self.layout {
            Layout::Bytes => {
                // SAFETY: the buffer is valid from there on for as many bytes; ring and heap are none of it.
                unsafe { copy_out(data, self.addr.wrapping_add(at)) }
            }
            Layout::Typed(datatype) => {
                // SAFETY: the user's buffer is valid, and the bytes are within its data.
                let unpacked = unsafe { datatype.unpack(self.count, self.addr, at, data) };
                debug_assert_eq!(unpacked, data.len());
            }
        }
    }
}

// SAFETY: the raw addresses are the user's buffers and the context; request rule 2 says which thread uses them when.
unsafe impl Send for Body {}

impl Default for Body {
    fn default() -> Self {
        Self {
            operation: RequestOperation::Send,
            synchronous: false,
            persistent: false,
            template: (0, 0, 0, Mode::Standard),
            stage: Stage::Idle,
            context: None,
            addr: core::ptr::null_mut(),
            count: 0,
            layout: Layout::Bytes,
            user: (core::ptr::null_mut(), 0),
            bytes: 0,
            peer: 0,
            tag: 0,
            source: 0,
            world: 0,
            remote: 0,
            total: 0,
            moved: 0,
            remote_addr: 0,
            status: MessageStatus::EMPTY,
            error: None,
            counterpart: 0,
            keeps: None,
        }
    }
}
