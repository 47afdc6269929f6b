//! The transport by itself, for those who write an MPI or a runtime:
//! endpoints of one machine that send each other tagged messages.
//!
//! An [`Endpoint`] belongs to a process, which may have several. It has an [`Address`], which the program brings to
//! whoever shall send to it; who has the address makes it a [`Peer`]. There is no launcher and no set of processes that
//! is fixed: endpoints open, meet and close while others run, and nothing is left of one, however its process ends.
//!
//! A message has a tag of 64 bits, 8 bytes of data, and any number of bytes. A receive says which bits of the tag it
//! does not care for, and names a peer or takes any. Messages between two endpoints match in the order in which they
//! were sent. Operations end in the order in which they are done: each is a [`Completion`] with the number that the
//! caller gave it.
//!
//! Nothing moves without a call: [`Endpoint::poll`], [`Endpoint::wait`] and [`Endpoint::progress`] move messages, those
//! under way included. An endpoint is used by one thread at a time, and may go from one to another.
//!
//! ```
//! use perusal_fi::transport::{Endpoint, Peer};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), perusal_fi::transport::Error> {
//! let (mut a, mut b) = (Endpoint::open()?, Endpoint::open()?);
//! // In two processes the program sends the address through a pipe, a file, an argument, …
//! let to_b: Peer = a.add(b.address().to_string().parse()?);
//!
//! // The upper half of the tag names a queue, the lower half is anything.
//! b.receive(None, 7 << 32, u64::from(u32::MAX), vec![0; 100], 1);
//! a.send(to_b, 7 << 32 | 5, 0, b"hello".to_vec(), 2)?;
//!
//! let received = b.wait(Duration::from_secs(10)).expect("a message");
//! assert_eq!((received.context, received.tag, received.bytes()), (1, 7 << 32 | 5, &b"hello"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! The same in C is `include/perusal-transport.h`. What of both is stable stands in `docs/embedding.md`.

mod c;
mod error;

pub use crate::names::address::Address;
pub use crate::protocol::core::EAGER_LIMIT;
pub use error::Error;

use crate::api::{
    CqEntry, FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC, FI_COMPLETION, FI_EINVAL, FI_ENOMSG, FI_PEEK, FI_RECV,
    FI_TAGGED,
};
use crate::forks;
use crate::lock::Lock;
use crate::operands::key::TagPattern;
use crate::operands::spans::Spans;
use crate::protocol::operation::{Receive, Send};
use crate::protocol::queue::Queue;
use crate::protocol::slab::Slab;
use libc::c_void;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polls in vain before a wait sleeps.
const SPINS: u32 = 1000;
/// Polls in vain for one look at the clock before that: each may give the CPU away, for long on a busy machine.
const CLOCK: u32 = 8;

/// Another endpoint, or the same, as one endpoint numbers it: from 0, in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// An operation under way, for [`Endpoint::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    at: u32,
    serial: u32,
}

/// The end of an operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// What the caller gave the operation.
    pub context: u64,
    /// Whether it was a receive.
    pub received: bool,
    /// Who sent the message that was received; `None` if this endpoint has not added it.
    pub peer: Option<Peer>,
    /// The message's tag; 0 for a send.
    pub tag: u64,
    /// The message's 8 bytes of data; 0 for a send.
    pub data: u64,
    /// Bytes received; 0 for a send.
    pub len: usize,
    /// How it ended. What a message had beyond the buffer of its receive is lost ([`Error::Truncated`]).
    pub result: Result<(), Error>,
    /// The buffer that the operation was given, at its full length; empty if the caller kept it.
    pub buffer: Vec<u8>,
}

impl Completion {
    /// The bytes of the message that was received into a buffer of the endpoint's.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len.min(self.buffer.len())]
    }
}

/// A message that has arrived and that no receive has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Who sent it; `None` if this endpoint has not added it.
    pub peer: Option<Peer>,
    /// Its tag.
    pub tag: u64,
    /// Its 8 bytes of data.
    pub data: u64,
    /// Its length in bytes.
    pub len: usize,
}

/// What the caller gave an operation.
#[derive(Debug)]
struct Given {
    serial: u32,
    context: u64,
    buffer: Vec<u8>,
}

/// An endpoint: it sends and receives. When it is dropped, what is under way ends; peers see that it is gone.
#[derive(Debug)]
pub struct Endpoint {
    /// Before the buffers: what it does when it is dropped reads them.
    inner: crate::progress::endpoint::Endpoint,
    queue: Rc<Queue>,
    given: Slab<Given>,
    serial: u32,
    peers: u32,
    lock: Arc<Lock>,
}

// SAFETY: every Rc and every pointer in an endpoint belongs to it alone and goes with it; pointers that a caller gave
// are valid in every thread, as the unsafe functions that take them ask for.
unsafe impl core::marker::Send for Endpoint {}

impl Endpoint {
    /// Opens an endpoint.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], or what the system says of a memfd.
    pub fn open() -> Result<Self, Error> {
        let mut inner = crate::progress::endpoint::Endpoint::new()?;
        let queue = Rc::new(Queue::default());
        inner.core.directed = [true; 2];
        inner.core.reports.send_queue = Some(Rc::clone(&queue));
        inner.core.reports.receive_queue = Some(Rc::clone(&queue));
        let lock = Arc::new(Lock::of_endpoint());
        forks::watch(&lock);
        Ok(Self { inner, queue, given: Slab::default(), serial: 0, peers: 0, lock })
    }

    /// Returns the address. As text ([`Address`] implements `Display` and `FromStr`) it goes through anything.
    pub fn address(&self) -> Address {
        self.lock.refuse_child();
        self.inner.address
    }

    /// Adds a peer. That costs no system call: whether the endpoint is there shows when something is sent.
    pub fn add(&mut self, address: Address) -> Peer {
        self.lock.refuse_child();
        let peer = self.peers;
        self.peers += 1;
        self.inner.core.introduce(u64::from(peer), address);
        Peer(peer)
    }

    /// Removes a peer: what is under way with it ends with [`Error::Closed`], receives that name it included, and the
    /// memory to send to it is given back. A longer message that the peer has not received ends there with
    /// [`Error::Closed`], too. Messages that have arrived from it can still be received from any peer. Its number is
    /// not used again.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownPeer`].
    pub fn remove(&mut self, peer: Peer) -> Result<(), Error> {
        self.lock.refuse_child();
        self.inner.remove(u64::from(peer.0)).map_err(Error::from)
    }

    /// Whether the peer's endpoint is closed, or its process has ended. Nothing else tells that while no operation is
    /// under way with it. Costs a system call. A peer that was never added has left.
    pub fn has_left(&mut self, peer: Peer) -> bool {
        self.lock.refuse_child();
        self.inner.core.has_left(u64::from(peer.0))
    }

    #[inline(always)]
    fn begin(&mut self, context: u64, buffer: Vec<u8>) -> Operation {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        Operation { at: self.given.insert(Given { serial, context, buffer }), serial }
    }

    /// Sends `buffer`, which the completion gives back.
    ///
    /// # Errors
    ///
    /// Nothing was sent, and there is no completion: [`Error::Full`] if there is no room now, [`Error::Unreachable`] or
    /// [`Error::Closed`] if the peer is gone, [`Error::UnknownPeer`], [`Error::TooManySenders`],
    /// [`Error::OutOfMemory`]. The buffer comes back with the error.
    pub fn send(
        &mut self,
        to: Peer,
        tag: u64,
        data: u64,
        buffer: Vec<u8>,
        context: u64,
    ) -> Result<Operation, Refused> {
        let (bytes, len) = (buffer.as_ptr(), buffer.len());
        let operation = self.begin(context, buffer);
        // SAFETY: the buffer stays in `given` until the completion is taken out.
        match unsafe { self.send_of(to, tag, data, bytes, len, operation) } {
            Ok(()) => Ok(operation),
            Err(error) => {
                let buffer = self.given.remove(operation.at).map(|given| given.buffer).unwrap_or_default();
                Err(Refused { error, buffer })
            }
        }
    }

    /// Sends bytes that the caller keeps.
    ///
    /// # Safety
    ///
    /// The `len` bytes are valid for reads in every thread, and do not change,
    /// until the completion is taken or the endpoint is dropped.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::send`].
    pub unsafe fn send_raw(
        &mut self,
        to: Peer,
        tag: u64,
        data: u64,
        bytes: *const u8,
        len: usize,
        context: u64,
    ) -> Result<Operation, Error> {
        let operation = self.begin(context, Vec::new());
        // SAFETY: the bytes stay valid until the operation is over, as the caller promises.
        let sent = unsafe { self.send_of(to, tag, data, bytes, len, operation) };
        sent.map(|()| operation).inspect_err(|_| drop(self.given.remove(operation.at)))
    }

    /// # Safety
    ///
    /// As [`Endpoint::send_raw`].
    unsafe fn send_of(
        &mut self,
        to: Peer,
        tag: u64,
        data: u64,
        bytes: *const u8,
        len: usize,
        operation: Operation,
    ) -> Result<(), Error> {
        self.lock.refuse_child();
        // SAFETY: the bytes stay valid until the operation is over, as the caller promises.
        let spans = unsafe { Spans::one(bytes.cast(), len) };
        let (to, tag, data, context) = (u64::from(to.0), Some(tag), Some(data), context_of(operation.at));
        if len <= EAGER_LIMIT {
            return Ok(self.inner.core.send_eager(to, tag, data, &spans, context, true)?);
        }
        let send = Send {
            spans,
            to,
            tag,
            data,
            context,
            completion: true,
            delivery: false,
            matched: false,
            own: None,
        };
        Ok(self.inner.core.announce(send)?)
    }

    /// Sends at most [`EAGER_LIMIT`] bytes, which are copied: there is no completion.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::send`], and [`Error::TooLong`].
    pub fn inject(&mut self, to: Peer, tag: u64, data: u64, bytes: &[u8]) -> Result<(), Error> {
        self.lock.refuse_child();
        if bytes.len() > EAGER_LIMIT {
            return Err(Error::TooLong);
        }
        // SAFETY: an inject is over when the call returns, and the bytes live as long.
        let spans = unsafe { Spans::one(bytes.as_ptr().cast(), bytes.len()) };
        let (to, none) = (u64::from(to.0), std::ptr::null_mut());
        Ok(self.inner.core.send_eager(to, Some(tag), Some(data), &spans, none, false)?)
    }

    /// Receives a message into `buffer`, which the completion gives back: from a peer or from any, whose tag is `tag`
    /// but for the bits of `ignore`. A receive from a peer that was not added, or was removed, ends at once with
    /// [`Error::UnknownPeer`].
    pub fn receive(
        &mut self,
        from: Option<Peer>,
        tag: u64,
        ignore: u64,
        mut buffer: Vec<u8>,
        context: u64,
    ) -> Operation {
        let (bytes, len) = (buffer.as_mut_ptr(), buffer.len());
        let pattern = self.pattern(from, tag, ignore);
        let operation = self.begin(context, buffer);
        match pattern {
            // SAFETY: the buffer stays in `given` until the completion is taken out.
            Some(pattern) => unsafe { self.receive_of(pattern, bytes, len, operation) },
            None => self.refuse_receive(tag, operation),
        }
        operation
    }

    /// Receives a message into bytes that the caller keeps.
    ///
    /// # Safety
    ///
    /// The `len` bytes are valid for writes in every thread, and nobody else touches them, until the completion is
    /// taken or the endpoint is dropped.
    pub unsafe fn receive_raw(
        &mut self,
        from: Option<Peer>,
        tag: u64,
        ignore: u64,
        bytes: *mut u8,
        len: usize,
        context: u64,
    ) -> Operation {
        // SAFETY: the bytes stay valid until the operation is over, and nobody else touches them,
        // as the caller promises.
        unsafe { self.receive_known(from, tag, ignore, bytes, len, context) }.unwrap_or_else(|| {
            let operation = self.begin(context, Vec::new());
            self.refuse_receive(tag, operation);
            operation
        })
    }

    /// As [`Endpoint::receive_raw`]; `None`, with nothing done, for a peer that this endpoint does not have.
    ///
    /// # Safety
    ///
    /// That of [`Endpoint::receive_raw`].
    unsafe fn receive_known(
        &mut self,
        from: Option<Peer>,
        tag: u64,
        ignore: u64,
        bytes: *mut u8,
        len: usize,
        context: u64,
    ) -> Option<Operation> {
        let pattern = self.pattern(from, tag, ignore)?;
        let operation = self.begin(context, Vec::new());
        // SAFETY: the bytes stay valid until the operation is over, and nobody else touches them,
        // as the caller promises.
        unsafe { self.receive_of(pattern, bytes, len, operation) };
        Some(operation)
    }

    /// # Safety
    ///
    /// As [`Endpoint::receive_raw`].
    unsafe fn receive_of(&mut self, pattern: TagPattern, bytes: *mut u8, len: usize, operation: Operation) {
        self.lock.refuse_child();
        let receive = Receive {
            // SAFETY: the bytes stay valid until the operation is over, and nobody else touches them,
            // as the caller promises.
            spans: unsafe { Spans::one(bytes.cast(), len) },
            context: context_of(operation.at),
            pattern,
            tagged: true,
            completion: true,
            several: None,
            trace: 0,
        };
        self.inner.core.receive(receive);
    }

    /// Ends a receive from a peer that this endpoint does not have.
    #[cold]
    fn refuse_receive(&mut self, tag: u64, operation: Operation) {
        self.lock.refuse_child();
        let (flags, none) = (FI_RECV | FI_TAGGED, std::ptr::null_mut());
        let entry = CqEntry { context: context_of(operation.at), flags, len: 0, buf: none, data: 0, tag };
        self.inner.core.reports.received(entry, FI_ADDR_NOTAVAIL, true, FI_EINVAL, 0);
    }

    /// What a receive or a probe takes; `None` for a peer that this endpoint does not have.
    fn pattern(&self, from: Option<Peer>, tag: u64, ignore: u64) -> Option<TagPattern> {
        let from = from.map_or(FI_ADDR_UNSPEC, |peer| u64::from(peer.0));
        self.inner.core.pattern(true, from, tag, ignore).ok()
    }

    /// Whether it has the peer, where one is named.
    fn knows(&self, from: Option<Peer>) -> bool {
        self.pattern(from, 0, 0).is_some()
    }

    /// Looks for a message that has arrived, and leaves it there. There is none from a peer that was not added.
    pub fn probe(&mut self, from: Option<Peer>, tag: u64, ignore: u64) -> Option<Found> {
        self.progress();
        let pattern = self.pattern(from, tag, ignore)?;
        self.inner.core.peek(true, &pattern, std::ptr::null_mut(), FI_PEEK | FI_COMPLETION);
        let said = self.queue.done.borrow_mut().pop_back()?;
        let entry = said.entry;
        (said.error != FI_ENOMSG).then(|| Found {
            peer: peer_of(said.source),
            tag: entry.tag,
            data: entry.data,
            len: entry.len,
        })
    }

    /// Cancels a receive that no message has met: it ends with [`Error::Canceled`].
    /// Any other operation ends as it would.
    pub fn cancel(&mut self, operation: Operation) {
        self.lock.refuse_child();
        if self.given.get(operation.at).is_some_and(|given| given.serial == operation.serial) {
            self.inner.core.cancel(context_of(operation.at));
        }
    }

    /// Moves what is under way. Returns whether there was anything.
    pub fn progress(&mut self) -> bool {
        self.lock.refuse_child();
        self.inner.progress()
    }

    /// The next completion, if there is one; else moves what is under way first.
    #[inline(always)]
    pub fn poll(&mut self) -> Option<Completion> {
        self.lock.refuse_child();
        if self.queue.done.borrow().is_empty() {
            self.inner.progress();
        }
        self.take()
    }

    /// The next completion, if there is one within this time. The thread sleeps after a while; a message wakes it.
    pub fn wait(&mut self, at_most: Duration) -> Option<Completion> {
        let (mut began, mut polls) = (None, 0_u32);
        loop {
            if let Some(completion) = self.poll() {
                return Some(completion);
            }
            let began: Instant = *began.get_or_insert_with(Instant::now);
            polls = polls.saturating_add(1);
            if polls < SPINS && !polls.is_multiple_of(CLOCK) && !at_most.is_zero() {
                std::hint::spin_loop();
                continue;
            }
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                return None;
            }
            if polls >= SPINS {
                // Parts of a millisecond are a whole one: zero would not sleep.
                self.inner.sleep(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
            }
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Completion> {
        let done = self.queue.done.borrow_mut().pop_front()?;
        let entry = done.entry;
        let given = self.given.remove(entry.context as usize as u32)?;
        let received = entry.flags & (FI_RECV | FI_TAGGED) == FI_RECV | FI_TAGGED;
        Some(Completion {
            context: given.context,
            received,
            peer: peer_of(done.source),
            tag: entry.tag,
            data: entry.data,
            len: entry.len,
            result: if done.error == 0 { Ok(()) } else { Err(done.error.into()) },
            buffer: given.buffer,
        })
    }
}

/// A send that was not begun.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// The buffer.
    pub buffer: Vec<u8>,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

/// A number of `given` as the context of an operation below.
fn context_of(at: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(at as usize)
}

fn peer_of(source: u64) -> Option<Peer> {
    u32::try_from(source).ok().map(Peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A poll that has given the CPU away is followed by another.
    #[test]
    fn a_wait_ends_with_its_time_however_few_polls_that_are() {
        let mut endpoint = Endpoint::open().expect("an endpoint");
        for (at_most, polls) in [(Duration::ZERO, 1), (Duration::from_nanos(1), CLOCK)] {
            let before = endpoint.inner.polls();
            assert!(endpoint.wait(at_most).is_none());
            assert!((1..=2 * polls).contains(&(endpoint.inner.polls() - before)), "{at_most:?}");
        }
    }
}
