//! Datatypes: what they are, how long they live (MPI 5.0 §5.1.5 to §5.1.10, §7.8, §19.1.5).

use crate::abi::*;
use crate::arguments::{Given, InOut, OrUndefined};
use crate::datatype::{Datatype, missing_optional};
use crate::datatypes::{any, ask, freeable, insert, object, remove};
use crate::error::Result;
use crate::types::{MPI_Aint, MPI_Count, MPI_Datatype};
use core::ffi::c_int;

/// MPI_Type_size: MPI_UNDEFINED for an optional type that there is not (MPI 5.0 §3.2.2),
/// and for what does not fit (§5.1.5).
pub fn size(datatype: MPI_Datatype) -> Result<OrUndefined> {
    if missing_optional(datatype).is_some() {
        return Ok(OrUndefined(None));
    }
    ask(datatype, |ty| OrUndefined(Some(ty.size() as i64)))
}

/// Lower bound and extent, or those of the data alone. Not known of an optional type that there is not.
pub fn extent(datatype: MPI_Datatype, data_only: bool) -> Result<(ByteCount, ByteCount)> {
    if missing_optional(datatype).is_some() {
        return Ok((ByteCount(0), ByteCount(MPI_UNDEFINED as isize)));
    }
    ask(datatype, |ty| {
        let (low, span) = if data_only { (ty.true_lb(), ty.true_extent()) } else { (ty.lb(), ty.extent()) };
        (ByteCount(low), ByteCount(span))
    })
}

/// A distance in bytes, as `MPI_Aint` or `MPI_Count`, which are 64 bits both.
pub struct ByteCount(isize);

impl Given<MPI_Aint> for ByteCount {
    fn given(self) -> Result<MPI_Aint> {
        Ok(self.0)
    }
}
impl Given<MPI_Count> for ByteCount {
    fn given(self) -> Result<MPI_Count> {
        Ok(self.0 as MPI_Count)
    }
}

/// MPI_Type_dup.
pub fn duplicate(old: MPI_Datatype) -> Result<MPI_Datatype> {
    let committed = object(old).map_or(true, |object| object.is_committed());
    let new = insert(any(old)?.duplicate(), committed)?;
    if let Err(error) = super::attr::type_duplicated(old, new) {
        // The copy callback's error is what matters.
        let _ = super::attr::type_freed(new);
        remove(new)?;
        return Err(error);
    }
    Ok(new)
}

/// `None` for MPI_UNDEFINED.
fn defined(value: c_int) -> Option<c_int> {
    (value != MPI_UNDEFINED).then_some(value)
}

/// MPI_Type_commit. Predefined types are committed from the start.
pub fn commit(datatype: InOut<'_, MPI_Datatype>) -> Result<()> {
    let handle = datatype.get();
    if !any(handle)?.is_predefined() {
        object(handle)?.commit();
    }
    Ok(())
}

/// MPI_Type_free. Communication that uses the type goes on.
pub fn free(datatype: InOut<'_, MPI_Datatype>) -> Result<()> {
    let handle = datatype.get();
    freeable(handle)?;
    super::attr::type_freed(handle)?;
    remove(handle)?;
    datatype.set(MPI_DATATYPE_NULL);
    Ok(())
}

/// MPI_Type_create_f90_real.
pub fn f90_real(p: c_int, r: c_int) -> Result<MPI_Datatype> {
    insert(Datatype::f90_real(defined(p), defined(r))?, true)
}

/// MPI_Type_create_f90_complex.
pub fn f90_complex(p: c_int, r: c_int) -> Result<MPI_Datatype> {
    insert(Datatype::f90_complex(defined(p), defined(r))?, true)
}

/// MPI_Type_create_f90_integer.
pub fn f90_integer(r: c_int) -> Result<MPI_Datatype> {
    insert(Datatype::f90_integer(r)?, true)
}

/// MPI_Type_match_size.
pub fn match_size(class: c_int, bytes: c_int) -> Result<MPI_Datatype> {
    insert(Datatype::match_size(class, bytes)?, true)
}

/// MPI_Type_get_value_index; MPI_DATATYPE_NULL where there is no pair type of these two.
pub fn value_index(value: Datatype, index: Datatype) -> Result<MPI_Datatype> {
    Datatype::value_index(&value, &index).map_or(Ok(MPI_DATATYPE_NULL), |pair| insert(pair, true))
}
