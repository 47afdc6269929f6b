//! The two ranks that measure. They send messages back and forth by the library that programs link, and change one
//! control variable after the other meanwhile. Rank 0 prints a line for each time: what was measured, a number, and
//! nanoseconds one way.

use crate::mpi::MpiRank;
use perusal::internals::arch::clock::now;
use perusal::internals::variables::Variable;
use std::time::{Duration, Instant};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Measurement {
    /// Copy engines by size, and the eager limit.
    Copies,
    /// Polling against sleeping, where each rank has a CPU.
    Waits,
    /// Polling, yielding and sleeping, where two ranks share one.
    Oversubscribed,
}

impl Measurement {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Waits => "waits",
            Self::Oversubscribed => "oversubscribed",
        }
    }
}

/// Sizes at which copy engines are compared, in bytes. What is shorter is sent in one record.
pub const SIZES: [usize; 8] =
    [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Sizes at which eager messages, eager fragments and rendezvous are compared.
pub const EAGER: [usize; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];
/// Wait strategies for two ranks on one CPU: microseconds of polling and number of yields. The last one is the default.
pub const STRATEGIES: [(u64, u64); 8] = [(0, 0), (0, 3), (0, 10), (0, 30), (2, 0), (2, 3), (2, 30), (1, 200)];
/// Engines as the control variable `copy_engine` numbers them.
pub const ENGINES: [(&str, u64); 3] = [("chunks", 1), ("read", 2), ("halves", 3)];

/// Time for one measurement.
const BUDGET: Duration = Duration::from_millis(20);
const BATCHES: u32 = 8;
/// Number of late messages, and by how much they are late: longer than a rank polls whose `spin_us` is 0.
const LATE: usize = 100;
const DELAY: Duration = Duration::from_micros(300);

/// Tags: messages that are timed, messages that are late, what rank 0 decides.
const TIMED: i32 = 1;
const DELAYED: i32 = 2;
const DECISION: i32 = 3;

/// Measures.
pub fn main(what: Measurement) -> Result<(), String> {
    let rank = MpiRank::init()?;
    match what {
        Measurement::Copies => copies(&rank),
        Measurement::Waits => waits(&rank),
        Measurement::Oversubscribed => oversubscribed(&rank),
    }?;
    rank.finalize();
    Ok(())
}

fn report(rank: &MpiRank, what: &str, number: u64, time: Option<f64>) {
    if let (0, Some(time)) = (rank.rank, time) {
        println!("{what} {number} {time:.1}");
    }
}

/// Changes a control variable; false if it does not take this value.
fn change(rank: &MpiRank, name: &str, value: u64) -> bool {
    let variable = Variable::named(name).expect("the table has every name below");
    rank.set_control(variable, value)
}

fn set(rank: &MpiRank, name: &str, value: u64) -> Result<(), String> {
    if change(rank, name, value) { Ok(()) } else { Err(format!("{name} cannot be {value}")) }
}

fn copies(rank: &MpiRank) -> Result<(), String> {
    let mut buffer = vec![1_u8; SIZES[SIZES.len() - 1]];
    set(rank, "eager_limit", 0)?;
    set(rank, "train_limit", 0)?;
    for bytes in SIZES {
        for (name, engine) in ENGINES {
            set(rank, "copy_engine", engine)?;
            let time = pingpong(rank, &mut buffer[..bytes]);
            report(rank, name, bytes as u64, time);
        }
    }
    set(rank, "copy_engine", 0)?;
    for bytes in EAGER {
        for (name, eager, fragments) in
            [("rendezvous", 0, 0), ("fragments", 0, bytes as u64), ("eager", bytes as u64, 0)]
        {
            // A ring may be too small to send messages of this size like this.
            if change(rank, "eager_limit", eager) && change(rank, "train_limit", fragments) {
                let time = pingpong(rank, &mut buffer[..bytes]);
                report(rank, name, bytes as u64, time);
            }
        }
    }
    Ok(())
}

fn waits(rank: &MpiRank) -> Result<(), String> {
    set(rank, "yields", 0)?;
    for spin in [1000, 0] {
        set(rank, "spin_us", spin)?;
        let time = late(rank);
        report(rank, "spin", spin, time);
    }
    Ok(())
}

/// Returns the median time, in nanoseconds, that a message takes to a rank 0 that has waited for it; `None` at rank 1.
fn late(rank: &MpiRank) -> Option<f64> {
    let mut times: Vec<u64> = Vec::with_capacity(LATE);
    for _ in 0..LATE {
        let mut word = [0; 8];
        if rank.rank == 0 {
            rank.send(&word, 1, DELAYED);
            rank.receive(&mut word, 1, DELAYED);
            times.push(now().saturating_sub(u64::from_ne_bytes(word)));
        } else {
            rank.receive(&mut word, 0, DELAYED);
            let until = Instant::now() + DELAY;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            rank.send(&now().to_ne_bytes(), 0, DELAYED);
        }
    }
    times.sort_unstable();
    times.get(LATE / 2).map(|time| *time as f64)
}

fn oversubscribed(rank: &MpiRank) -> Result<(), String> {
    let mut bytes = [0_u8; 8];
    for (strategy, (spin, yields)) in STRATEGIES.into_iter().enumerate() {
        set(rank, "spin_us", spin)?;
        set(rank, "yields", yields)?;
        let time = pingpong(rank, &mut bytes);
        report(rank, "oversubscribed", strategy as u64, time);
    }
    Ok(())
}

/// Returns the shortest time of a few batches, one way, in nanoseconds; `None` at rank 1.
fn pingpong(rank: &MpiRank, buffer: &mut [u8]) -> Option<f64> {
    // As many rounds as fit; both must know how many.
    let once = batch(rank, buffer, 3);
    let fit = BUDGET.as_secs_f64() / f64::from(BATCHES) / once.max(1e-7) / 2.0;
    let rounds = decided(rank, (fit as u64).clamp(2, 20_000));
    let (mut best, began) = (f64::INFINITY, Instant::now());
    for _ in 0..BATCHES {
        best = best.min(batch(rank, buffer, rounds));
        // On a machine that is busy with something else a few batches must do.
        if decided(rank, u64::from(began.elapsed() > 3 * BUDGET)) == 1 {
            break;
        }
    }
    (rank.rank == 0).then_some(best * 1e9)
}

/// Returns rank 0's `value`, at both ranks.
fn decided(rank: &MpiRank, value: u64) -> u64 {
    let mut word = value.to_ne_bytes();
    if rank.rank == 0 {
        rank.send(&word, 1, DECISION);
    } else {
        rank.receive(&mut word, 0, DECISION);
    }
    u64::from_ne_bytes(word)
}

/// Returns seconds one way.
fn batch(rank: &MpiRank, buffer: &mut [u8], rounds: u64) -> f64 {
    let peer = 1 - rank.rank;
    let began = Instant::now();
    for _ in 0..rounds {
        if rank.rank == 0 {
            rank.send(buffer, peer, TIMED);
            rank.receive(buffer, peer, TIMED);
        } else {
            rank.receive(buffer, peer, TIMED);
            rank.send(buffer, peer, TIMED);
        }
    }
    began.elapsed().as_secs_f64() / (2 * rounds) as f64
}
