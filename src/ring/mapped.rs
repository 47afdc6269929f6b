//! A ring in the job segment.

use super::control::RingControl;
use super::record::RecordBody;
use super::storage::Storage;
use crate::arch::{prefetch_read, prefetch_write};
use crate::limits::{LINE, block_bytes, block_count};
use crate::sync::AtomicU64;
use core::ptr::NonNull;

/// A ring laid over mapped bytes: control words, then cells, then bulk, then blocks.
#[derive(Debug, Clone, Copy)]
pub struct MappedRing {
    base: NonNull<u8>,
    cells: usize,
    bulk: usize,
}

// SAFETY: all access goes through atomics or under the ring rules, from whatever thread holds producer or consumer.
unsafe impl Send for MappedRing {}
// SAFETY: what is shared is an address and two numbers;
// what lies at the address is accessed by atomics or under the ring rules.
unsafe impl Sync for MappedRing {}

impl MappedRing {
    /// Bytes of a ring with that many cells and bulk bytes.
    pub const fn bytes(cells: usize, bulk: usize) -> usize {
        size_of::<RingControl>() + cells * LINE + bulk + block_count(bulk) * block_bytes(bulk)
    }

    /// A ring over `bytes(cells, bulk)` bytes at `base`.
    ///
    /// # Safety
    ///
    /// The bytes are valid for reads and writes as long as any copy lives, 128-byte aligned, zeroed before the first
    /// use by anybody, and touched by nothing but rings over the same place.
    ///
    /// # Panics
    ///
    /// When a capacity is no power of two, or the bulk area is smaller than four lines.
    pub unsafe fn new(base: NonNull<u8>, cells: usize, bulk: usize) -> Self {
        assert!(
            cells.is_power_of_two() && bulk.is_power_of_two() && bulk >= 4 * LINE,
            "ring of {cells} cells, {bulk} bytes"
        );
        debug_assert!((base.as_ptr() as usize).is_multiple_of(crate::limits::APART));
        Self { base, cells, bulk }
    }

    #[inline(always)]
    fn cell(&self, at: usize) -> *mut u8 {
        debug_assert!(at < self.cells);
        // SAFETY: `at < cells`, so the cell lies within the bytes that `new` was promised.
        unsafe { self.base.as_ptr().add(size_of::<RingControl>() + at * LINE) }
    }

    #[inline(always)]
    fn bulk_at(&self, at: usize) -> *mut u8 {
        debug_assert!(at < self.bulk + block_count(self.bulk) * block_bytes(self.bulk));
        // SAFETY: a byte of the bulk area or of a block, so the place lies within the bytes that `new` was promised.
        unsafe { self.base.as_ptr().add(size_of::<RingControl>() + self.cells * LINE + at) }
    }
}

// SAFETY: one base, fixed sizes: the same arguments give the same memory; places do not overlap by arithmetic.
unsafe impl Storage for MappedRing {
    #[inline(always)]
    fn control(&self) -> &RingControl {
        // SAFETY: `new` was promised valid, aligned bytes; `RingControl` is made of atomics, valid for any bytes.
        unsafe { self.base.cast::<RingControl>().as_ref() }
    }
    #[inline(always)]
    fn cells(&self) -> usize {
        self.cells
    }
    #[inline(always)]
    fn bulk(&self) -> usize {
        self.bulk
    }
    #[inline(always)]
    fn commit(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first word of a cell is always accessed as an atomic; valid and aligned as `cell` shows.
        unsafe { &*self.cell(at).cast::<AtomicU64>() }
    }
    #[inline(always)]
    fn prefetch_read(&self, at: usize) {
        prefetch_read(self.cell(at));
    }
    #[inline(always)]
    fn prefetch_write(&self, at: usize) {
        prefetch_write(self.cell(at));
    }
    #[inline(always)]
    fn read_body<R>(&self, at: usize, f: impl FnOnce(*const RecordBody) -> R) -> R {
        f(self.cell(at).wrapping_add(8).cast())
    }
    #[inline(always)]
    fn write_body<R>(&self, at: usize, f: impl FnOnce(*mut RecordBody) -> R) -> R {
        f(self.cell(at).wrapping_add(8).cast())
    }
    #[inline(always)]
    fn read_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*const u8) -> R) -> R {
        let _ = self.bulk_at(at + len - 1);
        f(self.bulk_at(at))
    }
    #[inline(always)]
    fn write_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*mut u8) -> R) -> R {
        let _ = self.bulk_at(at + len - 1);
        f(self.bulk_at(at))
    }
}
