//! Temporary buffers of collectives.
//!
//! Large ones are kept for the next operation of the thread:
//! fresh memory costs a page fault for each page, which takes as long as a copy.

use crate::arch::copy_slice;
use crate::error::{Error, Result};
use crate::limits::LINE;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut};

/// Bytes from which buffers are kept.
const KEPT_FROM: usize = 32 << 10;
/// Bytes of the largest buffer that is kept.
const KEPT_TO: usize = 4 << 20;
/// How many a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static FREE: RefCell<Vec<Vec<AlignedWord>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that start at an address that suits every basic type, `long double _Complex` included.
///
/// Those that are kept start at a line: malloc's large blocks begin 16 bytes behind a page, to where processors of
/// AMD's copy from a page's beginning in ten times the time.
#[derive(Debug, Default)]
pub struct Scratch {
    /// As many as `start` and `len` bytes need, or more.
    words: Vec<AlignedWord>,
    /// The first word of the bytes.
    start: usize,
    len: usize,
}

/// Words of a line.
const LINE_WORDS: usize = LINE / size_of::<AlignedWord>();

#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct AlignedWord([u8; 16]);

impl Scratch {
    /// Returns `len` bytes, of whatever values.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is not so much memory.
    pub fn of(len: usize) -> Result<Self> {
        let is_kept = (KEPT_FROM..=KEPT_TO).contains(&len);
        let count = len.div_ceil(size_of::<AlignedWord>()) + if is_kept { LINE_WORDS - 1 } else { 0 };
        if is_kept && let Some(words) = kept(count) {
            return Ok(Self { start: start_of(&words), words, len });
        }
        let mut words = Vec::new();
        if words.try_reserve_exact(count).is_err() {
            return Err(Error::NoMem(format!("a temporary buffer of {len} bytes")));
        }
        words.resize(count, AlignedWord([0; 16]));
        Ok(Self { start: if is_kept { start_of(&words) } else { 0 }, words, len })
    }

    /// Returns a copy of `bytes`.
    ///
    /// # Errors
    /// As for [`of`](Self::of).
    pub fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut scratch = Self::of(bytes.len())?;
        copy_slice(bytes, &mut scratch);
        Ok(scratch)
    }
}

/// The first word that begins a line.
fn start_of(words: &[AlignedWord]) -> usize {
    let behind = words.as_ptr().addr() % LINE / size_of::<AlignedWord>();
    (LINE_WORDS - behind) % LINE_WORDS
}

/// Takes the first kept buffer that has `count` words.
fn kept(count: usize) -> Option<Vec<AlignedWord>> {
    FREE.try_with(|free| {
        let mut free = free.try_borrow_mut().ok()?;
        let found = free.iter().position(|words| words.len() >= count)?;
        Some(free.swap_remove(found))
    })
    .ok()?
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !(KEPT_FROM..=KEPT_TO).contains(&self.len) {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = FREE.try_with(|free| {
            let Ok(mut free) = free.try_borrow_mut() else { return };
            if free.len() < KEPT {
                free.push(core::mem::take(&mut self.words));
            } else if let Some(least) = free.iter_mut().min_by_key(|words| words.len())
                && least.len() < self.words.len()
            {
                *least = core::mem::take(&mut self.words);
            }
        });
    }
}

impl Deref for Scratch {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the words are at least `start` words and `len` bytes, initialised, in one allocation,
        // borrowed for as long as `self`.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr().add(self.start).cast(), self.len) }
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words are at least `start` words and `len` bytes, in one allocation, borrowed exclusively for as
        // long as `self`; every byte pattern is a valid word.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().add(self.start).cast(), self.len) }
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
    fn a_large_buffer_is_used_again() {
        let first = Scratch::of(KEPT_FROM + 100).unwrap();
        let at = first.as_ptr();
        drop(first);
        let second = Scratch::of(KEPT_FROM).unwrap();
        assert_eq!((second.as_ptr(), second.len()), (at, KEPT_FROM));
        assert!(at.addr().is_multiple_of(LINE));
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        for len in [usize::MAX, isize::MAX as usize, 1 << 60] {
            assert!(matches!(Scratch::of(len), Err(Error::NoMem(_))), "{len}");
        }
    }
}
