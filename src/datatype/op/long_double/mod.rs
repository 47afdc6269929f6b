//! Arithmetic on `long double` and on quadruple precision, which Rust has no types for: all of it in assembly, in this folder.

mod quad;
mod x87;

pub(super) use quad::Quad;
pub(super) use x87::X87;
