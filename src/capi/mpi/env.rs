//! Asking about the environment: versions, names, time, memory, addresses (MPI 5.0 §9, §20).

use crate::abi::*;
use crate::{export, nonnull};
use core::ffi::c_int;

export! {
    /// MPI 5.0 §9.1.1; legal at any time.
    fn MPI_Get_version(version: *mut c_int, subversion: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (version, subversion) = (nonnull!(version)?, nonnull!(subversion)?);
        // SAFETY: not null, and the caller's to be written (MPI 5.0 §9.1.1).
        unsafe { (*version, *subversion) = (MPI_VERSION, MPI_SUBVERSION) };
        Ok(())
    }
}
