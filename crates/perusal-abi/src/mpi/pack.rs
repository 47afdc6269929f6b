//! Packing and unpacking, in the native and in the "external32" representation (MPI 5.0 §5.2, §5.3).

use crate::arguments::{Argument, Buffer, ByteBuffer, Count, Fitting, IntegerAt, OrUndefined};
use crate::check::{self, Access};
use crate::comm::Comm;
use crate::datatypes::datatype as committed;
use crate::error::{Error, Result};
use crate::messages::{contents, is_memory};
use crate::types::MPI_Datatype;
use core::ffi::c_char;
use std::sync::Arc;

/// A packing buffer and how far it is filled or read.
struct Tape<'a> {
    storage: ByteBuffer<'a>,
    position: IntegerAt<'a>,
    at: usize,
}

impl<'a> Tape<'a> {
    fn new(storage: ByteBuffer<'a>, position: IntegerAt<'a>) -> Result<Self> {
        match usize::try_from(position.get()) {
            Ok(at) if storage.size.is_some_and(|size| at <= size) => Ok(Self { storage, position, at }),
            _ => Err(Error::Arg("the position is not inside the packing buffer")),
        }
    }

    /// The next `need` bytes of the buffer; `less` is the error if there are fewer, from both numbers.
    fn next(&self, need: usize, less: fn(u64, u64) -> Error) -> Result<*mut u8> {
        let room = self.storage.size.unwrap_or(0) - self.at;
        if room < need {
            return Err(less(need as u64, room as u64));
        }
        if !is_memory(self.storage.addr.addr()) && need > 0 {
            return Err(Error::Buffer("the packing buffer is NULL or MPI_IN_PLACE"));
        }
        Ok(self.storage.addr.wrapping_add(self.at))
    }

    /// The next `need` bytes, to be read.
    ///
    /// # Errors
    /// [`Error::UnpackEnd`] if there are not that many.
    fn read(&self, need: usize) -> Result<&[u8]> {
        let from = self.next(need, |need, left| Error::UnpackEnd { need, left })?;
        // SAFETY: argument rule 3: `next` has seen that the buffer holds them. A slice of nothing needs no address.
        Ok(if need == 0 { &[] } else { unsafe { core::slice::from_raw_parts(from, need) } })
    }

    /// The next `need` bytes, to be written.
    ///
    /// # Errors
    /// [`Error::PackSpace`] if there are not that many.
    #[allow(clippy::mut_from_ref)]
    fn write(&self, need: usize) -> Result<&mut [u8]> {
        let to = self.next(need, |need, room| Error::PackSpace { need, room })?;
        // SAFETY: argument rule 3: `next` has seen that the buffer has room for them, and each function here asks once.
        // A slice of nothing needs no address.
        Ok(if need == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(to, need) } })
    }

    fn advance(&self, by: usize) -> Result<()> {
        self.position.put(self.at + by, "the position")
    }
}

/// MPI_Pack.
pub fn pack(comm: Arc<Comm>, from: Buffer<'_>, to: ByteBuffer<'_>, position: IntegerAt<'_>) -> Result<()> {
    drop(comm);
    let tape = Tape::new(to, position)?;
    let (n, ty) = contents(&from)?;
    let need = ty.bytes_of(n)?;
    let packed = tape.write(need)?;
    if check::is_on() {
        check::packing(&from, Access::Read, packed.as_ptr(), need);
    }
    // SAFETY: argument rule 3: `n` elements lie at the address; MPI 5.0 §5.2 forbids that the buffers overlap.
    unsafe { ty.pack(n, from.addr.cast(), 0, packed) };
    tape.advance(need)
}

/// MPI_Unpack.
pub fn unpack(comm: Arc<Comm>, from: ByteBuffer<'_>, position: IntegerAt<'_>, to: Buffer<'_>) -> Result<()> {
    drop(comm);
    let tape = Tape::new(from, position)?;
    let (n, ty) = contents(&to)?;
    let need = ty.bytes_of(n)?;
    let packed = tape.read(need)?;
    if check::is_on() {
        check::packing(&to, Access::Write, packed.as_ptr(), need);
    }
    // SAFETY: argument rule 3: there is room for `n` elements at the address;
    // MPI 5.0 §5.2 forbids that the buffers overlap.
    unsafe { ty.unpack(n, to.addr.cast(), 0, packed) };
    tape.advance(need)
}

/// MPI_Pack_size: MPI_UNDEFINED for more than the result can say (MPI 5.0 §5.2).
pub fn size(n: i64, datatype: MPI_Datatype, comm: Arc<Comm>) -> Result<OrUndefined> {
    drop(comm);
    let bytes = committed(datatype)?.bytes_of(Count::checked(n)?.0)?;
    Ok(OrUndefined(i64::try_from(bytes).ok()))
}

/// The only representation that the functions of MPI 5.0 §5.3 know.
pub struct External32;

impl<'a> Argument<'a, *const c_char> for External32 {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: argument rule 1: the call passes `from`, and the call outlives the result.
        match unsafe { <&[u8]>::of(from) }? {
            b"external32" => Ok(Self),
            _ => Err(Error::Arg("the data representation must be \"external32\"")),
        }
    }
}

/// MPI_Pack_external.
pub fn pack_external(
    _: External32,
    from: Buffer<'_>,
    to: ByteBuffer<'_>,
    position: IntegerAt<'_>,
) -> Result<()> {
    let tape = Tape::new(to, position)?;
    let (n, ty) = contents(&from)?;
    let need = ty.external_size(n)?;
    let packed = tape.write(need)?;
    if check::is_on() {
        check::packing(&from, Access::Read, packed.as_ptr(), need);
    }
    // SAFETY: argument rule 3: `n` elements lie at the address, and the buffers do not overlap (MPI 5.0 §5.3).
    unsafe { ty.pack_external(n, from.addr.cast(), packed) }?;
    tape.advance(need)
}

/// MPI_Unpack_external.
pub fn unpack_external(
    _: External32,
    from: ByteBuffer<'_>,
    position: IntegerAt<'_>,
    to: Buffer<'_>,
) -> Result<()> {
    let tape = Tape::new(from, position)?;
    let (n, ty) = contents(&to)?;
    let need = ty.external_size(n)?;
    let packed = tape.read(need)?;
    if check::is_on() {
        check::packing(&to, Access::Write, packed.as_ptr(), need);
    }
    // SAFETY: argument rule 3: there is room for `n` elements at the address,
    // and the buffers do not overlap (MPI 5.0 §5.3).
    unsafe { ty.unpack_external(n, to.addr.cast(), packed) }?;
    tape.advance(need)
}

/// MPI_Pack_external_size.
pub fn external_size(_: External32, n: Count, datatype: MPI_Datatype) -> Result<Fitting> {
    Ok(Fitting(committed(datatype)?.external_size(n.0)?, "the packed size"))
}
