//! A piece of operands in the bulk: who shows which of them how, and who reduces what.

use super::reduction::Operands;
use super::{Hold, Shares, TeamGuard};
use crate::arch::{copy_nontemporal, copy_run};
use crate::coll::{ReductionKernel, Scratch};
use crate::error::Result;
use crate::ring::{CopyTimes, Room};
use core::mem::MaybeUninit;
use core::ops::Range;
use std::sync::Arc;

/// Bytes of operands that are reduced at a time: they stay in the nearest cache for all members' turns.
const BLOCK: usize = 8 << 10;

/// How a member writes data that others read.
pub(super) struct Learned {
    pub rank: usize,
    /// What it has learned; `None`: it writes through its cache.
    pub times: Option<Arc<[CopyTimes]>>,
}

impl Learned {
    /// Room for data that several members read.
    pub fn room<'r>(&'r self, bytes: &'r mut [u8]) -> Room<'r> {
        match &self.times {
            Some(times) => Room::learned(bytes, &times[self.rank]),
            None => Room::near(bytes),
        }
    }

    /// Copies data that `reader` reads, or several members.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
    pub unsafe fn copy(&self, reader: Option<usize>, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap,
        // as the caller promises.
        unsafe {
            match &self.times {
                Some(times) => times[reader.unwrap_or(self.rank)].copy(from, to, len),
                None => copy_run(from, to, len),
            }
        }
    }

    /// Whether results, which several members read, are written past the cache: where data for one of them are.
    fn results_go_past(&self) -> bool {
        self.times.as_ref().is_some_and(|times| times.iter().any(CopyTimes::goes_past))
    }
}

impl<H: Hold> TeamGuard<'_, H> {
    /// How the caller writes data that others read: as it has learned, if it `learns`.
    pub(super) fn learned(&mut self, learns: bool) -> Learned {
        let rank = self.rank();
        Learned { rank, times: learns.then(|| self.team().copy_times.clone()) }
    }

    /// The same of data that are only moved; of what fits into a slot it learns nothing.
    pub(super) fn learned_of_runs(&mut self, is_long: bool) -> Learned {
        let learns = is_long && self.engine.config().shape().streams;
        self.learned(learns)
    }
}

/// Which member reduces the operands of a round in the bulk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reducer {
    /// This member, who alone wants the result.
    Root(usize),
    /// Each, for itself.
    EachForItself,
    /// The last to arrive, for all.
    Last,
    /// Each a slice, for all that want it.
    AllInSlices,
}

/// Returns which of `len` bytes, in elements of `unit` bytes, are slice `number` of `slices`: whole elements.
pub(super) fn slice(number: usize, slices: usize, len: usize, unit: usize) -> Range<usize> {
    let cut = |number: usize| len / unit * number / slices * unit;
    cut(number)..cut(number + 1)
}

/// A piece: where it begins and how long it is, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub at: usize,
    pub len: usize,
}

/// How members divide the work on a piece.
pub(super) struct Division {
    pub operands: Operands,
    /// Bytes from one member's operands to the next one's.
    pub stride: usize,
    pub rank: usize,
    pub size: usize,
    pub copy: Learned,
    /// The round's part of the bulk.
    pub part: *mut u8,
    /// Who has which share of it.
    pub shares: Shares,
    /// [`super::TeamGuard::reads_apart`].
    pub apart: bool,
}

impl Division {
    /// Returns the slice of a piece of `len` bytes that the caller reduces where all do.
    pub fn slice_of_caller(&self, len: usize) -> Range<usize> {
        self.slice_of(self.rank, len)
    }

    /// The same of a member.
    fn slice_of(&self, member: usize, len: usize) -> Range<usize> {
        slice(self.shares.of(member), self.size, len, self.operands.unit)
    }

    /// Puts the caller's operands where the others read them, but for those that only the caller needs.
    ///
    /// # Safety
    /// Bulk rule 1: the part is the caller's round's, in which it has not arrived.
    pub unsafe fn contribute(&self, Piece { at, len }: Piece, reducer: Reducer) {
        let (to, from) = (
            self.part.wrapping_add(self.shares.of(self.rank) * self.stride),
            self.operands.own.wrapping_add(at),
        );
        // SAFETY: bulk rule 1: the stride is the caller's to write, and `len` is at most a stride; the operands can be
        // read (`Operands::new`).
        let copy = |reader, Range { start, end }: Range<usize>| unsafe {
            self.copy.copy(reader, from.add(start), to.add(start), end - start);
        };
        match (&self.copy.times, reducer) {
            (Some(_), Reducer::AllInSlices) => {
                let others = (0..self.size).filter(|member| *member != self.rank);
                others.for_each(|member| copy(Some(member), self.slice_of(member, len)));
            }
            (None, Reducer::AllInSlices) => {
                let mine = self.slice_of_caller(len);
                copy(None, 0..mine.start);
                copy(None, mine.end..len);
            }
            (_, Reducer::Root(root)) if root == self.rank => {}
            _ => copy(None, 0..len),
        }
    }

    /// Reduces `range` of a piece, block by block, into the results (if `shared`) and the caller's `out`,
    /// where it has one.
    ///
    /// # Safety
    /// Bulk rule 2 allows to read all operands, and bulk rule 3 to write this range of the results.
    pub unsafe fn reduce<K: ReductionKernel>(
        &self,
        piece: Piece,
        range: Range<usize>,
        shared: bool,
        kernel: &K,
    ) -> Result<()> {
        let block = (BLOCK / self.operands.unit).max(1) * self.operands.unit;
        let results = shared.then(|| self.part.wrapping_add(self.size * self.stride));
        let past = results.filter(|_| self.copy.results_go_past());
        if let (Some(results), None) = (results, past) {
            // SAFETY: results lie behind all operands, and bulk rule 3 allows to write them.
            return unsafe {
                self.blocks(piece, range, block, |from| results.wrapping_add(from), None, kernel)
            };
        }
        if !shared && self.operands.out != self.operands.own.cast_mut() {
            let place = |from| self.operands.out.wrapping_add(piece.at + from);
            // SAFETY: `out` can be written (`Operands::new`), and holds no operands.
            return unsafe { self.blocks(piece, range, block, place, None, kernel) };
        }
        if block > BLOCK {
            let mut room = Scratch::of(block)?;
            // SAFETY: room for a block, of our own; bulk rule 3 allows to write the results.
            return unsafe { self.blocks(piece, range, block, |_| room.as_mut_ptr(), past, kernel) };
        }
        let mut room = MaybeUninit::<Block>::uninit();
        // SAFETY: room for a block, of our own; bulk rule 3 allows to write the results.
        unsafe { self.blocks(piece, range, block, |_| room.as_mut_ptr().cast(), past, kernel) }
    }

    /// # Safety
    /// Bulk rule 2 allows to read all operands; `place` returns room for `block` bytes of results (less, at the end)
    /// that begin at its argument, which holds no operands that are still needed. Where `past` says where results are
    /// to be copied to past the cache, bulk rule 3 allows to write them there.
    unsafe fn blocks<K: ReductionKernel>(
        &self,
        Piece { at, .. }: Piece,
        range: Range<usize>,
        block: usize,
        mut place: impl FnMut(usize) -> *mut u8,
        past: Option<*mut u8>,
        kernel: &K,
    ) -> Result<()> {
        let room = block.min(range.len());
        let mut kept = Scratch::of(if self.apart { room * self.size } else { 0 })?;
        for from in range.clone().step_by(block) {
            let len = block.min(range.end - from);
            let shown = |member: usize| {
                self.part.wrapping_add(self.shares.of(member) * self.stride + from).cast_const()
            };
            if self.apart {
                for member in (1..self.size).map(|step| (self.rank + step) % self.size) {
                    // SAFETY: bulk rule 2; a member has `len` bytes from there on, and the memory is ours.
                    unsafe { copy_run(shown(member), kept[member * room..][..len].as_mut_ptr(), len) };
                }
            }
            let operand = |member: usize| {
                if member != self.rank && self.apart {
                    return &kept[member * room..][..len];
                }
                let own = self.operands.own.wrapping_add(at + from);
                let first = if member == self.rank { own } else { shown(member) };
                // SAFETY: bulk rule 2; the caller's own operands can be read (`Operands::new`).
                unsafe { core::slice::from_raw_parts(first, len) }
            };
            let place = place(from);
            // SAFETY: `place` has room for `len` bytes, which are written before they are borrowed.
            let acc = unsafe {
                copy_run(operand(self.size - 1).as_ptr(), place, len);
                core::slice::from_raw_parts_mut(place, len)
            };
            (0..self.size - 1).rev().try_for_each(|member| kernel.reduce(operand(member), acc))?;
            if let Some(results) = past {
                // SAFETY: the results' place is as long as the piece, and is no room of our own.
                unsafe { copy_nontemporal(place, results.add(from), len) };
            }
            let to = self.operands.out.wrapping_add(at + from);
            if !self.operands.out.is_null() && to != place {
                // While it is in the nearest cache. In place, these are the operands that have just been used.
                // SAFETY: `out` is as long as `own` and can be written (`Operands::new`).
                unsafe { copy_run(place, to, len) };
            }
        }
        Ok(())
    }

    /// Copies the results of a piece, but for `mine`, from a part;
    /// first those behind it, so that not all begin with one member's.
    ///
    /// # Safety
    /// Bulk rule 3 allows to read the results; there is an `out`.
    pub unsafe fn fetch(&self, part: *const u8, Piece { at, len }: Piece, mine: Range<usize>) {
        let results = part.wrapping_add(self.size * self.stride);
        let to = self.operands.out.wrapping_add(at);
        // SAFETY: bulk rule 3; results are at most a stride long, and `out` can be written (`Operands::new`).
        unsafe {
            copy_run(results.add(mine.end), to.add(mine.end), len - mine.end);
            copy_run(results, to, mine.start);
        }
    }
}

/// Room for a block, on a boundary that suits every type.
#[repr(align(64))]
struct Block {
    _bytes: [u8; BLOCK],
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 3;
    const LEN: usize = 100_000;

    struct Subtract;

    impl ReductionKernel for Subtract {
        fn commutes(&self) -> bool {
            false
        }
        fn unit(&self) -> usize {
            1
        }
        fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
            right.iter_mut().zip(left).for_each(|(right, left)| *right = left.wrapping_sub(*right));
            Ok(())
        }
    }

    fn operand(member: usize, at: usize) -> u8 {
        (at * (member + 3) % 251) as u8
    }

    fn all_get_the_results(times: impl Fn() -> CopyTimes, in_place: bool) {
        let mut own: Vec<Vec<u8>> =
            (0..SIZE).map(|member| (0..LEN).map(|at| operand(member, at)).collect()).collect();
        let mut out = vec![vec![0; LEN]; SIZE];
        let stride = LEN.next_multiple_of(64);
        let mut part = vec![0_u8; stride * (SIZE + 1)];
        let part = part.as_mut_ptr();
        let piece = Piece { at: 0, len: LEN };
        let divisions: Vec<Division> = (0..SIZE)
            .map(|rank| {
                let from = own[rank].as_mut_ptr();
                let to = if in_place { from } else { out[rank].as_mut_ptr() };
                // SAFETY: both hold `LEN` bytes, and nobody else uses them below.
                let operands = unsafe { Operands::new(from, to, LEN, 1) };
                let copy = Learned { rank, times: Some((0..SIZE).map(|_| times()).collect()) };
                let (shares, apart) = (Shares::FIXED, false);
                Division { operands, stride, rank, size: SIZE, copy, part, shares, apart }
            })
            .collect();
        // SAFETY: the members take their turns, so each does alone what it may do;
        // the part has room for all operands and the results.
        unsafe {
            divisions.iter().for_each(|member| member.contribute(piece, Reducer::AllInSlices));
            for member in &divisions {
                member.reduce(piece, member.slice_of_caller(LEN), true, &Subtract).expect("no error");
            }
            divisions.iter().for_each(|member| member.fetch(part, piece, member.slice_of_caller(LEN)));
        }
        let expected = |at: usize| operand(0, at).wrapping_sub(operand(1, at).wrapping_sub(operand(2, at)));
        for results in if in_place { &own } else { &out } {
            let wrong = (0..LEN).find(|&at| results[at] != expected(at));
            assert_eq!(wrong, None, "the first result that is wrong");
        }
    }

    #[test]
    fn a_root_that_reduces_alone_shows_nothing() {
        let own = [1_u8; LEN];
        let mut part = vec![0_u8; 2 * LEN];
        for (rank, shown) in [(0, 0), (1, LEN)] {
            // SAFETY: nobody writes the operands, and there is no result.
            let operands = unsafe { Operands::new(own.as_ptr(), core::ptr::null_mut(), LEN, 1) };
            let (copy, shares) = (Learned { rank, times: None }, Shares::FIXED);
            let division = Division {
                operands,
                stride: LEN,
                rank,
                size: 2,
                copy,
                part: part.as_mut_ptr(),
                shares,
                apart: false,
            };
            // SAFETY: nobody else uses the part, which has room for both members' operands.
            unsafe { division.contribute(Piece { at: 0, len: LEN }, Reducer::Root(0)) };
            assert_eq!(part.iter().map(|byte| usize::from(*byte)).sum::<usize>(), shown);
        }
    }

    #[test]
    fn however_operands_are_copied_all_get_the_results() {
        for in_place in [false, true] {
            all_get_the_results(CopyTimes::default, in_place);
            all_get_the_results(CopyTimes::going_past, in_place);
        }
    }
}
