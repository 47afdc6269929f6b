//! The fields of a status (MPI 5.0 §3.2.5, §3.8.4, §13.3). Counts are the datatypes' business.

use crate::arguments::InOut;
use crate::error::Result;
use crate::types::MPI_Status;
use core::ffi::c_int;

/// MPI_Status_get_source.
pub fn source(status: &MPI_Status) -> Result<c_int> {
    Ok(status.source)
}

/// MPI_Status_get_tag.
pub fn tag(status: &MPI_Status) -> Result<c_int> {
    Ok(status.tag)
}

/// MPI_Status_get_error.
pub fn error(status: &MPI_Status) -> Result<c_int> {
    Ok(status.error)
}

/// MPI_Test_cancelled.
pub fn is_cancelled(status: &MPI_Status) -> Result<bool> {
    Ok(status.cancelled())
}

/// MPI_Status_set_source.
pub fn set_source(status: InOut<'_, MPI_Status>, source: c_int) -> Result<()> {
    status.set(MPI_Status { source, ..status.get() });
    Ok(())
}

/// MPI_Status_set_tag.
pub fn set_tag(status: InOut<'_, MPI_Status>, tag: c_int) -> Result<()> {
    status.set(MPI_Status { tag, ..status.get() });
    Ok(())
}

/// MPI_Status_set_error.
pub fn set_error(status: InOut<'_, MPI_Status>, error: c_int) -> Result<()> {
    status.set(MPI_Status { error, ..status.get() });
    Ok(())
}

/// MPI_Status_set_cancelled.
pub fn set_cancelled(status: InOut<'_, MPI_Status>, cancelled: bool) -> Result<()> {
    let mut changed = status.get();
    changed.set_cancelled(cancelled);
    status.set(changed);
    Ok(())
}
