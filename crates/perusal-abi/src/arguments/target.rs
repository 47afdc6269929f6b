//! Targets of one-sided operations.

use super::{Call, Count, Integer};
use crate::abi::MPI_PROC_NULL;
use crate::datatype::Datatype;
use crate::datatypes;
use crate::error::Result;
use crate::rma;
use crate::windows::{self, WindowObject};
use core::ffi::c_int;

/// The target of a one-sided operation: elements in the memory of a rank of a window, which nobody frees during `'a` (argument rule 2).
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The window.
    pub win: &'a WindowObject,
    /// A rank, or MPI_PROC_NULL. Whether the window has it, its use says.
    pub rank: c_int,
    disp: i64,
    count: usize,
    /// The type of the elements.
    pub datatype: &'a Datatype,
}

impl Call {
    /// The target of an operation on window `win`.
    ///
    /// # Safety
    /// Argument rule 2 holds of it.
    #[inline(always)]
    pub unsafe fn target(
        &self,
        rank: c_int,
        disp: isize,
        count: impl Integer,
        datatype: usize,
        win: usize,
    ) -> Result<Target<'_>> {
        // SAFETY: argument rule 2: nobody frees the window during the call.
        let win = unsafe { windows::find(win) }?;
        let Count(count) = Count::checked(count.wide())?;
        // SAFETY: argument rule 2: nobody frees the type during the call.
        let datatype = unsafe { datatypes::find(datatype) }?;
        Ok(Target { win, rank, disp: disp as i64, count, datatype })
    }
}

impl<'a> Target<'a> {
    /// As the engine has it; `None` for MPI_PROC_NULL, where nothing is done.
    #[inline(always)]
    #[must_use]
    pub fn of_engine(&self) -> Option<rma::Target<'a>> {
        let Self { rank, disp, count, datatype, .. } = *self;
        (rank != MPI_PROC_NULL).then_some(rma::Target { rank, disp, count, datatype })
    }
}
