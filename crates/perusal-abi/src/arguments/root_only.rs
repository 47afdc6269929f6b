//! Arguments that only the root of a collective call gives: elsewhere the pointer may be anything.

use super::{Argument, Array};
use crate::error::Result;
use core::ffi::c_char;
use core::marker::PhantomData;

/// A pointer that leads somewhere at the root alone.
#[derive(Debug, Clone, Copy)]
pub struct RootOnly<'a, P> {
    from: P,
    call: PhantomData<&'a ()>,
}

impl<T> Argument<'_, *const T> for RootOnly<'_, *const T> {
    unsafe fn of(from: *const T) -> Result<Self> {
        Ok(Self { from, call: PhantomData })
    }
}

impl<T> Argument<'_, *mut T> for RootOnly<'_, *mut T> {
    unsafe fn of(from: *mut T) -> Result<Self> {
        Ok(Self { from, call: PhantomData })
    }
}

impl<'a, P: Copy> RootOnly<'a, P> {
    /// What the argument is.
    ///
    /// # Safety
    /// The standard gives it a meaning at the caller in the call that it is an argument of.
    ///
    /// # Errors
    /// What is wrong with it.
    pub unsafe fn get<A: Argument<'a, P>>(self) -> Result<A> {
        // SAFETY: argument rule 1, which the standard makes hold at the caller (`Safety`); the call runs for `'a`.
        unsafe { A::of(self.from) }
    }

    /// What the array of `length` elements is.
    ///
    /// # Safety
    /// The standard gives it this length at the caller in the call that it is an argument of.
    ///
    /// # Errors
    /// What is wrong with it.
    pub unsafe fn elements<A: Array<'a, P, i64>>(self, length: usize) -> Result<A> {
        // SAFETY: argument rule 1, which the standard makes hold at the caller (`Safety`); the call runs for `'a`.
        unsafe { A::of(self.from, length as i64) }
    }
}

/// Words up to a NULL; none where the list itself is NULL (MPI_ARGV_NULL).
#[derive(Debug)]
pub struct Words<'a>(pub Vec<&'a [u8]>);

impl<'a> Argument<'a, *mut *mut c_char> for Words<'a> {
    unsafe fn of(from: *mut *mut c_char) -> Result<Self> {
        let mut words = Vec::new();
        if from.is_null() {
            return Ok(Self(words));
        }
        loop {
            // SAFETY: argument rule 1: a list of strings that ends with NULL, and no NULL has been read yet.
            let word = unsafe { from.add(words.len()).read() };
            if word.is_null() {
                return Ok(Self(words));
            }
            words.try_reserve(1)?;
            // SAFETY: argument rule 1: a string.
            words.push(unsafe { Argument::of(word.cast_const()) }?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Call;
    use super::*;

    #[test]
    fn words_end_at_null() {
        let call = Call::new(&crate::calls::Function {
            name: "MPI_Test",
            number: crate::calls::Function::WITHOUT_EVENTS,
        });
        let mut list = [c"a".as_ptr().cast_mut(), c"".as_ptr().cast_mut(), core::ptr::null_mut()];
        // SAFETY: the list ends with NULL, and NULL is no list.
        unsafe {
            let words: Words<'_> = call.arg(list.as_mut_ptr()).unwrap();
            assert_eq!(words.0, [&b"a"[..], b""]);
            let none: Words<'_> = call.arg(core::ptr::null_mut::<*mut c_char>()).unwrap();
            assert!(none.0.is_empty());
        }
    }
}
