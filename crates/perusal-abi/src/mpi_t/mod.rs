//! MPI_T: the MPI tool information interface (MPI tool chapter §14.3; MPI 5.0 §15.3).
//!
//! | file | what lives there |
//! |---|---|
//! | [`init`] | MPI_T_init_thread, MPI_T_finalize, and who must be told of the last one |
//! | [`enums`] | MPI_T_enum |
//! | [`cvar`] | control variables |
//! | [`pvar`], `pvar_state`, `searching` | performance variables; sessions and handles; what counts searches |
//! | [`category`] | the tree |
//! | [`event`] | events: types, handles, what a callback reads, sources |
//!
//! Every function may be called at any time and from any thread, event callbacks included. It returns an error class, never
//! raises an error and never ends the program.

pub mod category;
pub mod cvar;
pub mod enums;
pub mod event;
pub mod init;
pub mod pvar;
mod pvar_state;
mod searching;

use crate::abi;
use core::ffi::{c_char, c_int};

/// What a function of MPI_T gives: an error is one of the classes of §14.3.9.
pub(crate) type Outcome<T = ()> = Result<T, c_int>;

/// What the function returns.
pub(crate) fn code(outcome: Outcome) -> c_int {
    outcome.err().unwrap_or(abi::MPI_SUCCESS)
}

/// Defines functions of MPI_T that need it to be initialised: the body gives an [`Outcome`].
macro_rules! tool {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $($crate::export! {
            $(#[$meta])*
            fn $name($($arg: $ty),*) -> core::ffi::c_int {
                let run = || -> $crate::capi::mpi_t::Outcome {
                    $crate::capi::mpi_t::init::initialised()?;
                    $body
                };
                $crate::capi::mpi_t::code(run())
            }
        })*
    };
}
pub(crate) use tool;

/// Writes an output argument that must be there.
///
/// # Safety
/// `to` is NULL or may be written.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(abi::MPI_T_ERR_INVALID);
    }
    // SAFETY: not null, and by contract may be written.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes an output argument that the caller may not want (§14.3.6: a NULL pointer is ignored).
///
/// # Safety
/// `to` is NULL or may be written.
pub(crate) unsafe fn offer<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and by contract may be written.
        unsafe { to.write(value) };
    }
}

/// Writes a string as §14.3.3 has it: at most `*len - 1` characters and a zero to `to`; `*len` becomes the length of the whole
/// string, the zero included. No `len`: nothing. No `to`, or no room: only the length.
///
/// # Safety
/// `len` is NULL or may be read and written; `to` is NULL or may be written for `*len` bytes.
pub(crate) unsafe fn give(text: &str, to: *mut c_char, len: *mut c_int) {
    if len.is_null() {
        return;
    }
    // SAFETY: not null, and by contract may be read.
    let room = usize::try_from(unsafe { len.read() }).unwrap_or(0);
    if !to.is_null() {
        // SAFETY: not null, and by contract `room` bytes may be written.
        unsafe { crate::capi::strings::write(to, room, text.as_bytes()) };
    }
    // SAFETY: as above.
    unsafe { len.write(text.len() as c_int + 1) };
}

/// The row of a table that an index names.
pub(crate) fn row<T>(table: &[T], index: c_int) -> Outcome<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(abi::MPI_T_ERR_INVALID_INDEX)
}

/// A name that the caller gives.
///
/// # Safety
/// `name` is NULL or a string that nobody changes during `'a`.
pub(crate) unsafe fn name<'a>(name: *const c_char) -> Outcome<&'a str> {
    if name.is_null() {
        return Err(abi::MPI_T_ERR_INVALID);
    }
    // SAFETY: not null, and by contract a string.
    unsafe { core::ffi::CStr::from_ptr(name) }.to_str().map_err(|_| abi::MPI_T_ERR_INVALID_NAME)
}

/// Writes the first `len` of `indices` to `to`.
///
/// # Safety
/// `to` is NULL or has room for `len` elements.
pub(crate) unsafe fn list(indices: impl Iterator<Item = usize>, len: c_int, to: *mut c_int) -> Outcome {
    let room = usize::try_from(len).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    if to.is_null() && room > 0 {
        return Err(abi::MPI_T_ERR_INVALID);
    }
    for (at, index) in indices.take(room).enumerate() {
        // SAFETY: below `room`, so within what the caller gave.
        unsafe { to.add(at).write(index as c_int) };
    }
    Ok(())
}

/// The constant of a verbosity level.
pub(crate) fn verbosity(level: crate::variables::table::Verbosity) -> c_int {
    use crate::variables::table::Verbosity;
    match level {
        Verbosity::UserBasic => abi::MPI_T_VERBOSITY_USER_BASIC,
        Verbosity::UserDetail => abi::MPI_T_VERBOSITY_USER_DETAIL,
        Verbosity::TunerBasic => abi::MPI_T_VERBOSITY_TUNER_BASIC,
        Verbosity::TunerDetail => abi::MPI_T_VERBOSITY_TUNER_DETAIL,
        Verbosity::MpidevBasic => abi::MPI_T_VERBOSITY_MPIDEV_BASIC,
    }
}
