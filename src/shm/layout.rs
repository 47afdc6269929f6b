//! Where everything lies in the segment: pure arithmetic, the same in every process.
//!
//! ```text
//! header | context-id table | failure table | rank block × n | ring (from, to) × n² | extra (n: places)
//! rank block:  telemetry page | roster entry | doorbell area
//! ring:        control (3 × 128 B: producer's, consumer's, shared copies) | cells (C × 64 B) | bulk (B bytes) | blocks
//! extra:       collective segment × 256
//! collective segment: counts | outcomes | sleepers | slots of each member | (page) bulk: 4 parts
//! ```
//!
//! Regions, rank blocks and rings start on pages. All numbers are `u64`; a size that does not fit is an error.

use crate::arch::streams;
use crate::limits::{
    APART, COLLECTIVE_SEGMENTS, CONTEXTS, LINE, MAX_BULK, MAX_CELLS, MIN_BULK, MIN_CELLS, PAGE, TEAM_PART,
    TEAM_PARTS, TEAM_ROUNDS, TEAM_SLOT, block_bytes, block_count,
};
use crate::variables::{Overrides, VariableId};
use crate::{Error, Result};
use core::ops::Range;

/// Bytes of the header region.
pub const HEADER: u64 = PAGE as u64;
/// Bytes of the context-id table: one `u32` reference count an entry.
pub const CONTEXT_TABLE: u64 = CONTEXTS as u64 * 4;
/// Bytes of a context id's words in the failure table ([`crate::shm::failures::FailureWords`]).
pub const FAILURE_WORDS: u64 = 16;
/// Bytes of the failure table.
pub const FAILURE_TABLE: u64 = CONTEXTS as u64 * FAILURE_WORDS;
/// Bytes of a rank's telemetry page.
pub const TELEMETRY: u64 = 2 * PAGE as u64;
/// Bytes of a rank's roster entry.
pub const ROSTER_ENTRY: u64 = 2 * APART as u64;
/// Bytes of a rank's doorbell area, without its bitmap and its counters of peers.
pub const DOORBELL_FIXED: u64 = 2048;
/// Bytes of a ring's control: producer's words, consumer's words, the word of shared copies.
pub const RING_CONTROL: u64 = 3 * APART as u64;

const PAGE64: u64 = PAGE as u64;
const _: () = assert!(CONTEXT_TABLE.is_multiple_of(PAGE64) && FAILURE_TABLE.is_multiple_of(PAGE64));
const _: () = assert!(DOORBELL_FIXED.is_multiple_of(APART as u64));
const _: () = assert!(ROSTER_ENTRY.is_multiple_of(APART as u64));
const _: () = assert!(RING_CONTROL.is_multiple_of(LINE as u64));

/// The sizes that a layout follows from. The header has them, so that all processes agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Ranks that the job begins with, at least 1.
    pub ranks: u32,
    /// Processes that there is room for: these ranks and those that are spawned. At least `ranks`.
    pub places: u32,
    /// Cells of a ring, each 64 bytes; a power of two.
    pub cells: u32,
    /// Bytes of a ring's bulk area; a power of two.
    pub bulk: u32,
    /// Collective segments, at least 1.
    pub segments: u32,
}

/// Collective segments where address space is not limited.
const USUAL_SEGMENTS: u32 = COLLECTIVE_SEGMENTS as u32;

impl Geometry {
    /// Returns the default sizes for `ranks`: the more pairs there are, the smaller a ring is.
    #[must_use]
    pub fn of(ranks: u32) -> Self {
        Self::where_messages_stream(ranks, streams())
    }

    /// The same; `streams` says that long messages go through rings where others copy them by the kernel
    /// (docs/decisions/0050).
    fn where_messages_stream(ranks: u32, streams: bool) -> Self {
        let (cells, bulk) = match ranks {
            0..=16 if streams => (256, 512 << 10),
            0..=8 => (256, 256 << 10),
            9..=32 => (128, 64 << 10),
            33..=128 => (64, 32 << 10),
            _ => (64, 16 << 10),
        };
        Self { ranks, places: ranks, cells, bulk, segments: USUAL_SEGMENTS }
    }

    /// The same with room for `places` processes in all, or for the ranks if they are more.
    #[must_use]
    pub fn with_places(self, places: u32) -> Self {
        Self { places: places.max(self.ranks), ..self }
    }

    /// The usual sizes, or those that PERUSAL_RING_CELLS and PERUSAL_RING_BULK (bytes) name.
    ///
    /// # Errors
    /// [`Error::Other`] if a variable is set to a value that it cannot have.
    pub fn from_environment(ranks: u32) -> Result<Self> {
        Ok(Self::with(ranks, &Overrides::from_environment()?))
    }

    /// Returns the default sizes, or those that `overrides` ask for.
    #[must_use]
    pub fn with(ranks: u32, overrides: &Overrides) -> Self {
        let usual = Self::of(ranks);
        // Overrides hold powers of two within the limits of these types.
        let asked = |id, usual| overrides.number(id).map_or(usual, |number| number as u32);
        Self {
            ranks,
            places: ranks,
            cells: asked(VariableId::RingCells, usual.cells),
            bulk: asked(VariableId::RingBulk, usual.bulk),
            segments: usual.segments,
        }
    }

    /// The same, or as much less as it takes to need no more than `room` bytes of address space: fewer collective
    /// segments, fewer places for processes that are spawned (`places` at least), and smaller rings, unless `overrides`
    /// ask for their sizes. Where nothing is small enough, the smallest.
    #[must_use]
    pub fn within(self, room: u64, places: u32, overrides: &Overrides) -> Self {
        let fewer = |segments: u32| Self { segments: segments.min(self.segments), ..self };
        let alone = Self { places: places.max(self.ranks).min(self.places), ..fewer(8) };
        let asked = |id, size: u32, least: u32| overrides.number(id).map_or(size.min(least), |_| size);
        let smallest = Self {
            segments: 2,
            cells: asked(VariableId::RingCells, self.cells, 64),
            bulk: asked(VariableId::RingBulk, self.bulk, 16 << 10),
            ..alone
        };
        let fits = |one: &Self| JobLayout::new(*one).is_ok_and(|layout| layout.total() <= room);
        [self, fewer(32), fewer(8), alone].into_iter().find(fits).unwrap_or(smallest)
    }
}

/// Offsets of everything, in bytes from the start of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLayout {
    geometry: Geometry,
    rank_block: u64,
    ring: u64,
    rings_at: u64,
    extra_at: u64,
    collective_segment: CollectiveSegmentLayout,
}

/// Sizes within a collective segment, the same for all of them. All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveSegmentLayout {
    /// Where the bits of sleepers begin; before them are counts and outcomes.
    pub sleepers: u64,
    /// Where the slots of member 0 begin.
    pub slots: u64,
    /// Where the bulk begins, on a page; before it is the control part.
    pub bulk: u64,
    /// The most that one part of the bulk may have; whole pages.
    pub part: u64,
}

impl CollectiveSegmentLayout {
    fn of(ranks: u64) -> Option<Self> {
        let sleepers = (TEAM_ROUNDS * (APART + TEAM_SLOT)) as u64;
        let slots = sleepers + (ranks.div_ceil(64) * 8).next_multiple_of(APART as u64);
        let bulk = pages(slots.checked_add(ranks.checked_mul((TEAM_ROUNDS * TEAM_SLOT) as u64)?)?)?;
        // A page at least for each member.
        let part = (TEAM_PART as u64).max(ranks.checked_mul(PAGE64)?);
        Some(Self { sleepers, slots, bulk, part })
    }

    /// The control part of a segment with `members` members: whole pages, no more than to the bulk.
    #[must_use]
    pub fn control(&self, members: u32) -> u64 {
        let slots = u64::from(members) * (TEAM_ROUNDS * TEAM_SLOT) as u64;
        pages(self.slots + slots).map_or(self.bulk, |control| control.min(self.bulk))
    }

    /// The whole segment.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bulk + self.part * TEAM_PARTS as u64
    }
}

/// Where the parts of one ring lie, in bytes from the start of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOffsets {
    /// Start of the ring and of its control: producer's 128 bytes, consumer's, shared copies.
    pub control: u64,
    /// Start of the cells.
    pub cells: u64,
    /// Start of the bulk area.
    pub bulk: u64,
}

impl JobLayout {
    /// Lays out a job.
    ///
    /// # Errors
    /// [`Error::Segment`] if there are no ranks, a size is out of its limits, or the sum leaves 63 bits.
    pub fn new(geometry: Geometry) -> Result<Self> {
        let Geometry { ranks, places, cells, bulk, segments } = geometry;
        let fits = |value: u32, min, max| value.is_power_of_two() && (min..=max).contains(&value);
        if ranks == 0
            || places < ranks
            || !fits(cells, MIN_CELLS, MAX_CELLS)
            || !fits(bulk, MIN_BULK, MAX_BULK)
            || !(1..=USUAL_SEGMENTS).contains(&segments)
        {
            return Err(Error::Segment(format!(
                "{ranks} ranks with rings of {cells} cells and {bulk} bytes of bulk and {segments} collective segments make no layout"
            )));
        }
        Self::sum(geometry).ok_or_else(|| {
            Error::Segment(format!(
                "{ranks} ranks with rings of {cells} cells and {bulk} bytes exceed 63 bits"
            ))
        })
    }

    fn sum(geometry: Geometry) -> Option<Self> {
        let n = u64::from(geometry.places);
        let bitmap = n.div_ceil(64).checked_mul(8)?;
        let counts = n.checked_mul(2)?;
        let rank_block = TELEMETRY + pages(ROSTER_ENTRY + DOORBELL_FIXED + bitmap + counts)?;
        let bulk = geometry.bulk as usize;
        let blocks = (block_count(bulk) * block_bytes(bulk)) as u64;
        let ring = pages(RING_CONTROL + u64::from(geometry.cells) * LINE as u64 + bulk as u64 + blocks)?;
        let rings_at = (HEADER + CONTEXT_TABLE + FAILURE_TABLE).checked_add(rank_block.checked_mul(n)?)?;
        let extra_at = rings_at.checked_add(ring.checked_mul(n.checked_mul(n)?)?)?;
        let collective_segment = CollectiveSegmentLayout::of(n)?;
        let end = extra_at.checked_add(collective_segment.total().checked_mul(geometry.segments.into())?)?;
        (end <= i64::MAX as u64).then_some(Self {
            geometry,
            rank_block,
            ring,
            rings_at,
            extra_at,
            collective_segment,
        })
    }

    /// What the layout was made from.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Number of ranks that the job begins with.
    #[inline]
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.geometry.ranks
    }

    /// Number of processes that there is room for.
    #[inline]
    #[must_use]
    pub fn places(&self) -> u32 {
        self.geometry.places
    }

    /// Length of the segment in bytes of address space.
    #[must_use]
    pub fn total(&self) -> u64 {
        let (start, bytes) = self.extra();
        start + bytes
    }

    /// Start of the context-id table.
    #[must_use]
    pub fn contexts(&self) -> u64 {
        HEADER
    }

    /// Start of the failure table.
    #[must_use]
    pub fn failures(&self) -> u64 {
        HEADER + CONTEXT_TABLE
    }

    /// Where the rank blocks end. A job needs those of its ranks from the start on; the rest is per pair.
    #[must_use]
    pub fn fixed(&self) -> u64 {
        self.rings_at
    }

    /// Bytes of one rank's block.
    #[must_use]
    pub fn rank_block_size(&self) -> u64 {
        self.rank_block
    }

    /// Start of the block of `rank`, which must be in `0..places`.
    #[inline]
    #[must_use]
    pub fn rank_block(&self, rank: u32) -> u64 {
        debug_assert!(rank < self.places());
        HEADER + CONTEXT_TABLE + FAILURE_TABLE + u64::from(rank) * self.rank_block
    }

    /// Start of the telemetry page of `rank`.
    #[inline]
    #[must_use]
    pub fn telemetry(&self, rank: u32) -> u64 {
        self.rank_block(rank)
    }

    /// Start of the roster entry of `rank`.
    #[inline]
    #[must_use]
    pub fn roster(&self, rank: u32) -> u64 {
        self.rank_block(rank) + TELEMETRY
    }

    /// Start of the doorbell area of `rank`, on a 128-byte boundary.
    #[inline]
    #[must_use]
    pub fn doorbell(&self, rank: u32) -> u64 {
        self.roster(rank) + ROSTER_ENTRY
    }

    /// Bytes of a doorbell area: at least 2048, and a bit and two bytes for every rank.
    #[must_use]
    pub fn doorbell_size(&self) -> u64 {
        self.rank_block - TELEMETRY - ROSTER_ENTRY
    }

    /// Bytes of one ring, a multiple of the page.
    #[must_use]
    pub fn ring_size(&self) -> u64 {
        self.ring
    }

    /// Where the ring lies that `from` writes and `to` reads; both must be in `0..places`. The rings that one rank
    /// reads are neighbours.
    #[inline]
    #[must_use]
    pub fn ring(&self, from: u32, to: u32) -> RingOffsets {
        debug_assert!(from < self.places() && to < self.places());
        let index = u64::from(to) * u64::from(self.places()) + u64::from(from);
        let control = self.rings_at + index * self.ring;
        let cells = control + RING_CONTROL;
        RingOffsets { control, cells, bulk: cells + u64::from(self.geometry.cells) * LINE as u64 }
    }

    /// Start and bytes of the region behind the rings: the collective segments.
    #[must_use]
    pub fn extra(&self) -> (u64, u64) {
        (self.extra_at, self.collective_segment.total() * u64::from(self.collective_segments()))
    }

    /// Number of collective segments.
    #[inline]
    #[must_use]
    pub fn collective_segments(&self) -> u32 {
        self.geometry.segments
    }

    /// Sizes within a collective segment.
    #[inline]
    #[must_use]
    pub fn collective_segment_layout(&self) -> CollectiveSegmentLayout {
        self.collective_segment
    }

    /// The collective segments that a single operation may take: communicators find the others.
    #[must_use]
    pub fn segments_of_operations(&self) -> Range<u32> {
        self.collective_segments().div_ceil(2)..self.collective_segments()
    }

    /// Start of collective segment `index`, which must be in `0..collective_segments`; on a page.
    #[inline]
    #[must_use]
    pub fn collective_segment(&self, index: u32) -> u64 {
        debug_assert!(index < self.collective_segments());
        self.extra_at + u64::from(index) * self.collective_segment.total()
    }
}

/// `bytes` rounded up to whole pages.
fn pages(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(ranks: u32) -> Geometry {
        Geometry { ranks, places: ranks, cells: 64, bulk: 4096, segments: USUAL_SEGMENTS }
    }

    #[test]
    fn a_job_takes_no_more_address_space_than_there_is() {
        let none = Overrides::default();
        let total = |geometry: Geometry| JobLayout::new(geometry).unwrap().total();
        let wanted = Geometry::of(4).with_places(64);
        assert_eq!(wanted.within(u64::MAX, 4, &none), wanted);
        let mut before = u64::MAX;
        for room in [2 << 30, 3 << 29, 100 << 20, 30 << 20] {
            let chosen = wanted.within(room, 4, &none);
            assert!(total(chosen) <= room && total(chosen) <= before, "{chosen:?}");
            before = total(chosen);
        }
        // What is asked for stays.
        let mut asked = Overrides::default();
        asked.set(VariableId::RingBulk, OverrideValue::Number(65_536), ValueSource::Tool);
        let chosen = Geometry::with(4, &asked).with_places(64).within(1, 8, &asked);
        assert_eq!((chosen.places, chosen.cells, chosen.bulk, chosen.segments), (8, 64, 65_536, 2));
    }
    use crate::variables::{OverrideValue, ValueSource};

    fn layout(ranks: u32) -> JobLayout {
        JobLayout::new(Geometry::of(ranks)).unwrap()
    }

    #[test]
    fn the_page_says_where_telemetry_lies() {
        let page = include_str!("../../docs/job-memory.md");
        let first = layout(64).telemetry(0);
        assert!(page.contains(&format!("is at `{first} + r × block`")), "{first}");
    }

    #[test]
    fn regions_follow_each_other_without_overlap_and_end_at_the_total() {
        for ranks in [1, 2, 3, 8, 9, 32, 33, 128, 129, 1000] {
            let l = layout(ranks);
            let mut end = HEADER + CONTEXT_TABLE + FAILURE_TABLE;
            for rank in 0..ranks {
                assert_eq!(l.rank_block(rank), end);
                assert_eq!(l.telemetry(rank), end);
                assert!(l.roster(rank) >= l.telemetry(rank) + TELEMETRY);
                assert!(l.doorbell(rank) >= l.roster(rank) + ROSTER_ENTRY);
                end = l.doorbell(rank) + l.doorbell_size();
                assert_eq!(end, l.rank_block(rank) + l.rank_block_size());
            }
            assert_eq!(end, l.fixed());
            for to in 0..ranks.min(70) {
                for from in 0..ranks {
                    let ring = l.ring(from, to);
                    assert_eq!(
                        ring.control,
                        l.fixed() + (u64::from(to) * u64::from(ranks) + u64::from(from)) * l.ring_size()
                    );
                    assert_eq!(ring.cells - ring.control, RING_CONTROL);
                    assert_eq!(ring.bulk - ring.cells, u64::from(l.geometry().cells) * 64);
                    assert!(ring.bulk + u64::from(l.geometry().bulk) <= ring.control + l.ring_size());
                }
            }
            let last = l.ring(ranks - 1, ranks - 1);
            assert_eq!(last.control + l.ring_size(), l.extra().0);
            assert_eq!(l.total(), l.extra().0 + l.extra().1);
        }
    }

    #[test]
    fn everything_lies_on_its_alignment() {
        for ranks in [1, 7, 64, 129] {
            let l = layout(ranks);
            assert!(l.rank_block(ranks - 1).is_multiple_of(PAGE64));
            assert!(l.doorbell(ranks - 1).is_multiple_of(128));
            let ring = l.ring(0, ranks - 1);
            assert!(ring.control.is_multiple_of(PAGE64));
            assert!(ring.cells.is_multiple_of(64));
            assert!(ring.bulk.is_multiple_of(64));
        }
    }

    #[test]
    fn collective_segments_lie_behind_the_rings_and_have_room_for_every_rank() {
        for ranks in [1, 2, 64, 65, 1000] {
            let l = layout(ranks);
            let segment = l.collective_segment_layout();
            assert!(segment.slots - segment.sleepers >= u64::from(ranks).div_ceil(64) * 8);
            assert!(segment.bulk - segment.slots >= u64::from(ranks) * (TEAM_ROUNDS * TEAM_SLOT) as u64);
            assert!(segment.part >= u64::from(ranks) * PAGE64 && segment.bulk.is_multiple_of(PAGE64));
            assert_eq!(l.collective_segment(0), l.extra().0);
            assert_eq!(l.collective_segment(COLLECTIVE_SEGMENTS as u32 - 1) + segment.total(), l.total());
        }
    }

    #[test]
    fn a_doorbell_has_a_bit_and_a_count_for_every_rank() {
        for ranks in [1, 64, 65, 4096, 20_000] {
            let bell = crate::doorbell::Doorbell::bytes(ranks as usize) as u64;
            assert!(layout(ranks).doorbell_size() >= bell, "{ranks} ranks");
        }
    }

    #[test]
    fn rings_shrink_as_ranks_grow() {
        for (ranks, cells, bulk, bulk_if_streams) in [
            (8, 256, 256, 512),
            (9, 128, 64, 512),
            (16, 128, 64, 512),
            (32, 128, 64, 64),
            (128, 64, 32, 32),
            (129, 64, 16, 16),
        ] {
            let of = |streams| Geometry::where_messages_stream(ranks, streams);
            assert_eq!(of(false), Geometry { cells, bulk: bulk << 10, ..usual(ranks) });
            assert_eq!((of(true).bulk, of(true).cells >= cells), (bulk_if_streams << 10, true));
        }
    }

    #[test]
    fn too_much_is_an_error_and_not_a_wrapped_number() {
        let huge = Geometry { cells: MAX_CELLS, bulk: MAX_BULK, ..usual(u32::MAX) };
        assert!(JobLayout::new(huge).unwrap_err().to_string().contains("63 bits"));
        assert!(JobLayout::new(Geometry { cells: 64, bulk: 4096, ..usual(0) }).is_err());
        assert!(JobLayout::new(Geometry { cells: 65, bulk: 4096, ..usual(2) }).is_err());
        assert!(JobLayout::new(Geometry { cells: 64, bulk: 5000, ..usual(2) }).is_err());
        assert!(JobLayout::new(Geometry { segments: 0, ..usual(2) }).is_err());
        assert!(JobLayout::new(Geometry { segments: 257, ..usual(2) }).is_err());
    }

    #[test]
    fn rings_are_as_large_as_was_asked_for() {
        let mut overrides = Overrides::default();
        assert_eq!(Geometry::with(16, &overrides), Geometry::of(16));
        overrides.set(VariableId::RingCells, OverrideValue::Number(512), ValueSource::Tool);
        assert_eq!(Geometry::with(16, &overrides), Geometry { cells: 512, ..Geometry::of(16) });
    }
}
