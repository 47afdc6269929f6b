use super::super::MachineType;
use super::*;

fn op(handle: usize) -> Op {
    Op::predefined(handle).expect("a predefined operation")
}

fn ty(handle: usize) -> Datatype {
    Datatype::predefined(handle).expect("a predefined type")
}

fn apply<T: Copy>(operation: usize, datatype: usize, left: &[T], right: &[T]) -> Result<Vec<T>> {
    let mut out = right.to_vec();
    let (from, to) = (left.as_ptr().cast(), out.as_mut_ptr().cast());
    assert_eq!(size_of::<T>(), ty(datatype).extent() as usize);
    // SAFETY: both arrays are `left.len()` elements of the datatype.
    unsafe { op(operation).apply(from, to, left.len(), &ty(datatype), datatype) }?;
    Ok(out)
}

/// The table of MPI 5.0 §6.9.2 and the extensions, written out per class in the order of `OPERATIONS`.
const OPERATIONS: [usize; 10] = [
    abi::MPI_MAX,
    abi::MPI_MIN,
    abi::MPI_SUM,
    abi::MPI_PROD,
    abi::MPI_LAND,
    abi::MPI_LOR,
    abi::MPI_LXOR,
    abi::MPI_BAND,
    abi::MPI_BOR,
    abi::MPI_BXOR,
];

fn allowed(class: BasicClass) -> [u8; 10] {
    match class {
        BasicClass::Integer | BasicClass::FortranInteger | BasicClass::Address | BasicClass::Char => [1; 10],
        BasicClass::Floating => [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        BasicClass::Logical => [0, 0, 0, 0, 1, 1, 1, 0, 0, 0],
        BasicClass::Complex => [0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
        BasicClass::Byte => [0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
        BasicClass::Opaque => [0; 10],
    }
}

/// Small numbers in any representation, so that one expectation serves all types.
fn encode(lane: MachineType, value: u8) -> Vec<u8> {
    let mut bytes = vec![0u8; lane.size()];
    let mut put = |encoded: &[u8]| bytes[..encoded.len()].copy_from_slice(encoded);
    match lane {
        MachineType::F32 | MachineType::C32 => put(&f32::from(value).to_le_bytes()),
        MachineType::F64 | MachineType::C64 => put(&f64::from(value).to_le_bytes()),
        MachineType::F80 | MachineType::C80 if value > 0 => {
            let shift = value.leading_zeros();
            put(&(u64::from(value) << (56 + shift)).to_le_bytes());
            bytes[8..10].copy_from_slice(&(16383 + 7 - shift as u16).to_le_bytes());
        }
        MachineType::F128 | MachineType::C128 if value > 0 => {
            let shift = value.leading_zeros();
            let fraction = (u128::from(value) << (120 + shift)) << 1 >> 16;
            put(&(u128::from(16383 + 7 - shift) << 112 | fraction).to_le_bytes());
        }
        MachineType::F80 | MachineType::C80 | MachineType::F128 | MachineType::C128 => {}
        _ => put(&[value]),
    }
    bytes
}

fn expected(operation: usize, a: u8, b: u8) -> u8 {
    let (x, y) = (a != 0, b != 0);
    match operation {
        abi::MPI_MAX => a.max(b),
        abi::MPI_MIN => a.min(b),
        abi::MPI_SUM => a + b,
        abi::MPI_PROD => a * b,
        abi::MPI_LAND => (x && y).into(),
        abi::MPI_LOR => (x || y).into(),
        abi::MPI_LXOR => (x != y).into(),
        abi::MPI_BAND => a & b,
        abi::MPI_BOR => a | b,
        _ => a ^ b,
    }
}

#[test]
fn every_operation_on_every_basic_type_computes_or_is_refused_as_the_table_says() {
    let values = [(0, 0), (0, 3), (5, 0), (6, 5), (5, 6), (1, 1), (9, 9)];
    use MachineType::{C80, C128, F80, F128};
    let mut done = Vec::new();
    for basic in Basic::all() {
        // Types of one representation and class are computed by the same code; Miri is slow.
        let kind = (basic.machine_type(), basic.class());
        if cfg!(miri) && done.contains(&kind) {
            continue;
        }
        done.push(kind);
        // Miri calls no C.
        if cfg!(miri) && matches!(basic.machine_type(), F80 | F128 | C80 | C128) {
            continue;
        }
        let datatype = ty(basic.handle());
        let left: Vec<u8> = values.iter().flat_map(|v| encode(basic.machine_type(), v.0)).collect();
        let before: Vec<u8> = values.iter().flat_map(|v| encode(basic.machine_type(), v.1)).collect();
        for (operation, allowed) in OPERATIONS.into_iter().zip(allowed(basic.class())) {
            let mut right = before.clone();
            let n = values.len();
            let (from, to) = (left.as_ptr(), right.as_mut_ptr());
            // SAFETY: both are `n` elements of the type.
            let result = unsafe { op(operation).apply(from, to, n, &datatype, basic.handle()) };
            let want: Vec<u8> = values
                .iter()
                .flat_map(|v| encode(basic.machine_type(), expected(operation, v.0, v.1)))
                .collect();
            match allowed {
                1 => assert_eq!((result, right), (Ok(()), want), "{} {operation}", basic.name()),
                _ => assert_eq!((result, &right), (Err(MISFIT), &before), "{} {operation}", basic.name()),
            }
        }
    }
}

#[test]
fn signs_and_nans_are_treated_as_c_does() {
    let (nan, one) = (f64::NAN, 1.0);
    assert_eq!(apply(abi::MPI_MAX, abi::MPI_INT, &[-5, 5], &[3, -9]), Ok(vec![3, 5]));
    assert_eq!(apply(abi::MPI_MAX, abi::MPI_UNSIGNED, &[u32::MAX], &[3]), Ok(vec![u32::MAX]));
    let below_zero = if core::ffi::c_char::MIN == 0 { 1 } else { -1 };
    assert_eq!(apply(abi::MPI_MIN, abi::MPI_CHAR, &[-1i8], &[1]), Ok(vec![below_zero]));
    assert_eq!(apply(abi::MPI_SUM, abi::MPI_INT8_T, &[127i8], &[1]), Ok(vec![-128]));
    assert_eq!(apply(abi::MPI_MIN, abi::MPI_DOUBLE, &[-0.5], &[one]), Ok(vec![-0.5]));
    assert_eq!(apply(abi::MPI_MAX, abi::MPI_DOUBLE, &[nan], &[one]), Ok(vec![1.0]), "NaN never wins");
}

#[test]
fn complex_numbers_are_multiplied_as_such() {
    let product = apply(abi::MPI_PROD, abi::MPI_C_DOUBLE_COMPLEX, &[[1.0, 2.0]], &[[3.0, -4.0]]);
    assert_eq!(product, Ok(vec![[11.0, 2.0]]));
    let sum = apply(abi::MPI_SUM, abi::MPI_C_FLOAT_COMPLEX, &[[1f32, 2.0]], &[[3.0, -4.0]]);
    assert_eq!(sum, Ok(vec![[4.0, -2.0]]));
}

/// Real and imaginary part 2 + 3i and 5 + 7i in lanes that Rust has no type for.
#[cfg_attr(miri, ignore = "calls C")]
#[test]
fn wide_complex_numbers_are_multiplied_as_such() {
    for (handle, real) in
        [(abi::MPI_C_LONG_DOUBLE_COMPLEX, MachineType::LONG_DOUBLE), (abi::MPI_COMPLEX32, MachineType::F128)]
    {
        let number = |re, im| [encode(real, re), encode(real, im)].concat();
        let (left, mut right) = (number(7, 2), number(5, 3));
        // SAFETY: one complex number each.
        let done =
            unsafe { op(abi::MPI_PROD).apply(left.as_ptr(), right.as_mut_ptr(), 1, &ty(handle), handle) };
        assert_eq!((done, right), (Ok(()), number(29, 31)));
    }
}

#[cfg(target_arch = "x86_64")]
#[cfg_attr(miri, ignore = "calls C")]
#[test]
fn long_double_keeps_all_of_its_64_bits_of_mantissa() {
    // (2^63 + 1) + 2^63 = 2^64 + 1 rounds to 2^64; 2^62 + 1 is exact.
    let number = |mantissa: u64, exponent: u16| {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
        bytes[8..10].copy_from_slice(&(16383 + exponent).to_le_bytes());
        bytes
    };
    let one = number(1 << 63, 0);
    let sum = apply(abi::MPI_SUM, abi::MPI_LONG_DOUBLE, &[number(1 << 63, 63)], &[one]);
    assert_eq!(sum, Ok(vec![number(1 << 63 | 1, 63)]), "2^63 + 1 is exact");
    let mut minus = one;
    minus[9] |= 0x80;
    assert_eq!(apply(abi::MPI_MIN, abi::MPI_LONG_DOUBLE, &[minus], &[one]), Ok(vec![minus]));
    assert_eq!(apply(abi::MPI_MAX, abi::MPI_LONG_DOUBLE, &[minus], &[one]), Ok(vec![one]));
    let nan = number(3 << 62, 16384);
    assert_eq!(apply(abi::MPI_MAX, abi::MPI_LONG_DOUBLE, &[nan], &[one]), Ok(vec![one]));
}

/// Of REAL(16) everywhere, and of `long double` where that is quadruple precision, too.
#[cfg_attr(miri, ignore = "calls C")]
#[test]
fn quadruple_precision_keeps_all_of_its_112_bits_of_fraction() {
    let number = |exponent: u128, fraction: u128| ((16383 + exponent) << 112 | fraction).to_le_bytes();
    let of_type = if MachineType::LONG_DOUBLE == MachineType::F128 {
        [abi::MPI_REAL16, abi::MPI_LONG_DOUBLE]
    } else {
        [abi::MPI_REAL16; 2]
    };
    for handle in of_type {
        let one = number(0, 0);
        assert_eq!(apply(abi::MPI_SUM, handle, &[number(112, 0)], &[one]), Ok(vec![number(112, 1)]));
        assert_eq!(apply(abi::MPI_PROD, handle, &[number(3, 5)], &[number(2, 0)]), Ok(vec![number(5, 5)]));
        let mut minus = one;
        minus[15] |= 0x80;
        assert_eq!(apply(abi::MPI_MIN, handle, &[minus, one], &[one, minus]), Ok(vec![minus; 2]));
        assert_eq!(apply(abi::MPI_MAX, handle, &[minus, one], &[one, minus]), Ok(vec![one; 2]));
        let nan = number(16384, 1 << 111);
        assert_eq!(apply(abi::MPI_MAX, handle, &[nan], &[one]), Ok(vec![one]), "NaN never wins");
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct DoubleInt(f64, i32);

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct ShortInt(i16, i32);

#[test]
fn locations_go_with_the_extreme_value_and_ties_to_the_smaller_index() {
    let left = [DoubleInt(1.0, 7), DoubleInt(2.0, 7), DoubleInt(3.0, 7), DoubleInt(2.0, 1)];
    let right = [DoubleInt(2.0, 3), DoubleInt(2.0, 3), DoubleInt(2.0, 3), DoubleInt(2.0, 3)];
    let max = [DoubleInt(2.0, 3), DoubleInt(2.0, 3), DoubleInt(3.0, 7), DoubleInt(2.0, 1)];
    let min = [DoubleInt(1.0, 7), DoubleInt(2.0, 3), DoubleInt(2.0, 3), DoubleInt(2.0, 1)];
    assert_eq!(apply(abi::MPI_MAXLOC, abi::MPI_DOUBLE_INT, &left, &right), Ok(max.to_vec()));
    assert_eq!(apply(abi::MPI_MINLOC, abi::MPI_DOUBLE_INT, &left, &right), Ok(min.to_vec()));
    let short = apply(abi::MPI_MINLOC, abi::MPI_SHORT_INT, &[ShortInt(-4, 9)], &[ShortInt(4, 1)]);
    assert_eq!(short, Ok(vec![ShortInt(-4, 9)]));
    let real = apply(abi::MPI_MAXLOC, abi::MPI_2REAL, &[[1f32, 2.0]], &[[1.0, 3.0]]);
    assert_eq!(real, Ok(vec![[1.0, 2.0]]));
    assert_eq!(apply(abi::MPI_MAXLOC, abi::MPI_DOUBLE, &[1.0], &[2.0]), Err(MISFIT));
    assert_eq!(apply(abi::MPI_SUM, abi::MPI_2INT, &[[1, 2]], &[[1, 2]]), Err(MISFIT));
}

#[test]
fn packed_pairs_are_combined_without_their_padding() {
    let pack = |pairs: &[(f64, i32)]| -> Vec<u8> {
        pairs.iter().flat_map(|(v, i)| [&v.to_le_bytes()[..], &i.to_le_bytes()].concat()).collect()
    };
    let (left, mut right) = (pack(&[(1.0, 2), (9.0, 4)]), pack(&[(5.0, 6), (5.0, 6)]));
    let handle = abi::MPI_DOUBLE_INT;
    // SAFETY: no user function is called.
    let done = unsafe { op(abi::MPI_MAXLOC).apply_packed(&left, &mut right, &ty(handle), handle) };
    assert_eq!((done, right), (Ok(()), pack(&[(5.0, 6), (9.0, 4)])));
}

/// Elements of three ints with a hole: a[0], a[2]; adds them and writes the count and handle it saw into the hole.
unsafe extern "C" fn add_holed(left: *mut c_void, right: *mut c_void, len: *mut i32, datatype: *mut usize) {
    // SAFETY: the tests pass `len` elements of three ints.
    unsafe {
        for i in 0..(*len as usize) {
            let (from, to) = (left.cast::<i32>().add(3 * i), right.cast::<i32>().add(3 * i));
            *to += *from;
            *to.add(2) += *from.add(2);
            *to.add(1) = *len + *datatype as i32;
        }
    }
}

fn holed() -> Datatype {
    let int = ty(abi::MPI_INT);
    Datatype::resized(&Datatype::vector(2, 1, 2, &int).unwrap(), 0, 12).unwrap()
}

#[test]
fn a_users_function_sees_elements_as_they_lie_in_a_buffer() {
    // SAFETY: the function is called with elements of `holed` only.
    let add = unsafe { Op::user(add_holed, true) };
    let (left, mut right) = ([1, 0, 2, 3, 0, 4], [10, 0, 20, 30, 0, 40]);
    // SAFETY: two elements each.
    unsafe { add.apply(left.as_ptr().cast(), right.as_mut_ptr().cast(), 2, &holed(), 5000) }.unwrap();
    assert_eq!(right, [11, 5002, 22, 33, 5002, 44]);
}

#[test]
fn a_users_function_on_a_packed_stream_gets_it_laid_out() {
    // SAFETY: the function is called with elements of `holed` only.
    let add = unsafe { Op::user(add_holed, false) };
    let bytes = |ints: [i32; 4]| ints.map(i32::to_ne_bytes).concat();
    let (left, mut right) = (bytes([1, 2, 3, 4]), bytes([10, 20, 30, 40]));
    // SAFETY: two elements each.
    unsafe { add.apply_packed(&left, &mut right, &holed(), 5000) }.unwrap();
    assert_eq!(right, bytes([11, 22, 33, 44]));
    assert!(!add.commutative());
    // SAFETY: nothing is called, as the lengths are refused.
    assert!(unsafe { add.apply_packed(&left[..12], &mut right, &holed(), 5000) }.is_err());
}

#[test]
fn replace_copies_the_data_of_any_type_and_no_op_copies_nothing() {
    let (left, mut right) = ([1, 2, 3], [7, 8, 9]);
    let (from, to) = (left.as_ptr().cast(), right.as_mut_ptr().cast());
    // SAFETY: one element each.
    unsafe { op(abi::MPI_REPLACE).apply(from, to, 1, &holed(), 0) }.unwrap();
    assert_eq!(right, [1, 8, 3]);
    let to = right.as_mut_ptr().cast();
    // SAFETY: one element each.
    unsafe { op(abi::MPI_NO_OP).apply([5, 5, 5].as_ptr().cast(), to, 1, &holed(), 0) }.unwrap();
    assert_eq!(right, [1, 8, 3]);
    assert!(op(abi::MPI_REPLACE).is_for_rma_only() && !op(abi::MPI_REPLACE).commutative());
}

#[test]
fn derived_types_are_refused_by_predefined_operations() {
    assert_eq!(op(abi::MPI_SUM).check(&ty(abi::MPI_INT).duplicate()), Err(MISFIT));
    assert_eq!(op(abi::MPI_SUM).check(&Datatype::contiguous(2, &ty(abi::MPI_INT)).unwrap()), Err(MISFIT));
    assert_eq!(op(abi::MPI_SUM).check(&Datatype::f90_real(Some(10), None).unwrap()), Ok(()));
    assert!(Op::predefined(abi::MPI_OP_NULL).is_none());
}

/// Long arrays go through loops that are compiled for wider registers, in whose steps a rest remains.
#[test]
fn long_arrays_at_any_alignment_are_combined_as_single_elements_are() {
    let (lengths, pad) = if cfg!(miri) { (&[131][..], 3) } else { (&[63, 64, 131, 517][..], 7) };
    for basic in Basic::all().filter(|basic| !cfg!(miri) || basic.handle() == abi::MPI_INT) {
        let datatype = ty(basic.handle());
        let size = basic.machine_type().size();
        for (operation, allowed) in OPERATIONS.into_iter().zip(allowed(basic.class())) {
            for n in lengths.iter().copied().filter(|_| allowed == 1) {
                let value = |i: usize, by: usize| (i * by % 11) as u8;
                let packed = |by| (0..n).flat_map(move |i| encode(basic.machine_type(), value(i, by)));
                let left: Vec<u8> = core::iter::repeat_n(1, pad).chain(packed(7)).collect();
                let mut right: Vec<u8> = core::iter::once(2).chain(packed(5)).chain([3]).collect();
                // SAFETY: behind the paddings are `n` elements of the type each.
                unsafe {
                    let (from, to) = (left.as_ptr().add(pad), right.as_mut_ptr().add(1));
                    op(operation).apply(from, to, n, &datatype, basic.handle()).unwrap();
                }
                let want = (0..n).flat_map(|i| {
                    encode(basic.machine_type(), expected(operation, value(i, 7), value(i, 5)))
                });
                let want: Vec<u8> = core::iter::once(2).chain(want).chain([3]).collect();
                assert_eq!(right, want, "{} {operation}: {n} of {size} bytes", basic.name());
            }
        }
    }
}
