//! Combined send and receive, buffers of buffered sends (MPI 5.0 §3.10, §3.6).

use crate::abi::*;
use crate::capi::args::put;
use crate::capi::comms;
use crate::capi::messages::{output, recv_buf, recv_peer, send_buf, send_peer, set_status};
use crate::capi::process::engine;
use crate::capi::requests::{Task, insert_task};
use crate::capi::types::{MPI_Comm, MPI_Count, MPI_Datatype, MPI_Request, MPI_Status};
use crate::comm::lock;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::export;
use crate::p2p::{Mode, Request, Status};
use crate::sync::Mutex;
use core::ffi::{c_int, c_void};

/// One half of an exchange: a buffer and who is at the other end.
struct End {
    addr: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    peer: c_int,
    tag: c_int,
}

/// Starts both halves.
///
/// # Safety
/// Handles are not freed meanwhile; both buffers are valid until both requests are complete, and do not overlap.
unsafe fn start(send: &End, recv: &End, comm: MPI_Comm) -> Result<(Request, Request)> {
    // SAFETY: the caller's.
    unsafe {
        let comm = comms::find(comm)?;
        send_peer(comm, send.peer, send.tag)?;
        recv_peer(comm, recv.peer, recv.tag)?;
        let from = send_buf(send.addr, send.count, send.datatype)?;
        let to = recv_buf(recv.addr, recv.count, recv.datatype)?;
        let received = engine()?.irecv(comm, &to, recv.peer, recv.tag)?;
        let sent = engine()?.isend(comm, &from, send.peer, send.tag, Mode::Standard)?;
        Ok((sent, received))
    }
}

/// # Safety
/// As for [`start`]; `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn exchange(send: &End, recv: &End, comm: MPI_Comm, status: *mut MPI_Status) -> Result<()> {
    // SAFETY: the caller's; we wait for both.
    let (sent, received) = unsafe { start(send, recv, comm) }?;
    let engine = engine()?;
    engine.wait_complete(sent)?;
    engine.wait_complete(received)?;
    let (_, failed) = engine.take_outcome(sent);
    let (got, error) = engine.take_outcome(received);
    // SAFETY: the caller's.
    unsafe { set_status(status, &got) };
    error.or(failed).map_or(Ok(()), Err)
}

/// What is sent by a replacing exchange, packed, so that the buffer can be received into at once.
///
/// # Safety
/// The buffer holds `count` elements of the datatype.
unsafe fn packed(addr: *const c_void, count: i64, datatype: MPI_Datatype) -> Result<Vec<u8>> {
    // SAFETY: the caller's.
    let buf = unsafe { send_buf(addr, count, datatype) }?;
    let mut bytes = vec![0; buf.datatype.size() * buf.count];
    // SAFETY: the caller's; the vector is as long as the data.
    unsafe { buf.datatype.pack(buf.count, buf.addr, 0, &mut bytes) };
    Ok(bytes)
}

/// The sending half of a replacing exchange.
fn of_bytes(bytes: &mut [u8], peer: c_int, tag: c_int) -> End {
    End { addr: bytes.as_mut_ptr().cast(), count: bytes.len() as i64, datatype: MPI_BYTE, peer, tag }
}

/// An exchange under way: two messages, one request.
struct Exchange {
    sent: Request,
    received: Request,
    /// A replacing exchange's copy of what is sent.
    bytes: Mutex<Vec<u8>>,
}

impl Task for Exchange {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.sent.is_over() && self.received.is_over())
    }
    fn outcome(&self, engine: &Engine, last: bool) -> (Status, Option<Error>) {
        let of = |request| if last { engine.take_outcome(request) } else { engine.look_at_outcome(request) };
        let (_, failed) = of(self.sent);
        let (status, error) = of(self.received);
        (status, error.or(failed))
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        // A combined operation cannot be taken back in half: the attempt is allowed and has no effect.
        Ok(())
    }
    fn free(&self, engine: &Engine) {
        if !self.sent.is_over() {
            // The message may still be read from it; a user who does not wait cannot tell when it has been.
            core::mem::forget(core::mem::take(&mut *lock(&self.bytes)));
        }
        engine.free_request(self.sent);
        engine.free_request(self.received);
    }
}

/// # Safety
/// As for [`start`], until the request is complete.
unsafe fn start_task(
    send: &End,
    recv: &End,
    comm: MPI_Comm,
    bytes: Vec<u8>,
    request: *mut MPI_Request,
) -> Result<()> {
    output(request)?;
    // SAFETY: the caller's.
    let (sent, received) = unsafe { start(send, recv, comm) }?;
    let handle = insert_task(Box::new(Exchange { sent, received, bytes: Mutex::new(bytes) }))?;
    // SAFETY: an output argument.
    unsafe { put(request, handle) }
}

macro_rules! exchanges {
    ($count:ty, fn $both:ident, fn $replace:ident, fn $iboth:ident, fn $ireplace:ident) => {
        export! {
            /// MPI 5.0 §3.10.
            fn $both(
                sendbuf: *const c_void, sendcount: $count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
                recvbuf: *mut c_void, recvcount: $count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
                comm: MPI_Comm, status: *mut MPI_Status,
            ) raises(comm) {
                let send = End {
                    addr: sendbuf.cast_mut(), count: i64::from(sendcount), datatype: sendtype, peer: dest, tag: sendtag,
                };
                let recv = End {
                    addr: recvbuf, count: i64::from(recvcount), datatype: recvtype, peer: source, tag: recvtag,
                };
                // SAFETY: the program's arguments.
                unsafe { exchange(&send, &recv, comm, status) }
            }
            /// MPI 5.0 §3.10.
            fn $replace(
                buf: *mut c_void, count: $count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
                recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
            ) raises(comm) {
                let recv = End { addr: buf, count: i64::from(count), datatype, peer: source, tag: recvtag };
                // SAFETY: the program's arguments; the copy lives until the exchange is over.
                unsafe {
                    let mut bytes = packed(buf, i64::from(count), datatype)?;
                    exchange(&of_bytes(&mut bytes, dest, sendtag), &recv, comm, status)
                }
            }
            /// MPI 5.0 §3.10.
            fn $iboth(
                sendbuf: *const c_void, sendcount: $count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
                recvbuf: *mut c_void, recvcount: $count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
                comm: MPI_Comm, request: *mut MPI_Request,
            ) raises(comm) {
                let send = End {
                    addr: sendbuf.cast_mut(), count: i64::from(sendcount), datatype: sendtype, peer: dest, tag: sendtag,
                };
                let recv = End {
                    addr: recvbuf, count: i64::from(recvcount), datatype: recvtype, peer: source, tag: recvtag,
                };
                // SAFETY: the program's arguments.
                unsafe { start_task(&send, &recv, comm, Vec::new(), request) }
            }
            /// MPI 5.0 §3.10.
            fn $ireplace(
                buf: *mut c_void, count: $count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
                recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
            ) raises(comm) {
                let recv = End { addr: buf, count: i64::from(count), datatype, peer: source, tag: recvtag };
                // SAFETY: the program's arguments; the task keeps the copy, whose bytes do not move with it.
                unsafe {
                    let mut bytes = packed(buf, i64::from(count), datatype)?;
                    let send = of_bytes(&mut bytes, dest, sendtag);
                    start_task(&send, &recv, comm, bytes, request)
                }
            }
        }
    };
}

#[rustfmt::skip]
exchanges! { c_int,
    fn MPI_Sendrecv,
    fn MPI_Sendrecv_replace,
    fn MPI_Isendrecv,
    fn MPI_Isendrecv_replace
}
#[rustfmt::skip]
exchanges! { MPI_Count,
    fn MPI_Sendrecv_c,
    fn MPI_Sendrecv_replace_c,
    fn MPI_Isendrecv_c,
    fn MPI_Isendrecv_replace_c
}

fn attach(addr: *mut c_void, size: i64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| Error::Arg("the size of the buffer is negative"))?;
    if addr as usize == MPI_BUFFER_AUTOMATIC {
        return engine()?.buffers().attach_automatic();
    }
    if addr.is_null() && size > 0 {
        return Err(Error::Buffer("it is NULL, and its size is not 0"));
    }
    engine()?.buffers().attach(addr.cast(), size)
}

/// # Safety
/// `addr` is the address of a pointer; output arguments may be written.
unsafe fn detach<T>(addr: *mut c_void, size: *mut T, fit: impl Fn(usize) -> Option<T>) -> Result<()> {
    output(addr)?;
    output(size)?;
    let (start, bytes) = engine()?.detach_buffer()?;
    let bytes = fit(bytes).ok_or(Error::TooLarge("the size of the buffer"))?;
    // SAFETY: the caller's.
    unsafe {
        put(addr.cast::<*mut u8>(), start)?;
        put(size, bytes)
    }
}

export! {
    /// MPI 5.0 §3.6.
    fn MPI_Buffer_attach(buffer: *mut c_void, size: c_int) raises(MPI_COMM_SELF) {
        attach(buffer, i64::from(size))
    }
    /// MPI 5.0 §3.6.
    fn MPI_Buffer_attach_c(buffer: *mut c_void, size: MPI_Count) raises(MPI_COMM_SELF) {
        attach(buffer, size)
    }
    /// MPI 5.0 §3.6.
    fn MPI_Buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { detach(buffer_addr, size, |bytes| c_int::try_from(bytes).ok()) }
    }
    /// MPI 5.0 §3.6.
    fn MPI_Buffer_detach_c(buffer_addr: *mut c_void, size: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: the program's arguments.
        unsafe { detach(buffer_addr, size, |bytes| MPI_Count::try_from(bytes).ok()) }
    }
    /// MPI 5.0 §3.6.
    fn MPI_Buffer_flush() raises(MPI_COMM_SELF) {
        engine()?.flush_buffer()
    }
}
