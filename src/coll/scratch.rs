//! Temporary buffers of collectives.

use core::ops::{Deref, DerefMut};

/// Bytes that start at an address that suits every basic type, `long double _Complex` included.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    words: Vec<AlignedWord>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct AlignedWord([u8; 16]);

impl Scratch {
    /// `len` zeroes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self { words: vec![AlignedWord([0; 16]); len.div_ceil(16)], len }
    }

    /// A copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut scratch = Self::zeroed(bytes.len());
        scratch.copy_from_slice(bytes);
        scratch
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
            let scratch = Scratch::copy_of(&bytes);
            assert_eq!(&*scratch, &bytes[..]);
            assert!(scratch.as_ptr().addr().is_multiple_of(16));
        }
    }
}
