//! What a thread waits on that waits for a completion queue or a counter:
//! a descriptor that is readable when there may be something to do.
//!
//! It is an epoll descriptor over an eventfd, which this process signals, and the pipe of each endpoint, into which a
//! peer that has something for it writes a byte; with a network, its descriptor, too; and a clock, where a peer may end
//! that is waited for. A thread waits only after `try_wait` has found nothing and has armed both:
//! peers and completions signal only what is armed.

use crate::api::last_error;
use crate::names::address::Address;
use crate::progress::endpoint::Endpoint;
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How often, in nanoseconds, a thread that waits looks for what other nodes have sent, where the core provider wakes
/// nobody; and else, for peers that have ended.
const TICK: i64 = 1_000_000;
const PEER_CHECK: i64 = 250_000_000;

/// A descriptor to wait on.
#[derive(Debug)]
pub struct Waker {
    epoll: OwnedFd,
    event: OwnedFd,
    /// Can be read from time to time, once an endpoint has a network or a peer.
    clock: OnceCell<OwnedFd>,
    /// The endpoints whose pipes are watched.
    watched: RefCell<Vec<Address>>,
    /// A thread waits, or is about to: a completion is signalled.
    armed: Cell<bool>,
}

fn owned(fd: i32) -> Result<OwnedFd, i32> {
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: a descriptor that was just made and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor that can be read once in so many nanoseconds, less than a second.
fn new_clock(tick: i64) -> Result<OwnedFd, i32> {
    let tick = libc::timespec { tv_sec: 0, tv_nsec: tick };
    let every = libc::itimerspec { it_interval: tick, it_value: tick };
    // SAFETY: the first call takes numbers alone; the second a descriptor that was just made, and times that live
    // through the call.
    unsafe {
        let clock =
            owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK))?;
        match libc::timerfd_settime(clock.as_raw_fd(), 0, &raw const every, std::ptr::null_mut()) {
            0 => Ok(clock),
            _ => Err(last_error()),
        }
    }
}

impl Waker {
    /// # Errors
    ///
    /// The number of the error.
    pub fn new() -> Result<Self, i32> {
        // SAFETY: both calls take numbers alone.
        let (epoll, event) = unsafe {
            (
                libc::epoll_create1(libc::EPOLL_CLOEXEC),
                libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK),
            )
        };
        let (epoll, event) = (owned(epoll), owned(event));
        let waker = Self {
            epoll: epoll?,
            event: event?,
            clock: OnceCell::new(),
            watched: RefCell::default(),
            armed: Cell::new(false),
        };
        waker.watch(waker.event.as_raw_fd())?;
        Ok(waker)
    }

    fn watch(&self, fd: RawFd) -> Result<(), i32> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: descriptors that live, and an event.
        let added =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if added == 0 || last_error() == libc::EEXIST { Ok(()) } else { Err(last_error()) }
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Forgets former signals. From now on a completion is signalled.
    pub fn arm(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes to write; the descriptor does not block.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
        if let Some(clock) = self.clock.get() {
            // SAFETY: eight bytes to write; the descriptor does not block.
            unsafe { libc::read(clock.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
        self.armed.set(true);
    }

    /// Has the descriptor be readable when a peer writes to the endpoint. Returns whether there is nothing to do now.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn arm_endpoint(&self, endpoint: &mut Endpoint) -> Result<bool, i32> {
        let Some(pipe) = endpoint.arm()? else { return Ok(false) };
        let mut watched = self.watched.borrow_mut();
        if !watched.contains(&endpoint.address) {
            self.watch(pipe)?;
            watched.push(endpoint.address);
            let network = endpoint.core.peers.network.as_ref();
            if let Some(wakes) = network.and_then(|network| network.borrow().wakes()) {
                self.watch(wakes)?;
            }
        }
        if self.clock.get().is_none() {
            let network = endpoint.core.peers.network.as_ref();
            let is_deaf = network.is_some_and(|network| network.borrow().wakes().is_none());
            // Nobody writes into the pipe for a peer that has ended.
            if network.is_some() || !endpoint.awaited().is_empty() {
                let clock = new_clock(if is_deaf { TICK } else { PEER_CHECK })?;
                self.watch(clock.as_raw_fd())?;
                let _ = self.clock.set(clock);
            }
        }
        Ok(true)
    }

    /// Signals that there is a completion, if a thread may wait.
    #[inline(always)]
    pub fn completed(&self) {
        if self.armed.get() {
            self.signal();
        }
    }

    /// Signals in any case.
    #[cold]
    pub fn signal(&self) {
        self.armed.set(false);
        let one = 1_u64;
        // SAFETY: eight bytes to read; the descriptor does not block.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// Waits until a descriptor is readable, for at most so long.
pub fn wait_for(fd: RawFd, at_most: Duration) {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one entry that lives through the call.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
}
