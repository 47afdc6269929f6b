//! The only door to atomics, interior mutability, fences and threads: `std`'s, or loom's under `--cfg perusal_loom`.
//!
//! Nothing else in the crate names `std::sync::atomic`, `core::cell::UnsafeCell` or `loom`; `clippy.toml` bans them.
//! What cannot run under loom (futexes on mapped memory, `membarrier`) has its own door in [`crate::doorbell`].

#[cfg(not(perusal_loom))]
mod imp {
    #![allow(clippy::disallowed_types, clippy::disallowed_methods)]
    pub use core::hint::spin_loop;
    pub use std::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, compiler_fence, fence,
    };
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::thread::yield_now;
    pub use std::{thread, thread_local};

    /// Runs `body` once: nothing is modelled.
    pub fn explore(_: usize, body: impl Fn() + Send + Sync + 'static) {
        body();
    }

    /// An `UnsafeCell` with loom's closure interface, so that loom can watch every access.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct Cell<T: ?Sized>(core::cell::UnsafeCell<T>);

    impl<T> Cell<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }
        /// Gives the value back.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> Cell<T> {
        /// Runs `f` on a pointer for reading; the caller of `f`'s dereference proves that nobody writes meanwhile.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }
        /// Runs `f` on a pointer for writing; the caller of `f`'s dereference proves that nobody else looks meanwhile.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(perusal_loom)]
mod imp {
    #![allow(clippy::disallowed_types, clippy::disallowed_methods)]
    pub use loom::cell::UnsafeCell as Cell;
    pub use loom::hint::spin_loop;
    pub use loom::lazy_static;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, fence,
    };
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread::yield_now;
    pub use loom::{thread, thread_local};

    /// Runs `body` in every order with `preemptions` preemptions, or as many as LOOM_MAX_PREEMPTIONS says.
    pub fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(0).max(preemptions));
        builder.check(body);
    }

    /// loom has no compiler reordering to forbid.
    pub fn compiler_fence(_: Ordering) {}
}

pub use imp::*;

/// Two cache lines: the unit that a hardware prefetcher pulls in pairs, so the distance that keeps two writers apart.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Padded<T>(pub T);

impl<T> core::ops::Deref for Padded<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Between two looks at a word that another processor is about to write: the first is over before the second begins. A
/// processor that looks several times ahead throws all of that away when it loses the line, and begins again. It orders nothing
/// that anybody relies on.
#[inline(always)]
pub fn look_again() {
    #[cfg(all(target_arch = "x86_64", not(perusal_loom), not(miri)))]
    // SAFETY: every processor of this architecture has the instruction, which touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(all(target_arch = "x86_64", not(perusal_loom), not(miri))))]
    spin_loop();
}

/// A SeqCst fence right behind a read-modify-write of the caller's that was at least Release: between that and the loads that follow.
///
/// On x86 an instruction that reads and writes memory is such a fence by itself (Intel SDM vol. 3A §9.2.3.8, AMD64 vol. 2 §7.4.2), and another
/// one costs as much again; only the compiler must keep the order.
#[inline(always)]
pub fn fence_behind_exchange() {
    if cfg!(all(target_arch = "x86_64", not(perusal_loom))) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

mod elided;
mod lane;
pub mod membarrier;
pub use elided::{Elided, ElidedGuard};
pub use lane::{LANES, Lanes, OWN, lane, owners};
