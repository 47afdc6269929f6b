//! The wait strategy: how long a waiting thread spins, when it yields, when it blocks.

use crate::variables::Config;
use core::time::Duration;
use std::time::Instant;

/// Polls between two looks at the clock, which costs as much as a poll or two. Where nonblocking collectives are under
/// way a poll costs more.
const POLLS_PER_CLOCK: u32 = 4;

/// The longest spin where threads that use MPI outnumber the CPUs: the awaited message is likely to come from a thread
/// that has no CPU meanwhile. (Four threads to one, two CPUs, millions of messages a second: 1.2 to 1.8 with 50
/// microseconds, 2.7 to 2.9 with one.)
const OVERSUBSCRIBED_SPIN: Duration = Duration::from_micros(1);

/// Least yields of such a thread before it blocks: mostly another thread of its own rank takes the CPU, and a message
/// comes sooner than by a block and a wake-up. (The same, four runs in a row: 3.6 to 5.5 without, 4.7 to 6.0 with four.
/// Sixteen partitions that four threads mark as ready: 8 GB/s with four, 12 to 14 with 64, which cost less than the
/// block.)
const OVERSUBSCRIBED_YIELDS: u32 = 64;

/// What to do after a poll that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Poll again.
    Spin,
    /// Give the CPU to another thread, then poll again.
    Yield,
    /// Block until the doorbell rings.
    Block,
}

/// How far one wait has come in its strategy.
#[derive(Debug, Default)]
pub(super) struct WaitStrategy {
    polls: u32,
    spinning_since: Option<Instant>,
    yields: u32,
    /// The last block ended with nothing to do: block again at once.
    blocked_in_vain: bool,
    /// Threads outnumber the CPUs.
    oversubscribed: bool,
}

impl WaitStrategy {
    /// The strategy of a thread among more (`oversubscribed`) or fewer threads than there are CPUs.
    pub fn new(oversubscribed: bool) -> Self {
        Self { oversubscribed, ..Self::default() }
    }

    /// Whether threads outnumber the CPUs.
    pub fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Something happened: the wait begins anew.
    #[inline(always)]
    pub fn restart(&mut self) {
        *self = Self::new(self.oversubscribed);
    }

    /// A block is over. If nothing comes of it the next poll is the only one before the next block, so that a long wait
    /// burns no CPU.
    pub fn blocked(&mut self) {
        self.restart();
        self.blocked_in_vain = true;
    }

    /// Whether this wait has polled in vain, and not given the CPU away.
    #[inline(always)]
    pub fn has_spun(&self) -> bool {
        self.polls > 0 && self.yields == 0
    }

    /// Whether nothing has happened since the last block.
    pub fn has_blocked_in_vain(&self) -> bool {
        self.blocked_in_vain
    }

    /// Whether this wait has given the CPU away.
    #[inline(always)]
    pub fn has_yielded(&self) -> bool {
        self.yields > 0
    }

    /// Returns what to do after a poll in vain. `spinning_pays`: another poll may end the wait.
    #[inline(always)]
    pub fn next(&mut self, config: &Config, spinning_pays: bool) -> WaitStep {
        self.polls += 1;
        if !self.polls.is_multiple_of(POLLS_PER_CLOCK)
            && self.yields == 0
            && !self.blocked_in_vain
            && spinning_pays
        {
            WaitStep::Spin
        } else {
            self.next_by_clock(config, spinning_pays)
        }
    }

    #[cold]
    fn next_by_clock(&mut self, config: &Config, spinning_pays: bool) -> WaitStep {
        if self.blocked_in_vain {
            return WaitStep::Block;
        }
        let (mut spin, mut yields) = (config.spin(), config.yields());
        if self.oversubscribed {
            (spin, yields) = (spin.min(OVERSUBSCRIBED_SPIN), yields.max(OVERSUBSCRIBED_YIELDS));
        }
        if self.yields == 0 && (spinning_pays || yields == 0) {
            let since = *self.spinning_since.get_or_insert_with(Instant::now);
            if since.elapsed() < spin {
                return WaitStep::Spin;
            }
        }
        if self.yields < yields {
            self.yields += 1;
            return WaitStep::Yield;
        }
        WaitStep::Block
    }
}
