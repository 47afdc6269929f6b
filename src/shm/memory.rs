//! A job's memory: its segment, and where everything lies in it.

use super::collective_segments::CollectiveSegments;
use super::contexts::ContextIds;
use super::failures::Failures;
use super::header::{self, JobHeader};
use super::heap_region::HeapRegion;
use super::layout::{self, Geometry, JobLayout};
use super::roster::{Roster, RosterEntry};
use super::segment::Segment;
use super::telemetry::Telemetry;
use super::{cpus, machine};
use crate::arch::clock;
use crate::limits::{HUGE_PAGE, PAGE};
use crate::sync::membarrier;
use crate::variables::{JobShape, Overrides, VariableId};
use crate::{Error, Result};
use std::os::fd::RawFd;
use std::sync::OnceLock;

/// A job's memory as launcher and observers have it: of no rank in particular.
#[derive(Debug)]
pub struct Memory {
    segment: Segment,
    layout: JobLayout,
    /// Mapped when it is first needed; then `None` if the job has none or this process cannot map it.
    heap: OnceLock<Option<HeapRegion>>,
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
    /// Makes the memory of a job of `ranks` ranks, with ring sizes from the environment. `launcher` is the process that
    /// supervises them, 0 for none.
    ///
    /// # Errors
    /// [`Error::Segment`] if sizes are wrong or there is not enough memory.
    pub fn create(ranks: u32, launcher: i32) -> Result<Self> {
        Self::create_with(ranks, launcher, &Overrides::from_environment()?)
    }

    /// The same with ring sizes from `overrides`.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory.
    pub fn create_with(ranks: u32, launcher: i32, overrides: &Overrides) -> Result<Self> {
        Self::create_universe(ranks, Universe::default(), launcher, overrides)
    }

    /// The same with room for further processes, whose memory is reserved when they are started
    /// ([`Memory::reserve_places`]).
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory.
    pub fn create_universe(
        ranks: u32,
        universe: Universe,
        launcher: i32,
        overrides: &Overrides,
    ) -> Result<Self> {
        let shape = shape_of(ranks, cpus::usable(), overrides);
        let wanted = Geometry::with(ranks, overrides).with_places(universe.places);
        // Half of the address space, as the ranks, which have the same limit, have to map it too.
        let room = machine::address_space().map_or(u64::MAX, |limit| limit / 2).min(machine::file_size());
        let layout = JobLayout::new(wanted.within(room, universe.size, overrides))?;
        let heap = HeapRegion::room(layout.total(), shape.heap).and_then(|(at, len)| at.checked_add(len));
        let segment = Segment::create_before(layout.total(), heap.unwrap_or(0))?;
        segment.reserve(0, layout::HEADER + PAGE as u64)?;
        segment.reserve(layout.rank_block(0), layout.rank_block_size() * u64::from(ranks))?;
        let memory = Self { segment, layout, heap: OnceLock::new() };
        memory.header().write(&header::Founding {
            geometry: layout.geometry(),
            total: layout.total(),
            job_id: clock::now() ^ u64::from(std::process::id()) << 40,
            launcher,
            usable_cpus: shape.usable_cpus,
            universe: universe.size.max(ranks),
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

    /// The same for a process that may not come to join the job: see [`Segment::attach_and_pass_on`].
    ///
    /// # Errors
    /// As [`Memory::attach`].
    pub fn attach_and_pass_on(fd: RawFd) -> Result<Self> {
        Self::check(Segment::attach_and_pass_on(fd, header::length)?)
    }

    /// Maps the memory of a job of which this process is no part, for reading only. What stores there kills this
    /// process; roster entries, telemetry and the header's numbers can be read.
    ///
    /// # Errors
    /// As [`Memory::attach`].
    pub fn observe(file: std::fs::File) -> Result<Self> {
        Self::check(Segment::observe(file, header::length)?)
    }

    fn check(segment: Segment) -> Result<Self> {
        if segment.len() < layout::HEADER {
            return Err(Error::Segment(format!("the inherited memory has {} bytes", segment.len())));
        }
        let geometry = segment.words::<JobHeader>(0).validate(segment.len())?;
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

    /// Returns the memory of the shared heap, which it maps if need be. `None` if the job has none, or this process
    /// cannot map so much.
    pub fn heap_region(&self) -> Option<&HeapRegion> {
        self.heap.get_or_init(|| HeapRegion::map(&self.segment)).as_ref()
    }

    /// Returns the memory of the shared heap if this process has mapped it. If not, none of its buffers lies there.
    #[inline]
    #[must_use]
    pub fn mapped_heap_region(&self) -> Option<&HeapRegion> {
        self.heap.get()?.as_ref()
    }

    /// What the defaults of control variables follow from here.
    #[must_use]
    pub fn shape(&self) -> JobShape {
        let Geometry { ranks, cells, bulk, .. } = self.layout.geometry();
        JobShape {
            ranks,
            usable_cpus: self.header().usable_cpus(),
            ring_cells: cells,
            ring_bulk: bulk,
            sender_fences: self.header().sender_fences(),
            heap: HeapRegion::of(&self.segment).map_or(0, |(_, len)| len),
            streams: crate::arch::streams(),
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

    /// Number of ranks that the job began with.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.layout.ranks()
    }

    /// Number of processes that there is room for. Ranks of the job are below it.
    #[inline]
    #[must_use]
    pub fn places(&self) -> u32 {
        self.layout.places()
    }

    /// Number of places that have had a process, or are about to.
    /// Only their roster entries and telemetry pages have memory.
    #[inline]
    #[must_use]
    pub fn places_in_use(&self) -> u32 {
        self.header().in_use().min(self.places())
    }

    /// Number of the job's own processes so far: places in use that are not those of guests.
    #[must_use]
    pub fn processes(&self) -> u32 {
        (0..self.places_in_use()).filter(|place| self.roster().entry(*place).guest().is_none()).count() as u32
    }

    /// As [`Self::reserve_places`], for places some of which may have had processes: their telemetry begins anew. Their
    /// doorbells and rings stay as the former processes have left them ([`crate::engine::Engine::retire`]).
    ///
    /// # Errors
    /// As for [`Self::reserve_places`].
    pub fn renew_places(&self, first: u32, count: u32) -> Result<()> {
        for place in first..first.saturating_add(count).min(self.places_in_use()) {
            // Where the kernel keeps the memory, counters go on from where they are.
            let _ = self.segment.give_back(self.layout.telemetry(place), layout::TELEMETRY);
        }
        self.reserve_places(first, count)
    }

    /// Reserves the blocks of the places `first..first + count` for processes that the launcher is about to start, and
    /// says that they are in use.
    ///
    /// # Errors
    /// [`Error::Segment`] when memory has run out; [`Error::Intern`] for places that there are not.
    pub fn reserve_places(&self, first: u32, count: u32) -> Result<()> {
        let end =
            first.checked_add(count).filter(|end| *end <= self.places() && count > 0).ok_or_else(|| {
                Error::Intern(format!("places {first} and {count} on of a job of {}", self.places()))
            })?;
        let block = self.layout.rank_block_size();
        self.segment.reserve(self.layout.rank_block(first), block * u64::from(count))?;
        self.header().set_in_use(end);
        Ok(())
    }

    /// The header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &JobHeader {
        self.segment.words(0)
    }

    /// The roster: which ranks have arrived, and which have died.
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

    /// Says for the launcher, before it starts any rank, that the job goes on when a rank dies.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is not enough memory.
    pub fn survive(&self) -> Result<()> {
        self.failures().words(super::contexts::WORLD)?;
        self.header().set_survive();
        Ok(())
    }

    /// Deaths, revoked communicators, and agreements.
    #[inline]
    #[must_use]
    pub fn failures(&self) -> Failures<'_> {
        Failures { memory: self }
    }

    /// The collective segments.
    #[inline]
    #[must_use]
    pub fn collective_segments(&self) -> CollectiveSegments<'_> {
        CollectiveSegments { memory: self }
    }

    fn check_rank(&self, rank: u32) {
        assert!(rank < self.places(), "rank {rank} of a job of {}", self.places());
    }

    pub(super) fn roster_entry(&self, rank: u32) -> &RosterEntry {
        self.check_rank(rank);
        self.segment.words(self.layout.roster(rank))
    }

    /// The telemetry page of `rank`; only that rank writes it.
    ///
    /// # Panics
    /// If `rank` is not in the job.
    #[inline]
    #[must_use]
    pub fn telemetry(&self, rank: u32) -> &Telemetry {
        self.check_rank(rank);
        self.segment.words(self.layout.telemetry(rank))
    }

    /// Start and bytes of the doorbell area of `rank`: reserved, zero at first, on a 128-byte boundary, at least 2048
    /// bytes, and a bit and two bytes for every rank. Valid while `self` lives.
    ///
    /// # Panics
    /// If `rank` is not in the job.
    #[inline]
    #[must_use]
    pub fn doorbell(&self, rank: u32) -> (*mut u8, usize) {
        self.check_rank(rank);
        let at = self.layout.doorbell(rank) as usize;
        (self.segment.base().wrapping_add(at), self.layout.doorbell_size() as usize)
    }

    /// Returns how many records the reader of a ring has taken, and how many of their bytes lay beside the cells: a
    /// sample, behind by a quarter of the ring at most. It reads the file, so that a ring without memory gets none.
    #[must_use]
    pub fn ring_heads(&self, from: u32, to: u32) -> Option<(u64, u64)> {
        use std::os::unix::fs::FileExt;
        let mut words = [0; 16];
        // The consumer's words come first (`RingControl`).
        self.segment.file().read_exact_at(&mut words, self.layout.ring(from, to).control).ok()?;
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| words[at + byte]));
        Some((word(0), word(8)))
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
        let address = |offset: u64| self.segment.base().wrapping_add(offset as usize);
        RingArea {
            control: address(at.control),
            cells: address(at.cells),
            cell_count: cells,
            bulk: address(at.bulk),
            bulk_bytes: bulk,
        }
    }

    /// Reserves the memory of the ring that `from` writes and `to` reads.
    /// A system call: the producer remembers that it was done.
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

    /// Reserves the first page of that ring for its consumer, which must not touch unreserved pages; it reads the other
    /// pages only where the producer has written. (Reserving all of them would do harm: the kernel clears pages that
    /// were reserved and not yet written, and maps all cleared pages around the first that is read.) Errors and panics
    /// are those of `reserve_ring`.
    pub fn reserve_ring_start(&self, from: u32, to: u32) -> Result<()> {
        self.check_rank(from);
        self.check_rank(to);
        self.segment.reserve(self.layout.ring(from, to).control, PAGE as u64)
    }
}

/// How many processes a job may come to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Universe {
    /// Processes that there is room for; the job's ranks if that is less.
    pub places: u32,
    /// What programs find in MPI_UNIVERSE_SIZE; the job's ranks if that is less.
    pub size: u32,
}

impl Universe {
    /// The universe of a job of `ranks` ranks on `cpus` CPUs if nobody asks for another one. Places that nobody takes
    /// cost address space only.
    #[must_use]
    pub fn usual(ranks: u32, cpus: u32) -> Self {
        Self::of(ranks, ranks.max(cpus))
    }

    /// The universe of a job of `ranks` ranks in which programs expect `size` processes.
    #[must_use]
    pub fn of(ranks: u32, size: u32) -> Self {
        let spare = ranks.min(MOST_SPARE);
        Self { places: size.max(ranks.saturating_add(spare)).max(FEWEST_PLACES), size }
    }
}

/// Fewest places of a job with a launcher: as many as there are flags in a word of a doorbell.
const FEWEST_PLACES: u32 = 64;
/// Most places that a job has beyond its ranks unless they are asked for:
/// address space grows with the square of the places.
const MOST_SPARE: u32 = 1024;

/// What the defaults of control variables follow from in a job of `ranks` ranks.
pub(super) fn shape_of(ranks: u32, usable_cpus: u32, overrides: &Overrides) -> JobShape {
    let Geometry { ranks, cells, bulk, .. } = Geometry::with(ranks, overrides);
    let heap = overrides.number(VariableId::SharedHeap).unwrap_or_else(usual_heap);
    let said = overrides.number(VariableId::UsableCpus).and_then(|cpus| u32::try_from(cpus).ok());
    let shape = JobShape {
        ranks,
        usable_cpus: said.unwrap_or(usable_cpus),
        ring_cells: cells,
        ring_bulk: bulk,
        sender_fences: true,
        heap,
        streams: crate::arch::streams(),
    };
    let sleepers_fence = membarrier::is_there() && shape.sleepers_may_fence();
    JobShape { sender_fences: !sleepers_fence, ..shape }
}

/// Bytes of the shared heap by default: half of the memory that the job may have, so that a full heap leaves as much
/// for all else, and a quarter of the address space of a process, if that is limited.
/// In Miri all of it is allocated at once.
fn usual_heap() -> u64 {
    if cfg!(miri) {
        4 * HUGE_PAGE as u64
    } else {
        let room = machine::address_space().map_or(u64::MAX, |limit| limit / 4);
        (machine::memory() / 2).min(room) / HUGE_PAGE as u64 * HUGE_PAGE as u64
    }
}
