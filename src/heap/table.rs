//! Tables that all ranks of a job share, made on first need.

use super::Heap;
use crate::error::{Error, Result};
use crate::limits::APART;
use crate::shm::Memory;
use crate::sync::{AtomicU64, Ordering};
use core::ptr::NonNull;

/// Returns what is written in `word`, for whoever comes first: what `make` has made, and zeroed or filled, is named by
/// a number other than 0. Whose is not taken is given to `give_back`. `None` if nothing can be made.
pub fn agree_on<T>(
    word: &AtomicU64,
    make: impl FnOnce() -> Option<(u64, T)>,
    give_back: impl FnOnce(T),
) -> Option<u64> {
    // Acquire: "table" edge, pairs with Release below: what is named is as it was made.
    let there = word.load(Ordering::Acquire);
    if there != 0 {
        return Some(there);
    }
    let (own, made) = make()?;
    // Release: "table" edge, pairs with Acquire above and where the exchange fails.
    match word.compare_exchange(0, own, Ordering::Release, Ordering::Acquire) {
        Ok(_) => Some(own),
        Err(other) => {
            give_back(made);
            Some(other)
        }
    }
}

/// Returns where the job's table of `what` begins: `bytes` bytes, on a boundary of [`APART`] bytes, zeroed and made by
/// whoever comes first. `agreed` is the header's word for its place, 0 until there is one.
///
/// # Errors
/// [`Error::NoMem`] if the shared heap has no room for it; [`Error::Segment`] if the word names no place of the heap.
pub fn table(memory: &Memory, agreed: &AtomicU64, bytes: usize, what: &str) -> Result<NonNull<u8>> {
    let none = || Error::NoMem(format!("the shared heap has no room for the {what}"));
    let heap = Heap::of(memory).ok_or_else(none)?;
    let make = || {
        let extent = heap.allocate(bytes, APART)?;
        // SAFETY: the extent is ours, so long, and nobody else knows it.
        unsafe { extent.addr().as_ptr().write_bytes(0, bytes) };
        Some((heap.place_of(extent.addr().as_ptr(), bytes)?, extent))
    };
    let place = agree_on(agreed, make, |extent| heap.free(&extent)).ok_or_else(none)?;
    let base = heap.at(place, bytes as u64).filter(|base| base.addr().get().is_multiple_of(APART));
    base.ok_or_else(|| {
        Error::Segment(format!(
            "the header names {place:#x} for the {what}, which is no place of the shared heap"
        ))
    })
}
