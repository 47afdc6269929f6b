//! The user's buffer, as the engine sees it.

use super::operation::Layout;
use crate::abi;
use crate::datatype::Datatype;

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
