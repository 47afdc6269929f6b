//! Algorithms of collective operations over messages, each in a file named as the literature names it.
//!
//! A file has `serves`, which says whether the algorithm can perform a [`Case`], and a function for each operation that
//! it performs, named as the operation. [`crate::variables::algorithms`] has a table of algorithms for each operation,
//! from which the functions here call the one that [`selection`](super::selection) selects.
//!
//! To add an algorithm: its file (declared below) and a row of the operation's table.

pub mod binomial_tree;
pub mod bruck;
pub mod chain;
pub mod dissemination;
pub mod linear;
pub mod pairwise;
pub mod recursive_doubling;
pub mod reduce_scatter_allgather;
pub mod ring;
#[cfg(test)]
mod tests;

use super::buffer::{InputBuffer, OutputBuffer};
use super::selection::{Case, by_messages};
use super::shared_memory::Operands;
use super::{ReductionKernel, Scratch, Transport};
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::variables::algorithms::algorithm_table;
use core::ops::Range;

/// Where the blocks of an allgather or reduce-scatter lie in a buffer, in rank order without gaps.
#[derive(Debug, Clone, Copy)]
pub enum Blocks<'a> {
    /// Each has this many bytes.
    Equal(usize),
    /// That of rank `r` ends before byte `ends[r]`.
    EndingAt(&'a [usize]),
}

impl Blocks<'_> {
    /// The bytes of rank `r`'s block.
    #[must_use]
    pub fn range(&self, r: usize) -> Range<usize> {
        match self {
            Self::Equal(block) => r * block..(r + 1) * block,
            Self::EndingAt(ends) => (if r == 0 { 0 } else { ends[r - 1] })..ends[r],
        }
    }

    /// The bytes of the longest block.
    #[must_use]
    pub fn longest(&self) -> usize {
        match self {
            Self::Equal(block) => *block,
            Self::EndingAt(ends) => (0..ends.len()).map(|r| self.range(r).len()).max().unwrap_or_default(),
        }
    }
}

/// Calls the algorithm with the value `$selected`, one of the table's.
macro_rules! perform {
    (($operation:ident, $selected:expr, $arguments:tt)
     $($algorithm:ident $value:literal $label:ident $bytes:tt $ranks:tt $when:ident;)*) => {
        match $selected {
            $($value => $algorithm::$operation $arguments .await,)*
            _ => Err(Error::Intern(concat!("no algorithm performs this ", stringify!($operation)).into())),
        }
    };
}

fn select<T: Transport>(transport: &T, operation: Collective, case: &Case) -> u64 {
    let case = Case { oversubscribed: transport.is_oversubscribed(), ..*case };
    by_messages(operation, &case, transport.requested(operation)).map_or(0, |(value, _)| value)
}

/// Returns when all ranks have called it.
///
/// # Errors
/// Those of the transport.
pub async fn barrier<T: Transport>(transport: &T) -> Result<()> {
    let selected = select(transport, Collective::Barrier, &Case::new(0, transport.size()));
    algorithm_table!(barrier perform (barrier, selected, (transport)))
}

/// Makes every rank's `data` that of `root`. All give the same length.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    let selected = select(transport, Collective::Bcast, &Case::new(data.len(), transport.size()));
    algorithm_table!(bcast perform (bcast, selected, (transport, data, root)))
}

/// Gathers at `root`: piece `r` becomes what rank `r` sends; `send` may be `None` there.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if a piece is too small.
pub async fn gather<'a, T: Transport>(
    transport: &T,
    send: Option<InputBuffer<'_>>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
    root: usize,
) -> Result<()> {
    let case = Case { equal_blocks: false, ..Case::new(0, transport.size()) };
    let selected = select(transport, Collective::Gather, &case);
    algorithm_table!(gather perform (gather, selected, (transport, send, pieces, root)))
}

/// Scatters from `root`: `recv` becomes the caller's piece there; it may be `None` at the root.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if there is not enough room.
pub async fn scatter<'a, T: Transport>(
    transport: &T,
    pieces: impl Fn(usize) -> InputBuffer<'a>,
    recv: Option<OutputBuffer<'_>>,
    root: usize,
) -> Result<()> {
    let case = Case { equal_blocks: false, ..Case::new(0, transport.size()) };
    let selected = select(transport, Collective::Scatter, &case);
    algorithm_table!(scatter perform (scatter, selected, (transport, pieces, recv, root)))
}

/// Fills `all`, which consists of a block for each rank, of which the caller's own is filled in.
///
/// # Errors
/// Those of the transport.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8], blocks: Blocks<'_>) -> Result<()> {
    let equal_blocks = matches!(blocks, Blocks::Equal(_));
    let case = Case { equal_blocks, ..Case::new(all.len(), transport.size()) };
    let selected = select(transport, Collective::Allgather, &case);
    algorithm_table!(allgather perform (allgather, selected, (transport, all, blocks)))
}

/// Makes piece `r` of `recv` the piece of rank `r` that is for the caller; in place, `recv` holds what is sent first.
/// `block` is the bytes of every piece of every rank, if they are equal.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if a piece is too small.
pub async fn alltoall<'a, 'b, T: Transport>(
    transport: &T,
    block: Option<usize>,
    send: Option<impl Fn(usize) -> InputBuffer<'a>>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    let case = Case { equal_blocks: block.is_some(), ..Case::new(block.unwrap_or(0), transport.size()) };
    let selected = select(transport, Collective::Alltoall, &case);
    algorithm_table!(alltoall perform (alltoall, selected, (transport, send, recv)))
}

fn reduction<T: Transport, K: ReductionKernel>(transport: &T, bytes: usize, kernel: &K) -> Case {
    Case { commutes: kernel.commutes(), ..Case::new(bytes, transport.size()) }
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
    let selected = select(transport, Collective::Reduce, &reduction(transport, acc.len(), kernel));
    algorithm_table!(reduce perform (reduce, selected, (transport, acc, root, kernel)))
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
    let selected = select(transport, Collective::Allreduce, &reduction(transport, acc.len(), kernel));
    algorithm_table!(allreduce perform (allreduce, selected, (transport, acc, kernel)))
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
    let equal_blocks = matches!(blocks, Blocks::Equal(_));
    let case = Case { equal_blocks, ..reduction(transport, all.len(), kernel) };
    let selected = select(transport, Collective::ReduceScatter, &case);
    algorithm_table!(reduce_scatter perform (reduce_scatter, selected, (transport, all, blocks, kernel)))
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
    let selected = select(transport, Collective::Scan, &reduction(transport, operands.len, kernel));
    algorithm_table!(scan perform (scan, selected, (transport, operands, kernel)))
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
    let selected = select(transport, Collective::Exscan, &reduction(transport, operands.len, kernel));
    algorithm_table!(exscan perform (exscan, selected, (transport, operands, kernel)))
}
