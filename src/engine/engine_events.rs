//! The engine's own events: bound to no communicator, emitted to global subscribers.

use super::operation::{Body, Ref};
use super::{Engine, TxQueue};
use crate::events::{Event, EventPayload, EventRecord};
use crate::shm::cpus;
use crate::shm::telemetry::Wait;

impl Engine {
    /// Emits `event` to its listeners, if there are any; `payload` is called only then.
    #[inline(always)]
    pub fn emit(&self, event: Event, payload: impl FnOnce() -> EventPayload<'static>) {
        if self.registry().gate.is_open(event) {
            self.registry().emit(&EventRecord::of_engine(event, payload()));
        }
    }

    /// Emits where this rank runs.
    pub(crate) fn emit_placement(&self) {
        self.emit(Event::Placed, || {
            let allowed = cpus::affinity();
            let cpu = allowed.first().map_or(u32::MAX, |cpu| *cpu as u32);
            EventPayload::Placement { cpu, policy: u8::from(allowed.len() < cpus::online()) }
        });
    }

    /// Emits that this rank has moved to `cpu` by itself.
    pub(crate) fn emit_move(&self, cpu: u32) {
        self.emit(Event::Placed, || EventPayload::Placement {
            cpu,
            policy: u8::from(cpus::affinity().len() < cpus::online()),
        });
    }

    /// Emits that copy engine number `engine` begins on the message of `request`, or is done:
    /// `bytes` is what it is to move, or has moved.
    #[inline(always)]
    pub(crate) fn emit_copy(&self, event: Event, request: Ref, body: &Body, engine: u8, bytes: usize) {
        if self.registry().gate.is_open(event) {
            let payload = EventPayload::Copy { engine, bytes: bytes as u64, peer: body.world.get() };
            let id = request.id() as isize;
            self.registry().emit(&EventRecord { id, ..EventRecord::of_engine(event, payload) });
        }
    }

    /// Emits that something has to wait for room in the ring to `peer`.
    #[inline(always)]
    pub(crate) fn emit_ring_full(&self, peer: u32, tx: &TxQueue) {
        self.emit(Event::RingFull, || {
            let waiting = tx.deferred.len() + tx.streams.len();
            EventPayload::Ring { peer, waiting: u32::try_from(waiting).unwrap_or(u32::MAX) }
        });
    }

    /// Emits that the rank goes to sleep, or is awake again.
    pub(crate) fn emit_sleep(&self, event: Event, wait: Option<&Wait>) {
        self.emit(event, || EventPayload::Sleep {
            waiting: wait.map_or(0, |wait| wait.kind as u8),
            peer: wait.and_then(|wait| wait.peer).unwrap_or(u32::MAX),
        });
    }
}
