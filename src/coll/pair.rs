//! Reductions of two ranks: one message, or one each way, received where the result belongs. The caller's operands are
//! copied only where the result must not lie over them meanwhile, or they must be the right ones.
//!
//! `false`, of any function: there are not two ranks, or somebody has asked for an algorithm, and nothing has happened.

use super::shared_memory::Operands;
use super::{ReductionKernel, Scratch, Transport};
use crate::error::Result;
use crate::events::Collective;
use crate::variables::algorithms::AUTO;
use core::ops::Range;

/// Returns whether `operation` of `ranks` ranks is performed here if no team serves it; `requested` says what its
/// control variable asks for.
pub(super) const fn is_pair(operation: Collective, ranks: usize, requested: u64) -> bool {
    let reduces = matches!(operation, Collective::Reduce | Collective::Allreduce | Collective::ReduceScatter);
    reduces && ranks == 2 && requested == AUTO
}

fn serves<T: Transport>(transport: &T, operation: Collective) -> bool {
    is_pair(operation, transport.size(), transport.requested(operation))
}

/// Reduces the operands of both into the result of `root`.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn reduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    root: usize,
    kernel: &K,
) -> Result<bool> {
    if !serves(transport, Collective::Reduce) {
        return Ok(false);
    }
    if transport.rank() == root {
        let (other, all) = (1 - root, 0..operands.len);
        receive_and_reduce(transport, operands, other, all, None, Order::of(kernel), kernel).await?;
    } else {
        transport.send(root, operands.part(0, operands.len)).await?;
    }
    Ok(true)
}

/// Reduces the operands of both into the result of both, which has the same bits.
///
/// # Errors
/// Those of the transport and the kernel.
pub(super) async fn allreduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    kernel: &K,
) -> Result<bool> {
    if !serves(transport, Collective::Allreduce) {
        return Ok(false);
    }
    let (other, all) = (1 - transport.rank(), 0..operands.len);
    receive_and_reduce(transport, operands, other, all.clone(), Some(all), Order::OfRanks, kernel).await?;
    Ok(true)
}

/// Gives rank r the bytes `range(r)` of the reduction of both, in an `out` that is as long.
///
/// # Errors
/// Those of the transport and the kernel.
pub(super) async fn reduce_scatter<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    range: impl Fn(usize) -> Range<usize>,
    kernel: &K,
) -> Result<bool> {
    if !serves(transport, Collective::ReduceScatter) {
        return Ok(false);
    }
    let other = 1 - transport.rank();
    let (mine, theirs) = (range(transport.rank()), range(other));
    receive_and_reduce(transport, operands, other, mine, Some(theirs), Order::of(kernel), kernel).await?;
    Ok(true)
}

/// Whose operands are the left ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The lower rank's.
    OfRanks,
    /// Anybody's.
    Any,
}

impl Order {
    /// Of a result that one rank computes.
    pub fn of<K: ReductionKernel>(kernel: &K) -> Self {
        if kernel.commutes() { Self::Any } else { Self::OfRanks }
    }
}

/// Receives the operands of rank `other` for the caller's result, sends it its own (the bytes `theirs`), where it waits
/// for them, and reduces the bytes `mine` of both into `out`, which is as long.
pub(super) async fn receive_and_reduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    other: usize,
    mine: Range<usize>,
    theirs: Option<Range<usize>>,
    order: Order,
    kernel: &K,
) -> Result<()> {
    let (bytes, is_above) = (mine.len(), other > transport.rank());
    let given = theirs.map(|theirs| operands.part(theirs.start, theirs.len()));
    let receive = async |room: &mut [u8]| match given {
        None => transport.recv(other, room).await,
        Some(given) => transport.exchange(other, given, other, room).await,
    };
    if (is_above || order == Order::Any) && operands.is_apart(bytes) {
        // SAFETY: the result is as long, and no operand lies there.
        let result = unsafe { operands.result(bytes) };
        receive(result).await?;
        return kernel.reduce(operands.part(mine.start, bytes), result);
    }
    let mut received = Scratch::of(bytes)?;
    receive(&mut received).await?;
    if !is_above || order == Order::Any {
        operands.give_own(mine);
        // SAFETY: the result is as long; the own operands have just been put there, and no others lie there.
        let result = unsafe { operands.result(bytes) };
        return kernel.reduce(&received, result);
    }
    kernel.reduce(operands.part(mine.start, bytes), &mut received)?;
    operands.store_from(0, &received);
    Ok(())
}
