//! What Miri has for the job's file, for it maps no files: zeroed memory on the heap, that of the shared heap included.
//! The ranks of the job are threads.

use crate::limits::HUGE_PAGE;
use crate::{Error, Result};
use core::ptr::NonNull;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::os::fd::{OwnedFd, RawFd};

/// The memory, and a file that is nobody's.
#[derive(Debug)]
pub struct JobFile {
    base: NonNull<u8>,
    layout: Layout,
    mapped: usize,
    file: File,
}

// SAFETY: the memory stays where it is until the drop and belongs to no thread;
// it is reached through raw pointers and atomics only.
unsafe impl Send for JobFile {}
// SAFETY: a shared reference gives out the address and the length, which never change,
// and fills with zeros what its caller gives up.
unsafe impl Sync for JobFile {}

impl JobFile {
    /// Allocates a file of `len` bytes that are mapped, which goes on to `end` if that is more.
    pub fn create(len: u64, end: u64) -> Result<Self> {
        let none = |why: &str| Error::Segment(format!("{len} bytes on the heap: {why}"));
        let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or_else(|| none("no size"))?;
        let layout =
            Layout::from_size_align(len.max(end as usize), HUGE_PAGE).map_err(|_| none("no layout"))?;
        // SAFETY: the layout has a size above zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| none("out of memory"))?;
        let (pipe, _) = std::io::pipe().map_err(|error| none(&error.to_string()))?;
        Ok(Self { base, layout, mapped: len, file: OwnedFd::from(pipe).into() })
    }

    /// No process inherits such memory.
    pub fn attach_and_pass_on(_: RawFd, _: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        Err(Error::Segment("Miri maps no files".into()))
    }

    /// Nor does one observe it.
    pub fn observe(_: File, _: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        Err(Error::Segment("Miri maps no files".into()))
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        self.layout.size() as u64
    }

    /// Those before the shared heap.
    pub fn mapped(&self) -> usize {
        self.mapped
    }

    /// Address of the first byte, on a huge page.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The file that is nobody's.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Fills the range with zeros if it is given up; what is reserved is there already.
    pub fn fallocate(&self, mode: FallocateFlags, at: u64, len: u64) -> rustix::io::Result<()> {
        if at.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(Errno::INVAL);
        }
        if mode.contains(FallocateFlags::PUNCH_HOLE) {
            // SAFETY: the range lies within the memory, and the caller that gives it up says that nobody else uses it.
            unsafe { self.base().add(at as usize).write_bytes(0, len as usize) };
        }
        Ok(())
    }
}

impl Drop for JobFile {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. Whoever has an address in it keeps the job's memory alive.
        unsafe { dealloc(self.base(), self.layout) };
    }
}
