//! The marks of all partitions of a request.

use super::words::Mark;
use crate::error::{Error, Result};
use core::ops::Deref;
use std::alloc::{Layout, alloc_zeroed};

/// A mark for each partition. Memory that comes with zeros in it is not touched:
/// a mark that nobody sets costs an address.
#[derive(Debug, Default)]
pub(super) struct Marks(Box<[Mark]>);

impl Marks {
    /// So many marks of no round.
    ///
    /// # Errors
    /// [`Error::NoMem`].
    pub fn new(number: usize) -> Result<Self> {
        if number == 0 {
            return Ok(Self::default());
        }
        let none = || Error::NoMem(format!("the marks of {number} partitions"));
        let layout = Layout::array::<Mark>(number).map_err(|_| none())?;
        // SAFETY: the layout has a size above zero.
        let first = unsafe { alloc_zeroed(layout) }.cast::<Mark>();
        if first.is_null() {
            return Err(none());
        }
        // SAFETY: the global allocator has just given memory of the layout of such a slice,
        // and a mark of zero is one of no round.
        Ok(Self(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(first, number)) }))
    }
}

impl Deref for Marks {
    type Target = [Mark];

    fn deref(&self) -> &[Mark] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn marks_begin_in_no_round() {
        let marks = Marks::new(3).unwrap();
        assert!(marks.len() == 3 && marks.iter().all(|mark| !mark.is_ready(1) && mark.step(1)));
        assert!(Marks::new(0).unwrap().is_empty());
        assert!(Marks::new(usize::MAX).is_err());
    }
}
