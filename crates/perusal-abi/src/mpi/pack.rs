//! Packing and unpacking, in the native and in the "external32" representation (MPI 5.0 §5.2, §5.3).

use crate::abi::*;
use crate::capi::args::{put, take, text};
use crate::capi::comms;
use crate::capi::datatypes::datatype as committed;
use crate::capi::types::{MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype};
use crate::datatype::Datatype;
use crate::{Error, Result, export};
use core::ffi::{c_char, c_int, c_void};

/// `int`, `MPI_Aint` and `MPI_Count`, as which sizes and positions come and go.
trait Place: Copy {
    fn wide(self) -> i64;
    fn narrow(value: usize) -> Option<Self>;
}

macro_rules! places {
    ($($ty:ty),*) => {$(
        impl Place for $ty {
            fn wide(self) -> i64 {
                self as i64
            }
            fn narrow(value: usize) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}
places!(c_int, MPI_Aint, MPI_Count);

fn count(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::Count(value))
}

fn total(ty: &Datatype, count: usize) -> Result<usize> {
    let bytes = ty.size().checked_mul(count).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or(Error::Arg("the data is larger than the address space"))
}

/// A packing buffer of `size` bytes and how far it is filled or read.
struct Tape<T> {
    position: *mut T,
    at: usize,
    size: usize,
}

impl<T: Place> Tape<T> {
    /// # Safety
    /// `position` is NULL or may be read and written.
    unsafe fn new(position: *mut T, size: T) -> Result<Self> {
        // SAFETY: the caller's.
        let at = usize::try_from(unsafe { take(position) }?.wide());
        match (at, usize::try_from(size.wide())) {
            (Ok(at), Ok(size)) if at <= size => Ok(Self { position, at, size }),
            _ => Err(Error::Arg("the position is not inside the packing buffer")),
        }
    }

    /// The next `need` bytes of the buffer that starts at `base`.
    ///
    /// # Errors
    /// [`Error::Truncate`] if there are not that many.
    fn next(&self, base: *const c_void, need: usize) -> Result<*const u8> {
        if self.size - self.at < need {
            return Err(Error::Truncate { sent: need as u64, room: (self.size - self.at) as u64 });
        }
        if base.is_null() && need > 0 {
            return Err(Error::Buffer("the packing buffer is NULL"));
        }
        Ok(base.cast::<u8>().wrapping_add(self.at))
    }

    fn advance(&self, by: usize) -> Result<()> {
        let at = T::narrow(self.at + by).ok_or(Error::TooLarge("the position"))?;
        // SAFETY: `new` was promised that `position` may be written.
        unsafe { put(self.position, at) }
    }
}

/// Slices need a pointer even for nothing.
///
/// # Safety
/// `from` may be read for `len` bytes during `'a`.
unsafe fn bytes<'a>(from: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: not empty, so a real buffer of the caller's.
    if len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(from, len) } }
}

/// # Safety
/// `to` may be written for `len` bytes during `'a`, and nobody else uses them.
unsafe fn bytes_mut<'a>(to: *const u8, len: usize) -> &'a mut [u8] {
    // SAFETY: not empty, so a real buffer of the caller's.
    if len == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(to.cast_mut(), len) } }
}

/// # Safety
/// The buffers are what the datatype and the tape say, and do not overlap.
unsafe fn pack<T: Place>(
    inbuf: *const c_void,
    n: i64,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    tape: &Tape<T>,
) -> Result<()> {
    let (ty, n) = (committed(datatype)?, count(n)?);
    let need = total(&ty, n)?;
    let to = tape.next(outbuf, need)?;
    // SAFETY: `next` has seen that the output has room; the rest is the caller's.
    unsafe { ty.pack(n, inbuf.cast(), 0, bytes_mut(to, need)) };
    tape.advance(need)
}

/// # Safety
/// As for [`pack`].
unsafe fn unpack<T: Place>(
    inbuf: *const c_void,
    tape: &Tape<T>,
    outbuf: *mut c_void,
    n: i64,
    datatype: MPI_Datatype,
) -> Result<()> {
    let (ty, n) = (committed(datatype)?, count(n)?);
    let need = total(&ty, n)?;
    let from = tape.next(inbuf, need)?;
    // SAFETY: `next` has seen that the input is that long; the rest is the caller's.
    unsafe { ty.unpack(n, outbuf.cast(), 0, bytes(from, need)) };
    tape.advance(need)
}

/// # Safety
/// As for [`pack`].
unsafe fn pack_external<T: Place>(
    inbuf: *const c_void,
    n: i64,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    tape: &Tape<T>,
) -> Result<()> {
    let (ty, n) = (committed(datatype)?, count(n)?);
    let need = ty.external_size(n)?;
    let to = tape.next(outbuf, need)?;
    // SAFETY: as in `pack`.
    unsafe { ty.pack_external(n, inbuf.cast(), bytes_mut(to, need)) }?;
    tape.advance(need)
}

/// # Safety
/// As for [`pack`].
unsafe fn unpack_external<T: Place>(
    inbuf: *const c_void,
    tape: &Tape<T>,
    outbuf: *mut c_void,
    n: i64,
    datatype: MPI_Datatype,
) -> Result<()> {
    let (ty, n) = (committed(datatype)?, count(n)?);
    let need = ty.external_size(n)?;
    let from = tape.next(inbuf, need)?;
    // SAFETY: as in `unpack`.
    unsafe { ty.unpack_external(n, outbuf.cast(), bytes(from, need)) }?;
    tape.advance(need)
}

/// Only "external32" is a representation that these functions know.
///
/// # Safety
/// `datarep` is NULL or a string.
unsafe fn check_representation(datarep: *const c_char) -> Result<()> {
    // SAFETY: the caller's.
    match unsafe { text(datarep) }? {
        b"external32" => Ok(()),
        _ => Err(Error::Arg("the data representation must be \"external32\"")),
    }
}

fn packed_size(n: i64, datatype: MPI_Datatype, comm: MPI_Comm) -> Result<usize> {
    comms::get(comm)?;
    total(&committed(datatype)?, count(n)?)
}

fn narrow<T: Place>(size: usize) -> Result<T> {
    T::narrow(size).ok_or(Error::TooLarge("the packed size"))
}

export! {
    /// MPI 5.0 §5.2.
    fn MPI_Pack(
        inbuf: *const c_void,
        incount: c_int,
        datatype: MPI_Datatype,
        outbuf: *mut c_void,
        outsize: c_int,
        position: *mut c_int,
        comm: MPI_Comm,
    ) raises(comm) {
        comms::get(comm)?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, outsize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { pack(inbuf, i64::from(incount), datatype, outbuf, &tape) }
    }

    /// MPI 5.0 §5.2.
    fn MPI_Unpack(
        inbuf: *const c_void,
        insize: c_int,
        position: *mut c_int,
        outbuf: *mut c_void,
        outcount: c_int,
        datatype: MPI_Datatype,
        comm: MPI_Comm,
    ) raises(comm) {
        comms::get(comm)?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, insize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { unpack(inbuf, &tape, outbuf, i64::from(outcount), datatype) }
    }

    /// MPI 5.0 §5.2.
    fn MPI_Pack_size(incount: c_int, datatype: MPI_Datatype, comm: MPI_Comm, size: *mut c_int) raises(comm) {
        let bytes = packed_size(i64::from(incount), datatype, comm)?;
        // SAFETY: an output argument.
        unsafe { put(size, narrow(bytes)?) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Pack_external(
        datarep: *const c_char,
        inbuf: *const c_void,
        incount: c_int,
        datatype: MPI_Datatype,
        outbuf: *mut c_void,
        outsize: MPI_Aint,
        position: *mut MPI_Aint,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, outsize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { pack_external(inbuf, i64::from(incount), datatype, outbuf, &tape) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Unpack_external(
        datarep: *const c_char,
        inbuf: *const c_void,
        insize: MPI_Aint,
        position: *mut MPI_Aint,
        outbuf: *mut c_void,
        outcount: c_int,
        datatype: MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, insize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { unpack_external(inbuf, &tape, outbuf, i64::from(outcount), datatype) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Pack_external_size(
        datarep: *const c_char,
        incount: c_int,
        datatype: MPI_Datatype,
        size: *mut MPI_Aint,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        let bytes = committed(datatype)?.external_size(count(i64::from(incount))?)?;
        // SAFETY: an output argument.
        unsafe { put(size, narrow(bytes)?) }
    }

    /// MPI 5.0 §5.2.
    fn MPI_Pack_c(
        inbuf: *const c_void,
        incount: MPI_Count,
        datatype: MPI_Datatype,
        outbuf: *mut c_void,
        outsize: MPI_Count,
        position: *mut MPI_Count,
        comm: MPI_Comm,
    ) raises(comm) {
        comms::get(comm)?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, outsize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { pack(inbuf, incount, datatype, outbuf, &tape) }
    }

    /// MPI 5.0 §5.2.
    fn MPI_Unpack_c(
        inbuf: *const c_void,
        insize: MPI_Count,
        position: *mut MPI_Count,
        outbuf: *mut c_void,
        outcount: MPI_Count,
        datatype: MPI_Datatype,
        comm: MPI_Comm,
    ) raises(comm) {
        comms::get(comm)?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, insize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { unpack(inbuf, &tape, outbuf, outcount, datatype) }
    }

    /// MPI 5.0 §5.2.
    fn MPI_Pack_size_c(
        incount: MPI_Count,
        datatype: MPI_Datatype,
        comm: MPI_Comm,
        size: *mut MPI_Count,
    ) raises(comm) {
        let bytes = packed_size(incount, datatype, comm)?;
        // SAFETY: an output argument.
        unsafe { put(size, narrow(bytes)?) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Pack_external_c(
        datarep: *const c_char,
        inbuf: *const c_void,
        incount: MPI_Count,
        datatype: MPI_Datatype,
        outbuf: *mut c_void,
        outsize: MPI_Count,
        position: *mut MPI_Count,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, outsize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { pack_external(inbuf, incount, datatype, outbuf, &tape) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Unpack_external_c(
        datarep: *const c_char,
        inbuf: *const c_void,
        insize: MPI_Count,
        position: *mut MPI_Count,
        outbuf: *mut c_void,
        outcount: MPI_Count,
        datatype: MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        // SAFETY: an argument that is passed by address.
        let tape = unsafe { Tape::new(position, insize) }?;
        // SAFETY: the buffers are what the other arguments say (MPI 5.0 §5.2).
        unsafe { unpack_external(inbuf, &tape, outbuf, outcount, datatype) }
    }

    /// MPI 5.0 §5.3.
    fn MPI_Pack_external_size_c(
        datarep: *const c_char,
        incount: MPI_Count,
        datatype: MPI_Datatype,
        size: *mut MPI_Count,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        unsafe { check_representation(datarep) }?;
        let bytes = committed(datatype)?.external_size(count(incount)?)?;
        // SAFETY: an output argument.
        unsafe { put(size, narrow(bytes)?) }
    }
}
