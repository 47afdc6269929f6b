//! Strings, places for strings, and the arguments of `main`.

use super::{Argument, Array, Call, Out, given};
use crate::error::{Error, Result};
use crate::strings;
use core::ffi::{CStr, c_char, c_int};
use core::marker::PhantomData;
use core::ptr::NonNull;

impl Call {
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
}

impl<'a> Argument<'a, *const c_char> for Option<&'a CStr> {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: not NULL, so a string that ends with a zero (argument rule 1).
        Ok(if from.is_null() { None } else { Some(unsafe { CStr::from_ptr(from) }) })
    }
}

impl<'a> Argument<'a, *const c_char> for &'a [u8] {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: argument rules 1 to 3: the call passes `from`, and the call outlives the result.
        let text: Option<&CStr> = unsafe { Argument::of(from) }?;
        given(text.map(CStr::to_bytes), "a string argument is NULL")
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
        // SAFETY: `to` is valid for writes of `room` bytes (argument rule 1).
        let length = unsafe { strings::write(self.to.as_ptr(), self.room, text.as_ref()) };
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
    /// Checks that there is a place.
    ///
    /// # Errors
    /// [`Error::Arg`] if it is NULL.
    pub fn check(&self) -> Result<()> {
        if self.to.is_null() { Err(Error::Arg("the place of a string is NULL")) } else { Ok(()) }
    }

    /// Writes as much of `text` as there is room for, and a zero.
    ///
    /// # Safety
    /// In the call that it is an argument of, the standard asks for room for `room` bytes.
    ///
    /// # Errors
    /// [`Error::Arg`] if it is NULL.
    pub unsafe fn write(&self, room: usize, text: &[u8]) -> Result<()> {
        self.check()?;
        // SAFETY: argument rule 1: the pointer is not NULL,
        // and the standard asks the program for this much room (`Safety`).
        unsafe { strings::write(self.to, room, text) };
        Ok(())
    }
}

/// The arguments of `main`; none if `argc` is not positive.
#[derive(Debug)]
pub struct Arguments<'a>(pub Vec<&'a [u8]>);

impl<'a> Array<'a, *mut *mut c_char, c_int> for Arguments<'a> {
    unsafe fn of(from: *mut *mut c_char, length: c_int) -> Result<Self> {
        if length < 0 {
            return Err(Error::Arg("argc is negative"));
        }
        if length == 0 || from.is_null() {
            return Ok(Self(Vec::new()));
        }
        // SAFETY: argument rule 1: `length` strings.
        let words: &[*mut c_char] = unsafe { Array::of(from, length) }?;
        // SAFETY: each is a string (argument rule 1).
        let words = words.iter().map(|word| unsafe { Argument::of(word.cast_const()) });
        words.collect::<Result<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn null_results_are_errors() {
        let call = Call::new(&crate::calls::Function {
            name: "MPI_Test",
            number: crate::calls::Function::WITHOUT_EVENTS,
        });
        let mut length = 0;
        // SAFETY: NULL is allowed; `length` may be written.
        unsafe {
            assert!(matches!(call.text(null_mut(), 5, &raw mut length), Err(Error::Arg(_))));
            assert!(matches!(call.out::<c_int>(null_mut()), Err(Error::Arg(_))));
            assert!(call.arg::<_, Option<Out<'_, c_int>>>(null_mut::<c_int>()).unwrap().is_none());
        }
    }
}
