//! Taking a datatype apart again (MPI 5.0 §5.1.13).

use crate::abi::*;
use crate::capi::args::put;
use crate::capi::datatypes::{any, insert};
use crate::capi::types::{MPI_Aint, MPI_Count, MPI_Datatype};
use crate::datatype::{Contents, missing_optional};
use crate::{Error, Result, export};
use core::ffi::c_int;

/// The combiner and the constructor's arguments.
fn open(datatype: MPI_Datatype) -> Result<(c_int, Contents)> {
    if missing_optional(datatype).is_some() {
        return Ok((MPI_COMBINER_NAMED, Contents::default()));
    }
    let ty = any(datatype)?;
    Ok((ty.made().combiner(), ty.contents()))
}

/// The same for the forms that cannot tell of large counts.
fn open_small(datatype: MPI_Datatype) -> Result<(c_int, Contents)> {
    let (combiner, contents) = open(datatype)?;
    if contents.counts.is_empty() {
        return Ok((combiner, contents));
    }
    Err(Error::Type("it was made by a _c constructor; use the _c form to take it apart"))
}

/// Writes `values` to an array of the caller's with room for `room`.
///
/// # Safety
/// `to` has room for `room` elements, or is NULL.
unsafe fn fill<T: Copy>(values: &[T], to: *mut T, room: i64) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    if to.is_null() || room < values.len() as i64 {
        return Err(Error::Arg("an array is too short for the datatype's contents"));
    }
    // SAFETY: not null, and at least as long as `values`.
    unsafe { core::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len()) };
    Ok(())
}

/// Writes the datatypes, derived ones under new handles that the caller must free.
///
/// # Safety
/// As for [`fill`].
unsafe fn fill_types(contents: &Contents, to: *mut MPI_Datatype, room: i64) -> Result<()> {
    if room < contents.types.len() as i64 {
        return Err(Error::Arg("an array is too short for the datatype's contents"));
    }
    let handles = contents.types.iter().map(|ty| insert(ty.clone(), false)).collect::<Result<Vec<_>>>()?;
    // SAFETY: the caller's.
    unsafe { fill(&handles, to, room) }
}

const NAMED: Error = Error::Type("a named predefined datatype has no contents");

export! {
    /// MPI 5.0 §5.1.13.
    fn MPI_Type_get_envelope(
        datatype: MPI_Datatype,
        num_integers: *mut c_int,
        num_addresses: *mut c_int,
        num_datatypes: *mut c_int,
        combiner: *mut c_int,
    ) raises(MPI_COMM_SELF) {
        let (kind, contents) = open_small(datatype)?;
        // SAFETY: output arguments.
        unsafe {
            put(num_integers, contents.integers.len() as c_int)?;
            put(num_addresses, contents.addresses.len() as c_int)?;
            put(num_datatypes, contents.types.len() as c_int)?;
            put(combiner, kind)
        }
    }

    /// MPI 5.0 §5.1.13.
    fn MPI_Type_get_envelope_c(
        datatype: MPI_Datatype,
        num_integers: *mut MPI_Count,
        num_addresses: *mut MPI_Count,
        num_large_counts: *mut MPI_Count,
        num_datatypes: *mut MPI_Count,
        combiner: *mut c_int,
    ) raises(MPI_COMM_SELF) {
        let (kind, contents) = open(datatype)?;
        // SAFETY: output arguments.
        unsafe {
            put(num_integers, contents.integers.len() as MPI_Count)?;
            put(num_addresses, contents.addresses.len() as MPI_Count)?;
            put(num_large_counts, contents.counts.len() as MPI_Count)?;
            put(num_datatypes, contents.types.len() as MPI_Count)?;
            put(combiner, kind)
        }
    }

    /// MPI 5.0 §5.1.13.
    fn MPI_Type_get_contents(
        datatype: MPI_Datatype,
        max_integers: c_int,
        max_addresses: c_int,
        max_datatypes: c_int,
        array_of_integers: *mut c_int,
        array_of_addresses: *mut MPI_Aint,
        array_of_datatypes: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (kind, contents) = open_small(datatype)?;
        if kind == MPI_COMBINER_NAMED {
            return Err(NAMED);
        }
        // SAFETY: arrays of the lengths that are passed with them.
        unsafe {
            fill(&contents.integers, array_of_integers, i64::from(max_integers))?;
            fill(&contents.addresses, array_of_addresses, i64::from(max_addresses))?;
            fill_types(&contents, array_of_datatypes, i64::from(max_datatypes))
        }
    }

    /// MPI 5.0 §5.1.13.
    fn MPI_Type_get_contents_c(
        datatype: MPI_Datatype,
        max_integers: MPI_Count,
        max_addresses: MPI_Count,
        max_large_counts: MPI_Count,
        max_datatypes: MPI_Count,
        array_of_integers: *mut c_int,
        array_of_addresses: *mut MPI_Aint,
        array_of_large_counts: *mut MPI_Count,
        array_of_datatypes: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (kind, contents) = open(datatype)?;
        if kind == MPI_COMBINER_NAMED {
            return Err(NAMED);
        }
        // SAFETY: arrays of the lengths that are passed with them.
        unsafe {
            fill(&contents.integers, array_of_integers, max_integers)?;
            fill(&contents.addresses, array_of_addresses, max_addresses)?;
            fill(&contents.counts, array_of_large_counts, max_large_counts)?;
            fill_types(&contents, array_of_datatypes, max_datatypes)
        }
    }
}
