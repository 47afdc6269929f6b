//! Arguments of C, checked once and as Rust's types: what the generated bindings make, and the implementations take.
//!
//! A binding makes a [`Call`] and asks it for one argument after the other; which Rust type comes of an argument, the
//! implementation says by its signature. So the check and the reason why the pointer may be used stand here,
//! once for each type:
//!
//! - **Argument rule 1.** A pointer that the program passes is NULL, one of the ABI's special addresses, or leads to
//!   what the standard says of that argument, for as long as the call runs.
//!   The types below live no longer than the [`Call`].
//! - **Argument rule 2.** The program frees no handle while a call that it was passed to runs (MPI 5.0 §11.6.2).
//! - **Argument rule 3.** A buffer that is sent from holds its elements, and one that is received into has room for
//!   them, until the operation is complete.
//!
//! | C | Rust |
//! |---|---|
//! | `T *x`, a result | [`Out`]; `Option<Out>` where NULL means that the program does not want it |
//! | `T *x`, read and changed | [`InOut`] |
//! | `const T *x` | `&T` |
//! | `const T x[n]`, `T x[n]` | `&[T]`; `&mut [T]`; [`Room`], of which only the beginning is written; [`Integers`] of either width |
//! | `const T x[]`, as long as a communicator or another array says | [`Unbounded`] |
//! | an argument that only the root of a collective call gives | [`RootOnly`] |
//! | `char *x[]`, up to a NULL | [`Words`] |
//! | `const char *x` | `&[u8]`, without the zero |
//! | `char *x; int *length` | [`TextOut`]; [`Letters`] where other arguments say how much room there is |
//! | `MPI_Status *x` | [`StatusOut`], [`Statuses`] |
//! | `void *buf; int count; MPI_Datatype type` | [`Buffer`]; `Varied` of arrays of counts |
//! | `int rank; MPI_Aint disp; int count; MPI_Datatype type; MPI_Win win` of a one-sided operation | [`Target`] |
//! | `int`, `MPI_Aint` or `MPI_Count` | `i64`; [`Count`], [`Length`], [`Displacement`] |
//! | a handle | as it is, or the object: `&Comm`, `Arc<Comm>`, `Datatype`, `Arc<Group>`, … |

mod buffers;
mod handles;
mod in_slices;
mod integers;
mod out;
mod results;
mod root_only;
mod statuses;
mod strings;
mod target;

pub use buffers::{Address, Buffer, BufferStart, ByteBuffer};
pub use handles::{CommHandle, Committed, EvenIncomplete};
pub use in_slices::{Integers, Room, Unbounded};
pub use integers::{Count, Displacement, Integer, Length};
pub use out::{InOut, IntegerAt, NO_RESULT, Out, offer};
pub use results::{Fitting, Given, OrUndefined};
pub use root_only::{RootOnly, Words};
pub use statuses::{StatusOut, Statuses};
pub use strings::{Arguments, Letters, TextOut};
pub use target::Target;

use super::boundary::{self, ErrorSource};
use super::calls::{self, Function};
use crate::abi;
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use core::ffi::c_int;

/// One call of an MPI function. What is made of its arguments lives as long as it does.
#[derive(Debug)]
pub struct Call {
    function: &'static Function,
}

/// What a C argument becomes.
pub trait Argument<'a, C>: Sized {
    /// # Safety
    /// `from` is an argument of a call that runs for `'a`, and argument rules 1 to 3 hold of it.
    ///
    /// # Errors
    /// What is wrong with it.
    unsafe fn of(from: C) -> Result<Self>;
}

/// What an array argument becomes, with its length.
pub trait Array<'a, P, N>: Sized {
    /// # Safety
    /// As for [`Argument::of`]; unless `from` is NULL or special, it has as many elements as `length` says.
    ///
    /// # Errors
    /// [`Error::Arg`] if the length is negative, or positive and there is no array.
    unsafe fn of(from: P, length: N) -> Result<Self>;
}

impl Call {
    /// A call of this function.
    #[inline(always)]
    #[must_use]
    pub const fn new(function: &'static Function) -> Self {
        Self { function }
    }

    /// The function.
    #[inline(always)]
    #[must_use]
    pub fn function(&self) -> &'static Function {
        self.function
    }

    /// An argument that cannot be wrong as it is.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn direct<'a, C, A: Argument<'a, C>>(&'a self, from: C) -> A {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { A::of(from) }.unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn arg<'a, C, A: Argument<'a, C>>(&'a self, from: C) -> Result<A> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { A::of(from) }
    }

    /// # Safety
    /// As for [`Array::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn array<'a, P, N, A: Array<'a, P, N>>(&'a self, from: P, length: N) -> Result<A> {
        // SAFETY: argument rule 1: the call passes this array with this length, and the call outlives the result.
        unsafe { A::of(from, length) }
    }

    /// The beginning of a function that needs MPI to be open.
    #[inline(always)]
    pub fn enter(&self) -> Result<()> {
        if fast_path_is_open() { Ok(()) } else { enter_observed(self.function) }
    }

    /// The end of a function that [`Self::enter`] began, before what it returns.
    #[inline(always)]
    pub fn leave(&self) {
        if !fast_path_is_open() {
            calls::end(self.function);
        }
    }

    /// The beginning of a function that may be called at any time.
    #[inline(always)]
    pub fn enter_anytime(&self) -> Result<()> {
        boundary::outside_callback()
    }

    /// The beginning of an enquiry, which an event callback may call too.
    #[inline(always)]
    pub fn enter_enquiry(&self) -> Result<()> {
        boundary::enter_enquiry(self.function.name)
    }

    /// The beginning of an enquiry that may be called at any time.
    #[inline(always)]
    pub fn enter_anytime_enquiry(&self) -> Result<()> {
        Ok(())
    }

    /// What the function returns. An error is raised on the object that `source` names.
    #[inline(always)]
    pub fn end(&self, result: Result<()>, source: impl FnOnce() -> ErrorSource) -> c_int {
        match result {
            Ok(()) => abi::MPI_SUCCESS,
            Err(error) => boundary::raise(source(), self.function.name, error),
        }
    }
}

// By a function of its own: `&self` would put the call into memory wherever it is made.
#[cold]
#[inline(never)]
fn enter_observed(function: &'static Function) -> Result<()> {
    boundary::enter(function.name)?;
    calls::begin(function);
    Ok(())
}

/// Returns the argument, or says what is missing. `ok_or` would make the error, and drop it, in every call.
#[inline(always)]
fn given<T>(argument: Option<T>, missing: &'static str) -> Result<T> {
    match argument {
        Some(argument) => Ok(argument),
        None => Err(Error::Arg(missing)),
    }
}
