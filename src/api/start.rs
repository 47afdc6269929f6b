//! Joining a job: as ranks that are threads of this process, or as the process.

use super::communicator::Communicator;
use super::member::{Fate, Member};
use super::threading::{Single, Threading};
use crate::abi;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::heap;
use crate::shm::{Abort, Job, RANK_VARIABLE};
use crate::sync::{AtomicBool, Ordering};
use crate::trace::file;
use core::any::Any;
use core::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, panicking, scope};

/// All ranks of the job: a [`Communicator`], and this rank's membership.
///
/// Dropping it leaves the job, for which it waits until all ranks do (MPI_Finalize), unless the thread panics: then the
/// job ends. Communicators that live on are of no use any more: their functions return [`Error::NotInitialized`].
pub struct World<T: Threading = Single> {
    communicator: Communicator<T>,
    over: bool,
}

impl<T: Threading> core::fmt::Debug for World<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.communicator.fmt(f)
    }
}

impl<T: Threading> Deref for World<T> {
    type Target = Communicator<T>;
    fn deref(&self) -> &Communicator<T> {
        &self.communicator
    }
}

impl<T: Threading> World<T> {
    /// Joins `job` on this thread. `fatal` says what happens when an event callback panics.
    fn join(
        job: Job,
        trace: Option<&Path>,
        fate: Arc<Fate>,
        fatal: Box<dyn Fn(String) + Send + Sync>,
    ) -> Result<Self> {
        // SAFETY: with `Single`, the communicators that lead to the member, and all that borrows them, are neither
        // `Send` nor `Sync`: they stay on this thread.
        let member = Arc::new(unsafe { Member::join(job, T::SHARED, trace, fate, fatal) }?);
        let (rank, world) = (member.job().rank(), member.job().world());
        let comm = Comm::world_of(rank, world, member.registry().attach(abi::MPI_COMM_WORLD));
        let comm = member.perform(|engine| engine.open(comm))?;
        comm.emit_created();
        member.note(Event::Initialized);
        Ok(Self { communicator: Communicator::new(member, comm), over: false })
    }

    /// Leaves the job: waits until all ranks do, and until all that was sent has left (MPI_Finalize).
    ///
    /// # Errors
    /// [`Error::RankFailed`] when the job has come to an end meanwhile.
    pub fn finish(mut self) -> Result<()> {
        self.leave()
    }

    fn leave(&mut self) -> Result<()> {
        self.over = true;
        self.member.note(Event::Finalizing);
        self.member.leave(&self.communicator.comm)
    }

    /// Leaves after `body`: together with the others if it went well; else the job ends.
    fn conclude<R>(mut self, body: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match body(&self) {
            Ok(value) => self.leave().map(|()| value),
            Err(error) => {
                self.over = true;
                self.member.give_up(error.clone(), Abort::FAILED);
                Err(error)
            }
        }
    }
}

impl<T: Threading> Drop for World<T> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if panicking() {
            return self.member.give_up(Error::Other("this rank panicked".into()), Abort::PANIC);
        }
        if let Err(error) = self.leave() {
            crate::error::report(format_args!("rank {}: {error}", self.rank()));
            self.member.give_up(error, Abort::FAILED);
        }
    }
}

/// This process's rank has been taken.
static JOINED: AtomicBool = AtomicBool::new(false);

/// Makes this process a rank (MPI_Init): of the job that `perusal run` (or `mpiexec`) started it for, or of a job of
/// its own. Once a process.
///
/// # Errors
/// [`Error::Segment`] when the job's memory cannot be had, [`Error::Other`] for the second call, and when a variable in
/// the environment makes no sense.
///
/// ```
/// # fn main() -> perusal::Result<()> {
/// let world = perusal::init()?;
/// println!("rank {} of {}", world.rank(), world.size());
/// world.finish()
/// # }
/// ```
pub fn init() -> Result<World> {
    init_with::<Single>()
}

/// Does what [`init`] does, with a thread level: `init_with::<Multiple>()` (MPI_Init_thread).
///
/// # Errors
/// As [`init`].
pub fn init_with<T: Threading>() -> Result<World<T>> {
    // Relaxed: only which thread is first matters.
    if JOINED.swap(true, Ordering::Relaxed) {
        return Err(Error::Other("this process has joined its job before, which it can do once".into()));
    }
    // Large blocks that malloc gives from here on lie in the shared heap, if the launcher was asked for that.
    heap::malloc::serve_preloaded();
    let job = Job::from_environment()?.map_or_else(Job::singleton, Ok)?;
    job.allow_copies();
    let own = job.clone();
    let fatal = Box::new(move |text: String| end_process(&own, &text));
    World::join(job, None, Fate::new(), fatal)
}

/// An event callback has panicked: as from C, the process ends and the job with it (PERUSE 2.0 §5.1.2).
fn end_process(job: &Job, text: &str) {
    crate::error::report(format_args!("rank {}: {text}", job.rank()));
    job.header().set_abort(Abort::by_program(job.rank(), Abort::FAILED));
    // SAFETY: ends the process; destructors, which might use the engine that we are inside of, do not run.
    unsafe { libc::_exit(1) }
}

/// Runs `body` as this process's rank, from [`init`] to [`World::finish`]. If it returns an error, the whole job ends,
/// for other ranks may wait for this one.
///
/// # Errors
/// Those of `body`, [`init`] and [`World::finish`].
pub fn run<R>(body: impl FnOnce(&World) -> Result<R>) -> Result<R> {
    init()?.conclude(body)
}

/// Runs `body` on `ranks` ranks, which are threads of this process, and returns what they return,
/// in the order of ranks.
///
/// If one of them returns an error, or panics, the others do not wait for it: their communication ends with
/// [`Error::RankFailed`], which says who is gone. A rank that neither communicates nor ends is waited for.
///
/// # Errors
/// Of the ranks that failed, the first one's error. [`Error::Segment`] when there is no memory for so many, or for no
/// ranks.
///
/// # Panics
/// If a rank panics, with what it panicked with.
///
/// ```
/// # fn main() -> perusal::Result<()> {
/// let sums = perusal::run_threads(4, |world| {
///     let mut sum = [0];
///     world.allreduce(perusal::Reduction::Sum, &[world.rank()], &mut sum)?;
///     Ok(sum[0])
/// })?;
/// assert_eq!(sums, [6, 6, 6, 6]);
/// # Ok(()) }
/// ```
pub fn run_threads<R: Send>(ranks: usize, body: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    run_threads_with::<Single, R>(ranks, body)
}

/// Does what [`run_threads`] does, with a thread level: with `run_threads_with::<Multiple, _>`,
/// each rank may have threads of its own.
///
/// # Errors
/// As [`run_threads`].
///
/// # Panics
/// As [`run_threads`].
///
/// ```
/// use perusal::{Any, Multiple};
///
/// # fn main() -> perusal::Result<()> {
/// perusal::run_threads_with::<Multiple, _>(2, |world| {
///     std::thread::scope(|threads| {
///         let peer = 1 - world.rank();
///         threads.spawn(move || world.send(&[peer], peer, 7));
///         let got = threads.spawn(|| world.recv::<usize>(Any, 7)).join().expect("no panic")?;
///         assert_eq!(got.0, [world.rank()]);
///         Ok(())
///     })
/// })?;
/// # Ok(()) }
/// ```
pub fn run_threads_with<T: Threading, R: Send>(
    ranks: usize,
    body: impl Fn(&World<T>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    threads(ranks, None, body)
}

/// [`run_threads_with`], recorded as `perusal run --trace` records ranks that are processes: `perusal report PATH` and
/// `perusal trace` read it. A trace that is there is replaced; each rank may write 256 MiB of it.
///
/// # Errors
/// As [`run_threads`]; [`Error::Trace`] if the file cannot be written, or is there and no trace.
///
/// # Panics
/// As [`run_threads`].
///
/// ```
/// # fn main() -> perusal::Result<()> {
/// let path = std::env::temp_dir().join(format!("perusal-doc-{}.trace", std::process::id()));
/// perusal::run_threads_traced::<perusal::Single, _>(&path, 2, |world| {
///     if world.rank() == 0 { world.send(&[1, 2, 3], 1, 7) } else { world.recv::<i32>(0, 7).map(drop) }
/// })?;
/// assert!(std::fs::metadata(&path).expect("a trace").len() > 0);
/// # std::fs::remove_file(path).expect("ours");
/// # Ok(()) }
/// ```
pub fn run_threads_traced<T: Threading, R: Send>(
    path: impl AsRef<Path>,
    ranks: usize,
    body: impl Fn(&World<T>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let path = path.as_ref();
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    file::create(path, &file::trace_header(count(ranks)?, file::DEFAULT_LIMIT, command))?;
    let result = threads(ranks, Some(path), body);
    file::finish(path, i32::from(result.is_err()))?;
    result
}

/// Whether this process was started as a rank by `perusal run` (`mpiexec`), and should call [`run`] or [`init`].
#[must_use]
pub fn is_launched() -> bool {
    std::env::var_os(RANK_VARIABLE).is_some()
}

fn count(ranks: usize) -> Result<u32> {
    u32::try_from(ranks).map_err(|_| Error::Segment(format!("{ranks} ranks are too many")))
}

fn threads<T: Threading, R: Send>(
    ranks: usize,
    trace: Option<&Path>,
    body: impl Fn(&World<T>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let jobs = Job::threads(count(ranks)?)?;
    let watch = jobs.first().cloned();
    let outcomes = scope(|threads| {
        let body = &body;
        let started: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                let (rank, own) = (job.rank(), job.clone());
                let thread = Builder::new().name(format!("rank {rank}"));
                thread.spawn_scoped(threads, move || rank_of(job, trace, body)).inspect_err(|_| {
                    own.header().set_abort(Abort::by_program(rank, Abort::FAILED));
                })
            })
            .collect();
        let outcome =
            |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, RankOutcome<R>>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(Err),
                Err(error) => Ok(Err(Error::Other(format!("no thread for a rank: {error}")))),
            };
        started.into_iter().map(outcome).collect::<Vec<_>>()
    });
    let first = watch.and_then(|job| job.header().abort(job.size())).map(|abort| abort.rank as usize);
    conclude(outcomes, first)
}

/// What a rank returned, or panicked with.
type RankOutcome<R> = core::result::Result<Result<R>, Box<dyn Any + Send>>;

fn rank_of<T: Threading, R>(
    job: Job,
    trace: Option<&Path>,
    body: impl Fn(&World<T>) -> Result<R>,
) -> RankOutcome<R> {
    let own = job.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let fate = Fate::new();
        let (seen, hook) = (job.clone(), fate.clone());
        let fatal = Box::new(move |text: String| {
            seen.header().set_abort(Abort::by_program(seen.rank(), Abort::FAILED));
            hook.break_with(Error::Other(text));
        });
        World::join(job, trace, fate, fatal)?.conclude(body)
    }));
    // The world has seen to it in all cases but those in which there was none.
    match &outcome {
        Ok(Ok(_)) => {}
        Ok(Err(_)) => _ = own.header().set_abort(Abort::by_program(own.rank(), Abort::FAILED)),
        Err(_) => _ = own.header().set_abort(Abort::by_program(own.rank(), Abort::PANIC)),
    }
    outcome
}

/// All values; or what went wrong: of several failures that of rank `first`, of which the others are consequences.
fn conclude<R>(outcomes: Vec<RankOutcome<R>>, first: Option<usize>) -> Result<Vec<R>> {
    let failed = |outcome: &RankOutcome<R>| !matches!(outcome, Ok(Ok(_)));
    let at = first
        .filter(|&rank| outcomes.get(rank).is_some_and(failed))
        .or_else(|| outcomes.iter().position(failed));
    let mut values = Vec::with_capacity(outcomes.len());
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(Ok(value)) => values.push(value),
            Ok(Err(error)) if at == Some(rank) => return Err(error),
            Err(panic) if at == Some(rank) => resume_unwind(panic),
            _ => {}
        }
    }
    Ok(values)
}
