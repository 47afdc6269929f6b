//! The MPI functions, a file per topic. What no file here has, `build.rs` makes a stub of.

pub mod attr;
pub mod comm;
pub mod comm_create;
pub mod convert;
pub mod elements;
pub mod env;
pub mod errhandler;
pub mod error;
pub mod group;
pub mod info;
pub mod init;
pub mod memory;
pub mod ops;
pub mod p2p;
pub mod pack;
pub mod persistent;
pub mod probe;
pub mod request;
pub mod sendrecv;
pub mod session;
pub mod status;
pub mod topo;
pub mod type_contents;
pub mod type_create;
pub mod type_object;
