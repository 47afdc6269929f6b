//! Type maps, their constructors, pack and unpack, and the predefined reduction operations on them.
//!
//! A [`Datatype`] is immutable once made and cheap to clone. Inside it is described three times, each time compressed:
//! where the bytes lie (`body`), what they are (`signature`), and how the user made it (`contents`). Names, attributes
//! and committing belong to the handle, so they are in the C bindings.
//!
//! | file | what it defines |
//! |---|---|
//! | `basic`, `predefined` | the basic types, and the predefined datatypes that are made of them |
//! | `construct`, `array` | constructors of derived types |
//! | `body`, `bounds`, `order` | where the data lies, between which bounds, and whether it ascends |
//! | `signature`, `sequence` | what the data is: as a list that is compressed, and as a number that can be compared |
//! | `contents` | how a type was made |
//! | `walk` | pack and unpack |
//! | `external` | the representation "external32" |
//! | [`op`] | reduction operations |

mod array;
pub mod basic;
mod body;
mod bounds;
mod construct;
mod contents;
mod external;
pub mod op;
mod order;
mod predefined;
mod sequence;
mod signature;
mod walk;

#[cfg(test)]
mod tests;

use core::ops::Range;
use std::sync::Arc;

use crate::{Error, Result};

pub use array::{Distribution, Order};
pub use basic::{Basic, BasicClass, CONTIGUOUS_SIZES, MachineType, missing_optional};
pub use contents::{Constructor, Contents};
pub use order::LayoutOrder;

use body::TypeMap;
use bounds::Bounds;
use signature::Signature;

/// An MPI datatype: a sequence of basic types at displacements, with a lower and an upper bound (MPI 5.0 §5.1).
#[derive(Debug, Clone)]
pub struct Datatype(Arc<TypeInner>);

#[derive(Debug)]
struct TypeInner {
    body: TypeMap,
    signature: Signature,
    bounds: Bounds,
    lb: isize,
    extent: isize,
    contiguous: bool,
    made: Constructor,
    /// Made by a `_c` constructor, so that its counts are given back as MPI_Count (MPI 5.0 §5.1.13).
    large: bool,
    parts: Box<[Datatype]>,
}

impl Drop for TypeInner {
    /// A type may be the last of a long chain of types that are made of one another,
    /// which must not take a stack frame each.
    fn drop(&mut self) {
        let mut parts = Vec::from(core::mem::take(&mut self.parts));
        while let Some(part) = parts.pop() {
            if let Some(mut inner) = Arc::into_inner(part.0) {
                parts.extend(core::mem::take(&mut inner.parts));
            }
        }
    }
}

impl Datatype {
    fn build(
        body: TypeMap,
        signature: Signature,
        bounds: Bounds,
        made: Constructor,
        parts: impl Into<Box<[Datatype]>>,
    ) -> Self {
        let (lb, extent) = (bounds.lb(), bounds.extent());
        let contiguous = body.size == 0 || (body.is_run() && extent == body.size as isize);
        debug_assert_eq!(body.size, signature.bytes);
        let parts = parts.into();
        Self(Arc::new(TypeInner {
            body,
            signature,
            bounds,
            lb,
            extent,
            contiguous,
            made,
            large: false,
            parts,
        }))
    }

    /// Bytes of data in one element (MPI_Type_size).
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.0.body.size
    }

    /// Returns the bytes of data in `count` elements: the one place where counts of elements are multiplied by sizes.
    ///
    /// # Errors
    /// [`Error::CountTooLarge`] if the data, or the memory that it is spread over, is larger than the address space.
    #[inline]
    pub fn bytes_of(&self, count: usize) -> Result<usize> {
        let limit = isize::MAX as usize;
        let bytes = self.size().checked_mul(count).filter(|bytes| *bytes <= limit);
        let span = self.extent().unsigned_abs().checked_mul(count).filter(|span| *span <= limit);
        match (bytes, span) {
            (Some(0), _) => Ok(0),
            (Some(bytes), Some(_)) => Ok(bytes),
            _ => Err(Error::CountTooLarge(count)),
        }
    }

    /// Distance in bytes from one element of an array to the next (MPI_Type_get_extent).
    #[must_use]
    #[inline]
    pub fn extent(&self) -> isize {
        self.0.extent
    }

    /// The lower bound in bytes.
    #[must_use]
    pub fn lb(&self) -> isize {
        self.0.lb
    }

    /// The displacement of the first byte of data; 0 if there is none (MPI_Type_get_true_extent).
    #[must_use]
    pub fn true_lb(&self) -> isize {
        self.0.bounds.data.map_or(0, |(low, _)| low)
    }

    /// Bytes from the first to behind the last byte of data.
    #[must_use]
    pub fn true_extent(&self) -> isize {
        self.0.bounds.data.map_or(0, |(low, high)| high - low)
    }

    /// The displacements of the first byte of data of `count` elements in a row, and of the byte behind the last;
    /// `None` if they are not numbers that an address can be moved by. Both are 0 if there is no data.
    #[must_use]
    pub fn data_span(&self, count: usize) -> Option<(isize, isize)> {
        if count == 0 || self.size() == 0 {
            return Some((0, 0));
        }
        let steps = isize::try_from(count - 1).ok()?.checked_mul(self.extent())?;
        let (low, high) = self.0.bounds.data?;
        Some((low.checked_add(steps.min(0))?, high.checked_add(steps.max(0))?))
    }

    /// Whether `count` elements are one run of `size * count` bytes that starts at `true_lb`.
    #[must_use]
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// How it was made, for MPI_Type_get_envelope and MPI_Type_get_contents.
    #[must_use]
    pub fn made(&self) -> &Constructor {
        &self.0.made
    }

    /// The datatypes that the constructor was given.
    #[must_use]
    pub fn parts(&self) -> &[Datatype] {
        &self.0.parts
    }

    /// Whether it is predefined, named or not: such a type cannot be freed and need not be committed.
    #[must_use]
    pub fn is_predefined(&self) -> bool {
        self.0.made.is_predefined()
    }

    /// The ABI handle of a named predefined type.
    #[must_use]
    pub fn named(&self) -> Option<usize> {
        match self.0.made {
            Constructor::Named(handle) => Some(handle),
            _ => None,
        }
    }

    /// The basic type of which all elements are, however they lie; `None` if there are several or none.
    #[must_use]
    pub fn uniform(&self) -> Option<Basic> {
        self.0.signature.uniform()
    }

    /// Value and index of a pair type (MPI 5.0 §6.9.4), with the displacement of the index in bytes.
    #[must_use]
    pub fn pair(&self) -> Option<(Basic, Basic, usize)> {
        let handle = self.named()?;
        let is_pair = basic::PAIRS.iter().any(|pair| pair.0 == handle);
        let [value, index] = self.parts() else { return None };
        let (value, index) = (value.uniform()?, index.uniform()?);
        is_pair.then(|| (value, index, value.size().next_multiple_of(index.align())))
    }

    /// The pair type of which all elements are, however they lie; `None` for any other type.
    #[must_use]
    pub fn pair_base(&self) -> Option<&Self> {
        let mut base = self;
        // However long the chain is of types that are made of one other.
        while let (None, [part]) = (base.pair(), base.parts())
            && part.size() > 0
        {
            base = part;
        }
        if base.pair().is_some() {
            return Some(base);
        }
        let mut bases = base.parts().iter().filter(|part| part.size() > 0).map(Self::pair_base);
        let first = bases.next()??;
        bases.all(|base| base.is_some_and(|base| base.named() == first.named())).then_some(first)
    }

    /// Whether both are the same object, so that all answers agree without looking.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Basic elements in one element of this type.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.0.signature.elements
    }

    /// How many whole elements `bytes` received bytes are (MPI_Get_count); `None` if they end inside one.
    #[must_use]
    pub fn count_in(&self, bytes: usize) -> Option<usize> {
        match (self.size(), bytes) {
            (_, 0) => Some(0),
            (0, _) => None,
            (size, _) => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }

    /// How many basic elements `bytes` received bytes are (MPI_Get_elements); `None` if they end inside one.
    #[must_use]
    pub fn elements_in(&self, bytes: usize) -> Option<usize> {
        match (self.size(), bytes) {
            (_, 0) => Some(0),
            (0, _) => None,
            (size, _) => {
                let (elements, rest) = self.0.signature.elements_in(bytes % size);
                (rest == 0).then_some(bytes / size * self.elements() + elements)
            }
        }
    }

    /// Bytes of the first `elements` basic elements of a packed stream (MPI_Status_set_elements).
    ///
    /// # Errors
    /// [`Error::Arg`] if that overflows.
    pub fn bytes_of_elements(&self, elements: usize) -> Result<usize> {
        if self.elements() == 0 {
            return Ok(0);
        }
        let whole = (elements / self.elements()).checked_mul(self.size());
        let rest = self.0.signature.bytes_of(elements % self.elements());
        whole.and_then(|whole| whole.checked_add(rest)).ok_or(Error::Arg("number of elements is too large"))
    }

    /// Calls `f` with each stretch of equal basic elements of one element of this type, in type map order.
    pub fn for_each_basic(&self, mut f: impl FnMut(Basic, usize)) {
        self.0.signature.for_each(&mut f);
    }

    /// Copies bytes `position..` of the packed stream of `count` elements at `buf` to `out`, until one of them ends.
    /// Returns the bytes written. Any position costs the same.
    ///
    /// # Safety
    /// `buf` (MPI_BOTTOM for absolute displacements) holds `count` elements of this type that nobody writes meanwhile,
    /// and `out` does not overlap them.
    pub unsafe fn pack(&self, count: usize, buf: *const u8, position: usize, out: &mut [u8]) -> usize {
        let total = self.size() * count;
        if position >= total {
            return 0;
        }
        let room = out.len().min(total - position);
        let mut packer = walk::Packer { buffer: buf, stream: out.as_mut_ptr(), left: room };
        // SAFETY: walk rule 1: `buf` holds `count` elements; walk rule 2: `left` is cut to `out` above.
        unsafe { self.walk(count, position, &mut packer) };
        room
    }

    /// Copies `input` to where bytes `position..` of the packed stream of `count` elements at `buf` belong, until one
    /// of them ends. Returns the bytes taken.
    ///
    /// # Safety
    /// `buf` (MPI_BOTTOM for absolute displacements) has room for `count` elements of this type that nobody else looks
    /// at meanwhile, and `input` does not overlap them.
    pub unsafe fn unpack(&self, count: usize, buf: *mut u8, position: usize, input: &[u8]) -> usize {
        let total = self.size() * count;
        if position >= total {
            return 0;
        }
        let room = input.len().min(total - position);
        let mut unpacker = walk::Unpacker { buffer: buf, stream: input.as_ptr(), left: room };
        // SAFETY: walk rule 1: `buf` has room for `count` elements; walk rule 2: `left` is cut to `input` above.
        unsafe { self.walk(count, position, &mut unpacker) };
        room
    }

    /// # Safety
    /// Walk rule 1 for `count` elements; `position` is inside their stream, `left` not beyond its end.
    unsafe fn walk(&self, count: usize, position: usize, mover: &mut impl walk::Mover) {
        let body = &self.0.body;
        if self.0.contiguous {
            let len = mover.left();
            // SAFETY: all elements are one run that starts at the body's offset,
            // and `position + left` is not beyond its end.
            unsafe { mover.run(body.offset + position as isize, len) };
        } else if count == 1 {
            // SAFETY: walk rule 1: the buffer holds the element;
            // walk rule 2: `left` is not beyond the end of its stream.
            unsafe { walk::walk(body, 0, position, mover) };
        } else {
            // SAFETY: walk rule 1: the buffer holds `count` elements;
            // walk rule 2: `left` is not beyond the end of their stream.
            unsafe { walk::walk_loop(body, count, self.0.extent, 0, position, mover) };
        }
    }

    /// The contiguous runs (displacement, bytes) of `count` elements in pack order; neighbours that touch are one run.
    pub fn runs(&self, count: usize) -> impl Iterator<Item = (isize, usize)> + '_ {
        self.runs_within(0..self.size() * count)
    }

    /// The same of these bytes of the packed stream of elements, which have so many.
    pub fn runs_within(&self, bytes: Range<usize>) -> impl Iterator<Item = (isize, usize)> + '_ {
        let Range { start: mut position, end } = bytes;
        let mut pending: Option<(isize, usize)> = None;
        core::iter::from_fn(move || {
            while position < end {
                let (at, len) = self.locate(position, end);
                let len = len.min(end - position);
                position += len;
                match &mut pending {
                    Some((start, have)) if *start + *have as isize == at => *have += len,
                    _ => {
                        if let Some(done) = pending.replace((at, len)) {
                            return Some(done);
                        }
                    }
                }
            }
            pending.take()
        })
    }

    /// The rest of the run that holds the byte at `position` of the packed stream of one element, which has more bytes
    /// than that: its displacement and its length. Any position costs the same.
    #[must_use]
    #[inline]
    pub fn run_at(&self, position: usize) -> (isize, usize) {
        self.0.body.locate(position)
    }

    /// Where the byte at `position` of the packed stream of elements lies, as a displacement.
    /// They are more than `position` bytes.
    #[must_use]
    pub fn displacement(&self, position: usize) -> isize {
        self.locate(position, position + 1).0
    }

    /// The rest of the run that holds packed position `position < total`.
    pub(crate) fn locate(&self, position: usize, total: usize) -> (isize, usize) {
        let body = &self.0.body;
        if self.0.contiguous {
            return (body.offset + position as isize, total - position);
        }
        let (at, len) = body.locate(position % body.size);
        (at + (position / body.size) as isize * self.0.extent, len)
    }
}
