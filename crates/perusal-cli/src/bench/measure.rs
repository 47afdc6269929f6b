//! How long something takes: in chunks, whose number rank 0 decides while the others follow.

use crate::mpi::MpiRank;
use std::time::{Duration, Instant};

/// Tag of rank 0's word to the others.
const CONTROL: i32 = 30_000;
const CHUNKS: usize = 15;
/// Times after which a chunk is looked at: it ends early where they have taken long.
const PART: u64 = 500;

/// Nanoseconds for one time: median, tenth and ninetieth of a hundred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Time {
    pub fn of(mut chunks: Vec<f64>) -> Self {
        chunks.sort_by(f64::total_cmp);
        let at = |share: f64| chunks[((chunks.len() - 1) as f64 * share).round() as usize];
        Self { median: at(0.5), low: at(0.1), high: at(0.9) }
    }

    /// The same, `value` of each: a rate turns low and high round.
    pub fn map(self, value: impl Fn(f64) -> f64) -> Self {
        let (low, high) = (value(self.low), value(self.high));
        Self { median: value(self.median), low: low.min(high), high: low.max(high) }
    }
}

/// Measures `body(n)`, which does something `n` times, on the first `ranks` ranks at once, for about `budget`. Rank 0
/// gets the time of once; the others `None`, those that do not take part at once.
pub fn measure(rank: &MpiRank, ranks: usize, budget: Duration, mut body: impl FnMut(u64)) -> Option<Time> {
    if rank.rank >= ranks {
        return None;
    }
    if rank.rank > 0 {
        loop {
            let mut word = [0; 8];
            rank.receive(&mut word, 0, CONTROL);
            match u64::from_le_bytes(word) {
                0 => return None,
                n => body(n),
            }
        }
    }
    let say = |n: u64| (1..ranks).for_each(|other| rank.send(&n.to_le_bytes(), other, CONTROL));
    let time = alone(budget, |n| {
        say(n);
        body(n);
    });
    say(0);
    Some(time)
}

/// The same on one rank, by itself.
///
/// Where other programs come and take the processors, one time takes thousands of times as long as when `n` was chosen:
/// chunks then end early, and there are fewer of them.
pub fn alone(budget: Duration, mut body: impl FnMut(u64)) -> Time {
    let mut timed = |n: u64| {
        let start = Instant::now();
        body(n);
        start.elapsed()
    };
    let chunk = budget / CHUNKS as u32;
    let (mut n, mut took) = (1, timed(1));
    // What is made at first use is made here.
    while took < chunk / 2 {
        let more = chunk.as_nanos() / took.as_nanos().max(1);
        n = n * u64::try_from(more.min(100)).unwrap_or(100) + 1;
        took = timed(n);
    }
    let began = Instant::now();
    let mut chunks = Vec::new();
    while chunks.is_empty() || chunks.len() < CHUNKS && began.elapsed() < 2 * budget {
        let (mut times, mut took) = (0, Duration::ZERO);
        while times < n && took < 4 * chunk {
            let part = PART.min(n - times);
            took += timed(part);
            times += part;
        }
        chunks.push(took.as_nanos() as f64 / times as f64);
    }
    Time::of(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_that_of_once_whatever_the_number_of_times() {
        let mut times = 0;
        let time = alone(Duration::from_millis(30), |n| {
            times += n;
            std::thread::sleep(Duration::from_micros(100) * u32::try_from(n).unwrap());
        });
        assert!(times > 1);
        assert!(time.low >= 100_000.0 && time.low <= time.median && time.median <= time.high, "{time:?}");
    }

    #[test]
    fn a_machine_that_becomes_slow_ends_a_measurement_early() {
        const BUDGET: Duration = Duration::from_millis(3);
        let (mut is_slow, mut times) = (false, 0);
        alone(BUDGET, |n| {
            if is_slow {
                times += n;
                std::thread::sleep(BUDGET / 20 * u32::try_from(n).unwrap());
            } else if n > 10 * PART {
                // So many are chosen.
                std::thread::sleep(BUDGET);
                is_slow = true;
            }
        });
        // One part takes longer than the whole measurement may.
        assert!(times <= PART, "{times} times");
    }

    #[test]
    fn a_rate_is_low_where_the_time_is_high() {
        let time = Time { median: 2.0, low: 1.0, high: 4.0 };
        assert_eq!(time.map(|time| 1.0 / time), Time { median: 0.5, low: 0.25, high: 1.0 });
    }
}
