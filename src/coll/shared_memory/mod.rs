//! Collectives through a shared-memory team ([`crate::team`]): each is a sequence of the team's rounds.
//!
//! [`TeamGuard`] is the team of a communicator while one of its members performs a collective. Four files give it operations:
//! `data_movement` those that move data, `reduction` those that reduce it, `prefix` reduce-scatters and scans, `direct` all of them for long data.

mod data_movement;
mod direct;
mod prefix;
mod reduction;

pub(in crate::coll) use direct::one_run;
pub use reduction::Operands;

use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::shm::telemetry::{Wait, Waiting};
use crate::sync::ConditionalGuard;
use crate::team::{
    Arrived, CorruptWord, MappedSegment, Membership, PARTS, PAYLOAD, RoundArrival, Rounds, Team, TeamSlot,
};
use core::ops::Range;

/// How often a word is polled, where every rank has a CPU, before the caller waits as for a message: about as long as members
/// that run in step are apart.
const POLLS: u32 = 50;

/// An operation as slots name it, so that members notice when they are not in the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationKey(u64);

/// In an outcome: the operands could not be reduced.
const FAILED: u64 = u64::MAX;

impl OperationKey {
    /// Makes the key of an operation from or to `root` (0 where there is none), of `bytes` bytes.
    #[must_use]
    pub const fn new(operation: Collective, root: usize, bytes: usize) -> Self {
        // Not 0: that is the value of a slot that no member has written.
        Self::numbered(operation as u8 + 1, root, bytes)
    }

    const fn numbered(kind: u8, root: usize, bytes: usize) -> Self {
        Self((kind as u64) << 56 | (root as u64 & 0xffff) << 40 | bytes as u64 & ((1 << 40) - 1))
    }
}

fn disagreement(from: usize) -> Error {
    Error::Other(format!(
        "rank {from} is in another collective operation than this rank, or gives another length or root; the order of calls, \
         counts or types differ between ranks"
    ))
}

/// A communicator's team while the caller performs a collective, in which all members take part. It is locked where several threads
/// may be inside the engine.
pub struct TeamGuard<'a> {
    pub(super) engine: &'a Engine,
    comm: &'a Comm,
    membership: ConditionalGuard<'a, Membership>,
    /// How the members arrive in its rounds.
    pub(in crate::coll) arrival: RoundArrival,
    /// How often a word is polled before the caller waits.
    polls: u32,
}

impl<'a> TeamGuard<'a> {
    /// Returns the guard of the team, all of whose members arrive by `arrival`, if the caller is a member.
    #[inline(always)]
    #[must_use]
    pub fn new(
        engine: &'a Engine,
        comm: &'a Comm,
        membership: ConditionalGuard<'a, Membership>,
        arrival: RoundArrival,
    ) -> Option<Self> {
        matches!(*membership, Membership::Member(_)).then(|| {
            let polls = if engine.config().shape().is_oversubscribed() { 1 } else { POLLS };
            Self { engine, comm, membership, arrival, polls }
        })
    }

    #[inline]
    fn team(&mut self) -> &mut Team {
        match &mut *self.membership {
            Membership::Member(team) => team,
            Membership::Unknown | Membership::None => {
                unreachable!("a team has a membership, and keeps it locked")
            }
        }
    }

    #[inline]
    pub(super) fn rounds(&mut self) -> &mut Rounds<MappedSegment> {
        &mut self.team().rounds
    }

    /// Returns the member of this rank, if there is one.
    #[inline]
    #[must_use]
    pub fn member(&self, rank: i32) -> Option<usize> {
        self.comm.has_peer(rank).then_some(rank as usize)
    }

    /// Returns the caller's rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Returns the number of members.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.comm.peers().size() as usize
    }

    /// Marks the team as unusable; the first reason counts, and is returned.
    #[cold]
    pub(super) fn fail_with(&mut self, error: Error) -> Error {
        self.team().failure.get_or_insert(error).clone()
    }

    #[cold]
    fn corrupt_word(&mut self, what: CorruptWord) -> Error {
        let context = self.comm.context;
        self.fail_with(Error::Intern(format!(
            "the shared memory of the collectives of context {context} has a word {:#x} that no rank writes",
            what.0
        )))
    }

    /// Waits until `done`.
    #[inline(always)]
    fn wait(&mut self, done: impl Fn(&mut Rounds<MappedSegment>) -> Result<bool, CorruptWord>) -> Result<()> {
        for _ in 0..self.polls {
            match done(self.rounds()) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(what) => return Err(self.corrupt_word(what)),
            }
        }
        self.wait_long(&done)
    }

    #[cold]
    #[inline(never)]
    fn wait_long(
        &mut self,
        done: &dyn Fn(&mut Rounds<MappedSegment>) -> Result<bool, CorruptWord>,
    ) -> Result<()> {
        let (engine, context) = (self.engine, self.comm.context + 1);
        let rounds = &mut self.team().rounds;
        let (mut outcome, mut registered) = (Ok(false), false);
        let why = || Some(Wait { kind: Waiting::Collective, peer: None, tag: None, context, since: now() });
        let waited = engine.progress().wait_for_word(why, |sleepy| {
            outcome = done(rounds);
            if sleepy && outcome == Ok(false) {
                registered = true;
                rounds.register(engine.fences);
                outcome = done(rounds);
            }
            outcome != Ok(false)
        });
        if registered {
            rounds.unregister();
        }
        match outcome {
            Err(what) => Err(self.corrupt_word(what)),
            Ok(_) => waited.map_err(|error| self.fail_with(error)),
        }
    }

    /// Begins a round and enters it.
    #[inline]
    pub(super) fn enter(&mut self) -> Result<()> {
        let arrival = self.arrival;
        let team = self.team();
        if let Some(failure) = &team.failure {
            return Err(failure.clone());
        }
        team.rounds.begin(arrival);
        self.wait(Rounds::may_enter)
    }

    /// Arrives; the last to arrive calls `last`. Returns whether the caller did.
    #[inline]
    pub(super) fn arrive(&mut self, last: impl FnOnce(&mut Self)) -> Result<bool> {
        match self.rounds().arrive() {
            Ok(Arrived::Last) => {
                last(self);
                self.rounds().finish();
                self.wake();
                Ok(true)
            }
            Ok(Arrived::Somewhere) => {
                if self.arrival == RoundArrival::Flags {
                    self.wake();
                }
                Ok(false)
            }
            Err(what) => Err(self.corrupt_word(what)),
        }
    }

    /// Waits until all have arrived in this round.
    #[inline(always)]
    pub(super) fn wait_complete(&mut self) -> Result<()> {
        self.wait(|rounds| rounds.is_complete(rounds.round()))
    }

    /// Leaves the round.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.rounds().leave();
    }

    #[inline]
    fn wake(&mut self) {
        let (engine, comm) = (self.engine, self.comm);
        self.rounds()
            .wake(engine.fences, |member| engine.progress().wake_peer(comm.world_rank_of(member as i32)));
    }

    /// Reads the payload of `member`'s slot, which is published or the round complete.
    #[inline]
    pub(super) fn read_slot<R>(
        &mut self,
        member: usize,
        what: OperationKey,
        f: impl FnOnce(&[u8; PAYLOAD]) -> R,
    ) -> Result<R> {
        self.rounds().read(member, |slot| take(slot, what, f)).ok_or_else(|| disagreement(member))
    }

    /// Writes the caller's slot in a round that it has entered.
    #[inline]
    pub(super) fn write_slot(&mut self, what: OperationKey, f: impl FnOnce(&mut [u8; PAYLOAD])) {
        self.rounds().write(|slot| put(slot, what, f));
    }

    /// Writes the outcome, for `last` of [`Self::arrive`]; that there is none, if it is not `good`.
    #[inline]
    pub(super) fn write_outcome(
        &mut self,
        what: OperationKey,
        good: bool,
        f: impl FnOnce(&mut [u8; PAYLOAD]),
    ) {
        self.rounds().write_outcome(|slot| put(slot, if good { what } else { OperationKey(FAILED) }, f));
    }

    /// Reads the outcome of the round, which is complete.
    #[inline]
    pub(super) fn read_outcome<R>(
        &mut self,
        what: OperationKey,
        f: impl FnOnce(&[u8; PAYLOAD]) -> R,
    ) -> Result<R> {
        self.rounds().read_outcome(|slot| take(slot, what, f)).ok_or_else(|| {
            Error::Other(
                "the rank that reduces the operands of this collective could not; the order of calls, counts, types or \
                 operations differ between ranks"
                    .into(),
            )
        })
    }

    /// One member's data to all: `root` writes `len` bytes, the others read them. `len` is at most
    /// [`Self::room_one_to_all`].
    pub(super) fn one_to_all(
        &mut self,
        what: OperationKey,
        root: usize,
        len: usize,
        write: impl FnOnce(&mut [u8]),
        read: impl FnOnce(&[u8]),
    ) -> Result<()> {
        self.enter()?;
        let part = if len > PAYLOAD { Some(self.part(Readers::Arrive, self.rank() == root)?) } else { None };
        if self.rank() == root {
            self.write_slot(what, |payload| match part {
                None => write(&mut payload[..len]),
                // SAFETY: team rule 6: the part is free and this round's, in which only the root writes; `len` fits.
                Some(part) => write(unsafe { core::slice::from_raw_parts_mut(part, len) }),
            });
            self.rounds().publish();
            self.wake();
            if self.arrival == RoundArrival::Count {
                self.arrive(|_| {})?;
            }
            self.leave();
            return Ok(());
        }
        self.wait(|rounds| rounds.has_published(root, rounds.round()))?;
        let copied = self.read_slot(root, what, |payload| match part {
            None => read(&payload[..len]),
            // SAFETY: team rule 6: the root has written it, and no member writes it before we have arrived.
            Some(part) => read(unsafe { core::slice::from_raw_parts(part, len) }),
        });
        self.arrive(|_| {})?;
        self.leave();
        copied
    }

    /// Moves members' data among them: each writes `len` bytes, and is shown those of the members that it wants. `len` is at most
    /// [`Self::room_among_all`], with the same `width`.
    pub(super) fn among_all(
        &mut self,
        what: OperationKey,
        (len, width): (usize, Width),
        write: impl FnOnce(&mut [u8]),
        wanted: Range<usize>,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.enter()?;
        let (rank, size, stride) = (self.rank(), self.size(), self.room_among_all(width));
        let part = if len > PAYLOAD { Some(self.parts(width)?) } else { None };
        self.write_slot(what, |payload| match part {
            None => write(&mut payload[..len]),
            // SAFETY: team rule 6: the part is free and this round's; every member writes its own stride of it.
            Some(part) => write(unsafe { core::slice::from_raw_parts_mut(part.add(rank * stride), len) }),
        });
        self.arrive(|_| {})?;
        let mut result = Ok(());
        let others = wanted.clone().any(|member| member != rank);
        if others && self.arrival == RoundArrival::Count || wanted.len() == size {
            self.wait_complete()?;
        } else if others {
            for member in wanted.clone() {
                self.wait(|rounds| rounds.has_published(member, rounds.round()))?;
            }
        }
        for member in wanted {
            let shown = self.read_slot(member, what, |payload| match part {
                None => each(member, &payload[..len]),
                Some(part) => {
                    // SAFETY: team rule 6: written by `member` before it arrived, and by no member until we have left.
                    let bytes = unsafe { core::slice::from_raw_parts(part.add(member * stride), len) };
                    each(member, bytes)
                }
            });
            result = result.and(shown.and_then(|shown| shown));
        }
        self.leave();
        result
    }

    /// Bytes that [`Self::one_to_all`] can take, once [`Self::has_room`] has said yes.
    pub(super) fn room_one_to_all(&mut self) -> usize {
        self.rounds().storage().part_bytes().min(self.engine.config().coll_piece())
    }

    /// Bytes of each member that [`Self::among_all`] can take, once [`Self::has_room`] has said yes.
    #[inline]
    pub(super) fn room_among_all(&mut self, width: Width) -> usize {
        (self.rounds().storage().part_bytes() * width as usize / self.size()) & !63
    }

    /// Start of the next part of the bulk, or of the next two, which lie side by side, once they are free; all write, then all read.
    fn parts(&mut self, width: Width) -> Result<*mut u8> {
        if width == Width::One {
            return self.part(Readers::Stay, true);
        }
        // A pair begins at an even part. One that is left out stays as free as it was.
        let team = self.team();
        team.uses = team.uses.next_multiple_of(2);
        let first = self.part(Readers::Stay, true)?;
        self.part(Readers::Stay, true)?;
        Ok(first)
    }

    /// Whether `len` bytes of each member, or pieces of them, have a place. All members get the same answer.
    ///
    /// # Errors
    /// Those of waiting.
    pub(super) fn has_room(&mut self, len: usize) -> Result<bool> {
        if len <= PAYLOAD {
            return Ok(true);
        }
        match self.team().bulk {
            Some(there) => Ok(there),
            None => self.take_bulk(),
        }
    }

    /// Rank 0 takes the memory of the bulk; a round says to the others whether there is any.
    #[cold]
    fn take_bulk(&mut self) -> Result<bool> {
        let mut there = self.rank() == 0 && self.take_memory();
        let own = [u8::from(there)];
        self.one_to_all(
            OperationKey::numbered(0xff, 0, 1),
            0,
            1,
            |to| to.copy_from_slice(&own),
            |from| there = from == [1],
        )?;
        self.team().bulk = Some(there);
        Ok(there)
    }

    fn take_memory(&mut self) -> bool {
        let team = self.team();
        team.job.collective_segments().reserve_bulk(team.index).is_ok()
    }

    /// Start of the next part of the bulk; for a writer, once it is free (team rule 6).
    pub(super) fn part(&mut self, readers: Readers, writes: bool) -> Result<*mut u8> {
        let team = self.team();
        let part = (team.uses % PARTS as u64) as usize;
        let free_when = team.free_when[part];
        team.uses += 1;
        team.free_when[part] = team.rounds.round() + 1 + readers as u64;
        let start = team.rounds.storage().part(part);
        if let (true, Some(round)) = (writes, free_when.checked_sub(1)) {
            self.wait(move |rounds| rounds.is_complete(round))?;
        }
        Ok(start)
    }
}

/// How many parts of the bulk a round takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One = 1,
    /// While they are read, two more can be written, and no others.
    Two = 2,
}

// Pairs never go round the end.
const _: () = assert!(PARTS.is_multiple_of(2));

/// Until when a part is read that is written in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// They read, then arrive in that round.
    Arrive = 0,
    /// They arrive, then read.
    Stay = 1,
    /// They read in the round after it, having arrived.
    NextRound = 2,
}

#[inline]
fn put(slot: *mut TeamSlot, what: OperationKey, f: impl FnOnce(&mut [u8; PAYLOAD])) {
    // SAFETY: the caller's slot, which it has entered and not published (team rules 2 and 3), or the outcome (team rule 4).
    let slot = unsafe { &mut *slot };
    slot.what = what.0;
    f(&mut slot.payload);
}

#[inline]
fn take<R>(slot: *const TeamSlot, what: OperationKey, f: impl FnOnce(&[u8; PAYLOAD]) -> R) -> Option<R> {
    // SAFETY: written before we saw so, and not again until we have arrived in a later round (team rules 2 to 4).
    let slot = unsafe { &*slot };
    (slot.what == what.0).then(|| f(&slot.payload))
}
