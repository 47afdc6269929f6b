//! The two ranks that measure. They send messages back and forth and change one control variable after the other meanwhile. Rank 0
//! prints a line for each time: what was measured, a number, and nanoseconds one way.

use perusal::internals::arch::clock::now;
use perusal::{Communicator, World};
use std::time::{Duration, Instant};

/// Measurement is measured.
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

/// Sizes at which copy engines are compared, in bytes.
pub const SIZES: [usize; 7] = [32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Sizes at which eager messages, eager fragments and rendezvous are compared.
pub const EAGER: [usize; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];
/// Wait strategies for two ranks on one CPU: microseconds of polling and number of yields.
pub const STRATEGIES: [(u64, u64); 8] = [(0, 0), (0, 1), (0, 3), (0, 10), (2, 0), (2, 3), (2, 10), (2, 30)];
/// Engines as the control variable `copy_engine` numbers them.
pub const ENGINES: [(&str, u64); 3] = [("chunks", 1), ("read", 2), ("halves", 3)];

/// Time for one measurement.
const BUDGET: Duration = Duration::from_millis(40);
const BATCHES: u32 = 8;
/// Number of late messages, and by how much they are late: longer than a rank polls whose `spin_us` is 0.
const LATE: usize = 100;
const DELAY: Duration = Duration::from_micros(300);

/// Measures.
pub fn main(what: Measurement) -> Result<(), String> {
    perusal::run(|world| match what {
        Measurement::Copies => copies(world),
        Measurement::Waits => waits(world),
        Measurement::Oversubscribed => oversubscribed(world),
    })
    .map_err(|error| error.to_string())
}

fn report(world: &World, what: &str, number: u64, time: Option<f64>) {
    if let (0, Some(time)) = (world.rank(), time) {
        println!("{what} {number} {time:.1}");
    }
}

fn copies(world: &World) -> perusal::Result<()> {
    let mut buffer = vec![1_u8; SIZES[SIZES.len() - 1]];
    world.set_control("eager_limit", 0)?;
    world.set_control("train_limit", 0)?;
    for bytes in SIZES {
        for (name, engine) in ENGINES {
            world.set_control("copy_engine", engine)?;
            let time = pingpong(world, &mut buffer[..bytes])?;
            report(world, name, bytes as u64, time);
        }
    }
    world.set_control("copy_engine", 0)?;
    for bytes in EAGER {
        for (name, eager, fragments) in
            [("rendezvous", 0, 0), ("fragments", 0, bytes as u64), ("eager", bytes as u64, 0)]
        {
            // A ring may be too small to send messages of this size like this.
            let possible =
                world.set_control("eager_limit", eager).and(world.set_control("train_limit", fragments));
            if possible.is_ok() {
                let time = pingpong(world, &mut buffer[..bytes])?;
                report(world, name, bytes as u64, time);
            }
        }
    }
    Ok(())
}

fn waits(world: &World) -> perusal::Result<()> {
    world.set_control("yields", 0)?;
    for spin in [1000, 0] {
        world.set_control("spin_us", spin)?;
        let time = late(world)?;
        report(world, "spin", spin, time);
    }
    Ok(())
}

/// Returns the median time, in nanoseconds, that a message takes to a rank 0 that has waited for it; `None` at rank 1.
fn late(world: &Communicator) -> perusal::Result<Option<f64>> {
    let mut times: Vec<u64> = Vec::with_capacity(LATE);
    for _ in 0..LATE {
        if world.rank() == 0 {
            world.send(&[0_u64], 1, 2)?;
            let mut sent = [0_u64];
            world.recv_into(&mut sent, 1, 2)?;
            times.push(now().saturating_sub(sent[0]));
        } else {
            world.recv_into(&mut [0_u64], 0, 2)?;
            let until = Instant::now() + DELAY;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            world.send(&[now()], 0, 2)?;
        }
    }
    times.sort_unstable();
    Ok(times.get(LATE / 2).map(|time| *time as f64))
}

fn oversubscribed(world: &World) -> perusal::Result<()> {
    let mut byte = [0_u8; 8];
    for (strategy, (spin, yields)) in STRATEGIES.into_iter().enumerate() {
        world.set_control("spin_us", spin)?;
        world.set_control("yields", yields)?;
        let time = pingpong(world, &mut byte)?;
        report(world, "oversubscribed", strategy as u64, time);
    }
    Ok(())
}

/// Returns the shortest time of a few batches, one way, in nanoseconds; `None` at rank 1.
fn pingpong(world: &Communicator, buffer: &mut [u8]) -> perusal::Result<Option<f64>> {
    // As many rounds as fit; both must know how many.
    let mut rounds = [3_u64];
    let once = batch(world, buffer, rounds[0])?;
    if world.rank() == 0 {
        let fit = BUDGET.as_secs_f64() / f64::from(BATCHES) / once.max(1e-7) / 2.0;
        rounds[0] = (fit as u64).clamp(2, 20_000);
    }
    world.bcast(&mut rounds, 0)?;
    let (mut best, began) = (f64::INFINITY, Instant::now());
    for _ in 0..BATCHES {
        best = best.min(batch(world, buffer, rounds[0])?);
        // On a machine that is busy with something else a few batches must do; rank 0 says when.
        let mut enough = [u8::from(began.elapsed() > 3 * BUDGET)];
        world.bcast(&mut enough, 0)?;
        if enough[0] == 1 {
            break;
        }
    }
    Ok((world.rank() == 0).then_some(best * 1e9))
}

/// Returns seconds one way.
fn batch(world: &Communicator, buffer: &mut [u8], rounds: u64) -> perusal::Result<f64> {
    let peer = 1 - world.rank();
    let began = Instant::now();
    for _ in 0..rounds {
        if world.rank() == 0 {
            world.send(buffer, peer, 1)?;
            world.recv_into(buffer, peer, 1)?;
        } else {
            world.recv_into(buffer, peer, 1)?;
            world.send(buffer, peer, 1)?;
        }
    }
    Ok(began.elapsed().as_secs_f64() / (2 * rounds) as f64)
}
