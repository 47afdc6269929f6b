//! Temporary buffers: of collectives, windows and files, and of messages that came before their receive.
//!
//! Those of a page or more are kept for the next use. Fresh memory costs a page fault for each page, which takes as
//! long as a copy, and the C library gives freed memory at the end of its heap back to the kernel.

use crate::arch::copy_slice;
use crate::error::{Error, Result};
use crate::limits::LINE;
use core::ops::{Deref, DerefMut};

/// Bytes from which buffers are kept.
const KEPT_FROM: usize = 4 << 10;
/// Bytes of the largest buffer that is kept.
const KEPT_TO: usize = 4 << 20;
/// How many a process keeps.
const KEPT: usize = 64;
/// Words of all that a process keeps.
const KEPT_WORDS: usize = (16 << 20) / size_of::<AlignedWord>();

/// Has `use_it` use what the process keeps. `None` where another thread does: nobody waits for memory that there is
/// elsewhere.
#[cfg(not(perusal_loom))]
fn with_free<R>(use_it: impl FnOnce(&mut Free) -> R) -> Option<R> {
    use crate::sync::Mutex;
    static FREE: Mutex<Free> = Mutex::new(Free { buffers: Vec::new(), words: 0 });
    FREE.try_lock().ok().map(|mut free| use_it(&mut free))
}

/// In models nothing is kept.
#[cfg(perusal_loom)]
fn with_free<R>(_: impl FnOnce(&mut Free) -> R) -> Option<R> {
    None
}

/// What a process keeps.
struct Free {
    /// The last that became free is the last.
    buffers: Vec<Vec<AlignedWord>>,
    /// Words of all of them.
    words: usize,
}

impl Free {
    /// Takes the smallest buffer that has `count` words.
    fn take(&mut self, count: usize) -> Option<Vec<AlignedWord>> {
        let fits = self.buffers.iter().enumerate().rev().filter(|(_, words)| words.len() >= count);
        let (at, _) = fits.min_by_key(|(_, words)| words.len())?;
        let words = self.buffers.swap_remove(at);
        self.words -= words.len();
        Some(words)
    }

    /// Keeps a buffer, and lets go of the smallest ones beyond what is kept.
    fn give(&mut self, words: Vec<AlignedWord>) {
        self.words += words.len();
        self.buffers.push(words);
        while self.buffers.len() > KEPT || self.words > KEPT_WORDS {
            let least = self.buffers.iter().map(Vec::len).min().unwrap_or_default();
            drop(self.take(least));
        }
    }
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
        let mut count = len.div_ceil(size_of::<AlignedWord>());
        if is_kept(len) {
            count += LINE_WORDS - 1;
            if let Some(Some(words)) = with_free(|free| free.take(count)) {
                return Ok(Self { start: start_of(&words), words, len });
            }
        }
        let mut words = Vec::new();
        if words.try_reserve_exact(count).is_err() {
            return Err(Error::NoMem(format!("a temporary buffer of {len} bytes")));
        }
        words.resize(count, AlignedWord([0; 16]));
        Ok(Self { start: if is_kept(len) { start_of(&words) } else { 0 }, words, len })
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

impl Drop for Scratch {
    fn drop(&mut self) {
        if is_kept(self.len) {
            let words = core::mem::take(&mut self.words);
            with_free(|free| free.give(words));
        }
    }
}

/// Whether buffers of `len` bytes are kept.
const fn is_kept(len: usize) -> bool {
    KEPT_FROM <= len && len <= KEPT_TO
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
    fn a_buffer_is_used_again_and_a_long_one_begins_at_a_line() {
        let mut free = Free { buffers: vec![], words: 0 };
        let at = [1000, 300, 2000].map(|words| {
            let buffer = vec![AlignedWord([0; 16]); words];
            let at = buffer.as_ptr();
            free.give(buffer);
            at
        });
        let mut take = |words| free.take(words).map(|buffer| buffer.as_ptr());
        assert_eq!(
            [take(301), take(301), take(301), take(300)],
            [Some(at[0]), Some(at[2]), None, Some(at[1])]
        );
        for len in [KEPT_FROM, KEPT_FROM + 1, KEPT_TO] {
            assert!(Scratch::of(len).unwrap().as_ptr().addr().is_multiple_of(LINE));
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_small_ones_go_first() {
        let mut free = Free { buffers: vec![], words: 0 };
        let give = |free: &mut Free, words| free.give(vec![AlignedWord([0; 16]); words]);
        (0..2 * KEPT).for_each(|at| give(&mut free, 300 + at));
        assert_eq!((free.buffers.len(), free.take(1).map(|words| words.len())), (KEPT, Some(300 + KEPT)));
        (0..5).for_each(|_| give(&mut free, KEPT_WORDS / 4));
        assert_eq!((free.buffers.len(), free.words), (4, KEPT_WORDS));
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        for len in [usize::MAX, isize::MAX as usize, 1 << 60] {
            assert!(matches!(Scratch::of(len), Err(Error::NoMem(_))), "{len}");
        }
    }
}
