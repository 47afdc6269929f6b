//! One-sided communication (MPI 5.0 §12): windows, epochs, put, get and accumulate.
//!
//! Every operation is performed by its origin, before the call returns. The target takes part in it only where its
//! memory is private and the kernel lets no other process copy from and to it. So completion is a fence of the
//! processor, and what is left are epochs: who may access what when.
//!
//! | file | what it defines |
//! |---|---|
//! | `window` | [`Window`] and its operations |
//! | `create` | making one, which all members do together |
//! | `hints` | what a program may say of a window |
//! | `synchronization` | fence, post-start-complete-wait, locks, flushes |
//! | `epoch` | which calls are legal now |
//! | `lock` | the lock of one rank's memory |
//! | `control` | the shared words of a window |
//! | `memory` | where the ranks' memory lies, and how it is reached |
//! | `attached` | what members have attached to a dynamic window |
//! | `remote` | memory that is private to another process |
//! | `direct` | put, get and single values where the target is mapped and one run: the fast path |
//! | `transfer` | put and get |
//! | `accumulate` | operations that are atomic for each element |
//! | `agree` | what the Rust API asks of a window besides |
//! | `window_events` | where events of windows are emitted, and what they say |
//! | `atomics` | those of them that an instruction performs |
//! | `block_locks` | the locks for all others |
//! | `atomic_mode` | which of the two it is |

pub mod atomic_mode;
pub mod atomics;
pub mod attached;
pub mod control;
mod epoch;
pub mod lock;

#[cfg(not(perusal_loom))]
mod accumulate;
#[cfg(not(perusal_loom))]
mod agree;
#[cfg(not(perusal_loom))]
mod block_locks;
#[cfg(not(perusal_loom))]
mod create;
#[cfg(not(perusal_loom))]
mod direct;
#[cfg(not(perusal_loom))]
pub mod hints;
#[cfg(not(perusal_loom))]
mod memory;
#[cfg(not(perusal_loom))]
mod remote;
#[cfg(not(perusal_loom))]
mod synchronization;
#[cfg(all(test, not(perusal_loom)))]
mod tests;
#[cfg(not(perusal_loom))]
mod transfer;
#[cfg(not(perusal_loom))]
mod window;
#[cfg(not(perusal_loom))]
mod window_events;

#[cfg(not(perusal_loom))]
pub use accumulate::check_operation;
#[cfg(not(perusal_loom))]
pub use direct::DirectTarget;
#[cfg(not(perusal_loom))]
pub use synchronization::{Assert, LockKind};
#[cfg(not(perusal_loom))]
pub use window::{Flavor, Memory, SharedPart, Target, Window};
#[cfg(not(perusal_loom))]
pub use window_events::GivenHandles;
