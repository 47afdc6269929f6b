//! Collectives through a shared-memory team ([`crate::team`]): each is a sequence of the team's rounds.
//!
//! [`TeamGuard`] is the team of a communicator while one of its members performs a collective. Five files give it
//! operations: `data_movement` those that move data, `reduction` those that reduce it (in pieces, whose parts
//! `division` shares out), `prefix` reduce-scatters and scans, `direct` and `direct_reduction` both kinds for long
//! data. What does not fit into slots goes through the `bulk`. How it waits, and so whether the operations block,
//! depends on what holds the team (`hold`); what it serves, on the `algorithm_kind` of an operation and on its
//! `capacity`.

/// Waits until a condition holds, without a future where it holds soon.
macro_rules! wait {
    ($team:expr, $condition:expr) => {{
        let condition = $condition;
        if !$team.holds(condition)? {
            $team.wait(condition).await?;
        }
    }};
}

mod algorithm_kind;
mod bulk;
mod capacity;
mod data_movement;
mod direct;
mod direct_reduction;
mod division;
mod hold;
mod operation_key;
mod prefix;
mod reduction;

pub use algorithm_kind::AlgorithmKind;
use bulk::{Readers, Shares, Width};
pub use capacity::TeamCapacity;
pub(in crate::coll) use direct::one_run;
pub use hold::{Description, Hold, InTurn, Locked};
pub use operation_key::OperationKey;
use operation_key::{FAILED, disagreement};
pub use reduction::Operands;

use crate::arch::serialize_loads;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::ring::Room;
use crate::team::{
    Arrived, Condition, CorruptWord, MappedSegment, PAYLOAD, RoundArrival, Rounds, Team, TeamSlot,
};
use core::future::Future;

/// How often a word is polled, where every rank has a CPU, before the caller waits as for a message: about as long as
/// members that run in step are apart. Nor does an operation go on in the background before, which costs about as long.
const POLLS: u32 = 50;

/// Copies bytes of the caller's to where other members read them.
pub fn show(from: &[u8], to: &mut Room<'_>) {
    assert_eq!(from.len(), to.len(), "room for all bytes");
    // SAFETY: both are borrowed and as long as each other; who borrows `to` alone, has none of `from` in it.
    unsafe { to.fill_run(from.as_ptr()) };
}

/// A communicator's team while the caller performs a collective, in which all members take part.
pub struct TeamGuard<'a, H> {
    pub(super) engine: &'a Engine,
    comm: &'a Comm,
    hold: H,
    /// How the members arrive in its rounds.
    pub(in crate::coll) arrival: RoundArrival,
}

/// The team of blocking collectives.
pub type BlockingTeam<'a> = TeamGuard<'a, Locked<'a>>;

impl<'a, H: Hold> TeamGuard<'a, H> {
    /// Returns the guard of the team that `hold` holds, all of whose members arrive by `arrival`.
    #[inline(always)]
    #[must_use]
    pub const fn new(engine: &'a Engine, comm: &'a Comm, hold: H, arrival: RoundArrival) -> Self {
        Self { engine, comm, hold, arrival }
    }

    /// Returns the communicator.
    #[inline]
    #[must_use]
    pub fn comm(&self) -> &'a Comm {
        self.comm
    }

    /// Returns whether an operation is messages instead; `bytes` as for [`TeamCapacity::algorithm_kind`].
    #[inline]
    #[must_use]
    pub fn goes_by_messages(&mut self, operation: Collective, bytes: usize) -> bool {
        let may = bytes > PAYLOAD || matches!(operation, Collective::Scan | Collective::Exscan);
        may && self.capacity().goes_by_messages(operation, bytes)
    }

    /// Returns the number of the round that the caller is in.
    #[inline]
    #[must_use]
    pub fn round(&mut self) -> u64 {
        self.rounds().round()
    }

    /// Counts a call that began in round `before` ([`crate::coll::NumberedCall`]):
    /// as one if it is over, as none if it has not begun.
    pub fn count_call(&mut self, before: u64, is_over: bool) {
        let taken = self.round().wrapping_sub(before);
        self.comm.count_calls(u64::from(is_over).wrapping_sub(taken));
    }

    #[inline(always)]
    fn team(&mut self) -> &mut Team {
        self.hold.team()
    }

    #[inline(always)]
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
        hold::fail_with(self.team(), error)
    }

    #[cold]
    fn corrupt_word(&mut self, what: CorruptWord) -> Error {
        let comm = self.comm;
        hold::corrupt_word(self.team(), comm, what)
    }

    /// Returns whether `condition` holds, having looked as often as pays before a wait.
    #[inline(always)]
    fn holds(&mut self, condition: Condition) -> Result<bool> {
        for _ in 0..self.hold.checks() {
            match self.rounds().holds(condition) {
                Ok(false) => serialize_loads(),
                Ok(true) => return Ok(true),
                Err(what) => return Err(self.corrupt_word(what)),
            }
        }
        Ok(false)
    }

    /// Waits until `condition` holds, which it did not.
    #[cold]
    fn wait(&mut self, condition: Condition) -> impl Future<Output = Result<()>> {
        self.hold.wait(self.engine, self.comm, condition)
    }

    /// Begins a round, which is entered when the condition holds that is returned.
    #[inline]
    pub(super) fn begin(&mut self) -> Result<Condition> {
        let arrival = self.arrival;
        let team = self.team();
        if let Some(failure) = &team.failure {
            return Err(failure.clone());
        }
        team.rounds.begin(arrival);
        Ok(Condition::MayEnter)
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

    /// That all have arrived in this round.
    #[inline(always)]
    pub(super) fn completion(&mut self) -> Condition {
        Condition::Complete(self.rounds().round())
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
        // SAFETY: team rules 2 and 3: the slot is published or the round complete,
        // and the caller has not left the round.
        match self.rounds().read(member, |slot| unsafe { take(slot, what, f) }) {
            Ok(result) => Ok(result),
            Err(theirs) => Err(disagreement(member, theirs, what)),
        }
    }

    /// Writes the caller's slot in a round that it has entered.
    #[inline]
    pub(super) fn write_slot(&mut self, what: OperationKey, f: impl FnOnce(&mut [u8; PAYLOAD])) {
        // SAFETY: team rules 2 and 3: the caller's slot, in a round that it has entered and not published.
        self.rounds().write(|slot| unsafe { put(slot, what, f) });
    }

    /// Writes the outcome, for `last` of [`Self::arrive`]; that there is none, if it is not `good`.
    #[inline]
    pub(super) fn write_outcome(
        &mut self,
        what: OperationKey,
        good: bool,
        f: impl FnOnce(&mut [u8; PAYLOAD]),
    ) {
        let what = if good { what } else { FAILED };
        // SAFETY: team rule 4: the caller has arrived last, and has not marked the round complete.
        self.rounds().write_outcome(|slot| unsafe { put(slot, what, f) });
    }

    /// Reads the outcome of the round, which is complete.
    #[inline]
    pub(super) fn read_outcome<R>(
        &mut self,
        what: OperationKey,
        f: impl FnOnce(&[u8; PAYLOAD]) -> R,
    ) -> Result<R> {
        // SAFETY: team rules 2 and 4: the round is complete, and the caller has not left it.
        self.rounds().read_outcome(|slot| unsafe { take(slot, what, f) }).map_err(|_| {
            Error::Other(
                "the rank that reduces the operands of this collective could not; the order of calls, counts, types or \
                 operations differ between ranks"
                    .into(),
            )
        })
    }

    /// One member's data to all: `copy` is given room for `len` bytes at `root`, and the bytes at the others. A part
    /// has room for `len` ([`Self::make_room`]).
    pub(super) async fn one_to_all(
        &mut self,
        what: OperationKey,
        root: usize,
        len: usize,
        copy: impl FnOnce(Place<'_>),
    ) -> Result<()> {
        wait!(self, self.begin()?);
        let part = if len > PAYLOAD {
            let (count, writes) = (self.stretches_for(len), self.rank() == root);
            Some(self.stretches(count, Readers::Arrive, writes).await?)
        } else {
            None
        };
        if self.rank() == root {
            let learned = self.learned_of_runs(part.is_some());
            self.write_slot(what, |payload| match part {
                None => copy(Place::Room(&mut Room::from(&mut payload[..len]))),
                Some(part) => {
                    // SAFETY: team rule 6: the part is free and this round's,
                    // in which only the root writes; `len` fits.
                    let room = unsafe { core::slice::from_raw_parts_mut(part, len) };
                    copy(Place::Room(&mut learned.room(room)));
                }
            });
            self.rounds().publish();
            self.wake();
            if self.arrival == RoundArrival::Count {
                self.arrive(|_| {})?;
            }
            self.leave();
            return Ok(());
        }
        wait!(self, Condition::Published(root));
        let copied = self.read_slot(root, what, |payload| match part {
            None => copy(Place::Bytes(&payload[..len])),
            // SAFETY: team rule 6: the root has written it, and no member writes it before we have arrived.
            Some(part) => copy(Place::Bytes(unsafe { core::slice::from_raw_parts(part, len) })),
        });
        self.arrive(|_| {})?;
        self.leave();
        copied
    }

    /// Moves members' data among them: each writes `len` bytes, and is shown those of the members that it wants. `len`
    /// is at most [`Self::room_among_all`], with the same `width`.
    pub(super) async fn among_all(
        &mut self,
        what: OperationKey,
        (len, width): (usize, Width),
        write: impl FnOnce(&mut Room<'_>, Shares),
        wanted: Wanted,
        mut each: impl FnMut(usize, &[u8], Shares) -> Result<()>,
    ) -> Result<()> {
        wait!(self, self.begin()?);
        let (rank, size) = (self.rank(), self.size());
        let part = if len > PAYLOAD { Some(self.parts(width).await?) } else { None };
        let stride = match part {
            Some(_) => (self.rounds().storage().part_bytes() * width as usize / size) & !63,
            None => 0,
        };
        let shares = if part.is_some() { self.shares() } else { Shares::FIXED };
        let learned = self.learned_of_runs(part.is_some());
        self.write_slot(what, |payload| match part {
            None => write(&mut Room::from(&mut payload[..len]), shares),
            Some(part) => {
                // SAFETY: team rule 6: the part is free and this round's; every member writes its own stride of it.
                let own = unsafe { core::slice::from_raw_parts_mut(part.add(shares.of(rank) * stride), len) };
                write(&mut if shares.alternate() { Room::near(own) } else { learned.room(own) }, shares);
            }
        });
        self.arrive(|_| {})?;
        let mut result = Ok(());
        let wants_others = wanted.members(rank, size).any(|member| member != rank);
        // A long one is read while others still write theirs.
        let one_by_one = self.arrival == RoundArrival::Flags && part.is_some();
        if wants_others && !one_by_one {
            wait!(self, self.completion());
        }
        for member in wanted.members(rank, size) {
            if one_by_one {
                wait!(self, Condition::Published(member));
            }
            let shown = self.read_slot(member, what, |payload| match part {
                None => each(member, &payload[..len], shares),
                Some(part) => {
                    // SAFETY: team rule 6: written by `member` before it arrived, and by no member until we have left.
                    let bytes =
                        unsafe { core::slice::from_raw_parts(part.add(shares.of(member) * stride), len) };
                    each(member, bytes, shares)
                }
            });
            result = result.and(shown.and_then(|shown| shown));
        }
        self.leave();
        result
    }

    /// Bytes that [`Self::one_to_all`] can take, once [`Self::make_room`] has said yes to as many.
    pub(super) fn room_one_to_all(&mut self) -> usize {
        self.capacity().room_one_to_all()
    }

    /// Bytes of each member that [`Self::among_all`] can take,
    /// once [`Self::make_room_among_all`] has said yes to as many.
    #[inline]
    pub(super) fn room_among_all(&mut self, width: Width) -> usize {
        self.capacity().room_among_all(width)
    }

    /// What the team has room for.
    #[inline]
    pub(super) fn capacity(&mut self) -> TeamCapacity<'a> {
        let (engine, size) = (self.engine, self.size());
        let team = self.team();
        let part_bytes = team.rounds.storage().most_part_bytes();
        TeamCapacity { config: engine.config(), size, part_bytes, direct: team.direct != Some(false) }
    }
}

/// Where the data of a round lies.
pub(super) enum Place<'p> {
    /// Room for the caller's.
    Room(&'p mut Room<'p>),
    /// Another member's.
    Bytes(&'p [u8]),
}

/// Whose data a member wants in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// No member's.
    None,
    /// Every member's. The caller begins behind itself: one member's cache gives its lines to one reader as fast as to
    /// all together.
    All,
    /// That of the first so many members, in the order in which operands are reduced: from the highest down.
    FromTheHighest(usize),
}

impl Wanted {
    /// The members whose data `rank`, one of `size`, wants, in the order in which it reads them.
    fn members(self, rank: usize, size: usize) -> impl Iterator<Item = usize> {
        let count = match self {
            Self::None => 0,
            Self::All => size,
            Self::FromTheHighest(count) => count,
        };
        (0..count).map(move |step| match self {
            Self::FromTheHighest(_) => count - 1 - step,
            _ => (rank + 1 + step) % size,
        })
    }
}

/// Writes the key and the payload of a slot.
///
/// # Safety
/// Nobody else accesses the slot: it is the caller's, who has entered the round and not published it (team rules 2 and
/// 3), or the outcome of a round in which the caller has arrived last (team rule 4).
#[inline]
unsafe fn put(slot: *mut TeamSlot, what: OperationKey, f: impl FnOnce(&mut [u8; PAYLOAD])) {
    // SAFETY: nobody else accesses the slot, as the caller promises.
    let slot = unsafe { &mut *slot };
    // The line that others poll is written last: one of them may take it away while the processor waits for the others.
    f(&mut slot.payload);
    slot.what = what.0;
}

/// Reads the payload of a slot whose key is `what`.
///
/// # Errors
/// The key that it has instead.
///
/// # Safety
/// Nobody writes the slot: it is published, or the round complete,
/// and the caller has not arrived in a later one (team rules 2 to 4).
#[inline]
unsafe fn take<R>(
    slot: *const TeamSlot,
    what: OperationKey,
    f: impl FnOnce(&[u8; PAYLOAD]) -> R,
) -> Result<R, OperationKey> {
    // SAFETY: nobody writes the slot, as the caller promises.
    let slot = unsafe { &*slot };
    if slot.what == what.0 { Ok(f(&slot.payload)) } else { Err(OperationKey(slot.what)) }
}
