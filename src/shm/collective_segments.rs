//! Memory for the collectives of a communicator: taken when its members first meet, given back when the last has left it.
//!
//! Rules:
//! - R1: an area's count goes from zero to its number of members by who takes it, and down by one for each member that leaves;
//!   who would make it zero gives the memory back first, so that an area that is free has none.
//! - R2: members touch an area only between being told of it and leaving it.

use crate::Result;
use crate::limits::TEAM_PARTS;
use crate::shm::Memory;
use crate::sync::Ordering;

/// The areas of a job.
#[derive(Debug, Clone, Copy)]
pub struct CollectiveSegments<'a> {
    pub(super) memory: &'a Memory,
}

impl CollectiveSegments<'_> {
    /// Takes an area for `members`, all zero, with the memory of its control. `None` if all are in use or there is no memory: no
    /// error, because collectives can do without.
    #[must_use]
    pub fn take(self, members: u32) -> Option<u32> {
        let counts = &self.memory.header().areas;
        let index = counts.iter().position(|count| {
            // Acquire: "area" edge, pairs with Release in `leave`: its memory has been given back (rule 1).
            count.compare_exchange(0, members, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })? as u32;
        let layout = self.memory.layout();
        if self
            .memory
            .segment()
            .reserve(layout.collective_segment(index), layout.collective_segment_layout().bulk)
            .is_ok()
        {
            return Some(index);
        }
        // A part of it may have been had.
        self.empty(index);
        None
    }

    /// Takes the memory of an area's bulk.
    ///
    /// # Errors
    /// [`crate::Error::Segment`] when memory has run out.
    pub fn take_bulk(self, index: u32) -> Result<()> {
        let (layout, area) = (self.memory.layout(), self.memory.layout().collective_segment_layout());
        self.memory
            .segment()
            .reserve(layout.collective_segment(index) + area.bulk, area.part * TEAM_PARTS as u64)
    }

    /// One member leaves area `index`; the last one frees it.
    pub fn leave(self, index: u32) {
        let Some(count) = self.memory.header().areas.get(index as usize) else { return };
        let mut seen = count.load(Ordering::Relaxed);
        loop {
            match seen {
                // Somebody wrote garbage; whoever takes the area next is no worse off.
                0 => return,
                1 => {
                    // Acquire: "area" edge, pairs with Release below: the others have left before we take it apart.
                    crate::sync::fence(Ordering::Acquire);
                    return self.empty(index);
                }
                _ => {}
            }
            // Release: "area" edge, pairs with Acquire above.
            match count.compare_exchange_weak(seen, seen - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Frees an area that nobody else uses. Where the kernel does not take memory back, it stays in use for good.
    fn empty(self, index: u32) {
        let layout = self.memory.layout();
        if self
            .memory
            .segment()
            .give_back(layout.collective_segment(index), layout.collective_segment_layout().total())
        {
            // Release: "area" edge, pairs with Acquire in `take`.
            self.memory.header().areas[index as usize].store(0, Ordering::Release);
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
    fn an_area_is_free_and_empty_when_its_last_member_has_left() {
        let memory = Memory::create(2, 0).unwrap();
        let areas = memory.collective_segments();
        let index = areas.take(2).unwrap();
        areas.take_bulk(index).unwrap();
        assert_ne!(areas.take(1), Some(index));
        // SAFETY: reserved, and nobody else is there.
        unsafe { first_word(&memory, index).write_volatile(3) };
        areas.leave(index);
        assert_ne!(areas.take(1), Some(index));
        areas.leave(index);
        assert_eq!(areas.take(1), Some(index));
        // SAFETY: as above.
        assert_eq!(unsafe { first_word(&memory, index).read_volatile() }, 0);
    }

    #[test]
    fn when_all_are_in_use_there_is_none() {
        let memory = Memory::create(2, 0).unwrap();
        for _ in 0..COLLECTIVE_SEGMENTS {
            assert!(memory.collective_segments().take(1).is_some());
        }
        assert_eq!(memory.collective_segments().take(1), None);
        memory.collective_segments().leave(7);
        assert_eq!(memory.collective_segments().take(1), Some(7));
        memory.collective_segments().leave(COLLECTIVE_SEGMENTS as u32);
    }
}
