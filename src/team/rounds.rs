//! The protocol: rounds in which everybody arrives, and what can be known of a round. Nothing here waits.

use super::storage::{DEPTH, TeamMemory, TeamSlot};
use crate::sync::{AsymmetricFence, AtomicU64, Ordering, SleepMark, has_sleepers, take_sleepers};

/// How members arrive in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundArrival {
    /// All add to one count; the last to arrive marks the round complete. One line moves through all CPUs once.
    Count,
    /// Each sets a flag of its own, and polls the flags of all. No line is written by two, each is read by all.
    Flags,
}

/// What the caller's arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Arrived {
    /// Everybody else has arrived before: the caller must [`Rounds::finish`].
    Last,
    /// Others may still come (always so for [`RoundArrival::Flags`]).
    Somewhere,
}

/// What a member waits for in its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It may enter the round.
    MayEnter,
    /// All have arrived in this round, which is the caller's or one before.
    Complete(u64),
    /// This member has published its slot of the caller's round.
    Published(usize),
}

/// A word of the segment has a value that no member writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorruptWord(pub u64);

/// One member's view of a communicator's rounds.
#[derive(Debug)]
pub struct Rounds<S> {
    storage: S,
    me: usize,
    /// The round that the caller is in.
    round: u64,
    /// Rounds that are known to be complete: all below this one.
    complete: u64,
    /// The round whose flags are being looked at, and how many of them are set.
    scanned: (u64, usize),
    /// What the count of a place reads when all have arrived in its latest counted round.
    full: [u64; DEPTH],
    arrival: [RoundArrival; DEPTH],
}

impl<S: TeamMemory> Rounds<S> {
    /// The view of member `me`, before the first round.
    pub fn new(storage: S, me: usize) -> Self {
        let arrival = [RoundArrival::Count; DEPTH];
        Self { storage, me, round: 0, complete: 0, scanned: (0, 0), full: [0; DEPTH], arrival }
    }

    /// The memory.
    #[inline(always)]
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Where the segment lies, to be changed.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// The number of the round that the caller is in.
    #[inline(always)]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The place of a round.
    #[inline(always)]
    fn at(round: u64) -> usize {
        (round % DEPTH as u64) as usize
    }

    /// Begins the round, in which all members arrive in the same way. It is entered when [`Self::may_enter`] says so.
    #[inline]
    pub fn begin(&mut self, arrival: RoundArrival) {
        let at = Self::at(self.round);
        // What came before at this place is complete once the round is entered, so nobody asks for it any more.
        self.arrival[at] = arrival;
        if arrival == RoundArrival::Count {
            self.full[at] += self.storage.members() as u64;
        }
    }

    /// Whether `condition` holds.
    ///
    /// # Errors
    /// [`CorruptWord`].
    #[inline(always)]
    pub fn holds(&mut self, condition: Condition) -> Result<bool, CorruptWord> {
        match condition {
            Condition::MayEnter => self.may_enter(),
            Condition::Complete(round) => self.is_complete(round),
            Condition::Published(member) => {
                let published = self.has_published(member, self.round)?;
                // The other one of two has arrived in all rounds before that in which it has published.
                if published && member != self.me && self.storage.members() == 2 {
                    self.complete = self.complete.max(self.round);
                }
                Ok(published)
            }
        }
    }

    /// What is to be looked at for `condition`, which does not hold, by a thread that does not have the member's view.
    pub fn awaited(&self, condition: Condition) -> Awaited<S> {
        let round = match condition {
            Condition::MayEnter => (self.round + 1).saturating_sub(DEPTH as u64),
            Condition::Complete(round) => round,
            Condition::Published(_) => self.round,
        };
        let words = match condition {
            Condition::Published(member) => Words::Flags(member, member + 1),
            _ if self.arrival[Self::at(round)] == RoundArrival::Count => Words::Completion,
            _ => Words::Flags(0, self.storage.members()),
        };
        Awaited { storage: self.storage.clone(), me: self.me, round, words }
    }

    /// Whether the caller may write what belongs to this round (team rule 2).
    ///
    /// # Errors
    /// [`CorruptWord`].
    #[inline]
    pub fn may_enter(&mut self) -> Result<bool, CorruptWord> {
        match (self.round + 1).checked_sub(DEPTH as u64) {
            Some(needed) if needed >= self.complete => self.others_let_enter(needed),
            _ => Ok(true),
        }
    }

    /// A member that is ahead of the others looks at their words once in half as many rounds as it may be ahead.
    #[inline(never)]
    fn others_let_enter(&mut self, needed: u64) -> Result<bool, CorruptWord> {
        Ok(self.is_complete(self.round - DEPTH as u64 / 2)? || self.is_complete(needed)?)
    }

    /// Whether all members have arrived in `round`, which is at most the caller's and, unless it is known to be
    /// complete already, one that [`Self::begin`] has not replaced.
    ///
    /// # Errors
    /// [`CorruptWord`].
    #[inline]
    pub fn is_complete(&mut self, round: u64) -> Result<bool, CorruptWord> {
        if round < self.complete {
            return Ok(true);
        }
        debug_assert!(round <= self.round && self.round - round < DEPTH as u64);
        let at = Self::at(round);
        let all = match self.arrival[at] {
            // Acquire: edge 10, pairs with Release in `finish`.
            RoundArrival::Count => {
                self.reached(self.storage.completion(at).load(Ordering::Acquire), round)?
            }
            RoundArrival::Flags => self.scan(round)?,
        };
        if all {
            self.complete = round + 1;
        }
        Ok(all)
    }

    fn scan(&mut self, round: u64) -> Result<bool, CorruptWord> {
        if self.scanned.0 != round {
            self.scanned = (round, 0);
        }
        while self.scanned.1 < self.storage.members() {
            if !self.has_published(self.scanned.1, round)? {
                return Ok(false);
            }
            self.scanned.1 += 1;
        }
        Ok(true)
    }

    /// Whether a word that reads `seen` has got to `round`. Nobody is further ahead than team rule 2 allows.
    #[inline(always)]
    fn reached(&self, seen: u64, round: u64) -> Result<bool, CorruptWord> {
        if seen > self.round + DEPTH as u64 { Err(CorruptWord(seen)) } else { Ok(seen > round) }
    }

    /// Whether the slot of `member` for `round`, which the caller is in, can be read.
    ///
    /// # Errors
    /// [`CorruptWord`].
    #[inline]
    pub fn has_published(&self, member: usize, round: u64) -> Result<bool, CorruptWord> {
        // Acquire: edge 8, pairs with Release in `publish`.
        self.reached(self.storage.flag(member, Self::at(round)).load(Ordering::Acquire), round)
    }

    /// Writes the caller's slot of this round, which it has entered and not published.
    #[inline]
    pub fn write<R>(&self, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        self.storage.write_slot(self.me, Self::at(self.round), f)
    }

    /// Reads a member's slot of this round (team rule 3).
    #[inline]
    pub fn read<R>(&self, member: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        self.storage.read_slot(member, Self::at(self.round), f)
    }

    /// Writes the outcome of this round, in which the caller has arrived last (team rule 4).
    #[inline]
    pub fn write_outcome<R>(&self, f: impl FnOnce(*mut TeamSlot) -> R) -> R {
        self.storage.write_outcome(Self::at(self.round), f)
    }

    /// Reads the outcome of this round, which is complete (team rule 4).
    #[inline]
    pub fn read_outcome<R>(&self, f: impl FnOnce(*const TeamSlot) -> R) -> R {
        self.storage.read_outcome(Self::at(self.round), f)
    }

    /// Shows the caller's slot, and what it has written in bulk, to whoever waits for it. An arrival by flag, too.
    #[inline]
    pub fn publish(&self) {
        // Release: edge 8, pairs with Acquire in `has_published`.
        self.storage.flag(self.me, Self::at(self.round)).store(self.round + 1, Ordering::Release);
    }

    /// Arrives: what the caller has written is there for whoever knows the round to be complete, and it will not look
    /// at what was written in rounds before.
    ///
    /// # Errors
    /// [`CorruptWord`].
    #[inline]
    pub fn arrive(&mut self) -> Result<Arrived, CorruptWord> {
        let at = Self::at(self.round);
        if self.arrival[at] == RoundArrival::Flags {
            self.publish();
            return Ok(Arrived::Somewhere);
        }
        // Release: edge 9, pairs with Acquire here, of the last to arrive: so it has seen all that the others wrote.
        let came = self.storage.count(at).fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        match came.cmp(&self.full[at]) {
            core::cmp::Ordering::Less => Ok(Arrived::Somewhere),
            core::cmp::Ordering::Equal => Ok(Arrived::Last),
            core::cmp::Ordering::Greater => Err(CorruptWord(came)),
        }
    }

    /// Marks the round complete; the last to arrive does.
    #[inline]
    pub fn finish(&mut self) {
        // Release: edge 10, pairs with Acquire in `is_complete`.
        self.storage.completion(Self::at(self.round)).store(self.round + 1, Ordering::Release);
        self.complete = self.round + 1;
    }

    /// Goes on to the next round.
    #[inline]
    pub fn leave(&mut self) {
        self.round += 1;
    }

    /// Says that the caller is about to sleep; it looks once more afterwards (team rule 5). Returns at once if nobody
    /// has rung since it last said so.
    pub fn register(&self, fences: AsymmetricFence) {
        mark(&self.storage, self.me).set(fences);
    }

    /// Takes the caller's mark away; a member that has seen it may still ring.
    pub fn unregister(&self) {
        mark(&self.storage, self.me).clear();
    }

    /// Calls `ring` for the members that sleep, after something was published (team rule 5).
    #[inline]
    pub fn wake(&self, fences: AsymmetricFence, ring: impl FnMut(usize)) {
        fences.light_barrier();
        let words = self.storage.members().div_ceil(64);
        if (0..words).any(|word| has_sleepers(self.storage.sleepers(word))) {
            self.take_sleepers(words, ring);
        }
    }

    #[cold]
    fn take_sleepers(&self, words: usize, mut ring: impl FnMut(usize)) {
        let members = self.storage.members();
        // A bit beyond the last member is nobody's (team rule 7).
        let wake = |member| {
            if member < members {
                ring(member)
            }
        };
        take_sleepers((0..words).map(|word| self.storage.sleepers(word)), wake);
    }
}

/// The mark of member `me`, which says that it sleeps.
fn mark<S: TeamMemory>(storage: &S, me: usize) -> SleepMark<'_> {
    SleepMark::new(storage.sleepers(me / 64), (me % 64) as u32)
}

/// What a member waits for while another of its threads has the view: see [`Rounds::awaited`].
#[derive(Debug, Clone)]
pub struct Awaited<S> {
    storage: S,
    me: usize,
    round: u64,
    words: Words,
}

/// Which words say that a condition holds.
#[derive(Debug, Clone, Copy)]
enum Words {
    /// The completion word of the round.
    Completion,
    /// The flags of the members from one to before another.
    Flags(usize, usize),
}

impl<S: TeamMemory> Awaited<S> {
    /// Says that the caller is about to sleep, and returns whether it need not: [`Rounds::holds`] may say something
    /// else now than it did (team rule 5).
    #[must_use]
    pub fn register(&self, fences: AsymmetricFence) -> bool {
        mark(&self.storage, self.me).set(fences);
        let at = (self.round % DEPTH as u64) as usize;
        // Relaxed: behind the fence of the mark, the sleeper's load of team rule 5; `Rounds` looks again.
        let has_come = |word: &AtomicU64| word.load(Ordering::Relaxed) > self.round;
        match self.words {
            Words::Completion => has_come(self.storage.completion(at)),
            Words::Flags(begin, end) => (begin..end).all(|member| has_come(self.storage.flag(member, at))),
        }
    }

    /// Returns the members that may not have come: for a report.
    #[must_use]
    pub fn absent(&self) -> Vec<usize> {
        let at = (self.round % DEPTH as u64) as usize;
        let (begin, end) = match self.words {
            Words::Completion => (0, self.storage.members()),
            Words::Flags(begin, end) => (begin, end),
        };
        // A count does not say who has come. Relaxed: a report.
        let has_come = |member| {
            matches!(self.words, Words::Flags(..))
                && self.storage.flag(member, at).load(Ordering::Relaxed) > self.round
        };
        (begin..end).filter(|&member| member != self.me && !has_come(member)).collect()
    }
}
