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
    /// A packed copy of the elements, from which they are sent.
    copy: Option<*const u8>,
}

impl<'a> SendBuf<'a> {
    /// Describes `count` elements at `addr`. `handle` is their type's, for events; 0 where there is none.
    ///
    /// # Errors
    /// [`crate::Error::CountTooLarge`] for more than the address space holds.
    #[inline]
    pub fn new(addr: *const u8, count: usize, datatype: &'a Datatype, handle: usize) -> Result<Self> {
        Ok(Self { addr, count, datatype, handle, bytes: datatype.bytes_of(count)?, copy: None })
    }

    /// Returns the same, sent from a packed copy, whose memory is then what must be valid.
    /// Events say what the user's buffer is.
    ///
    /// # Panics
    /// If the copy is shorter.
    #[must_use]
    pub fn packed_at(self, copy: &[u8]) -> Self {
        assert!(copy.len() >= self.bytes, "a copy of all elements");
        Self { copy: Some(copy.as_ptr()), ..self }
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
        if let Some(copy) = buf.copy {
            return Self::packed(copy.cast_mut(), buf.count, buf.bytes, (buf.addr.cast_mut(), buf.handle));
        }
        Self::of(buf.addr.cast_mut(), buf.count, buf.datatype, buf.handle, buf.bytes)
    }
}

impl From<&RecvBuf<'_>> for Data {
    #[inline]
    fn from(buf: &RecvBuf<'_>) -> Self {
        Self::of(buf.addr, buf.count, buf.datatype, buf.handle, buf.bytes)
    }
}
