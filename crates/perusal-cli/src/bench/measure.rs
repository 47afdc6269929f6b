//! How long something takes: in chunks, whose number rank 0 decides while the others follow.

use crate::mpi::MpiRank;
use std::time::{Duration, Instant};

/// Tag of rank 0's word to the others.
const CONTROL: i32 = 30_000;
const CHUNKS: u32 = 15;

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
pub fn alone(budget: Duration, mut body: impl FnMut(u64)) -> Time {
    let mut timed = |n: u64| {
        let start = Instant::now();
        body(n);
        start.elapsed()
    };
    let chunk = budget / CHUNKS;
    let (mut n, mut took) = (1, timed(1));
    // What is made at first use is made here.
    while took < chunk / 2 {
        let more = chunk.as_nanos() / took.as_nanos().max(1);
        n = n * u64::try_from(more.min(100)).unwrap_or(100) + 1;
        took = timed(n);
    }
    Time::of((0..CHUNKS).map(|_| timed(n).as_nanos() as f64 / n as f64).collect())
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
        assert!(times > u64::from(CHUNKS));
        assert!(time.low >= 100_000.0 && time.low <= time.median && time.median <= time.high, "{time:?}");
    }

    #[test]
    fn a_rate_is_low_where_the_time_is_high() {
        let time = Time { median: 2.0, low: 1.0, high: 4.0 };
        assert_eq!(time.map(|time| 1.0 / time), Time { median: 0.5, low: 0.25, high: 1.0 });
    }
}
