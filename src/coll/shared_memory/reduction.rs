//! Reductions in rounds. Operands are reduced in rank order, from the highest rank down, by whichever member: the
//! result has the same bits on every rank and whenever it is computed.
//!
//! Which member reduces depends on what a round costs. Few bytes take one round: one member reduces everything (the
//! root, or the one that arrives last in a counted round), or, in flagged rounds, each for itself. Many bytes go
//! through the bulk: each member reduces a slice of all operands, and copies the others' slices a round later.
//!
//! In the bulk, operands of member m lie at m strides of the round's part, and the results behind those of all members.
//!
//! - **Bulk rule 1.** A member writes its own operands, if another one reads them, after it has taken the part and
//!   before it arrives (team rule 6).
//! - **Bulk rule 2.** Others' operands are read when the round is complete, or by the member that arrives last; no
//!   member writes them before the reader has arrived again.
//! - **Bulk rule 3.** A slice of the results is written by one member: the last to arrive, or the slice's. Others read
//!   it when they know that this member has arrived in the next round, or that it has completed this one.

use super::algorithm_kind::IN_HEAP;
use super::division::{Division, Learned, Piece, Reducer};
use super::{Hold, OperationKey, Readers, TeamGuard};
use crate::arch::copy_run;
use crate::coll::ReductionKernel;
use crate::error::Result;
use crate::events::Collective;
use crate::team::{PAYLOAD, RoundArrival};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Bytes of each member up to which another round costs more than one member that reduces everything, where each round
/// costs a switch of every rank.
const ALONE: usize = 8 << 10;

/// The same, of all other members together, where each has a CPU.
const ALONE_OF_ALL: usize = 8 << 10;

/// Bytes of each of two members from which each reduces one half:
/// the copies and reads that are saved are worth another round.
const HALVED: usize = 256 << 10;

/// Pieces in which a root that reduces alone gets long operands at least:
/// it reduces one while the others show the next.
const STAGES: usize = 4;

/// The least bytes of such a piece: as many as cost more than the round.
const LEAST_STAGE: usize = 8 << 10;

/// Bytes of operands from which a copy of them pays.
const APART_FROM: usize = 32 << 10;

/// Room for a slot's payload, on a boundary that suits every type.
#[repr(align(16))]
pub(super) struct SlotRoom(MaybeUninit<[u8; PAYLOAD]>);

impl SlotRoom {
    pub(super) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Copies the bytes `range` of `payload` into the room and returns them.
    #[inline(always)]
    fn fill(&mut self, payload: &[u8; PAYLOAD], range: Range<usize>) -> &mut [u8] {
        let (from, to) = (&payload[range], self.0.as_mut_ptr().cast::<u8>());
        // SAFETY: the room is as long as the payload, of which `from` is a part;
        // what is borrowed has just been written.
        unsafe {
            copy_few(from.as_ptr(), to, from.len());
            core::slice::from_raw_parts_mut(to, from.len())
        }
    }
}

/// A member's operands and the place of its result.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    pub(in crate::coll) own: *const u8,
    /// Null if the member gets no result.
    pub(in crate::coll) out: *mut u8,
    pub(in crate::coll) len: usize,
    pub(super) unit: usize,
}

impl Operands {
    /// Names `len` bytes of operands at `own`, in elements of `unit` bytes, and as many at `out` for the result; `out`
    /// is null where there is none. The two may be the same place.
    ///
    /// # Safety
    /// Until the operation has returned, `own` can be read and no other thread writes it, and `out`, unless it is null,
    /// can be written and no other thread uses it.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn new(own: *const u8, out: *mut u8, len: usize, unit: usize) -> Self {
        Self { own, out, len, unit }
    }

    /// Copies the operands into a slot.
    #[inline(always)]
    pub(super) fn load(&self, payload: &mut [u8; PAYLOAD]) {
        // SAFETY: `payload[..len]` has checked its length; a slot is no program's memory, so the two do not overlap.
        unsafe { copy_few(self.own, payload[..self.len].as_mut_ptr(), self.len) };
    }

    /// The bytes of the member's operands from byte `at` on, which nobody writes.
    pub(in crate::coll) fn part(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= self.len);
        if len == 0 {
            // Of no bytes the program may give no address.
            return &[];
        }
        // SAFETY: the operands can be read until the operation has returned (`Operands::new`).
        unsafe { core::slice::from_raw_parts(self.own.add(at), len) }
    }

    /// Copies results to where the member wants them, from byte `at` on; nobody else uses that part of it.
    pub(in crate::coll) fn store_from(&self, at: usize, results: &[u8]) {
        assert!(at + results.len() <= self.len && !self.out.is_null());
        // SAFETY: `out` has `len` bytes, and can be written until the operation has returned (`Operands::new`).
        unsafe { copy_run(results.as_ptr(), self.out.add(at), results.len()) };
    }

    /// Whether the first `bytes` bytes of the result's place hold none of the operands.
    pub(in crate::coll) fn is_apart(&self, bytes: usize) -> bool {
        let (own, out) = (self.own.addr(), self.out.addr());
        out >= own + self.len || own >= out + bytes
    }

    /// Copies the bytes `range` of the operands to the beginning of the result's place, over which they may lie.
    pub(in crate::coll) fn give_own(&self, range: Range<usize>) {
        if range.is_empty() {
            // For no bytes the program may give no address.
            return;
        }
        assert!(range.start <= range.end && range.end <= self.len && !self.out.is_null());
        // SAFETY: the operands can be read, and `out` has room for a result of this length and can be written
        // (`Operands::new`).
        unsafe { self.own.add(range.start).copy_to(self.out, range.len()) };
    }

    /// The first `bytes` bytes of the result's place.
    ///
    /// # Safety
    /// The result is as long as that, no operand lies there but one that is used no more, and nothing else that refers
    /// to the place is used meanwhile.
    pub(in crate::coll) unsafe fn result<'r>(self, bytes: usize) -> &'r mut [u8] {
        if bytes == 0 {
            // For no bytes the program may give no address.
            return &mut [];
        }
        // SAFETY: `out` has so many bytes, which no other thread uses until the operation has returned
        // (`Operands::new`), nor does the caller.
        unsafe { core::slice::from_raw_parts_mut(self.out, bytes) }
    }

    /// Copies the first bytes of `result`, which is no part of the program's memory, to where the member wants it.
    #[inline(always)]
    pub(super) fn store(&self, result: &[u8]) {
        // SAFETY: `result[..len]` has checked its length; `out` is not null here, and can be written until the
        // operation has returned (`Operands::new`).
        unsafe { copy_few(result[..self.len].as_ptr(), self.out, self.len) };
    }
}

/// Copies; the commonest sizes without a call.
///
/// # Safety
/// Both are `len` bytes and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_few(from: *const u8, to: *mut u8, len: usize) {
    match len {
        // SAFETY: both have `len`, which is 8, bytes and do not overlap; arrays of bytes need no alignment.
        8 => unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        // SAFETY: both have `len`, which is 4, bytes and do not overlap; arrays of bytes need no alignment.
        4 => unsafe { to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()) },
        // SAFETY: both have `len` bytes and do not overlap; bytes need no alignment.
        _ => unsafe { from.copy_to_nonoverlapping(to, len) },
    }
}

impl<H: Hold> TeamGuard<'_, H> {
    /// How members show operands. Members that take shares in turn ([`super::Shares`]) have read the places that they
    /// write to; and where ranks outnumber CPUs, who reduces them may have the same CPU, and its cache.
    pub(super) fn copy_of_operands(&mut self) -> Learned {
        let shape = self.engine.config().shape();
        let learns = (shape.streams || shape.is_oversubscribed()) && !self.shares().alternate();
        self.learned(learns)
    }

    /// Whether members copy the `bytes` bytes of operands that they reduce, each beginning behind itself, and reduce
    /// the copies: in rank order, all would read one member's at a time, whose cache gives its lines to one reader as
    /// fast as to all together. Members that share CPUs do not read at the same time.
    pub(super) fn reads_apart(&self, bytes: usize) -> bool {
        self.size() > 2 && bytes >= APART_FROM && !self.engine.config().shape().is_oversubscribed()
    }

    /// Whether one member had better reduce all operands of `len` bytes than each a slice, which takes another round.
    fn is_for_one(&self, len: usize) -> bool {
        match self.engine.config().shape().is_oversubscribed() {
            true => len <= ALONE,
            false => len.saturating_mul(self.size() - 1) <= ALONE_OF_ALL,
        }
    }

    /// Reduces every rank's operands into the result of `root`; the others' place for a result is not used. `false` if
    /// the team cannot do so, before anything has happened.
    ///
    /// # Errors
    /// Those of waiting and of the kernel; [`crate::Error::Other`] where members disagree about the operation.
    pub async fn reduce<K: ReductionKernel>(
        &mut self,
        operands: Operands,
        kernel: &K,
        root: usize,
    ) -> Result<bool> {
        let len = operands.len;
        let key = OperationKey::new(Collective::Reduce, root, len);
        let out = if self.rank() == root { operands.out } else { core::ptr::null_mut() };
        let operands = Operands { out, ..operands };
        if self.goes_by_messages(Collective::Reduce, len) {
            return Ok(false);
        }
        if len > PAYLOAD {
            let alone = self.is_for_one(len) || self.size() == 2;
            let reducer = if alone { Reducer::Root(root) } else { Reducer::AllInSlices };
            return self.reduce_long(key, reducer, Some(root), operands, kernel).await;
        }
        wait!(self, self.begin()?);
        self.write_slot(key, |payload| operands.load(payload));
        self.arrive(|_| {})?;
        let mut reduced = Ok(());
        if !out.is_null() {
            wait!(self, self.completion());
            let mut room = SlotRoom::new();
            reduced =
                self.reduce_slots(key, &mut room, self.size(), 0..len, kernel).map(|acc| operands.store(acc));
        }
        self.leave();
        reduced.map(|()| true)
    }

    /// Reduces every rank's operands into every member's result.
    /// `false` if the team cannot do so, before anything has happened.
    ///
    /// # Errors
    /// As for [`Self::reduce`].
    pub async fn allreduce<K: ReductionKernel>(&mut self, operands: Operands, kernel: &K) -> Result<bool> {
        let len = operands.len;
        let key = OperationKey::new(Collective::Allreduce, 0, len);
        if len > PAYLOAD {
            let reducer = match self.arrival {
                RoundArrival::Flags if self.is_for_one(len) || (self.size() == 2 && len < HALVED) => {
                    Reducer::EachForItself
                }
                RoundArrival::Count if self.is_for_one(len) => Reducer::Last,
                _ => Reducer::AllInSlices,
            };
            return self.reduce_long(key, reducer, None, operands, kernel).await;
        }
        wait!(self, self.begin()?);
        self.write_slot(key, |payload| operands.load(payload));
        let mut reduced = Ok(());
        let last = self.arrive(|team| {
            let mut room = SlotRoom::new();
            reduced = team.reduce_slots(key, &mut room, team.size(), 0..len, kernel).map(|acc| {
                team.write_outcome(key, true, |payload| payload[..len].copy_from_slice(acc));
                operands.store(acc);
            });
            if reduced.is_err() {
                team.write_outcome(key, false, |_| {});
            }
        })?;
        if !last {
            wait!(self, self.completion());
            reduced = match self.arrival {
                RoundArrival::Flags => {
                    let mut room = SlotRoom::new();
                    self.reduce_slots(key, &mut room, self.size(), 0..len, kernel)
                        .map(|acc| operands.store(acc))
                }
                RoundArrival::Count => self.read_outcome(key, |payload| operands.store(payload)),
            };
        }
        self.leave();
        reduced.map(|()| true)
    }

    /// Reduces the bytes `range` of the slots of the first `members`, of which there is one at least, in `room`.
    #[inline]
    pub(super) fn reduce_slots<'r, K: ReductionKernel>(
        &mut self,
        key: OperationKey,
        room: &'r mut SlotRoom,
        members: usize,
        range: Range<usize>,
        kernel: &K,
    ) -> Result<&'r mut [u8]> {
        let top = members - 1;
        let acc = self.read_slot(top, key, |payload| room.fill(payload, range.clone()))?;
        for member in (0..top).rev() {
            self.read_slot(member, key, |payload| kernel.reduce(&payload[range.clone()], acc))??;
        }
        Ok(acc)
    }

    /// Checks that all members, which have arrived, are in the same operation.
    pub(super) fn agree(&mut self, key: OperationKey) -> Result<()> {
        (0..self.size()).try_for_each(|member| self.read_slot(member, key, |_| ()))
    }

    /// Reduces operands that fit into no slot, for `root` or for all: in one step, or through the bulk, piece by piece.
    async fn reduce_long<K: ReductionKernel>(
        &mut self,
        key: OperationKey,
        reducer: Reducer,
        root: Option<usize>,
        operands: Operands,
        kernel: &K,
    ) -> Result<bool> {
        let Operands { out, len: total, unit, .. } = operands;
        if self.is_long(total) && Box::pin(self.reduce_direct(key, operands, root, kernel)).await? {
            return Ok(true);
        }
        // All members' operands and the results lie in one part.
        let share_count = self.size() + 1;
        let room = (self.rounds().storage().most_part_bytes() / share_count) & !63;
        let most = room.min(self.bytes_of_piece(reducer, total, unit)) / unit * unit;
        if most == 0 || !self.make_room(most.min(total).next_multiple_of(64) * share_count).await? {
            return Ok(false);
        }
        if total >= IN_HEAP && Box::pin(self.reduce_in_heap(key, operands, root, kernel)).await? {
            return Ok(true);
        }
        let stride = (self.rounds().storage().part_bytes() / share_count) & !63;
        let (rank, size) = (self.rank(), self.size());
        let (copy, shares, apart) = (self.copy_of_operands(), self.shares(), self.reads_apart(total));
        let mut division =
            Division { operands, stride, rank, size, copy, part: core::ptr::null_mut(), shares, apart };
        let only = total <= most;
        let mut result = Ok(());
        let mut before = None;
        for at in (0..total).step_by(most) {
            let piece = Piece { at, len: most.min(total - at) };
            wait!(self, self.begin()?);
            let readers = if reducer == Reducer::AllInSlices { Readers::NextRound } else { Readers::Stay };
            division.part = self.part(readers, true).await?;
            division.shares = self.shares();
            // SAFETY: bulk rule 1: the part has just been taken, and the caller has not arrived.
            unsafe { division.contribute(piece, reducer) };
            self.write_slot(key, |_| {});
            let done = match reducer {
                // SAFETY: bulk rule 1: the caller's operands are in the part, and it has not arrived.
                Reducer::Root(_) | Reducer::EachForItself => unsafe {
                    self.for_itself(key, &division, piece, kernel).await
                },
                // SAFETY: bulk rule 1: the caller's operands are in the part, and it has not arrived.
                Reducer::Last => unsafe { self.by_the_last(key, &division, piece, kernel).await },
                // SAFETY: bulk rule 1, as for the others; `before` is the piece of the round before.
                Reducer::AllInSlices => unsafe {
                    self.by_all(key, &division, piece, before.take(), kernel).await
                },
            };
            let done = self.settle(done, only && reducer != Reducer::AllInSlices);
            result = result.and(done);
            before = Some((division.part, piece, division.slice_of_caller(piece.len)));
            self.leave();
            result.clone()?;
        }
        if let (Reducer::AllInSlices, Some((part, piece, mine))) = (reducer, before) {
            // The results of a piece are fetched in the round of the next one; so there is one round more than pieces.
            wait!(self, self.begin()?);
            self.write_slot(key, |_| {});
            self.arrive(|_| {})?;
            if !out.is_null() {
                wait!(self, self.completion());
                // SAFETY: bulk rule 3: all have arrived in the round after that of the piece.
                unsafe { division.fetch(part, piece, mine) };
            }
            self.leave();
        }
        result.map(|()| true)
    }

    /// Bytes of each member's operands that are reduced in a round, if there is room for them.
    fn bytes_of_piece(&self, reducer: Reducer, total: usize, unit: usize) -> usize {
        let most = self.engine.config().coll_piece();
        match reducer {
            // A half each, so twice as much at a time.
            Reducer::AllInSlices if self.size() == 2 => 2 * most,
            Reducer::Root(_) => most.min((total / STAGES).max(LEAST_STAGE).max(unit)),
            _ => most,
        }
    }

    /// Arrives with a piece; a caller that wants the result reduces it.
    ///
    /// # Safety
    /// Bulk rule 1: the caller's operands of this round are in `division.part`, and it has not arrived.
    async unsafe fn for_itself<K: ReductionKernel>(
        &mut self,
        key: OperationKey,
        division: &Division,
        piece: Piece,
        kernel: &K,
    ) -> Result<()> {
        self.arrive(|_| {})?;
        if division.operands.out.is_null() {
            return Ok(());
        }
        wait!(self, self.completion());
        self.agree(key)?;
        // SAFETY: bulk rule 2: the round is complete; no results are shared.
        unsafe { division.reduce(piece, 0..piece.len, false, kernel) }
    }

    /// Arrives with a piece; the last to arrive reduces it.
    ///
    /// # Safety
    /// Bulk rule 1: the caller's operands of this round are in `division.part`, and it has not arrived.
    async unsafe fn by_the_last<K: ReductionKernel>(
        &mut self,
        key: OperationKey,
        division: &Division,
        piece: Piece,
        kernel: &K,
    ) -> Result<()> {
        let mut reduced = Ok(());
        let last = self.arrive(|team| {
            reduced = team.agree(key);
            if reduced.is_ok() {
                // SAFETY: bulk rules 2 and 3: the caller has arrived last.
                reduced = unsafe { division.reduce(piece, 0..piece.len, true, kernel) };
            }
            let good = reduced.is_ok();
            team.write_outcome(key, good, |_| {});
        })?;
        if last {
            return reduced;
        }
        wait!(self, self.completion());
        // SAFETY: bulk rule 3: the last to arrive has completed the round.
        self.read_outcome(key, |_| unsafe { division.fetch(division.part, piece, 0..0) })
    }

    /// Arrives with a piece; all reduce a slice of it, and copy the others' slices of the piece before.
    ///
    /// # Safety
    /// Bulk rule 1: the caller's operands of this round are in `division.part`, and it has not arrived. `before` has
    /// part and piece of the round before, and the slice of it that the caller has reduced.
    async unsafe fn by_all<K: ReductionKernel>(
        &mut self,
        key: OperationKey,
        division: &Division,
        piece: Piece,
        before: Option<(*mut u8, Piece, Range<usize>)>,
        kernel: &K,
    ) -> Result<()> {
        self.arrive(|_| {})?;
        wait!(self, self.completion());
        if before.is_none() {
            self.agree(key)?;
        }
        // SAFETY: bulk rules 2 and 3: the round is complete, and the slice is the caller's.
        let reduced = unsafe { division.reduce(piece, division.slice_of_caller(piece.len), true, kernel) };
        if let (Some((part, piece, mine)), false) = (before, division.operands.out.is_null()) {
            // SAFETY: bulk rule 3: all have arrived in the round after that of the piece.
            unsafe { division.fetch(part, piece, mine) };
        }
        reduced
    }
}
