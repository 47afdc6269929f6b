//! Collectives as sequences of rounds. Each says by `Ok(false)` that it does not do this case, before anything has happened,
//! and all members say the same.

use super::rounds::Arrival;
use super::storage::PAYLOAD;
use super::team::{Meeting, Readers, What};
use crate::coll::Fold;
use crate::coll::choice::Kind;
use crate::config::Id;
use crate::error::Result;

/// Bytes of operands that are combined at a time: they stay in the nearest cache for all members' turns.
const BLOCK: usize = 8 << 10;

/// A slot's payload, on a boundary that suits every type.
#[repr(align(16))]
struct Operand([u8; PAYLOAD]);

impl Meeting<'_> {
    /// Nobody leaves before everybody has come.
    ///
    /// # Errors
    /// Those of waiting.
    pub fn barrier(&mut self) -> Result<()> {
        self.enter()?;
        if !self.arrive(|_| {})? {
            self.all_here()?;
        }
        self.leave();
        Ok(())
    }

    /// Everybody's `data` becomes that of `root`.
    ///
    /// # Errors
    /// Those of waiting; [`crate::Error::Other`] where members disagree about the operation.
    pub fn bcast(&mut self, data: &mut [u8], root: usize) -> Result<bool> {
        if !self.has_room(data.len())? {
            return Ok(false);
        }
        let what = What::new(Kind::Bcast, root, data.len());
        let piece = self.room_from_root();
        let one = data.len() <= piece;
        let is_root = self.rank() == root;
        for piece in pieces(data, piece) {
            let len = piece.len();
            let done = if is_root {
                self.from_root(what, root, len, |to| to.copy_from_slice(piece), |_| {})
            } else {
                self.from_root(what, root, len, |_| {}, |from| piece.copy_from_slice(from))
            };
            self.settle(done, one)?;
        }
        Ok(true)
    }

    /// After one of several rounds nobody knows any more which one the others are in, if this one failed.
    fn settle(&mut self, done: Result<()>, only: bool) -> Result<()> {
        if only { done } else { done.map_err(|error| self.break_with(error)) }
    }

    /// `all` consists of a block for each member, of equal length; the caller's own is filled in, and afterwards all are.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub fn allgather(&mut self, all: &mut [u8]) -> Result<bool> {
        let (rank, size) = (self.rank(), self.size());
        let block = all.len() / size;
        if !self.has_room(block)? {
            return Ok(false);
        }
        let what = What::new(Kind::Allgather, 0, block);
        let room = if block <= PAYLOAD { PAYLOAD } else { self.room_among_all() };
        let mut at = 0;
        loop {
            let len = room.min(block - at);
            let own = all[rank * block + at..][..len].as_ptr();
            // SAFETY: the caller's own block, which is not written below, where `all` is borrowed again.
            let own = unsafe { core::slice::from_raw_parts(own, len) };
            let done = self.among_all(
                what,
                len,
                |to| to.copy_from_slice(own),
                true,
                |from, bytes| {
                    if from != rank {
                        all[from * block + at..][..len].copy_from_slice(bytes);
                    }
                    Ok(())
                },
            );
            self.settle(done, block <= room)?;
            at += len;
            if at == block {
                return Ok(true);
            }
        }
    }

    /// Largest block of an alltoall that goes this way, in bytes.
    pub(in crate::coll) fn alltoall_room(&mut self) -> usize {
        let size = self.size();
        let one = self.room_among_all() / size & !15;
        // Tiny pieces make many rounds: then messages are better.
        if one < 64 {
            PAYLOAD / size
        } else {
            (self.engine.config().number(Id::CollAlltoallMost) as usize).max(one)
        }
    }

    /// Every member has a block of `block` bytes for every member, at most [`Self::alltoall_room`]. `read` copies a stretch of the
    /// caller's block for a member, `write` one of the block from a member.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub fn alltoall(
        &mut self,
        block: usize,
        mut read: impl FnMut(usize, usize, &mut [u8]),
        mut write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<bool> {
        let (rank, size) = (self.rank(), self.size());
        if block > self.alltoall_room() || !self.has_room(block * size)? {
            return Ok(false);
        }
        let what = What::new(Kind::Alltoall, 0, block);
        let most = if block * size <= PAYLOAD { block } else { self.room_among_all() / size & !15 };
        let mut at = 0;
        loop {
            let len = most.min(block - at);
            // Blocks begin where elements may, and no two members' blocks are in one stretch of memory.
            let stride = if block * size <= PAYLOAD { len } else { len.next_multiple_of(16) };
            let total = if stride == len { len * size } else { stride * size };
            let done = self.among_all(
                what,
                total,
                |to| (0..size).for_each(|peer| read(peer, at, &mut to[peer * stride..][..len])),
                true,
                |from, bytes| {
                    write(from, at, &bytes[rank * stride..][..len]);
                    Ok(())
                },
            );
            self.settle(done, block <= most)?;
            at += len;
            if at == block {
                return Ok(true);
            }
        }
    }

    /// At `root`, the `len` bytes at `out` become the combination of everybody's at `own`, elements of `unit` bytes; elsewhere
    /// `out` may be null.
    ///
    /// # Safety
    /// `own` can be read and, at `root`, `out` written by nobody else until this returns; they may be the same place.
    ///
    /// # Errors
    /// As for [`Self::bcast`], and those of the operation.
    pub unsafe fn reduce<F: Fold>(
        &mut self,
        own: *const u8,
        out: *mut u8,
        (len, unit): (usize, usize),
        fold: &F,
        root: usize,
    ) -> Result<bool> {
        let what = What::new(Kind::Reduce, root, len);
        let out = if self.rank() == root { out } else { core::ptr::null_mut() };
        if len > PAYLOAD {
            // SAFETY: the caller's promise.
            return unsafe { self.slices(what, own, out, (len, unit), fold) };
        }
        self.enter()?;
        // SAFETY: the caller's promise; a slot is no user's memory.
        self.say(what, |payload| unsafe { own.copy_to_nonoverlapping(payload.as_mut_ptr(), len) });
        self.arrive(|_| {})?;
        let mut combined = Ok(());
        if !out.is_null() {
            self.all_here()?;
            let mut acc = Operand([0; PAYLOAD]);
            combined = self.combine(what, &mut acc.0[..len], fold);
            // SAFETY: as above.
            unsafe { out.copy_from_nonoverlapping(acc.0.as_ptr(), len) };
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
    /// As for [`Self::bcast`], and those of the operation.
    pub unsafe fn allreduce<F: Fold>(
        &mut self,
        own: *const u8,
        out: *mut u8,
        (len, unit): (usize, usize),
        fold: &F,
    ) -> Result<bool> {
        let what = What::new(Kind::Allreduce, 0, len);
        if len > PAYLOAD {
            // SAFETY: the caller's promise.
            return unsafe { self.slices(what, own, out, (len, unit), fold) };
        }
        self.enter()?;
        // SAFETY: the caller's promise; a slot is no user's memory.
        self.say(what, |payload| unsafe { own.copy_to_nonoverlapping(payload.as_mut_ptr(), len) });
        let (mut acc, mut combined) = (Operand([0; PAYLOAD]), Ok(()));
        let acc = &mut acc.0[..len];
        let last = self.arrive(|meeting| {
            combined = meeting.combine(what, acc, fold);
            let good = combined.is_ok();
            meeting.conclude(what, good, |payload| payload[..len].copy_from_slice(acc));
        })?;
        if !last {
            self.all_here()?;
            combined = match self.arrival {
                Arrival::Flags => self.combine(what, acc, fold),
                Arrival::Count => self.learn(what, |payload| acc.copy_from_slice(&payload[..len])),
            };
        }
        self.leave();
        combined?;
        // SAFETY: as above.
        unsafe { out.copy_from_nonoverlapping(acc.as_ptr(), len) };
        Ok(true)
    }

    /// Combines what is in all slots, in rank order, from the top: every rank that does so gets the same, to the bit.
    fn combine<F: Fold>(&mut self, what: What, acc: &mut [u8], fold: &F) -> Result<()> {
        let (len, top) = (acc.len(), self.size() - 1);
        self.hear(top, what, |payload| acc.copy_from_slice(&payload[..len]))?;
        (0..top)
            .rev()
            .try_for_each(|member| self.hear(member, what, |payload| fold.fold(&payload[..len], acc))?)
    }

    /// Combines operands of any length in pieces of which every member combines a slice. Who has an `out` gets the result.
    ///
    /// # Safety
    /// As for [`Self::allreduce`]; `out` may be null.
    unsafe fn slices<F: Fold>(
        &mut self,
        what: What,
        own: *const u8,
        out: *mut u8,
        (total, unit): (usize, usize),
        fold: &F,
    ) -> Result<bool> {
        // Everybody's operands and the results lie in one part.
        let stride = self.rounds().storage().part_bytes() / (self.size() + 1) & !63;
        let piece = stride.min(self.engine.config().coll_piece()) / unit * unit;
        if piece == 0 || !self.has_room(total)? {
            return Ok(false);
        }
        let cut = Cut { own, stride, unit, rank: self.rank(), size: self.size() };
        let (mut at, mut before, mut result) = (0, None, Ok(()));
        loop {
            // The results of a piece are fetched in the round of the next one; so there is one round more than pieces.
            let len = piece.min(total - at);
            self.enter()?;
            let part = if len > 0 { Some(self.part(Readers::NextRound, true)?) } else { None };
            if let Some(part) = part {
                // SAFETY: coll rule 6: the part is free and this round's; every member writes its own operands.
                unsafe { cut.contribute(part, at, len) };
            }
            self.say(what, |_| {});
            self.arrive(|_| {})?;
            if part.is_some() || !out.is_null() {
                self.all_here()?;
            }
            if let Some(part) = part {
                if at == 0 {
                    let same = (0..cut.size).try_for_each(|member| self.hear(member, what, |_| ()));
                    self.settle(same, false)?;
                }
                // SAFETY: coll rule 6: all members have written their operands before they arrived, and each writes its own slice
                // of the results.
                result = result.and(unsafe { cut.combine(part, at, len, fold) });
            }
            if let (Some((results, at, len)), false) = (before, out.is_null()) {
                // SAFETY: everybody has written its slice of the results before it arrived in this round; the caller's promise.
                unsafe { out.add(at).copy_from_nonoverlapping(results, len) };
            }
            self.leave();
            let Some(part) = part else { return result.map(|()| true) };
            before = Some((part.wrapping_add(cut.size * stride).cast_const(), at, len));
            at += len;
        }
    }
}

/// How members share the work on a piece: operands of member m at `m * stride` of the part, results behind them all, of which
/// each member writes one slice of whole elements.
struct Cut {
    own: *const u8,
    stride: usize,
    unit: usize,
    rank: usize,
    size: usize,
}

impl Cut {
    /// The slice of a piece of `len` bytes that the caller combines.
    fn mine(&self, len: usize) -> core::ops::Range<usize> {
        let cut = |slice: usize| len / self.unit * slice / self.size * self.unit;
        cut(self.rank)..cut(self.rank + 1)
    }

    /// Puts the caller's operands where the others read them, but for those that it combines itself.
    ///
    /// # Safety
    /// `own` has `at + len` bytes; the caller alone writes its stride of `part`.
    unsafe fn contribute(&self, part: *mut u8, at: usize, len: usize) {
        let (mine, to) = (self.mine(len), part.wrapping_add(self.rank * self.stride));
        let from = self.own.wrapping_add(at);
        // SAFETY: the caller's promise; `len` is at most a stride.
        unsafe {
            from.copy_to_nonoverlapping(to, mine.start);
            from.add(mine.end).copy_to_nonoverlapping(to.add(mine.end), len - mine.end);
        }
    }

    /// Combines the caller's slice of everybody's operands, from the top, block by block.
    ///
    /// # Safety
    /// All have contributed to `part`, and nobody else writes the caller's slice of the results.
    unsafe fn combine<F: Fold>(&self, part: *mut u8, at: usize, len: usize, fold: &F) -> Result<()> {
        let mine = self.mine(len);
        let block = (BLOCK / self.unit).max(1) * self.unit;
        let results = part.wrapping_add(self.size * self.stride);
        for from in mine.clone().step_by(block) {
            let len = block.min(mine.end - from);
            let operand = |member: usize| {
                let theirs = part.wrapping_add(member * self.stride).cast_const();
                let first = if member == self.rank { self.own.wrapping_add(at) } else { theirs };
                // SAFETY: the caller's promise: written, and by nobody until the caller has arrived twice.
                unsafe { core::slice::from_raw_parts(first.add(from), len) }
            };
            // SAFETY: the caller's promise; results overlap no operands.
            let acc = unsafe { core::slice::from_raw_parts_mut(results.add(from), len) };
            acc.copy_from_slice(operand(self.size - 1));
            (0..self.size - 1).rev().try_for_each(|member| fold.fold(operand(member), acc))?;
        }
        Ok(())
    }
}

/// `data` in pieces of at most `len` bytes; one, if it is empty: an operation has at least one round.
fn pieces(data: &mut [u8], len: usize) -> impl Iterator<Item = &mut [u8]> {
    let empty: Option<&mut [u8]> = data.is_empty().then_some(&mut []);
    data.chunks_mut(len).chain(empty)
}
