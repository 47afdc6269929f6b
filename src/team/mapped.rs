//! A collective segment in the job's memory.

use super::storage::{DEPTH, PARTS, TeamMemory, TeamSlot};
use crate::limits::{APART, TEAM_PARTS, TEAM_ROUNDS, TEAM_SLOT};
use crate::shm::Memory;
use crate::shm::layout::CollectiveSegmentLayout;
use crate::sync::AtomicU64;
use core::ptr::NonNull;

#[cfg(not(perusal_loom))]
const _: () = {
    assert!(DEPTH == TEAM_ROUNDS && PARTS == TEAM_PARTS);
    assert!(size_of::<TeamSlot>() + 8 == TEAM_SLOT);
    // A slot lies eight bytes behind its word, so that its payload is on a 16-byte boundary.
    assert!((8 + core::mem::offset_of!(TeamSlot, payload)).is_multiple_of(16));
};

/// A collective segment laid over mapped bytes: counts, outcomes, sleepers, slots, bulk.
#[derive(Debug, Clone, Copy)]
pub struct MappedSegment {
    base: NonNull<u8>,
    layout: CollectiveSegmentLayout,
    /// Bytes of a part of the bulk that have memory.
    part: usize,
    members: usize,
}

// SAFETY: all access goes through atomics or under the team rules, from whatever thread is a member.
unsafe impl Send for MappedSegment {}

impl MappedSegment {
    /// Segment `index` of a job, for `members`.
    ///
    /// # Safety
    ///
    /// The segment was taken for a communicator of so many members, of which the caller is one that has not left; the
    /// memory lives as long as any copy of this.
    ///
    /// # Panics
    /// If `index` is no segment's, or the job has fewer ranks.
    pub unsafe fn new(memory: &Memory, index: u32, members: usize) -> Self {
        assert!(index < memory.layout().collective_segments() && members <= memory.places() as usize);
        // SAFETY: collective segments lie inside the job's memory (layout), so the sum stays in the mapping.
        let base = unsafe { memory.segment().base().add(memory.layout().collective_segment(index) as usize) };
        let base = NonNull::new(base).expect("the segment is not mapped at zero");
        Self { base, layout: memory.layout().collective_segment_layout(), part: 0, members }
    }

    /// The word at `offset`, which is a multiple of eight inside the control.
    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!((offset as u64) < self.layout.bulk);
        // SAFETY: inside the control, which is reserved, page-aligned and mapped while this member has not left the
        // team; words of the control outside of slots are only ever accessed as atomics.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    fn outcome_at(at: usize) -> usize {
        debug_assert!(at < TEAM_ROUNDS);
        TEAM_ROUNDS * APART + at * TEAM_SLOT
    }

    #[inline(always)]
    fn slot_at(&self, member: usize, at: usize) -> usize {
        debug_assert!(member < self.members && at < TEAM_ROUNDS);
        self.layout.slots as usize + (member * TEAM_ROUNDS + at) * TEAM_SLOT
    }

    #[inline(always)]
    fn slot(&self, offset: usize) -> *mut TeamSlot {
        self.base.as_ptr().wrapping_add(offset + 8).cast()
    }

    /// Bytes that a part of the bulk has: none, until it grows.
    #[inline(always)]
    #[must_use]
    pub fn part_bytes(&self) -> usize {
        self.part
    }

    /// Bytes that a part of the bulk may have.
    #[inline(always)]
    #[must_use]
    pub fn most_part_bytes(&self) -> usize {
        self.layout.part as usize
    }

    /// Gives the parts `bytes` bytes each, or as many as they may have, for which there must be memory.
    /// They lie elsewhere from now on.
    pub fn set_part_bytes(&mut self, bytes: usize) {
        self.part = bytes.min(self.most_part_bytes());
    }

    /// Start of part `part`, on a page.
    #[inline(always)]
    #[must_use]
    pub fn part(&self, part: usize) -> *mut u8 {
        debug_assert!(part < TEAM_PARTS);
        self.base.as_ptr().wrapping_add(self.layout.bulk as usize + part * self.part_bytes())
    }
}

// SAFETY: one base, fixed sizes: the same arguments give the same memory; places do not overlap by arithmetic, and each
// is within the segment by the assertions above, which the ranges of members and places (checked by `new`,
// bounded by `DEPTH`) keep.
unsafe impl TeamMemory for MappedSegment {
    #[inline(always)]
    fn members(&self) -> usize {
        self.members
    }
    #[inline(always)]
    fn count(&self, at: usize) -> &AtomicU64 {
        self.word(at * APART)
    }
    #[inline(always)]
    fn completion(&self, at: usize) -> &AtomicU64 {
        self.word(Self::outcome_at(at))
    }
    #[inline(always)]
    fn flag(&self, member: usize, at: usize) -> &AtomicU64 {
        self.word(self.slot_at(member, at))
    }
    #[inline(always)]
    fn sleepers(&self, word: usize) -> &AtomicU64 {
        self.word(self.layout.sleepers as usize + word * 8)
    }
    #[inline(always)]
    fn read_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        f(self.slot(self.slot_at(member, at)))
    }
    #[inline(always)]
    fn write_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        f(self.slot(self.slot_at(member, at)))
    }
    #[inline(always)]
    fn read_outcome<R>(&self, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        f(self.slot(Self::outcome_at(at)))
    }
    #[inline(always)]
    fn write_outcome<R>(&self, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        f(self.slot(Self::outcome_at(at)))
    }
}
