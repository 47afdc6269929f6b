//! *perusal*: a lock-free shared-memory message engine for MPI programs on one machine, with its inside open.
//!
//! The modules are listed in the order in which a message passes them; each knows those below it in the
//! architecture and never those above. `docs/architecture.md` walks a message and an event through them.

pub mod abi;
pub mod clock;
pub mod error;
pub mod info;
pub mod limits;
pub mod sync;

// Statics of atomics: a face to the outside, nothing to model.
#[cfg(not(perusal_loom))]
pub mod capi;
pub mod coll;
pub mod comm;
pub mod datatype;
pub mod doorbell;
pub mod engine;
pub mod events;
pub mod handles;
pub mod heap;
pub mod matching;
pub mod p2p;
#[cfg(feature = "launcher")]
pub mod placement;
pub mod progress;
pub mod protocol;
pub mod request;
pub mod ring;
pub mod shm;
pub mod tool;
// Mapped files.
#[cfg(not(perusal_loom))]
pub mod trace;
pub mod variables;
// As `capi`.
#[cfg(not(perusal_loom))]
pub mod api;

#[cfg(not(perusal_loom))]
pub use api::{
    Any, Communicator, Element, Multiple, OwnedReceive, OwnedSend, Receiving, Reduction, Scope, Sending,
    Single, Source, Status, Tag, Threading, World, init, init_with, run, run_threads, run_threads_traced,
    run_threads_with,
};
pub use error::{Error, Result};
