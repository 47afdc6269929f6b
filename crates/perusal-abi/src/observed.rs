//! The plain cases of calls while there are listeners: nothing is wrong with the arguments, and the data is one run of
//! bytes.
//!
//! Each gives `None`, with nothing done, if its case is none of these;
//! the complete implementation then finds out which it is.

use super::arguments::{Buffer, CommHandle, Out, StatusOut};
use super::boundary::may_go_on;
use super::messages::run;
use super::process::running;
use super::requests::handle_of;
use super::types::MPI_Request;
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::p2p::{Mode, Request, Run};
use core::ffi::c_int;

/// Engine, communicator and data of a plain case.
type PlainMessage<'a> = (&'static Engine, &'a Comm, Run);

#[inline(always)]
fn plain<'a>(buf: Buffer<'_>, comm: CommHandle<'a>) -> Option<PlainMessage<'a>> {
    if !may_go_on() {
        return None;
    }
    let run = run(buf)?;
    Some((running()?, comm.peek_complete()?, run))
}

#[inline(always)]
fn begin_send(
    mode: Mode,
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
) -> Option<(&'static Engine, Result<Request>)> {
    let (engine, comm, run) = plain(buf, comm)?;
    if mode == Mode::Buffered || tag < 0 || !comm.has_peer(dest) {
        return None;
    }
    // SAFETY: argument rule 3: the buffer holds its elements until the operation is complete.
    Some((engine, unsafe { engine.isend_run(comm, &run, dest, tag, mode) }))
}

#[inline(always)]
fn begin_receive(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
) -> Option<(&'static Engine, Result<Request>)> {
    let (engine, comm, run) = plain(buf, comm)?;
    if (tag < 0 && tag != MPI_ANY_TAG) || (!comm.has_peer(source) && source != MPI_ANY_SOURCE) {
        return None;
    }
    // SAFETY: argument rule 3: the buffer has room for its elements until the operation is complete.
    Some((engine, unsafe { engine.irecv_run(comm, &run, source, tag) }))
}

/// Waits for a request that the call has begun itself, and takes its outcome.
#[inline(always)]
fn end(engine: &Engine, request: Request, status: StatusOut<'_>) -> Result<()> {
    engine.wait_for_good(request)?;
    if engine.try_take_observed(request, |got| status.set(got)).is_some() {
        return Ok(());
    }
    let (got, error) = engine.take_outcome(request);
    status.set(&got);
    error.map_or(Ok(()), Err::<(), Error>)
}

/// MPI_Send and the like.
#[inline(always)]
pub fn send(
    mode: Mode,
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
) -> Option<Result<()>> {
    let (engine, begun) = begin_send(mode, buf, dest, tag, comm)?;
    Some(begun.and_then(|request| end(engine, request, StatusOut::IGNORE)))
}

/// MPI_Isend and the like.
#[inline(always)]
pub fn isend(
    mode: Mode,
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<&Out<'_, MPI_Request>>,
) -> Option<Result<()>> {
    let request = request?;
    let (_, begun) = begin_send(mode, buf, dest, tag, comm)?;
    Some(begun.map(|begun| request.set(handle_of(begun))))
}

/// MPI_Recv.
#[inline(always)]
pub fn recv(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> Option<Result<()>> {
    let (engine, begun) = begin_receive(buf, source, tag, comm)?;
    Some(begun.and_then(|request| end(engine, request, status)))
}

/// MPI_Irecv.
#[inline(always)]
pub fn irecv(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<&Out<'_, MPI_Request>>,
) -> Option<Result<()>> {
    let request = request?;
    let (_, begun) = begin_receive(buf, source, tag, comm)?;
    Some(begun.map(|begun| request.set(handle_of(begun))))
}
