//! How long to poll, when to yield, when to sleep.

use crate::variables::Config;
use core::time::Duration;
use std::time::Instant;

/// Polls between two looks at the clock, which costs as much as a few polls.
const POLLS: u32 = 32;

/// How long a thread polls at most where threads that use MPI outnumber the CPUs: what it waits for is likely to come from one that has
/// none meanwhile. (Four threads to one, two CPUs, millions of messages a second: 1.2 to 1.8 with 50 microseconds, 2.7 to 2.9 with one.)
const HURRIED: Duration = Duration::from_micros(1);

/// How often such a thread gives its CPU away at least before it sleeps: another of its own rank mostly takes it, and a message sooner than a
/// sleep and a waking would. (The same, four runs beside each other: 3.6 to 5.5 without, 4.7 to 6.0 with four.)
const HANDS_ON: u32 = 4;

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
    /// There are more threads than CPUs.
    hurried: bool,
}

impl Pace {
    /// The patience of a thread among more (`hurried`) or fewer than there are CPUs.
    pub fn new(hurried: bool) -> Self {
        Self { hurried, ..Self::default() }
    }

    /// Whether there are more threads than CPUs.
    pub fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// Something happened: the wait begins anew.
    #[inline(always)]
    pub fn restart(&mut self) {
        *self = Self::new(self.hurried);
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
        let yields = if self.hurried { config.yields().max(HANDS_ON) } else { config.yields() };
        if self.yields == 0 && (pays || yields == 0) {
            let since = *self.since.get_or_insert_with(Instant::now);
            let spin = if self.hurried { config.spin().min(HURRIED) } else { config.spin() };
            if since.elapsed() < spin {
                return Step::Spin;
            }
        }
        if self.yields < yields {
            self.yields += 1;
            return Step::Yield;
        }
        Step::Sleep
    }
}
