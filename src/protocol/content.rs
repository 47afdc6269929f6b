//! A message on its way to its receive, and what there is of it when it comes: bytes of a record, fragments put
//! together, an announcement, a send of this rank.

use crate::engine::payload::copy_out;
use crate::engine::{Body, Engine, Payload};
use crate::matching::Envelope;
use crate::ring::{Header, INLINE};
use crate::scratch::Scratch;
use crate::shm::telemetry::ProtocolKind;

/// A message that looks for its receive.
pub(crate) struct Arrival<C> {
    /// The sender's rank in the job.
    pub from: u32,
    /// What receives ask for.
    pub envelope: Envelope,
    /// The sender's request.
    pub id: u32,
    /// Whether the sender awaits the match.
    pub synchronous: bool,
    /// What there is of the message.
    pub content: C,
}

impl<C> Arrival<C> {
    /// The message that a record's header announces.
    #[inline(always)]
    pub fn of(from: u32, header: &Header, content: C) -> Self {
        let envelope = Envelope { source: header.source, tag: header.tag };
        Self { from, envelope, id: header.id, synchronous: false, content }
    }
}

/// What there is of a message when it comes.
pub(crate) trait Content {
    /// Bytes of the message.
    fn bytes(&self) -> usize;
    /// What the unexpected message queue keeps of it.
    fn keep(self) -> Payload;
}

/// Content that is all of the message.
pub(crate) trait OwnedContent: Content {
    /// The protocol by which telemetry counts it.
    fn protocol(&self) -> ProtocolKind;

    /// Copies all of it to `addr`.
    ///
    /// # Safety
    ///
    /// `addr` is valid for writes of that many bytes.
    unsafe fn copy_to(&self, addr: *mut u8);

    /// Copies the first `len` bytes of it into a receive's buffer of any layout.
    ///
    /// # Safety
    ///
    /// The receive's buffer is valid, and `len` bytes fit it.
    unsafe fn unpack_to(&self, body: &Body, len: usize);

    /// The copy is over: the sender is done, if it is this rank itself.
    #[inline(always)]
    fn sent(&self, _engine: &Engine) {}
}

/// The payload of a record, or of an unexpected message.
impl Content for &[u8] {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn keep(self) -> Payload {
        Payload::copy(self)
    }
}

impl OwnedContent for &[u8] {
    #[inline(always)]
    fn protocol(&self) -> ProtocolKind {
        protocol_of(self.len())
    }

    #[inline(always)]
    unsafe fn copy_to(&self, addr: *mut u8) {
        // SAFETY: `addr` is valid for so many bytes; rings and queues are none of a user's buffer.
        unsafe { copy_out(self, addr) };
    }

    unsafe fn unpack_to(&self, body: &Body, len: usize) {
        // SAFETY: the buffer is valid, and `len` bytes fit it.
        unsafe { body.unpack(0, &self[..len]) };
    }
}

/// A message put together from fragments.
impl Content for Scratch {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn keep(self) -> Payload {
        Payload::Whole(self)
    }
}

impl OwnedContent for Scratch {
    fn protocol(&self) -> ProtocolKind {
        protocol_of(self.len())
    }

    unsafe fn copy_to(&self, addr: *mut u8) {
        // SAFETY: `addr` is valid for so many bytes; our memory is none of a user's buffer.
        unsafe { copy_out(self, addr) };
    }

    unsafe fn unpack_to(&self, body: &Body, len: usize) {
        // SAFETY: the buffer is valid, and `len` bytes fit it.
        unsafe { body.unpack(0, &self[..len]) };
    }
}

/// The protocol by which telemetry counts an eager message.
#[inline(always)]
pub(crate) fn protocol_of(bytes: usize) -> ProtocolKind {
    if bytes <= INLINE { ProtocolKind::Inline } else { ProtocolKind::Eager }
}
