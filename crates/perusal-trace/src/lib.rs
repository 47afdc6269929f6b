//! Traces: what a reader makes of what every rank's requests, messages, queues and waits did.
//!
//! The engine records them (`perusal::trace`); `docs/trace-format.md` says how a trace lies in its file.
//!
//! | modules | what they have |
//! |---|---|
//! | `reader`, `record_windows` | a file, whole or torn, is read; where its records lie |
//! | `model` | the [`Trace`] that comes of it |
//! | `flows` | for each send its receive |
//! | `objects`, `windows`, `files` | windows and files that several ranks have made together, and who waited for whose lock |
//! | `report` | what `perusal report` finds in a trace |
//! | `export` | a trace in the formats of other tools |
//! | `terminal` | text that may do a terminal no harm |
//! | `synthetic` | traces of jobs that never ran, for tests of what reads them (feature `synthetic`) |

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
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod terminal;
#[cfg(test)]
#[path = "../../../src/trace/testing.rs"]
mod testing;
pub mod windows;

pub use model::{CommInfo, JobInfo, RankTrace, Record, RecordPayload, Trace, WindowInfo};
pub use perusal::internals::trace::{PATH_VARIABLE, Recording, file, format};
pub use reader::{TraceTally, most_records, read, read_bytes, read_until, tally};
