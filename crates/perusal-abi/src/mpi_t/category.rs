//! Categories (MPI 5.0 §15.3.9). The tree is [`crate::variables::category`].

use super::{Outcome, TextPlace, list, row};
use crate::abi::*;
use crate::arguments::{Out, Room, offer};
use crate::tool::pvar::PVARS;
use crate::variables::VARIABLES;
use crate::variables::category::{CATEGORIES, CategoryRow, STAMP};
use core::ffi::c_int;

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

/// MPI_T_category_get_num.
pub fn number() -> Outcome<usize> {
    Ok(CATEGORIES.len())
}

/// MPI_T_category_get_info.
pub fn info(
    index: c_int,
    name: TextPlace<'_>,
    description: TextPlace<'_>,
    num_cvars: Option<Out<'_, c_int>>,
    num_pvars: Option<Out<'_, c_int>>,
    num_categories: Option<Out<'_, c_int>>,
) -> Outcome {
    let of = find(index)?;
    name.give(of.name);
    description.give(of.what);
    offer(num_cvars, cvars(of).count() as c_int);
    offer(num_pvars, pvars(of).count() as c_int);
    offer(num_categories, children(of).count() as c_int);
    Ok(())
}

/// MPI_T_category_get_index.
pub fn index(name: &[u8]) -> Outcome<usize> {
    let wanted = super::name(name)?;
    CATEGORIES.iter().position(|row| row.name == wanted).ok_or(MPI_T_ERR_INVALID_NAME)
}

/// MPI_T_category_get_cvars.
pub fn list_cvars(index: c_int, to: Room<'_, c_int>) -> Outcome {
    list(cvars(find(index)?), &to)
}

/// MPI_T_category_get_pvars.
pub fn list_pvars(index: c_int, to: Room<'_, c_int>) -> Outcome {
    list(pvars(find(index)?), &to)
}

/// MPI_T_category_get_categories.
pub fn list_children(index: c_int, to: Room<'_, c_int>) -> Outcome {
    list(children(find(index)?), &to)
}

/// MPI_T_category_changed: a number that grows when a category changes. Ours never do.
pub fn changed() -> Outcome<c_int> {
    Ok(STAMP)
}
