//! Traces: what every rank's requests, messages, queues and waits did, on file, and what a reader makes of it.
//!
//! `format` says how a trace lies in its file (`docs/trace-format.md` is the same for people), `reader` turns a file, whole or torn, into
//! the [`Trace`] of `model`, and `flows` finds for each send its receive. `synthetic` makes traces of jobs that never ran,
//! for tests of what reads them. `report` is what `perusal report` finds in one.

pub mod flows;
pub mod format;
mod model;
mod reader;
#[cfg(feature = "launcher")]
pub mod report;
pub mod synthetic;

pub use model::{CommInfo, Detail, JobInfo, RankTrace, Record, Trace};
pub use reader::{read, read_bytes};
