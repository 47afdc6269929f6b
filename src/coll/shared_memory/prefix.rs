//! Reductions of which members get different results, as one round:
//! each member sees all operands, and reduces what it needs.

use super::algorithm_kind::IN_HEAP;
use super::direct_reduction::scan_of;
use super::reduction::SlotRoom;
use super::{Hold, Operands, OperationKey, Readers, TeamGuard, Wanted, Width};
use crate::arch::{copy_run, copy_slice};
use crate::coll::{ReductionKernel, Scratch};
use crate::error::Result;
use crate::events::Collective;
use crate::team::{Condition, PAYLOAD, RoundArrival};
use core::ops::Range;

/// Bytes of all members' operands of a scan up to which another round costs more than what each reads besides a slice.
const FOR_EACH: usize = 32 << 10;

impl<H: Hold> TeamGuard<'_, H> {
    /// Reduces every member's operands, and gives member m the bytes `range(m)` of the results, in an `out` that is as
    /// long. `false` if the team cannot do so, before anything has happened.
    ///
    /// # Errors
    /// Those of waiting and of the kernel; [`crate::Error::Other`] where members disagree about the operation.
    pub async fn reduce_scatter<K: ReductionKernel>(
        &mut self,
        operands: Operands,
        range: impl Fn(usize) -> Range<usize>,
        kernel: &K,
    ) -> Result<bool> {
        let what = OperationKey::new(Collective::ReduceScatter, 0, operands.len);
        if operands.len <= PAYLOAD {
            let (range, members) = (range(self.rank()), self.size());
            return self.reduce_few(what, operands, range, members, kernel).await.map(|()| true);
        }
        if self.goes_by_messages(Collective::ReduceScatter, operands.len) {
            return Ok(false);
        }
        self.reduce_scatter_long(what, operands, range, kernel).await
    }

    /// Reduces the operands of the members up to the caller into its `out`; without the caller's own, if not
    /// `inclusive`: then rank 0 gets nothing. `false` as for [`Self::reduce_scatter`].
    ///
    /// # Errors
    /// As for [`Self::reduce_scatter`].
    pub async fn scan<K: ReductionKernel>(
        &mut self,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        let operation = scan_of(inclusive);
        if self.goes_by_messages(operation, operands.len) {
            return Ok(false);
        }
        let what = OperationKey::new(operation, 0, operands.len);
        let members = self.rank() + usize::from(inclusive);
        if operands.len <= PAYLOAD {
            return self.reduce_few(what, operands, 0..operands.len, members, kernel).await.map(|()| true);
        }
        self.scan_long(what, operands, inclusive, kernel).await
    }

    /// [`Self::scan`] of operands that fit into no slot.
    async fn scan_long<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        if self.is_long(operands.len) && Box::pin(self.scan_direct(what, operands, inclusive, kernel)).await?
        {
            return Ok(true);
        }
        if self.size() > 2 && operands.len.saturating_mul(self.size()) > FOR_EACH {
            return self.scan_in_slices(what, operands, inclusive, kernel).await;
        }
        self.scan_shown(what, operands, inclusive, kernel).await
    }

    /// A round in which each member shows operands that fit into its slot, and reduces the bytes `range` of those of
    /// the first `members` into its `out`.
    #[inline]
    async fn reduce_few<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: Range<usize>,
        members: usize,
        kernel: &K,
    ) -> Result<()> {
        wait!(self, self.begin()?);
        self.write_slot(what, |payload| operands.load(payload));
        self.arrive(|_| {})?;
        let mut reduced = Ok(());
        if members > 0 && !range.is_empty() {
            let has_others = members > usize::from(self.rank() < members);
            if has_others && self.arrival == RoundArrival::Count || members == self.size() {
                wait!(self, self.completion());
            } else if has_others {
                for member in 0..members {
                    wait!(self, Condition::Published(member));
                }
            }
            let mut room = SlotRoom::new();
            let part = Operands { len: range.len(), ..operands };
            reduced = self.reduce_slots(what, &mut room, members, range, kernel).map(|acc| part.store(acc));
        }
        self.leave();
        reduced
    }

    /// A scan of operands that fit into no slot, in two rounds: in the first all show theirs, and each reduces a slice
    /// of them, where they lie; then a member's share holds its result, or in an exclusive scan that of the next one.
    /// `false` if there is no room for them.
    ///
    /// A slice of the shares is read and written by one member alone, once the first round is complete; others read it
    /// when the second is complete.
    async fn scan_in_slices<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        let Operands { own, out, len, unit } = operands;
        if len > self.room_among_all(Width::One) || !self.make_room_among_all((len, Width::One)).await? {
            return Ok(false);
        }
        if len >= IN_HEAP && Box::pin(self.scan_in_heap(what, operands, inclusive, kernel)).await? {
            return Ok(true);
        }
        let (rank, size, apart) = (self.rank(), self.size(), self.reads_apart(len));
        let mine = self.slice_of(rank, len, unit);
        let width = mine.len();
        let mut theirs = Scratch::of(if apart { width * size } else { 0 })?;
        let stride = (self.rounds().storage().part_bytes() / size) & !63;
        let copy = self.copy_of_operands();
        wait!(self, self.begin()?);
        let part = self.part(Readers::NextRound, true).await?;
        // SAFETY: bulk rule 1: the part is free and this round's, the share is the caller's and has room for `len`
        // bytes; the operands can be read (`Operands::new`).
        unsafe { copy.copy(None, own, part.add(rank * stride), len) };
        self.write_slot(what, |_| {});
        self.arrive(|_| {})?;
        wait!(self, self.completion());
        self.agree(what).map_err(|error| self.fail_with(error))?;
        // SAFETY: the round is complete, so all shares are written; the slice of each, which is `width` bytes from
        // there on, is the caller's alone.
        let shown = |member: usize| unsafe {
            core::slice::from_raw_parts_mut(part.add(member * stride + mine.start), width)
        };
        let mut reduced = Ok(());
        // Of fewer elements than members, some have none.
        let behind = 1..if width == 0 { 1 } else { size };
        if apart {
            let others = (1..=size).map(|step| (rank + step) % size);
            others.clone().for_each(|m| copy_slice(shown(m), &mut theirs[m * width..][..width]));
            for member in behind {
                let (below, rest) = theirs.split_at_mut(member * width);
                let left = &below[(member - 1) * width..];
                reduced = reduced.and_then(|()| kernel.reduce(left, &mut rest[..width]));
            }
            others.for_each(|m| copy_slice(&theirs[m * width..][..width], shown(m)));
        } else {
            for member in behind {
                reduced = reduced.and_then(|()| kernel.reduce(shown(member - 1), shown(member)));
            }
        }
        self.leave();
        wait!(self, self.begin()?);
        self.write_slot(what, |_| {});
        self.arrive(|_| {})?;
        let share = if inclusive { Some(rank) } else { rank.checked_sub(1) };
        if let Some(share) = share {
            wait!(self, self.completion());
            // SAFETY: the round is complete, so the share holds results, which nobody writes before the caller has
            // arrived again; `out` can be written (`Operands::new`) and is as long.
            unsafe { copy_run(part.add(share * stride), out, len) };
        }
        self.leave();
        reduced.map_err(|error| self.fail_with(error)).map(|()| true)
    }

    /// A scan of operands that fit into no slot, in one round: each member reduces those of the members up to itself.
    /// `false` if there is no room for them.
    async fn scan_shown<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        let len = operands.len;
        if len > self.room_among_all(Width::One) || !self.make_room_among_all((len, Width::One)).await? {
            return Ok(false);
        }
        if len >= IN_HEAP && Box::pin(self.scan_in_heap(what, operands, inclusive, kernel)).await? {
            return Ok(true);
        }
        let members = self.rank() + usize::from(inclusive);
        let copy = self.copy_of_operands();
        let mut reduced: Option<Scratch> = None;
        self.among_all(
            what,
            (len, Width::One),
            // SAFETY: the operands can be read, and `to` is memory of the team's and as long.
            |to, _| unsafe { copy.copy(None, operands.own, to.as_mut_ptr(), len) },
            if len == 0 { Wanted::None } else { Wanted::FromTheHighest(members) },
            |_, bytes, _| {
                match &mut reduced {
                    Some(right) => kernel.reduce(bytes, right)?,
                    None => reduced = Some(Scratch::copy_of(bytes)?),
                }
                Ok(())
            },
        )
        .await?;
        if let Some(result) = reduced {
            operands.store_from(0, &result);
        }
        Ok(true)
    }

    /// A reduce-scatter of operands that fit into no slot: in one step, or in as many rounds as they need, in each of
    /// which every member shows as many bytes of what each of the others gets, which reduces them. `false` if there is
    /// no room for an element of each.
    async fn reduce_scatter_long<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: impl Fn(usize) -> Range<usize>,
        kernel: &K,
    ) -> Result<bool> {
        if self.is_long(operands.len)
            && Box::pin(self.reduce_scatter_direct(what, operands, &range, kernel)).await?
        {
            return Ok(true);
        }
        let (rank, size, unit) = (self.rank(), self.size(), operands.unit);
        let longest = (0..size).map(|member| range(member).len()).max().unwrap_or_default();
        let step = (self.room_among_all(Width::One) / size / unit * unit).min(longest);
        if step == 0 || !self.make_room_among_all((step * size, Width::One)).await? {
            return Ok(false);
        }
        if operands.len >= IN_HEAP
            && Box::pin(self.reduce_scatter_in_heap(what, operands, &range, kernel)).await?
        {
            return Ok(true);
        }
        let copy = self.copy_of_operands();
        let apart = self.reads_apart(operands.len);
        let mut theirs = Scratch::of(if apart { step * size } else { 0 })?;
        // In place, results would overwrite operands of the rounds behind.
        let mut results = Scratch::of(range(rank).len())?;
        for at in (0..longest).step_by(step) {
            // Shorter ranges may be over.
            let stretch = |member: usize| {
                let Range { start, end } = range(member);
                (start + at).min(end)..(start + at + step).min(end)
            };
            let mine = stretch(rank);
            let acc = if mine.is_empty() { &mut [] } else { &mut results[at..][..mine.len()] };
            let mut reduced = ReducedStretch { acc, copies: &mut theirs, apart: step, members: size };
            let wanted = reduced.wanted();
            let done = self
                .among_all(
                    what,
                    (step * size, Width::One),
                    |to, _| {
                        for member in (0..size).filter(|&member| member != rank) {
                            let shown = operands.part(stretch(member).start, stretch(member).len());
                            let mut to = to.part(member * step, shown.len());
                            // SAFETY: both are as long, and `to` is memory of the team's.
                            unsafe { copy.copy(Some(member), shown.as_ptr(), to.as_mut_ptr(), shown.len()) };
                        }
                    },
                    wanted,
                    |from, bytes, _| {
                        let operand = match from == rank {
                            true => operands.part(mine.start, mine.len()),
                            false => &bytes[rank * step..][..mine.len()],
                        };
                        reduced.take(from, operand, kernel)
                    },
                )
                .await
                .and_then(|()| reduced.finish(kernel));
            self.settle(done, longest <= step)?;
        }
        if !results.is_empty() {
            operands.store_from(0, &results);
        }
        Ok(true)
    }
}

/// What a member makes of the stretches that it is shown in a round of a reduce-scatter.
struct ReducedStretch<'r> {
    /// As long as its own stretch, which may be over.
    acc: &'r mut [u8],
    /// Room for the copies of all members' stretches where they are copied before they are reduced
    /// ([`TeamGuard::reads_apart`]); empty where they are reduced as they are read, from the highest member's down.
    copies: &'r mut [u8],
    /// Bytes from one copy to the next.
    apart: usize,
    members: usize,
}

impl ReducedStretch<'_> {
    /// Whose stretches the member wants, in which order.
    fn wanted(&self) -> Wanted {
        match (self.acc.is_empty(), self.copies.is_empty()) {
            (true, _) => Wanted::None,
            (false, true) => Wanted::FromTheHighest(self.members),
            (false, false) => Wanted::All,
        }
    }

    /// Takes the stretch of member `from`, which comes in the order of [`Self::wanted`].
    fn take<K: ReductionKernel>(&mut self, from: usize, operand: &[u8], kernel: &K) -> Result<()> {
        if !self.copies.is_empty() {
            copy_slice(operand, &mut self.copies[from * self.apart..][..operand.len()]);
        } else if from == self.members - 1 {
            copy_slice(operand, self.acc);
        } else {
            kernel.reduce(operand, self.acc)?;
        }
        Ok(())
    }

    /// Reduces the copies, if there are any, once all stretches have been taken.
    fn finish<K: ReductionKernel>(self, kernel: &K) -> Result<()> {
        if self.copies.is_empty() || self.acc.is_empty() {
            return Ok(());
        }
        let Self { acc, copies, apart, members } = self;
        let len = acc.len();
        let copy = |from: usize| &copies[from * apart..][..len];
        copy_slice(copy(members - 1), acc);
        (0..members - 1).rev().try_for_each(|from| kernel.reduce(copy(from), acc))
    }
}
