//! The wait for a word in shared memory that other ranks write without notification,
//! unless they know that this rank sleeps.

use super::Progress;
use crate::error::Result;
use crate::events::{Event, run_sleep_hook};
use crate::shm::telemetry::Wait;
use crate::sync::spin_loop;
use core::time::Duration;
use std::time::Instant;

/// Checks of the word between two polls.
const CHECKS_PER_POLL: u32 = 16;
/// Polls between two looks at the clock.
const POLLS_PER_CLOCK: u32 = 16;

impl Progress<'_> {
    /// Waits until `done`, and runs progress meanwhile: spins for a moment (yields, where ranks outnumber CPUs: the
    /// awaited rank needs the CPU), then goes on as every wait does. The argument of `done` is whether a sleep may
    /// follow; then `done` must have arranged for a wake-up ([`Progress::wake_peer`]) before it returns false.
    ///
    /// # Errors
    ///
    /// As [`Progress::wait_until`].
    pub(crate) fn wait_for_word(
        self,
        why: impl Fn() -> Option<Wait>,
        mut done: impl FnMut(bool) -> bool,
    ) -> Result<()> {
        let mut since = None;
        let soon = match self.engine.config.coll_yields() {
            Some(yields) => self.yield_until(yields, &mut done)?,
            None => self.spin_until(&mut since, &why, &mut done)?,
        };
        if soon {
            return Ok(());
        }
        let result = self.wait_until(why, || done(true));
        if let Some(since) = since {
            self.engine.waited(since.elapsed());
        }
        result
    }

    fn yield_until(self, yields: u32, done: &mut impl FnMut(bool) -> bool) -> Result<bool> {
        for _ in 0..yields {
            if !self.engine.oversubscription.yield_cpu(self.engine) {
                return Ok(false);
            }
            if done(false) {
                return Ok(true);
            }
            self.poll_once()?;
        }
        Ok(false)
    }

    /// Spins for `spin_us`, and on where that pays ([`Engine::polls_on_for`]): others do not know yet that this rank
    /// may sleep, so it needs no fence. `since` is set to about the beginning.
    ///
    /// [`Engine::polls_on_for`]: super::Engine::polls_on_for
    fn spin_until(
        self,
        since: &mut Option<Instant>,
        why: impl Fn() -> Option<Wait>,
        done: &mut impl FnMut(bool) -> bool,
    ) -> Result<bool> {
        let engine = self.engine;
        if self.spin_for(engine.config.spin(), since, done)? {
            return Ok(true);
        }
        let Some(long) = engine.polls_on_for() else { return Ok(false) };
        let wait = why();
        // To listeners it is a sleep, before which events that wait in buffers are delivered.
        engine.emit_sleep(Event::BellSleep, wait.as_ref());
        run_sleep_hook();
        let over = self.spin_for(long, since, done);
        engine.emit_sleep(Event::BellWake, wait.as_ref());
        if matches!(over, Ok(false)) {
            engine.waited(long);
        }
        over
    }

    /// Spins until `done`, for `most` from `since` on.
    fn spin_for(
        self,
        most: Duration,
        since: &mut Option<Instant>,
        done: &mut impl FnMut(bool) -> bool,
    ) -> Result<bool> {
        loop {
            for _ in 0..POLLS_PER_CLOCK {
                for _ in 0..CHECKS_PER_POLL {
                    if done(false) {
                        return Ok(true);
                    }
                    spin_loop();
                }
                self.poll_once()?;
            }
            if since.get_or_insert_with(Instant::now).elapsed() >= most {
                return Ok(false);
            }
        }
    }

    /// Wakes `peer`, which waits for a word that has just been written.
    /// The flag is the peer's own: no ring has anything.
    #[cold]
    pub(crate) fn wake_peer(self, peer: u32) {
        self.engine.telemetry().wakes.add(1);
        if let Ok(Some(outside)) = self.engine.outside(peer) {
            return outside.wake();
        }
        self.engine.peers[peer as usize].doorbell.ring(peer as usize);
    }
}
