//! What collectives send through: messages between the ranks of a communicator, as `async` operations.
//!
//! | file | what lives there |
//! |---|---|
//! | `blocking` | over an engine; each operation has finished when it returns |
//! | `nonblocking` | over an engine; operations go on while others make progress |
//! | `subset` | over some ranks of another transport |
//! | `threads` | between threads, for tests of algorithms |

mod blocking;
mod nonblocking;
mod subset;
#[cfg(test)]
pub mod threads;

pub use blocking::{BlockingTransport, blocking_barrier, new_context, team_of};
pub use nonblocking::{NonblockingTransport, SequenceNumber, team_in_turn};
pub use subset::Subset;

use super::selection::requested;
use super::shared_memory::{Hold, TeamCapacity, TeamGuard};
use crate::comm::Comm;
use crate::engine::{Engine, Mode};
use crate::error::{Error, Result};
use crate::events::{CollMode, Collective};
use crate::p2p::Request;
use crate::sync::{Arc, AtomicU8, Ordering};
use crate::team::{Membership, RoundArrival, Team};
use crate::variables::algorithms::AUTO;
use core::cell::OnceCell;

/// Ranks that send each other bytes. Messages from one rank to another arrive in order.
///
/// A future of these methods must be polled to its end or leaked: the bytes are in use until then.
#[allow(async_fn_in_trait)] // one thread polls a future at a time; `NonblockingOperation` sees to `Send`
pub trait Transport {
    /// The caller's rank, less than [`size`](Self::size) (in an intercommunicator, of its own group).
    fn rank(&self) -> usize;
    /// How many ranks `to` and `from` can name.
    fn size(&self) -> usize;
    /// Sends `bytes`.
    ///
    /// # Errors
    /// Those of the engine's transfer.
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()>;
    /// Receives exactly `room.len()` bytes.
    ///
    /// # Errors
    /// Those of the engine's transfer; [`Error::Truncate`] and [`Error::Other`] if the message has another length.
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()>;
    /// Sends and receives at once; neither waits for the other.
    ///
    /// # Errors
    /// As for [`send`](Self::send) and [`recv`](Self::recv).
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()>;
    /// Sends and receives any number of messages at once; the caller's own rank may be among the peers. Messages
    /// between the same two ranks are matched in order.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    async fn exchange_all(&self, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        self.exchange_all_while(sends, recvs, || Ok(())).await
    }
    /// Does the same, and `own` when the messages have begun, before it waits for any.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange), and those of `own`.
    async fn exchange_all_while(
        &self,
        sends: &[(usize, &[u8])],
        recvs: &mut [(usize, &mut [u8])],
        own: impl FnOnce() -> Result<()>,
    ) -> Result<()>;
    /// What holds the team while the caller performs an operation.
    type Hold<'t>: Hold
    where
        Self: 't;
    /// Returns the shared-memory team of the ranks, if all of them take part in such an operation and it has a team
    /// form. An operation asks for it once, before anything else that waits.
    async fn team(&self, _: Collective) -> Option<TeamGuard<'_, Self::Hold<'_>>> {
        None
    }
    /// Returns how members of the team arrive in such an operation and what the team has room for, as far as that is
    /// known before it is asked for.
    fn team_capacity(&self, _: Collective) -> Option<(RoundArrival, TeamCapacity<'_>)> {
        None
    }
    /// Whether a transfer has failed.
    fn has_failed(&self) -> bool {
        false
    }
    /// With what the first transfer has failed that has.
    fn failure(&self) -> Option<Error> {
        None
    }
    /// The value of an operation's control variable (0: none), the same at all ranks.
    fn requested(&self, _: Collective) -> u64 {
        0
    }
    /// Whether ranks outnumber CPUs, the same at all ranks.
    fn is_oversubscribed(&self) -> bool {
        false
    }
    /// Says that the messages of this operation go from all other ranks to one ([`Mode::ToRoot`]), or from one to all
    /// others ([`Mode::FromRoot`]). All ranks say it before they send or receive.
    fn set_message_mode(&self, _: Mode) {}
    /// Returns whether callers wait for an operation, or poll it, or start it again and again.
    fn mode(&self) -> CollMode {
        CollMode::Blocking
    }
}

/// What a message of the library's own is for; its tag on the collective context. Collectives on one communicator
/// happen in the same order on all ranks and messages do not overtake each other,
/// so nothing but traces and tools needs the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Purpose {
    /// Barriers.
    Barrier = 1,
    /// Broadcasts.
    Bcast,
    /// Gathers to one.
    Gather,
    /// Scatters.
    Scatter,
    /// Gathers to all.
    Allgather,
    /// Exchanges of all with all, and of neighbours.
    Alltoall,
    /// Reductions to one.
    Reduce,
    /// Reductions to all.
    Allreduce,
    /// Reductions of which every rank gets a part.
    ReduceScatter,
    /// Prefix reductions.
    Scan,
    /// Making communicators.
    Create,
    /// What the library says of the program when it ends.
    Report,
}

impl Purpose {
    /// The operation that messages of this purpose belong to, if they belong to one that users call.
    #[must_use]
    pub fn operation(self) -> Option<Collective> {
        Some(match self {
            Self::Barrier => Collective::Barrier,
            Self::Bcast => Collective::Bcast,
            Self::Gather => Collective::Gather,
            Self::Scatter => Collective::Scatter,
            Self::Allgather => Collective::Allgather,
            Self::Alltoall => Collective::Alltoall,
            Self::Reduce => Collective::Reduce,
            Self::Allreduce => Collective::Allreduce,
            Self::ReduceScatter => Collective::ReduceScatter,
            Self::Scan => Collective::Scan,
            Self::Create | Self::Report => return None,
        })
    }
}

/// Added to the tag of what stays within one group of an intercommunicator: both groups number their ranks from 0.
const WITHIN: i32 = 1 << 8;

/// User's tags from here on are none of [`user_tag`]'s.
const USER_TAGS_END: i32 = (1 << 30) - 1;

/// The tag of MPI_Comm_create_group and MPI_Intercomm_create with a user's `tag`: not positive, so that it is no
/// [`Purpose`]'s, and not that of leaving the job (`i32::MIN`). `None` for one from 2³⁰ - 1 on: the
/// negative numbers suffice for the others.
#[must_use]
pub const fn user_tag(tag: i32, connect: bool) -> Option<i32> {
    if tag >= USER_TAGS_END {
        return None;
    }
    Some(i32::MIN + 1 + tag + if connect { USER_TAGS_END } else { 0 })
}

/// The user's tag of a call of MPI_Comm_create_group whose messages have `tag`, if they are such a call's.
#[must_use]
pub const fn tag_of_group_call(tag: i32) -> Option<i32> {
    let user = tag.wrapping_sub(i32::MIN + 1);
    if user >= 0 && user < USER_TAGS_END { Some(user) } else { None }
}

/// From here on, tags are of calls among some of the members that have no user's number for a tag.
pub const NAMED_CALLS: i32 = 1 << 29;

/// The first failure of an operation's transfers.
///
/// After it the operation goes on, so that the other ranks do not wait for ever. But what the caller has is not what it
/// should send any more: in its place goes a message that is shorter or longer than its receiver expects, which fails
/// by it, too ([`in_place_of`](Self::in_place_of)). Where the job ends nothing is sent: the launcher ends the other
/// ranks, and their jobs', for the reason that there is.
struct Failure<'a> {
    engine: &'a Engine,
    /// The communicator of the operation.
    comm: &'a Comm,
    first: OnceCell<Error>,
    /// What has failed within the caller's group of an intercommunicator or with the other group.
    in_either_group: Option<Arc<AtomicU8>>,
}

/// Nothing has failed, a transfer has, the job ends: each counts for more than those before.
const NO_FAILURE: u8 = 0;
const A_TRANSFER: u8 = 1;
const THE_JOB: u8 = 2;

/// What has failed with this error.
fn extent(error: &Error) -> u8 {
    if matches!(error, Error::RankFailed { .. }) { THE_JOB } else { A_TRANSFER }
}

impl<'a> Failure<'a> {
    /// Of an operation on `comm`, which begins with one if a member has died some time ago or the communicator is
    /// revoked. Messages among some of the members, which have a user's tag or a name, are not concerned by the death
    /// of others.
    #[inline(always)]
    fn new(engine: &'a Engine, comm: &'a Comm, tag: i32) -> Self {
        let of_all = (1..NAMED_CALLS).contains(&tag);
        let given_up = of_all && comm.collective().is_given_up();
        let failure = if given_up { engine.trouble_of(comm.collective()) } else { None };
        let first = failure.map_or_else(OnceCell::new, OnceCell::from);
        Self { engine, comm, first, in_either_group: None }
    }

    /// Makes `other` know of each failure here, and this of those there:
    /// of the two transports of an operation on an intercommunicator.
    fn share_with(&mut self, other: &mut Self) {
        let both = Arc::new(AtomicU8::new(self.extent().max(other.extent())));
        self.in_either_group = Some(both.clone());
        other.in_either_group = Some(both);
    }

    /// The first failure; if there is none, `result`. A good one is not moved (decision 53).
    #[inline(always)]
    fn or<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Ok(value) if self.first.get().is_none() => Ok(value),
            result => self.or_bad(result),
        }
    }

    #[cold]
    fn or_bad<T>(&self, result: Result<T>) -> Result<T> {
        self.first.get().cloned().map_or(result, Err)
    }

    #[inline(always)]
    fn has_any(&self) -> bool {
        self.extent() != NO_FAILURE
    }

    /// What has failed.
    #[inline(always)]
    fn extent(&self) -> u8 {
        let here = self.first.get().map_or(NO_FAILURE, extent);
        // Relaxed: one thread at a time is in the operation, and the word publishes nothing.
        let in_either = |both: &Arc<AtomicU8>| both.load(Ordering::Relaxed);
        self.in_either_group.as_ref().map_or(here, |both| here.max(in_either(both)))
    }

    fn note<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.set(error)).ok()
    }

    #[cold]
    fn set(&self, error: Error) {
        if let Some(both) = &self.in_either_group {
            // Relaxed: as in `extent`.
            both.fetch_max(extent(&error), Ordering::Relaxed);
        }
        let _ = self.first.set(error);
    }

    /// Notes how a receive has ended of a message of `room` bytes from `from`, which has brought so many.
    #[inline(always)]
    fn note_received(&self, came: Result<usize>, room: usize, from: usize) {
        match came {
            Ok(came) if came == room => {}
            came => self.set(self.spoiled(came, room, from)),
        }
    }

    /// What is wrong with such a message: the death of a member or a revocation if there was one, for then it says that
    /// the sender has failed; else ranks disagree about the operation.
    #[cold]
    fn spoiled(&self, came: Result<usize>, room: usize, from: usize) -> Error {
        let disagreement = match came {
            Ok(came) => Error::Other(format!(
                "rank {from} sent {came} bytes where this collective expects {room}; counts or types differ between ranks, or the operation has failed there"
            )),
            Err(error @ Error::Truncate { .. }) => error,
            Err(error) => return error,
        };
        self.engine.trouble_by_now(self.comm.p2p()).unwrap_or(disagreement)
    }

    /// What is sent in place of `bytes`, if anything is.
    #[inline(always)]
    fn in_place_of<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        match (self.extent(), bytes) {
            (NO_FAILURE, _) => Some(bytes),
            (THE_JOB, _) => None,
            (_, []) => Some(&[0]),
            (..) => Some(&[]),
        }
    }
}

/// Bytes up to which a message is received when its turn has come, and no receive is posted before: what comes too soon
/// costs less than a request.
const FEW: usize = 1024;

/// A receive under way. Its room is the engine's until it is over: not even its length is asked of the room meanwhile.
struct ReceiveUnderWay {
    /// None if the receive was not started.
    request: Option<Request>,
    /// Bytes of the room.
    room: usize,
    from: usize,
}

/// Joins a team in its first operation: rank 0 takes a collective segment, one `of_operation` or any, and broadcasts
/// its number over `transport`, on which all members of `comm` can be reached.
#[cold]
async fn join_team<T: Transport>(
    transport: &T,
    engine: &Engine,
    comm: &Comm,
    of_operation: bool,
) -> Membership {
    if !engine.config().coll_shared() || engine.has_guests(comm.group().iter()) {
        return Membership::None;
    }
    let members = comm.size();
    let segments = engine.job().collective_segments();
    let taken = if comm.rank() == 0 { segments.allocate(members, of_operation) } else { None };
    let mut index = taken.unwrap_or(u32::MAX).to_le_bytes();
    let agreed = super::algorithms::bcast(transport, &mut index, 0).await;
    let index = u32::from_le_bytes(index);
    let there = index < engine.job().layout().collective_segments();
    if agreed.is_err() || transport.has_failed() || !there {
        return Membership::None;
    }
    // SAFETY: rank 0 has taken the segment for these members, and each joins once:
    // here, where its membership is unknown.
    Membership::Member(Box::new(unsafe {
        Team::join(engine.job(), index, members as usize, transport.rank())
    }))
}

/// Bytes that a root gets from all others together from which each of these copies all of its own, and the root no half
/// of it: it would read one half after the other, while the others, though they disturb each other,
/// copy at once (docs/decisions/0045).
const WRITTEN_ALONE: usize = 3 << 20;

/// The same of what a root has for all others, of which each reads its own.
const READ_ALONE: usize = 3 << 19;

/// The mode in which a message is sent, one of those to all `others` if `mode` says so; `receives`: its sender waits
/// for messages, too.
fn mode_of_send(mode: Mode, others: usize, receives: bool) -> Mode {
    match (receives, others) {
        (true, _) => Mode::Exchange,
        (false, 1) => Mode::Standard,
        (false, _) => mode,
    }
}

/// The mode in which a message of `bytes` bytes is received, one of those of all `others` if `mode` says so. The only
/// other member reads what a root has for it: the root copies its own block meanwhile, and where the root changes, what
/// one has written into the other's memory comes back.
fn mode_of_receive(mode: Mode, bytes: usize, others: usize) -> Mode {
    if others == 1 {
        return mode;
    }
    let alone_from = match mode {
        Mode::ToRoot => WRITTEN_ALONE,
        Mode::FromRoot => READ_ALONE,
        _ => return mode,
    };
    if bytes.saturating_mul(others) < alone_from { Mode::Standard } else { mode }
}

/// The mode of messages among the members of `comm`, of which all have the same end,
/// or the same beginning, as `mode` says. Where they share CPUs, those that go to one root had better not wait for its
/// turn; what it has for the others they copy themselves.
fn mode_among_many(engine: &Engine, comm: &Comm, mode: Mode) -> Mode {
    let (is_to_root, are_two) = (mode == Mode::ToRoot, comm.peers().size() <= 2);
    let stays = if is_to_root { !are_two } else { !are_oversubscribed(engine, comm) };
    if stays { mode } else { Mode::Standard }
}

/// Which algorithm over messages is asked for. Members of several jobs may have been asked for different ones,
/// and take none of these.
fn algorithm_for(engine: &Engine, comm: &Comm, operation: Collective) -> u64 {
    if engine.has_guests(comm.group().iter()) { AUTO } else { requested(engine.config(), operation) }
}

/// Whether the members of `comm` outnumber their CPUs, as far as all of them know it.
fn are_oversubscribed(engine: &Engine, comm: &Comm) -> bool {
    engine.config().shape().is_oversubscribed() && !engine.has_guests(comm.group().iter())
}

/// What the team of `comm` will have room for, if it gets one.
pub(in crate::coll) fn expected_capacity<'a>(engine: &'a Engine, comm: &Comm) -> Option<TeamCapacity<'a>> {
    let config = engine.config();
    let part_bytes = engine.job().layout().collective_segment_layout().part as usize;
    // A collective segment is memory of one job.
    let shares = config.coll_shared() && !engine.has_guests(comm.group().iter());
    shares.then_some(TeamCapacity { config, size: comm.size() as usize, part_bytes, direct: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_copy_alone_depends_on_all_their_messages() {
        use Mode::{FromRoot, Standard, ToRoot};
        for (mode, bytes, others, received) in [
            (ToRoot, 1 << 20, 3, ToRoot),
            (ToRoot, (1 << 20) - 1, 3, Standard),
            (ToRoot, 256 << 10, 15, ToRoot),
            (ToRoot, 256 << 10, 7, Standard),
            (FromRoot, 256 << 10, 6, FromRoot),
            (FromRoot, 256 << 10, 5, Standard),
            (FromRoot, usize::MAX, 2, FromRoot),
            (Standard, usize::MAX, 2, Standard),
            (FromRoot, 1, 1, FromRoot),
        ] {
            assert_eq!(
                mode_of_receive(mode, bytes, others),
                received,
                "{mode:?}, {bytes} bytes, {others} others"
            );
        }
    }
}
