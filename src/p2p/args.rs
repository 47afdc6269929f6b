//! What a call is about, as the C and Rust APIs say it.

use crate::abi;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::engine::{Body, Layout, Operation, Stage};
use crate::request::Status;

/// A buffer to send from.
#[derive(Debug, Clone, Copy)]
pub struct SendBuf<'a> {
    /// The user's address.
    pub addr: *const u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
    /// The type's handle, for events; 0 where there is none.
    pub handle: usize,
}

/// A buffer to receive into.
#[derive(Debug, Clone, Copy)]
pub struct RecvBuf<'a> {
    /// The user's address.
    pub addr: *mut u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
    /// The type's handle, for events; 0 where there is none.
    pub handle: usize,
}

/// A buffer that is one run of bytes from its address on, in either direction.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The user's address.
    pub addr: *mut u8,
    /// Bytes: to send, or room to receive.
    pub bytes: usize,
    /// Elements.
    pub count: usize,
    /// Their type's handle, for events.
    pub handle: usize,
}

/// The user's buffer in either direction, flattened where it is one run of bytes.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub addr: *mut u8,
    pub count: usize,
    pub layout: Layout,
    pub bytes: usize,
    pub user: (*mut u8, usize),
}

impl Data {
    #[inline]
    pub fn of(addr: *mut u8, count: usize, datatype: &Datatype, handle: usize) -> Self {
        let bytes = datatype.size() * count;
        let user = (addr, handle);
        if bytes == 0 || datatype.is_contiguous() {
            let first = addr.wrapping_offset(datatype.true_lb());
            return Self { addr: first, count, layout: Layout::Bytes, bytes, user };
        }
        Self { addr, count, layout: Layout::Typed(datatype.clone()), bytes, user }
    }

    #[inline]
    pub fn bytes(addr: *mut u8, bytes: usize) -> Self {
        Self { addr, count: bytes, layout: Layout::Bytes, bytes, user: (addr, abi::MPI_BYTE) }
    }
}

impl From<&SendBuf<'_>> for Data {
    #[inline]
    fn from(buf: &SendBuf<'_>) -> Self {
        Self::of(buf.addr.cast_mut(), buf.count, buf.datatype, buf.handle)
    }
}

impl From<&RecvBuf<'_>> for Data {
    #[inline]
    fn from(buf: &RecvBuf<'_>) -> Self {
        Self::of(buf.addr, buf.count, buf.datatype, buf.handle)
    }
}

/// As [`fill`], of a slot that was given back or never used, for a run of bytes. `source`: the
/// caller's rank; `peer`: the peer's, also in the job.
#[inline(always)]
pub(crate) fn fill_run(
    body: &mut Body,
    operation: Operation,
    run: &Run,
    source: u32,
    peer: (i32, u32),
    tag: i32,
) {
    debug_assert!(!body.owns() && body.context.is_none());
    body.addr = run.addr;
    body.bytes = run.bytes;
    body.count = run.count;
    body.user = (run.addr, run.handle);
    (body.peer, body.world) = peer;
    body.tag = tag;
    body.source = source;
    body.operation = operation;
    body.synchronous = false;
    body.twin = 0;
    body.total = run.bytes;
}

/// Fills a request's body for a new operation; the rest keeps its default until the engine sets it.
#[inline]
pub(crate) fn fill(body: &mut Body, operation: Operation, data: Data, comm: &Comm, peer: i32, tag: i32) {
    body.operation = operation;
    body.addr = data.addr;
    body.count = data.count;
    body.layout = data.layout;
    body.user = data.user;
    body.bytes = data.bytes;
    body.peer = peer;
    body.tag = tag;
    body.source = comm.rank();
    body.world = if peer >= 0 { comm.world_rank_of(peer) } else { u32::MAX };
    body.remote = 0;
    body.twin = 0;
    body.moved = 0;
    body.total = data.bytes;
    body.status = Status::EMPTY;
    body.stage = Stage::Idle;
    body.synchronous = false;
}
