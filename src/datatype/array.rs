//! Subarrays and distributed arrays (MPI 5.0 §5.1.3, §5.1.4).

use super::body::TypeMap;
use super::bounds::Bounds;
use super::construct::TOO_LARGE;
use super::{Constructor, Datatype};
use crate::abi;
use crate::{Error, Result};

/// Which index varies fastest in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last one.
    C,
    /// The first one.
    Fortran,
}

impl Order {
    /// From MPI_ORDER_C or MPI_ORDER_FORTRAN.
    ///
    /// # Errors
    /// [`Error::Arg`] for any other value.
    pub fn from_constant(value: i32) -> Result<Self> {
        match value {
            abi::MPI_ORDER_C => Ok(Self::C),
            abi::MPI_ORDER_FORTRAN => Ok(Self::Fortran),
            _ => Err(Error::Arg("order must be MPI_ORDER_C or MPI_ORDER_FORTRAN")),
        }
    }

    /// The ABI's constant.
    #[must_use]
    pub fn constant(self) -> i32 {
        match self {
            Self::C => abi::MPI_ORDER_C,
            Self::Fortran => abi::MPI_ORDER_FORTRAN,
        }
    }

    /// The dimensions from the fastest to the slowest.
    fn fastest_first(self, dims: usize) -> impl Iterator<Item = usize> {
        (0..dims).map(move |i| if self == Self::C { dims - 1 - i } else { i })
    }
}

/// One dimension of a distributed array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distribution {
    /// Elements in this dimension of the global array.
    pub size: usize,
    /// MPI_DISTRIBUTE_NONE, _BLOCK or _CYCLIC.
    pub distribution: i32,
    /// Elements in a block, or MPI_DISTRIBUTE_DFLT_DARG.
    pub argument: i32,
    /// Processes in this dimension of the grid.
    pub processes: i32,
}

/// The array that is built dimension by dimension, the fastest first.
struct GrownType {
    body: TypeMap,
    data: Bounds,
    copies: usize,
    stride: isize,
}

impl GrownType {
    fn new(old: &Datatype) -> Self {
        Self { body: old.0.body.clone(), data: old.0.bounds, copies: 1, stride: old.extent() }
    }

    /// One more dimension of `size` elements of which the `blocks` (first, length) are taken.
    fn dimension(&mut self, old: &Datatype, size: usize, blocks: &BlockDistribution) -> Result<()> {
        let inner = Bounds { marks: None, ..self.data };
        let mut data = Bounds { align: inner.align, ..Bounds::EMPTY };
        let scale = |elements: usize| {
            isize::try_from(elements).ok().and_then(|e| e.checked_mul(self.stride)).ok_or(TOO_LARGE)
        };
        let taken = (blocks.count * blocks.length).checked_add(blocks.tail).ok_or(TOO_LARGE)?;
        self.copies = self.copies.checked_mul(taken).ok_or(TOO_LARGE)?;
        old.check_size(self.copies)?;
        let mut parts = Vec::new();
        if blocks.count > 0 {
            let (first, step) = (scale(blocks.first)?, scale(blocks.step)?);
            let block = self.body.repeated(blocks.length, self.stride).shifted(first);
            parts.push(block.repeated(blocks.count, step));
            let last = scale(blocks.first + (blocks.count - 1) * blocks.step)?;
            data.add(&inner, first, blocks.length, self.stride)?;
            data.add(&inner, last, blocks.length, self.stride)?;
        }
        if blocks.tail > 0 {
            let at = scale(blocks.first + blocks.count * blocks.step)?;
            parts.push(self.body.repeated(blocks.tail, self.stride).shifted(at));
            data.add(&inner, at, blocks.tail, self.stride)?;
        }
        self.stride = scale(size)?;
        self.body = TypeMap::concat(parts);
        self.data = data;
        Ok(())
    }

    fn finish(self, old: &Datatype, made: Constructor) -> Datatype {
        let bounds = Bounds { marks: Some((0, self.stride)), ..self.data };
        let signature = old.0.signature.repeated(self.copies);
        Datatype::build(self.body, signature, bounds, made, [old.clone()])
    }
}

/// The elements of one dimension that are taken: `count` blocks of `length`, `step` apart, from `first` on,
/// and a last block of `tail`.
struct BlockDistribution {
    first: usize,
    length: usize,
    count: usize,
    step: usize,
    tail: usize,
}

impl Datatype {
    /// MPI_Type_create_subarray: `subsizes` elements from `starts` on of an array of `sizes` elements.
    ///
    /// # Errors
    /// [`Error::Arg`] if there is no dimension, the arrays differ in length, a size is 0, or the part is not inside
    /// the whole.
    pub fn subarray(
        sizes: &[usize],
        subsizes: &[usize],
        starts: &[usize],
        order: Order,
        old: &Self,
    ) -> Result<Self> {
        let dims = sizes.len();
        if dims == 0 || subsizes.len() != dims || starts.len() != dims {
            return Err(Error::Arg("a subarray needs sizes, subsizes and starts for at least one dimension"));
        }
        let mut grown = GrownType::new(old);
        for d in order.fastest_first(dims) {
            let (size, length, first) = (sizes[d], subsizes[d], starts[d]);
            if length == 0 || length > size || first > size - length {
                return Err(Error::Arg("the subarray is empty or not inside the array"));
            }
            grown.dimension(
                old,
                size,
                &BlockDistribution { first, length, count: 1, step: length, tail: 0 },
            )?;
        }
        let made = Constructor::Subarray {
            sizes: sizes.into(),
            subsizes: subsizes.into(),
            starts: starts.into(),
            order,
        };
        Ok(grown.finish(old, made))
    }

    /// MPI_Type_create_darray: the part of process `rank` of `size` in a distributed array. Ranks are laid out over the
    /// process grid in row-major order, whatever the order of the array.
    ///
    /// # Errors
    /// [`Error::Arg`] if the grid does not have `size` processes or a distribution does not cover its dimension.
    pub fn darray(size: i32, rank: i32, dims: &[Distribution], order: Order, old: &Self) -> Result<Self> {
        let processes = dims.iter().try_fold(1i32, |product, d| product.checked_mul(d.processes));
        if dims.is_empty() || size < 1 || dims.iter().any(|d| d.processes < 1) || processes != Some(size) {
            return Err(Error::Arg("the process grid must have as many processes as the group"));
        }
        if !(0..size).contains(&rank) {
            return Err(Error::Arg("the rank is not in the process grid"));
        }
        let mut coordinates = vec![0usize; dims.len()];
        let mut rest = rank;
        for (coordinate, dim) in coordinates.iter_mut().zip(dims).rev() {
            *coordinate = (rest % dim.processes) as usize;
            rest /= dim.processes;
        }
        let mut grown = GrownType::new(old);
        for d in order.fastest_first(dims.len()) {
            let blocks = dims[d].blocks(coordinates[d])?;
            grown.dimension(old, dims[d].size, &blocks)?;
        }
        Ok(grown.finish(old, Constructor::Darray { size, rank, dims: dims.into(), order }))
    }
}

impl Distribution {
    /// The elements in a block, if they are given: of a dimension that is not distributed nobody asks (MPI 5.0 §5.1.4).
    fn block(&self) -> Result<Option<usize>> {
        match usize::try_from(self.argument) {
            _ if self.argument == abi::MPI_DISTRIBUTE_DFLT_DARG => Ok(None),
            Ok(block) if block > 0 => Ok(Some(block)),
            _ => Err(Error::Arg("the distribution argument must be positive")),
        }
    }

    /// The elements of the process at `coordinate`.
    fn blocks(&self, coordinate: usize) -> Result<BlockDistribution> {
        let (size, processes) = (self.size, self.processes as usize);
        if size == 0 {
            return Err(Error::Arg("a dimension of a distributed array has no elements"));
        }
        let block = match self.distribution {
            abi::MPI_DISTRIBUTE_NONE if processes == 1 => size,
            abi::MPI_DISTRIBUTE_NONE => {
                return Err(Error::Arg("a dimension that is not distributed must have one process"));
            }
            abi::MPI_DISTRIBUTE_BLOCK => {
                let block = self.block()?.unwrap_or(size.div_ceil(processes));
                if block.checked_mul(processes).is_some_and(|covered| covered < size) {
                    return Err(Error::Arg("the blocks do not cover the dimension"));
                }
                block
            }
            abi::MPI_DISTRIBUTE_CYCLIC => self.block()?.unwrap_or(1),
            _ => {
                return Err(Error::Arg(
                    "a distribution is none of MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC and MPI_DISTRIBUTE_NONE",
                ));
            }
        };
        let step = block.checked_mul(processes).ok_or(TOO_LARGE)?;
        let first = (block * coordinate).min(size);
        let left = size - first;
        let mut blocks = BlockDistribution { first, length: block, count: left / step, step, tail: 0 };
        let over = left % step;
        if over >= block {
            blocks.count += 1;
        } else {
            blocks.tail = over;
        }
        Ok(blocks)
    }
}
