//! Waiting: poll, yield, sleep; and who drives progress when several threads wait.

use super::core_migration::LOOK;
use super::poller::Poller;
use super::wait_strategy::{WaitStep, WaitStrategy};
use crate::arch::clock::now;
use crate::engine::Engine;
use crate::engine::Ref;
use crate::error::Result;
use crate::events::{Event, run_sleep_hook};
use crate::shm::telemetry::Wait;
use crate::sync::{ConditionalGuard, Ordering, fence_after_exchange, slots_owned, spin_loop, thread_slot};

/// How often a thread that waits for the driver tries to hear from it before it sleeps.
const LISTENS: u32 = 200;
/// How many of these tries go by between two looks for the driver, each of which takes its lock's line away from it.
const PATIENCE: u32 = 16;

impl Engine {
    /// Waits until `done`, driving progress meanwhile. `why` is for observers and asked only before a sleep.
    ///
    /// # Errors
    ///
    /// [`crate::Error::PeerGone`] when the job is over, [`crate::Error::Corrupt`] when a ring is spoiled.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        why: impl Fn() -> Option<Wait>,
        done: impl FnMut() -> bool,
    ) -> Result<()> {
        self.wait_until_over(why, || None, done)
    }

    /// As [`Self::wait_until`]. `target`: the request whose end must come before `done` can hold, as of the last time that
    /// `done` did not; `None` if it is something else that is waited for.
    ///
    /// # Errors
    ///
    /// As [`Self::wait_until`].
    #[inline]
    pub(crate) fn wait_until_over(
        &self,
        why: impl Fn() -> Option<Wait>,
        target: impl Fn() -> Option<Ref>,
        mut done: impl FnMut() -> bool,
    ) -> Result<()> {
        if done() {
            return Ok(());
        }
        if !self.shared {
            // What is here already is the commonest; nothing is prepared for a longer wait yet.
            self.poll_unshared();
            if done() {
                return Ok(());
            }
        }
        let result = self.wait_long(&why, &target, &mut done);
        // What was noted before the first of several sleeps holds until the wait is over.
        self.telemetry().waiting.clear();
        result
    }

    fn wait_long(
        &self,
        why: &dyn Fn() -> Option<Wait>,
        target: &dyn Fn() -> Option<Ref>,
        done: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let mut strategy = WaitStrategy::new(self.threads_outnumber_cpus());
        loop {
            match self.poller.try_lock(self.shared) {
                Some(poller) => {
                    let result = self.drive(poller, &mut strategy, why, done);
                    if self.shared {
                        // The next one must drive.
                        self.waiters.pass_on();
                    }
                    return result;
                }
                None => self.follow(&mut strategy, target, done),
            }
            let result = if done() { Ok(true) } else { self.healthy().map(|()| false) };
            if !matches!(result, Ok(false)) {
                // It may be us who were woken to drive, or whose look made another believe that there is a driver.
                if self.poller_is_free() {
                    self.waiters.pass_on();
                }
                return result.map(drop);
            }
        }
    }

    /// Drives progress until `done`.
    fn drive(
        &self,
        mut poller: ConditionalGuard<'_, Poller>,
        strategy: &mut WaitStrategy,
        why: &dyn Fn() -> Option<Wait>,
        done: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        if self.failed().is_some() {
            return self.healthy();
        }
        loop {
            let happened = self.step(&mut poller, true);
            let over = done();
            if (happened || over) && !strategy.has_yielded() {
                self.oversubscription.spun_well();
            }
            if over {
                return Ok(());
            }
            if happened {
                strategy.restart();
                if self.failed().is_some() {
                    return self.healthy();
                }
                continue;
            }
            let fresh = !strategy.has_yielded();
            let step = strategy.next(&self.config, self.oversubscription.spinning_pays());
            if fresh && step == WaitStep::Yield && self.oversubscription.spun_in_vain().is_multiple_of(LOOK) {
                self.consider_migration(why);
            }
            match step {
                WaitStep::Spin => spin_loop(),
                WaitStep::Yield if self.yield_cpu() => {}
                WaitStep::Yield | WaitStep::Block => {
                    self.sleep(&mut poller, why, done);
                    strategy.blocked();
                    self.healthy()?;
                }
            }
        }
    }

    /// One look at everything, where there is one thread.
    #[inline(never)]
    pub(crate) fn poll_unshared(&self) -> bool {
        self.step_in::<false>(&mut self.poller.lock(false), true)
    }

    /// One look at everything. Returns whether anything happened. `waits` as in [`Poller::poll`].
    #[inline(always)]
    fn step(&self, poller: &mut Poller, waits: bool) -> bool {
        if self.shared { self.step_in::<true>(poller, waits) } else { self.step_in::<false>(poller, waits) }
    }

    #[inline(always)]
    fn step_in<const SHARED: bool>(&self, poller: &mut Poller, waits: bool) -> bool {
        let handled = poller.poll::<SHARED>(self, waits);
        let moved = self.has_backlog::<SHARED>() && self.pump_backlog();
        let ended = self.advance_background();
        handled > 0 || moved || ended
    }

    /// Whether something waits for room at a peer. `SHARED` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn has_backlog<const SHARED: bool>(&self) -> bool {
        !self.backlog.lock(SHARED).is_empty()
    }

    /// One look at everything, if nobody else is at it.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait_until`].
    pub(crate) fn poll_once(&self) -> Result<()> {
        if let Some(mut poller) = self.poller.try_lock(self.shared) {
            self.step(&mut poller, false);
            drop(poller);
            if self.shared {
                self.waiters.pass_on();
            }
        }
        match self.failed() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Sleeps until rung, unless there is something to do (doorbell rules 1 to 3).
    #[cold]
    fn sleep(&self, poller: &mut Poller, why: &dyn Fn() -> Option<Wait>, done: &mut dyn FnMut() -> bool) {
        let telemetry = self.telemetry();
        let wait = why();
        if let Some(wait) = &wait {
            telemetry.waiting.set(wait);
        }
        poller.suspend();
        self.want_credit();
        let mut asleep_from = 0;
        let slept = self.doorbell.sleep(self.fences, self.config.longest_sleep(), || {
            let reason =
                poller.has_record(self) || self.backlog_has_room() || done() || self.failed().is_some();
            if !reason {
                self.emit_sleep(Event::BellSleep, wait.as_ref());
                // Whoever rings meanwhile finds us asleep, and so keeps us from it.
                run_sleep_hook();
                asleep_from = now();
            }
            reason
        });
        if slept {
            self.emit_sleep(Event::BellWake, wait.as_ref());
            telemetry.sleeps.add(1);
            telemetry.asleep.add(now().saturating_sub(asleep_from));
        }
        poller.resume();
    }

    /// Waits for what the driver of progress will complete, or for its role.
    #[cold]
    fn follow(
        &self,
        strategy: &mut WaitStrategy,
        target: &dyn Fn() -> Option<Ref>,
        done: &mut dyn FnMut() -> bool,
    ) {
        for listen in 1..=if strategy.is_oversubscribed() { PATIENCE } else { LISTENS } {
            if done() || listen % PATIENCE == 0 && self.poller_is_free() {
                return;
            }
            spin_loop();
        }
        if done() {
            return;
        }
        let target = target();
        let place = thread_slot();
        self.waiters.wait(place, self.config.longest_sleep(), target.is_none(), || {
            let over =
                target.map_or_else(done, |request| request.state().await_end(place)) || self.poller_is_free();
            if !over {
                run_sleep_hook();
            }
            over
        });
        strategy.restart();
    }

    /// Whether more threads of the job use MPI than there are CPUs.
    fn threads_outnumber_cpus(&self) -> bool {
        if !self.shared {
            return false;
        }
        let (place, mine) = (self.config.shape(), slots_owned() as u32);
        // Where ranks are threads of one process, all of them are counted already.
        mine.max(if self.job.are_threads() {
            0
        } else {
            place.ranks + self.count_extra_threads(mine.max(1) - 1)
        }) > place.usable_cpus
    }

    /// This rank's threads do not count any more.
    pub(crate) fn count_no_threads(&self) {
        if self.shared {
            self.count_extra_threads(0);
        }
    }

    /// How many threads the ranks have beside their first; this one has `mine` of them now.
    fn count_extra_threads(&self, mine: u32) -> u32 {
        // Relaxed: of two threads that tell a change, each tells its part of it.
        let told = if self.extra_threads.load(Ordering::Relaxed) == mine {
            mine
        } else {
            self.extra_threads.swap(mine, Ordering::Relaxed)
        };
        self.job.header().count_threads(mine.wrapping_sub(told).cast_signed())
    }

    fn poller_is_free(&self) -> bool {
        self.poller.try_lock(self.shared).is_some()
    }

    /// Something of interest to other threads has happened: they, and a driver that sleeps, must look.
    #[cold]
    pub(crate) fn wake_others(&self) {
        self.waiters.wake_all();
        self.doorbell.wake();
    }

    /// A request has just completed by an exchange of its state word, for whose end a thread sleeps at place `awaited`: who waits for that or for anything, and a
    /// driver that sleeps, must look.
    pub(crate) fn notify_completion(&self, awaited: Option<usize>) {
        // Waiters edge, and doorbell rule 3, side A: the completion, then a look whether somebody sleeps.
        fence_after_exchange();
        self.waiters.wake_after_fence(awaited);
        self.doorbell.wake_after_fence();
    }

    /// Whether waiting still makes sense.
    fn healthy(&self) -> Result<()> {
        if let Some(error) = self.failed() {
            return Err(error.clone());
        }
        self.job.check_alive(None)
    }
}
