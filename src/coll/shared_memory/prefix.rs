//! Reductions of which members get different results, as one round: each member sees all operands, and reduces what it needs.

use super::{Hold, Operands, OperationKey, TeamGuard, Width};
use crate::coll::{ReductionKernel, Scratch};
use crate::error::Result;
use crate::events::Collective;
use crate::team::PAYLOAD;
use core::mem::swap;
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
        if self.reduce_scatter_direct(operands, &range, kernel).await? {
            return Ok(true);
        }
        let range = range(self.rank());
        let what = OperationKey::new(Collective::ReduceScatter, 0, operands.len);
        let Some(mut parts) = self.see_all(what, &operands, &range, 0..self.size()).await? else {
            return Ok(false);
        };
        let len = range.len();
        let (rest, acc) = parts.split_at_mut((self.size() - 1) * len);
        if len > 0 {
            rest.chunks_exact(len).rev().try_for_each(|left| kernel.reduce(left, acc))?;
        }
        // SAFETY: `out` can be written (`Operands::new`) and is as long as the range.
        unsafe { operands.out.copy_from_nonoverlapping(acc.as_ptr(), len) };
        Ok(true)
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
        if self.capacity().chains_scan(operands.len) {
            return Ok(false);
        }
        if self.scan_direct(operands, inclusive, kernel).await? {
            return Ok(true);
        }
        let operation = if inclusive { Collective::Scan } else { Collective::Exscan };
        let what = OperationKey::new(operation, 0, operands.len);
        let members = self.rank() + usize::from(inclusive);
        let Some(parts) = self.see_all(what, &operands, &(0..operands.len), 0..members).await? else {
            return Ok(false);
        };
        let mut parts = parts.chunks_exact(operands.len);
        let Some(first) = parts.next() else { return Ok(true) };
        let mut acc = Scratch::copy_of(first)?;
        for part in parts {
            let mut next = Scratch::copy_of(part)?;
            kernel.reduce(&acc, &mut next)?;
            swap(&mut acc, &mut next);
        }
        // SAFETY: `out` can be written (`Operands::new`).
        unsafe { operands.out.copy_from_nonoverlapping(acc.as_ptr(), operands.len) };
        Ok(true)
    }

    /// A round in which each member shows its operands, and copies the bytes `range` of those of `members`; `None` if there is no room for them.
    async fn see_all(
        &mut self,
        what: OperationKey,
        operands: &Operands,
        range: &Range<usize>,
        members: Range<usize>,
    ) -> Result<Option<Scratch>> {
        let len = operands.len;
        if len > PAYLOAD && (len > self.room_among_all(Width::One) || !self.has_room(len).await?) {
            return Ok(None);
        }
        let (part, copy) = (range.len(), self.copy_of_operands());
        let mut parts = Scratch::of(members.len() * part)?;
        let wanted = if part == 0 { 0..0 } else { members };
        self.among_all(
            what,
            (len, Width::One),
            // SAFETY: the operands can be read, and `to` is memory of the team's and as long.
            |to| unsafe { copy(operands.own, to.as_mut_ptr(), len) },
            wanted,
            |member, bytes| {
                parts[member * part..][..part].copy_from_slice(&bytes[range.clone()]);
                Ok(())
            },
        )
        .await?;
        Ok(Some(parts))
    }
}
