//! Communicators: their ranks, other communicators made from them, and their events.

use super::address::rank;
use super::member::Member;
use super::threading::{Single, Threading};
use crate::coll::create::{self, Agreed};
use crate::coll::{BlockingTransport, Purpose};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::{Event, EventRecord, EventSet, GlobalSubscriber, GlobalSubscription, Subscription};
use crate::shm::contexts;
use core::marker::PhantomData;
use std::sync::Arc;

/// Ranks that send each other messages, as one of them sees it (MPI 5.0 chapter 7).
///
/// A communicator of [`Single`] stays on the thread that joined the job; one of [`Multiple`](super::Multiple) may be
/// shared and sent between threads. Dropping it frees it; messages on it that nobody has received are lost.
///
/// ```compile_fail,E0277
/// # perusal::run_threads(1, |world| {
/// std::thread::scope(|s| {
///     s.spawn(|| world.barrier()); // a `Communicator<Single>` is not `Sync`
/// });
/// # Ok(()) });
/// ```
///
/// ```compile_fail,E0277
/// # perusal::run_threads(1, |world| {
/// let copy = world.dup()?;
/// std::thread::spawn(move || copy.barrier()); // nor is it `Send`
/// # Ok(()) });
/// ```
pub struct Communicator<T: Threading = Single> {
    pub(super) member: Arc<Member>,
    pub(super) comm: Comm,
    threading: PhantomData<T>,
}

impl<T: Threading> core::fmt::Debug for Communicator<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl<T: Threading> Communicator<T> {
    /// Wraps `comm`, which is open in the member's engine; the engine was made for `T`.
    pub(super) fn new(member: Arc<Member>, comm: Comm) -> Self {
        Self { member, comm, threading: PhantomData }
    }

    /// Returns the caller's rank, less than [`size`](Self::size).
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Returns the number of ranks.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.comm.size() as usize
    }

    /// Makes a communicator of the same ranks with a context of its own: messages on one are never received on the
    /// other (MPI_Comm_dup, MPI 5.0 §7.4.2). All ranks call it.
    ///
    /// # Errors
    /// [`Error::NoMem`] if no context is left; [`Error::RankFailed`].
    pub fn dup(&self) -> Result<Self> {
        self.make(|transport, contexts| {
            let (rank, group) = (self.comm.rank(), self.comm.group().clone());
            let context = transport.run(create::context(transport, contexts, &group))?;
            Ok(Some(Agreed { context, rank, group, remote: None }))
        })
        .and_then(|made| made.ok_or(Error::Intern("a duplicate without its maker".into())))
    }

    /// Makes a communicator of the ranks with the same `color`, ordered by `key` and then by rank; `None` for those
    /// without color (MPI_Comm_split, MPI 5.0 §7.4.2). All ranks call it. Color and key are any numbers.
    ///
    /// # Errors
    /// As [`dup`](Self::dup).
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// let ranks = perusal::run_threads(4, |world| {
    ///     let color = world.rank() as i32 % 2;
    ///     let half = world.split(Some(color), 0)?.expect("we gave a color");
    ///     Ok((half.rank(), half.size()))
    /// })?;
    /// assert_eq!(ranks, [(0, 2), (0, 2), (1, 2), (1, 2)]);
    /// # Ok(()) }
    /// ```
    pub fn split(&self, color: Option<i32>, key: i32) -> Result<Option<Self>> {
        self.make(|transport, contexts| {
            transport.run(create::split(transport, contexts, self.comm.group(), (color, key)))
        })
    }

    /// Makes a communicator of the given ranks, in the given order; `None` at all others (MPI_Comm_create,
    /// MPI 5.0 §7.4.2). All ranks call it with the same list; only those in the list wait for each other.
    ///
    /// # Errors
    /// [`Error::Rank`] for a rank that is not less than [`size`](Self::size), [`Error::RankTwice`] for one that is
    /// listed twice; as [`dup`](Self::dup).
    pub fn sub(&self, ranks: &[usize]) -> Result<Option<Self>> {
        let listed = ranks.iter().map(|&r| rank(r, self.size())).collect::<Result<Vec<i32>>>()?;
        let group = self.comm.group().incl(&listed)?;
        if !ranks.contains(&self.rank()) {
            return Ok(None);
        }
        self.make(|transport, contexts| {
            transport.run(create::among(transport, contexts, group, ranks)).map(Some)
        })
    }

    fn make(
        &self,
        agree: impl FnOnce(&BlockingTransport<'_>, &Engine) -> Result<Option<Agreed>>,
    ) -> Result<Option<Self>> {
        self.make_by(|engine| agree(&BlockingTransport::new(engine, &self.comm, Purpose::Create), engine))
    }

    /// Makes the communicator that the members have agreed on by `agree`.
    pub(super) fn make_by(
        &self,
        agree: impl FnOnce(&Engine) -> Result<Option<Agreed>>,
    ) -> Result<Option<Self>> {
        self.member.close_dropped();
        let made = self.member.perform(|engine| {
            let Some(Agreed { context, rank, group, .. }) = agree(engine)? else {
                return Ok(None);
            };
            self.member.claim(context)?;
            engine.open(Comm::intra(context, rank, group, engine.registry().attach(0))).map(Some)
        })?;
        if let Some(comm) = &made {
            comm.emit_created();
        }
        Ok(made.map(|comm| Self::new(self.member.clone(), comm)))
    }

    /// Calls `closure` for every `event` of messages on this communicator, until the subscription is dropped
    /// (PERUSE 2.0 §5.2.7, §5.2.8).
    ///
    /// The closure runs inside the engine, on the thread that makes the event happen: it should be quick, and every
    /// call of a communicator from it is [`Error::InsideCallback`]. If it panics, the job ends.
    ///
    /// # Errors
    /// [`Error::Other`] if events are compiled out.
    ///
    /// ```
    /// use perusal::events::Event;
    /// use std::sync::{Arc, Mutex};
    ///
    /// # fn main() -> perusal::Result<()> {
    /// let early = perusal::run_threads(2, |world| {
    ///     let tags = Arc::new(Mutex::new(Vec::new()));
    ///     let unexpected = world.subscribe(Event::MsgInsertInUnexQ, {
    ///         let tags = tags.clone();
    ///         move |occurrence| tags.lock().unwrap().push(occurrence.spec.tag)
    ///     })?;
    ///     if world.rank() == 0 {
    ///         world.send(&[1_u8], 1, 7)?;
    ///         world.send(&[2_u8], 1, 8)?;
    ///     } else {
    ///         world.recv::<u8>(0, 8)?; // the message with tag 7 comes before it, and nobody waits for that one
    ///         world.recv::<u8>(0, 7)?;
    ///     }
    ///     drop(unexpected);
    ///     let tags = tags.lock().unwrap().clone();
    ///     Ok(tags)
    /// })?;
    /// assert!(early[1].contains(&7));
    /// # Ok(()) }
    /// ```
    pub fn subscribe(
        &self,
        event: Event,
        closure: impl Fn(&EventRecord<'_>) + Send + Sync + 'static,
    ) -> Result<Subscription> {
        Subscription::new(&self.comm.events, event, closure).map_err(|error| Error::Other(error.to_string()))
    }

    /// Delivers `events` on every communicator of this rank, those to come included, and of its engine to `subscriber`,
    /// until the result is dropped. [`GlobalSubscriber`] says what it may do; `examples/first_tool.rs` is a whole tool.
    pub fn subscribe_globally(
        &self,
        events: EventSet,
        subscriber: impl GlobalSubscriber + 'static,
    ) -> GlobalSubscription {
        self.member.registry().subscribe_globally(events, Arc::new(subscriber))
    }

    /// Ends the whole job (MPI_Abort, MPI 5.0 §9.2): calls of all ranks fail with [`Error::RankFailed`], and a launcher
    /// ends the processes, and itself with the low byte of `code`, or 1 where that is 0. Returns the error that this
    /// rank may return.
    pub fn abort(&self, code: i32) -> Error {
        self.member.abort(code);
        Error::Code(code)
    }
}

impl<T: Threading> Drop for Communicator<T> {
    fn drop(&mut self) {
        if self.comm.context / 2 > contexts::SELF {
            self.member.registry().detach(&self.comm.events);
            self.comm.emit_freed();
            self.member.close(self.comm.context);
        }
    }
}
