//! Targets of one-sided operations.

use super::{Buffer, Call, Count, Integer};
use crate::datatypes::{self, contiguous_size};
use crate::error::Result;
use crate::rma;
use crate::windows::{self, WindowObject};
use core::ffi::c_int;
use core::ops::Range;

/// The target of a one-sided operation: elements in the memory of a rank of a window,
/// which nobody frees during `'a` (argument rule 2).
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The window.
    pub win: &'a WindowObject,
    /// A rank, or MPI_PROC_NULL. Whether the window has it, its use says.
    pub rank: c_int,
    disp: i64,
    count: i64,
    datatype: usize,
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
        let target = unsafe { self.peek_target(rank, disp, count, datatype, win) };
        target.ok_or_else(|| windows::invalid(win))
    }

    /// A window, if there is one.
    ///
    /// # Safety
    /// Argument rule 2 holds of it.
    #[inline(always)]
    pub unsafe fn peek_window(&self, win: usize) -> Option<&WindowObject> {
        // SAFETY: argument rule 2: nobody frees the window during the call.
        unsafe { windows::peek(win) }
    }

    /// The target of an operation on window `win`, if there is one.
    ///
    /// # Safety
    /// Argument rule 2 holds of it.
    #[inline(always)]
    pub unsafe fn peek_target(
        &self,
        rank: c_int,
        disp: isize,
        count: impl Integer,
        datatype: usize,
        win: usize,
    ) -> Option<Target<'_>> {
        // SAFETY: argument rule 2: nobody frees the window during the call.
        let win = unsafe { self.peek_window(win) }?;
        Some(Target { win, rank, disp: disp as i64, count: count.wide(), datatype })
    }
}

impl<'a> Target<'a> {
    /// As the engine has it. At MPI_PROC_NULL nothing is done.
    ///
    /// # Errors
    /// What is wrong with count and type.
    pub fn of_engine(&self) -> Result<rma::Target<'a>> {
        let Count(count) = Count::checked(self.count)?;
        // SAFETY: argument rule 2: nobody frees the type during the call, which is `'a`.
        let datatype = unsafe { datatypes::find(self.datatype) }?;
        Ok(rma::Target { rank: self.rank, disp: self.disp, count, datatype })
    }

    /// The elements, if they are a direct target: of a predefined type, without gaps.
    #[inline(always)]
    #[must_use]
    pub fn direct(&self) -> Option<rma::DirectTarget<'a>> {
        // More of them than 32 bits count could be more bytes than a word counts.
        let count = u32::try_from(self.count).ok()? as usize;
        self.win.direct(self.rank, self.disp, count * contiguous_size(self.datatype)?)
    }

    /// The same for an operation with an origin that has `bytes` bytes without gaps, which are counted once if both are
    /// as many elements of one type.
    #[inline(always)]
    #[must_use]
    pub fn direct_for(&self, origin: &Buffer<'_>, bytes: usize) -> Option<rma::DirectTarget<'a>> {
        if (self.count, self.datatype) == (origin.count, origin.datatype) {
            return self.win.direct(self.rank, self.disp, bytes);
        }
        self.direct()
    }

    /// The addresses of the elements in the process of the target, a member of the window, in as many runs as there are
    /// at first; `None` if they are not what a target may have.
    #[must_use]
    pub fn runs(&self, most: usize) -> Option<Vec<Range<u64>>> {
        let target = self.of_engine().ok()?;
        let start = self.win.address_at(u32::try_from(self.rank).ok()?, self.disp);
        let run = |(offset, length): (isize, usize)| {
            let start = start.checked_add_signed(offset as i64)?;
            Some(start..start.checked_add(length as u64)?)
        };
        target.datatype.runs(target.count).take(most).map(run).collect()
    }

    /// The handle of the elements' type.
    #[inline(always)]
    #[must_use]
    pub fn datatype(&self) -> usize {
        self.datatype
    }
}
