//! What atomic operations compute (fi_atomic(3)): of the target's old value, the origin's operand, and where there is
//! one its value to compare.

use perusal::internals::abi;
use perusal::internals::datatype::Basic;
use perusal::internals::datatype::op::Op;

/// `enum fi_datatype`.
const COMPLEX: std::ops::RangeInclusive<u32> = 10..=11;
const LONG_DOUBLE: u32 = 12;
const LONG_DOUBLE_COMPLEX: u32 = 13;
/// Bytes of a value of each type. Types of 16 bits and fewer that are no integers are not served.
const SIZES: [usize; 16] = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16];

// `enum fi_op`.
const MIN: u32 = 0;
const MAX: u32 = 1;
const SUM: u32 = 2;
const PROD: u32 = 3;
const LOR: u32 = 4;
const LAND: u32 = 5;
const BOR: u32 = 6;
const BAND: u32 = 7;
const LXOR: u32 = 8;
const BXOR: u32 = 9;
pub const ATOMIC_READ: u32 = 10;
pub const ATOMIC_WRITE: u32 = 11;
const CSWAP: u32 = 12;
const CSWAP_NE: u32 = 13;
const CSWAP_LE: u32 = 14;
const CSWAP_LT: u32 = 15;
const CSWAP_GE: u32 = 16;
const CSWAP_GT: u32 = 17;
const MSWAP: u32 = 18;
const DIFF: u32 = 19;

/// Which family of calls an operation comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// fi_atomic: no value comes back.
    Write,
    /// fi_fetch_atomic: the old value comes back.
    Fetch,
    /// fi_compare_atomic: a value to compare goes along, and the old value comes back.
    Compare,
}

/// Bytes of a value, if the operation is defined for the type in this family.
pub fn size(datatype: u32, op: u32, family: Family) -> Option<usize> {
    let size = *SIZES.get(datatype as usize)?;
    let compares = (CSWAP..=MSWAP).contains(&op);
    let fits = match family {
        Family::Write => !compares && op != ATOMIC_READ,
        Family::Fetch => !compares,
        Family::Compare => compares,
    };
    let float = (8..=9).contains(&datatype);
    let takes = match op {
        MIN | MAX => !COMPLEX.contains(&datatype) && datatype != LONG_DOUBLE_COMPLEX,
        SUM | PROD | ATOMIC_READ | ATOMIC_WRITE => true,
        LOR | LAND | LXOR | DIFF => datatype != LONG_DOUBLE && datatype != LONG_DOUBLE_COMPLEX,
        CSWAP | CSWAP_NE => datatype != LONG_DOUBLE && datatype != LONG_DOUBLE_COMPLEX,
        CSWAP_LE | CSWAP_LT | CSWAP_GE | CSWAP_GT => {
            !COMPLEX.contains(&datatype) && datatype != LONG_DOUBLE && datatype != LONG_DOUBLE_COMPLEX
        }
        BOR | BAND | BXOR | MSWAP => !float && !(10..=13).contains(&datatype),
        _ => false,
    };
    (fits && takes).then_some(size)
}

/// Whether the operation has an operand of the origin's.
pub fn has_operand(op: u32) -> bool {
    op != ATOMIC_READ
}

/// The new values of the target, all slices of the same length in whole values: `old` and what [`size`] allows.
pub fn apply(datatype: u32, op: u32, old: &[u8], operand: &[u8], compare: &[u8], new: &mut [u8]) {
    match (datatype, op) {
        (_, ATOMIC_READ) => new.copy_from_slice(old),
        (_, ATOMIC_WRITE) => new.copy_from_slice(operand),
        (0, _) => each::<i8>(op, old, operand, compare, new),
        (1, _) => each::<u8>(op, old, operand, compare, new),
        (2, _) => each::<i16>(op, old, operand, compare, new),
        (3, _) => each::<u16>(op, old, operand, compare, new),
        (4, _) => each::<i32>(op, old, operand, compare, new),
        (5, _) => each::<u32>(op, old, operand, compare, new),
        (6, _) => each::<i64>(op, old, operand, compare, new),
        (7, _) => each::<u64>(op, old, operand, compare, new),
        (8, _) => each::<f32>(op, old, operand, compare, new),
        (9, _) => each::<f64>(op, old, operand, compare, new),
        (10, _) => each::<Complex<f32>>(op, old, operand, compare, new),
        (11, _) => each::<Complex<f64>>(op, old, operand, compare, new),
        (14, _) => each::<i128>(op, old, operand, compare, new),
        (15, _) => each::<u128>(op, old, operand, compare, new),
        _ => wide(datatype, op, old, operand, new),
    }
}

/// `long double`, by the kernels of the collectives.
fn wide(datatype: u32, op: u32, old: &[u8], operand: &[u8], new: &mut [u8]) {
    let handle = if datatype == LONG_DOUBLE { abi::MPI_LONG_DOUBLE } else { abi::MPI_C_LONG_DOUBLE_COMPLEX };
    let operation = match op {
        MIN => abi::MPI_MIN,
        MAX => abi::MPI_MAX,
        SUM => abi::MPI_SUM,
        _ => abi::MPI_PROD,
    };
    let (Some(basic), Some(operation)) = (Basic::of(handle), Op::predefined(operation)) else { return };
    // The kernels want aligned values.
    let aligned = |bytes: &[u8]| {
        let mut words = vec![0_u128; bytes.len() / 16];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(16)) {
            *word = u128::from_ne_bytes(bytes.try_into().unwrap_or([0; 16]));
        }
        words
    };
    let (left, mut right) = (aligned(old), aligned(operand));
    let count = old.len() / basic.size();
    // SAFETY: both hold `count` values of the type, aligned, and are two vectors.
    let _ = unsafe { operation.apply_basic(basic, left.as_ptr().cast(), right.as_mut_ptr().cast(), count) };
    for (word, to) in right.iter().zip(new.chunks_exact_mut(16)) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
}

fn each<T: Number>(op: u32, old: &[u8], operand: &[u8], compare: &[u8], new: &mut [u8]) {
    let size = size_of::<T>();
    for (at, to) in new.chunks_exact_mut(size).enumerate() {
        let value = |from: &[u8]| T::read(from.get(at * size..(at + 1) * size).unwrap_or(&[]));
        T::combine(op, value(old), value(operand), value(compare)).write(to);
    }
}

/// A value that operations combine.
trait Number: Copy + PartialEq {
    /// The value of these bytes; zero if they are too few.
    fn read(from: &[u8]) -> Self;
    fn write(self, to: &mut [u8]);
    fn combine(op: u32, old: Self, operand: Self, compare: Self) -> Self;
}

/// What is the same for all types.
fn choose<T: Number + PartialOrd>(op: u32, old: T, operand: T, compare: T) -> T {
    let swap = match op {
        MIN => operand < old,
        MAX => operand > old,
        CSWAP => compare == old,
        CSWAP_NE => compare != old,
        CSWAP_LE => compare <= old,
        CSWAP_LT => compare < old,
        CSWAP_GE => compare >= old,
        CSWAP_GT => compare > old,
        _ => false,
    };
    if swap { operand } else { old }
}

/// The logical operations, on whether values are zero.
fn logical(op: u32, old: bool, operand: bool) -> bool {
    match op {
        LOR => old || operand,
        LAND => old && operand,
        _ => old != operand,
    }
}

macro_rules! bytes {
    () => {
        fn read(from: &[u8]) -> Self {
            from.try_into().map_or(Self::default(), Self::from_ne_bytes)
        }
        fn write(self, to: &mut [u8]) {
            to.copy_from_slice(&self.to_ne_bytes());
        }
    };
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            bytes!();
            fn combine(op: u32, old: Self, operand: Self, compare: Self) -> Self {
                match op {
                    SUM => old.wrapping_add(operand),
                    PROD => old.wrapping_mul(operand),
                    DIFF => old.wrapping_sub(operand),
                    BOR => old | operand,
                    BAND => old & operand,
                    BXOR => old ^ operand,
                    MSWAP => operand & compare | old & !compare,
                    LOR | LAND | LXOR => Self::from(logical(op, old != 0, operand != 0)),
                    _ => choose(op, old, operand, compare),
                }
            }
        }
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64 i128 u128);

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            bytes!();
            fn combine(op: u32, old: Self, operand: Self, compare: Self) -> Self {
                match op {
                    SUM => old + operand,
                    PROD => old * operand,
                    DIFF => old - operand,
                    LOR | LAND | LXOR => Self::from(u8::from(logical(op, old != 0.0, operand != 0.0))),
                    _ => choose(op, old, operand, compare),
                }
            }
        }

        impl Number for Complex<$ty> {
            fn read(from: &[u8]) -> Self {
                let (re, im) = from.split_at(from.len() / 2);
                Self { re: <$ty>::read(re), im: <$ty>::read(im) }
            }
            fn write(self, to: &mut [u8]) {
                let (re, im) = to.split_at_mut(to.len() / 2);
                self.re.write(re);
                self.im.write(im);
            }
            fn combine(op: u32, old: Self, operand: Self, compare: Self) -> Self {
                let zero = Self { re: 0.0, im: 0.0 };
                match op {
                    SUM => Self { re: old.re + operand.re, im: old.im + operand.im },
                    DIFF => Self { re: old.re - operand.re, im: old.im - operand.im },
                    PROD => Self {
                        re: old.re * operand.re - old.im * operand.im,
                        im: old.re * operand.im + old.im * operand.re,
                    },
                    LOR | LAND | LXOR => {
                        Self { re: <$ty>::from(u8::from(logical(op, old != zero, operand != zero))), im: 0.0 }
                    }
                    CSWAP if compare == old => operand,
                    CSWAP_NE if compare != old => operand,
                    _ => old,
                }
            }
        }
    )*};
}
floats!(f32 f64);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Complex<T> {
    re: T,
    im: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(op: u32, old: i32, operand: i32, compare: i32) -> i32 {
        let mut new = [0; 4];
        apply(4, op, &old.to_ne_bytes(), &operand.to_ne_bytes(), &compare.to_ne_bytes(), &mut new);
        i32::from_ne_bytes(new)
    }

    #[test]
    fn integers_are_combined_as_the_manual_says() {
        let (old, operand) = (12, -5);
        let expected = [
            (MIN, -5),
            (MAX, 12),
            (SUM, 7),
            (PROD, -60),
            (LOR, 1),
            (LAND, 1),
            (BOR, 12 | -5),
            (BAND, 12 & -5),
        ];
        let more = [(LXOR, 0), (BXOR, 12 ^ -5), (ATOMIC_READ, 12), (ATOMIC_WRITE, -5), (DIFF, 17)];
        for (op, new) in expected.into_iter().chain(more) {
            assert_eq!(ints(op, old, operand, 0), new, "{op}");
        }
        // compare == old, < old, > old
        for (op, swaps) in [
            (CSWAP, [true, false, false]),
            (CSWAP_NE, [false, true, true]),
            (CSWAP_LE, [true, true, false]),
            (CSWAP_LT, [false, true, false]),
            (CSWAP_GE, [true, false, true]),
            (CSWAP_GT, [false, false, true]),
        ] {
            for (compare, swap) in [12, 11, 13].into_iter().zip(swaps) {
                assert_eq!(ints(op, old, operand, compare), if swap { -5 } else { 12 }, "{op} {compare}");
            }
        }
        assert_eq!(ints(MSWAP, 0x0f0f, 0x1234, 0x00ff), 0x0f34);
    }

    #[test]
    fn every_operation_that_is_offered_gives_a_value_of_its_type() {
        for datatype in 0..24 {
            for op in 0..24 {
                for family in [Family::Write, Family::Fetch, Family::Compare] {
                    let Some(size) = size(datatype, op, family) else { continue };
                    let zeros = vec![0; 2 * size];
                    let mut new = vec![1; 2 * size];
                    apply(datatype, op, &zeros, &zeros, &zeros, &mut new);
                    assert!(new == zeros, "{datatype} {op}: all results of zeros are zero");
                }
            }
        }
    }

    #[test]
    fn complex_numbers_and_long_doubles_are_numbers() {
        let pack = |re: f64, im: f64| [re.to_ne_bytes(), im.to_ne_bytes()].concat();
        let mut new = vec![0; 16];
        apply(11, PROD, &pack(1.0, 2.0), &pack(3.0, -1.0), &[], &mut new);
        assert_eq!(new, pack(5.0, 5.0));
        // 1.0 and 2.0 of 80 bits: the sign and exponent stand behind 64 bits of mantissa.
        #[cfg(target_arch = "x86_64")]
        {
            let value = |exponent: u128| (1_u128 << 63 | exponent << 64).to_ne_bytes();
            apply(LONG_DOUBLE, SUM, &value(0x3fff), &value(0x3fff), &[], &mut new);
            assert_eq!(new[..10], value(0x4000)[..10]);
        }
    }
}
