//! A reduce-scatter of equal parts, then an allgather: each rank reduces one part only (Rabenseifner 2004).

use super::Blocks;
use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes every rank's `acc` the reduction of all.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn allreduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    kernel: &K,
) -> Result<()> {
    let (rank, size, unit) = (transport.rank(), transport.size(), kernel.unit());
    let count = acc.len() / unit;
    let ends: Vec<usize> = (1..=size).map(|r| (count / size * r + (count % size).min(r)) * unit).collect();
    let blocks = Blocks::EndingAt(&ends);
    let own = super::reduce_scatter(transport, acc, blocks, kernel).await?;
    acc[blocks.range(rank)].copy_from_slice(&own);
    super::allgather(transport, acc, blocks).await
}
