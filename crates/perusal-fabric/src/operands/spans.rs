//! A caller's buffers: pieces of memory that stay valid until the operation on them completes.

use libc::{c_void, iovec};
use perusal::internals::arch::copy_run;
use perusal::internals::ring::{INLINE, Room};

/// A list of pieces of memory, most often one.
#[derive(Debug, Clone)]
pub struct Spans {
    first: (*mut u8, usize),
    rest: Box<[(*mut u8, usize)]>,
}

impl Spans {
    /// One piece.
    ///
    /// # Safety
    ///
    /// The piece is valid, for what the operation does with it, until the operation completes.
    #[inline(always)]
    pub unsafe fn one(at: *const c_void, len: usize) -> Self {
        Self { first: (at.cast_mut().cast(), len), rest: Box::default() }
    }

    /// No memory.
    pub fn none() -> Self {
        Self { first: (std::ptr::null_mut(), 0), rest: Box::default() }
    }

    /// The pieces of an array of `struct iovec`.
    ///
    /// # Safety
    ///
    /// The array has `count` entries, and as [`Spans::one`] for each piece.
    pub unsafe fn of(iov: *const iovec, count: usize) -> Self {
        if count == 0 || iov.is_null() {
            return Self::none();
        }
        // SAFETY: the array has `count` entries, as the caller promises.
        let all = unsafe { std::slice::from_raw_parts(iov, count) };
        let piece = |entry: &iovec| (entry.iov_base.cast(), entry.iov_len);
        Self { first: piece(&all[0]), rest: all[1..].iter().map(piece).collect() }
    }

    /// These pieces.
    ///
    /// # Safety
    ///
    /// As [`Spans::one`] for each.
    pub unsafe fn of_places(places: &[(u64, usize)]) -> Self {
        let piece = |&(at, len): &(u64, usize)| (std::ptr::with_exposed_provenance_mut(at as usize), len);
        let Some((first, rest)) = places.split_first() else { return Self::none() };
        Self { first: piece(first), rest: rest.iter().map(piece).collect() }
    }

    /// Bytes of all pieces together.
    #[inline(always)]
    pub fn len(&self) -> usize {
        if self.rest.is_empty() { self.first.1 } else { self.len_of_pieces() }
    }

    #[inline(never)]
    fn len_of_pieces(&self) -> usize {
        self.rest.iter().fold(self.first.1, |sum, piece| sum.saturating_add(piece.1))
    }

    /// Where the first piece begins.
    pub fn start(&self) -> *mut c_void {
        self.first.0.cast()
    }

    /// The piece, if it is a single one; else null and 0.
    pub fn single(&self) -> (*mut u8, usize) {
        if self.rest.is_empty() { self.first } else { (std::ptr::null_mut(), 0) }
    }

    /// Whether there is one piece, or none.
    pub fn is_single(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where each piece begins, and its length.
    pub fn pieces(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        core::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// Copies bytes from `offset` on to `to`, which lies within the length.
    #[inline(always)]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        if self.rest.is_empty() {
            assert!(offset <= self.first.1 && to.len() <= self.first.1 - offset);
            // SAFETY: within the piece, which is valid until the operation completes (promised to the constructors).
            unsafe { copy_run(self.first.0.add(offset), to.as_mut_ptr(), to.len()) };
            return;
        }
        self.read_pieces(offset, to);
    }

    /// Fills a place in a ring with the bytes from `offset` on, which lie within the length: past the cache, if the
    /// ring's writer has learned that this is faster.
    #[inline(always)]
    pub fn fill(&self, offset: usize, room: &mut Room<'_>) {
        let len = room.len();
        if len <= INLINE || !self.rest.is_empty() {
            return self.read(offset, room);
        }
        assert!(offset <= self.first.1 && len <= self.first.1 - offset);
        // SAFETY: within the piece, which is valid until the operation completes (promised to the constructors), and
        // the caller's memory is none of the ring's.
        unsafe { room.fill_run(self.first.0.add(offset)) };
    }

    #[inline(never)]
    fn read_pieces(&self, offset: usize, to: &mut [u8]) {
        let mut done = 0;
        self.walk(offset, to.len(), |at, len| {
            // SAFETY: `walk` gives places within the pieces, which are valid until the operation completes.
            unsafe { copy_run(at, to[done..done + len].as_mut_ptr(), len) };
            done += len;
        });
    }

    /// Copies `from` to the bytes from `offset` on, and leaves out what does not fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, from: &[u8]) {
        if self.rest.is_empty() {
            let len = from.len().min(self.first.1.saturating_sub(offset));
            if len > 0 {
                // SAFETY: within the piece, which is valid until the operation completes (promised to the
                // constructors).
                unsafe { copy_run(from.as_ptr(), self.first.0.add(offset), len) };
            }
            return;
        }
        self.write_pieces(offset, from);
    }

    #[inline(never)]
    fn write_pieces(&self, offset: usize, from: &[u8]) {
        let mut done = 0;
        let len = from.len().min(self.len().saturating_sub(offset));
        self.walk(offset, len, |at, len| {
            // SAFETY: `walk` gives places within the pieces, which are valid until the operation completes.
            unsafe { copy_run(from[done..done + len].as_ptr(), at, len) };
            done += len;
        });
    }

    fn walk(&self, mut offset: usize, mut left: usize, mut f: impl FnMut(*mut u8, usize)) {
        for (at, len) in self.pieces() {
            if offset >= len {
                offset -= len;
                continue;
            }
            let here = left.min(len - offset);
            if here == 0 {
                break;
            }
            f(at.wrapping_add(offset), here);
            left -= here;
            offset = 0;
        }
        assert!(left == 0, "{left} bytes beyond the buffers");
    }

    /// The piece of `len` bytes from `offset` on, of buffers that are one piece.
    pub fn part(&self, offset: usize, len: usize) -> Self {
        debug_assert!(self.rest.is_empty());
        let start = offset.min(self.first.1);
        Self {
            first: (self.first.0.wrapping_add(start), len.min(self.first.1 - start)),
            rest: Box::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_and_written_across_their_borders() {
        let (mut a, mut b, mut c) = ([1_u8, 2], [0_u8; 0], [3_u8, 4, 5]);
        let iov = [&mut a[..], &mut b[..], &mut c[..]]
            .map(|piece| iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() });
        // SAFETY: three pieces that outlive the list.
        let spans = unsafe { Spans::of(iov.as_ptr(), 3) };
        let mut all = [0; 4];
        spans.read(1, &mut all);
        assert_eq!((all, spans.len()), ([2, 3, 4, 5], 5));
        spans.write(1, &[7, 8, 9, 10, 11, 12]);
        assert_eq!((a, c), ([1, 7], [8, 9, 10]));
    }
}
