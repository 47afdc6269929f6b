//! The ABI's C types in Rust (MPI 5.0 §20.1; `types.csv`).
#![allow(non_camel_case_types)]

use core::ffi::{c_int, c_void};

/// Address-sized integer.
pub type MPI_Aint = isize;
/// Count of elements or bytes, for arguments of the `_c` functions.
pub type MPI_Count = i64;
/// Offset in a file.
pub type MPI_Offset = i64;

/// Handles are pointers to incomplete structs; the value is all that matters, and 1..=4095 are predefined.
pub type MPI_Comm = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Datatype = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Errhandler = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_File = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Group = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Info = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Message = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Op = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Request = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Session = usize;
/// Handle, see [`MPI_Comm`].
pub type MPI_Win = usize;

/// A callback, see its namesake in the engine.
pub type MPI_User_function = crate::datatype::op::UserFunction;
/// A callback, see its namesake in the engine.
pub type MPI_User_function_c = crate::datatype::op::UserFunctionC;
/// A callback that handles errors.
pub type MPI_Comm_errhandler_function = crate::errhandler::ErrhandlerFn;
/// A callback that handles errors.
pub type MPI_Win_errhandler_function = crate::errhandler::ErrhandlerFn;
/// A callback that handles errors.
pub type MPI_File_errhandler_function = crate::errhandler::ErrhandlerFn;
/// A callback that handles errors.
pub type MPI_Session_errhandler_function = crate::errhandler::ErrhandlerFn;
/// `int (void *extra_state, MPI_Status *status)`.
pub type MPI_Grequest_query_function = unsafe extern "C" fn(*mut c_void, *mut MPI_Status) -> c_int;
/// `int (void *extra_state)`.
pub type MPI_Grequest_free_function = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `int (void *extra_state, int complete)`.
pub type MPI_Grequest_cancel_function = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
/// A callback of MPI_T.
pub type MPI_T_event_cb_function = crate::tool::event::registration::EventFunction;
/// A callback of MPI_T.
pub type MPI_T_event_free_cb_function = crate::tool::event::registration::FreeFunction;
/// A callback of MPI_T.
pub type MPI_T_event_dropped_cb_function = crate::tool::event::registration::DroppedFunction;

/// The status of a message as C sees it: 32 bytes, aligned to 4 (MPI 5.0 §3.2.5, §20.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct MPI_Status {
    /// Rank of the sender, MPI_PROC_NULL or MPI_ANY_SOURCE.
    pub source: c_int,
    /// Tag of the message, or MPI_ANY_TAG.
    pub tag: c_int,
    /// Written only by calls that return several statuses (and whatever the user put there otherwise).
    pub error: c_int,
    /// Ours: low and high half of the count of bytes, 1 if cancelled, two spare words.
    pub internal: [c_int; 5],
}

const _: () = assert!(size_of::<MPI_Status>() == 32 && align_of::<MPI_Status>() == 4);
const _: () = assert!(size_of::<usize>() == size_of::<*const c_void>());

impl MPI_Status {
    /// The empty status (MPI 5.0 §3.7.3): any source, any tag, MPI_SUCCESS, count 0, not cancelled.
    pub const EMPTY: Self = Self {
        source: crate::abi::MPI_ANY_SOURCE,
        tag: crate::abi::MPI_ANY_TAG,
        error: crate::abi::MPI_SUCCESS,
        internal: [0; 5],
    };

    /// Bytes received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[0].cast_unsigned()) | u64::from(self.internal[1].cast_unsigned()) << 32
    }

    /// Sets the count of bytes.
    #[inline(always)]
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = (bytes as u32).cast_signed();
        self.internal[1] = ((bytes >> 32) as u32).cast_signed();
    }

    /// Was the operation cancelled?
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Marks the operation as cancelled or not.
    #[inline(always)]
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }

    /// Takes over what the engine says, without touching `MPI_ERROR` (single-completion calls leave it alone, §3.2.5).
    #[inline(always)]
    pub fn fill(&mut self, source: c_int, tag: c_int, bytes: u64, cancelled: bool) {
        self.source = source;
        self.tag = tag;
        self.set_bytes(bytes);
        self.set_cancelled(cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_counts_beyond_four_gigabytes_and_the_users_error_field() {
        let mut status = MPI_Status { error: 77, ..MPI_Status::EMPTY };
        status.fill(3, 9, 0x1_2345_6789, true);
        assert_eq!((status.source, status.tag, status.error), (3, 9, 77));
        assert_eq!(status.bytes(), 0x1_2345_6789);
        assert!(status.cancelled());
    }
}
