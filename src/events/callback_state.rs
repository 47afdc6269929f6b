//! What is known about callbacks without a registry: whether, and how deeply, the calling thread is inside one; whether
//! the bindings may take their fast path; and the hook that runs before a thread sleeps.

use super::hazard::of_this_thread;
use std::sync::OnceLock;

static SLEEP_HOOK: OnceLock<fn()> = OnceLock::new();

/// Makes `call` the hook that runs before a thread sleeps inside MPI, from then on. The first call wins.
#[cfg(not(perusal_loom))]
pub(crate) fn set_sleep_hook(call: fn()) {
    let _ = SLEEP_HOOK.set(call);
}

/// Runs the hook: the calling thread is about to sleep inside MPI, and may hold locks of the engine,
/// as at an event site.
#[cold]
pub(crate) fn run_sleep_hook() {
    if let Some(call) = SLEEP_HOOK.get() {
        let _scope = CallbackScope::enter();
        call();
    }
}

mod slow_path {
    use crate::sync::{AtomicU64, Ordering};

    /// Set while the bindings may not be used: neither is MPI initialised nor a session open.
    const SHUT: u64 = 1 << 63;

    /// How many gates are open, or were until a callback that has not ended yet; and SHUT. One word, so that the usual
    /// case of a C function, open bindings and no listener, is one load.
    #[derive(Debug)]
    pub struct SlowPath(AtomicU64);

    #[cfg(not(perusal_loom))]
    pub(super) static SLOW_PATH: SlowPath = SlowPath(AtomicU64::new(SHUT));

    // In a model the bindings are open, unless it has a word of its own.
    #[cfg(perusal_loom)]
    crate::sync::lazy_static! {
        pub(super) static ref SLOW_PATH: SlowPath = SlowPath(AtomicU64::new(0));
    }

    impl SlowPath {
        /// Shut, and no gate is open.
        #[cfg(perusal_loom)]
        pub fn shut() -> Self {
            Self(AtomicU64::new(SHUT))
        }
        /// One gate more, or one less.
        pub fn count(&self, more: bool) {
            // Relaxed: a hint, as the gates themselves.
            if more {
                self.0.fetch_add(1, Ordering::Relaxed);
            } else {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        /// Whether the bindings are open and no gate is.
        #[inline(always)]
        pub fn fast_path_is_open(&self) -> bool {
            // Acquire: "fast path" edge, pairs with Release in `set_open`, publishes what initialisation built.
            self.0.load(Ordering::Acquire) == 0
        }
        /// Opens the bindings, or shuts them.
        pub fn set_open(&self, open: bool) {
            // Release: "fast path" edge, pairs with Acquire in `fast_path_is_open`.
            if open {
                self.0.fetch_and(!SHUT, Ordering::Release);
            } else {
                self.0.fetch_or(SHUT, Ordering::Release);
            }
        }
    }
}

use slow_path::SLOW_PATH;
/// The word itself, for its models.
#[cfg(perusal_loom)]
pub use slow_path::SlowPath;

/// Whether the bindings are open, no callback runs in the process, and nobody listens to any event of any communicator:
/// then a call may take its fast path. A hint, as a gate is: what another thread has just opened may not be seen yet.
#[inline(always)]
pub fn fast_path_is_open() -> bool {
    SLOW_PATH.fast_path_is_open()
}

/// Makes the bindings take their slow path, until it is called with false as often as with true. That is done for each
/// gate that is open, or that a callback which has not ended yet has passed, and for event buffers, which are delivered
/// at the beginning of calls.
pub fn hold_fast_path(on: bool) {
    SLOW_PATH.count(on);
}

/// Makes the bindings take their slow path for as long as the process lives: for checks that must see every call.
pub fn shut_fast_path() {
    hold_fast_path(true);
}

/// Opens the bindings for the first user of MPI, and shuts them after the last.
#[cfg(not(perusal_loom))]
pub fn open_bindings(open: bool) {
    SLOW_PATH.set_open(open);
}

/// Whether the calling thread is inside an event callback.
#[inline]
#[must_use]
pub fn inside_callback() -> bool {
    of_this_thread().is_inside()
}

/// How many callbacks the calling thread is inside of.
pub(super) fn depth() -> u32 {
    of_this_thread().depth()
}

/// Whether the callback that runs here, or one around it, was refused the lock.
pub(super) fn refused() -> bool {
    of_this_thread().is_refused()
}

/// Marks the present callback as refused; outside of callbacks there is nothing to mark.
pub(super) fn refuse() {
    of_this_thread().refuse();
}

/// The time of foreign code on the calling thread that no dispatch has called:
/// the drop of what a callback owned, the sleep hook.
pub(super) struct CallbackScope(core::marker::PhantomData<*const ()>);

impl CallbackScope {
    pub(super) fn enter() -> CallbackScope {
        of_this_thread().enter();
        CallbackScope(core::marker::PhantomData)
    }
}

impl Drop for CallbackScope {
    fn drop(&mut self) {
        of_this_thread().leave();
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_from_enter_to_drop_and_others_are_not() {
        assert!(!inside_callback());
        let outer = CallbackScope::enter();
        let inner = CallbackScope::enter();
        assert_eq!(depth(), 2);
        assert!(!std::thread::spawn(inside_callback).join().unwrap());
        drop(inner);
        assert!(inside_callback());
        drop(outer);
        assert!(!inside_callback());
    }

    #[test]
    fn a_refusal_lasts_as_long_as_the_upcall_that_met_it() {
        let outer = CallbackScope::enter();
        {
            let _inner = CallbackScope::enter();
            refuse();
            let _innermost = CallbackScope::enter();
            assert!(refused());
        }
        assert!(!refused(), "the outer callback was never refused");
        refuse();
        drop(CallbackScope::enter());
        assert!(refused(), "a callback within does not end the outer one's refusal");
        drop(outer);
        assert!(!refused());
    }
}
