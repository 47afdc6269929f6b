//! Rendezvous: the sender says that it is ready (RTS), the receiver, once matched, chooses the copy engine that moves
//! the data, and says when it has everything (FIN).
//!
//! A copy engine is a row of [`ENGINES`]: to add one is to write its file and its row.
//! The first row that takes a message moves it.
//!
//! | engine | who copies |
//! |---|---|
//! | `shared_heap` | whoever sees both ends, or both ranks at once: at least one buffer lies in the job's shared heap |
//! | `address_space` | the receiver: the ranks are threads of one process |
//! | `split` | both ranks, one part each, between two processes' memory |
//! | `cma` | the receiver, out of the sender's memory (cross-memory attach) |
//! | `ring_chunks` | both ranks, through the ring: takes every message |
//!
//! `selection` says from which size on two processes copy between their memories, `claims` which of two ranks that copy
//! at once takes which part.

mod address_space;
mod claims;
mod cma;
mod contents;
mod ring_chunks;
mod selection;
mod shared_heap;
mod split;

pub use claims::{Claims, Garbage, Split};
pub(crate) use selection::CopyPolicy;
pub use selection::has_cross_memory_attach;

use super::content::{Arrival, Content};
use super::deliver::Tally;
use super::eager::header_of;
use super::record::Control;
use crate::engine::message_events::request_event;
use crate::engine::specialization::{AsStarted, Observed};
use crate::engine::{Body, Engine, Payload, Ref, Rts, Stage};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::ring::Header;
use crate::shm::telemetry::ProtocolKind;

/// Moves the data of a rendezvous.
pub(crate) struct CopyEngine {
    /// Its number in events; several rows may have one.
    pub number: u8,
    /// Whether it is to move this message. The receive is matched, and has room for all that the announcement says.
    takes: fn(&Engine, &Body, &Rts) -> bool,
    /// Moves it, or has the sender do so: the receive is completed, or waits for a record. A failure is that of the
    /// job; where the engine itself fails it has another one go on.
    begin: fn(&Engine, Ref, &Rts) -> Result<()>,
}

/// All copy engines, the first to be asked first.
static ENGINES: [&CopyEngine; 5] =
    [&shared_heap::ENGINE, &address_space::ENGINE, &split::ENGINE, &cma::ENGINE, &ring_chunks::ENGINE];

/// The rendezvous protocol of an engine ([`Engine::rendezvous`]).
#[derive(Clone, Copy)]
pub(crate) struct Rendezvous<'e> {
    pub(super) engine: &'e Engine,
}

impl Rendezvous<'_> {
    /// Tells the receiver that a message is ready.
    pub(crate) fn send_rts(self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: we have just activated it and nobody else knows it.
        let body = unsafe { request.body() };
        body.stage.set(Stage::AwaitsCts);
        let others = self.engine.protocol_state().copy.announce(self.engine, body);
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() };
        let addr = if body.is_bytes() { body.addr.get() as u64 } else { 0 };
        let contents = body.contents.get();
        let (place, is_unchecked) = (body.place.get(), body.is_unchecked.get());
        let rts = Rts { total: body.bytes.get(), addr, place, is_unchecked, contents, others };
        let fill = self.engine.peers[body.world.get() as usize].copy_rates(contents).fill_time();
        let (kind, payload) = Control::Rts(rts, fill).write();
        let header = header_of(kind, context, body, request.id());
        let announce = || self.engine.transmit().send_control(body.world.get(), header, payload);
        if is_unchecked { self.confirm(body, announce) } else { announce() }
    }

    /// A message is ready at its sender, which takes `fill` ticks to copy a KiB into the ring.
    pub(super) fn on_rts(self, from: u32, header: &Header, rts: Rts, fill: u32) -> Result<()> {
        self.engine.peers[from as usize].copy_rates(rts.contents).peer_fills(fill);
        let rts = Rts { place: self.check_place(from, rts.place, rts.total)?, ..rts };
        let context = self.engine.delivery().context_of(from, header)?;
        let mut tally = Tally::default();
        let matched = self.engine.delivery().match_posted::<AsStarted, Observed, Rts>(
            &mut tally,
            context,
            Arrival::of(from, header, rts),
        );
        match matched {
            Some((request, rts)) => self.accept_rts(request, header.id, rts),
            None => Ok(()),
        }
    }

    /// A receive has met an announced message, the peer's request `id`: chooses the engine that copies it.
    pub(crate) fn accept_rts(self, request: Ref, id: u32, rts: Rts) -> Result<()> {
        // SAFETY: request rule 2: matched, so ours.
        let body = unsafe { request.body() };
        body.remote.set(id);
        body.total.set(rts.total);
        body.remote_addr.set(rts.addr);
        body.contents.set(rts.contents);
        body.moved.set(0);
        // Of a message that is longer than the receive's buffer its beginning moves,
        // as of one that comes with its envelope.
        let wanted = rts.total.min(body.bytes.get());
        body.wanted.set(wanted);
        self.engine.protocol_state().copy.note_received(body, wanted);
        if wanted == 0 {
            emit(request, Event::ReqXferBegin);
            return self.finish_copied(request, ProtocolKind::Cma);
        }
        let rts = Rts { total: wanted, ..rts };
        let engine = ENGINES.iter().find(|engine| (engine.takes)(self.engine, body, &rts));
        match (engine.expect("the last engine takes every message").begin)(self.engine, request, &rts) {
            // The sender has died with the message.
            Err(error @ Error::ProcFailed { .. }) => {
                self.engine.failing().end(request, error);
                Ok(())
            }
            begun => begun,
        }
    }

    /// The receiver has everything: lets the sender go and completes the receive. In this order, for another thread may
    /// wait for the receive, and whoever knows of its end may count on the sender's buffer.
    fn finish_copied(self, request: Ref, protocol: ProtocolKind) -> Result<()> {
        // SAFETY: request rule 2: the receive is matched, and the copy is over, so it is ours.
        let body = unsafe { request.body() };
        // SAFETY: the receive is active.
        request_event(unsafe { body.active_context() }, request, Event::ReqXferEnd);
        let (world, remote, total) = (body.world.get(), body.remote.get(), body.total.get());
        self.engine.delivery().count_received(protocol, body.wanted.get(), self.engine.shared);
        if matches!(protocol, ProtocolKind::Cma | ProtocolKind::Shared) {
            self.engine.protocol_state().copy.count(self.engine, body);
        }
        let answered = self.engine.answer(world, remote, Control::Fin { protocol: protocol as u64 });
        self.engine.requests().finish_receive(request, total);
        answered
    }

    /// The sender is done with its buffer.
    fn finish_sent(self, request: Ref, protocol: ProtocolKind) {
        // SAFETY: request rule 2: its data is on its way or copied, and no record about it is awaited.
        let body = unsafe { request.body() };
        // SAFETY: the send is active.
        request_event(unsafe { body.active_context() }, request, Event::ReqXferEnd);
        self.engine.protocol_state().copy.settle(self.engine, body.world.get());
        self.engine.telemetry().count_sent(protocol, body.bytes.get(), self.engine.shared);
        self.engine.requests().finish(request);
    }

    /// The receiver has everything.
    pub(super) fn on_fin(self, from: u32, id: u32, protocol: u64) -> Result<()> {
        let request = self
            .engine
            .requests()
            .own_send(from, id, |stage| matches!(stage, Stage::AwaitsCts | Stage::AwaitsFin))?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        let helped = body.stage.is(Stage::AwaitsFin);
        if !helped {
            // The receiver copied by itself: begin and end are seen here at one moment (PERUSE 2.0 §3.2).
            // SAFETY: the send is active.
            request_event(unsafe { body.active_context() }, request, Event::ReqXferBegin);
        }
        let protocol = match protocol {
            direct if direct == ProtocolKind::Direct as u64 => ProtocolKind::Direct,
            _ if helped => ProtocolKind::Shared,
            _ => ProtocolKind::Cma,
        };
        self.finish_sent(request, protocol);
        Ok(())
    }

    /// Another copy engine has failed when the transfer had already begun.
    fn fall_back(self, request: Ref) -> Result<()> {
        ring_chunks::ask(self.engine, request, true)
    }
}

impl Content for Rts {
    fn bytes(&self) -> usize {
        self.total
    }

    fn keep(self) -> Payload {
        Payload::Announced(self)
    }
}

/// Raises an event of an active request.
fn emit(request: Ref, event: Event) {
    // SAFETY: request rule 2: whoever emits has it; it is active.
    let context = unsafe { request.body().active_context() };
    request_event(context, request, event);
}

/// Whether a message is one run of bytes at both ends.
fn is_plain(body: &Body, rts: &Rts) -> bool {
    rts.addr != 0 && body.is_bytes()
}
