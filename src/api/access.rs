//! Operations on the memory of a window, all of them atomic for each number of an element.

use super::address::window_rank;
use super::collective::{Reduction, input, output};
use super::element::{Element, datatype};
use super::threading::{Single, Threading};
use super::window::Window;
use crate::abi::{MPI_NO_OP, MPI_REPLACE};
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use crate::rma::{self, Target};

/// The right to access the window's memory at several ranks, as others do at the same time. An epoch gives it:
/// [`Window::fence`], [`Window::lock_all`], [`Window::lock_shared`], [`Window::start`].
///
/// Every operation is atomic for each number that an element is made of, a put and a get as well: of two ranks that put
/// to one place, one's value is there afterwards, and never a mixture. It has been performed when the call returns.
pub struct Access<'w, E: Element, T: Threading = Single> {
    pub(super) window: &'w Window<'w, E, T>,
    /// The one rank that it is for, unless for all that the epoch allows.
    pub(super) only: Option<usize>,
}

/// Returns an element as its bytes.
fn bytes<E: Element>(value: &E) -> &[u8] {
    // SAFETY: an element has no padding and no cells: its bytes are initialised and stand still.
    unsafe { core::slice::from_raw_parts((&raw const *value).cast(), size_of::<E>()) }
}

fn bytes_mut<E: Element>(value: &mut E) -> &mut [u8] {
    // SAFETY: borrowed exclusively; an element has no padding, and may have any bytes.
    unsafe { core::slice::from_raw_parts_mut((&raw mut *value).cast(), size_of::<E>()) }
}

fn predefined(handle: usize) -> Result<Op> {
    Op::predefined(handle).ok_or(Error::Op("not predefined"))
}

impl<E: Element, T: Threading> Access<'_, E, T> {
    /// Describes `count` elements from element `at` of `target` on.
    fn target(&self, target: usize, at: usize, count: usize) -> Result<Target<'static>> {
        let size = self.window.size();
        if self.only.is_some_and(|only| only != target) {
            window_rank(target, size)?;
            return Err(Error::RmaSync("the lock is of another rank's memory"));
        }
        let disp = i64::try_from(at).unwrap_or(i64::MAX);
        let count = count.checked_mul(E::COUNT).ok_or(Error::CountTooLarge(count))?;
        Ok(Target { rank: window_rank(target, size)?, disp, count, datatype: datatype::<E>() })
    }

    fn update(&self, op: &Op, data: &[E], target: usize, at: usize) -> Result<()> {
        let target = self.target(target, at, data.len())?;
        self.window.perform(|window, engine| window.accumulate(engine, input(data), target, op))
    }

    /// Stores `data` from element `at` of rank `target` on (MPI_Accumulate with MPI_REPLACE).
    ///
    /// # Errors
    /// [`Error::RmaRange`] beyond the target's memory; [`Error::RmaSync`] for a rank that the epoch is not for;
    /// [`Error::WinRank`], [`Error::RankFailed`].
    pub fn put(&self, data: &[E], target: usize, at: usize) -> Result<()> {
        self.update(&predefined(MPI_REPLACE)?, data, target, at)
    }

    /// Fills `room` with elements of rank `target` from element `at` on (MPI_Get_accumulate with MPI_NO_OP).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get(&self, room: &mut [E], target: usize, at: usize) -> Result<()> {
        let (target, op) = (self.target(target, at, room.len())?, predefined(MPI_NO_OP)?);
        self.window.perform(|window, engine| window.get_accumulate(engine, None, &output(room), target, &op))
    }

    /// Combines `data` with the elements of rank `target` from element `at` on (MPI_Accumulate).
    ///
    /// # Errors
    /// As [`put`](Self::put); [`Error::Op`] for a bitwise operation on floats.
    pub fn accumulate(&self, reduction: Reduction, data: &[E], target: usize, at: usize) -> Result<()> {
        self.update(&reduction.on::<E>()?, data, target, at)
    }

    /// Does what [`accumulate`](Self::accumulate) does,
    /// and fills `old` with what was there before (MPI_Get_accumulate).
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate); [`Error::Buffer`] if `old` is not as long as `data`.
    pub fn get_accumulate(
        &self,
        reduction: Reduction,
        data: &[E],
        old: &mut [E],
        target: usize,
        at: usize,
    ) -> Result<()> {
        if old.len() != data.len() {
            return Err(Error::Buffer("its length is not that of the operands"));
        }
        self.exchange(&reduction.on::<E>()?, data, old, target, at)
    }

    fn exchange(&self, op: &Op, data: &[E], old: &mut [E], target: usize, at: usize) -> Result<()> {
        let target = self.target(target, at, data.len())?;
        self.window.perform(|window, engine| {
            window.get_accumulate(engine, Some(input(data)), &output(old), target, op)
        })
    }

    fn fetch(&self, op: &Op, value: E, target: usize, at: usize) -> Result<E> {
        let mut old = value;
        if E::COUNT != 1 {
            self.exchange(op, &[value], core::slice::from_mut(&mut old), target, at)?;
            return Ok(old);
        }
        let target = self.target(target, at, 1)?;
        self.window.perform(|window, engine| {
            window.fetch_and_op(engine, Some(bytes(&value)), bytes_mut(&mut old), target, op)
        })?;
        Ok(old)
    }

    /// Combines `value` with element `at` of rank `target`, and returns what that was before (MPI_Fetch_and_op).
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    pub fn fetch_and_op(&self, reduction: Reduction, value: E, target: usize, at: usize) -> Result<E> {
        self.fetch(&reduction.on::<E>()?, value, target, at)
    }

    /// Stores `value` as element `at` of rank `target`,
    /// and returns what that was before (MPI_Fetch_and_op with MPI_REPLACE).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn swap(&self, value: E, target: usize, at: usize) -> Result<E> {
        self.fetch(&predefined(MPI_REPLACE)?, value, target, at)
    }

    /// Stores `new` as element `at` of rank `target` if that is `expected`,
    /// and returns what it was before (MPI_Compare_and_swap).
    ///
    /// # Errors
    /// As [`put`](Self::put); [`Error::Type`] for elements that are no single integers.
    pub fn compare_and_swap(&self, expected: E, new: E, target: usize, at: usize) -> Result<E> {
        let mut old = expected;
        if E::COUNT != 1 {
            return Err(Error::Type("a compare-and-swap takes single integers"));
        }
        let target = self.target(target, at, 1)?;
        self.window.perform(|window: &rma::Window, engine| {
            let values = (bytes(&new), bytes(&expected));
            window.compare_and_swap(engine, values, bytes_mut(&mut old), target)
        })?;
        Ok(old)
    }
}
