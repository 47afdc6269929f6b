//! The job's one piece of shared memory: a sealed `memfd`, mapped whole,
//! whose pages are reserved before they are touched.
//!
//! Address space is free, memory is not: the file is as long as the layout for all pairs of ranks, and sparse. A page
//! that nobody reserved must not be touched: on a machine without memory that would be SIGBUS. [`Segment::reserve`]
//! takes the pages or says why it cannot. The seals keep every holder of the descriptor from shrinking the file, which
//! the others have mapped. The file has no name, so it vanishes with the last process, however that ends.
//!
//! The file may go on behind the segment: [`super::HeapRegion`] maps that part.

use super::job_file::JobFile;
use crate::sync::AtomicU32;
use crate::{Error, Result};
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// Most bytes that one `fallocate` call is asked for. A signal makes the kernel give back what it has allocated
/// half-way, so a call must be short compared with the time between signals.
const PIECE: u64 = 8 << 20;

/// The mapped memory of one job. Dropping it unmaps; the memory goes when the last rank has.
#[derive(Debug)]
pub struct Segment {
    file: JobFile,
}

impl Segment {
    /// Makes a segment of `len` bytes of address space, all zero and none of it reserved.
    ///
    /// # Errors
    /// [`Error::Segment`] if the kernel refuses the file, its length or the mapping.
    pub fn create(len: u64) -> Result<Self> {
        Self::create_before(len, 0)
    }

    /// The same, in a file that goes on to `end` bytes if that is more; not where a limit on file sizes forbids it.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn create_before(len: u64, end: u64) -> Result<Self> {
        Ok(Self { file: JobFile::create(len, end)? })
    }

    /// Maps the segment behind an inherited descriptor, which stays open but is not passed to further programs. `len`
    /// finds the segment's length in the file, whose own length it is given.
    ///
    /// # Errors
    /// [`Error::Segment`] if `fd` is not an open, sealed memfd or cannot be mapped.
    pub fn attach(fd: RawFd, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        let segment = Self::attach_and_pass_on(fd, len)?;
        keep_from_programs(fd);
        Ok(segment)
    }

    /// The same without keeping the descriptor from further programs: this one may be about to become another.
    ///
    /// # Errors
    /// As [`Segment::attach`].
    pub fn attach_and_pass_on(fd: RawFd, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        Ok(Self { file: JobFile::attach_and_pass_on(fd, len)? })
    }

    /// Maps the segment in the file of another process's job for reading only: nothing may be stored there.
    ///
    /// # Errors
    /// [`Error::Segment`] if it is no sealed memfd or cannot be mapped.
    pub fn observe(file: File, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        Ok(Self { file: JobFile::observe(file, len)? })
    }

    /// Length of the file in bytes: at least [`Segment::len`].
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file.len()
    }

    /// Length in bytes of address space.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.mapped() as u64
    }

    /// A segment is never empty: its header is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.mapped() == 0
    }

    /// Bytes of memory that it has taken so far; 0 if the kernel does not say.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.file().metadata().map_or(0, |metadata| metadata.blocks() * 512)
    }

    /// The descriptor, for handing it to the ranks.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.file().as_raw_fd()
    }

    /// The job's file.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.file()
    }

    /// Takes the memory of `len` bytes from `offset` of the file on (whole pages), so that touching them cannot fail.
    /// Taking what is taken already costs a system call and changes nothing: contents stay.
    ///
    /// # Errors
    /// [`Error::Segment`] when memory has run out, with how much was asked for and what can be done.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= self.file_len()).ok_or_else(|| {
            Error::Intern(format!("reserving {len} bytes at {offset} of a file of {}", self.file_len()))
        })?;
        let mut at = offset;
        while at < end {
            let piece = (end - at).min(PIECE);
            self.fallocate(FallocateFlags::empty(), at, piece).map_err(|error| exhausted(len, error))?;
            at += piece;
        }
        Ok(())
    }

    /// Gives the memory of `len` bytes from `offset` on back (whole pages); reserved again, it is all zero. Returns
    /// whether the kernel has taken it.
    #[must_use]
    pub fn give_back(&self, offset: u64, len: u64) -> bool {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.file_len());
        inside && self.fallocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len).is_ok()
    }

    fn fallocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> rustix::io::Result<()> {
        retry_on_intr(|| self.file.fallocate(mode, offset, len))
    }

    /// Address in this process of the `len` bytes from `offset` on. The caller has them reserved before touching them.
    ///
    /// # Errors
    /// [`Error::Intern`] for a range outside of the segment; what peers write is validated where it is read.
    pub fn at(&self, offset: u64, len: u64) -> Result<*mut u8> {
        match offset.checked_add(len) {
            // SAFETY: `offset` is at most the length of the mapping, so the sum stays inside it or one past its end.
            Some(end) if end <= self.len() => Ok(unsafe { self.file.base().add(offset as usize) }),
            _ => Err(Error::Intern(format!("{len} bytes at {offset} of a segment of {}", self.len()))),
        }
    }

    /// Returns the words at `offset`. Their page must be reserved (shm rule 1),
    /// or a machine without memory kills the process.
    ///
    /// # Panics
    /// If they do not lie within the segment, or not on their alignment.
    #[inline]
    pub(super) fn words<T: SharedWords>(&self, offset: u64) -> &T {
        let end = offset.checked_add(size_of::<T>() as u64);
        let fits = end.is_some_and(|end| end <= self.len()) && offset.is_multiple_of(align_of::<T>() as u64);
        assert!(fits, "{} bytes at {offset} of a segment of {}", size_of::<T>(), self.len());
        // SAFETY: the assertion says that the words lie within the mapping, which lives as long as `self`, and on their
        // alignment: the mapping starts on a page, and no type is aligned to more. `SharedWords` says that whatever
        // lies there is a `T`, and that other processes may change it.
        unsafe { &*self.base().add(offset as usize).cast() }
    }

    /// Address in this process of the segment's first byte; page-aligned.
    #[inline]
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.file.base()
    }
}

/// A type that may lie in memory that several processes have mapped.
///
/// # Safety
/// It consists of atomics and padding (shm rule 2), so that every bit pattern is a value of it and others may change it
/// while it is borrowed.
pub unsafe trait SharedWords: Sync {}

// SAFETY: it is an atomic.
unsafe impl SharedWords for AtomicU32 {}

/// Closes an inherited descriptor when this process becomes another program.
pub(super) fn keep_from_programs(fd: RawFd) {
    // A descriptor that is not open need not be closed.
    let _ = with_inherited(fd, |fd| fcntl_setfd(fd, FdFlags::CLOEXEC));
}

/// Calls `with` with a descriptor that an environment variable names and that may not be open.
pub(super) fn with_inherited<R>(
    fd: RawFd,
    with: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<R>,
) -> rustix::io::Result<R> {
    if fd < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the number is not -1. It is only given to `fcntl`, which touches no memory and returns EBADF if it is not
    // open; a process that inherits a descriptor learns its number in no other way.
    with(unsafe { BorrowedFd::borrow_raw(fd) })
}

fn exhausted(len: u64, error: Errno) -> Error {
    Error::Segment(format!(
        "{len} bytes of shared memory cannot be allocated ({}); give the job or its container more memory, start \
         fewer ranks, or use smaller rings (PERUSAL_RING_CELLS, PERUSAL_RING_BULK)",
        std::io::Error::from(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let a = Segment::create(1 << 20).unwrap();
        a.reserve(4096, 4096).unwrap();
        let b = Segment::attach(a.fd(), |_, len| len).unwrap();
        // SAFETY: the byte is reserved and inside both mappings; this thread is the only one to touch it.
        unsafe {
            a.at(5000, 1).unwrap().write_volatile(7);
            assert_eq!(b.at(5000, 1).unwrap().read_volatile(), 7);
        }
        assert_eq!(a.len(), b.len());
    }

    #[test]
    fn address_space_is_not_memory() {
        let segment = Segment::create(1 << 40).unwrap();
        segment.reserve((1 << 40) - 4096, 4096).unwrap();
        assert_eq!(segment.file().metadata().map(|m| m.blocks()).unwrap(), 8);
    }

    #[test]
    fn memory_that_was_given_back_is_zero_when_it_is_taken_again() {
        let segment = Segment::create(1 << 20).unwrap();
        segment.reserve(4096, 8192).unwrap();
        let byte = segment.at(5000, 1).unwrap();
        // SAFETY: reserved, inside the mapping, and touched by this thread alone.
        unsafe { byte.write_volatile(7) };
        assert!(segment.give_back(4096, 8192));
        assert_eq!(segment.file().metadata().unwrap().blocks(), 0);
        segment.reserve(4096, 8192).unwrap();
        // SAFETY: the byte is reserved again, inside the mapping, and touched by this thread alone.
        assert_eq!(unsafe { byte.read_volatile() }, 0);
        assert!(!segment.give_back(1 << 20, 4096));
    }

    #[test]
    fn the_file_cannot_be_shrunk_by_a_rank() {
        let segment = Segment::create(1 << 20).unwrap();
        assert!(segment.file().set_len(4096).is_err());
    }

    #[test]
    fn the_file_is_its_user_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let segment = Segment::create(1 << 20).unwrap();
        let mode = segment.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_range_outside_is_refused() {
        let segment = Segment::create(8192).unwrap();
        assert!(segment.reserve(8192, 1).is_err());
        assert!(segment.reserve(u64::MAX, 2).is_err());
        assert!(segment.at(8000, 193).is_err());
        assert!(segment.at(8000, 192).is_ok());
    }

    #[test]
    fn a_descriptor_that_is_no_segment_is_refused_with_its_number() {
        let closed = Segment::attach(9999, |_, len| len).unwrap_err().to_string();
        assert!(closed.contains("9999 from PERUSAL_JOB_FD is not open"), "{closed}");
        let null = File::open("/dev/null").unwrap();
        let other = Segment::attach(null.as_raw_fd(), |_, len| len).unwrap_err().to_string();
        assert!(other.contains("not a job's sealed memory"), "{other}");
    }

    #[test]
    fn no_memory_is_an_error_that_says_how_much_was_asked() {
        let full = exhausted(372_736, Errno::NOSPC).to_string();
        assert!(full.contains("372736 bytes") && full.contains("PERUSAL_RING_BULK"), "{full}");
    }
}
