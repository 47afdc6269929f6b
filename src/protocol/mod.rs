//! What the records between two ranks mean: one file for each protocol.
//!
//! | file | protocol |
//! |---|---|
//! | `start` | where the verbs hand over: a request begins |
//! | `record` | the kinds of record, and what each says |
//! | `selection` | which protocol a send takes |
//! | `content` | a message on its way to its receive |
//! | `deliver` | a message meets its receive: the one path of all protocols |
//! | `eager` | a small message: one record with its payload |
//! | `eager_fragments` | a message of medium size: several records, sent before a receive is known |
//! | `rendezvous` | a large message: ready-to-send, clear-to-send, data by a copy engine, finish |
//! | `loopback` | a rank's messages to itself |
//! | `polled_receive` | a receive that polls the ring for its message before it is posted |
//! | `polled_probe` | a probe that finds its message in the ring, and leaves it there |
//! | `failures` | what cannot end well any more, because a rank has died, ends with an error |
//! | `cancel` | a sender wants an eager or announced message back |
//!
//! The engine hands over records and what waits for room, by [`crate::engine::Protocols`]; the verbs (`p2p`) hand over
//! requests ([`Engine::start_send`], [`Engine::start_recv`]).
//! Nothing here knows of a communicator beyond a match context.

mod cancel;
mod content;
mod deliver;
mod eager;
mod eager_fragments;
mod failures;
mod loopback;
mod polled_probe;
mod polled_receive;
mod record;
pub mod rendezvous;
mod selection;
mod start;

pub(crate) use deliver::{Claim, Delivery, pattern};
pub(crate) use eager::{Destination, Eager};
pub(crate) use polled_probe::Probed;
pub(crate) use record::{Control, Kind};

use crate::engine::{Engine, Protocols, Ref, TxQueue, corrupt};
use crate::error::{Error, Result};
use crate::events::Registry;
use crate::ring::{Consumer, Header, MappedRing};
use crate::shm::Job;
use crate::sync::{ConditionalLock, Mutex, MutexGuard};
use crate::variables::Overrides;
use cancel::Cancellation;
use content::Arrival;
use core::any::Any;
use eager_fragments::{Assembly, EagerFragments};
use failures::Failing;
use loopback::Loopback;
use polled_receive::PolledReceive;
use record::DecodedRecord;
use rendezvous::{CopyPolicy, Rendezvous};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

/// What the protocols of one rank keep.
pub(crate) struct ProtocolState {
    /// What is known of the copy engines.
    copy: CopyPolicy,
    /// Of each peer, the message in fragments of which a part has come. Used by the thread that runs progress.
    assemblies: Box<[ConditionalLock<Option<Box<Assembly>>>]>,
    /// Sends whose receiver was asked to throw them away, and its answer.
    cancelling: Mutex<HashMap<u32, Option<bool>>>,
    /// Sends whose receiver was asked to throw them away because their communicator is in trouble;
    /// nobody waits for the answer.
    recalled: Mutex<HashSet<u32>>,
}

impl ProtocolState {
    fn new(job: &Job) -> Self {
        Self {
            copy: CopyPolicy::default(),
            assemblies: (0..job.places()).map(|_| ConditionalLock::default()).collect(),
            cancelling: Mutex::default(),
            recalled: Mutex::default(),
        }
    }

    fn cancelling(&self) -> MutexGuard<'_, HashMap<u32, Option<bool>>> {
        self.cancelling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recalled(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.recalled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The protocols of an engine of which [`Engine::is_shared`] is known to be `SHARED`.
struct Messages<const SHARED: bool>(ProtocolState);

impl<const SHARED: bool> Protocols for Messages<SHARED> {
    fn receive(
        &self,
        engine: &Engine,
        peer: u32,
        consumer: &mut Consumer<MappedRing>,
        most: usize,
        awaited: usize,
        waits: bool,
    ) -> Result<usize, Box<Error>> {
        let mut n = 0;
        let posted = || engine.telemetry().posted.now.get();
        let unexpected = || engine.telemetry().unexpected.now.get();
        while n < most {
            let before = n;
            n += engine.eager().take_run::<SHARED>(peer, consumer, most - n);
            if n == most || !consumer.should_take(awaited.saturating_sub(n)) {
                break;
            }
            if n > before && consumer.has_known() {
                continue;
            }
            let held = unexpected();
            if !take_one::<SHARED>(engine, peer, consumer)? {
                break;
            }
            n += 1;
            // The receives that will be posted take the next messages out of the ring themselves.
            if !SHARED && waits && (unexpected() > held || posted() == 0) {
                break;
            }
        }
        Ok(n)
    }

    fn transmit(&self, engine: &Engine, tx: &mut TxQueue, send: Ref) -> bool {
        engine.eager().push_request(tx, send)
    }

    fn pump(&self, engine: &Engine, tx: &mut TxQueue) -> bool {
        engine.rendezvous().pump_streams(tx)
    }

    fn end_failed(&self, engine: &Engine) {
        engine.failing().end_all();
    }

    fn state(&self) -> &dyn Any {
        &self.0
    }
}

/// Handles the next record of a ring, if there is one, on the slow path. Whether there was.
#[inline(never)]
fn take_one<const SHARED: bool>(
    engine: &Engine,
    peer: u32,
    consumer: &mut Consumer<MappedRing>,
) -> Result<bool, Box<Error>> {
    match consumer.poll(|header, data| engine.take_record::<SHARED>(peer, header, data)) {
        Ok(Some(Err(error @ Error::Corrupt { .. }))) => Err(Box::new(error)),
        Ok(Some(handled)) => {
            let _ = handled.map_err(|error| engine.fail(error));
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(what) => Err(Box::new(corrupt(peer, format!("{} ({})", what.what, what.value)))),
    }
}

impl Engine {
    /// The engine of one rank of a job, steered by the environment: see [`Self::with`].
    ///
    /// # Errors
    ///
    /// As [`Self::with`], and [`Error::Other`] when a variable in the environment makes no sense.
    ///
    /// # Safety
    ///
    /// As [`Self::with`].
    pub unsafe fn new(job: Job, shared: bool, registry: Arc<Registry>) -> Result<Self> {
        // SAFETY: what the caller says of threads.
        unsafe { Self::with(job, &Overrides::from_environment()?, shared, registry) }
    }

    /// The engine of one rank of a job. `shared` says that several threads may use it at once. `registry` holds its
    /// events: a listener there already sees the engine's events from the first one on.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] when a setting makes no sense in this job, or `membarrier` is refused.
    ///
    /// # Safety
    ///
    /// With `shared = false` the caller promises that no two threads are ever inside this engine at once
    /// (conditional lock rule 1 of [`crate::sync::ConditionalLock`]).
    pub unsafe fn with(
        job: Job,
        settings: &Overrides,
        shared: bool,
        registry: Arc<Registry>,
    ) -> Result<Self> {
        let protocols = |job: &Job| -> Box<dyn Protocols> {
            let state = ProtocolState::new(job);
            if shared { Box::new(Messages::<true>(state)) } else { Box::new(Messages::<false>(state)) }
        };
        // SAFETY: what the caller says of threads.
        unsafe { Self::assemble(job, settings, shared, registry, protocols) }
    }

    /// What the protocols of this rank keep.
    fn protocol_state(&self) -> &ProtocolState {
        self.protocols.state().downcast_ref().expect("made in `Engine::with`")
    }
}

/// The protocols, each a part of its own.
impl Engine {
    /// The meeting of messages and receives.
    #[inline(always)]
    pub(crate) fn delivery(&self) -> Delivery<'_> {
        Delivery { engine: self }
    }

    /// The eager protocol.
    #[inline(always)]
    pub(crate) fn eager(&self) -> Eager<'_> {
        Eager { engine: self }
    }

    /// The protocol of eager fragments.
    #[inline(always)]
    fn eager_fragments(&self) -> EagerFragments<'_> {
        EagerFragments { engine: self }
    }

    /// The rendezvous protocol.
    #[inline(always)]
    pub(crate) fn rendezvous(&self) -> Rendezvous<'_> {
        Rendezvous { engine: self }
    }

    /// Messages of this rank to itself.
    #[inline(always)]
    pub(crate) fn loopback(&self) -> Loopback<'_> {
        Loopback { engine: self }
    }

    /// Receives that poll before they are posted.
    #[inline(always)]
    pub(crate) fn polled_receive(&self) -> PolledReceive<'_> {
        PolledReceive { engine: self }
    }

    /// Operations that cannot end well.
    #[inline(always)]
    fn failing(&self) -> Failing<'_> {
        Failing { engine: self }
    }

    /// The cancelling of messages and receives.
    #[inline(always)]
    pub(crate) fn cancellation(&self) -> Cancellation<'_> {
        Cancellation { engine: self }
    }
}

impl Engine {
    /// Acts on one record that `from` (a rank of the job) sent. `SHARED` is [`Engine::is_shared`].
    ///
    /// # Errors
    ///
    /// [`crate::Error::Corrupt`] when the record makes no sense here: the ring is spoiled.
    #[inline(always)]
    pub(crate) fn take_record<const SHARED: bool>(
        &self,
        from: u32,
        header: &Header,
        data: &[u8],
    ) -> Result<()> {
        if header.kind == Kind::Eager as u8 && self.eager().take_one_eager::<SHARED>(from, header, data) {
            return Ok(());
        }
        self.take_any_record(from, header, data)
    }

    #[inline(never)]
    fn take_any_record(&self, from: u32, header: &Header, data: &[u8]) -> Result<()> {
        let id = header.id;
        match DecodedRecord::read(header.kind, data).map_err(|what| corrupt(from, what))? {
            DecodedRecord::Eager { data, synchronous } => {
                let context = self.delivery().context_of(from, header)?;
                let message = Arrival { synchronous, ..Arrival::of(from, header, data) };
                if self.delivery().arrive(context, message) && synchronous {
                    return self.eager().acknowledge(from, id);
                }
                Ok(())
            }
            DecodedRecord::Fragment(data) => self.eager_fragments().on_fragment(from, data),
            DecodedRecord::Data(data) => self.rendezvous().on_data(from, id, data),
            DecodedRecord::Control(control) => match control {
                Control::Rts(rts, fill) => self.rendezvous().on_rts(from, header, rts, fill),
                Control::Matched => self.eager().on_matched(from, id),
                Control::Cts { receiver, wanted, unasked } => {
                    self.rendezvous().on_cts(from, id, receiver, (wanted, unasked))
                }
                Control::SplitCts { receiver, addr, split, end } => {
                    self.rendezvous().on_split_cts(from, id, receiver, addr, (split, end))
                }
                Control::SplitDone { copied, ticks } => {
                    self.rendezvous().on_split_done(from, id, copied, ticks)
                }
                Control::HeapCts { receiver, place, total, turn } => {
                    self.rendezvous().on_heap_cts(from, id, receiver, (place, total), turn)
                }
                Control::HeapDone { bytes } => self.rendezvous().on_heap_done(from, id, bytes),
                Control::Fin { protocol } => self.rendezvous().on_fin(from, id, protocol),
                Control::Cancel => self.cancellation().on_cancel(from, header),
                Control::CancelReply { granted } => self.cancellation().on_cancel_reply(from, id, granted),
                Control::First { total, contents } => {
                    self.eager_fragments().on_first(from, header, total, contents)
                }
            },
        }
    }

    /// Sends an answer about the peer's request `id`.
    fn answer(&self, world: u32, id: u32, control: Control) -> Result<()> {
        let (kind, payload) = control.write();
        let header = Header { kind: kind as u8, context: 0, tag: 0, source: self.rank, id };
        self.transmit().send_control(world, header, payload)
    }
}
