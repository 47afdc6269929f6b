//! MPI_T: the MPI tool information interface (MPI 5.0 §15.3).
//!
//! | file | what lives there |
//! |---|---|
//! | [`init`] | MPI_T_init_thread, MPI_T_finalize, and what must end with the last one |
//! | [`enums`] | MPI_T_enum |
//! | [`cvar`] | control variables |
//! | [`pvar`], `pvar_state` | performance variables; sessions and handles |
//! | `event_counts`, `searching`, `window_counts` | what counts, while a handle asks for it, events, searches and windows |
//! | [`category`] | the tree |
//! | [`event`] | events: types, handles, what a callback reads, sources |
//!
//! Every function may be called at any time and from any thread, event callbacks included. It returns an error class,
//! never raises an error and never ends the program.

pub mod category;
pub mod cvar;
pub mod enums;
pub mod event;
mod event_counts;
pub mod init;
pub mod pvar;
mod pvar_state;
mod searching;
mod window_counts;

use crate::abi;
use crate::arguments::{Address, Argument, Array, InOut, Letters, NO_RESULT, Room};
use crate::error::Error;
use core::ffi::{c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;

/// What a function of MPI_T gives: an error is one of the classes of MPI 5.0 §15.3.10.
pub(crate) type Outcome<T = ()> = Result<T, c_int>;

/// What the function returns.
pub(crate) fn code(outcome: Outcome) -> c_int {
    outcome.err().unwrap_or(abi::MPI_SUCCESS)
}

/// What is wrong with an argument that is checked as those of MPI's functions are.
pub(crate) fn invalid(_: Error) -> c_int {
    abi::MPI_T_ERR_INVALID
}

/// A place for a text, with room for as many characters as the integer at the second address says (MPI 5.0 §15.3.3).
/// Either may be NULL.
pub struct TextPlace<'a> {
    to: Letters<'a>,
    length: Option<InOut<'a, c_int>>,
}

impl<'a> Array<'a, *mut c_char, *mut c_int> for TextPlace<'a> {
    unsafe fn of(from: *mut c_char, length: *mut c_int) -> Result<Self, Error> {
        // SAFETY: argument rule 1: the call passes both, and the call outlives the result.
        unsafe { Ok(Self { to: Argument::of(from)?, length: Argument::of(length)? }) }
    }
}

impl TextPlace<'_> {
    /// Writes as much as there is room for, with a zero behind it; the length becomes that of the whole string, the
    /// zero included. Without a length, nothing; without a place or room, only the length.
    fn give(&self, text: &str) {
        let Some(length) = &self.length else { return };
        let room = usize::try_from(length.get()).unwrap_or(0);
        // SAFETY: MPI 5.0 §15.3.3: the tool gives room for so many characters. NULL is fine.
        let _ = unsafe { self.to.write(room, text.as_bytes()) };
        length.set(text.len() as c_int + 1);
    }
}

/// An array that the tool may not want, with room for as many elements as the integer at the second address says.
/// Either may be NULL.
pub struct OptionalRoom<'a, T>(Option<Room<'a, T>>);

impl<'a, T> Array<'a, *mut T, *mut c_int> for OptionalRoom<'a, T> {
    unsafe fn of(from: *mut T, length: *mut c_int) -> Result<Self, Error> {
        // SAFETY: argument rule 1: the call passes `length`, and the call outlives the result.
        let length: Option<InOut<'a, c_int>> = unsafe { Argument::of(length) }?;
        let room = length.map_or(0, |length| length.get().max(0));
        if from.is_null() {
            return Ok(Self(None));
        }
        // SAFETY: argument rule 1: `from` has as many elements as the integer at `length` says (MPI 5.0 §15.3.3).
        unsafe { Array::of(from, room) }.map(|room| Self(Some(room)))
    }
}

impl<T> OptionalRoom<'_, T> {
    /// Writes as many as there is room for.
    fn fill(&self, values: impl IntoIterator<Item = T>) {
        if let Some(room) = &self.0 {
            room.fill(values);
        }
    }
}

/// Where the value of a variable or of an event's element is, or goes to: what its handle or instance says it is.
pub struct ValueAt<'a>(NonNull<c_void>, PhantomData<&'a mut c_void>);

impl<'a, P: Address> Argument<'a, P> for ValueAt<'a> {
    #[inline(always)]
    unsafe fn of(from: P) -> Result<Self, Error> {
        NonNull::new(from.address()).map(|at| Self(at, PhantomData)).ok_or(NO_RESULT)
    }
}

impl ValueAt<'_> {
    /// Where it is.
    #[inline(always)]
    fn addr(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// # Safety
    /// What the call is about says that it holds a `T`.
    unsafe fn read<T>(&self) -> T {
        // SAFETY: argument rule 1: a value lies there, and the variable or event element is of type `T`.
        unsafe { self.0.cast::<T>().read() }
    }

    /// # Safety
    /// What the call is about says that it has room for a `T`.
    unsafe fn write<T>(&self, value: T) {
        // SAFETY: argument rule 1: there is room for a value, and the variable or event element is of type `T`.
        unsafe { self.0.cast::<T>().write(value) };
    }

    /// # Safety
    /// What the call is about says that it has room for more than `at` of `T`.
    unsafe fn write_at<T>(&self, at: usize, value: T) {
        // SAFETY: argument rule 1: there is room for so many values, and the variable is of type `T`.
        unsafe { self.0.cast::<T>().add(at).write(value) };
    }
}

/// Where the handle of the object is that a variable or an event is bound to. May be NULL.
pub struct ObjectAt<'a>(*const usize, PhantomData<&'a usize>);

impl<'a> Argument<'a, *mut c_void> for ObjectAt<'a> {
    unsafe fn of(from: *mut c_void) -> Result<Self, Error> {
        Ok(Self(from.cast_const().cast(), PhantomData))
    }
}

impl ObjectAt<'_> {
    /// The handle; MPI_T_ERR_INVALID if there is none.
    ///
    /// # Safety
    /// What the call is about is bound to an object.
    unsafe fn handle(&self) -> Outcome<usize> {
        if self.0.is_null() {
            return Err(abi::MPI_T_ERR_INVALID);
        }
        // The handle itself, where its address must go: those of the ABI are numbers of the first page,
        // where no process has memory.
        if self.0.addr() < crate::limits::PAGE {
            return Err(abi::MPI_T_ERR_INVALID_HANDLE);
        }
        // SAFETY: argument rule 1; MPI 5.0 §15.3.2: of what is bound, the address leads to the object's handle.
        Ok(unsafe { self.0.read() })
    }
}

/// The row of a table that an index names.
pub(crate) fn row<T>(table: &[T], index: c_int) -> Outcome<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(abi::MPI_T_ERR_INVALID_INDEX)
}

/// A name that the tool gives.
pub(crate) fn name(name: &[u8]) -> Outcome<&str> {
    core::str::from_utf8(name).map_err(|_| abi::MPI_T_ERR_INVALID_NAME)
}

/// Writes as many of `indices` as there is room for.
pub(crate) fn list(indices: impl Iterator<Item = usize>, to: &Room<'_, c_int>) -> Outcome {
    to.fill(indices.map(|index| index as c_int));
    Ok(())
}
