//! The compiled type maps against a naive model: the standard's definitions, written down entry by entry.

use super::*;
use crate::abi;
use crate::limits::{every, rounds};

/// An entry of a type map: a basic type or one of the two conceptual markers, at a displacement.
#[derive(Clone, Copy, PartialEq)]
enum NaiveEntry {
    Basic(Basic),
    Lower,
    Upper,
}

#[derive(Clone, Default)]
struct Naive(Vec<(NaiveEntry, isize)>);

impl Naive {
    fn of(handle: usize) -> Self {
        let basic = Basic::of(handle).expect("a basic type");
        Self(vec![(NaiveEntry::Basic(basic), 0)])
    }
    fn basics(&self) -> impl Iterator<Item = (Basic, isize)> + '_ {
        self.0.iter().filter_map(|(entry, at)| match entry {
            NaiveEntry::Basic(basic) => Some((*basic, *at)),
            _ => None,
        })
    }
    fn marks(&self, wanted: NaiveEntry) -> impl Iterator<Item = isize> + '_ {
        self.0.iter().filter(move |(entry, _)| *entry == wanted).map(|(_, at)| *at)
    }
    fn true_lb(&self) -> isize {
        self.basics().map(|(_, at)| at).min().unwrap_or(0)
    }
    fn true_ub(&self) -> isize {
        self.basics().map(|(b, at)| at + b.size() as isize).max().unwrap_or(0)
    }
    fn lb(&self) -> isize {
        self.marks(NaiveEntry::Lower).min().unwrap_or(self.true_lb())
    }
    fn extent(&self) -> isize {
        if let Some(upper) = self.marks(NaiveEntry::Upper).max() {
            return upper - self.lb();
        }
        let align = self.basics().map(|(b, _)| b.align()).max().unwrap_or(1) as isize;
        let span = self.true_ub() - self.lb();
        (span + align - 1) / align * align
    }
    fn push_copies(&mut self, old: &Naive, at: isize, count: usize) {
        for i in 0..count {
            let by = at + i as isize * old.extent();
            self.0.extend(old.0.iter().map(|(entry, d)| (*entry, d + by)));
        }
    }
    fn struct_of(blocks: &[(usize, isize, &Naive)]) -> Self {
        let mut new = Self::default();
        blocks.iter().for_each(|(length, at, old)| new.push_copies(old, *at, *length));
        new
    }
    fn resized(&self, lb: isize, extent: isize) -> Self {
        let mut new =
            Self(self.0.iter().filter(|(e, _)| matches!(e, NaiveEntry::Basic(_))).copied().collect());
        new.0.push((NaiveEntry::Lower, lb));
        new.0.push((NaiveEntry::Upper, lb + extent));
        new
    }
    /// The displacements of all bytes of `count` elements, in type map order.
    fn bytes(&self, count: usize) -> Vec<isize> {
        let mut bytes = Vec::new();
        for i in 0..count {
            let by = i as isize * self.extent();
            for (basic, at) in self.basics() {
                bytes.extend((0..basic.size() as isize).map(|b| by + at + b));
            }
        }
        bytes
    }
}

/// xorshift64*: a seed is a test case.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
    fn between(&mut self, low: isize, high: isize) -> isize {
        low + self.below((high - low + 1) as usize) as isize
    }
}

const SEEDS: [usize; 6] = [
    abi::MPI_BYTE,
    abi::MPI_SHORT,
    abi::MPI_INT,
    abi::MPI_DOUBLE,
    abi::MPI_C_DOUBLE_COMPLEX,
    abi::MPI_LONG_DOUBLE,
];

/// A random type of the given depth, built twice.
fn random(r: &mut Random, depth: usize) -> (Datatype, Naive) {
    if depth == 0 {
        let handle = SEEDS[r.below(SEEDS.len())];
        return (Datatype::predefined(handle).expect("predefined"), Naive::of(handle));
    }
    let (old, naive) = random(r, depth - 1);
    let count = r.below(4);
    let length = r.below(4);
    let ex = naive.extent();
    let some = |r: &mut Random| -> (Vec<usize>, Vec<isize>) {
        (0..count).map(|_| (r.below(4), r.between(-3, 6))).unzip()
    };
    let blocks = |lengths: &[usize], at: &[isize], unit: isize, naive: &Naive| {
        let all: Vec<_> = lengths.iter().zip(at).map(|(l, d)| (*l, d * unit, naive)).collect();
        Naive::struct_of(&all)
    };
    match r.below(11) {
        0 => (Datatype::contiguous(count, &old).unwrap(), blocks(&[count], &[0], 1, &naive)),
        1 => {
            let stride = r.between(-5, 5);
            let at: Vec<isize> = (0..count as isize).map(|i| i * stride).collect();
            let new = Datatype::vector(count, length, stride, &old).unwrap();
            (new, blocks(&vec![length; count], &at, ex, &naive))
        }
        2 => {
            let stride = r.between(-40, 40);
            let at: Vec<isize> = (0..count as isize).map(|i| i * stride).collect();
            let new = Datatype::hvector(count, length, stride, &old).unwrap();
            (new, blocks(&vec![length; count], &at, 1, &naive))
        }
        3 => {
            let (lengths, at) = some(r);
            (Datatype::indexed(&lengths, &at, &old).unwrap(), blocks(&lengths, &at, ex, &naive))
        }
        4 => {
            let (lengths, at) = some(r);
            (Datatype::hindexed(&lengths, &at, &old).unwrap(), blocks(&lengths, &at, 1, &naive))
        }
        5 => {
            let (_, at) = some(r);
            let new = Datatype::indexed_block(length, &at, &old).unwrap();
            (new, blocks(&vec![length; count], &at, ex, &naive))
        }
        6 => {
            let (_, at) = some(r);
            let new = Datatype::hindexed_block(length, &at, &old).unwrap();
            (new, blocks(&vec![length; count], &at, 1, &naive))
        }
        7 => {
            let (other, other_naive) = random(r, depth - 1);
            let (a, b) = (r.between(-20, 20), r.between(-20, 20));
            let new = Datatype::structure(&[count, length], &[a, b], &[old, other]).unwrap();
            (new, Naive::struct_of(&[(count, a, &naive), (length, b, &other_naive)]))
        }
        8 => {
            let (lb, extent) = (r.between(-20, 20), r.between(-30, 30));
            (Datatype::resized(&old, lb, extent).unwrap(), naive.resized(lb, extent))
        }
        9 => (old.duplicate(), naive),
        _ => random_subarray(r, &old, &naive),
    }
}

fn random_subarray(r: &mut Random, old: &Datatype, naive: &Naive) -> (Datatype, Naive) {
    let dims = 1 + r.below(3);
    let sizes: Vec<usize> = (0..dims).map(|_| 1 + r.below(4)).collect();
    let parts: Vec<usize> = sizes.iter().map(|s| 1 + r.below(*s)).collect();
    let starts: Vec<usize> = sizes.iter().zip(&parts).map(|(s, p)| r.below(s - p + 1)).collect();
    let order = if r.below(2) == 0 { Order::C } else { Order::Fortran };
    let new = Datatype::subarray(&sizes, &parts, &starts, order, old).unwrap();
    let owned = |d: usize, i: usize| (starts[d]..starts[d] + parts[d]).contains(&i);
    (new, elements_of(&sizes, order, naive, owned))
}

/// The elements of an array whose index in each dimension is owned, in memory order, with the array's bounds.
fn elements_of(sizes: &[usize], order: Order, old: &Naive, owned: impl Fn(usize, usize) -> bool) -> Naive {
    let total: usize = sizes.iter().product();
    let mut new = Naive::default();
    for element in 0..total {
        let mut rest = element;
        let dims: Vec<usize> =
            if order == Order::C { (0..sizes.len()).rev().collect() } else { (0..sizes.len()).collect() };
        let inside = dims.into_iter().fold(true, |inside, d| {
            let index = rest % sizes[d];
            rest /= sizes[d];
            inside && owned(d, index)
        });
        if inside {
            new.push_copies(old, element as isize * old.extent(), 1);
        }
    }
    new.resized(0, total as isize * old.extent())
}

/// A buffer that holds every byte of the map, and the index in it of displacement 0.
fn arena(bytes: &[isize]) -> (Vec<u8>, isize) {
    let low = bytes.iter().copied().min().unwrap_or(0).min(0);
    let high = bytes.iter().copied().max().unwrap_or(0).max(0) + 1;
    let memory = (0..high - low).map(|i| (i * 7 + 3) as u8).collect();
    (memory, -low)
}

fn check(ty: &Datatype, naive: &Naive, r: &mut Random) {
    assert_eq!(ty.size(), naive.basics().map(|(b, _)| b.size()).sum::<usize>());
    assert_eq!(ty.extent(), naive.extent(), "extent");
    assert_eq!(ty.lb(), naive.lb(), "lb");
    assert_eq!(ty.true_lb(), naive.true_lb());
    assert_eq!(ty.true_extent(), naive.true_ub() - naive.true_lb());
    assert_eq!(ty.elements(), naive.basics().count());
    let count = r.below(4);
    let bytes = naive.bytes(count);
    let span = bytes.iter().min().zip(bytes.iter().max()).map_or((0, 0), |(low, last)| (*low, last + 1));
    assert_eq!(ty.data_span(count), Some(span));
    check_runs(ty, count, &bytes);
    check_pack(ty, count, &bytes, r);
    check_elements(ty, naive, r);
}

fn check_runs(ty: &Datatype, count: usize, bytes: &[isize]) {
    let runs: Vec<_> = ty.runs(count).collect();
    let flat: Vec<isize> = runs.iter().flat_map(|(at, len)| *at..*at + *len as isize).collect();
    assert_eq!(flat, bytes);
    assert!(runs.windows(2).all(|w| w[0].0 + w[0].1 as isize != w[1].0), "runs that touch are one");
    if ty.is_contiguous() && !bytes.is_empty() {
        assert_eq!(runs, [(ty.true_lb(), bytes.len())]);
    }
    for (start, end) in
        [(0, bytes.len() / 2), (bytes.len() / 3, bytes.len()), (bytes.len() / 3, bytes.len() / 2)]
    {
        let some: Vec<isize> =
            ty.runs_within(start..end).flat_map(|(at, len)| at..at + len as isize).collect();
        assert_eq!(some, bytes[start..end]);
    }
}

fn check_pack(ty: &Datatype, count: usize, bytes: &[isize], r: &mut Random) {
    let (memory, zero) = arena(bytes);
    let expected: Vec<u8> = bytes.iter().map(|at| memory[(at + zero) as usize]).collect();
    let base = memory.as_ptr().wrapping_offset(zero);
    let mut stream = vec![0u8; bytes.len()];
    let mut target = vec![0u8; memory.len()];
    let landing = target.as_mut_ptr().wrapping_offset(zero);
    let mut position = 0;
    while position < stream.len() {
        let chunk = (1 + r.below(bytes.len() + 3)).min(stream.len() - position);
        let piece = &mut stream[position..position + chunk];
        // SAFETY: `memory` and `target` were sized for every byte of the map.
        let written = unsafe { ty.pack(count, base, position, piece) };
        assert_eq!(written, chunk);
        // SAFETY: `memory` and `target` were sized for every byte of the map.
        assert_eq!(unsafe { ty.unpack(count, landing, position, piece) }, chunk);
        position += chunk;
    }
    assert_eq!(stream, expected);
    // SAFETY: nothing is left to pack.
    assert_eq!(unsafe { ty.pack(count, base, bytes.len(), &mut [0; 9]) }, 0);
    let mut only_touched = vec![0; memory.len()];
    for at in bytes {
        only_touched[(at + zero) as usize] = memory[(at + zero) as usize];
    }
    assert_eq!(target, only_touched);
}

fn check_elements(ty: &Datatype, naive: &Naive, r: &mut Random) {
    let sizes: Vec<usize> = naive.basics().map(|(b, _)| b.size()).collect();
    if sizes.is_empty() {
        assert_eq!((ty.elements_in(0), ty.elements_in(4)), (Some(0), None));
        return;
    }
    let received = r.below(3 * ty.size() + 1);
    let (mut left, mut elements) = (received, 0);
    while left >= sizes[elements % sizes.len()] {
        left -= sizes[elements % sizes.len()];
        elements += 1;
    }
    assert_eq!(ty.elements_in(received), (left == 0).then_some(elements));
    assert_eq!(ty.bytes_of_elements(elements), Ok(received - left));
    let whole = received.is_multiple_of(ty.size()).then_some(received / ty.size());
    assert_eq!(ty.count_in(received), whole);
    let mut listed = Vec::new();
    ty.for_each_basic(|basic, n| listed.extend(std::iter::repeat_n(basic, n)));
    assert_eq!(listed, naive.basics().map(|(b, _)| b).collect::<Vec<_>>());
}

#[test]
fn random_nested_types_agree_with_the_naive_model() {
    for seed in 1..rounds(6000) as u64 {
        let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let depth = 1 + r.below(3);
        let (ty, naive) = random(&mut r, depth);
        if naive.0.len() < 3000 {
            check(&ty, &naive, &mut r);
        }
    }
}

#[test]
fn long_arrays_of_structures_and_tables_agree_with_the_naive_model() {
    let (byte, naive) = (Datatype::predefined(abi::MPI_BYTE).expect("predefined"), Naive::of(abi::MPI_BYTE));
    let mut r = Random(7);
    let all = [([9, 4, 1], [0, 12, 17]), ([3, 3, 3], [20, 1, 9]), ([17, 0, 33], [0, 3, 30])];
    let counts: &[usize] = if cfg!(miri) { &[1, 65] } else { &[1, 63, 64, 65, 150] };
    for (lengths, at) in all.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let blocks: Vec<_> = lengths.iter().zip(at).map(|(l, d)| (*l, d, &naive)).collect();
        let ty = Datatype::hindexed(&lengths, &at, &byte).unwrap();
        let expected = Naive::struct_of(&blocks);
        for &count in counts {
            check_runs(&ty, count, &expected.bytes(count));
            check_pack(&ty, count, &expected.bytes(count), &mut r);
        }
    }
}

#[test]
fn tables_of_many_irregular_runs_agree_with_the_naive_model() {
    let (byte, naive) = (Datatype::predefined(abi::MPI_BYTE).expect("predefined"), Naive::of(abi::MPI_BYTE));
    for seed in 1..rounds(40) as u64 {
        let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let longest = [3, 9, 70, 150][r.below(4)];
        let (mut lengths, mut at, mut next) = (Vec::new(), Vec::new(), 0);
        for _ in 0..20 + r.below(60) {
            lengths.push(1 + r.below(longest));
            at.push(next);
            next += lengths[lengths.len() - 1] as isize + r.between(1, 9);
        }
        if r.below(2) == 0 {
            at.reverse();
            lengths.reverse();
        }
        let blocks: Vec<_> = lengths.iter().zip(&at).map(|(l, d)| (*l, *d, &naive)).collect();
        let ty = Datatype::hindexed(&lengths, &at, &byte).unwrap();
        let expected = Naive::struct_of(&blocks);
        for count in 1..3 {
            check_runs(&ty, count, &expected.bytes(count));
            (0..4).for_each(|_| check_pack(&ty, count, &expected.bytes(count), &mut r));
        }
    }
}

#[test]
fn every_darray_of_a_small_product_agrees_with_the_naive_model() {
    let old = Datatype::predefined(abi::MPI_SHORT).expect("predefined");
    let (naive, mut r) = (Naive::of(abi::MPI_SHORT), Random(42));
    let kinds = [
        (abi::MPI_DISTRIBUTE_BLOCK, abi::MPI_DISTRIBUTE_DFLT_DARG),
        (abi::MPI_DISTRIBUTE_BLOCK, 4),
        (abi::MPI_DISTRIBUTE_CYCLIC, abi::MPI_DISTRIBUTE_DFLT_DARG),
        (abi::MPI_DISTRIBUTE_CYCLIC, 2),
    ];
    const CASES: usize = 448;
    let mut case = 0;
    for (sizes, grid) in [([5, 4], [2, 3]), ([1, 7], [3, 2]), ([8, 3], [2, 1])] {
        for (first, second) in kinds.iter().flat_map(|a| kinds.map(|b| (*a, b))) {
            for order in [Order::C, Order::Fortran] {
                for rank in 0..grid[0] * grid[1] {
                    case += 1;
                    if case % every(CASES) != 0 {
                        continue;
                    }
                    let dim = |i: usize, (distribution, argument)| Distribution {
                        size: sizes[i],
                        distribution,
                        argument,
                        processes: grid[i],
                    };
                    let dims = [dim(0, first), dim(1, second)];
                    let place = [rank / grid[1], rank % grid[1]];
                    let owner = |d: usize, i: usize| {
                        let p = dims[d].processes as usize;
                        let block = match (dims[d].distribution, dims[d].argument) {
                            (abi::MPI_DISTRIBUTE_BLOCK, abi::MPI_DISTRIBUTE_DFLT_DARG) => {
                                sizes[d].div_ceil(p)
                            }
                            (_, abi::MPI_DISTRIBUTE_DFLT_DARG) => 1,
                            (_, given) => given as usize,
                        };
                        (i / block) % p
                    };
                    let owned = |d: usize, i: usize| owner(d, i) == place[d] as usize;
                    let expected = elements_of(&sizes, order, &naive, owned);
                    match Datatype::darray(grid[0] * grid[1], rank, &dims, order, &old) {
                        Ok(ty) => check(&ty, &expected, &mut r),
                        Err(_) => panic!("{dims:?} covers its dimensions"),
                    }
                }
            }
        }
    }
    assert_eq!(case, CASES);
}

#[test]
fn a_block_distribution_that_does_not_cover_its_dimension_is_refused() {
    let old = Datatype::predefined(abi::MPI_INT).expect("predefined");
    let dim = Distribution { size: 9, distribution: abi::MPI_DISTRIBUTE_BLOCK, argument: 4, processes: 2 };
    assert!(Datatype::darray(2, 0, &[dim], Order::C, &old).is_err());
    assert!(Datatype::darray(2, 0, &[Distribution { size: 8, ..dim }], Order::C, &old).is_ok());
    assert!(Datatype::darray(3, 0, &[Distribution { size: 8, ..dim }], Order::C, &old).is_err());
}

#[test]
fn a_vector_of_a_million_blocks_is_one_loop() {
    let int = Datatype::predefined(abi::MPI_INT).expect("predefined");
    let vector = Datatype::vector(1_000_000, 3, 5, &int).unwrap();
    let nested = Datatype::contiguous(1_000, &Datatype::resized(&vector, 0, 20_000_000).unwrap()).unwrap();
    let body::TypeMapKind::Loop { count, child, .. } = &nested.0.body.kind else { panic!("a loop") };
    assert_eq!(
        (*count, child.is_run()),
        (1_000_000_000, true),
        "both levels have one step, so they are one loop"
    );
    assert_eq!(nested.locate(12 * 999_999_999 + 5, usize::MAX), (20 * 999_999_999 + 5, 7));
}

#[test]
fn pair_types_have_the_layout_of_a_c_struct() {
    let expect = [
        (abi::MPI_FLOAT_INT, 8, 8, 4),
        (abi::MPI_DOUBLE_INT, 12, 16, 8),
        (abi::MPI_LONG_INT, 12, 16, 8),
        (abi::MPI_2INT, 8, 8, 4),
        (abi::MPI_SHORT_INT, 6, 8, 4),
        (abi::MPI_LONG_DOUBLE_INT, 20, 32, 16),
        (abi::MPI_2REAL, 8, 8, 4),
        (abi::MPI_2DOUBLE_PRECISION, 16, 16, 8),
        (abi::MPI_2INTEGER, 8, 8, 4),
    ];
    for (handle, size, extent, index) in expect {
        let ty = Datatype::predefined(handle).expect("predefined");
        assert_eq!((ty.size(), ty.extent()), (size, extent));
        assert_eq!(ty.pair().map(|pair| pair.2), Some(index));
        assert_eq!(ty.elements_in(ty.size()), Some(2));
    }
}

#[test]
fn fixed_size_handles_carry_their_size_in_bits_3_to_5() {
    for basic in Basic::all().filter(|b| b.handle() >= 576) {
        assert_eq!(1 << (basic.handle() >> 3 & 7), basic.size(), "{}", basic.name());
    }
}

#[test]
fn every_handle_of_the_abi_is_a_type_or_a_missing_optional_one() {
    let table = include_str!("../../crates/perusal-abi/src/abi/constants.csv");
    let aliased: Vec<&str> =
        table.lines().filter_map(|row| row.split_once(",alias_of:")?.1.split(':').next()).collect();
    for row in table.lines().filter(|row| row.contains("handle:MPI_Datatype")) {
        let name = row.split(',').next().expect("a name");
        let handle: usize = row.rsplit(',').next().and_then(|v| v.parse().ok()).expect("a value");
        if name == "MPI_DATATYPE_NULL" {
            assert!(Datatype::predefined(handle).is_none());
            continue;
        }
        match Datatype::predefined(handle) {
            // Of two names for one type, the standard's own is the one that the ABI's table has as the alias.
            Some(ty) if aliased.contains(&name) => assert_ne!(ty.initial_name(), name),
            Some(ty) => assert_eq!(ty.initial_name(), name),
            None => assert_eq!(missing_optional(handle), Some(name)),
        }
    }
}

#[test]
fn sizes_that_leave_the_address_space_are_refused() {
    let int = Datatype::predefined(abi::MPI_INT).expect("predefined");
    assert!(Datatype::contiguous(usize::MAX / 2, &int).is_err());
    assert!(Datatype::vector(1 << 40, 1 << 40, 1, &int).is_err());
    assert!(Datatype::hvector(3, 1, isize::MAX, &int).is_err());
    assert!(Datatype::vector(3, 1, isize::MAX, &int).is_err());
    assert!(Datatype::resized(&int, isize::MAX, 1).is_err());
    assert!(Datatype::vector(0, usize::MAX, 1, &int).is_ok(), "no data at all is fine");
}

#[test]
fn contents_follow_the_tables_of_the_standard_in_both_forms() {
    let int = Datatype::predefined(abi::MPI_INT).expect("predefined");
    let made = || Datatype::hindexed(&[1, 2], &[0, 40], &int).unwrap();
    let small = made().contents();
    assert_eq!((small.integers, small.addresses), (vec![2, 1, 2], vec![0, 40]));
    let large = made().as_large().contents();
    assert_eq!((large.integers.len(), large.addresses.len()), (0, 0));
    assert_eq!(large.counts, [2, 1, 2, 0, 40]);
    let sub = || Datatype::subarray(&[4, 5], &[2, 3], &[1, 1], Order::C, &int).unwrap();
    assert_eq!(sub().contents().integers, [2, 4, 5, 2, 3, 1, 1, abi::MPI_ORDER_C]);
    assert_eq!(sub().as_large().contents().integers, [2, abi::MPI_ORDER_C]);
    assert_eq!(sub().as_large().contents().counts, [4, 5, 2, 3, 1, 1]);
}
