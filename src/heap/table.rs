//! Tables that all ranks of a job share, made on first need.

use super::Heap;
use crate::error::{Error, Result};
use crate::limits::APART;
use crate::shm::Memory;
use crate::sync::{AtomicU64, Ordering};
use core::ptr::NonNull;

/// Returns where the job's table of `what` begins: `bytes` bytes, on a boundary of [`APART`] bytes, zeroed and made by whoever comes first. `agreed` is the header's word
/// for its place, 0 until there is one.
///
/// # Errors
/// [`Error::NoMem`] if the shared heap has no room for it; [`Error::Segment`] if the word names no place of the heap.
pub fn table(memory: &Memory, agreed: &AtomicU64, bytes: usize, what: &str) -> Result<NonNull<u8>> {
    let none = || Error::NoMem(format!("the shared heap has no room for the {what}"));
    let heap = Heap::of(memory).ok_or_else(none)?;
    // Acquire: "table" edge, pairs with Release below: the table is zeroed.
    let mut place = agreed.load(Ordering::Acquire);
    if place == 0 {
        let extent = heap.allocate(bytes, APART).ok_or_else(none)?;
        // SAFETY: the extent is ours, so long, and nobody else knows it.
        unsafe { extent.addr().as_ptr().write_bytes(0, bytes) };
        let own = heap.place_of(extent.addr().as_ptr(), bytes).ok_or_else(none)?;
        // Release: "table" edge, pairs with Acquire above and here.
        match agreed.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => place = own,
            Err(other) => {
                heap.free(&extent);
                place = other;
            }
        }
    }
    let base = heap.at(place, bytes as u64).filter(|base| base.addr().get().is_multiple_of(APART));
    base.ok_or_else(|| {
        Error::Segment(format!(
            "the header names {place:#x} for the {what}, which is no place of the shared heap"
        ))
    })
}
