//! Upcalls: whether, and how deeply, the present thread is inside a callback; and whether anybody listens to anything.

use super::pins::{Light, Pin};
use super::registry::Registry;
use core::cell::Cell;

#[cfg(not(perusal_loom))]
mod awake {
    use crate::sync::{AtomicU64, Ordering};

    /// Set while the C face may not be used: neither is MPI initialised nor a session open.
    const SHUT: u64 = 1 << 63;

    /// How many gates are open, or were until a callback that has not ended yet; and SHUT. One word, so that a C function's
    /// usual case, an open face and nobody who listens, is one look.
    static AWAKE: AtomicU64 = AtomicU64::new(SHUT);

    pub fn count(more: bool) {
        // Relaxed: a hint, as the gates themselves.
        if more {
            AWAKE.fetch_add(1, Ordering::Relaxed);
        } else {
            AWAKE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    #[inline(always)]
    pub fn quiet() -> bool {
        // Acquire: pairs with Release in `set_open`, publishes what initialisation built.
        AWAKE.load(Ordering::Acquire) == 0
    }
    pub fn set_open(open: bool) {
        // Release: pairs with Acquire in `quiet`.
        if open {
            AWAKE.fetch_and(!SHUT, Ordering::Release);
        } else {
            AWAKE.fetch_or(SHUT, Ordering::Release);
        }
    }
}

/// Whether the C face is open, no callback runs in the process, and nobody listens to any event of any communicator: then a
/// call may go on without asking further. As a gate: what another thread has just opened may not be seen yet.
#[cfg(not(perusal_loom))]
#[inline(always)]
pub(crate) fn quiet() -> bool {
    awake::quiet()
}

/// Makes the functions of the C face go the general way, until it is called with false as often as with true: for each gate that is
/// open, or was until a callback that has not ended yet; and for what else must hear of calls.
pub(crate) fn keep_awake(on: bool) {
    awake::count(on);
}

/// Opens the C face to the first who uses MPI, and shuts it behind the last.
#[cfg(not(perusal_loom))]
pub(crate) fn open_c_face(open: bool) {
    awake::set_open(open);
}

/// A static cannot hold one of loom's atomics, and nothing that is modelled asks.
#[cfg(perusal_loom)]
mod awake {
    pub fn count(_: bool) {}
}

struct Upcalls {
    /// Callbacks that this thread is inside of, innermost last.
    depth: Cell<u32>,
    /// The depth of the outermost upcall that was refused the PERUSE lock; 0: none.
    refused_at: Cell<u32>,
    /// The registry that this thread raised an event in last, and its pin there.
    last: Cell<(u64, *const Pin)>,
    #[cfg(perusal_loom)]
    name: &'static u8,
}

impl Upcalls {
    #[cfg(not(perusal_loom))]
    const fn new() -> Upcalls {
        Upcalls { depth: Cell::new(0), refused_at: Cell::new(0), last: Cell::new((0, core::ptr::null())) }
    }

    #[cfg(perusal_loom)]
    fn new() -> Upcalls {
        Upcalls {
            depth: Cell::new(0),
            refused_at: Cell::new(0),
            last: Cell::new((0, core::ptr::null())),
            // loom does not know that a thread has ended when another gets its memory.
            name: Box::leak(Box::new(0)),
        }
    }

    /// What names the thread for as long as it lives; never 0.
    fn name(&self) -> usize {
        #[cfg(not(perusal_loom))]
        return core::ptr::from_ref(self) as usize;
        #[cfg(perusal_loom)]
        return core::ptr::from_ref(self.name) as usize;
    }

    #[inline(always)]
    fn pin<'a>(&self, registry: &'a Registry) -> &'a Pin {
        let (id, pin) = self.last.get();
        if id == registry.id {
            // SAFETY: found in the registry of this id, which no other ever has; its pins live as long as it does.
            return unsafe { &*pin };
        }
        self.find_pin(registry)
    }

    #[cold]
    #[inline(never)]
    fn find_pin<'a>(&self, registry: &'a Registry) -> &'a Pin {
        let pin = registry.pins.of(self.name());
        self.last.set((registry.id, pin));
        pin
    }
}

#[cfg(not(perusal_loom))]
crate::sync::thread_local! {
    static HERE: Upcalls = const { Upcalls::new() };
}

// Its macro takes no const block.
#[cfg(perusal_loom)]
crate::sync::thread_local! {
    static HERE: Upcalls = Upcalls::new();
}

/// Whether the calling thread is inside an event callback.
#[inline]
#[must_use]
pub fn inside_callback() -> bool {
    depth() > 0
}

/// How many callbacks the calling thread is inside of.
pub(super) fn depth() -> u32 {
    HERE.with(|here| here.depth.get())
}

/// A value that names the calling thread for as long as it lives; never 0.
pub(super) fn thread() -> usize {
    HERE.with(Upcalls::name)
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

/// One pass over those who listen to an event, on the calling thread.
pub(super) struct Pass<'a> {
    here: &'a Upcalls,
    pub(super) pin: &'a Pin,
    pub(super) fence: Light,
}

impl<'a> Pass<'a> {
    /// Begins one over those of `registry`; none inside of a callback (event rule 8).
    #[inline(always)]
    pub(super) fn begin(registry: &'a Registry) -> Option<Pass<'a>> {
        // SAFETY: the calling thread's own, without a destructor, so it is there for as long as the thread; and a pass, which is
        // not `Send`, ends on its thread. (A closure around the whole pass would not be inlined.)
        let here = unsafe { &*HERE.with(core::ptr::from_ref) };
        if here.depth.get() > 0 {
            return None;
        }
        here.depth.set(1);
        Some(Pass { here, pin: here.pin(registry), fence: registry.pins.light() })
    }

    /// A callback is over: what it was refused, the next one may have.
    #[inline(always)]
    pub(super) fn next(&self) {
        self.here.refused_at.set(0);
    }
}

impl Drop for Pass<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pin.clear();
        self.here.refused_at.set(0);
        self.here.depth.set(0);
    }
}

/// The time of foreign code on the calling thread that is no pass: what a callback owned is dropped.
pub(super) struct Upcall(core::marker::PhantomData<*const ()>);

impl Upcall {
    pub(super) fn enter() -> Upcall {
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
