//! The clock of events: ticks that cost a few nanoseconds to read, and what they are in time.
//!
//! Where the processor has a counter that runs at one rate whatever the core does and that all cores share, ticks are
//! that counter: on x86-64 the time stamp counter, if CPUID calls it *invariant* (leaf 0x8000_0007), on AArch64 the
//! generic timer's. Elsewhere they are nanoseconds of CLOCK_MONOTONIC.
//!
//! A tick's time on CLOCK_MONOTONIC follows from two [`Reading`]s, each of which pairs a tick with a time to some ten
//! nanoseconds: the further they lie apart, the better.
//! [`to_nanoseconds`] takes the first reading of the process and a later one.

use super::imp;
use std::sync::OnceLock;
use std::time::Duration;

/// What the ticks are, as tools read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSource {
    /// For people.
    pub name: &'static str,
    /// For people, in a sentence.
    pub description: &'static str,
    /// Whether it is the processor's counter.
    pub counter: bool,
    /// Ticks of a second: what the processor says (AArch64), or measured over a few milliseconds.
    pub ticks_per_second: u64,
}

/// A tick, and the time at which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// As [`ticks`].
    pub ticks: u64,
    /// Nanoseconds on CLOCK_MONOTONIC.
    pub nanoseconds: u64,
}

/// The line through two readings that gives each tick its time.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    from: Reading,
    /// Nanoseconds of a tick, as a fixed-point number with 32 binary places.
    step: u64,
}

/// Nanoseconds on CLOCK_MONOTONIC, which all processes of the machine share.
#[inline]
#[must_use]
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The present tick. Never falls on one thread, nor from one thread to another that it wakes.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    if has_counter() { imp::counter() } else { now() }
}

/// Whether ticks are the processor's counter: asked of the processor once.
#[inline(always)]
fn has_counter() -> bool {
    static COUNTER: OnceLock<bool> = OnceLock::new();
    *COUNTER.get_or_init(imp::has_steady_counter)
}

/// Describes what [`ticks`] are on this machine. The first call may measure for two milliseconds.
pub fn source() -> &'static ClockSource {
    static SOURCE: OnceLock<ClockSource> = OnceLock::new();
    SOURCE.get_or_init(|| {
        if has_counter() {
            return ClockSource {
                name: imp::COUNTER.0,
                description: imp::COUNTER.1,
                counter: true,
                ticks_per_second: imp::counter_frequency().unwrap_or_else(|| rate(first(), later())),
            };
        }
        ClockSource {
            name: "monotonic",
            description: "nanoseconds of CLOCK_MONOTONIC",
            counter: false,
            ticks_per_second: 1_000_000_000,
        }
    })
}

fn rate(from: Reading, to: Reading) -> u64 {
    let (ticks, time) = (to.ticks - from.ticks, to.nanoseconds - from.nanoseconds);
    (u128::from(ticks) * 1_000_000_000 / u128::from(time.max(1))) as u64
}

/// Pairs a tick with its time: the closest of a few tries.
#[must_use]
pub fn read() -> Reading {
    let once = || {
        let (before, nanoseconds, after) = (ticks(), now(), ticks());
        (after.wrapping_sub(before), Reading { ticks: before + (after - before) / 2, nanoseconds })
    };
    let best = (0..5).map(|_| once()).min_by_key(|(width, _)| *width);
    best.map_or(Reading { ticks: 0, nanoseconds: 0 }, |(_, reading)| reading)
}

/// The first reading of the process.
pub fn first() -> Reading {
    static FIRST: OnceLock<Reading> = OnceLock::new();
    *FIRST.get_or_init(read)
}

/// A reading that is far enough from the first.
fn later() -> Reading {
    const APART: u64 = 2_000_000;
    let waited = now() - first().nanoseconds;
    if waited < APART {
        std::thread::sleep(Duration::from_nanos(APART - waited));
    }
    read()
}

impl Scale {
    /// The scale that goes through two readings, `a` before `b`.
    #[must_use]
    pub fn between(a: Reading, b: Reading) -> Scale {
        let (ticks, time) = (b.ticks.saturating_sub(a.ticks), b.nanoseconds.saturating_sub(a.nanoseconds));
        let step = if ticks == 0 { 1 << 32 } else { (u128::from(time) << 32) / u128::from(ticks) };
        Scale { from: a, step: u64::try_from(step).unwrap_or(u64::MAX) }
    }

    /// The time of a tick, in nanoseconds on CLOCK_MONOTONIC; before and after the two readings too.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        let span = |ticks: u64| ((u128::from(ticks) * u128::from(self.step)) >> 32) as u64;
        match ticks.checked_sub(self.from.ticks) {
            Some(after) => self.from.nanoseconds.saturating_add(span(after)),
            None => self.from.nanoseconds.saturating_sub(span(self.from.ticks - ticks)),
        }
    }
}

/// The time of a tick, in nanoseconds on CLOCK_MONOTONIC, as exactly as it is known now. Later calls are more exact: to
/// keep the times of many ticks in order, make one [`Scale`]. May take two milliseconds early in the process.
#[must_use]
pub fn to_nanoseconds(ticks: u64) -> u64 {
    Scale::between(first(), later()).nanoseconds(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
    }

    #[test]
    fn ticks_do_not_go_back() {
        let mut last = ticks();
        for _ in 0..10_000 {
            let next = ticks();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn a_scale_goes_through_its_readings_and_beyond() {
        let a = Reading { ticks: 1_000_000, nanoseconds: 5_000_000 };
        let b = Reading { ticks: 4_000_000, nanoseconds: 6_000_000 };
        let scale = Scale::between(a, b);
        for (ticks, time) in
            [(1_000_000, 5_000_000), (4_000_000, 6_000_000), (0, 4_666_667), (7_000_000, 7_000_000)]
        {
            assert!(scale.nanoseconds(ticks).abs_diff(time) <= 1, "{ticks}: {}", scale.nanoseconds(ticks));
        }
    }

    #[test]
    fn a_scale_of_two_equal_readings_counts_ticks_as_nanoseconds() {
        let a = Reading { ticks: 10, nanoseconds: 100 };
        assert_eq!(Scale::between(a, a).nanoseconds(13), 103);
    }

    #[test]
    fn times_of_ticks_lie_where_the_clock_was() {
        let (before, tick, after) = (now(), ticks(), now());
        let time = to_nanoseconds(tick);
        // Two milliseconds of measuring, each end to within microseconds if we are interrupted: a thousandth is ample.
        let slack = 1_000_000;
        assert!(time + slack > before && time < after + slack, "{before} {time} {after}");
    }

    #[test]
    fn the_source_has_a_rate() {
        let source = source();
        assert!(source.ticks_per_second >= 1_000_000, "{source:?}");
        assert_eq!(source.counter, source.name == imp::COUNTER.0);
    }
}
