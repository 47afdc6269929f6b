//! The worlds of a job: the ranks that it began with, and those that were started at once by a spawn. A world that
//! fails alone ends alone, and what has ended well leaves its places to others.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use perusal::internals::shm::{Exit, JobWorld, RankState};
use rustix::event::epoll::EventFlags;

use super::failure::{Failure, died_unseen, failure_of_ended};
use super::killed::CpuTime;
use super::{GRACE, LIFELINE, Supervisor};
use crate::start::starter::Started;
use crate::sys;

/// One process of a job, at its place.
#[derive(Debug)]
pub struct RankProcess {
    /// Its process id.
    pub pid: i32,
    /// Whether it runs.
    pub running: bool,
    /// Whether it is being ended, so that its end is no failure.
    pub given_up: bool,
    /// Whether it was there before the launcher, and is not the launcher's child.
    pub adopted: bool,
    /// What it had run when the launcher last looked whether it is ending.
    pub ran: CpuTime,
}

impl RankProcess {
    /// A process that has just been started.
    pub fn new(pid: i32) -> Self {
        Self { pid, running: true, given_up: false, adopted: false, ran: CpuTime::default() }
    }

    /// Sends a signal to its process group, if it runs.
    pub fn signal(&self, signal: i32) {
        match self {
            Self { running: false, .. } => {}
            Self { adopted: true, pid, .. } => sys::signal_process(*pid, signal),
            Self { pid, .. } => sys::signal_group(*pid, signal),
        }
    }
}

/// Processes that are being ended while others go on.
#[derive(Debug)]
pub struct Ending {
    places: Vec<u32>,
    /// When those that still run are killed.
    pub kill_at: Instant,
}

impl Supervisor<'_> {
    /// Whether the process at `place` runs.
    pub fn is_running_at(&self, place: u32) -> bool {
        self.ranks.get(place as usize).is_some_and(|rank| rank.running)
    }

    /// Takes the process `pid` for rank 0: it was there before the launcher. It has ended when `lifeline` closes.
    pub fn adopt(&mut self, pid: i32, lifeline: OwnedFd) -> io::Result<()> {
        self.epoll.add(&lifeline, EventFlags::IN, LIFELINE)?;
        // Its output is its own.
        let output = [io::pipe()?.0, io::pipe()?.0];
        self.add_rank(0, Started { pid, output })?;
        self.ranks[0].adopted = true;
        self.lifeline = Some(lifeline);
        Ok(())
    }

    /// The process that was there before the launcher has ended.
    pub fn end_adopted(&mut self) {
        let Some(lifeline) = self.lifeline.take() else { return };
        self.epoll.remove(lifeline);
        self.ranks[0].running = false;
        self.universe.meetings.ended(0);
        if self.memory.roster().declare_dead(0) && !self.ranks[0].given_up {
            let last = self.memory.roster().entry(0).last_function();
            let text = format!("rank 0 (process {}) ended before {last}", self.ranks[0].pid);
            self.fail_with(0, Failure { status: 1, text });
        }
    }

    /// Kills what runs of the world that begins at `first`, because it cannot be started as a whole.
    pub fn abandon(&mut self, first: u32) {
        for place in self.world_of(first) {
            let rank = &mut self.ranks[place as usize];
            rank.given_up = true;
            rank.signal(libc::SIGKILL);
        }
    }

    /// The places of the processes of the world that the one at `place` belongs to.
    pub(crate) fn world_of(&self, place: u32) -> Vec<u32> {
        let world = self.memory.roster().entry(place).world();
        let places = 0..self.ranks.len() as u32;
        places.filter(|place| self.memory.roster().entry(*place).world() == world).collect()
    }

    /// The processes that end with that at `place`: its world; if that is connected, all connected worlds (roster
    /// rule 5); and those that these have spawned and not met yet.
    pub(crate) fn concerned(&self, place: u32) -> Vec<u32> {
        let roster = self.memory.roster();
        let linked: Vec<u32> = (0..self.ranks.len() as u32)
            .filter(|place| roster.entry(*place).is_linked())
            .map(|place| roster.entry(place).world())
            .collect();
        let world = roster.entry(place).world();
        let ends = |other: u32| other == world || linked.contains(&world) && linked.contains(&other);
        // What an entry names is not believed (roster rule 4).
        let own = |place: u32| (place as usize) < self.ranks.len() && ends(roster.entry(place).world());
        (0..self.ranks.len() as u32)
            .filter(|place| own(*place) || roster.entry(*place).meets().is_some_and(own))
            .collect()
    }

    /// Judges the processes that have just ended, a world at a time, and ends what must not go on.
    pub fn judge(&mut self, ended: &[(u32, Exit)]) {
        let mut left: Vec<(u32, Exit)> = ended.to_vec();
        while let Some(&(place, _)) = left.first() {
            let world = self.memory.roster().entry(place).world();
            let of_world = |(place, _): &(u32, Exit)| self.memory.roster().entry(*place).world() == world;
            let (own, others): (Vec<_>, Vec<_>) = left.iter().partition(|entry| of_world(entry));
            left = others;
            if self.is_failing() {
                return;
            }
            if self.plan.survive && self.memory.header().abort(self.memory.places()).is_none() {
                own.iter().for_each(|(place, exit)| self.outlive(*place, *exit));
                continue;
            }
            if let Some(failure) = failure_of_ended(&self.memory, &own, &self.forwarded) {
                if self.plan.survive && self.is_orphaned(place) {
                    self.end_orphans(place, failure);
                } else {
                    self.fail_with(place, failure);
                }
            }
        }
    }

    /// Whether the world of the process at `place` has not met those that have spawned it, and a death may be why.
    fn is_orphaned(&self, place: u32) -> bool {
        let roster = self.memory.roster();
        let has_not_met = |place: &u32| roster.entry(*place).meets().is_some();
        self.memory.failures().counts().0 > 0 && self.world_of(place).iter().any(has_not_met)
    }

    /// Ends a world that is orphaned. The death is what the job outlives, and this is no failure of its own.
    fn end_orphans(&mut self, place: u32, failure: Failure) {
        self.end_places(self.world_of(place), &failure);
        self.first_death.get_or_insert(failure);
    }

    /// A rank that a shell or a debugger has started is not the launcher's child, and its end sends no signal.
    pub(crate) fn check_for_died(&mut self) {
        let running = self.ranks.iter().enumerate().filter(|(_, rank)| rank.running && !rank.given_up);
        let found = running
            .filter_map(|(rank, process)| {
                Some((rank as u32, died_unseen(&self.memory, rank as u32, process.pid)?))
            })
            .next();
        if let Some((rank, failure)) = found {
            self.memory.roster().declare_dead(rank);
            if self.plan.survive {
                self.outlive_failure(rank, failure);
            } else {
                self.fail_with(rank, failure);
            }
        }
    }

    /// Says that a process has ended badly while the others go on.
    fn outlive(&mut self, place: u32, exit: Exit) {
        if let Some(failure) = failure_of_ended(&self.memory, &[(place, exit)], &self.forwarded) {
            self.outlive_failure(place, failure);
        }
    }

    /// The same, with what is known of it. That the job has outlived a death is no failure; that a process failed after
    /// MPI_Finalize is one.
    pub(crate) fn outlive_failure(&mut self, place: u32, failure: Failure) {
        let others = if self.is_running() { "; the others go on" } else { "" };
        self.say(&format!("{}{others}", failure.text));
        if self.memory.roster().is_dead(place) {
            self.first_death.get_or_insert(failure);
        } else {
            self.first_failure.get_or_insert(failure);
        }
    }

    /// Whether any process of the job has done what was to be done:
    /// it has finalized, or has never used MPI, and has ended well.
    pub(crate) fn has_succeeded(&self) -> bool {
        (0..self.ranks.len() as u32).any(|place| {
            let entry = self.memory.roster().entry(place);
            match entry.exit() {
                // It has no process id unless it has initialised MPI.
                Some(exit) => {
                    exit.status() == 0 && (entry.state() == RankState::Finalized || entry.pid() == 0)
                }
                None => entry.state() == RankState::Finalized,
            }
        })
    }

    /// Ends the processes that must not go on after a failure of the one at `place`.
    pub fn fail_with(&mut self, place: u32, failure: Failure) {
        let places = self.concerned(place);
        let goes_on = |other: &u32| self.is_running_at(*other) && !places.contains(other);
        if !(0..self.ranks.len() as u32).any(|other| goes_on(&other)) {
            return self.fail(failure);
        }
        self.end_places(places, &failure);
        self.first_failure.get_or_insert(failure);
    }

    /// Ends some processes while others go on.
    fn end_places(&mut self, places: Vec<u32>, failure: &Failure) {
        let others = places.iter().any(|other| self.is_running_at(*other));
        let others = if others { "; the other ranks of its program are ended" } else { "" };
        self.say(&format!("{}{others}", failure.text));
        for place in &places {
            let rank = &mut self.ranks[*place as usize];
            rank.given_up = true;
            rank.signal(libc::SIGTERM);
            rank.signal(libc::SIGCONT);
        }
        // Others may abort later.
        self.memory.header().clear_abort();
        self.ending.push(Ending { places, kill_at: Instant::now() + GRACE });
    }

    /// Kills what has had its time to end.
    pub fn kill_ending(&mut self, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ending).into_iter().partition(|ending| now >= ending.kill_at);
        self.ending = later;
        for place in due.iter().flat_map(|ending| &ending.places) {
            self.ranks[*place as usize].signal(libc::SIGKILL);
        }
    }

    /// Gives the context ids of worlds back that have ended well.
    pub fn forget_worlds(&mut self) {
        let worlds = std::mem::take(&mut self.universe.worlds);
        let (ended, left): (Vec<_>, Vec<_>) = worlds.into_iter().partition(|world| self.is_free(world.first));
        self.universe.worlds = left;
        for JobWorld { size, context, .. } in ended {
            (0..size).for_each(|_| drop(self.memory.contexts().release(context)));
        }
    }

    /// The first of `count` places in a row for a new world: such that have ended well, or have had no process. `None`
    /// if there are not so many.
    pub fn find_places(&self, count: u32) -> Option<u32> {
        let mut run = 0;
        for place in self.memory.size()..self.memory.places() {
            run = if self.is_free(place) { run + 1 } else { 0 };
            if run == count {
                return Some(place + 1 - count);
            }
        }
        None
    }

    /// How many places the longest row has in which all are such.
    pub fn longest_row(&self, are: impl Fn(u32) -> bool) -> u32 {
        let (mut run, mut most) = (0, 0);
        for place in self.memory.size()..self.memory.places() {
            run = if are(place) { run + 1 } else { 0 };
            most = most.max(run);
        }
        most
    }

    /// A process may have a place again when all of its world have finalized, have left no communicator that reaches
    /// out, and have ended: they have retired from their rings, so that another process goes on there. Their output has
    /// been read to its end.
    pub fn is_free(&self, place: u32) -> bool {
        if self.universe.guests.hold(place) {
            return false;
        }
        let Some(rank) = self.ranks.get(place as usize) else { return true };
        if rank.running {
            return false;
        }
        self.world_of(place).iter().all(|place| {
            let entry = self.memory.roster().entry(*place);
            let read = self.streams[*place as usize * 2..][..2].iter().all(|stream| stream.fd().is_none());
            // A program that has never called MPI_Init has used no ring.
            let finished = entry.state() == RankState::Finalized && !entry.is_linked() || entry.pid() == 0;
            finished && !self.ranks[*place as usize].running && read
        })
    }

    /// Whether a place is free, or will be if the processes of its world,
    /// which are connected with no others any more, end well.
    pub fn is_leaving(&self, place: u32) -> bool {
        if self.universe.guests.hold(place) {
            return false;
        }
        (self.ranks.get(place as usize).is_none())
            || self.world_of(place).iter().all(|place| {
                let entry = self.memory.roster().entry(*place);
                let runs = self.ranks[*place as usize].running;
                !entry.is_linked()
                    && entry.meets().is_none()
                    && (runs || entry.state() == RankState::Finalized || entry.pid() == 0)
            })
    }
}
