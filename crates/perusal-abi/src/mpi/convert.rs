//! Handles as Fortran integers (MPI 5.0 §20.3). Every handle fits into a positive `int`, so both ways are the identity.

use core::ffi::c_int;

/// MPI_X_toint.
pub const fn to_int(handle: usize) -> c_int {
    handle as c_int
}

/// MPI_X_fromint. An `int` that never was a handle gives a value that no table knows.
pub const fn from_int(number: c_int) -> usize {
    number as isize as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handles::FIRST;

    #[test]
    fn every_handle_survives_the_way_through_an_int() {
        for handle in [1, crate::abi::MPI_COMM_WORLD, FIRST, i32::MAX as usize] {
            assert!(to_int(handle) > 0);
            assert_eq!(from_int(to_int(handle)), handle);
        }
    }
}
