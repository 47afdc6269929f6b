//! A histogram that is spread over all ranks: each counts its own numbers by atomic operations on the memory of the
//! rank that has the bin, and no rank waits for another one.
//!
//!     cargo run --example histogram             # four threads
//!     perusal run -n 4 target/debug/examples/histogram

use perusal::{Communicator, Reduction, Result};

const BINS_PER_RANK: usize = 16;
const NUMBERS: u64 = 100_000;

fn histogram(world: &Communicator) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let bins = world.window::<u64>(BINS_PER_RANK)?;
    let all = bins.lock_all()?;
    let mut random = rank as u64 + 1;
    for _ in 0..NUMBERS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bin = (random >> 33) as usize % (BINS_PER_RANK * size);
        all.accumulate(Reduction::Sum, &[1], bin / BINS_PER_RANK, bin % BINS_PER_RANK)?;
    }
    drop(all);
    world.barrier()?;
    if rank == 0 {
        let mut counted = 0;
        for owner in 0..size {
            let bins = bins.lock(owner)?;
            println!("rank {owner}: {bins:?}", bins = &bins[..]);
            counted += bins.iter().sum::<u64>();
        }
        assert_eq!(counted, NUMBERS * size as u64);
    }
    bins.free()
}

fn main() -> Result<()> {
    if perusal::is_launched() {
        perusal::run(|world| histogram(world))
    } else {
        perusal::run_threads(4, |world| histogram(world)).map(drop)
    }
}
