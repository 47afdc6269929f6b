//! Whether a process still has the memory of its endpoint, and whether it has ended.

use crate::names::address::Address;
use std::fs::{Metadata, metadata, read_dir};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file the memory of an endpoint is, as the kernel numbers files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    device: u64,
    number: u64,
}

impl Memory {
    /// The file that these metadata are of.
    pub fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), number: file.ino() }
    }

    /// Whether the process of this address has it where the address says. A process that has ended, has closed its
    /// endpoint, or runs another program by now does not, nor does another process that was given the number.
    pub fn is_at(self, address: Address) -> bool {
        let at = |process: &Path| metadata(process.join("fd").join(address.fd.to_string()));
        let process = format!("/proc/{}", address.pid);
        match at(Path::new(&process)) {
            Ok(file) => Self::of(&file) == self,
            // A main thread that has ended has no descriptors; other threads of its process still have them.
            Err(error) if is_missing(&error) => read_dir(process + "/task").is_ok_and(|threads| {
                threads.flatten().any(|thread| at(&thread.path()).is_ok_and(|file| Self::of(&file) == self))
            }),
            // It is not known.
            Err(_) => true,
        }
    }
}

fn is_missing(error: &Error) -> bool {
    // What belongs to a process that has ended, and was not waited for, is the superuser's.
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM))
}

/// Whether the process with this number has ended, or there is none.
pub fn has_ended(pid: u32) -> bool {
    // SAFETY: a plain system call; a result that is not negative is a descriptor that nobody else has.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if fd < 0 {
        return Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let process = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry that lives through the call, which does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}
