//! The part of a job's file behind its segment: the memory of the shared heap.
//!
//! A rank maps it when it first needs it. It is sparse like the segment,
//! and starts and is mapped at a multiple of a huge page.

use super::free_runs::FreeRuns;
use super::segment::Segment;
use crate::limits::{GRANULE, HUGE_PAGE};
use crate::sync::{AtomicBool, AtomicU64, Mutex};
use core::ptr::NonNull;
#[cfg(not(miri))]
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// The part of the job's file that the shared heap is made of, as this process has mapped it.
#[derive(Debug)]
pub struct HeapRegion {
    base: NonNull<u8>,
    offset: u64,
    len: u64,
    hints: AllocatorHints,
}

/// What this process's allocator remembers of the region. All zero and empty at first.
#[derive(Debug, Default)]
pub struct AllocatorHints {
    /// The granule at which the next search begins.
    pub next: AtomicU64,
    /// Whether the bitmap's memory has been reserved.
    pub bitmap_reserved: AtomicBool,
    /// What was freed and is kept with its memory.
    pub kept: Mutex<FreeRuns>,
}

// SAFETY: the mapping stays where it is as long as the region lives, and belongs to no thread. What lies in it is
// reached through raw pointers and atomics only.
unsafe impl Send for HeapRegion {}
// SAFETY: a shared reference gives out the mapping's address and lengths, which never change.
unsafe impl Sync for HeapRegion {}

impl HeapRegion {
    /// Returns where a heap of `asked` bytes begins in a file whose segment has `segment` bytes, and how many bytes it
    /// gets: whole granules. `None` if `asked` is less than a granule for the heap's bitmap and one to give out.
    #[must_use]
    pub fn room(segment: u64, asked: u64) -> Option<(u64, u64)> {
        let granule = GRANULE as u64;
        let offset = segment.checked_next_multiple_of(HUGE_PAGE as u64)?;
        (asked >= 2 * granule).then_some((offset, asked / granule * granule))
    }

    /// Returns where the heap of a job's file begins, and its bytes.
    pub(super) fn of(segment: &Segment) -> Option<(u64, u64)> {
        let behind =
            segment.file_len().checked_sub(segment.len().checked_next_multiple_of(HUGE_PAGE as u64)?)?;
        Self::room(segment.len(), behind)
    }

    /// Maps the heap of a job's file. `None` if there is none, or this process may not map so much.
    pub(super) fn map(segment: &Segment) -> Option<Self> {
        let (offset, len) = Self::of(segment)?;
        let base = map_aligned(segment, offset, usize::try_from(len).ok()?).ok()?;
        Some(Self { base, offset, len, hints: AllocatorHints::default() })
    }

    /// Address of the first byte in this process, at a multiple of a huge page.
    #[inline]
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes of address space: whole granules.
    #[expect(clippy::len_without_is_empty, reason = "a region has two granules at least")]
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where the region begins in the job's file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What this process's allocator remembers of the region.
    #[must_use]
    pub fn hints(&self) -> &AllocatorHints {
        &self.hints
    }
}

impl Drop for HeapRegion {
    fn drop(&mut self) {
        // Miri's goes with the file.
        #[cfg(not(miri))]
        // SAFETY: the region's own mapping of `len` bytes. Whoever has an address in it keeps the job's memory alive,
        // which has the region.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len as usize) };
    }
}

/// Finds them on the heap, where Miri has the whole file.
#[cfg(miri)]
fn map_aligned(segment: &Segment, offset: u64, _: usize) -> rustix::io::Result<NonNull<u8>> {
    // SAFETY: the heap lies within the file, all of which is one allocation.
    NonNull::new(unsafe { segment.base().add(offset as usize) }).ok_or(rustix::io::Errno::NOMEM)
}

/// Maps `len` bytes of the segment's file from `offset` on, at a multiple of a huge page.
#[cfg(not(miri))]
fn map_aligned(segment: &Segment, offset: u64, len: usize) -> rustix::io::Result<NonNull<u8>> {
    let room = len.checked_add(HUGE_PAGE).ok_or(rustix::io::Errno::NOMEM)?;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let free = unsafe {
        mmap_anonymous(
            core::ptr::null_mut(),
            room,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    let start = free.map_addr(|addr| addr.next_multiple_of(HUGE_PAGE));
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: `len` bytes from `start` on lie within the mapping that has just been made,
    // and no other code has its address.
    let mapped =
        unsafe { mmap(start, len, ProtFlags::READ | ProtFlags::WRITE, flags, segment.file(), offset) };
    let before = start.addr() - free.addr();
    // SAFETY: what is left on both sides of the file's mapping belongs to the mapping made first; if the file could not
    // be mapped, all of that. A length of 0 is refused and changes nothing.
    unsafe {
        if let Err(error) = mapped {
            let _ = munmap(free, room);
            return Err(error);
        }
        let _ = (munmap(free, before), munmap(start.byte_add(len), room - before - len));
        // Hints. A core dump would make the kernel find memory for pages that were never touched.
        let _ = (madvise(start, len, Advice::LinuxDontDump), madvise(start, len, Advice::LinuxHugepage));
    }
    NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)
}
