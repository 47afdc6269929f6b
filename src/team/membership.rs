//! What a rank keeps of its team.

use super::mapped::MappedSegment;
use super::rounds::Rounds;
use super::storage::PARTS;
use crate::error::Error;
use crate::ring::CopyTimes;
use crate::shm::Job;
use std::sync::Arc;

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
    /// How often a part was used.
    pub(crate) uses: u64,
    /// For each part, how many rounds must be complete before it is written again (team rule 6).
    pub(crate) free_when: [u64; PARTS],
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
            uses: 0,
            free_when: [0; PARTS],
            copy_times: (0..members).map(|_| CopyTimes::default()).collect(),
            failure: None,
        }
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
