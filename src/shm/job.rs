//! One rank's view of its job.

use super::cpus;
use super::header::Abort;
use super::inherited::{
    self, FD_VARIABLE, JobWorld, LAUNCHER_VARIABLE, RANK_VARIABLE, SIZE_VARIABLE, number,
};
use super::memory::{Memory, Universe};
use super::roster::RankState;
use super::telemetry::Telemetry;
use crate::sync::{Arc, AtomicBool, AtomicI32, Ordering, RwLock};
use crate::variables::Overrides;
use crate::variables::misspelt::misspelt_in_environment;
use crate::{Error, Result};
use rustix::io::Errno;
use rustix::process::{PTracer, Pid, getpid, set_ptracer, test_kill_process};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::PoisonError;
use std::time::Duration;

const LAUNCHER_IS_GONE: &str = "the launcher of this job is gone";

/// After how long a process that is held back looks whether the launcher is still there.
const LOOK: Duration = Duration::from_millis(100);

/// A job as one of its ranks has it. Cheap to clone; dereferences to the job's [`Memory`].
#[derive(Debug, Clone)]
pub struct Job {
    memory: Arc<Memory>,
    rank: u32,
    world: JobWorld,
    /// The process that started this one or its ancestor; none for a job without launcher.
    launcher: Option<Pid>,
    /// Where all ranks are threads of this process: for each rank, whether others may copy from and to its buffers.
    threads: Option<Arc<Box<[RwLock<bool>]>>>,
    /// Whether the job goes on when a rank dies.
    survives: bool,
    /// Whether some ranks need not arrive: see [`Job::expect_all`].
    some_stay_away: Arc<AtomicBool>,
    /// The ranks' process ids where [`Job::process_of`] has found them to be true; 0 elsewhere.
    processes: Arc<Box<[AtomicI32]>>,
}

impl core::ops::Deref for Job {
    type Target = Memory;
    #[inline]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Job {
    /// Joins the job as the rank that the launcher has made this process; `None` if it has no launcher.
    ///
    /// # Errors
    /// [`Error::Segment`] if the launcher's environment variables are incomplete or wrong,
    /// or another process is this rank.
    pub fn from_environment() -> Result<Option<Self>> {
        let Some(fd) = number(FD_VARIABLE)? else { return Ok(None) };
        let (Some(rank), Some(size), Some(launcher)) =
            (number(RANK_VARIABLE)?, number(SIZE_VARIABLE)?, number(LAUNCHER_VARIABLE)?)
        else {
            return Err(Error::Segment(format!(
                "{FD_VARIABLE} is set but {RANK_VARIABLE}, {SIZE_VARIABLE} or {LAUNCHER_VARIABLE} is not; start the program with mpiexec"
            )));
        };
        let memory = inherited::attach(fd, launcher)?;
        // `number` gives no negative ones.
        let world = JobWorld::from_environment(size.unsigned_abs())?;
        let places = world.first.checked_add(world.size).filter(|end| *end <= memory.places_in_use());
        if rank >= size || places.is_none() || world.first == 0 && world.size != memory.size() {
            return Err(Error::Segment(format!(
                "the environment speaks of rank {rank} of {size} from place {} on, the job has ranks 0..{} and places 0..{}",
                world.first,
                memory.size(),
                memory.places_in_use()
            )));
        }
        let place = world.first + rank.unsigned_abs();
        let entry = memory.roster().entry(place);
        // Roster rule 6. The launcher ends the processes of a world that it cannot start.
        while entry.hold().is_set(LOOK) {
            if is_gone(launcher) {
                return Err(Error::Other(LAUNCHER_IS_GONE.into()));
            }
        }
        entry.arrive(place, own_pid())?;
        let launcher = Pid::from_raw(launcher);
        Ok(Some(Self { launcher, world, ..Self::of(memory, place) }))
    }

    /// Makes a job of this process alone.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory.
    pub fn singleton() -> Result<Self> {
        Self::singleton_with(&Overrides::from_environment()?)
    }

    /// The same with ring sizes from `overrides`.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory.
    pub fn singleton_with(overrides: &Overrides) -> Result<Self> {
        // Where there is a launcher, it has looked.
        for mistake in misspelt_in_environment() {
            crate::error::report(format_args!("note: {mistake}"));
        }
        // In Miri address space is memory; where it is limited, too, the program has no room for others.
        let universe = if cfg!(miri) { Universe::default() } else { Universe::usual(1, cpus::usable()) };
        let memory = Memory::create_universe(1, universe, 0, overrides)
            .or_else(|_| Memory::create_with(1, 0, overrides))?;
        memory.roster().entry(0).arrive(0, own_pid())?;
        Ok(Self::of(Arc::new(memory), 0))
    }

    /// Makes a job whose ranks are threads of this process, and returns it once for each rank.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory, or for no ranks at all.
    pub fn threads(ranks: u32) -> Result<Vec<Self>> {
        let memory = Arc::new(Memory::create(ranks, 0)?);
        let reachable: Arc<Box<[_]>> = Arc::new((0..ranks).map(|_| RwLock::new(true)).collect());
        (0..ranks)
            .map(|rank| {
                memory.roster().entry(rank).arrive(rank, own_pid())?;
                Ok(Self { threads: Some(Arc::clone(&reachable)), ..Self::of(Arc::clone(&memory), rank) })
            })
            .collect()
    }

    /// A job without launcher as `rank` has it.
    fn of(memory: Arc<Memory>, rank: u32) -> Self {
        let processes = Arc::new((0..memory.places()).map(|_| AtomicI32::new(0)).collect());
        let (world, survives) = (JobWorld::of_job(memory.size()), memory.failures().are_survived());
        Self {
            memory,
            rank,
            world,
            launcher: None,
            threads: None,
            survives,
            some_stay_away: Arc::default(),
            processes,
        }
    }

    /// Whether the job goes on when a rank dies.
    #[inline]
    #[must_use]
    pub fn survives(&self) -> bool {
        self.survives
    }

    /// This rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The ranks of this process's MPI_COMM_WORLD.
    #[must_use]
    pub fn world(&self) -> JobWorld {
        self.world
    }

    /// The launcher's process id, as the launcher has handed it to this process; `None` for a job without launcher.
    #[must_use]
    pub fn launcher(&self) -> Option<Pid> {
        self.launcher
    }

    /// The memory of the job.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Whether all ranks are threads of this process, so that one can read another's memory.
    #[inline]
    #[must_use]
    pub fn are_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Runs `copy`, which accesses a buffer of `rank`. Where ranks are threads, this is done only if that rank has not
    /// withdrawn its buffers, and `withdraw` waits for it.
    pub(crate) fn reach<R>(&self, rank: u32, copy: impl FnOnce() -> R) -> Option<R> {
        let reachable = self.threads.as_ref().map(|reachable| &reachable[rank as usize]);
        let reachable = reachable.map(|lock| lock.read().unwrap_or_else(PoisonError::into_inner));
        reachable.as_ref().is_none_or(|reachable| **reachable).then(copy)
    }

    /// Returns the process id of `rank`, for reading and writing its memory. What the roster says is not believed
    /// (roster rule 4): a process that has not mapped the job's memory is none of its ranks. `None` for such a one, and
    /// where the kernel does not tell.
    #[must_use]
    pub fn process_of(&self, rank: u32) -> Option<i32> {
        if self.are_threads() {
            return Some(own_pid());
        }
        let found = &self.processes[rank as usize];
        // Relaxed, twice: only the number itself counts, and a thread that does not see it yet finds it again.
        let (known, pid) = (found.load(Ordering::Relaxed), self.roster().entry(rank).pid());
        // The place of a process that has ended may have another one now.
        if known != 0 && known == pid {
            return Some(known);
        }
        has_mapped(pid, self.segment().file()).then(|| {
            found.store(pid, Ordering::Relaxed);
            pid
        })
    }

    /// The error of an access to the memory of `rank`, whose process is not there any more. Waits up to a second for
    /// the launcher to say how the rank ended: the kernel takes a process's memory away before its parent hears of its
    /// end, and an error that is reported earlier would be taken for the cause.
    #[must_use]
    pub fn gone(&self, rank: u32) -> Error {
        for _ in 0..1000 {
            if let Err(error) = self.check_alive(Some(rank)) {
                return error;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Error::RankFailed { rank, how: "its process is not to be found".into() }
    }

    /// Withdraws this rank's buffers: where ranks are threads, no other rank accesses them once this has returned.
    pub(crate) fn withdraw(&self) {
        if let Some(reachable) = &self.threads {
            *reachable[self.rank as usize].write().unwrap_or_else(PoisonError::into_inner) = false;
        }
    }

    /// This rank's own telemetry page.
    #[inline]
    #[must_use]
    pub fn own_telemetry(&self) -> &Telemetry {
        self.telemetry(self.rank)
    }

    /// Moves this rank on in the roster.
    pub fn advance(&self, state: RankState) {
        self.roster().entry(self.rank).advance(state);
    }

    /// Says whether every rank of the job must arrive, as it must at first. If not (MPI sessions), the death of a rank
    /// that never arrived is an error only for a wait for that very rank.
    pub fn expect_all(&self, all: bool) {
        // Relaxed: a hint for `check_alive`, which is called again and again.
        self.some_stay_away.store(!all, Ordering::Relaxed);
    }

    /// Says whether this rank has MPI open by sessions alone; before [`Self::advance`] says that it is open.
    pub fn set_sessions_alone(&self, alone: bool) {
        self.roster().entry(self.rank).set_sessions_alone(alone);
    }

    /// The call for the end of the job that concerns this rank, if there is one.
    #[must_use]
    pub fn abort(&self) -> Option<Abort> {
        self.header().abort(self.places()).filter(|abort| self.roster().concerns(abort.rank, self.rank))
    }

    /// Checks that a wait for `peer` (for any rank, with `None`) can still end: the job was not aborted, the peer is
    /// not dead, and the launcher, which notices deaths, is there. To be called now and then in a long wait, not for
    /// each message: it may take a system call.
    ///
    /// # Errors
    /// [`Error::RankFailed`] with the rank that has died or aborted; [`Error::Other`] if the launcher has ended.
    pub fn check_alive(&self, peer: Option<u32>) -> Result<()> {
        if let Some(abort) = self.abort() {
            return Err(Error::RankFailed { rank: abort.rank, how: format!("it {}", abort.what()) });
        }
        if self.roster().entry(self.rank).is_refused() {
            let how = "the process that has spawned it could not finish MPI_Comm_spawn".into();
            return Err(Error::RankFailed { rank: self.rank, how });
        }
        let dead = match peer {
            // The engine looks at deaths itself.
            None if self.survives => None,
            Some(rank) => Some(rank).filter(|rank| self.roster().is_dead(*rank)),
            // Relaxed: a hint; callers ask again and again.
            None if self.some_stay_away.load(Ordering::Relaxed) => {
                self.roster().first_dead_that_had_arrived(self.rank)
            }
            None => self.roster().first_dead(self.rank),
        };
        if let Some(rank) = dead {
            let how = self.roster().how(rank);
            return Err(if self.survives {
                Error::ProcFailed { rank, how }
            } else {
                Error::RankFailed { rank, how }
            });
        }
        match self.launcher {
            Some(pid) if is_gone(pid.as_raw_nonzero().get()) => Err(Error::Other(LAUNCHER_IS_GONE.into())),
            _ => Ok(()),
        }
    }

    /// Lets the launcher and the processes that it started read and write this process's memory by `process_vm_readv`,
    /// where the kernel lets only ancestors do so (Yama): large messages can then be copied in one step.
    pub fn allow_copies(&self) {
        if let Some(pid) = self.launcher {
            // Where there is no Yama this fails, and is not needed.
            let _ = set_ptracer(PTracer::ProcessID(pid));
        }
    }
}

/// Returns whether `pid` is a process id that no process has.
#[must_use]
pub fn is_gone(pid: i32) -> bool {
    Some(pid)
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Whether the process `pid` has mapped `file`. Whoever may access its memory may also ask this.
fn has_mapped(pid: i32, file: &File) -> bool {
    let Ok(about) = file.metadata() else { return false };
    let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
    // Device and inode, as proc_pid_maps(5) has them.
    let wanted = format!(" {major:02x}:{minor:02x} {} ", about.ino());
    // Names of files may be no UTF-8.
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    pid > 0 && String::from_utf8_lossy(&maps).contains(&wanted)
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::super::exit::Exit;
    use super::*;

    #[test]
    fn a_singleton_is_rank_0_of_1_and_has_arrived() {
        let job = Job::singleton().unwrap();
        assert_eq!((job.rank(), job.size(), job.are_threads()), (0, 1, false));
        assert_eq!(job.roster().entry(0).state(), RankState::Arrived);
        assert!(job.check_alive(None).is_ok());
    }

    #[test]
    fn ranks_that_are_threads_share_one_memory() {
        let jobs = Job::threads(3).unwrap();
        jobs[2].own_telemetry().sleeps.add(4);
        assert_eq!(jobs[0].telemetry(2).sleeps.get(), 4);
        assert_eq!(jobs[1].rank(), 1);
        assert!(jobs[1].are_threads());
        assert!(Job::threads(0).is_err());
    }

    #[test]
    fn another_mapping_of_the_same_memory_sees_the_same_job() {
        let made = Memory::create(5, 0).unwrap();
        let seen = Memory::attach(made.segment().fd()).unwrap();
        assert_eq!(seen.layout(), made.layout());
        assert_eq!(seen.header().job_id(), made.header().job_id());
        made.reserve_ring(4, 3).unwrap();
        // SAFETY: the ring's bytes are reserved and mapped in both; this thread alone touches them.
        unsafe {
            made.ring(4, 3).bulk.add(100).write_volatile(42);
            assert_eq!(seen.ring(4, 3).bulk.add(100).read_volatile(), 42);
        }
    }

    #[test]
    fn what_is_no_process_id_is_not_of_a_process_that_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(is_gone(child.id().cast_signed()));
        assert!([0, -1, i32::MIN, own_pid()].into_iter().all(|pid| !is_gone(pid)));
    }

    #[test]
    fn a_rank_is_a_process_that_has_mapped_the_job_s_memory() {
        let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let memory = Arc::new(Memory::create(3, 0).unwrap());
        memory.roster().entry(0).arrive(0, own_pid()).unwrap();
        memory.roster().entry(1).arrive(1, stranger.id().cast_signed()).unwrap();
        memory.roster().entry(2).arrive(2, -1).unwrap();
        let job = Job::of(memory, 0);
        assert_eq!([0, 1, 2].map(|rank| job.process_of(rank)), [Some(own_pid()), None, None]);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_wait_for_the_dead_ends_with_what_became_of_them() {
        let jobs = Job::threads(2).unwrap();
        jobs[0].roster().entry(1).set_exit(Exit(3 << 8));
        jobs[0].roster().declare_dead(1);
        let error = jobs[0].check_alive(Some(1)).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 has failed: exited with status 3 before MPI_Finalize");
        assert!(jobs[0].check_alive(Some(0)).is_ok());
        assert!(jobs[0].check_alive(None).is_err());
    }

    #[test]
    fn who_never_came_is_missed_unless_not_all_are_expected() {
        let memory = Arc::new(Memory::create(2, 0).unwrap());
        memory.roster().entry(0).arrive(0, own_pid()).unwrap();
        let job = Job::of(memory, 0);
        job.roster().entry(1).set_exit(Exit(0));
        job.roster().declare_dead(1);
        assert!(job.check_alive(None).is_err());
        job.expect_all(false);
        assert!(job.check_alive(None).is_ok());
        assert!(job.check_alive(Some(1)).is_err());
    }

    #[test]
    fn an_abort_ends_every_wait() {
        let jobs = Job::threads(2).unwrap();
        jobs[1].header().set_abort(Abort::by_program(1, 13));
        let error = jobs[0].check_alive(Some(0)).unwrap_err().to_string();
        assert_eq!(error, "rank 1 has failed: it called MPI_Abort with code 13");
    }

    #[test]
    fn nobody_reaches_into_buffers_that_are_withdrawn() {
        let jobs = Job::threads(2).unwrap();
        assert_eq!(jobs[0].reach(1, || 5), Some(5));
        jobs[1].withdraw();
        assert_eq!((jobs[0].reach(1, || 5), jobs[1].reach(0, || 5)), (None, Some(5)));
    }

    #[test]
    fn a_thousand_ranks_need_little_memory_until_they_talk() {
        use std::os::unix::fs::MetadataExt;
        let memory = Memory::create(1000, 0).unwrap();
        let file = std::fs::File::open(format!("/proc/self/fd/{}", memory.segment().fd())).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 16 << 20);
        assert!(memory.segment().len() > 10 << 30);
    }
}
