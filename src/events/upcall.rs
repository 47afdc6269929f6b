//! Upcalls: whether, and how deeply, the present thread is inside a callback.

use core::cell::Cell;

#[cfg(not(perusal_loom))]
mod running {
    use crate::sync::{AtomicU64, Ordering};

    /// Set while the C face may not be used: neither is MPI initialised nor a session open.
    const SHUT: u64 = 1 << 63;
    /// One gate through which somebody listens.
    const GATE: u64 = 1 << 32;
    /// The count of callbacks.
    const CALLBACKS: u64 = GATE - 1;

    /// Callbacks that run in this process at the moment, gates through which somebody listens, and SHUT. One word, so that
    /// a C function's usual case, an open face and nobody who listens, is one look.
    static RUNNING: AtomicU64 = AtomicU64::new(SHUT);

    /// Whether any callback runs. A thread sees its own increments, which is all that it asks about.
    #[inline(always)]
    pub fn any() -> bool {
        // Relaxed: coherence of the one word on the one thread that counts.
        RUNNING.load(Ordering::Relaxed) & CALLBACKS != 0
    }
    pub fn add(change: i32) {
        // Relaxed: as in `any`. The count cannot fall below zero, so no borrow reaches the gates.
        RUNNING.fetch_add(i64::from(change).cast_unsigned(), Ordering::Relaxed);
    }
    pub fn gate(opened: bool) {
        // Relaxed: a hint, as the gates themselves.
        if opened {
            RUNNING.fetch_add(GATE, Ordering::Relaxed);
        } else {
            RUNNING.fetch_sub(GATE, Ordering::Relaxed);
        }
    }
    #[inline(always)]
    pub fn quiet() -> bool {
        // Acquire: pairs with Release in `set_open`, publishes what initialisation built.
        RUNNING.load(Ordering::Acquire) == 0
    }
    pub fn set_open(open: bool) {
        // Release: pairs with Acquire in `quiet`.
        if open {
            RUNNING.fetch_and(!SHUT, Ordering::Release);
        } else {
            RUNNING.fetch_or(SHUT, Ordering::Release);
        }
    }
}

/// Whether the C face is open, no callback runs in the process, and nobody listens to any event of any communicator: then a
/// call may go on without asking further. As a gate: what another thread has just opened may not be seen yet.
#[cfg(not(perusal_loom))]
#[inline(always)]
pub(crate) fn quiet() -> bool {
    running::quiet()
}

/// A gate has opened to its first listener, or shut behind its last.
pub(super) fn gate_changed(opened: bool) {
    running::gate(opened);
}

/// Keeps `quiet` from saying yes for as long as somebody waits to be looked after at the beginning of MPI functions.
#[cfg(not(perusal_loom))]
pub(crate) fn keep_awake(on: bool) {
    running::gate(on);
}

/// Opens the C face to the first who uses MPI, and shuts it behind the last.
#[cfg(not(perusal_loom))]
pub(crate) fn open_c_face(open: bool) {
    running::set_open(open);
}

/// A static cannot hold one of loom's atomics; the thread's own count answers alone.
#[cfg(perusal_loom)]
mod running {
    pub fn any() -> bool {
        true
    }
    pub fn add(_: i32) {}
    pub fn gate(_: bool) {}
}

struct Upcalls {
    /// Callbacks that this thread is inside of, innermost last.
    depth: Cell<u32>,
    /// The depth of the outermost upcall that was refused the PERUSE lock; 0: none.
    refused_at: Cell<u32>,
}

impl Upcalls {
    const fn new() -> Upcalls {
        Upcalls { depth: Cell::new(0), refused_at: Cell::new(0) }
    }
}

crate::sync::thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro takes no const block")]
    static HERE: Upcalls = Upcalls::new();
}

/// Whether the calling thread is inside an event callback. One relaxed load while no callback runs in the process.
#[inline(always)]
#[must_use]
pub fn inside_callback() -> bool {
    running::any() && depth() > 0
}

/// How many callbacks the calling thread is inside of.
pub(super) fn depth() -> u32 {
    HERE.with(|here| here.depth.get())
}

/// A value that names the calling thread for as long as it lives; never 0.
pub(super) fn thread() -> usize {
    HERE.with(|here| core::ptr::from_ref(here) as usize)
}

/// Whether the upcall that runs here, or one around it, was refused the lock.
pub(super) fn refused() -> bool {
    HERE.with(|here| here.refused_at.get() != 0)
}

/// Marks the present upcall as refused; outside of upcalls there is nothing to mark.
pub(super) fn refuse() {
    HERE.with(|here| {
        if here.refused_at.get() == 0 {
            here.refused_at.set(here.depth.get());
        }
    });
}

/// The time of one callback on the calling thread.
pub(super) struct Upcall(core::marker::PhantomData<*const ()>);

impl Upcall {
    pub(super) fn enter() -> Upcall {
        running::add(1);
        HERE.with(|here| here.depth.set(here.depth.get() + 1));
        Upcall(core::marker::PhantomData)
    }
}

impl Drop for Upcall {
    fn drop(&mut self) {
        HERE.with(|here| {
            let depth = here.depth.get();
            if here.refused_at.get() == depth {
                here.refused_at.set(0);
            }
            here.depth.set(depth - 1);
        });
        running::add(-1);
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_from_enter_to_drop_and_others_are_not() {
        assert!(!inside_callback());
        let outer = Upcall::enter();
        let inner = Upcall::enter();
        assert_eq!(depth(), 2);
        assert!(!std::thread::spawn(inside_callback).join().unwrap());
        drop(inner);
        assert!(inside_callback());
        drop(outer);
        assert!(!inside_callback());
    }

    #[test]
    fn a_refusal_lasts_as_long_as_the_upcall_that_met_it() {
        let outer = Upcall::enter();
        {
            let _inner = Upcall::enter();
            refuse();
            let _innermost = Upcall::enter();
            assert!(refused());
        }
        assert!(!refused(), "the outer upcall was never refused");
        refuse();
        drop(Upcall::enter());
        assert!(refused(), "an upcall within does not end the outer one's refusal");
        drop(outer);
        assert!(!refused());
    }
}
