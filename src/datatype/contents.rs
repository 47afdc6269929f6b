//! How a type was made: envelope and contents (MPI 5.0 §5.1.13).

use super::{Datatype, Distribution, Order};
use crate::abi;

/// The constructor and its arguments other than datatypes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // The arguments have the names and meanings of the constructors.
pub enum Constructor {
    /// Predefined, with this ABI handle.
    Named(usize),
    Dup,
    Contiguous {
        count: usize,
    },
    Vector {
        count: usize,
        blocklength: usize,
        stride: isize,
    },
    Hvector {
        count: usize,
        blocklength: usize,
        stride: isize,
    },
    Indexed {
        lengths: Box<[usize]>,
        displacements: Box<[isize]>,
    },
    Hindexed {
        lengths: Box<[usize]>,
        displacements: Box<[isize]>,
    },
    IndexedBlock {
        blocklength: usize,
        displacements: Box<[isize]>,
    },
    HindexedBlock {
        blocklength: usize,
        displacements: Box<[isize]>,
    },
    Struct {
        lengths: Box<[usize]>,
        displacements: Box<[isize]>,
    },
    Subarray {
        sizes: Box<[usize]>,
        subsizes: Box<[usize]>,
        starts: Box<[usize]>,
        order: Order,
    },
    Darray {
        size: i32,
        rank: i32,
        dims: Box<[Distribution]>,
        order: Order,
    },
    Resized {
        lb: isize,
        extent: isize,
    },
    F90Real {
        precision: Option<i32>,
        range: Option<i32>,
    },
    F90Complex {
        precision: Option<i32>,
        range: Option<i32>,
    },
    F90Integer {
        range: i32,
    },
}

impl Constructor {
    /// Named, or one of the unnamed predefined types.
    #[must_use]
    pub fn is_predefined(&self) -> bool {
        matches!(
            self,
            Self::Named(_) | Self::F90Real { .. } | Self::F90Complex { .. } | Self::F90Integer { .. }
        )
    }

    /// The MPI_COMBINER_* constant.
    #[must_use]
    pub fn combiner(&self) -> i32 {
        match self {
            Self::Named(_) => abi::MPI_COMBINER_NAMED,
            Self::Dup => abi::MPI_COMBINER_DUP,
            Self::Contiguous { .. } => abi::MPI_COMBINER_CONTIGUOUS,
            Self::Vector { .. } => abi::MPI_COMBINER_VECTOR,
            Self::Hvector { .. } => abi::MPI_COMBINER_HVECTOR,
            Self::Indexed { .. } => abi::MPI_COMBINER_INDEXED,
            Self::Hindexed { .. } => abi::MPI_COMBINER_HINDEXED,
            Self::IndexedBlock { .. } => abi::MPI_COMBINER_INDEXED_BLOCK,
            Self::HindexedBlock { .. } => abi::MPI_COMBINER_HINDEXED_BLOCK,
            Self::Struct { .. } => abi::MPI_COMBINER_STRUCT,
            Self::Subarray { .. } => abi::MPI_COMBINER_SUBARRAY,
            Self::Darray { .. } => abi::MPI_COMBINER_DARRAY,
            Self::Resized { .. } => abi::MPI_COMBINER_RESIZED,
            Self::F90Real { .. } => abi::MPI_COMBINER_F90_REAL,
            Self::F90Complex { .. } => abi::MPI_COMBINER_F90_COMPLEX,
            Self::F90Integer { .. } => abi::MPI_COMBINER_F90_INTEGER,
        }
    }
}

/// What MPI_Type_get_contents gives: the arguments in the order of the standard's tables.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// C's `int` arguments.
    pub integers: Vec<i32>,
    /// `MPI_Aint` arguments.
    pub addresses: Vec<isize>,
    /// `MPI_Count` arguments; empty unless the type was made by a `_c` constructor.
    pub counts: Vec<i64>,
    /// Datatype arguments.
    pub types: Vec<Datatype>,
}

/// Collects arguments under the names that they have in the two forms of a constructor.
struct ArgumentWriter {
    large: bool,
    out: Contents,
}

impl ArgumentWriter {
    /// `int` in both forms.
    fn int(&mut self, value: i32) {
        self.out.integers.push(value);
    }
    /// `int`, or `MPI_Count` in the large form.
    fn count(&mut self, value: isize) {
        if self.large {
            self.out.counts.push(value as i64);
        } else {
            // The `int` form was given an `int`.
            self.out.integers.push(value as i32);
        }
    }
    /// `MPI_Aint`, or `MPI_Count` in the large form.
    fn address(&mut self, value: isize) {
        if self.large {
            self.out.counts.push(value as i64);
        } else {
            self.out.addresses.push(value);
        }
    }
    fn lengths(&mut self, values: &[usize]) {
        values.iter().for_each(|v| self.count(*v as isize));
    }
}

impl Datatype {
    /// Says that a `_c` constructor made it. To be called on the new type before anybody else has it.
    #[must_use]
    pub fn as_large(mut self) -> Self {
        if let Some(inner) = std::sync::Arc::get_mut(&mut self.0) {
            inner.large = true;
        }
        self
    }

    /// The arguments of the constructor; empty for named types.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let mut w = ArgumentWriter { large: self.0.large, out: Contents::default() };
        match self.made() {
            Constructor::Named(_) => return w.out,
            Constructor::Dup => {}
            Constructor::Contiguous { count } => w.count(*count as isize),
            Constructor::Vector { count, blocklength, stride } => {
                w.lengths(&[*count, *blocklength]);
                w.count(*stride);
            }
            Constructor::Hvector { count, blocklength, stride } => {
                w.lengths(&[*count, *blocklength]);
                w.address(*stride);
            }
            Constructor::Indexed { lengths, displacements } => {
                w.count(lengths.len() as isize);
                w.lengths(lengths);
                displacements.iter().for_each(|d| w.count(*d));
            }
            Constructor::Hindexed { lengths, displacements }
            | Constructor::Struct { lengths, displacements } => {
                w.count(lengths.len() as isize);
                w.lengths(lengths);
                displacements.iter().for_each(|d| w.address(*d));
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                w.lengths(&[displacements.len(), *blocklength]);
                displacements.iter().for_each(|d| w.count(*d));
            }
            Constructor::HindexedBlock { blocklength, displacements } => {
                w.lengths(&[displacements.len(), *blocklength]);
                displacements.iter().for_each(|d| w.address(*d));
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                w.int(sizes.len() as i32);
                [sizes, subsizes, starts].into_iter().for_each(|array| w.lengths(array));
                w.int(order.constant());
            }
            Constructor::Darray { size, rank, dims, order } => darray(&mut w, *size, *rank, dims, *order),
            Constructor::Resized { lb, extent } => {
                w.address(*lb);
                w.address(*extent);
            }
            Constructor::F90Real { precision, range } | Constructor::F90Complex { precision, range } => {
                w.int(precision.unwrap_or(abi::MPI_UNDEFINED));
                w.int(range.unwrap_or(abi::MPI_UNDEFINED));
            }
            Constructor::F90Integer { range } => w.int(*range),
        }
        w.out.types = self.parts().to_vec();
        w.out
    }
}

fn darray(w: &mut ArgumentWriter, size: i32, rank: i32, dims: &[Distribution], order: Order) {
    [size, rank, dims.len() as i32].into_iter().for_each(|v| w.int(v));
    dims.iter().for_each(|d| w.count(d.size as isize));
    dims.iter().for_each(|d| w.int(d.distribution));
    dims.iter().for_each(|d| w.int(d.argument));
    dims.iter().for_each(|d| w.int(d.processes));
    w.int(order.constant());
}
