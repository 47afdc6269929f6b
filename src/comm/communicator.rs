//! A communicator: a context in which messages match, and the processes that its ranks name.

use super::{Attributes, ErrhandlerSlot, Group, Topology, hints, lock};
use crate::engine::{Buffers, MatchContext};
use crate::error::{Error, Result};
use crate::events::CommEvents;
use crate::info::Info;
use crate::shm::{JobWorld, contexts};
use crate::sync::{AtomicU32, AtomicU64, ConditionalGuard, ConditionalLock, Mutex, Ordering};
use crate::team::{BackgroundTeam, Membership};
use core::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Longest name in bytes, without the terminator (MPI_MAX_OBJECT_NAME − 1).
const MAX_NAME: usize = crate::abi::MPI_MAX_OBJECT_NAME as usize - 1;

/// A communicator, as one rank has it.
///
/// In an intercommunicator a rank argument of a point-to-point function names a member of the *remote* group; what a
/// send carries as its source is the rank in the *local* group.
/// [`peers`](Self::peers) is the group that rank arguments name.
pub struct Comm {
    /// Context of point-to-point messages, even; `context + 1` is that of collective ones.
    pub context: u32,
    rank: u32,
    peers: Group,
    /// Its gate is tested on every message.
    pub events: Arc<CommEvents>,
    /// For an intercommunicator: its own group as an intracommunicator in the same context.
    local: Option<Box<Comm>>,
    /// The contexts of `context` and `context + 1`, once an engine has opened it.
    contexts: Option<[NonNull<MatchContext>; 2]>,
    lease: Option<Lease>,
    /// This rank's place in the memory that collectives share.
    team: ConditionalLock<Membership>,
    /// Its place in that of nonblocking ones.
    background_team: BackgroundTeam,
    /// Nonblocking collectives begun.
    begun: AtomicU32,
    /// Persistent collectives prepared.
    prepared: AtomicU32,
    /// Collective calls that the rounds of the team do not count, less rounds that are no calls.
    calls: AtomicU64,
    agreements: Agreements,
    name: Mutex<Vec<u8>>,
    info: Mutex<Info>,
    topology: Option<Arc<Topology>>,
    /// Its caller's neighbours there, once they have been asked for: sources, and destinations.
    neighbours: OnceLock<(Vec<i32>, Vec<i32>)>,
    /// What users cached on it.
    pub attributes: Attributes,
    /// What happens to errors of functions on it, and of its requests, which may outlive it.
    pub errhandler: Arc<ErrhandlerSlot>,
}

/// The numbers of a communicator's agreements ([`crate::shm::failures`]).
#[derive(Debug, Default)]
pub struct Agreements(Mutex<AgreementNumbers>);

#[derive(Debug, Default)]
struct AgreementNumbers {
    /// Of the last that this rank has begun.
    begun: u32,
    /// Of the last whose decision it has seen.
    decided: u32,
}

impl Agreements {
    /// The number of the next one, from 1 on, the same on all ranks: they begin them in the same order.
    pub fn begin(&self) -> u32 {
        let mut numbers = lock(&self.0);
        numbers.begun = numbers.begun.wrapping_add(1);
        numbers.begun
    }

    /// Whether all before number `serial` are over.
    #[must_use]
    pub fn is_turn(&self, serial: u32) -> bool {
        lock(&self.0).decided.wrapping_add(1) == serial
    }

    /// Number `serial`, whose turn it was, is over.
    pub fn end(&self, serial: u32) {
        lock(&self.0).decided = serial;
    }
}

/// Gives a communicator's context back when the last reference to the communicator is dropped.
pub type Lease = Box<dyn Fn(u32) + Send + Sync>;

// SAFETY: the contexts are `Sync` and outlive the communicator; everything else is `Send` and `Sync` by itself.
unsafe impl Send for Comm {}
// SAFETY: the contexts are `Sync` and outlive the communicator; everything else is `Sync` by itself.
unsafe impl Sync for Comm {}

impl Comm {
    /// An intracommunicator over `group`, in which the caller has `rank`.
    #[must_use]
    pub fn intra(context: u32, rank: u32, group: Group, events: Arc<CommEvents>) -> Self {
        debug_assert!(rank < group.size());
        Self::new(context, rank, group, None, events)
    }

    /// An intercommunicator between `local`, in which the caller has `rank`, and `remote`.
    #[must_use]
    pub fn inter(context: u32, rank: u32, local: Group, remote: Group, events: Arc<CommEvents>) -> Self {
        let local = Self::intra(context, rank, local, events.clone());
        Self::new(context, rank, remote, Some(Box::new(local)), events)
    }

    fn new(context: u32, rank: u32, peers: Group, local: Option<Box<Self>>, events: Arc<CommEvents>) -> Self {
        debug_assert!(context.is_multiple_of(2));
        let own = local.as_ref().map(|local| local.peers.iter()).into_iter().flatten();
        events.about().members = peers.iter().chain(own).collect();
        Self {
            context,
            rank,
            peers,
            events,
            local,
            contexts: None,
            lease: None,
            team: ConditionalLock::default(),
            background_team: BackgroundTeam::default(),
            begun: AtomicU32::new(0),
            prepared: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            agreements: Agreements::default(),
            name: Mutex::default(),
            info: Mutex::default(),
            topology: None,
            neighbours: OnceLock::new(),
            attributes: Attributes::default(),
            errhandler: Arc::default(),
        }
    }

    /// MPI_COMM_WORLD of a job of `size` ranks, as job rank `rank` has it.
    #[must_use]
    pub fn world(rank: u32, size: u32, events: Arc<CommEvents>) -> Self {
        Self::world_of(rank, JobWorld { first: 0, size, context: contexts::WORLD }, events)
    }

    /// MPI_COMM_WORLD of the ranks of `world`, as job rank `rank`, one of them, has it.
    #[must_use]
    pub fn world_of(rank: u32, world: JobWorld, events: Arc<CommEvents>) -> Self {
        let JobWorld { first, size, context } = world;
        let comm = Self::intra(2 * context, rank - first, Group::run(first, size), events);
        comm.set_name(b"MPI_COMM_WORLD");
        comm
    }

    /// MPI_COMM_SELF of job rank `rank`.
    #[must_use]
    pub fn itself(rank: u32, events: Arc<CommEvents>) -> Self {
        let comm = Self::intra(2 * contexts::SELF, 0, Group::run(rank, 1), events);
        comm.set_name(b"MPI_COMM_SELF");
        comm
    }

    /// The same, which calls `lease` with its context when it is dropped.
    #[must_use]
    pub fn leased(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The same with a topology.
    #[must_use]
    pub fn with_topology(mut self, topology: Option<Arc<Topology>>) -> Self {
        self.topology = topology;
        self
    }

    /// Its topology.
    #[must_use]
    pub fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    /// From whom a neighbourhood collective receives, in order; MPI_PROC_NULL is nobody. Nothing without a topology.
    #[must_use]
    pub fn sources(&self) -> &[i32] {
        &self.neighbours().0
    }

    /// To whom a neighbourhood collective sends, in order. Nothing without a topology.
    #[must_use]
    pub fn destinations(&self) -> &[i32] {
        &self.neighbours().1
    }

    fn neighbours(&self) -> &(Vec<i32>, Vec<i32>) {
        self.neighbours.get_or_init(|| {
            let rank = self.rank();
            self.topology().map_or_else(Default::default, |topology| {
                (topology.sources(rank), topology.destinations(rank))
            })
        })
    }

    /// The hints in force (MPI_Comm_get_info).
    #[must_use]
    pub fn info(&self) -> Info {
        hints::in_force(&lock(&self.info))
    }

    /// Changes hints; those that are not named, or whose value makes no sense, stay as they are (MPI_Comm_set_info).
    pub fn set_info(&self, info: &Info) {
        lock(&self.info).update(&hints::taken(info));
    }

    /// The same, usable for messages: its point-to-point and its collective context.
    #[must_use]
    pub(crate) fn with_contexts(mut self, user: NonNull<MatchContext>, own: NonNull<MatchContext>) -> Self {
        if let Some(local) = &mut self.local {
            local.contexts = Some([user, own]);
        }
        self.contexts = Some([user, own]);
        self
    }

    /// Its attached buffer (MPI_Comm_attach_buffer).
    #[must_use]
    pub fn buffers(&self) -> &Buffers {
        self.context(0).buffers()
    }

    /// Whether an engine has opened it: it can be used for messages.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.contexts.is_some()
    }

    #[inline(always)]
    fn context(&self, which: usize) -> &MatchContext {
        let contexts = self.contexts.expect("an engine has opened the communicator");
        // SAFETY: the engine keeps the contexts of an open communicator until its lease is given back, in our drop.
        unsafe { contexts[which].as_ref() }
    }

    /// The context of point-to-point messages.
    ///
    /// # Panics
    /// If no engine has opened the communicator.
    #[inline(always)]
    #[must_use]
    pub fn p2p(&self) -> &MatchContext {
        self.context(0)
    }

    /// The context of collective operations.
    ///
    /// # Panics
    /// If no engine has opened the communicator.
    #[inline(always)]
    #[must_use]
    pub fn collective(&self) -> &MatchContext {
        self.context(1)
    }

    /// The handle that C programs know it by; 0 if it has none.
    #[must_use]
    pub fn handle(&self) -> usize {
        self.events.comm()
    }

    /// The caller's rank in its own (local) group.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of processes in the caller's own (local) group.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.group().size()
    }

    /// The caller's own (local) group.
    #[inline]
    #[must_use]
    pub fn group(&self) -> &Group {
        self.local.as_ref().map_or(&self.peers, |local| &local.peers)
    }

    /// The remote group of an intercommunicator.
    #[must_use]
    pub fn remote(&self) -> Option<&Group> {
        self.local.as_ref().map(|_| &self.peers)
    }

    /// For an intercommunicator, its own group as an intracommunicator in the same context; else itself.
    #[must_use]
    pub fn local(&self) -> &Self {
        self.local.as_deref().unwrap_or(self)
    }

    /// Whether this is an intercommunicator.
    #[inline]
    #[must_use]
    pub fn is_inter(&self) -> bool {
        self.local.is_some()
    }

    /// The group that rank arguments of point-to-point functions name:
    /// the remote one of an intercommunicator, else the own.
    #[inline(always)]
    #[must_use]
    pub fn peers(&self) -> &Group {
        &self.peers
    }

    /// Job rank of the peer `rank`, which must have passed [`check_peer`](Self::check_peer).
    #[inline(always)]
    #[must_use]
    pub fn world_rank_of(&self, rank: i32) -> u32 {
        self.peers.world_rank(rank as u32)
    }

    /// Whether `rank` is one of the peers.
    #[inline(always)]
    #[must_use]
    pub fn has_peer(&self, rank: i32) -> bool {
        // A negative rank is a large unsigned one.
        (rank as u32) < self.peers.size()
    }

    /// Whether `rank` is one of the peers; MPI_PROC_NULL and MPI_ANY_SOURCE are not.
    ///
    /// # Errors
    /// [`Error::Rank`] if it is none.
    #[inline]
    pub fn check_peer(&self, rank: i32) -> Result<()> {
        let size = self.peers.size();
        // A negative rank is a large unsigned one.
        if (rank as u32) < size { Ok(()) } else { Err(Error::Rank { rank, size: size as i32 }) }
    }

    /// This rank's place in the memory that the members' collectives share, locked if `shared` (several threads may be
    /// inside the engine).
    #[inline]
    pub(crate) fn team(&self, shared: bool) -> ConditionalGuard<'_, Membership> {
        self.team.lock(shared)
    }

    /// The same, unless another thread has it.
    pub(crate) fn try_team(&self, shared: bool) -> Option<ConditionalGuard<'_, Membership>> {
        self.team.try_lock(shared)
    }

    /// This rank's place in the memory that the members' nonblocking collectives share.
    #[must_use]
    pub fn background_team(&self) -> &BackgroundTeam {
        &self.background_team
    }

    /// The number of the next nonblocking collective, which is the same on all ranks:
    /// they begin them in the same order.
    pub fn next_in_background(&self) -> u32 {
        // Relaxed: a counter; MPI forbids two threads to begin collectives on one communicator at once (MPI 5.0 §6.14).
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next persistent collective, which counts apart: one lives long, and keeps its tag.
    pub fn next_persistent(&self) -> u32 {
        // Relaxed: a counter, as above.
        self.prepared.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the collective call that begins behind `rounds` rounds of the team.
    #[must_use]
    pub fn call_number(&self, rounds: u64) -> u64 {
        // Relaxed: a counter, as above.
        self.calls.load(Ordering::Relaxed).wrapping_add(rounds).wrapping_add(1)
    }

    /// Counts `more` collective calls than the rounds of the team do.
    pub fn count_calls(&self, more: u64) {
        // Relaxed: a counter, as above. Two steps, for it is one thread's at a time.
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// The number of the latest death among all of the job that its user has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u32 {
        self.p2p().acknowledged()
    }

    /// Acknowledges all deaths up to number `death`: receives from any source go on.
    pub fn acknowledge(&self, death: u32) {
        self.p2p().acknowledge(death);
    }

    /// The agreements of its members that live.
    #[must_use]
    pub fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    /// The name (MPI_Comm_get_name), at most MPI_MAX_OBJECT_NAME − 1 bytes, no terminator.
    #[must_use]
    pub fn name(&self) -> Vec<u8> {
        lock(&self.name).clone()
    }

    /// Sets the name, cut off at MPI_MAX_OBJECT_NAME − 1 bytes.
    pub fn set_name(&self, name: &[u8]) {
        let name = &name[..name.len().min(MAX_NAME)];
        *lock(&self.name) = name.to_vec();
        self.events.about().name = String::from_utf8_lossy(name).into_owned();
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease(self.context);
        }
    }
}

impl core::fmt::Debug for Comm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Comm")
            .field("context", &self.context)
            .field("rank", &self.rank)
            .field("group", self.group())
            .field("remote", &self.remote())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Registry;

    fn events() -> Arc<CommEvents> {
        Registry::new(Box::new(|text| panic!("{text}"))).attach(0)
    }

    #[test]
    fn the_world_names_every_rank_and_self_only_itself() {
        let world = Comm::world(2, 4, events());
        assert_eq!((world.rank(), world.size(), world.world_rank_of(3)), (2, 4, 3));
        assert!(world.check_peer(3).is_ok());
        for wrong in [-1, -3, 4] {
            assert_eq!(world.check_peer(wrong).unwrap_err(), Error::Rank { rank: wrong, size: 4 });
        }
        let own = Comm::itself(2, events());
        assert_eq!((own.rank(), own.size(), own.world_rank_of(0)), (0, 1, 2));
        assert_eq!(own.name(), b"MPI_COMM_SELF");
    }

    #[test]
    fn in_an_intercommunicator_ranks_name_the_other_side() {
        let (odd, even) = (Group::from_world_ranks(vec![1, 3]), Group::from_world_ranks(vec![0, 2, 4]));
        let inter = Comm::inter(8, 1, odd.clone(), even, events());
        assert_eq!((inter.rank(), inter.size(), inter.world_rank_of(2)), (1, 2, 4));
        assert!(inter.is_inter() && inter.check_peer(2).is_ok() && inter.check_peer(3).is_err());
        assert_eq!((inter.local().size(), inter.local().world_rank_of(1)), (2, 3));
        assert_eq!(inter.group().compare(&odd), super::super::Similarity::Ident);
    }

    #[test]
    fn a_name_is_cut_off_at_its_limit() {
        let comm = Comm::itself(0, events());
        comm.set_name(&[b'x'; 200]);
        assert_eq!(comm.name().len(), MAX_NAME);
    }

    #[test]
    fn the_context_is_given_back_once_with_the_last_reference() {
        let given_back = Arc::new(AtomicU32::new(0));
        let lease = {
            let given_back = given_back.clone();
            Box::new(move |context| _ = given_back.fetch_add(context, Ordering::Relaxed))
        };
        let comm = Arc::new(Comm::inter(8, 0, Group::run(0, 1), Group::run(1, 1), events()).leased(lease));
        drop(comm.clone());
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        drop(comm);
        assert_eq!(given_back.load(Ordering::Relaxed), 8);
    }
}
