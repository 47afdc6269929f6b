//! The C bindings: the standard ABI's functions, PERUSE, the tools interface, handles.
//!
//! | file | what lives there |
//! |---|---|
//! | [`boundary`] | the two edges of a call: whether it is allowed now, which error handler its error reaches |
//! | [`process`] | what a process has once: the engine, the registry of events, the users of MPI |
//! | [`bindings`] | the exported functions, generated from the tables in `abi` |
//! | [`arguments`] | the Rust types of C's arguments, checked once where they are made |
//! | `load` | what runs when the library is loaded |
//! | [`comms`] | communicators by handle |
//! | [`datatypes`] | datatypes and operations by handle |
//! | [`windows`], [`files`] | windows and files by handle |
//! | [`requests`] | requests by handle |
//! | [`messages`] | the arguments of messages, as the engine wants them |
//! | `check` | checks for mistakes that no error shows |
//! | [`strings`], [`errors`] | C strings; error codes and their texts |
//! | [`peruse`] | the functions of PERUSE |
//! | [`overrides`] | control variables before there is an engine |
//! | `observed` | the plain cases of calls while there are listeners |
//! | [`calls`] | events of calls |
//! | [`types`] | the ABI's C types in Rust |
//! | [`mpi`] | the functions, a file per topic |
//! | `collective` | collective functions, in all forms |
//! | [`mpi_t`] | those of the tools interface |
//!
//! A binding checks the arguments, looks the handles up, and writes the results; what it calls in `mpi`, `mpi_t` and
//! `collective` is safe Rust. What a message *is*, the engine knows.

pub(crate) use perusal::internals::{
    abi, arch, coll, comm, datatype, dynamic, engine, errhandler, error, events, handles, heap, info, io,
    limits, p2p, part, request, rma, shm, sync, team, tool, trace, variables,
};
pub(crate) use perusal::{Error, Result};

pub mod arguments;
pub mod bindings;
mod load;

pub mod boundary;
pub mod calls;
pub(crate) mod check;
pub(crate) mod collective;
pub mod comms;
pub mod datatypes;
pub mod errors;
pub mod files;
pub mod messages;
pub mod mpi;
pub mod mpi_t;
mod observed;
pub mod overrides;
pub mod peruse;
pub mod process;
pub mod requests;
pub mod strings;
pub mod types;
pub mod windows;
