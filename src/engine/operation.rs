//! An operation's body: what it is about, and how far it has come.

use super::attached_buffer::Reservation;
use super::buffer::{Data, Run};
use super::context::MatchContext;
use super::copy_rates::Contents;
use super::payload::{copy_in, copy_out};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::request::MessageStatus;
use crate::ring::Room;
use crate::sync::{Relaxed, Word};
use core::cell::Cell;
use core::ptr::NonNull;

/// Whether a request sends or receives.
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
    /// As `Standard`, of a collective in which one rank, the root, gets a message from each of many. A short one had
    /// better not be copied into its memory while others are. Of a receive: the sender copies all of a long one.
    ToRoot,
    /// The same, where the root has a message for each of many. Of a receive: the receiver copies all of a long one.
    FromRoot,
    /// As `Standard`, of a collective in which a rank sends to others and receives from others at once.
    Exchange,
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
    /// A send that has said that it is ready (or lies in this rank's own unexpected queue) and waits for the receiver's
    /// answer.
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
    /// A receive whose buffer in the shared heap the sender copies to, all of it or a part,
    /// until it says that it is done.
    AwaitsHeapDone,
    /// A send that waits for the receiver to have copied everything.
    AwaitsFin,
    /// No record of a peer is awaited: matched with a message that is here, or over.
    Done,
}

impl Word for RequestOperation {
    #[inline(always)]
    fn to_word(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        if word == Self::Send as u32 { Self::Send } else { Self::Receive }
    }
}

impl Part {
    const ALL: [Self; 3] = [Self::Pending, Self::Copied, Self::Failed];
}

impl Word for Stage {
    #[inline(always)]
    fn to_word(self) -> u32 {
        match self {
            Self::Idle => 0,
            Self::Posted => 1,
            Self::Deferred => 2,
            Self::AwaitsMatch => 3,
            Self::AwaitsCts => 4,
            Self::AwaitsHeapDone => 5,
            Self::AwaitsFin => 6,
            Self::Done => 7,
            Self::RingData { begun } => 8 | u32::from(begun) << 4,
            Self::Split { own, other } => 9 | (own as u32) << 4 | (other as u32) << 6,
        }
    }
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        let part = |shift: u32| Part::ALL[(word >> shift & 3) as usize];
        match word & 15 {
            1 => Self::Posted,
            2 => Self::Deferred,
            3 => Self::AwaitsMatch,
            4 => Self::AwaitsCts,
            5 => Self::AwaitsHeapDone,
            6 => Self::AwaitsFin,
            7 => Self::Done,
            8 => Self::RingData { begun: word >> 4 != 0 },
            9 => Self::Split { own: part(4), other: part(6) },
            _ => Self::Idle,
        }
    }
}

/// A request's body (request rule 2 says whose). The order of its fields is that of their use: what a small message
/// that meets nothing unusual needs lies, with the slot's own words, in the first two cache lines; what events say of
/// it, and what is seldom needed, behind.
///
/// Its fields are cells, because the thread that has it may have it twice: a receive that is matched while it is
/// started, a transmit queue that moves on the send which it has just put off. No reference to what is in a cell leaves
/// this module. What threads look at that do not have the body (a wait that says for whom, an answer that names a
/// request) is [`Relaxed`].
#[repr(C)]
pub struct Body {
    /// The match context it runs on; counted as pending there, so it stays.
    pub context: Cell<Option<NonNull<MatchContext>>>,
    /// First byte of the data: the user's address, moved by the true lower bound for [`Layout::Bytes`].
    pub addr: Cell<*mut u8>,
    /// Bytes of data: to send, or room to receive.
    pub bytes: Cell<usize>,
    /// The peer as the user gave it; the real one once a receive is matched.
    pub peer: Relaxed<i32>,
    /// The tag as the user gave it; the real one once a receive is matched.
    pub tag: Relaxed<i32>,
    /// The peer's rank in the job; of a receive once it is matched.
    pub world: Relaxed<u32>,
    /// Stage of the work.
    pub stage: Relaxed<Stage>,
    /// How the bytes lie.
    layout: Cell<Layout>,
    /// Outcome.
    pub status: Cell<MessageStatus>,
    /// What went wrong.
    pub error: Cell<Option<Box<Error>>>,
    /// A buffered send's own copy of the data, if the engine keeps it.
    pub keeps: Cell<Option<Box<Reservation>>>,
    /// Bytes of the message: of a receive, the room there is until it is matched.
    pub total: Cell<usize>,
    /// Of a buffered send: the id of the request that carries its data; of that one: the id of the send.
    /// Else 0. Of a send only.
    pub counterpart: Cell<u32>,
    /// The sender's rank in the communicator: what the envelope carries.
    pub source: Cell<u32>,
    /// Send or receive.
    pub operation: Relaxed<RequestOperation>,
    /// The mode; of a receive [`Mode::Standard`], [`Mode::ToRoot`] or [`Mode::FromRoot`].
    pub mode: Cell<Mode>,
    /// Whether the request survives its completion.
    pub persistent: Cell<bool>,
    /// What is known of the bytes of a message that is longer than an eager one, once it is sent, or announced.
    pub contents: Cell<Contents>,
    /// Elements, as the user gave them.
    pub count: Cell<usize>,
    /// The user's address and datatype handle, for events.
    pub user: Cell<(*mut u8, usize)>,
    /// Bytes of the message that are to move: those for which the receive has room. Set where the receive is matched,
    /// and by what asks its sender for them.
    pub wanted: Cell<usize>,
    /// Bytes moved so far, of a message that moves in pieces.
    pub moved: Cell<usize>,
    /// Where the data lies in the shared heap, if it is announced there; else 0. Of a message longer than an eager one.
    pub place: Cell<u64>,
    /// Whether the data is known to lie there only when it has been announced.
    pub is_unchecked: Cell<bool>,
    /// An address in the peer (of a send: where to write the second half; of a receive: where to read).
    pub remote_addr: Cell<u64>,
    /// The peer's request id, where there is one.
    pub remote: Cell<u32>,
    /// Of a persistent request: peer, tag, job rank and mode with which each start begins.
    pub template: Cell<(i32, i32, u32, Mode)>,
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
        unsafe { self.body() }.persistent.get()
    }
}

// Behind the 16 bytes of the slot's own words: the layout ends the first line, what is set at every end the second.
#[cfg(not(perusal_loom))]
const _: () = {
    assert!(core::mem::offset_of!(Body, layout) + size_of::<Layout>() == 64 - 16);
    assert!(core::mem::offset_of!(Body, count) <= 128 - 16);
};

impl Body {
    /// Whether the data is one run of bytes.
    #[inline(always)]
    pub(crate) fn is_bytes(&self) -> bool {
        peek(&self.layout, |layout| matches!(layout, Layout::Bytes))
    }

    /// Whether some of the `len` bytes at `from` lie between the first and the last byte of the data.
    pub(crate) fn overlaps(&self, from: *const u8, len: usize) -> bool {
        let (addr, bytes) = (self.addr.get() as isize, self.bytes.get() as isize);
        let (low, high) = peek(&self.layout, |layout| match layout {
            Layout::Bytes => (0, bytes),
            Layout::Typed(datatype) => {
                datatype.data_span(self.count.get()).unwrap_or((isize::MIN, isize::MAX))
            }
        });
        let (first, end) = (addr.saturating_add(low), addr.saturating_add(high));
        let from = from as isize;
        first < from.saturating_add(len as isize) && from < end
    }

    /// The error that the operation has ended with.
    pub(crate) fn failure(&self) -> Option<Error> {
        peek(&self.error, |error| error.as_deref().cloned())
    }

    /// Whether the operation has ended with an error.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        peek(&self.error, Option::is_some)
    }

    /// Whether the engine keeps a buffered send's data.
    pub(crate) fn keeps_data(&self) -> bool {
        peek(&self.keeps, Option::is_some)
    }

    /// The operation has been cancelled.
    pub(crate) fn cancelled(&self) {
        self.status.set(MessageStatus { cancelled: true, ..self.status.get() });
    }

    /// Whether there is more to its end than a status: it has failed, or has something to drop.
    #[inline(always)]
    pub(crate) fn is_unusual(&self) -> bool {
        self.has_failed() || self.keeps_data() || !self.is_bytes() && !self.persistent.get()
    }

    /// Whether it has anything that must be dropped or reset before its slot goes back.
    #[inline(always)]
    pub(crate) fn owns(&self) -> bool {
        self.persistent.get() || !self.is_bytes() || self.has_failed() || self.keeps_data()
    }

    /// The data have been moved: drops the datatype, unless the operation may be started again. What is left has
    /// nothing that must be dropped, if all went well.
    #[inline]
    pub(crate) fn forget_datatype(&self) {
        if !self.is_bytes() && !self.persistent.get() {
            self.layout.take();
        }
    }

    /// Drops and resets that.
    #[cold]
    #[inline(never)]
    pub(crate) fn shed(&self) {
        self.layout.take();
        self.error.take();
        self.keeps.take();
        self.persistent.set(false);
    }

    /// The match context of an active request.
    ///
    /// # Safety
    ///
    /// The request is active, so it counts as pending on its context, which therefore stays.
    #[inline(always)]
    pub(crate) unsafe fn active_context<'a>(&self) -> &'a MatchContext {
        let context = self.context.get().expect("an active request has a context");
        // SAFETY: counted as pending there, as the caller says; contexts live in boxes that nobody moves.
        unsafe { context.as_ref() }
    }

    /// Prepares an operation on `data`; the rest keeps its default until the engine sets it. `source`: the caller's
    /// rank; `peer`: the peer's, also in the job.
    #[inline]
    pub(crate) fn fill(
        &self,
        operation: RequestOperation,
        data: Data,
        source: u32,
        (peer, world): (i32, u32),
        tag: i32,
    ) {
        self.operation.set(operation);
        self.addr.set(data.addr);
        self.count.set(data.count);
        self.layout.set(data.layout);
        self.user.set(data.user);
        self.bytes.set(data.bytes);
        self.peer.set(peer);
        self.world.set(world);
        self.tag.set(tag);
        self.source.set(source);
        self.remote.set(0);
        self.counterpart.set(0);
        self.moved.set(0);
        self.total.set(data.bytes);
        self.status.set(MessageStatus::EMPTY);
        self.stage.set(Stage::Idle);
        self.mode.set(Mode::Standard);
    }

    /// As [`Self::fill`], of a slot that was given back or never used, for a run of bytes;
    /// status and stage are the caller's to set.
    #[inline(always)]
    pub(crate) fn fill_run(
        &self,
        operation: RequestOperation,
        run: &Run,
        source: u32,
        (peer, world): (i32, u32),
        tag: i32,
    ) {
        debug_assert!(!self.owns() && self.context.get().is_none());
        self.addr.set(run.addr);
        self.bytes.set(run.bytes);
        self.count.set(run.count);
        self.user.set((run.addr, run.handle));
        self.peer.set(peer);
        self.world.set(world);
        self.tag.set(tag);
        self.source.set(source);
        self.operation.set(operation);
        self.mode.set(Mode::Standard);
        self.counterpart.set(0);
        self.total.set(run.bytes);
    }

    /// Copies bytes `[from, from + to.len())` of a send's data.
    ///
    /// # Safety
    ///
    /// The user's buffer is valid, and `from + to.len()` is at most the body's bytes.
    #[inline]
    pub(crate) unsafe fn pack(&self, from: usize, to: &mut Room<'_>) {
        debug_assert!(from + to.len() <= self.bytes.get());
        let (addr, count) = (self.addr.get(), self.count.get());
        peek(&self.layout, |layout| match layout {
            // SAFETY: the buffer is valid from there on for as many bytes.
            Layout::Bytes => unsafe { copy_in(addr.wrapping_add(from), to) },
            Layout::Typed(datatype) => {
                to.fill_packed(|at, to| {
                    // SAFETY: the user's buffer is valid, and the bytes are within its data.
                    let packed = unsafe { datatype.pack(count, addr, from + at, to) };
                    debug_assert_eq!(packed, to.len());
                });
            }
        });
    }

    /// Puts `data` at bytes `[at, at + data.len())` of a receive's data.
    ///
    /// # Safety
    ///
    /// The user's buffer is valid, and `at + data.len()` is at most the body's bytes.
    #[inline]
    pub(crate) unsafe fn unpack(&self, at: usize, data: &[u8]) {
        debug_assert!(at + data.len() <= self.bytes.get());
        let (addr, count) = (self.addr.get(), self.count.get());
        peek(&self.layout, |layout| match layout {
            Layout::Bytes => {
                // SAFETY: the buffer is valid from there on for as many bytes; ring and heap are none of it.
                unsafe { copy_out(data, addr.wrapping_add(at)) }
            }
            Layout::Typed(datatype) => {
                // SAFETY: the user's buffer is valid, and the bytes are within its data.
                let unpacked = unsafe { datatype.unpack(count, addr, at, data) };
                debug_assert_eq!(unpacked, data.len());
            }
        });
    }
}

// SAFETY: the raw addresses are the user's buffers and the context; request rule 2 says which thread uses them when.
unsafe impl Send for Body {}

/// What `look` makes of a cell's value, which is out of the cell meanwhile.
#[inline(always)]
fn peek<T: Default, R>(cell: &Cell<T>, look: impl FnOnce(&T) -> R) -> R {
    let value = cell.take();
    let result = look(&value);
    cell.set(value);
    result
}

impl Default for Body {
    fn default() -> Self {
        Self {
            operation: Relaxed::new(RequestOperation::Send),
            mode: Cell::new(Mode::Standard),
            persistent: Cell::new(false),
            contents: Cell::new(Contents::Unknown),
            template: Cell::new((0, 0, 0, Mode::Standard)),
            stage: Relaxed::new(Stage::Idle),
            context: Cell::new(None),
            addr: Cell::new(core::ptr::null_mut()),
            count: Cell::new(0),
            layout: Cell::new(Layout::Bytes),
            user: Cell::new((core::ptr::null_mut(), 0)),
            bytes: Cell::new(0),
            peer: Relaxed::new(0),
            tag: Relaxed::new(0),
            source: Cell::new(0),
            world: Relaxed::new(0),
            remote: Cell::new(0),
            total: Cell::new(0),
            wanted: Cell::new(0),
            moved: Cell::new(0),
            place: Cell::new(0),
            is_unchecked: Cell::new(false),
            remote_addr: Cell::new(0),
            status: Cell::new(MessageStatus::EMPTY),
            error: Cell::new(None),
            counterpart: Cell::new(0),
            keeps: Cell::new(None),
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_what_its_word_says() {
        let parts = || Part::ALL.into_iter();
        let split = parts().flat_map(|own| parts().map(move |other| Stage::Split { own, other }));
        let data = [false, true].map(|begun| Stage::RingData { begun });
        let plain = [
            Stage::Idle,
            Stage::Posted,
            Stage::Deferred,
            Stage::AwaitsMatch,
            Stage::AwaitsCts,
            Stage::AwaitsHeapDone,
            Stage::AwaitsFin,
            Stage::Done,
        ];
        for stage in split.chain(data).chain(plain) {
            assert_eq!(Stage::of_word(stage.to_word()), stage);
        }
        for operation in [RequestOperation::Send, RequestOperation::Receive] {
            assert_eq!(RequestOperation::of_word(operation.to_word()), operation);
        }
    }
}
