//! Arguments that are pointers: checked for NULL and negative lengths, then as Rust's types.

use crate::error::{Error, Result};
use core::ffi::c_int;

/// Writes an output argument.
///
/// # Safety
/// `to` is NULL or may be written.
///
/// # Errors
/// [`Error::Arg`] if it is NULL.
pub unsafe fn put<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Error::Arg("an output argument is NULL"));
    }
    // SAFETY: not null, and by contract may be written.
    unsafe { to.write(value) };
    Ok(())
}

/// Reads an argument that is passed by address.
///
/// # Safety
/// `from` is NULL or may be read.
///
/// # Errors
/// [`Error::Arg`] if it is NULL.
pub unsafe fn take<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Error::Arg("an argument that is passed by address is NULL"));
    }
    // SAFETY: not null, and by contract may be read.
    Ok(unsafe { from.read() })
}

/// An array argument of `n` elements; NULL is fine for none.
///
/// # Safety
/// `from` is NULL or has `n` elements that nobody changes during `'a`.
///
/// # Errors
/// [`Error::Arg`] if `n` is negative, or positive and `from` is NULL.
pub unsafe fn list<'a, T>(from: *const T, n: c_int) -> Result<&'a [T]> {
    let n = length(n)?;
    if n == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(Error::Arg("an array argument is NULL"));
    }
    // SAFETY: not null, and by contract `n` elements.
    Ok(unsafe { core::slice::from_raw_parts(from, n) })
}

/// An array of `n` elements to be written; NULL is fine for none.
///
/// # Safety
/// `to` is NULL or has `n` initialised elements that nobody else uses during `'a`.
///
/// # Errors
/// As for [`list`].
pub unsafe fn list_mut<'a, T>(to: *mut T, n: c_int) -> Result<&'a mut [T]> {
    let n = length(n)?;
    if n == 0 {
        return Ok(&mut []);
    }
    if to.is_null() {
        return Err(Error::Arg("an array argument is NULL"));
    }
    // SAFETY: not null, and by contract `n` elements.
    Ok(unsafe { core::slice::from_raw_parts_mut(to, n) })
}

fn length(n: c_int) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::Arg("the length of an array is negative"))
}
