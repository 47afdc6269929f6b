//! In-slices: arrays with the length that another argument gives, and arrays that the library fills.

use super::{Argument, Array, Count, Integer, Length};
use crate::error::{Error, Result};
use core::ffi::c_int;
use core::marker::PhantomData;

const NO_ARRAY: Error = Error::Arg("an array argument is NULL");

fn elements<T>(from: *const T, length: impl Integer) -> Result<usize> {
    let length =
        usize::try_from(length.wide()).map_err(|_| Error::Arg("the length of an array is negative"))?;
    if from.is_null() && length > 0 {
        return Err(NO_ARRAY);
    }
    let bytes = length.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    if bytes.is_some() { Ok(length) } else { Err(Error::CountTooLarge(length)) }
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
        // SAFETY: argument rule 1: the call passes this array with this length, and the call outlives the result.
        unsafe { Array::of(from.cast_const(), length) }
    }
}

impl<'a, T, N: Integer> Array<'a, *mut T, N> for &'a mut [T] {
    #[inline(always)]
    unsafe fn of(from: *mut T, length: N) -> Result<Self> {
        let length = elements(from, length)?;
        // SAFETY: argument rule 1: an array that is read and changed is initialised, and nobody else uses it meanwhile;
        // not NULL, for there are elements.
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
        // SAFETY: `to` has `length` elements (argument rule 1), and `at` is below that.
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
    fn len(self) -> usize {
        match self {
            Self::Int(list) => list.len(),
            Self::Address(list) => list.len(),
            Self::Count(list) => list.len(),
        }
    }

    /// The numbers, as the widest.
    pub fn iter(self) -> impl Iterator<Item = i64> + 'a {
        (0..self.len()).map(move |at| match self {
            Self::Int(list) => list[at].into(),
            Self::Address(list) => list[at] as i64,
            Self::Count(list) => list[at],
        })
    }

    /// Block lengths or sizes.
    ///
    /// # Errors
    /// [`Error::Arg`] if one is negative; [`Error::NoMem`].
    pub fn lengths(self) -> Result<Vec<usize>> {
        self.collected(|length| Length::checked(length).map(|length| length.0))
    }

    /// Counts of elements.
    ///
    /// # Errors
    /// [`Error::Count`] if one is negative; [`Error::NoMem`].
    pub fn counts(self) -> Result<Vec<usize>> {
        self.collected(|count| Count::checked(count).map(|count| count.0))
    }

    /// Displacements.
    ///
    /// # Errors
    /// [`Error::NoMem`].
    pub fn displacements(self) -> Result<Vec<isize>> {
        self.collected(|displacement| Ok(displacement as isize))
    }

    /// All of them, or the first that is wrong. The array is as long as the program says,
    /// which may be longer than there is memory.
    fn collected<T>(self, checked: impl Fn(i64) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::new();
        list.try_reserve_exact(self.len())?;
        for number in self.iter() {
            list.push(checked(number)?);
        }
        Ok(list)
    }
}

macro_rules! integer_arrays {
    ($($ty:ty => $variant:ident),*) => {$(
        impl<'a, N: Integer> Array<'a, *const $ty, N> for Integers<'a> {
            unsafe fn of(from: *const $ty, length: N) -> Result<Self> {
                // SAFETY: argument rule 1: the call passes this array with this length,
                // and the call outlives the result.
                unsafe { Array::of(from, length) }.map(Self::$variant)
            }
        }
    )*};
}
integer_arrays!(c_int => Int, isize => Address, i64 => Count);

/// An array whose length does not come as an argument: it has an element for each member, peer, neighbour or dimension
/// of a communicator, or as many as another array says.
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
        // SAFETY: argument rule 1: the call that passed the pointer still runs,
        // and the standard gives the array this length.
        unsafe { (self.elements)(self.from, length as i64) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Call;
    use super::*;
    use core::ptr::null;

    #[test]
    fn an_array_is_null_only_without_elements_and_never_of_negative_length() {
        let call = Call::new(&crate::calls::Function {
            name: "MPI_Test",
            number: crate::calls::Function::WITHOUT_EVENTS,
        });
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
}
