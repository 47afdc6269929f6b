//! Traces: what a reader makes of what every rank's requests, messages, queues and waits did.
//!
//! The engine records them (`perusal::trace`); `docs/trace-format.md` says how a trace lies in its file. `reader` turns a file,
//! whole or torn, into the [`Trace`] of `model`, `flows` finds for each send its receive, and `windows` and `files` who waited
//! for whose lock. `synthetic` makes traces of jobs that never ran, for tests of what reads them. `report` is what `perusal
//! report` finds in one, `export` writes it for other tools. `terminal` makes text harmless that a terminal shows.

use crate as trace;
#[cfg(test)]
pub(crate) use perusal::internals::arch::clock;
pub(crate) use perusal::internals::{error, events, shm, sync};

pub mod export;
pub mod files;
pub mod flows;
mod model;
pub mod objects;
mod reader;
mod record_windows;
#[cfg(test)]
mod recorder_test;
pub mod report;
pub mod synthetic;
pub mod terminal;
#[cfg(test)]
#[path = "../../../src/trace/testing.rs"]
mod testing;
pub mod windows;

pub use model::{CommInfo, JobInfo, RankTrace, Record, RecordPayload, Trace, WindowInfo};
pub use perusal::internals::trace::{PATH_VARIABLE, Recording, file, format};
pub use reader::{TraceTally, most_records, read, read_bytes, read_until, tally};
