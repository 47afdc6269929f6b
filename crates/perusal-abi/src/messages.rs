//! The arguments of messages: checked, and as the engine wants them.

use super::datatypes;
use super::types::MPI_Status;
use crate::abi;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::p2p::{RecvBuf, Run, SendBuf, Status};
use core::ffi::{c_int, c_void};

/// Checks destination and tag of a send.
///
/// # Errors
/// [`Error::Rank`], [`Error::Tag`].
#[inline(always)]
pub fn send_peer(comm: &Comm, dest: c_int, tag: c_int) -> Result<()> {
    if tag < 0 {
        return Err(Error::Tag(tag));
    }
    if dest == abi::MPI_PROC_NULL { Ok(()) } else { comm.check_peer(dest) }
}

/// Checks source and tag of a receive or probe.
///
/// # Errors
/// [`Error::Rank`], [`Error::Tag`].
#[inline(always)]
pub fn recv_peer(comm: &Comm, source: c_int, tag: c_int) -> Result<()> {
    if tag < 0 && tag != abi::MPI_ANY_TAG {
        return Err(Error::Tag(tag));
    }
    if matches!(source, abi::MPI_ANY_SOURCE | abi::MPI_PROC_NULL) { Ok(()) } else { comm.check_peer(source) }
}

/// Whether an address is none of the ABI's own: NULL (MPI_BOTTOM), MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC.
#[inline(always)]
#[must_use]
pub fn is_memory(addr: usize) -> bool {
    addr > abi::MPI_BUFFER_AUTOMATIC
}

/// Number of elements, and that there is something to have them in. A derived type may hold absolute addresses, so
/// that MPI_BOTTOM, which is NULL, is its buffer.
#[inline(always)]
fn elements(addr: usize, count: i64, datatype: usize) -> Result<usize> {
    let n = usize::try_from(count).map_err(|_| Error::Count(count))?;
    if !is_memory(addr) && n > 0 && datatypes::contiguous_size(datatype).is_some() {
        return Err(Error::Buffer(if addr == abi::MPI_IN_PLACE {
            "it is MPI_IN_PLACE, which only collective operations know"
        } else {
            "it is NULL, and the count is not 0"
        }));
    }
    Ok(n)
}

/// Bytes of a buffer of a predefined type without gaps; `None` for all others and for arguments that are wrong, which
/// [`send_buf`] and [`recv_buf`] tell apart.
#[inline(always)]
#[must_use]
pub fn run_of_bytes(addr: *const c_void, count: i64, datatype: usize) -> Option<usize> {
    let size = datatypes::contiguous_size(datatype)?;
    if count < 0 || (!is_memory(addr as usize) && count > 0) { None } else { Some(count as usize * size) }
}

/// As [`run_of_bytes`], with what a request must know beside.
#[inline(always)]
#[must_use]
pub fn run(addr: *const c_void, count: i64, datatype: usize) -> Option<Run> {
    let bytes = run_of_bytes(addr, count, datatype)?;
    Some(Run { addr: addr.cast_mut().cast(), bytes, count: count as usize, handle: datatype })
}

/// A buffer to send from.
///
/// # Safety
/// The datatype is not freed while the result is in use.
///
/// # Errors
/// [`Error::Count`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub unsafe fn send_buf<'a>(addr: *const c_void, count: i64, datatype: usize) -> Result<SendBuf<'a>> {
    let count = elements(addr as usize, count, datatype)?;
    // SAFETY: the caller's.
    let found = unsafe { datatypes::find(datatype) }?;
    Ok(SendBuf { addr: addr.cast(), count, datatype: found, handle: datatype })
}

/// A buffer to receive into.
///
/// # Safety
/// The datatype is not freed while the result is in use.
///
/// # Errors
/// [`Error::Count`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub unsafe fn recv_buf<'a>(addr: *mut c_void, count: i64, datatype: usize) -> Result<RecvBuf<'a>> {
    let count = elements(addr as usize, count, datatype)?;
    // SAFETY: the caller's.
    let found = unsafe { datatypes::find(datatype) }?;
    Ok(RecvBuf { addr: addr.cast(), count, datatype: found, handle: datatype })
}

/// That an output argument is there, asked before anything is begun.
///
/// # Errors
/// [`Error::Arg`] if it is NULL.
#[inline(always)]
pub fn output<T>(to: *mut T) -> Result<()> {
    if to.is_null() { Err(Error::Arg("an output argument is NULL")) } else { Ok(()) }
}

/// Fills a status of a call that has one: MPI_ERROR stays as it is (MPI 5.0 §3.2.5). MPI_STATUS_IGNORE is fine.
///
/// # Safety
/// `to` is MPI_STATUS_IGNORE or may be written.
#[inline(always)]
pub unsafe fn set_status(to: *mut MPI_Status, status: &Status) {
    // SAFETY: the caller's, when it is not MPI_STATUS_IGNORE, which is NULL.
    if let Some(to) = unsafe { to.as_mut() } {
        to.source = status.source;
        to.tag = status.tag;
        to.set_bytes(status.bytes);
        to.set_cancelled(status.cancelled);
    }
}

/// Fills one status of a call that has several: MPI_ERROR too. `to` may be MPI_STATUSES_IGNORE.
///
/// # Safety
/// `to` is MPI_STATUSES_IGNORE or an array with an element `at`.
pub unsafe fn set_status_of(to: *mut MPI_Status, at: usize, status: &Status) {
    if !to.is_null() {
        let to = to.wrapping_add(at);
        // SAFETY: the caller's.
        unsafe {
            set_status(to, status);
            (*to).error = status.error;
        }
    }
}
