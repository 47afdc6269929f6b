//! Categories (§14.3.8). The tree is [`crate::variables::category`].

use super::{Outcome, give, list, name, offer, put, row, tool};
use crate::abi::*;
use crate::tool::pvar::PVARS;
use crate::variables::VARIABLES;
use crate::variables::category::{CATEGORIES, CategoryRow, STAMP};
use core::ffi::{c_char, c_int};

pub(super) fn find(index: c_int) -> Outcome<&'static CategoryRow> {
    row(CATEGORIES, index)
}

fn cvars(of: &CategoryRow) -> impl Iterator<Item = usize> {
    VARIABLES.iter().filter(|variable| variable.category == of.id).map(|variable| variable.id as usize)
}

fn pvars(of: &CategoryRow) -> impl Iterator<Item = usize> {
    PVARS.iter().enumerate().filter(|(_, pvar)| pvar.category == of.id).map(|(index, _)| index)
}

fn children(of: &CategoryRow) -> impl Iterator<Item = usize> {
    of.id.children().map(|child| child as usize)
}

tool! {
    /// §14.3.8.
    fn MPI_T_category_get_num(num_cat: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(num_cat, CATEGORIES.len() as c_int) }
    }

    /// §14.3.8.
    fn MPI_T_category_get_info(
        cat_index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        num_cvars: *mut c_int, num_pvars: *mut c_int, num_categories: *mut c_int,
    ) {
        let of = find(cat_index)?;
        // SAFETY: output arguments.
        unsafe {
            give(of.name, name, name_len);
            give(of.what, desc, desc_len);
            offer(num_cvars, cvars(of).count() as c_int);
            offer(num_pvars, pvars(of).count() as c_int);
            offer(num_categories, children(of).count() as c_int);
        }
        Ok(())
    }

    /// §14.3.8.
    fn MPI_T_category_get_index(name_: *const c_char, cat_index: *mut c_int) {
        // SAFETY: a string argument.
        let wanted = unsafe { name(name_) }?;
        let index = CATEGORIES.iter().position(|row| row.name == wanted).ok_or(MPI_T_ERR_INVALID_NAME)?;
        // SAFETY: an output argument.
        unsafe { put(cat_index, index as c_int) }
    }

    /// §14.3.8.
    fn MPI_T_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) {
        // SAFETY: the caller gives room for `len`.
        unsafe { list(cvars(find(cat_index)?), len, indices) }
    }

    /// §14.3.8.
    fn MPI_T_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) {
        // SAFETY: the caller gives room for `len`.
        unsafe { list(pvars(find(cat_index)?), len, indices) }
    }

    /// §14.3.8.
    fn MPI_T_category_get_categories(cat_index: c_int, len: c_int, indices: *mut c_int) {
        // SAFETY: the caller gives room for `len`.
        unsafe { list(children(find(cat_index)?), len, indices) }
    }

    /// §14.3.8: a number that grows when a category changes. Ours never do.
    fn MPI_T_category_changed(update_number: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(update_number, STAMP) }
    }
}
