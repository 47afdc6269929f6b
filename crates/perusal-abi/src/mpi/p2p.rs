//! Point-to-point communication (MPI 5.0 §3).

use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS};
use crate::capi::args::put;
use crate::capi::messages::{recv_buf, recv_peer, run, run_of_bytes, send_buf, send_peer, set_status};
use crate::capi::process::{engine, running};
use crate::capi::requests::handle_of;
use crate::capi::types::{MPI_Comm, MPI_Count, MPI_Datatype, MPI_Request, MPI_Status};
use crate::capi::{boundary, comms, messages, told};
use crate::error::Result;
use crate::events::fast_path_is_open;
use crate::export;
use crate::p2p::Mode;
use core::ffi::{c_int, c_void};

/// The short way of a blocking send, which finds out nothing that is wrong: false, and the general way does.
///
/// # Safety
/// As MPI_Send says.
#[inline(always)]
unsafe fn send_shortly(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> bool {
    if !fast_path_is_open() || tag < 0 {
        return false;
    }
    let Some(bytes) = run_of_bytes(buf, count, datatype) else { return false };
    // SAFETY: the caller's: the communicator is not freed meanwhile, the buffer is valid.
    unsafe {
        let (Some(comm), Some(engine)) = (comms::peek(comm), running()) else { return false };
        comm.has_peer(dest) && engine.send_fast(comm.p2p(), comm, buf.cast(), bytes, dest, tag)
    }
}

/// # Safety
/// As MPI_Send says.
#[cold]
#[inline(never)]
unsafe fn send(
    function: &'static str,
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> c_int {
    // SAFETY: the caller's.
    if let Some(outcome) = unsafe { told::send(mode, buf, count, datatype, dest, tag, comm) } {
        return boundary::outcome(comm, function, outcome);
    }
    let run = || {
        boundary::enter(function)?;
        // SAFETY: the caller's: handles are not freed meanwhile, the buffer is valid.
        unsafe {
            let comm = comms::find(comm)?;
            send_peer(comm, dest, tag)?;
            engine()?.send(comm, &send_buf(buf, count, datatype)?, dest, tag, mode)
        }
    };
    boundary::outcome(comm, function, run())
}

/// The short way of starting a send: false, with nothing done, if the general way must be taken.
///
/// # Safety
/// As MPI_Isend says.
#[inline(always)]
unsafe fn isend_shortly(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> bool {
    if !fast_path_is_open() || tag < 0 || request.is_null() {
        return false;
    }
    let Some(run) = run(buf, count, datatype) else { return false };
    // SAFETY: the caller's: the communicator is not freed meanwhile, the buffer is valid.
    unsafe {
        let (Some(comm), Some(engine)) = (comms::peek(comm), running()) else { return false };
        if !comm.has_peer(dest) {
            return false;
        }
        let Some(started) = engine.isend_fast(comm, run, dest, tag) else { return false };
        request.write(started.get() as usize);
    }
    true
}

/// # Safety
/// As MPI_Isend says.
#[cold]
#[inline(never)]
unsafe fn isend(
    function: &'static str,
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> c_int {
    // SAFETY: the caller's.
    if let Some(outcome) = unsafe { told::isend(mode, buf, count, datatype, dest, tag, comm, request) } {
        return boundary::outcome(comm, function, outcome);
    }
    let run = || {
        boundary::enter(function)?;
        // SAFETY: the caller's: handles are not freed meanwhile, the buffer is valid until completion.
        unsafe {
            messages::output(request)?;
            let comm = comms::find(comm)?;
            send_peer(comm, dest, tag)?;
            let started = engine()?.isend(comm, &send_buf(buf, count, datatype)?, dest, tag, mode)?;
            put(request, handle_of(started))
        }
    };
    boundary::outcome(comm, function, run())
}

/// # Safety
/// As MPI_Send_init says.
unsafe fn send_init(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    mode: Mode,
) -> Result<()> {
    // SAFETY: the caller's: handles are not freed meanwhile, the buffer is valid whenever the request is active.
    unsafe {
        messages::output(request)?;
        let comm = comms::find(comm)?;
        send_peer(comm, dest, tag)?;
        let made = engine()?.send_init(comm, &send_buf(buf, count, datatype)?, dest, tag, mode)?;
        put(request, handle_of(made))
    }
}

/// The short way of a blocking receive: false, with nothing done, if the general way must be taken.
///
/// # Safety
/// As MPI_Recv says.
#[inline(always)]
unsafe fn recv_shortly(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> bool {
    if !fast_path_is_open() || (tag < 0 && tag != MPI_ANY_TAG) {
        return false;
    }
    let Some(room) = run_of_bytes(buf, count, datatype) else { return false };
    // SAFETY: the caller's: the communicator is not freed meanwhile, the buffer is valid.
    unsafe {
        let (Some(comm), Some(engine)) = (comms::peek(comm), running()) else { return false };
        if !comm.has_peer(source) && source != MPI_ANY_SOURCE {
            return false;
        }
        let got = engine.receive_fast(comm.p2p(), comm, buf.cast(), room, source, tag);
        let Some(got) = got else { return false };
        set_status(status, &got);
    }
    true
}

/// # Safety
/// As MPI_Recv says.
#[cold]
#[inline(never)]
unsafe fn recv(
    function: &'static str,
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> c_int {
    // SAFETY: the caller's.
    if let Some(outcome) = unsafe { told::recv(buf, count, datatype, source, tag, comm, status) } {
        return boundary::outcome(comm, function, outcome);
    }
    let run = || {
        boundary::enter(function)?;
        // SAFETY: the caller's: handles are not freed meanwhile, buffer and status are valid.
        unsafe {
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            let (got, error) = engine()?.receive(comm, &recv_buf(buf, count, datatype)?, source, tag)?;
            set_status(status, &got);
            error.map_or(Ok(()), Err)
        }
    };
    boundary::outcome(comm, function, run())
}

/// The short way of starting a receive: false, with nothing done, if the general way must be taken.
///
/// # Safety
/// As MPI_Irecv says.
#[inline(always)]
unsafe fn irecv_shortly(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> bool {
    if !fast_path_is_open() || (tag < 0 && tag != MPI_ANY_TAG) || request.is_null() {
        return false;
    }
    let Some(run) = run(buf, count, datatype) else { return false };
    // SAFETY: the caller's: the communicator is not freed meanwhile, the buffer is valid until completion.
    unsafe {
        let (Some(comm), Some(engine)) = (comms::peek(comm), running()) else { return false };
        if !comm.has_peer(source) && source != MPI_ANY_SOURCE {
            return false;
        }
        let Some(started) = engine.irecv_fast(comm, run, source, tag) else { return false };
        request.write(started.get() as usize);
    }
    true
}

/// # Safety
/// As MPI_Irecv says.
#[cold]
#[inline(never)]
unsafe fn irecv(
    function: &'static str,
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> c_int {
    // SAFETY: the caller's.
    if let Some(outcome) = unsafe { told::irecv(buf, count, datatype, source, tag, comm, request) } {
        return boundary::outcome(comm, function, outcome);
    }
    let run = || {
        boundary::enter(function)?;
        // SAFETY: the caller's: handles are not freed meanwhile, the buffer is valid until completion.
        unsafe {
            messages::output(request)?;
            let comm = comms::find(comm)?;
            recv_peer(comm, source, tag)?;
            put(request, handle_of(engine()?.irecv(comm, &recv_buf(buf, count, datatype)?, source, tag)?))
        }
    };
    boundary::outcome(comm, function, run())
}

/// # Safety
/// As MPI_Recv_init says.
unsafe fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result<()> {
    // SAFETY: the caller's: handles are not freed meanwhile, the buffer is valid whenever the request is active.
    unsafe {
        messages::output(request)?;
        let comm = comms::find(comm)?;
        recv_peer(comm, source, tag)?;
        put(request, handle_of(engine()?.recv_init(comm, &recv_buf(buf, count, datatype)?, source, tag)?))
    }
}

/// The eight functions of a send mode pair: each name with `int` and with `MPI_Count`.
macro_rules! send_modes {
    ($mode:expr, $section:literal,
     $(fn $send:ident, fn $send_c:ident, fn $isend:ident, fn $isend_c:ident, fn $init:ident, fn $init_c:ident)?) => { $(
        export! {
            #[doc = $section]
            fn $send(
                buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
            ) -> c_int {
                // SAFETY: the program's arguments.
                unsafe {
                    if matches!($mode, Mode::Standard | Mode::Ready)
                        && send_shortly(buf, i64::from(count), datatype, dest, tag, comm)
                    {
                        return MPI_SUCCESS;
                    }
                    send(stringify!($send), $mode, buf, i64::from(count), datatype, dest, tag, comm)
                }
            }
            #[doc = $section]
            fn $send_c(
                buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
            ) -> c_int {
                // SAFETY: the program's arguments.
                unsafe {
                    if matches!($mode, Mode::Standard | Mode::Ready)
                        && send_shortly(buf, count, datatype, dest, tag, comm)
                    {
                        return MPI_SUCCESS;
                    }
                    send(stringify!($send_c), $mode, buf, count, datatype, dest, tag, comm)
                }
            }
            #[doc = $section]
            fn $isend(
                buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
                request: *mut MPI_Request,
            ) -> c_int {
                // SAFETY: the program's arguments.
                unsafe {
                    if matches!($mode, Mode::Standard | Mode::Ready)
                        && isend_shortly(buf, i64::from(count), datatype, dest, tag, comm, request)
                    {
                        return MPI_SUCCESS;
                    }
                    isend(stringify!($isend), $mode, buf, i64::from(count), datatype, dest, tag, comm, request)
                }
            }
            #[doc = $section]
            fn $isend_c(
                buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
                request: *mut MPI_Request,
            ) -> c_int {
                // SAFETY: the program's arguments.
                unsafe {
                    if matches!($mode, Mode::Standard | Mode::Ready)
                        && isend_shortly(buf, count, datatype, dest, tag, comm, request)
                    {
                        return MPI_SUCCESS;
                    }
                    isend(stringify!($isend_c), $mode, buf, count, datatype, dest, tag, comm, request)
                }
            }
            #[doc = $section]
            fn $init(
                buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
                request: *mut MPI_Request,
            ) raises(comm) {
                // SAFETY: the program's arguments.
                unsafe { send_init(buf, i64::from(count), datatype, dest, tag, comm, request, $mode) }
            }
            #[doc = $section]
            fn $init_c(
                buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
                request: *mut MPI_Request,
            ) raises(comm) {
                // SAFETY: the program's arguments.
                unsafe { send_init(buf, count, datatype, dest, tag, comm, request, $mode) }
            }
        }
    )? };
}

#[rustfmt::skip]
send_modes! { Mode::Standard, "MPI 5.0 §3.2.1, §3.7.2, §3.9.",
    fn MPI_Send,
    fn MPI_Send_c,
    fn MPI_Isend,
    fn MPI_Isend_c,
    fn MPI_Send_init,
    fn MPI_Send_init_c
}
#[rustfmt::skip]
send_modes! { Mode::Buffered, "MPI 5.0 §3.4, §3.6.",
    fn MPI_Bsend,
    fn MPI_Bsend_c,
    fn MPI_Ibsend,
    fn MPI_Ibsend_c,
    fn MPI_Bsend_init,
    fn MPI_Bsend_init_c
}
#[rustfmt::skip]
send_modes! { Mode::Synchronous, "MPI 5.0 §3.4.",
    fn MPI_Ssend,
    fn MPI_Ssend_c,
    fn MPI_Issend,
    fn MPI_Issend_c,
    fn MPI_Ssend_init,
    fn MPI_Ssend_init_c
}
#[rustfmt::skip]
send_modes! { Mode::Ready, "MPI 5.0 §3.4.",
    fn MPI_Rsend,
    fn MPI_Rsend_c,
    fn MPI_Irsend,
    fn MPI_Irsend_c,
    fn MPI_Rsend_init,
    fn MPI_Rsend_init_c
}

export! {
    /// MPI 5.0 §3.2.4.
    fn MPI_Recv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if recv_shortly(buf, i64::from(count), datatype, source, tag, comm, status) {
                return MPI_SUCCESS;
            }
            recv("MPI_Recv", buf, i64::from(count), datatype, source, tag, comm, status)
        }
    }
    /// MPI 5.0 §3.2.4.
    fn MPI_Recv_c(
        buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if recv_shortly(buf, count, datatype, source, tag, comm, status) {
                return MPI_SUCCESS;
            }
            recv("MPI_Recv_c", buf, count, datatype, source, tag, comm, status)
        }
    }
    /// MPI 5.0 §3.7.2.
    fn MPI_Irecv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if irecv_shortly(buf, i64::from(count), datatype, source, tag, comm, request) {
                return MPI_SUCCESS;
            }
            irecv("MPI_Irecv", buf, i64::from(count), datatype, source, tag, comm, request)
        }
    }
    /// MPI 5.0 §3.7.2.
    fn MPI_Irecv_c(
        buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if irecv_shortly(buf, count, datatype, source, tag, comm, request) {
                return MPI_SUCCESS;
            }
            irecv("MPI_Irecv_c", buf, count, datatype, source, tag, comm, request)
        }
    }
    /// MPI 5.0 §3.9.
    fn MPI_Recv_init(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe { recv_init(buf, i64::from(count), datatype, source, tag, comm, request) }
    }
    /// MPI 5.0 §3.9.
    fn MPI_Recv_init_c(
        buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) raises(comm) {
        // SAFETY: the program's arguments.
        unsafe { recv_init(buf, count, datatype, source, tag, comm, request) }
    }
}
