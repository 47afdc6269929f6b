//! Reductions of which members get different results, as one round: each member sees all operands, and reduces what it needs.

use super::reduction::SlotRoom;
use super::{Hold, Operands, OperationKey, TeamGuard, Width};
use crate::arch::copy_run;
use crate::coll::{ReductionKernel, Scratch};
use crate::error::Result;
use crate::events::Collective;
use crate::team::{Condition, PAYLOAD, RoundArrival};
use core::ops::Range;

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
        let mut reduced: Option<Scratch> = None;
        let wanted = if range.is_empty() { 0..0 } else { 0..members };
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
}
