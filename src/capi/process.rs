//! The one engine of a C program: from MPI_Init to MPI_Finalize.

use super::boundary::{self, Hooks, Phase};
use super::mpi::errhandler;
use super::{comms, environment};
use crate::abi;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::job::{Job, State};
use core::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

/// Made once, kept to the end of the process: what is in flight may need it.
static ENGINE: OnceLock<Process> = OnceLock::new();
/// Keeps two threads from initialising at once.
static STARTING: Mutex<()> = Mutex::new(());

struct Process {
    engine: Engine,
    level: c_int,
    main: ThreadId,
}

/// The engine, once initialised.
///
/// # Errors
/// [`Error::NotInitialized`] before that.
#[inline(always)]
pub fn engine() -> Result<&'static Engine> {
    ENGINE.get().map(|process| &process.engine).ok_or(Error::NotInitialized("the function"))
}

/// The engine, if there is one.
#[inline(always)]
pub fn running() -> Option<&'static Engine> {
    ENGINE.get().map(|process| &process.engine)
}

/// The thread level in force; `None` before initialisation.
#[must_use]
pub fn level() -> Option<c_int> {
    ENGINE.get().map(|process| process.level)
}

/// Whether the calling thread is the one that initialised MPI.
#[must_use]
pub fn is_main_thread() -> bool {
    ENGINE.get().is_some_and(|process| process.main == std::thread::current().id())
}

/// Joins the job and makes MPI_COMM_WORLD and MPI_COMM_SELF. Again, it changes nothing.
///
/// # Errors
/// [`Error::Segment`] when the job's memory cannot be had, [`Error::Other`] when the environment makes no sense.
pub fn start(level: c_int) -> Result<()> {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if ENGINE.get().is_some() {
        return Ok(());
    }
    let job = match Job::from_environment()? {
        Some(job) => job,
        None => Job::singleton()?,
    };
    let_launched_ranks_copy(job.header().launcher());
    let (rank, size) = (job.rank(), job.size());
    let shared = level == abi::MPI_THREAD_MULTIPLE;
    let fatal = Box::new(|text: String| boundary::fatal(&text, abi::MPI_ERR_OTHER));
    // SAFETY: below MPI_THREAD_MULTIPLE the program promises to call from one thread at a time (MPI 5.0 §11.6.2).
    let engine = unsafe { Engine::new(job, shared, fatal) }?;
    let world = engine.open(Comm::world(rank, size, engine.registry().attach(abi::MPI_COMM_WORLD)))?;
    let itself = engine.open(Comm::itself(rank, engine.registry().attach(abi::MPI_COMM_SELF)))?;
    comms::install(Arc::new(world), Arc::new(itself));
    environment::install(engine.config().in_force());
    let _ = ENGINE.set(Process { engine, level, main: std::thread::current().id() });
    boundary::install(Hooks { handler: errhandler::handler_of, end_job, rank: own_rank });
    Ok(())
}

fn own_rank() -> Option<u32> {
    ENGINE.get().map(|process| process.engine.rank())
}

/// Where the kernel lets only ancestors look into a process (Yama), the launcher and what it started may look into us:
/// so large messages can be copied in one step.
pub(crate) fn let_launched_ranks_copy(launcher: Option<i32>) {
    if let Some(pid) = launcher {
        // SAFETY: the call takes a number and touches no memory. Where there is no Yama it fails, and nothing is lost.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, pid as libc::c_ulong, 0, 0, 0) };
    }
}

/// Waits for all ranks and leaves the job.
///
/// # Errors
/// [`Error::PeerGone`] when a rank died meanwhile.
pub fn finish() -> Result<()> {
    let engine = engine()?;
    engine.job().advance(State::Finalizing);
    engine.leave(comms::world()?)?;
    engine.job().advance(State::Finalized);
    boundary::set_phase(Phase::After);
    Ok(())
}

/// Ends the job with `code`; the launcher ends the other ranks.
pub fn end_job(code: c_int) -> ! {
    if let Ok(engine) = engine() {
        engine.job().header().set_abort(engine.rank(), code);
    }
    // SAFETY: flushes what the program has buffered in C streams; takes no pointer but NULL, which means all of them.
    unsafe { libc::fflush(core::ptr::null_mut()) };
    let status = code & 0xff;
    // SAFETY: ends the process without running exit handlers, which could wait for what will not come.
    unsafe { libc::_exit(if status == 0 { 1 } else { status }) }
}
