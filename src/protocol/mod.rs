//! What the records between two ranks mean: one file for each protocol.
//!
//! | file | protocol |
//! |---|---|
//! | `record` | the kinds of record, and what each says |
//! | `selection` | which protocol a send takes |
//! | `deliver` | a message meets its receive: the one path of all protocols |
//! | `eager` | a small message: one record with its payload |
//! | `eager_fragments` | a message of medium size: several records, sent before a receive is known |
//! | `rendezvous` | a large message: ready-to-send, clear-to-send, data by a copy engine, finish |
//! | `loopback` | a rank's messages to itself |
//! | `polled_receive` | a receive that polls the ring for its message before it is posted |
//! | `cancel` | a sender wants an eager or announced message back |
//!
//! The engine hands over records ([`Engine::take_run`], [`Engine::take_record`]) and what waits for room; the verbs (`p2p`) hand over
//! requests ([`Engine::start_send`], [`Engine::start_recv`]). Nothing here knows of a communicator beyond a match context.

mod cancel;
mod deliver;
mod eager;
mod eager_fragments;
mod loopback;
mod polled_receive;
mod record;
pub mod rendezvous;
mod selection;
mod start;

pub(crate) use deliver::{Claim, pattern};
pub(crate) use eager::Destination;
pub(crate) use record::{Control, Kind};

use crate::engine::{Engine, corrupt};
use crate::error::Result;
use crate::ring::Header;
use crate::shm::Job;
use crate::sync::{ConditionalLock, Mutex, MutexGuard};
use crate::variables::Config;
use deliver::Arrival;
use eager_fragments::Assembly;
use record::Record;
use rendezvous::CopyPolicy;
use std::collections::HashMap;
use std::sync::PoisonError;

/// What the protocols of one rank keep.
pub(crate) struct Protocols {
    /// What is known of the ways to copy.
    copy: CopyPolicy,
    /// Of each peer, the message in fragments of which a part has come. Used by who drives progress.
    assemblies: Box<[ConditionalLock<Option<Box<Assembly>>>]>,
    /// Sends whose receiver was asked to throw them away, and its answer.
    cancelling: Mutex<HashMap<u32, Option<bool>>>,
}

impl Protocols {
    /// Those of a rank of `job`.
    pub fn new(job: &Job, config: &Config) -> Self {
        Self {
            copy: CopyPolicy::new(job, config),
            assemblies: (0..job.size()).map(|_| ConditionalLock::default()).collect(),
            cancelling: Mutex::default(),
        }
    }

    fn cancelling(&self) -> MutexGuard<'_, HashMap<u32, Option<bool>>> {
        self.cancelling.lock().unwrap_or_else(PoisonError::into_inner)
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
        if header.kind == Kind::Eager as u8 && self.take_one_eager::<SHARED>(from, header, data) {
            return Ok(());
        }
        self.take_any_record(from, header, data)
    }

    #[inline(never)]
    fn take_any_record(&self, from: u32, header: &Header, data: &[u8]) -> Result<()> {
        let id = header.id;
        match Record::read(header.kind, data).map_err(|what| corrupt(from, what))? {
            Record::Eager { data, synchronous } => {
                let context = self.context_of(from, header)?;
                let message = Arrival { synchronous, ..Arrival::of(from, header, data) };
                if self.arrive(context, message) && synchronous {
                    return self.acknowledge(from, id);
                }
                Ok(())
            }
            Record::Fragment(data) => self.on_fragment(from, data),
            Record::Data(data) => self.on_data(from, id, data),
            Record::Control(control) => match control {
                Control::Rts(rts) => self.on_rts(from, header, rts),
                Control::Matched => self.on_matched(from, id),
                Control::Cts { receiver } => self.on_cts(from, id, receiver),
                Control::SplitCts { receiver, addr, split, end } => {
                    self.on_split_cts(from, id, receiver, addr, (split, end))
                }
                Control::SplitDone { copied } => self.on_split_done(from, id, copied),
                Control::HeapCts { receiver, place, total, turn } => {
                    self.on_heap_cts(from, id, receiver, (place, total), turn)
                }
                Control::HeapDone { bytes } => self.on_heap_done(from, id, bytes),
                Control::Fin { protocol } => self.on_fin(from, id, protocol),
                Control::Cancel => self.on_cancel(from, header),
                Control::CancelReply { granted } => self.on_cancel_reply(from, id, granted),
                Control::First { total } => self.on_first(from, header, total),
            },
        }
    }

    /// Sends an answer about the peer's request `id`.
    fn answer(&self, world: u32, id: u32, control: Control) -> Result<()> {
        let (kind, payload) = control.write();
        let header = Header { kind: kind as u8, context: 0, tag: 0, source: self.rank, id };
        self.send_control(world, header, payload)
    }
}
