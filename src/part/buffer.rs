//! The user's buffer of a partitioned message.

use crate::datatype::Datatype;
use crate::error::{Error, Result};

/// A buffer in partitions of so many elements each, one behind the other.
#[derive(Debug)]
pub struct Partitions {
    addr: *mut u8,
    /// Elements of all partitions.
    count: usize,
    /// `None`: one run of bytes from `addr` on.
    datatype: Option<Datatype>,
    /// How many partitions there are.
    pub(super) number: usize,
    /// Bytes of data of each.
    pub(super) each: usize,
    /// What the user gave, as events tell it: the buffer, elements of a partition, and the handle of their type.
    pub(super) user: (*mut u8, usize, usize),
}

// SAFETY: the address is the user's buffer; who accesses it when, the partition rules say.
unsafe impl Send for Partitions {}
// SAFETY: a shared reference gives the address alone;
// no two threads access the same bytes there at once (partition rule 2).
unsafe impl Sync for Partitions {}

impl Partitions {
    /// Describes `number` partitions of `count` elements each, from `addr` on. `handle` is the datatype's.
    ///
    /// # Errors
    /// [`Error::Partitions`] for a number below 1; [`Error::CountTooLarge`] for more than the address space holds;
    /// [`Error::NoMem`].
    pub fn new(addr: *mut u8, number: i32, count: usize, datatype: &Datatype, handle: usize) -> Result<Self> {
        let user = (addr, count, handle);
        let number =
            usize::try_from(number).ok().filter(|number| *number > 0).ok_or(Error::Partitions(number))?;
        let all = count.checked_mul(number).ok_or(Error::CountTooLarge(count))?;
        let (each, bytes) = (datatype.bytes_of(count)?, datatype.bytes_of(all)?);
        let run = bytes == 0 || datatype.is_contiguous();
        let addr = if run { addr.wrapping_offset(datatype.true_lb()) } else { addr };
        Ok(Self { addr, count: all, datatype: (!run).then(|| datatype.clone()), number, each, user })
    }

    /// Bytes of data of all partitions.
    pub(super) fn bytes(&self) -> usize {
        self.number * self.each
    }

    /// Where the data begins, if it is one run of bytes.
    pub(super) fn run(&self) -> Option<*mut u8> {
        self.datatype.is_none().then_some(self.addr)
    }

    /// Copies bytes `[from, from + len)` of the data to `to`.
    ///
    /// # Safety
    /// The buffer is valid and nobody writes these bytes of it; they are some of its data;
    /// `to` is valid for writes of `len` bytes.
    pub(super) unsafe fn pack(&self, from: usize, to: *mut u8, len: usize) {
        match &self.datatype {
            // SAFETY: these bytes are in the buffer, and `to` has room for `len`, as the caller promises.
            None => unsafe { crate::arch::copy_long(self.addr.wrapping_add(from), to, len) },
            Some(datatype) => {
                // SAFETY: the buffer has these bytes of its data, and `to` room for `len`, as the caller promises;
                // nobody else accesses those now (partition rule 1).
                unsafe {
                    let to = core::slice::from_raw_parts_mut(to, len);
                    datatype.pack(self.count, self.addr, from, to);
                }
            }
        }
    }

    /// Copies `len` bytes at `from` to bytes `[at, at + len)` of the data.
    ///
    /// # Safety
    /// The buffer is valid and nobody accesses these bytes of it; they are some of its data;
    /// `from` is valid for reads of `len` bytes.
    pub(super) unsafe fn unpack(&self, at: usize, from: *const u8, len: usize) {
        match &self.datatype {
            // SAFETY: these bytes are in the buffer, and `from` has `len`, as the caller promises.
            None => unsafe { crate::arch::copy_long(from, self.addr.wrapping_add(at), len) },
            Some(datatype) => {
                // SAFETY: the buffer has these bytes of its data, and `from` has `len`, as the caller promises; nobody
                // writes those now (partition rule 1).
                unsafe {
                    let from = core::slice::from_raw_parts(from, len);
                    datatype.unpack(self.count, self.addr, at, from);
                }
            }
        }
    }
}
