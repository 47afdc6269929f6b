//! Reductions in one step: each member reduces a slice of all operands, and writes the results to the members that want
//! them. Operands in the shared heap are reduced where they lie; others are copied first. The rules are those of
//! [`super::direct`].

use super::direct::{Exposed, ExposedRun, NO_RUN, RECV, RUNS, SEND};
use super::division::slice;
use super::{AlgorithmKind, Hold, Operands, OperationKey, TeamGuard};
use crate::arch::{copy_run, copy_slice};
use crate::coll::{ReductionKernel, Scratch};
use crate::error::Result;
use crate::events::Collective;
use core::mem::swap;
use core::ops::Range;

/// Bytes of operands of a member that are copied and reduced at a time, and of results that are written.
const BLOCK: usize = 64 << 10;

/// Bytes of all members' operands that are copied at a time: they stay in the second cache.
const ROOM: usize = 512 << 10;

/// Bytes of operands that are reduced where they lie at a time: the results stay in the nearest cache for all members'
/// turns.
const VIEWED: usize = 8 << 10;

impl<'a, H: Hold> TeamGuard<'a, H> {
    /// The bytes of a member's slice of `len` bytes in elements of `unit` bytes.
    pub(super) fn slice_of(&self, member: usize, len: usize, unit: usize) -> Range<usize> {
        slice(member, self.size(), len, unit)
    }

    /// A reduction whose results `root` wants, or, if there is none, all: each member reduces a slice of all operands,
    /// and writes the results to those that want them. `false` if it is not done in one step.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of the operation.
    pub(super) async fn reduce_direct<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        root: Option<usize>,
        kernel: &K,
    ) -> Result<bool> {
        // Wanted by one or by all, results go the same way.
        if !self.has_room_for_blocks(operands.unit)
            || !self.is_one_step(Collective::Allreduce, operands.len).await?
        {
            return Ok(false);
        }
        let room = Scratch::of(self.block_of_reduction(&operands) * self.size())?;
        let exposed = self.expose(what, self.runs_of_reduction(&operands, root)).await?;
        self.reduce_exposed(exposed, operands, root, room, kernel).await.map(|()| true)
    }

    /// The same of operands that would take rounds else, for which there is room. `false` if they do not all lie in the
    /// shared heap.
    ///
    /// # Errors
    /// As for [`Self::reduce_direct`].
    pub(super) async fn reduce_in_heap<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        root: Option<usize>,
        kernel: &K,
    ) -> Result<bool> {
        let Operands { own, len, unit, .. } = operands;
        let kind = self.capacity().algorithm_kind(Collective::Allreduce, len);
        if kind != AlgorithmKind::OneStepInHeap || !self.has_room_for_blocks(unit) {
            return Ok(false);
        }
        let (operation, runs) = ((Collective::Allreduce, what), self.runs_of_reduction(&operands, root));
        let Some(look) = self.look(operation, runs, Some((own, len))) else { return Ok(false) };
        let room = Scratch::of(self.block_of_reduction(&operands))?;
        // What the root gets is one copy.
        let by_kernel = root.is_some() && self.may_copy().await?;
        let fits = |exposed: &Exposed<'_>| {
            exposed.are_in_heap(SEND) && (by_kernel || exposed.are_nowhere_else(RECV))
        };
        let Some(exposed) = self.expose_in_heap(look, fits).await? else { return Ok(false) };
        self.reduce_exposed(exposed, operands, root, room, kernel).await.map(|()| true)
    }

    /// Bytes that the caller reduces at a time.
    fn block_of_reduction(&self, &Operands { len, unit, .. }: &Operands) -> usize {
        self.block_of(unit).min(self.slice_of(self.rank(), len, unit).len()).max(unit)
    }

    /// What the caller exposes: its operands, and room for results, if it wants them.
    fn runs_of_reduction(
        &self,
        &Operands { own, out, len, .. }: &Operands,
        root: Option<usize>,
    ) -> [ExposedRun; RUNS] {
        let wants = root.is_none_or(|root| root == self.rank());
        [(own, len), if wants { (out.cast_const(), len) } else { NO_RUN }]
    }

    /// A reduction of members that have exposed their operands.
    async fn reduce_exposed<K: ReductionKernel>(
        &mut self,
        exposed: Exposed<'_>,
        operands: Operands,
        root: Option<usize>,
        mut room: Scratch,
        kernel: &K,
    ) -> Result<()> {
        let rank = self.rank();
        let mine = self.slice_of(rank, operands.len, operands.unit);
        let block = self.block_of_reduction(&operands);
        // A slice is used by one member alone, so its results may overwrite the operands.
        let wants = |member: &usize| root.is_none_or(|root| root == *member);
        let done = mine.clone().step_by(block).try_for_each(|at| {
            let range = at..mine.end.min(at + block);
            let results = self.reduce_block(&exposed, &operands, range, &mut room, kernel)?;
            if wants(&rank) {
                operands.store_from(at, results);
            }
            self.others().filter(wants).try_for_each(|to| exposed.write(to, RECV, at, results))
        });
        self.meet(done).await?;
        exposed.fetch_written(mine);
        Ok(())
    }

    /// Whether a block of each member has room for an element of `unit` bytes.
    fn has_room_for_blocks(&self, unit: usize) -> bool {
        unit <= ROOM / self.size()
    }

    /// Bytes of whole elements that are reduced at a time.
    fn block_of(&self, unit: usize) -> usize {
        (BLOCK.min(ROOM / self.size()) / unit).max(1) * unit
    }

    /// A reduce-scatter: member m gets the bytes `range(m)` of the results, in an `out` that is as long. `false` if it
    /// is not done in one step.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of the operation.
    pub(super) async fn reduce_scatter_direct<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: impl Fn(usize) -> Range<usize>,
        kernel: &K,
    ) -> Result<bool> {
        let kind = self.kind_of_reduce_scatter(operands.len, &range);
        if kind != AlgorithmKind::OneStep
            || !self.has_room_for_blocks(operands.unit)
            || !self.may_copy().await?
        {
            return Ok(false);
        }
        let room = self.room_for_range(&operands, range(self.rank()).len(), self.size())?;
        let exposed = self.expose(what, [(operands.own, operands.len), NO_RUN]).await?;
        self.reduce_scatter_exposed(exposed, operands, range(self.rank()), room, kernel).await.map(|()| true)
    }

    /// The same of operands that would take rounds else, for which there is room. `false` if they do not all lie in the
    /// shared heap.
    ///
    /// # Errors
    /// As for [`Self::reduce_scatter_direct`].
    pub(super) async fn reduce_scatter_in_heap<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        range: impl Fn(usize) -> Range<usize>,
        kernel: &K,
    ) -> Result<bool> {
        let Operands { own, len, unit, .. } = operands;
        let kind = self.kind_of_reduce_scatter(len, &range);
        if kind != AlgorithmKind::OneStepInHeap || !self.has_room_for_blocks(unit) {
            return Ok(false);
        }
        let (operation, sent) = ((Collective::ReduceScatter, what), (own, len));
        let Some(look) = self.look(operation, [sent, NO_RUN], Some(sent)) else { return Ok(false) };
        let room = self.room_for_range(&operands, range(self.rank()).len(), 1)?;
        let fits = |exposed: &Exposed<'_>| exposed.are_in_heap(SEND);
        let Some(exposed) = self.expose_in_heap(look, fits).await? else { return Ok(false) };
        self.reduce_scatter_exposed(exposed, operands, range(self.rank()), room, kernel).await.map(|()| true)
    }

    fn kind_of_reduce_scatter(&mut self, len: usize, range: impl Fn(usize) -> Range<usize>) -> AlgorithmKind {
        let longest = (0..self.size()).map(|member| range(member).len()).max().unwrap_or_default();
        self.capacity().kind_for_reduce_scatter(len, longest)
    }

    /// Memory for so many blocks of operands, and for `bytes` bytes of results: in place, they would overwrite operands
    /// that others read.
    fn room_for_range(&self, operands: &Operands, bytes: usize, blocks: usize) -> Result<[Scratch; 2]> {
        let kept = Scratch::of(if operands.is_apart(bytes) { 0 } else { bytes })?;
        Ok([Scratch::of(self.block_of(operands.unit).min(bytes) * blocks)?, kept])
    }

    /// A reduce-scatter of members that have exposed their operands: the caller gets the bytes `mine` of the results.
    async fn reduce_scatter_exposed<K: ReductionKernel>(
        &mut self,
        exposed: Exposed<'_>,
        operands: Operands,
        mine: Range<usize>,
        [mut room, mut kept]: [Scratch; 2],
        kernel: &K,
    ) -> Result<()> {
        let (bytes, apart, block) = (mine.len(), operands.is_apart(mine.len()), self.block_of(operands.unit));
        // SAFETY: the result is as long as the caller's range, and no operand lies there.
        let results = if apart { unsafe { operands.result(bytes) } } else { &mut *kept };
        let done = results.chunks_mut(block).zip(mine.step_by(block)).try_for_each(|(to, at)| {
            let reduced = self.reduce_block(&exposed, &operands, at..at + to.len(), &mut room, kernel)?;
            copy_slice(reduced, to);
            Ok(())
        });
        self.meet(done).await?;
        if !apart {
            // SAFETY: `out` has room for the caller's range (`Operands::new`), and all have met.
            unsafe { copy_run(kept.as_ptr(), operands.out, bytes) };
        }
        Ok(())
    }

    /// A scan, or an exclusive one (`inclusive` is false): each member computes a slice of all members' results, and
    /// writes it to them. `false` if it is not done in one step.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of the operation.
    pub(super) async fn scan_direct<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        if !self.is_one_step(scan_of(inclusive), operands.len).await? {
            return Ok(false);
        }
        let room = self.room_for_scan(&operands)?;
        let exposed = self.expose(what, self.runs_of_scan(&operands, inclusive)).await?;
        self.scan_exposed(exposed, operands, inclusive, room, kernel).await.map(|()| true)
    }

    /// The same of operands that would take rounds else, for which there is room. `false` if they do not all lie in the
    /// shared heap.
    ///
    /// # Errors
    /// As for [`Self::scan_direct`].
    pub(super) async fn scan_in_heap<K: ReductionKernel>(
        &mut self,
        what: OperationKey,
        operands: Operands,
        inclusive: bool,
        kernel: &K,
    ) -> Result<bool> {
        let operation = scan_of(inclusive);
        if self.capacity().algorithm_kind(operation, operands.len) != AlgorithmKind::OneStepInHeap {
            return Ok(false);
        }
        let runs = self.runs_of_scan(&operands, inclusive);
        let Some(look) = self.look((operation, what), runs, Some(runs[SEND])) else { return Ok(false) };
        let room = self.room_for_scan(&operands)?;
        let fits = |exposed: &Exposed<'_>| exposed.are_in_heap(SEND) && exposed.are_nowhere_else(RECV);
        let Some(exposed) = self.expose_in_heap(look, fits).await? else { return Ok(false) };
        self.scan_exposed(exposed, operands, inclusive, room, kernel).await.map(|()| true)
    }

    /// Memory for a block of results, and of operands.
    fn room_for_scan(&self, operands: &Operands) -> Result<[Scratch; 2]> {
        let block = block_of_scan(operands.unit);
        Ok([Scratch::of(block)?, Scratch::of(block)?])
    }

    /// What the caller exposes: its operands, and room for results, but for the first member of an exclusive scan.
    fn runs_of_scan(
        &self,
        &Operands { own, out, len, .. }: &Operands,
        inclusive: bool,
    ) -> [ExposedRun; RUNS] {
        [(own, len), if inclusive || self.rank() > 0 { (out.cast_const(), len) } else { NO_RUN }]
    }

    /// A scan of members that have exposed their operands.
    async fn scan_exposed<K: ReductionKernel>(
        &mut self,
        exposed: Exposed<'_>,
        operands: Operands,
        inclusive: bool,
        [mut acc, mut next]: [Scratch; 2],
        kernel: &K,
    ) -> Result<()> {
        let (rank, size, block) = (self.rank(), self.size(), block_of_scan(operands.unit));
        let mine = self.slice_of(rank, operands.len, operands.unit);
        let put = |member: usize, at: usize, result: &[u8]| {
            if member != rank {
                return exposed.write(member, RECV, at, result);
            }
            operands.store_from(at, result);
            Ok(())
        };
        let done = mine.clone().step_by(block).try_for_each(|at| {
            let count = block.min(mine.end - at);
            for member in 0..size {
                // Before its result is written, which may take its place.
                self.fetch(&exposed, &operands, member, at, &mut next[..count])?;
                if member > 0 {
                    if !inclusive {
                        put(member, at, &acc[..count])?;
                    }
                    kernel.reduce(&acc[..count], &mut next[..count])?;
                }
                swap(&mut acc, &mut next);
                if inclusive {
                    put(member, at, &acc[..count])?;
                }
            }
            Ok(())
        });
        self.meet(done).await?;
        exposed.fetch_written(mine);
        Ok(())
    }

    /// Fills `to` with a member's operands, from byte `at` on.
    fn fetch(
        &self,
        exposed: &Exposed<'_>,
        operands: &Operands,
        member: usize,
        at: usize,
        to: &mut [u8],
    ) -> Result<()> {
        if member != self.rank() {
            return exposed.read(member, SEND, at, to);
        }
        copy_slice(operands.part(at, to.len()), to);
        Ok(())
    }

    /// Reduces the bytes `range` of all members' operands in `room`, in rank order: where they lie, for which `room`
    /// has as many bytes, or copies of them, which it reads beginning behind the caller, for which it has as many for
    /// each member.
    fn reduce_block<'r, K: ReductionKernel>(
        &self,
        exposed: &Exposed<'_>,
        operands: &Operands,
        range: Range<usize>,
        room: &'r mut [u8],
        kernel: &K,
    ) -> Result<&'r [u8]> {
        let (rank, size, at, len) = (self.rank(), self.size(), range.start, range.len());
        if exposed.are_in_heap(SEND) && !self.reads_apart(operands.len) {
            let acc = &mut room[..len];
            exposed.copy(|| self.reduce_views(exposed, operands, at, acc, kernel))?;
            return Ok(acc);
        }
        for member in self.others().chain([rank]) {
            self.fetch(exposed, operands, member, at, &mut room[member * len..][..len])?;
        }
        let (below, acc) = room[..size * len].split_at_mut((size - 1) * len);
        (0..size - 1).rev().try_for_each(|member| kernel.reduce(&below[member * len..][..len], acc))?;
        Ok(acc)
    }

    /// Fills `acc` with what all members' operands from byte `at` on are reduced to, which lie in the shared heap.
    fn reduce_views<K: ReductionKernel>(
        &self,
        exposed: &Exposed<'_>,
        operands: &Operands,
        at: usize,
        acc: &mut [u8],
        kernel: &K,
    ) -> Result<()> {
        let (top, step) = (self.size() - 1, (VIEWED / operands.unit).max(1) * operands.unit);
        for (acc, at) in acc.chunks_mut(step).zip((at..).step_by(step)) {
            let len = acc.len();
            let operand = |member: usize| match member == self.rank() {
                true => Ok(operands.part(at, len)),
                false => exposed.view(member, SEND, at, len),
            };
            copy_slice(operand(top)?, acc);
            (0..top).rev().try_for_each(|member| kernel.reduce(operand(member)?, acc))?;
        }
        Ok(())
    }
}

/// Bytes of whole elements of a scan that a member reduces at a time.
fn block_of_scan(unit: usize) -> usize {
    (BLOCK / unit).max(1) * unit
}

/// The operation that such a scan is.
pub(super) const fn scan_of(inclusive: bool) -> Collective {
    if inclusive { Collective::Scan } else { Collective::Exscan }
}
