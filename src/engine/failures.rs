//! Deaths and revocations, as one rank takes notice of them where the job goes on when a rank dies.
//!
//! The thread that runs progress looks at two counts in the job's memory before it sleeps, and after polls in vain.
//! When one has changed it marks the match contexts that are in trouble, and has the protocols end the operations that
//! cannot end well ([`Protocols::end_failed`](super::Protocols)). A marked context seems to have listeners to all
//! events, and holds the bindings' fast paths as these do: so no fast path, which looks at nothing else, takes it, and
//! the slow paths look at the mark.

use super::{Engine, MatchContext, Ref};
use crate::error::{Error, Result};
use crate::shm::failures::FailureWords;
use crate::shm::telemetry::{Wait, Waiting};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// From noticing a death until collective operations among those that live are given up: one to which the dead has
/// contributed completes meanwhile.
const GRACE: Duration = Duration::from_millis(200);

/// What is wrong with a communicator: bits of a mark.
pub(crate) struct Trouble;

impl Trouble {
    /// It has been revoked.
    pub const REVOKED: u32 = 1;
    /// One of its members has died.
    pub const FAILED: u32 = 2;
}

/// The deaths and revocations that a rank has noticed.
#[derive(Default)]
pub(crate) struct NoticedFailures {
    deaths: AtomicU32,
    revocations: AtomicU32,
    any: AtomicBool,
}

impl Engine {
    /// Whether anything has failed, so that operations may have to be ended, or has just failed.
    #[inline]
    pub(crate) fn may_have_failures(&self) -> bool {
        // Relaxed, here and below: hints; the thread that notices looks itself.
        self.noticed.any.load(Ordering::Relaxed) || self.has_failure_news()
    }

    /// Whether this rank has noticed that another one has died, or that a communicator is revoked.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        // Relaxed: as above.
        self.noticed.any.load(Ordering::Relaxed)
    }

    fn has_failure_news(&self) -> bool {
        let (deaths, revocations) = self.job.failures().counts();
        self.noticed.revocations.load(Ordering::Relaxed) != revocations
            || self.job.survives() && self.noticed.deaths.load(Ordering::Relaxed) != deaths
    }

    /// Takes notice of deaths and revocations, and ends what cannot end well. The caller runs progress.
    /// Returns whether there are any.
    #[cold]
    pub(crate) fn notice_failures(&self) -> bool {
        if self.has_failure_news() {
            let (deaths, revocations) = self.job.failures().counts();
            self.contexts.for_each(|context| self.mark(context));
            self.noticed.deaths.store(deaths, Ordering::Relaxed);
            self.noticed.revocations.store(revocations, Ordering::Relaxed);
            self.noticed.any.store(true, Ordering::Relaxed);
        }
        let any = self.noticed.any.load(Ordering::Relaxed);
        if any {
            self.protocols.end_failed(self);
        }
        any
    }

    /// Whether nothing has failed since this rank last took notice, for a member that is about to copy from or to the
    /// memory of others on `context`.
    ///
    /// # Errors
    ///
    /// [`Error::ProcFailed`] and [`Error::Revoked`].
    pub(crate) fn check_before_copying(&self, context: &MatchContext) -> Result<()> {
        self.mark_all();
        self.trouble_of(context).map_or(Ok(()), Err)
    }

    /// Marks the match contexts that are in trouble of which this rank has not taken notice.
    pub(super) fn mark_all(&self) {
        if self.has_failure_news() {
            self.contexts.for_each(|context| self.mark(context));
        }
    }

    /// Waits until none of the living members of `comm` copies from or to this rank's memory, which it has exposed to
    /// them in an operation that has failed.
    pub(crate) fn await_copies(&self, members: impl Iterator<Item = u32>) {
        for member in members.filter(|member| *member != self.rank) {
            while self.job.roster().entry(member).is_copying() {
                std::thread::yield_now();
            }
        }
    }

    /// Marks the contexts of a communicator that has just been opened, or for which something has changed. `context` is
    /// that of its point-to-point messages.
    pub(crate) fn mark(&self, context: &MatchContext) {
        let (deaths, revocations) = self.job.failures().counts();
        if !context.id().is_multiple_of(2) || deaths == 0 && revocations == 0 {
            return;
        }
        let mut trouble = 0;
        let is_revoked = |id: u32| self.job.failures().words(id / 2).is_ok_and(FailureWords::is_revoked);
        if revocations > 0
            && (is_revoked(context.id()) || context.tied_to.get().is_some_and(|id| is_revoked(*id)))
        {
            trouble |= Trouble::REVOKED;
        }
        if self.job.survives() && self.first_dead_of(context).is_some() {
            trouble |= Trouble::FAILED;
        }
        if trouble != 0 {
            context.add_trouble(trouble, self.shared);
            if let Some(own) = self.contexts.get(context.id() + 1) {
                // SAFETY: a communicator's two contexts go together, and this one is there.
                unsafe { own.as_ref() }.add_trouble(trouble, self.shared);
            }
        }
    }

    /// Has what goes wrong with the communicator of `other` end what is on `context`: both are of point-to-point
    /// messages, and a call on the first communicator, which stays open, waits on the second one.
    pub(crate) fn tie(&self, context: &MatchContext, other: &MatchContext) {
        // It is tied once.
        let _ = context.tied_to.set(other.id());
        self.mark(context);
    }

    /// The first of the members of a communicator that has died, or of one that it is tied to.
    fn first_dead_of(&self, context: &MatchContext) -> Option<u32> {
        let dead = |context: &MatchContext| {
            let about = context.events()?.about();
            let first = self.job.failures().dead_among(about.members.iter().copied(), u32::MAX);
            first.first().copied()
        };
        let tied = || {
            let other = self.contexts.get(*context.tied_to.get()?)?;
            // SAFETY: `tie`: the communicator stays open for as long as this one.
            dead(unsafe { other.as_ref() })
        };
        dead(context).or_else(tied)
    }

    /// The error of an operation on a communicator one of whose members has died,
    /// or of one with the member `world`, which has.
    pub(crate) fn proc_failed(&self, rank: u32) -> Error {
        Error::ProcFailed { rank, how: self.job.roster().how(rank) }
    }

    /// The error of a collective operation on the communicator of `context`, if it is in trouble.
    #[inline]
    pub(crate) fn trouble_of(&self, context: &MatchContext) -> Option<Error> {
        if context.trouble() == 0 { None } else { self.describe_trouble(context) }
    }

    /// The error of an operation on the communicator whose point-to-point messages `context` is for, if a member has
    /// died or it is revoked, whether this rank has taken notice of that before or not.
    #[cold]
    pub(crate) fn trouble_by_now(&self, context: &MatchContext) -> Option<Error> {
        self.mark(context);
        self.trouble_of(context)
    }

    #[cold]
    fn describe_trouble(&self, context: &MatchContext) -> Option<Error> {
        if context.trouble() & Trouble::REVOKED != 0 {
            return Some(Error::Revoked);
        }
        // The collective context has no events of its own.
        let context = self.contexts.get(context.id() & !1)?;
        // SAFETY: the communicator is open, and so are both of its contexts.
        let dead = self.first_dead_of(unsafe { context.as_ref() })?;
        Some(self.proc_failed(dead))
    }

    /// The error of a receive from any source on the communicator of `context`,
    /// as long as deaths of its members are not acknowledged.
    pub(crate) fn unacknowledged(&self, context: &MatchContext) -> Option<Error> {
        if context.trouble() & Trouble::FAILED == 0 {
            return None;
        }
        let about = context.events()?.about();
        let known = context.acknowledged();
        let dead = self.job.failures().dead_among(about.members.iter().copied(), u32::MAX);
        let new = |rank: &u32| self.job.roster().entry(*rank).death() > Some(known);
        let rank = dead.into_iter().find(new)?;
        Some(Error::ProcFailedPending { rank, how: self.job.roster().how(rank) })
    }

    /// Whether the wait for `request`, a receive from any source, is in vain until deaths have been acknowledged.
    ///
    /// # Errors
    ///
    /// [`Error::ProcFailedPending`].
    pub fn check_pending(&self, request: Ref) -> Result<()> {
        if !self.noticed.any.load(Ordering::Relaxed) || request.is_over() {
            return Ok(());
        }
        // SAFETY: request rule 2: peer and context of an active receive change at most when it is matched; it is a
        // sample.
        let body = unsafe { request.body() };
        if body.peer.get() != crate::abi::MPI_ANY_SOURCE {
            return Ok(());
        }
        // SAFETY: the request counts as pending on its context.
        let context = body.context.get().map(|context| unsafe { &*context.as_ptr() });
        context.and_then(|context| self.unacknowledged(context)).map_or(Ok(()), Err)
    }

    /// Whether a wait may still end well: one for a request is ended by its request, but for receives from any source.
    ///
    /// # Errors
    ///
    /// [`Error::ProcFailed`], [`Error::ProcFailedPending`] and [`Error::Revoked`].
    pub(super) fn check_wait(&self, wait: Option<Wait>, target: Option<Ref>) -> Result<()> {
        if let Some(request) = target {
            return self.check_pending(request);
        }
        let Some(Wait { kind, peer, context, .. }) = wait else { return Ok(()) };
        let Some(context) = self.contexts.get(context & !1) else { return Ok(()) };
        // SAFETY: the caller waits on a communicator that is open.
        let context = unsafe { context.as_ref() };
        match kind {
            Waiting::Probe => self.check_probe(context, peer),
            Waiting::Collective | Waiting::Lock | Waiting::Epoch if context.is_given_up() => {
                self.trouble_of(context).map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Whether the communicator of `context` is not revoked, as far as this rank has noticed.
    ///
    /// # Errors
    ///
    /// [`Error::Revoked`].
    #[inline]
    pub(crate) fn check_not_revoked(&self, context: &MatchContext) -> Result<()> {
        if context.trouble() & Trouble::REVOKED == 0 { Ok(()) } else { Err(Error::Revoked) }
    }

    /// Whether a probe of `context` for messages of `peer` (of any member,
    /// with `None`) may find one that has not come yet.
    ///
    /// # Errors
    ///
    /// [`Error::ProcFailed`] and [`Error::Revoked`].
    pub(crate) fn check_probe(&self, context: &MatchContext, peer: Option<u32>) -> Result<()> {
        if context.trouble() == 0 {
            return Ok(());
        }
        self.check_not_revoked(context)?;
        match peer {
            Some(peer) if self.job.roster().is_dead(peer) => Err(self.proc_failed(peer)),
            Some(_) => Ok(()),
            None => match self.unacknowledged(context) {
                Some(Error::ProcFailedPending { rank, how }) => Err(Error::ProcFailed { rank, how }),
                _ => Ok(()),
            },
        }
    }
}

impl MatchContext {
    /// What is wrong with its communicator: bits of [`Trouble`]; 0 if nothing.
    #[inline(always)]
    pub(crate) fn trouble(&self) -> u32 {
        // Relaxed: a hint; a thread that starts an operation looks under the queues,
        // in which what has been started is ended afterwards.
        self.trouble.load(Ordering::Relaxed)
    }

    /// Whether operations among its members that live are given up: it is revoked, or a member has died some time ago.
    pub(crate) fn is_given_up(&self) -> bool {
        self.trouble() & Trouble::REVOKED != 0
            || self.trouble() != 0 && self.failed_since.get().is_some_and(|since| since.elapsed() >= GRACE)
    }

    /// Marks it. Whoever has had its queues before is done with them, and whoever has them afterwards sees the mark.
    fn add_trouble(&self, trouble: u32, shared: bool) {
        let _queues = self.queues.lock(shared);
        if trouble & Trouble::FAILED != 0 {
            let _ = self.failed_since.set(Instant::now());
        }
        // First the way that looks at the mark: another thread of this rank that has seen the mark takes no other one.
        if self.trouble() == 0 {
            self.open_gate();
        }
        self.trouble.fetch_or(trouble, Ordering::Relaxed);
    }

    /// The number of the latest death that its user has acknowledged.
    pub(crate) fn acknowledged(&self) -> u32 {
        // Relaxed: a number that one user stores.
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Acknowledges all deaths up to number `death`.
    pub(crate) fn acknowledge(&self, death: u32) {
        self.acknowledged.fetch_max(death, Ordering::Relaxed);
    }
}
