//! The transport of nonblocking collectives: an operation is over when the engine has got that far.

use super::{
    FEW, Failure, ReceiveUnderWay, Transport, algorithm_for, are_oversubscribed, expected_capacity,
    join_team, mode_among_many, mode_of_receive, mode_of_send,
};
use crate::coll::intercomm::Sides;
use crate::coll::nonblocking::TeamUse;
use crate::coll::selection::arrival;
use crate::coll::shared_memory::{InTurn, TeamCapacity, TeamGuard};
use crate::comm::Comm;
use crate::engine::{Engine, Mode};
use crate::error::Result;
use crate::events::{CollMode, Collective};
use crate::p2p::{MessageStatus, Request};
use crate::team::{BackgroundTeam, Membership, RoundArrival};
use core::cell::Cell;
use core::future::poll_fn;
use core::task::Poll;

/// The first tag of nonblocking collectives; each takes two.
const FIRST_TAG: i32 = 1 << 20;
/// Operations on one communicator until a tag comes again.
const TAGS: u32 = 1 << 18;

/// Which of a communicator's nonblocking collectives, the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub enum SequenceNumber {
    /// One that happens once.
    Once(u32),
    /// One that is started again and again.
    Persistent(u32),
}

/// A transport whose operations complete while the engine makes progress. [`conclude`](Self::conclude) gives the first
/// failure, after which it goes on ([`Failure`]).
pub struct NonblockingTransport<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    tag: i32,
    mode: CollMode,
    /// The team that may serve it.
    team: Option<&'a BackgroundTeam>,
    failure: Failure<'a>,
    /// The mode of messages.
    message_mode: Cell<Mode>,
}

/// Returns `team`, of the members of `comm`, for an operation in the background, if the caller has joined it in an
/// earlier one and no operation has it.
#[inline]
#[must_use]
pub fn team_in_turn<'a>(
    engine: &'a Engine,
    comm: &'a Comm,
    team: &'a BackgroundTeam,
    operation: Collective,
) -> Option<TeamGuard<'a, InTurn<'a>>> {
    if comm.is_inter() || comm.collective().is_given_up() {
        return None;
    }
    let arrival = arrival(engine.config(), operation, comm.size() as usize)?;
    let hold = InTurn::at_once(engine, team)?;
    Some(TeamGuard::new(engine, comm, hold, arrival))
}

impl<'a> NonblockingTransport<'a> {
    /// For nonblocking collective number `number` among the peers of `comm`, which `team` may serve. Persistent ones
    /// have tags apart, for they may be started in any order (MPI 5.0 §6.13): each its own until [`TAGS`] more have
    /// been prepared on the communicator.
    #[must_use]
    pub fn new(engine: &'a Engine, comm: &'a Comm, number: SequenceNumber, team: &'a TeamUse) -> Self {
        let (mode, number) = match number {
            SequenceNumber::Once(number) => (CollMode::Nonblocking, number % TAGS),
            SequenceNumber::Persistent(number) => (CollMode::Persistent, TAGS + number % TAGS),
        };
        let tag = FIRST_TAG + 2 * number as i32;
        let team = team.team(comm).filter(|_| !comm.is_inter());
        Self {
            engine,
            comm,
            tag,
            mode,
            team,
            failure: Failure::new(engine, comm, tag),
            message_mode: Cell::new(Mode::Standard),
        }
    }

    /// For one on an intercommunicator: within the caller's own group, and to the other one.
    #[must_use]
    pub fn sides(engine: &'a Engine, comm: &'a Comm, number: SequenceNumber) -> Sides<Self> {
        let mut remote = Self::new(engine, comm, number, &TeamUse::None);
        let mut local = Self::new(engine, comm, number, &TeamUse::None);
        (local.comm, local.tag) = (comm.local(), remote.tag + 1);
        local.failure.share_with(&mut remote.failure);
        Sides { local, remote }
    }

    /// Returns `result` if all transfers have succeeded.
    ///
    /// # Errors
    /// The first failure of a transfer, and that of `result`.
    #[inline(always)]
    pub fn conclude<T>(&self, result: Result<T>) -> Result<T> {
        self.failure.or(result)
    }

    /// Returns how members of the team arrive in such an operation, if they have a team.
    fn arrival(&self, operation: Collective) -> Option<RoundArrival> {
        let members = self.comm.size() as usize;
        arrival(self.engine.config(), operation, members).filter(|_| self.team.is_some() && members >= 2)
    }

    fn start_recv(&self, from: usize, room: &mut [u8]) -> ReceiveUnderWay {
        let bytes = room.len();
        // SAFETY: the future that borrows `room` is polled until the request is over, or leaked, as `Transport` demands
        // of all that drive it.
        let request = self.failure.note(unsafe {
            let mode = mode_of_receive(self.message_mode.get(), bytes, self.size() - 1);
            self.engine.coll_irecv(self.comm, room.as_mut_ptr(), bytes, from as i32, self.tag, mode)
        });
        ReceiveUnderWay { request, room: bytes, from }
    }

    /// Receives a message if that takes no waiting; returns whether it has come.
    fn receive_at_once(&self, from: usize, room: &mut [u8]) -> bool {
        let bytes = room.len();
        if !self.engine.may_be_eager(bytes) {
            return false;
        }
        // SAFETY: borrowed until the call returns.
        let came = unsafe {
            self.engine.coll_recv_at_once(self.comm, room.as_mut_ptr(), bytes, from as i32, self.tag)
        };
        came.inspect(|&came| self.failure.note_received(Ok(came), bytes, from)).is_some()
    }

    /// Starts a send; returns the request if that is not all.
    fn start_send(&self, to: usize, bytes: &[u8], mode: Mode) -> Option<Request> {
        let bytes = self.failure.in_place_of(bytes)?;
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: borrowed until the call returns.
        let at_once = || unsafe { self.engine.coll_send_at_once(self.comm, from, len, to as i32, self.tag) };
        // A message to the caller itself is over when it is received.
        if to != self.rank() && at_once() {
            return None;
        }
        // SAFETY: the future that borrows `bytes` is polled until the request is over, or leaked, as `Transport`
        // demands of all that drive it.
        self.failure.note(unsafe { self.engine.coll_isend(self.comm, from, len, to as i32, self.tag, mode) })
    }

    async fn outcome(&self, request: Request) -> Result<MessageStatus> {
        poll_fn(|_| if request.is_over() { Poll::Ready(()) } else { Poll::Pending }).await;
        let (status, error) = self.engine.take_outcome(request);
        error.map_or(Ok(status), Err)
    }

    async fn finish(&self, request: Option<Request>) {
        if let Some(request) = request {
            self.failure.note(self.outcome(request).await);
        }
    }

    async fn finish_recv(&self, ReceiveUnderWay { request, room, from }: ReceiveUnderWay) {
        let Some(request) = request else { return };
        let received = self.outcome(request).await;
        self.failure.note_received(received.map(|status| status.bytes as usize), room, from);
    }
}

impl Transport for NonblockingTransport<'_> {
    type Hold<'t>
        = InTurn<'t>
    where
        Self: 't;

    async fn team(&self, operation: Collective) -> Option<TeamGuard<'_, InTurn<'_>>> {
        let arrival = self.arrival(operation).filter(|_| !self.has_failed())?;
        let mut hold = InTurn::new(self.engine, self.team?).await;
        if matches!(hold.membership(), Membership::Unknown) {
            *hold.membership() =
                join_team(self, self.engine, self.comm, self.mode == CollMode::Persistent).await;
        }
        matches!(hold.membership(), Membership::Member(_))
            .then(|| TeamGuard::new(self.engine, self.comm, hold, arrival))
    }

    fn team_capacity(&self, operation: Collective) -> Option<(RoundArrival, TeamCapacity<'_>)> {
        Some((self.arrival(operation)?, expected_capacity(self.engine, self.comm)?))
    }

    fn has_failed(&self) -> bool {
        self.failure.has_any()
    }
    fn requested(&self, operation: Collective) -> u64 {
        algorithm_for(self.engine, self.comm, operation)
    }
    fn set_message_mode(&self, mode: Mode) {
        self.message_mode.set(mode_among_many(self.engine, self.comm, mode));
    }
    fn is_oversubscribed(&self) -> bool {
        are_oversubscribed(self.engine, self.comm)
    }
    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }
    fn size(&self) -> usize {
        self.comm.peers().size() as usize
    }
    fn mode(&self) -> CollMode {
        self.mode
    }
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        let mode = mode_of_send(self.message_mode.get(), self.size() - 1, false);
        self.finish(self.start_send(to, bytes, mode)).await;
        Ok(())
    }
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()> {
        if !self.receive_at_once(from, room) {
            let coming = self.start_recv(from, room);
            self.finish_recv(coming).await;
        }
        Ok(())
    }
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        self.exchange_all(&[(to, bytes)], &mut [(from, room)]).await
    }
    async fn exchange_all_while(
        &self,
        sends: &[(usize, &[u8])],
        recvs: &mut [(usize, &mut [u8])],
        own: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mode = mode_of_send(self.message_mode.get(), self.size() - 1, !recvs.is_empty());
        let in_turn = recvs.iter().all(|(_, room)| room.len() <= FEW);
        let mut coming = Vec::new();
        if !in_turn {
            coming.extend(recvs.iter_mut().map(|(from, room)| self.start_recv(*from, room)));
        }
        let going: Vec<_> =
            sends.iter().filter_map(|(to, bytes)| self.start_send(*to, bytes, mode)).collect();
        let done = own();
        for (from, room) in recvs.iter_mut().filter(|_| in_turn) {
            // Once a message has not come, no more are waited for.
            if !(coming.is_empty() && self.receive_at_once(*from, room)) {
                coming.push(self.start_recv(*from, room));
            }
        }
        for coming in coming {
            self.finish_recv(coming).await;
        }
        for request in going {
            self.finish(Some(request)).await;
        }
        done
    }
}
