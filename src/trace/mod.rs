//! Writes traces: what every rank's requests, messages, queues and waits did, on file.
//!
//! `file` is the file as launcher and ranks write it, `recorder` the listener that writes a record for each event. `format` says
//! how a trace lies in its file (`docs/trace-format.md` is the same for people). The crate `perusal-trace` reads it.

pub mod file;
pub mod format;
mod recorder;

pub use recorder::{PATH_VARIABLE, Recording};

#[cfg(test)]
mod testing;
