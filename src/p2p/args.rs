//! What a call is about, as the C and Rust APIs say it.

use crate::datatype::Datatype;
use crate::engine::Data;
use crate::error::Result;

/// A buffer to send from.
#[derive(Debug, Clone, Copy)]
pub struct SendBuf<'a> {
    addr: *const u8,
    count: usize,
    datatype: &'a Datatype,
    handle: usize,
    /// [`Datatype::bytes_of`] the elements.
    bytes: usize,
}

impl<'a> SendBuf<'a> {
    /// Describes `count` elements at `addr`. `handle` is their type's, for events; 0 where there is none.
    ///
    /// # Errors
    /// [`crate::Error::CountTooLarge`] for more than the address space holds.
    #[inline]
    pub fn new(addr: *const u8, count: usize, datatype: &'a Datatype, handle: usize) -> Result<Self> {
        Ok(Self { addr, count, datatype, handle, bytes: datatype.bytes_of(count)? })
    }
}

/// A buffer to receive into.
#[derive(Debug, Clone, Copy)]
pub struct RecvBuf<'a> {
    addr: *mut u8,
    count: usize,
    datatype: &'a Datatype,
    handle: usize,
    /// [`Datatype::bytes_of`] the elements.
    bytes: usize,
}

impl<'a> RecvBuf<'a> {
    /// Describes room for `count` elements at `addr`. `handle` is their type's, for events; 0 where there is none.
    ///
    /// # Errors
    /// [`crate::Error::CountTooLarge`] for more than the address space holds.
    #[inline]
    pub fn new(addr: *mut u8, count: usize, datatype: &'a Datatype, handle: usize) -> Result<Self> {
        Ok(Self { addr, count, datatype, handle, bytes: datatype.bytes_of(count)? })
    }
    /// Returns the user's address.
    #[inline]
    #[must_use]
    pub fn addr(&self) -> *mut u8 {
        self.addr
    }

    /// Returns how many bytes of data there is room for.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl From<&SendBuf<'_>> for Data {
    #[inline]
    fn from(buf: &SendBuf<'_>) -> Self {
        Self::of(buf.addr.cast_mut(), buf.count, buf.datatype, buf.handle, buf.bytes)
    }
}

impl From<&RecvBuf<'_>> for Data {
    #[inline]
    fn from(buf: &RecvBuf<'_>) -> Self {
        Self::of(buf.addr, buf.count, buf.datatype, buf.handle, buf.bytes)
    }
}
