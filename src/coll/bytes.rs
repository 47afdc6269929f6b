//! Collectives on bytes that nobody looks into.

use super::Transport;
use super::selection::TeamOperation;
use crate::error::Result;
use crate::events::Algorithm;

/// From this many bytes on, a broadcast goes along a chain in pieces instead of down a tree: every link is busy at once.
const CHAIN_FROM: usize = 64 * 1024;
/// Bytes of a piece of a chained broadcast.
const PIECE: usize = 64 * 1024;
/// Up to this many bytes in all, an allgather takes ⌈log₂ n⌉ steps with growing blocks, above it n − 1 steps with one block.
const DOUBLING_UP_TO: usize = 64 * 1024;

/// Nobody leaves before everybody has come. ⌈log₂ n⌉ rounds, in each of which a rank signals one twice as far away.
///
/// # Errors
/// Those of the transport.
pub async fn barrier<T: Transport>(transport: &T) -> Result<()> {
    if let Some(mut team) = transport.team(TeamOperation::Barrier) {
        return team.barrier();
    }
    let (rank, size) = (transport.rank(), transport.size());
    let mut distance = 1;
    while distance < size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        transport.exchange(to, &[], from, &mut []).await?;
        distance *= 2;
    }
    Ok(())
}

/// How `bytes` bytes go to `size` ranks.
pub(super) fn bcast_by(bytes: usize, size: usize) -> Algorithm {
    if bytes >= CHAIN_FROM && size > 2 { Algorithm::Chain } else { Algorithm::Tree }
}

/// Everybody's `data` becomes that of `root`. All give the same length.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    if let Some(mut team) = transport.team(TeamOperation::Bcast)
        && team.bcast(data, root)?
    {
        return Ok(());
    }
    bcast_by_messages(transport, data, root).await
}

/// The same without shared memory.
///
/// # Errors
/// Those of the transport.
pub(super) async fn bcast_by_messages<T: Transport>(
    transport: &T,
    data: &mut [u8],
    root: usize,
) -> Result<()> {
    let size = transport.size();
    let position = (transport.rank() + size - root) % size;
    let rank_at = |position: usize| (position + root) % size;
    if bcast_by(data.len(), size) == Algorithm::Chain {
        for piece in data.chunks_mut(PIECE) {
            if position > 0 {
                transport.recv(rank_at(position - 1), piece).await?;
            }
            if position + 1 < size {
                transport.send(rank_at(position + 1), piece).await?;
            }
        }
        return Ok(());
    }
    // Binomial: the parent clears the lowest set bit of the position, the children set one below it.
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

/// `all` consists of a block for each rank, of equal length; the caller's own is filled in, and afterwards all are.
///
/// # Errors
/// Those of the transport.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8]) -> Result<()> {
    if let Some(mut team) = transport.team(TeamOperation::Allgather)
        && team.allgather(all)?
    {
        return Ok(());
    }
    let (rank, size) = (transport.rank(), transport.size());
    let block = all.len() / size;
    if all.len() > DOUBLING_UP_TO || size <= 2 {
        let ends: Vec<usize> = (1..=size).map(|r| r * block).collect();
        return allgatherv(transport, all, &ends).await;
    }
    // Bruck: seen from here, blocks rank, rank + 1, … are known; each step doubles how many.
    all.rotate_left(rank * block);
    let mut known = 1;
    while known < size {
        let step = known.min(size - known);
        let (have, room) = all.split_at_mut(known * block);
        let (to, from) = ((rank + size - known) % size, (rank + known) % size);
        transport.exchange(to, &have[..step * block], from, &mut room[..step * block]).await?;
        known += step;
    }
    all.rotate_right(rank * block);
    Ok(())
}

/// As [`allgather`], the block of rank `r` ending at byte `ends[r]` and beginning where that of `r − 1` ends.
///
/// # Errors
/// Those of the transport.
pub async fn allgatherv<T: Transport>(transport: &T, all: &mut [u8], ends: &[usize]) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for step in 0..size - 1 {
        // Blocks travel up the ring: the one that came in the step before is passed on.
        let (out, into) = ((rank + size - step) % size, (rank + size - step - 1) % size);
        let (bytes, room) = two_blocks(all, ends, out, into);
        transport.exchange(next, bytes, previous, room).await?;
    }
    Ok(())
}

/// Block `read` for reading and block `write` for writing, which are different.
fn two_blocks<'a>(all: &'a mut [u8], ends: &[usize], read: usize, write: usize) -> (&'a [u8], &'a mut [u8]) {
    let range = |r: usize| (if r == 0 { 0 } else { ends[r - 1] }, ends[r]);
    let ((read_from, read_to), (write_from, write_to)) = (range(read), range(write));
    if read < write {
        let (low, high) = all.split_at_mut(write_from);
        (&low[read_from..read_to], &mut high[..write_to - write_from])
    } else {
        let (low, high) = all.split_at_mut(read_from);
        (&high[..read_to - read_from], &mut low[write_from..write_to])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{run, transport::threads};
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    /// Something that differs in every byte of every rank.
    fn pattern(rank: usize, len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + rank * 31 + 1) as u8).collect()
    }

    #[test]
    fn nobody_leaves_a_barrier_before_everybody_has_come() {
        for size in 1..=9 {
            let come = AtomicUsize::new(0);
            threads::ranks(size, |transport| {
                come.fetch_add(1, Ordering::SeqCst);
                run(barrier(transport)).unwrap();
                assert_eq!(come.load(Ordering::SeqCst), size);
            });
        }
    }

    #[test]
    fn a_broadcast_reaches_everybody_from_every_root() {
        for size in 1..=9 {
            for root in 0..size {
                for len in [0, 1, 1000, CHAIN_FROM + 5] {
                    threads::ranks(size, |transport| {
                        let mut data = pattern(transport.rank(), len);
                        run(bcast(transport, &mut data, root)).unwrap();
                        assert_eq!(data, pattern(root, len));
                    });
                }
            }
        }
    }

    #[test]
    fn an_allgather_collects_all_blocks_in_rank_order() {
        for size in 1..=9 {
            for block in [0, 1, 100, DOUBLING_UP_TO / 3] {
                threads::ranks(size, |transport| {
                    let mut all = vec![0; block * size];
                    all[transport.rank() * block..][..block]
                        .copy_from_slice(&pattern(transport.rank(), block));
                    run(allgather(transport, &mut all)).unwrap();
                    let expected: Vec<u8> = (0..size).flat_map(|r| pattern(r, block)).collect();
                    assert_eq!(all, expected, "{size} ranks, {block} bytes");
                });
            }
        }
    }

    #[test]
    fn an_allgather_takes_blocks_of_different_lengths() {
        for size in 1..=7 {
            threads::ranks(size, |transport| {
                let parts: Vec<Vec<u8>> = (0..size).map(|r| pattern(r, (r * 13) % 5)).collect();
                let ends: Vec<usize> = (0..size).map(|r| parts[..=r].iter().map(Vec::len).sum()).collect();
                let mut all: Vec<u8> = parts
                    .iter()
                    .enumerate()
                    .flat_map(
                        |(r, part)| if r == transport.rank() { part.clone() } else { vec![0; part.len()] },
                    )
                    .collect();
                run(allgatherv(transport, &mut all, &ends)).unwrap();
                assert_eq!(all, parts.concat());
            });
        }
    }
}
