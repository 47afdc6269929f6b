//! What a machine representation must be able to do to be reduced.

/// A value of 1 to 32 bytes that may lie anywhere.
pub(super) trait Scalar: Copy {
    /// Reads one.
    ///
    /// # Safety
    /// `at` is readable for the size of `Self`.
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: there are as many bytes as a value has (`at` is readable for so many),
        // and none of its bit patterns is invalid.
        unsafe { at.cast::<Self>().read_unaligned() }
    }
}

/// Sums and products.
pub(super) trait Arithmetic: Scalar {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

/// Minima and maxima. Neither `above` nor `same` holds with a NaN.
pub(super) trait Ordered: Scalar {
    fn above(self, other: Self) -> bool;
    fn same(self, other: Self) -> bool;
}

/// Logical operations: zero is false.
pub(super) trait Truth: Scalar {
    fn truth(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

/// Bitwise operations.
pub(super) trait Bits:
    Scalar + core::ops::BitAnd<Output = Self> + core::ops::BitOr<Output = Self> + core::ops::BitXor<Output = Self>
{
}

macro_rules! ordered {
    ($ty:ty) => {
        impl Scalar for $ty {}
        impl Ordered for $ty {
            #[inline(always)]
            fn above(self, other: Self) -> bool {
                self > other
            }
            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self == other
            }
        }
    };
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        ordered!($ty);
        impl Truth for $ty {
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                Self::from(truth)
            }
        }
        impl Arithmetic for $ty {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
        impl Bits for $ty {}
    )*};
}

macro_rules! floats {
    ($($ty:ty),*) => {$(
        ordered!($ty);
        impl Arithmetic for $ty {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, i128, u8, u16, u32, u64);
floats!(f32, f64);

/// A number whose sign can be turned, so that complex numbers can be made of it.
pub(super) trait Real: Arithmetic {
    fn negated(self) -> Self;
}

impl Real for f32 {
    #[inline(always)]
    fn negated(self) -> Self {
        -self
    }
}
impl Real for f64 {
    #[inline(always)]
    fn negated(self) -> Self {
        -self
    }
}

/// Real part, imaginary part.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Complex<T>(pub T, pub T);

impl<T: Real> Scalar for Complex<T> {}

impl<T: Real> Arithmetic for Complex<T> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0), self.1.add(other.1))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let Self(a, b) = self;
        let Self(c, d) = other;
        Self(a.mul(c).add(b.mul(d).negated()), a.mul(d).add(b.mul(c)))
    }
}
