//! Statuses that a call fills, one or an array, or none.

use super::{Argument, Array, Integer};
use crate::abi::MPI_SUCCESS;
use crate::error::Result;
use crate::p2p::MessageStatus;
use crate::types::MPI_Status;
use core::marker::PhantomData;

/// A status that one operation fills, or MPI_STATUS_IGNORE.
#[derive(Debug, Clone, Copy)]
pub struct StatusOut<'a> {
    /// NULL, or valid for reads and writes for `'a` (argument rule 1).
    to: *mut MPI_Status,
    call: PhantomData<&'a ()>,
}

impl<'a> Argument<'a, *mut MPI_Status> for StatusOut<'a> {
    #[inline(always)]
    unsafe fn of(from: *mut MPI_Status) -> Result<Self> {
        Ok(Self { to: from, call: PhantomData })
    }
}

impl StatusOut<'_> {
    /// MPI_STATUS_IGNORE.
    pub const IGNORE: Self = Self { to: core::ptr::null_mut(), call: PhantomData };

    /// Fills it, but for MPI_ERROR (MPI 5.0 §3.2.5).
    #[inline(always)]
    pub fn set(self, status: &MessageStatus) {
        // SAFETY: `to` is NULL or valid for reads and writes while the call runs (argument rule 1).
        if let Some(to) = unsafe { self.to.as_mut() } {
            to.fill(status.source, status.tag, status.bytes, status.cancelled);
        }
    }
}

impl StatusOut<'_> {
    /// As [`set`](Self::set); where there is nothing to tell, the empty status, whose MPI_ERROR is MPI_SUCCESS (MPI 5.0 §3.7.3).
    pub fn set_or_empty(self, status: &MessageStatus) {
        self.set(status);
        if *status == MessageStatus::EMPTY {
            // SAFETY: as in `set`.
            if let Some(to) = unsafe { self.to.as_mut() } {
                to.error = MPI_SUCCESS;
            }
        }
    }
}

/// Statuses of an array of requests, or MPI_STATUSES_IGNORE.
#[derive(Debug, Clone, Copy)]
pub struct Statuses<'a> {
    /// Valid for writes of `length` elements for `'a` (argument rule 1).
    to: *mut MPI_Status,
    /// 0 for MPI_STATUSES_IGNORE.
    length: usize,
    call: PhantomData<&'a ()>,
}

impl<'a, N: Integer> Array<'a, *mut MPI_Status, N> for Statuses<'a> {
    #[inline(always)]
    unsafe fn of(from: *mut MPI_Status, length: N) -> Result<Self> {
        let length = usize::try_from(length.wide()).unwrap_or(0);
        Ok(Self { to: from, length: if from.is_null() { 0 } else { length }, call: PhantomData })
    }
}

impl Statuses<'_> {
    /// Fills status `at`, MPI_ERROR too.
    #[inline(always)]
    pub fn set(self, at: usize, status: &MessageStatus) {
        if at < self.length {
            // SAFETY: `to` has `length` elements (argument rule 1), and `at` is below that.
            let to = unsafe { &mut *self.to.add(at) };
            to.fill(status.source, status.tag, status.bytes, status.cancelled);
            to.error = status.error;
        }
    }

    /// Those behind the first `n`.
    #[must_use]
    pub fn behind(self, n: usize) -> Self {
        let n = n.min(self.length);
        Self { to: self.to.wrapping_add(n), length: self.length - n, call: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Call;
    use super::*;
    use crate::abi;
    use core::ptr::null_mut;

    #[test]
    fn of_ignored_statuses_none_is_written_and_of_others_only_those_behind() {
        let call = Call::new(&crate::calls::Function {
            name: "MPI_Test",
            number: crate::calls::Function::WITHOUT_EVENTS,
        });
        let mut two = [MPI_Status::EMPTY; 2];
        // SAFETY: NULL is allowed; `two` has two elements.
        unsafe {
            let ignored: Statuses<'_> = call.array(null_mut::<MPI_Status>(), 2).unwrap();
            ignored.set(0, &MessageStatus::PROC_NULL);
            let all: Statuses<'_> = call.array(two.as_mut_ptr(), 2).unwrap();
            all.behind(1).set(0, &MessageStatus::PROC_NULL);
            all.behind(2).set(0, &MessageStatus::PROC_NULL);
        }
        assert_eq!((two[0].source, two[1].source), (abi::MPI_ANY_SOURCE, abi::MPI_PROC_NULL));
    }
}
