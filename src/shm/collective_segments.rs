//! Collective segments: the memory in which the members of a communicator meet for collectives.
//!
//! One member allocates a segment at their first collective operation and sends the others its number; the memory is given back when the last
//! member has released it.
//!
//! - **Segment rule 1.** The member that allocates a segment sets its count from zero to the number of members; each member that
//!   releases it lowers the count by one. The last member gives the memory back before it makes the count zero, so that a free
//!   segment has no memory.
//! - **Segment rule 2.** A member touches a segment only between learning its number and releasing it.

use crate::Result;
use crate::limits::TEAM_PARTS;
use crate::shm::{Leaving, Memory};

/// The collective segments of a job.
#[derive(Debug, Clone, Copy)]
pub struct CollectiveSegments<'a> {
    pub(super) memory: &'a Memory,
}

impl CollectiveSegments<'_> {
    /// Allocates a segment for `members`, all zero, with the memory of its control part. `None` if all are in use or there is no
    /// memory: collectives can then go by messages. `of_operation`: for a single operation.
    #[must_use]
    pub fn allocate(self, members: u32, of_operation: bool) -> Option<u32> {
        let layout = self.memory.layout();
        let range =
            if of_operation { layout.segments_of_operations() } else { 0..layout.collective_segments() };
        let counts = &self.memory.header().collective_segments;
        // The memory of what can be taken has been given back (segment rule 1).
        let index = range.into_iter().find(|&index| counts[index as usize].take(members))?;
        if self
            .memory
            .segment()
            .reserve(layout.collective_segment(index), layout.collective_segment_layout().control(members))
            .is_ok()
        {
            return Some(index);
        }
        // The kernel may have granted a part of the memory.
        self.free(index);
        None
    }

    /// Reserves the memory of a segment's bulk of parts of `part` bytes, or of as many as there can be.
    ///
    /// # Errors
    /// [`crate::Error::Segment`] when memory has run out.
    pub fn reserve_bulk(self, index: u32, part: u64) -> Result<()> {
        let (layout, segment) = (self.memory.layout(), self.memory.layout().collective_segment_layout());
        self.memory.segment().reserve(
            layout.collective_segment(index) + segment.bulk,
            part.min(segment.part) * TEAM_PARTS as u64,
        )
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

    /// Frees a segment that no member uses. If the kernel does not take the memory back, the segment stays in use for good.
    fn free(self, index: u32) {
        let layout = self.memory.layout();
        if self
            .memory
            .segment()
            .give_back(layout.collective_segment(index), layout.collective_segment_layout().total())
        {
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
