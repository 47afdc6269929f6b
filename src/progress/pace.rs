//! How long to poll, when to yield, when to sleep.

use crate::config::Config;
use std::time::Instant;

/// Polls between two looks at the clock, which costs as much as a few polls.
const POLLS: u32 = 32;

/// What to do after a poll that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Poll again.
    Spin,
    /// Give the CPU to somebody else, then poll again.
    Yield,
    /// Sleep until rung.
    Sleep,
}

/// One wait's patience.
#[derive(Debug, Default)]
pub(super) struct Pace {
    polls: u32,
    since: Option<Instant>,
    yields: u32,
    /// Slept in vain: there is no patience left.
    tired: bool,
}

impl Pace {
    /// Something happened: the wait begins anew.
    #[inline(always)]
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// A sleep is over. If nothing has come of it the next look is the last before the next sleep, so that who waits for
    /// long burns no CPU.
    pub fn slept(&mut self) {
        self.restart();
        self.tired = true;
    }

    /// Whether the CPU has been given away in this wait.
    #[inline(always)]
    pub fn has_yielded(&self) -> bool {
        self.yields > 0
    }

    /// Nothing happened. `pays` says that polling may end the wait.
    #[inline(always)]
    pub fn next(&mut self, config: &Config, pays: bool) -> Step {
        self.polls += 1;
        if !self.polls.is_multiple_of(POLLS) && self.yields == 0 && !self.tired && pays {
            Step::Spin
        } else {
            self.look_at_clock(config, pays)
        }
    }

    #[cold]
    fn look_at_clock(&mut self, config: &Config, pays: bool) -> Step {
        if self.tired {
            return Step::Sleep;
        }
        if self.yields == 0 && (pays || config.yields() == 0) {
            let since = *self.since.get_or_insert_with(Instant::now);
            if since.elapsed() < config.spin() {
                return Step::Spin;
            }
        }
        if self.yields < config.yields() {
            self.yields += 1;
            return Step::Yield;
        }
        Step::Sleep
    }
}
