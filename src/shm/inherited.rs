//! What a launcher hands to a rank: environment variables, the descriptor of the job's memory, and that of the socket
//! by which ranks ask the launcher to start processes and to bring programs together ([`DOOR_VARIABLE`]).
//!
//! The mapping is state of the whole process. `heap::malloc` may map the memory when the library is loaded; a job that
//! is joined later uses that mapping, so that an address in the shared heap means the same to both.

use super::cpus;
use super::memory::{Memory, shape_of};
use super::segment::keep_from_programs;
use crate::sync::Arc;
use crate::variables::{JobShape, Overrides};
use crate::{Error, Result};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;

/// Environment variable with the number of the inherited descriptor.
pub const FD_VARIABLE: &str = "PERUSAL_JOB_FD";
/// Environment variable that marks every process of a job with the job's number,
/// so that what was left behind can be found.
pub const JOB_ID_VARIABLE: &str = "PERUSAL_JOB_ID";
/// Environment variable with the rank.
pub const RANK_VARIABLE: &str = "PERUSAL_RANK";
/// Environment variable with the number of ranks.
pub const SIZE_VARIABLE: &str = "PERUSAL_SIZE";
/// Environment variable with the launcher's process id. Ranks watch that process and let it trace them, so they take it
/// from the launcher itself, and not from memory that every rank can write.
pub const LAUNCHER_VARIABLE: &str = "PERUSAL_LAUNCHER";

/// Environment variable with the number of the inherited socket for requests to the launcher.
pub const DOOR_VARIABLE: &str = "PERUSAL_DOOR_FD";
/// Environment variable of a spawned process: the place of its world's first rank, and the world's context id.
pub const WORLD_VARIABLE: &str = "PERUSAL_WORLD";
/// Environment variable of a spawned process: the place of the process that spawned its world,
/// and a context id for the two to meet in.
pub const PARENT_VARIABLE: &str = "PERUSAL_PARENT";

/// Environment variable with the error handler that a process has from the start:
/// a value of the info key `mpi_initial_errhandler`.
pub const ERRHANDLER_VARIABLE: &str = "PERUSAL_INITIAL_ERRHANDLER";
/// The values of that key (MPI 5.0 §11.8.4); the first is what holds without it.
pub const INITIAL_ERRHANDLERS: [&str; 3] = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];

/// Which of them `value` is, in capitals or not.
#[must_use]
pub fn initial_errhandler(value: &[u8]) -> Option<&'static str> {
    INITIAL_ERRHANDLERS.into_iter().find(|known| known.as_bytes().eq_ignore_ascii_case(value.trim_ascii()))
}

/// Environment variable with the number of the program that a rank runs,
/// among those of the command line or of the spawn (MPI_APPNUM).
pub const APPNUM_VARIABLE: &str = "PERUSAL_APPNUM";
/// Environment variable of a spawned process: the value of MPI_APPNUM in its place, if the info key `appnum` gives one.
pub const GIVEN_APPNUM_VARIABLE: &str = "PERUSAL_APPNUM_GIVEN";
/// Environment variable with the number of processes that were asked for of that program (`maxprocs` in MPI_INFO_ENV).
pub const PROCESSES_VARIABLE: &str = "PERUSAL_MAXPROCS";
/// Environment variable with the numbers of processes that would do, if a process was started so (`soft` in
/// MPI_INFO_ENV).
pub const SOFT_VARIABLE: &str = "PERUSAL_SOFT";

/// Environment variable with the memory allocation kinds that a process was started to use: a value of the info key
/// `mpi_memory_alloc_kinds`.
pub const KINDS_VARIABLE: &str = "PERUSAL_MEMORY_ALLOC_KINDS";

/// The memory that was mapped before the process joined the job.
static MAPPED: OnceLock<Arc<Memory>> = OnceLock::new();

/// Maps the inherited memory for a process that has not joined the job and perhaps never will: a further program that
/// this one becomes inherits the descriptor too. `None` if the process has no launcher,
/// or what it has inherited is no job.
pub fn map_early() -> Option<&'static Arc<Memory>> {
    if MAPPED.get().is_none() {
        let memory = Memory::attach_and_pass_on(number(FD_VARIABLE).ok()??).ok()?;
        let _ = MAPPED.set(Arc::new(memory));
    }
    MAPPED.get()
}

/// Maps the memory of the job of `launcher` for a process that joins it, unless it is mapped already.
///
/// # Errors
/// Those of [`Memory::attach`].
pub(super) fn attach(fd: RawFd, launcher: i32) -> Result<Arc<Memory>> {
    match MAPPED.get() {
        Some(memory) => {
            keep_from_programs(fd);
            Ok(Arc::clone(memory))
        }
        None => {
            let memory = Memory::attach(fd).or_else(|error| of_launcher(fd, launcher).ok_or(error));
            Ok(Arc::new(memory?))
        }
    }
}

/// The job's memory by way of its launcher, which has it open under the same number: a program between the two may have
/// closed the inherited descriptor, as Python's `subprocess` closes all. `None` if it is not that job's.
fn of_launcher(fd: RawFd, launcher: i32) -> Option<Memory> {
    let file = File::options().read(true).write(true).open(format!("/proc/{launcher}/fd/{fd}")).ok()?;
    let memory = Memory::attach(file.as_raw_fd()).ok()?;
    let job = std::env::var(JOB_ID_VARIABLE).ok()?;
    (u64::from_str_radix(&job, 16) == Ok(memory.header().job_id())).then_some(memory)
}

/// What the defaults of control variables will follow from in the job that this process is to join or make.
#[must_use]
pub fn expected_shape(overrides: &Overrides) -> JobShape {
    // A spawned process joins a job that others began.
    if let Some(memory) = std::env::var_os(WORLD_VARIABLE).and_then(|_| map_early()) {
        return memory.shape();
    }
    let ranks = std::env::var(SIZE_VARIABLE).ok().and_then(|size| size.parse().ok()).unwrap_or(1);
    shape_of(ranks, cpus::usable(), overrides)
}

/// Returns the shape of a job of as many ranks as there are usable CPUs.
#[must_use]
pub fn usual_shape(overrides: &Overrides) -> JobShape {
    shape_of(cpus::usable(), cpus::usable(), overrides)
}

/// The ranks that a process begins with, its MPI_COMM_WORLD: all ranks that the launcher has started at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWorld {
    /// The place of its first rank; the others follow.
    pub first: u32,
    /// Number of ranks.
    pub size: u32,
    /// Its context id.
    pub context: u32,
}

impl JobWorld {
    /// The ranks that a job begins with.
    pub(super) fn of_job(size: u32) -> Self {
        Self { first: 0, size, context: super::contexts::WORLD }
    }

    /// What the launcher says, for a world of `size` ranks.
    ///
    /// # Errors
    /// [`Error::Segment`] if the variable is not as the launcher sets it.
    pub(super) fn from_environment(size: u32) -> Result<Self> {
        let world = pair(WORLD_VARIABLE)?;
        Ok(world.map_or(Self::of_job(size), |(first, context)| Self { first, size, context }))
    }
}

/// Another process, and where to meet it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contact {
    /// Its place in the job.
    pub place: u32,
    /// The context id of the two.
    pub context: u32,
}

/// The process that has spawned this one's world, whom its first rank meets. `None` for a process that was not spawned.
///
/// # Errors
/// [`Error::Segment`] if the variable is not as the launcher sets it.
pub fn parent() -> Result<Option<Contact>> {
    Ok(pair(PARENT_VARIABLE)?.map(|(place, context)| Contact { place, context }))
}

/// Two numbers with a comma between them, in an environment variable that the launcher sets.
fn pair(name: &str) -> Result<Option<(u32, u32)>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    let numbers = text.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let wrong = || Error::Segment(format!("{name} is {text:?}; the launcher sets it to two numbers"));
    numbers.map(Some).ok_or_else(wrong)
}

/// The inherited socket for requests to the launcher, if the process has a launcher.
/// Programs that this one starts do not get it.
#[must_use]
pub fn door() -> Option<RawFd> {
    let door = number(DOOR_VARIABLE).ok()??;
    keep_from_programs(door);
    Some(door)
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
