//! Integers of every width, counts, lengths, displacements, flags, and arguments that stay as they are.

use super::Argument;
use crate::error::{Error, Result};
use core::ffi::{c_int, c_void};

/// `int`, `MPI_Aint`, `MPI_Count`.
pub trait Integer: Copy {
    /// As the widest.
    fn wide(self) -> i64;
    /// From the widest; `None` if it does not fit.
    fn narrow(value: i64) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn narrow(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}
integers!(c_int, isize, i64);

macro_rules! as_it_is {
    ($($ty:ty),*) => {$(
        impl Argument<'_, $ty> for $ty {
            #[inline(always)]
            unsafe fn of(from: $ty) -> Result<Self> {
                Ok(from)
            }
        }
    )*};
}
as_it_is!(c_int, isize, i64, usize, *mut c_void, *const c_void);

impl Argument<'_, c_int> for i64 {
    #[inline(always)]
    unsafe fn of(from: c_int) -> Result<Self> {
        Ok(from.into())
    }
}

impl Argument<'_, isize> for i64 {
    #[inline(always)]
    unsafe fn of(from: isize) -> Result<Self> {
        Ok(from as i64)
    }
}

/// Any number but 0 is true.
impl Argument<'_, c_int> for bool {
    #[inline(always)]
    unsafe fn of(from: c_int) -> Result<Self> {
        Ok(from != 0)
    }
}

/// A callback, or NULL.
impl<F> Argument<'_, Option<F>> for Option<F> {
    #[inline(always)]
    unsafe fn of(from: Option<F>) -> Result<Self> {
        Ok(from)
    }
}

/// A count of elements.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub usize);

impl<C: Integer> Argument<'_, C> for Count {
    #[inline(always)]
    unsafe fn of(from: C) -> Result<Self> {
        Self::checked(from.wide())
    }
}

impl Count {
    /// # Errors
    /// [`Error::Count`] if it is negative.
    #[inline(always)]
    pub fn checked(count: i64) -> Result<Self> {
        usize::try_from(count).map(Self).map_err(|_| Error::Count(count))
    }
}

/// A block length, or the size of a dimension.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub usize);

impl Length {
    /// # Errors
    /// [`Error::Arg`] if it is negative.
    pub fn checked(length: i64) -> Result<Self> {
        usize::try_from(length).map(Self).map_err(|_| Error::Arg("a block length or size is negative"))
    }
}

impl<C: Integer> Argument<'_, C> for Length {
    unsafe fn of(from: C) -> Result<Self> {
        Self::checked(from.wide())
    }
}

/// A displacement or an address.
#[derive(Debug, Clone, Copy)]
pub struct Displacement(pub isize);

impl<C: Integer> Argument<'_, C> for Displacement {
    unsafe fn of(from: C) -> Result<Self> {
        Ok(Self(from.wide() as isize))
    }
}
