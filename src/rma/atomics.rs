//! Updates of one value by the processor's atomic instructions.

use crate::abi::{MPI_NO_OP, MPI_REPLACE, MPI_SUM};
use crate::datatype::Basic;
use crate::datatype::op::Op;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A value of at most eight bytes, in the lowest of them.
pub type Value = u64;

/// What is done to a value.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Nothing: it is only fetched.
    Nothing,
    /// Another one takes its place.
    Replace(Value),
    /// An integer is added.
    Add(Value),
    /// Another operation reduces it with a value of the origin's.
    Reduce(&'a Op, Basic, Value),
    /// Another one takes its place if it is the first of these two.
    Exchange(Value, Value),
}

impl<'a> Change<'a> {
    /// What an accumulate of `new` by a predefined operation,
    /// which takes `basic` or is for one-sided communication only, does.
    pub fn of(op: &'a Op, basic: Basic, new: Value) -> Self {
        let plain = [MPI_SUM, MPI_REPLACE, MPI_NO_OP].into_iter().find(|plain| op.is(*plain));
        plain.and_then(|plain| Self::plain(plain, basic, new)).unwrap_or(Self::Reduce(op, basic, new))
    }
}

impl Change<'_> {
    /// The same for the handle of an operation, if there is one instruction for it.
    #[inline(always)]
    pub fn plain(op: usize, basic: Basic, new: Value) -> Option<Self> {
        match op {
            MPI_SUM if basic.is_integer() => Some(Self::Add(new)),
            MPI_REPLACE => Some(Self::Replace(new)),
            MPI_NO_OP => Some(Self::Nothing),
            _ => None,
        }
    }
}

/// Whether values of this size at this address have such instructions.
#[inline(always)]
pub(super) fn has_atomics(addr: *const u8, size: usize) -> bool {
    matches!(size, 1 | 2 | 4 | 8) && addr.addr().is_multiple_of(size)
}

/// Reads a value of `size` bytes, at any alignment.
///
/// # Safety
/// So many bytes can be read, and [`has_atomics`] has said yes to that size.
#[inline(always)]
pub(super) unsafe fn load_value(from: *const u8, size: usize) -> Value {
    // SAFETY: the caller has so many bytes there.
    unsafe {
        match size {
            8 => from.cast::<u64>().read_unaligned(),
            4 => from.cast::<u32>().read_unaligned().into(),
            2 => from.cast::<u16>().read_unaligned().into(),
            _ => from.read().into(),
        }
    }
}

/// Writes a value of `size` bytes, at any alignment.
///
/// # Safety
/// So many bytes can be written, and [`has_atomics`] has said yes to that size.
#[inline(always)]
pub(super) unsafe fn store_value(to: *mut u8, size: usize, value: Value) {
    // SAFETY: the caller has so many bytes there.
    unsafe {
        match size {
            8 => to.cast::<u64>().write_unaligned(value),
            4 => to.cast::<u32>().write_unaligned(value as u32),
            2 => to.cast::<u16>().write_unaligned(value as u16),
            _ => to.write(value as u8),
        }
    }
}

/// A word of one of the widths that have instructions.
pub trait ValueCell {
    /// Reads the value.
    fn load(&self, order: Ordering) -> Value;
    /// Has `new` take its place.
    fn swap(&self, new: Value, order: Ordering) -> Value;
    /// Adds to it.
    fn fetch_add(&self, new: Value, order: Ordering) -> Value;
    /// Has `new` take its place if it is `old`.
    ///
    /// # Errors
    /// The value, if it is another.
    fn compare_exchange(
        &self,
        old: Value,
        new: Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Value, Value>;
    /// As [`Self::compare_exchange`]; it may fail for no reason.
    ///
    /// # Errors
    /// As there.
    fn compare_exchange_weak(
        &self,
        old: Value,
        new: Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Value, Value>;
}

macro_rules! value_cells {
    ($($atomic:ty: $value:ty;)+) => {$(
        impl ValueCell for $atomic {
            #[inline(always)]
            #[cfg_attr(perusal_loom, track_caller)]
            fn load(&self, order: Ordering) -> Value {
                self.load(order).into()
            }
            #[inline(always)]
            #[cfg_attr(perusal_loom, track_caller)]
            fn swap(&self, new: Value, order: Ordering) -> Value {
                self.swap(new as $value, order).into()
            }
            #[inline(always)]
            #[cfg_attr(perusal_loom, track_caller)]
            fn fetch_add(&self, new: Value, order: Ordering) -> Value {
                self.fetch_add(new as $value, order).into()
            }
            #[inline(always)]
            #[cfg_attr(perusal_loom, track_caller)]
            fn compare_exchange(&self, old: Value, new: Value, success: Ordering, failure: Ordering) -> Result<Value, Value> {
                self.compare_exchange(old as $value, new as $value, success, failure).map(Into::into).map_err(Into::into)
            }
            #[inline(always)]
            #[cfg_attr(perusal_loom, track_caller)]
            fn compare_exchange_weak(&self, old: Value, new: Value, success: Ordering, failure: Ordering) -> Result<Value, Value> {
                self.compare_exchange_weak(old as $value, new as $value, success, failure).map(Into::into).map_err(Into::into)
            }
        }
    )+};
}

value_cells! {
    AtomicU8: u8;
    AtomicU16: u16;
    AtomicU32: u32;
    AtomicU64: u64;
}

/// Changes the value of `size` bytes at `addr` by an instruction, and returns what it was.
///
/// # Safety
/// [`has_atomics`] has said yes; the value can be read and written.
#[cfg(not(perusal_loom))]
#[inline(always)]
pub(super) unsafe fn change(addr: *mut u8, size: usize, change: Change<'_>) -> Value {
    // SAFETY: aligned and there (the caller), and accumulates on it are all atomic.
    unsafe {
        match size {
            8 => change_cell(AtomicU64::from_ptr(addr.cast()), change),
            4 => change_cell(AtomicU32::from_ptr(addr.cast()), change),
            2 => change_cell(AtomicU16::from_ptr(addr.cast()), change),
            _ => change_cell(AtomicU8::from_ptr(addr), change),
        }
    }
}

/// Changes a value, and returns what it was. One after the other,
/// accumulates on a value order what their origins did before and do then.
#[inline(always)]
pub fn change_cell(cell: &impl ValueCell, change: Change<'_>) -> Value {
    // Acquire, AcqRel, here and below: "value" edge, pair with AcqRel in the same function at another rank.
    match change {
        Change::Nothing => cell.load(Ordering::Acquire),
        Change::Replace(new) => cell.swap(new, Ordering::AcqRel),
        Change::Add(new) => cell.fetch_add(new, Ordering::AcqRel),
        Change::Exchange(old, new) => {
            cell.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).unwrap_or_else(|there| there)
        }
        Change::Reduce(op, basic, new) => {
            // Relaxed, here and where the exchange fails: the exchange that succeeds reads the value again.
            let mut old = cell.load(Ordering::Relaxed);
            loop {
                let mut both = old;
                let (left, right) = (&raw const new, &raw mut both);
                // SAFETY: a value of the type begins at both: little-endian, as the lowest bytes are the first.
                let done = unsafe { op.apply_basic(basic, left.cast(), right.cast(), 1) };
                debug_assert!(done.is_ok(), "the operation takes the type");
                match cell.compare_exchange_weak(old, both, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => break old,
                    Err(now) => old = now,
                }
            }
        }
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "values are kept in the lowest bytes of a word");
