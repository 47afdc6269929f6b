//! *perusal*: a lock-free shared-memory message engine for MPI programs on one machine, with its inside open.
//!
//! Messages: [`run`], [`run_threads`], [`World`] and what hangs on them. The building blocks that people measure and
//! study stand alone: [`ring`], [`matching`], [`events`].
//! [`model`] checks a callback of your own under every order of threads.
//!
//! The C bindings, the launcher and what reads traces are crates of their own. This one exports no C symbol and runs
//! nothing when it is loaded.
// A member of the workspace sees the modules as `internals`;
// without that feature, or in a model, much of them is used by nobody.
#![cfg_attr(any(not(feature = "internals"), perusal_loom), allow(dead_code, unused_imports))]

// The modules in the order of their layers, lowest first. A module names modules of lower layers only
// (the table and the test: tests/source/layers.rs).
mod arch;

mod sync;

mod abi;
mod errhandler;
pub mod error;
mod handles;
mod info;
mod limits;

mod variables;

mod datatype;
mod doorbell;
pub mod events;
pub mod matching;
pub mod ring;
mod scratch;

mod heap;
#[cfg(feature = "placement")]
mod placement;
mod request;
mod shm;
mod team;

mod engine;
mod protocol;

mod comm;

mod coll;
// System calls and threads; nothing to model.
#[cfg(not(perusal_loom))]
mod dynamic;
#[cfg(not(perusal_loom))]
mod io;
mod p2p;
mod part;
mod rma;

mod tool;

mod trace;

// What programs see; nothing to model.
#[cfg(not(perusal_loom))]
mod api;
pub mod model;

#[cfg(not(perusal_loom))]
pub use api::{
    Access, Any, Communicator, Element, Exposed, File, FileOptions, FilePattern, Locked, Multiple,
    OwnedReceive, OwnedSend, PendingFile, Receiving, Reduction, Scope, Sending, Shared, Single, Source,
    Started, Status, Tag, Threading, Whole, Window, World, init, init_with, is_launched, run, run_threads,
    run_threads_traced, run_threads_with,
};
pub use error::{Error, Result};

/// The engine's modules, for the other members of this workspace.
/// No part of the API: anything here may change at any time.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    /// A public module for each private one of the crate's root, with the same name.
    macro_rules! open {
        ($($(#[$meta:meta])* $name:ident)*) => {$(
            $(#[$meta])*
            #[allow(missing_docs)]
            pub mod $name {
                pub use crate::$name::*;
            }
        )*};
    }
    open! {
        abi arch coll comm datatype doorbell engine errhandler error events handles heap info limits matching p2p
        #[cfg(feature = "placement")] placement
        part protocol request ring rma shm sync team tool
        #[cfg(not(perusal_loom))] dynamic
        #[cfg(not(perusal_loom))] io
        trace
        variables
        #[cfg(not(perusal_loom))] api
    }
}
