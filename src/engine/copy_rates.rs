//! Whether long messages from a peer are copied once, by the kernel, or twice, through the ring: as copies so far say.
//!
//! Where rings are filled past the cache or through it as their writers learn ([`crate::ring::CopyTimes`]), two copies
//! that meet in a cache may take half the time of one by the kernel, which looks up every page; where the two CPUs
//! share no cache, they take longer. So a rank times what it copies out of the peer's ring, and what the kernel copies
//! for it from and to the peer. It times no whole messages: those wait for the peer, and for others that are under way.

use crate::arch::clock;
use crate::sync::Relaxed;

/// Of so many messages one goes the other way.
const TRIAL: u32 = 64;
/// What is shorter says little of a long message.
const LONG: usize = 16 << 10;

/// Ticks for a KiB that the last two copies took; 0: none yet. The less counts: one may have been interrupted.
#[derive(Debug, Default)]
struct LastTwo([Relaxed<u32>; 2]);

impl LastTwo {
    fn took(&self, bytes: usize, ticks: u64) {
        let [last, before] = &self.0;
        before.set(last.get());
        last.set(u32::try_from((ticks << 10) / bytes as u64).unwrap_or(u32::MAX).max(1));
    }

    fn least(&self) -> u32 {
        let [last, before] = &self.0;
        last.get().min(before.get())
    }

    /// Nanoseconds for a MiB; 0: none yet.
    fn nanoseconds(&self) -> u64 {
        let ticks = u128::from(self.least()) << 10;
        (ticks * 1_000_000_000 / u128::from(clock::source().ticks_per_second.max(1))) as u64
    }
}

/// How messages are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyRoute {
    /// Once, by the kernel.
    Kernel,
    /// Twice, through the ring.
    Ring,
}

/// How long messages from one peer are copied, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiesFromPeer {
    /// Which way, but for one message of many; `None` where thresholds decide.
    pub route: Option<CopyRoute>,
    /// Nanoseconds that the ring takes for a MiB; 0: none yet.
    pub ring: u64,
    /// Nanoseconds that the kernel takes.
    pub kernel: u64,
}

/// What a rank has learned about copies from and to one peer.
#[derive(Debug, Default)]
pub struct CopyRates {
    messages: Relaxed<u32>,
    ring: LastTwo,
    kernel: LastTwo,
}

impl CopyRates {
    /// Which way the next message goes.
    pub fn choose(&self) -> CopyRoute {
        let is_trial = self.messages.get() % TRIAL == TRIAL / 8;
        if self.ring_is_faster() != is_trial { CopyRoute::Ring } else { CopyRoute::Kernel }
    }

    /// Which way messages go, and what copies took.
    pub fn so_far(&self) -> CopiesFromPeer {
        CopiesFromPeer {
            route: Some(if self.ring_is_faster() { CopyRoute::Ring } else { CopyRoute::Kernel }),
            ring: self.ring.nanoseconds(),
            kernel: self.kernel.nanoseconds(),
        }
    }

    /// Through the ring both ranks copy all of a message, one behind the other; by the kernel half of it each, at once.
    /// But a peer that has long messages of its own under way is no help, and two that are in the kernel at once take
    /// longer there. So the ring is the faster one already where the kernel takes one and a half times as long.
    fn ring_is_faster(&self) -> bool {
        let kernel = u64::from(self.kernel.least());
        kernel == 0 || 3 * u64::from(self.ring.least()) <= 2 * kernel
    }

    /// Notes that a message that might have gone either way has come.
    pub fn count(&self) {
        self.messages.set(self.messages.get().wrapping_add(1));
    }

    /// Has `copy` copy `bytes` bytes: out of the ring, or by the kernel.
    pub fn time<R>(&self, route: CopyRoute, bytes: usize, copy: impl FnOnce() -> R) -> R {
        if bytes < LONG {
            return copy();
        }
        let began = clock::ticks();
        let result = copy();
        self.took(route, bytes, clock::ticks() - began);
        result
    }

    fn took(&self, route: CopyRoute, bytes: usize, ticks: u64) {
        match route {
            CopyRoute::Kernel => self.kernel.took(bytes, ticks),
            CopyRoute::Ring => self.ring.took(bytes, ticks),
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    /// Lets messages come of which each copy takes so many ticks, and returns how many of them went through the ring.
    fn let_come(rates: &CopyRates, messages: u32, ring: u64, kernel: u64) -> u32 {
        let one = || {
            let route = rates.choose();
            for _ in 0..4 {
                rates.took(route, LONG, if route == CopyRoute::Ring { ring } else { kernel });
            }
            rates.count();
            u32::from(route == CopyRoute::Ring)
        };
        (0..messages).map(|_| one()).sum()
    }

    #[test]
    fn messages_go_the_faster_way_but_for_a_few() {
        for (ring, kernel, by_ring) in
            [(100, 300, 63), (250, 300, 1), (u64::MAX >> 10, 1, 1), (1, u64::MAX >> 10, 63)]
        {
            let rates = CopyRates::default();
            assert_eq!(let_come(&rates, TRIAL / 8, ring, kernel), TRIAL / 8, "the first ones");
            assert_eq!(let_come(&rates, 1, ring, kernel), 0, "the other way is tried soon");
            let_come(&rates, TRIAL - TRIAL / 8 - 1, ring, kernel);
            assert_eq!(let_come(&rates, 10 * TRIAL, ring, kernel), 10 * by_ring, "{ring} {kernel}");
        }
    }

    #[test]
    fn they_follow_what_changes() {
        let rates = CopyRates::default();
        let_come(&rates, TRIAL, 100, 300);
        assert_eq!(rates.choose(), CopyRoute::Ring);
        let_come(&rates, 1, 250, 300);
        assert_eq!(rates.choose(), CopyRoute::Kernel, "the ring has become slow");
        let_come(&rates, TRIAL, 100, 300);
        assert_eq!(rates.choose(), CopyRoute::Ring, "a trial has found that it is fast again");
    }

    #[test]
    fn one_copy_that_was_interrupted_and_short_ones_change_nothing() {
        let rates = CopyRates::default();
        let_come(&rates, TRIAL, 100, 300);
        rates.took(CopyRoute::Ring, LONG, 900);
        assert!(rates.ring_is_faster());
        for _ in 0..2 {
            rates.time(CopyRoute::Ring, LONG - 1, || std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert!(rates.ring_is_faster());
        for _ in 0..2 {
            rates.time(CopyRoute::Ring, LONG, || std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert!(!rates.ring_is_faster(), "that were two in a row");
    }
}
