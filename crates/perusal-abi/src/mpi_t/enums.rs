//! Enumerations by handle (MPI 5.0 §15.3.5). A handle is the address of the enumeration, which is static.

use super::{Outcome, TextPlace, row};
use crate::abi::*;
use crate::arguments::{Out, offer};
use crate::tool::event::types::TYPES;
use crate::tool::pvar::PVARS;
use crate::variables::VARIABLES;
use crate::variables::enumeration::Enumeration;
use core::ffi::c_int;

/// The handle of an enumeration.
pub(crate) fn handle_of(enumeration: Option<&'static Enumeration>) -> usize {
    enumeration.map_or(MPI_T_ENUM_NULL, |of| core::ptr::from_ref(of).addr())
}

/// Every enumeration that a variable or event has; some several times.
fn all() -> impl Iterator<Item = &'static Enumeration> {
    let of_events = TYPES.iter().map(|kind| kind.names);
    let of_pvars = PVARS.iter().filter_map(|pvar| pvar.enumeration);
    VARIABLES.iter().filter_map(|variable| variable.enumeration()).chain(of_pvars).chain(of_events)
}

fn find(handle: usize) -> Outcome<&'static Enumeration> {
    all().find(|of| core::ptr::from_ref(*of).addr() == handle).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// MPI_T_enum_get_info.
pub fn info(handle: usize, number: Option<Out<'_, c_int>>, name: TextPlace<'_>) -> Outcome {
    let of = find(handle)?;
    offer(number, of.items.len() as c_int);
    name.give(of.name);
    Ok(())
}

/// MPI_T_enum_get_item.
pub fn item(handle: usize, index: c_int, value: Option<Out<'_, c_int>>, name: TextPlace<'_>) -> Outcome {
    let item = row(find(handle)?.items, index)?;
    offer(value, item.value);
    name.give(item.name);
    Ok(())
}
