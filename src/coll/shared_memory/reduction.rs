//! Reductions in rounds. Operands are combined in rank order, from the highest down, whoever does it: the result has the same bits
//! on every rank and whenever it is computed.
//!
//! Who does it depends on what a round costs. Few bytes: one rank combines all (the root; who arrives last in a counted round) or, in
//! flagged rounds, everybody for itself; one round. Many bytes: each combines a slice of all operands, and fetches the others' slices a
//! round later.

use super::{OperationKey, Readers, TeamGuard};
use crate::coll::ReductionKernel;
use crate::error::Result;
use crate::events::Collective;
use crate::team::{Arrival, PAYLOAD};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Bytes of operands that are combined at a time: they stay in the nearest cache for all members' turns.
const BLOCK: usize = 8 << 10;

/// Bytes of each member up to which another round costs more than that one rank combines everything.
const ALONE: usize = 8 << 10;

/// Bytes of each of two members from which each combines one half: the copies and reads that are saved are worth the round more.
const HALVED: usize = 256 << 10;

/// Room for a slot's payload, on a boundary that suits every type.
#[repr(align(16))]
struct Operand(MaybeUninit<[u8; PAYLOAD]>);

impl Operand {
    const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// The room, with the first bytes of `payload` in it, as many as `len` says.
    #[inline(always)]
    fn fill(&mut self, payload: &[u8; PAYLOAD], len: usize) -> &mut [u8] {
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: `payload[..len]` has checked that both are long enough; what is borrowed has just been written.
        unsafe {
            copy_few(payload[..len].as_ptr(), to, len);
            core::slice::from_raw_parts_mut(to, len)
        }
    }
}

/// Copies; the commonest sizes without a call.
///
/// # Safety
/// Both are `len` bytes and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_few(from: *const u8, to: *mut u8, len: usize) {
    match len {
        // SAFETY: the caller's promise.
        8 => unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        // SAFETY: the caller's promise.
        4 => unsafe { to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()) },
        // SAFETY: the caller's promise.
        _ => unsafe { from.copy_to_nonoverlapping(to, len) },
    }
}

/// Who combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reducer {
    /// Who wants the result, each for itself.
    EachForItself,
    /// Who arrives last, for all.
    Last,
    /// Each a slice, for all who want it.
    AllInSlices,
}

impl TeamGuard<'_> {
    /// At `root`, the `len` bytes at `out` become the combination of everybody's at `own`, elements of `unit` bytes; elsewhere
    /// `out` may be null.
    ///
    /// # Safety
    /// `own` can be read and, at `root`, `out` written by nobody else until this returns; they may be the same place.
    ///
    /// # Errors
    /// Those of waiting and of the operation; [`crate::Error::Other`] where members disagree about it.
    pub unsafe fn reduce<K: ReductionKernel>(
        &mut self,
        own: *const u8,
        out: *mut u8,
        (len, unit): (usize, usize),
        kernel: &K,
        root: usize,
    ) -> Result<bool> {
        let what = OperationKey::new(Collective::Reduce, root, len);
        let out = if self.rank() == root { out } else { core::ptr::null_mut() };
        if len > PAYLOAD {
            let who =
                if len <= ALONE || self.size() == 2 { Reducer::EachForItself } else { Reducer::AllInSlices };
            // SAFETY: the caller's promise.
            return unsafe { self.combine_bulk(what, who, own, out, (len, unit), kernel) };
        }
        self.enter()?;
        // SAFETY: the caller's promise; a slot is no user's memory, and `len` fits.
        self.write_slot(what, |payload| unsafe { copy_few(own, payload.as_mut_ptr(), len) });
        self.arrive(|_| {})?;
        let mut combined = Ok(());
        if !out.is_null() {
            self.wait_complete()?;
            let mut room = Operand::new();
            // SAFETY: as above.
            combined = self
                .combine(what, &mut room, len, kernel)
                .map(|acc| unsafe { copy_few(acc.as_ptr(), out, len) });
        }
        self.leave();
        combined.map(|()| true)
    }

    /// The `len` bytes at `out` become the combination of everybody's at `own`, elements of `unit` bytes.
    ///
    /// # Safety
    /// `own` can be read and `out` written by nobody else until this returns; they may be the same place.
    ///
    /// # Errors
    /// As for [`Self::reduce`].
    pub unsafe fn allreduce<K: ReductionKernel>(
        &mut self,
        own: *const u8,
        out: *mut u8,
        (len, unit): (usize, usize),
        kernel: &K,
    ) -> Result<bool> {
        let what = OperationKey::new(Collective::Allreduce, 0, len);
        if len > PAYLOAD {
            let who = match self.arrival {
                Arrival::Flags if len <= ALONE || (self.size() == 2 && len < HALVED) => {
                    Reducer::EachForItself
                }
                Arrival::Count if len <= ALONE => Reducer::Last,
                _ => Reducer::AllInSlices,
            };
            // SAFETY: the caller's promise.
            return unsafe { self.combine_bulk(what, who, own, out, (len, unit), kernel) };
        }
        self.enter()?;
        // SAFETY: the caller's promise; a slot is no user's memory, and `len` fits.
        self.write_slot(what, |payload| unsafe { copy_few(own, payload.as_mut_ptr(), len) });
        let mut combined = Ok(());
        let last = self.arrive(|team| {
            let mut room = Operand::new();
            combined = team.combine(what, &mut room, len, kernel).map(|acc| {
                team.write_outcome(what, true, |payload| payload[..len].copy_from_slice(acc));
                // SAFETY: as above.
                unsafe { copy_few(acc.as_ptr(), out, len) };
            });
            if combined.is_err() {
                team.write_outcome(what, false, |_| {});
            }
        })?;
        if !last {
            self.wait_complete()?;
            combined = match self.arrival {
                Arrival::Flags => {
                    let mut room = Operand::new();
                    let acc = self.combine(what, &mut room, len, kernel);
                    // SAFETY: as above.
                    acc.map(|acc| unsafe { copy_few(acc.as_ptr(), out, len) })
                }
                Arrival::Count => {
                    // SAFETY: as above.
                    self.read_outcome(what, |payload| unsafe { copy_few(payload[..len].as_ptr(), out, len) })
                }
            };
        }
        self.leave();
        combined.map(|()| true)
    }

    /// Combines what is in all slots, in `room`.
    #[inline]
    fn combine<'r, K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        room: &'r mut Operand,
        len: usize,
        kernel: &K,
    ) -> Result<&'r mut [u8]> {
        let top = self.size() - 1;
        let acc = self.read_slot(top, what, |payload| room.fill(payload, len))?;
        for member in (0..top).rev() {
            self.read_slot(member, what, |payload| kernel.reduce(&payload[..len], acc))??;
        }
        Ok(acc)
    }

    /// That all members are in the same operation, once they have arrived.
    fn agree(&mut self, what: OperationKey) -> Result<()> {
        (0..self.size()).try_for_each(|member| self.read_slot(member, what, |_| ()))
    }

    /// Combines operands of any length. Who has an `out` gets the result.
    ///
    /// # Safety
    /// As for [`Self::allreduce`]; `out` may be null.
    unsafe fn combine_bulk<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        who: Reducer,
        own: *const u8,
        out: *mut u8,
        (total, unit): (usize, usize),
        kernel: &K,
    ) -> Result<bool> {
        // Everybody's operands and the results lie in one part.
        let stride = (self.rounds().storage().part_bytes() / (self.size() + 1)) & !63;
        let most = self.engine.config().coll_piece();
        // A half each, so twice as much at a time.
        let most = if who == Reducer::AllInSlices && self.size() == 2 { 2 * most } else { most };
        let piece = stride.min(most) / unit * unit;
        if piece == 0 || !self.has_room(total)? {
            return Ok(false);
        }
        let mut cut =
            Cut { own, out, stride, unit, rank: self.rank(), size: self.size(), part: core::ptr::null_mut() };
        let only = total <= piece;
        let mut result = Ok(());
        let mut before = None;
        for at in (0..total).step_by(piece) {
            let stretch = Stretch { at, len: piece.min(total - at) };
            self.enter()?;
            let readers = if who == Reducer::AllInSlices { Readers::NextRound } else { Readers::Stay };
            cut.part = self.part(readers, true)?;
            // SAFETY: team rule 6: the part is free and this round's; every member writes its own operands.
            unsafe { cut.contribute(stretch, who) };
            self.write_slot(what, |_| {});
            let done = match who {
                // SAFETY: the caller's promise, and what `combine_bulk` has done.
                Reducer::EachForItself => unsafe { self.for_itself(what, &cut, stretch, kernel) },
                // SAFETY: as above.
                Reducer::Last => unsafe { self.by_the_last(what, &cut, stretch, kernel) },
                // SAFETY: as above; `before` is the stretch of the round before.
                Reducer::AllInSlices => unsafe { self.by_all(what, &cut, stretch, before.take(), kernel) },
            };
            let done = self.settle(done, only && who != Reducer::AllInSlices);
            result = result.and(done);
            before = Some((cut.part, stretch));
            self.leave();
            result.clone()?;
        }
        if let (Reducer::AllInSlices, Some((part, stretch))) = (who, before) {
            // The results of a piece are fetched in the round of the next one; so there is one round more than pieces.
            self.enter()?;
            self.write_slot(what, |_| {});
            self.arrive(|_| {})?;
            if !out.is_null() {
                self.wait_complete()?;
                // SAFETY: everybody has written its slice before it arrived in this round; the caller's promise.
                unsafe { cut.fetch(part, stretch, cut.mine(stretch.len)) };
            }
            self.leave();
        }
        result.map(|()| true)
    }

    /// Arrives with a piece; who wants the result combines it.
    ///
    /// # Safety
    /// The operands of this round are in `cut.part`.
    unsafe fn for_itself<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        cut: &Cut,
        stretch: Stretch,
        kernel: &K,
    ) -> Result<()> {
        self.arrive(|_| {})?;
        if cut.out.is_null() {
            return Ok(());
        }
        self.wait_complete()?;
        self.agree(what)?;
        // SAFETY: all have contributed.
        unsafe { cut.combine(stretch, 0..stretch.len, false, kernel) }
    }

    /// Arrives with a piece; who comes last combines it.
    ///
    /// # Safety
    /// The operands of this round are in `cut.part`.
    unsafe fn by_the_last<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        cut: &Cut,
        stretch: Stretch,
        kernel: &K,
    ) -> Result<()> {
        let mut combined = Ok(());
        let last = self.arrive(|team| {
            combined = team.agree(what);
            if combined.is_ok() {
                // SAFETY: all have contributed, and who comes last alone writes the results.
                combined = unsafe { cut.combine(stretch, 0..stretch.len, true, kernel) };
            }
            let good = combined.is_ok();
            team.write_outcome(what, good, |_| {});
        })?;
        if last {
            return combined;
        }
        self.wait_complete()?;
        // SAFETY: the results were written before the round was complete.
        self.read_outcome(what, |_| unsafe { cut.fetch(cut.part, stretch, 0..0) })
    }

    /// Arrives with a piece; all combine a slice of it, and fetch the others' slices of the piece before.
    ///
    /// # Safety
    /// The operands of this round are in `cut.part`; `before` is what this was called with in the round before.
    unsafe fn by_all<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        cut: &Cut,
        stretch: Stretch,
        before: Option<(*mut u8, Stretch)>,
        kernel: &K,
    ) -> Result<()> {
        self.arrive(|_| {})?;
        self.wait_complete()?;
        if before.is_none() {
            self.agree(what)?;
        }
        // SAFETY: all have contributed, and each writes its own slice of the results.
        let combined = unsafe { cut.combine(stretch, cut.mine(stretch.len), true, kernel) };
        if let (Some((part, stretch)), false) = (before, cut.out.is_null()) {
            // SAFETY: everybody has written its slice of those results before it arrived in this round.
            unsafe { cut.fetch(part, stretch, cut.mine(stretch.len)) };
        }
        combined
    }
}

/// A piece: where it begins and how long it is, in bytes.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    at: usize,
    len: usize,
}

/// How members share the work on a piece: operands of member m at `m * stride` of the part, results behind them all.
struct Cut {
    own: *const u8,
    /// Where the result goes; null if the caller gets none.
    out: *mut u8,
    stride: usize,
    unit: usize,
    rank: usize,
    size: usize,
    part: *mut u8,
}

impl Cut {
    /// The slice of a piece of `len` bytes that the caller combines where all do: whole elements.
    fn mine(&self, len: usize) -> Range<usize> {
        let cut = |slice: usize| len / self.unit * slice / self.size * self.unit;
        cut(self.rank)..cut(self.rank + 1)
    }

    /// Puts the caller's operands where the others read them, but for those that only the caller needs.
    ///
    /// # Safety
    /// `own` has all of the stretch; the caller alone writes its stride of the part.
    unsafe fn contribute(&self, Stretch { at, len }: Stretch, who: Reducer) {
        let (to, from) = (self.part.wrapping_add(self.rank * self.stride), self.own.wrapping_add(at));
        let mine = if who == Reducer::AllInSlices { self.mine(len) } else { 0..0 };
        // SAFETY: the caller's promise; `len` is at most a stride.
        unsafe {
            from.copy_to_nonoverlapping(to, mine.start);
            from.add(mine.end).copy_to_nonoverlapping(to.add(mine.end), len - mine.end);
        }
    }

    /// Combines `range` of a piece, block by block, into the results (if `shared`) and the caller's `out`, where it has one.
    ///
    /// # Safety
    /// All have contributed to the part, and nobody else writes this range of the results.
    unsafe fn combine<K: ReductionKernel>(
        &self,
        stretch: Stretch,
        range: Range<usize>,
        shared: bool,
        kernel: &K,
    ) -> Result<()> {
        let block = (BLOCK / self.unit).max(1) * self.unit;
        if shared {
            let results = self.part.wrapping_add(self.size * self.stride);
            // SAFETY: the caller's promise.
            return unsafe { self.blocks(stretch, range, block, |from| results.wrapping_add(from), kernel) };
        }
        if self.out != self.own.cast_mut() {
            // SAFETY: the caller's promise; `out` holds no operands.
            return unsafe {
                self.blocks(stretch, range, block, |from| self.out.wrapping_add(stretch.at + from), kernel)
            };
        }
        if block > BLOCK {
            let mut room = crate::coll::Scratch::zeroed(block);
            // SAFETY: the caller's promise; room for a block of our own.
            return unsafe { self.blocks(stretch, range, block, |_| room.as_mut_ptr(), kernel) };
        }
        let mut room = MaybeUninit::<Block>::uninit();
        // SAFETY: as above.
        unsafe { self.blocks(stretch, range, block, |_| room.as_mut_ptr().cast(), kernel) }
    }

    /// # Safety
    /// As for [`Self::combine`]; `place` gives room for the combination of `block` bytes (less, at the end) from where it is told on,
    /// which holds no operands that are still needed.
    unsafe fn blocks<K: ReductionKernel>(
        &self,
        Stretch { at, .. }: Stretch,
        range: Range<usize>,
        block: usize,
        mut place: impl FnMut(usize) -> *mut u8,
        kernel: &K,
    ) -> Result<()> {
        for from in range.clone().step_by(block) {
            let len = block.min(range.end - from);
            let operand = |member: usize| {
                let theirs = self.part.wrapping_add(member * self.stride).cast_const();
                let first = if member == self.rank { self.own.wrapping_add(at) } else { theirs };
                // SAFETY: the caller's promise: written, and by nobody until the caller has arrived again.
                unsafe { core::slice::from_raw_parts(first.add(from), len) }
            };
            let place = place(from);
            // SAFETY: the caller's promise; written before it is borrowed.
            let acc = unsafe {
                place.copy_from_nonoverlapping(operand(self.size - 1).as_ptr(), len);
                core::slice::from_raw_parts_mut(place, len)
            };
            (0..self.size - 1).rev().try_for_each(|member| kernel.reduce(operand(member), acc))?;
            let to = self.out.wrapping_add(at + from);
            if !self.out.is_null() && to != place {
                // While it is in the nearest cache. In place, these are the operands that have just been used.
                // SAFETY: `out` is as long as `own`.
                unsafe { to.copy_from_nonoverlapping(place, len) };
            }
        }
        Ok(())
    }

    /// Copies the results of a piece, but for `mine`, from a part.
    ///
    /// # Safety
    /// All have combined; there is an `out`, with all of the stretch.
    unsafe fn fetch(&self, part: *const u8, Stretch { at, len }: Stretch, mine: Range<usize>) {
        let results = part.wrapping_add(self.size * self.stride);
        let to = self.out.wrapping_add(at);
        // SAFETY: the caller's promise; `len` is at most a stride.
        unsafe {
            to.copy_from_nonoverlapping(results, mine.start);
            to.add(mine.end).copy_from_nonoverlapping(results.add(mine.end), len - mine.end);
        }
    }
}

/// Room for a block, on a boundary that suits every type.
#[repr(align(64))]
struct Block {
    _bytes: [u8; BLOCK],
}
