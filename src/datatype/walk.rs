//! Moving bytes between a buffer that a type map describes and a packed stream, from any position, for any length.

use super::body::{TypeMap, TypeMapKind, find};
use crate::arch::{copy_apart, copy_each, copy_short as copy};

/// One direction of copying. `left` bytes of the stream are still to be moved.
///
/// Walk rule 1: the buffer holds the data that the body describes at the given base (as `pack` and
/// `unpack` require). Walk rule 2: `run` and `strided` are asked for at most `left` bytes altogether.
pub(super) trait Mover {
    fn left(&self) -> usize;
    /// Moves `len` bytes at displacement `at`.
    ///
    /// # Safety
    /// `at..at + len` lies in the buffer (walk rule 1) and `len <= left()` (walk rule 2).
    unsafe fn run(&mut self, at: isize, len: usize);
    /// Moves a column of runs without taking the stream forward.
    ///
    /// # Safety
    /// Every run lies in the buffer (walk rule 1), and their places in the stream in its first `left()` bytes (walk
    /// rule 2).
    unsafe fn column(&mut self, column: Column);
    /// Takes the stream forward by `bytes <= left()`.
    fn advance(&mut self, bytes: usize);
    /// Moves a run of `len` bytes at `base` plus each of `places`.
    ///
    /// # Safety
    /// As for `run`, for all of them together.
    unsafe fn gather(&mut self, base: isize, places: &[isize], len: usize);
    /// Moves a run at `base` plus each of `places`: those of the stream's bytes from the first of `starts` on that lie
    /// between one of them and the next.
    ///
    /// # Safety
    /// As for `run`, for all of them together.
    unsafe fn runs(&mut self, base: isize, places: &[isize], starts: &[usize]);
}

/// The runs of [`Mover::runs`]: displacement from `base`, place in the stream, bytes.
#[inline(always)]
fn runs_of<'a>(places: &'a [isize], starts: &'a [usize]) -> impl Iterator<Item = (isize, usize, usize)> + 'a {
    let first = starts[0];
    places.iter().zip(starts.windows(2)).map(move |(at, ends)| (*at, ends[0] - first, ends[1] - ends[0]))
}

/// `count` runs of `len` bytes: run i at `at + i * stride` in the buffer and at `ahead + i * step` in the stream.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub at: isize,
    pub stride: isize,
    pub len: usize,
    pub count: usize,
    pub ahead: usize,
    pub step: usize,
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

/// Copies every other run of `N` bytes, `count` of them: the real parts of complex numbers, or a column of two. With
/// the stride known the compiler takes several at a time. (The way back is [`copy_apart`].)
///
/// # Safety
/// The runs can be read, `to` has room for them, and the two do not overlap.
unsafe fn every_other<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: run `i` of each, says the caller.
        unsafe { core::ptr::copy_nonoverlapping(from.add(2 * N * i), to.add(N * i), N) };
    }
}

/// Copies `count` runs of `len` bytes: the first from and to these two addresses, each other one a stride behind the
/// one before it. It takes four at a time, or counting and stepping take longer than the copies.
///
/// # Safety
/// Each of them can be read, can be written, and does not overlap.
#[inline(always)]
unsafe fn copy_runs(
    (mut from, source_stride): (*const u8, isize),
    (mut to, target_stride): (*mut u8, isize),
    len: usize,
    count: usize,
) {
    const AT_A_TIME: usize = 4;
    let mut some = |runs: usize| {
        for i in 0..runs as isize {
            let (from, to) = (from.wrapping_offset(i * source_stride), to.wrapping_offset(i * target_stride));
            // SAFETY: a run of the caller's.
            unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
        }
        from = from.wrapping_offset(runs as isize * source_stride);
        to = to.wrapping_offset(runs as isize * target_stride);
    };
    (0..count / AT_A_TIME).for_each(|_| some(AT_A_TIME));
    some(count % AT_A_TIME);
}

/// Calls `$body` with `$n` bound to `$len` as a constant for the lengths of basic types, so that a copy is one move.
macro_rules! with_constant_length {
    ($len:expr, $n:ident => $body:expr) => {
        with_constant_length!(@ $len, $n, $body,
            [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 24 28 32 40 48 64])
    };
    (@ $len:expr, $n:ident, $body:expr, [$($constant:literal)*]) => {
        match $len {
            $($constant => {
                const $n: usize = $constant;
                $body
            })*
            #[allow(non_snake_case)]
            $n => $body,
        }
    };
}

impl Mover for Packer {
    fn left(&self) -> usize {
        self.left
    }

    #[inline(always)]
    unsafe fn run(&mut self, at: isize, len: usize) {
        // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; the buffer and the stream do not overlap.
        unsafe { copy(self.buffer.wrapping_offset(at), self.stream, len) };
        self.stream = self.stream.wrapping_add(len);
        self.left -= len;
    }

    unsafe fn column(&mut self, column: Column) {
        let Column { at, stride, len, count, ahead, step } = column;
        let from = self.buffer.wrapping_offset(at);
        let to = self.stream.wrapping_add(ahead);
        if step == len && stride == 2 * len as isize {
            match len {
                // SAFETY: walk rule 1 for the source, walk rule 2 for the stream;
                // the buffer and the stream do not overlap.
                4 => return unsafe { every_other::<4>(from, to, count) },
                // SAFETY: walk rule 1 for the source, walk rule 2 for the stream;
                // the buffer and the stream do not overlap.
                8 => return unsafe { every_other::<8>(from, to, count) },
                _ => {}
            }
        }
        with_constant_length!(len, N => {
            // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; the buffer and the stream do not overlap.
            unsafe { copy_runs((from, stride), (to, step as isize), N, count) }
        });
    }

    fn advance(&mut self, bytes: usize) {
        self.stream = self.stream.wrapping_add(bytes);
        self.left -= bytes;
    }

    // In its caller's loop, its own would have to share the registers.
    #[inline(never)]
    unsafe fn gather(&mut self, base: isize, places: &[isize], len: usize) {
        let from = self.buffer.wrapping_offset(base);
        let mut to = self.stream;
        with_constant_length!(len, N => for at in places {
            // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; the buffer and the stream do not overlap.
            unsafe { core::ptr::copy_nonoverlapping(from.wrapping_offset(*at), to, N) };
            to = to.wrapping_add(N);
        });
        self.stream = to;
        self.left -= len * places.len();
    }

    unsafe fn runs(&mut self, base: isize, places: &[isize], starts: &[usize]) {
        let (from, to) = (self.buffer.wrapping_offset(base), self.stream);
        let runs = runs_of(places, starts);
        let runs = runs.map(|(at, ahead, len)| (from.wrapping_offset(at), to.wrapping_add(ahead), len));
        // SAFETY: walk rule 1 for the source, walk rule 2 for the stream; the buffer and the stream do not overlap.
        unsafe { copy_each(runs) };
        self.advance(starts[places.len()] - starts[0]);
    }
}

impl Mover for Unpacker {
    fn left(&self) -> usize {
        self.left
    }

    #[inline(always)]
    unsafe fn run(&mut self, at: isize, len: usize) {
        // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; the buffer and the stream do not overlap.
        unsafe { copy(self.stream, self.buffer.wrapping_offset(at), len) };
        self.stream = self.stream.wrapping_add(len);
        self.left -= len;
    }

    unsafe fn column(&mut self, column: Column) {
        let Column { at, stride, len, count, ahead, step } = column;
        let from = self.stream.wrapping_add(ahead);
        let to = self.buffer.wrapping_offset(at);
        if step == len && stride == 2 * len as isize {
            match len {
                // SAFETY: walk rule 1 for the target, walk rule 2 for the stream;
                // the buffer and the stream do not overlap.
                4 => return unsafe { copy_apart::<4>(from, to, count) },
                // SAFETY: walk rule 1 for the target, walk rule 2 for the stream;
                // the buffer and the stream do not overlap.
                8 => return unsafe { copy_apart::<8>(from, to, count) },
                _ => {}
            }
        }
        with_constant_length!(len, N => {
            // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; the buffer and the stream do not overlap.
            unsafe { copy_runs((from, step as isize), (to, stride), N, count) }
        });
    }

    fn advance(&mut self, bytes: usize) {
        self.stream = self.stream.wrapping_add(bytes);
        self.left -= bytes;
    }

    // In its caller's loop, its own would have to share the registers.
    #[inline(never)]
    unsafe fn gather(&mut self, base: isize, places: &[isize], len: usize) {
        let mut from = self.stream;
        let to = self.buffer.wrapping_offset(base);
        with_constant_length!(len, N => for at in places {
            // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; the buffer and the stream do not overlap.
            unsafe { core::ptr::copy_nonoverlapping(from, to.wrapping_offset(*at), N) };
            from = from.wrapping_add(N);
        });
        self.stream = from;
        self.left -= len * places.len();
    }

    unsafe fn runs(&mut self, base: isize, places: &[isize], starts: &[usize]) {
        let (from, to) = (self.stream, self.buffer.wrapping_offset(base));
        let runs = runs_of(places, starts);
        let runs = runs.map(|(at, ahead, len)| (from.wrapping_add(ahead), to.wrapping_offset(at), len));
        // SAFETY: walk rule 1 for the target, walk rule 2 for the stream; the buffer and the stream do not overlap.
        unsafe { copy_each(runs) };
        self.advance(starts[places.len()] - starts[0]);
    }
}

/// Moves `body`'s bytes from packed position `skip` on, until the body or the stream ends.
///
/// # Safety
/// Walk rule 1 for `body` at `base`.
pub(super) unsafe fn walk<M: Mover>(body: &TypeMap, base: isize, skip: usize, mover: &mut M) {
    if skip >= body.size {
        return;
    }
    let base = base + body.offset;
    match &body.kind {
        TypeMapKind::Run => {
            let len = (body.size - skip).min(mover.left());
            // SAFETY: the run is part of the body (rule 1); `len` is cut to `left` (rule 2).
            unsafe { mover.run(base + skip as isize, len) };
        }
        TypeMapKind::Loop { count, stride, child } => {
            // SAFETY: a loop is its children at these places (rule 1).
            unsafe { walk_loop(child, *count, *stride, base, skip, mover) };
        }
        TypeMapKind::Blocks { at, len } => {
            // SAFETY: a table is its runs (rule 1).
            unsafe { walk_blocks(at, *len, base, skip, mover) };
        }
        TypeMapKind::Runs { at, starts } => {
            // SAFETY: a table is its runs (rule 1).
            unsafe { walk_runs(at, starts, base, skip, mover) };
        }
        TypeMapKind::Seq { parts, starts } => {
            let (first, mut skip) = locate(starts, skip);
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
    child: &TypeMap,
    count: usize,
    stride: isize,
    base: isize,
    skip: usize,
    mover: &mut M,
) {
    if child.size == 0 {
        return;
    }
    let mut i = 0;
    // Most walks begin at the beginning, and in a short one a division takes longer than all else.
    if skip > 0 {
        i = skip / child.size;
        let rest = skip % child.size;
        if rest > 0 && i < count {
            // SAFETY: copy `i` is one of the loop's (rule 1).
            unsafe { walk(child, base + i as isize * stride, rest, mover) };
            i += 1;
        }
    }
    if i < count {
        let fit = mover.left() >= (count - i).saturating_mul(child.size);
        let whole = if fit { count - i } else { mover.left() / child.size };
        // SAFETY: copies i..i + whole are the loop's (rule 1) and fit into `left` (rule 2).
        if unsafe { walk_columns(child, whole, stride, base + i as isize * stride, mover) } {
            i += whole;
        }
    }
    while i < count && mover.left() > 0 {
        // SAFETY: copy `i` is one of the loop's (rule 1).
        unsafe { walk(child, base + i as isize * stride, 0, mover) };
        i += 1;
    }
}

/// Copies of a structure whose columns are worth moving one by one, so that each is one loop over runs of one length.
const COLUMNS: usize = 16;
/// Copies that are moved a column at a time, few enough to stay in the first-level cache.
const ROWS: usize = 64;

/// Moves `count` whole copies of `child` if it consists of a few runs; says whether it did.
///
/// # Safety
/// As for [`walk_loop`], and `left` is at least all of them.
unsafe fn walk_columns<M: Mover>(
    child: &TypeMap,
    count: usize,
    stride: isize,
    base: isize,
    mover: &mut M,
) -> bool {
    let base = base + child.offset;
    let step = child.size;
    let column = |at, len, ahead| Column { at, stride, len, count, ahead, step };
    match &child.kind {
        TypeMapKind::Run => {
            // SAFETY: walk rules 1 and 2 hold for all `count` copies.
            unsafe { mover.column(column(base, step, 0)) };
            mover.advance(step * count);
        }
        TypeMapKind::Runs { at, .. } | TypeMapKind::Blocks { at, .. } if at.len() <= COLUMNS => {
            let mut done = 0;
            while done < count {
                let rows = ROWS.min(count - done);
                let first = base + done as isize * stride;
                child.for_each_run(|at, len, ahead| {
                    // SAFETY: walk rules 1 and 2 hold for the next `rows` copies, which are among the `count`.
                    unsafe { mover.column(Column { count: rows, ..column(first + at, len, ahead) }) };
                });
                mover.advance(step * rows);
                done += rows;
            }
        }
        _ => return false,
    }
    true
}

/// The part that holds packed position `skip`, and how far into it that is.
#[inline(always)]
fn locate(starts: &[usize], skip: usize) -> (usize, usize) {
    if skip == 0 {
        return (0, 0);
    }
    let first = find(starts, skip);
    (first, skip - starts[first])
}

/// [`walk`] for a table of runs of one length.
///
/// # Safety
/// Walk rule 1 for each run.
unsafe fn walk_blocks<M: Mover>(at: &[isize], len: usize, base: isize, skip: usize, mover: &mut M) {
    let (mut i, rest) = (skip / len, skip % len);
    if rest > 0 {
        let piece = (len - rest).min(mover.left());
        // SAFETY: the run is the table's (rule 1); `piece` is cut to `left` (rule 2).
        unsafe { mover.run(base + at[i] + rest as isize, piece) };
        i += 1;
    }
    let whole = (at.len() - i).min(mover.left() / len);
    // SAFETY: these runs are the table's (rule 1) and fit into `left` (rule 2).
    unsafe { mover.gather(base, &at[i..i + whole], len) };
    if let Some(last) = at.get(i + whole) {
        let piece = mover.left();
        // SAFETY: less than a run is left (rule 2), or there is no further run; it is the table's (rule 1).
        unsafe { mover.run(base + last, piece) };
    }
}

/// [`walk`] for a table of runs of many lengths.
///
/// # Safety
/// Walk rule 1 for each run.
unsafe fn walk_runs<M: Mover>(at: &[isize], starts: &[usize], base: isize, skip: usize, mover: &mut M) {
    let (mut i, rest) = locate(starts, skip);
    if rest > 0 {
        let piece = (starts[i + 1] - starts[i] - rest).min(mover.left());
        // SAFETY: the run is the table's (rule 1); `piece` is cut to `left` (rule 2).
        unsafe { mover.run(base + at[i] + rest as isize, piece) };
        i += 1;
    }
    let end = starts[i] + mover.left();
    let whole = if end < starts[at.len()] { find(starts, end) } else { at.len() };
    // SAFETY: these runs are the table's (rule 1) and fit into `left` (rule 2).
    unsafe { mover.runs(base, &at[i..whole], &starts[i..=whole]) };
    if let Some(last) = at.get(whole) {
        let piece = mover.left();
        // SAFETY: less than a run is left (rule 2); it is the table's (rule 1).
        unsafe { mover.run(base + last, piece) };
    }
}
