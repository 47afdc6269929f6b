//! Attached buffers of the process, of communicators and of sessions (MPI 5.0 §3.6).

use super::session::Session;
use crate::abi::{MPI_BUFFER_AUTOMATIC, MPI_SUCCESS};
use crate::arguments::OrUndefined;
use crate::boundary::{ErrorSource, RaisedOn};
use crate::check;
use crate::comm::Comm;
use crate::engine::{Buffers, Engine};
use crate::error::{Error, Result};
use crate::messages::is_memory;
use crate::p2p::MessageStatus;
use crate::process::engine;
use crate::requests::{Task, insert_task, over};
use crate::types::{MPI_Comm, MPI_Request};
use core::ffi::c_void;
use std::sync::Arc;

fn attach_to(buffers: &Buffers, addr: *mut c_void, size: i64) -> Result<()> {
    if addr as usize == MPI_BUFFER_AUTOMATIC {
        // The size says nothing (MPI 5.0 §3.6).
        return buffers.attach_automatic();
    }
    let size = usize::try_from(size).map_err(|_| Error::Arg("the size of the buffer is negative"))?;
    if is_memory(addr.addr()) {
        buffers.attach(addr.cast(), size)?;
        if check::is_on() {
            check::attached(addr.cast(), size);
        }
        return Ok(());
    }
    if size > 0 {
        return Err(Error::Buffer("it is NULL or MPI_IN_PLACE, and its size is not 0"));
    }
    // What a detach gives where nothing is attached: a library that puts back what it has found leaves the program free
    // to attach (MPI 5.0 §3.6).
    buffers.check_none()
}

/// Where the buffer begins, and its bytes: MPI_UNDEFINED for more than the result can say,
/// for the buffer is the program's again.
fn detach_from(buffers: &Buffers) -> Result<(usize, OrUndefined)> {
    let (start, bytes) = engine()?.detach_buffer(buffers)?;
    if check::is_on() {
        check::detached(start.addr());
    }
    Ok((start as usize, OrUndefined(i64::try_from(bytes).ok())))
}

/// A flush that goes on while the program does something else.
struct Flush {
    buffers: Buffers,
    /// Pieces that had been reserved when it began.
    begun: u64,
    /// The communicator on which its errors are raised.
    raises_on: Option<MPI_Comm>,
}

impl Task for Flush {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.buffers.is_free_before(self.begun))
    }
    fn outcome(&self, _: &Engine, _: bool) -> (MessageStatus, Option<Error>) {
        (MessageStatus { error: MPI_SUCCESS, ..MessageStatus::EMPTY }, None)
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("a flush of a buffer cannot be cancelled"))
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        self.raises_on.map(|comm| ErrorSource::Comm(comm).into())
    }
}

fn begin_flush(buffers: &Buffers, raises_on: Option<MPI_Comm>) -> Result<MPI_Request> {
    let begun = buffers.reserved();
    if buffers.is_free_before(begun) {
        return over();
    }
    insert_task(Box::new(Flush { buffers: buffers.clone(), begun, raises_on }))
}

/// MPI_Buffer_attach.
pub fn attach(addr: *mut c_void, size: i64) -> Result<()> {
    attach_to(engine()?.buffers(), addr, size)
}

/// MPI_Buffer_detach.
pub fn detach() -> Result<(usize, OrUndefined)> {
    detach_from(engine()?.buffers())
}

/// MPI_Buffer_flush.
pub fn flush() -> Result<()> {
    let engine = engine()?;
    engine.flush_buffer(engine.buffers())
}

/// MPI_Buffer_iflush.
pub fn iflush() -> Result<MPI_Request> {
    begin_flush(engine()?.buffers(), None)
}

/// MPI_Comm_attach_buffer.
pub fn attach_to_comm(comm: &Comm, addr: *mut c_void, size: i64) -> Result<()> {
    attach_to(comm.buffers(), addr, size)
}

/// MPI_Comm_detach_buffer.
pub fn detach_from_comm(comm: &Comm) -> Result<(usize, OrUndefined)> {
    detach_from(comm.buffers())
}

/// MPI_Comm_flush_buffer.
pub fn flush_comm(comm: &Comm) -> Result<()> {
    engine()?.flush_buffer(comm.buffers())
}

/// MPI_Comm_iflush_buffer.
pub fn iflush_comm(comm: &Comm) -> Result<MPI_Request> {
    begin_flush(comm.buffers(), Some(comm.handle()))
}

/// MPI_Session_attach_buffer.
pub fn attach_to_session(session: Arc<Session>, addr: *mut c_void, size: i64) -> Result<()> {
    attach_to(session.buffers(), addr, size)
}

/// MPI_Session_detach_buffer.
pub fn detach_from_session(session: Arc<Session>) -> Result<(usize, OrUndefined)> {
    detach_from(session.buffers())
}

/// MPI_Session_flush_buffer.
pub fn flush_session(session: Arc<Session>) -> Result<()> {
    engine()?.flush_buffer(session.buffers())
}

/// MPI_Session_iflush_buffer.
pub fn iflush_session(session: Arc<Session>) -> Result<MPI_Request> {
    begin_flush(session.buffers(), None)
}
