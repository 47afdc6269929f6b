//! The only door to atomics, interior mutability, fences, futexes and threads: `std`'s, or loom's under
//! `--cfg perusal_loom`. Under `--cfg perusal_tsan` locks are std's with a word that ThreadSanitizer sees.
//!
//! Nothing else in the crate names `std::sync::atomic`, `core::cell::UnsafeCell` or `loom`.
//!
//! | file | what it defines |
//! |---|---|
//! | `asymmetric_fence`, `membarrier` | a store-load fence that only the rare side pays |
//! | `futex`, `wait_word` | words to sleep on: for threads of any process, and of one |
//! | `sleep_mark` | marks of ranks that sleep until a word in shared memory changes |
//! | `conditional_lock` | locks that cost nothing where there is one thread |
//! | `thread_slots` | a thread's shard of counters and free lists |
//! | `published`, `relaxed` | words that publish what was done before, and values that publish nothing |
//! | `turns` | turns, in memory that processes share |
//! | `mutants` | orderings that are weakened, in models |
//! | `watched` | locks that ThreadSanitizer understands |

#[cfg(not(perusal_loom))]
mod imp {
    #![allow(clippy::disallowed_types, clippy::disallowed_methods)]
    pub use core::hint::spin_loop;
    pub use std::sync::Arc;
    pub use std::sync::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, compiler_fence, fence,
    };
    #[cfg(not(perusal_tsan))]
    pub use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, RwLock};
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
    pub use super::mutants::{
        AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, fence,
    };
    pub use loom::cell::UnsafeCell as Cell;
    pub use loom::hint::spin_loop;
    pub use loom::lazy_static;
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread::yield_now;
    pub use loom::{thread, thread_local};
    /// A word that loom does not know, and which therefore orders nothing in a model.
    pub use std::sync::atomic::AtomicUsize as UnmodelledUsize;
    // No model comes by one.
    pub use std::sync::{OnceLock, RwLock};

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

#[cfg(perusal_tsan)]
mod watched;
#[cfg(perusal_tsan)]
pub use watched::{
    Condvar, Mutex, MutexGuard, OnceLock, ReadGuard as ShardedLockReadGuard, RwLock, RwLock as ShardedLock,
};

#[cfg(not(any(perusal_loom, perusal_tsan)))]
pub use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};

/// Keeps what one thread writes 128 bytes from what others touch: a prefetcher pulls cache lines in pairs.
pub use crossbeam_utils::CachePadded;

/// Memory of this process that a slow path has replaced is freed when no reader can hold it any more.
pub use crossbeam_epoch as epoch;

/// A SeqCst fence right behind a read-modify-write of the caller's that was at least Release:
/// between that and the loads that follow.
///
/// Where such an instruction is a fence by itself, another one costs as much again;
/// only the compiler must keep the order.
#[inline(always)]
#[cfg_attr(perusal_loom, track_caller)]
pub fn fence_after_exchange() {
    if cfg!(not(perusal_loom)) && crate::arch::EXCHANGE_IS_FENCE {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Keeps the caller's accesses before and behind it in this order, as a signal handler sees them that interrupts the
/// thread.
#[cfg(not(perusal_loom))]
#[inline(always)]
pub fn order_for_handlers() {
    compiler_fence(Ordering::SeqCst);
}

#[cfg(not(perusal_loom))]
pub use crate::arch::thread_id;

/// A number that identifies the calling thread of the model; never 0.
#[cfg(perusal_loom)]
#[must_use]
pub fn thread_id() -> usize {
    loom::thread_local! {
        // loom does not know that a thread has ended when another gets its memory, so this memory is never given back.
        static MARK: &'static u8 = Box::leak(Box::new(0));
    }
    MARK.with(|mark| core::ptr::from_ref(*mark) as usize)
}

mod asymmetric_fence;
mod conditional_lock;
mod futex;
pub mod membarrier;
#[cfg(perusal_loom)]
mod mutants;
mod published;
mod relaxed;
mod sleep_mark;
mod thread_slots;
mod turns;
mod wait_word;
pub use asymmetric_fence::{AsymmetricFence, serve_membarrier};
pub use conditional_lock::{ConditionalGuard, ConditionalLock};
pub use futex::Futex;
pub use published::{PublishedFlag, PublishedRef, PublishedStage};
pub use relaxed::{Relaxed, Word};
pub use sleep_mark::{SleepMark, has_sleepers, take_sleepers};
pub use thread_slots::{OWNED_SLOTS, THREAD_SLOTS, ThreadSlots, share_slot, slots_owned, thread_slot};
pub use turns::Turns;
pub use wait_word::WaitWord;
