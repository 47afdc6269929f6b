//! Recursive doubling: in step k a rank exchanges with the one whose number differs from its own in bit k.

use crate::coll::kernel::append;
use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes every rank's `acc` the reduction of all. Ranks beyond a power of two hand theirs to a neighbour first.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn allreduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    kernel: &K,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let active = 1 << size.ilog2();
    let extra = size - active;
    let mut incoming = Scratch::of(acc.len())?;
    let in_pair = rank < 2 * extra;
    if in_pair && rank.is_multiple_of(2) {
        transport.send(rank + 1, acc).await?;
        return transport.recv(rank + 1, acc).await;
    }
    if in_pair {
        transport.recv(rank - 1, &mut incoming).await?;
        kernel.reduce(&incoming, acc)?;
    }
    let position = if in_pair { rank / 2 } else { rank - extra };
    let rank_at = |position: usize| if position < extra { 2 * position + 1 } else { position + extra };
    let mut bit = 1;
    while bit < active {
        let peer = rank_at(position ^ bit);
        transport.exchange(peer, acc, peer, &mut incoming).await?;
        if peer < rank {
            kernel.reduce(&incoming, acc)?
        } else {
            append(kernel, acc, &mut incoming)?
        }
        bit *= 2;
    }
    if in_pair {
        transport.send(rank - 1, acc).await?;
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
    if let Some(below) = exscan(transport, acc, kernel).await? {
        kernel.reduce(&below, acc)?;
    }
    Ok(())
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
    let mut below = Scratch::of(if rank > 0 { own.len() } else { 0 })?;
    let mut some_below = false;
    // The ranks that differ from the caller's in the bits seen so far only.
    let mut block = Scratch::copy_of(own)?;
    let mut incoming = Scratch::of(own.len())?;
    let mut bit = 1;
    while bit < size {
        let peer = rank ^ bit;
        if peer < size {
            transport.exchange(peer, &block, peer, &mut incoming).await?;
            if peer < rank {
                if some_below {
                    kernel.reduce(&incoming, &mut below)?;
                } else {
                    below.copy_from_slice(&incoming);
                    some_below = true;
                }
                kernel.reduce(&incoming, &mut block)?;
            } else {
                append(kernel, &mut block, &mut incoming)?;
            }
        }
        bit *= 2;
    }
    Ok(some_below.then_some(below))
}
