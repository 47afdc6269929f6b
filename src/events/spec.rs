//! What a callback receives: the specification of the request or message; and the forms of a callback.

use super::Handle;
use super::record::{EventRecord, GlobalSubscriber};
use super::values::WindowSync;
use super::{Binding, EventPayload};
use core::ffi::{c_int, c_long, c_void};
use core::mem::offset_of;
use std::sync::Arc;

/// The kind of operation that an event belongs to: the `operation` field of `peruse_comm_spec_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Operation {
    /// PERUSE_SEND.
    Send = 0,
    /// PERUSE_RECV.
    Recv,
    /// PERUSE_PUT.
    Put,
    /// PERUSE_GET.
    Get,
    /// PERUSE_ACC.
    Acc,
    /// PERUSE_IO_READ.
    IoRead,
    /// PERUSE_IO_WRITE.
    IoWrite,
    /// PERUSE_WIN_FENCE; here and below a call that synchronises a window.
    WinFence,
    /// PERUSE_WIN_START.
    WinStart,
    /// PERUSE_WIN_COMPLETE.
    WinComplete,
    /// PERUSE_WIN_POST.
    WinPost,
    /// PERUSE_WIN_WAIT.
    WinWait,
    /// PERUSE_WIN_LOCK.
    WinLock,
    /// PERUSE_WIN_UNLOCK.
    WinUnlock,
    /// PERUSE_WIN_TEST; here and below our own.
    WinTest,
    /// PERUSE_WIN_LOCK_ALL.
    WinLockAll,
    /// PERUSE_WIN_UNLOCK_ALL.
    WinUnlockAll,
    /// PERUSE_WIN_FLUSH.
    WinFlush,
    /// PERUSE_WIN_SYNC.
    WinSync,
}

impl Operation {
    /// The operation of the events of a call that synchronises a window.
    #[must_use]
    pub const fn of_sync(call: WindowSync) -> Operation {
        match call {
            WindowSync::Fence => Operation::WinFence,
            WindowSync::Start => Operation::WinStart,
            WindowSync::Complete => Operation::WinComplete,
            WindowSync::Post => Operation::WinPost,
            WindowSync::Wait => Operation::WinWait,
            WindowSync::Lock => Operation::WinLock,
            WindowSync::Unlock => Operation::WinUnlock,
            WindowSync::Test => Operation::WinTest,
            WindowSync::LockAll => Operation::WinLockAll,
            WindowSync::UnlockAll => Operation::WinUnlockAll,
            WindowSync::Flush => Operation::WinFlush,
            WindowSync::Sync => Operation::WinSync,
        }
    }
}

/// The request or message that an event belongs to (PERUSE 2.0 §5.1.2), as its user gave it.
///
/// It begins as C's [`CommSpec`] does, so that a C function can be handed this itself. Only `count` is wider: its upper
/// half lies where that has padding, and is 0 as long as C can see all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Spec {
    /// Handle of the communicator, window or file that the operation runs on.
    pub comm: usize,
    /// The user's buffer, of a one-sided operation the origin's;
    /// null where none is known (a message that no receive has met).
    pub buf: *mut c_void,
    /// Elements of `datatype`.
    pub count: i64,
    /// Handle of the datatype.
    pub datatype: usize,
    /// Rank of the other side in `comm`, of a one-sided operation the target's (-1: all);
    /// what the user gave until the real one is known.
    pub peer: i32,
    /// The tag; what the user gave until the real one is known. Of an event of a window or file, the rank of the
    /// process that makes it happen.
    pub tag: i32,
    /// Which kind of operation.
    pub operation: Operation,
    /// Size of the data in bytes: of a send or a message, what is sent;
    /// of a receive, the room there is until it is matched.
    pub bytes: u64,
}

/// C finds each field where it looks for it. Little-endian: the low half of `count` is what it takes for all of it.
const IS_LIKE_C: bool = cfg!(target_endian = "little")
    && offset_of!(Spec, comm) == offset_of!(CommSpec, comm)
    && offset_of!(Spec, buf) == offset_of!(CommSpec, buf)
    && offset_of!(Spec, count) == offset_of!(CommSpec, count)
    && offset_of!(Spec, datatype) == offset_of!(CommSpec, datatype)
    && offset_of!(Spec, peer) == offset_of!(CommSpec, peer)
    && offset_of!(Spec, tag) == offset_of!(CommSpec, tag)
    && offset_of!(Spec, operation) == offset_of!(CommSpec, operation)
    && size_of::<CommSpec>() <= size_of::<Spec>();

impl Spec {
    /// What an event has that belongs to no request or message.
    pub const NOTHING: Spec = Spec {
        comm: 0,
        buf: core::ptr::null_mut(),
        count: 0,
        datatype: 0,
        peer: 0,
        tag: 0,
        operation: Operation::Send,
        bytes: 0,
    };

    /// Whether it is a [`CommSpec`] too, as it lies there.
    #[inline(always)]
    pub(super) fn is_for_c(&self) -> bool {
        IS_LIKE_C && self.count.cast_unsigned() <= c_int::MAX as u64
    }
}

// SAFETY: the address in it is the user's, shown to listeners and never followed here.
unsafe impl Send for Spec {}
// SAFETY: all its fields are plain words, and the address is never followed here.
unsafe impl Sync for Spec {}

/// `peruse_comm_spec_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CommSpec {
    /// MPI_Comm.
    pub comm: usize,
    /// The user's buffer.
    pub buf: *mut c_void,
    /// Elements; a count beyond `INT_MAX` reads `INT_MAX`.
    pub count: c_int,
    /// MPI_Datatype.
    pub datatype: usize,
    /// Rank of the other side.
    pub peer: c_int,
    /// The tag.
    pub tag: c_int,
    /// PERUSE_SEND, PERUSE_RECV, …
    pub operation: c_int,
}

impl From<&Spec> for CommSpec {
    fn from(spec: &Spec) -> CommSpec {
        CommSpec {
            comm: spec.comm,
            buf: spec.buf,
            count: c_int::try_from(spec.count).unwrap_or(c_int::MAX),
            datatype: spec.datatype,
            peer: spec.peer,
            tag: spec.tag,
            operation: spec.operation as c_int,
        }
    }
}

/// The target's side of a one-sided operation, as its user gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RmaTarget {
    /// Elements.
    pub count: usize,
    /// Handle of their datatype; 0 where it is not known.
    pub datatype: usize,
    /// Handle of the operation of an accumulate; 0 for others.
    pub op: usize,
}

/// `peruse_win_spec_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct WinSpec {
    /// MPI_Win.
    pub win: usize,
    /// The origin's buffer.
    pub o_buf: *mut c_void,
    /// Elements there; a count beyond `INT_MAX` reads `INT_MAX`.
    pub o_count: c_int,
    /// Their MPI_Datatype.
    pub o_datatype: usize,
    /// The address of the target's elements, in the target's process.
    pub t_buf: *mut c_void,
    /// Elements there; a count beyond `INT_MAX` reads `INT_MAX`.
    pub t_count: c_int,
    /// Their MPI_Datatype.
    pub t_datatype: usize,
    /// The MPI_Op of an accumulate, else MPI_OP_NULL.
    pub acc_op: usize,
    /// Rank of the target in the window's group; -1: all.
    pub peer: c_int,
    /// PERUSE_PUT, PERUSE_GET, PERUSE_ACC, PERUSE_WIN_FENCE, …
    pub operation: c_int,
}

impl From<&EventRecord<'_>> for WinSpec {
    fn from(record: &EventRecord<'_>) -> WinSpec {
        let spec = record.spec;
        let (address, target) = match record.payload {
            EventPayload::Rma { address, target, .. } => (address, target.copied().unwrap_or_default()),
            _ => (0, RmaTarget::default()),
        };
        let or = |handle: usize, null: usize| if handle == 0 { null } else { handle };
        WinSpec {
            win: spec.comm,
            o_buf: spec.buf,
            o_count: c_int::try_from(spec.count).unwrap_or(c_int::MAX),
            o_datatype: or(spec.datatype, crate::abi::MPI_DATATYPE_NULL),
            t_buf: core::ptr::without_provenance_mut(address as usize),
            t_count: c_int::try_from(target.count).unwrap_or(c_int::MAX),
            t_datatype: or(target.datatype, crate::abi::MPI_DATATYPE_NULL),
            acc_op: or(target.op, crate::abi::MPI_OP_NULL),
            peer: spec.peer,
            operation: spec.operation as c_int,
        }
    }
}

/// `peruse_file_spec_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct FileSpec {
    /// MPI_File.
    pub file: usize,
    /// The user's buffer.
    pub buf: *mut c_void,
    /// Elements there; a count beyond `INT_MAX` reads `INT_MAX`.
    pub count: c_int,
    /// Their MPI_Datatype.
    pub datatype: usize,
    /// Bytes from the beginning of the file; -1 where that is not known yet.
    pub offset: i64,
    /// PERUSE_IO_READ or PERUSE_IO_WRITE.
    pub operation: c_int,
}

impl From<&EventRecord<'_>> for FileSpec {
    fn from(record: &EventRecord<'_>) -> FileSpec {
        let spec = record.spec;
        let offset = match record.payload {
            EventPayload::File { offset, .. } => i64::try_from(offset).unwrap_or(-1),
            _ => -1,
        };
        FileSpec {
            file: spec.comm,
            buf: spec.buf,
            count: c_int::try_from(spec.count).unwrap_or(c_int::MAX),
            datatype: spec.datatype,
            offset,
            operation: spec.operation as c_int,
        }
    }
}

/// `peruse_file_callback_f *`.
pub type FileCallback = unsafe extern "C" fn(c_long, isize, *mut FileSpec, *mut c_void) -> c_int;

/// `peruse_win_callback_f *`.
pub type WinCallback = unsafe extern "C" fn(c_long, isize, *mut WinSpec, *mut c_void) -> c_int;

/// `peruse_comm_callback_f *`.
pub type CommCallback = unsafe extern "C" fn(c_long, isize, *mut CommSpec, *mut c_void) -> c_int;

/// A closure that is called with its handle and the record.
pub type CallbackClosure = Box<dyn Fn(Handle, &EventRecord<'_>) + Send + Sync>;

/// A registered callback.
pub enum Callback {
    /// A C function and its parameter.
    C {
        /// The function.
        function: CommCallback,
        /// Handed to the function, never looked at.
        param: *mut c_void,
    },
    /// A C function for a window's events, and its parameter.
    Win {
        /// The function.
        function: WinCallback,
        /// Handed to the function, never looked at.
        param: *mut c_void,
    },
    /// A C function for a file's events, and its parameter.
    File {
        /// The function.
        function: FileCallback,
        /// Handed to the function, never looked at.
        param: *mut c_void,
    },
    /// A closure, called with its handle; it cannot fail, and a panic counts as a non-success return.
    Rust(CallbackClosure),
    /// A listener that receives the records as they are; a panic counts as a non-success return.
    GlobalSubscriber(Arc<dyn GlobalSubscriber>),
}

// SAFETY: closure and global subscriber are Send and Sync by their bounds. Function and parameter are two words that
// perusal only hands back; that the function may be called with that parameter from any thread is the tool's promise
// (PERUSE 2.0 §5.1.2).
unsafe impl Send for Callback {}
// SAFETY: closure and global subscriber are `Sync` by their bounds; the two words of a C function are only read.
unsafe impl Sync for Callback {}

impl core::fmt::Debug for Callback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "callback at {:#x}", self.address())
    }
}

impl Callback {
    /// Whether it can be called for the events of an object of this kind.
    pub(super) fn suits(&self, binding: Binding) -> bool {
        match self {
            Callback::C { .. } => binding == Binding::Communicator,
            Callback::Win { .. } => binding == Binding::Window,
            Callback::File { .. } => binding == Binding::File,
            Callback::Rust(_) | Callback::GlobalSubscriber(_) => true,
        }
    }

    /// The address that names the callback in a fatal message.
    #[must_use]
    pub fn address(&self) -> usize {
        match self {
            Callback::C { function, .. } => *function as usize,
            Callback::Win { function, .. } => *function as usize,
            Callback::File { function, .. } => *function as usize,
            Callback::Rust(closure) => core::ptr::from_ref(&**closure).cast::<()>() as usize,
            Callback::GlobalSubscriber(subscriber) => Arc::as_ptr(subscriber).cast::<()>() as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_can_be_handed_a_spec_itself() {
        assert!(IS_LIKE_C == cfg!(target_endian = "little"));
    }

    #[test]
    fn the_c_spec_has_the_layout_of_the_header() {
        assert_eq!(size_of::<CommSpec>(), 48);
        let offsets = [
            offset_of!(CommSpec, comm),
            offset_of!(CommSpec, buf),
            offset_of!(CommSpec, count),
            offset_of!(CommSpec, datatype),
            offset_of!(CommSpec, peer),
            offset_of!(CommSpec, tag),
            offset_of!(CommSpec, operation),
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 36, 40]);
    }

    #[test]
    fn the_c_spec_of_a_window_has_the_layout_of_the_header() {
        assert_eq!(size_of::<WinSpec>(), 72);
        let offsets = [
            offset_of!(WinSpec, win),
            offset_of!(WinSpec, o_buf),
            offset_of!(WinSpec, o_count),
            offset_of!(WinSpec, o_datatype),
            offset_of!(WinSpec, t_buf),
            offset_of!(WinSpec, t_count),
            offset_of!(WinSpec, t_datatype),
            offset_of!(WinSpec, acc_op),
            offset_of!(WinSpec, peer),
            offset_of!(WinSpec, operation),
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 56, 64, 68]);
    }

    #[test]
    fn the_c_spec_of_a_file_has_the_layout_of_the_header() {
        assert_eq!(size_of::<FileSpec>(), 48);
        let offsets = [
            offset_of!(FileSpec, file),
            offset_of!(FileSpec, buf),
            offset_of!(FileSpec, count),
            offset_of!(FileSpec, datatype),
            offset_of!(FileSpec, offset),
            offset_of!(FileSpec, operation),
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40]);
    }

    #[test]
    fn a_count_beyond_int_reads_int_max() {
        let spec = Spec {
            comm: 1,
            buf: core::ptr::null_mut(),
            count: i64::from(c_int::MAX) + 1,
            datatype: 2,
            peer: 3,
            tag: 4,
            operation: Operation::Recv,
            bytes: 0,
        };
        assert!(!spec.is_for_c() && Spec { count: i64::from(c_int::MAX), ..spec }.is_for_c());
        let c = CommSpec::from(&spec);
        assert_eq!((c.count, c.peer, c.tag, c.operation), (c_int::MAX, 3, 4, 1));
    }
}
