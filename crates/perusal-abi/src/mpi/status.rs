//! The fields of a status (MPI 5.0 §3.2.5, §3.8.4, §13.3). Counts are the datatypes' business.

use crate::abi::*;
use crate::capi::types::MPI_Status;
use crate::{export, nonnull};
use core::ffi::c_int;

export! {
    /// MPI 5.0 §3.2.5.
    fn MPI_Status_get_source(status: *const MPI_Status, source: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (status, source) = (nonnull!(status)?, nonnull!(source)?);
        // SAFETY: neither is null; the user passes a status and a place for the result.
        unsafe { *source = (*status).source };
        Ok(())
    }
    /// MPI 5.0 §3.2.5.
    fn MPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (status, tag) = (nonnull!(status)?, nonnull!(tag)?);
        // SAFETY: neither is null; the user passes a status and a place for the result.
        unsafe { *tag = (*status).tag };
        Ok(())
    }
    /// MPI 5.0 §3.2.5.
    fn MPI_Status_get_error(status: *const MPI_Status, error: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (status, error) = (nonnull!(status)?, nonnull!(error)?);
        // SAFETY: neither is null; the user passes a status and a place for the result.
        unsafe { *error = (*status).error };
        Ok(())
    }
    /// MPI 5.0 §13.3.
    fn MPI_Status_set_source(status: *mut MPI_Status, source: c_int) anytime raises(MPI_COMM_SELF) {
        let status = nonnull!(status)?;
        // SAFETY: not null; the user passes a status to be changed.
        unsafe { (*status).source = source };
        Ok(())
    }
    /// MPI 5.0 §13.3.
    fn MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) anytime raises(MPI_COMM_SELF) {
        let status = nonnull!(status)?;
        // SAFETY: not null; the user passes a status to be changed.
        unsafe { (*status).tag = tag };
        Ok(())
    }
    /// MPI 5.0 §13.3.
    fn MPI_Status_set_error(status: *mut MPI_Status, error: c_int) anytime raises(MPI_COMM_SELF) {
        let status = nonnull!(status)?;
        // SAFETY: not null; the user passes a status to be changed.
        unsafe { (*status).error = error };
        Ok(())
    }
    /// MPI 5.0 §13.3.
    fn MPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) anytime raises(MPI_COMM_SELF) {
        let status = nonnull!(status)?;
        // SAFETY: not null; the user passes a status to be changed.
        unsafe { (*status).set_cancelled(flag != 0) };
        Ok(())
    }
    /// MPI 5.0 §3.8.4.
    fn MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (status, flag) = (nonnull!(status)?, nonnull!(flag)?);
        // SAFETY: neither is null; the user passes a status and a place for the result.
        unsafe { *flag = c_int::from((*status).cancelled()) };
        Ok(())
    }
}
