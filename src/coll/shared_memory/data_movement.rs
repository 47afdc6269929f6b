//! Collectives that move data, as sequences of rounds. Each returns `Ok(false)`, at all members and before anything has
//! happened, for a case that it does not serve.

use super::algorithm_kind::IN_HEAP;
use super::direct::{Exposed, NO_RUN, RECV, RUNS, SEND, run_of};
use super::{AlgorithmKind, Hold, OperationKey, Place, TeamGuard, Wanted, Width, show};
use crate::arch::copy_slice;
use crate::coll::algorithms::Blocks;
use crate::error::Result;
use crate::events::Collective;
use crate::ring::Room;
use crate::team::PAYLOAD;
use core::ops::Range;

impl<'a, H: Hold> TeamGuard<'a, H> {
    /// Returns when all members have called it.
    ///
    /// # Errors
    /// Those of waiting.
    pub async fn barrier(&mut self) -> Result<()> {
        wait!(self, self.begin()?);
        if !self.arrive(|_| {})? {
            wait!(self, self.completion());
        }
        self.leave();
        Ok(())
    }

    /// Makes every rank's `data` that of `root`.
    ///
    /// # Errors
    /// Those of waiting; [`crate::Error::Other`] where members disagree about the operation.
    pub async fn bcast(&mut self, data: &mut [u8], root: usize) -> Result<bool> {
        let what = OperationKey::new(Collective::Bcast, root, data.len());
        if self.goes_by_messages(Collective::Bcast, data.len()) {
            return Ok(false);
        }
        if data.len() <= PAYLOAD {
            return self.bcast_piece(what, data, root).await.map(|()| true);
        }
        self.bcast_long(what, data, root).await
    }

    /// [`Self::bcast`] of data that fits into no slot.
    async fn bcast_long(&mut self, what: OperationKey, data: &mut [u8], root: usize) -> Result<bool> {
        let len = data.len();
        if self.is_long(len) && Box::pin(self.bcast_direct(what, data, root)).await? {
            return Ok(true);
        }
        let piece = self.room_one_to_all().min(data.len());
        if !self.make_room_one_to_all(piece).await? {
            return Ok(false);
        }
        if len >= IN_HEAP && Box::pin(self.bcast_in_heap(what, data, root)).await? {
            return Ok(true);
        }
        let one = data.len() <= piece;
        for piece in pieces(data, piece) {
            let done = self.bcast_piece(what, piece, root).await;
            self.settle(done, one)?;
        }
        Ok(true)
    }

    /// One round of a broadcast.
    async fn bcast_piece(&mut self, what: OperationKey, piece: &mut [u8], root: usize) -> Result<()> {
        let len = piece.len();
        let copy = |place: Place<'_>| match place {
            Place::Room(to) => show(piece, to),
            Place::Bytes(from) => copy_slice(from, piece),
        };
        self.one_to_all(what, root, len, copy).await
    }

    /// Returns the outcome of a round. A failure in one of several rounds leaves members in different ones,
    /// so the team cannot go on.
    pub(super) fn settle(&mut self, done: Result<()>, only: bool) -> Result<()> {
        if only { done } else { done.map_err(|error| self.fail_with(error)) }
    }

    /// Fills `all`, which consists of a block for each member, of equal length, of which the caller's own is filled in:
    /// with `sent` bytes, as many as a block has, or the members disagree.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub async fn allgather(&mut self, all: &mut [u8], sent: usize) -> Result<bool> {
        let block = all.len() / self.size();
        if block <= PAYLOAD {
            let range = |r: usize| r * block..(r + 1) * block;
            return self.allgather_few(all, range, sent).await.map(|()| true);
        }
        self.allgather_long(all, block, sent).await
    }

    /// [`Self::allgather`] of blocks that fit into no slot.
    async fn allgather_long(&mut self, all: &mut [u8], block: usize, sent: usize) -> Result<bool> {
        if self.copies_equal_blocks(block).await? {
            return Box::pin(self.allgather_direct(None, all, sent)).await.map(|()| true);
        }
        self.allgather_in_pieces(all, (Blocks::Equal(block), sent)).await
    }

    /// Gathers blocks that fit into slots, that of member `r` at `range(r)` of `all`. `agreed` is a number that all
    /// members must give.
    async fn allgather_few(
        &mut self,
        all: &mut [u8],
        range: impl Fn(usize) -> Range<usize>,
        agreed: usize,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let what = OperationKey::new(Collective::Allgather, 0, agreed);
        self.meet_in_slots(what, |payload| {
            let own = &all[range(rank)];
            copy_slice(own, &mut payload[..own.len()]);
        })
        .await?;
        let mut shown = Ok(());
        for from in others(rank, size) {
            let copied = self.read_slot(from, what, |payload| {
                let block = &mut all[range(from)];
                copy_slice(&payload[..block.len()], block);
            });
            shown = shown.and(copied);
        }
        self.leave();
        shown
    }

    /// Enters a round and shows what `write` writes; returns when all members' slots can be read.
    async fn meet_in_slots(
        &mut self,
        what: OperationKey,
        write: impl FnOnce(&mut [u8; PAYLOAD]),
    ) -> Result<()> {
        wait!(self, self.begin()?);
        self.write_slot(what, write);
        self.arrive(|_| {})?;
        wait!(self, self.completion());
        Ok(())
    }

    /// Whether blocks of `block` bytes each are gathered everywhere in one step: none that fit into slots, however few
    /// bytes the control variable asks for. All get the same answer.
    ///
    /// # Errors
    /// Those of waiting.
    pub async fn copies_equal_blocks(&mut self, block: usize) -> Result<bool> {
        Ok(block > PAYLOAD && self.is_one_step(Collective::Allgather, block).await?)
    }

    /// Whether blocks that differ, that of member `r` before byte `ends[r]` of all, are gathered everywhere in one
    /// step. All get the same answer.
    ///
    /// # Errors
    /// Those of waiting.
    pub async fn copies_blocks(&mut self, ends: &[usize]) -> Result<bool> {
        let (size, total) = (self.size(), ends.last().copied().unwrap_or(0));
        Ok(Blocks::EndingAt(ends).longest() > PAYLOAD
            && size > 2
            && self.is_one_step(Collective::Allgather, total / size).await?)
    }

    /// Whether two members exchange their blocks by messages, that of member `r` before byte `ends[r]` of both: long
    /// ones that differ, so that the member that has less need not wait until the other has written all; and equal ones
    /// of which a message takes less time.
    #[must_use]
    pub fn exchanges_blocks(&mut self, ends: &[usize], equal: bool) -> bool {
        if equal {
            return self.goes_by_messages(Collective::Allgather, ends[0]);
        }
        Blocks::EndingAt(ends).longest() > PAYLOAD
    }

    /// Fills `all`, which consists of a block for each member, that of member `r` before byte `ends[r]`, of which the
    /// caller's own is filled in. Long ones are copied in one step.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub async fn allgatherv(&mut self, all: &mut [u8], ends: &[usize]) -> Result<bool> {
        let (total, blocks) = (all.len(), Blocks::EndingAt(ends));
        if blocks.longest() <= PAYLOAD {
            return self.allgather_few(all, |r| blocks.range(r), total).await.map(|()| true);
        }
        if !self.copies_blocks(ends).await? {
            return self.allgather_in_pieces(all, (blocks, total)).await;
        }
        let (before, mine, behind) = around(all, blocks.range(self.rank()));
        let end = before.len() + mine.len();
        let place = |from: usize, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>| {
            fill(beside(before, (end, behind), blocks.range(from)))
        };
        Box::pin(self.allgatherv_direct(mine, (mine.len(), total), place)).await.map(|()| true)
    }

    /// As [`Self::allgather_pieces`], of blocks that lie one behind the other in `all`.
    async fn allgather_in_pieces(
        &mut self,
        all: &mut [u8],
        (blocks, agreed): (Blocks<'_>, usize),
    ) -> Result<bool> {
        let Some(room) = self.room_for_pieces(blocks).await? else { return Ok(false) };
        if let Some(exposed) = self.expose_gathered((blocks, agreed), Some(all)).await? {
            return Box::pin(self.allgather_exposed(exposed, None, all)).await.map(|()| true);
        }
        let (before, mine, behind) = around(all, blocks.range(self.rank()));
        let end = before.len() + mine.len();
        self.allgather_rounds(
            (blocks, agreed, room),
            |at, to| show(&mine[at..][..to.len()], to),
            |from, at, bytes| {
                let room = beside(before, (end, behind), blocks.range(from));
                copy_slice(bytes, &mut room[at..][..bytes.len()]);
            },
        )
        .await
    }

    /// Shows each member's block to all others, in as many rounds as the longest takes: `own` shows the stretch of the
    /// caller's that begins at a byte of it, and `write` is given a member, a byte of its block, and the stretch that
    /// begins there. `agreed` is a number that all members must give. But two members whose long blocks differ exchange
    /// messages, so that the one that has less need not wait until the other has written all.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub async fn allgather_pieces(
        &mut self,
        (blocks, agreed): (Blocks<'_>, usize),
        own: impl FnMut(usize, &mut Room<'_>),
        write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<bool> {
        let Some(room) = self.room_for_pieces(blocks).await? else { return Ok(false) };
        // Others may ask for one step; the caller's blocks are no run of bytes.
        if self.expose_gathered((blocks, agreed), None).await?.is_some() {
            unreachable!("the caller has exposed nothing");
        }
        self.allgather_rounds((blocks, agreed, room), own, write).await
    }

    /// Returns how many bytes of each block a round takes; `None` if there is no room for any, or none is to be taken.
    async fn room_for_pieces(&mut self, blocks: Blocks<'_>) -> Result<Option<usize>> {
        let longest = blocks.longest();
        if longest <= PAYLOAD {
            return Ok(Some(PAYLOAD));
        }
        if self.size() == 2 && matches!(blocks, Blocks::EndingAt(_)) {
            return Ok(None);
        }
        let room = self.room_among_all(Width::One).min(2 * self.engine.config().coll_piece());
        Ok(self.make_room_among_all((room.min(longest), Width::One)).await?.then_some(room))
    }

    /// Exposes where the caller has the blocks of all, if these are gathered in one step because all members have them
    /// in the shared heap. All get the same answer.
    async fn expose_gathered(
        &mut self,
        (blocks, agreed): (Blocks<'_>, usize),
        all: Option<&[u8]>,
    ) -> Result<Option<Exposed<'a>>> {
        let Blocks::Equal(block) = blocks else { return Ok(None) };
        if self.capacity().algorithm_kind(Collective::Allgather, block) != AlgorithmKind::OneStepInHeap {
            return Ok(None);
        }
        let what = OperationKey::new(Collective::Allgather, 0, agreed);
        let own = all.map(|all| run_of(&all[self.rank() * block..][..block]));
        let runs = [NO_RUN, all.map_or(NO_RUN, run_of)];
        let Some(look) = self.look((Collective::Allgather, what), runs, own) else { return Ok(None) };
        self.expose_in_heap(look, |exposed| exposed.are_in_heap(RECV)).await
    }

    /// The rounds of [`Self::allgather_pieces`], each of `room` bytes of each block.
    async fn allgather_rounds(
        &mut self,
        (blocks, agreed, room): (Blocks<'_>, usize, usize),
        mut own: impl FnMut(usize, &mut Room<'_>),
        mut write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<bool> {
        let (rank, longest) = (self.rank(), blocks.longest());
        let what = OperationKey::new(Collective::Allgather, 0, agreed);
        let mut at = 0;
        loop {
            let len = room.min(longest - at);
            // Shorter blocks may be over.
            let stretch = |r: usize| blocks.range(r).len().saturating_sub(at).min(len);
            let done = self
                .among_all(
                    what,
                    (len, Width::One),
                    |to, _| {
                        if stretch(rank) > 0 {
                            own(at, &mut to.part(0, stretch(rank)));
                        }
                    },
                    Wanted::All,
                    |from, bytes, _| {
                        if from != rank && stretch(from) > 0 {
                            write(from, at, &bytes[..stretch(from)]);
                        }
                        Ok(())
                    },
                )
                .await;
            self.settle(done, longest <= room)?;
            at += len;
            if at == longest {
                return Ok(true);
            }
        }
    }

    /// Gathers blocks of `block` bytes at `root`: `own` copies the caller's,
    /// and `each` is shown those of all members there.
    ///
    /// # Errors
    /// As for [`Self::bcast`], and those of `each`.
    pub async fn gather(
        &mut self,
        block: usize,
        root: usize,
        own: impl FnOnce(&mut Room<'_>),
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        if self.goes_by_messages(Collective::Gather, block)
            || block > PAYLOAD
                && (block > self.room_among_all(Width::One)
                    || !self.make_room_among_all((block, Width::One)).await?)
        {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Gather, root, block);
        let wanted = if self.rank() == root { Wanted::All } else { Wanted::None };
        let (own, each) = (|to: &mut Room<'_>, _| own(to), |from, bytes: &[u8], _| each(from, bytes));
        self.among_all(what, (block, Width::One), own, wanted, each).await.map(|()| true)
    }

    /// Scatters blocks of `block` bytes from `root`: `all` is those of all members there,
    /// and `own` is shown the caller's elsewhere.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub async fn scatter(
        &mut self,
        block: usize,
        root: usize,
        all: &[u8],
        own: impl FnOnce(&[u8]),
    ) -> Result<bool> {
        // The root needs its own block from nobody.
        let Some(len) = block.checked_mul(self.size() - 1) else { return Ok(false) };
        if self.goes_by_messages(Collective::Scatter, block) {
            return Ok(false);
        }
        if len > PAYLOAD && !(self.capacity().has_room_for_scatter(block) && self.make_room(len).await?) {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Scatter, root, block);
        let (before, at) = (root * block, (self.rank() - usize::from(self.rank() > root)) * block);
        let copy = |place: Place<'_>| match place {
            Place::Room(to) => {
                show(&all[..before], &mut to.part(0, before));
                show(&all[before + block..], &mut to.part(before, len - before));
            }
            Place::Bytes(from) => own(&from[at..][..block]),
        };
        self.one_to_all(what, root, len, copy).await.map(|()| true)
    }

    /// Every member has a block of `block` bytes for every other, at most `coll_alltoall_most`. `read` copies a stretch
    /// of the caller's block for a member, `write` one of the block from a member. `runs` are where all blocks for
    /// members lie, and where those from members belong, if both are one run of bytes and lie apart.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub async fn alltoall(
        &mut self,
        block: usize,
        runs: Option<(&[u8], *const u8)>,
        read: impl FnMut(usize, usize, &mut Room<'_>),
        write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<bool> {
        let what = OperationKey::new(Collective::Alltoall, 0, block);
        // A slot has no block for the member itself.
        if block * (self.size() - 1) <= PAYLOAD {
            return self.alltoall_few(what, block, read, write).await.map(|()| true);
        }
        self.alltoall_long(what, block, runs, read, write).await
    }

    /// [`Self::alltoall`] of blocks that fit into no slot.
    async fn alltoall_long(
        &mut self,
        what: OperationKey,
        block: usize,
        runs: Option<(&[u8], *const u8)>,
        mut read: impl FnMut(usize, usize, &mut Room<'_>),
        mut write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<bool> {
        let (rank, size) = (self.rank(), self.size());
        let capacity = self.capacity();
        if capacity.goes_by_messages(Collective::Alltoall, block) || !capacity.has_room_for_alltoall(block) {
            return Ok(false);
        }
        let width = capacity.alltoall_width(block);
        let most = capacity.alltoall_piece(width);
        let all = most.min(block).next_multiple_of(16).saturating_mul(size);
        if !self.make_room_among_all((all, width)).await? {
            return Ok(false);
        }
        if block >= IN_HEAP && Box::pin(self.alltoall_in_heap(what, block, runs)).await? {
            return Ok(true);
        }
        let mut at = 0;
        loop {
            let len = most.min(block - at);
            // Blocks begin where elements may, and no two members' blocks are in one stretch of memory.
            let stride = len.next_multiple_of(16);
            let done = self
                .among_all(
                    what,
                    (stride * size, width),
                    |to, shares| {
                        let peers = (0..size).filter(|&peer| peer != rank);
                        peers.for_each(|peer| read(peer, at, &mut to.part(shares.of(peer) * stride, len)));
                    },
                    Wanted::All,
                    |from, bytes, shares| {
                        if from != rank {
                            write(from, at, &bytes[shares.of(rank) * stride..][..len]);
                        }
                        Ok(())
                    },
                )
                .await;
            self.settle(done, block <= most)?;
            at += len;
            if at == block {
                return Ok(true);
            }
        }
    }

    /// [`Self::alltoall`] in one step, if all blocks of all members lie in the shared heap; `false` if not.
    async fn alltoall_in_heap(
        &mut self,
        what: OperationKey,
        block: usize,
        runs: Option<(&[u8], *const u8)>,
    ) -> Result<bool> {
        if self.capacity().algorithm_kind(Collective::Alltoall, block) != AlgorithmKind::OneStepInHeap {
            return Ok(false);
        }
        let exposed_runs = runs.map_or([NO_RUN; RUNS], |(all, room)| [run_of(all), (room, all.len())]);
        let fits = |exposed: &Exposed<'_>| exposed.are_in_heap(SEND) && exposed.are_in_heap(RECV);
        if let Some(look) = self.look((Collective::Alltoall, what), exposed_runs, None)
            && let Some(exposed) = self.expose_in_heap(look, fits).await?
            && let Some((all, room)) = runs
        {
            return self.alltoall_exposed(exposed, all, room, block, |_, _| Ok(())).await.map(|()| true);
        }
        Ok(false)
    }

    /// [`Self::alltoall`] of blocks that fit into slots, those of one member for all others.
    async fn alltoall_few(
        &mut self,
        what: OperationKey,
        block: usize,
        mut read: impl FnMut(usize, usize, &mut Room<'_>),
        mut write: impl FnMut(usize, usize, &[u8]),
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let place = |of: usize, to: usize| (to - usize::from(to > of)) * block;
        self.meet_in_slots(what, |payload| {
            others(rank, size).for_each(|peer| {
                read(peer, 0, &mut Room::from(&mut payload[place(rank, peer)..][..block]));
            });
        })
        .await?;
        let mut shown = Ok(());
        for from in others(rank, size) {
            let block = self.read_slot(from, what, |payload| {
                write(from, 0, &payload[place(from, rank)..][..block]);
            });
            shown = shown.and(block);
        }
        self.leave();
        shown
    }
}

/// The members but `rank`, from the one behind it on.
fn others(rank: usize, size: usize) -> impl Iterator<Item = usize> {
    (rank + 1..size).chain(0..rank)
}

/// What lies before the bytes `range`, these, and what lies behind them.
fn around(all: &mut [u8], range: Range<usize>) -> (&mut [u8], &[u8], &mut [u8]) {
    let (before, rest) = all.split_at_mut(range.start);
    let (own, behind) = rest.split_at_mut(range.len());
    (before, own, behind)
}

/// The bytes `range` of what `before` is the beginning of and `behind`, from byte `end` on, the end.
fn beside<'r>(
    before: &'r mut [u8],
    (end, behind): (usize, &'r mut [u8]),
    range: Range<usize>,
) -> &'r mut [u8] {
    if range.end <= before.len() {
        &mut before[range]
    } else {
        &mut behind[range.start - end..range.end - end]
    }
}

/// `data` in pieces of at most `len` bytes; one, if it is empty: an operation has at least one round.
fn pieces(data: &mut [u8], len: usize) -> impl Iterator<Item = &mut [u8]> {
    let empty: Option<&mut [u8]> = data.is_empty().then_some(&mut []);
    data.chunks_mut(len).chain(empty)
}
