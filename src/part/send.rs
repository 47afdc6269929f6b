//! The sending request.

use super::buffer::Partitions;
use super::channel::{Channel, HELLO, Landing, handshake};
use super::marks::Marks;
use super::request_events::RequestEvents;
use super::words::{Mark, OverRound, SentCount};
use crate::comm::{Comm, lock};
use crate::engine::{Awaited, BackgroundOperation, Data, Engine, HomeJob, PutAside};
use crate::error::{Error, Result};
use crate::events::Operation;
use crate::heap::Heap;
use crate::p2p::{MessageStatus, Request};
use crate::shm::telemetry::{UnreadyPartitions, Waiting};
use crate::sync::{Arc, AtomicU64, Cell, Mutex, Ordering, fence};
use std::sync::OnceLock;

/// Where the receiver's answer comes to.
#[derive(Debug)]
struct Hello(Cell<[u8; HELLO]>);

// SAFETY: the engine writes it until the request that names it is complete; only then is it read, under a lock.
unsafe impl Send for Hello {}
// SAFETY: nobody reads it before the request is complete, and then under a lock.
unsafe impl Sync for Hello {}

/// A persistent send in partitions (MPI_Psend_init).
#[derive(Debug)]
pub struct PartitionedSend {
    buffer: Partitions,
    /// The receiver's rank in the job; `None` for MPI_PROC_NULL.
    world: Option<u32>,
    /// Its job.
    home: HomeJob,
    hello: Box<Hello>,
    /// The receive of what the receiver says; `None` once that has been taken.
    handshake: Mutex<Option<Request>>,
    channel: OnceLock<Result<Channel>>,
    marks: Marks,
    /// Rounds that were started, and those that are over.
    round: AtomicU64,
    over: OverRound,
    /// Rounds whose outcome has been taken.
    notified: AtomicU64,
    /// The last round that has been put into the background.
    listed: AtomicU64,
    /// Partitions of this round that have been sent.
    done: SentCount,
    events: RequestEvents,
}

/// A partition is marked twice.
const MARKED: Error = Error::Arg("the partition has been marked as ready since the request was started");

impl PartitionedSend {
    /// Makes an inactive request. `dest` and `tag` have been checked.
    ///
    /// # Errors
    /// [`Error::NoMem`] for too many partitions or requests; those of a receive.
    pub fn new(
        engine: &Engine,
        comm: Arc<Comm>,
        buffer: Partitions,
        dest: i32,
        tag: i32,
    ) -> Result<Arc<Self>> {
        let marks = Marks::new(buffer.number)?;
        let world = (dest >= 0).then(|| comm.world_rank_of(dest));
        let home = world.map_or(Ok(HomeJob::OWN), |world| engine.home_of(world))?;
        let hello = Box::new(Hello(Cell::new([0; HELLO])));
        let handshake = if world.is_some() {
            let data = Data::bytes(hello.0.with_mut(|bytes| bytes.cast()), HELLO);
            let (context, tag) = handshake(&comm, tag);
            let request = engine.prepare_recv(context, &comm, data, dest, tag)?;
            engine.start_recv(request)?;
            Some(request)
        } else {
            None
        };
        Ok(Arc::new(Self {
            buffer,
            world,
            home,
            hello,
            handshake: Mutex::new(handshake),
            channel: OnceLock::new(),
            marks,
            round: AtomicU64::new(0),
            over: OverRound::default(),
            notified: AtomicU64::new(0),
            listed: AtomicU64::new(0),
            done: SentCount::default(),
            events: RequestEvents::new(comm, Operation::Send, dest, tag),
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

    /// What a wait for it is for; `None` if its peer is MPI_PROC_NULL.
    #[must_use]
    pub fn awaited(&self) -> Option<Awaited> {
        let kind = if self.unready().next().is_none() { Waiting::Send } else { Waiting::Partitions };
        Some(self.events.awaited(kind, self.world?))
    }

    /// The partitions that the program has not marked as ready since it started the request.
    #[must_use]
    pub fn unready_partitions(&self) -> UnreadyPartitions {
        UnreadyPartitions::new(self.marks.len(), self.unready())
    }

    fn unready(&self) -> impl Iterator<Item = usize> {
        let round = self.round();
        let marks = self.marks.iter().enumerate();
        marks.filter(move |(_, mark)| !mark.has_stepped(round)).map(|(partition, _)| partition)
    }

    /// Starts a round (MPI_Start).
    ///
    /// # Errors
    /// [`Error::Request`] if it is active.
    pub fn start(self: &Arc<Self>, engine: &Engine) -> Result<()> {
        if self.is_active() {
            return Err(Error::Request("it is active; it can be started again when it is complete"));
        }
        self.done.reset();
        let round = self.round() + 1;
        self.round.store(round, Ordering::Relaxed);
        self.events.start(engine, &self.buffer);
        if self.world.is_none() {
            self.events.complete(engine, &self.buffer, round, (self.buffer.bytes(), false));
            self.over.end(round);
        }
        Ok(())
    }

    /// Whether [`Self::ready`] takes this partition.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub fn check_unready(&self, partition: usize) -> Result<()> {
        if self.active_mark(partition)?.has_stepped(self.round()) { Err(MARKED) } else { Ok(()) }
    }

    /// The mark of a partition of an active request.
    fn active_mark(&self, partition: usize) -> Result<&Mark> {
        let mark = self.marks.get(partition).ok_or(Error::Arg("the send has no partition of that number"))?;
        if !self.is_active() {
            return Err(Error::Request("it is not active: start it before its partitions are ready"));
        }
        Ok(mark)
    }

    /// Partition `partition` is ready (MPI_Pready): it is sent at once if the receiver is ready for it,
    /// else as soon as that is.
    ///
    /// # Errors
    /// [`Error::Request`] if the request is not active; [`Error::Arg`] for a partition that there is not,
    /// or that was ready already.
    pub fn ready(self: &Arc<Self>, engine: &Engine, partition: usize) -> Result<()> {
        let mark = self.active_mark(partition)?;
        let round = self.round();
        if !mark.step(round) {
            return Err(MARKED);
        }
        self.events.ready(engine, &self.buffer, partition);
        if self.world.is_none() {
            return Ok(());
        }
        if let Some(channel) = self.clear(engine, round) {
            self.transfer(engine, &channel, partition, round);
        } else {
            self.put_off(engine, round);
        }
        Ok(())
    }

    /// Leaves what is ready to whoever runs progress.
    #[cold]
    fn put_off(self: &Arc<Self>, engine: &Engine, round: u64) {
        // SeqCst: "partition put off" edge, pairs with the fence in `advance`: either the receiver's word is seen here,
        // or the mark there.
        fence(Ordering::SeqCst);
        if self.listed.fetch_max(round, Ordering::Relaxed) < round {
            engine.progress().start_background_again(self.clone());
        } else {
            self.advance(engine);
        }
    }

    /// The shared heap of the receiver's job.
    fn heap<'a>(&'a self, engine: &'a Engine) -> Option<Heap<'a>> {
        Heap::of(self.home.memory(engine))
    }

    /// The channel, once the receiver's message has come.
    fn joined(&self, engine: &Engine) -> Option<&Result<Channel>> {
        if let Some(channel) = self.channel.get() {
            return Some(channel);
        }
        let mut handshake = lock(&self.handshake);
        let request = (*handshake)?;
        if !request.is_over() {
            return None;
        }
        let (status, error) = engine.take_outcome(request);
        *handshake = None;
        let same_process =
            self.world == Some(engine.job().rank()) || engine.job().are_threads() && self.home.is_own();
        let channel = match error {
            Some(error) => Err(error),
            None if status.bytes as usize != HELLO => {
                Err(Error::Intern("a partitioned receive says too little".into()))
            }
            None => {
                // SAFETY: the receive that wrote it is over.
                let hello = unsafe { &*self.hello.0.with(<*const _>::cast) };
                Channel::join(self.heap(engine), hello, same_process)
            }
        };
        if let Ok(channel) = &channel {
            channel.words().set_length(self.buffer.bytes() as u64);
        }
        Some(self.channel.get_or_init(|| channel))
    }

    /// The channel, if the receiver has cleared `round`.
    fn clear(&self, engine: &Engine, round: u64) -> Option<Channel> {
        let channel = self.joined(engine)?.as_ref().ok()?;
        channel.words().is_clear(round).then_some(*channel)
    }

    /// Copies a partition that is ready, unless another thread does (partition rule 2).
    fn transfer(&self, engine: &Engine, channel: &Channel, partition: usize, round: u64) {
        if !self.marks[partition].take(round) {
            return;
        }
        let from = partition * self.buffer.each;
        // What the receiver has no room for is an error there.
        let len = self.buffer.each.min(channel.bytes().saturating_sub(from));
        if len > 0 {
            let (Landing::Buffer(to) | Landing::Staged(to)) = channel.landing;
            let copy = || {
                // SAFETY: the user's buffer holds the partition, and stays as it is until the request is complete; the
                // receiver has room for `len` bytes there and has cleared the round (partition rule 1).
                unsafe { self.buffer.pack(from, to.wrapping_add(from), len) };
            };
            // A receiver that has withdrawn its buffers, or this one, gets nothing.
            let reach = || _ = self.world.and_then(|world| engine.job().reach(world, copy));
            self.events.transfer(engine, &self.buffer, round, (partition, len), || match channel.landing {
                Landing::Staged(_) => reach(),
                Landing::Buffer(_) => {
                    let own = engine.job().roster().entry(engine.rank());
                    own.begin_copying();
                    if channel.words().is_clear(round) {
                        reach();
                    }
                    own.end_copying();
                }
            });
            channel.count_arrived(from, len);
        }
        // "partition done" edge: the last one comes after what all others have written.
        if self.done.add() == self.marks.len() {
            self.end(engine, channel, round);
        }
    }

    fn end(&self, engine: &Engine, channel: &Channel, round: u64) {
        channel.words().end(round);
        self.events.complete(engine, &self.buffer, round, (self.buffer.bytes(), true));
        // "partition done" edge, pairs with `is_over`.
        self.over.end(round);
        if let Some(world) = self.world.filter(|world| *world != engine.job().rank()) {
            engine.progress().wake_peer(world);
        }
        engine.progress().something_happened();
    }

    /// Whether the round is over; sends what has become ready meanwhile.
    ///
    /// # Errors
    /// What is wrong with the receiver's message.
    pub fn poll(&self, engine: &Engine) -> Result<bool> {
        Ok(self.is_over() || self.advance(engine))
    }

    fn is_over(&self) -> bool {
        // "partition done" edge, pairs with `end`.
        self.over.is_over(self.round())
    }

    /// The outcome of a round that is over. `last`: it is inactive then.
    pub fn outcome(&self, engine: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        if last {
            self.events.notify(engine, &self.buffer);
            self.notified.store(self.round(), Ordering::Relaxed);
        }
        let error = self.channel.get().and_then(|channel| channel.as_ref().err().cloned());
        let class = error.as_ref().map_or(crate::abi::MPI_SUCCESS, Error::class);
        (MessageStatus { error: class, ..MessageStatus::EMPTY }, error)
    }

    /// Whether a round that is not over can still be.
    ///
    /// # Errors
    /// [`Error::ProcFailed`] if the peer has died; [`Error::Revoked`].
    pub fn check(&self, engine: &Engine) -> Result<()> {
        engine.check_probe(self.events.comm.p2p(), self.world)
    }

    /// Lets go of the request (MPI_Request_free). If the receiver has not answered yet, the request waits aside for
    /// that: the answer must not go to the next send with this tag, and the memory that it names must be given back.
    pub fn free(self: &Arc<Self>, engine: &Engine) {
        if self.is_active() && !self.is_over() {
            // It can no longer end, and the buffer is the program's again.
            engine.progress().stop_background(Arc::as_ptr(self));
        }
        if !self.leave(engine) {
            engine.progress().put_aside(Box::new(Freed(self.clone())));
        }
    }

    /// Leaves the channel, if nothing is under way in it. False if the receiver may still answer.
    fn leave(&self, engine: &Engine) -> bool {
        match self.joined(engine) {
            None => return self.world.is_none(),
            Some(Ok(channel)) if !self.is_active() || self.is_over() => channel.leave(self.heap(engine)),
            Some(_) => {}
        }
        true
    }
}

/// A send that was freed before its receiver answered.
struct Freed(Arc<PartitionedSend>);

impl PutAside for Freed {
    fn is_over(&self, engine: &Engine) -> bool {
        self.0.leave(engine)
    }
}

impl BackgroundOperation for PartitionedSend {
    fn advance(&self, engine: &Engine) -> bool {
        let round = self.round();
        if self.is_over() {
            return true;
        }
        if let Some(Err(_)) = self.joined(engine) {
            self.events.complete(engine, &self.buffer, round, (self.buffer.bytes(), false));
            // "partition done" edge, pairs with `is_over`.
            self.over.end(round);
            return true;
        }
        let Some(channel) = self.clear(engine, round) else { return false };
        // SeqCst: "partition put off" edge, pairs with the fence in `put_off`.
        fence(Ordering::SeqCst);
        for (partition, mark) in self.marks.iter().enumerate() {
            if mark.is_ready(round) {
                self.transfer(engine, &channel, partition, round);
            }
        }
        self.is_over()
    }

    fn can_go_on(&self, engine: &Engine) -> bool {
        match self.channel.get() {
            // The thread that has the lock takes the message.
            None => self.handshake.try_lock().is_ok_and(|receive| receive.is_some_and(|it| it.is_over())),
            Some(_) => {
                let round = self.round();
                self.clear(engine, round).is_some() && self.marks.iter().any(|mark| mark.is_ready(round))
            }
        }
    }
}
