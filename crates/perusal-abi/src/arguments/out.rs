//! Out-arguments: places of results, and what is passed by address to be read and changed.

use super::{Address, Argument, Call, Fitting, Given, given};
use crate::error::{Error, Result};
use crate::mpi_t;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;

impl Call {
    /// The place of a result.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn out<T>(&self, from: *mut T) -> Result<Out<'_, T>> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { Out::of(from) }
    }

    /// The place of a new object's handle, which is a null handle until there is one.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn new_handle(&self, from: *mut usize, null: usize) -> Result<Out<'_, usize>> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        let to = unsafe { Out::of(from) }?;
        to.set(null);
        Ok(to)
    }

    /// The place of a pointer, which C calls `void *` (MPI 5.0 §9.2).
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn pointer(&self, from: *mut c_void) -> Result<Out<'_, usize>> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { Argument::of(from) }
    }

    /// The handle at an address; `null` if there is no address.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn handle(&self, from: *mut usize, null: usize) -> usize {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { InOut::of(from) }.map_or(null, |at| at.get())
    }
}

/// The place of a result.
#[derive(Debug)]
pub struct Out<'a, T> {
    /// Valid for writes for `'a` (argument rule 1).
    to: NonNull<T>,
    call: PhantomData<&'a mut T>,
}

const NO_PLACE: &str = "an output argument is NULL";
/// A result has no place.
pub const NO_RESULT: Error = Error::Arg(NO_PLACE);

impl<'a, T> Argument<'a, *mut T> for Out<'a, T> {
    #[inline(always)]
    unsafe fn of(from: *mut T) -> Result<Self> {
        given(NonNull::new(from).map(|to| Self { to, call: PhantomData }), NO_PLACE)
    }
}

/// `void *` stands for the address of a pointer in some functions (MPI 5.0 §7.7.2, §9.2, §3.6).
impl<'a> Argument<'a, *mut c_void> for Out<'a, usize> {
    #[inline(always)]
    unsafe fn of(from: *mut c_void) -> Result<Self> {
        // SAFETY: argument rule 1: what lies there is a pointer, which is as wide as a `usize`.
        unsafe { Argument::of(from.cast::<usize>()) }
    }
}

impl<'a, T, C> Argument<'a, *mut C> for Option<Out<'a, T>>
where
    Out<'a, T>: Argument<'a, *mut C>,
{
    #[inline(always)]
    unsafe fn of(from: *mut C) -> Result<Self> {
        if from.is_null() {
            return Ok(None);
        }
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        unsafe { Out::of(from) }.map(Some)
    }
}

impl<T> Out<'_, T> {
    /// Writes the result.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: `to` is valid for writes while the call runs (argument rule 1).
        unsafe { self.to.write(value) };
    }

    /// Writes the result as C has it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it does not fit.
    #[inline(always)]
    pub fn put<V: Given<T>>(self, value: V) -> Result<()> {
        self.set(value.given()?);
        Ok(())
    }
}

/// Writes a result that the program may not want.
pub fn offer<T>(to: Option<Out<'_, T>>, value: T) {
    if let Some(to) = to {
        to.set(value);
    }
}

/// What is passed by address to be read and changed.
#[derive(Debug)]
pub struct InOut<'a, T> {
    /// Valid for reads and writes for `'a` (argument rule 1).
    at: NonNull<T>,
    call: PhantomData<&'a mut T>,
}

impl<'a, T> Argument<'a, *mut T> for InOut<'a, T> {
    #[inline(always)]
    unsafe fn of(from: *mut T) -> Result<Self> {
        let at = given(NonNull::new(from), "an argument that is passed by address is NULL")?;
        Ok(Self { at, call: PhantomData })
    }
}

/// A value of a variable, or NULL.
impl<'a, P: Address + Copy> Argument<'a, P> for Option<mpi_t::ValueAt<'a>> {
    #[inline(always)]
    unsafe fn of(from: P) -> Result<Self> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        Ok(unsafe { Argument::of(from) }.ok())
    }
}

impl<'a, T> Argument<'a, *mut T> for Option<InOut<'a, T>> {
    #[inline(always)]
    unsafe fn of(from: *mut T) -> Result<Self> {
        Ok(NonNull::new(from).map(|at| InOut { at, call: PhantomData }))
    }
}

impl<T: Copy> InOut<'_, T> {
    /// What is there.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> T {
        // SAFETY: `at` is valid for reads while the call runs (argument rule 1).
        unsafe { self.at.read() }
    }

    /// Changes it.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: `at` is valid for writes while the call runs (argument rule 1).
        unsafe { self.at.write(value) };
    }
}

impl<'a, T> Argument<'a, *const T> for &'a T {
    #[inline(always)]
    unsafe fn of(from: *const T) -> Result<Self> {
        // SAFETY: argument rule 1; nobody changes an argument that is only read while the call runs.
        given(unsafe { from.as_ref() }, "an argument that is passed by address is NULL")
    }
}

/// A number of any width that is passed by address.
#[derive(Debug)]
pub enum IntegerAt<'a> {
    /// `int`
    Int(InOut<'a, c_int>),
    /// `MPI_Aint`
    Address(InOut<'a, isize>),
    /// `MPI_Count`
    Count(InOut<'a, i64>),
}

macro_rules! integers_at {
    ($($ty:ty => $variant:ident),*) => {$(
        impl<'a> Argument<'a, *mut $ty> for IntegerAt<'a> {
            unsafe fn of(from: *mut $ty) -> Result<Self> {
                // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
                unsafe { InOut::of(from) }.map(Self::$variant)
            }
        }
    )*};
}
integers_at!(c_int => Int, isize => Address, i64 => Count);

impl IntegerAt<'_> {
    /// As the widest.
    #[must_use]
    pub fn get(&self) -> i64 {
        match self {
            Self::Int(at) => at.get().into(),
            Self::Address(at) => at.get() as i64,
            Self::Count(at) => at.get(),
        }
    }

    /// Writes a number that must fit; `what` names it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it does not.
    pub fn put(&self, value: usize, what: &'static str) -> Result<()> {
        let value = Fitting(value, what);
        match self {
            Self::Int(at) => at.set(value.given()?),
            Self::Address(at) => at.set(value.given()?),
            Self::Count(at) => at.set(value.given()?),
        }
        Ok(())
    }
}
