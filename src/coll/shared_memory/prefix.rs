//! Reductions of which members get different results, as one round: each member sees all operands, and reduces what it needs.

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
    /// Reduces every member's operands, and gives member m the bytes `range(m)` of the results, in an `out` that is as long. `false` if the team cannot do so,
    /// before anything has happened.
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
        if self.reduce_scatter_direct(operands, &range, kernel).await? {
            return Ok(true);
        }
        let (range, members) = (range(self.rank()), self.size());
        self.reduce_shown(what, operands, range, members, kernel).await
    }

    /// Reduces the operands of the members up to the caller into its `out`; without the caller's own, if not `inclusive`: then rank 0 gets nothing. `false` as
    /// for [`Self::reduce_scatter`].
    ///
    /// # Errors
    /// As for [`Self::reduce_scatter`].
    pub async fn scan<K: ReductionKernel>(
        &mut self,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        if self.chains_scan(operands.len) {
            return Ok(false);
        }
        let operation = if inclusive { Collective::Scan } else { Collective::Exscan };
        let what = OperationKey::new(operation, 0, operands.len);
        let members = self.rank() + usize::from(inclusive);
        if operands.len <= PAYLOAD {
            return self.reduce_few(what, operands, 0..operands.len, members, kernel).await.map(|()| true);
        }
        if self.goes_by_messages(Collective::Scan, operands.len) {
            return Ok(false);
        }
        if self.scan_direct(operands, inclusive, kernel).await? {
            return Ok(true);
        }
        if self.size() > 2 && operands.len.saturating_mul(self.size()) > FOR_EACH {
            return self.scan_in_slices(what, operands, inclusive, kernel).await;
        }
        self.reduce_shown(what, operands, 0..operands.len, members, kernel).await
    }

    /// Returns whether a scan of `bytes` bytes goes along a chain of messages instead.
    #[inline]
    #[must_use]
    pub fn chains_scan(&mut self, bytes: usize) -> bool {
        self.capacity().chains_scan(bytes)
    }

    /// A round in which each member shows operands that fit into its slot, and reduces the bytes `range` of those of the first `members` into its
    /// `out`.
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

    /// A scan of operands that fit into no slot, in two rounds: in the first all show theirs, and each reduces a slice of them, where they lie; then a member's share holds its result, or
    /// in an exclusive scan that of the next one. `false` if there is no room for them.
    ///
    /// A slice of the shares is read and written by one member alone, once the first round is complete; others read it when the second is complete.
    async fn scan_in_slices<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        let Operands { own, out, len, unit } = operands;
        if len > self.room_among_all(Width::One) || !self.has_room_among_all((len, Width::One)).await? {
            return Ok(false);
        }
        let (rank, size, apart) = (self.rank(), self.size(), self.reads_apart(len));
        let mine = self.slice_of(rank, len, unit);
        let width = mine.len();
        let mut theirs = Scratch::of(if apart { width * size } else { 0 })?;
        let stride = (self.rounds().storage().part_bytes() / size) & !63;
        let copy = self.copy_of_operands();
        wait!(self, self.begin()?);
        let part = self.part(Readers::NextRound, true).await?;
        // SAFETY: bulk rule 1: the part is free and this round's, the share is the caller's and has room for `len` bytes; the operands can be read (`Operands::new`).
        unsafe { copy(own, part.add(rank * stride), len) };
        self.write_slot(what, |_| {});
        self.arrive(|_| {})?;
        wait!(self, self.completion());
        self.agree(what).map_err(|error| self.fail_with(error))?;
        // SAFETY: the round is complete, so all shares are written; the slice of each, which is `width` bytes from there on, is the caller's alone.
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
            // SAFETY: the round is complete, so the share holds results, which nobody writes before the caller has arrived again; `out` can be written
            // (`Operands::new`) and is as long.
            unsafe { copy_run(part.add(share * stride), out, len) };
        }
        self.leave();
        reduced.map_err(|error| self.fail_with(error)).map(|()| true)
    }

    /// As [`Self::reduce_few`], of operands that fit into no slot. `false` if there is no room for them.
    async fn reduce_shown<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: Range<usize>,
        members: usize,
        kernel: &K,
    ) -> Result<bool> {
        let len = operands.len;
        if len > self.room_among_all(Width::One) || !self.has_room_among_all((len, Width::One)).await? {
            return Ok(false);
        }
        let copy = self.copy_of_operands();
        if self.reads_apart(len) && members == self.size() && range.len() < len {
            return self.reduce_copies(what, operands, range, kernel).await.map(|()| true);
        }
        let mut reduced: Option<Scratch> = None;
        let wanted = if range.is_empty() { Wanted::None } else { Wanted::FromTheHighest(members) };
        self.among_all(
            what,
            (len, Width::One),
            // SAFETY: the operands can be read, and `to` is memory of the team's and as long.
            |to, _| unsafe { copy(operands.own, to.as_mut_ptr(), len) },
            wanted,
            |_, bytes, _| {
                let left = &bytes[range.clone()];
                match &mut reduced {
                    Some(right) => kernel.reduce(left, right)?,
                    None => reduced = Some(Scratch::copy_of(left)?),
                }
                Ok(())
            },
        )
        .await?;
        if let Some(result) = reduced {
            // SAFETY: `out` can be written (`Operands::new`) and is as long as the range.
            unsafe { copy_run(result.as_ptr(), operands.out, result.len()) };
        }
        Ok(true)
    }

    /// As [`Self::reduce_shown`], for all members' operands, of which there is room for: each copies the bytes `range` of them, and reduces the copies.
    async fn reduce_copies<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: Range<usize>,
        kernel: &K,
    ) -> Result<()> {
        let (len, size, copy) = (operands.len, self.size(), self.copy_of_operands());
        let part = range.len();
        let mut theirs = Scratch::of(part * size)?;
        self.among_all(
            what,
            (len, Width::One),
            // SAFETY: the operands can be read, and `to` is memory of the team's and as long.
            |to, _| unsafe { copy(operands.own, to.as_mut_ptr(), len) },
            if part == 0 { Wanted::None } else { Wanted::All },
            |from, bytes, _| {
                copy_slice(&bytes[range.clone()], &mut theirs[from * part..][..part]);
                Ok(())
            },
        )
        .await?;
        if part == 0 {
            return Ok(());
        }
        let (below, result) = theirs.split_at_mut(part * (size - 1));
        (0..size - 1).rev().try_for_each(|member| kernel.reduce(&below[member * part..][..part], result))?;
        // SAFETY: `out` can be written (`Operands::new`) and is as long as the range.
        unsafe { copy_run(result.as_ptr(), operands.out, part) };
        Ok(())
    }
}
