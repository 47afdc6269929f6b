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
    /// As [`set`](Self::set); where there is nothing to tell, the empty status,
    /// whose MPI_ERROR is MPI_SUCCESS (MPI 5.0 §3.7.3).
    pub fn set_or_empty(self, status: &MessageStatus) {
        self.set(status);
        if *status == MessageStatus::EMPTY {
            // SAFETY: `to` is NULL or valid for reads and writes while the call runs (argument rule 1).
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
    #[inline(always)]
    fn at(&mut self, at: usize) -> Option<&mut MPI_Status> {
        // SAFETY: `to` has `length` elements (argument rule 1), and `at` is below that.
        (at < self.length).then(|| unsafe { &mut *self.to.add(at) })
    }

    /// Fills status `at`, but for MPI_ERROR, which only a call that returns MPI_ERR_IN_STATUS sets (MPI 5.0 §3.2.5).
    #[inline(always)]
    pub fn set(mut self, at: usize, status: &MessageStatus) {
        if let Some(to) = self.at(at) {
            to.fill(status.source, status.tag, status.bytes, status.cancelled);
        }
    }

    /// Fills status `at`, MPI_ERROR too: that of such a call, and the empty one,
    /// which has MPI_SUCCESS there (MPI 5.0 §3.7.3).
    #[inline(always)]
    pub fn set_with_error(mut self, at: usize, status: &MessageStatus) {
        self.set(at, status);
        if let Some(to) = self.at(at) {
            to.error = status.error;
        }
    }

    /// As [`set`](Self::set), with MPI_ERROR where it says something:
    /// of an operation that has failed, and in the empty status.
    pub fn set_or_empty(self, at: usize, status: &MessageStatus) {
        if status.error != MPI_SUCCESS || *status == MessageStatus::EMPTY {
            self.set_with_error(at, status);
        } else {
            self.set(at, status);
        }
    }

    /// The first `n` are of operations that have succeeded, in a call that returns MPI_ERR_IN_STATUS.
    pub fn say_success(mut self, n: usize) {
        (0..n).for_each(|at| _ = self.at(at).map(|to| to.error = MPI_SUCCESS));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Call;
    use super::*;
    use crate::abi;
    use core::ptr::null_mut;

    #[test]
    fn of_ignored_statuses_none_is_written_and_of_others_the_error_only_where_it_is_asked_for() {
        let call = Call::new(&crate::calls::Function {
            name: "MPI_Test",
            number: crate::calls::Function::WITHOUT_EVENTS,
        });
        let mut two = [MPI_Status::EMPTY; 2];
        two.iter_mut().for_each(|one| one.error = 77);
        // SAFETY: NULL is allowed; `two` has two elements.
        unsafe {
            let ignored: Statuses<'_> = call.array(null_mut::<MPI_Status>(), 2).unwrap();
            ignored.set(0, &MessageStatus::PROC_NULL);
            ignored.say_success(1);
            let all: Statuses<'_> = call.array(two.as_mut_ptr(), 2).unwrap();
            all.set(1, &MessageStatus::PROC_NULL);
            all.set_or_empty(1, &MessageStatus::PROC_NULL);
            all.set(2, &MessageStatus::PROC_NULL);
        }
        assert_eq!((two[0].source, two[1].source), (abi::MPI_ANY_SOURCE, abi::MPI_PROC_NULL));
        assert_eq!((two[0].error, two[1].error), (77, 77));
        // SAFETY: `two` has two elements.
        let all: Statuses<'_> = unsafe { call.array(two.as_mut_ptr(), 2) }.unwrap();
        all.say_success(1);
        all.set_or_empty(1, &MessageStatus::EMPTY);
        assert_eq!((two[0].error, two[1].error), (MPI_SUCCESS, MPI_SUCCESS));
    }
}
