//! Pairwise exchange: n − 1 steps, in each of which every rank sends to one rank and receives from one.

use super::Blocks;
use crate::coll::buffer::{InputBuffer, OutputBuffer, copy};
use crate::coll::kernel::append;
use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes piece `r` of `recv` the piece of rank `r` that is for the caller; in place, `recv` holds what is sent first.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if a piece is too small.
pub async fn alltoall<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> InputBuffer<'a>>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let Some(send) = send else {
        // In place, a pair swaps: at step k, those whose ranks add up to k.
        for step in 0..size {
            let peer = (step + size - rank) % size;
            if peer != rank {
                let (mine, mut theirs) = (recv(peer).as_input().copied()?, recv(peer).landing()?);
                transport.exchange(peer, &mine, peer, &mut theirs).await?;
                theirs.land()?;
            }
        }
        return Ok(());
    };
    copy(send(rank), &recv(rank))?;
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        let (mine, mut theirs) = (send(to).packed()?, recv(from).landing()?);
        transport.exchange(to, &mine, from, &mut theirs).await?;
        theirs.land()?;
    }
    Ok(())
}

/// Reduces every rank's `all` and returns the caller's block of the result.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn reduce_scatter<T: Transport, K: ReductionKernel>(
    transport: &T,
    all: &[u8],
    blocks: Blocks<'_>,
    kernel: &K,
) -> Result<Scratch> {
    let (rank, size) = (transport.rank(), transport.size());
    let block = |r: usize| &all[blocks.range(r)];
    let mut acc = Scratch::copy_of(block(rank))?;
    let mut above = Scratch::of(acc.len())?;
    let mut incoming = Scratch::of(acc.len())?;
    // Contributions come from rank − 1 downwards, then from the top: all below are prepended, all above are collected
    // apart, prepended to one another, and appended in the end.
    let mut some_above = false;
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        transport.exchange(to, block(to), from, &mut incoming).await?;
        if from < rank {
            kernel.reduce(&incoming, &mut acc)?;
        } else if some_above {
            kernel.reduce(&incoming, &mut above)?;
        } else {
            core::mem::swap(&mut above, &mut incoming);
            some_above = true;
        }
    }
    if some_above {
        append(kernel, &mut acc, &mut above)?;
    }
    Ok(acc)
}
