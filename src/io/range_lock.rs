//! The locks of atomic mode: ranges of a file, held by an open file description,
//! so that they hold between ranks and between jobs.
//!
//! The kernel releases them when a process ends. Threads of a rank that use one handle share the description:
//! a mutex keeps them apart.

use super::access::{Access, Direction};
use super::file::File;
use super::system::Descriptor;
use crate::arch::clock::now;
use crate::comm::lock;
use crate::engine::FileCount;
use crate::error::Result;
use crate::events::{Event, WindowLock};
use crate::sync::{MutexGuard, Ordering};
use rustix::fd::AsRawFd;
use rustix::io::Errno;

/// A range that is locked until this is dropped.
pub(super) struct RangeGuard<'a> {
    file: &'a Descriptor,
    start: u64,
    len: u64,
    how: WindowLock,
    _threads: MutexGuard<'a, ()>,
}

fn control(file: &Descriptor, kind: i32, command: i32, start: u64, len: u64) -> rustix::io::Result<()> {
    let request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start as libc::off_t,
        l_len: len as libc::off_t,
        l_pid: 0,
    };
    loop {
        // SAFETY: the command takes a lock request, which it reads before it returns.
        if unsafe { libc::fcntl(file.fd().as_raw_fd(), command, &raw const request) } == 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            error => return Err(Errno::from_raw_os_error(error.unwrap_or(libc::EIO))),
        }
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        // A lock that is held can be released.
        let _ = control(self.file, libc::F_UNLCK, libc::F_OFD_SETLK, self.start, self.len);
        self.file.lock_event(Event::FileLockReleased, self.how, self.start, self.len);
    }
}

impl File {
    /// In atomic mode, locks all of the file from the first to the last byte of an access.
    pub(super) fn lock_if_atomic(&self, access: &Access) -> Result<Option<RangeGuard<'_>>> {
        // Relaxed: the members agree on it in a collective call, which orders it.
        if access.bytes == 0 || !self.atomic.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (start, end) = access.view.span(access.at, access.bytes)?;
        let (kind, how) = match access.direction {
            Direction::Read => (libc::F_RDLCK, WindowLock::Shared),
            Direction::Write => (libc::F_WRLCK, WindowLock::Exclusive),
        };
        let len = end - start;
        let threads = lock(&self.atomic_threads);
        let file = self.descriptor();
        let mut locked = control(file, kind, libc::F_OFD_SETLK, start, len);
        if matches!(locked, Err(Errno::AGAIN | Errno::ACCESS)) {
            let began = now();
            file.lock_event(Event::FileLockWaitBegin, how, start, len);
            locked = control(file, kind, libc::F_OFD_SETLKW, start, len);
            file.lock_event(Event::FileLockWaitEnd, how, start, len);
            self.counts.add(FileCount::LockWaits, 1);
            self.counts.add(FileCount::LockWaitTime, now().saturating_sub(began));
        }
        locked.map_err(|errno| file.failure("locking for atomic access", errno))?;
        file.lock_event(Event::FileLockAcquired, how, start, len);
        Ok(Some(RangeGuard { file, start, len, how, _threads: threads }))
    }
}
