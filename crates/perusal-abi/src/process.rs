//! The one engine of a C program, and its users: the world, from MPI_Init to MPI_Finalize, and sessions.
//!
//! The engine is made for the first of them and stays to the end of the process. While any of them is there the
//! bindings are open and the rank counts as initialised in the roster; behind the last one it counts as finalized, so
//! that its process may end. MPI_Finalize waits for all ranks. The last session to go does not (§11.3: no other rank
//! need have one), but waits until nothing that this rank has begun needs it any more.
//!
//! # Thread levels
//! An engine that a session makes locks for MPI_THREAD_MULTIPLE, whatever was asked: sessions of libraries that do not
//! know of each other may be used at once, and a later MPI_Init_thread may ask for more. One that MPI_Init makes is
//! what that asked for, and sessions besides it get no more.

use super::boundary::{self, Hooks, Phase};
use super::mpi::errhandler;
use super::{check, comms, overrides};
use crate::abi;
use crate::coll::agreement;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::{Event, EventPayload, Registry};
use crate::shm::{Abort, ERRHANDLER_VARIABLE, Job, KINDS_VARIABLE, RankState};
use crate::tool::event::delivery;
use crate::trace::Recording;
use crate::variables::{Overrides, VariableId};
use core::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Made once, kept to the end of the process: what is in flight may need it.
static ENGINE: OnceLock<Process> = OnceLock::new();
/// A thread that changes it holds the lock until all consequences of the change are done.
static USERS: Mutex<Users> = Mutex::new(Users { world: false, sessions: 0, all_met: false });
/// Set by MPI_Init, which comes once.
static WORLD: OnceLock<ThreadSupport> = OnceLock::new();

struct Process {
    engine: Engine,
    /// The highest thread level that the engine serves.
    most: c_int,
    /// To the end of the process, as the engine.
    _recording: Option<Recording>,
}

struct ThreadSupport {
    level: c_int,
    main: ThreadId,
}

/// The users of MPI at present.
struct Users {
    world: bool,
    sessions: usize,
    /// Whether a session has made a communicator of all ranks.
    all_met: bool,
}

impl Users {
    fn any(&self) -> bool {
        self.world || self.sessions > 0
    }

    /// Makes the roster and the bindings agree with what is so now.
    fn publish(&self, engine: &Engine) {
        let state = if self.any() { RankState::Initialised } else { RankState::Finalized };
        engine.let_progress_thread_run(self.any());
        if !self.any() {
            engine.retire();
        }
        comms::name_predefined(self.world || self.sessions > 0 && self.all_met);
        if self.any() {
            engine.job().set_sessions_alone(!self.world);
        }
        engine.job().advance(state);
        engine.advance_outside(state);
        engine.job().expect_all(self.world);
        boundary::set_open(self.any());
    }
}

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engine, once initialised.
///
/// # Errors
/// [`Error::NotInitialized`] before that.
#[inline(always)]
pub fn engine() -> Result<&'static Engine> {
    // An error is made only where there is one: making and dropping one would be a good part of a short call.
    match running() {
        Some(engine) => Ok(engine),
        None => Err(Error::NotInitialized("the function")),
    }
}

/// The events of this process, there before the engine and after MPI_Finalize:
/// tools may listen from the first (MPI 5.0 §15.3).
pub fn registry() -> &'static Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY
        .get_or_init(|| Registry::new(Box::new(|text: String| boundary::fatal(&text, abi::MPI_ERR_OTHER))))
}

/// The engine, if there is one.
#[inline(always)]
pub fn running() -> Option<&'static Engine> {
    ENGINE.get().map(|process| &process.engine)
}

/// The thread level that MPI_Init gave; `None` before it.
#[must_use]
pub fn level() -> Option<c_int> {
    WORLD.get().map(|world| world.level)
}

/// Whether a session is open, which has a thread level of its own.
#[must_use]
pub fn has_sessions() -> bool {
    users().sessions > 0
}

/// Whether the calling thread is the one that initialised MPI.
#[must_use]
pub fn is_main_thread() -> bool {
    WORLD.get().is_some_and(|world| world.main == std::thread::current().id())
}

/// What MPI_Init does: the world is there, with thread level `level` or what the engine serves, if that is less.
///
/// # Errors
/// Those of `start`.
pub fn open_world(level: c_int) -> Result<()> {
    let mut users = users();
    let process = start(level)?;
    let _ = WORLD.set(ThreadSupport { level: level.min(process.most), main: std::thread::current().id() });
    let first = !users.any();
    users.world = true;
    boundary::set_phase(Phase::Running);
    users.publish(&process.engine);
    if first {
        process.engine.emit(Event::Initialized, || EventPayload::None);
    }
    Ok(())
}

/// One session more, which asks for thread level `level`; gives the level that it has.
///
/// # Errors
/// Those of `start`.
pub fn open_session(level: c_int) -> Result<c_int> {
    let mut users = users();
    let process = start(abi::MPI_THREAD_MULTIPLE)?;
    let first = !users.any();
    users.sessions += 1;
    users.publish(&process.engine);
    if first {
        process.engine.emit(Event::Initialized, || EventPayload::None);
    }
    Ok(level.min(process.most))
}

/// A session has made a communicator of all ranks: from now on MPI_COMM_WORLD and MPI_COMM_SELF name theirs beside
/// sessions alone, too. The standard has them in the world model only (§11.2.1), but programs use them so,
/// and other libraries let them.
///
/// # Errors
/// [`Error::NotInitialized`] if there is no session or world.
pub fn all_have_met() -> Result<()> {
    let mut users = users();
    users.all_met = true;
    users.publish(engine()?);
    Ok(())
}

/// One session less. The last user to go waits until nothing that this rank has begun needs it any more.
///
/// # Errors
/// [`Error::RankFailed`] when a rank died meanwhile. The session is gone all the same.
pub fn close_session() -> Result<()> {
    let engine = engine()?;
    {
        let mut users = users();
        users.sessions -= 1;
        if users.any() {
            return Ok(());
        }
    }
    engine.emit(Event::Finalizing, || EventPayload::None);
    check::finish_session(engine);
    // Without the lock: meanwhile others may come, and then we are not the last.
    let departed = engine.depart();
    users().publish(engine);
    departed
}

/// What errors need before there is an engine.
pub fn install_hooks() {
    boundary::install(Hooks {
        handler: errhandler::handler_of,
        end_job: |code| end_job(code, true),
        rank: own_rank,
    });
}

/// Joins the job and makes the communicators of all ranks and of this one. Again, it changes nothing.
/// The caller holds `USERS`.
///
/// # Errors
/// [`Error::Segment`] when the job's memory cannot be had, [`Error::Other`] when the environment makes no sense.
fn start(level: c_int) -> Result<&'static Process> {
    if let Some(process) = ENGINE.get() {
        return Ok(process);
    }
    let settings = overrides::take()?;
    make(level, &settings).inspect_err(|_| overrides::give_back())
}

fn make(level: c_int, settings: &Overrides) -> Result<&'static Process> {
    let job = match Job::from_environment()? {
        Some(job) => job,
        None => Job::singleton_with(settings)?,
    };
    job.allow_copies();
    let (rank, world) = (job.rank(), job.world());
    let helped = settings.number(VariableId::ProgressThread) == Some(1);
    let shared = helped || level == abi::MPI_THREAD_MULTIPLE;
    delivery::set_shared(shared);
    let recording = Recording::of_job(&job, registry());
    // SAFETY: below MPI_THREAD_MULTIPLE the program calls from one thread at a time (MPI 5.0 §11.6.2),
    // and no progress thread is started.
    let engine = unsafe { Engine::with(job, settings, shared, registry().clone()) }?;
    let world = engine.open(Comm::world_of(rank, world, engine.registry().attach(abi::MPI_COMM_WORLD)))?;
    let itself = engine.open(Comm::itself(rank, engine.registry().attach(abi::MPI_COMM_SELF)))?;
    world.emit_created();
    itself.emit_created();
    world.errhandler.replace(errhandler::initial());
    itself.errhandler.replace(errhandler::initial());
    comms::install(Arc::new(world), Arc::new(itself));
    overrides::install(steering(&engine));
    install_hooks();
    engine.set_calls_made(comms::calls_made);
    let process = ENGINE.get_or_init(|| Process { engine, most: level, _recording: recording });
    check::begin(&process.engine);
    if helped {
        process.engine.start_progress_thread()?;
    }
    Ok(process)
}

/// What steers the rank: control variables, and what options of the launcher have set besides.
fn steering(engine: &Engine) -> Vec<(&'static str, String)> {
    let given = [ERRHANDLER_VARIABLE, KINDS_VARIABLE].map(|name| Some((name, std::env::var(name).ok()?)));
    engine.config().in_force().into_iter().chain(given.into_iter().flatten()).collect()
}

fn own_rank() -> Option<u32> {
    ENGINE.get().map(|process| process.engine.rank())
}

/// What MPI_Finalize does: waits for all ranks; leaves the job unless a session is open.
///
/// # Errors
/// [`Error::RankFailed`] when a rank died meanwhile.
pub fn finish() -> Result<()> {
    let engine = engine()?;
    comms::note_calls_made();
    if users().sessions == 0 {
        engine.emit(Event::Finalizing, || EventPayload::None);
    }
    engine.job().advance(RankState::Finalizing);
    let world = comms::world()?;
    if users().sessions == 0 {
        check::finish_world(engine, world);
    }
    if engine.job().survives() {
        agreement::leave_with_the_living(engine, world)?;
    } else {
        engine.leave(world)?;
    }
    let mut users = users();
    users.world = false;
    users.all_met = false;
    boundary::set_phase(Phase::After);
    users.publish(engine);
    Ok(())
}

/// Waits for the launcher to end this process, if a rank has called for the end of the job: the program would take the
/// failures that follow for its own, and report them. Waits for a second in all, as a program may put the launcher's
/// signal off, and for no longer than until a signal has been handled.
#[cold]
pub fn await_end() {
    static UNTIL: OnceLock<Instant> = OnceLock::new();
    let ending = |engine: &&Engine| engine.job().launcher().is_some() && engine.job().abort().is_some();
    if engine().ok().filter(ending).is_none() {
        return;
    }
    let until = *UNTIL.get_or_init(|| Instant::now() + Duration::from_secs(1));
    let left = until.saturating_duration_since(Instant::now());
    let left = libc::timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    // SAFETY: reads a time that lives here; NULL asks for nothing back.
    unsafe { libc::nanosleep(&raw const left, core::ptr::null_mut()) };
}

/// Ends the job with `code`, for the program or for an error handler; the launcher ends the other ranks.
pub fn end_job(code: c_int, by_handler: bool) -> ! {
    if let Ok(engine) = engine() {
        engine.job().header().set_abort(Abort { rank: engine.rank(), code, by_handler });
    }
    // SAFETY: flushes what the program has buffered in C streams; takes no pointer but NULL, which means all of them.
    unsafe { libc::fflush(core::ptr::null_mut()) };
    let status = code & 0xff;
    // SAFETY: ends the process without running exit handlers, which could wait for what will not come.
    unsafe { libc::_exit(if status == 0 { 1 } else { status }) }
}
