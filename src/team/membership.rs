//! What a rank keeps of its team.

use super::mapped::MappedSegment;
use super::rounds::Rounds;
use super::storage::{PARTS, STRETCHES};
use crate::error::Error;
use crate::ring::CopyTimes;
use crate::shm::Job;
use std::sync::Arc;

/// Names of operations that a member tells apart.
const NAMES: usize = 16;

/// Operations at which members do not look after they have looked in vain.
const LEAST_SKIPPED: u8 = 15;

/// Whether a rank is a member of its communicator's team.
#[derive(Default)]
pub enum Membership {
    /// Not known: the ranks of the communicator have performed no collective together yet.
    #[default]
    Unknown,
    /// The communicator has no team: no segment was left, or the control variable `coll_shared` is off.
    None,
    /// The rank is a member.
    Member(Box<Team>),
}

/// When members look whether their buffers serve them for an operation: to look costs a round, so they do it less and
/// less often while it is in vain.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Looks {
    /// How many more operations they do not look.
    left: u8,
    /// How many they did not after they had looked in vain; 0 if they had not.
    skipped: u8,
}

impl Looks {
    /// Whether they look at the next operation, which this counts.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    /// They have looked, in vain or not.
    pub(crate) fn note(&mut self, in_vain: bool) {
        self.skipped =
            if in_vain { self.skipped.saturating_mul(2).saturating_add(1).max(LEAST_SKIPPED) } else { 0 };
        self.left = self.skipped;
    }
}

/// One member's state in its team. Dropping it leaves the team; the last member that leaves gives the segment back.
pub struct Team {
    pub(crate) rounds: Rounds<MappedSegment>,
    job: Job,
    /// Number of the segment in the job.
    index: u32,
    /// Whether no memory was left when the bulk was to grow.
    pub(crate) cannot_grow: bool,
    /// Whether the members can read each other's memory; `None` before anybody wanted to.
    pub(crate) direct: Option<bool>,
    /// See [`looks`](Self::looks); of several names that have one place.
    looks: [Looks; NAMES],
    /// How many stretches of parts were used.
    pub(crate) uses: u64,
    /// For each stretch, how many rounds must be complete before it is written again (team rule 6).
    pub(crate) free_when: [u64; PARTS * STRETCHES],
    /// How the member copies to each of the others; in its own place, what it has learned of copies to several at once.
    pub(crate) copy_times: Arc<[CopyTimes]>,
    /// Why the segment cannot be used any more.
    pub(crate) failure: Option<Error>,
}

impl Team {
    /// Joins the team of `members` ranks in segment `index`, as member `me`.
    ///
    /// # Safety
    /// The segment was taken for that many members, and this member joins once.
    #[must_use]
    pub unsafe fn join(job: &Job, index: u32, members: usize, me: usize) -> Self {
        // SAFETY: the segment was taken for `members`, of which this one leaves in `drop` only;
        // `job` keeps the memory mapped.
        let segment = unsafe { MappedSegment::new(job, index, members) };
        Self {
            rounds: Rounds::new(segment, me),
            job: job.clone(),
            index,
            cannot_grow: false,
            direct: None,
            looks: [Looks::default(); NAMES],
            uses: 0,
            free_when: [0; PARTS * STRETCHES],
            copy_times: (0..members).map(|_| CopyTimes::default()).collect(),
            failure: None,
        }
    }

    /// When the members look whether all their buffers of operations of this name lie in the shared heap. All members
    /// know the same.
    pub(crate) fn looks(&mut self, name: u64) -> &mut Looks {
        let mixed = (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        &mut self.looks[mixed % NAMES]
    }

    /// Takes memory for parts of the bulk of `part` bytes. Whether there is any.
    pub(crate) fn reserve_bulk(&self, part: usize) -> bool {
        self.job.collective_segments().reserve_bulk(self.index, part as u64).is_ok()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.job.collective_segments().release(self.index);
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn members_look_less_often_while_it_is_in_vain() {
        let mut looks = Looks::default();
        let mut between = |in_vain| {
            let skipped = (0..).find(|_| looks.is_due());
            looks.note(in_vain);
            skipped
        };
        for skipped in [0, 15, 31, 63, 127, 255, 255] {
            assert_eq!(between(true), Some(skipped));
        }
        assert_eq!(between(false), Some(255));
        for in_vain in [false, false, true] {
            assert_eq!(between(in_vain), Some(0));
        }
        assert_eq!(between(true), Some(15));
    }
}
