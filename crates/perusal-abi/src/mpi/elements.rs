//! How much was received, by a status (MPI 5.0 §3.2.5, §5.1.11, §13.3).

use crate::arguments::{Count, InOut, OrUndefined};
use crate::datatype::Datatype;
use crate::datatypes::{any, contiguous_size};
use crate::error::Result;
use crate::types::{MPI_Datatype, MPI_Status};

fn or_undefined(number: Option<usize>) -> OrUndefined {
    OrUndefined(number.and_then(|number| i64::try_from(number).ok()))
}

/// MPI_Get_count: whole elements.
pub fn count(status: &MPI_Status, datatype: MPI_Datatype) -> Result<OrUndefined> {
    let bytes = status.bytes() as usize;
    Ok(or_undefined(match contiguous_size(datatype) {
        Some(size) => bytes.is_multiple_of(size).then_some(bytes / size),
        None => any(datatype)?.count_in(bytes),
    }))
}

/// MPI_Get_elements: basic elements.
pub fn elements(status: &MPI_Status, datatype: Datatype) -> Result<OrUndefined> {
    Ok(or_undefined(datatype.elements_in(status.bytes() as usize)))
}

/// MPI_Status_set_elements: makes the status say that `n` basic elements came.
pub fn set_elements(status: InOut<'_, MPI_Status>, datatype: Datatype, n: Count) -> Result<()> {
    let bytes = datatype.bytes_of_elements(n.0)?;
    let mut changed = status.get();
    changed.set_bytes(bytes as u64);
    status.set(changed);
    Ok(())
}
