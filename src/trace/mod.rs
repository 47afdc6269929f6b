//! Writes traces: what every rank's requests, messages, queues and waits did, on file.
//!
//! `file` is the file as launcher and ranks write it, `recorder` the listener that writes a record for each event,
//! `stage` the order in which it stores a record's words, `member` what records in a trace that ranks join.
//! `format` says how a trace lies in its file
//! (`docs/trace-format.md` is the same for people). The crate `perusal-trace` reads it.

#[cfg(not(perusal_loom))]
pub mod file;
pub mod format;
#[cfg(not(perusal_loom))]
mod member;
#[cfg(not(perusal_loom))]
mod recorder;
pub mod stage;

#[cfg(not(perusal_loom))]
pub use member::{Member, MemberRecorder};
#[cfg(not(perusal_loom))]
pub use recorder::{PATH_VARIABLE, Recording};

#[cfg(test)]
mod testing;
