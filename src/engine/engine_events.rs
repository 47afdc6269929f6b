//! The engine's own events: bound to no communicator, emitted to global subscribers.

use super::operation::{Body, Ref};
use super::{Engine, TxQueue};
use crate::events::{Event, EventPayload, EventRecord};
use crate::shm::cpus;
use crate::shm::telemetry::Wait;

impl Engine {
    /// Tells `event` to who listens; `payload` is asked for then only.
    #[inline(always)]
    pub fn note(&self, event: Event, payload: impl FnOnce() -> EventPayload<'static>) {
        if self.registry().gate.is_open(event) {
            self.registry().emit(&EventRecord::of_engine(event, payload()));
        }
    }

    /// Where this rank runs.
    pub(crate) fn note_placement(&self) {
        self.note(Event::Placed, || {
            let allowed = cpus::affinity();
            let cpu = allowed.first().map_or(u32::MAX, |cpu| *cpu as u32);
            EventPayload::Placement { cpu, policy: u8::from(allowed.len() < cpus::online()) }
        });
    }

    /// This rank has moved to `cpu` by itself.
    pub(crate) fn note_move(&self, cpu: u32) {
        self.note(Event::Placed, || EventPayload::Placement {
            cpu,
            policy: u8::from(cpus::affinity().len() < cpus::online()),
        });
    }

    /// Copy engine number `engine` begins on the message of `request`, or is done: `bytes` is what it is to move, or has moved.
    #[inline(always)]
    pub(crate) fn note_copy(&self, event: Event, request: Ref, body: &Body, engine: u8, bytes: usize) {
        if self.registry().gate.is_open(event) {
            let payload = EventPayload::Copy { engine, bytes: bytes as u64, peer: body.world };
            let id = request.id() as isize;
            self.registry().emit(&EventRecord { id, ..EventRecord::of_engine(event, payload) });
        }
    }

    /// Something has been put behind what waits for room to `peer`.
    #[inline(always)]
    pub(crate) fn note_full(&self, peer: u32, tx: &TxQueue) {
        self.note(Event::RingFull, || {
            let waiting = tx.deferred.len() + tx.streams.len();
            EventPayload::Ring { peer, waiting: u32::try_from(waiting).unwrap_or(u32::MAX) }
        });
    }

    /// The rank goes to sleep, or is awake again.
    pub(crate) fn note_bell(&self, event: Event, wait: Option<&Wait>) {
        self.note(event, || EventPayload::Sleep {
            waiting: wait.map_or(0, |wait| wait.kind as u8),
            peer: wait.and_then(|wait| wait.peer).unwrap_or(u32::MAX),
        });
    }
}
