//! The user's buffer, as the engine sees it.

use super::operation::Layout;
use super::payload::copy_out;
use crate::abi;
use crate::datatype::Datatype;
use core::marker::PhantomData;

/// A buffer that is one run of bytes from its address on, in either direction.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The user's address.
    pub addr: *mut u8,
    /// Bytes: to send, or room to receive.
    pub bytes: usize,
    /// Elements.
    pub count: usize,
    /// Their type's handle, for events.
    pub handle: usize,
}

/// Memory that a receive writes before its call returns: two words, which are passed in registers.
///
/// **Receive memory rule.** Its bytes are valid for writes, and nobody else uses them, while it lives: whoever makes
/// one says so.
#[derive(Debug, Clone, Copy)]
pub struct RecvMemory<'a> {
    addr: *mut u8,
    len: usize,
    buffer: PhantomData<&'a mut [u8]>,
}

impl RecvMemory<'_> {
    /// The `len` bytes at `addr`.
    ///
    /// # Safety
    ///
    /// `addr` is valid for writes of `len` bytes, untouched by others, until no copy of what is returned is used.
    #[inline(always)]
    #[must_use]
    pub unsafe fn new(addr: *mut u8, len: usize) -> Self {
        Self { addr, len, buffer: PhantomData }
    }

    /// Of its bytes the first `most` at most.
    #[inline(always)]
    pub(crate) fn first(self, most: usize) -> Self {
        Self { len: self.len.min(most), ..self }
    }

    /// Whether a message of `bytes` bytes fits.
    #[inline(always)]
    pub(crate) fn fits(self, bytes: usize) -> bool {
        bytes <= self.len
    }

    /// Copies the payload of a message into it.
    ///
    /// # Safety
    ///
    /// The payload fits, and lies elsewhere.
    #[inline(always)]
    pub(crate) unsafe fn fill(self, payload: &[u8]) {
        debug_assert!(self.fits(payload.len()));
        // SAFETY: receive memory rule; the payload fits and does not overlap it, as the caller has checked.
        unsafe { copy_out(payload, self.addr) };
    }
}

/// A buffer of any layout, in either direction, flattened where it is one run of bytes.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub addr: *mut u8,
    pub count: usize,
    pub layout: Layout,
    pub bytes: usize,
    pub user: (*mut u8, usize),
}

impl Data {
    /// The buffer of `count` elements at `addr`, which are `bytes` bytes of data; `handle` is their type's, for events.
    #[inline]
    pub fn of(addr: *mut u8, count: usize, datatype: &Datatype, handle: usize, bytes: usize) -> Self {
        debug_assert_eq!(datatype.bytes_of(count), Ok(bytes));
        let user = (addr, handle);
        if bytes == 0 || datatype.is_contiguous() {
            let first = addr.wrapping_offset(datatype.true_lb());
            return Self { addr: first, count, layout: Layout::Bytes, bytes, user };
        }
        Self { addr, count, layout: Layout::Typed(datatype.clone()), bytes, user }
    }

    /// The `bytes` bytes at `addr`, which are `count` elements of the user's in another place:
    /// `user` has their address and type.
    pub fn packed(addr: *mut u8, count: usize, bytes: usize, user: (*mut u8, usize)) -> Self {
        Self { addr, count, layout: Layout::Bytes, bytes, user }
    }

    /// A run of `bytes` bytes.
    #[inline]
    pub fn bytes(addr: *mut u8, bytes: usize) -> Self {
        Self { addr, count: bytes, layout: Layout::Bytes, bytes, user: (addr, abi::MPI_BYTE) }
    }
}
