//! The constructors of derived datatypes, each with its `_c` form (MPI 5.0 §5.1.2 to §5.1.4, §5.1.7).

use crate::abi::*;
use crate::capi::args::put;
use crate::capi::datatypes::{any, insert};
use crate::capi::types::{MPI_Aint, MPI_Count, MPI_Datatype};
use crate::datatype::{Datatype, Distribution, Order};
use crate::{Error, Result, export};
use core::ffi::c_int;

/// `int`, `MPI_Aint`, `MPI_Count`: what counts and displacements come as.
trait Whole: Copy {
    fn wide(self) -> i64;
}
impl Whole for c_int {
    fn wide(self) -> i64 {
        i64::from(self)
    }
}
impl Whole for MPI_Aint {
    fn wide(self) -> i64 {
        self as i64
    }
}
impl Whole for MPI_Count {
    fn wide(self) -> i64 {
        self
    }
}

/// A count that must not be negative.
fn count(value: impl Whole) -> Result<usize> {
    usize::try_from(value.wide()).map_err(|_| Error::Count(value.wide()))
}

/// A block length that must not be negative.
fn length(value: impl Whole) -> Result<usize> {
    usize::try_from(value.wide()).map_err(|_| Error::Arg("a block length or size is negative"))
}

fn displacement(value: impl Whole) -> isize {
    value.wide() as isize
}

/// An array argument of `n` elements.
///
/// # Safety
/// `from` is NULL or has `n` elements that nobody changes during `'a`.
unsafe fn array<'a, T>(from: *const T, n: usize) -> Result<&'a [T]> {
    match n {
        0 => Ok(&[]),
        _ if from.is_null() => Err(Error::Arg("an array argument is NULL")),
        // SAFETY: not null, and by contract `n` elements.
        _ => Ok(unsafe { core::slice::from_raw_parts(from, n) }),
    }
}

/// An array of block lengths or sizes.
///
/// # Safety
/// As for [`array()`].
unsafe fn lengths<T: Whole>(from: *const T, n: usize) -> Result<Vec<usize>> {
    // SAFETY: the caller's.
    unsafe { array(from, n) }?.iter().map(|value| length(*value)).collect()
}

/// An array of displacements.
///
/// # Safety
/// As for [`array()`].
unsafe fn displacements<T: Whole>(from: *const T, n: usize) -> Result<Vec<isize>> {
    // SAFETY: the caller's.
    Ok(unsafe { array(from, n) }?.iter().map(|value| displacement(*value)).collect())
}

/// Writes the new type's handle.
///
/// # Safety
/// `newtype` is an output argument.
unsafe fn give(newtype: *mut MPI_Datatype, made: Datatype) -> Result<()> {
    if newtype.is_null() {
        return Err(Error::Arg("newtype is NULL"));
    }
    // SAFETY: the caller's.
    unsafe { put(newtype, insert(made, false)?) }
}

/// MPI_Type_create_struct in either form.
///
/// # Safety
/// The arrays have `n` elements.
unsafe fn structure<L: Whole, D: Whole>(
    n: usize,
    blocklengths: *const L,
    at: *const D,
    types: *const MPI_Datatype,
) -> Result<Datatype> {
    // SAFETY: the caller's.
    let (blocks, at, types) = unsafe { (lengths(blocklengths, n)?, displacements(at, n)?, array(types, n)?) };
    let types = types.iter().map(|handle| any(*handle)).collect::<Result<Vec<_>>>()?;
    Datatype::structure(&blocks, &at, &types)
}

/// MPI_Type_create_subarray in either form.
///
/// # Safety
/// The arrays have `ndims` elements.
unsafe fn subarray<T: Whole>(
    ndims: c_int,
    sizes: *const T,
    subsizes: *const T,
    starts: *const T,
    order: c_int,
    old: MPI_Datatype,
) -> Result<Datatype> {
    let n = usize::try_from(ndims).map_err(|_| Error::Arg("ndims is negative"))?;
    // SAFETY: the caller's.
    let (sizes, subsizes, starts) =
        unsafe { (lengths(sizes, n)?, lengths(subsizes, n)?, lengths(starts, n)?) };
    Datatype::subarray(&sizes, &subsizes, &starts, Order::from_constant(order)?, &any(old)?)
}

/// The arguments of MPI_Type_create_darray other than the sizes.
struct Grid {
    size: c_int,
    rank: c_int,
    ndims: c_int,
    distributions: *const c_int,
    arguments: *const c_int,
    processes: *const c_int,
    order: c_int,
}

impl Grid {
    /// MPI_Type_create_darray in either form.
    ///
    /// # Safety
    /// The arrays have `ndims` elements.
    unsafe fn make<T: Whole>(&self, sizes: *const T, old: MPI_Datatype) -> Result<Datatype> {
        let n = usize::try_from(self.ndims).map_err(|_| Error::Arg("ndims is negative"))?;
        // SAFETY: the caller's.
        let (sizes, distributions) = unsafe { (lengths(sizes, n)?, array(self.distributions, n)?) };
        // SAFETY: the caller's.
        let (arguments, processes) = unsafe { (array(self.arguments, n)?, array(self.processes, n)?) };
        let dimension = |i: usize| Distribution {
            size: sizes[i],
            distribution: distributions[i],
            argument: arguments[i],
            processes: processes[i],
        };
        let dims: Vec<Distribution> = (0..n).map(dimension).collect();
        Datatype::darray(self.size, self.rank, &dims, Order::from_constant(self.order)?, &any(old)?)
    }
}

export! {
    /// MPI 5.0 §5.1.2.
    fn MPI_Type_contiguous(
        n: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let made = Datatype::contiguous(count(n)?, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_contiguous_c(
        n: MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let made = Datatype::contiguous(count(n)?, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_vector(
        n: c_int,
        blocklength: c_int,
        stride: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        let made = Datatype::vector(n, block, displacement(stride), &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_vector_c(
        n: MPI_Count,
        blocklength: MPI_Count,
        stride: MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        let made = Datatype::vector(n, block, displacement(stride), &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hvector(
        n: c_int,
        blocklength: c_int,
        stride: MPI_Aint,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        let made = Datatype::hvector(n, block, displacement(stride), &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hvector_c(
        n: MPI_Count,
        blocklength: MPI_Count,
        stride: MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        let made = Datatype::hvector(n, block, displacement(stride), &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_indexed(
        n: c_int,
        array_of_blocklengths: *const c_int,
        array_of_displacements: *const c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let blocks = unsafe { lengths(array_of_blocklengths, n) }?;
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::indexed(&blocks, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_indexed_c(
        n: MPI_Count,
        array_of_blocklengths: *const MPI_Count,
        array_of_displacements: *const MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let blocks = unsafe { lengths(array_of_blocklengths, n) }?;
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::indexed(&blocks, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hindexed(
        n: c_int,
        array_of_blocklengths: *const c_int,
        array_of_displacements: *const MPI_Aint,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let blocks = unsafe { lengths(array_of_blocklengths, n) }?;
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::hindexed(&blocks, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hindexed_c(
        n: MPI_Count,
        array_of_blocklengths: *const MPI_Count,
        array_of_displacements: *const MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let blocks = unsafe { lengths(array_of_blocklengths, n) }?;
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::hindexed(&blocks, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_indexed_block(
        n: c_int,
        blocklength: c_int,
        array_of_displacements: *const c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::indexed_block(block, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_indexed_block_c(
        n: MPI_Count,
        blocklength: MPI_Count,
        array_of_displacements: *const MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::indexed_block(block, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hindexed_block(
        n: c_int,
        blocklength: c_int,
        array_of_displacements: *const MPI_Aint,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::hindexed_block(block, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_hindexed_block_c(
        n: MPI_Count,
        blocklength: MPI_Count,
        array_of_displacements: *const MPI_Count,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (n, block) = (count(n)?, length(blocklength)?);
        // SAFETY: arrays of `n` elements.
        let at = unsafe { displacements(array_of_displacements, n) }?;
        let made = Datatype::hindexed_block(block, &at, &any(oldtype)?)?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_struct(
        n: c_int,
        array_of_blocklengths: *const c_int,
        array_of_displacements: *const MPI_Aint,
        array_of_types: *const MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let made = unsafe { structure(n, array_of_blocklengths, array_of_displacements, array_of_types) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.2.
    fn MPI_Type_create_struct_c(
        n: MPI_Count,
        array_of_blocklengths: *const MPI_Count,
        array_of_displacements: *const MPI_Count,
        array_of_types: *const MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let n = count(n)?;
        // SAFETY: arrays of `n` elements.
        let made = unsafe { structure(n, array_of_blocklengths, array_of_displacements, array_of_types) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.3.
    fn MPI_Type_create_subarray(
        ndims: c_int,
        array_of_sizes: *const c_int,
        array_of_subsizes: *const c_int,
        array_of_starts: *const c_int,
        order: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (sizes, subsizes, starts) = (array_of_sizes, array_of_subsizes, array_of_starts);
        // SAFETY: arrays of `ndims` elements.
        let made = unsafe { subarray(ndims, sizes, subsizes, starts, order, oldtype) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.3.
    fn MPI_Type_create_subarray_c(
        ndims: c_int,
        array_of_sizes: *const MPI_Count,
        array_of_subsizes: *const MPI_Count,
        array_of_starts: *const MPI_Count,
        order: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (sizes, subsizes, starts) = (array_of_sizes, array_of_subsizes, array_of_starts);
        // SAFETY: arrays of `ndims` elements.
        let made = unsafe { subarray(ndims, sizes, subsizes, starts, order, oldtype) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.4.
    fn MPI_Type_create_darray(
        size: c_int,
        rank: c_int,
        ndims: c_int,
        array_of_gsizes: *const c_int,
        array_of_distribs: *const c_int,
        array_of_dargs: *const c_int,
        array_of_psizes: *const c_int,
        order: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (distributions, arguments, processes) = (array_of_distribs, array_of_dargs, array_of_psizes);
        let grid = Grid { size, rank, ndims, distributions, arguments, processes, order };
        // SAFETY: arrays of `ndims` elements.
        let made = unsafe { grid.make(array_of_gsizes, oldtype) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.4.
    fn MPI_Type_create_darray_c(
        size: c_int,
        rank: c_int,
        ndims: c_int,
        array_of_gsizes: *const MPI_Count,
        array_of_distribs: *const c_int,
        array_of_dargs: *const c_int,
        array_of_psizes: *const c_int,
        order: c_int,
        oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let (distributions, arguments, processes) = (array_of_distribs, array_of_dargs, array_of_psizes);
        let grid = Grid { size, rank, ndims, distributions, arguments, processes, order };
        // SAFETY: arrays of `ndims` elements.
        let made = unsafe { grid.make(array_of_gsizes, oldtype) }?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }

    /// MPI 5.0 §5.1.7.
    fn MPI_Type_create_resized(
        oldtype: MPI_Datatype,
        lb: MPI_Aint,
        extent: MPI_Aint,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let made = Datatype::resized(&any(oldtype)?, displacement(lb), displacement(extent))?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made) }
    }

    /// MPI 5.0 §5.1.7.
    fn MPI_Type_create_resized_c(
        oldtype: MPI_Datatype,
        lb: MPI_Count,
        extent: MPI_Count,
        newtype: *mut MPI_Datatype,
    ) raises(MPI_COMM_SELF) {
        let made = Datatype::resized(&any(oldtype)?, displacement(lb), displacement(extent))?;
        // SAFETY: an output argument.
        unsafe { give(newtype, made.as_large()) }
    }
}
