//! The memory of an endpoint: a sealed memfd with one ring for each peer that sends to it.
//!
//! The endpoint that receives owns the memory. A process that wants to send opens it as `/proc/PID/fd/FD`, which the
//! kernel allows to processes of the same user only, claims a slot, and writes into the slot who it is. Nothing has a
//! name in a file system, so nothing is left after any kill.
//!
//! [`crate::memory::words`] has the rules of its words.

use crate::api::{FI_EHOSTUNREACH, FI_EIO, FI_ENOMEM, last_error, number_of};
use crate::memory::process::Memory;
use crate::memory::status::StatusWords;
use crate::memory::words::{NONCE_AT, SLOTS, Words};
use crate::names::address::Address;
use crate::names::service::Service;
use memmap2::{MmapOptions, MmapRaw};
use perusal::internals::doorbell::Doorbell;
use perusal::internals::limits::PAGE;
use perusal::internals::ring::MappedRing;
use perusal::internals::sync::AsymmetricFence;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;

/// What the name of an endpoint's memory begins with.
pub const MEMORY: &str = "perusal-fi";
/// Records that a ring holds.
const CELLS: usize = 256;
/// Payload bytes that a ring holds.
const BULK: usize = 512 << 10;

const STATUS_AT: usize = size_of::<Words>().next_multiple_of(PAGE);
const DOORBELL_AT: usize = (STATUS_AT + size_of::<StatusWords>()).next_multiple_of(PAGE);
const RINGS_AT: usize = (DOORBELL_AT + Doorbell::bytes(SLOTS)).next_multiple_of(PAGE);
const RING_BYTES: usize = MappedRing::bytes(CELLS, BULK).next_multiple_of(PAGE);
const BYTES: usize = RINGS_AT + SLOTS * RING_BYTES;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapping of an endpoint's memory, its own or a peer's.
#[derive(Debug)]
pub struct Segment {
    map: MmapRaw,
    file: File,
}

impl Segment {
    /// Makes the memory of an endpoint, and its address.
    /// The memory has the name of the service, which need not be the only one.
    ///
    /// # Errors
    ///
    /// The number of the error, positive.
    pub fn new(service: &Service) -> Result<(Self, Address), i32> {
        let name = service.of_memory();
        // SAFETY: the name is a C string; what comes back is checked.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(last_error());
        }
        // SAFETY: a descriptor that was just made and that nobody else has.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        if fd > 999_999 {
            return Err(libc::EMFILE);
        }
        file.set_len(BYTES as u64).map_err(number_of)?;
        // SAFETY: plain calls on a descriptor that we own.
        let sealed =
            unsafe { libc::fchmod(fd, 0o600) == 0 && libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) == 0 };
        if !sealed {
            return Err(last_error());
        }
        take_memory(&file, 0, RINGS_AT)?;
        let mut nonce = [0_u8; 8];
        // SAFETY: eight bytes to write.
        if unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), 8, 0) } != 8 {
            return Err(last_error());
        }
        let address = Address { pid: std::process::id(), fd: fd as u32, nonce: u64::from_ne_bytes(nonce) };
        let segment = Self::map(file)?;
        segment.words().open(address.nonce, AsymmetricFence::join(false).is_ok());
        Ok((segment, address))
    }

    fn map(file: File) -> Result<Self, i32> {
        let map = MmapOptions::new().len(BYTES).map_raw(&file).map_err(number_of)?;
        Ok(Self { map, file })
    }

    /// Maps the memory of the endpoint with this address.
    ///
    /// # Errors
    ///
    /// FI_EHOSTUNREACH if there is no such endpoint (any more), or the number of another error.
    pub fn open(address: Address) -> Result<Self, i32> {
        let file = open_memory(address)?;
        // SAFETY: a plain call on a descriptor that we own. Seals keep everybody from taking the memory away under us.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let length = file.metadata().map_err(number_of)?.len();
        if seals < 0 || seals & SEALS != SEALS || length != BYTES as u64 {
            return Err(FI_EHOSTUNREACH);
        }
        let segment = Self::map(file)?;
        if segment.words().is(address.nonce) { Ok(segment) } else { Err(FI_EHOSTUNREACH) }
    }

    /// Maps the memory of an endpoint to look at, which is open at this path; `None` if it is none, or cannot be had.
    pub fn look(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // SAFETY: a plain call on a descriptor that we own. Seals keep everybody from taking the memory away under us.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS || file.metadata().ok()?.len() != BYTES as u64 {
            return None;
        }
        let map = MmapOptions::new().len(BYTES).map_raw_read_only(&file).ok()?;
        let segment = Self { map, file };
        (!segment.words().is_closed()).then_some(segment)
    }

    /// Which file it is.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn memory(&self) -> Result<Memory, i32> {
        self.file.metadata().map(|file| Memory::of(&file)).map_err(number_of)
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < BYTES);
        // SAFETY: a mapping is not at null, and the callers' offsets lie within it.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset)) }
    }

    /// The words at its beginning.
    #[inline(always)]
    pub fn words(&self) -> &Words {
        // SAFETY: the mapping begins with `Words` (zeroed or written by an endpoint), which are atomics;
        // it is aligned to a page.
        unsafe { self.at(0).cast::<Words>().as_ref() }
    }

    /// What the owner says of itself.
    pub fn status(&self) -> &StatusWords {
        // SAFETY: the bytes lie within the mapping, aligned to a page, for these words alone, which are atomics; new
        // memory is zeroed.
        unsafe { self.at(STATUS_AT).cast::<StatusWords>().as_ref() }
    }

    /// The fence that the owner and its senders agree on.
    ///
    /// # Errors
    ///
    /// FI_EIO if this process is refused what the owner counts on.
    pub fn fence(&self) -> Result<AsymmetricFence, i32> {
        AsymmetricFence::join(!self.words().uses_membarrier()).map_err(|_| FI_EIO)
    }

    /// Opens the owner's pipe for writing.
    pub fn open_pipe(&self, owner: Address) -> Option<File> {
        let (fd, file) = self.words().pipe()?;
        let path = format!("/proc/{}/fd/{fd}", owner.pid);
        // The link is read first: opening anything else could have effects.
        let link = std::fs::read_link(&path).ok()?;
        if link.as_os_str() != format!("pipe:[{file}]").as_str() {
            return None;
        }
        // Also for reading: a write into a pipe that nobody can read any more is a signal.
        let pipe = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        // The descriptor may have become another pipe's meanwhile.
        (pipe.metadata().ok()?.ino() == file).then_some(pipe)
    }

    /// The doorbell of the owner, with a flag for each slot.
    pub fn doorbell(&self) -> Doorbell {
        // SAFETY: the bytes lie within the mapping, page-aligned, zeroed, for doorbells alone;
        // whoever keeps a copy keeps the segment.
        unsafe { Doorbell::over(self.at(DOORBELL_AT), SLOTS) }
    }

    /// The ring of slot `at`.
    pub fn ring(&self, at: usize) -> MappedRing {
        assert!(at < SLOTS);
        // SAFETY: the bytes lie within the mapping, page-aligned, for rings alone;
        // whoever keeps a copy keeps the segment.
        unsafe { MappedRing::new(self.at(RINGS_AT + at * RING_BYTES), CELLS, BULK) }
    }

    /// Takes a slot for the sender `own`. Returns which.
    ///
    /// # Errors
    ///
    /// FI_EBUSY's number if there is none, FI_ENOMEM if there is no memory for its ring.
    pub fn claim(&self, own: Address) -> Result<usize, i32> {
        let at = self.words().claim((own.pid, own.fd, own.nonce)).ok_or(libc::EBUSY)?;
        let memory = take_memory(&self.file, RINGS_AT + at * RING_BYTES, RING_BYTES);
        memory.map(|()| at).inspect_err(|_| self.words().give_up(at))
    }

    /// The sender says that its slot is READY or CLOSED.
    pub fn publish(&self, at: usize, state: u32) {
        self.words().publish(at, state);
        // Its fence stands before what the caller does about the pipe (pipe rule).
        self.doorbell().ring(at);
    }

    /// Returns who sends through a slot that is READY or CLOSED.
    pub fn sender(&self, at: usize) -> Address {
        let (pid, fd, nonce) = self.words().sender(at);
        Address { pid, fd, nonce }
    }
}

/// Whether what a descriptor's link says is the name of an endpoint's memory.
pub fn is_memory(link: &Path) -> bool {
    let name = link.as_os_str().to_string_lossy();
    name.strip_prefix("/memfd:").is_some_and(|name| name.starts_with(MEMORY))
}

/// Opens the memory of an endpoint that is where this address says.
fn open_memory(address: Address) -> Result<File, i32> {
    let path = format!("/proc/{}/fd/{}", address.pid, address.fd);
    let gone = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => FI_EHOSTUNREACH,
        _ => number_of(error),
    };
    // The link is read first: opening a pipe or a device would have effects.
    let link = std::fs::read_link(&path).map_err(gone)?;
    if !is_memory(&link) {
        return Err(FI_EHOSTUNREACH);
    }
    File::options().read(true).write(true).open(&path).map_err(gone)
}

/// Finds out which file the memory of the endpoint with this address is.
///
/// # Errors
///
/// FI_EHOSTUNREACH if there is no such endpoint (any more), or the number of another error.
pub fn find_memory(address: Address) -> Result<Memory, i32> {
    let (file, mut nonce) = (open_memory(address)?, [0; 8]);
    file.read_exact_at(&mut nonce, NONCE_AT).map_err(number_of)?;
    if u64::from_ne_bytes(nonce) != address.nonce {
        return Err(FI_EHOSTUNREACH);
    }
    file.metadata().map(|file| Memory::of(&file)).map_err(number_of)
}

/// Takes memory for a piece of the file now, so that a lack of it is an error and not a signal.
fn take_memory(file: &File, offset: usize, len: usize) -> Result<(), i32> {
    // SAFETY: a plain call on a descriptor that we own.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as i64, len as i64) } {
        0 => Ok(()),
        libc::ENOSPC => Err(FI_ENOMEM),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, PipeWriter, Write, pipe};

    /// An endpoint's memory, its address, and a pipe that it has armed.
    fn armed() -> (Segment, Address, PipeReader, PipeWriter) {
        let (segment, address) = Segment::new(&Service::default()).expect("memory");
        let (read, write) = pipe().expect("a pipe");
        let file = File::from(OwnedFd::from(write.try_clone().expect("a descriptor")));
        segment.words().arm(write.as_raw_fd() as u32, file.metadata().expect("a pipe").ino());
        (segment, address, read, write)
    }

    /// The signal is blocked, so that it would stay with this thread, whatever the program does with such signals.
    #[test]
    fn a_write_into_the_pipe_of_an_owner_that_is_gone_is_no_signal() {
        let (segment, address, read, write) = armed();
        let mut pipe = segment.open_pipe(address).expect("the owner's pipe");
        drop((read, write));
        // SAFETY: sets of signals, which are written before they are read.
        let is_pending = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            let _ = pipe.write(&[1]);
            libc::sigpending(&raw mut set);
            libc::sigismember(&raw const set, libc::SIGPIPE)
        };
        assert_eq!(is_pending, 0);
    }

    #[test]
    fn another_pipe_that_was_given_the_number_is_left_alone() {
        let (segment, address, read, write) = armed();
        assert!(segment.open_pipe(address).is_some());
        let other = pipe().expect("a pipe");
        // SAFETY: descriptors of this test's; the number is another pipe's from now on.
        unsafe { libc::dup3(other.1.as_raw_fd(), write.as_raw_fd(), libc::O_CLOEXEC) };
        assert!(segment.open_pipe(address).is_none());
        drop(read);
    }
}
