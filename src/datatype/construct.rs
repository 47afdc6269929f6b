//! The constructors of derived types (MPI 5.0 §5.1.2), except arrays. Counts and block lengths are in elements of the
//! old type, displacements and strides in its extents, or in bytes for the `h` forms. Each fails with
//! [`Error::CountTooLarge`] where sizes leave the address space, and with [`Error::Arg`] where bounds do.

use super::body::TypeMap;
use super::bounds::Bounds;
use super::signature::Signature;
use super::{Constructor, Datatype};
use crate::{Error, Result};
use std::borrow::Cow;

pub(super) const TOO_LARGE: Error = Error::Arg("the datatype's size leaves the address space");
const LENGTHS: Error = Error::Arg("arrays of block lengths, displacements and types differ in length");

impl Datatype {
    /// MPI_Type_dup.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let inner = &self.0;
        let parts = [self.clone()];
        Self::build(inner.body.clone(), inner.signature.clone(), inner.bounds, Constructor::Dup, parts)
    }

    /// MPI_Type_contiguous.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn contiguous(count: usize, old: &Self) -> Result<Self> {
        old.strided(count, 1, 0, Constructor::Contiguous { count })
    }

    /// MPI_Type_vector; `stride` in extents of `old`.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn vector(count: usize, blocklength: usize, stride: isize, old: &Self) -> Result<Self> {
        let bytes = stride.checked_mul(old.extent()).ok_or(TOO_LARGE)?;
        old.strided(count, blocklength, bytes, Constructor::Vector { count, blocklength, stride })
    }

    /// MPI_Type_create_hvector; `stride` in bytes.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn hvector(count: usize, blocklength: usize, stride: isize, old: &Self) -> Result<Self> {
        old.strided(count, blocklength, stride, Constructor::Hvector { count, blocklength, stride })
    }

    /// `count` blocks of `length` elements, `stride` bytes apart; a contiguous type is blocks of one element.
    fn strided(&self, count: usize, length: usize, stride: isize, made: Constructor) -> Result<Self> {
        let stride = if matches!(made, Constructor::Contiguous { .. }) { self.extent() } else { stride };
        let copies = count.checked_mul(length).ok_or(Error::CountTooLarge(count))?;
        self.check_size(copies)?;
        let (mut body, mut bounds) = (TypeMap::EMPTY, Bounds::EMPTY);
        if copies > 0 {
            let last = isize::try_from(count - 1).ok().and_then(|steps| steps.checked_mul(stride));
            bounds.add(&self.0.bounds, 0, length, self.extent())?;
            bounds.add(&self.0.bounds, last.ok_or(TOO_LARGE)?, length, self.extent())?;
            body = self.0.body.repeated(length, self.extent()).repeated(count, stride);
        }
        Ok(Self::build(body, self.0.signature.repeated(copies), bounds, made, [self.clone()]))
    }

    /// MPI_Type_indexed; displacements in extents of `old`.
    ///
    /// # Errors
    /// As for all constructors here; [`Error::Arg`] if the arrays differ in length.
    pub fn indexed<'a>(
        lengths: impl Into<Cow<'a, [usize]>>,
        displacements: impl Into<Cow<'a, [isize]>>,
        old: &Self,
    ) -> Result<Self> {
        old.blocks(lengths.into(), displacements.into(), old.extent(), |lengths, displacements| {
            Constructor::Indexed { lengths, displacements }
        })
    }

    /// MPI_Type_create_hindexed; displacements in bytes.
    ///
    /// # Errors
    /// As for [`Datatype::indexed`].
    pub fn hindexed<'a>(
        lengths: impl Into<Cow<'a, [usize]>>,
        displacements: impl Into<Cow<'a, [isize]>>,
        old: &Self,
    ) -> Result<Self> {
        old.blocks(lengths.into(), displacements.into(), 1, |lengths, displacements| Constructor::Hindexed {
            lengths,
            displacements,
        })
    }

    /// MPI_Type_create_indexed_block; displacements in extents of `old`.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn indexed_block<'a>(
        blocklength: usize,
        displacements: impl Into<Cow<'a, [isize]>>,
        old: &Self,
    ) -> Result<Self> {
        old.equal_blocks(blocklength, displacements.into(), old.extent(), |displacements| {
            Constructor::IndexedBlock { blocklength, displacements }
        })
    }

    /// MPI_Type_create_hindexed_block; displacements in bytes.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn hindexed_block<'a>(
        blocklength: usize,
        displacements: impl Into<Cow<'a, [isize]>>,
        old: &Self,
    ) -> Result<Self> {
        old.equal_blocks(blocklength, displacements.into(), 1, |displacements| Constructor::HindexedBlock {
            blocklength,
            displacements,
        })
    }

    /// Blocks of these lengths at displacements in units of `unit` bytes.
    fn blocks(
        &self,
        lengths: Cow<'_, [usize]>,
        displacements: Cow<'_, [isize]>,
        unit: isize,
        made: impl FnOnce(Box<[usize]>, Box<[isize]>) -> Constructor,
    ) -> Result<Self> {
        let layout = self.scattered(lengths.iter().copied(), in_bytes(&displacements, unit)?)?;
        Ok(layout.of(self, made(boxed(lengths), boxed(displacements))))
    }

    /// Blocks of `length` elements at displacements in units of `unit` bytes.
    fn equal_blocks(
        &self,
        length: usize,
        displacements: Cow<'_, [isize]>,
        unit: isize,
        made: impl FnOnce(Box<[isize]>) -> Constructor,
    ) -> Result<Self> {
        let lengths = std::iter::repeat_n(length, displacements.len());
        let layout = self.scattered(lengths, in_bytes(&displacements, unit)?)?;
        Ok(layout.of(self, made(boxed(displacements))))
    }

    /// Blocks of this type at byte displacements.
    fn scattered(
        &self,
        lengths: impl ExactSizeIterator<Item = usize> + Clone,
        at: impl ExactSizeIterator<Item = isize> + Clone,
    ) -> Result<Layout> {
        if lengths.len() != at.len() {
            return Err(LENGTHS);
        }
        let mut copies = 0usize;
        for length in lengths.clone() {
            let Some(sum) = copies.checked_add(length) else { return Err(Error::CountTooLarge(length)) };
            copies = sum;
        }
        self.check_size(copies)?;
        let blocks = lengths.zip(at);
        let mut bounds = Bounds::EMPTY;
        for (length, at) in blocks.clone() {
            bounds.add(&self.0.bounds, at, length, self.extent())?;
        }
        let body = TypeMap::concat(blocks.map(|(length, at)| self.block(length, at)));
        Ok(Layout { body, signature: self.0.signature.repeated(copies), bounds })
    }

    /// Where the data of `length` elements in a row lies, the first of which is displaced by `at`.
    fn block(&self, length: usize, at: isize) -> TypeMap {
        self.0.body.repeated(length, self.extent()).shifted(at)
    }

    /// MPI_Type_create_struct; displacements in bytes.
    ///
    /// # Errors
    /// As for [`Datatype::indexed`].
    pub fn structure<'a>(
        lengths: impl Into<Cow<'a, [usize]>>,
        displacements: impl Into<Cow<'a, [isize]>>,
        types: impl Into<Cow<'a, [Self]>>,
    ) -> Result<Self> {
        let (lengths, displacements, types) = (lengths.into(), displacements.into(), types.into());
        if lengths.len() != types.len() || displacements.len() != types.len() {
            return Err(LENGTHS);
        }
        let blocks = || types.iter().zip(lengths.iter().copied()).zip(displacements.iter().copied());
        let mut size = 0usize;
        let mut bounds = Bounds::EMPTY;
        for ((old, length), at) in blocks() {
            size =
                old.check_size(length)?.checked_add(size).filter(fits).ok_or(Error::CountTooLarge(length))?;
            bounds.add(&old.0.bounds, at, length, old.extent())?;
        }
        let body = TypeMap::concat(blocks().map(|((old, length), at)| old.block(length, at)));
        let signature =
            Signature::concat(blocks().map(|((old, length), _)| old.0.signature.repeated(length)));
        let made = Constructor::Struct { lengths: boxed(lengths), displacements: boxed(displacements) };
        Ok(Self::build(body, signature, bounds, made, types.into_owned()))
    }

    /// MPI_Type_create_resized: the same data with these bounds, in bytes.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn resized(old: &Self, lb: isize, extent: isize) -> Result<Self> {
        let ub = lb.checked_add(extent).ok_or(TOO_LARGE)?;
        let bounds = Bounds { marks: Some((lb, ub)), ..old.0.bounds };
        let made = Constructor::Resized { lb, extent };
        Ok(Self::build(old.0.body.clone(), old.0.signature.clone(), bounds, made, [old.clone()]))
    }

    /// Bytes of data in `copies` elements, if these and their basic elements can be counted at all.
    pub(super) fn check_size(&self, copies: usize) -> Result<usize> {
        let elements = self.elements().checked_mul(copies);
        let bytes = elements.and(self.size().checked_mul(copies)).filter(fits);
        bytes.ok_or(Error::CountTooLarge(copies))
    }
}

/// What blocks of one type are together.
struct Layout {
    body: TypeMap,
    signature: Signature,
    bounds: Bounds,
}

impl Layout {
    fn of(self, old: &Datatype, made: Constructor) -> Datatype {
        Datatype::build(self.body, self.signature, self.bounds, made, [old.clone()])
    }
}

/// Displacements in units of `unit` bytes, in bytes.
fn in_bytes(displacements: &[isize], unit: isize) -> Result<impl ExactSizeIterator<Item = isize> + Clone> {
    if displacements.iter().any(|displacement| displacement.checked_mul(unit).is_none()) {
        return Err(TOO_LARGE);
    }
    Ok(displacements.iter().map(move |displacement| displacement.wrapping_mul(unit)))
}

/// An array to keep, which is not copied if it is owned.
fn boxed<T: Clone>(array: Cow<'_, [T]>) -> Box<[T]> {
    array.into_owned().into_boxed_slice()
}

fn fits(bytes: &usize) -> bool {
    isize::try_from(*bytes).is_ok()
}
