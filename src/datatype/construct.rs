//! The constructors of derived types (MPI 5.0 §5.1.2), except arrays. Counts and block lengths are in elements of the old
//! type, displacements and strides in its extents, or in bytes for the `h` forms. Each fails with [`Error::CountTooLarge`] where
//! sizes leave the address space, and with [`Error::Arg`] where bounds do.

use super::body::TypeMap;
use super::bounds::Bounds;
use super::signature::Signature;
use super::{Constructor, Datatype};
use crate::{Error, Result};

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
            let way = isize::try_from(count - 1).ok().and_then(|steps| steps.checked_mul(stride));
            bounds.add(&self.0.bounds, 0, length, self.extent())?;
            bounds.add(&self.0.bounds, way.ok_or(TOO_LARGE)?, length, self.extent())?;
            body = self.0.body.repeated(length, self.extent()).repeated(count, stride);
        }
        Ok(Self::build(body, self.0.signature.repeated(copies), bounds, made, [self.clone()]))
    }

    /// MPI_Type_indexed; displacements in extents of `old`.
    ///
    /// # Errors
    /// As for all constructors here; [`Error::Arg`] if the arrays differ in length.
    pub fn indexed(lengths: &[usize], displacements: &[isize], old: &Self) -> Result<Self> {
        let made = Constructor::Indexed { lengths: lengths.into(), displacements: displacements.into() };
        old.scattered(lengths.iter().copied(), &old.in_bytes(displacements)?, made)
    }

    /// MPI_Type_create_hindexed; displacements in bytes.
    ///
    /// # Errors
    /// As for [`Datatype::indexed`].
    pub fn hindexed(lengths: &[usize], displacements: &[isize], old: &Self) -> Result<Self> {
        let made = Constructor::Hindexed { lengths: lengths.into(), displacements: displacements.into() };
        old.scattered(lengths.iter().copied(), displacements, made)
    }

    /// MPI_Type_create_indexed_block; displacements in extents of `old`.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn indexed_block(blocklength: usize, displacements: &[isize], old: &Self) -> Result<Self> {
        let made = Constructor::IndexedBlock { blocklength, displacements: displacements.into() };
        let lengths = std::iter::repeat_n(blocklength, displacements.len());
        old.scattered(lengths, &old.in_bytes(displacements)?, made)
    }

    /// MPI_Type_create_hindexed_block; displacements in bytes.
    ///
    /// # Errors
    /// As for all constructors here.
    pub fn hindexed_block(blocklength: usize, displacements: &[isize], old: &Self) -> Result<Self> {
        let made = Constructor::HindexedBlock { blocklength, displacements: displacements.into() };
        old.scattered(std::iter::repeat_n(blocklength, displacements.len()), displacements, made)
    }

    fn in_bytes(&self, displacements: &[isize]) -> Result<Vec<isize>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(displacements.len())?;
        for displacement in displacements {
            // An error is made only where there is one: there may be many displacements.
            let Some(in_bytes) = displacement.checked_mul(self.extent()) else { return Err(TOO_LARGE) };
            bytes.push(in_bytes);
        }
        Ok(bytes)
    }

    /// Blocks of this type at byte displacements.
    fn scattered(
        &self,
        lengths: impl ExactSizeIterator<Item = usize> + Clone,
        at: &[isize],
        made: Constructor,
    ) -> Result<Self> {
        if lengths.len() != at.len() {
            return Err(LENGTHS);
        }
        let mut copies = 0usize;
        for length in lengths.clone() {
            let Some(sum) = copies.checked_add(length) else { return Err(Error::CountTooLarge(length)) };
            copies = sum;
        }
        self.check_size(copies)?;
        let mut bounds = Bounds::EMPTY;
        for (length, &at) in lengths.clone().zip(at) {
            bounds.add(&self.0.bounds, at, length, self.extent())?;
        }
        let blocks =
            lengths.zip(at).map(|(length, &at)| self.0.body.repeated(length, self.extent()).shifted(at));
        Ok(Self::build(
            TypeMap::concat(blocks),
            self.0.signature.repeated(copies),
            bounds,
            made,
            [self.clone()],
        ))
    }

    /// MPI_Type_create_struct; displacements in bytes.
    ///
    /// # Errors
    /// As for [`Datatype::indexed`].
    pub fn structure(lengths: &[usize], displacements: &[isize], types: &[Self]) -> Result<Self> {
        if lengths.len() != types.len() || displacements.len() != types.len() {
            return Err(LENGTHS);
        }
        let mut size = 0usize;
        let mut bounds = Bounds::EMPTY;
        let (mut bodies, mut signatures) = (Vec::new(), Vec::new());
        bodies.try_reserve_exact(types.len())?;
        signatures.try_reserve_exact(types.len())?;
        for ((old, &length), &at) in types.iter().zip(lengths).zip(displacements) {
            size =
                old.check_size(length)?.checked_add(size).filter(fits).ok_or(Error::CountTooLarge(length))?;
            bounds.add(&old.0.bounds, at, length, old.extent())?;
            bodies.push(old.0.body.repeated(length, old.extent()).shifted(at));
            signatures.push(old.0.signature.repeated(length));
        }
        let made = Constructor::Struct { lengths: lengths.into(), displacements: displacements.into() };
        Ok(Self::build(TypeMap::concat(bodies), Signature::concat(signatures), bounds, made, types))
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

fn fits(bytes: &usize) -> bool {
    isize::try_from(*bytes).is_ok()
}
