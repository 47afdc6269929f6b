//! Where a ring's bytes lie: the algorithm's only view of memory.

use super::control::RingControl;
use super::record::RecordBody;
use crate::sync::AtomicU64;

/// Memory of one ring. Implemented on the heap (tests, loom) and on the job segment.
///
/// # Safety
///
/// Implementations return the same memory for the same arguments for as long as any clone lives, cells and bulk
/// pieces of different places do not overlap, and pointers handed to the closures are valid for the named length.
pub unsafe trait Storage: Clone {
    /// The control words.
    fn control(&self) -> &RingControl;
    /// Number of cells: a power of two.
    fn cells(&self) -> usize;
    /// Bytes of the bulk area: a power of two, at least four lines. The blocks lie behind it.
    fn bulk(&self) -> usize;
    /// The commit word of cell `at`, `at < cells()`.
    fn commit(&self, at: usize) -> &AtomicU64;
    /// Prefetches cell `at` for reading. Only a hint.
    fn prefetch_read(&self, at: usize) {
        let _ = at;
    }
    /// Prefetches cell `at` for writing. Only a hint.
    fn prefetch_write(&self, at: usize) {
        let _ = at;
    }
    /// Reads the body of cell `at` under ring rule 2.
    fn read_body<R>(&self, at: usize, f: impl FnOnce(*const RecordBody) -> R) -> R;
    /// Writes the body of cell `at` under ring rule 1.
    fn write_body<R>(&self, at: usize, f: impl FnOnce(*mut RecordBody) -> R) -> R;
    /// Reads `len` bulk bytes from `at` under ring rule 2; `at + len <= bulk()`.
    /// Or of a block, behind those, under block rule 1.
    fn read_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*const u8) -> R) -> R;
    /// Writes `len` bulk bytes from `at` under ring rule 1; `at + len <= bulk()`.
    /// Or of a block, behind those, under block rule 1.
    fn write_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*mut u8) -> R) -> R;
}
