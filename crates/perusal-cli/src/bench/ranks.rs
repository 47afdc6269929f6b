//! The ranks of the benchmark: all run the same measurements in the same order, rank 0 keeps what comes out.

use super::figures::{self, Figure, MachineInfo};
use super::limits;
use super::measure::{Time, measure};
use crate::mpi::MpiRank;
use perusal::internals::shm::cpus;
use std::time::Duration;

const TAG: i32 = 7;
const LAST: i32 = 20_000;
const WINDOW: usize = 64;
/// What the pieces of a bandwidth window take together, so that a window of large ones is no larger than the caches.
const ROOM: usize = 16 << 20;
/// Shares of the time: the weights below add up to about this.
const SHARES: f64 = 40.0;

/// A run of the benchmark, as one rank has it.
struct RankBench {
    rank: MpiRank,
    share: Duration,
    figures: Vec<Figure>,
    /// Nanoseconds a line each way.
    line: f64,
}

/// Measures for about `seconds`.
///
/// # Errors
/// The library cannot be loaded.
pub fn main(seconds: f64, json: bool) -> Result<(), String> {
    // A rank that is bound is asked too late what the job may use.
    let usable = cpus::online().min(cpus::quota().map_or(usize::MAX, |quota| quota as usize));
    let rank = MpiRank::init()?;
    let mut bench =
        RankBench { rank, share: Duration::from_secs_f64(seconds / SHARES), figures: vec![], line: f64::NAN };
    bench.lines();
    bench.latency();
    bench.bandwidth();
    bench.rate();
    bench.posted();
    bench.unexpected();
    bench.collectives();
    if bench.rank.rank == 0 {
        let machine = MachineInfo { ranks: bench.rank.size, usable, processor: processor() };
        let write = if json { figures::json } else { figures::table };
        print!("{}", write(&machine, &bench.figures));
    }
    bench.rank.finalize();
    Ok(())
}

/// The processor's name, as Linux has it.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.to_owned())
}

impl RankBench {
    fn is_first(&self) -> bool {
        self.rank.rank == 0
    }

    fn keep(
        &mut self,
        what: &'static str,
        case: String,
        unit: &'static str,
        time: Option<Time>,
        limit: Option<(f64, &'static str)>,
    ) {
        if let Some(Time { median, low, high }) = time {
            self.figures.push(Figure { what, case, unit, median, low, high, limit });
        }
    }

    /// What rank 0 measures by itself while the others wait in the barrier.
    fn by_itself(&mut self, limit: impl FnOnce(Duration) -> Time) -> Option<Time> {
        let time = self.is_first().then(|| limit(self.share));
        self.rank.barrier();
        time
    }

    fn lines(&mut self) {
        let mut second = [0; 8];
        if self.rank.rank == 1 {
            self.rank.send(&(cpus::affinity()[0] as u64).to_le_bytes(), 0, TAG);
        } else if self.is_first() {
            self.rank.receive(&mut second, 1, TAG);
        }
        let own = cpus::affinity();
        let other = u64::from_le_bytes(second) as usize;
        // Ranks that are not bound say the same processor; any other will do.
        let two = [own[0], if other == own[0] { own[own.len() - 1] } else { other }];
        for (case, each_way) in [("a line each way", true), ("one shared word", false)] {
            let time = self.by_itself(|share| limits::line(two, each_way, share));
            if each_way {
                self.line = time.map_or(f64::NAN, |time| time.median);
            }
            self.keep("bare cache line, one way", case.into(), "ns", time, None);
        }
    }

    fn latency(&mut self) {
        let mut buffer = vec![0; 1 << 20];
        for size in [0, 8, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20] {
            let data = &mut buffer[..size];
            let rank = &self.rank;
            let time = measure(rank, 2, self.share, |n| {
                for _ in 0..n {
                    if rank.rank == 0 {
                        rank.send(data, 1, TAG);
                    }
                    rank.receive(data, 1 - rank.rank, TAG);
                    if rank.rank == 1 {
                        rank.send(data, 0, TAG);
                    }
                }
            });
            let limit = (size <= 64).then_some((self.line, "a line each way"));
            self.keep(
                "latency, one way",
                bytes(size),
                "ns",
                time.map(|time| time.map(|trip| trip / 2.0)),
                limit,
            );
        }
        self.rank.barrier();
    }

    /// Windows of messages of rank 0, and an answer of rank 1 to each window. Time of a window.
    fn windows(&self, size: usize, pieces: usize) -> Option<Time> {
        let rank = &self.rank;
        let mut buffer = vec![1; if rank.rank < 2 { size * pieces } else { 0 }];
        let mut requests = [0; WINDOW];
        measure(rank, 2, self.share, |n| {
            for _ in 0..n {
                if rank.rank == 0 {
                    rank.send_window(&buffer, size, 1, TAG, &mut requests);
                    rank.receive(&mut [], 1, TAG);
                } else {
                    rank.receive_window(&mut buffer, size, 0, TAG, &mut requests);
                    rank.send(&[], 0, TAG);
                }
            }
        })
    }

    fn bandwidth(&mut self) {
        for size in [4 << 10, 64 << 10, 1 << 20, 4 << 20] {
            let pieces = (ROOM / size).min(WINDOW);
            let copied = self.by_itself(|share| limits::copy(size, size * pieces, share));
            let time = self.windows(size, pieces);
            // Bytes a nanosecond are gigabytes a second.
            let rate = time.map(|time| time.map(|window| (size * pieces) as f64 / window));
            let limit = copied.map(|time| (size as f64 / time.median, "memcpy, one core"));
            self.keep("bandwidth", bytes(size), "GB/s", rate, limit);
        }
        self.rank.barrier();
    }

    fn rate(&mut self) {
        let time = self.windows(8, WINDOW);
        let rate = time.map(|time| time.map(|window| WINDOW as f64 / window * 1e3));
        self.keep("message rate", "8 bytes, windows of 64".into(), "M/s", rate, None);
        self.rank.barrier();
    }

    /// A round trip whose ping passes `depth - 1` receives that wait for something else.
    fn posted(&mut self) {
        for depth in [1_usize, 100, 10_000] {
            let rank = &self.rank;
            let mut places = vec![0; depth - 1];
            let posted = (rank.rank == 1).then(|| rank.post(&mut places, 0));
            rank.barrier();
            let mut word = [0; 8];
            let time = measure(rank, 2, self.share, |n| {
                for _ in 0..n {
                    if rank.rank == 0 {
                        rank.send(&word, 1, LAST);
                        rank.receive(&mut word, 1, LAST);
                    } else {
                        rank.receive_any(&mut word, LAST);
                        rank.send(&word, 0, LAST);
                    }
                }
            });
            if rank.rank == 0 {
                (0..depth as i32 - 1).for_each(|tag| rank.send(&word, 1, tag));
            }
            if let Some(posted) = posted {
                posted.end(rank);
            }
            self.keep("round trip past posted receives", format!("depth {depth}"), "ns", time, None);
        }
        self.rank.barrier();
    }

    /// A receive whose message is the youngest of `depth` that nobody has asked for.
    fn unexpected(&mut self) {
        for depth in [1_usize, 100, 10_000] {
            let rank = &self.rank;
            let (rounds, most): (usize, usize) =
                if depth > 1000 { (4, depth / 10) } else { (200, depth.div_ceil(10)) };
            let mut times = Vec::new();
            for _ in 0..if rank.rank < 2 { rounds } else { 0 } {
                let mut word = [0; 8];
                if rank.rank == 0 {
                    // The last one tells that all others are there.
                    (0..depth as i32).chain([LAST]).for_each(|tag| rank.send(&word, 1, tag));
                    rank.receive(&mut word, 1, LAST);
                    continue;
                }
                rank.receive(&mut word, 0, LAST);
                let start = std::time::Instant::now();
                (depth - most..depth).rev().for_each(|tag| rank.receive(&mut word, 0, tag as i32));
                times.push(start.elapsed().as_nanos() as f64 / most as f64);
                (0..depth - most).for_each(|tag| rank.receive(&mut word, 0, tag as i32));
                rank.send(&word, 0, LAST);
            }
            let time = self.told_by_the_second(times);
            self.keep(
                "receive from the unexpected queue",
                format!("depth {depth}, youngest"),
                "ns",
                time,
                None,
            );
        }
        self.rank.barrier();
    }

    /// Rank 1 measured; rank 0 keeps the figures.
    fn told_by_the_second(&self, times: Vec<f64>) -> Option<Time> {
        let mut words = [0; 24];
        match self.rank.rank {
            0 => {
                self.rank.receive(&mut words, 1, TAG);
                let at = |i: usize| {
                    f64::from_bits(u64::from_le_bytes(words[8 * i..][..8].try_into().expect("eight bytes")))
                };
                Some(Time { median: at(0), low: at(1), high: at(2) })
            }
            1 => {
                let time = Time::of(times);
                for (word, value) in
                    words.as_chunks_mut().0.iter_mut().zip([time.median, time.low, time.high])
                {
                    *word = value.to_bits().to_le_bytes();
                }
                self.rank.send(&words, 0, TAG);
                None
            }
            _ => None,
        }
    }

    fn collectives(&mut self) {
        let size = self.rank.size;
        let limit = self.by_itself(|share| limits::flags(size as u64, share));
        let limit = limit.map(|time| (time.median, "bare flags"));
        let rank = &self.rank;
        let barrier = measure(rank, size, self.share, |n| (0..n).for_each(|_| rank.barrier()));
        let reduce = measure(rank, size, self.share, |n| (0..n).for_each(|_| _ = rank.sum(1.0)));
        let ranks = format!("{size} ranks");
        self.keep("barrier", ranks.clone(), "ns", barrier, limit);
        self.keep("allreduce of 8 bytes", ranks, "ns", reduce, limit);
    }
}

fn bytes(size: usize) -> String {
    match size {
        0..1024 => format!("{size} bytes"),
        1024..0x10_0000 => format!("{} KiB", size >> 10),
        _ => format!("{} MiB", size >> 20),
    }
}
