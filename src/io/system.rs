//! The system calls on files, and what their errors mean.

use super::access::Direction;
use super::hints;
use super::mapped::Mapping;
use super::mode::Mode;
use super::size_limit::SizeLimit;
use crate::abi;
use crate::comm::{Comm, lock};
use crate::error::{Error, Result};
use crate::info::Info;
use crate::shm::machine;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, OFlags};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::OnceLock;

/// A file that this rank has opened.
#[derive(Debug)]
pub(super) struct Descriptor {
    fd: OwnedFd,
    name: Name,
    /// The members, whose events are those of the file.
    comm: Arc<Comm>,
    /// Whether it can be accessed at an offset ([`has_offsets`]).
    seekable: bool,
    /// Whether it is a file of bytes, and no device.
    regular: bool,
    /// The same file, open for a mapping that is written: for reading too. `None` if it cannot be.
    mappable: OnceLock<Option<OwnedFd>>,
    /// Whether no mapping is to be tried, for reading and for writing.
    unmapped: [AtomicBool; 2],
    /// Whether many short runs have been read from it.
    read_apart: AtomicBool,
    /// The mapping that was used last, while nobody uses it.
    mapping: Mutex<Option<Mapping>>,
    /// If it may be written.
    _size_limit: Option<SizeLimit>,
}

/// A file's name.
#[derive(Debug, Clone)]
pub(super) struct Name(CString);

impl Name {
    /// # Errors
    /// [`Error::File`] for an empty one.
    pub fn new(name: &[u8]) -> Result<Self> {
        let text = CString::new(name).ok().filter(|name| !name.is_empty());
        text.map(Self).ok_or_else(|| Error::File {
            class: abi::MPI_ERR_BAD_FILE,
            path: String::from_utf8_lossy(name).into_owned(),
            what: "a file's name is not empty and has no zero byte".into(),
        })
    }

    pub fn path(&self) -> &CStr {
        &self.0
    }

    /// The name that is behind it, if it is that of a symbolic link.
    pub fn behind_link(&self) -> Option<Self> {
        let target = fs::readlink(self.path(), Vec::new()).ok()?;
        let [own, target] = [self.path(), &target].map(|name| Path::new(OsStr::from_bytes(name.to_bytes())));
        let name = own.parent().unwrap_or(own).join(target);
        CString::new(name.into_os_string().into_vec()).ok().map(Self)
    }

    /// The error of what is not done with the file.
    pub fn refused(&self, class: i32, what: impl Into<String>) -> Error {
        Error::File { class, path: self.to_string(), what: what.into() }
    }

    /// The error of doing something with the file.
    pub fn failure(&self, doing: &str, errno: Errno) -> Error {
        let mut what = format!("{doing}: {}", machine::why(&errno.into()));
        if let Some(advice) = advice(errno) {
            what = format!("{what}; {advice}");
        }
        Error::File { class: class(errno), path: self.to_string(), what }
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        Path::new(OsStr::from_bytes(self.0.to_bytes())).display().fmt(f)
    }
}

/// The MPI error class of what the system says.
fn class(errno: Errno) -> i32 {
    match errno {
        Errno::NOENT => abi::MPI_ERR_NO_SUCH_FILE,
        Errno::EXIST => abi::MPI_ERR_FILE_EXISTS,
        Errno::ACCESS | Errno::PERM => abi::MPI_ERR_ACCESS,
        Errno::ROFS => abi::MPI_ERR_READ_ONLY,
        Errno::NAMETOOLONG | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP | Errno::INVAL | Errno::NXIO => {
            abi::MPI_ERR_BAD_FILE
        }
        Errno::NOSPC | Errno::FBIG => abi::MPI_ERR_NO_SPACE,
        Errno::DQUOT => abi::MPI_ERR_QUOTA,
        Errno::TXTBSY | Errno::BUSY => abi::MPI_ERR_FILE_IN_USE,
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => abi::MPI_ERR_NO_MEM,
        Errno::OPNOTSUPP | Errno::SPIPE | Errno::NOLCK => abi::MPI_ERR_UNSUPPORTED_OPERATION,
        _ => abi::MPI_ERR_IO,
    }
}

/// What to do about it, where the system's own text does not say.
fn advice(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::FBIG => Some("the limit of the process (ulimit -f) or of the file system is reached"),
        Errno::MFILE => Some("or close files"),
        Errno::PIPE => Some("nobody reads from it any more"),
        Errno::NOLCK | Errno::OPNOTSUPP => Some("the file system does not have it"),
        _ => None,
    }
}

/// What became of an access: how many bytes were moved before it ended, and why it ended early.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Transfer {
    /// Bytes that were moved.
    pub bytes: u64,
    /// What kept it from going on. The end of a file is no error.
    pub error: Option<Error>,
    /// Bytes of the file that were moved, where a representation makes more or fewer of them than of those in memory.
    pub(super) in_file: Option<u64>,
}

impl Transfer {
    /// Nothing, because of `error`.
    pub fn failed(error: Error) -> Self {
        Self::of(0, Some(error))
    }

    /// So many bytes, which are as many in the file as in memory.
    pub(super) fn of(bytes: u64, error: Option<Error>) -> Self {
        Self { bytes, error, in_file: None }
    }

    /// The same bytes of the file, which are `bytes` in memory.
    pub(super) fn converted(self, bytes: u64) -> Self {
        Self { bytes, in_file: Some(self.bytes), ..self }
    }
}

/// The error that another rank has sent as a number; 0 for none.
pub(super) fn errno_of(number: i64) -> Option<Errno> {
    match i32::try_from(number) {
        Ok(0) => None,
        Ok(number @ 1..=4095) => Some(Errno::from_raw_os_error(number)),
        _ => Some(Errno::IO),
    }
}

/// The number of an error; 0 for none.
pub(super) fn number_of(errno: Option<Errno>) -> i64 {
    i64::from(errno.map_or(0, Errno::raw_os_error))
}

/// Repeats a call that a signal has interrupted.
fn uninterrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Opens a file; directories are refused. `create`: with these permissions if it is not there, and never if it is.
pub(super) fn open(name: &Name, mode: Mode, create: Option<u32>) -> rustix::io::Result<OwnedFd> {
    let mut flags = OFlags::CLOEXEC;
    flags |= match (mode.reads(), mode.writes()) {
        (true, true) => OFlags::RDWR,
        (false, _) => OFlags::WRONLY,
        (true, false) => OFlags::RDONLY,
    };
    if create.is_some() {
        flags |= OFlags::CREATE | OFlags::EXCL;
    }
    let permissions = fs::Mode::from_bits_truncate(create.unwrap_or(0));
    let fd = uninterrupted(|| fs::open(name.path(), flags, permissions))?;
    if fs::FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) == fs::FileType::Directory {
        return Err(Errno::ISDIR);
    }
    Ok(fd)
}

/// Removes a file's name.
pub(super) fn unlink(name: &Name) -> rustix::io::Result<()> {
    fs::unlink(name.path())
}

/// Whether a file can be accessed at an offset; a pipe or a terminal cannot.
pub(super) fn has_offsets(fd: impl AsFd) -> bool {
    fs::tell(fd).is_ok()
}

/// Writes to a pipe or the like. If nobody reads from it any more, that is an error, where the signal that comes with
/// it would end the program.
fn write_to_stream(fd: BorrowedFd<'_>, from: &[u8]) -> rustix::io::Result<usize> {
    // SAFETY: fills sets of signals, and changes the mask of this thread, to which the system sends this signal; then
    // it puts the old one back.
    unsafe {
        let (mut broken, mut old, mut pending) =
            (core::mem::zeroed(), core::mem::zeroed(), core::mem::zeroed());
        libc::sigemptyset(&raw mut broken);
        libc::sigaddset(&raw mut broken, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const broken, &raw mut old);
        libc::sigpending(&raw mut pending);
        let written = rustix::io::write(fd, from);
        // One that was there before is the program's.
        if written == Err(Errno::PIPE) && libc::sigismember(&raw const pending, libc::SIGPIPE) == 0 {
            let at_once: libc::timespec = core::mem::zeroed();
            libc::sigtimedwait(&raw const broken, core::ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, core::ptr::null_mut());
        written
    }
}

impl Descriptor {
    pub fn new(fd: OwnedFd, name: Name, mode: Mode, comm: Arc<Comm>) -> Self {
        let seekable = has_offsets(&fd);
        let regular = fs::fstat(&fd)
            .is_ok_and(|stat| fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile);
        let unmapped = [(); 2].map(|()| AtomicBool::new(!(seekable && regular)));
        let mappable = OnceLock::new();
        Self {
            fd,
            name,
            comm,
            seekable,
            regular,
            mappable,
            unmapped,
            read_apart: AtomicBool::new(false),
            mapping: Mutex::new(None),
            _size_limit: mode.writes().then(SizeLimit::heed),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn unmapped(&self, direction: Direction) -> &AtomicBool {
        &self.unmapped[usize::from(direction == Direction::Write)]
    }

    /// The file as a mapping for this direction wants it; `None` if it cannot be mapped.
    /// One for writing is open for reading too.
    pub fn for_mapping(&self, direction: Direction) -> Option<BorrowedFd<'_>> {
        // Relaxed: a hint.
        if self.unmapped(direction).load(Ordering::Relaxed) {
            return None;
        }
        if direction == Direction::Read {
            return Some(self.fd());
        }
        let open = || {
            let path = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&self.fd));
            fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, fs::Mode::empty()).ok()
        };
        let fd = self.mappable.get_or_init(open);
        if fd.is_none() {
            self.never_map(direction);
        }
        fd.as_ref().map(AsFd::as_fd)
    }

    /// Whether moving these bytes waits for no storage device and for nobody: what is written goes to the page cache,
    /// and what is read is there, as far as its first and last byte tell.
    pub fn is_in_memory(&self, direction: Direction, offset: u64, len: u64) -> bool {
        let cached = |at| {
            let mut byte = [0];
            let to = &mut [IoSliceMut::new(&mut byte)];
            rustix::io::preadv2(&self.fd, to, at, ReadWriteFlags::NOWAIT).is_ok()
        };
        let last = offset + len.saturating_sub(1);
        self.regular && (direction == Direction::Write || (cached(offset) && cached(last)))
    }

    /// Whether many short runs have been read before this call:
    /// to map a file for one read takes longer than to read it.
    pub fn reads_apart_again(&self) -> bool {
        // Relaxed, both: a hint.
        self.read_apart.load(Ordering::Relaxed) || {
            self.read_apart.store(true, Ordering::Relaxed);
            false
        }
    }

    /// Takes the mapping that was kept.
    pub fn take_mapping(&self) -> Option<Mapping> {
        lock(&self.mapping).take()
    }

    /// Keeps a mapping for the next access, and unmaps the one that another thread has kept meanwhile.
    pub fn keep_mapping(&self, mapping: Mapping) {
        let before = lock(&self.mapping).replace(mapping);
        drop(before);
    }

    /// Mappings of this file are not to be tried any more.
    pub fn never_map(&self, direction: Direction) {
        // Relaxed: a hint.
        self.unmapped(direction).store(true, Ordering::Relaxed);
    }

    /// Tries no mapping where the hints forbid it.
    pub fn heed(&self, hints: &Info) {
        for direction in [Direction::Read, Direction::Write] {
            if !hints::maps(hints, direction) {
                self.never_map(direction);
            }
        }
    }

    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn failure(&self, doing: &str, errno: Errno) -> Error {
        self.name.failure(doing, errno)
    }

    /// Reads at `offset` until `to` is full or the file ends: the bytes, and the error that kept it from going on.
    pub fn read_raw(&self, offset: u64, to: &mut [u8]) -> (u64, Option<Errno>) {
        let mut done = 0;
        while done < to.len() {
            let room = &mut to[done..];
            self.disk_access(offset + done as u64, room.len());
            let result = uninterrupted(|| {
                if self.seekable {
                    rustix::io::pread(&self.fd, &mut *room, offset + done as u64)
                } else {
                    rustix::io::read(&self.fd, &mut *room)
                }
            });
            match result {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(errno) => return (done as u64, Some(errno)),
            }
        }
        (done as u64, None)
    }

    /// Writes `from` at `offset`: the bytes, and the error that kept it from going on.
    pub fn write_raw(&self, offset: u64, from: &[u8]) -> (u64, Option<Errno>) {
        let mut done = 0;
        while done < from.len() {
            let rest = &from[done..];
            self.disk_access(offset + done as u64, rest.len());
            let result = uninterrupted(|| {
                if self.seekable {
                    SizeLimit::tolerate(|| rustix::io::pwrite(&self.fd, rest, offset + done as u64))
                } else {
                    write_to_stream(self.fd(), rest)
                }
            });
            match result {
                Ok(bytes @ 1..) => done += bytes,
                other => return (done as u64, Some(other.err().unwrap_or(Errno::IO))),
            }
        }
        (done as u64, None)
    }

    /// As [`read_raw`](Self::read_raw), with a sentence about the error.
    #[inline]
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Transfer {
        let (bytes, errno) = self.read_raw(offset, to);
        Transfer::of(bytes, errno.map(|errno| self.access_failure("reading", offset + bytes, errno)))
    }

    /// As [`write_raw`](Self::write_raw), with a sentence about the error.
    #[inline]
    pub fn write(&self, offset: u64, from: &[u8]) -> Transfer {
        let (bytes, errno) = self.write_raw(offset, from);
        Transfer::of(bytes, errno.map(|errno| self.access_failure("writing", offset + bytes, errno)))
    }

    #[cold]
    fn access_failure(&self, doing: &str, at: u64, errno: Errno) -> Error {
        self.failure(&format!("{doing} at byte {at}"), errno)
    }

    /// Bytes of the file.
    pub fn size(&self) -> Result<u64> {
        let stat = fs::fstat(&self.fd).map_err(|errno| self.failure("asking for the size", errno))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Cuts the file off, or extends it by zeroes.
    pub fn set_size(&self, size: u64) -> rustix::io::Result<()> {
        uninterrupted(|| SizeLimit::tolerate(|| fs::ftruncate(&self.fd, size)))
    }

    /// Allocates the first `size` bytes, and extends the file to them if it is shorter.
    pub fn preallocate(&self, size: u64) -> rustix::io::Result<()> {
        if size == 0 {
            return Ok(());
        }
        uninterrupted(|| {
            let length = libc::off64_t::try_from(size).map_err(|_| Errno::FBIG)?;
            let fd = rustix::fd::AsRawFd::as_raw_fd(&self.fd);
            // SAFETY: allocates within a file that is open; takes no address.
            match SizeLimit::tolerate(|| unsafe { libc::posix_fallocate64(fd, 0, length) }) {
                0 => Ok(()),
                error => Err(Errno::from_raw_os_error(error)),
            }
        })
    }

    /// Has the storage device keep what was written.
    pub fn sync(&self) -> Result<()> {
        match uninterrupted(|| fs::fsync(&self.fd)) {
            // Pipes, terminals and the like have no storage.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(self.failure("syncing", errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_has_its_error_class_and_names_the_file() {
        let name = Name::new(b"/data/check point").expect("a path");
        let classes = [
            (Errno::NOENT, abi::MPI_ERR_NO_SUCH_FILE),
            (Errno::EXIST, abi::MPI_ERR_FILE_EXISTS),
            (Errno::ACCESS, abi::MPI_ERR_ACCESS),
            (Errno::ROFS, abi::MPI_ERR_READ_ONLY),
            (Errno::ISDIR, abi::MPI_ERR_BAD_FILE),
            (Errno::NOSPC, abi::MPI_ERR_NO_SPACE),
            (Errno::FBIG, abi::MPI_ERR_NO_SPACE),
            (Errno::DQUOT, abi::MPI_ERR_QUOTA),
            (Errno::TXTBSY, abi::MPI_ERR_FILE_IN_USE),
            (Errno::MFILE, abi::MPI_ERR_NO_MEM),
            (Errno::NOLCK, abi::MPI_ERR_UNSUPPORTED_OPERATION),
            (Errno::IO, abi::MPI_ERR_IO),
        ];
        for (errno, class) in classes {
            let error = name.failure("write at 100", errno);
            assert_eq!(error.class(), class, "{errno:?}");
            let text = error.to_string();
            assert!(text.contains("/data/check point") && text.contains("write at 100"), "{text}");
        }
    }
}
