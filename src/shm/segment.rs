//! The job's one piece of shared memory: a sealed `memfd`, mapped whole, whose pages are taken before they are touched.
//!
//! Address space is free, memory is not: the file is as long as the layout for all pairs of ranks, and sparse. A page
//! that nobody reserved must not be touched, for on a machine without memory that would be SIGBUS; [`Segment::reserve`]
//! takes the pages or says why it cannot. The seals keep every holder of the descriptor from shrinking the file under
//! the others. Nothing has a name in a file system, so nothing stays behind whoever is killed.
//!
//! Behind the segment the file may go on: that part ([`crate::heap`]) is mapped by who needs it.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use memmap2::{MmapOptions, MmapRaw};

use crate::{Error, Result};

/// Largest piece that one `fallocate` call is asked for: a signal makes the kernel give a half-done piece back, so a
/// piece must be short beside the time between signals.
const PIECE: u64 = 8 << 20;

/// The mapped memory of one job. Dropping it unmaps; the memory goes when the last rank has.
#[derive(Debug)]
pub struct Segment {
    map: MmapRaw,
    file: File,
    file_len: u64,
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
        // SAFETY: the name is a NUL-terminated literal; the call touches no other memory.
        let fd = unsafe {
            libc::memfd_create(c"perusal-job".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if fd < 0 {
            return Err(failed("memfd_create", "the kernel or a seccomp filter forbids it"));
        }
        // SAFETY: memfd_create has just returned this descriptor and nobody else owns it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        lengthen(&file, len)?;
        if end > len && file_limit().is_none_or(|limit| end <= limit) {
            // Who gets no more does without.
            let _ = file.set_len(end);
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: an fcntl with integer arguments on a descriptor that `file` keeps open.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
            return Err(failed("sealing the memfd", "the kernel forbids it"));
        }
        Self::map(file, len)
    }

    /// Maps the segment behind an inherited descriptor, which stays open but is not passed to further programs. `len` finds
    /// the segment's length in the file, whose own length it is given.
    ///
    /// # Errors
    /// [`Error::Segment`] if `fd` is not an open, sealed memfd or cannot be mapped.
    pub fn attach(fd: RawFd, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        let segment = Self::look(fd, len)?;
        keep_from_programs(fd);
        Ok(segment)
    }

    /// The same without keeping the descriptor from further programs: this one may be about to become another.
    ///
    /// # Errors
    /// As [`Segment::attach`].
    pub fn look(fd: RawFd, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        // SAFETY: fcntl on an integer; a descriptor that is not open gives EBADF.
        let own = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if own < 0 {
            return Err(Error::Segment(format!(
                "descriptor {fd} from PERUSAL_JOB_FD is not open; a program between the launcher and this one closed \
                 it, or the environment was carried over from another job"
            )));
        }
        // SAFETY: F_DUPFD_CLOEXEC has just returned this descriptor and nobody else owns it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(own) });
        // SAFETY: as above, integers only.
        let seals = unsafe { libc::fcntl(own, libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(Error::Segment(format!(
                "descriptor {fd} from PERUSAL_JOB_FD is open but is not a job's sealed memory; the environment was \
                 carried over from another job"
            )));
        }
        let file_len = length_of(&file)?;
        let len = len(&file, file_len).min(file_len);
        Self::map(file, len)
    }

    fn map(file: File, len: u64) -> Result<Self> {
        let file_len = length_of(&file)?;
        let bytes = usize::try_from(len)
            .map_err(|_| Error::Segment(format!("{len} bytes do not fit into this address space")))?;
        let map = MmapOptions::new().len(bytes).map_raw(&file).map_err(|e| {
            Error::Segment(format!(
                "mapping {len} bytes of address space: {e}; a limit on virtual memory (ulimit -v) must allow it, or \
                 use smaller rings (PERUSAL_RING_CELLS, PERUSAL_RING_BULK)"
            ))
        })?;
        Ok(Self { map, file, file_len })
    }

    /// Length of the file in bytes: at least [`Segment::len`].
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Length in bytes of address space.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// A segment is never empty: its header is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.len() == 0
    }

    /// Bytes of memory that it has taken so far; 0 if the kernel does not say.
    #[must_use]
    pub fn taken(&self) -> u64 {
        // SAFETY: all zeros is a stat; the call fills it, for a descriptor that the segment keeps open.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let failed = unsafe { libc::fstat(self.fd(), &raw mut stat) } != 0;
        if failed { 0 } else { stat.st_blocks.unsigned_abs() * 512 }
    }

    /// The descriptor, for handing it to the ranks.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Takes the memory of `len` bytes from `offset` of the file on (whole pages), so that touching them cannot fail. Taking what is
    /// taken already costs a system call and changes nothing: contents stay.
    ///
    /// # Errors
    /// [`Error::Segment`] when memory has run out, with how much was asked for and what can be done.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= self.file_len).ok_or_else(|| {
            Error::Intern(format!("reserving {len} bytes at {offset} of a file of {}", self.file_len))
        })?;
        let mut at = offset;
        while at < end {
            let piece = (end - at).min(PIECE);
            self.allocate(at, piece).map_err(|e| exhausted(len, &e))?;
            at += piece;
        }
        Ok(())
    }

    /// Gives the memory of `len` bytes from `offset` on back (whole pages); taken again, it is all zero. Whether the kernel
    /// did so.
    #[must_use]
    pub fn give_back(&self, offset: u64, len: u64) -> bool {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.file_len);
        inside && self.fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len).is_ok()
    }

    fn allocate(&self, offset: u64, len: u64) -> std::io::Result<()> {
        self.fallocate(0, offset, len)
    }

    fn fallocate(&self, mode: libc::c_int, offset: u64, len: u64) -> std::io::Result<()> {
        loop {
            // Lossless: both lie within the mapping, whose length is an isize.
            let (offset, len) = (offset.cast_signed(), len.cast_signed());
            // SAFETY: integers only, on a descriptor that `file` keeps open.
            if unsafe { libc::fallocate(self.fd(), mode, offset, len) } == 0 {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error);
            }
        }
    }

    /// Address in this process of the `len` bytes from `offset` on. The caller has them reserved before touching them.
    ///
    /// # Errors
    /// [`Error::Intern`] for a range outside of the segment; what peers write is validated where it is read.
    pub fn at(&self, offset: u64, len: u64) -> Result<*mut u8> {
        match offset.checked_add(len) {
            // SAFETY: `offset` is at most the length of the mapping, so the sum stays inside it or one past its end.
            Some(end) if end <= self.len() => Ok(unsafe { self.map.as_mut_ptr().add(offset as usize) }),
            _ => Err(Error::Intern(format!("{len} bytes at {offset} of a segment of {}", self.len()))),
        }
    }

    /// Address in this process of the segment's first byte; page-aligned.
    #[inline]
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }
}

/// Closes an inherited descriptor when this process becomes another program.
pub(super) fn keep_from_programs(fd: RawFd) {
    // SAFETY: fcntl on integers; a descriptor that is not open gives EBADF and changes nothing.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

fn length_of(file: &File) -> Result<u64> {
    file.metadata().map(|metadata| metadata.len()).map_err(|e| Error::Segment(format!("fstat: {e}")))
}

/// The limit on file sizes in bytes, if there is one.
fn file_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit that the call fills.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Gives the empty file its length, with a word in advance where the kernel would send SIGXFSZ instead.
fn lengthen(file: &File, len: u64) -> Result<()> {
    if let Some(limit) = file_limit().filter(|limit| *limit < len) {
        return Err(Error::Segment(format!(
            "the job needs {len} bytes of address space in one file, and the limit on file sizes is {limit} (ulimit \
             -f); raise it, or use smaller rings (PERUSAL_RING_CELLS, PERUSAL_RING_BULK)"
        )));
    }
    file.set_len(len).map_err(|e| Error::Segment(format!("a file of {len} bytes of address space: {e}")))
}

fn exhausted(len: u64, error: &std::io::Error) -> Error {
    Error::Segment(format!(
        "{len} bytes of shared memory are not to be had ({error}); give the job or its container more memory, start \
         fewer ranks, or use smaller rings (PERUSAL_RING_CELLS, PERUSAL_RING_BULK)"
    ))
}

fn failed(what: &str, why: &str) -> Error {
    Error::Segment(format!("{what}: {}; {why}", std::io::Error::last_os_error()))
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
        assert_eq!(segment.file.metadata().map(|m| std::os::unix::fs::MetadataExt::blocks(&m)).unwrap(), 8);
    }

    #[test]
    fn memory_that_was_given_back_is_zero_when_it_is_taken_again() {
        use std::os::unix::fs::MetadataExt;
        let segment = Segment::create(1 << 20).unwrap();
        segment.reserve(4096, 8192).unwrap();
        let byte = segment.at(5000, 1).unwrap();
        // SAFETY: reserved, inside the mapping, and touched by this thread alone.
        unsafe { byte.write_volatile(7) };
        assert!(segment.give_back(4096, 8192));
        assert_eq!(segment.file.metadata().unwrap().blocks(), 0);
        segment.reserve(4096, 8192).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { byte.read_volatile() }, 0);
        assert!(!segment.give_back(1 << 20, 4096));
    }

    #[test]
    fn the_file_cannot_be_shrunk_by_a_rank() {
        let segment = Segment::create(1 << 20).unwrap();
        assert!(segment.file.set_len(4096).is_err());
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
        let full = exhausted(372_736, &std::io::Error::from_raw_os_error(libc::ENOSPC)).to_string();
        assert!(full.contains("372736 bytes") && full.contains("PERUSAL_RING_BULK"), "{full}");
    }
}
