//! The C face: the standard ABI's functions, PERUSE, handles. Thin.
//!
//! | file | what lives there |
//! |---|---|
//! | `export` | the macro that makes a `PMPI_X` and its weak alias `MPI_X` |
//! | [`boundary`] | what every call passes: is it allowed now, are its pointers there, who is told of an error |
//! | `args` | arguments that are pointers, checked |
//! | [`comms`] | communicators by handle |
//! | [`datatypes`] | datatypes and operations by handle |
//! | [`strings`], [`errors`] | C strings; error codes and their texts |
//! | [`peruse`] | the functions of PERUSE |
//! | [`overrides`] | control variables before there is an engine |
//! | `told` | the plain cases of calls that somebody listens to |
//! | [`types`] | the ABI's C types in Rust |
//! | [`mpi`] | the functions, a file per topic |
//! | [`mpi_t`] | those of the tools interface |
//! | `stubs` | generated: every function of the ABI that no file of `mpi` or `mpi_t` has |
//!
//! A function here checks its arguments, looks its handles up, calls the engine and writes its results. What a
//! message *is* stands below.

use crate as capi;
pub(crate) use perusal::internals::{
    abi, arch, coll, comm, datatype, engine, error, events, handles, heap, info, limits, p2p, shm, sync,
    team, tool, trace, variables,
};
pub(crate) use perusal::{Error, Result};

pub(crate) mod args;
pub mod arguments;
pub mod bindings;
mod export;
mod load;

pub(crate) use export::export;

pub mod boundary;
pub(crate) mod collective;
pub mod comms;
pub mod datatypes;
pub mod errors;
pub mod messages;
pub mod mpi;
pub mod mpi_t;
pub mod overrides;
pub mod peruse;
pub mod process;
pub mod requests;
pub mod strings;
mod told;
pub mod types;
