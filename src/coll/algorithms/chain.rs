//! Chain: ranks stand in a row, and each passes on to the next what it has from the one before.

use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::error::Result;

/// Bytes of a piece.
const PIECE: usize = 64 * 1024;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes every rank's `data` that of `root`. It goes in pieces, so that every link is busy at once.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    let size = transport.size();
    let position = (transport.rank() + size - root) % size;
    let rank_at = |position: usize| (position + root) % size;
    for piece in data.chunks_mut(PIECE) {
        if position > 0 {
            transport.recv(rank_at(position - 1), piece).await?;
        }
        if position + 1 < size {
            transport.send(rank_at(position + 1), piece).await?;
        }
    }
    Ok(())
}

/// Makes `acc` the reduction of those of ranks 0 to the caller's.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn scan<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    kernel: &K,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    if rank > 0 {
        let mut below = Scratch::of(acc.len())?;
        transport.recv(rank - 1, &mut below).await?;
        kernel.reduce(&below, acc)?;
    }
    if rank + 1 < size { transport.send(rank + 1, acc).await } else { Ok(()) }
}

/// Returns the reduction of the `own` of all ranks below the caller's; `None` at rank 0.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn exscan<T: Transport, K: ReductionKernel>(
    transport: &T,
    own: &[u8],
    kernel: &K,
) -> Result<Option<Scratch>> {
    let (rank, size) = (transport.rank(), transport.size());
    let is_last = rank + 1 == size;
    if rank == 0 {
        if !is_last {
            transport.send(1, own).await?;
        }
        return Ok(None);
    }
    let mut below = Scratch::of(own.len())?;
    transport.recv(rank - 1, &mut below).await?;
    if !is_last {
        let mut acc = Scratch::copy_of(own)?;
        kernel.reduce(&below, &mut acc)?;
        transport.send(rank + 1, &acc).await?;
    }
    Ok(Some(below))
}
