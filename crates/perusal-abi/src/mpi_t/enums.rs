//! Enumerations by handle (§14.3.5). A handle is the address of the enumeration, which is static.

use super::{Outcome, give, offer, row, tool};
use crate::abi::*;
use crate::tool::event::types::TYPES;
use crate::tool::pvar::PVARS;
use crate::variables::VARIABLES;
use crate::variables::enumeration::Enumeration;
use core::ffi::{c_char, c_int};

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

tool! {
    /// §14.3.5.
    fn MPI_T_enum_get_info(enumtype: usize, num: *mut c_int, name: *mut c_char, name_len: *mut c_int) {
        let of = find(enumtype)?;
        // SAFETY: output arguments.
        unsafe {
            offer(num, of.items.len() as c_int);
            give(of.name, name, name_len);
        }
        Ok(())
    }

    /// §14.3.5.
    fn MPI_T_enum_get_item(
        enumtype: usize, indx: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int,
    ) {
        let item = row(find(enumtype)?.items, indx).map_err(|_| MPI_T_ERR_INVALID_ITEM)?;
        // SAFETY: output arguments.
        unsafe {
            offer(value, item.value);
            give(item.name, name, name_len);
        }
        Ok(())
    }
}
