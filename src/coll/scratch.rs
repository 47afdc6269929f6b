//! Temporary buffers of collectives.

use crate::error::{Error, Result};
use core::ops::{Deref, DerefMut};

/// Bytes that start at an address that suits every basic type, `long double _Complex` included.
#[derive(Debug, Default)]
pub struct Scratch {
    words: Vec<AlignedWord>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct AlignedWord([u8; 16]);

impl Scratch {
    /// Returns `len` zeroes.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is not so much memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let mut words = Vec::new();
        let count = len.div_ceil(size_of::<AlignedWord>());
        if words.try_reserve_exact(count).is_err() {
            return Err(Error::NoMem(format!("a temporary buffer of {len} bytes")));
        }
        words.resize(count, AlignedWord([0; 16]));
        Ok(Self { words, len })
    }

    /// Returns a copy of `bytes`.
    ///
    /// # Errors
    /// As for [`zeroed`](Self::zeroed).
    pub fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut scratch = Self::zeroed(bytes.len())?;
        scratch.copy_from_slice(bytes);
        Ok(scratch)
    }
}

impl Deref for Scratch {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the words are at least `len` initialised bytes in one allocation, borrowed for as long as `self`.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words are at least `len` initialised bytes in one allocation, borrowed exclusively for as long as `self`; every byte
        // pattern is a valid word.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_any_length_is_aligned_and_keeps_its_bytes() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let scratch = Scratch::copy_of(&bytes).unwrap();
            assert_eq!(&*scratch, &bytes[..]);
            assert!(scratch.as_ptr().addr().is_multiple_of(16));
        }
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        for len in [usize::MAX, isize::MAX as usize, 1 << 60] {
            assert!(matches!(Scratch::zeroed(len), Err(Error::NoMem(_))), "{len}");
        }
    }
}
