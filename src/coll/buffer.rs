//! Users' buffers as bytes: in place where the type is contiguous, through a packed copy where it is not.
//!
//! - **Buffer rule 1.** While an [`InputBuffer`] is used, its elements can be read and no thread writes them. Where an
//!   operation is in place, its input is used up before its output is written.
//! - **Buffer rule 2.** While an [`OutputBuffer`] is used, its elements can be written and no other thread uses them.
//!   Outputs of different ranks do not overlap.
//!
//! The code that makes one guarantees its rule; a collective then needs no `unsafe` to use it.

use super::{ReductionKernel, Scratch};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use crate::ring::Room;
use core::ops::{Deref, DerefMut};
use core::slice;

/// Elements in a user's memory that a collective reads.
#[derive(Clone, Copy, Debug)]
pub struct InputBuffer<'a> {
    addr: *const u8,
    count: usize,
    datatype: &'a Datatype,
}

/// Elements in a user's memory that a collective writes.
#[derive(Debug)]
pub struct OutputBuffer<'a> {
    addr: *mut u8,
    count: usize,
    datatype: &'a Datatype,
}

impl<'a> InputBuffer<'a> {
    /// Names `count` elements of type `datatype` at `addr`.
    ///
    /// # Safety
    /// Buffer rule 1: whenever the input, or what is made of it, is used, the elements can be read and no thread writes
    /// them. [`Datatype::bytes_of`] knows how many bytes they are.
    #[must_use]
    pub const unsafe fn new(addr: *const u8, count: usize, datatype: &'a Datatype) -> Self {
        Self { addr, count, datatype }
    }

    /// Returns the bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * self.datatype.size()
    }

    /// Returns the elements' type.
    #[must_use]
    pub fn datatype(&self) -> &'a Datatype {
        self.datatype
    }

    /// Returns the address, the count and the type that it was made of.
    #[must_use]
    pub fn parts(&self) -> (*const u8, usize, &'a Datatype) {
        (self.addr, self.count, self.datatype)
    }

    /// Returns where the elements lie, if they are one run of bytes.
    #[inline]
    #[must_use]
    pub fn run(&self) -> Option<*const u8> {
        self.datatype.is_contiguous().then(|| self.addr.wrapping_offset(self.datatype.true_lb()))
    }

    /// Returns the elements as packed bytes.
    ///
    /// # Errors
    /// [`Error::NoMem`] if they must be copied and there is no memory for that.
    pub fn packed(&self) -> Result<Packed<'a>> {
        Ok(match self.run() {
            _ if self.bytes() == 0 => Packed::There(&[]),
            // SAFETY: elements of a contiguous type are one run of bytes, which stand still by buffer rule 1.
            Some(run) => Packed::There(unsafe { slice::from_raw_parts(run, self.bytes()) }),
            None => Packed::Copy(self.copied()?),
        })
    }

    /// Returns a packed copy of the elements.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is no memory for it.
    pub fn copied(&self) -> Result<Scratch> {
        let mut copy = Scratch::of(self.bytes())?;
        self.pack(0, &mut copy);
        Ok(copy)
    }

    /// Copies packed bytes from byte `at` on into `to`, as many as it holds; the elements have so many.
    pub fn pack(&self, at: usize, to: &mut [u8]) {
        if !to.is_empty() {
            // SAFETY: the elements can be read by buffer rule 1.
            unsafe { self.datatype.pack(self.count, self.addr, at, to) };
        }
    }

    /// As [`Self::pack`], into memory that other processes read.
    pub fn show(&self, at: usize, to: &mut Room<'_>) {
        match self.run() {
            // Of no bytes the program may give no address.
            _ if to.is_empty() => {}
            Some(run) => {
                assert!(at.checked_add(to.len()).is_some_and(|end| end <= self.bytes()));
                // SAFETY: the elements are one run of bytes, which can be read by buffer rule 1.
                super::shared_memory::show(
                    unsafe { core::slice::from_raw_parts(run.wrapping_add(at), to.len()) },
                    to,
                );
            }
            None => self.pack(at, to),
        }
    }
}

impl<'a> OutputBuffer<'a> {
    /// Names `count` elements of type `datatype` at `addr`.
    ///
    /// # Safety
    /// Buffer rule 2: whenever the output, or what is made of it, is used, the elements can be written and no other
    /// thread uses them. [`Datatype::bytes_of`] knows how many bytes they are.
    #[must_use]
    pub const unsafe fn new(addr: *mut u8, count: usize, datatype: &'a Datatype) -> Self {
        Self { addr, count, datatype }
    }

    /// Returns the same elements as an input. While that is used, the output is not.
    #[must_use]
    pub fn as_input(&self) -> InputBuffer<'a> {
        InputBuffer { addr: self.addr, count: self.count, datatype: self.datatype }
    }

    /// Returns the same elements once more. While that is used, the output is not.
    #[must_use]
    pub fn reborrowed(&self) -> Self {
        Self { ..*self }
    }

    /// Returns the bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.as_input().bytes()
    }

    /// Returns the elements' type.
    #[must_use]
    pub fn datatype(&self) -> &'a Datatype {
        self.datatype
    }

    /// Returns the run of `bytes` bytes that begins with these elements, if they are contiguous.
    ///
    /// # Safety
    /// Buffer rule 2 holds for all of the run.
    #[must_use]
    pub unsafe fn widened(self, bytes: usize) -> Self {
        let count = bytes.checked_div(self.datatype.size()).unwrap_or(0);
        Self { count, ..self }
    }

    /// Returns room for the elements as packed bytes; [`Landing::land`] puts them where they belong.
    ///
    /// # Errors
    /// [`Error::NoMem`] if they need a copy and there is no memory for it.
    pub fn landing(self) -> Result<Landing<'a>> {
        let bytes = self.bytes();
        Ok(match self.as_input().run() {
            _ if bytes == 0 => Landing::There(&mut []),
            // SAFETY: elements of a contiguous type are one run of bytes, which no other thread uses by buffer rule 2.
            Some(run) => Landing::There(unsafe { slice::from_raw_parts_mut(run.cast_mut(), bytes) }),
            None => Landing::Copy(Scratch::of(bytes)?, self),
        })
    }

    /// Returns the same with the present elements in it.
    ///
    /// # Errors
    /// As for [`landing`](Self::landing).
    pub fn filled_landing(self) -> Result<Landing<'a>> {
        let mut landing = self.landing()?;
        if let Landing::Copy(copy, to) = &mut landing {
            to.as_input().pack(0, copy);
        }
        Ok(landing)
    }

    /// Writes packed elements.
    ///
    /// # Errors
    /// [`Error::Truncate`] if they are more than there is room for.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.bytes() {
            return Err(Error::Truncate { sent: bytes.len() as u64, room: self.bytes() as u64 });
        }
        self.unpack(0, bytes);
        Ok(())
    }

    /// Copies packed bytes into the elements from byte `at` on; the elements have so many.
    pub fn unpack(&self, at: usize, from: &[u8]) {
        if !from.is_empty() {
            // SAFETY: the elements can be written, and `from` is no part of them, by buffer rule 2.
            unsafe { self.datatype.unpack(self.count, self.addr, at, from) };
        }
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
    Copy(Scratch, OutputBuffer<'a>),
}

impl Landing<'_> {
    /// Puts the elements where they belong.
    ///
    /// # Errors
    /// None that a landing of the right size can have.
    pub fn land(self) -> Result<()> {
        match self {
            Self::There(_) => Ok(()),
            Self::Copy(bytes, to) => to.write(&bytes),
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
/// # Errors
/// [`Error::Truncate`] if there is not enough room; [`Error::NoMem`].
pub fn copy(from: InputBuffer<'_>, to: &OutputBuffer<'_>) -> Result<()> {
    to.write(&from.packed()?)
}

/// As [`copy`], where both may be the same elements, which then stay as they are.
///
/// # Errors
/// As for [`copy`].
pub fn copy_to_other(from: InputBuffer<'_>, to: &OutputBuffer<'_>) -> Result<()> {
    // Two buffers of a call that begin at one element are one (MPI_IN_PLACE); others must not overlap.
    let same = from.addr == to.addr.cast_const() && from.datatype.true_lb() == to.datatype.true_lb();
    if same { Ok(()) } else { copy(from, to) }
}

/// An MPI operation on elements of a datatype.
#[derive(Clone, Copy, Debug)]
pub struct OpKernel<'a> {
    /// The operation.
    pub op: &'a Op,
    /// The elements' type.
    pub datatype: &'a Datatype,
    /// The type's handle, which user functions are called with.
    pub handle: usize,
}

impl ReductionKernel for OpKernel<'_> {
    fn commutes(&self) -> bool {
        self.op.commutative()
    }
    fn unit(&self) -> usize {
        self.datatype.size()
    }
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
        // SAFETY: two buffers of collectives, which do not overlap; they begin at an address that suits every type
        // (`Scratch`), or the program's type, and are cut between elements, whose size is a multiple of their alignment
        // where they are contiguous.
        unsafe { self.op.apply_packed(left, right, self.datatype, self.handle) }
    }
}
