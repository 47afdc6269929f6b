//! Transmit: the queue to each peer, which is the peer's ring and what waits for room there.

use super::Engine;
use super::operation::{Ref, Stage};
use super::outside::Outside;
use super::parts::ring;
use crate::error::Result;
use crate::ring::{Header, INLINE, MappedRing, Producer};
use std::collections::VecDeque;

/// Bytes of a control record's payload.
pub(crate) const CONTROL_BYTES: usize = 32;
/// A control record's payload.
pub(crate) type ControlPayload = [u8; CONTROL_BYTES];

/// Something that waits for room in the ring, in order.
#[derive(Debug)]
pub(crate) enum Deferred {
    /// A control record.
    Control(Header, ControlPayload),
    /// A send with its payload.
    Send(Ref),
}

/// The transmit queue to one peer.
pub(crate) struct TxQueue {
    /// The peer's rank in the job.
    pub peer: u32,
    pub producer: Producer<MappedRing>,
    /// Where it is reached, if it belongs to another job.
    pub(super) outside: Option<Outside>,
    /// What must go first, in order.
    pub deferred: VecDeque<Deferred>,
    /// Large sends whose data goes through the ring when there is room, in turn.
    pub streams: VecDeque<Ref>,
    /// Whether this peer is in the engine's backlog.
    pub listed: bool,
    /// Whether the peer has died: no control record is put off for it any more.
    pub dead: bool,
}

impl TxQueue {
    /// Takes the memory of the ring from this rank to `to`.
    #[cold]
    pub fn establish(engine: &Engine, to: u32) -> Result<Box<Self>> {
        let (job, outside) = (&engine.job, engine.outside(to)?);
        let producer = if let Some(outside) = &outside {
            Producer::resume(outside.own_ring()?)
        } else {
            job.reserve_ring(job.rank(), to)?;
            // SAFETY: the producer side is made once a peer, under the peer's lock (ring rule 4); the thread that holds
            // that lock has the engine, and with it the job.
            let (ring, blocks) =
                unsafe { (ring(job, job.rank(), to), engine.peers[to as usize].blocks(engine, to)) };
            let producer = Producer::resume(ring).passing(blocks);
            if engine.config.shape().is_oversubscribed() { producer.with_short_laps() } else { producer }
        };
        Ok(Box::new(Self {
            peer: to,
            producer,
            outside,
            deferred: VecDeque::new(),
            streams: VecDeque::new(),
            listed: false,
            dead: false,
        }))
    }

    /// Whether nothing waits for room.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.deferred.is_empty() && self.streams.is_empty()
    }

    /// Bytes of the longest record of a message that goes in several: small enough that both ranks copy at once, large
    /// enough to be worth a record.
    pub fn longest_fragment(&self) -> usize {
        (self.producer.max_payload() / 2).max(INLINE)
    }

    fn push_control(&mut self, header: &Header, payload: &ControlPayload) -> bool {
        self.producer.try_push(header, CONTROL_BYTES, |to| to.copy_from_slice(payload))
    }
}

/// Transmission of an engine: its queues to all peers, and what waits for room there ([`Engine::transmit`]).
#[derive(Clone, Copy)]
pub(crate) struct Transmit<'e> {
    pub(super) engine: &'e Engine,
}

impl Transmit<'_> {
    /// Runs `work` on the transmit queue to `peer`, establishing it first if need be, and notifies the peer.
    #[inline]
    pub(crate) fn with<R>(self, peer: u32, work: impl FnOnce(&mut TxQueue) -> R) -> Result<R> {
        let there = &self.engine.peers[peer as usize];
        let mut tx = there.tx.lock(self.engine.shared);
        let tx = match &mut *tx {
            Some(tx) => tx,
            none => none.insert(TxQueue::establish(self.engine, peer)?),
        };
        let result = work(tx);
        self.notify(tx);
        Ok(result)
    }

    /// Establishes the transmit queue to `peer` if need be,
    /// so that what is started afterwards does not fail for want of it.
    pub(crate) fn establish(self, peer: u32) -> Result<()> {
        let mut tx = self.engine.peers[peer as usize].tx.lock(self.engine.shared);
        if tx.is_none() {
            *tx = Some(TxQueue::establish(self.engine, peer)?);
        }
        Ok(())
    }

    /// Sends a control record, or puts it behind what waits for room.
    pub(crate) fn send_control(self, peer: u32, header: Header, payload: ControlPayload) -> Result<()> {
        self.with(peer, |tx| {
            let pushed = tx.deferred.is_empty() && tx.push_control(&header, &payload);
            if !pushed && !tx.dead {
                tx.deferred.push_back(Deferred::Control(header, payload));
                self.list(tx);
            }
        })
    }

    /// Puts a send behind what waits for room.
    pub(crate) fn defer(self, tx: &mut TxQueue, request: Ref) {
        // SAFETY: request rule 2: the send is active and not yet pushed,
        // so it belongs to the thread that has the queue to its receiver.
        unsafe { request.body() }.stage.set(Stage::Deferred);
        tx.deferred.push_back(Deferred::Send(request));
        self.list(tx);
    }

    /// Notes that something waits for room to `peer`, so that progress comes back to it.
    pub(crate) fn list(self, tx: &mut TxQueue) {
        let peer = tx.peer;
        self.engine.telemetry().ring_full.add(1);
        self.engine.emit_ring_full(peer, tx);
        if !tx.listed {
            tx.listed = true;
            self.engine.backlog.lock(self.engine.shared).push(peer);
            if self.engine.shared {
                // Another thread may be asleep as the one that runs progress; it must ask for credit.
                self.engine.doorbell.wake();
            }
        }
    }

    /// Moves on what waits for room, to every peer. Returns whether anything moved.
    pub(crate) fn pump_backlog(self) -> bool {
        let mut peers = core::mem::take(&mut *self.engine.backlog.lock(self.engine.shared));
        let mut moved = false;
        peers.retain(|peer| {
            let still = self.with(*peer, |tx| {
                moved |= self.pump(tx);
                tx.listed = !tx.is_idle();
                tx.listed
            });
            still.unwrap_or_else(|error| {
                self.engine.fail(error);
                false
            })
        });
        let mut backlog = self.engine.backlog.lock(self.engine.shared);
        peers.append(&mut backlog);
        *backlog = peers;
        moved
    }

    /// The peers that something waits for, in a copy: each one's queue is locked before the backlog.
    fn backlog(self) -> Vec<u32> {
        self.engine.backlog.lock(self.engine.shared).clone()
    }

    /// Asks every peer of the backlog for credit (ring rule 6, doorbell rule 2);
    /// the caller fences and then pumps once more.
    pub(crate) fn want_credit(self) {
        for peer in self.backlog() {
            if let Some(tx) = &*self.engine.peers[peer as usize].tx.lock(self.engine.shared) {
                tx.producer.want_credit();
            }
        }
    }

    /// Whether a peer of the backlog has room again.
    pub(crate) fn backlog_has_room(self) -> bool {
        self.backlog().into_iter().any(|peer| {
            let mut tx = self.engine.peers[peer as usize].tx.lock(self.engine.shared);
            tx.as_mut().is_some_and(|tx| match tx.deferred.front() {
                Some(Deferred::Control(..)) => tx.producer.room(CONTROL_BYTES),
                // SAFETY: request rule 2: deferred, so it belongs to the thread that has the way to the peer.
                Some(Deferred::Send(request)) => tx.producer.room(unsafe { request.body() }.bytes.get()),
                None => tx.producer.block().is_some() || tx.producer.room(tx.longest_fragment()),
            })
        })
    }

    fn pump(self, tx: &mut TxQueue) -> bool {
        let mut moved = false;
        while let Some(first) = tx.deferred.pop_front() {
            let pushed = match &first {
                Deferred::Control(header, payload) => tx.push_control(header, payload),
                Deferred::Send(request) => self.engine.protocols.transmit(self.engine, tx, *request),
            };
            if !pushed {
                tx.deferred.push_front(first);
                return moved;
            }
            moved = true;
        }
        moved | self.engine.protocols.pump(self.engine, tx)
    }
}
