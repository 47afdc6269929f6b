//! What is left when ranks die and the job goes on: revoked communicators, and agreement among the ranks that live.
//!
//! Who has died is in the roster, which the launcher alone writes: all ranks see the same deaths, in the same order. So
//! an agreement needs no message. Each member votes in its own roster entry. A member that sees that each other one has
//! voted, or is dead, proposes what follows from the votes, and the first proposal is the decision. Whoever has voted
//! waits for that.
//!
//! - **Agreement rule 1.** The agreements of a communicator are numbered, and a member votes in one only after it has
//!   seen the decision of the one before. So the word of the decisions has the one before until the decision is made,
//!   and whoever has voted and lives finds it.
//! - **Agreement rule 2.** A proposal replaces the word that was there before the votes were counted.
//!   Thus the first one counts.
//! - **Agreement rule 3.** The words belong to a context id. Whoever allocates the id clears them before another rank
//!   hears of it. The id of a communicator that is revoked is never free again: messages of it may still be under way.

use super::memory::Memory;
use super::roster::{Roster, RosterEntry};
use crate::limits::CONTEXTS;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Error, Result};

/// Agreements that a rank can be in at once. A model has few words.
pub const VOTES: usize = if cfg!(perusal_loom) { 1 } else { 12 };

/// Where the key of a vote has the subject of its agreement, above the context id.
const SUBJECT: u32 = 60;
/// In the key of a vote: its owner is about to write it.
const TAKEN: u64 = u64::MAX;

/// What one rank says in an agreement, in its roster entry. Written by the rank alone.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Vote {
    /// Which agreement it is for ([`Ballot::key`]); 0 if for none.
    key: AtomicU64,
    flag: AtomicU32,
    /// Deaths that the rank has acknowledged.
    acknowledged: AtomicU32,
}

impl Vote {
    /// Withdraws it.
    pub(super) fn clear(&self) {
        // Relaxed: whoever still needs it finds the decision.
        self.key.store(0, Ordering::Relaxed);
    }
}

/// The words of a context id: the decision of its latest agreement, and whether it is revoked.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FailureWords {
    decision: AtomicU64,
    revoked: AtomicU32,
    _apart: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl super::segment::SharedWords for FailureWords {}

/// What a decision says: of an agreement on a value the value, of a new communicator who is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// A small number: of a value whether deaths are unacknowledged, of a communicator its context id.
    pub small: u16,
    /// A large one: the value, or the number of the latest death that the communicator leaves out.
    pub large: u32,
}

/// What the votes of all members that live come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The bitwise and of the flags.
    pub flag: u32,
    /// The number of the latest death that all have acknowledged.
    pub acknowledged: u32,
    /// The number of the latest death among the members; 0 if all live.
    pub latest_death: u32,
}

/// What an agreement is on. Members that differ in that wait for each other for ever, which a report of the hang says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A value.
    Value,
    /// A communicator of those that live.
    Communicator,
    /// The end of the program's use of MPI.
    Leaving,
}

/// One agreement.
#[derive(Debug, Clone, Copy)]
pub struct Ballot<'a> {
    words: &'a FailureWords,
    key: u64,
    serial: u16,
}

impl<'a> Ballot<'a> {
    /// Returns agreement number `serial`, from 1 on, of the communicator with context id `id`.
    #[must_use]
    pub fn new(words: &'a FailureWords, id: u32, serial: u32, subject: Subject) -> Self {
        const { assert!(CONTEXTS < 1 << (SUBJECT - 32)) };
        let key = (subject as u64) << SUBJECT | (u64::from(id) + 1) << 32 | u64::from(serial);
        Self { words, key, serial: serial as u16 }
    }

    /// Whether the caller's roster entry has a place for one more vote.
    #[must_use]
    pub fn has_place(own: &RosterEntry) -> bool {
        // Relaxed: a look; the place is taken in `vote`.
        own.votes.iter().any(|vote| vote.key.load(Ordering::Relaxed) == 0)
    }

    /// Returns its number.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.key as u32
    }

    /// Votes in the caller's roster entry; returns the place of the vote. `None` if the rank is in too many agreements.
    #[must_use]
    pub fn vote(&self, own: &RosterEntry, flag: u32, acknowledged: u32) -> Option<usize> {
        // Relaxed: threads of one rank take different places; the store of the key publishes.
        let free =
            |vote: &Vote| vote.key.compare_exchange(0, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let place = own.votes.iter().position(free)?;
        let vote = &own.votes[place];
        vote.flag.store(flag, Ordering::Relaxed);
        vote.acknowledged.store(acknowledged, Ordering::Relaxed);
        // Release: "agreement" edge, pairs with Acquire in `count`.
        vote.key.store(self.key, Ordering::Release);
        Some(place)
    }

    /// Returns the decision, if it is made.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        self.read(self.words.decision())
    }

    fn read(&self, word: u64) -> Option<Decision> {
        ((word >> 48) as u16 == self.serial)
            .then_some(Decision { small: (word >> 32) as u16, large: word as u32 })
    }

    /// Makes the decision that follows from the votes of `members`, or returns the one that is made; `None` while a
    /// member that lives has not voted. `propose` says what follows.
    ///
    /// # Errors
    /// Those of `propose`; [`Error::Intern`] if the word of the decision is one that no rank writes.
    pub fn decide<'m>(
        &self,
        members: impl Iterator<Item = &'m RosterEntry>,
        propose: impl FnOnce(Count) -> Result<Decision>,
        withdraw: impl FnOnce(Decision),
    ) -> Result<Option<Decision>> {
        let before = self.words.decision();
        if let Some(decision) = self.read(before) {
            return Ok(Some(decision));
        }
        let Some(count) = self.count(members) else {
            // A member that has gone on has taken its vote away; then there is a decision.
            return Ok(self.decision());
        };
        let own = propose(count)?;
        let word = u64::from(self.serial) << 48 | u64::from(own.small) << 32 | u64::from(own.large);
        // AcqRel: "decision" edge, pairs with itself and with Acquire in `FailureWords::decision`: a thread that sees
        // the decision sees what the proposer saw, the deaths among it.
        match self.words.decision.compare_exchange(before, word, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(Some(own)),
            Err(there) => {
                withdraw(own);
                let what = || Error::Intern(format!("an agreement has the decision {there:#x}"));
                self.read(there).map(Some).ok_or_else(what)
            }
        }
    }

    fn count<'m>(&self, members: impl Iterator<Item = &'m RosterEntry>) -> Option<Count> {
        let mut count = Count { flag: u32::MAX, acknowledged: u32::MAX, latest_death: 0 };
        for member in members {
            // Acquire: "agreement" edge, pairs with Release in `vote`.
            let vote = member.votes.iter().find(|vote| vote.key.load(Ordering::Acquire) == self.key);
            if let Some(death) = member.death() {
                count.latest_death = count.latest_death.max(death);
            } else {
                let vote = vote?;
                count.flag &= vote.flag.load(Ordering::Relaxed);
                count.acknowledged = count.acknowledged.min(vote.acknowledged.load(Ordering::Relaxed));
            }
        }
        Some(count)
    }

    /// Takes the caller's vote back, once it has seen the decision.
    pub fn leave(&self, own: &RosterEntry, place: usize) {
        own.votes[place].clear();
    }
}

impl FailureWords {
    fn decision(&self) -> u64 {
        // Acquire: "decision" edge, pairs with AcqRel in `Ballot::decide`.
        self.decision.load(Ordering::Acquire)
    }

    /// Revokes the communicator. Returns whether nobody had before.
    pub fn revoke(&self) -> bool {
        // Relaxed: the count of revocations, or the communicator itself, publishes it.
        self.revoked.swap(1, Ordering::Relaxed) == 0
    }

    /// Returns whether the communicator is revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        // Relaxed: see `revoke`.
        self.revoked.load(Ordering::Relaxed) != 0
    }

    fn clear(&self) {
        // Relaxed, both: nobody else has heard of the communicator yet; whoever does, does so after this.
        self.decision.store(0, Ordering::Relaxed);
        self.revoked.store(0, Ordering::Relaxed);
    }
}

/// How many communicators of a job have been revoked.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RevocationCount(AtomicU32);

impl RevocationCount {
    /// Counts one, whose words say so already.
    pub fn add(&self) {
        // Release: "revocation" edge, pairs with Acquire in `get`.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Returns how many there are; their words say so, too.
    #[must_use]
    pub fn get(&self) -> u32 {
        // Acquire: "revocation" edge, pairs with Release in `add`.
        self.0.load(Ordering::Acquire)
    }
}

/// The failures of a job ([`Memory::failures`]).
#[derive(Debug, Clone, Copy)]
pub struct Failures<'a> {
    pub(super) memory: &'a Memory,
}

impl<'a> Failures<'a> {
    /// Returns whether the job goes on when a rank dies.
    #[must_use]
    pub fn are_survived(self) -> bool {
        self.memory.header().survives()
    }

    /// Returns how many ranks have died and how many communicators have been revoked.
    #[inline]
    #[must_use]
    pub fn counts(self) -> (u32, u32) {
        (self.memory.header().deaths(), self.memory.header().revocations.get())
    }

    /// Returns the words of context id `id`, whose memory it reserves.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is no memory; [`Error::Intern`] if no communicator can have the id.
    pub fn words(self, id: u32) -> Result<&'a FailureWords> {
        use super::layout::FAILURE_WORDS;
        if id >= CONTEXTS {
            return Err(Error::Intern(format!("context id {id} is out of range")));
        }
        let at = self.memory.layout().failures() + u64::from(id) * FAILURE_WORDS;
        self.memory.segment().reserve(at, FAILURE_WORDS)?;
        // Relaxed: a rank that finds words of an id that it has just allocated to be used before knows that through the
        // id's count.
        self.memory.header().agreements.store(1, Ordering::Relaxed);
        Ok(self.memory.segment().words(at))
    }

    /// Clears the words of an id that has just been allocated (agreement rule 3).
    pub(super) fn renew(self, id: u32) -> Result<()> {
        // Relaxed: see `words`.
        if self.memory.header().agreements.load(Ordering::Relaxed) != 0 {
            self.words(id)?.clear();
        }
        Ok(())
    }

    /// Revokes the communicator with context id `id`.
    /// Returns whether nobody had before: then its members must be woken.
    ///
    /// # Errors
    /// Those of [`Self::words`].
    pub fn revoke(self, id: u32) -> Result<bool> {
        let first = self.words(id)?.revoke();
        if first {
            self.memory.contexts().keep(id);
            self.memory.header().revocations.add();
        }
        Ok(first)
    }

    /// Returns those of `members` whose death has a number of `0..=until`, in the order in which they died.
    pub fn dead_among(self, members: impl Iterator<Item = u32>, until: u32) -> Vec<u32> {
        let roster = Roster { memory: self.memory };
        let mut dead: Vec<(u32, u32)> = members
            .filter_map(|member| Some((roster.entry(member).death()?, member)))
            .filter(|(number, _)| *number <= until)
            .collect();
        dead.sort_unstable();
        dead.dedup();
        dead.into_iter().map(|(_, member)| member).collect()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::shm::Exit;

    fn value(count: Count) -> Result<Decision> {
        let unacknowledged = count.latest_death > count.acknowledged;
        Ok(Decision { small: u16::from(unacknowledged), large: count.flag })
    }

    #[test]
    fn members_that_agree_on_different_things_do_not_take_each_other_s_votes() {
        let memory = Memory::create(2, 0).unwrap();
        let roster = memory.roster();
        let entries = || (0..2).map(|rank| roster.entry(rank));
        let words = memory.failures().words(7).unwrap();
        let on = |subject| Ballot::new(words, 7, 1, subject);
        for (rank, subject) in [(0, Subject::Value), (1, Subject::Communicator)] {
            assert!(on(subject).vote(roster.entry(rank), 0b11, 0).is_some());
        }
        for subject in [Subject::Value, Subject::Communicator] {
            assert_eq!(on(subject).decide(entries(), value, |_| {}).unwrap(), None);
        }
    }

    #[test]
    fn the_living_agree_on_the_and_of_their_flags_once_each_has_voted_or_died() {
        let memory = Memory::create(3, 0).unwrap();
        let roster = memory.roster();
        let entries = || (0..3).map(|rank| roster.entry(rank));
        let words = memory.failures().words(7).unwrap();
        let ballot = Ballot::new(words, 7, 1, Subject::Value);
        let first = ballot.vote(roster.entry(0), 0b110, 0).unwrap();
        assert_eq!(ballot.decide(entries(), value, |_| {}).unwrap(), None);
        let second = ballot.vote(roster.entry(1), 0b011, 0).unwrap();
        assert_eq!(ballot.decide(entries(), value, |_| {}).unwrap(), None);
        roster.entry(2).set_exit(Exit(9));
        assert!(roster.declare_dead(2) && roster.declare_dead(2));
        assert_eq!(memory.failures().counts(), (1, 0));
        let decided = Some(Decision { small: 1, large: 0b010 });
        assert_eq!(ballot.decide(entries(), value, |_| {}).unwrap(), decided);
        ballot.leave(roster.entry(0), first);
        // The other finds it, though a vote is gone.
        assert_eq!(ballot.decide(entries(), |_| unreachable!(), |_| {}).unwrap(), decided);
        ballot.leave(roster.entry(1), second);
        let next = Ballot::new(words, 7, 2, Subject::Value);
        assert_eq!(next.decision(), None);
        assert_eq!(memory.failures().dead_among(0..3, u32::MAX), [2]);
        assert_eq!(memory.failures().dead_among(0..3, 0), []);
    }

    #[test]
    fn a_rank_can_be_in_a_dozen_agreements_at_once() {
        let memory = Memory::create(1, 0).unwrap();
        let words = memory.failures().words(5).unwrap();
        let votes: Vec<_> = (0..13)
            .map(|serial| Ballot::new(words, 5, serial, Subject::Value).vote(memory.roster().entry(0), 0, 0))
            .collect();
        assert_eq!(votes.iter().flatten().count(), VOTES);
        assert_eq!(votes[VOTES], None);
    }

    #[test]
    fn a_revoked_id_is_never_free_and_a_new_one_has_clean_words() {
        let memory = Memory::create(1, 0).unwrap();
        let id = memory.contexts().allocate(1).unwrap();
        let failures = memory.failures();
        assert!(failures.revoke(id).unwrap() && !failures.revoke(id).unwrap());
        assert_eq!(failures.counts(), (0, 1));
        assert!(!memory.contexts().release(id).unwrap());
        let other = memory.contexts().allocate(1).unwrap();
        failures.words(other).unwrap().decision.store(7, Ordering::Relaxed);
        assert!(memory.contexts().release(other).unwrap());
        memory.failures().renew(other).unwrap();
        assert!(!failures.words(other).unwrap().is_revoked());
        assert_eq!(failures.words(other).unwrap().decision(), 0);
        assert!(failures.words(CONTEXTS).is_err());
    }
}
