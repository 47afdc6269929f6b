//! Events that a partitioned request emits: its own, and those of PERUSE that every request has.

use super::buffer::Partitions;
use super::marks::Marks;
use crate::comm::Comm;
use crate::engine::{Awaited, Engine};
use crate::events::{
    Event, EventPayload, Operation, PartitionBytes, PartitionCount, Spec, fast_path_is_open,
};
use crate::shm::telemetry::Waiting;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// The events of one partitioned request.
#[derive(Debug)]
pub(super) struct RequestEvents {
    /// Its communicator, which stays as long as the request does.
    pub comm: Arc<Comm>,
    operation: Operation,
    peer: i32,
    tag: i32,
    /// Its id in events; 0 as long as nobody has listened.
    id: AtomicUsize,
    /// The last round for which the beginning of a transfer has been emitted.
    begun: AtomicU64,
    /// Of a receive that has been observed: for which partitions the arrival has been emitted.
    emitted: OnceLock<Marks>,
}

impl RequestEvents {
    pub fn new(comm: Arc<Comm>, operation: Operation, peer: i32, tag: i32) -> Self {
        let (id, begun) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { comm, operation, peer, tag, id, begun, emitted: OnceLock::new() }
    }

    /// What a wait for it is for, whose peer is `peer` in the job.
    pub fn awaited(&self, kind: Waiting, peer: u32) -> Awaited {
        Awaited::Message { kind, peer, tag: self.tag, context: self.comm.context }
    }

    /// Whether anybody listens to anything on the communicator.
    /// Where nobody listens to anything, that is one load and one branch.
    #[inline(always)]
    fn is_observed(&self) -> bool {
        !fast_path_is_open() && self.comm.p2p().observed()
    }

    fn id(&self, engine: &Engine) -> isize {
        // Relaxed, here and below: a number; it publishes nothing else.
        let id = self.id.load(Ordering::Relaxed);
        if id != 0 {
            return id.cast_signed();
        }
        let fresh = engine.fresh_id();
        let before = self.id.compare_exchange(0, fresh.cast_unsigned(), Ordering::Relaxed, Ordering::Relaxed);
        before.map_or_else(usize::cast_signed, |_| fresh)
    }

    fn emit(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        event: Event,
        bytes: usize,
        payload: EventPayload<'_>,
    ) {
        let context = self.comm.p2p();
        if context.has_listener(event) {
            context.emit(event, self.id(engine), payload, |comm| Spec {
                comm,
                buf: buffer.user.0.cast(),
                count: buffer.user.1 as i64,
                datatype: buffer.user.2,
                peer: self.peer,
                tag: self.tag,
                operation: self.operation,
                bytes: bytes as u64,
            });
        }
    }

    /// Emits an event of PERUSE of the request as a whole.
    fn emit_request(&self, engine: &Engine, buffer: &Partitions, event: Event) {
        self.emit(engine, buffer, event, buffer.bytes(), EventPayload::Partitioned);
    }

    fn emit_operation(&self, engine: &Engine, buffer: &Partitions, event: Event, bytes: usize) {
        let partitions = PartitionCount(u32::try_from(buffer.number).unwrap_or(u32::MAX));
        let payload = EventPayload::PartOperation { bytes: bytes as u64, partitions };
        self.emit(engine, buffer, event, bytes, payload);
    }

    fn emit_partition(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        event: Event,
        (partition, bytes): (usize, usize),
        arrived: bool,
    ) {
        let payload = EventPayload::Partition {
            partition: partition as u32,
            arrived,
            bytes: PartitionBytes(bytes as u64),
        };
        self.emit(engine, buffer, event, bytes, payload);
    }

    /// Emits that a round is started.
    #[inline(always)]
    pub fn start(&self, engine: &Engine, buffer: &Partitions) {
        if self.is_observed() {
            self.emit_start(engine, buffer);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_start(&self, engine: &Engine, buffer: &Partitions) {
        self.emit_request(engine, buffer, Event::ReqActivate);
        self.emit_operation(engine, buffer, Event::PartStart, buffer.bytes());
    }

    /// Emits that a partition has been marked as ready.
    #[inline(always)]
    pub fn ready(&self, engine: &Engine, buffer: &Partitions, partition: usize) {
        if self.is_observed() {
            self.emit_ready(engine, buffer, partition);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_ready(&self, engine: &Engine, buffer: &Partitions, partition: usize) {
        self.emit_partition(engine, buffer, Event::PartReady, (partition, buffer.each), false);
    }

    /// Copies a partition of so many bytes; emits where that begins and ends.
    #[inline(always)]
    pub fn transfer(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        part: (usize, usize),
        copy: impl FnOnce(),
    ) {
        let observed = self.is_observed();
        if observed {
            self.emit_transfer(engine, buffer, round, part, Event::PartXferBegin);
        }
        copy();
        if observed {
            self.emit_transfer(engine, buffer, round, part, Event::PartXferEnd);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_transfer(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        part: (usize, usize),
        event: Event,
    ) {
        if event == Event::PartXferBegin {
            self.emit_part_of_transfer(engine, buffer, round);
        }
        self.emit_partition(engine, buffer, event, part, false);
    }

    /// For PERUSE the first partition of a round is the beginning of the transfer, and each other one its continuation.
    fn emit_part_of_transfer(&self, engine: &Engine, buffer: &Partitions, round: u64) {
        let first = self.begun.fetch_max(round, Ordering::Relaxed) < round;
        let event = if first { Event::ReqXferBegin } else { Event::ReqXferContinue };
        self.emit_request(engine, buffer, event);
    }

    /// Emits the arrival of partitions of a receive that is observed; `is_here` returns how many bytes of a partition
    /// have come, once they have.
    #[inline(always)]
    pub fn arrivals(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        is_here: impl Fn(usize) -> Option<usize>,
    ) {
        if self.is_observed() {
            self.emit_arrivals(engine, buffer, round, is_here);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_arrivals(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        is_here: impl Fn(usize) -> Option<usize>,
    ) {
        // Without memory for marks arrivals are not emitted.
        let emitted = self.emitted.get_or_init(|| Marks::new(buffer.number).unwrap_or_default());
        for (partition, mark) in emitted.iter().enumerate() {
            if mark.has_stepped(round) {
                continue;
            }
            if let Some(bytes) = is_here(partition)
                && mark.step(round)
            {
                self.emit_part_of_transfer(engine, buffer, round);
                self.emit_partition(engine, buffer, Event::PartArrived, (partition, bytes), true);
            }
        }
    }

    /// Whether the arrival of a partition of a receive that is observed has been emitted in this round.
    #[inline(always)]
    pub fn has_told_arrival(&self, partition: usize, round: u64) -> bool {
        self.is_observed()
            && self
                .emitted
                .get()
                .and_then(|marks| marks.get(partition))
                .is_some_and(|mark| mark.has_stepped(round))
    }

    /// Emits that MPI_Parrived has been asked about a partition.
    #[inline(always)]
    pub fn tested(&self, engine: &Engine, buffer: &Partitions, partition: usize, arrived: bool) {
        if self.is_observed() {
            self.emit_tested(engine, buffer, partition, arrived);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_tested(&self, engine: &Engine, buffer: &Partitions, partition: usize, arrived: bool) {
        self.emit_partition(engine, buffer, Event::PartTested, (partition, buffer.each), arrived);
    }

    /// Emits that a round is over, whose message has so many bytes; `transferred` if these have been moved.
    #[inline(always)]
    pub fn complete(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        (bytes, transferred): (usize, bool),
    ) {
        if self.is_observed() {
            self.emit_complete(engine, buffer, round, (bytes, transferred));
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_complete(
        &self,
        engine: &Engine,
        buffer: &Partitions,
        round: u64,
        (bytes, transferred): (usize, bool),
    ) {
        if transferred {
            // A message without partitions, or one whose beginning nobody listened to.
            if self.begun.fetch_max(round, Ordering::Relaxed) < round {
                self.emit_request(engine, buffer, Event::ReqXferBegin);
            }
            self.emit_request(engine, buffer, Event::ReqXferEnd);
        }
        self.emit_request(engine, buffer, Event::ReqComplete);
        self.emit_operation(engine, buffer, Event::PartComplete, bytes);
    }

    /// Emits that the user is notified of the end of a round.
    #[inline(always)]
    pub fn notify(&self, engine: &Engine, buffer: &Partitions) {
        if self.is_observed() {
            self.emit_notify(engine, buffer);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_notify(&self, engine: &Engine, buffer: &Partitions) {
        self.emit_request(engine, buffer, Event::ReqNotify);
    }
}
