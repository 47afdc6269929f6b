//! Where the data lies: a type map compiled to a small program of loops over contiguous runs.
//!
//! A [`TypeMap`] yields bytes in type map order. It never grows with a repeat count, only with the number of distinct
//! displacements that the constructor was given. Every node knows its size, so one division or one binary search a
//! level finds any position of the packed stream.
//!
//! Normal form, kept by the constructors here: no empty child, no loop of one, no two runs that touch in order,
//! no loop whose inner loop goes on with the same step.

use std::sync::Arc;

/// A program that yields `size` bytes, displaced by `offset`.
#[derive(Debug, Clone)]
pub(super) struct TypeMap {
    /// Added to every displacement below, in bytes.
    pub offset: isize,
    /// Bytes of data.
    pub size: usize,
    /// How they lie.
    pub kind: TypeMapKind,
}

#[derive(Debug, Clone)]
pub(super) enum TypeMapKind {
    /// `size` bytes in one piece.
    Run,
    /// `count` times `child`, each `stride` bytes after the one before.
    Loop { count: usize, stride: isize, child: Arc<TypeMap> },
    /// Runs of `len` bytes at each of `at`.
    Blocks { at: Arc<[isize]>, len: usize },
    /// Runs at `at[i]`; run i holds the packed bytes `starts[i]..starts[i + 1]`.
    Runs { at: Arc<[isize]>, starts: Arc<[usize]> },
    /// `parts[i]` holds the packed bytes `starts[i]..starts[i + 1]`.
    Seq { parts: Arc<[TypeMap]>, starts: Arc<[usize]> },
}

impl TypeMap {
    /// No data.
    pub const EMPTY: Self = Self { offset: 0, size: 0, kind: TypeMapKind::Run };

    /// One run of `size` bytes at displacement `offset`.
    pub fn run(offset: isize, size: usize) -> Self {
        Self { offset, size, kind: TypeMapKind::Run }
    }

    pub fn is_run(&self) -> bool {
        matches!(self.kind, TypeMapKind::Run)
    }

    pub fn shifted(self, by: isize) -> Self {
        Self { offset: self.offset + by, ..self }
    }

    /// `count` copies, each `stride` bytes after the one before. The caller has checked that nothing overflows.
    pub fn repeated(&self, count: usize, stride: isize) -> Self {
        if count == 0 || self.size == 0 {
            return Self::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        let size = self.size * count;
        match &self.kind {
            TypeMapKind::Run if stride == self.size as isize => Self::run(self.offset, size),
            TypeMapKind::Loop { count: inner, stride: step, child }
                if stride == step.wrapping_mul(*inner as isize) =>
            {
                Self {
                    offset: self.offset,
                    size,
                    kind: TypeMapKind::Loop { count: count * inner, stride: *step, child: child.clone() },
                }
            }
            _ => Self {
                offset: self.offset,
                size,
                kind: TypeMapKind::Loop {
                    count,
                    stride,
                    child: Arc::new(self.clone().shifted(-self.offset)),
                },
            },
        }
    }

    /// The parts one after another. As long as they are runs, two words each are kept of them.
    pub fn concat(parts: impl IntoIterator<Item = TypeMap>) -> Self {
        let mut parts = parts.into_iter().filter(|part| part.size > 0);
        let mut runs: Vec<(isize, usize)> = Vec::new();
        // For as many as there may be, which join if they touch each other.
        // Where there is no such room, it grows with what there is.
        let _ = runs.try_reserve_exact(parts.size_hint().1.unwrap_or(0));
        let other = parts.find(|part| {
            let is_run = part.is_run();
            if is_run {
                join(&mut runs, part.offset, part.size);
            }
            !is_run
        });
        match other {
            None => Self::from_runs(&runs),
            Some(other) => Self::sequence(runs, core::iter::once(other).chain(parts)),
        }
    }

    /// Runs, and behind them parts that are not all runs, none of them empty.
    fn sequence(runs: Vec<(isize, usize)>, parts: impl Iterator<Item = TypeMap>) -> Self {
        let mut joined: Vec<TypeMap> =
            runs.into_iter().map(|(offset, size)| Self::run(offset, size)).collect();
        for part in parts {
            match joined.last_mut() {
                Some(last)
                    if last.is_run() && part.is_run() && last.offset + last.size as isize == part.offset =>
                {
                    last.size += part.size;
                }
                _ => joined.push(part),
            }
        }
        if joined.len() == 1 {
            return joined.remove(0);
        }
        let starts = starts(&joined, |part| part.size);
        let size = starts[joined.len()];
        Self { offset: 0, size, kind: TypeMapKind::Seq { parts: joined.into(), starts } }
    }

    /// Runs of which no two touch: a loop if they are alike and evenly spaced,
    /// otherwise the smaller table that will do.
    fn from_runs(runs: &[(isize, usize)]) -> Self {
        let (first, second) = match runs {
            [] => return Self::EMPTY,
            [(offset, size)] => return Self::run(*offset, *size),
            [first, second, ..] => (first, second),
        };
        let (stride, len) = (second.0 - first.0, first.1);
        let alike = runs.iter().all(|run| run.1 == len);
        if alike && runs.windows(2).all(|w| w[1].0 - w[0].0 == stride) {
            return Self::run(first.0, len).repeated(runs.len(), stride);
        }
        let at = runs.iter().map(|run| run.0).collect();
        if alike {
            return Self { offset: 0, size: len * runs.len(), kind: TypeMapKind::Blocks { at, len } };
        }
        let starts = starts(runs, |run| run.1);
        let size = starts[runs.len()];
        Self { offset: 0, size, kind: TypeMapKind::Runs { at, starts } }
    }

    /// Calls `f` with each run of a table: its displacement without the body's own offset, its bytes,
    /// its place in the stream.
    pub fn for_each_run(&self, mut f: impl FnMut(isize, usize, usize)) {
        match &self.kind {
            TypeMapKind::Blocks { at, len } => {
                at.iter().enumerate().for_each(|(i, at)| f(*at, *len, i * len))
            }
            TypeMapKind::Runs { at, starts } => {
                at.iter().zip(starts.windows(2)).for_each(|(at, ends)| f(*at, ends[1] - ends[0], ends[0]));
            }
            TypeMapKind::Run | TypeMapKind::Loop { .. } | TypeMapKind::Seq { .. } => {}
        }
    }

    /// The piece of a run that begins at packed position `skip < size`: its displacement and its length.
    pub fn locate(&self, mut skip: usize) -> (isize, usize) {
        let mut body = self;
        let mut at = 0isize;
        loop {
            at += body.offset;
            match &body.kind {
                TypeMapKind::Run => return (at + skip as isize, body.size - skip),
                TypeMapKind::Loop { stride, child, .. } => {
                    at += (skip / child.size) as isize * stride;
                    skip %= child.size;
                    body = child;
                }
                TypeMapKind::Blocks { at: table, len } => {
                    return (at + table[skip / len] + (skip % len) as isize, len - skip % len);
                }
                TypeMapKind::Runs { at: table, starts } => {
                    let i = find(starts, skip);
                    return (at + table[i] + (skip - starts[i]) as isize, starts[i + 1] - skip);
                }
                TypeMapKind::Seq { parts, starts } => {
                    let i = find(starts, skip);
                    skip -= starts[i];
                    body = &parts[i];
                }
            }
        }
    }
}

/// The index of the part that holds packed position `position`.
pub(super) fn find(starts: &[usize], position: usize) -> usize {
    starts.partition_point(|start| *start <= position) - 1
}

/// Puts a run behind others: one with the last of them if they touch.
fn join(runs: &mut Vec<(isize, usize)>, offset: isize, size: usize) {
    match runs.last_mut() {
        Some(last) if last.0 + last.1 as isize == offset => last.1 += size,
        _ => runs.push((offset, size)),
    }
}

/// Where parts of such sizes begin, and where the last one ends.
fn starts<P>(parts: &[P], size: impl Fn(&P) -> usize) -> Arc<[usize]> {
    let mut end = 0;
    let ends = parts.iter().map(|part| {
        end += size(part);
        end
    });
    core::iter::once(0).chain(ends).collect()
}
