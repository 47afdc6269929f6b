//! The constructors of derived datatypes (MPI 5.0 §5.1.2 to §5.1.4, §5.1.7), each for both widths of counts. `large`:
//! the type is made by a `_c` function, and says so when it is taken apart.

use crate::arguments::{Count, Displacement, Given, Integers, Length};
use crate::datatype::{Datatype, Distribution, Order};
use crate::datatypes::{any, insert};
use crate::error::Result;
use crate::types::MPI_Datatype;
use core::ffi::c_int;

/// A datatype that has just been made: the program is given its handle.
pub struct Made(Datatype);

impl Given<MPI_Datatype> for Made {
    fn given(self) -> Result<MPI_Datatype> {
        insert(self.0, false)
    }
}

fn made(datatype: Datatype, large: bool) -> Result<Made> {
    Ok(Made(if large { datatype.as_large() } else { datatype }))
}

/// MPI_Type_contiguous.
pub fn contiguous(n: Count, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::contiguous(n.0, &old)?, large)
}

/// MPI_Type_vector.
pub fn vector(n: Count, block: Length, stride: Displacement, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::vector(n.0, block.0, stride.0, &old)?, large)
}

/// MPI_Type_create_hvector.
pub fn hvector(n: Count, block: Length, stride: Displacement, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::hvector(n.0, block.0, stride.0, &old)?, large)
}

/// MPI_Type_indexed.
pub fn indexed(_: Count, blocks: Integers<'_>, at: Integers<'_>, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::indexed(blocks.lengths()?, at.displacements()?, &old)?, large)
}

/// MPI_Type_create_hindexed.
pub fn hindexed(
    _: Count,
    blocks: Integers<'_>,
    at: Integers<'_>,
    old: Datatype,
    large: bool,
) -> Result<Made> {
    made(Datatype::hindexed(blocks.lengths()?, at.displacements()?, &old)?, large)
}

/// MPI_Type_create_indexed_block.
pub fn indexed_block(_: Count, block: Length, at: Integers<'_>, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::indexed_block(block.0, at.displacements()?, &old)?, large)
}

/// MPI_Type_create_hindexed_block.
pub fn hindexed_block(_: Count, block: Length, at: Integers<'_>, old: Datatype, large: bool) -> Result<Made> {
    made(Datatype::hindexed_block(block.0, at.displacements()?, &old)?, large)
}

/// MPI_Type_create_struct.
pub fn structure(
    _: Count,
    blocks: Integers<'_>,
    at: Integers<'_>,
    types: &[MPI_Datatype],
    large: bool,
) -> Result<Made> {
    let blocks = blocks.lengths()?;
    let types = types.iter().map(|handle| any(*handle)).collect::<Result<Vec<_>>>()?;
    made(Datatype::structure(blocks, at.displacements()?, types)?, large)
}

/// MPI_Type_create_subarray.
pub fn subarray(
    sizes: Integers<'_>,
    subsizes: Integers<'_>,
    starts: Integers<'_>,
    order: c_int,
    old: Datatype,
    large: bool,
) -> Result<Made> {
    let (sizes, subsizes, starts) = (sizes.lengths()?, subsizes.lengths()?, starts.lengths()?);
    made(Datatype::subarray(&sizes, &subsizes, &starts, Order::from_constant(order)?, &old)?, large)
}

/// MPI_Type_create_darray.
pub fn darray(
    size: c_int,
    rank: c_int,
    sizes: Integers<'_>,
    distributions: &[c_int],
    arguments: &[c_int],
    processes: &[c_int],
    order: c_int,
    old: Datatype,
    large: bool,
) -> Result<Made> {
    let sizes = sizes.lengths()?;
    let dimension = |i: usize| Distribution {
        size: sizes[i],
        distribution: distributions[i],
        argument: arguments[i],
        processes: processes[i],
    };
    let dims: Vec<Distribution> = (0..sizes.len()).map(dimension).collect();
    made(Datatype::darray(size, rank, &dims, Order::from_constant(order)?, &old)?, large)
}

/// MPI_Type_create_resized.
pub fn resized(old: Datatype, low: Displacement, extent: Displacement, large: bool) -> Result<Made> {
    made(Datatype::resized(&old, low.0, extent.0)?, large)
}
