//! Copy engine through the ring: the sender packs the message into records, the receiver unpacks them, both at once. It
//! takes every message of any layout, and goes on where another engine has failed.

use super::Rendezvous;
use super::{CopyEngine, emit};
use crate::arch::copy_nontemporal;
use crate::engine::{Body, CopyRoute, Engine, Ref, Rts, Stage, TxQueue, corrupt, timed};
use crate::error::Result;
use crate::events::Event;
use crate::protocol::{Control, Kind};
use crate::ring::{Header, INLINE};
use crate::shm::telemetry::ProtocolKind;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 0, takes: |_, _, _| true, begin };

/// Bytes from which a message is so long that how soon its first part can be copied does not matter.
const LONG: usize = 512 << 10;

fn begin(engine: &Engine, request: Ref, _: &Rts) -> Result<()> {
    ask(engine, request, false)
}

/// Asks the sender for the data; `begun`: another engine has begun to move it.
pub(super) fn ask(engine: &Engine, request: Ref, begun: bool) -> Result<()> {
    // SAFETY: request rule 2: matched, and no other engine is at work on it, so ours.
    let body = unsafe { request.body() };
    body.stage.set(Stage::RingData { begun });
    engine.protocol_state().copy.expect(body);
    engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
    let (world, remote) = (body.world.get(), body.remote.get());
    let unasked = if begun { 0 } else { engine.protocol_state().copy.invites(engine, body) };
    let wanted = body.wanted.get() as u64;
    engine.answer(world, remote, Control::Cts { receiver: request.id(), wanted, unasked })
}

/// The event that goes with the next part.
fn part_event(body: &Body) -> Event {
    let first = body.moved.get() == 0 && body.stage.is(Stage::RingData { begun: false });
    if first { Event::ReqXferBegin } else { Event::ReqXferContinue }
}

/// Bytes of the next part of a message of `bytes` bytes: those of a block, if this rank has one.
/// Elsewhere, where others wait behind it, the receiver has something to copy anyway.
fn part_bytes(tx: &TxQueue, bytes: usize) -> usize {
    if let Some(block) = tx.producer.block() {
        return block;
    }
    let most = tx.longest_fragment();
    if bytes < LONG && tx.streams.is_empty() { (most / 2).max(INLINE) } else { most }
}

impl Rendezvous<'_> {
    /// The receiver is clear for the data, and for so many messages unasked.
    pub(in crate::protocol) fn on_cts(
        self,
        from: u32,
        id: u32,
        receiver: u32,
        (wanted, unasked): (u64, u32),
    ) -> Result<()> {
        let request = self
            .engine
            .requests()
            .own_send(from, id, |stage| matches!(stage, Stage::AwaitsCts | Stage::AwaitsFin))?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        if wanted == 0 || wanted > body.bytes.get() as u64 {
            return Err(corrupt(from, format!("{wanted} bytes wanted of a message of {}", body.bytes.get())));
        }
        self.engine.peers[from as usize].copy_rates(body.contents.get()).invited(unasked);
        body.wanted.set(wanted as usize);
        body.remote.set(receiver);
        body.moved.set(0);
        // A transfer that failed half-way has begun already.
        body.stage.set(Stage::RingData { begun: body.stage.is(Stage::AwaitsFin) });
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
        self.engine.transmit().with(from, |tx| {
            tx.streams.push_back(request);
            if tx.deferred.is_empty() {
                self.pump_streams(tx);
            }
            if !tx.is_idle() {
                self.engine.transmit().list(tx);
            }
        })
    }

    /// Sends parts of large messages, one of each in turn, while there is room.
    pub(crate) fn pump_streams(self, tx: &mut TxQueue) -> bool {
        let mut moved = false;
        while let Some(request) = tx.streams.pop_front() {
            match self.push_part(tx, request) {
                Some(true) => {}
                Some(false) => tx.streams.push_back(request),
                None => {
                    tx.streams.push_front(request);
                    return moved;
                }
            }
            moved = true;
            // The receiver should begin to copy while we copy the next one.
            self.engine.transmit().notify(tx);
        }
        moved
    }

    /// Sends one part: `None` if there is no room, else whether it was the last.
    fn push_part(self, tx: &mut TxQueue, request: Ref) -> Option<bool> {
        // SAFETY: request rule 2: a stream belongs to the thread that has the queue to its receiver.
        let body = unsafe { request.body() };
        let len = part_bytes(tx, body.wanted.get()).min(body.wanted.get() - body.moved.get());
        if !tx.producer.room(len) {
            return None;
        }
        emit(request, part_event(body));
        // SAFETY: the send is active.
        let context = unsafe { body.active_context() }.id();
        let header = Header {
            kind: Kind::Data as u8,
            context,
            tag: 0,
            source: self.engine.rank,
            id: body.remote.get(),
        };
        let push = || {
            tx.producer.try_push(&header, len, |to| {
                // SAFETY: the user's buffer stays valid until the request completes; the part lies within it.
                unsafe { body.pack(body.moved.get(), to) };
            })
        };
        let (pushed, ticks) = timed(len, push);
        debug_assert!(pushed, "there was room, and nobody else fills the ring");
        if body.is_bytes() {
            self.engine.peers[tx.peer as usize].copy_rates(body.contents.get()).filled(len, ticks);
        }
        body.moved.set(body.moved.get() + len);
        if body.moved.get() < body.wanted.get() {
            return Some(false);
        }
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, body.wanted.get());
        self.finish_sent(request, ProtocolKind::Chunked);
        Some(true)
    }

    /// A part of a message is here.
    pub(in crate::protocol) fn on_data(self, from: u32, id: u32, data: &[u8]) -> Result<()> {
        let request =
            self.engine.requests().own_receive(from, id, |stage| matches!(stage, Stage::RingData { .. }))?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        let missing = body.wanted.get() - body.moved.get();
        if data.is_empty() || data.len() > missing {
            return Err(corrupt(from, format!("{} bytes of data where {missing} are missing", data.len())));
        }
        emit(request, part_event(body));
        let uncached =
            self.engine.protocol_state().copy.come(&self.engine.config, body, data.len()) && body.is_bytes();
        // SAFETY: the user's buffer stays valid until the request completes; `wanted` fits it, and the part `wanted`;
        // the ring's memory is none of it.
        let copy = || unsafe {
            if uncached {
                copy_nontemporal(data.as_ptr(), body.addr.get().wrapping_add(body.moved.get()), data.len());
            } else {
                body.unpack(body.moved.get(), data);
            }
        };
        if body.is_bytes() {
            let rates = self.engine.peers[from as usize].copy_rates(body.contents.get());
            rates.time(CopyRoute::Ring, data.len(), copy);
        } else {
            copy();
        }
        body.moved.set(body.moved.get() + data.len());
        if body.moved.get() == body.wanted.get() {
            self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, body.wanted.get());
            emit(request, Event::ReqXferEnd);
            self.engine.delivery().count_received(
                ProtocolKind::Chunked,
                body.wanted.get(),
                self.engine.shared,
            );
            self.engine.protocol_state().copy.count(self.engine, body);
            self.engine.requests().finish_receive(request, body.total.get());
        }
        Ok(())
    }
}
