//! The engine's own events: bound to no communicator, told to taps.

use super::operation::{Body, Ref};
use super::{Engine, TxQueue};
use crate::comm::Comm;
use crate::events::{Event, EventPayload, EventRecord, Spec};
use crate::protocol::rendezvous::CopyEngine;
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

    /// A copy engine begins on the message of `request`, or is done: `bytes` is what it is to move, or has moved.
    #[inline(always)]
    pub(crate) fn note_copy(
        &self,
        event: Event,
        request: Ref,
        body: &Body,
        engine: &CopyEngine,
        bytes: usize,
    ) {
        if self.registry().gate.is_open(event) {
            let payload = EventPayload::Copy { engine: engine.number, bytes: bytes as u64, peer: body.world };
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

impl Comm {
    /// Tells that it is there, under its handle; and its name, if it has one from the beginning.
    pub fn note_created(&self) {
        self.note_life(Event::CommCreated);
        let name = self.name();
        if !name.is_empty() {
            self.note_name(&name);
        }
    }

    /// Tells that its handle goes.
    pub fn note_freed(&self) {
        self.note_life(Event::CommFreed);
    }

    /// Tells that it is called `name`.
    pub fn note_name(&self, name: &[u8]) {
        if self.events.registry().gate.is_open(Event::CommNamed) {
            self.note(Event::CommNamed, EventPayload::Name(&String::from_utf8_lossy(name)));
        }
    }

    fn note_life(&self, event: Event) {
        if self.events.registry().gate.is_open(event) {
            let group: Vec<u32> = self.peers().iter().collect();
            self.note(event, EventPayload::Comm { size: self.peers().size(), group: &group });
        }
    }

    #[cold]
    fn note(&self, event: Event, payload: EventPayload<'_>) {
        let spec = Spec { comm: self.handle(), ..Spec::NOTHING };
        self.events.registry().emit(&EventRecord {
            event,
            id: 0,
            context: self.context,
            spec: &spec,
            payload,
        });
    }
}
