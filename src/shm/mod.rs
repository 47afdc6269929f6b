//! Who the ranks are, and the memory they share: segment, layout, offsets, roster, telemetry.
//!
//! The launcher makes the memory ([`Memory::create`]) and the ranks inherit its descriptor ([`Job::from_environment`]);
//! a program that nobody launched is a job of one ([`Job::singleton`]); ranks that are threads share it inside their
//! process ([`Job::threads`]). Processes exchange offsets into the segment, never addresses.
//!
//! Rules:
//! - R1: header, the context table's first page and all rank blocks are reserved when the memory is made; a ring is
//!   reserved by its producer before its first use ([`Memory::reserve_ring`]), and read by its consumer only after the
//!   producer has rung or said that there is something, but for its first page ([`Memory::reserve_ring_start`]).
//! - R2: mapped words that more than one process may touch are atomics; their types accept every bit pattern.

pub mod collective_segments;
pub mod contexts;
pub mod cpus;
pub mod header;
pub mod layout;
pub mod machine;
pub mod roster;
pub mod segment;
pub mod telemetry;

use std::os::fd::RawFd;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::heap::{Heap, malloc};
use crate::limits::{HUGE_PAGE, PAGE};
use crate::sync::{Arc, AtomicBool, Ordering, membarrier};
use crate::variables::{JobShape, Overrides, VariableId};
use crate::{Error, Result};

pub use collective_segments::CollectiveSegments;
pub use contexts::ContextIds;
pub use header::{Abort, JobHeader};
pub use layout::{Geometry, JobLayout, RingOffsets};
pub use roster::{Exit, RankState, Roster};
pub use segment::Segment;
pub use telemetry::Telemetry;

/// Environment variable with the number of the inherited descriptor.
pub const FD_VARIABLE: &str = "PERUSAL_JOB_FD";
/// Environment variable with the rank.
pub const RANK_VARIABLE: &str = "PERUSAL_RANK";
/// Environment variable with the number of ranks.
pub const SIZE_VARIABLE: &str = "PERUSAL_SIZE";

/// What the defaults of control variables will follow from in the job that this process is to join or make.
#[must_use]
pub fn expected_shape(settings: &Overrides) -> JobShape {
    let ranks = std::env::var(SIZE_VARIABLE).ok().and_then(|size| size.parse().ok()).unwrap_or(1);
    shape_of(ranks, cpus::usable(), settings)
}

fn shape_of(ranks: u32, usable_cpus: u32, settings: &Overrides) -> JobShape {
    let Geometry { ranks, cells, bulk } = Geometry::with(ranks, settings);
    let heap = settings.number(VariableId::SharedHeap).unwrap_or_else(|| usual_heap(ranks));
    let shape =
        JobShape { ranks, usable_cpus, ring_cells: cells, ring_bulk: bulk, sender_fences: true, heap };
    let sleepers_fence = membarrier::is_there() && (!shape.is_oversubscribed() || shape.uses_counters());
    JobShape { sender_fences: !sleepers_fence, ..shape }
}

/// Bytes of a shared heap if nobody asks for another: half of the memory that the job may have, so that what is taken there at
/// once leaves as much for all else. A rank alone has nobody to share it with.
fn usual_heap(ranks: u32) -> u64 {
    if ranks > 1 { machine::memory() / 2 / HUGE_PAGE as u64 * HUGE_PAGE as u64 } else { 0 }
}

/// A job's memory, seen by nobody in particular: what the launcher and an observer have.
#[derive(Debug)]
pub struct Memory {
    segment: Segment,
    layout: JobLayout,
    /// Mapped when it is first needed; `None` then if the job has none or it cannot be mapped.
    heap: OnceLock<Option<Heap>>,
}

/// Where one ring lies in this process, and how large it is. Valid while the [`Memory`] it came from lives.
#[derive(Debug, Clone, Copy)]
pub struct RingArea {
    /// Three times 128 bytes: producer's words, consumer's words, the word of shared copies. Page-aligned.
    pub control: *mut u8,
    /// `cell_count` times 64 bytes, aligned to 64.
    pub cells: *mut u8,
    /// Number of cells, a power of two.
    pub cell_count: u32,
    /// `bulk_bytes` bytes, aligned to 64.
    pub bulk: *mut u8,
    /// Bytes of the bulk area, a power of two.
    pub bulk_bytes: u32,
}

impl Memory {
    /// Makes the memory of a job of `ranks` ranks, with ring sizes from the environment; `launcher` is the process that
    /// watches over them, 0 if none does.
    ///
    /// # Errors
    /// [`Error::Segment`] if sizes are wrong or memory is not to be had.
    pub fn create(ranks: u32, launcher: i32) -> Result<Self> {
        Self::create_with(ranks, launcher, &Overrides::from_environment()?)
    }

    /// The same with ring sizes from `settings`.
    ///
    /// # Errors
    /// [`Error::Segment`] if memory is not to be had.
    pub fn create_with(ranks: u32, launcher: i32, settings: &Overrides) -> Result<Self> {
        let shape = shape_of(ranks, cpus::usable(), settings);
        let layout = JobLayout::new(Geometry::with(ranks, settings))?;
        let heap = Heap::room(layout.total(), shape.heap).and_then(|(at, len)| at.checked_add(len));
        let segment = Segment::create_before(layout.total(), heap.unwrap_or(0))?;
        segment.reserve(0, layout::HEADER + crate::limits::PAGE as u64)?;
        let blocks = layout.rank_block(0);
        segment.reserve(blocks, layout.fixed() - blocks)?;
        let memory = Self { segment, layout, heap: OnceLock::new() };
        memory.header().write(&header::Founding {
            geometry: layout.geometry(),
            total: layout.total(),
            job_id: crate::arch::clock::now() ^ u64::from(std::process::id()) << 40,
            launcher,
            usable_cpus: shape.usable_cpus,
            sender_fences: shape.sender_fences,
        });
        Ok(memory)
    }

    /// Maps the memory behind an inherited descriptor and checks that it is a job of our version.
    ///
    /// # Errors
    /// [`Error::Segment`] that says what is wrong with it.
    pub fn attach(fd: RawFd) -> Result<Self> {
        Self::check(Segment::attach(fd, header::length)?)
    }

    /// The same for a process that may not come to join the job: see [`Segment::look`].
    ///
    /// # Errors
    /// As [`Memory::attach`].
    pub fn look(fd: RawFd) -> Result<Self> {
        Self::check(Segment::look(fd, header::length)?)
    }

    fn check(segment: Segment) -> Result<Self> {
        if segment.len() < layout::HEADER {
            return Err(Error::Segment(format!("the inherited memory has {} bytes", segment.len())));
        }
        let geometry = header_of(&segment).validate(segment.len())?;
        let layout = JobLayout::new(geometry)?;
        if layout.total() != segment.len() {
            return Err(Error::Segment(format!(
                "the job's memory has {} bytes; its {} ranks need {}",
                segment.len(),
                geometry.ranks,
                layout.total()
            )));
        }
        Ok(Self { segment, layout, heap: OnceLock::new() })
    }

    /// The shared heap, mapped now if it is not yet. `None` if the job has none, or this process may not map so much.
    pub fn heap(&self) -> Option<&Heap> {
        self.heap.get_or_init(|| Heap::open(&self.segment)).as_ref()
    }

    /// The shared heap if this process has mapped it: without it, none of its buffers lies there.
    #[inline]
    #[must_use]
    pub fn heap_at_hand(&self) -> Option<&Heap> {
        self.heap.get()?.as_ref()
    }

    /// What the defaults of control variables follow from here.
    #[must_use]
    pub fn shape(&self) -> JobShape {
        let Geometry { ranks, cells, bulk } = self.layout.geometry();
        JobShape {
            ranks,
            usable_cpus: self.header().usable_cpus(),
            ring_cells: cells,
            ring_bulk: bulk,
            sender_fences: self.header().sender_fences(),
            heap: Heap::of(&self.segment).map_or(0, |(_, len)| len),
        }
    }

    /// The mapped bytes.
    #[inline]
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Where things lie in them.
    #[inline]
    #[must_use]
    pub fn layout(&self) -> &JobLayout {
        &self.layout
    }

    /// Number of ranks of the job.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.layout.ranks()
    }

    /// The header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &JobHeader {
        header_of(&self.segment)
    }

    /// Who has arrived and who is gone.
    #[inline]
    #[must_use]
    pub fn roster(&self) -> Roster<'_> {
        Roster { memory: self }
    }

    /// The context ids.
    #[inline]
    #[must_use]
    pub fn contexts(&self) -> ContextIds<'_> {
        ContextIds { memory: self }
    }

    /// The areas for collectives.
    #[inline]
    #[must_use]
    pub fn collective_segments(&self) -> CollectiveSegments<'_> {
        CollectiveSegments { memory: self }
    }

    fn check_rank(&self, rank: u32) {
        assert!(rank < self.size(), "rank {rank} of a job of {}", self.size());
    }

    fn roster_entry(&self, rank: u32) -> &roster::RosterEntry {
        self.check_rank(rank);
        let at = self.layout.roster(rank) as usize;
        // SAFETY: the entry lies inside the segment on a 128-byte boundary, its page is reserved (rule 1), and it is all
        // atomics (rule 2); the mapping lives as long as `self`.
        unsafe { &*self.segment.base().add(at).cast() }
    }

    /// The telemetry page of `rank`; only that rank writes it.
    ///
    /// # Panics
    /// If `rank` is not in the job.
    #[inline]
    #[must_use]
    pub fn telemetry(&self, rank: u32) -> &Telemetry {
        self.check_rank(rank);
        let at = self.layout.telemetry(rank) as usize;
        // SAFETY: as in `roster_entry`: inside, page-aligned, reserved (rule 1), all atomics (rule 2).
        unsafe { &*self.segment.base().add(at).cast() }
    }

    /// Start and bytes of the doorbell area of `rank`: reserved, zero at first, on a 128-byte boundary, at least 2048
    /// bytes and one bit for every rank. Valid while `self` lives.
    ///
    /// # Panics
    /// If `rank` is not in the job.
    #[inline]
    #[must_use]
    pub fn doorbell(&self, rank: u32) -> (*mut u8, usize) {
        self.check_rank(rank);
        let at = self.layout.doorbell(rank) as usize;
        // SAFETY: the area lies inside the segment (layout), so the sum stays in the mapping.
        (unsafe { self.segment.base().add(at) }, self.layout.doorbell_size() as usize)
    }

    /// The ring that `from` writes and `to` reads. Addresses only: its memory must be reserved before it is touched.
    ///
    /// # Panics
    /// If a rank is not in the job.
    #[inline]
    #[must_use]
    pub fn ring(&self, from: u32, to: u32) -> RingArea {
        self.check_rank(from);
        self.check_rank(to);
        let at = self.layout.ring(from, to);
        let Geometry { cells, bulk, .. } = self.layout.geometry();
        let base = self.segment.base();
        // SAFETY: the ring lies inside the segment (layout), so all three sums stay in the mapping.
        let [control, cells_at, bulk_at] =
            unsafe { [at.control, at.cells, at.bulk].map(|offset| base.add(offset as usize)) };
        RingArea { control, cells: cells_at, cell_count: cells, bulk: bulk_at, bulk_bytes: bulk }
    }

    /// Takes the memory of the ring that `from` writes and `to` reads; a system call, so the producer keeps in mind that
    /// it was done.
    ///
    /// # Errors
    /// [`Error::Segment`] when memory has run out.
    ///
    /// # Panics
    /// If a rank is not in the job.
    pub fn reserve_ring(&self, from: u32, to: u32) -> Result<()> {
        self.check_rank(from);
        self.check_rank(to);
        self.segment.reserve(self.layout.ring(from, to).control, self.layout.ring_size())
    }

    /// Takes the first page of that ring: for its consumer, who must touch nothing that nobody has taken. What lies behind is read only
    /// once its producer has written there. (To take all of it would be worse than in vain: the kernel clears what was taken before
    /// and not yet written, and maps all cleared pages around the first that is read.) Errors and panics are those of `reserve_ring`.
    pub fn reserve_ring_start(&self, from: u32, to: u32) -> Result<()> {
        self.check_rank(from);
        self.check_rank(to);
        self.segment.reserve(self.layout.ring(from, to).control, PAGE as u64)
    }
}

fn header_of(segment: &Segment) -> &JobHeader {
    // SAFETY: the segment starts on a page, is at least a page long (`create` lays it out so, `attach` checks), the page
    // is reserved (rule 1), and the header is all atomics (rule 2); the mapping lives as long as `segment`.
    unsafe { &*segment.base().cast() }
}

/// One rank's place in a job. Cheap to clone; dereferences to the job's [`Memory`].
#[derive(Debug, Clone)]
pub struct Job {
    memory: Arc<Memory>,
    rank: u32,
    /// Where all ranks are threads of this process: for each of them whether others may reach into its buffers.
    threads: Option<Arc<Box<[RwLock<bool>]>>>,
    /// Not all ranks need come: see [`Job::expect_all`].
    some_stay_away: Arc<AtomicBool>,
}

impl core::ops::Deref for Job {
    type Target = Memory;
    #[inline]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Job {
    /// Takes the place that the launcher has for this process; `None` if nobody launched it.
    ///
    /// # Errors
    /// [`Error::Segment`] if what the launcher left in the environment is incomplete or wrong, or another process has
    /// the place.
    pub fn from_environment() -> Result<Option<Self>> {
        let Some(fd) = variable(FD_VARIABLE)? else { return Ok(None) };
        let (Some(rank), Some(size)) = (variable(RANK_VARIABLE)?, variable(SIZE_VARIABLE)?) else {
            return Err(Error::Segment(format!(
                "{FD_VARIABLE} is set but {RANK_VARIABLE} or {SIZE_VARIABLE} is not; start the program with mpiexec"
            )));
        };
        let memory = match malloc::memory() {
            Some(memory) => {
                segment::keep_from_programs(fd);
                memory
            }
            None => Arc::new(Memory::attach(fd)?),
        };
        let rank = u32::try_from(rank).unwrap_or(u32::MAX);
        if i64::from(memory.size()) != i64::from(size) || rank >= memory.size() {
            return Err(Error::Segment(format!(
                "the environment speaks of rank {rank} of {size}, the job has ranks 0..{}",
                memory.size()
            )));
        }
        memory.roster().entry(rank).arrive(rank, own_pid())?;
        Ok(Some(Self { memory, rank, threads: None, some_stay_away: Arc::default() }))
    }

    /// A job of this process alone.
    ///
    /// # Errors
    /// [`Error::Segment`] if memory is not to be had.
    pub fn singleton() -> Result<Self> {
        Self::singleton_with(&Overrides::from_environment()?)
    }

    /// The same with ring sizes from `settings`.
    ///
    /// # Errors
    /// [`Error::Segment`] if memory is not to be had.
    pub fn singleton_with(settings: &Overrides) -> Result<Self> {
        let memory = Memory::create_with(1, 0, settings)?;
        memory.roster().entry(0).arrive(0, own_pid())?;
        Ok(Self { memory: Arc::new(memory), rank: 0, threads: None, some_stay_away: Arc::default() })
    }

    /// The places of `ranks` ranks that are threads of this process.
    ///
    /// # Errors
    /// [`Error::Segment`] if memory is not to be had, or for no ranks at all.
    pub fn threads(ranks: u32) -> Result<Vec<Self>> {
        let memory = Arc::new(Memory::create(ranks, 0)?);
        let doors: Arc<Box<[_]>> = Arc::new((0..ranks).map(|_| RwLock::new(true)).collect());
        (0..ranks)
            .map(|rank| {
                memory.roster().entry(rank).arrive(rank, own_pid())?;
                Ok(Self {
                    memory: Arc::clone(&memory),
                    rank,
                    threads: Some(Arc::clone(&doors)),
                    some_stay_away: Arc::default(),
                })
            })
            .collect()
    }

    /// This rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Whether all ranks are threads of this process, so that one can read another's memory.
    #[inline]
    #[must_use]
    pub fn are_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Runs `copy`, which reaches into a buffer of `rank` from here: where ranks are threads, only if that rank has not
    /// withdrawn its buffers, and not beyond its doing so.
    pub(crate) fn reach<R>(&self, rank: u32, copy: impl FnOnce() -> R) -> Option<R> {
        let door = self.threads.as_ref().map(|doors| &doors[rank as usize]);
        let door = door.map(|door| door.read().unwrap_or_else(PoisonError::into_inner));
        door.as_ref().is_none_or(|open| **open).then(copy)
    }

    /// Where ranks are threads, none reaches into this rank's buffers any more once this has returned.
    pub(crate) fn withdraw(&self) {
        if let Some(doors) = &self.threads {
            *doors[self.rank as usize].write().unwrap_or_else(PoisonError::into_inner) = false;
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

    /// Whether every rank of the job is to come, as it is unless told otherwise. If not (MPI sessions), one whose process has
    /// ended without ever coming is missed only by who waits for it by name.
    pub fn expect_all(&self, all: bool) {
        // Relaxed: a hint for `check_alive`, which is asked again and again.
        self.some_stay_away.store(!all, Ordering::Relaxed);
    }

    /// Why this rank must not wait any longer for `peer` (for anybody, with `None`): the job was aborted, the peer is
    /// dead, or the launcher is gone and nobody will notice any more. To be asked now and then in a long wait, not on the
    /// way of a message: it may take a system call.
    ///
    /// # Errors
    /// [`Error::PeerGone`], with the rank that is gone; [`Error::Other`] if it is the launcher.
    pub fn check_alive(&self, peer: Option<u32>) -> Result<()> {
        if let Some(abort) = self.header().abort() {
            return Err(Error::PeerGone { rank: abort.rank, how: format!("it {}", abort.what()) });
        }
        let dead = match peer {
            Some(rank) => Some(rank).filter(|rank| self.roster().is_dead(*rank)),
            // Relaxed: as in `expect_all`.
            None if self.some_stay_away.load(Ordering::Relaxed) => {
                self.roster().first_dead_of_those_that_came()
            }
            None => self.roster().first_dead(),
        };
        if let Some(rank) = dead {
            return Err(Error::PeerGone { rank, how: self.roster().how(rank) });
        }
        match self.header().launcher() {
            Some(pid) if is_gone(pid) => Err(Error::Other("the launcher of this job is gone".into())),
            _ => Ok(()),
        }
    }

    /// Lets the launcher and the processes that it started read and write this process's memory by `process_vm_readv`, where
    /// the kernel lets only ancestors do so (Yama): large messages can then be copied in one step.
    pub fn allow_copies(&self) {
        if let Some(pid) = self.header().launcher() {
            // SAFETY: the call takes a number and touches no memory. Where there is no Yama it fails, and nothing is lost.
            unsafe { libc::prctl(libc::PR_SET_PTRACER, pid as libc::c_ulong, 0, 0, 0) };
        }
    }
}

/// Whether no process has this id.
#[must_use]
pub fn is_gone(pid: i32) -> bool {
    // SAFETY: signal 0 is sent to nobody; the call only asks.
    let asked = unsafe { libc::kill(pid, 0) };
    asked < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

fn own_pid() -> i32 {
    // SAFETY: the call has no preconditions and cannot fail.
    unsafe { libc::getpid() }
}

/// The number in an environment variable, if it is set.
pub(crate) fn variable(name: &str) -> Result<Option<i32>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.parse::<i32>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(Error::Segment(format!("{name} is {text:?}; the launcher sets it to a number"))),
    }
}

#[cfg(test)]
mod tests {
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
    fn a_wait_for_the_dead_ends_with_what_became_of_them() {
        let jobs = Job::threads(2).unwrap();
        jobs[0].roster().entry(1).set_exit(Exit(3 << 8));
        jobs[0].roster().declare_dead(1);
        let error = jobs[0].check_alive(Some(1)).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 is gone: exited with status 3 before MPI_Finalize");
        assert!(jobs[0].check_alive(Some(0)).is_ok());
        assert!(jobs[0].check_alive(None).is_err());
    }

    #[test]
    fn who_never_came_is_missed_unless_not_all_are_expected() {
        let memory = Arc::new(Memory::create(2, 0).unwrap());
        memory.roster().entry(0).arrive(0, own_pid()).unwrap();
        let job = Job { memory, rank: 0, threads: None, some_stay_away: Arc::default() };
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
        jobs[1].header().set_abort(1, 13);
        let error = jobs[0].check_alive(Some(0)).unwrap_err().to_string();
        assert_eq!(error, "rank 1 is gone: it called MPI_Abort with code 13");
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
