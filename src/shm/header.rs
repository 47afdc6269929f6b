//! The segment's first page: what all ranks must agree on before they read anything else.
//!
//! - **Header rule 1.** The creator writes the geometry before it starts any rank; no process writes it again.
//! - **Header rule 2.** The abort word changes once, from zero; the first rank that sets it wins.

use crate::shm::failures::RevocationCount;
use crate::shm::layout::Geometry;
#[cfg(not(perusal_loom))]
use crate::shm::layout::HEADER;
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::{Error, Result};

/// "perusal" and the byte order.
pub const MAGIC: u64 = u64::from_le_bytes(*b"perusal\x01");
/// Version of the segment's layout and protocols; ranks and launcher must have the same.
pub const VERSION: u32 = 16;

/// Words for what one rank measures or chooses for the whole job.
pub const TUNING_WORDS: usize = 32;

/// The header over mapped bytes. Offsets are part of the format: magic 0, version 8, ranks 12, cells 16, bulk 20, total
/// 24, job id 32, launcher 40, usable CPUs 44, sender fences 48, places 52, places in use 56, universe 60, number of
/// collective segments 64, abort 128, next context 256, deaths 260, threads 264, survive 268, block locks 272,
/// signatures 280, revocations 288, agreements 292, tuning 384, idle memory 640, block until 648, collective
/// segments 1024, their memory 2048.
#[derive(Debug)]
#[repr(C)]
pub struct JobHeader {
    magic: AtomicU64,
    version: AtomicU32,
    ranks: AtomicU32,
    cells: AtomicU32,
    bulk: AtomicU32,
    total: AtomicU64,
    job_id: AtomicU64,
    launcher: AtomicI32,
    usable_cpus: AtomicU32,
    sender_fences: AtomicU32,
    places: AtomicU32,
    in_use: AtomicU32,
    universe: AtomicU32,
    segments: AtomicU32,
    _apart0: [u8; 60],
    abort: AbortWord,
    _apart1: [u8; 120],
    /// Where the next search for a free context id begins.
    pub(super) next_context: AtomicU32,
    /// How many ranks the launcher has declared dead.
    deaths: AtomicU32,
    /// How many threads use MPI, not counting the first of each rank.
    beside: AtomicU32,
    /// 1 if the job goes on when a rank dies.
    survive: AtomicU32,
    /// Where the locks of accumulates lie in the shared heap; 0 until there are any.
    pub block_locks: AtomicU64,
    /// Where the table of collective calls lies in the shared heap; 0 until there is one.
    pub signatures: AtomicU64,
    /// How many communicators have been revoked.
    pub(super) revocations: RevocationCount,
    /// 1 once the failure table has been used.
    pub(super) agreements: AtomicU32,
    _apart2: [u8; 88],
    /// What one rank measures or chooses for the whole job. All zero at first.
    pub tuning: [AtomicU64; TUNING_WORDS],
    /// What the free collective segments have.
    pub(super) idle_memory: super::IdleMemory,
    /// Until when a rank that waits had better block than yield, in nanoseconds of the machine's clock.
    block_until: AtomicU64,
    _apart3: [u8; 368],
    /// How many members each collective segment still has; 0 for a free one.
    pub(super) collective_segments: [super::SharedCount; crate::limits::COLLECTIVE_SEGMENTS],
    /// What memory each of them has.
    pub(super) segment_memory: [super::SegmentMemory; crate::limits::COLLECTIVE_SEGMENTS],
}

#[cfg(not(perusal_loom))]
const _: () = {
    assert!(core::mem::size_of::<JobHeader>() as u64 <= HEADER);
    assert!(core::mem::offset_of!(JobHeader, in_use) == 56);
    assert!(core::mem::offset_of!(JobHeader, segments) == 64);
    assert!(core::mem::offset_of!(JobHeader, abort) == 128);
    assert!(core::mem::offset_of!(JobHeader, next_context) == 256);
    assert!(core::mem::offset_of!(JobHeader, beside) == 264);
    assert!(core::mem::offset_of!(JobHeader, survive) == 268);
    assert!(core::mem::offset_of!(JobHeader, block_locks) == 272);
    assert!(core::mem::offset_of!(JobHeader, revocations) == 288);
    assert!(core::mem::offset_of!(JobHeader, tuning) == 384);
    assert!(core::mem::offset_of!(JobHeader, idle_memory) == 640);
    assert!(core::mem::offset_of!(JobHeader, block_until) == 648);
    assert!(core::mem::offset_of!(JobHeader, collective_segments) == 1024);
};

// SAFETY: atomics and padding.
unsafe impl super::segment::SharedWords for JobHeader {}

/// Nanoseconds that count of a slow yield: a slice of a computing thread and a little.
/// One that took longer was stopped, and says no more.
const LONGEST_YIELD: u64 = 5_000_000;

/// Where the header has the segment's length.
const TOTAL: u64 = 24;
#[cfg(not(perusal_loom))]
const _: () = assert!(core::mem::offset_of!(JobHeader, total) as u64 == TOTAL);

/// Returns the length of the segment in a file of `whole` bytes. Of a file that is no job's it returns all, so that
/// [`JobHeader::validate`] refuses it.
pub(super) fn length(file: &std::fs::File, whole: u64) -> u64 {
    let mut total = [0; 8];
    let read = std::os::unix::fs::FileExt::read_exact_at(file, &mut total, TOTAL);
    Some(u64::from_le_bytes(total))
        .filter(|total| read.is_ok() && (super::layout::HEADER..=whole).contains(total))
        .unwrap_or(whole)
}

/// What the creator of a job decides ([`JobHeader::write`]).
#[derive(Debug, Clone, Copy)]
pub struct Founding {
    /// Sizes.
    pub geometry: Geometry,
    /// Length of the segment in bytes.
    pub total: u64,
    /// A number that is different for each job of a machine.
    pub job_id: u64,
    /// Process id of the launcher; 0 if there is none. For readers from outside: ranks have it from the launcher itself
    /// ([`crate::shm::Job::launcher`]).
    pub launcher: i32,
    /// CPUs that the job may use.
    pub usable_cpus: u32,
    /// Processes that the program may expect to have in all (MPI_UNIVERSE_SIZE).
    pub universe: u32,
    /// Whether senders fence (see [`JobHeader::sender_fences`]).
    pub sender_fences: bool,
}

/// A rank's call for the end of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abort {
    /// The rank that called, in MPI_COMM_WORLD.
    pub rank: u32,
    /// The error code: that given to MPI_Abort, or of the error.
    pub code: i32,
    /// Whether an error handler called (MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT), not the program.
    pub by_handler: bool,
}

/// In the word of a call for the end of the job: an error handler called. Ranks are far below.
const HANDLER: u64 = 1 << 63;

/// A call for the end of the job, or none (header rule 2).
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AbortWord(AtomicU64);

impl AbortWord {
    /// Calls for the end of the job. Returns false if a rank has done so before.
    pub fn set(&self, abort: Abort) -> bool {
        let handler = if abort.by_handler { HANDLER } else { 0 };
        let word = handler | (u64::from(abort.rank) + 1) << 32 | u64::from(abort.code.cast_unsigned());
        // Release: "abort" edge, pairs with Acquire in `get`; what the caller wrote before is seen.
        self.0.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Returns which of the job's `ranks` ranks called, if one has. A word that names no rank is nobody's call.
    #[inline]
    #[must_use]
    pub fn get(&self, ranks: u32) -> Option<Abort> {
        // Acquire: "abort" edge, pairs with Release in `set`.
        let word = self.0.load(Ordering::Acquire);
        // The upper half is the rank plus one, so that zero means none.
        let rank = ((word & !HANDLER) >> 32).checked_sub(1).filter(|rank| *rank < u64::from(ranks))?;
        let by_handler = word & HANDLER != 0;
        Some(Abort { rank: rank as u32, code: (word as u32).cast_signed(), by_handler })
    }

    /// Forgets the call.
    fn clear(&self) {
        // Relaxed: a rank that still sees the call is one of those whom it concerned, or asks whether it concerns it.
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Abort {
    /// A call by the program of `rank`.
    #[must_use]
    pub const fn by_program(rank: u32, code: i32) -> Self {
        Self { rank, code, by_handler: false }
    }

    /// The code of a Rust rank that panicked; its low byte is what such a process would exit with.
    pub const PANIC: i32 = i32::MIN + 101;
    /// The code of a Rust rank that returned an error.
    pub const FAILED: i32 = i32::MIN + 1;

    /// Returns what the rank did, as the end of a sentence.
    #[must_use]
    pub fn what(&self) -> String {
        match self.code {
            Self::PANIC => "panicked".into(),
            Self::FAILED => "ended with an error".into(),
            code if self.by_handler => {
                format!("ended the job by its error handler, for an error of class {code}")
            }
            code => format!("called MPI_Abort with code {code}"),
        }
    }
}

impl JobHeader {
    /// Adds `more` threads (or removes them) to those that use MPI besides the first of each rank. Returns how many
    /// there are in all ranks.
    pub fn count_threads(&self, more: i32) -> u32 {
        // Relaxed, both: a sample, which only steers how long ranks poll.
        if more != 0 {
            self.beside.fetch_add(more.cast_unsigned(), Ordering::Relaxed);
        }
        self.beside.load(Ordering::Relaxed)
    }

    /// Says that a rank has yielded for `took` nanoseconds until `now`, and that this was slow:
    /// all ranks had better block for as long.
    pub fn yield_was_slow(&self, now: u64, took: u64) {
        // Relaxed, both: a hint, which only steers how ranks wait.
        self.block_until.store(now.saturating_add(took.min(LONGEST_YIELD)), Ordering::Relaxed);
    }

    /// Whether a rank that waits had better block than yield.
    /// A time that no slow yield gives, which some rank has written, is none.
    #[must_use]
    pub fn yields_are_slow(&self, now: u64) -> bool {
        (1..=LONGEST_YIELD).contains(&self.block_until.load(Ordering::Relaxed).saturating_sub(now))
    }

    /// Fills the header of a new segment (header rule 1).
    pub fn write(&self, founding: &Founding) {
        let Founding { geometry, total, job_id, launcher, usable_cpus, universe, sender_fences } = *founding;
        // Relaxed: no other process has the segment yet; starting one orders these before all it does.
        self.version.store(VERSION, Ordering::Relaxed);
        self.ranks.store(geometry.ranks, Ordering::Relaxed);
        self.places.store(geometry.places, Ordering::Relaxed);
        self.segments.store(geometry.segments, Ordering::Relaxed);
        self.in_use.store(geometry.ranks, Ordering::Relaxed);
        self.universe.store(universe, Ordering::Relaxed);
        self.cells.store(geometry.cells, Ordering::Relaxed);
        self.bulk.store(geometry.bulk, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.job_id.store(job_id, Ordering::Relaxed);
        self.launcher.store(launcher, Ordering::Relaxed);
        self.usable_cpus.store(usable_cpus, Ordering::Relaxed);
        self.sender_fences.store(u32::from(sender_fences), Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Relaxed);
    }

    /// Checks that the segment is a job's, of this version and of `len` bytes, and returns its geometry.
    ///
    /// # Errors
    /// [`Error::Segment`] that names what differs.
    pub fn validate(&self, len: u64) -> Result<Geometry> {
        // Relaxed: written before this process was started (header rule 1).
        if self.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(Error::Segment("the inherited memory is not a perusal job".into()));
        }
        let version = self.version.load(Ordering::Relaxed);
        if version != VERSION {
            return Err(Error::Segment(format!(
                "the launcher speaks version {version} of the job memory and this program's MPI library version \
                 {VERSION}; use the mpiexec that was installed with the library"
            )));
        }
        let total = self.total.load(Ordering::Relaxed);
        if total != len {
            return Err(Error::Segment(format!("the job's header speaks of {total} bytes; it has {len}")));
        }
        Ok(Geometry {
            ranks: self.ranks.load(Ordering::Relaxed),
            places: self.places.load(Ordering::Relaxed),
            cells: self.cells.load(Ordering::Relaxed),
            bulk: self.bulk.load(Ordering::Relaxed),
            segments: self.segments.load(Ordering::Relaxed),
        })
    }

    /// Returns the number that is different for each job of a machine. Whoever kills by it reads it before there are
    /// ranks, which can write it.
    #[must_use]
    pub fn job_id(&self) -> u64 {
        self.job_id.load(Ordering::Relaxed)
    }

    /// Returns what the job's memory says is the launcher's process id, for readers from outside; 0 if there is none.
    #[must_use]
    pub fn launcher(&self) -> i32 {
        self.launcher.load(Ordering::Relaxed)
    }

    /// Returns how many processes the program may expect to have in all (MPI_UNIVERSE_SIZE).
    #[must_use]
    pub fn universe(&self) -> u32 {
        self.universe.load(Ordering::Relaxed)
    }

    /// Returns one more than the highest place that any process has had.
    #[inline]
    #[must_use]
    pub(super) fn in_use(&self) -> u32 {
        // Relaxed: a bound. What lies below it was reserved by a system call before,
        // and is zero until somebody writes it.
        self.in_use.load(Ordering::Relaxed)
    }

    /// Says for the launcher that the places below `count` are in use. Their memory has been reserved.
    pub(super) fn set_in_use(&self, count: u32) {
        // Relaxed: see `in_use`.
        self.in_use.fetch_max(count, Ordering::Relaxed);
    }

    /// Returns how many CPUs the job may use: affinity mask and cgroup quota when the job was made.
    #[must_use]
    pub fn usable_cpus(&self) -> u32 {
        self.usable_cpus.load(Ordering::Relaxed)
    }

    /// Returns whether senders must execute a fence before they check for a sleeper. They must where the kernel has no
    /// `membarrier`, and in some oversubscribed jobs: their ranks sleep so often that a system call for each sleep
    /// costs more than a fence for each send.
    #[inline]
    #[must_use]
    pub fn sender_fences(&self) -> bool {
        self.sender_fences.load(Ordering::Relaxed) != 0
    }

    /// Calls for the end of the job. Returns false if a rank has done so before (header rule 2).
    pub fn set_abort(&self, abort: Abort) -> bool {
        self.abort.set(abort)
    }

    /// Says for the launcher, before it starts any rank, that the job goes on when a rank dies.
    pub fn set_survive(&self) {
        // Relaxed: no other process has the segment yet; starting one orders this before all it does.
        self.survive.store(1, Ordering::Relaxed);
    }

    /// Returns whether the job goes on when a rank dies.
    #[must_use]
    pub fn survives(&self) -> bool {
        // Relaxed: written before this process was started.
        self.survive.load(Ordering::Relaxed) != 0
    }

    /// Forgets a call for the launcher, which has ended those whom it concerned, while others go on.
    pub fn clear_abort(&self) {
        self.abort.clear();
    }

    /// Counts a rank that the launcher has declared dead in its roster entry.
    pub(super) fn count_death(&self) {
        // Release: "roster" edge, pairs with Acquire in `JobHeader::deaths`: the entry says so, too.
        self.deaths.fetch_add(1, Ordering::Release);
    }

    /// Returns whether any rank has been declared dead.
    #[inline]
    pub(super) fn any_deaths(&self) -> bool {
        self.deaths() != 0
    }

    /// Returns how many ranks have been declared dead.
    #[inline]
    pub(super) fn deaths(&self) -> u32 {
        // Acquire: "roster" edge, pairs with Release in `JobHeader::count_death`.
        self.deaths.load(Ordering::Acquire)
    }

    /// Returns which of the job's `ranks` ranks called for the end of the job, if one has.
    /// A word that names no rank is nobody's call.
    #[inline]
    #[must_use]
    pub fn abort(&self, ranks: u32) -> Option<Abort> {
        self.abort.get(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::{Abort, LONGEST_YIELD};
    use crate::shm::Memory;

    #[test]
    fn the_first_abort_is_the_one_that_counts() {
        let memory = Memory::create(2, 0).unwrap();
        let header = memory.header();
        assert_eq!(header.abort(2), None);
        assert!(header.set_abort(Abort { by_handler: true, ..Abort::by_program(1, -7) }));
        assert!(!header.set_abort(Abort::by_program(0, 3)));
        let abort = header.abort(2).unwrap();
        assert_eq!((abort.rank, abort.code), (1, -7));
    }

    #[test]
    fn an_abort_word_that_names_no_rank_is_no_abort() {
        let memory = Memory::create(2, 0).unwrap();
        for word in [1, 0xffff_ffff, 3 << 32, u64::MAX] {
            memory.header().abort.0.store(word, crate::sync::Ordering::Relaxed);
            assert_eq!(memory.header().abort(2), None, "{word:#x}");
        }
    }

    #[test]
    fn ranks_block_for_as_long_as_a_slow_yield_took_and_never_for_long() {
        let memory = Memory::create(2, 0).unwrap();
        let (header, now) = (memory.header(), 1 << 40);
        assert!(!header.yields_are_slow(now));
        header.yield_was_slow(now, 1_000_000);
        assert!(header.yields_are_slow(now) && header.yields_are_slow(now + 999_999));
        assert!(!header.yields_are_slow(now + 1_000_000));
        header.yield_was_slow(now, u64::MAX);
        assert!(header.yields_are_slow(now) && !header.yields_are_slow(now + LONGEST_YIELD));
        for word in [now + LONGEST_YIELD + 1, u64::MAX] {
            header.block_until.store(word, crate::sync::Ordering::Relaxed);
            assert!(!header.yields_are_slow(now), "{word:#x}");
        }
    }

    #[test]
    fn a_header_of_another_length_or_version_is_refused_by_name() {
        let memory = Memory::create(2, 0).unwrap();
        let header = memory.header();
        assert!(header.validate(memory.segment().len()).is_ok());
        assert!(header.validate(4096).unwrap_err().to_string().contains("4096"));
        header.version.store(99, crate::sync::Ordering::Relaxed);
        assert!(header.validate(memory.segment().len()).unwrap_err().to_string().contains("version 99"));
        header.magic.store(0, crate::sync::Ordering::Relaxed);
        assert!(
            header.validate(memory.segment().len()).unwrap_err().to_string().contains("not a perusal job")
        );
    }

    #[test]
    fn senders_fence_where_rings_are_watched_by_turns_or_sleepers_cannot() {
        let fences = |ranks| {
            let memory = Memory::create(ranks, 0).unwrap();
            (memory.header().sender_fences(), memory.header().usable_cpus())
        };
        let cannot = !crate::sync::membarrier::is_there();
        let (many, cpus) = fences(4096);
        assert_eq!(many, cpus < 4096 || cannot);
        assert_eq!([1, 64].map(|ranks| fences(ranks).0), [cannot; 2]);
    }
}
