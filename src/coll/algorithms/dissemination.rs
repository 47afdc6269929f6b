//! Dissemination: ⌈log₂ n⌉ steps, in each of which a rank signals one twice as far away (Hensgen, Finkel, Manber 1988).

use crate::coll::Transport;
use crate::coll::selection::Case;
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Returns when all ranks have called it.
///
/// # Errors
/// Those of the transport.
pub async fn barrier<T: Transport>(transport: &T) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let mut distance = 1;
    while distance < size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        transport.exchange(to, &[], from, &mut []).await?;
        distance *= 2;
    }
    Ok(())
}
