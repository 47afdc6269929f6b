//! The arguments of messages: checked, and as the engine wants them.

use super::arguments::Buffer;
use super::datatypes;
use crate::abi;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::p2p::{RecvBuf, Run, SendBuf};
use core::ffi::c_int;

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
fn elements(buffer: &Buffer<'_>) -> Result<usize> {
    let (addr, count) = (buffer.addr.addr(), buffer.count);
    let n = usize::try_from(count).map_err(|_| Error::Count(count))?;
    if !is_memory(addr) && n > 0 && datatypes::contiguous_size(buffer.datatype).is_some() {
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
pub fn run_of_bytes(buffer: Buffer<'_>) -> Option<usize> {
    let size = datatypes::contiguous_size(buffer.datatype)?;
    let (addr, count) = (buffer.addr.addr(), buffer.count);
    if count < 0 || (!is_memory(addr) && count > 0) { None } else { Some(count as usize * size) }
}

/// As [`run_of_bytes`], with what a request must know besides.
#[inline(always)]
#[must_use]
pub fn run(buffer: Buffer<'_>) -> Option<Run> {
    let bytes = run_of_bytes(buffer)?;
    Some(Run { addr: buffer.addr.cast(), bytes, count: buffer.count as usize, handle: buffer.datatype })
}

#[inline(always)]
fn datatype<'a>(buffer: &Buffer<'a>) -> Result<&'a Datatype> {
    // SAFETY: argument rule 2: nobody frees the type during the call, which is `'a`.
    unsafe { datatypes::find(buffer.datatype) }
}

/// A buffer to send from.
///
/// # Errors
/// [`Error::Count`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub fn send_buf(buffer: Buffer<'_>) -> Result<SendBuf<'_>> {
    let (count, datatype) = (elements(&buffer)?, datatype(&buffer)?);
    Ok(SendBuf { addr: buffer.addr.cast_const().cast(), count, datatype, handle: buffer.datatype })
}

/// A buffer to receive into.
///
/// # Errors
/// [`Error::Count`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub fn recv_buf(buffer: Buffer<'_>) -> Result<RecvBuf<'_>> {
    let (count, datatype) = (elements(&buffer)?, datatype(&buffer)?);
    Ok(RecvBuf { addr: buffer.addr.cast(), count, datatype, handle: buffer.datatype })
}
