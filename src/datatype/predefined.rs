//! The static table of predefined types, and the unnamed predefined ones that Fortran asks for.

use std::sync::OnceLock;

use super::basic::{Basic, MachineType, PAIRS};
use super::body::TypeMap;
use super::bounds::Bounds;
use super::signature::Signature;
use super::{Constructor, Datatype};
use crate::abi;
use crate::{Error, Result};

/// Predefined datatype handles are 512..768.
const FIRST: usize = abi::MPI_DATATYPE_NULL;
const TABLE: usize = 256;

fn table() -> &'static [Option<Datatype>; TABLE] {
    static TYPES: OnceLock<[Option<Datatype>; TABLE]> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types = [const { None }; TABLE];
        for basic in Basic::all() {
            types[basic.handle() - FIRST] = Some(single(basic, Constructor::Named(basic.handle())));
        }
        for &(handle, _, value, index) in PAIRS {
            let part = |handle: usize| types[handle - FIRST].clone().expect("pairs are made of basic types");
            types[handle - FIRST] = Some(pair(part(value), part(index), Constructor::Named(handle)));
        }
        types
    })
}

fn single(basic: Basic, made: Constructor) -> Datatype {
    let size = basic.size();
    let bounds = Bounds { data: Some((0, size as isize)), marks: None, align: basic.align() };
    Datatype::build(TypeMap::run(0, size), Signature::basic(basic), bounds, made, [])
}

/// The layout of a C struct of value and index. Its parts are kept for [`Datatype::pair`].
fn pair(value: Datatype, index: Datatype, made: Constructor) -> Datatype {
    let at = value.size().next_multiple_of(index.0.bounds.align) as isize;
    let body = TypeMap::concat([value.0.body.clone(), index.0.body.clone().shifted(at)]);
    let signature = Signature::concat([value.0.signature.clone(), index.0.signature.clone()]);
    let bounds = Bounds {
        data: Some((0, at + index.size() as isize)),
        marks: None,
        align: value.0.bounds.align.max(index.0.bounds.align),
    };
    Datatype::build(body, signature, bounds, made, [value, index])
}

impl Datatype {
    /// The predefined type with this ABI handle. `None` for MPI_DATATYPE_NULL, for optional types that we do not have
    /// ([`super::missing_optional`]), and for all other values.
    #[must_use]
    pub fn predefined(handle: usize) -> Option<Self> {
        Self::predefined_ref(handle).cloned()
    }

    /// The same without counting a reference.
    #[must_use]
    #[inline]
    pub fn predefined_ref(handle: usize) -> Option<&'static Self> {
        table().get(handle.wrapping_sub(FIRST))?.as_ref()
    }

    /// The name that MPI_Type_get_name gives before any MPI_Type_set_name; empty for types without a name.
    #[must_use]
    pub fn initial_name(&self) -> &'static str {
        let Some(handle) = self.named() else { return "" };
        // Where the ABI's table calls by the synonym what the standard calls by another name (MPI 5.0 §3.2.2).
        match handle {
            abi::MPI_LONG_LONG_INT => return "MPI_LONG_LONG_INT",
            abi::MPI_C_COMPLEX => return "MPI_C_COMPLEX",
            _ => {}
        }
        let pair = || PAIRS.iter().find(|pair| pair.0 == handle).map(|pair| pair.1);
        Basic::of(handle).map(Basic::name).or_else(pair).unwrap_or("")
    }

    /// MPI_Type_create_f90_real: the real kind with at least `precision` decimal digits and exponent range `range`;
    /// `None` stands for MPI_UNDEFINED.
    ///
    /// # Errors
    /// [`Error::Arg`] if there is no such kind, or neither is given (MPI 5.0 §19.1.5).
    pub fn f90_real(precision: Option<i32>, range: Option<i32>) -> Result<Self> {
        let made = Constructor::F90Real { precision, range };
        Self::f90(REALS, precision, range, made, "no real kind has this precision and range")
    }

    /// MPI_Type_create_f90_complex; see [`Datatype::f90_real`].
    ///
    /// # Errors
    /// [`Error::Arg`] if there is no such kind.
    pub fn f90_complex(precision: Option<i32>, range: Option<i32>) -> Result<Self> {
        let made = Constructor::F90Complex { precision, range };
        Self::f90(COMPLEXES, precision, range, made, "no complex kind has this precision and range")
    }

    /// MPI_Type_create_f90_integer: the integer kind that holds all numbers of `range` decimal digits.
    ///
    /// # Errors
    /// [`Error::Arg`] if there is no such kind.
    pub fn f90_integer(range: i32) -> Result<Self> {
        let made = Constructor::F90Integer { range };
        Self::f90(INTEGERS, None, Some(range), made, "no integer kind has this range")
    }

    fn f90(
        kinds: &[(i32, i32, usize)],
        precision: Option<i32>,
        range: Option<i32>,
        made: Constructor,
        none: &'static str,
    ) -> Result<Self> {
        if precision.is_none() && range.is_none() {
            return Err(Error::Arg("precision and range are both MPI_UNDEFINED; at least one must be given"));
        }
        let (digits, exponent) = (precision.unwrap_or(i32::MIN), range.unwrap_or(i32::MIN));
        let kind = kinds.iter().find(|kind| digits <= kind.0 && exponent <= kind.1);
        let basic = kind.and_then(|kind| Basic::of(kind.2)).ok_or(Error::Arg(none))?;
        Ok(single(basic, made))
    }

    /// MPI_Type_match_size: the predefined type of a MPI_TYPECLASS_* with `size` bytes.
    ///
    /// # Errors
    /// [`Error::Arg`] if there is none.
    pub fn match_size(class: i32, size: i32) -> Result<Self> {
        let handle = match (class, size) {
            (abi::MPI_TYPECLASS_REAL, 4) => abi::MPI_REAL4,
            (abi::MPI_TYPECLASS_REAL, 8) => abi::MPI_REAL8,
            (abi::MPI_TYPECLASS_REAL, 16) => abi::MPI_REAL16,
            (abi::MPI_TYPECLASS_COMPLEX, 8) => abi::MPI_COMPLEX8,
            (abi::MPI_TYPECLASS_COMPLEX, 16) => abi::MPI_COMPLEX16,
            (abi::MPI_TYPECLASS_COMPLEX, 32) => abi::MPI_COMPLEX32,
            (abi::MPI_TYPECLASS_INTEGER, 1) => abi::MPI_INTEGER1,
            (abi::MPI_TYPECLASS_INTEGER, 2) => abi::MPI_INTEGER2,
            (abi::MPI_TYPECLASS_INTEGER, 4) => abi::MPI_INTEGER4,
            (abi::MPI_TYPECLASS_INTEGER, 8) => abi::MPI_INTEGER8,
            (abi::MPI_TYPECLASS_INTEGER, 16) => abi::MPI_INTEGER16,
            (abi::MPIX_TYPECLASS_LOGICAL, 1) => abi::MPI_LOGICAL1,
            (abi::MPIX_TYPECLASS_LOGICAL, 2) => abi::MPI_LOGICAL2,
            (abi::MPIX_TYPECLASS_LOGICAL, 4) => abi::MPI_LOGICAL4,
            (abi::MPIX_TYPECLASS_LOGICAL, 8) => abi::MPI_LOGICAL8,
            (abi::MPIX_TYPECLASS_LOGICAL, 16) => abi::MPI_LOGICAL16,
            _ => abi::MPI_DATATYPE_NULL,
        };
        Self::predefined(handle).ok_or(Error::Arg("no predefined datatype has this type class and size"))
    }

    /// MPI_Type_get_value_index: the pair type for MPI_MINLOC and MPI_MAXLOC of these two, if there is one.
    #[must_use]
    pub fn value_index(value: &Self, index: &Self) -> Option<Self> {
        let handles = (value.named()?, index.named()?);
        let pair = PAIRS.iter().find(|pair| (pair.2, pair.3) == handles)?;
        Self::predefined(pair.0)
    }
}

/// Precision and range of the kind that is C's `long double` (gfortran's kind 10 on x86-64); no more than a double's
/// where there is no such kind.
const LONG: (i32, i32) = if let MachineType::F80 = MachineType::LONG_DOUBLE { (18, 4931) } else { (15, 307) };

/// gfortran's kinds: decimal precision, exponent range, type.
const REALS: &[(i32, i32, usize)] = &[
    (6, 37, abi::MPI_REAL4),
    (15, 307, abi::MPI_REAL8),
    (LONG.0, LONG.1, abi::MPI_LONG_DOUBLE),
    (33, 4931, abi::MPI_REAL16),
];
const COMPLEXES: &[(i32, i32, usize)] = &[
    (6, 37, abi::MPI_COMPLEX8),
    (15, 307, abi::MPI_COMPLEX16),
    (LONG.0, LONG.1, abi::MPI_C_LONG_DOUBLE_COMPLEX),
    (33, 4931, abi::MPI_COMPLEX32),
];
const INTEGERS: &[(i32, i32, usize)] = &[
    (i32::MAX, 2, abi::MPI_INTEGER1),
    (i32::MAX, 4, abi::MPI_INTEGER2),
    (i32::MAX, 9, abi::MPI_INTEGER4),
    (i32::MAX, 18, abi::MPI_INTEGER8),
    (i32::MAX, 38, abi::MPI_INTEGER16),
];
