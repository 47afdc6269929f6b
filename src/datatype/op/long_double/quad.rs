//! Fortran's `REAL(16)`: IEEE quadruple precision, computed by the compiler's own runtime, since stable Rust has no such type.

use core::arch::asm;
use core::arch::x86_64::__m128i;

use super::super::number::{Arithmetic, Ordered, Real, Scalar};

/// The bits: sign, 15 of exponent, 112 of fraction.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(in crate::datatype::op) struct Quad(u128);

impl Scalar for Quad {}

const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0x7fff << 112;

// `__float128 f(__float128, __float128)` of libgcc and compiler-builtins. Rust cannot name that type, so they are
// called from assembly and declared without arguments.
unsafe extern "C" {
    fn __addtf3();
    fn __multf3();
}

macro_rules! call {
    ($function:ident, $left:expr, $right:expr) => {{
        let (left, right): (__m128i, __m128i);
        // SAFETY: sixteen bytes of either type are any bit pattern.
        unsafe {
            left = core::mem::transmute::<u128, __m128i>($left.0);
            right = core::mem::transmute::<u128, __m128i>($right.0);
        }
        let result: __m128i;
        // SAFETY: the function takes two quadruples in xmm0 and xmm1 and gives one back in xmm0 (System V ABI); everything
        // that it may clobber is declared, and the stack is aligned for calls at an asm block's entry.
        unsafe {
            asm!(
                "call {function}",
                function = sym $function,
                inlateout("xmm0") left => result,
                in("xmm1") right,
                clobber_abi("C"),
            );
            Quad(core::mem::transmute::<__m128i, u128>(result))
        }
    }};
}

impl Arithmetic for Quad {
    fn add(self, other: Self) -> Self {
        call!(__addtf3, self, other)
    }
    fn mul(self, other: Self) -> Self {
        call!(__multf3, self, other)
    }
}

impl Real for Quad {
    fn negated(self) -> Self {
        Self(self.0 ^ SIGN)
    }
}

impl Quad {
    fn is_nan(self) -> bool {
        self.0 & !SIGN > INFINITY
    }

    /// Integers in the order of the numbers; both zeros are 0.
    fn key(self) -> i128 {
        let magnitude = (self.0 & !SIGN) as i128;
        if self.0 & SIGN == 0 { magnitude } else { -magnitude }
    }
}

impl Ordered for Quad {
    fn above(self, other: Self) -> bool {
        !self.is_nan() && !other.is_nan() && self.key() > other.key()
    }
    fn same(self, other: Self) -> bool {
        !self.is_nan() && !other.is_nan() && self.key() == other.key()
    }
}
