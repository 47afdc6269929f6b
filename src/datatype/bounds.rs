//! Lower and upper bounds (MPI 5.0 §5.1.6, §5.1.7): where the data lies, the markers that `resized` and the array
//! constructors set, and the padding that alignment asks for when there are no markers.

use crate::{Error, Result};

#[cold]
fn too_far() -> Error {
    Error::Arg("the datatype extends beyond the address space")
}

/// `data` and `marks` are (low, high) in bytes; `None` where a type has no data or no markers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub data: Option<(isize, isize)>,
    pub marks: Option<(isize, isize)>,
    pub align: usize,
}

impl Bounds {
    pub const EMPTY: Self = Self { data: None, marks: None, align: 1 };

    pub fn lb(&self) -> isize {
        self.marks.or(self.data).map_or(0, |(low, _)| low)
    }

    pub fn extent(&self) -> isize {
        match (self.marks, self.data) {
            (Some((low, high)), _) => high.wrapping_sub(low),
            (None, Some((low, high))) => {
                let span = (high - low) as usize;
                isize::try_from(span.next_multiple_of(self.align)).unwrap_or(high - low)
            }
            (None, None) => 0,
        }
    }

    /// Takes in `count` copies of `old`, the first displaced by `at`, each `stride` bytes after the one before.
    pub fn add(&mut self, old: &Self, at: isize, count: usize, stride: isize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let steps = isize::try_from(count - 1).map_err(|_| too_far())?;
        let last = steps.checked_mul(stride).and_then(|way| way.checked_add(at)).ok_or_else(too_far)?;
        self.data = union(self.data, old.data, at, last)?;
        self.marks = union(self.marks, old.marks, at, last)?;
        self.align = self.align.max(old.align);
        Ok(())
    }
}

type Span = Option<(isize, isize)>;

fn union(have: Span, new: Span, first: isize, last: isize) -> Result<Span> {
    let Some((low, high)) = new else { return Ok(have) };
    let low = low.checked_add(first.min(last)).ok_or_else(too_far)?;
    let high = high.checked_add(first.max(last)).ok_or_else(too_far)?;
    let (low, high) = have.map_or((low, high), |(l, h)| (l.min(low), h.max(high)));
    high.checked_sub(low).ok_or_else(too_far)?;
    Ok(Some((low, high)))
}
