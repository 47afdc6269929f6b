//! The progress engine: polls the rings, sends what waited for room, and advances background operations.
//!
//! The thread that holds the `poller` lock runs progress. Under MPI_THREAD_MULTIPLE the other threads that wait are
//! [`Waiters`](super::Waiters): the thread that runs progress wakes those whose requests complete, and passes progress
//! on when it leaves.

use super::long_wait::LongWait;
use super::poller::Poller;
use crate::engine::{Engine, Ref};
use crate::error::Result;
use crate::shm::telemetry::Wait;
use crate::sync::{fence_after_exchange, yield_now};
use core::time::Duration;
use std::time::Instant;

/// Polls after which one stops to look for what the dead have sent: the living may send without end.
const MOST_POLLS: u32 = 10_000;
/// Time that a thread that runs progress is given to come by once, where many others want the CPU.
const LONGEST_CATCH_UP: Duration = Duration::from_secs(1);

/// The progress of an engine, and waits for it ([`Engine::progress`]).
#[derive(Debug, Clone, Copy)]
pub struct Progress<'e> {
    pub(super) engine: &'e Engine,
}

impl Progress<'_> {
    /// Waits until `done`, and runs progress meanwhile. `why` is for observers and asked only before a sleep.
    ///
    /// # Errors
    ///
    /// [`crate::Error::RankFailed`] when the job is over, [`crate::Error::Corrupt`] when a ring is corrupt; where the
    /// job goes on when a rank dies, [`crate::Error::ProcFailed`], [`crate::Error::ProcFailedPending`] and
    /// [`crate::Error::Revoked`] when this wait is in vain.
    #[inline]
    pub(crate) fn wait_until(self, why: impl Fn() -> Option<Wait>, done: impl FnMut() -> bool) -> Result<()> {
        self.wait_until_over(why, || None, done)
    }

    /// As [`Self::wait_until`]. `target` is the request that must complete before `done` can hold, as of the last time
    /// that `done` did not; `None` if the wait is for something else.
    ///
    /// # Errors
    ///
    /// As [`Self::wait_until`].
    #[inline]
    pub(crate) fn wait_until_over(
        self,
        why: impl Fn() -> Option<Wait>,
        target: impl Fn() -> Option<Ref>,
        mut done: impl FnMut() -> bool,
    ) -> Result<()> {
        if done() {
            return Ok(());
        }
        if !self.engine.shared {
            // Mostly the message has come already: nothing is prepared for a longer wait before one poll.
            self.poll_unshared();
            if done() {
                return Ok(());
            }
        }
        let result = LongWait::new(self.engine, &why, &target, &mut done).run();
        // What was noted before the first of several sleeps holds until the wait is over.
        self.engine.telemetry().waiting.clear();
        result
    }

    /// Takes notice of deaths and revocations now, and of what the dead have sent before. Where another thread runs
    /// progress, that ends the operations in vain; the caller's next ones know nevertheless.
    pub fn notice_failures(self) {
        if let Some(mut poller) = self.engine.poller.try_lock(self.engine.shared) {
            if self.engine.may_have_failures() {
                let mut polls = 0;
                while self.advance(&mut poller, false) && polls < MOST_POLLS {
                    polls += 1;
                }
                self.engine.notice_failures();
            }
            drop(poller);
            if self.engine.shared {
                self.engine.waiters.pass_on();
            }
        } else {
            self.engine.mark_all();
        }
    }

    /// Wakes `peer`, so that it takes notice of what has changed in the job's memory.
    pub fn wake(self, peer: u32) {
        self.wake_peer(peer);
    }

    /// Begins an operation: `attempt` gets as far as it can without waiting, and returns whether it is over. If it is
    /// not, and ranks outnumber CPUs, the CPU is given away once, unless that has been in vain lately, and `attempt` is
    /// called again.
    pub(crate) fn start(self, mut attempt: impl FnMut() -> bool) {
        let engine = self.engine;
        if attempt() || engine.config.coll_yields().is_none_or(|yields| yields == 0) {
            return;
        }
        let over = engine.oversubscription.yield_at_start(engine) && self.poll_once().is_ok() && attempt();
        engine.oversubscription.note_start(over);
    }

    /// Runs progress once if no other thread does.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn poll_once(self) -> Result<()> {
        if let Some(mut poller) = self.engine.poller.try_lock(self.engine.shared) {
            self.advance(&mut poller, false);
            drop(poller);
            if self.engine.shared {
                self.engine.waiters.pass_on();
            }
        }
        match self.engine.failed() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Runs progress until it finds nothing more, or `enough` holds. Where another thread runs progress, that one does,
    /// and is woken for it.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn catch_up(self, mut enough: impl FnMut() -> bool) -> Result<()> {
        let engine = self.engine;
        let blocks = || {
            let telemetry = engine.telemetry();
            telemetry.stirred_blocks.get().wrapping_add(telemetry.vain_blocks.get())
        };
        let (before, since, mut polls) = (blocks(), Instant::now(), 0);
        loop {
            let is_over = if let Some(mut poller) = engine.poller.try_lock(engine.shared) {
                let happened = self.advance(&mut poller, false);
                drop(poller);
                if engine.shared {
                    engine.waiters.pass_on();
                }
                polls += 1;
                !happened || polls == MOST_POLLS
            } else {
                engine.doorbell.wake();
                yield_now();
                // Before each block it has polled in vain; before the second one it began to after we came.
                blocks().wrapping_sub(before) >= 2 || since.elapsed() > LONGEST_CATCH_UP
            };
            if enough() || is_over {
                break;
            }
        }
        engine.failed().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// As [`Self::poll_once`], for a program that asks again and again: where ranks outnumber CPUs it gives the CPU
    /// away after polls in vain. `by_progress`: what it asks for comes by progress, not by what a peer stores.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn poll_for_program(self, by_progress: bool) -> Result<()> {
        let engine = self.engine;
        let mut happened = false;
        // Where another thread runs progress it may sleep, and this one asks in vain as long.
        if let Some(mut poller) = engine.poller.try_lock(engine.shared) {
            happened = self.advance(&mut poller, false);
            if !happened && engine.may_have_failures() {
                engine.notice_failures();
            }
            drop(poller);
            if engine.shared {
                engine.waiters.pass_on();
            }
        }
        self.end_poll(happened, by_progress)
    }

    /// As [`Self::poll_for_program`], for one that has found nothing to be done.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn poll_in_vain(self) -> Result<()> {
        if self.engine.may_have_failures() {
            self.engine.notice_failures();
        }
        self.end_poll(false, true)
    }

    /// The end of [`Self::poll_for_program`]. `happened`: there was something.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn end_poll(self, happened: bool, by_progress: bool) -> Result<()> {
        let engine = self.engine;
        if engine.config.shape().is_oversubscribed() || engine.oversubscription.threads_outnumber_cpus(engine)
        {
            // Steps of an operation in the background are none of what happens.
            engine.oversubscription.polled(engine, happened, by_progress && engine.background.is_empty());
        }
        engine.failed().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Runs progress once, where there is one thread. Returns whether anything happened.
    #[inline(never)]
    pub(crate) fn poll_unshared(self) -> bool {
        self.progress_in::<false>(&mut self.engine.poller.lock(false), true)
    }

    /// Runs progress once. Returns whether anything happened. `waits` as in [`Poller::poll`].
    #[inline(always)]
    pub(super) fn advance(self, poller: &mut Poller, waits: bool) -> bool {
        if self.engine.shared {
            self.progress_in::<true>(poller, waits)
        } else {
            self.progress_in::<false>(poller, waits)
        }
    }

    #[inline(always)]
    fn progress_in<const SHARED: bool>(self, poller: &mut Poller, waits: bool) -> bool {
        let handled = poller.poll::<SHARED>(self.engine, waits);
        let sent = self.has_backlog::<SHARED>() && self.engine.transmit().pump_backlog();
        let ended = self.advance_background();
        handled > 0 || sent || ended
    }

    /// Whether something waits for room to a peer. `SHARED` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn has_backlog<const SHARED: bool>(self) -> bool {
        !self.engine.backlog.lock(SHARED).is_empty()
    }

    /// Something has happened that other threads may wait for:
    /// wakes them, and the thread that runs progress if it sleeps.
    #[cold]
    pub(crate) fn wake_others(self) {
        self.engine.waiters.wake_all();
        self.engine.doorbell.wake();
    }

    /// Something has come that completes no request, as a message for which no receive is posted: wakes those who wait
    /// for any event, and the thread that runs progress if it sleeps.
    #[cold]
    pub(crate) fn notify_any_event(self) {
        self.engine.waiters.wake_any_event();
        // Doorbell rule 3, side A: behind the fence of that.
        self.engine.doorbell.wake_after_fence();
    }

    /// A request has just completed by an exchange of its state word: wakes the thread that waits for it at place
    /// `awaited`, those that wait for any event, and the thread that runs progress if it sleeps.
    pub(crate) fn notify_completion(self, awaited: Option<usize>) {
        // Waiters rule 1, the waker, and doorbell rule 3, side A: the state word is exchanged; the counts of waiters
        // and the sleeper's word are loaded next.
        fence_after_exchange();
        self.engine.waiters.wake_after_fence(awaited);
        self.engine.doorbell.wake_after_fence();
    }
}
