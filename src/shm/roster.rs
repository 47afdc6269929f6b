//! The roster: which ranks have arrived, which have finalized, which have died and how.
//!
//! - **Roster rule 1.** A rank moves its own state forward, from absent to finalized, and back from finalized to
//!   initialised when it opens another session. Only the launcher declares a rank dead.
//! - **Roster rule 2.** Dead is the last state; nothing leaves it.
//! - **Roster rule 3.** Only the launcher writes the exit status.
//! - **Roster rule 5.** The launcher writes which world a process belongs to, before it starts the process: the place
//!   of the world's first rank; and which process it is to meet, until it has. A process counts the communicators
//!   through which it reaches other worlds. The death of a process is an error for its own world, for whom it is to
//!   meet, and, if it reached out of its world, for every process that reaches out of its own.
//! - **Roster rule 6.** A process that is spawned takes its place only when the launcher has started all of its world.
//!   Until then it has written nothing into the job's memory, so its place is free again if the others cannot be
//!   started.
//! - **Roster rule 4.** Every rank can write every word, by mistake or on purpose: what is read here may end this job,
//!   and harms nobody else. No process is signalled by a number from here.

use num_enum::FromPrimitive;

use super::exit::Exit;
use super::failures::{VOTES, Vote};
use super::hold::Hold;
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};
use crate::{Error, Result};

/// The stages of a rank's life, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, FromPrimitive)]
#[repr(u32)]
pub enum RankState {
    /// No process has taken its place yet.
    Absent = 0,
    /// Its process has mapped the segment.
    Arrived = 1,
    /// MPI is initialised, or a session is open.
    Initialised = 2,
    /// It is inside MPI_Finalize.
    Finalizing = 3,
    /// MPI_Finalize is done, or the last session is finalized, and nothing is open.
    Finalized = 4,
    /// Its process has ended without having finalized. Also a word that no rank wrote: such a rank cannot be relied on.
    #[num_enum(default)]
    Dead = 5,
}

/// In the word that says whom a process meets: it will not come. No place is so large.
const REFUSED: u32 = u32::MAX;

/// Returns how ranks, in ascending order, are called in a sentence: "rank 3", "ranks 0 and 2", "ranks 0-3 and 7".
#[must_use]
pub fn names(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = vec![];
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first}-{last}")],
        })
        .collect();
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    match parts.split_last() {
        Some((last, [])) => format!("{word} {last}"),
        Some((last, first)) => format!("{word} {} and {last}", first.join(", ")),
        None => "no rank".into(),
    }
}

/// One rank's entry over mapped bytes: state 0, pid 4, hold 8, exit known 12, exit 16, world 20, links 24, meets 28,
/// death 32, copying 36, guest 40, sessions 52, votes 56.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RosterEntry {
    state: AtomicU32,
    pid: AtomicI32,
    hold: Hold,
    exit_known: AtomicU32,
    exit: AtomicI32,
    world: AtomicU32,
    links: AtomicU32,
    /// The place of the process that has spawned it, plus one, until the two have met.
    meets: AtomicU32,
    /// The number of its death among all deaths of the job, from 1 on; 0 while it lives.
    death: AtomicU32,
    /// How many of its threads copy from or to the memory of other members of a collective operation right now.
    copying: AtomicU32,
    /// Of a guest, a process of another job: that job's number, and its place there.
    guest_job: AtomicU64,
    guest_place: AtomicU32,
    /// Whether MPI is open by sessions alone, or was before the last one ended.
    sessions: AtomicU32,
    /// What it says in agreements.
    pub(super) votes: [Vote; VOTES],
}

#[cfg(not(perusal_loom))]
const _: () = assert!(core::mem::size_of::<RosterEntry>() as u64 <= super::layout::ROSTER_ENTRY);

// SAFETY: atomics only.
unsafe impl super::segment::SharedWords for RosterEntry {}

impl RosterEntry {
    /// Returns the rank's state.
    #[inline]
    #[must_use]
    pub fn state(&self) -> RankState {
        // Acquire: "roster" edge, pairs with Release in `advance`, `arrive` and `declare_dead`.
        RankState::from_primitive(self.state.load(Ordering::Acquire))
    }

    /// Returns what the rank says is its process id (roster rule 4); 0 before it arrived.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Returns how the rank's process ended, if the launcher has seen it end.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        // Acquire: "exit" edge, pairs with Release in `set_exit`.
        (self.exit_known.load(Ordering::Acquire) != 0).then(|| Exit(self.exit.load(Ordering::Relaxed)))
    }

    /// Takes this rank's place for the process `pid`. A process that has finalized may come back (MPI sessions).
    ///
    /// # Errors
    /// [`Error::Segment`] if another process has the place, or the launcher has declared the rank dead.
    pub fn arrive(&self, rank: u32, pid: i32) -> Result<()> {
        let seen = self.state();
        let back = seen == RankState::Finalized && self.pid() == pid;
        if seen != RankState::Absent && !back {
            return Err(occupied(rank, seen, self.pid()));
        }
        // Relaxed: the number itself says who has the place. Taken before the state,
        // so that a thread that sees the state sees the number.
        if !back && self.pid.compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(occupied(rank, self.state(), self.pid()));
        }
        // Release: "roster" edge, pairs with Acquire in `state`; a failure means that the launcher came first.
        self.state
            .compare_exchange(seen as u32, RankState::Arrived as u32, Ordering::Release, Ordering::Relaxed)
            .map_err(|word| occupied(rank, RankState::from_primitive(word), self.pid()))?;
        Ok(())
    }

    /// Moves the rank on to `state` (roster rule 1). A process that sees the state sees what the rank did before. A
    /// dead rank stays dead.
    pub fn advance(&self, state: RankState) {
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen != RankState::Dead as u32 {
            // Release: "roster" edge, pairs with Acquire in `state`.
            match self.state.compare_exchange_weak(seen, state as u32, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Declares the rank dead for the launcher, unless it has finalized (roster rules 1 and 2); its death is number
    /// `number` of the job's. Returns whether it is dead now.
    ///
    /// One that was spawned, has had sessions alone and so met nobody counts as one that has never come: those that
    /// wait for it learn of its death, and its place is free.
    pub fn declare_dead(&self, number: u32) -> bool {
        // Relaxed: published by the state.
        self.death.store(number, Ordering::Relaxed);
        let mut seen = self.state.load(Ordering::Relaxed);
        loop {
            if seen == RankState::Finalized as u32 {
                if self.meets().is_none() {
                    self.death.store(0, Ordering::Relaxed);
                    return false;
                }
                // Relaxed, both: published by the state; the process has ended.
                self.pid.store(0, Ordering::Relaxed);
                self.sessions.store(0, Ordering::Relaxed);
            }
            // Release: "roster" edge, pairs with Acquire in `state`; publishes the exit word written before.
            match self.state.compare_exchange_weak(
                seen,
                RankState::Dead as u32,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Says whether MPI is open by sessions alone; before the state says that it is open.
    pub fn set_sessions_alone(&self, alone: bool) {
        // Relaxed: published by the state (`advance`).
        self.sessions.store(alone.into(), Ordering::Relaxed);
    }

    /// Returns the function by which the rank ends its part in MPI.
    #[must_use]
    pub fn last_function(&self) -> &'static str {
        // Relaxed: a word for a message.
        if self.sessions.load(Ordering::Relaxed) == 0 { "MPI_Finalize" } else { "MPI_Session_finalize" }
    }

    /// Returns the number of the rank's death among all deaths of the job, from 1 on; `None` while it lives.
    #[must_use]
    pub fn death(&self) -> Option<u32> {
        // Relaxed: the state, read before, publishes it.
        (self.state() == RankState::Dead).then(|| self.death.load(Ordering::Relaxed))
    }

    /// Says that a thread of the rank is about to copy from or to the memory of others. The caller then asks whether
    /// anything has failed, and copies only if not; whoever has noticed a failure may leave once [`Self::is_copying`]
    /// is false.
    pub fn begin_copying(&self) {
        self.copying.fetch_add(1, Ordering::Relaxed);
        // "copying" edge, pairs with the fence in `is_copying`: of a failure that the other has noticed and this store
        // one is seen.
        fence(Ordering::SeqCst);
    }

    /// Says that it has copied.
    pub fn end_copying(&self) {
        // Release: "copying" edge, pairs with Acquire in `is_copying`: the copy is over.
        self.copying.fetch_sub(1, Ordering::Release);
    }

    /// Returns whether the rank may be copying, after the caller has noticed a failure.
    #[must_use]
    pub fn is_copying(&self) -> bool {
        // "copying" edge: see `begin_copying`.
        fence(Ordering::SeqCst);
        // Acquire: "copying" edge, pairs with Release in `end_copying`.
        self.copying.load(Ordering::Acquire) != 0 && self.state() != RankState::Dead
    }

    /// Returns the place of the first rank of the process's world (roster rule 5).
    #[must_use]
    pub fn world(&self) -> u32 {
        // Relaxed: written before the process was started.
        self.world.load(Ordering::Relaxed)
    }

    /// Makes the entry that of a process of the world that begins at `world`, which the launcher is about to start for
    /// the process at the place `parent`.
    pub fn prepare(&self, world: u32, parent: u32) {
        // Relaxed, all: starting the process orders these before all that it does; a rank that asks because of a death
        // asks again and again.
        self.state.store(RankState::Absent as u32, Ordering::Relaxed);
        self.pid.store(0, Ordering::Relaxed);
        self.exit_known.store(0, Ordering::Relaxed);
        self.links.store(0, Ordering::Relaxed);
        self.death.store(0, Ordering::Relaxed);
        self.copying.store(0, Ordering::Relaxed);
        self.votes.iter().for_each(Vote::clear);
        self.guest_job.store(0, Ordering::Relaxed);
        self.sessions.store(0, Ordering::Relaxed);
        self.world.store(world, Ordering::Relaxed);
        self.meets.store(parent + 1, Ordering::Relaxed);
    }

    /// Holds the process back before it takes its place (roster rule 6).
    #[must_use]
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Takes the entry, which is that of rank `place`, out of a world that has ended: another one begins at the same
    /// place, and this process was none of its.
    pub fn leave_world(&self, place: u32) {
        // Relaxed: see `prepare`.
        self.world.store(place, Ordering::Relaxed);
    }

    /// Makes the entry that of a process of another job, which has the place `place` there. Those of one job count as a
    /// world, which is called `world`.
    pub fn prepare_guest(&self, world: u32, (job, place): (u64, u32)) {
        self.prepare(world, 0);
        self.end_meeting();
        // Relaxed, both: the launcher's answer, by which others learn of the guest, comes later.
        self.guest_place.store(place, Ordering::Relaxed);
        self.guest_job.store(job, Ordering::Relaxed);
    }

    /// Returns the job that a guest belongs to, and its place there; `None` for a process of this job.
    #[must_use]
    pub fn guest(&self) -> Option<(u64, u32)> {
        // Relaxed, both: see `prepare_guest`.
        let job = self.guest_job.load(Ordering::Relaxed);
        (job != 0).then(|| (job, self.guest_place.load(Ordering::Relaxed)))
    }

    /// Returns the place of the process that has spawned this one and has yet to meet it.
    #[must_use]
    pub fn meets(&self) -> Option<u32> {
        // Relaxed: see `prepare`.
        self.meets.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Says for the process that has spawned this one that it will not meet it.
    pub fn refuse_meeting(&self) {
        // Relaxed: see `prepare`.
        self.meets.store(REFUSED, Ordering::Relaxed);
    }

    /// Returns whether the process waits for one that will not meet it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        // Relaxed: see `prepare`.
        self.meets.load(Ordering::Relaxed) == REFUSED
    }

    /// The process and the one that has spawned it have met, or never will.
    pub fn end_meeting(&self) {
        // Relaxed: see `prepare`.
        self.meets.store(0, Ordering::Relaxed);
    }

    /// Returns whether the process has communicators with members outside its world.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        // Relaxed: a rank that asks because of a death asks again and again.
        self.links.load(Ordering::Relaxed) != 0
    }

    /// Counts a communicator with members outside the process's world.
    pub fn link(&self) {
        // Relaxed: a count; see `is_linked`.
        self.links.fetch_add(1, Ordering::Relaxed);
    }

    /// Such a communicator is free.
    pub fn unlink(&self) {
        // Relaxed: a count; see `is_linked`. A process that has overwritten it does not make it wrap around.
        let _ = self.links.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |links| links.checked_sub(1));
    }

    /// Stores for the launcher how the process ended (roster rule 3).
    pub fn set_exit(&self, exit: Exit) {
        self.exit.store(exit.0, Ordering::Relaxed);
        // Release: "exit" edge, pairs with Acquire in `exit`.
        self.exit_known.store(1, Ordering::Release);
    }
}

fn occupied(rank: u32, state: RankState, pid: i32) -> Error {
    match state {
        RankState::Dead => Error::Segment(format!("the launcher has already given rank {rank} up")),
        RankState::Finalized => Error::Segment(format!(
            "rank {rank} of this job was process {pid}, which has called MPI_Finalize: a rank is one MPI program, and the next one is a job of its \
             own, with its own mpiexec (mpiexec -n N ./first; mpiexec -n N ./second)"
        )),
        _ => Error::Segment(format!(
            "rank {rank} of this job is process {pid} already; a program that a rank starts itself is not part of \
             the job and must be started through its own mpiexec"
        )),
    }
}

/// The entries of all ranks of a job.
#[derive(Debug, Clone, Copy)]
pub struct Roster<'a> {
    pub(super) memory: &'a super::Memory,
}

impl<'a> Roster<'a> {
    /// Returns the entry of `rank`.
    ///
    /// # Panics
    /// If `rank` is not in the job.
    #[inline]
    #[must_use]
    pub fn entry(self, rank: u32) -> &'a RosterEntry {
        self.memory.roster_entry(rank)
    }

    /// Declares `rank` dead for the launcher, unless it has finalized (roster rules 1 and 2).
    /// Returns whether it is dead now.
    pub fn declare_dead(self, rank: u32) -> bool {
        let entry = self.entry(rank);
        if entry.state() == RankState::Dead {
            return true;
        }
        let dead = entry.declare_dead(self.memory.header().deaths() + 1);
        if dead {
            self.memory.header().count_death();
        }
        dead
    }

    /// Returns whether the launcher has declared `rank` dead.
    #[inline]
    #[must_use]
    pub fn is_dead(self, rank: u32) -> bool {
        self.entry(rank).state() == RankState::Dead
    }

    /// Returns how a dead rank died, as a clause: "killed by SIGSEGV (signal 11)".
    #[must_use]
    pub fn how(self, rank: u32) -> String {
        match self.entry(rank).exit() {
            Some(exit) if exit.signal().is_none() => {
                format!("{exit} before {}", self.entry(rank).last_function())
            }
            Some(exit) => exit.to_string(),
            None => "its process is gone".to_owned(),
        }
    }

    /// Returns the first dead rank whose death concerns rank `own`, if there is one (roster rule 5).
    #[must_use]
    pub fn first_dead(self, own: u32) -> Option<u32> {
        // Every rank asks after each sleep, so it must not read all entries each time.
        if !self.memory.header().any_deaths() {
            return None;
        }
        (0..self.memory.places_in_use()).find(|rank| self.is_dead(*rank) && self.concerns(*rank, own))
    }

    /// Returns the first of them that had arrived, or that rank `own` has spawned and waits for.
    #[must_use]
    pub fn first_dead_that_had_arrived(self, own: u32) -> Option<u32> {
        if !self.memory.header().any_deaths() {
            return None;
        }
        (0..self.memory.places_in_use())
            .find(|rank| self.is_dead(*rank) && self.is_missed(*rank, own) && self.concerns(*rank, own))
    }

    /// Returns whether `rank` has arrived, or was spawned by rank `own`, which waits for it.
    fn is_missed(self, rank: u32, own: u32) -> bool {
        let entry = self.entry(rank);
        entry.pid() != 0 || entry.meets() == Some(own)
    }

    /// Returns the place that the process at `place` of the job `job` has here, as a guest.
    #[must_use]
    pub fn place_of_guest(self, job: u64, place: u32) -> Option<u32> {
        (self.memory.size()..self.memory.places_in_use())
            .find(|here| self.entry(*here).guest() == Some((job, place)) && !self.is_dead(*here))
    }

    /// Returns whether what becomes of `rank` concerns rank `own` (roster rule 5).
    #[must_use]
    pub fn concerns(self, rank: u32, own: u32) -> bool {
        let (theirs, ours) = (self.entry(rank), self.entry(own));
        theirs.world() == ours.world()
            || theirs.is_linked() && ours.is_linked()
            || theirs.meets() == Some(own)
            || ours.meets() == Some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::{Memory, Universe};
    use crate::variables::Overrides;

    #[test]
    fn a_place_is_taken_once() {
        let memory = Memory::create(2, 0).unwrap();
        let entry = memory.roster().entry(1);
        entry.arrive(1, 100).unwrap();
        let error = entry.arrive(1, 200).unwrap_err().to_string();
        assert!(error.contains("rank 1 of this job is process 100 already"), "{error}");
    }

    #[test]
    fn the_same_process_may_come_back_after_it_finalized() {
        let memory = Memory::create(1, 0).unwrap();
        let entry = memory.roster().entry(0);
        entry.arrive(0, 100).unwrap();
        entry.advance(RankState::Finalized);
        let second = entry.arrive(0, 200).unwrap_err().to_string();
        assert!(second.contains("was process 100, which has called MPI_Finalize"), "{second}");
        entry.arrive(0, 100).unwrap();
        assert_eq!(entry.state(), RankState::Arrived);
    }

    #[test]
    fn the_dead_stay_dead() {
        let memory = Memory::create(1, 0).unwrap();
        let entry = memory.roster().entry(0);
        entry.arrive(0, 100).unwrap();
        entry.set_exit(Exit(9));
        assert!(memory.roster().declare_dead(0));
        entry.advance(RankState::Initialised);
        assert!(memory.roster().is_dead(0));
        assert_eq!(memory.roster().first_dead(0), Some(0));
        assert_eq!(memory.roster().how(0), "killed by SIGKILL (signal 9)");
        assert!(entry.arrive(0, 100).unwrap_err().to_string().contains("given rank 0 up"));
    }

    #[test]
    fn a_death_concerns_its_world_and_those_that_are_connected() {
        let memory =
            Memory::create_universe(1, Universe { places: 4, size: 4 }, 0, &Overrides::default()).unwrap();
        memory.reserve_places(1, 3).unwrap();
        assert!(memory.reserve_places(2, 3).is_err() && memory.reserve_places(4, 0).is_err());
        let roster = memory.roster();
        for place in [1, 2] {
            roster.entry(place).prepare(1, 3);
            roster.entry(place).link();
        }
        roster.entry(3).prepare(3, 0);
        roster.entry(1).set_exit(Exit(9));
        assert!(roster.declare_dead(1));
        let see = || [0, 2, 3].map(|own| roster.first_dead(own));
        assert_eq!(see(), [None, Some(1), Some(1)]);
        roster.entry(1).end_meeting();
        assert_eq!(see(), [None, Some(1), None]);
        roster.entry(0).link();
        assert_eq!(see(), [Some(1), Some(1), None]);
        roster.entry(1).unlink();
        roster.entry(1).unlink();
        assert_eq!(see(), [None, Some(1), None]);
        roster.entry(1).prepare(1, 0);
        assert_eq!((roster.entry(1).state(), roster.entry(1).exit()), (RankState::Absent, None));
    }

    #[test]
    fn who_has_finalized_does_not_die() {
        let memory = Memory::create(1, 0).unwrap();
        let entry = memory.roster().entry(0);
        entry.advance(RankState::Finalized);
        assert!(!entry.declare_dead(1));
        assert_eq!(entry.death(), None);
        assert_eq!(entry.state(), RankState::Finalized);
    }

    #[test]
    fn who_was_spawned_and_has_met_nobody_dies_though_it_has_finalized() {
        let memory =
            Memory::create_universe(1, Universe { places: 2, size: 2 }, 0, &Overrides::default()).unwrap();
        memory.reserve_places(1, 1).unwrap();
        let roster = memory.roster();
        roster.entry(1).prepare(1, 0);
        roster.entry(1).arrive(1, 100).unwrap();
        roster.entry(1).set_sessions_alone(true);
        roster.entry(1).advance(RankState::Finalized);
        roster.entry(1).set_exit(Exit(0));
        assert!(roster.declare_dead(1));
        assert_eq!((roster.first_dead(0), roster.first_dead_that_had_arrived(0)), (Some(1), Some(1)));
        assert_eq!(roster.entry(1).pid(), 0);
        assert_eq!(roster.how(1), "exited with status 0 before MPI_Finalize");
    }
}
