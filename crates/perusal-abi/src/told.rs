//! The plain cases of calls that somebody listens to: nothing is wrong with the arguments, and the data is one run of bytes.
//!
//! Each gives `None`, with nothing done, if its case is none of these; the general way then finds out which it is.

use super::boundary::is_free_to_go;
use super::comms;
use super::messages::{run, set_status};
use super::process::running;
use super::requests::handle_of;
use super::types::{MPI_Comm, MPI_Datatype, MPI_Request, MPI_Status};
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::p2p::{Mode, Request, Run};
use core::ffi::{c_int, c_void};

/// Who does it, where, with what.
type Plain<'a> = (&'static Engine, &'a Comm, Run);

/// # Safety
/// The communicator is not freed while the result is in use.
#[inline(always)]
unsafe fn plain<'a>(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
) -> Option<Plain<'a>> {
    if !is_free_to_go() {
        return None;
    }
    let run = run(buf, count, datatype)?;
    // SAFETY: the caller's.
    Some((running()?, unsafe { comms::peek(comm) }?, run))
}

/// # Safety
/// As MPI_Isend says.
#[inline(always)]
unsafe fn begin_send(
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Option<(&'static Engine, Result<Request>)> {
    // SAFETY: the caller's: the communicator is not freed meanwhile.
    let (engine, comm, run) = unsafe { plain(buf, count, datatype, comm) }?;
    if mode == Mode::Buffered || tag < 0 || !comm.has_peer(dest) {
        return None;
    }
    // SAFETY: the caller's: the buffer is valid until completion.
    Some((engine, unsafe { engine.isend_run(comm, &run, dest, tag, mode) }))
}

/// # Safety
/// As MPI_Irecv says.
#[inline(always)]
unsafe fn begin_receive(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Option<(&'static Engine, Result<Request>)> {
    // SAFETY: the caller's: the communicator is not freed meanwhile.
    let (engine, comm, run) = unsafe { plain(buf, count, datatype, comm) }?;
    if (tag < 0 && tag != MPI_ANY_TAG) || (!comm.has_peer(source) && source != MPI_ANY_SOURCE) {
        return None;
    }
    // SAFETY: the caller's: the buffer is valid until completion.
    Some((engine, unsafe { engine.irecv_run(comm, &run, source, tag) }))
}

/// Waits for a request that the call has begun itself, and takes its outcome.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written.
#[inline(always)]
unsafe fn end(engine: &Engine, request: Request, status: *mut MPI_Status) -> Result<()> {
    engine.wait_complete(request)?;
    // SAFETY: the caller's.
    if engine.try_take_observed(request, |got| unsafe { set_status(status, got) }) {
        return Ok(());
    }
    let (got, error) = engine.take_outcome(request);
    // SAFETY: the caller's.
    unsafe { set_status(status, &got) };
    error.map_or(Ok(()), Err::<(), Error>)
}

/// # Safety
/// As MPI_Send says.
#[inline(always)]
pub unsafe fn send(
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Option<Result<()>> {
    // SAFETY: the caller's, and no status.
    unsafe {
        let (engine, begun) = begin_send(mode, buf, count, datatype, dest, tag, comm)?;
        Some(begun.and_then(|request| end(engine, request, core::ptr::null_mut())))
    }
}

/// # Safety
/// As MPI_Isend says.
#[inline(always)]
pub unsafe fn isend(
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Option<Result<()>> {
    if request.is_null() {
        return None;
    }
    // SAFETY: the caller's; it is not NULL.
    unsafe {
        let (_, begun) = begin_send(mode, buf, count, datatype, dest, tag, comm)?;
        Some(begun.map(|begun| request.write(handle_of(begun))))
    }
}

/// # Safety
/// As MPI_Recv says.
#[inline(always)]
pub unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Option<Result<()>> {
    // SAFETY: the caller's.
    unsafe {
        let (engine, begun) = begin_receive(buf, count, datatype, source, tag, comm)?;
        Some(begun.and_then(|request| end(engine, request, status)))
    }
}

/// # Safety
/// As MPI_Irecv says.
#[inline(always)]
pub unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Option<Result<()>> {
    if request.is_null() {
        return None;
    }
    // SAFETY: the caller's; it is not NULL.
    unsafe {
        let (_, begun) = begin_receive(buf, count, datatype, source, tag, comm)?;
        Some(begun.map(|begun| request.write(handle_of(begun))))
    }
}
