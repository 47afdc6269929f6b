//! What packing and reducing cost beside a loop written by hand for the same layout: `cargo bench --bench datatype`.
//!
//! - whole: one call packs everything; pieces: calls of 8 KiB each, as large messages travel.
//! - hand: the loop that a C programmer would write; copy: as many bytes, contiguous.

use perusal::abi;
use perusal::datatype::Datatype;
use perusal::datatype::op::Op;
use std::hint::black_box;
use std::time::Instant;

const SAMPLES: usize = 41;
const PIECE: usize = 8192;
/// Bytes of data in each layout: it stays in the second-level cache, so that the loops are seen and not the memory.
const DATA: usize = 1 << 18;

/// The median of the nanoseconds that `step` takes.
fn time(mut step: impl FnMut()) -> f64 {
    step();
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            step();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[SAMPLES / 2]
}

/// `count` elements of `ty` in a buffer of `span` bytes; `hand` packs the same bytes.
fn layout(name: &str, ty: &Datatype, count: usize, span: usize, hand: impl Fn(&[u8], &mut [u8])) {
    let buffer: Vec<u8> = (0..span).map(|i| (i * 7) as u8).collect();
    let bytes = ty.size() * count;
    let (mut out, mut expected) = (vec![0u8; bytes], vec![0u8; bytes]);
    hand(&buffer, &mut expected);
    // SAFETY: every layout below lies within its `span`.
    let pack = |position: usize, out: &mut [u8]| unsafe { ty.pack(count, buffer.as_ptr(), position, out) };
    assert_eq!(pack(0, &mut out), bytes);
    assert_eq!(out, expected, "{name}: both pack the same");

    let by_hand = time(|| hand(black_box(&buffer), black_box(&mut expected)));
    let whole = time(|| {
        pack(0, black_box(&mut out));
    });
    let pieces = time(|| {
        let mut position = 0;
        for piece in black_box(&mut out).chunks_mut(PIECE) {
            position += pack(position, piece);
        }
    });
    let copy = time(|| black_box(&mut out).copy_from_slice(black_box(&buffer[..bytes])));
    println!(
        "{name:<34} {:>7.2} GB/s   whole/hand {:>5.2}   pieces/hand {:>5.2}   hand/copy {:>5.2}",
        bytes as f64 / whole,
        whole / by_hand,
        pieces / by_hand,
        by_hand / copy
    );
}

/// Blocks of `block` bytes, `stride` bytes apart.
fn strided<const BLOCK: usize, const STRIDE: usize>(name: &str) {
    let byte = Datatype::predefined(abi::MPI_BYTE).expect("predefined");
    let count = DATA / BLOCK;
    let ty = Datatype::hvector(count, BLOCK, STRIDE as isize, &byte).expect("a vector");
    layout(name, &ty, 1, count * STRIDE, |from, to| {
        for (from, to) in from.as_chunks::<STRIDE>().0.iter().zip(to.as_chunks_mut::<BLOCK>().0) {
            to.copy_from_slice(&from[..BLOCK]);
        }
    });
}

fn scattered() {
    let int = Datatype::predefined(abi::MPI_INT).expect("predefined");
    let count = DATA / 4;
    // A stride that no two neighbours share, so that it stays a table.
    let at: Vec<isize> = (0..count as isize).map(|i| 3 * i + i * i % 2 + i % 3 / 2).collect();
    let ty = Datatype::indexed_block(1, &at, &int).expect("an index");
    layout("one int at each of a list", &ty, 1, 4 * 3 * count + 16, |from, to| {
        for (to, at) in to.as_chunks_mut::<4>().0.iter_mut().zip(&at) {
            to.copy_from_slice(&from[4 * *at as usize..][..4]);
        }
    });
}

fn structures() {
    let part = |handle| Datatype::predefined(handle).expect("predefined");
    let parts = [part(abi::MPI_DOUBLE), part(abi::MPI_CHAR), part(abi::MPI_INT)];
    let ty = Datatype::structure(&[1, 1, 1], &[0, 8, 12], &parts).expect("a struct");
    let count = DATA / 13;
    layout("struct { double; char; int; }", &ty, count, 16 * count, |from, to| {
        for (from, to) in from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<13>().0) {
            to[..9].copy_from_slice(&from[..9]);
            to[9..].copy_from_slice(&from[12..]);
        }
    });
}

fn reductions() {
    let (left, mut right) = (vec![1.5f64; DATA / 8], vec![0.5f64; DATA / 8]);
    let ty = Datatype::predefined(abi::MPI_DOUBLE).expect("predefined");
    let n = left.len();
    for (name, handle) in [("MPI_SUM", abi::MPI_SUM), ("MPI_MAX", abi::MPI_MAX)] {
        let op = Op::predefined(handle).expect("predefined");
        let ours = time(|| {
            let (from, to) = (black_box(&left).as_ptr().cast(), black_box(&mut right).as_mut_ptr().cast());
            // SAFETY: both are `n` doubles.
            unsafe { op.apply(from, to, n, &ty, abi::MPI_DOUBLE) }.expect("it takes doubles");
        });
        let hand = time(|| {
            let pairs = black_box(&mut right).iter_mut().zip(black_box(&left));
            pairs.for_each(|(to, from)| {
                *to = if handle == abi::MPI_SUM { *from + *to } else { from.max(*to) }
            });
        });
        println!("{name} of doubles {:>29.2} GB/s   ours/hand {:>5.2}", 8.0 * n as f64 / ours, ours / hand);
    }
}

fn main() {
    strided::<8, 512>("a column: 8 bytes of 512");
    strided::<8, 16>("every second double");
    strided::<12, 16>("12 bytes of 16");
    strided::<20, 32>("20 bytes of 32");
    strided::<1024, 4096>("a row: 1024 bytes of 4096");
    scattered();
    structures();
    reductions();
}
