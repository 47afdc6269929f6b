//! What the control variables' defaults and ranges follow from: [`JobShape`].

use crate::limits::{MAX_COUNTED_CELLS, MAX_COUNTED_RANKS, POLLED_OVERSUBSCRIBED};

/// The facts about a job that defaults and ranges of control variables follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobShape {
    /// Ranks of the job.
    pub ranks: u32,
    /// CPUs that it may use.
    pub usable_cpus: u32,
    /// Cells of a ring.
    pub ring_cells: u32,
    /// Bytes of a ring's bulk area.
    pub ring_bulk: u32,
    /// Whether the job's memory was made for senders that fence.
    pub sender_fences: bool,
    /// Bytes of address space of the job's shared heap.
    pub heap: u64,
    /// Whether it may be best to write past the processor's cache what others read ([`crate::arch::streams`]): each
    /// writer learns it for each reader ([`crate::ring::CopyTimes`]).
    pub streams: bool,
}

impl JobShape {
    /// Whether ranks outnumber the CPUs.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.ranks > self.usable_cpus
    }

    /// Whether it is the sleepers' part to fence, where the kernel has a call for that: where they seldom sleep, and
    /// seldom change which rings they poll. More ranks than have a CPU give it away many times before they sleep.
    #[must_use]
    pub(crate) fn sleepers_may_fence(&self) -> bool {
        let are_all_polled = self.ranks <= POLLED_OVERSUBSCRIBED as u32 + 1;
        !self.is_oversubscribed() || are_all_polled || self.uses_counters()
    }

    /// Whether ranks notify each other by counters of what they have committed (doorbell rule 6): where they outnumber
    /// the CPUs, are more than a rank polls anyway, and are so few that looking at all counters is cheap.
    #[must_use]
    pub fn uses_counters(&self) -> bool {
        self.is_oversubscribed()
            && (POLLED_OVERSUBSCRIBED as u32 + 2..=MAX_COUNTED_RANKS).contains(&self.ranks)
            && self.ring_cells <= MAX_COUNTED_CELLS
    }
}
