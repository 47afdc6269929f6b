//! A write beyond the process's file-size limit (`ulimit -f`) is an error of the access, where the signal that comes
//! with it would end the program. The limit may be set at any time, so it is not asked for.
//!
//! As long as a file is open for writing, a handler lets the signal pass that comes of a call of this library's. Any
//! other is what it would be without it: the end of the program. A handler of the program's is left alone, and so is a
//! program that ignores the signal.

use super::signals::{HandledSignal, Reason};
use crate::sync::thread_local;
use core::cell::Cell;
use core::ffi::{c_int, c_void};

static BEYOND_LIMIT: HandledSignal = HandledSignal::left_to_the_program(libc::SIGXFSZ, at_limit);

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
extern "C" fn at_limit(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: a value of this thread's, which no reference points to.
    if !TOLERANT.with(|place| unsafe { place.as_ptr().read_volatile() }) {
        BEYOND_LIMIT.pass_on(info, context);
    }
}

/// A file that is open for writing: its accesses may tolerate the signal.
#[derive(Debug)]
pub(super) struct SizeLimit(
    #[expect(dead_code, reason = "it handles the signal as long as it lives")] Reason,
);

impl SizeLimit {
    /// Handles the signal.
    pub fn heed() -> Self {
        Self(BEYOND_LIMIT.handle())
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
