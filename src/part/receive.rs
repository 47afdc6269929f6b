//! The receiving request.

use super::buffer::Partitions;
use super::channel::{Channel, HELLO, Landing, handshake};
use super::marks::Marks;
use super::request_events::RequestEvents;
use super::words::Mark;
use crate::comm::Comm;
use crate::engine::{Awaited, BackgroundOperation, Data, Engine, Mode, PutAside};
use crate::error::{Error, Result};
use crate::events::Operation;
use crate::heap::Heap;
use crate::p2p::{MessageStatus, Request};
use crate::shm::telemetry::{UnreadyPartitions, Waiting};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering};
use core::ptr::NonNull;

/// A persistent receive in partitions (MPI_Precv_init).
#[derive(Debug)]
pub struct PartitionedReceive {
    buffer: Partitions,
    source: i32,
    tag: i32,
    /// The sender's rank in the job, and what the two share; `None` for MPI_PROC_NULL.
    peer: Option<(u32, Channel)>,
    /// Of data that is staged: which partitions have been unpacked.
    marks: Marks,
    /// Of data that is staged: all partitions before have been unpacked in this round.
    cursor: AtomicUsize,
    /// Rounds that were started, those that are over, and those whose outcome has been taken.
    round: AtomicU64,
    over: Mark,
    notified: AtomicU64,
    events: RequestEvents,
}

impl PartitionedReceive {
    /// Makes an inactive request. `source` and `tag` have been checked.
    ///
    /// # Errors
    /// [`Error::NoMem`] if the shared heap has no room; those of a send.
    pub fn new(
        engine: &Engine,
        comm: Arc<Comm>,
        buffer: Partitions,
        source: i32,
        tag: i32,
    ) -> Result<Arc<Self>> {
        let (mut peer, mut marks) = (None, Marks::default());
        if source >= 0 {
            let world = comm.world_rank_of(source);
            let same_process =
                world == engine.job().rank() || engine.job().are_threads() && !engine.is_guest(world);
            let shape = (buffer.number, buffer.each);
            let run = buffer.run().filter(|_| buffer.bytes() > 0);
            let (channel, hello) = Channel::make(engine, shape, run, same_process)?;
            if let Landing::Staged(_) = channel.landing {
                channel.words().clear(1);
                marks = match Marks::new(buffer.number) {
                    Ok(marks) => marks,
                    Err(error) => {
                        channel.discard(Heap::of(engine.job()));
                        return Err(error);
                    }
                };
            }
            if let Err(error) = announce(engine, &comm, hello, source, tag) {
                channel.discard(Heap::of(engine.job()));
                return Err(error);
            }
            peer = Some((world, channel));
        }
        Ok(Arc::new(Self {
            buffer,
            source,
            tag,
            peer,
            marks,
            cursor: AtomicUsize::new(0),
            round: AtomicU64::new(0),
            over: Mark::default(),
            notified: AtomicU64::new(0),
            events: RequestEvents::new(comm, Operation::Recv, source, tag),
        }))
    }

    fn round(&self) -> u64 {
        // Relaxed: a round is started before any other call knows of it, which the program orders.
        self.round.load(Ordering::Relaxed)
    }

    /// Whether it has been started and its outcome not been taken since.
    #[must_use]
    pub fn is_active(&self) -> bool {
        // Relaxed: as in `round`.
        self.round() > self.notified.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        // "partition received" edge, pairs with `end`.
        self.over.is_over(self.round())
    }

    /// What a wait for it is for; `None` if its peer is MPI_PROC_NULL.
    #[must_use]
    pub fn awaited(&self) -> Option<Awaited> {
        let (peer, _) = self.peer.as_ref()?;
        Some(self.events.awaited(Waiting::Receive, *peer))
    }

    /// Starts a round (MPI_Start).
    ///
    /// # Errors
    /// [`Error::Request`] if it is active.
    pub fn start(self: &Arc<Self>, engine: &Engine) -> Result<()> {
        if self.is_active() {
            return Err(Error::Request("it is active; it can be started again when it is complete"));
        }
        let round = self.round() + 1;
        self.cursor.store(0, Ordering::Relaxed);
        self.round.store(round, Ordering::Relaxed);
        self.events.start(engine, &self.buffer);
        match &self.peer {
            None => _ = self.end(engine, round, None),
            Some((world, channel)) => {
                if let Landing::Buffer(_) = channel.landing {
                    self.clear(engine, *world, channel, round);
                }
                if engine.is_shared() {
                    // For a thread that waits while another one runs progress.
                    engine.progress().start_background_again(self.clone());
                }
            }
        }
        Ok(())
    }

    /// Lets the sender write `round`.
    fn clear(&self, engine: &Engine, world: u32, channel: &Channel, round: u64) {
        channel.words().clear(round);
        if world == engine.job().rank() {
            engine.progress().something_happened();
        } else {
            engine.progress().wake_peer(world);
        }
    }

    /// Whether a partition has arrived (MPI_Parrived). Of an inactive request, all have.
    ///
    /// # Errors
    /// [`Error::Arg`] for a partition that there is not; those of progress.
    pub fn arrived(&self, engine: &Engine, partition: usize) -> Result<bool> {
        if partition >= self.buffer.number {
            return Err(Error::Arg("the receive has no partition of that number"));
        }
        let mut arrived = !self.is_active() || self.is_here(partition);
        if !arrived {
            engine.progress().poll_for_program(false)?;
            arrived = self.is_here(partition);
        }
        self.tell_arrivals(engine);
        // It may have come since it was looked at: what listeners know to have arrived has arrived.
        arrived = arrived || self.events.has_told_arrival(partition, self.round());
        self.events.tested(engine, &self.buffer, partition, arrived);
        Ok(arrived)
    }

    /// Tells listeners which partitions of an active request have arrived.
    #[inline(always)]
    fn tell_arrivals(&self, engine: &Engine) {
        self.events.arrivals(engine, &self.buffer, self.round(), |partition| {
            let here = self.is_active() && self.is_here(partition);
            here.then(|| self.length_of(partition).unwrap_or(0))
        });
    }

    /// Bytes of a partition that are sent, once that is known.
    fn length_of(&self, partition: usize) -> Option<usize> {
        let length = self.peer.as_ref()?.1.words().length()?;
        Some(self.buffer.each.min((length as usize).saturating_sub(partition * self.buffer.each)))
    }

    /// Whether a partition of an active request is in the user's buffer; puts it there if it is staged.
    fn is_here(&self, partition: usize) -> bool {
        let Some((_, channel)) = &self.peer else { return true };
        let round = self.round();
        let Some(len) = self.length_of(partition) else { return false };
        let from = partition * self.buffer.each;
        if self.marks.get(partition).is_some_and(|mark| mark.is_over(round)) || self.is_over() {
            return true;
        }
        let there = Self::has_come(channel, partition, len, round);
        let (true, Landing::Staged(staged), Some(mark)) = (there, channel.landing, self.marks.get(partition))
        else {
            return there;
        };
        // Else another thread copies it just now.
        if mark.step(round) {
            // SAFETY: all bytes of the partition have been counted, so the sender writes them no more in this round
            // (partition rule 1); the user's buffer is the request's until it is complete,
            // and nobody else has taken this partition.
            unsafe { self.buffer.unpack(from, staged.wrapping_add(from), len) };
            let taken = mark.take(round);
            debug_assert!(taken, "nobody else takes the second step");
        }
        mark.is_over(round)
    }

    /// Whether all `len` bytes of a partition that belong to `round` are in the shared memory.
    fn has_come(channel: &Channel, partition: usize, len: usize, round: u64) -> bool {
        match len {
            0 => channel.words().has_ended(round),
            _ => channel.count(partition).is((len as u64).wrapping_mul(round)),
        }
    }

    /// The partitions of an active request that have not come; all, as long as the sender has made none ready.
    #[must_use]
    pub fn missing_partitions(&self) -> UnreadyPartitions {
        let (number, round) = (self.buffer.number, self.round());
        let has_come = |partition: usize| {
            let taken = self.marks.get(partition).is_some_and(|mark| mark.is_over(round));
            let len = self.length_of(partition);
            taken
                || self
                    .peer
                    .as_ref()
                    .zip(len)
                    .is_some_and(|((_, channel), len)| Self::has_come(channel, partition, len, round))
        };
        UnreadyPartitions::new(number, (0..number).filter(|partition| !has_come(*partition)))
    }

    /// Whether the round is over; copies what has come meanwhile.
    pub fn poll(&self, engine: &Engine) -> bool {
        if self.is_over() {
            return true;
        }
        let Some((world, channel)) = &self.peer else { return true };
        let round = self.round();
        if !self.marks.is_empty() {
            // Relaxed: a place to go on from.
            let mut at = self.cursor.load(Ordering::Relaxed);
            while at < self.marks.len() && self.is_here(at) {
                at += 1;
            }
            self.cursor.store(at, Ordering::Relaxed);
        }
        let whole = channel.words().has_ended(round) && (0..self.marks.len()).all(|at| self.is_here(at));
        self.tell_arrivals(engine);
        whole && self.end(engine, round, Some((*world, channel)))
    }

    /// Ends `round`, all of which has been received from `peer`, unless another thread does.
    /// Returns whether the round is over.
    fn end(&self, engine: &Engine, round: u64, peer: Option<(u32, &Channel)>) -> bool {
        if self.over.step(round) {
            let bytes = peer.map_or(0, |(_, channel)| self.received(channel));
            self.events.complete(engine, &self.buffer, round, (bytes, peer.is_some()));
            if let Some((world, channel)) = peer
                && let Landing::Staged(_) = channel.landing
            {
                self.clear(engine, world, channel, round + 1);
            }
            // "partition received" edge, pairs with `is_over`. The last access to the channel was above: the program
            // may now free the request, and with it the channel.
            let taken = self.over.take(round);
            debug_assert!(taken, "nobody else takes the second step");
        }
        self.is_over()
    }

    /// Bytes that a round has brought which is over.
    fn received(&self, channel: &Channel) -> usize {
        channel.words().length().map_or(0, |sent| self.buffer.bytes().min(sent as usize))
    }

    /// The outcome of a round that is over. `last`: it is inactive then.
    pub fn outcome(&self, engine: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        if last {
            self.events.notify(engine, &self.buffer);
            self.notified.store(self.round(), Ordering::Relaxed);
        }
        let Some((_, channel)) = &self.peer else { return (MessageStatus::PROC_NULL, None) };
        let (sent, room) = (channel.words().length().unwrap_or(0), self.buffer.bytes() as u64);
        let error = (sent > room).then_some(Error::Truncate { sent, room });
        let class = error.as_ref().map_or(crate::abi::MPI_SUCCESS, Error::class);
        let (source, tag, bytes) = (self.source, self.tag, sent.min(room));
        (MessageStatus { source, tag, error: class, bytes, cancelled: false }, error)
    }

    /// Whether a round that is not over can still be.
    ///
    /// # Errors
    /// [`Error::ProcFailed`] if the peer has died; [`Error::Revoked`].
    pub fn check(&self, engine: &Engine) -> Result<()> {
        engine.check_probe(self.events.comm.p2p(), self.peer.as_ref().map(|(world, _)| *world))
    }

    /// Lets go of the request (MPI_Request_free).
    pub fn free(&self, engine: &Engine) {
        let Some((world, channel)) = &self.peer else { return };
        if !self.is_active() || self.is_over() {
            return channel.leave(Heap::of(engine.job()));
        }
        // It can no longer end, and the buffer is the program's again.
        engine.progress().stop_background(core::ptr::from_ref(self));
        channel.words().withdraw();
        engine.await_copies([*world].into_iter());
    }
}

/// Sends the sender its message. On an error it has got none.
fn announce(engine: &Engine, comm: &Comm, hello: [u8; HELLO], source: i32, tag: i32) -> Result<()> {
    let (context, tag) = handshake(comm, tag);
    let hello = NonNull::from(Box::leak(Box::new(hello)));
    let data = Data::bytes(hello.as_ptr().cast(), HELLO);
    let started = engine
        .prepare_send(context, comm, data, source, tag, Mode::Standard)
        .and_then(|request| engine.start_send(request, Mode::Standard).map(|()| request));
    let request = match started {
        Ok(request) => request,
        Err(error) => {
            // SAFETY: leaked from a box above; the send, which alone knew of it, has not begun.
            drop(unsafe { Box::from_raw(hello.as_ptr()) });
            return Err(error);
        }
    };
    let announcement = Announcement { request, hello };
    if request.is_over() {
        return announcement.end(engine);
    }
    // To this rank itself, or to one whose ring is full.
    engine.progress().put_aside(Box::new(announcement));
    Ok(())
}

/// The message for the sender on its way.
struct Announcement {
    request: Request,
    /// The message, in a box of its own.
    hello: NonNull<[u8; HELLO]>,
}

// SAFETY: the bytes do not change after they have been written, and only the send reads them until it is over.
unsafe impl Send for Announcement {}
// SAFETY: a shared reference gives nothing of it away.
unsafe impl Sync for Announcement {}

impl Announcement {
    /// Ends the send, which is over.
    ///
    /// # Errors
    /// That of the send.
    fn end(&self, engine: &Engine) -> Result<()> {
        let (_, error) = engine.take_outcome(self.request);
        // SAFETY: leaked from a box in `announce`; the send, which alone knew of it, is over,
        // and its outcome is taken once.
        drop(unsafe { Box::from_raw(self.hello.as_ptr()) });
        error.map_or(Ok(()), Err)
    }
}

impl PutAside for Announcement {
    fn is_over(&self, engine: &Engine) -> bool {
        // Of a send that fails the receive learns by the death of its sender.
        self.request.is_over() && {
            let _ = self.end(engine);
            true
        }
    }
}

impl BackgroundOperation for PartitionedReceive {
    fn advance(&self, engine: &Engine) -> bool {
        self.poll(engine)
    }

    fn can_go_on(&self, _: &Engine) -> bool {
        let has_ended = |(_, channel): &(u32, Channel)| channel.words().has_ended(self.round());
        !self.is_over() && self.peer.as_ref().is_some_and(has_ended)
    }
}
