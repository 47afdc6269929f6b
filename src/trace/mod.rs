//! Traces: what every rank's requests, messages, queues and waits did, on file, and what a reader makes of it.
//!
//! `file` is the file as launcher and ranks write it, `recorder` the listener that writes a record for each event. `format` says
//! how a trace lies in its file (`docs/trace-format.md` is the same for people), `reader` turns a file, whole or torn, into
//! the [`Trace`] of `model`, and `flows` finds for each send its receive. `synthetic` makes traces of jobs that never ran,
//! for tests of what reads them. `report` is what `perusal report` finds in one, `export` writes it for other tools.

pub mod export;
pub mod file;
pub mod flows;
pub mod format;
mod model;
mod reader;
mod recorder;
#[cfg(feature = "report")]
pub mod report;
pub mod synthetic;
#[cfg(test)]
mod testing;

pub use model::{CommInfo, JobInfo, RankTrace, Record, RecordPayload, Trace};
pub use reader::{Tally, most_records, read, read_bytes, read_until, tally};
pub use recorder::{PATH_VARIABLE, Recording};
