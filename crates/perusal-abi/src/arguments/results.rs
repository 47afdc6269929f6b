//! Values of results: what becomes of a Rust value where C has an integer.

use super::Integer;
use crate::abi;
use crate::error::{Error, Result};
use core::ffi::c_int;

/// What can be written where C has a `T`.
pub trait Given<T> {
    /// As C has it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it does not fit.
    fn given(self) -> Result<T>;
}

impl<T> Given<T> for T {
    #[inline(always)]
    fn given(self) -> Result<T> {
        Ok(self)
    }
}
impl Given<c_int> for bool {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self.into())
    }
}
/// A rank, or a number of ranks: fewer than `INT_MAX`.
impl Given<c_int> for u32 {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self as c_int)
    }
}
/// A number of things that the library has.
impl Given<c_int> for usize {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self as c_int)
    }
}

/// A number that must fit into the result's type; the text names it.
#[derive(Debug, Clone, Copy)]
pub struct Fitting(pub usize, pub &'static str);

impl<T: Integer> Given<T> for Fitting {
    fn given(self) -> Result<T> {
        i64::try_from(self.0).ok().and_then(T::narrow).ok_or(Error::TooLarge(self.1))
    }
}

/// A number that becomes MPI_UNDEFINED where there is none, or where it does not fit.
#[derive(Debug, Clone, Copy)]
pub struct OrUndefined(pub Option<i64>);

impl<T: Integer> Given<T> for OrUndefined {
    #[inline]
    fn given(self) -> Result<T> {
        let undefined = || T::narrow(abi::MPI_UNDEFINED.into()).ok_or(Error::TooLarge("MPI_UNDEFINED"));
        self.0.and_then(T::narrow).map_or_else(undefined, Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Count;
    use super::*;

    #[test]
    fn what_does_not_fit_is_undefined_or_an_error() {
        let large = i64::from(c_int::MAX) + 1;
        assert_eq!(Given::<c_int>::given(OrUndefined(Some(large))), Ok(abi::MPI_UNDEFINED));
        assert_eq!(Given::<i64>::given(OrUndefined(Some(large))), Ok(large));
        assert_eq!(Given::<c_int>::given(OrUndefined(None)), Ok(abi::MPI_UNDEFINED));
        assert!(matches!(Given::<c_int>::given(Fitting(large as usize, "it")), Err(Error::TooLarge("it"))));
        assert!(matches!(Count::checked(-1), Err(Error::Count(-1))));
    }
}
