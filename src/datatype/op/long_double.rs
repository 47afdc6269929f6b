//! Arithmetic on C's `long double` and on quadruple precision (Fortran's `REAL(16)`), which Rust has no types for: the
//! kernels of `long_double.c`, which `build.rs` compiles.

use super::super::MachineType;
use super::kernels::Builtin;
use super::number::{Ordered, Scalar};

/// `right[i] = left[i] op right[i]` on `n` values. The caller follows kernel rule 1.
type Kernel = unsafe extern "C" fn(left: *const u8, right: *mut u8, n: usize);

macro_rules! wide {
    ($ty:ident, $all:ident, $doc:literal: $sum:ident $prod:ident $min:ident $max:ident $complex_prod:ident $above:ident $same:ident) => {
        unsafe extern "C" {
            fn $sum(left: *const u8, right: *mut u8, n: usize);
            fn $prod(left: *const u8, right: *mut u8, n: usize);
            fn $min(left: *const u8, right: *mut u8, n: usize);
            fn $max(left: *const u8, right: *mut u8, n: usize);
            fn $complex_prod(left: *const u8, right: *mut u8, n: usize);
            fn $above(left: *const u8, right: *const u8) -> bool;
            fn $same(left: *const u8, right: *const u8) -> bool;
        }

        const $all: Kernels =
            Kernels { sum: $sum, prod: $prod, min: $min, max: $max, complex_prod: $complex_prod };

        #[doc = $doc]
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $ty([u8; 16]);

        impl Scalar for $ty {}

        impl Ordered for $ty {
            fn above(self, other: Self) -> bool {
                // SAFETY: the function reads sixteen bytes of each, and both are live locals of that size.
                unsafe { $above(self.0.as_ptr(), other.0.as_ptr()) }
            }
            fn same(self, other: Self) -> bool {
                // SAFETY: the function reads sixteen bytes of each, and both are live locals of that size.
                unsafe { $same(self.0.as_ptr(), other.0.as_ptr()) }
            }
        }
    };
}

wide!(LongDouble, LONG_DOUBLE, "A `long double` of C, in 16 bytes.":
    perusal_long_double_sum perusal_long_double_prod perusal_long_double_min perusal_long_double_max
    perusal_long_double_complex_prod perusal_long_double_above perusal_long_double_same);
wide!(Quad, QUAD, "IEEE quadruple precision.":
    perusal_quad_sum perusal_quad_prod perusal_quad_min perusal_quad_max
    perusal_quad_complex_prod perusal_quad_above perusal_quad_same);

struct Kernels {
    sum: Kernel,
    prod: Kernel,
    min: Kernel,
    max: Kernel,
    complex_prod: Kernel,
}

/// `right = left op right` on `n` values of one of this module's types; does nothing where `op` does not take it.
///
/// # Safety
/// Kernel rule 1, with values of `machine_type`.
pub(super) unsafe fn reduce(
    op: Builtin,
    machine_type: MachineType,
    left: *const u8,
    right: *mut u8,
    n: usize,
) {
    let (kernels, complex) = match machine_type {
        MachineType::F80 => (&LONG_DOUBLE, false),
        MachineType::C80 => (&LONG_DOUBLE, true),
        MachineType::F128 => (&QUAD, false),
        MachineType::C128 => (&QUAD, true),
        _ => return,
    };
    let (kernel, n) = match (op, complex) {
        (Builtin::Sum, false) => (kernels.sum, n),
        // The sum of complex numbers is that of their parts.
        (Builtin::Sum, true) => (kernels.sum, 2 * n),
        (Builtin::Prod, false) => (kernels.prod, n),
        (Builtin::Prod, true) => (kernels.complex_prod, n),
        (Builtin::Min, false) => (kernels.min, n),
        (Builtin::Max, false) => (kernels.max, n),
        _ => return,
    };
    // SAFETY: kernel rule 1: the kernel is the one of the type, and reads and writes `n` values of it.
    unsafe { kernel(left, right, n) };
}
