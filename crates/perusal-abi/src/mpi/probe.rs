//! Probe, matched probe and matched receive (MPI 5.0 §3.8).

use crate::abi::*;
use crate::capi::args::put;
use crate::capi::comms;
use crate::capi::messages::{output, recv_buf, recv_peer, set_status};
use crate::capi::process::engine;
use crate::capi::requests::handle_of;
use crate::capi::types::{MPI_Comm, MPI_Count, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status};
use crate::error::{Error, Result};
use crate::export;
use crate::handles::HandleTable;
use crate::p2p::{Message, Request, Status};
use crate::sync::Mutex;
use core::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError};

/// Messages that matched probes have found; a receive takes the message out.
static MESSAGES: HandleTable<Mutex<Option<Message>>> = HandleTable::new();

fn keep(message: Message) -> Result<MPI_Message> {
    let handle = MESSAGES.insert(Arc::new(Mutex::new(Some(message))));
    handle.ok_or_else(|| Error::NoMem("no message handle is left".into()))
}

/// What a matched receive does with its message handle: `None` for MPI_MESSAGE_NO_PROC.
fn claim(handle: MPI_Message) -> Result<Option<Message>> {
    const NONE: Error = Error::Request("no such message, or it has been received");
    if handle == MPI_MESSAGE_NO_PROC {
        return Ok(None);
    }
    let slot = MESSAGES.remove(handle).ok_or(NONE)?;
    let message = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    message.ok_or(NONE).map(Some)
}

/// Starts a matched receive: `None` if there is nothing to receive.
///
/// # Safety
/// The message handle may be read and written; the buffer is valid until completion.
unsafe fn start(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
) -> Result<Option<Request>> {
    output(message)?;
    // SAFETY: the caller's.
    unsafe {
        let buf = recv_buf(buf, count, datatype)?;
        let claimed = claim(message.read())?;
        put(message, MPI_MESSAGE_NULL)?;
        claimed.map(|message| engine()?.imrecv(&buf, message)).transpose()
    }
}

/// # Safety
/// As for [`start`]; `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn mrecv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Result<()> {
    // SAFETY: the caller's; we wait for it.
    let Some(request) = unsafe { start(buf, count, datatype, message) }? else {
        // SAFETY: the caller's.
        unsafe { set_status(status, &Status::PROC_NULL) };
        return Ok(());
    };
    let engine = engine()?;
    engine.wait_complete(request)?;
    let (got, error) = engine.take_outcome(request);
    // SAFETY: the caller's.
    unsafe { set_status(status, &got) };
    error.map_or(Ok(()), Err)
}

/// # Safety
/// As for [`start`]; `request` may be written.
unsafe fn imrecv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Result<()> {
    output(request)?;
    // SAFETY: the caller's.
    let started = unsafe { start(buf, count, datatype, message) }?;
    let started = match started {
        Some(started) => started,
        None => engine()?.receive_nothing(comms::world()?)?,
    };
    // SAFETY: the caller's.
    unsafe { put(request, handle_of(started)) }
}

export! {
    /// MPI 5.0 §3.8.1.
    fn MPI_Iprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status,
    ) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe {
            output(flag)?;
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            let found = engine()?.iprobe(comm, source, tag)?;
            if let Some(found) = &found {
                set_status(status, found);
            }
            put(flag, c_int::from(found.is_some()))
        }
    }
    /// MPI 5.0 §3.8.1.
    fn MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe {
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            set_status(status, &engine()?.probe(comm, source, tag)?);
        }
        Ok(())
    }
    /// MPI 5.0 §3.8.2.
    fn MPI_Improbe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, message: *mut MPI_Message, status: *mut MPI_Status,
    ) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe {
            output(flag)?;
            output(message)?;
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            if source == MPI_PROC_NULL {
                set_status(status, &Status::PROC_NULL);
                put(message, MPI_MESSAGE_NO_PROC)?;
                return put(flag, 1);
            }
            let Some(found) = engine()?.improbe(comm, source, tag)? else { return put(flag, 0) };
            set_status(status, &found.status());
            put(message, keep(found)?)?;
            put(flag, 1)
        }
    }
    /// MPI 5.0 §3.8.2.
    fn MPI_Mprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message, status: *mut MPI_Status,
    ) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe {
            output(message)?;
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            if source == MPI_PROC_NULL {
                set_status(status, &Status::PROC_NULL);
                return put(message, MPI_MESSAGE_NO_PROC);
            }
            let found = engine()?.mprobe(comm, source, tag)?;
            set_status(status, &found.status());
            put(message, keep(found)?)
        }
    }
    /// MPI 5.0 §3.8.3.
    fn MPI_Mrecv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, message: *mut MPI_Message, status: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { mrecv(buf, i64::from(count), datatype, message, status) }
    }
    /// MPI 5.0 §3.8.3.
    fn MPI_Mrecv_c(
        buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, message: *mut MPI_Message, status: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { mrecv(buf, count, datatype, message, status) }
    }
    /// MPI 5.0 §3.8.3.
    fn MPI_Imrecv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, message: *mut MPI_Message, request: *mut MPI_Request,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { imrecv(buf, i64::from(count), datatype, message, request) }
    }
    /// MPI 5.0 §3.8.3.
    fn MPI_Imrecv_c(
        buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, message: *mut MPI_Message, request: *mut MPI_Request,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { imrecv(buf, count, datatype, message, request) }
    }
}
