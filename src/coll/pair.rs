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
    let reduces = matches!(
        operation,
        Collective::Reduce
            | Collective::Allreduce
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::Exscan
    );
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
        receive_and_reduce(transport, operands, 0..operands.len, None, Order::of(kernel), kernel).await?;
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
    let all = 0..operands.len;
    receive_and_reduce(transport, operands, all.clone(), Some(all), Order::OfRanks, kernel).await?;
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
    let (mine, theirs) = (range(transport.rank()), range(1 - transport.rank()));
    receive_and_reduce(transport, operands, mine, Some(theirs), Order::of(kernel), kernel).await?;
    Ok(true)
}

/// A scan, or an exclusive one (`inclusive` is false): then rank 0 gets nothing.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn scan<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    inclusive: bool,
    kernel: &K,
) -> Result<bool> {
    if !serves(transport, if inclusive { Collective::Scan } else { Collective::Exscan }) {
        return Ok(false);
    }
    let len = operands.len;
    if transport.rank() == 0 {
        transport.send(1, operands.part(0, len)).await?;
        if inclusive {
            operands.give_own(0..len);
        }
    } else if inclusive {
        receive_and_reduce(transport, operands, 0..len, None, Order::of(kernel), kernel).await?;
    } else {
        // SAFETY: the result is as long as the operands; those that lie there are not used.
        transport.recv(0, unsafe { operands.result(len) }).await?;
    }
    Ok(true)
}

/// Whose operands are the left ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Rank 0's.
    OfRanks,
    /// Anybody's.
    Any,
}

impl Order {
    /// Of a result that one rank computes.
    fn of<K: ReductionKernel>(kernel: &K) -> Self {
        if kernel.commutes() { Self::Any } else { Self::OfRanks }
    }
}

/// Receives the other rank's operands for the caller's result, sends it its own (the bytes `theirs`), where it waits
/// for them, and reduces the bytes `mine` of both into `out`, which is as long.
async fn receive_and_reduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    operands: Operands,
    mine: Range<usize>,
    theirs: Option<Range<usize>>,
    order: Order,
    kernel: &K,
) -> Result<()> {
    let (other, bytes) = (1 - transport.rank(), mine.len());
    let given = theirs.map(|theirs| operands.part(theirs.start, theirs.len()));
    let receive = async |room: &mut [u8]| match given {
        None => transport.recv(other, room).await,
        Some(given) => transport.exchange(other, given, other, room).await,
    };
    if (other == 1 || order == Order::Any) && operands.is_apart(bytes) {
        // SAFETY: the result is as long, and no operand lies there.
        let result = unsafe { operands.result(bytes) };
        receive(result).await?;
        return kernel.reduce(operands.part(mine.start, bytes), result);
    }
    let mut received = Scratch::of(bytes)?;
    receive(&mut received).await?;
    if other == 0 || order == Order::Any {
        operands.give_own(mine);
        // SAFETY: the result is as long; the own operands have just been put there, and no others lie there.
        let result = unsafe { operands.result(bytes) };
        return kernel.reduce(&received, result);
    }
    kernel.reduce(operands.part(mine.start, bytes), &mut received)?;
    operands.store_from(0, &received);
    Ok(())
}
