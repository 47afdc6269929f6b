//! A collective segment on the heap, whose every access loom can watch.

use super::storage::{DEPTH, TeamMemory, TeamSlot};
use crate::sync::{Arc, AtomicU64, Cell};

/// A collective segment of reference-counted heap memory: for tests and loom.
#[derive(Debug, Clone)]
pub struct HeapSegment(Arc<HeapSegmentParts>);

#[derive(Debug)]
struct HeapSegmentParts {
    counts: Vec<AtomicU64>,
    outcomes: Vec<(AtomicU64, Cell<TeamSlot>)>,
    sleepers: Vec<AtomicU64>,
    /// Those of member 0 first.
    slots: Vec<(AtomicU64, Cell<TeamSlot>)>,
    members: usize,
}

// SAFETY: slots are accessed under the team rules, from whatever thread is a member.
unsafe impl Send for HeapSegment {}

impl HeapSegment {
    /// A collective segment for `members`.
    #[must_use]
    pub fn new(members: usize) -> Self {
        let slot = || (AtomicU64::new(0), Cell::new(TeamSlot::EMPTY));
        let words = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        #[allow(
            clippy::arc_with_non_send_sync,
            reason = "shared between threads by the team rules, not by its type"
        )]
        let parts = Arc::new(HeapSegmentParts {
            counts: words(DEPTH),
            outcomes: (0..DEPTH).map(|_| slot()).collect(),
            sleepers: words(members.div_ceil(64)),
            slots: (0..members * DEPTH).map(|_| slot()).collect(),
            members,
        });
        Self(parts)
    }
}

// SAFETY: one allocation a part, never moved while any clone lives; places do not overlap.
unsafe impl TeamMemory for HeapSegment {
    fn members(&self) -> usize {
        self.0.members
    }
    fn count(&self, at: usize) -> &AtomicU64 {
        &self.0.counts[at]
    }
    fn completion(&self, at: usize) -> &AtomicU64 {
        &self.0.outcomes[at].0
    }
    fn flag(&self, member: usize, at: usize) -> &AtomicU64 {
        &self.0.slots[member * DEPTH + at].0
    }
    fn sleepers(&self, word: usize) -> &AtomicU64 {
        &self.0.sleepers[word]
    }
    fn read_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        self.0.slots[member * DEPTH + at].1.with(f)
    }
    fn write_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        self.0.slots[member * DEPTH + at].1.with_mut(f)
    }
    fn read_outcome<R>(&self, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        self.0.outcomes[at].1.with(f)
    }
    fn write_outcome<R>(&self, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        self.0.outcomes[at].1.with_mut(f)
    }
}
