//! Taking a datatype apart again (MPI 5.0 §5.1.13).

use crate::abi::*;
use crate::arguments::Room;
use crate::datatype::{Contents, missing_optional};
use crate::datatypes::{any, insert};
use crate::error::{Error, Result};
use crate::types::{MPI_Aint, MPI_Count, MPI_Datatype};
use core::ffi::c_int;

/// The combiner and the constructor's arguments.
fn open(datatype: MPI_Datatype) -> Result<(c_int, Contents)> {
    if missing_optional(datatype).is_some() {
        return Ok((MPI_COMBINER_NAMED, Contents::default()));
    }
    let ty = any(datatype)?;
    Ok((ty.made().combiner(), ty.contents()))
}

/// The same for the forms that cannot return large counts.
fn open_small(datatype: MPI_Datatype) -> Result<(c_int, Contents)> {
    let (combiner, contents) = open(datatype)?;
    if contents.counts.is_empty() {
        return Ok((combiner, contents));
    }
    Err(Error::Type("it was made by a _c constructor; use the _c form to take it apart"))
}

const SHORT: Error = Error::Arg("an array is too short for the datatype's contents");

fn fill<T: Copy>(values: &[T], to: &Room<'_, T>) -> Result<()> {
    if to.length() < values.len() {
        return Err(SHORT);
    }
    to.fill(values.iter().copied());
    Ok(())
}

/// Writes the datatypes, derived ones under new handles that the caller must free.
fn fill_types(contents: &Contents, to: &Room<'_, MPI_Datatype>) -> Result<()> {
    if to.length() < contents.types.len() {
        return Err(SHORT);
    }
    let handles = contents.types.iter().map(|ty| insert(ty.clone(), false)).collect::<Result<Vec<_>>>()?;
    fill(&handles, to)
}

/// MPI_Type_get_envelope: how many integers, addresses and datatypes; the combiner.
pub fn envelope(datatype: MPI_Datatype) -> Result<(usize, usize, usize, c_int)> {
    let (kind, contents) = open_small(datatype)?;
    Ok((contents.integers.len(), contents.addresses.len(), contents.types.len(), kind))
}

/// MPI_Type_get_envelope_c: large counts behind the addresses.
pub fn envelope_large(datatype: MPI_Datatype) -> Result<(i64, i64, i64, i64, c_int)> {
    let (kind, contents) = open(datatype)?;
    let length = |length: usize| length as i64;
    Ok((
        length(contents.integers.len()),
        length(contents.addresses.len()),
        length(contents.counts.len()),
        length(contents.types.len()),
        kind,
    ))
}

fn unless_named((kind, contents): (c_int, Contents)) -> Result<Contents> {
    if kind == MPI_COMBINER_NAMED {
        return Err(Error::Type("a named predefined datatype has no contents"));
    }
    Ok(contents)
}

/// MPI_Type_get_contents.
pub fn contents(
    datatype: MPI_Datatype,
    integers: Room<'_, c_int>,
    addresses: Room<'_, MPI_Aint>,
    types: Room<'_, MPI_Datatype>,
) -> Result<()> {
    let contents = unless_named(open_small(datatype)?)?;
    fill(&contents.integers, &integers)?;
    fill(&contents.addresses, &addresses)?;
    fill_types(&contents, &types)
}

/// MPI_Type_get_contents_c.
pub fn contents_large(
    datatype: MPI_Datatype,
    integers: Room<'_, c_int>,
    addresses: Room<'_, MPI_Aint>,
    counts: Room<'_, MPI_Count>,
    types: Room<'_, MPI_Datatype>,
) -> Result<()> {
    let contents = unless_named(open(datatype)?)?;
    fill(&contents.integers, &integers)?;
    fill(&contents.addresses, &addresses)?;
    fill(&contents.counts, &counts)?;
    fill_types(&contents, &types)
}
