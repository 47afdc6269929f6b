//! Users' buffers as bytes: in place where the type is contiguous, through a packed copy where it is not.

use super::{ReductionKernel, Scratch};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use core::ops::{Deref, DerefMut};
use core::slice;

/// Elements that a collective reads.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The user's address.
    pub addr: *const u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
}

/// Elements that a collective writes.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The user's address.
    pub addr: *mut u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
}

impl<'a> Input<'a> {
    /// Bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * self.datatype.size()
    }

    /// Where the elements lie, if they are one run of bytes.
    #[inline]
    #[must_use]
    pub fn run(&self) -> Option<*const u8> {
        self.datatype.is_contiguous().then(|| self.addr.wrapping_offset(self.datatype.true_lb()))
    }

    /// The elements as packed bytes.
    ///
    /// # Safety
    /// The elements lie in memory that nobody writes during `'a`.
    #[must_use]
    pub unsafe fn packed(&self) -> Packed<'a> {
        let bytes = self.bytes();
        if bytes == 0 {
            return Packed::There(&[]);
        }
        if self.datatype.is_contiguous() {
            let first = self.addr.wrapping_offset(self.datatype.true_lb());
            // SAFETY: a contiguous type's elements are one run of bytes from there; the caller's promise.
            return Packed::There(unsafe { slice::from_raw_parts(first, bytes) });
        }
        // SAFETY: the caller's promise.
        Packed::Copy(unsafe { self.copied() })
    }

    /// A packed copy of the elements.
    ///
    /// # Safety
    /// As for [`packed`](Self::packed), during the call.
    #[must_use]
    pub unsafe fn copied(&self) -> Scratch {
        let mut copy = Scratch::zeroed(self.bytes());
        if !copy.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.datatype.pack(self.count, self.addr, 0, &mut copy) };
        }
        copy
    }
}

impl<'a> Output<'a> {
    /// The same elements, to be read.
    #[must_use]
    pub fn as_input(&self) -> Input<'a> {
        Input { addr: self.addr, count: self.count, datatype: self.datatype }
    }

    /// Bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.as_input().bytes()
    }

    /// Room for the elements as packed bytes; [`Landing::land`] puts them where they belong.
    ///
    /// # Safety
    /// The elements lie in memory that nobody else uses during `'a`.
    #[must_use]
    pub unsafe fn landing(&self) -> Landing<'a> {
        let bytes = self.bytes();
        if bytes == 0 {
            return Landing::There(&mut []);
        }
        if self.datatype.is_contiguous() {
            let first = self.addr.wrapping_offset(self.datatype.true_lb());
            // SAFETY: a contiguous type's elements are one run of bytes from there; the caller's promise.
            return Landing::There(unsafe { slice::from_raw_parts_mut(first, bytes) });
        }
        Landing::Copy(Scratch::zeroed(bytes), *self)
    }

    /// The same with the present elements in it.
    ///
    /// # Safety
    /// As for [`landing`](Self::landing).
    #[must_use]
    pub unsafe fn filled_landing(&self) -> Landing<'a> {
        // SAFETY: the caller's promise.
        match unsafe { self.landing() } {
            // SAFETY: as above.
            Landing::Copy(_, to) => Landing::Copy(unsafe { self.as_input().copied() }, to),
            there @ Landing::There(_) => there,
        }
    }

    /// Writes packed elements.
    ///
    /// # Safety
    /// As for [`landing`](Self::landing); `bytes` is not part of the elements' memory.
    ///
    /// # Errors
    /// [`Error::Truncate`] if they are more than there is room for.
    pub unsafe fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.bytes() {
            return Err(Error::Truncate { sent: bytes.len() as u64, room: self.bytes() as u64 });
        }
        if !bytes.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.datatype.unpack(self.count, self.addr, 0, bytes) };
        }
        Ok(())
    }
}

/// Packed elements: the user's bytes themselves, or a copy.
#[derive(Debug)]
pub enum Packed<'a> {
    /// The user's.
    There(&'a [u8]),
    /// A copy.
    Copy(Scratch),
}

impl Deref for Packed<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::There(bytes) => bytes,
            Self::Copy(bytes) => bytes,
        }
    }
}

/// Room for packed elements: the user's bytes themselves, or a copy that is unpacked in the end.
#[derive(Debug)]
pub enum Landing<'a> {
    /// The user's.
    There(&'a mut [u8]),
    /// A copy, and where it belongs.
    Copy(Scratch, Output<'a>),
}

impl Landing<'_> {
    /// Puts the elements where they belong.
    ///
    /// # Errors
    /// None that a landing of the right size can have.
    pub fn land(self) -> Result<()> {
        match self {
            Self::There(_) => Ok(()),
            // SAFETY: `Output::landing` was promised that the memory is ours for as long as the landing.
            Self::Copy(bytes, to) => unsafe { to.write(&bytes) },
        }
    }
}

impl Deref for Landing<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::There(bytes) => bytes,
            Self::Copy(bytes, _) => bytes,
        }
    }
}

impl DerefMut for Landing<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::There(bytes) => bytes,
            Self::Copy(bytes, _) => bytes,
        }
    }
}

/// Copies elements from one layout to another of the same signature, as a message to oneself would.
///
/// # Safety
/// As for [`Input::packed`] and [`Output::landing`]; the two do not overlap.
///
/// # Errors
/// [`Error::Truncate`] if there is not enough room.
pub unsafe fn copy(from: Input<'_>, to: Output<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { to.write(&from.packed()) }
}

/// An MPI operation on elements of a datatype.
#[derive(Clone, Copy, Debug)]
pub struct OpKernel<'a> {
    /// The operation.
    pub op: &'a Op,
    /// The elements' type.
    pub datatype: &'a Datatype,
    /// What a user's function is told of the type.
    pub handle: usize,
}

impl ReductionKernel for OpKernel<'_> {
    fn commutes(&self) -> bool {
        self.op.commutative()
    }
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
        // SAFETY: two buffers of collectives, which do not overlap; they begin at an address that suits every type
        // (`Scratch`) and are cut between elements, whose size is a multiple of their alignment where they are contiguous.
        unsafe { self.op.apply_packed(left, right, self.datatype, self.handle) }
    }
}
