//! Buffers of messages: an address, and how many elements or bytes lie there.

use super::{Argument, Array, Call, Integer, Integers, Unbounded};
use crate::abi;
use crate::collective::{Types, Varied};
use crate::datatypes;
use crate::error::Result;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;

impl Call {
    /// A buffer of `count` elements.
    ///
    /// # Safety
    /// Argument rules 2 and 3 hold of it.
    #[inline(always)]
    pub unsafe fn buffer<P: Address>(&self, addr: P, count: impl Integer, datatype: usize) -> Buffer<'_> {
        Buffer { addr: addr.address(), count: count.wide(), datatype, of: PhantomData }
    }
}

impl Call {
    /// A buffer with a piece for each peer.
    ///
    /// # Safety
    /// Argument rules 1 to 3 hold of it.
    pub(crate) unsafe fn pieces<'a, P: Address, N, D, T>(
        &'a self,
        addr: P,
        counts: *const N,
        displs: *const D,
        types: T,
    ) -> Result<Varied<'a>>
    where
        Unbounded<'a, Integers<'a>>: Argument<'a, *const N> + Argument<'a, *const D>,
        Types<'a>: Argument<'a, T>,
    {
        // SAFETY: argument rules 1 and 2: the call passes these arrays, and the call outlives the result.
        unsafe {
            let (counts, displs) = (self.arg(counts)?, self.arg(displs)?);
            Ok(Varied { addr: addr.address(), counts, displs, types: self.arg(types)? })
        }
    }
}

/// `void *` or `const void *`.
pub trait Address {
    /// The address alone.
    fn address(self) -> *mut c_void;
}
impl Address for *mut c_void {
    #[inline(always)]
    fn address(self) -> *mut c_void {
        self
    }
}
impl Address for *const c_void {
    #[inline(always)]
    fn address(self) -> *mut c_void {
        self.cast_mut()
    }
}

/// A buffer of a message or of a collective operation (argument rule 3). What is wrong with it, its use says.
#[derive(Debug, Clone, Copy)]
pub struct Buffer<'a> {
    /// Where it is, or one of the ABI's special addresses.
    pub addr: *mut c_void,
    /// Elements, perhaps negative.
    pub count: i64,
    /// Their type, whose handle nobody frees during `'a` (argument rule 2).
    pub datatype: usize,
    of: PhantomData<&'a ()>,
}

impl<'a> Buffer<'a> {
    /// The buffer in two parts, each of which goes through registers where a structure of three words would go through
    /// memory: for a call that must not cost those who do not make it.
    #[inline(always)]
    #[must_use]
    pub fn into_parts(self) -> (BufferStart<'a>, usize) {
        (BufferStart { addr: self.addr, count: self.count, of: PhantomData }, self.datatype)
    }

    /// The buffer again.
    ///
    /// # Safety
    /// Both are parts of one buffer.
    #[inline(always)]
    #[must_use]
    pub unsafe fn from_parts(start: BufferStart<'a>, datatype: usize) -> Self {
        Self { addr: start.addr, count: start.count, datatype, of: PhantomData }
    }

    /// The same buffer with as many elements as other arguments say.
    #[must_use]
    pub fn with_count(self, count: usize) -> Self {
        Self { count: count as i64, ..self }
    }

    /// The same buffer for a message to or from `peer`: with MPI_PROC_NULL nothing is sent,
    /// and MPI_DATATYPE_NULL will do.
    #[inline]
    #[must_use]
    pub fn with_peer(self, peer: c_int) -> Self {
        let nothing = peer == abi::MPI_PROC_NULL && self.datatype == abi::MPI_DATATYPE_NULL;
        if nothing { self.without_elements() } else { self }
    }

    /// The same buffer, for later calls too. Of types, those are kept that nobody can free;
    /// instead of another one, MPI_DATATYPE_NULL.
    #[must_use]
    pub fn keep(self) -> Buffer<'static> {
        let is_predefined = datatypes::contiguous_size(self.datatype).is_some();
        let datatype = if is_predefined { self.datatype } else { abi::MPI_DATATYPE_NULL };
        Buffer { addr: self.addr, count: self.count, datatype, of: PhantomData }
    }

    /// A buffer of no bytes at the same place.
    #[must_use]
    pub fn without_elements(self) -> Self {
        Self { count: 0, datatype: abi::MPI_BYTE, ..self }
    }
}

/// Address and count of a [`Buffer`].
#[derive(Debug, Clone, Copy)]
pub struct BufferStart<'a> {
    addr: *mut c_void,
    count: i64,
    of: PhantomData<&'a ()>,
}

/// Memory of so many bytes; the size is `None` if it was negative.
#[derive(Debug, Clone, Copy)]
pub struct ByteBuffer<'a> {
    /// Where it begins.
    pub addr: *mut u8,
    /// How long it is (argument rule 3).
    pub size: Option<usize>,
    of: PhantomData<&'a ()>,
}

impl<'a, P: Address, N: Integer> Array<'a, P, N> for ByteBuffer<'a> {
    unsafe fn of(from: P, length: N) -> Result<Self> {
        let size = usize::try_from(length.wide()).ok();
        Ok(Self { addr: from.address().cast(), size, of: PhantomData })
    }
}
