//! Bruck's algorithm: ⌈log₂ n⌉ steps, in each of which the number of blocks that a rank knows doubles (Bruck et al.
//! 1997).

use super::Blocks;
use crate::coll::Transport;
use crate::coll::selection::Case;
use crate::error::{Error, Result};

/// Returns whether the algorithm can perform `case`: blocks are moved as a whole, so they have one length.
pub const fn serves(case: &Case) -> bool {
    case.equal_blocks
}

/// Fills `all`, which has a block for each rank.
///
/// # Errors
/// Those of the transport; [`Error::Intern`] for blocks of different lengths.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8], blocks: Blocks<'_>) -> Result<()> {
    let Blocks::Equal(block) = blocks else {
        return Err(Error::Intern("Bruck's allgather was selected for blocks of different lengths".into()));
    };
    let (rank, size) = (transport.rank(), transport.size());
    // Seen from here, blocks rank, rank + 1, … are known; each step doubles how many.
    all.rotate_left(rank * block);
    let mut known = 1;
    while known < size {
        let step = known.min(size - known);
        let (have, room) = all.split_at_mut(known * block);
        let (to, from) = ((rank + size - known) % size, (rank + known) % size);
        transport.exchange(to, &have[..step * block], from, &mut room[..step * block]).await?;
        known += step;
    }
    all.rotate_right(rank * block);
    Ok(())
}
