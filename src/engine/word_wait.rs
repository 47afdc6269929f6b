//! Waiting for a word in memory that other ranks write without ringing, unless they are told that somebody sleeps.

use crate::engine::Engine;
use crate::error::Result;
use crate::shm::telemetry::Wait;
use crate::sync::spin_loop;
use std::time::Instant;

/// Looks at the word between two looks at everything else.
const LOOKS: u32 = 16;
/// Looks at everything else between two looks at the clock.
const ROUNDS: u32 = 16;

impl Engine {
    /// Waits until `done`, driving progress meanwhile: a moment of looking (of giving the CPU away, where ranks outnumber CPUs: who
    /// is awaited needs it), then as every wait does. `done` is told whether a sleep may follow a "no"; then it must have
    /// seen to being rung ([`Engine::wake_peer`]) before it said so.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait_until`].
    pub(crate) fn wait_for_word(
        &self,
        why: impl Fn() -> Option<Wait>,
        mut done: impl FnMut(bool) -> bool,
    ) -> Result<()> {
        let soon = match self.config.coll_yields() {
            Some(yields) => self.yield_until(yields, &mut done)?,
            None => self.spin_until(&mut done)?,
        };
        if soon { Ok(()) } else { self.wait_until(why, || done(true)) }
    }

    fn yield_until(&self, yields: u32, done: &mut impl FnMut(bool) -> bool) -> Result<bool> {
        for _ in 0..yields {
            if !self.yield_cpu() {
                return Ok(false);
            }
            if done(false) {
                return Ok(true);
            }
            self.poll_once()?;
        }
        Ok(false)
    }

    fn spin_until(&self, done: &mut impl FnMut(bool) -> bool) -> Result<bool> {
        let mut since = None;
        loop {
            for _ in 0..ROUNDS {
                for _ in 0..LOOKS {
                    if done(false) {
                        return Ok(true);
                    }
                    spin_loop();
                }
                self.poll_once()?;
            }
            if since.get_or_insert_with(Instant::now).elapsed() >= self.config.spin() {
                return Ok(false);
            }
        }
    }

    /// Ends the sleep of `peer`, which waits for a word that has just been written. Rung with its own bit, which says that
    /// no ring has anything.
    #[cold]
    pub(crate) fn wake_peer(&self, peer: u32) {
        self.telemetry().wakes.add(1);
        self.peers[peer as usize].doorbell.ring(peer as usize);
    }
}
