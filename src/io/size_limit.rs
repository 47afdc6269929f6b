//! A write beyond the process's file-size limit (`ulimit -f`) is an error of the access, where the signal that comes
//! with it would end the program. The limit may be set at any time, so it is not asked for.
//!
//! As long as a file is open for writing, and the program has left the signal to its default action, a handler lets the
//! signal pass that comes of a call of this library's. Any other is what it would be without it: the end of the
//! program. A handler of the program's is left alone, and so is a program that ignores the signal. A program that this
//! one executes has the default action again.

use crate::comm::lock;
use crate::sync::{Mutex, thread_local};
use core::cell::Cell;
use core::ffi::c_int;

/// How many files are open for writing.
static OPEN: Mutex<usize> = Mutex::new(0);

thread_local! {
    /// Whether this thread is in a call that may go beyond the limit.
    static TOLERANT: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread tolerates the signal. Volatile: the handler looks between two steps of the thread.
fn set_tolerant(tolerant: bool) {
    // SAFETY: a value of this thread's, which no reference points to.
    TOLERANT.with(|place| unsafe { place.as_ptr().write_volatile(tolerant) });
}

/// The kernel sends the signal to the thread whose call has gone beyond the limit, before that call returns.
extern "C" fn at_limit(signal: c_int) {
    // SAFETY: a value of this thread's, which no reference points to.
    if TOLERANT.with(|place| unsafe { place.as_ptr().read_volatile() }) {
        return;
    }
    // SAFETY: two functions that a signal handler may call. The signal is blocked until this one returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// The disposition of the signal.
fn disposition() -> Option<libc::sighandler_t> {
    // SAFETY: asks for the disposition of one signal, which zeroed memory has room for.
    unsafe {
        let mut present: libc::sigaction = core::mem::zeroed();
        (libc::sigaction(libc::SIGXFSZ, core::ptr::null(), &raw mut present) == 0)
            .then_some(present.sa_sigaction)
    }
}

fn handler() -> libc::sighandler_t {
    at_limit as extern "C" fn(c_int) as libc::sighandler_t
}

/// A file that is open for writing: its accesses may tolerate the signal.
#[derive(Debug)]
pub(super) struct SizeLimit(());

impl SizeLimit {
    /// Installs the handler if this is the first file, and the program has none and does not ignore the signal.
    pub fn heed() -> Self {
        let mut open = lock(&OPEN);
        *open += 1;
        // Miri has no signals.
        if *open == 1 && !cfg!(miri) && disposition() == Some(libc::SIG_DFL) {
            // SAFETY: a handler that calls what one may call, on the stack that the program has set aside if it has.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = handler();
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
                libc::sigaction(libc::SIGXFSZ, &raw const action, core::ptr::null_mut());
            }
        }
        Self(())
    }

    /// Makes a call in which the limit is an error and no more.
    #[inline]
    pub fn tolerate<T>(call: impl FnOnce() -> T) -> T {
        set_tolerant(true);
        let result = call();
        set_tolerant(false);
        result
    }
}

impl Drop for SizeLimit {
    fn drop(&mut self) {
        let mut open = lock(&OPEN);
        *open -= 1;
        if *open == 0 && !cfg!(miri) && disposition() == Some(handler()) {
            // SAFETY: sets the disposition of one signal to what it was.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        }
    }
}
