//! C's `long double` on x86-64: 80 bits, computed by the x87 unit, since Rust has no such type.

use core::arch::asm;

use super::super::number::{Arithmetic, Ordered, Real, Scalar};

/// The memory form: ten bytes of value and six of padding, which results take from their second operand.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::datatype::op) struct X87([u8; 16]);

impl Scalar for X87 {}

/// Loads both operands, runs one popping instruction, stores the result.
macro_rules! compute {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let mut result = $right;
        // SAFETY: reads ten bytes of each operand, which are live locals, and writes ten to `result`; every x87 register is
        // declared clobbered, and the stack is empty on entry and on exit.
        unsafe {
            asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{result}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                left = in(reg) $left.0.as_ptr(),
                result = in(reg) result.0.as_mut_ptr(),
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

impl Arithmetic for X87 {
    fn add(self, other: Self) -> Self {
        compute!("faddp st(1), st", self, other)
    }
    fn mul(self, other: Self) -> Self {
        compute!("fmulp st(1), st", self, other)
    }
}

impl Real for X87 {
    fn negated(mut self) -> Self {
        self.0[9] ^= 0x80;
        self
    }
}

/// Compares as C does: (left above right, left equals right), both false with a NaN.
fn compare(left: X87, right: X87) -> (bool, bool) {
    let (above, equal, ordered): (u8, u8, u8);
    // SAFETY: reads ten bytes of two live locals; the x87 stack is empty on entry and on exit.
    unsafe {
        asm!(
            "fld tbyte ptr [{right}]",
            "fld tbyte ptr [{left}]",
            "fucomip st, st(1)",
            "fstp st(0)",
            "seta {above}",
            "sete {equal}",
            "setnp {ordered}",
            left = in(reg) left.0.as_ptr(),
            right = in(reg) right.0.as_ptr(),
            above = out(reg_byte) above,
            equal = out(reg_byte) equal,
            ordered = out(reg_byte) ordered,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    (above != 0, equal != 0 && ordered != 0)
}

impl Ordered for X87 {
    fn above(self, other: Self) -> bool {
        compare(self, other).0
    }
    fn same(self, other: Self) -> bool {
        compare(self, other).1
    }
}
