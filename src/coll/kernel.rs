//! Reduction kernels: an operation on packed elements, as algorithms apply it.
//!
//! Operands are reduced in rank order wherever the operation does not commute, and all ranks that compute the same
//! result compute it in the same association, so that floating point agrees to the bit.

use super::Scratch;
use crate::error::Result;
use core::mem::swap;

/// An operation on packed elements. Algorithms cut buffers between elements only.
pub trait ReductionKernel {
    /// Returns whether the order of the operands does not matter.
    fn commutes(&self) -> bool;
    /// Returns the bytes of an element.
    fn unit(&self) -> usize;
    /// `right[i] = left[i] op right[i]` for every element. `left` may lie in another rank's memory, and stays as it is.
    ///
    /// # Errors
    /// Those of the operation.
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()>;
}

/// Appends: `acc = acc op above`, where `above` comes from higher ranks; `above` is left undefined.
///
/// # Errors
/// Those of the kernel.
pub fn append<K: ReductionKernel>(kernel: &K, acc: &mut Scratch, above: &mut Scratch) -> Result<()> {
    kernel.reduce(acc, above)?;
    swap(acc, above);
    Ok(())
}
