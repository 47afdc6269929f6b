//! A wait that one poll has not ended: it runs progress, or waits for the thread that does.

use super::Progress;
use super::call_name::mpi_call_name;
use super::poller::Poller;
use super::wait_strategy::{WaitStep, WaitStrategy};
use crate::arch::clock::now;
use crate::engine::{Engine, Ref};
use crate::error::Result;
use crate::events::{Event, run_sleep_hook};
use crate::shm::telemetry::{ThreadWait, Wait};
use crate::sync::{ConditionalGuard, spin_loop, thread_slot};
use std::time::Instant;

/// Checks of a thread that waits for the thread that runs progress, before it blocks.
const CHECKS: u32 = 200;
/// Of so many polls in a row that found something one also checks whether anything has failed.
const POLLS_PER_CHECK: u32 = 1024;
/// Of so many checks one also checks whether the poller is free,
/// which takes the line of its lock away from the thread that holds it.
const CHECKS_PER_LOCK: u32 = 16;
/// Polls of a wait that polls on between two looks at whether it is over.
const POLLS_PER_DONE: u32 = 256;

/// A wait that one poll has not ended.
pub(super) struct LongWait<'a> {
    engine: &'a Engine,
    why: &'a dyn Fn() -> Option<Wait>,
    target: &'a dyn Fn() -> Option<Ref>,
    done: &'a mut dyn FnMut() -> bool,
    strategy: WaitStrategy,
    /// Blocks of this thread while another one ran progress.
    blocks: u32,
    /// Where it is published what this thread waits for while another one runs progress.
    published: Option<&'a ThreadWait>,
}

impl<'a> LongWait<'a> {
    /// A wait of `engine`; the closures are those of [`Progress::wait_until_over`].
    pub fn new(
        engine: &'a Engine,
        why: &'a dyn Fn() -> Option<Wait>,
        target: &'a dyn Fn() -> Option<Ref>,
        done: &'a mut dyn FnMut() -> bool,
    ) -> Self {
        Self {
            engine,
            why,
            target,
            done,
            strategy: WaitStrategy::new(engine.oversubscription.threads_outnumber_cpus(engine)),
            blocks: 0,
            published: None,
        }
    }

    /// Waits until `done` holds.
    pub fn run(mut self) -> Result<()> {
        let result = self.wait();
        self.withdraw();
        result
    }

    fn wait(&mut self) -> Result<()> {
        let engine = self.engine;
        loop {
            if let Some(poller) = engine.poller.try_lock(engine.shared) {
                self.withdraw();
                let result = self.run_progress(poller);
                if engine.shared {
                    // Waiters rule 4: we leave.
                    engine.waiters.pass_on();
                }
                return result;
            }
            self.await_other_thread();
            let result = if (self.done)() { Ok(true) } else { self.check() };
            if !matches!(result, Ok(false)) {
                // Waiters rule 4: perhaps we were woken to run progress, or our look at the lock made another thread
                // believe that progress runs.
                if engine.progress().poller_is_free() {
                    engine.waiters.pass_on();
                }
                return result.map(drop);
            }
        }
    }

    /// Runs progress until `done` holds.
    fn run_progress(&mut self, mut poller: ConditionalGuard<'_, Poller>) -> Result<()> {
        let engine = self.engine;
        if engine.failed().is_some() {
            return engine.progress().check_health();
        }
        let mut polls = 0_u32;
        loop {
            let happened = engine.progress().advance(&mut poller, true);
            let done = (self.done)();
            if (happened || done) && self.strategy.has_spun() {
                engine.oversubscription.spun_well();
            }
            if done {
                return Ok(());
            }
            if happened {
                self.strategy.restart();
                if engine.failed().is_some() {
                    return engine.progress().check_health();
                }
                polls = polls.wrapping_add(1);
                if polls.is_multiple_of(POLLS_PER_CHECK) && self.end_failed()? {
                    return Ok(());
                }
                continue;
            }
            match self.next_step() {
                WaitStep::Spin => spin_loop(),
                WaitStep::Yield if engine.oversubscription.yield_cpu(engine) => {}
                WaitStep::Yield | WaitStep::Block => {
                    if self.end_failed()? {
                        return Ok(());
                    }
                    let since = Instant::now();
                    if self.poll_on(&poller, since) {
                        self.strategy.restart();
                    } else {
                        self.block(&mut poller);
                        self.strategy.blocked();
                    }
                    engine.waited(since.elapsed());
                    engine.progress().check_health()?;
                }
            }
        }
    }

    /// Ends what has failed, if anything has, after a poll in vain. Returns whether the wait is over.
    fn end_failed(&mut self) -> Result<bool> {
        let engine = self.engine;
        if !engine.may_have_failures() || !engine.notice_failures() {
            return Ok(false);
        }
        if (self.done)() {
            return Ok(true);
        }
        engine.check_wait((self.why)(), (self.target)())?;
        Ok(false)
    }

    /// Whether the wait may still end well. Returns whether it is over: what had come before a failure has come.
    fn check(&mut self) -> Result<bool> {
        self.engine.progress().check_health()?;
        if !self.engine.may_have_failures() {
            return Ok(false);
        }
        let failed = self.engine.check_wait((self.why)(), (self.target)());
        if failed.is_err() && (self.done)() { Ok(true) } else { failed.map(|()| false) }
    }

    /// What the strategy says after a poll in vain. At the first yield of a wait it counts as one that spinning did not
    /// end.
    #[inline(always)]
    fn next_step(&mut self) -> WaitStep {
        let engine = self.engine;
        let has_yielded = self.strategy.has_yielded();
        let step = self.strategy.next(&engine.config, engine.oversubscription.spinning_pays());
        if !has_yielded && step == WaitStep::Yield {
            engine.note_vain_spin(self.why);
        }
        step
    }

    /// Polls on instead of sleeping, where that pays ([`Engine::polls_on_for`]).
    /// Returns whether there is something to do.
    #[cold]
    fn poll_on(&mut self, poller: &Poller, since: Instant) -> bool {
        let engine = self.engine;
        let Some(long) = engine.polls_on_for().filter(|_| !self.strategy.is_oversubscribed()) else {
            return false;
        };
        let wait = (self.why)();
        // To listeners it is a sleep, before which events that wait in buffers are delivered.
        engine.emit_sleep(Event::BellSleep, wait.as_ref());
        run_sleep_hook();
        let mut happened = false;
        while !happened && since.elapsed() < long {
            // Mostly `done` changes with what progress does;
            // it may be a search that listeners hear of, so it is asked seldom.
            let progress = (0..POLLS_PER_DONE).any(|_| {
                spin_loop();
                has_work(engine, poller) || engine.background.advance(engine)
            });
            happened = progress || (self.done)() || engine.progress().check_health().is_err();
        }
        engine.emit_sleep(Event::BellWake, wait.as_ref());
        happened
    }

    /// Sleeps until the doorbell rings, unless there is something to do.
    #[cold]
    fn block(&mut self, poller: &mut Poller) {
        let engine = self.engine;
        let telemetry = engine.telemetry();
        let wait = (self.why)();
        if engine.shared {
            telemetry.poller.set(own_number());
        }
        if let Some(wait) = &wait {
            telemetry.waiting.set(wait);
        }
        if self.strategy.has_blocked_in_vain() {
            telemetry.vain_blocks.add(1);
            engine.publish_wait_detail();
        } else {
            telemetry.stirred_blocks.add(1);
            // What has happened may be a message that the detail would have.
            telemetry.detail.forget();
        }
        // Doorbell rules 1 and 2, side B: the stores. `sleep` has the heavy barrier, and the closure the loads.
        poller.suspend();
        engine.transmit().want_credit();
        let mut asleep_from = 0;
        let slept = engine.doorbell.sleep(engine.fences, engine.config.longest_sleep(), || {
            let reason = has_work(engine, poller) || engine.background.can_go_on(engine) || (self.done)();
            if !reason {
                engine.emit_sleep(Event::BellSleep, wait.as_ref());
                // A rank that rings from now on finds us asleep, and so keeps us from it.
                run_sleep_hook();
                asleep_from = now();
            }
            reason
        });
        if slept {
            engine.emit_sleep(Event::BellWake, wait.as_ref());
            telemetry.sleeps.add(1);
            telemetry.asleep.add(now().saturating_sub(asleep_from));
        }
        poller.resume();
    }

    /// Waits for what the thread that runs progress will complete, or for that thread to leave.
    #[cold]
    fn await_other_thread(&mut self) {
        let engine = self.engine;
        for check in 1..=if self.strategy.is_oversubscribed() { CHECKS_PER_LOCK } else { CHECKS } {
            if (self.done)() || check % CHECKS_PER_LOCK == 0 && engine.progress().poller_is_free() {
                return;
            }
            spin_loop();
        }
        if (self.done)() {
            return;
        }
        self.publish();
        let (target, place) = ((self.target)(), thread_slot());
        engine.waiters.wait(place, engine.config.longest_sleep(), target.is_none(), || {
            let over = match target {
                Some(request) => request.state().await_end(place),
                None => (self.done)(),
            } || engine.progress().poller_is_free();
            if !over {
                run_sleep_hook();
            }
            over
        });
        self.strategy.restart();
    }
}

/// For reports of hangs.
impl LongWait<'_> {
    /// Publishes what this thread waits for, from its second block on, or that it has looked in vain once more.
    fn publish(&mut self) {
        self.blocks = self.blocks.saturating_add(1);
        if let Some(published) = self.published {
            return published.look();
        }
        // With a wait that others could end the thread counts as one that may act.
        let closed = |wait: &Wait| wait.is_closed(mpi_call_name);
        if self.blocks == 2
            && let Some(wait) = (self.why)().filter(closed)
            && let Some(place) = self.engine.telemetry().own_wait()
        {
            place.begin(own_number() as u32, &wait);
            self.published = Some(place);
        }
    }

    /// Takes that back: the wait is over, or this thread runs progress from now on.
    fn withdraw(&mut self) {
        if let Some(published) = self.published.take() {
            published.end();
        }
    }
}

/// The kernel's number of the calling thread.
fn own_number() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs().into()
}

/// Whether there is something to do for the thread that runs progress.
fn has_work(engine: &Engine, poller: &Poller) -> bool {
    poller.has_record(engine)
        || engine.doorbell.has_any_flag()
        || engine.transmit().backlog_has_room()
        || engine.failed().is_some()
}

impl Progress<'_> {
    fn poller_is_free(self) -> bool {
        self.engine.poller.try_lock(self.engine.shared).is_some()
    }

    /// Whether the wait may still end well.
    fn check_health(self) -> Result<()> {
        if let Some(error) = self.engine.failed() {
            return Err(error.clone());
        }
        self.engine.job.check_alive(None)
    }
}
