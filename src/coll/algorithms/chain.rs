//! Chain: ranks stand in a row, and each passes on to the next what it has from the one before.

use crate::coll::pair::{Order, receive_and_reduce};
use crate::coll::selection::Case;
use crate::coll::shared_memory::Operands;
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

/// Gives every rank the reduction of the operands of ranks 0 to its own.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn scan<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    kernel: &K,
) -> Result<()> {
    let (rank, len) = (transport.rank(), operands.len);
    let next = Some(rank + 1).filter(|next| *next < transport.size());
    if rank > 0 {
        receive_and_reduce(transport, operands, rank - 1, 0..len, None, Order::of(kernel), kernel).await?;
        let Some(next) = next else { return Ok(()) };
        // SAFETY: the result is as long as the operands, and has just been put there.
        return transport.send(next, unsafe { operands.result(len) }).await;
    }
    if let Some(next) = next {
        transport.send(next, operands.part(0, len)).await?;
    }
    operands.give_own(0..len);
    Ok(())
}

/// Gives every rank but 0 the reduction of the operands of the ranks below it.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn exscan<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    kernel: &K,
) -> Result<()> {
    let (rank, len) = (transport.rank(), operands.len);
    let next = Some(rank + 1).filter(|next| *next < transport.size());
    if rank == 0 {
        let Some(next) = next else { return Ok(()) };
        return transport.send(next, operands.part(0, len)).await;
    }
    // In place, the result comes to where the caller's own lie.
    let own = next.map(|_| Scratch::copy_of(operands.part(0, len))).transpose()?;
    // SAFETY: the result is as long as the operands; those that lie there are not used any more.
    let below = unsafe { operands.result(len) };
    transport.recv(rank - 1, below).await?;
    let (Some(next), Some(mut acc)) = (next, own) else { return Ok(()) };
    kernel.reduce(below, &mut acc)?;
    transport.send(next, &acc).await
}
