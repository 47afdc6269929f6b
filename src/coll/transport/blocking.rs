//! The transport of blocking collectives: each operation has finished when it returns.

use super::{
    FEW, Failure, Purpose, ReceiveUnderWay, Transport, WITHIN, algorithm_for, are_oversubscribed,
    expected_capacity, join_team, mode_among_many, mode_of_receive, mode_of_send,
};
use crate::coll::NumberedCall;
use crate::coll::create::{self, Name};
use crate::coll::intercomm::Sides;
use crate::coll::selection::arrival;
use crate::coll::shared_memory::{BlockingTeam, Description, Locked, TeamCapacity, TeamGuard};
use crate::comm::{Comm, Group};
use crate::engine::{Engine, Mode};
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::p2p::Request;
use crate::team::{Membership, RoundArrival};
use core::cell::Cell;
use core::future::Future;

/// A transport whose operations have finished when they return. [`conclude`](Self::conclude) gives the first failure,
/// after which it goes on ([`Failure`]).
pub struct BlockingTransport<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    tag: i32,
    /// Whether all members of the communicator are in the operation.
    all: bool,
    failure: Failure<'a>,
    /// The mode of messages.
    message_mode: Cell<Mode>,
}

/// Returns the team of `comm` for an operation of all its members, if the caller has joined it in an earlier one.
/// Callers need no transport while nothing fails. [`run_describing`](crate::coll::run_describing) runs it, or
/// [`run`](crate::coll::run) if the call has described itself.
#[inline(always)]
#[must_use]
pub fn team_of<'a>(engine: &'a Engine, comm: &'a Comm, operation: Collective) -> Option<BlockingTeam<'a>> {
    if comm.is_inter() {
        return None;
    }
    let arrival = arrival(engine.config(), operation, comm.size() as usize)?;
    let hold = Locked::new(engine, comm.team(engine.is_shared()), Description::Asked)?;
    Some(TeamGuard::new(engine, comm, hold, arrival))
}

/// Returns when all members of `comm`, an intracommunicator, have called it.
///
/// # Errors
/// Those of the transport.
pub fn blocking_barrier(engine: &Engine, comm: &Comm) -> Result<()> {
    if let Some(mut team) = team_of(engine, comm, Collective::Barrier) {
        team.goes_undescribed();
        return crate::coll::run(team.barrier());
    }
    let transport = BlockingTransport::new(engine, comm, Purpose::Barrier);
    transport.run(crate::coll::barrier(&transport))
}

impl<'a> BlockingTransport<'a> {
    /// Makes a transport for an operation among the peers of `comm`.
    #[inline(always)]
    #[must_use]
    pub fn new(engine: &'a Engine, comm: &'a Comm, purpose: Purpose) -> Self {
        Self { all: !comm.is_inter(), ..Self::tagged(engine, comm, purpose as i32) }
    }

    /// Makes the transports for an operation on an intercommunicator:
    /// within the caller's own group, and to the other one.
    #[must_use]
    pub fn sides(engine: &'a Engine, comm: &'a Comm, purpose: Purpose) -> Sides<Self> {
        let mut remote = Self::new(engine, comm, purpose);
        let mut local = Self::tagged(engine, comm, purpose as i32 + WITHIN);
        local.comm = comm.local();
        local.failure.share_with(&mut remote.failure);
        Sides { local, remote }
    }

    /// Makes a transport for messages among some of the peers, with a tag of its own.
    #[inline(always)]
    #[must_use]
    pub fn tagged(engine: &'a Engine, comm: &'a Comm, tag: i32) -> Self {
        Self {
            engine,
            comm,
            tag,
            all: false,
            failure: Failure::new(engine, comm, tag),
            message_mode: Cell::new(Mode::Standard),
        }
    }

    /// Runs a collective over this transport.
    ///
    /// # Errors
    /// Those of the collective, and the first failure of a transfer.
    pub fn run<T>(&self, collective: impl Future<Output = Result<T>>) -> Result<T> {
        self.conclude(crate::coll::run(collective))
    }

    /// Returns `result` if all transfers have succeeded.
    ///
    /// # Errors
    /// The first failure of a transfer, and that of `result`.
    #[inline(always)]
    pub fn conclude<T>(&self, result: Result<T>) -> Result<T> {
        self.failure.or(result)
    }

    fn start_recv(&self, from: usize, room: &mut [u8]) -> ReceiveUnderWay {
        let bytes = room.len();
        // SAFETY: `finish_recv` waits, or cancels, before the borrow of `room` ends.
        let request = self.failure.note(unsafe {
            let mode = mode_of_receive(self.message_mode.get(), bytes, self.size() - 1);
            self.engine.coll_irecv(self.comm, room.as_mut_ptr(), bytes, from as i32, self.tag, mode)
        });
        ReceiveUnderWay { request, room: bytes, from }
    }

    fn finish_recv(&self, ReceiveUnderWay { request, room, from }: ReceiveUnderWay) {
        let Some(request) = request else { return };
        let received = self.engine.finish_coll_recv(request);
        self.failure.note_received(received.map(|status| status.bytes as usize), room, from);
    }

    fn start_send(&self, to: usize, bytes: &[u8], mode: Mode) -> Option<Request> {
        let bytes = self.failure.in_place_of(bytes)?;
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `finish_send` waits before the borrow of `bytes` ends.
        self.failure.note(unsafe { self.engine.coll_isend(self.comm, from, len, to as i32, self.tag, mode) })
    }

    fn finish_send(&self, request: Request) {
        self.failure.note(self.engine.wait(request));
    }

    /// Sends so much of a message as needs nothing of the receiver. Returns the request if that is not all.
    fn begin_send(&self, to: usize, bytes: &[u8], mode: Mode) -> Option<Request> {
        let world = || self.comm.world_rank_of(to as i32);
        // A message to the caller itself is over when it is received.
        if to != self.rank() && self.engine.is_eager(bytes.as_ptr(), bytes.len(), world) {
            self.send_now(to, bytes);
            return None;
        }
        self.start_send(to, bytes, mode)
    }

    fn send_now(&self, to: usize, bytes: &[u8]) {
        let Some(bytes) = self.failure.in_place_of(bytes) else { return };
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: borrowed until the call returns.
        self.failure.note(unsafe {
            self.engine.coll_send(self.comm, from, len, to as i32, self.tag, self.message_mode.get())
        });
    }
}

impl Transport for BlockingTransport<'_> {
    type Hold<'t>
        = Locked<'t>
    where
        Self: 't;

    async fn team(&self, operation: Collective) -> Option<BlockingTeam<'_>> {
        let members = if self.all { self.comm.size() as usize } else { 0 };
        if members < 2 || self.has_failed() {
            return None;
        }
        let arrival = arrival(self.engine.config(), operation, members)?;
        let mut membership = self.comm.team(self.engine.is_shared());
        if matches!(*membership, Membership::Unknown) {
            *membership = join_team(self, self.engine, self.comm, false).await;
        }
        let hold = Locked::new(self.engine, membership, Description::Given)?;
        Some(TeamGuard::new(self.engine, self.comm, hold, arrival))
    }

    fn team_capacity(&self, operation: Collective) -> Option<(RoundArrival, TeamCapacity<'_>)> {
        let members = if self.all { self.comm.size() as usize } else { 0 };
        let arrival = arrival(self.engine.config(), operation, members).filter(|_| members >= 2)?;
        let capacity = expected_capacity(self.engine, self.comm)?;
        match &*self.comm.team(self.engine.is_shared()) {
            Membership::Unknown => Some((arrival, capacity)),
            Membership::None => None,
            Membership::Member(team) => {
                Some((arrival, TeamCapacity { direct: team.direct != Some(false), ..capacity }))
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.failure.has_any()
    }
    fn failure(&self) -> Option<Error> {
        self.conclude(Ok(())).err()
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
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        self.send_now(to, bytes);
        Ok(())
    }
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()> {
        let bytes = room.len();
        // SAFETY: borrowed until the call returns.
        let received = unsafe {
            let mode = mode_of_receive(self.message_mode.get(), bytes, self.size() - 1);
            self.engine.coll_recv(self.comm, room.as_mut_ptr(), bytes, from as i32, self.tag, mode)
        };
        self.failure.note_received(received, bytes, from);
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
        let post = |(from, room): &mut (usize, &mut [u8])| self.start_recv(*from, room);
        let coming: Vec<_> = if in_turn { vec![] } else { recvs.iter_mut().map(post).collect() };
        let going: Vec<_> =
            sends.iter().filter_map(|(to, bytes)| self.begin_send(*to, bytes, mode)).collect();
        let done = own();
        for (from, room) in recvs.iter_mut().filter(|_| in_turn) {
            self.recv(*from, room).await?;
        }
        coming.into_iter().for_each(|coming| self.finish_recv(coming));
        going.into_iter().for_each(|request| self.finish_send(request));
        done
    }
}

/// A context for what a collective call makes of the members of `parent`: a window or a file.
/// Counts as a call on `parent`.
///
/// # Errors
/// Those of the transport; [`crate::Error::NoMem`] if there is none.
pub fn new_context(engine: &Engine, parent: &Comm) -> Result<u32> {
    NumberedCall::begin(engine, parent).describing(|| {
        let transport = BlockingTransport::new(engine, parent, Purpose::Create);
        transport.run(create::context(&transport, engine, parent.group()))
    })
}

/// Context ids of the engine's job.
impl crate::coll::create::Contexts for Engine {
    fn allocate(&self, members: &[&Group]) -> Result<u32> {
        let places = members.iter().flat_map(|group| group.iter());
        self.common_context(places).map(|id| 2 * id)
    }

    fn give_back(&self, context: u32) {
        // An id that is not the caller's to release is a mistake of ours, not of the program; it stays taken.
        let released = self.job().contexts().release(context / 2);
        debug_assert!(released.is_ok(), "context {context}: {released:?}");
    }

    fn name(&self, place: u32) -> Name {
        self.guest(place).unwrap_or((self.job().header().job_id(), place))
    }

    fn place(&self, (job, place): Name) -> Result<Option<u32>> {
        let found = if job == self.job().header().job_id() {
            Some(place).filter(|place| *place < self.job().places_in_use())
        } else {
            self.other_job(job).and_then(|_| self.job().roster().place_of_guest(job, place))
        };
        found.into_iter().for_each(|place| self.greet(place));
        Ok(found)
    }
}
