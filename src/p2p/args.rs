//! What a call is about, as the C and Rust APIs say it.

use crate::datatype::Datatype;
use crate::engine::Data;

/// A buffer to send from.
#[derive(Debug, Clone, Copy)]
pub struct SendBuf<'a> {
    /// The user's address.
    pub addr: *const u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
    /// The type's handle, for events; 0 where there is none.
    pub handle: usize,
}

/// A buffer to receive into.
#[derive(Debug, Clone, Copy)]
pub struct RecvBuf<'a> {
    /// The user's address.
    pub addr: *mut u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
    /// The type's handle, for events; 0 where there is none.
    pub handle: usize,
}

impl From<&SendBuf<'_>> for Data {
    #[inline]
    fn from(buf: &SendBuf<'_>) -> Self {
        Self::of(buf.addr.cast_mut(), buf.count, buf.datatype, buf.handle)
    }
}

impl From<&RecvBuf<'_>> for Data {
    #[inline]
    fn from(buf: &RecvBuf<'_>) -> Self {
        Self::of(buf.addr, buf.count, buf.datatype, buf.handle)
    }
}
