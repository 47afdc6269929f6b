//! Collective segments: the memory in which the members of a communicator meet for collectives.
//!
//! One member allocates a segment at their first collective operation and sends the others its number; it is free when
//! the last member has released it.
//!
//! A freed segment keeps its memory for the next one that takes it, as long as all free ones together have less than
//! [`IDLE_MEMORY`]: the kernel takes longer to find pages than most operations that use them.
//!
//! - **Segment rule 1.** The member that allocates a segment sets its count from zero to the number of members; each
//!   member that releases it lowers the count by one. The last member gives the memory back, or counts it among that of
//!   free segments, before it makes the count zero.
//! - **Segment rule 2.** A member touches a segment, and the record of its memory, only between learning its number and
//!   releasing it. The member that allocates it clears the control part before it tells the number.

use crate::Result;
use crate::limits::{IDLE_MEMORY, PAGE, TEAM_PARTS};
use crate::shm::{Leaving, Memory};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// What memory a collective segment has, in the job's header. A rank may have written any value there: a wrong one is
/// counted wrongly, or lets the job touch memory that was not reserved.
#[derive(Debug)]
pub(super) struct SegmentMemory(AtomicU32);

impl SegmentMemory {
    /// Bytes of the bulk that have memory; `None` if the segment has none at all.
    fn bulk(&self) -> Option<u64> {
        // Relaxed: whoever has the segment is alone with it (segment rule 2).
        let pages = self.0.load(Ordering::Relaxed).checked_sub(1)?;
        Some(u64::from(pages) * PAGE as u64)
    }

    fn set(&self, bulk: Option<u64>) {
        let pages = bulk.map_or(0, |bytes| 1 + bytes.div_ceil(PAGE as u64));
        // Relaxed: as above.
        self.0.store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// Bytes of memory that all free segments together have.
#[derive(Debug)]
pub(super) struct IdleMemory(AtomicU64);

impl IdleMemory {
    /// Counts `bytes` more, unless they are too many.
    fn add(&self, bytes: u64) -> bool {
        // Relaxed, all three: a count that orders nothing.
        let enough = self
            .0
            .fetch_add(bytes, Ordering::Relaxed)
            .checked_add(bytes)
            .is_some_and(|all| all <= IDLE_MEMORY);
        if !enough {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        enough
    }

    fn remove(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The collective segments of a job.
#[derive(Debug, Clone, Copy)]
pub struct CollectiveSegments<'a> {
    pub(super) memory: &'a Memory,
}

impl<'a> CollectiveSegments<'a> {
    /// Allocates a segment for `members`, all zero, with the memory of its control part. `None` if all are in use or
    /// there is no memory: collectives can then go by messages. `of_operation`: for a single operation.
    #[must_use]
    pub fn allocate(self, members: u32, of_operation: bool) -> Option<u32> {
        let layout = self.memory.layout();
        let range =
            if of_operation { layout.segments_of_operations() } else { 0..layout.collective_segments() };
        let counts = &self.memory.header().collective_segments;
        let index = range.into_iter().find(|&index| counts[index as usize].take(members))?;
        let (segment, control) = (self.memory.segment(), layout.collective_segment_layout().control(members));
        let start = layout.collective_segment(index);
        let record = self.record(index);
        let kept = record.bulk();
        if let Some(bulk) = kept {
            self.memory.header().idle_memory.remove(self.counted(bulk));
        } else {
            record.set(Some(0));
        }
        if segment.reserve(start, control).is_err() {
            // The kernel may have granted a part of the memory.
            self.give_back(index);
            return None;
        }
        if kept.is_some() {
            // SAFETY: the control part is inside the segment (layout) and has memory;
            // nobody else touches it (segment rule 2).
            unsafe { segment.base().add(start as usize).write_bytes(0, control as usize) };
        }
        Some(index)
    }

    /// The record of the memory of segment `index`.
    fn record(self, index: u32) -> &'a SegmentMemory {
        &self.memory.header().segment_memory[index as usize]
    }

    /// Bytes that are counted of a free segment whose bulk has `bulk` bytes: its control part may have been anybody's.
    fn counted(self, bulk: u64) -> u64 {
        bulk + self.memory.layout().collective_segment_layout().bulk
    }

    /// Reserves the memory of a segment's bulk of parts of `part` bytes, or of as many as there can be.
    ///
    /// # Errors
    /// [`crate::Error::Segment`] when memory has run out.
    pub fn reserve_bulk(self, index: u32, part: u64) -> Result<()> {
        let (layout, segment) = (self.memory.layout(), self.memory.layout().collective_segment_layout());
        let bytes = part.min(segment.part) * TEAM_PARTS as u64;
        let record = self.record(index);
        if record.bulk().is_none_or(|kept| kept < bytes) {
            self.memory.segment().reserve(layout.collective_segment(index) + segment.bulk, bytes)?;
            record.set(Some(bytes));
        }
        Ok(())
    }

    /// Releases segment `index` for one member; the last one frees it.
    pub fn release(self, index: u32) {
        if index >= self.memory.layout().collective_segments() {
            return;
        }
        match self.memory.header().collective_segments[index as usize].leave_unless_last() {
            Leaving::Last => self.free(index),
            // Nobody: a process has overwritten the count. The segment is free for whoever allocates it next.
            Leaving::Others | Leaving::Nobody => {}
        }
    }

    /// Frees a segment that no member uses: with its memory, if free segments have little.
    fn free(self, index: u32) {
        let header = self.memory.header();
        let keeps = self.record(index).bulk().is_some_and(|bulk| header.idle_memory.add(self.counted(bulk)));
        if keeps {
            header.collective_segments[index as usize].free();
        } else {
            self.give_back(index);
        }
    }

    /// Frees a segment that no member uses, without its memory. If the kernel does not take the memory back, the
    /// segment stays in use for good.
    fn give_back(self, index: u32) {
        let layout = self.memory.layout();
        if self
            .memory
            .segment()
            .give_back(layout.collective_segment(index), layout.collective_segment_layout().total())
        {
            self.record(index).set(None);
            self.memory.header().collective_segments[index as usize].free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::COLLECTIVE_SEGMENTS;

    fn first_word(memory: &Memory, index: u32) -> *mut u64 {
        memory.segment().at(memory.layout().collective_segment(index), 8).unwrap().cast()
    }

    #[test]
    fn a_segment_is_free_and_empty_when_its_last_member_has_left() {
        let memory = Memory::create(2, 0).unwrap();
        let segments = memory.collective_segments();
        let index = segments.allocate(2, false).unwrap();
        segments.reserve_bulk(index, 1 << 20).unwrap();
        assert_ne!(segments.allocate(1, false), Some(index));
        // SAFETY: the word is reserved, and no other thread touches it.
        unsafe { first_word(&memory, index).write_volatile(3) };
        segments.release(index);
        assert_ne!(segments.allocate(1, false), Some(index));
        segments.release(index);
        assert_eq!(segments.allocate(1, false), Some(index));
        // SAFETY: the word is reserved again, and no other thread touches it.
        assert_eq!(unsafe { first_word(&memory, index).read_volatile() }, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are too few segments")]
    fn free_segments_keep_little_memory() {
        use std::os::unix::fs::MetadataExt;
        let memory = Memory::create(2, 0).unwrap();
        let segments = memory.collective_segments();
        let part = memory.layout().collective_segment_layout().part;
        let blocks = || memory.segment().file().metadata().unwrap().blocks();
        let without = blocks();
        let whole = part * TEAM_PARTS as u64;
        let count = (IDLE_MEMORY / whole + 1) as usize;
        let indices: Vec<u32> = (0..count).map(|_| segments.allocate(1, false).unwrap()).collect();
        indices.iter().for_each(|&index| segments.reserve_bulk(index, part).unwrap());
        let with_all = blocks();
        segments.release(indices[0]);
        assert_eq!(blocks(), with_all);
        assert_eq!(segments.allocate(1, false), Some(indices[0]));
        segments.reserve_bulk(indices[0], part).unwrap();
        assert_eq!(blocks(), with_all);
        indices.iter().for_each(|&index| segments.release(index));
        assert!(blocks() <= without + IDLE_MEMORY / 512 && blocks() >= without + whole / 512);
    }

    #[test]
    fn when_all_are_in_use_there_is_none() {
        let memory = Memory::create(2, 0).unwrap();
        for _ in 0..COLLECTIVE_SEGMENTS {
            assert!(memory.collective_segments().allocate(1, false).is_some());
        }
        assert_eq!(memory.collective_segments().allocate(1, false), None);
        memory.collective_segments().release(7);
        assert_eq!(memory.collective_segments().allocate(1, true), None);
        assert_eq!(memory.collective_segments().allocate(1, false), Some(7));
        memory.collective_segments().release(COLLECTIVE_SEGMENTS as u32);
    }
}
