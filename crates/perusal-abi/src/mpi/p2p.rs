//! Point-to-point communication (MPI 5.0 §3).
//!
//! Each function tries the fast path first, which does nothing and reports no error if it does not serve the case.
//! Then it tries the fast path for types of the program's own ([`typed`]), the path for calls with listeners
//! ([`observed`]), and the slow path.

use super::typed;
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_SUCCESS};
use crate::arguments::{Buffer, BufferStart, Call, CommHandle, NO_RESULT, Out, StatusOut};
use crate::boundary;
use crate::calls::{CallSpan, Function};
use crate::check::{self, Access};
use crate::comm::Comm;
use crate::error::Result;
use crate::events::fast_path_is_open;
use crate::messages::{recv_buf, recv_peer, run, run_of_bytes, send_buf, send_peer};
use crate::observed;
use crate::p2p::{MessageStatus, Mode, RecvMemory};
use crate::process::{engine, running};
use crate::requests::handle_of;
use crate::types::{MPI_Datatype, MPI_Request};
use core::ffi::c_int;

/// Whether messages of this mode may take the fast path.
#[inline(always)]
fn is_fast(mode: Mode) -> bool {
    matches!(mode, Mode::Standard | Mode::Ready)
}

/// A blocking send of plain bytes; whether it was served.
#[inline(always)]
pub(super) fn send_fast(buf: Buffer<'_>, dest: c_int, tag: c_int, comm: CommHandle<'_>) -> bool {
    if !fast_path_is_open() || tag < 0 {
        return false;
    }
    let Some(bytes) = run_of_bytes(buf) else { return false };
    let (Some(comm), Some(engine)) = (comm.peek(), running()) else { return false };
    // SAFETY: argument rule 3: the buffer holds the bytes of its elements, whose type has no gaps.
    comm.has_peer(dest)
        && unsafe {
            engine.send_fast::<false>(comm.p2p(), comm, buf.addr.cast_const().cast(), bytes, dest, tag)
        }
}

/// MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend.
#[inline(always)]
pub fn send(
    call: &Call,
    mode: Mode,
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
) -> c_int {
    if is_fast(mode) && send_fast(buf, dest, tag, comm) {
        return MPI_SUCCESS;
    }
    let (start, datatype) = buf.into_parts();
    send_slow(call.function(), mode, start, datatype, dest, tag, comm)
}

/// Whether a message of plain bytes is for MPI_PROC_NULL, or from it, and nothing is wrong: then its call is over.
fn is_to_nobody(buf: Buffer<'_>, peer: c_int, tag: c_int, comm: CommHandle<'_>) -> bool {
    peer == MPI_PROC_NULL
        && tag >= 0
        && fast_path_is_open()
        && run_of_bytes(buf).is_some()
        && comm.peek().is_some()
}

#[cold]
#[inline(never)]
fn send_slow(
    function: &'static Function,
    mode: Mode,
    start: BufferStart<'_>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
) -> c_int {
    // SAFETY: both are parts of one buffer: the one call of this function takes it apart for it.
    let buf = unsafe { Buffer::from_parts(start, datatype) };
    if is_fast(mode) && (typed::send(buf, dest, tag, comm) || is_to_nobody(buf, dest, tag, comm)) {
        return MPI_SUCCESS;
    }
    let _span = CallSpan::begin(function);
    if let Some(outcome) = observed::send(mode, buf, dest, tag, comm) {
        return boundary::outcome(comm.handle(), function.name, outcome);
    }
    let run = || {
        boundary::enter(function.name)?;
        let found = comm.find()?;
        send_peer(found, dest, tag)?;
        if check::is_on() {
            check::blocking_message(found, dest, tag, &buf, Access::Read);
        }
        // SAFETY: argument rule 3: the buffer holds its elements until the message has been sent.
        unsafe { engine()?.send(found, &send_buf(buf.with_peer(dest))?, dest, tag, mode) }
    };
    boundary::outcome(comm.handle(), function.name, run())
}

#[inline(always)]
fn isend_fast(
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: &Option<Out<'_, MPI_Request>>,
) -> bool {
    if !fast_path_is_open() || tag < 0 {
        return false;
    }
    let (Some(request), Some(run)) = (request, run(buf)) else { return false };
    let (Some(comm), Some(engine)) = (comm.peek(), running()) else { return false };
    if !comm.has_peer(dest) {
        return false;
    }
    // SAFETY: argument rule 3: the buffer holds its elements until the request is complete.
    let Some(started) = (unsafe { engine.isend_fast(comm, run, dest, tag) }) else { return false };
    request.set(started.get() as usize);
    true
}

/// MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend.
#[inline(always)]
pub fn isend(
    call: &Call,
    mode: Mode,
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<Out<'_, MPI_Request>>,
) -> c_int {
    if is_fast(mode) && isend_fast(buf, dest, tag, comm, &request) {
        return MPI_SUCCESS;
    }
    let (start, datatype) = buf.into_parts();
    isend_slow(call.function(), mode, start, datatype, dest, tag, comm, request)
}

#[cold]
#[inline(never)]
fn isend_slow(
    function: &'static Function,
    mode: Mode,
    start: BufferStart<'_>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<Out<'_, MPI_Request>>,
) -> c_int {
    // SAFETY: both are parts of one buffer: the one call of this function takes it apart for it.
    let buf = unsafe { Buffer::from_parts(start, datatype) };
    if is_fast(mode) && typed::isend(buf, dest, tag, comm, request.as_ref()) {
        return MPI_SUCCESS;
    }
    let _span = CallSpan::begin(function);
    if let Some(outcome) = observed::isend(mode, buf, dest, tag, comm, request.as_ref()) {
        return boundary::outcome(comm.handle(), function.name, outcome);
    }
    let run = || {
        boundary::enter(function.name)?;
        let request = request.ok_or(NO_RESULT)?;
        let found = comm.find()?;
        send_peer(found, dest, tag)?;
        // SAFETY: argument rule 3: the buffer holds its elements until the request is complete.
        let started = unsafe { engine()?.isend(found, &send_buf(buf.with_peer(dest))?, dest, tag, mode) }?;
        if check::is_on() {
            check::began_message(started.id() as usize, found, dest, tag, &buf, Access::Read, false);
        }
        request.put(handle_of(started))
    };
    boundary::outcome(comm.handle(), function.name, run())
}

/// MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init.
pub fn send_init(mode: Mode, buf: Buffer<'_>, dest: c_int, tag: c_int, comm: &Comm) -> Result<MPI_Request> {
    send_peer(comm, dest, tag)?;
    // SAFETY: argument rule 3: the buffer holds its elements whenever the request is active.
    let made = unsafe { engine()?.send_init(comm, &send_buf(buf.with_peer(dest))?, dest, tag, mode) }?;
    if check::is_on() {
        check::began_message(made.id() as usize, comm, dest, tag, &buf, Access::Read, true);
    }
    Ok(handle_of(made))
}

/// Whether a receive from `source` with `tag` is one for the fast path, as far as these say.
#[inline(always)]
pub(super) fn is_plain(source: c_int, tag: c_int, comm: &Comm) -> bool {
    (tag >= 0 || tag == MPI_ANY_TAG) && (comm.has_peer(source) || source == MPI_ANY_SOURCE)
}

/// A blocking receive of plain bytes; whether it was served.
#[inline(always)]
pub(super) fn recv_fast(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> bool {
    if !fast_path_is_open() || (tag < 0 && tag != MPI_ANY_TAG) {
        return false;
    }
    let Some(bytes) = run_of_bytes(buf) else { return false };
    let (Some(comm), Some(engine)) = (comm.peek(), running()) else { return false };
    if !is_plain(source, tag, comm) {
        return false;
    }
    // SAFETY: argument rule 3: the buffer has room for the bytes of its elements, whose type has no gaps.
    let room = unsafe { RecvMemory::new(buf.addr.cast(), bytes) };
    let Some(got) = engine.receive_fast(comm.p2p(), comm, room, source, tag) else { return false };
    status.set(&got);
    true
}

/// MPI_Recv.
#[inline(always)]
pub fn recv(
    call: &Call,
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> c_int {
    if recv_fast(buf, source, tag, comm, status) {
        return MPI_SUCCESS;
    }
    let (start, datatype) = buf.into_parts();
    recv_slow(call.function(), start, datatype, source, tag, comm, status)
}

#[cold]
#[inline(never)]
fn recv_slow(
    function: &'static Function,
    start: BufferStart<'_>,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> c_int {
    // SAFETY: both are parts of one buffer: the one call of this function takes it apart for it.
    let buf = unsafe { Buffer::from_parts(start, datatype) };
    if typed::recv(buf, source, tag, comm, status) {
        return MPI_SUCCESS;
    }
    if is_to_nobody(buf, source, if tag == MPI_ANY_TAG { 0 } else { tag }, comm) {
        status.set(&MessageStatus::PROC_NULL);
        return MPI_SUCCESS;
    }
    let _span = CallSpan::begin(function);
    if let Some(outcome) = observed::recv(buf, source, tag, comm, status) {
        return boundary::outcome(comm.handle(), function.name, outcome);
    }
    let run = || {
        boundary::enter(function.name)?;
        let found = comm.find()?;
        recv_peer(found, source, tag)?;
        if check::is_on() {
            check::blocking_message(found, source, tag, &buf, Access::Write);
        }
        // SAFETY: argument rule 3: the buffer has room for its elements until the message has been received.
        let (got, error) =
            unsafe { engine()?.receive(found, &recv_buf(buf.with_peer(source))?, source, tag) }?;
        if check::is_on() && error.is_none() {
            check::received(found, source, tag, &buf, got.bytes as usize);
        }
        status.set(&got);
        error.map_or(Ok(()), Err)
    };
    boundary::outcome(comm.handle(), function.name, run())
}

#[inline(always)]
fn irecv_fast(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: &Option<Out<'_, MPI_Request>>,
) -> bool {
    if !fast_path_is_open() || (tag < 0 && tag != MPI_ANY_TAG) {
        return false;
    }
    let (Some(request), Some(run)) = (request, run(buf)) else { return false };
    let (Some(comm), Some(engine)) = (comm.peek(), running()) else { return false };
    if !is_plain(source, tag, comm) {
        return false;
    }
    // SAFETY: argument rule 3: the buffer has room for its elements until the request is complete.
    let Some(started) = (unsafe { engine.irecv_fast(comm, run, source, tag) }) else { return false };
    request.set(started.get() as usize);
    true
}

/// MPI_Irecv.
#[inline(always)]
pub fn irecv(
    call: &Call,
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<Out<'_, MPI_Request>>,
) -> c_int {
    if irecv_fast(buf, source, tag, comm, &request) {
        return MPI_SUCCESS;
    }
    let (start, datatype) = buf.into_parts();
    irecv_slow(call.function(), start, datatype, source, tag, comm, request)
}

#[cold]
#[inline(never)]
fn irecv_slow(
    function: &'static Function,
    start: BufferStart<'_>,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<Out<'_, MPI_Request>>,
) -> c_int {
    // SAFETY: both are parts of one buffer: the one call of this function takes it apart for it.
    let buf = unsafe { Buffer::from_parts(start, datatype) };
    if let Some(outcome) = typed::irecv(buf, source, tag, comm, request.as_ref()) {
        return boundary::outcome(comm.handle(), function.name, outcome);
    }
    let _span = CallSpan::begin(function);
    if let Some(outcome) = observed::irecv(buf, source, tag, comm, request.as_ref()) {
        return boundary::outcome(comm.handle(), function.name, outcome);
    }
    let run = || {
        boundary::enter(function.name)?;
        let request = request.ok_or(NO_RESULT)?;
        let found = comm.find()?;
        recv_peer(found, source, tag)?;
        // SAFETY: argument rule 3: the buffer has room for its elements until the request is complete.
        let started = unsafe { engine()?.irecv(found, &recv_buf(buf.with_peer(source))?, source, tag) }?;
        if check::is_on() {
            check::began_message(started.id() as usize, found, source, tag, &buf, Access::Write, false);
        }
        request.put(handle_of(started))
    };
    boundary::outcome(comm.handle(), function.name, run())
}

/// MPI_Recv_init.
pub fn recv_init(buf: Buffer<'_>, source: c_int, tag: c_int, comm: &Comm) -> Result<MPI_Request> {
    recv_peer(comm, source, tag)?;
    // SAFETY: argument rule 3: the buffer has room for its elements whenever the request is active.
    let made = unsafe { engine()?.recv_init(comm, &recv_buf(buf.with_peer(source))?, source, tag) }?;
    if check::is_on() {
        check::began_message(made.id() as usize, comm, source, tag, &buf, Access::Write, true);
    }
    Ok(handle_of(made))
}
