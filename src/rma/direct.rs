//! Operations on one run of bytes that is mapped here: a few instructions each.
//!
//! Nothing here finds out what is wrong: `None` and `false` mean that nothing has been done,
//! and the complete operations are asked.

use super::atomics::{Change, Value, change, has_atomics, load_value, store_value};
use super::block_locks::BLOCK;
use super::memory::TargetMemory;
use super::window::Window;
use crate::arch::copy_long;
use crate::datatype::Basic;
use crate::datatype::op::{BasicReduction, Op};
use crate::engine::Engine;

/// From so many bytes on a copy is a long one.
const LONG: usize = 2048;

/// A run of bytes of a target's that this process can load and store, in an epoch that lets it.
#[derive(Debug, Clone, Copy)]
pub struct DirectTarget<'a> {
    window: &'a Window,
    target: &'a TargetMemory,
    addr: *mut u8,
    len: usize,
}

/// Copies bytes between places that may overlap: few of them by a load and a store.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes on both sides.
    unsafe {
        match len {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            0..LONG => core::ptr::copy(from, to, len),
            LONG.. => copy_long(from, to, len),
        }
    }
}

impl Window {
    /// The `len` bytes at displacement `disp` of the member `rank`, if they are a direct target now.
    #[inline(always)]
    #[must_use]
    pub fn direct(&self, rank: i32, disp: i64, len: usize) -> Option<DirectTarget<'_>> {
        // A negative rank is a large unsigned one.
        let target = self.targets.get(rank as u32 as usize)?;
        let addr = target.direct(disp, len)?;
        self.epochs.allows(rank as u32).then_some(DirectTarget { window: self, target, addr, len })
    }
}

impl DirectTarget<'_> {
    /// How many bytes it has.
    #[inline(always)]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Copies the first `len` of its bytes from `from`. `false` if it has not so many.
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes.
    #[inline(always)]
    #[must_use]
    pub unsafe fn put(self, from: *const u8, len: usize) -> bool {
        if len > self.len {
            return false;
        }
        // SAFETY: `from` has `len` bytes, as the caller promises;
        // the target's lie in a window that is mapped here (`Window::direct`).
        unsafe { copy(from, self.addr, len) };
        self.window.stores.set();
        true
    }

    /// Copies its bytes to `to`.
    ///
    /// # Safety
    /// `to` is valid for writes of as many.
    #[inline(always)]
    pub unsafe fn get(self, to: *mut u8) {
        // SAFETY: `to` has room for as many bytes, as the caller promises; the target's lie in a window that is mapped
        // here (`Window::direct`).
        unsafe { copy(self.addr, to, self.len) };
    }

    /// Changes its bytes, if they are a value that an instruction can change:
    /// at once, or under the lock of its block, if that is free.
    #[inline(always)]
    fn change(self, engine: &Engine, change: impl FnOnce(*mut u8) -> u64) -> Option<u64> {
        if !has_atomics(self.addr, self.len) {
            return None;
        }
        let locks = &self.target.locks;
        let Some(_entered) = locks.enter(engine) else {
            let held = locks.try_hold(self.target.key_at(self.addr))?;
            let was = change(self.addr);
            drop(held);
            self.window.stores.set();
            return Some(was);
        };
        if !crate::arch::EXCHANGE_IS_FENCE {
            self.window.stores.set();
        }
        Some(change(self.addr))
    }

    /// Reduces one value of a predefined type with `new` by the operation of that handle, and puts what it was to `old`
    /// unless that is null. `false` if locks have to be taken, or more than an instruction.
    ///
    /// # Safety
    /// `new` is valid for reads of the value unless the operation is MPI_NO_OP, and `old` for writes unless it is null.
    #[inline(always)]
    #[must_use]
    pub unsafe fn update(
        self,
        engine: &Engine,
        basic: Basic,
        op: usize,
        new: *const u8,
        old: *mut u8,
    ) -> bool {
        let size = self.len;
        if !matches!(size, 1 | 2 | 4 | 8) || size != basic.size() {
            return false;
        }
        // SAFETY: `new` has the bytes of a value, as the caller promises, of a size that was looked at.
        let new = if op == crate::abi::MPI_NO_OP { 0 } else { unsafe { load_value(new, size) } };
        match Change::plain(op, basic, new) {
            // SAFETY: `old` has room for the value unless it is null, as the caller promises.
            Some(by) => unsafe { self.update_by(engine, by, old) },
            // SAFETY: `old` has room for the value unless it is null, as the caller promises.
            None => unsafe { self.reduce(engine, basic, op, new, old) },
        }
    }

    /// [`Self::update`] by an operation that no instruction is for, such as a sum of floating-point numbers.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn reduce(self, engine: &Engine, basic: Basic, handle: usize, new: Value, old: *mut u8) -> bool {
        let Some(op) = Op::predefined(handle).filter(|op| op.takes(basic)) else { return false };
        // SAFETY: `old` has room for the value unless it is null, as the caller promises.
        unsafe { self.update_by(engine, Change::Reduce(&op, basic, new), old) }
    }

    /// # Safety
    /// `old` is valid for writes of the value unless it is null,
    /// and the value has one of the sizes that have instructions.
    #[inline(always)]
    unsafe fn update_by(self, engine: &Engine, by: Change<'_>, old: *mut u8) -> bool {
        let size = self.len;
        // SAFETY: the value lies in a window that is mapped here (`Window::direct`);
        // `change` of the target has asked `has_atomics`.
        let Some(was) = self.change(engine, |addr| unsafe { change(addr, size, by) }) else { return false };
        if !old.is_null() {
            // SAFETY: `old` has room for the value, as the caller promises, of a size that was looked at.
            unsafe { store_value(old, size, was) };
        }
        true
    }

    /// Reduces its bytes, values of a predefined type one behind the other, with as many at `new` by the operation of
    /// that handle. `false` if they lie in more than one block, or no lock is to be taken, or it is not free.
    ///
    /// # Safety
    /// `new` is valid for reads of as many bytes.
    #[inline(never)]
    #[must_use]
    pub unsafe fn reduce_all(self, basic: Basic, op: usize, new: *const u8) -> bool {
        let key = self.target.key_at(self.addr);
        if key % BLOCK + self.len as u64 > BLOCK {
            return false;
        }
        let Some(reduction) = BasicReduction::of(op, basic) else { return false };
        let Some(held) = self.target.locks.try_hold(key) else { return false };
        // SAFETY: `new` has as many bytes as the target's, whole values, which kernels take at any address; the
        // target's lie in a window that is mapped here (`Window::direct`), and are changed under their lock.
        unsafe { reduction.apply(new, self.addr, self.len / basic.size()) };
        drop(held);
        self.window.stores.set();
        true
    }

    /// Replaces one value by `new` if it is `compare`, and puts what it was to `old`.
    /// `false` if locks have to be taken.
    ///
    /// # Safety
    /// `new` and `compare` are valid for reads of the value, and `old` for writes.
    #[inline(always)]
    #[must_use]
    pub unsafe fn compare_and_swap(
        self,
        engine: &Engine,
        new: *const u8,
        compare: *const u8,
        old: *mut u8,
    ) -> bool {
        let size = self.len;
        if !matches!(size, 1 | 2 | 4 | 8) {
            return false;
        }
        // SAFETY: both have the bytes of a value, as the caller promises, of a size that was looked at.
        let exchange = unsafe { Change::Exchange(load_value(compare, size), load_value(new, size)) };
        // SAFETY: the value lies in a window that is mapped here (`Window::direct`);
        // `change` of the target has asked `has_atomics`.
        let was = self.change(engine, |addr| unsafe { change(addr, size, exchange) });
        // SAFETY: `old` has room for the value, as the caller promises, of a size that was looked at.
        was.map(|was| unsafe { store_value(old, size, was) }).is_some()
    }
}
