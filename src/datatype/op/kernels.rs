//! The loops: one predefined operation over two arrays of one representation.
//! Simple enough for the compiler to vectorise.
//!
//! - **Kernel rule 1.** `left` and `right` of a kernel are `n` packed values (or pairs) of its type each, at any
//!   alignment. Nobody else writes `left` or uses `right`, and the two do not overlap.

use super::super::{Basic, BasicClass, MachineType};
use super::long_double::{self, LongDouble, Quad};
use super::number::{Arithmetic, Bits, Complex, Ordered, Scalar, Truth};

/// The predefined operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    Sum,
    Min,
    Max,
    Prod,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Xor,
    MinLoc,
    MaxLoc,
    Replace,
    NoOp,
}

/// `right[i] = f(left[i], right[i])`.
///
/// # Safety
/// Both are `n` values of type `T`, at any alignment; they do not overlap and nobody else touches them.
#[inline(always)]
unsafe fn zip<T: Scalar>(left: *const u8, right: *mut u8, n: usize, f: impl Fn(T, T) -> T) {
    #[cfg(target_arch = "x86_64")]
    if n * size_of::<T>() >= WIDE_FROM {
        if has_widest() {
            // SAFETY: kernel rule 1; the processor has the instructions.
            return unsafe { zip_widest(left, right, n, f) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: kernel rule 1; the processor has the instructions.
            return unsafe { zip_wide(left, right, n, f) };
        }
    }
    // SAFETY: kernel rule 1.
    unsafe { zip_plain(left, right, n, f) };
}

/// Bytes from which the test for wide registers is worth its while.
#[cfg(target_arch = "x86_64")]
const WIDE_FROM: usize = 256;

/// Whether registers of 64 bytes are worth while: on processors that have this set of instructions, using them does not
/// lower the clock as it did on the first ones that had such registers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_widest() -> bool {
    std::is_x86_feature_detected!("avx512vbmi2")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}

/// The same loop, compiled for wider registers. No operation is rounded differently there.
///
/// # Safety
/// As for `zip`; the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn zip_wide<T: Scalar>(left: *const u8, right: *mut u8, n: usize, f: impl Fn(T, T) -> T) {
    // SAFETY: kernel rule 1.
    unsafe { zip_plain(left, right, n, f) };
}

/// The same for registers of 64 bytes: within the first two caches the loop takes 0.4 to 0.9 of the time.
///
/// # Safety
/// As for `zip`; [`has_widest`] says yes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn zip_widest<T: Scalar>(left: *const u8, right: *mut u8, n: usize, f: impl Fn(T, T) -> T) {
    // SAFETY: kernel rule 1.
    unsafe { zip_plain(left, right, n, f) };
}

/// # Safety
/// As for `zip`.
#[inline(always)]
unsafe fn zip_plain<T: Scalar>(left: *const u8, right: *mut u8, n: usize, f: impl Fn(T, T) -> T) {
    let (left, right) = (left.cast::<T>(), right.cast::<T>());
    for i in 0..n {
        // SAFETY: kernel rule 1, for value i < n of both.
        unsafe {
            let result = f(left.add(i).read_unaligned(), right.add(i).read_unaligned());
            right.add(i).write_unaligned(result);
        }
    }
}

/// Calls `$f::<T>` with the Rust type of a machine type;
/// machine types that are not listed do nothing (they were refused before).
macro_rules! by_machine_type {
    ($machine_type:expr, $f:ident $args:tt: $($name:ident => $ty:ty),* $(; $(c $c_name:ident),* => $c:expr)?) => {
        match $machine_type {
            // SAFETY: kernel rule 1; the type is the one that the machine type names.
            $(MachineType::$name => unsafe { $f::<$ty> $args },)*
            // SAFETY: kernel rule 1; these types are those of `long_double`.
            $($(MachineType::$c_name)|* => unsafe { $c },)?
            #[allow(unreachable_patterns)]
            _ => {}
        }
    };
}

impl Builtin {
    /// `right = left op right` on `n` values; an operation that does not take the machine type does nothing.
    ///
    /// # Safety
    /// As for `zip`, with values of `machine_type`.
    pub unsafe fn reduce(
        self,
        machine_type: MachineType,
        class: BasicClass,
        left: *const u8,
        right: *mut u8,
        n: usize,
    ) {
        match self {
            Self::Sum | Self::Prod => by_machine_type!(machine_type, arithmetic(self, left, right, n):
                I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
                U64 => u64, F32 => f32, F64 => f64, C32 => Complex<f32>, C64 => Complex<f64>;
                c F80, c F128, c C80, c C128 => long_double::reduce(self, machine_type, left, right, n)),
            Self::Min | Self::Max => by_machine_type!(machine_type, extreme(self, left, right, n):
                I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
                U64 => u64, F32 => f32, F64 => f64;
                c F80, c F128 => long_double::reduce(self, machine_type, left, right, n)),
            Self::And | Self::Or | Self::Xor => by_machine_type!(machine_type, logical(self, left, right, n):
                I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
                U64 => u64),
            Self::BitAnd | Self::BitOr | Self::BitXor => {
                by_machine_type!(machine_type, bitwise(self, left, right, n):
                I8 => u8, I16 => u16, I32 => u32, I64 => u64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
                U64 => u64)
            }
            Self::Replace => {
                // SAFETY: kernel rule 1: n values each, which do not overlap.
                unsafe { core::ptr::copy_nonoverlapping(left, right, n * machine_type.size()) };
            }
            Self::NoOp | Self::MinLoc | Self::MaxLoc => {}
        }
        debug_assert!(class != BasicClass::Opaque || matches!(self, Self::Replace | Self::NoOp));
    }
}

/// # Safety
/// As for `zip`.
unsafe fn arithmetic<T: Arithmetic>(op: Builtin, left: *const u8, right: *mut u8, n: usize) {
    // SAFETY: kernel rule 1.
    unsafe {
        match op {
            Builtin::Sum => zip::<T>(left, right, n, T::add),
            _ => zip::<T>(left, right, n, T::mul),
        }
    }
}

/// # Safety
/// As for `zip`.
unsafe fn extreme<T: Ordered>(op: Builtin, left: *const u8, right: *mut u8, n: usize) {
    // SAFETY: kernel rule 1.
    unsafe {
        match op {
            Builtin::Max => zip::<T>(left, right, n, |a, b| if a.above(b) { a } else { b }),
            _ => zip::<T>(left, right, n, |a, b| if b.above(a) { a } else { b }),
        }
    }
}

/// # Safety
/// As for `zip`.
unsafe fn logical<T: Truth>(op: Builtin, left: *const u8, right: *mut u8, n: usize) {
    // SAFETY: kernel rule 1.
    unsafe {
        match op {
            Builtin::And => zip::<T>(left, right, n, |a, b| T::from_truth(a.truth() & b.truth())),
            Builtin::Or => zip::<T>(left, right, n, |a, b| T::from_truth(a.truth() | b.truth())),
            _ => zip::<T>(left, right, n, |a, b| T::from_truth(a.truth() ^ b.truth())),
        }
    }
}

/// # Safety
/// As for `zip`.
unsafe fn bitwise<T: Bits>(op: Builtin, left: *const u8, right: *mut u8, n: usize) {
    // SAFETY: kernel rule 1.
    unsafe {
        match op {
            Builtin::BitAnd => zip::<T>(left, right, n, |a, b| a & b),
            Builtin::BitOr => zip::<T>(left, right, n, |a, b| a | b),
            _ => zip::<T>(left, right, n, |a, b| a ^ b),
        }
    }
}

/// How pairs lie in memory: the index `at` bytes after the value, pairs `stride` bytes apart.
pub(super) struct Pairs {
    pub value: Basic,
    pub index: Basic,
    pub at: usize,
    pub stride: usize,
}

impl Pairs {
    /// MPI_MINLOC or MPI_MAXLOC on `n` pairs: of equal values, the one with the smaller index.
    ///
    /// # Safety
    /// Both are `n` pairs laid out like this, do not overlap, and nobody else touches them.
    pub unsafe fn choose(&self, op: Builtin, left: *const u8, right: *mut u8, n: usize) {
        by_machine_type!(self.value.machine_type(), choose_by(self, op, left, right, n):
            I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
            U64 => u64, F32 => f32, F64 => f64, F80 => LongDouble, F128 => Quad);
    }

    /// # Safety
    /// Both are indices.
    unsafe fn smaller_index(&self, left: *const u8, right: *const u8) -> bool {
        let mut smaller = false;
        by_machine_type!(self.index.machine_type(), is_below(left, right, &mut smaller):
            I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32,
            U64 => u64, F32 => f32, F64 => f64);
        smaller
    }
}

/// # Safety
/// Both are values of `T`.
unsafe fn is_below<T: Ordered>(left: *const u8, right: *const u8, below: &mut bool) {
    // SAFETY: kernel rule 1.
    *below = unsafe { T::load(right).above(T::load(left)) };
}

/// # Safety
/// As for [`Pairs::choose`], with values of `T`.
unsafe fn choose_by<T: Ordered>(pairs: &Pairs, op: Builtin, left: *const u8, right: *mut u8, n: usize) {
    for i in 0..n {
        let (from, to) = (left.wrapping_add(i * pairs.stride), right.wrapping_add(i * pairs.stride));
        let (from_index, to_index) = (from.wrapping_add(pairs.at), to.wrapping_add(pairs.at));
        // SAFETY: i < n, so these are the values and indices of pair i of both.
        unsafe {
            let (a, b) = (T::load(from), T::load(to));
            let wins = if op == Builtin::MaxLoc { a.above(b) } else { b.above(a) };
            if wins || a.same(b) && pairs.smaller_index(from_index, to_index) {
                core::ptr::copy_nonoverlapping(from, to, size_of::<T>());
                core::ptr::copy_nonoverlapping(from_index, to_index, pairs.index.size());
            }
        }
    }
}
