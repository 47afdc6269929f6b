//! Probe, matched probe and matched receive (MPI 5.0 §3.8).

use crate::abi::*;
use crate::arguments::{Buffer, InOut, Out, StatusOut};
use crate::boundary::{self, RaisedOn};
use crate::check;
use crate::comm::Comm;
use crate::comms;
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::messages::{recv_buf, recv_peer};
use crate::p2p::{Message, MessageStatus, Request};
use crate::process::engine;
use crate::requests::handle_of;
use crate::sync::Mutex;
use crate::types::{MPI_Message, MPI_Request};
use core::ffi::c_int;
use std::sync::{Arc, PoisonError};

/// Messages that matched probes have found; a receive takes the message out.
static MESSAGES: HandleTable<Mutex<Option<Message>>> = HandleTable::new(HandleKind::Message);

fn keep(message: Message) -> Result<MPI_Message> {
    let handle = MESSAGES.insert(Arc::new(Mutex::new(Some(message))))?;
    if check::is_on() {
        check::made(check::ObjectKind::Message, handle);
    }
    Ok(handle)
}

/// The handles of messages that no receive has taken.
pub fn made() -> Vec<MPI_Message> {
    MESSAGES.handles()
}

const NONE: Error = Error::Request("no such message, or it has been received");

/// Starts a matched receive. The message keeps its handle where no request is left.
fn start(buf: Buffer<'_>, message: InOut<'_, MPI_Message>) -> Result<Request> {
    let handle = message.get();
    let comm = comm_of(handle);
    let started = (|| {
        let buf = recv_buf(if handle == MPI_MESSAGE_NO_PROC { buf.with_peer(MPI_PROC_NULL) } else { buf })?;
        if handle == MPI_MESSAGE_NO_PROC {
            check::claimed(handle);
            // The handle does not say on which communicator the probe was: events have the world's.
            let world = comms::world()?;
            // SAFETY: argument rule 3: the buffer has room for its elements until the receive is complete,
            // and from no rank nothing comes.
            let started = unsafe { engine()?.irecv(world, &buf, MPI_PROC_NULL, MPI_ANY_TAG) }?;
            message.set(MPI_MESSAGE_NULL);
            return Ok(started);
        }
        let slot = MESSAGES.get(handle).ok_or(NONE)?;
        let mut found = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            // Another thread has it: the handle may be another message's by now.
            return Err(NONE);
        }
        // Before the receive, which is compared with what the probe has found.
        check::claimed(handle);
        // SAFETY: argument rule 3: the buffer has room for its elements until the receive is complete.
        let started = unsafe { engine()?.imrecv(&buf, &mut found) };
        if found.is_none() {
            MESSAGES.remove(handle);
            message.set(MPI_MESSAGE_NULL);
        }
        started
    })();
    started.inspect_err(|_| boundary::blame(comm))
}

/// The communicator of a message that is there: errors of its receive are raised on it (MPI 5.0 §9.3).
fn comm_of(handle: MPI_Message) -> Option<RaisedOn> {
    let slot = MESSAGES.get(handle)?;
    let message = slot.lock().unwrap_or_else(PoisonError::into_inner);
    message.as_ref().map(|message| message.raises_on().into())
}

/// MPI_Mrecv.
pub fn mrecv(buf: Buffer<'_>, message: InOut<'_, MPI_Message>, status: StatusOut<'_>) -> Result<()> {
    let request = start(buf, message)?;
    let engine = engine()?;
    engine.wait_complete(request)?;
    if let Some(comm) = engine.failed_on(request) {
        boundary::blame(Some(comm.into()));
    }
    let (got, error) = engine.take_outcome(request);
    status.set(&got);
    error.map_or(Ok(()), Err)
}

/// MPI_Imrecv.
pub fn imrecv(buf: Buffer<'_>, message: InOut<'_, MPI_Message>) -> Result<MPI_Request> {
    start(buf, message).map(handle_of)
}

/// MPI_Iprobe.
pub fn iprobe(
    source: c_int,
    tag: c_int,
    comm: &Comm,
    flag: Out<'_, c_int>,
    status: StatusOut<'_>,
) -> Result<()> {
    recv_peer(comm, source, tag)?;
    let found = engine()?.iprobe(comm, source, tag)?;
    if let Some(found) = &found {
        status.set(found);
    }
    flag.put(found.is_some())
}

/// MPI_Probe.
pub fn probe(source: c_int, tag: c_int, comm: &Comm, status: StatusOut<'_>) -> Result<()> {
    recv_peer(comm, source, tag)?;
    status.set(&engine()?.probe(comm, source, tag)?);
    Ok(())
}

/// MPI_Improbe.
pub fn improbe(
    source: c_int,
    tag: c_int,
    comm: &Comm,
    flag: Out<'_, c_int>,
    message: Out<'_, MPI_Message>,
    status: StatusOut<'_>,
) -> Result<()> {
    recv_peer(comm, source, tag)?;
    if source == MPI_PROC_NULL {
        status.set(&MessageStatus::PROC_NULL);
        message.set(MPI_MESSAGE_NO_PROC);
        return flag.put(true);
    }
    let Some(found) = engine()?.improbe(comm, source, tag)? else { return flag.put(false) };
    status.set(&found.status());
    message.set(keep(found)?);
    flag.put(true)
}

/// MPI_Mprobe.
pub fn mprobe(source: c_int, tag: c_int, comm: &Comm, status: StatusOut<'_>) -> Result<MPI_Message> {
    recv_peer(comm, source, tag)?;
    if source == MPI_PROC_NULL {
        status.set(&MessageStatus::PROC_NULL);
        return Ok(MPI_MESSAGE_NO_PROC);
    }
    let found = engine()?.mprobe(comm, source, tag)?;
    status.set(&found.status());
    keep(found)
}
