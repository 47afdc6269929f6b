//! Waiting: poll, yield, sleep; and who drives progress when several threads wait.

use super::incoming::Incoming;
use super::pace::{Pace, Step};
use crate::engine::Engine;
use crate::error::Result;
use crate::events::Event;
use crate::job::telemetry::{Wait, now};
use crate::sync::{ElidedGuard, spin_loop};

/// How often a thread that waits for the driver tries to hear from it before it sleeps.
const LISTENS: u32 = 200;

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
        let result = self.wait_long(&why, &mut done);
        // What was noted before the first of several sleeps holds until the wait is over.
        self.telemetry().waiting.clear();
        result
    }

    fn wait_long(&self, why: &dyn Fn() -> Option<Wait>, done: &mut dyn FnMut() -> bool) -> Result<()> {
        let mut pace = Pace::default();
        loop {
            match self.incoming.try_lock(self.shared) {
                Some(incoming) => {
                    let result = self.drive(incoming, &mut pace, why, done);
                    if self.shared {
                        // The next one must drive.
                        self.crowd.tell();
                    }
                    return result;
                }
                None => self.follow(&mut pace, done),
            }
            if done() {
                return Ok(());
            }
            self.healthy()?;
        }
    }

    /// Drives progress until `done`.
    fn drive(
        &self,
        mut incoming: ElidedGuard<'_, Incoming>,
        pace: &mut Pace,
        why: &dyn Fn() -> Option<Wait>,
        done: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        if self.failed().is_some() {
            return self.healthy();
        }
        loop {
            let happened = self.step(&mut incoming);
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
            if fresh && step == Step::Yield {
                self.yielding.polled_in_vain();
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
    fn look_around(&self) -> bool {
        self.step_in::<false>(&mut self.incoming.lock(false))
    }

    /// One look at everything. Returns whether anything happened.
    #[inline(always)]
    fn step(&self, incoming: &mut Incoming) -> bool {
        if self.shared { self.step_in::<true>(incoming) } else { self.step_in::<false>(incoming) }
    }

    #[inline(always)]
    fn step_in<const SHARED: bool>(&self, incoming: &mut Incoming) -> bool {
        let handled = incoming.poll::<SHARED>(self);
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
            self.step(&mut incoming);
            drop(incoming);
            if self.shared {
                self.crowd.tell();
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
        let slept = self.bell.sleep(self.fences, self.config.nap(), || {
            let reason = incoming.anything() || self.backlog_has_room() || done() || self.failed().is_some();
            if !reason {
                asleep_from = now();
                self.note_bell(Event::BellSleep, wait.as_ref());
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
    fn follow(&self, pace: &mut Pace, done: &mut dyn FnMut() -> bool) {
        for _ in 0..LISTENS {
            if done() || self.driver_gone() {
                return;
            }
            spin_loop();
        }
        self.crowd.wait(self.config.nap(), || done() || self.driver_gone());
        pace.restart();
    }

    fn driver_gone(&self) -> bool {
        self.incoming.try_lock(self.shared).is_some()
    }

    /// Something of interest to other threads has happened: they, and a driver that sleeps, must look.
    #[cold]
    pub(crate) fn tell_others(&self) {
        self.crowd.tell();
        self.bell.wake();
    }

    /// Whether waiting still makes sense.
    fn healthy(&self) -> Result<()> {
        if let Some(error) = self.failed() {
            return Err(error.clone());
        }
        self.job.check_alive(None)
    }
}
