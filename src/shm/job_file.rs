//! The job's file: a `memfd` that nobody can shrink, mapped from its beginning.

use super::machine;
use super::segment::with_inherited;
use crate::{Error, Result};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, SealFlags, fallocate, fchmod, fcntl_add_seals, fcntl_get_seals,
    memfd_create,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::fs::File;
use std::os::fd::RawFd;

/// The file and its mapping, which drop together.
#[derive(Debug)]
pub struct JobFile {
    map: MmapRaw,
    file: File,
    len: u64,
}

impl JobFile {
    /// Makes a file of `len` bytes, all zero and none of them reserved, and maps them; it goes on to `end` bytes where
    /// that is more and no limit forbids it.
    pub fn create(len: u64, end: u64) -> Result<Self> {
        let fd = memfd_create("perusal-job", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|error| failed("memfd_create", error, "the kernel or a seccomp filter forbids it"))?;
        let file = File::from(fd);
        // Where this is refused, /proc alone keeps other users away.
        let _ = fchmod(&file, Mode::RUSR | Mode::WUSR);
        lengthen(&file, len)?;
        if end > len && end <= machine::file_size() {
            // A job can do without what lies behind the segment.
            let _ = file.set_len(end);
        }
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|error| failed("sealing the memfd", error, "the kernel forbids it"))?;
        Self::map(file, len)
    }

    /// Maps the file behind an inherited descriptor; `len` finds how much of it, given its length.
    pub fn attach_and_pass_on(fd: RawFd, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        let own = with_inherited(fd, |fd| fcntl_dupfd_cloexec(fd, 3)).map_err(|error| match error {
            Errno::MFILE => Error::Segment(format!("its descriptor: {}", machine::why(&error.into()))),
            _ => Error::Segment(format!(
                "descriptor {fd} from PERUSAL_JOB_FD is not open; a program between the launcher and this one closed \
                 it, or the environment was carried over from another job"
            )),
        })?;
        let file = File::from(own);
        if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(Error::Segment(format!(
                "descriptor {fd} from PERUSAL_JOB_FD is open but is not a job's sealed memory; the environment was \
                 carried over from another job"
            )));
        }
        let file_len = length_of(&file)?;
        let len = len(&file, file_len).min(file_len);
        Self::map(file, len)
    }

    /// Maps a job's file for reading only, that of another process; `len` as for [`JobFile::attach_and_pass_on`].
    pub fn observe(file: File, len: impl FnOnce(&File, u64) -> u64) -> Result<Self> {
        if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(Error::Segment("the file is not a job's sealed memory".into()));
        }
        let whole = length_of(&file)?;
        let bytes = usize::try_from(len(&file, whole).min(whole))
            .map_err(|_| Error::Segment(format!("{whole} bytes do not fit into this address space")))?;
        let map = MmapOptions::new().len(bytes).map_raw_read_only(&file);
        let map = map.map_err(|error| Error::Segment(format!("mapping {bytes} bytes: {error}")))?;
        Ok(Self { map, file, len: whole })
    }

    fn map(file: File, len: u64) -> Result<Self> {
        let whole = length_of(&file)?;
        let bytes = usize::try_from(len)
            .map_err(|_| Error::Segment(format!("{len} bytes do not fit into this address space")))?;
        let map =
            MmapOptions::new().len(bytes).map_raw(&file).map_err(|e| {
                Error::Segment(format!(
                    "mapping {len} bytes of address space: {e}; {}",
                    match machine::address_space() {
                        Some(limit) => format!(
                            "raise the limit on virtual memory, now {} KiB (ulimit -v), or run fewer ranks",
                            limit / 1024
                        ),
                        None =>
                            "run fewer ranks, or use smaller rings (PERUSAL_RING_CELLS, PERUSAL_RING_BULK)"
                                .into(),
                    }
                ))
            })?;
        Ok(Self { map, file, len: whole })
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of it that are mapped.
    pub fn mapped(&self) -> usize {
        self.map.len()
    }

    /// Address of the first of them, on a page.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Calls fallocate(2).
    pub fn fallocate(&self, mode: FallocateFlags, at: u64, len: u64) -> rustix::io::Result<()> {
        fallocate(&self.file, mode, at, len)
    }
}

fn length_of(file: &File) -> Result<u64> {
    file.metadata().map(|metadata| metadata.len()).map_err(|e| Error::Segment(format!("fstat: {e}")))
}

/// Gives the empty file its length. A length beyond the limit on file sizes is an error here,
/// and would be SIGXFSZ from the kernel.
fn lengthen(file: &File, len: u64) -> Result<()> {
    let limit = machine::file_size();
    if limit < len {
        return Err(Error::Segment(format!(
            "the job needs {len} bytes of address space in one file, and the limit on file sizes is {limit} (ulimit \
             -f); raise it, or run fewer ranks"
        )));
    }
    file.set_len(len).map_err(|e| Error::Segment(format!("a file of {len} bytes of address space: {e}")))
}

fn failed(what: &str, error: Errno, why: &str) -> Error {
    Error::Segment(match error {
        Errno::MFILE => format!("{what}: {}", machine::why(&error.into())),
        _ => format!("{what}: {}; {why}", std::io::Error::from(error)),
    })
}
