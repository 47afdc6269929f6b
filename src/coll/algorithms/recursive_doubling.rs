//! Recursive doubling: in step k a rank exchanges with the one whose number differs from its own in bit k.

use crate::coll::kernel::append;
use crate::coll::selection::Case;
use crate::coll::shared_memory::Operands;
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

/// Gives every rank the reduction of the operands of ranks 0 to its own.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn scan<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    kernel: &K,
) -> Result<()> {
    let len = operands.len;
    let below = reduced_below(transport, operands.part(0, len), kernel).await?;
    operands.give_own(0..len);
    // SAFETY: the result is as long; the own operands have just been put there, and no others lie there.
    below.map_or(Ok(()), |below| kernel.reduce(&below, unsafe { operands.result(len) }))
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
    let below = reduced_below(transport, operands.part(0, operands.len), kernel).await?;
    below.into_iter().for_each(|below| operands.store_from(0, &below));
    Ok(())
}

/// Returns the reduction of the `own` of all ranks below the caller's; `None` at rank 0.
async fn reduced_below<T: Transport, K: ReductionKernel>(
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
