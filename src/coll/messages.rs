//! Collectives that combine. Contributions are combined in rank order wherever the operation does not commute, and every
//! rank that gets the same result computes it in the same association, so that floating point agrees to the bit.

use super::{Scratch, Transport};
use crate::error::Result;
use core::mem::swap;

/// An operation on packed elements. Buffers are cut only between elements.
pub trait ReductionKernel {
    /// Whether the order of the operands does not matter.
    fn commutes(&self) -> bool;
    /// `right[i] = left[i] op right[i]` for every element.
    ///
    /// # Errors
    /// Those of the operation.
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()>;
}

/// `acc = acc op above`, where `above` comes from higher ranks; `above` is left undefined.
fn append<K: ReductionKernel>(kernel: &K, acc: &mut Scratch, above: &mut Scratch) -> Result<()> {
    kernel.reduce(acc, above)?;
    swap(acc, above);
    Ok(())
}

/// The combination of everybody's `acc` goes to that of `root`; the others' is left undefined.
///
/// # Errors
/// Those of the transport and the operation.
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
    let mut incoming = Scratch::zeroed(acc.len());
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

/// Everybody's `acc` becomes the combination of all. Recursive doubling; ranks beyond a power of two hand theirs to a
/// neighbour first.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn allreduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    kernel: &K,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let active = 1 << size.ilog2();
    let extra = size - active;
    let mut incoming = Scratch::zeroed(acc.len());
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

/// Combines everybody's `all` and gives each rank its block: that of rank `r` ends at byte `ends[r]` and begins where that of
/// `r − 1` ends.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn reduce_scatter<T: Transport, K: ReductionKernel>(
    transport: &T,
    all: &[u8],
    ends: &[usize],
    kernel: &K,
) -> Result<Scratch> {
    let (rank, size) = (transport.rank(), transport.size());
    let block = |r: usize| &all[if r == 0 { 0 } else { ends[r - 1] }..ends[r]];
    let mut acc = Scratch::copy_of(block(rank));
    let mut above = Scratch::zeroed(acc.len());
    // Contributions come from rank − 1 downwards, then from the top: all below are prepended, all above are collected
    // apart, prepended to one another, and appended in the end.
    let mut some_above = false;
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        let mut incoming = Scratch::zeroed(acc.len());
        transport.exchange(to, block(to), from, &mut incoming).await?;
        if from < rank {
            kernel.reduce(&incoming, &mut acc)?;
        } else if some_above {
            kernel.reduce(&incoming, &mut above)?;
        } else {
            above = incoming;
            some_above = true;
        }
    }
    if some_above {
        append(kernel, &mut acc, &mut above)?;
    }
    Ok(acc)
}

/// `acc` becomes the combination of those of ranks 0 to the caller's.
///
/// # Errors
/// Those of the transport and the operation.
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

/// The combination of the `own` of all ranks below the caller's; none for rank 0.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn exscan<T: Transport, K: ReductionKernel>(
    transport: &T,
    own: &[u8],
    kernel: &K,
) -> Result<Option<Scratch>> {
    let (rank, size) = (transport.rank(), transport.size());
    let mut below: Option<Scratch> = None;
    // The ranks that differ from the caller's in the bits seen so far only.
    let mut block = Scratch::copy_of(own);
    let mut incoming = Scratch::zeroed(own.len());
    let mut bit = 1;
    while bit < size {
        let peer = rank ^ bit;
        if peer < size {
            transport.exchange(peer, &block, peer, &mut incoming).await?;
            if peer < rank {
                match &mut below {
                    Some(below) => kernel.reduce(&incoming, below)?,
                    None => below = Some(incoming.clone()),
                }
                kernel.reduce(&incoming, &mut block)?;
            } else {
                append(kernel, &mut block, &mut incoming)?;
            }
        }
        bit *= 2;
    }
    Ok(below)
}

#[cfg(test)]
mod tests {
    use super::super::{run, transport::threads};
    use super::*;

    /// An element is a pair (a, b) for the map x ↦ ax + b modulo 65521; the operation is composition: associative, and
    /// it commutes with hardly anything.
    struct Compose;
    const M: u64 = 65521;
    const UNIT: usize = 16;

    fn encode(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs.iter().flat_map(|&(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect()
    }
    fn decode(bytes: &[u8]) -> Vec<(u64, u64)> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        (0..bytes.len() / UNIT).map(|i| (word(i * UNIT), word(i * UNIT + 8))).collect()
    }
    fn compose(left: (u64, u64), right: (u64, u64)) -> (u64, u64) {
        (left.0 * right.0 % M, (left.0 * right.1 + left.1) % M)
    }
    impl ReductionKernel for Compose {
        fn commutes(&self) -> bool {
            false
        }
        fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
            let both = decode(left).into_iter().zip(decode(right));
            let result: Vec<_> = both.map(|(l, r)| compose(l, r)).collect();
            right.copy_from_slice(&encode(&result));
            Ok(())
        }
    }
    /// Wrapping addition of bytes.
    struct Add;
    impl ReductionKernel for Add {
        fn commutes(&self) -> bool {
            true
        }
        fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
            right.iter_mut().zip(left).for_each(|(r, l)| *r = r.wrapping_add(*l));
            Ok(())
        }
    }

    fn own(rank: usize, count: usize) -> Vec<(u64, u64)> {
        (0..count as u64).map(|i| (2 + rank as u64 + i, 3 * rank as u64 + 5 * i + 1)).collect()
    }
    /// The combination of ranks `from..to`, element by element.
    fn combined(from: usize, to: usize, count: usize) -> Vec<(u64, u64)> {
        let all: Vec<_> = (from..to).map(|rank| own(rank, count)).collect();
        (0..count).map(|i| all.iter().map(|list| list[i]).reduce(compose).unwrap()).collect()
    }
    fn buffer(rank: usize, count: usize) -> Scratch {
        Scratch::copy_of(&encode(&own(rank, count)))
    }

    #[test]
    fn a_reduction_keeps_rank_order_whatever_the_root() {
        for size in 1..=9 {
            for root in 0..size {
                threads::ranks(size, |transport| {
                    let mut acc = buffer(transport.rank(), 3);
                    run(reduce(transport, &mut acc, root, &Compose)).unwrap();
                    if transport.rank() == root {
                        assert_eq!(decode(&acc), combined(0, size, 3));
                    }
                });
            }
        }
    }

    #[test]
    fn a_commuting_reduction_ends_at_every_root() {
        for size in 1..=9 {
            for root in 0..size {
                threads::ranks(size, |transport| {
                    let mut acc = Scratch::copy_of(&[transport.rank() as u8, 1, 200]);
                    run(reduce(transport, &mut acc, root, &Add)).unwrap();
                    if transport.rank() == root {
                        let sum = (size * (size - 1) / 2) as u8;
                        assert_eq!(&*acc, &[sum, size as u8, (200 * size) as u8]);
                    }
                });
            }
        }
    }

    #[test]
    fn an_allreduce_gives_everybody_the_ordered_result() {
        for size in 1..=17 {
            threads::ranks(size, |transport| {
                let mut acc = buffer(transport.rank(), 2);
                run(allreduce(transport, &mut acc, &Compose)).unwrap();
                assert_eq!(decode(&acc), combined(0, size, 2), "{size} ranks");
            });
        }
    }

    #[test]
    fn a_reduce_scatter_gives_each_rank_its_ordered_block() {
        for size in 1..=9 {
            threads::ranks(size, |transport| {
                let counts: Vec<usize> = (0..size).map(|r| (r * 2) % 3).collect();
                let starts: Vec<usize> = (0..size).map(|r| counts[..r].iter().sum()).collect();
                let ends: Vec<usize> = (0..size).map(|r| (starts[r] + counts[r]) * UNIT).collect();
                let total = counts.iter().sum();
                let all = buffer(transport.rank(), total);
                let got = run(reduce_scatter(transport, &all, &ends, &Compose)).unwrap();
                let (start, count) = (starts[transport.rank()], counts[transport.rank()]);
                assert_eq!(decode(&got), combined(0, size, total)[start..start + count]);
            });
        }
    }

    #[test]
    fn scans_combine_the_ranks_below_in_order() {
        for size in 1..=17 {
            threads::ranks(size, |transport| {
                let rank = transport.rank();
                let mut acc = buffer(rank, 2);
                let below = run(exscan(transport, &acc, &Compose)).unwrap();
                assert_eq!(below.is_some(), rank > 0);
                if let Some(below) = below {
                    assert_eq!(decode(&below), combined(0, rank, 2));
                }
                run(scan(transport, &mut acc, &Compose)).unwrap();
                assert_eq!(decode(&acc), combined(0, rank + 1, 2), "rank {rank} of {size}");
            });
        }
    }
}
