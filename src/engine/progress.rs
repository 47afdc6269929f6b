//! Waiting: poll, yield, sleep; and who drives progress when several threads wait.

use super::incoming::Incoming;
use super::pace::{Pace, Step};
use super::parting::LOOK;
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
            self.look_around();
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
        let mut pace = Pace::new(self.threads_outnumber_cpus());
        loop {
            match self.incoming.try_lock(self.shared) {
                Some(incoming) => {
                    let result = self.drive(incoming, &mut pace, why, done);
                    if self.shared {
                        // The next one must drive.
                        self.crowd.pass_on();
                    }
                    return result;
                }
                None => self.follow(&mut pace, target, done),
            }
            let result = if done() { Ok(true) } else { self.healthy().map(|()| false) };
            if !matches!(result, Ok(false)) {
                // It may be us who were woken to drive, or whose look made another believe that there is a driver.
                if self.driver_gone() {
                    self.crowd.pass_on();
                }
                return result.map(drop);
            }
        }
    }

    /// Drives progress until `done`.
    fn drive(
        &self,
        mut incoming: ConditionalGuard<'_, Incoming>,
        pace: &mut Pace,
        why: &dyn Fn() -> Option<Wait>,
        done: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        if self.failed().is_some() {
            return self.healthy();
        }
        loop {
            let happened = self.step(&mut incoming, true);
            let over = done();
            if (happened || over) && !pace.has_yielded() {
                self.yielding.polled_well();
            }
            if over {
                return Ok(());
            }
            if happened {
                pace.restart();
                if self.failed().is_some() {
                    return self.healthy();
                }
                continue;
            }
            let fresh = !pace.has_yielded();
            let step = pace.next(&self.config, self.yielding.polling_pays());
            if fresh && step == Step::Yield && self.yielding.polled_in_vain().is_multiple_of(LOOK) {
                self.look_at_seats(why);
            }
            match step {
                Step::Spin => spin_loop(),
                Step::Yield if self.give_way() => {}
                Step::Yield | Step::Sleep => {
                    self.sleep(&mut incoming, why, done);
                    pace.slept();
                    self.healthy()?;
                }
            }
        }
    }

    /// One look at everything, where there is one thread.
    #[inline(never)]
    pub(crate) fn look_around(&self) -> bool {
        self.step_in::<false>(&mut self.incoming.lock(false), true)
    }

    /// One look at everything. Returns whether anything happened. `waits` as in [`Incoming::poll`].
    #[inline(always)]
    fn step(&self, incoming: &mut Incoming, waits: bool) -> bool {
        if self.shared {
            self.step_in::<true>(incoming, waits)
        } else {
            self.step_in::<false>(incoming, waits)
        }
    }

    #[inline(always)]
    fn step_in<const SHARED: bool>(&self, incoming: &mut Incoming, waits: bool) -> bool {
        let handled = incoming.poll::<SHARED>(self, waits);
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
        if let Some(mut incoming) = self.incoming.try_lock(self.shared) {
            self.step(&mut incoming, false);
            drop(incoming);
            if self.shared {
                self.crowd.pass_on();
            }
        }
        match self.failed() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Sleeps until rung, unless there is something to do (bell rules 1 to 3).
    #[cold]
    fn sleep(&self, incoming: &mut Incoming, why: &dyn Fn() -> Option<Wait>, done: &mut dyn FnMut() -> bool) {
        let telemetry = self.telemetry();
        let wait = why();
        if let Some(wait) = &wait {
            telemetry.waiting.set(wait);
        }
        incoming.unwatch_all();
        self.want_credit();
        let mut asleep_from = 0;
        let slept = self.bell.sleep(self.fences, self.config.longest_sleep(), || {
            let reason =
                incoming.anything(self) || self.backlog_has_room() || done() || self.failed().is_some();
            if !reason {
                self.note_bell(Event::BellSleep, wait.as_ref());
                // Whoever rings meanwhile finds us asleep, and so keeps us from it.
                run_sleep_hook();
                asleep_from = now();
            }
            reason
        });
        if slept {
            self.note_bell(Event::BellWake, wait.as_ref());
            telemetry.sleeps.add(1);
            telemetry.asleep.add(now().saturating_sub(asleep_from));
        }
        incoming.rewatch();
    }

    /// Waits for what the driver of progress will complete, or for its role.
    #[cold]
    fn follow(&self, pace: &mut Pace, target: &dyn Fn() -> Option<Ref>, done: &mut dyn FnMut() -> bool) {
        for listen in 1..=if pace.is_hurried() { PATIENCE } else { LISTENS } {
            if done() || listen % PATIENCE == 0 && self.driver_gone() {
                return;
            }
            spin_loop();
        }
        if done() {
            return;
        }
        let target = target();
        let place = thread_slot();
        self.crowd.wait(place, self.config.longest_sleep(), target.is_none(), || {
            let over =
                target.map_or_else(done, |request| request.state().await_end(place)) || self.driver_gone();
            if !over {
                run_sleep_hook();
            }
            over
        });
        pace.restart();
    }

    /// Whether more threads of the job use MPI than there are CPUs.
    fn threads_outnumber_cpus(&self) -> bool {
        if !self.shared {
            return false;
        }
        let (place, mine) = (self.config.shape(), slots_owned() as u32);
        // Where ranks are threads of one process, all of them are counted already.
        mine.max(if self.job.are_threads() { 0 } else { place.ranks + self.threads_beside(mine.max(1) - 1) })
            > place.usable_cpus
    }

    /// This rank's threads do not count any more.
    pub(crate) fn count_no_threads(&self) {
        if self.shared {
            self.threads_beside(0);
        }
    }

    /// How many threads the ranks have beside their first; this one has `mine` of them now.
    fn threads_beside(&self, mine: u32) -> u32 {
        // Relaxed: of two threads that tell a change, each tells its part of it.
        let told = if self.beside.load(Ordering::Relaxed) == mine {
            mine
        } else {
            self.beside.swap(mine, Ordering::Relaxed)
        };
        self.job.header().count_threads(mine.wrapping_sub(told).cast_signed())
    }

    fn driver_gone(&self) -> bool {
        self.incoming.try_lock(self.shared).is_some()
    }

    /// Something of interest to other threads has happened: they, and a driver that sleeps, must look.
    #[cold]
    pub(crate) fn tell_others(&self) {
        self.crowd.tell_all();
        self.bell.wake();
    }

    /// A request has just completed by an exchange of its state word, for whose end a thread sleeps at place `awaited`: who waits for that or for anything, and a
    /// driver that sleeps, must look.
    pub(crate) fn tell_of_completion(&self, awaited: Option<usize>) {
        // Crowd edge, and bell rule 3, side A: the completion, then a look whether somebody sleeps.
        fence_after_exchange();
        self.crowd.tell_behind_fence(awaited);
        self.bell.wake_behind_fence();
    }

    /// Whether waiting still makes sense.
    fn healthy(&self) -> Result<()> {
        if let Some(error) = self.failed() {
            return Err(error.clone());
        }
        self.job.check_alive(None)
    }
}
