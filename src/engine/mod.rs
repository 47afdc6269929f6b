//! One rank: everything below put together. No global: a process may have several, one for each thread that is a rank.
//!
//! | file | what it defines |
//! |---|---|
//! | `parts`, `operation`, `buffer` | what the engine keeps for each peer; a request's body; the user's buffer |
//! | `context`, `requests` | match contexts; a request's life: made, completed, released |
//! | `poller` | takes records out of the rings |
//! | `tx`, `payload`, `peer_memory` | records that wait for room in a ring; copies into and out of rings, and between processes |
//! | `copy_rates` | whether long messages of a peer are copied by the kernel or through the ring |
//! | `notification` | how a receiver learns which ring has a record |
//! | `protocols`, `specialization` | the cut between engine and protocols; what a function of the message path is compiled for |
//! | `progress`, `progress_thread`, `background` | the progress engine; a thread for it; operations of more than one message |
//! | `wait`, `long_wait`, `word_wait` | waits: for what is no request; that one poll has not ended; for a word in shared memory |
//! | `wait_strategy`, `recent_waits`, `oversubscription`, `poll_history`, `core_migration`, `neighborhood` | when a wait spins, yields or blocks, and what a rank learns about that |
//! | `waiters` | threads that block while another one runs progress |
//! | `failures`, `quiesce` | deaths and revocations; buffers that requests must give up |
//! | `attached_buffer` | where buffered sends keep their data |
//! | `outside` | processes of other jobs |
//! | `engine_events`, `message_events` | where events are emitted |
//! | `call_name`, `current_call`, `wait_detail`, `wait_counts`, `file_counts` | what reports and tools learn of a rank |
//!
//! # Locks, in the order in which they are taken
//!
//! 1. `poller`: the consumers of all rings; the thread that holds it runs progress.
//! 2. a context's `queues`: posted receives and unexpected messages of one context.
//! 3. a peer's `outgoing`: the producer of the ring to it, and what waits for room there.
//! 4. `backlog`: which peers have something that waits.
//!
//! None is taken below MPI_THREAD_MULTIPLE ([`crate::sync::ConditionalLock`]). Event callbacks may run under the first
//! three; a callback that calls MPI is refused at the boundary, so it cannot wait for what it holds.

mod attached_buffer;
mod background;
mod buffer;
mod call_name;
mod context;
mod copy_rates;
mod core_migration;
mod current_call;
mod engine_events;
mod failures;
mod file_counts;
mod long_wait;
pub(crate) mod message_events;
mod neighborhood;
mod notification;
mod operation;
mod outside;
mod oversubscription;
pub(crate) mod parts;
pub(crate) mod payload;
mod peer_memory;
mod poll_history;
mod poller;
mod progress;
mod progress_thread;
mod protocols;
mod quiesce;
mod recent_waits;
mod requests;
pub(crate) mod specialization;
mod tx;
mod wait;
mod wait_counts;
mod wait_detail;
mod wait_strategy;
mod waiters;
mod word_wait;

use crate::variables::{Config, Overrides};
pub use attached_buffer::{Buffers, Reservation};
use background::BackgroundOperations;
pub use background::{BackgroundOperation, PutAside};
pub(crate) use buffer::Data;
pub use buffer::{RecvMemory, Run};
pub(crate) use context::{Announced, Payload, Queues, Rts, UnexpectedMessage};
pub use context::{MatchContext, MatchContexts, RaisingComm};
pub use copy_rates::{Contents, CopiesFromPeer, CopyRates, CopyRoute, KernelCopy, timed};
use core_migration::CoreMigration;
pub use current_call::{CallAbout, describing};
pub(crate) use current_call::{is_described, numbering};
pub(crate) use failures::{NoticedFailures, Trouble};
pub use file_counts::{FileCount, FileCounts};
pub(crate) use notification::NotificationMode;
pub use operation::{Body, Layout, Mode, Part, Ref, RequestOperation, Slab, Stage};
use outside::OtherJobs;
pub use outside::{HomeJob, OtherJob};
use oversubscription::{Oversubscription, ranks_per_cpu};
use parts::Peer;
pub use peer_memory::{PEER_ADDRESS, PeerAddress, probe_address};
pub(crate) use poller::{Look, Poller, RingOf};
pub use progress::Progress;
pub use progress_thread::PROGRESS_THREAD;
use progress_thread::ProgressThread;
pub(crate) use protocols::Protocols;
use recent_waits::RecentWaits;
pub use requests::Requests;
pub(crate) use tx::{CONTROL_BYTES, ControlPayload, Deferred, Transmit, TxQueue};
pub use wait::Awaited;
pub(crate) use wait_counts::WaitCounts;
pub use wait_detail::LibraryMessage;
pub use waiters::Waiters;

use crate::doorbell::Doorbell;
use crate::error::{Error, Result};
use crate::events::Registry;
use crate::shm::telemetry::CallsMade;
use crate::shm::{self, Job, Telemetry};
use crate::sync::{AsymmetricFence, AtomicU64, CachePadded, ConditionalLock, OnceLock, Ordering};
use core::ptr::NonNull;
use std::sync::Arc;

/// Says how many collective calls the program has made, but on the communicator of a context.
pub type CallsMadeBut = fn(Option<u32>) -> Vec<CallsMade>;

/// One rank's engine.
pub struct Engine {
    pub(crate) job: Job,
    pub(crate) rank: u32,
    /// Whether several threads may be inside at once (MPI_THREAD_MULTIPLE).
    pub(crate) shared: bool,
    pub(crate) fences: AsymmetricFence,
    pub(crate) notification: NotificationMode,
    pub(crate) config: Config,
    pub(crate) doorbell: Doorbell,
    telemetry: NonNull<Telemetry>,
    pub(crate) peers: Box<[Peer]>,
    /// Jobs of other launchers that this process has met.
    other_jobs: OtherJobs,
    pub(crate) poller: CachePadded<ConditionalLock<Poller>>,
    pub(crate) backlog: CachePadded<ConditionalLock<Vec<u32>>>,
    pub(crate) background: BackgroundOperations,
    pub(crate) oversubscription: Oversubscription,
    recent_waits: RecentWaits,
    pub(crate) core_migration: CoreMigration,
    pub(crate) contexts: MatchContexts,
    pub(crate) slab: Slab,
    pub(crate) waiters: CachePadded<Waiters>,
    progress_thread: ProgressThread,
    pub(crate) protocols: Box<dyn Protocols>,
    pub(crate) buffers: Buffers,
    /// Kept by files that are open, and by threads that access them.
    pub(crate) files: Arc<FileCounts>,
    /// For locks of blocks that accumulates take.
    pub(crate) accumulate_waits: WaitCounts,
    registry: Arc<Registry>,
    next_id: AtomicU64,
    /// Deaths and revocations of which this rank has taken notice.
    noticed: NoticedFailures,
    failure: OnceLock<Error>,
    /// Says how many collective calls the program has made, for reports.
    calls_made: OnceLock<CallsMadeBut>,
}

// SAFETY: the telemetry page is made of atomics; everything else is `Send` by itself.
unsafe impl Send for Engine {}
// SAFETY: the telemetry page is made of atomics; everything else is `Sync` by itself (by conditional lock rule 1,
// where `shared` is false).
unsafe impl Sync for Engine {}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine").field("rank", &self.rank).field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Engine {
    /// The engine of one rank of a job, whose protocols `protocols` makes.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] when a setting makes no sense in this job, or `membarrier` is refused.
    ///
    /// # Safety
    ///
    /// With `shared = false` no two threads are ever inside this engine at once (conditional lock rule 1 of
    /// [`crate::sync::ConditionalLock`]).
    pub(crate) unsafe fn assemble(
        job: Job,
        settings: &Overrides,
        shared: bool,
        registry: Arc<Registry>,
        protocols: impl FnOnce(&Job) -> Box<dyn Protocols>,
    ) -> Result<Self> {
        let places = job.places();
        let config = Config::new(settings, job.shape())?;
        let fences = AsymmetricFence::join(config.fences_on_both_sides()).map_err(|error| {
            Error::Other(format!(
                "membarrier(2): {error}; set PERUSAL_SENDER_FENCES=1 for the whole job to do without it"
            ))
        })?;
        let peers = (0..places).map(|rank| Peer::new(parts::doorbell(&job, rank))).collect();
        let notification = NotificationMode::of(config.shape(), fences);
        let engine = Self {
            rank: job.rank(),
            shared,
            fences,
            notification,
            doorbell: parts::doorbell(&job, job.rank()),
            telemetry: NonNull::from(job.own_telemetry()),
            peers,
            other_jobs: OtherJobs::default(),
            poller: CachePadded::new(ConditionalLock::new(Poller::new(
                places,
                notification,
                config.shape().is_oversubscribed(),
            ))),
            backlog: CachePadded::default(),
            background: BackgroundOperations::default(),
            oversubscription: Oversubscription::new(ranks_per_cpu(config.shape())),
            recent_waits: RecentWaits::default(),
            core_migration: CoreMigration::new(config.shape().ranks),
            contexts: MatchContexts::new(),
            slab: Slab::new(),
            waiters: CachePadded::default(),
            progress_thread: ProgressThread::default(),
            protocols: protocols(&job),
            buffers: Buffers::default(),
            files: Arc::default(),
            accumulate_waits: WaitCounts::default(),
            registry,
            next_id: AtomicU64::new(1 << 40),
            noticed: NoticedFailures::default(),
            failure: OnceLock::new(),
            calls_made: OnceLock::new(),
            config,
            job,
        };
        engine.job.advance(shm::RankState::Initialised);
        core_migration::begin(&engine);
        engine.emit_placement();
        Ok(engine)
    }

    /// Has `made` say how many collective calls the program has made, for reports of hangs. The first call wins.
    ///
    /// A thread asks when it has slept in vain and waits for messages of the program's or is in MPI_Finalize. It is in
    /// no collective call, but for one on the context that it gives.
    pub fn set_calls_made(&self, made: CallsMadeBut) {
        let _ = self.calls_made.set(made);
    }

    /// This rank in the job.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Ranks that the job began with.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.job.size()
    }

    /// Processes that there is room for in the job.
    #[inline(always)]
    #[must_use]
    pub(crate) fn places(&self) -> u32 {
        self.peers.len() as u32
    }

    /// The job this rank belongs to.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Whether several threads may be inside at once.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// What steers this engine.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The PERUSE events of this rank.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// This rank's telemetry page.
    #[inline(always)]
    pub(crate) fn telemetry(&self) -> &Telemetry {
        // SAFETY: the page lies in the job's memory, which the engine keeps.
        unsafe { self.telemetry.as_ref() }
    }

    /// An event id that no request has (those are below 2³¹) and none before has had.
    pub(crate) fn fresh_id(&self) -> isize {
        // Relaxed: a counter. Without a locked instruction where one thread at a time is inside.
        if self.shared {
            return self.next_id.fetch_add(1, Ordering::Relaxed) as isize;
        }
        let id = self.next_id.load(Ordering::Relaxed);
        self.next_id.store(id + 1, Ordering::Relaxed);
        id as isize
    }

    /// The match context of a context id, made on first need by whoever comes first: the communicator or a message for
    /// it. `None` if there can be none of that id.
    #[inline]
    pub(crate) fn context(&self, id: u32) -> Option<NonNull<MatchContext>> {
        self.contexts.get_or_make(id, &self.config)
    }

    /// Closes both contexts of a communicator and gives its context id back, now or when nothing is pending any more.
    pub fn close_communicator(&self, id: u32) {
        for id in [id + 1, id] {
            let Some(context) = self.contexts.get(id) else { continue };
            // SAFETY: an open communicator's contexts are there.
            if unsafe { context.as_ref() }.close(self.shared) {
                self.close_context(context);
            }
        }
    }

    #[cold]
    fn close_context(&self, context: NonNull<MatchContext>) {
        // SAFETY: closed and nothing pending: we are the last to hold it.
        let id = unsafe { context.as_ref() }.id();
        self.contexts.remove(id);
        if id.is_multiple_of(2) && id / 2 > shm::contexts::SELF {
            // An id that was not allocated here is a mistake of ours, not of the program; the id stays taken.
            let released = self.job.contexts().release(id / 2);
            debug_assert!(released.is_ok(), "context id {id}: {released:?}");
        }
    }

    /// Keeps the first failure that makes waiting pointless; every wait ends with it.
    #[cold]
    pub(crate) fn fail(&self, error: Error) {
        // A death that the job survives makes some waits pointless, not all: the protocols end those.
        if matches!(error, Error::ProcFailed { .. }) {
            return;
        }
        let _ = self.failure.set(error);
    }

    /// The failure that makes waiting pointless, if there is one.
    #[inline]
    pub(crate) fn failed(&self) -> Option<&Error> {
        self.failure.get()
    }
}

/// Its parts.
impl Engine {
    /// Requests: made, completed, released.
    #[inline(always)]
    #[must_use]
    pub fn requests(&self) -> Requests<'_> {
        Requests { engine: self }
    }

    /// Progress, and waits for it.
    #[inline(always)]
    #[must_use]
    pub fn progress(&self) -> Progress<'_> {
        Progress { engine: self }
    }

    /// Transmission to all peers.
    #[inline(always)]
    pub(crate) fn transmit(&self) -> Transmit<'_> {
        Transmit { engine: self }
    }
}

/// What a spoiled ring is called.
#[cold]
pub(crate) fn corrupt(rank: u32, what: String) -> Error {
    Error::Corrupt { rank, what }
}
