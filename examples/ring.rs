//! A token travels around a ring of ranks, and every rank adds its number to it.
//!
//! ```sh
//! cargo run --example ring                                          # four ranks, which are threads
//! dist/bin/perusal run -n 4 target/debug/examples/ring              # four ranks, which are processes
//! ```

use perusal::{Reduction, Result, World};

/// Sends the token around; every rank returns what it carried when it came home to rank 0.
pub fn ring(world: &World) -> Result<usize> {
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut token = [0];
    if rank == 0 {
        // Nonblocking, for a ring of one: a rank that sends to itself must be able to receive.
        let sending = world.isend(vec![0], next, 0)?;
        world.recv_into(&mut token, previous, 0)?;
        sending.wait()?;
    } else {
        world.recv_into(&mut token, previous, 0)?;
        world.send(&[token[0] + rank], next, 0)?;
        token = [0];
    }
    let mut total = [0];
    world.allreduce(Reduction::Sum, &token, &mut total)?;
    println!("rank {rank} of {size}: the token carried {}", total[0]);
    Ok(total[0])
}

#[allow(dead_code, reason = "the tests take only the ring")]
fn main() -> Result<()> {
    let launched = perusal::is_launched();
    if launched { perusal::run(ring).map(drop) } else { perusal::run_threads(4, ring).map(drop) }
}
