//! Datatypes: what they are, how long they live (MPI 5.0 §5.1.5 to §5.1.10, §7.8, §19.1.5).

use crate::abi::*;
use crate::capi::args::{put, put_text, take, text};
use crate::capi::datatypes::{any, freeable, insert, name, object, remove, set_name};
use crate::capi::types::{MPI_Aint, MPI_Count, MPI_Datatype};
use crate::datatype::{Datatype, missing_optional};
use crate::{Result, export};
use core::ffi::{c_char, c_int};

/// A number that a form of a function gives; one that does not fit is MPI_UNDEFINED (MPI 5.0 §5.1.5).
fn int_or_undefined(value: i64) -> c_int {
    c_int::try_from(value).unwrap_or(MPI_UNDEFINED)
}

/// MPI_UNDEFINED for an optional type that there is not (MPI 5.0 §3.2.2).
fn size(datatype: MPI_Datatype) -> Result<i64> {
    if missing_optional(datatype).is_some() {
        return Ok(i64::from(MPI_UNDEFINED));
    }
    any(datatype).map(|ty| ty.size() as i64)
}

/// Lower bound and extent, or those of the data alone.
fn extent(datatype: MPI_Datatype, data_only: bool) -> Result<(isize, isize)> {
    if missing_optional(datatype).is_some() {
        return Ok((0, MPI_UNDEFINED as isize));
    }
    let ty = any(datatype)?;
    Ok(if data_only { (ty.true_lb(), ty.true_extent()) } else { (ty.lb(), ty.extent()) })
}

/// Writes a pair of results.
///
/// # Safety
/// Both are output arguments: NULL or writable.
unsafe fn put_both<T: Address>(values: (isize, isize), low: *mut T, span: *mut T) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        put(low, T::of(values.0))?;
        put(span, T::of(values.1))
    }
}

/// `MPI_Aint` and `MPI_Count`, which are 64 bits both.
trait Address {
    fn of(value: isize) -> Self;
}
impl Address for MPI_Aint {
    fn of(value: isize) -> Self {
        value
    }
}
impl Address for MPI_Count {
    fn of(value: isize) -> Self {
        value as Self
    }
}

fn duplicate(old: MPI_Datatype) -> Result<MPI_Datatype> {
    let committed = object(old).map_or(true, |object| object.is_committed());
    let new = insert(any(old)?.duplicate(), committed)?;
    if let Err(error) = super::attr::type_duplicated(old, new) {
        remove(new)?;
        return Err(error);
    }
    Ok(new)
}

/// `None` for MPI_UNDEFINED.
fn defined(value: c_int) -> Option<c_int> {
    (value != MPI_UNDEFINED).then_some(value)
}

export! {
    /// MPI 5.0 §5.1.5.
    fn MPI_Type_size(datatype: MPI_Datatype, bytes: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(bytes, int_or_undefined(size(datatype)?)) }
    }

    /// MPI 5.0 §5.1.5.
    fn MPI_Type_size_c(datatype: MPI_Datatype, bytes: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(bytes, size(datatype)?) }
    }

    /// MPI 5.0 §16.3: the old name of MPI_Type_size_c.
    fn MPI_Type_size_x(datatype: MPI_Datatype, bytes: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(bytes, size(datatype)?) }
    }

    /// MPI 5.0 §5.1.7.
    fn MPI_Type_get_extent(datatype: MPI_Datatype, lb: *mut MPI_Aint, span: *mut MPI_Aint) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, false)?, lb, span) }
    }

    /// MPI 5.0 §5.1.7.
    fn MPI_Type_get_extent_c(datatype: MPI_Datatype, lb: *mut MPI_Count, span: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, false)?, lb, span) }
    }

    /// MPI 5.0 §16.3: the old name of MPI_Type_get_extent_c.
    fn MPI_Type_get_extent_x(datatype: MPI_Datatype, lb: *mut MPI_Count, span: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, false)?, lb, span) }
    }

    /// MPI 5.0 §5.1.8.
    fn MPI_Type_get_true_extent(
        datatype: MPI_Datatype,
        true_lb: *mut MPI_Aint,
        true_extent: *mut MPI_Aint,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, true)?, true_lb, true_extent) }
    }

    /// MPI 5.0 §5.1.8.
    fn MPI_Type_get_true_extent_c(
        datatype: MPI_Datatype,
        true_lb: *mut MPI_Count,
        true_extent: *mut MPI_Count,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, true)?, true_lb, true_extent) }
    }

    /// MPI 5.0 §16.3: the old name of MPI_Type_get_true_extent_c.
    fn MPI_Type_get_true_extent_x(
        datatype: MPI_Datatype,
        true_lb: *mut MPI_Count,
        true_extent: *mut MPI_Count,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments.
        unsafe { put_both(extent(datatype, true)?, true_lb, true_extent) }
    }

    /// MPI 5.0 §5.1.9. Predefined types are committed from the start.
    fn MPI_Type_commit(datatype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        let handle = unsafe { take(datatype) }?;
        if !any(handle)?.is_predefined() {
            object(handle)?.commit();
        }
        Ok(())
    }

    /// MPI 5.0 §5.1.9. Communication that uses the type goes on.
    fn MPI_Type_free(datatype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        let handle = unsafe { take(datatype) }?;
        freeable(handle)?;
        super::attr::type_freed(handle)?;
        remove(handle)?;
        // SAFETY: an output argument.
        unsafe { put(datatype, MPI_DATATYPE_NULL) }
    }

    /// MPI 5.0 §5.1.10.
    fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(newtype, duplicate(oldtype)?) }
    }

    /// MPI 5.0 §7.8.
    fn MPI_Type_get_name(datatype: MPI_Datatype, type_name: *mut c_char, resultlen: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: output arguments; the text is shorter than MPI_MAX_OBJECT_NAME.
        unsafe { put_text(&name(datatype)?, type_name, resultlen) }
    }

    /// MPI 5.0 §7.8.
    fn MPI_Type_set_name(datatype: MPI_Datatype, type_name: *const c_char) raises(MPI_COMM_SELF) {
        // SAFETY: a string argument.
        set_name(datatype, unsafe { text(type_name) }?)
    }

    /// MPI 5.0 §19.1.5.
    fn MPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        let made = Datatype::f90_real(defined(p), defined(r))?;
        // SAFETY: an output argument.
        unsafe { put(newtype, insert(made, true)?) }
    }

    /// MPI 5.0 §19.1.5.
    fn MPI_Type_create_f90_complex(p: c_int, r: c_int, newtype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        let made = Datatype::f90_complex(defined(p), defined(r))?;
        // SAFETY: an output argument.
        unsafe { put(newtype, insert(made, true)?) }
    }

    /// MPI 5.0 §19.1.5.
    fn MPI_Type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(newtype, insert(Datatype::f90_integer(r)?, true)?) }
    }

    /// MPI 5.0 §19.1.5.
    fn MPI_Type_match_size(typeclass: c_int, bytes: c_int, datatype: *mut MPI_Datatype) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(datatype, insert(Datatype::match_size(typeclass, bytes)?, true)?) }
    }

    /// MPI 5.0 §6.9.4; MPI_DATATYPE_NULL where there is no pair type of these two.
    fn MPI_Type_get_value_index(
        value_type: MPI_Datatype,
        index_type: MPI_Datatype,
        pair_type: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let pair = Datatype::value_index(&any(value_type)?, &any(index_type)?);
        let handle = pair.map_or(Ok(MPI_DATATYPE_NULL), |pair| insert(pair, true))?;
        // SAFETY: an output argument.
        unsafe { put(pair_type, handle) }
    }
}
