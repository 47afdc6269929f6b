//! Every algorithm, as it is selected by size and ranks, against arithmetic.

use super::*;
use crate::coll::transport::threads;
use crate::coll::{allgather, allgatherv, barrier, bcast, run};
use crate::sync::{AtomicUsize, Ordering};

/// Bytes from which a broadcast takes the chain.
const CHAIN: usize = 64 << 10;
/// Bytes up to which an allgather takes Bruck's algorithm.
const BRUCK: usize = 64 << 10;

/// Bytes from which an allreduce is a reduce-scatter and an allgather.
const HALVED: usize = 32 << 10;

/// Something that differs in every byte of every rank.
fn pattern(rank: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + rank * 31 + 1) as u8).collect()
}

#[test]
fn nobody_leaves_a_barrier_before_everybody_has_come() {
    for size in 1..=9 {
        let come = [AtomicUsize::new(0), AtomicUsize::new(0)];
        threads::ranks(size, |transport| {
            let come = &come[usize::from(transport.is_oversubscribed())];
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
            for len in [0, 1, 1000, CHAIN + 5] {
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
        for block in [0, 1, 100, BRUCK / 3] {
            threads::ranks(size, |transport| {
                let mut all = vec![0; block * size];
                all[transport.rank() * block..][..block].copy_from_slice(&pattern(transport.rank(), block));
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
                .flat_map(|(r, part)| if r == transport.rank() { part.clone() } else { vec![0; part.len()] })
                .collect();
            run(allgatherv(transport, &mut all, &ends)).unwrap();
            assert_eq!(all, parts.concat());
        });
    }
}

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
    fn unit(&self) -> usize {
        UNIT
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
    fn unit(&self) -> usize {
        1
    }
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
        right.iter_mut().zip(left).for_each(|(r, l)| *r = r.wrapping_add(*l));
        Ok(())
    }
}

fn operands(rank: usize, count: usize) -> Vec<(u64, u64)> {
    (0..count as u64).map(|i| (2 + rank as u64 + i, 3 * rank as u64 + 5 * i + 1)).collect()
}
/// The combination of ranks `from..to`, element by element.
fn combined(from: usize, to: usize, count: usize) -> Vec<(u64, u64)> {
    let all: Vec<_> = (from..to).map(|rank| operands(rank, count)).collect();
    (0..count).map(|i| all.iter().map(|list| list[i]).reduce(compose).unwrap()).collect()
}
fn buffer(rank: usize, count: usize) -> Scratch {
    Scratch::copy_of(&encode(&operands(rank, count))).unwrap()
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
                let mut acc = Scratch::copy_of(&[transport.rank() as u8, 1, 200]).unwrap();
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
    for (size, count) in (1..=17).map(|size| (size, 2)).chain((1..=5).map(|size| (size, HALVED / UNIT + 3))) {
        threads::ranks(size, |transport| {
            let mut acc = buffer(transport.rank(), count);
            run(allreduce(transport, &mut acc, &Compose)).unwrap();
            assert_eq!(decode(&acc), combined(0, size, count), "{size} ranks");
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
            let got = run(reduce_scatter(transport, &all, Blocks::EndingAt(&ends), &Compose)).unwrap();
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
            let own = buffer(rank, 2);
            for in_place in [false, true] {
                let mut result = buffer(if in_place { rank } else { 99 }, 2);
                let from = if in_place { result.as_ptr() } else { own.as_ptr() };
                // SAFETY: both have as many bytes, of this thread.
                let operands = unsafe { Operands::new(from, result.as_mut_ptr(), own.len(), UNIT) };
                run(exscan(transport, operands, &Compose)).unwrap();
                if rank > 0 {
                    assert_eq!(decode(&result), combined(0, rank, 2), "rank {rank} of {size}");
                }
                result.copy_from_slice(&own);
                run(scan(transport, operands, &Compose)).unwrap();
                assert_eq!(decode(&result), combined(0, rank + 1, 2), "rank {rank} of {size}");
            }
        });
    }
}
