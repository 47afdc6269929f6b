//! What packing and reducing cost beside a loop written by hand for the same layout, and beside memcpy:
//! `cargo bench --bench datatype [-- NAME]`.
//!
//! For each layout, of as many bytes of data each:
//!
//! - `whole`: one call packs everything; `pieces`: calls of 8 KiB each, as large messages travel;
//! - `by_hand`: the loop that a C programmer would write; `memcpy`: as many bytes, contiguous.

use divan::Bencher;
use divan::counter::BytesCount;
use perusal::internals::abi;
use perusal::internals::datatype::Datatype;
use perusal::internals::datatype::op::Op;
use std::fmt;
use std::hint::black_box;

const PIECE: usize = 8192;
/// Bytes of data in each layout: it stays in the second-level cache, so that the loops are seen and not the memory.
const DATA: usize = 1 << 18;

type ByHand = Box<dyn Fn(&[u8], &mut [u8])>;

/// `count` elements of a type, somewhere in a buffer of `span` bytes; `hand` packs the same bytes.
struct Layout {
    ty: Datatype,
    count: usize,
    span: usize,
    hand: ByHand,
}

#[derive(Clone, Copy)]
enum Shape {
    Contiguous,
    Column,
    EverySecondDouble,
    Bytes12Of16,
    Bytes20Of32,
    Row,
    Indexed,
    Struct,
}

const SHAPES: [Shape; 8] = [
    Shape::Contiguous,
    Shape::Column,
    Shape::EverySecondDouble,
    Shape::Bytes12Of16,
    Shape::Bytes20Of32,
    Shape::Row,
    Shape::Indexed,
    Shape::Struct,
];

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contiguous => "contiguous doubles",
            Self::Column => "vector: 8 bytes of 512",
            Self::EverySecondDouble => "vector: 8 bytes of 16",
            Self::Bytes12Of16 => "vector: 12 bytes of 16",
            Self::Bytes20Of32 => "vector: 20 bytes of 32",
            Self::Row => "vector: 1024 bytes of 4096",
            Self::Indexed => "indexed: an int at each",
            Self::Struct => "struct: double, char, int",
        })
    }
}

impl Shape {
    fn layout(self) -> Layout {
        match self {
            Self::Contiguous => contiguous(),
            Self::Column => strided::<8, 512>(),
            Self::EverySecondDouble => strided::<8, 16>(),
            Self::Bytes12Of16 => strided::<12, 16>(),
            Self::Bytes20Of32 => strided::<20, 32>(),
            Self::Row => strided::<1024, 4096>(),
            Self::Indexed => indexed(),
            Self::Struct => structure(),
        }
    }
}

fn predefined(handle: usize) -> Datatype {
    Datatype::predefined(handle).expect("predefined")
}

fn contiguous() -> Layout {
    let count = DATA / 8;
    let ty = Datatype::contiguous(count, &predefined(abi::MPI_DOUBLE)).expect("a row of doubles");
    Layout { ty, count: 1, span: DATA, hand: Box::new(|from, to| to.copy_from_slice(from)) }
}

/// Blocks of `BLOCK` bytes, `STRIDE` bytes apart.
fn strided<const BLOCK: usize, const STRIDE: usize>() -> Layout {
    let count = DATA / BLOCK;
    let ty = Datatype::hvector(count, BLOCK, STRIDE as isize, &predefined(abi::MPI_BYTE)).expect("a vector");
    let hand = |from: &[u8], to: &mut [u8]| {
        for (from, to) in from.as_chunks::<STRIDE>().0.iter().zip(to.as_chunks_mut::<BLOCK>().0) {
            to.copy_from_slice(&from[..BLOCK]);
        }
    };
    Layout { ty, count: 1, span: count * STRIDE, hand: Box::new(hand) }
}

fn indexed() -> Layout {
    let count = DATA / 4;
    // A stride that no two neighbours share, so that it stays a table.
    let at: Vec<isize> = (0..count as isize).map(|i| 3 * i + i * i % 2 + i % 3 / 2).collect();
    let ty = Datatype::indexed_block(1, &at, &predefined(abi::MPI_INT)).expect("an index");
    let hand = move |from: &[u8], to: &mut [u8]| {
        for (to, at) in to.as_chunks_mut::<4>().0.iter_mut().zip(&at) {
            to.copy_from_slice(&from[4 * *at as usize..][..4]);
        }
    };
    Layout { ty, count: 1, span: 4 * 3 * count + 16, hand: Box::new(hand) }
}

fn structure() -> Layout {
    let parts = [abi::MPI_DOUBLE, abi::MPI_CHAR, abi::MPI_INT].map(predefined);
    let ty = Datatype::structure(&[1, 1, 1], &[0, 8, 12], &parts).expect("a struct");
    let count = DATA / 13;
    let hand = |from: &[u8], to: &mut [u8]| {
        for (from, to) in from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<13>().0) {
            to[..9].copy_from_slice(&from[..9]);
            to[9..].copy_from_slice(&from[12..]);
        }
    };
    Layout { ty, count, span: 16 * count, hand: Box::new(hand) }
}

impl Layout {
    fn bytes(&self) -> usize {
        self.ty.size() * self.count
    }

    fn buffer(&self) -> Vec<u8> {
        (0..self.span).map(|i| (i * 7) as u8).collect()
    }

    /// Packs what comes from `position` on into `out`, as much as it takes; gives how much.
    fn pack(&self, buffer: &[u8], position: usize, out: &mut [u8]) -> usize {
        assert!(buffer.len() >= self.span);
        // SAFETY: the elements lie within the span, which the buffer has.
        unsafe { self.ty.pack(self.count, buffer.as_ptr(), position, out) }
    }
}

#[divan::bench(args = SHAPES)]
fn whole(bencher: Bencher<'_, '_>, shape: Shape) {
    let layout = shape.layout();
    let (buffer, bytes) = (layout.buffer(), layout.bytes());
    let (mut out, mut expected) = (vec![0; bytes], vec![0; bytes]);
    (layout.hand)(&buffer, &mut expected);
    assert_eq!(layout.pack(&buffer, 0, &mut out), bytes);
    assert_eq!(out, expected, "{shape}: both pack the same");
    bencher.counter(BytesCount::new(bytes)).bench_local(|| layout.pack(&buffer, 0, black_box(&mut out)));
}

#[divan::bench(args = SHAPES)]
fn pieces(bencher: Bencher<'_, '_>, shape: Shape) {
    let layout = shape.layout();
    let (buffer, mut out) = (layout.buffer(), vec![0; layout.bytes()]);
    bencher.counter(BytesCount::new(out.len())).bench_local(|| {
        let mut position = 0;
        for piece in black_box(&mut out).chunks_mut(PIECE) {
            position += layout.pack(&buffer, position, piece);
        }
    });
}

#[divan::bench(args = SHAPES)]
fn by_hand(bencher: Bencher<'_, '_>, shape: Shape) {
    let layout = shape.layout();
    let (buffer, mut out) = (layout.buffer(), vec![0; layout.bytes()]);
    let counted = bencher.counter(BytesCount::new(out.len()));
    counted.bench_local(|| (layout.hand)(black_box(&buffer), black_box(&mut out)));
}

#[divan::bench]
fn memcpy(bencher: Bencher<'_, '_>) {
    let (from, mut to) = (vec![1_u8; DATA], vec![0_u8; DATA]);
    bencher
        .counter(BytesCount::new(DATA))
        .bench_local(|| black_box(&mut to).copy_from_slice(black_box(&from)));
}

/// Two operands of doubles into one of them.
mod reduce {
    use super::*;

    const OPERATIONS: [&str; 2] = ["MPI_SUM", "MPI_MAX"];

    fn operands() -> (Vec<f64>, Vec<f64>) {
        (vec![1.5; DATA / 8], vec![0.5; DATA / 8])
    }

    #[divan::bench(args = OPERATIONS)]
    fn ours(bencher: Bencher<'_, '_>, name: &str) {
        let (left, mut right) = operands();
        let handle = if name == "MPI_SUM" { abi::MPI_SUM } else { abi::MPI_MAX };
        let (op, ty) = (Op::predefined(handle).expect("predefined"), predefined(abi::MPI_DOUBLE));
        bencher.counter(BytesCount::new(DATA)).bench_local(|| {
            let (from, to) = (black_box(&left).as_ptr().cast(), black_box(&mut right).as_mut_ptr().cast());
            // SAFETY: both are as many doubles.
            unsafe { op.apply(from, to, left.len(), &ty, abi::MPI_DOUBLE) }.expect("it takes doubles");
        });
    }

    #[divan::bench(args = OPERATIONS)]
    fn by_hand(bencher: Bencher<'_, '_>, name: &str) {
        let (left, mut right) = operands();
        let sum = name == "MPI_SUM";
        bencher.counter(BytesCount::new(DATA)).bench_local(|| {
            let pairs = black_box(&mut right).iter_mut().zip(black_box(&left));
            pairs.for_each(|(to, from)| *to = if sum { *from + *to } else { from.max(*to) });
        });
    }
}

fn main() {
    divan::main();
}
