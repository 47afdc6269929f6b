//! Nonblocking collectives: the algorithms of the blocking ones, resumed whenever the engine makes progress.

use super::outline::Outline;
use crate::comm::Comm;
use crate::engine::BackgroundOperation;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::telemetry::{CollectiveAbout, MessageAbout, OperationAbout};
use crate::sync::{ConditionalLock, OnceLock, PublishedFlag};
use crate::team::BackgroundTeam;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

/// A future that owns what it works on.
pub type Work = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A collective in the background.
pub struct NonblockingOperation {
    work: ConditionalLock<Option<Work>>,
    over: PublishedFlag,
    error: OnceLock<Error>,
    /// Its communicator.
    comm: Arc<Comm>,
    team: TeamUse,
    outline: Outline,
}

/// Which team an operation may use.
#[derive(Clone)]
pub enum TeamUse {
    /// None: it goes by messages.
    None,
    /// The background team of its communicator: all members begin such operations in the same order.
    OfComm,
    /// One of its own.
    Own(Arc<BackgroundTeam>),
}

impl TeamUse {
    /// Returns the team, of an operation on `comm`.
    #[must_use]
    pub fn team<'a>(&'a self, comm: &'a Comm) -> Option<&'a BackgroundTeam> {
        match self {
            Self::None => None,
            Self::OfComm => Some(comm.background_team()),
            Self::Own(team) => Some(team),
        }
    }
}

// SAFETY: the work is polled under its lock only, so by one thread at a time, and holds nothing that is bound to a
// thread (`new` takes no other).
unsafe impl Send for NonblockingOperation {}
// SAFETY: what is shared lies behind locks or is atomic.
unsafe impl Sync for NonblockingOperation {}

/// Begins work: gets as far as it can, and returns what is left of it. Where ranks outnumber CPUs, it may give the CPU
/// away once, so that others come to the operation meanwhile (decision 63).
///
/// # Errors
/// Those of the work.
pub fn begin(engine: &Engine, mut work: Work) -> Result<Option<Work>> {
    let mut outcome = Poll::Pending;
    engine.progress().start(|| {
        outcome = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        outcome.is_ready()
    });
    match outcome {
        Poll::Ready(result) => result.map(|()| None),
        Poll::Pending => Ok(Some(work)),
    }
}

impl NonblockingOperation {
    /// Makes an operation on `comm` of what is left of its work ([`begin`]). It makes progress once it is given to
    /// [`crate::engine::Progress::start_background`].
    ///
    /// # Safety
    /// `work` holds nothing that is bound to a thread: addresses, cells of its own, and what is `Send`. It uses no
    /// other team than `team`.
    #[must_use]
    pub unsafe fn new(work: Result<Option<Work>>, comm: Arc<Comm>, team: TeamUse, outline: Outline) -> Self {
        let error = OnceLock::new();
        let work = work.unwrap_or_else(|failure| {
            let _ = error.set(failure);
            None
        });
        let over = PublishedFlag::new(work.is_none());
        Self { over, work: ConditionalLock::new(work), error, comm, team, outline }
    }

    fn team(&self) -> Option<&BackgroundTeam> {
        self.team.team(&self.comm)
    }

    /// Returns the communicator of the operation, and what it is.
    #[must_use]
    pub fn described(&self) -> (&Comm, &Outline) {
        (&self.comm, &self.outline)
    }

    /// Returns whether the operation is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // "background" edge, pairs with `advance`: the outcome is there, and what the operation wrote.
        self.over.is_set()
    }

    /// Returns what the operation failed with, once it is over.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.error.get().cloned()
    }
}

impl BackgroundOperation for NonblockingOperation {
    fn advance(&self, engine: &Engine) -> bool {
        let mut work = self.work.lock(engine.is_shared());
        let Some(going) = work.as_mut() else { return true };
        let mut result = going.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if result.is_pending()
            && let Some(failed) = engine.failed()
        {
            // No message of it will come any more, so it need not be polled;
            // but what is under way may still be written to.
            result = Poll::Ready(Err(failed.clone()));
            core::mem::forget(work.take());
        }
        let Poll::Ready(result) = result else { return false };
        *work = None;
        if let Err(error) = result {
            let _ = self.error.set(error);
        }
        // "background" edge, pairs with `is_over`.
        self.over.set(true);
        true
    }

    fn can_go_on(&self, engine: &Engine) -> bool {
        self.team().is_some_and(|team| team.can_go_on(engine.is_shared(), engine.fences))
    }

    fn add_awaited(&self, engine: &Engine, to: &mut Vec<MessageAbout>) {
        let Some(team) = self.team() else { return };
        let comm = &self.comm;
        let context = comm.context + 1;
        // Of several operations on a communicator, one has the team.
        if to.iter().any(|message| message.tag.is_none() && message.context == context) {
            return;
        }
        let absent = team.absent(engine.is_shared()).into_iter();
        to.extend(absent.map(|member| MessageAbout {
            peer: Some(comm.world_rank_of(member as i32)),
            tag: None,
            context,
            bytes: 0,
            sends: false,
            unstarted: false,
            comm: comm.events.about().name.clone(),
        }));
    }

    fn about(&self) -> Option<OperationAbout> {
        let CollectiveAbout { function, number, .. } = self.outline.about();
        let comm = self.comm.events.about().name.clone();
        Some(OperationAbout { function, number, context: self.comm.context, comm })
    }
}

impl Drop for NonblockingOperation {
    fn drop(&mut self) {
        // Messages of an operation that is not over may still come: its memory must stay.
        core::mem::forget(self.work.lock(true).take());
    }
}
