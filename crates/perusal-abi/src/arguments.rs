//! Arguments of C, checked once and as Rust's types: what the generated bindings make, and the implementations take.
//!
//! A binding makes a [`Call`] and asks it for one argument after the other; which Rust type comes of an argument, the
//! implementation says by its signature. So the check and the reason why the pointer may be used stand here, once for each type:
//!
//! - **Argument rule 1.** A pointer that the program passes is NULL, one of the ABI's special addresses, or leads to what the
//!   standard says of that argument, for as long as the call runs. The types below live no longer than the [`Call`].
//! - **Argument rule 2.** The program frees no handle while a call that it was passed to runs (MPI 5.0 §11.6.2).
//! - **Argument rule 3.** A buffer that is sent from holds its elements, and one that is received into has room for them, until
//!   the operation is complete.
//!
//! | C | Rust |
//! |---|---|
//! | `T *x`, a result | [`Out`]; `Option<Out>` where NULL means that the program does not want it |
//! | `T *x`, read and changed | [`InOut`] |
//! | `const T *x` | `&T` |
//! | `const T x[n]`, `T x[n]` | `&[T]`; `&mut [T]`; [`Room`], of which only the beginning is written; [`Integers`] of either width |
//! | `const T x[]`, as long as a communicator or another array says | [`Unbounded`] |
//! | `const char *x` | `&[u8]`, without the zero |
//! | `char *x; int *length` | [`TextOut`]; [`Letters`] where other arguments say how much room there is |
//! | `MPI_Status *x` | [`StatusOut`], [`Statuses`] |
//! | `void *buf; int count; MPI_Datatype type` | [`Buffer`]; `Varied` of arrays of counts |
//! | `int`, `MPI_Aint` or `MPI_Count` | `i64`; [`Count`], [`Length`], [`Displacement`] |
//! | a handle | as it is, or the object: `&Comm`, `Arc<Comm>`, `Datatype`, `Arc<Group>`, … |

use super::boundary::{self, ErrorSource};
use super::collective::{Types, Varied};
use super::types::MPI_Status;
use super::{comms, datatypes, mpi, mpi_t};
use crate::abi;
use crate::comm::{Comm, Group};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::p2p::MessageStatus;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::Arc;

/// One call of an MPI function. What is made of its arguments lives as long as it does.
#[derive(Debug)]
pub struct Call {
    function: &'static str,
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
    pub const fn new(function: &'static str) -> Self {
        Self { function }
    }

    /// The function's name.
    #[inline(always)]
    #[must_use]
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// An argument that cannot be wrong as it is.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn direct<'a, C, A: Argument<'a, C>>(&'a self, from: C) -> A {
        // SAFETY: this function asks for the same.
        unsafe { A::of(from) }.unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The beginning of a function that needs MPI to be open.
    #[inline(always)]
    pub fn enter(&self) -> Result<()> {
        boundary::enter(self.function)
    }

    /// The beginning of a function that may be called at any time.
    #[inline(always)]
    pub fn enter_anytime(&self) -> Result<()> {
        boundary::outside_callback()
    }

    /// What the function returns. An error is raised on the object that `source` names.
    #[inline(always)]
    pub fn end(&self, result: Result<()>, source: impl FnOnce() -> ErrorSource) -> c_int {
        match result {
            Ok(()) => abi::MPI_SUCCESS,
            Err(error) => boundary::raise(source(), self.function, error),
        }
    }

    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn arg<'a, C, A: Argument<'a, C>>(&'a self, from: C) -> Result<A> {
        // SAFETY: this function asks for the same.
        unsafe { A::of(from) }
    }

    /// The place of a result.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn out<T>(&self, from: *mut T) -> Result<Out<'_, T>> {
        // SAFETY: this function asks for the same.
        unsafe { Out::of(from) }
    }

    /// The place of a new object's handle, which is a null handle until there is one.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn new_handle(&self, from: *mut usize, null: usize) -> Result<Out<'_, usize>> {
        // SAFETY: this function asks for the same.
        let to = unsafe { Out::of(from) }?;
        to.set(null);
        Ok(to)
    }

    /// The place of a pointer, which C calls `void *` (MPI 5.0 §9.2).
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn pointer(&self, from: *mut c_void) -> Result<Out<'_, usize>> {
        // SAFETY: this function asks for the same.
        unsafe { Argument::of(from) }
    }

    /// # Safety
    /// As for [`Array::of`], while `self` is borrowed.
    #[inline(always)]
    pub unsafe fn array<'a, P, N, A: Array<'a, P, N>>(&'a self, from: P, length: N) -> Result<A> {
        // SAFETY: this function asks for the same.
        unsafe { A::of(from, length) }
    }

    /// The handle at an address; `null` if there is no address.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed.
    pub unsafe fn handle(&self, from: *mut usize, null: usize) -> usize {
        // SAFETY: this function asks for the same.
        unsafe { InOut::of(from) }.map_or(null, |at| at.get())
    }

    /// The place of a text of less than `room` bytes, and of its length.
    ///
    /// # Safety
    /// As for [`Argument::of`], while `self` is borrowed; `to` has room for `room` bytes.
    #[inline(always)]
    pub unsafe fn text<'a>(
        &'a self,
        to: *mut c_char,
        room: c_int,
        length: *mut c_int,
    ) -> Result<TextOut<'a>> {
        // SAFETY: argument rule 1.
        let length = unsafe { Out::of(length) }?;
        let to = given(NonNull::new(to), "a result of this function is NULL")?;
        Ok(TextOut { to, room: room as usize, length })
    }

    /// A buffer of `count` elements.
    ///
    /// # Safety
    /// Argument rules 2 and 3 hold of it.
    #[inline(always)]
    pub unsafe fn buffer<P: Address>(&self, addr: P, count: impl Integer, datatype: usize) -> Buffer<'_> {
        Buffer { addr: addr.address(), count: count.wide(), datatype, of: PhantomData }
    }
}

impl Call {
    /// A buffer with a piece for each peer.
    ///
    /// # Safety
    /// Argument rules 1 to 3 hold of it.
    pub(crate) unsafe fn pieces<'a, P: Address, N, D, T>(
        &'a self,
        addr: P,
        counts: *const N,
        displs: *const D,
        types: T,
    ) -> Result<Varied<'a>>
    where
        Unbounded<'a, Integers<'a>>: Argument<'a, *const N> + Argument<'a, *const D>,
        Types<'a>: Argument<'a, T>,
    {
        // SAFETY: this function asks for the same.
        unsafe {
            let (counts, displs) = (self.arg(counts)?, self.arg(displs)?);
            Ok(Varied { addr: addr.address(), counts, displs, types: self.arg(types)? })
        }
    }
}

/// `int`, `MPI_Aint`, `MPI_Count`.
pub trait Integer: Copy {
    /// As the widest.
    fn wide(self) -> i64;
    /// From the widest; `None` if it does not fit.
    fn narrow(value: i64) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn narrow(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}
integers!(c_int, isize, i64);

/// `void *` or `const void *`.
pub trait Address {
    /// The address alone.
    fn address(self) -> *mut c_void;
}
impl Address for *mut c_void {
    #[inline(always)]
    fn address(self) -> *mut c_void {
        self
    }
}
impl Address for *const c_void {
    #[inline(always)]
    fn address(self) -> *mut c_void {
        self.cast_mut()
    }
}

macro_rules! as_it_is {
    ($($ty:ty),*) => {$(
        impl Argument<'_, $ty> for $ty {
            #[inline(always)]
            unsafe fn of(from: $ty) -> Result<Self> {
                Ok(from)
            }
        }
    )*};
}
as_it_is!(c_int, isize, i64, usize, *mut c_void, *const c_void);

impl Argument<'_, c_int> for i64 {
    #[inline(always)]
    unsafe fn of(from: c_int) -> Result<Self> {
        Ok(from.into())
    }
}

impl Argument<'_, isize> for i64 {
    #[inline(always)]
    unsafe fn of(from: isize) -> Result<Self> {
        Ok(from as i64)
    }
}

/// Any number but 0 is true.
impl Argument<'_, c_int> for bool {
    #[inline(always)]
    unsafe fn of(from: c_int) -> Result<Self> {
        Ok(from != 0)
    }
}

/// A callback, or NULL.
impl<F> Argument<'_, Option<F>> for Option<F> {
    #[inline(always)]
    unsafe fn of(from: Option<F>) -> Result<Self> {
        Ok(from)
    }
}

/// A count of elements.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub usize);

impl<C: Integer> Argument<'_, C> for Count {
    #[inline(always)]
    unsafe fn of(from: C) -> Result<Self> {
        Self::checked(from.wide())
    }
}

impl Count {
    /// # Errors
    /// [`Error::Count`] if it is negative.
    #[inline(always)]
    pub fn checked(count: i64) -> Result<Self> {
        usize::try_from(count).map(Self).map_err(|_| Error::Count(count))
    }
}

/// A block length, or the size of a dimension.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub usize);

impl Length {
    /// # Errors
    /// [`Error::Arg`] if it is negative.
    pub fn checked(length: i64) -> Result<Self> {
        usize::try_from(length).map(Self).map_err(|_| Error::Arg("a block length or size is negative"))
    }
}

impl<C: Integer> Argument<'_, C> for Length {
    unsafe fn of(from: C) -> Result<Self> {
        Self::checked(from.wide())
    }
}

/// A displacement or an address.
#[derive(Debug, Clone, Copy)]
pub struct Displacement(pub isize);

impl<C: Integer> Argument<'_, C> for Displacement {
    unsafe fn of(from: C) -> Result<Self> {
        Ok(Self(from.wide() as isize))
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

/// Returns the argument, or says what is missing. `ok_or` would make the error, and drop it, in every call.
#[inline(always)]
fn given<T>(argument: Option<T>, missing: &'static str) -> Result<T> {
    match argument {
        Some(argument) => Ok(argument),
        None => Err(Error::Arg(missing)),
    }
}

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
        // SAFETY: this function asks for the same.
        unsafe { Out::of(from) }.map(Some)
    }
}

impl<T> Out<'_, T> {
    /// Writes the result.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: the field's invariant.
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

/// What can be written where C has a `T`.
pub trait Given<T> {
    /// As C has it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it does not fit.
    fn given(self) -> Result<T>;
}

impl<T> Given<T> for T {
    #[inline(always)]
    fn given(self) -> Result<T> {
        Ok(self)
    }
}
impl Given<c_int> for bool {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self.into())
    }
}
/// A rank, or a number of ranks: fewer than `INT_MAX`.
impl Given<c_int> for u32 {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self as c_int)
    }
}
/// A number of things that the library has.
impl Given<c_int> for usize {
    #[inline(always)]
    fn given(self) -> Result<c_int> {
        Ok(self as c_int)
    }
}

/// A number that must fit into the result's type; the text names it.
#[derive(Debug, Clone, Copy)]
pub struct Fitting(pub usize, pub &'static str);

impl<T: Integer> Given<T> for Fitting {
    fn given(self) -> Result<T> {
        i64::try_from(self.0).ok().and_then(T::narrow).ok_or(Error::TooLarge(self.1))
    }
}

/// A number that becomes MPI_UNDEFINED where there is none, or where it does not fit.
#[derive(Debug, Clone, Copy)]
pub struct OrUndefined(pub Option<i64>);

impl<T: Integer> Given<T> for OrUndefined {
    #[inline]
    fn given(self) -> Result<T> {
        let undefined = || T::narrow(abi::MPI_UNDEFINED.into()).ok_or(Error::TooLarge("MPI_UNDEFINED"));
        self.0.and_then(T::narrow).map_or_else(undefined, Ok)
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
        // SAFETY: this function asks for the same.
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
        // SAFETY: the field's invariant.
        unsafe { self.at.read() }
    }

    /// Changes it.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: the field's invariant.
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

impl<'a> Argument<'a, *const c_char> for Option<&'a CStr> {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: not NULL, so a string that ends with a zero (argument rule 1).
        Ok(if from.is_null() { None } else { Some(unsafe { CStr::from_ptr(from) }) })
    }
}

impl<'a> Argument<'a, *const c_char> for &'a [u8] {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: this function asks for the same.
        let text: Option<&CStr> = unsafe { Argument::of(from) }?;
        given(text.map(CStr::to_bytes), "a string argument is NULL")
    }
}

const NO_ARRAY: Error = Error::Arg("an array argument is NULL");

fn elements<T>(from: *const T, length: impl Integer) -> Result<usize> {
    let length =
        usize::try_from(length.wide()).map_err(|_| Error::Arg("the length of an array is negative"))?;
    if from.is_null() && length > 0 { Err(NO_ARRAY) } else { Ok(length) }
}

impl<'a, T, N: Integer> Array<'a, *const T, N> for &'a [T] {
    #[inline(always)]
    unsafe fn of(from: *const T, length: N) -> Result<Self> {
        let length = elements(from, length)?;
        // SAFETY: argument rule 1; not NULL, for there are elements.
        Ok(if length == 0 { &[] } else { unsafe { core::slice::from_raw_parts(from, length) } })
    }
}

impl<'a, T, N: Integer> Array<'a, *mut T, N> for &'a [T] {
    #[inline(always)]
    unsafe fn of(from: *mut T, length: N) -> Result<Self> {
        // SAFETY: this function asks for the same.
        unsafe { Array::of(from.cast_const(), length) }
    }
}

impl<'a, T, N: Integer> Array<'a, *mut T, N> for &'a mut [T] {
    #[inline(always)]
    unsafe fn of(from: *mut T, length: N) -> Result<Self> {
        let length = elements(from, length)?;
        // SAFETY: argument rule 1: an array that is read and changed is initialised, and nobody else uses it meanwhile; not NULL,
        // for there are elements.
        Ok(if length == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(from, length) } })
    }
}

/// An array that is filled from its beginning. NULL where nothing is written is fine.
#[derive(Debug)]
pub struct Room<'a, T> {
    /// Valid for writes of `length` elements for `'a` (argument rule 1); NULL only if that is 0.
    to: *mut T,
    length: usize,
    call: PhantomData<&'a mut T>,
}

impl<'a, T, N: Integer> Array<'a, *mut T, N> for Room<'a, T> {
    #[inline(always)]
    unsafe fn of(from: *mut T, length: N) -> Result<Self> {
        let length = elements(from, length)?;
        Ok(Self { to: from, length, call: PhantomData })
    }
}

impl<T> Room<'_, T> {
    /// Elements that there is room for.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Writes element `at`.
    ///
    /// # Panics
    /// If there is no room for it.
    #[inline]
    pub fn set(&self, at: usize, value: T) {
        assert!(at < self.length, "an array of the program's is too short");
        // SAFETY: the field's invariant, and `at` is below the length.
        unsafe { self.to.add(at).write(value) };
    }

    /// Writes as many as there is room for.
    pub fn fill(&self, values: impl IntoIterator<Item = T>) {
        values.into_iter().take(self.length).enumerate().for_each(|(at, value)| self.set(at, value));
    }
}

/// An array of `int`, `MPI_Aint` or `MPI_Count`.
#[derive(Debug, Clone, Copy)]
pub enum Integers<'a> {
    /// `int`
    Int(&'a [c_int]),
    /// `MPI_Aint`
    Address(&'a [isize]),
    /// `MPI_Count`
    Count(&'a [i64]),
}

impl<'a> Integers<'a> {
    /// The numbers, as the widest.
    pub fn iter(self) -> impl Iterator<Item = i64> + 'a {
        let length = match self {
            Self::Int(list) => list.len(),
            Self::Address(list) => list.len(),
            Self::Count(list) => list.len(),
        };
        (0..length).map(move |at| match self {
            Self::Int(list) => list[at].into(),
            Self::Address(list) => list[at] as i64,
            Self::Count(list) => list[at],
        })
    }

    /// Block lengths or sizes.
    ///
    /// # Errors
    /// [`Error::Arg`] if one is negative.
    pub fn lengths(self) -> Result<Vec<usize>> {
        self.iter().map(|length| Length::checked(length).map(|length| length.0)).collect()
    }

    /// Counts of elements.
    ///
    /// # Errors
    /// [`Error::Count`] if one is negative.
    pub fn counts(self) -> Result<Vec<usize>> {
        self.iter().map(|count| Count::checked(count).map(|count| count.0)).collect()
    }

    /// Displacements.
    #[must_use]
    pub fn displacements(self) -> Vec<isize> {
        self.iter().map(|displacement| displacement as isize).collect()
    }
}

macro_rules! integer_arrays {
    ($($ty:ty => $variant:ident),*) => {$(
        impl<'a, N: Integer> Array<'a, *const $ty, N> for Integers<'a> {
            unsafe fn of(from: *const $ty, length: N) -> Result<Self> {
                // SAFETY: this function asks for the same.
                unsafe { Array::of(from, length) }.map(Self::$variant)
            }
        }
    )*};
}
integer_arrays!(c_int => Int, isize => Address, i64 => Count);

/// An array whose length does not come as an argument: it has an element for each member, peer, neighbour or dimension of a
/// communicator, or as many as another array says.
#[derive(Debug, Clone, Copy)]
pub struct Unbounded<'a, A> {
    from: *const (),
    elements: unsafe fn(*const (), i64) -> Result<A>,
    call: PhantomData<&'a ()>,
}

impl<'a, T, A: Array<'a, *const T, i64>> Argument<'a, *const T> for Unbounded<'a, A> {
    unsafe fn of(from: *const T) -> Result<Self> {
        // SAFETY: `Unbounded::elements` asks for what this function does, and for the length.
        let elements = |from: *const (), length| unsafe { A::of(from.cast::<T>(), length) };
        Ok(Self { from: from.cast(), elements, call: PhantomData })
    }
}

impl<A> Unbounded<'_, A> {
    /// Its elements.
    ///
    /// # Safety
    /// The standard gives the array this length in the call that it is an argument of.
    ///
    /// # Errors
    /// [`Error::Arg`] if it is NULL.
    pub unsafe fn elements(self, length: usize) -> Result<A> {
        // SAFETY: argument rule 1, which the maker of `self` vouched for; the caller vouches for the length.
        unsafe { (self.elements)(self.from, length as i64) }
    }
}

/// The place of a text and of its length.
#[derive(Debug)]
pub struct TextOut<'a> {
    /// Valid for writes of `room` bytes (argument rule 1).
    to: NonNull<c_char>,
    room: usize,
    length: Out<'a, c_int>,
}

impl TextOut<'_> {
    /// Writes as much of `text` as there is room for, and the length of that.
    ///
    /// # Errors
    /// None.
    pub fn put(self, text: impl AsRef<[u8]>) -> Result<()> {
        // SAFETY: the field's invariant.
        let length = unsafe { super::strings::write(self.to.as_ptr(), self.room, text.as_ref()) };
        self.length.put(length)
    }
}

/// A place for text. How much room there is, other arguments or the standard say.
#[derive(Debug)]
pub struct Letters<'a> {
    to: *mut c_char,
    call: PhantomData<&'a mut c_char>,
}

impl<'a> Argument<'a, *mut c_char> for Letters<'a> {
    unsafe fn of(from: *mut c_char) -> Result<Self> {
        Ok(Self { to: from, call: PhantomData })
    }
}

impl Letters<'_> {
    /// Writes as much of `text` as there is room for, and a zero.
    ///
    /// # Safety
    /// In the call that it is an argument of, the standard asks for room for `room` bytes.
    ///
    /// # Errors
    /// [`Error::Arg`] if it is NULL.
    pub unsafe fn write(&self, room: usize, text: &[u8]) -> Result<()> {
        if self.to.is_null() {
            return Err(Error::Arg("the place of a string is NULL"));
        }
        // SAFETY: argument rule 1, which the maker of `self` vouched for; the caller vouches for the room.
        unsafe { super::strings::write(self.to, room, text) };
        Ok(())
    }
}

/// The arguments of `main`; none if `argc` is not positive.
#[derive(Debug)]
pub struct Arguments<'a>(pub Vec<&'a [u8]>);

impl<'a> Array<'a, *mut *mut c_char, c_int> for Arguments<'a> {
    unsafe fn of(from: *mut *mut c_char, length: c_int) -> Result<Self> {
        if length <= 0 || from.is_null() {
            return Ok(Self(Vec::new()));
        }
        // SAFETY: argument rule 1: `length` strings.
        let words: &[*mut c_char] = unsafe { Array::of(from, length) }?;
        // SAFETY: each is a string (argument rule 1).
        let words = words.iter().map(|word| unsafe { Argument::of(word.cast_const()) });
        words.collect::<Result<_>>().map(Self)
    }
}

/// Memory of so many bytes; the size is `None` if it was negative.
#[derive(Debug, Clone, Copy)]
pub struct Storage<'a> {
    /// Where it begins.
    pub addr: *mut u8,
    /// How long it is (argument rule 3).
    pub size: Option<usize>,
    of: PhantomData<&'a ()>,
}

impl<'a, P: Address, N: Integer> Array<'a, P, N> for Storage<'a> {
    unsafe fn of(from: P, length: N) -> Result<Self> {
        let size = usize::try_from(length.wide()).ok();
        Ok(Self { addr: from.address().cast(), size, of: PhantomData })
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
                // SAFETY: this function asks for the same.
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

/// A status that one operation fills, or MPI_STATUS_IGNORE.
#[derive(Debug, Clone, Copy)]
pub struct StatusOut<'a> {
    /// NULL, or valid for reads and writes for `'a` (argument rule 1).
    to: *mut MPI_Status,
    call: PhantomData<&'a ()>,
}

impl<'a> Argument<'a, *mut MPI_Status> for StatusOut<'a> {
    #[inline(always)]
    unsafe fn of(from: *mut MPI_Status) -> Result<Self> {
        Ok(Self { to: from, call: PhantomData })
    }
}

impl StatusOut<'_> {
    /// MPI_STATUS_IGNORE.
    pub const IGNORE: Self = Self { to: core::ptr::null_mut(), call: PhantomData };

    /// Fills it, but for MPI_ERROR (MPI 5.0 §3.2.5).
    #[inline(always)]
    pub fn set(self, status: &MessageStatus) {
        // SAFETY: the field's invariant.
        if let Some(to) = unsafe { self.to.as_mut() } {
            to.fill(status.source, status.tag, status.bytes, status.cancelled);
        }
    }
}

/// Statuses of an array of requests, or MPI_STATUSES_IGNORE.
#[derive(Debug, Clone, Copy)]
pub struct Statuses<'a> {
    /// Valid for writes of `length` elements for `'a` (argument rule 1).
    to: *mut MPI_Status,
    /// 0 for MPI_STATUSES_IGNORE.
    length: usize,
    call: PhantomData<&'a ()>,
}

impl<'a, N: Integer> Array<'a, *mut MPI_Status, N> for Statuses<'a> {
    #[inline(always)]
    unsafe fn of(from: *mut MPI_Status, length: N) -> Result<Self> {
        let length = usize::try_from(length.wide()).unwrap_or(0);
        Ok(Self { to: from, length: if from.is_null() { 0 } else { length }, call: PhantomData })
    }
}

impl Statuses<'_> {
    /// Fills status `at`, MPI_ERROR too.
    #[inline(always)]
    pub fn set(self, at: usize, status: &MessageStatus) {
        if at < self.length {
            // SAFETY: the field's invariant, and `at` is below the length.
            let to = unsafe { &mut *self.to.add(at) };
            to.fill(status.source, status.tag, status.bytes, status.cancelled);
            to.error = status.error;
        }
    }

    /// Those behind the first `n`.
    #[must_use]
    pub fn behind(self, n: usize) -> Self {
        let n = n.min(self.length);
        Self { to: self.to.wrapping_add(n), length: self.length - n, call: PhantomData }
    }
}

/// A buffer of a message or of a collective operation (argument rule 3). What is wrong with it, its use says.
#[derive(Debug, Clone, Copy)]
pub struct Buffer<'a> {
    /// Where it is, or one of the ABI's special addresses.
    pub addr: *mut c_void,
    /// Elements, perhaps negative.
    pub count: i64,
    /// Their type, whose handle nobody frees during `'a` (argument rule 2).
    pub datatype: usize,
    of: PhantomData<&'a ()>,
}

impl<'a> Buffer<'a> {
    /// The buffer in two parts, each of which goes through registers where a structure of three words would go through memory:
    /// for a call that must not cost those who do not make it.
    #[inline(always)]
    #[must_use]
    pub fn into_parts(self) -> (BufferStart<'a>, usize) {
        (BufferStart { addr: self.addr, count: self.count, of: PhantomData }, self.datatype)
    }

    /// The buffer again.
    ///
    /// # Safety
    /// Both are parts of one buffer.
    #[inline(always)]
    #[must_use]
    pub unsafe fn from_parts(start: BufferStart<'a>, datatype: usize) -> Self {
        Self { addr: start.addr, count: start.count, datatype, of: PhantomData }
    }

    /// The same buffer with as many elements as other arguments say.
    #[must_use]
    pub fn with_count(self, count: usize) -> Self {
        Self { count: count as i64, ..self }
    }

    /// The bytes of a slice.
    #[must_use]
    pub fn of_bytes(bytes: &'a mut [u8]) -> Self {
        let (addr, count) = (bytes.as_mut_ptr().cast(), bytes.len() as i64);
        Self { addr, count, datatype: abi::MPI_BYTE, of: PhantomData }
    }
}

/// Address and count of a [`Buffer`].
#[derive(Debug, Clone, Copy)]
pub struct BufferStart<'a> {
    addr: *mut c_void,
    count: i64,
    of: PhantomData<&'a ()>,
}

/// A communicator's handle, which nobody frees during `'a` (argument rule 2).
#[derive(Debug, Clone, Copy)]
pub struct CommHandle<'a> {
    handle: usize,
    of: PhantomData<&'a Comm>,
}

impl<'a> Argument<'a, usize> for CommHandle<'a> {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        Ok(Self { handle: from, of: PhantomData })
    }
}

impl<'a> CommHandle<'a> {
    /// As the program passed it.
    #[must_use]
    pub fn handle(self) -> usize {
        self.handle
    }

    /// The communicator, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn peek(self) -> Option<&'a Comm> {
        // SAFETY: argument rule 2.
        unsafe { comms::peek(self.handle) }
    }

    /// The communicator.
    ///
    /// # Errors
    /// [`Error::Comm`] if there is none.
    #[inline]
    pub fn find(self) -> Result<&'a Comm> {
        // SAFETY: argument rule 2.
        unsafe { comms::find(self.handle) }
    }
}

impl<'a> Argument<'a, usize> for &'a Comm {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        // SAFETY: argument rule 2.
        unsafe { comms::find(from) }
    }
}

impl Argument<'_, usize> for Arc<Comm> {
    unsafe fn of(from: usize) -> Result<Self> {
        comms::get(from)
    }
}

impl Argument<'_, usize> for Datatype {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::any(from)
    }
}

/// A datatype that has been committed.
#[derive(Debug)]
pub struct Committed(pub Datatype);

impl Argument<'_, usize> for Committed {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::datatype(from).map(Self)
    }
}

impl Argument<'_, usize> for Op {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::op(from)
    }
}

impl Argument<'_, usize> for Arc<Group> {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::group::find(from)
    }
}

impl Argument<'_, usize> for Arc<mpi::session::Session> {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::session::find(from)
    }
}

/// The hints of an info argument; none for MPI_INFO_NULL.
impl Argument<'_, usize> for Info {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::info::hints(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null, null_mut};

    #[test]
    fn null_results_are_errors() {
        let call = Call::new("MPI_Test");
        let mut length = 0;
        // SAFETY: NULL is allowed; `length` may be written.
        unsafe {
            assert!(matches!(call.text(null_mut(), 5, &raw mut length), Err(Error::Arg(_))));
            assert!(matches!(call.out::<c_int>(null_mut()), Err(Error::Arg(_))));
            assert!(call.arg::<_, Option<Out<'_, c_int>>>(null_mut::<c_int>()).unwrap().is_none());
        }
    }

    #[test]
    fn an_array_is_null_only_without_elements_and_never_of_negative_length() {
        let call = Call::new("MPI_Test");
        let list = [1, 2, 3];
        // SAFETY: NULL is allowed; `list` has three elements.
        unsafe {
            let none: &[c_int] = call.array(null::<c_int>(), 0).unwrap();
            assert!(none.is_empty());
            assert!(call.array::<_, _, &[c_int]>(null::<c_int>(), 1).is_err());
            assert!(call.array::<_, _, &[c_int]>(list.as_ptr(), -1).is_err());
            let wide: Integers<'_> = call.array(list.as_ptr(), 3_i64).unwrap();
            assert_eq!(wide.iter().collect::<Vec<_>>(), [1, 2, 3]);
        }
    }

    #[test]
    fn what_does_not_fit_is_undefined_or_an_error() {
        let large = i64::from(c_int::MAX) + 1;
        assert_eq!(Given::<c_int>::given(OrUndefined(Some(large))), Ok(abi::MPI_UNDEFINED));
        assert_eq!(Given::<i64>::given(OrUndefined(Some(large))), Ok(large));
        assert_eq!(Given::<c_int>::given(OrUndefined(None)), Ok(abi::MPI_UNDEFINED));
        assert!(matches!(Given::<c_int>::given(Fitting(large as usize, "it")), Err(Error::TooLarge("it"))));
        assert!(matches!(Count::checked(-1), Err(Error::Count(-1))));
    }

    #[test]
    fn of_ignored_statuses_none_is_written_and_of_others_only_those_behind() {
        let call = Call::new("MPI_Test");
        let mut two = [MPI_Status::EMPTY; 2];
        // SAFETY: NULL is allowed; `two` has two elements.
        unsafe {
            let ignored: Statuses<'_> = call.array(null_mut::<MPI_Status>(), 2).unwrap();
            ignored.set(0, &MessageStatus::PROC_NULL);
            let all: Statuses<'_> = call.array(two.as_mut_ptr(), 2).unwrap();
            all.behind(1).set(0, &MessageStatus::PROC_NULL);
            all.behind(2).set(0, &MessageStatus::PROC_NULL);
        }
        assert_eq!((two[0].source, two[1].source), (abi::MPI_ANY_SOURCE, abi::MPI_PROC_NULL));
    }
}
