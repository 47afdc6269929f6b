//! Binomial tree: ⌈log₂ n⌉ steps, in each of which the number of ranks that have the data doubles,
//! or that of partial results halves.

use crate::coll::kernel::append;
use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes every rank's `data` that of `root`.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    let size = transport.size();
    let position = (transport.rank() + size - root) % size;
    let rank_at = |position: usize| (position + root) % size;
    // The parent clears the lowest set bit of the position, the children set one below it.
    let lowest = if position == 0 { size.next_power_of_two() } else { position & position.wrapping_neg() };
    if position > 0 {
        transport.recv(rank_at(position - lowest), data).await?;
    }
    let mut bit = lowest / 2;
    while bit > 0 {
        if position + bit < size {
            transport.send(rank_at(position + bit), data).await?;
        }
        bit /= 2;
    }
    Ok(())
}

/// Reduces every rank's `acc` into that of `root`; the others' is left undefined.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn reduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    root: usize,
    kernel: &K,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    // A tree over rotated ranks breaks their order; then it ends at rank 0 and the result travels once more.
    let top = if kernel.commutes() { root } else { 0 };
    let position = (rank + size - top) % size;
    let rank_at = |position: usize| (position + top) % size;
    let mut incoming = Scratch::of(acc.len())?;
    let mut bit = 1;
    while bit < size && position & bit == 0 {
        if position + bit < size {
            transport.recv(rank_at(position + bit), &mut incoming).await?;
            append(kernel, acc, &mut incoming)?;
        }
        bit *= 2;
    }
    if position > 0 {
        transport.send(rank_at(position - bit), acc).await?;
    }
    if top != root {
        if rank == top {
            transport.send(root, acc).await?;
        } else if rank == root {
            transport.recv(top, acc).await?;
        }
    }
    Ok(())
}
