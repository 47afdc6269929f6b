//! The OTF2 library, found when it is needed: `perusal` itself does not depend on it.
//!
//! Signatures are those of OTF2 3.0 (`otf2/OTF2_*.h`); its enumerations are bytes, its flags and error codes are ints.
//! Every version from 2.1 on has these functions in this form.

use crate::error::{Error, Result};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::ManuallyDrop;

/// The names under which the library is known: upstream's, and Debian's.
const NAMES: [&str; 4] =
    ["libotf2.so.10", "libopen-trace-format2.so.10", "libotf2.so", "libopen-trace-format2.so"];

/// OTF2_FlushCallbacks.
#[repr(C)]
pub struct FlushCallbacks {
    /// Says whether a full buffer is to be written: always.
    pub before: extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    /// None: the flush itself gets no record.
    pub after: *const c_void,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Its functions that we use.
        pub struct Library {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            /// Finds all functions in `file`, an OTF2 library, which stays loaded;
            /// or returns the name of one that it lacks.
            fn of(file: &ManuallyDrop<libloading::Library>) -> core::result::Result<Library, &'static str> {
                Ok(Library {
                    $($field: {
                        // SAFETY: OTF2's function of this name has this signature, in every version that has it.
                        let function = unsafe { file.get(concat!($symbol, "\0").as_bytes()) };
                        *function.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}

/// Something of the library's own.
pub type Opaque = *mut c_void;

functions! {
    /// Path, name, mode, chunk sizes, substrate, compression.
    archive_open = "OTF2_Archive_Open": fn(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Opaque;
    archive_close = "OTF2_Archive_Close": fn(Opaque) -> c_int;
    set_flush_callbacks = "OTF2_Archive_SetFlushCallbacks": fn(Opaque, *const FlushCallbacks, *mut c_void) -> c_int;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks": fn(Opaque) -> c_int;
    set_creator = "OTF2_Archive_SetCreator": fn(Opaque, *const c_char) -> c_int;
    open_events = "OTF2_Archive_OpenEvtFiles": fn(Opaque) -> c_int;
    close_events = "OTF2_Archive_CloseEvtFiles": fn(Opaque) -> c_int;
    open_definitions = "OTF2_Archive_OpenDefFiles": fn(Opaque) -> c_int;
    close_definitions = "OTF2_Archive_CloseDefFiles": fn(Opaque) -> c_int;
    event_writer = "OTF2_Archive_GetEvtWriter": fn(Opaque, u64) -> Opaque;
    close_event_writer = "OTF2_Archive_CloseEvtWriter": fn(Opaque, Opaque) -> c_int;
    definition_writer = "OTF2_Archive_GetDefWriter": fn(Opaque, u64) -> Opaque;
    close_definition_writer = "OTF2_Archive_CloseDefWriter": fn(Opaque, Opaque) -> c_int;
    global_writer = "OTF2_Archive_GetGlobalDefWriter": fn(Opaque) -> Opaque;
    close_global_writer = "OTF2_Archive_CloseGlobalDefWriter": fn(Opaque, Opaque) -> c_int;
    /// Resolution, offset, length, time of day.
    clock = "OTF2_GlobalDefWriter_WriteClockProperties": fn(Opaque, u64, u64, u64, u64) -> c_int;
    string = "OTF2_GlobalDefWriter_WriteString": fn(Opaque, u32, *const c_char) -> c_int;
    paradigm = "OTF2_GlobalDefWriter_WriteParadigm": fn(Opaque, u8, u32, u8) -> c_int;
    /// Self, name, class, parent.
    system_node = "OTF2_GlobalDefWriter_WriteSystemTreeNode": fn(Opaque, u32, u32, u32, u32) -> c_int;
    /// Self, name, type, system node, creator.
    location_group = "OTF2_GlobalDefWriter_WriteLocationGroup": fn(Opaque, u32, u32, u8, u32, u32) -> c_int;
    /// Self, name, type, events, group.
    location = "OTF2_GlobalDefWriter_WriteLocation": fn(Opaque, u64, u32, u8, u64, u32) -> c_int;
    /// Self, name, canonical name, description, role, paradigm, flags, file, first line, last line.
    region = "OTF2_GlobalDefWriter_WriteRegion": fn(Opaque, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    /// Self, name, type, paradigm, flags, members, their list.
    group = "OTF2_GlobalDefWriter_WriteGroup": fn(Opaque, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    /// Self, name, group, parent, flags.
    comm = "OTF2_GlobalDefWriter_WriteComm": fn(Opaque, u32, u32, u32, u32, u32) -> c_int;
    /// Self, name, communicator, flags; before version 3.0 without the flags,
    /// which a function that takes fewer arguments does not look at.
    rma_win = "OTF2_GlobalDefWriter_WriteRmaWin": fn(Opaque, u32, u32, u32, u32) -> c_int;
    /// Self, identification, name, class, flags, properties: their number, names, types and values.
    io_paradigm = "OTF2_GlobalDefWriter_WriteIoParadigm": fn(Opaque, u8, u32, u32, u8, u32, u8, *const u8, *const u8, *const c_void) -> c_int;
    /// Self, name, system node.
    io_file = "OTF2_GlobalDefWriter_WriteIoRegularFile": fn(Opaque, u32, u32, u32) -> c_int;
    /// Self, name, file, paradigm, flags, communicator, parent.
    io_handle = "OTF2_GlobalDefWriter_WriteIoHandle": fn(Opaque, u32, u32, u32, u8, u32, u32, u32) -> c_int;
    /// Self, name, description, type, mode, value type, base, exponent, unit.
    metric_member = "OTF2_GlobalDefWriter_WriteMetricMember": fn(Opaque, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> c_int;
    /// Self, members, their list, occurrence, recorder.
    metric_class = "OTF2_GlobalDefWriter_WriteMetricClass": fn(Opaque, u32, u8, *const u32, u8, u8) -> c_int;
    /// Attributes, time, region.
    enter = "OTF2_EvtWriter_Enter": fn(Opaque, Opaque, u64, u32) -> c_int;
    leave = "OTF2_EvtWriter_Leave": fn(Opaque, Opaque, u64, u32) -> c_int;
    /// Attributes, time, receiver, communicator, tag, length.
    mpi_send = "OTF2_EvtWriter_MpiSend": fn(Opaque, Opaque, u64, u32, u32, u32, u64) -> c_int;
    mpi_recv = "OTF2_EvtWriter_MpiRecv": fn(Opaque, Opaque, u64, u32, u32, u32, u64) -> c_int;
    /// Attributes, time.
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin": fn(Opaque, Opaque, u64) -> c_int;
    /// Attributes, time, operation, communicator, root, bytes sent, bytes received.
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd": fn(Opaque, Opaque, u64, u8, u32, u32, u64, u64) -> c_int;
    /// Attributes, time, metric, values, their types, their list.
    metric = "OTF2_EvtWriter_Metric": fn(Opaque, Opaque, u64, u32, u8, *const u8, *const u64) -> c_int;
    /// Attributes, time, window.
    rma_win_create = "OTF2_EvtWriter_RmaWinCreate": fn(Opaque, Opaque, u64, u32) -> c_int;
    rma_win_destroy = "OTF2_EvtWriter_RmaWinDestroy": fn(Opaque, Opaque, u64, u32) -> c_int;
    /// Attributes, time.
    rma_collective_begin = "OTF2_EvtWriter_RmaCollectiveBegin": fn(Opaque, Opaque, u64) -> c_int;
    /// Attributes, time, operation, level, window, root, bytes sent, bytes received.
    rma_collective_end = "OTF2_EvtWriter_RmaCollectiveEnd": fn(Opaque, Opaque, u64, u8, u32, u32, u32, u64, u64) -> c_int;
    /// Attributes, time, level, window, group.
    rma_group_sync = "OTF2_EvtWriter_RmaGroupSync": fn(Opaque, Opaque, u64, u32, u32, u32) -> c_int;
    /// Attributes, time, window, remote rank, lock, its type.
    rma_request_lock = "OTF2_EvtWriter_RmaRequestLock": fn(Opaque, Opaque, u64, u32, u32, u64, u8) -> c_int;
    rma_acquire_lock = "OTF2_EvtWriter_RmaAcquireLock": fn(Opaque, Opaque, u64, u32, u32, u64, u8) -> c_int;
    /// Attributes, time, window, remote rank, lock.
    rma_release_lock = "OTF2_EvtWriter_RmaReleaseLock": fn(Opaque, Opaque, u64, u32, u32, u64) -> c_int;
    /// Attributes, time, window, remote rank, type.
    rma_sync = "OTF2_EvtWriter_RmaSync": fn(Opaque, Opaque, u64, u32, u32, u8) -> c_int;
    /// Attributes, time, window, remote rank, bytes, matching id.
    rma_put = "OTF2_EvtWriter_RmaPut": fn(Opaque, Opaque, u64, u32, u32, u64, u64) -> c_int;
    rma_get = "OTF2_EvtWriter_RmaGet": fn(Opaque, Opaque, u64, u32, u32, u64, u64) -> c_int;
    /// Attributes, time, window, remote rank, type, bytes sent, bytes received, matching id.
    rma_atomic = "OTF2_EvtWriter_RmaAtomic": fn(Opaque, Opaque, u64, u32, u32, u8, u64, u64, u64) -> c_int;
    /// Attributes, time, window, matching id.
    rma_complete = "OTF2_EvtWriter_RmaOpCompleteBlocking": fn(Opaque, Opaque, u64, u32, u64) -> c_int;
    /// Attributes, time, handle, access mode, creation flags, status flags.
    io_create = "OTF2_EvtWriter_IoCreateHandle": fn(Opaque, Opaque, u64, u32, u8, u32, u32) -> c_int;
    /// Attributes, time, handle.
    io_destroy = "OTF2_EvtWriter_IoDestroyHandle": fn(Opaque, Opaque, u64, u32) -> c_int;
    /// Attributes, time, handle, mode, flags, bytes, matching id.
    io_begin = "OTF2_EvtWriter_IoOperationBegin": fn(Opaque, Opaque, u64, u32, u8, u32, u64, u64) -> c_int;
    /// Attributes, time, handle, matching id.
    io_issued = "OTF2_EvtWriter_IoOperationIssued": fn(Opaque, Opaque, u64, u32, u64) -> c_int;
    /// Attributes, time, handle, bytes, matching id.
    io_complete = "OTF2_EvtWriter_IoOperationComplete": fn(Opaque, Opaque, u64, u32, u64, u64) -> c_int;
    /// Attributes, time, handle, type.
    io_acquire_lock = "OTF2_EvtWriter_IoAcquireLock": fn(Opaque, Opaque, u64, u32, u8) -> c_int;
    io_release_lock = "OTF2_EvtWriter_IoReleaseLock": fn(Opaque, Opaque, u64, u32, u8) -> c_int;
    attributes_new = "OTF2_AttributeList_New": fn() -> Opaque;
    attributes_delete = "OTF2_AttributeList_Delete": fn(Opaque) -> c_int;
    attributes_clear = "OTF2_AttributeList_RemoveAllAttributes": fn(Opaque) -> c_int;
    /// List, attribute, value.
    add_int32 = "OTF2_AttributeList_AddInt32": fn(Opaque, u32, i32) -> c_int;
    add_uint32 = "OTF2_AttributeList_AddUint32": fn(Opaque, u32, u32) -> c_int;
    add_comm = "OTF2_AttributeList_AddCommRef": fn(Opaque, u32, u32) -> c_int;
    /// Self, name, description, type.
    attribute = "OTF2_GlobalDefWriter_WriteAttribute": fn(Opaque, u32, u32, u32, u8) -> c_int;
    event_count = "OTF2_EvtWriter_GetNumberOfEvents": fn(Opaque, *mut u64) -> c_int;
    describe = "OTF2_Error_GetDescription": fn(c_int) -> *const c_char;
}

impl Library {
    /// Loads the library; it stays to the end of the process.
    ///
    /// # Errors
    /// [`Error::Trace`] that says what to install.
    pub fn load() -> Result<Library> {
        // SAFETY: OTF2 runs nothing when it is loaded.
        let file = NAMES.iter().find_map(|name| unsafe { libloading::Library::new(name) }.ok());
        let Some(file) = file.map(ManuallyDrop::new) else {
            return Err(Error::Trace(
                "the OTF2 library is not on this machine; install it (Debian: apt-get install libotf2-trace-dev, which \
                 brings libopen-trace-format2-10)"
                    .into(),
            ));
        };
        Library::of(&file).map_err(|missing| {
            Error::Trace(format!(
                "the OTF2 library on this machine has no function {missing}; version 2.1 or newer is needed"
            ))
        })
    }

    /// Turns OTF2's word for a failure into ours.
    ///
    /// # Errors
    /// [`Error::Trace`], unless `code` is OTF2_SUCCESS.
    pub fn check(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: takes any number, and gives a static string or null.
        let text = unsafe { (self.describe)(code) };
        let text = if text.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: a static string with its zero, as OTF2 documents.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(Error::Trace(format!("OTF2, {what}: {text}")))
    }
}
