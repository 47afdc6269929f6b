//! The lock of a domain, and what an endpoint of the transport has instead.

use perusal::internals::error::report;
use perusal::internals::sync::{AtomicBool, AtomicU32, Ordering, yield_now};

/// The lock of a domain and all that belongs to it. It is taken only if the caller did not promise to use one thread at
/// a time for each domain (FI_THREAD_DOMAIN): what FI_THREAD_COMPLETION lets threads do at once shares the domain's
/// regions.
///
/// In a child of fork it is taken for good ([`Lock::inherit`]): the domain's rings are the parent's, and its thread is
/// not there.
///
/// An endpoint of the transport has one that is never needed but there.
#[derive(Debug, Default)]
pub struct Lock {
    needed: AtomicBool,
    state: AtomicU32,
    /// Whether it is an endpoint's.
    of_endpoint: bool,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// The owner is of the process from which this one was forked.
const INHERITED: u32 = 2;

impl Lock {
    /// A domain's lock, which is taken if threads may call at once.
    pub fn new(needed: bool) -> Self {
        Self { needed: AtomicBool::new(needed), state: AtomicU32::new(FREE), of_endpoint: false }
    }

    /// That of an endpoint, which one thread uses at a time.
    pub fn of_endpoint() -> Self {
        Self { of_endpoint: true, ..Self::new(false) }
    }

    /// Ends a child of fork.
    #[inline(always)]
    pub fn refuse_child(&self) {
        if self.is_needed() && self.is_inherited() {
            self.end_child();
        }
    }

    /// Whether threads may call at once.
    pub fn is_needed(&self) -> bool {
        // Relaxed, here and below: it is changed only where there is one thread.
        self.needed.load(Ordering::Relaxed)
    }

    /// Takes the lock for good: this process is a child of fork, and has only just begun.
    pub fn inherit(&self) {
        // Relaxed, both: this process has one thread.
        self.state.store(INHERITED, Ordering::Relaxed);
        self.needed.store(true, Ordering::Relaxed);
    }

    /// Whether the domain is of the process from which this one was forked: nothing of it may be used, or closed.
    pub fn is_inherited(&self) -> bool {
        // Relaxed: set before this process's only thread could come here.
        self.state.load(Ordering::Relaxed) == INHERITED
    }

    /// Takes the lock until the result is dropped.
    #[inline(always)]
    pub fn lock(&self) -> Locked<'_> {
        if self.needed.load(Ordering::Relaxed) {
            self.wait();
        }
        Locked(self)
    }

    #[inline(never)]
    fn wait(&self) {
        // Acquire: domain edge, pairs with Release in `Locked::drop`: what the other thread did is there.
        while self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if self.is_inherited() {
                self.end_child();
            }
            yield_now();
        }
    }

    /// Ends a child of fork that uses what its parent has opened.
    #[cold]
    fn end_child(&self) -> ! {
        report(format_args!(
            "process {}: perusal's provider was called for {} of the process that this one was forked from: only that \
             process may use it. Fork before it is opened, open another one, or start programs by exec.",
            std::process::id(),
            if self.of_endpoint { "an endpoint" } else { "a domain" }
        ));
        // SAFETY: ends the process without exit handlers, which would use what was opened, too.
        unsafe { libc::_exit(1) }
    }
}

/// The lock is taken.
pub struct Locked<'a>(&'a Lock);

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.needed.load(Ordering::Relaxed) {
            // Release: domain edge, pairs with Acquire in `wait`.
            self.0.state.store(FREE, Ordering::Release);
        }
    }
}
