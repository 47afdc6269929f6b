//! The fast path of messages whose type the program has made. What has no gaps goes as plain bytes; of what has gaps, a
//! few bytes are packed here, and go as plain bytes, too. As on the fast path of predefined types, nothing that is
//! wrong is found out, and what is not served has done nothing.

use crate::arguments::{Buffer, CommHandle, Out, StatusOut};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::datatypes::contiguous_size;
use crate::engine::Engine;
use crate::error::Result;
use crate::events::fast_path_is_open;
use crate::messages::{contents, is_memory};
use crate::mpi::p2p::is_plain;
use crate::p2p::{RecvBuf, RecvMemory, Run};
use crate::process::running;
use crate::requests::handle_of;
use crate::types::MPI_Request;
use core::ffi::c_int;

/// Most bytes that are packed apart from the ring: one copy more costs less than a request.
const PACKED: usize = 1024;
/// The same of few, for which less memory is made ready.
const PACKED_FEW: usize = 128;

/// Elements of a type that is not predefined.
struct Elements<'a> {
    addr: *mut u8,
    count: usize,
    datatype: &'a Datatype,
    bytes: usize,
}

impl<'a> Elements<'a> {
    fn of(buf: &Buffer<'a>) -> Option<Self> {
        if !fast_path_is_open() || contiguous_size(buf.datatype).is_some() || !is_memory(buf.addr.addr()) {
            return None;
        }
        let (count, datatype) = contents(buf).ok()?;
        let bytes = datatype.bytes_of(count).ok().filter(|bytes| *bytes > 0)?;
        Some(Self { addr: buf.addr.cast(), count, datatype, bytes })
    }

    /// Where they lie, if they are one run of bytes.
    fn run(&self) -> Option<*mut u8> {
        self.datatype.is_contiguous().then(|| self.addr.wrapping_offset(self.datatype.true_lb()))
    }
}

fn ends(comm: CommHandle<'_>) -> Option<(&Comm, &'static Engine)> {
    Some((comm.peek_complete()?, running()?))
}

/// Sends elements as bytes, whose address and number `send` is given.
fn send_bytes<R>(buf: Buffer<'_>, send: impl FnOnce(*mut u8, usize) -> Option<R>) -> Option<R> {
    let elements = Elements::of(&buf)?;
    if let Some(run) = elements.run() {
        return send(run, elements.bytes);
    }
    let (mut few, mut many) = ([0; PACKED_FEW], None);
    let packed = &mut room(&mut few, &mut many, elements.bytes)?[..elements.bytes];
    // SAFETY: argument rule 3: the buffer holds its elements.
    unsafe { elements.datatype.pack(elements.count, elements.addr, 0, packed) };
    send(packed.as_mut_ptr(), packed.len())
}

/// Room for so many bytes that are packed, if they may be.
#[inline(always)]
fn room<'a>(
    few: &'a mut [u8; PACKED_FEW],
    many: &'a mut Option<[u8; PACKED]>,
    bytes: usize,
) -> Option<&'a mut [u8]> {
    if bytes <= PACKED_FEW {
        Some(few)
    } else {
        (bytes <= PACKED).then(|| many.insert([0; PACKED]).as_mut_slice())
    }
}

/// A blocking send; whether it was served.
pub fn send(buf: Buffer<'_>, dest: c_int, tag: c_int, comm: CommHandle<'_>) -> bool {
    let send = |addr: *mut u8, bytes| {
        let (comm, engine) = ends(comm)?;
        // SAFETY: argument rule 3: the buffer holds the bytes of its elements, or they are packed.
        let sent = tag >= 0
            && comm.has_peer(dest)
            && unsafe { engine.send_fast::<false>(comm.p2p(), comm, addr, bytes, dest, tag) };
        sent.then_some(())
    };
    send_bytes(buf, send).is_some()
}

/// A nonblocking send; whether it was served. The data have left the buffer then.
pub fn isend(
    buf: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<&Out<'_, MPI_Request>>,
) -> bool {
    let (Some(request), true) = (request, tag >= 0) else { return false };
    let send = |addr: *mut u8, bytes| {
        let (comm, engine) = ends(comm)?;
        let run = Run { addr, bytes, count: buf.count as usize, handle: buf.datatype };
        // SAFETY: argument rule 3: the buffer holds the bytes of its elements, or they are packed;
        // they are read before this returns.
        if comm.has_peer(dest) { unsafe { engine.isend_fast(comm, run, dest, tag) } } else { None }
    };
    let started = send_bytes(buf, send);
    started.map(|started| request.set(started.get() as usize)).is_some()
}

/// A blocking receive; whether it was served.
pub fn recv(buf: Buffer<'_>, source: c_int, tag: c_int, comm: CommHandle<'_>, status: StatusOut<'_>) -> bool {
    let receive = || {
        let elements = Elements::of(&buf)?;
        let (comm, engine) = ends(comm).filter(|(comm, _)| is_plain(source, tag, comm))?;
        let (mut few, mut many) = ([0; PACKED_FEW], None);
        let (to, packed) = match elements.run() {
            Some(run) => (run, None),
            None => {
                let packed = room(&mut few, &mut many, elements.bytes)?;
                (packed.as_mut_ptr(), Some(packed))
            }
        };
        // SAFETY: argument rule 3: the buffer has room for the bytes of its elements, or there is as much room here.
        let room = unsafe { RecvMemory::new(to, elements.bytes) };
        let got = engine.receive_fast(comm.p2p(), comm, room, source, tag)?;
        if let Some(packed) = packed {
            let came = &packed[..got.bytes as usize];
            // SAFETY: argument rule 3: the buffer has room for its elements, and `packed` is none of it.
            unsafe { elements.datatype.unpack(elements.count, elements.addr, 0, came) };
        }
        status.set(&got);
        Some(())
    };
    receive().is_some()
}

/// A nonblocking receive; `None`: it was not served.
pub fn irecv(
    buf: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: CommHandle<'_>,
    request: Option<&Out<'_, MPI_Request>>,
) -> Option<Result<()>> {
    let (request, elements) = (request?, Elements::of(&buf)?);
    let (comm, engine) = ends(comm).filter(|(comm, _)| is_plain(source, tag, comm))?;
    let Elements { addr, count, datatype, bytes } = elements;
    if elements.run() == Some(addr) {
        let run = Run { addr, bytes, count, handle: buf.datatype };
        // SAFETY: argument rule 3: the buffer has room for its elements until the request is complete.
        let started = unsafe { engine.irecv_fast(comm, run, source, tag) }?;
        request.set(started.get() as usize);
        return Some(Ok(()));
    }
    let room = RecvBuf::new(addr, count, datatype, buf.datatype).ok()?;
    // SAFETY: argument rule 3: the buffer has room for its elements until the request is complete.
    let started = unsafe { engine.irecv(comm, &room, source, tag) };
    Some(started.map(|started| request.set(handle_of(started))))
}
