//! How much a status tells was received (MPI 5.0 §3.2.5, §5.1.11, §13.3).

use crate::abi::*;
use crate::capi::args::{put, take};
use crate::capi::datatypes::{any, contiguous_size};
use crate::capi::types::{MPI_Count, MPI_Datatype, MPI_Status};
use crate::{Error, Result, export};
use core::ffi::c_int;

/// Whole elements in a status.
///
/// # Safety
/// `status` is NULL or a status.
unsafe fn count(status: *const MPI_Status, datatype: MPI_Datatype) -> Result<Option<usize>> {
    // SAFETY: the caller's.
    let bytes = unsafe { take(status) }?.bytes() as usize;
    match contiguous_size(datatype) {
        Some(size) => Ok(bytes.is_multiple_of(size).then_some(bytes / size)),
        None => Ok(any(datatype)?.count_in(bytes)),
    }
}

/// Basic elements in a status.
///
/// # Safety
/// `status` is NULL or a status.
unsafe fn elements(status: *const MPI_Status, datatype: MPI_Datatype) -> Result<Option<usize>> {
    // SAFETY: the caller's.
    let bytes = unsafe { take(status) }?.bytes() as usize;
    Ok(any(datatype)?.elements_in(bytes))
}

/// A number that cannot be told is MPI_UNDEFINED.
fn as_int(number: Option<usize>) -> c_int {
    number.and_then(|n| c_int::try_from(n).ok()).unwrap_or(MPI_UNDEFINED)
}

fn as_count(number: Option<usize>) -> MPI_Count {
    number.and_then(|n| MPI_Count::try_from(n).ok()).unwrap_or(MPI_Count::from(MPI_UNDEFINED))
}

/// Makes `status` say that `n` basic elements came.
///
/// # Safety
/// `status` is NULL or a status that may be changed.
unsafe fn set_elements(status: *mut MPI_Status, datatype: MPI_Datatype, n: i64) -> Result<()> {
    let bytes = any(datatype)?.bytes_of_elements(usize::try_from(n).map_err(|_| Error::Count(n))?)?;
    // SAFETY: the caller's.
    let mut changed = unsafe { take(status) }?;
    changed.set_bytes(bytes as u64);
    // SAFETY: the caller's.
    unsafe { put(status, changed) }
}

export! {
    /// MPI 5.0 §3.2.5.
    fn MPI_Get_count(status: *const MPI_Status, datatype: MPI_Datatype, n: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: a status and an output argument.
        unsafe { put(n, as_int(count(status, datatype)?)) }
    }

    /// MPI 5.0 §3.2.5.
    fn MPI_Get_count_c(status: *const MPI_Status, datatype: MPI_Datatype, n: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: a status and an output argument.
        unsafe { put(n, as_count(count(status, datatype)?)) }
    }

    /// MPI 5.0 §5.1.11.
    fn MPI_Get_elements(status: *const MPI_Status, datatype: MPI_Datatype, n: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: a status and an output argument.
        unsafe { put(n, as_int(elements(status, datatype)?)) }
    }

    /// MPI 5.0 §5.1.11.
    fn MPI_Get_elements_c(status: *const MPI_Status, datatype: MPI_Datatype, n: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: a status and an output argument.
        unsafe { put(n, as_count(elements(status, datatype)?)) }
    }

    /// MPI 5.0 §16.3: the old name of MPI_Get_elements_c.
    fn MPI_Get_elements_x(status: *const MPI_Status, datatype: MPI_Datatype, n: *mut MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: a status and an output argument.
        unsafe { put(n, as_count(elements(status, datatype)?)) }
    }

    /// MPI 5.0 §13.3.
    fn MPI_Status_set_elements(status: *mut MPI_Status, datatype: MPI_Datatype, n: c_int) raises(MPI_COMM_SELF) {
        // SAFETY: a status of the caller's.
        unsafe { set_elements(status, datatype, i64::from(n)) }
    }

    /// MPI 5.0 §13.3.
    fn MPI_Status_set_elements_c(status: *mut MPI_Status, datatype: MPI_Datatype, n: MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: a status of the caller's.
        unsafe { set_elements(status, datatype, n) }
    }

    /// MPI 5.0 §16.3: the old name of MPI_Status_set_elements_c.
    fn MPI_Status_set_elements_x(status: *mut MPI_Status, datatype: MPI_Datatype, n: MPI_Count) raises(MPI_COMM_SELF) {
        // SAFETY: a status of the caller's.
        unsafe { set_elements(status, datatype, n) }
    }
}
