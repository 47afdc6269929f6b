//! The OTF2 library, found when it is needed: `perusal` itself does not depend on it.
//!
//! Signatures are those of OTF2 3.0 (`otf2/OTF2_*.h`); its enumerations are bytes and its error codes are ints. Every version from 2.0 on
//! has these functions in this form.

use crate::error::{Error, Result};
use core::ffi::{CStr, c_char, c_int, c_void};

/// The names under which the library is known: upstream's, and Debian's.
const NAMES: [&CStr; 4] =
    [c"libotf2.so.10", c"libopen-trace-format2.so.10", c"libotf2.so", c"libopen-trace-format2.so"];

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
            /// Finds all functions in a library that is loaded.
            ///
            /// # Safety
            /// `handle` came from `dlopen` of an OTF2 library, which stays loaded.
            unsafe fn of(handle: *mut c_void) -> core::result::Result<Library, &'static CStr> {
                Ok(Library {
                    $($field: {
                        // SAFETY: `handle` came from `dlopen` of a library that stays loaded; the name ends with a zero.
                        let symbol = unsafe { libc::dlsym(handle, $symbol.as_ptr()) };
                        if symbol.is_null() {
                            return Err($symbol);
                        }
                        // SAFETY: OTF2's function of this name has this signature.
                        unsafe {
                            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(symbol)
                        }
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
    archive_open = c"OTF2_Archive_Open": fn(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Opaque;
    archive_close = c"OTF2_Archive_Close": fn(Opaque) -> c_int;
    set_flush_callbacks = c"OTF2_Archive_SetFlushCallbacks": fn(Opaque, *const FlushCallbacks, *mut c_void) -> c_int;
    set_serial = c"OTF2_Archive_SetSerialCollectiveCallbacks": fn(Opaque) -> c_int;
    set_creator = c"OTF2_Archive_SetCreator": fn(Opaque, *const c_char) -> c_int;
    open_events = c"OTF2_Archive_OpenEvtFiles": fn(Opaque) -> c_int;
    close_events = c"OTF2_Archive_CloseEvtFiles": fn(Opaque) -> c_int;
    open_definitions = c"OTF2_Archive_OpenDefFiles": fn(Opaque) -> c_int;
    close_definitions = c"OTF2_Archive_CloseDefFiles": fn(Opaque) -> c_int;
    event_writer = c"OTF2_Archive_GetEvtWriter": fn(Opaque, u64) -> Opaque;
    close_event_writer = c"OTF2_Archive_CloseEvtWriter": fn(Opaque, Opaque) -> c_int;
    definition_writer = c"OTF2_Archive_GetDefWriter": fn(Opaque, u64) -> Opaque;
    close_definition_writer = c"OTF2_Archive_CloseDefWriter": fn(Opaque, Opaque) -> c_int;
    global_writer = c"OTF2_Archive_GetGlobalDefWriter": fn(Opaque) -> Opaque;
    close_global_writer = c"OTF2_Archive_CloseGlobalDefWriter": fn(Opaque, Opaque) -> c_int;
    /// Resolution, offset, length, time of day.
    clock = c"OTF2_GlobalDefWriter_WriteClockProperties": fn(Opaque, u64, u64, u64, u64) -> c_int;
    string = c"OTF2_GlobalDefWriter_WriteString": fn(Opaque, u32, *const c_char) -> c_int;
    paradigm = c"OTF2_GlobalDefWriter_WriteParadigm": fn(Opaque, u8, u32, u8) -> c_int;
    /// Self, name, class, parent.
    system_node = c"OTF2_GlobalDefWriter_WriteSystemTreeNode": fn(Opaque, u32, u32, u32, u32) -> c_int;
    /// Self, name, type, system node, creator.
    location_group = c"OTF2_GlobalDefWriter_WriteLocationGroup": fn(Opaque, u32, u32, u8, u32, u32) -> c_int;
    /// Self, name, type, events, group.
    location = c"OTF2_GlobalDefWriter_WriteLocation": fn(Opaque, u64, u32, u8, u64, u32) -> c_int;
    /// Self, name, canonical name, description, role, paradigm, flags, file, first line, last line.
    region = c"OTF2_GlobalDefWriter_WriteRegion": fn(Opaque, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    /// Self, name, type, paradigm, flags, members, their list.
    group = c"OTF2_GlobalDefWriter_WriteGroup": fn(Opaque, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    /// Self, name, group, parent, flags.
    comm = c"OTF2_GlobalDefWriter_WriteComm": fn(Opaque, u32, u32, u32, u32, u32) -> c_int;
    /// Self, name, description, type, mode, value type, base, exponent, unit.
    metric_member = c"OTF2_GlobalDefWriter_WriteMetricMember": fn(Opaque, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> c_int;
    /// Self, members, their list, occurrence, recorder.
    metric_class = c"OTF2_GlobalDefWriter_WriteMetricClass": fn(Opaque, u32, u8, *const u32, u8, u8) -> c_int;
    /// Attributes, time, region.
    enter = c"OTF2_EvtWriter_Enter": fn(Opaque, Opaque, u64, u32) -> c_int;
    leave = c"OTF2_EvtWriter_Leave": fn(Opaque, Opaque, u64, u32) -> c_int;
    /// Attributes, time, receiver, communicator, tag, length.
    mpi_send = c"OTF2_EvtWriter_MpiSend": fn(Opaque, Opaque, u64, u32, u32, u32, u64) -> c_int;
    mpi_recv = c"OTF2_EvtWriter_MpiRecv": fn(Opaque, Opaque, u64, u32, u32, u32, u64) -> c_int;
    /// Attributes, time, metric, values, their types, their list.
    metric = c"OTF2_EvtWriter_Metric": fn(Opaque, Opaque, u64, u32, u8, *const u8, *const u64) -> c_int;
    event_count = c"OTF2_EvtWriter_GetNumberOfEvents": fn(Opaque, *mut u64) -> c_int;
    describe = c"OTF2_Error_GetDescription": fn(c_int) -> *const c_char;
}

impl Library {
    /// Loads the library; it stays to the end of the process.
    ///
    /// # Errors
    /// [`Error::Trace`] that says what to install.
    pub fn load() -> Result<Library> {
        let handle = NAMES.iter().find_map(|name| {
            // SAFETY: a name with its zero; what the library does when it is loaded is its own affair.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            (!handle.is_null()).then_some(handle)
        });
        let Some(handle) = handle else {
            return Err(Error::Trace(
                "the OTF2 library is not on this machine; install it (Debian: apt-get install libotf2-trace-dev, which \
                 brings libopen-trace-format2-10)"
                    .into(),
            ));
        };
        // SAFETY: just loaded under OTF2's name, and never unloaded.
        unsafe { Library::of(handle) }.map_err(|missing| {
            Error::Trace(format!(
                "the OTF2 library on this machine has no function {}; version 2.0 or newer is needed",
                missing.to_string_lossy()
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
