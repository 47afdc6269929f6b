//! The MPI functions, a file per topic.
//!
//! | file | functions |
//! |---|---|
//! | `p2p`, `typed` | send and receive: the fast paths, of predefined types and of the program's own, and the slow one |
//! | `sendrecv`, `probe`, `buffered`, `part` | both at once; probes and matched receives; attached buffers; partitioned messages |
//! | `request`, `outcomes`, `persistent` | waits and tests; what those of several requests give; starting, cancelling and freeing |
//! | `several` | the fast paths of waits and tests that ask for one, some or all of several requests |
//! | `status`, `elements` | the fields of a status; how much was received |
//! | `type_create`, `type_object`, `type_contents`, `pack` | datatypes: constructors, life, how they were made; packing |
//! | `ops` | reduction operations (the collective operations are in `crate::collective`) |
//! | `comm`, `comm_create`, `split_type`, `group`, `string_tags` | communicators and groups; tags that are strings or large numbers |
//! | `topo`, `attr`, `info` | topologies; attributes; info objects |
//! | `init`, `session`, `env`, `memory`, `memory_kinds` | begin and end; the environment; memory that the library gives out, and its kinds |
//! | `error`, `errhandler`, `failures` | error classes, codes and texts; error handlers; communicators after deaths |
//! | `dynamic`, `spawn_events` | processes that come later, and programs that meet; their events |
//! | `win`, `rma` | windows; one-sided operations |
//! | `file`, `file_access` | files; reading and writing them |
//! | `convert` | handles as Fortran's integers |

pub mod attr;
pub mod buffered;
pub mod comm;
pub mod comm_create;
pub mod convert;
pub mod dynamic;
pub mod elements;
pub mod env;
pub mod errhandler;
pub mod error;
pub mod failures;
pub mod file;
pub mod file_access;
pub mod group;
pub mod info;
pub mod init;
pub mod memory;
pub mod memory_kinds;
pub mod ops;
mod outcomes;
pub mod p2p;
pub mod pack;
pub mod part;
pub mod persistent;
pub mod probe;
pub mod request;
pub mod rma;
pub mod sendrecv;
pub mod session;
mod several;
mod spawn_events;
pub mod split_type;
pub mod status;
pub mod string_tags;
pub mod topo;
pub mod type_contents;
pub mod type_create;
pub mod type_object;
mod typed;
pub mod win;
