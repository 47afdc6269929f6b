//! Checks code of your own against the engine's, under every order in which threads can take their steps.
//!
//! A tool's callback runs on the program's threads while another thread ends its subscription, prints its counts, or
//! frees its data. Whether that is right no ordinary test shows. [loom](https://docs.rs/loom) runs a small program in
//! every such order, with every value that the memory model lets a load return, and fails on the first order in which
//! an assertion does not hold.
//!
//! To check a callback from a crate of your own:
//! 1. Keep its data in the atomics and cells of this module.
//!    They are `std`'s in an ordinary build and loom's in a model.
//! 2. Make a [`Registry`](crate::events::Registry) and attach a communicator to it: no engine and no ranks are needed.
//! 3. Emit events as the engine does ([`CommEvents::emit`](crate::events::CommEvents::emit)) on one thread while
//!    another one does the control side, with [`thread::spawn`], two or three threads in all, inside [`check`].
//! 4. Run it with `RUSTFLAGS="--cfg perusal_loom" cargo test --release`. Without that flag [`check`] runs the program
//!    once, with real threads.
//!
//! `loom-tests/my_callback.rs` is such a model.

pub use crate::sync::{
    Arc, AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    AtomicUsize, Cell, Condvar, Mutex, MutexGuard, Ordering, fence, spin_loop, yield_now,
};

/// Threads that a model can follow.
pub mod thread {
    pub use crate::sync::thread::{JoinHandle, spawn};
}

/// Runs `body` in every order of its threads with at most `preemptions` switches away from a thread that could go on,
/// or as many as `LOOM_MAX_PREEMPTIONS` says if that is more. Without `--cfg perusal_loom`, runs it once.
///
/// # Panics
/// In the first order in which `body` panics, or uses a [`Cell`] on two threads at once.
pub fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    crate::sync::explore(preemptions, body);
}
