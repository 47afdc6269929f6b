//! Moving bytes between a buffer that a type map describes and a packed stream, from any position, for any length.

use super::body::{Body, Kind, find};

/// One direction of copying. `left` bytes of the stream are still to be moved.
///
/// Walk rule 1: the buffer holds the data that the body describes at the given base (the caller's promise to
/// `pack` or `unpack`). Walk rule 2: `run` and `strided` are asked for at most `left` bytes altogether.
pub(super) trait Mover {
    fn left(&self) -> usize;
    /// Moves `len` bytes at displacement `at`.
    ///
    /// # Safety
    /// `at..at + len` lies in the buffer (walk rule 1) and `len <= left()` (walk rule 2).
    unsafe fn run(&mut self, at: isize, len: usize);
    /// Moves `count` runs of `len` bytes, the first at `at`, each `stride` after the one before.
    ///
    /// # Safety
    /// As for `run`, for all of them together.
    unsafe fn strided(&mut self, at: isize, stride: isize, len: usize, count: usize);
}

/// Buffer to stream.
pub(super) struct Packer {
    pub buffer: *const u8,
    pub stream: *mut u8,
    pub left: usize,
}

/// Stream to buffer.
pub(super) struct Unpacker {
    pub buffer: *mut u8,
    pub stream: *const u8,
    pub left: usize,
}

/// Calls `$body` with `$n` bound to `$len` as a constant for the lengths of basic types, so that a copy is one move.
macro_rules! with_constant_length {
    ($len:expr, $n:ident => $body:expr) => {
        match $len {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            4 => {
                const $n: usize = 4;
                $body
            }
            8 => {
                const $n: usize = 8;
                $body
            }
            12 => {
                const $n: usize = 12;
                $body
            }
            16 => {
                const $n: usize = 16;
                $body
            }
            24 => {
                const $n: usize = 24;
                $body
            }
            32 => {
                const $n: usize = 32;
                $body
            }
            64 => {
                const $n: usize = 64;
                $body
            }
            #[allow(non_snake_case)]
            $n => $body,
        }
    };
}

impl Mover for Packer {
    fn left(&self) -> usize {
        self.left
    }

    unsafe fn run(&mut self, at: isize, len: usize) {
        // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; caller's buffers do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(self.buffer.wrapping_offset(at), self.stream, len) };
        self.stream = self.stream.wrapping_add(len);
        self.left -= len;
    }

    unsafe fn strided(&mut self, at: isize, stride: isize, len: usize, count: usize) {
        let mut from = self.buffer.wrapping_offset(at);
        let mut to = self.stream;
        with_constant_length!(len, N => for _ in 0..count {
            // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; caller's buffers do not overlap.
            unsafe { core::ptr::copy_nonoverlapping(from, to, N) };
            from = from.wrapping_offset(stride);
            to = to.wrapping_add(N);
        });
        self.stream = to;
        self.left -= len * count;
    }
}

impl Mover for Unpacker {
    fn left(&self) -> usize {
        self.left
    }

    unsafe fn run(&mut self, at: isize, len: usize) {
        // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; caller's buffers do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(self.stream, self.buffer.wrapping_offset(at), len) };
        self.stream = self.stream.wrapping_add(len);
        self.left -= len;
    }

    unsafe fn strided(&mut self, at: isize, stride: isize, len: usize, count: usize) {
        let mut from = self.stream;
        let mut to = self.buffer.wrapping_offset(at);
        with_constant_length!(len, N => for _ in 0..count {
            // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; caller's buffers do not overlap.
            unsafe { core::ptr::copy_nonoverlapping(from, to, N) };
            from = from.wrapping_add(N);
            to = to.wrapping_offset(stride);
        });
        self.stream = from;
        self.left -= len * count;
    }
}

/// Moves `body`'s bytes from packed position `skip` on, until the body or the stream ends.
///
/// # Safety
/// Walk rule 1 for `body` at `base`.
pub(super) unsafe fn walk<M: Mover>(body: &Body, base: isize, skip: usize, mover: &mut M) {
    if skip >= body.size {
        return;
    }
    let base = base + body.offset;
    match &body.kind {
        Kind::Run => {
            let len = (body.size - skip).min(mover.left());
            // SAFETY: the run is part of the body (rule 1); `len` is cut to `left` (rule 2).
            unsafe { mover.run(base + skip as isize, len) };
        }
        Kind::Loop { count, stride, child } => {
            // SAFETY: a loop is its children at these places (rule 1).
            unsafe { walk_loop(child, *count, *stride, base, skip, mover) };
        }
        Kind::Runs { at, starts } => {
            // SAFETY: as above.
            unsafe { walk_runs(at, starts, base, skip, mover) };
        }
        Kind::Seq { parts, starts } => {
            let first = find(starts, skip);
            let mut skip = skip - starts[first];
            for part in &parts[first..] {
                if mover.left() == 0 {
                    return;
                }
                // SAFETY: a sequence is its parts (rule 1).
                unsafe { walk(part, base, skip, mover) };
                skip = 0;
            }
        }
    }
}

/// [`walk`] for `count` copies of `child`, `stride` bytes apart, the first at `base`.
///
/// # Safety
/// Walk rule 1 for each of them.
pub(super) unsafe fn walk_loop<M: Mover>(
    child: &Body,
    count: usize,
    stride: isize,
    base: isize,
    skip: usize,
    mover: &mut M,
) {
    if child.size == 0 {
        return;
    }
    let mut i = skip / child.size;
    let rest = skip % child.size;
    if rest > 0 && i < count {
        // SAFETY: copy `i` is one of the loop's (rule 1).
        unsafe { walk(child, base + i as isize * stride, rest, mover) };
        i += 1;
    }
    if child.is_run() && i < count {
        let whole = (count - i).min(mover.left() / child.size);
        // SAFETY: copies i..i + whole are the loop's (rule 1) and fit into `left` (rule 2).
        unsafe { mover.strided(base + child.offset + i as isize * stride, stride, child.size, whole) };
        i += whole;
    }
    while i < count && mover.left() > 0 {
        // SAFETY: copy `i` is one of the loop's (rule 1).
        unsafe { walk(child, base + i as isize * stride, 0, mover) };
        i += 1;
    }
}

/// [`walk`] for a table of runs.
///
/// # Safety
/// Walk rule 1 for each run.
unsafe fn walk_runs<M: Mover>(at: &[isize], starts: &[usize], base: isize, skip: usize, mover: &mut M) {
    let first = find(starts, skip);
    let mut skip = skip - starts[first];
    for i in first..at.len() {
        let len = (starts[i + 1] - starts[i] - skip).min(mover.left());
        if len == 0 {
            return;
        }
        // SAFETY: the run is the table's (rule 1); `len` is cut to `left` (rule 2).
        unsafe { mover.run(base + at[i] + skip as isize, len) };
        skip = 0;
    }
}
