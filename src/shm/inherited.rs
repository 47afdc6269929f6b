//! What a launcher hands to a rank: four environment variables, and the descriptor of the job's memory.
//!
//! The mapping is state of the whole process. `heap::malloc` may map the memory when the library is loaded; a job that is joined
//! later uses that mapping, so that an address in the shared heap means the same to both.

use super::cpus;
use super::memory::{Memory, shape_of};
use super::segment::keep_from_programs;
use crate::sync::Arc;
use crate::variables::{JobShape, Overrides};
use crate::{Error, Result};
use std::os::fd::RawFd;
use std::sync::OnceLock;

/// Environment variable with the number of the inherited descriptor.
pub const FD_VARIABLE: &str = "PERUSAL_JOB_FD";
/// Environment variable with the rank.
pub const RANK_VARIABLE: &str = "PERUSAL_RANK";
/// Environment variable with the number of ranks.
pub const SIZE_VARIABLE: &str = "PERUSAL_SIZE";
/// Environment variable with the launcher's process id. Ranks watch that process and let it trace them, so they take it from the launcher
/// itself, and not from memory that every rank can write.
pub const LAUNCHER_VARIABLE: &str = "PERUSAL_LAUNCHER";

/// The memory that was mapped before the process joined the job.
static MAPPED: OnceLock<Arc<Memory>> = OnceLock::new();

/// Maps the inherited memory for a process that has not joined the job and perhaps never will: a further program that this one
/// becomes inherits the descriptor too. `None` if the process has no launcher, or what it has inherited is no job.
pub fn map_early() -> Option<&'static Arc<Memory>> {
    if MAPPED.get().is_none() {
        let memory = Memory::look(number(FD_VARIABLE).ok()??).ok()?;
        let _ = MAPPED.set(Arc::new(memory));
    }
    MAPPED.get()
}

/// Maps the inherited memory for a process that joins the job, unless it is mapped already.
///
/// # Errors
/// Those of [`Memory::attach`].
pub(super) fn attach(fd: RawFd) -> Result<Arc<Memory>> {
    match MAPPED.get() {
        Some(memory) => {
            keep_from_programs(fd);
            Ok(Arc::clone(memory))
        }
        None => Ok(Arc::new(Memory::attach(fd)?)),
    }
}

/// What the defaults of control variables will follow from in the job that this process is to join or make.
#[must_use]
pub fn expected_shape(overrides: &Overrides) -> JobShape {
    let ranks = std::env::var(SIZE_VARIABLE).ok().and_then(|size| size.parse().ok()).unwrap_or(1);
    shape_of(ranks, cpus::usable(), overrides)
}

/// The number in an environment variable that the launcher sets; `None` if it is not set.
///
/// # Errors
/// [`Error::Segment`] for anything but a number from zero on.
pub(super) fn number(name: &str) -> Result<Option<i32>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.parse::<i32>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(Error::Segment(format!("{name} is {text:?}; the launcher sets it to a number"))),
    }
}
