//! The Rust API: ranks that are threads or processes, typed messages, requests that cannot dangle, events as closures.
//! `docs/rust.md` is the guide.
//!
//! | file | what lives there |
//! |---|---|
//! | `start` | joining a job, and leaving it; [`World`] |
//! | `communicator` | [`Communicator`]: making others, subscribing to events |
//! | `messages` | blocking messages and probes |
//! | `scope` | nonblocking messages with borrowed buffers |
//! | `owned` | nonblocking messages with buffers of their own |
//! | `window`, `shared_window` | windows: memory that other ranks access |
//! | `access` | their operations |
//! | `file` | files that ranks read and write together |
//! | `collective` | collectives on slices |
//! | `failures` | communicators after the death of ranks |
//! | `control` | control variables |
//! | `element` | the types that messages carry: [`Element`] |
//! | `address` | sources, tags, statuses |
//! | `threading` | the thread level as a type |
//! | `member` | the one entry to the engine, and why no buffer goes before its request (API rules) |

mod access;
mod address;
mod collective;
mod communicator;
mod control;
mod element;
mod failures;
mod file;
mod member;
mod messages;
mod owned;
mod scope;
mod shared_window;
mod start;
mod threading;
mod window;

pub use access::Access;
pub use address::{Any, Source, Status, Tag};
pub use collective::Reduction;
pub use communicator::Communicator;
pub use element::Element;
pub use file::{File, FileOptions, FilePattern, PendingFile};
pub use owned::{OwnedReceive, OwnedSend};
pub use scope::{Receiving, Scope, Sending};
pub use shared_window::Whole;
pub use start::{
    World, init, init_with, is_launched, run, run_threads, run_threads_traced, run_threads_with,
};
pub use threading::{Multiple, Single, Threading};
pub use window::{Exposed, Locked, Shared, Started, Window};

/// The guide's examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct Guide;
