//! Ring: n − 1 steps, in each of which every rank passes the block that came last on to the next rank.

use super::Blocks;
use crate::coll::Transport;
use crate::coll::selection::Case;
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Fills `all`, which has a block for each rank.
///
/// # Errors
/// Those of the transport.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8], blocks: Blocks<'_>) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for step in 0..size - 1 {
        let (out, into) = ((rank + size - step) % size, (rank + size - step - 1) % size);
        let (bytes, room) = two_blocks(all, blocks, out, into);
        transport.exchange(next, bytes, previous, room).await?;
    }
    Ok(())
}

/// Returns block `read` for reading and block `write` for writing, which are different.
fn two_blocks<'a>(
    all: &'a mut [u8],
    blocks: Blocks<'_>,
    read: usize,
    write: usize,
) -> (&'a [u8], &'a mut [u8]) {
    let (from, to) = (blocks.range(read), blocks.range(write));
    if read < write {
        let (low, high) = all.split_at_mut(to.start);
        (&low[from], &mut high[..to.len()])
    } else {
        let (low, high) = all.split_at_mut(from.start);
        (&high[..from.len()], &mut low[to])
    }
}
