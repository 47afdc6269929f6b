//! A job, and those whose processes are guests in it.
//!
//! What a guest does stands in the memory of its own job only; ranks that it names there are places there.

use perusal::internals::shm::{Memory, RankState};

/// The memory of a job, and that of jobs whose processes are guests in it, as far as they are known.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The job's.
    pub own: &'a Memory,
    others: Vec<&'a Memory>,
}

/// A job's number: the process id of its launcher, or of its only process.
pub fn number(memory: &Memory) -> u32 {
    let launcher = u32::try_from(memory.header().launcher()).unwrap_or(0);
    // Without a launcher there is one process.
    if launcher == 0 { u32::try_from(memory.roster().entry(0).pid()).unwrap_or(0) } else { launcher }
}

impl<'a> Scene<'a> {
    /// The job with the memory `own`, among all jobs with these memories.
    pub fn new(own: &'a Memory, all: impl IntoIterator<Item = &'a Memory>) -> Self {
        let is_other = |memory: &&Memory| memory.header().job_id() != own.header().job_id();
        Self { own, others: all.into_iter().filter(is_other).collect() }
    }

    /// The memory in which the process at `place` of this job is no guest, and its place there;
    /// `None` if that job is not known.
    pub fn home(&self, place: u32) -> Option<(&'a Memory, u32)> {
        let Some((job, there)) = self.own.roster().entry(place).guest() else {
            return Some((self.own, place));
        };
        let memory = *self.others.iter().find(|memory| memory.header().job_id() == job)?;
        // What another job says is not believed.
        (there < memory.places_in_use()).then_some((memory, there))
    }

    /// The rank in this job of the process at `place` of the job with this memory.
    pub fn rank_of(&self, memory: &Memory, place: u32) -> Option<u32> {
        if place >= memory.places_in_use() {
            return None;
        }
        let own = self.own.header().job_id();
        match memory.roster().entry(place).guest() {
            Some((job, there)) if job == own => (there < self.own.places_in_use()).then_some(there),
            Some((job, there)) => self.own.roster().place_of_guest(job, there),
            None => self.own.roster().place_of_guest(memory.header().job_id(), place),
        }
    }

    /// The memory in which the ring from one rank of this job to another one lies, and their places there; `None` if
    /// they do not meet in any.
    pub fn ring(&self, from: u32, to: u32) -> Option<(&'a Memory, u32, u32)> {
        // A process receives in its own job's memory.
        let (memory, to) = self.home(to)?;
        if core::ptr::eq(memory, self.own) {
            return Some((memory, from, to));
        }
        let (home, place) = self.home(from)?;
        let (job, there) = (home.header().job_id(), memory.header().job_id());
        let from = if job == there { Some(place) } else { memory.roster().place_of_guest(job, place) };
        Some((memory, from?, to))
    }

    /// Whether every process with which those of this scene have met, and which has not ended, is in it:
    /// nobody else can end their waits.
    pub fn is_closed(&self) -> bool {
        self.others.iter().filter(|memory| self.has_guests_of(memory)).all(|memory| {
            (0..memory.places_in_use()).all(|place| {
                let entry = memory.roster().entry(place);
                let is_over = entry.exit().is_some() || entry.state() == RankState::Dead;
                is_over || self.rank_of(memory, place).is_some()
            })
        })
    }

    /// Whether processes of the job with this memory are guests in this one.
    pub fn has_guests_of(&self, memory: &Memory) -> bool {
        let job = memory.header().job_id();
        let mut guests = (self.own.size()..self.own.places_in_use())
            .filter_map(|place| self.own.roster().entry(place).guest());
        guests.any(|(of, _)| of == job)
    }
}
