//! The arguments of messages: checked, and as the engine wants them.

use super::arguments::{Buffer, Count};
use super::datatypes;
use crate::abi;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::limits::PAGE;
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

/// Checks that data of this type can lie at `addr`. Only data with absolute addresses lies at MPI_BOTTOM, which is
/// NULL: none of it is in the first page, or in the kernel's half of the address space.
///
/// # Errors
/// [`Error::Buffer`] if it cannot.
pub fn place(addr: usize, count: usize, datatype: &Datatype) -> Result<()> {
    let first = addr.wrapping_add_signed(datatype.true_lb());
    if count == 0 || datatype.size() == 0 || (is_memory(addr) || addr == 0) && PLACES.contains(&first) {
        return Ok(());
    }
    Err(Error::Buffer(match addr {
        abi::MPI_IN_PLACE => "it is MPI_IN_PLACE, which only some buffers of collective operations may be",
        abi::MPI_BUFFER_AUTOMATIC => {
            "it is MPI_BUFFER_AUTOMATIC, which only MPI_Buffer_attach and the like know"
        }
        _ => "it is NULL, and the count is not 0",
    }))
}

/// Where the first byte of data may be.
const PLACES: core::ops::RangeInclusive<usize> = PAGE..=isize::MAX as usize;

/// The elements of a buffer: how many, and their type. Every function that is given a buffer of elements asks here what
/// is wrong with it.
///
/// # Errors
/// [`Error::Count`], [`Error::Type`], [`Error::Buffer`].
#[inline]
pub fn contents<'a>(buffer: &Buffer<'a>) -> Result<(usize, &'a Datatype)> {
    let Count(count) = Count::checked(buffer.count)?;
    // SAFETY: argument rule 2: nobody frees the type during the call, which is `'a`.
    let datatype = unsafe { datatypes::find(buffer.datatype) }?;
    place(buffer.addr.addr(), count, datatype)?;
    Ok((count, datatype))
}

/// Bytes of a buffer of a predefined type without gaps; `None` for all others, for more elements than 32 bits count,
/// whose bytes could be too many to be counted, and for arguments that are wrong,
/// which [`send_buf`] and [`recv_buf`] tell apart.
#[inline(always)]
#[must_use]
pub fn run_of_bytes(buffer: Buffer<'_>) -> Option<usize> {
    let size = datatypes::contiguous_size(buffer.datatype)?;
    let (addr, count) = (buffer.addr.addr(), buffer.count);
    let count = u32::try_from(count).ok()? as usize;
    if !is_memory(addr) && count > 0 { None } else { Some(count * size) }
}

/// As [`run_of_bytes`], with what a request must know besides.
#[inline(always)]
#[must_use]
pub fn run(buffer: Buffer<'_>) -> Option<Run> {
    let bytes = run_of_bytes(buffer)?;
    Some(Run { addr: buffer.addr.cast(), bytes, count: buffer.count as usize, handle: buffer.datatype })
}

/// A buffer to send from.
///
/// # Errors
/// [`Error::Count`], [`Error::CountTooLarge`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub fn send_buf(buffer: Buffer<'_>) -> Result<SendBuf<'_>> {
    let (count, datatype) = contents(&buffer)?;
    SendBuf::new(buffer.addr.cast_const().cast(), count, datatype, buffer.datatype)
}

/// A buffer to receive into.
///
/// # Errors
/// [`Error::Count`], [`Error::CountTooLarge`], [`Error::Type`], [`Error::Buffer`].
#[inline(always)]
pub fn recv_buf(buffer: Buffer<'_>) -> Result<RecvBuf<'_>> {
    let (count, datatype) = contents(&buffer)?;
    RecvBuf::new(buffer.addr.cast(), count, datatype, buffer.datatype)
}
