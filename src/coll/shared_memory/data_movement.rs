//! Collectives that move data, as sequences of rounds. Each returns `Ok(false)`, at all members and before anything has happened, for a
//! case that it does not serve.

use super::{OperationKey, TeamGuard, Width};
use crate::error::Result;
use crate::events::Collective;
use crate::team::PAYLOAD;
use crate::variables::VariableId;
use core::cmp::Ordering;

impl TeamGuard<'_> {
    /// Returns when all members have called it.
    ///
    /// # Errors
    /// Those of waiting.
    pub fn barrier(&mut self) -> Result<()> {
        self.enter()?;
        if !self.arrive(|_| {})? {
            self.wait_complete()?;
        }
        self.leave();
        Ok(())
    }

    /// Makes every rank's `data` that of `root`.
    ///
    /// # Errors
    /// Those of waiting; [`crate::Error::Other`] where members disagree about the operation.
    pub fn bcast(&mut self, data: &mut [u8], root: usize) -> Result<bool> {
        let what = OperationKey::new(Collective::Bcast, root, data.len());
        if self.is_direct_from_one(data.len())? {
            return self.bcast_direct(what, data, root).map(|()| true);
        }
        if !self.has_room(data.len())? {
            return Ok(false);
        }
        let piece = self.room_one_to_all();
        let one = data.len() <= piece;
        let is_root = self.rank() == root;
        for piece in pieces(data, piece) {
            let len = piece.len();
            let done = if is_root {
                self.one_to_all(what, root, len, |to| to.copy_from_slice(piece), |_| {})
            } else {
                self.one_to_all(what, root, len, |_| {}, |from| piece.copy_from_slice(from))
            };
            self.settle(done, one)?;
        }
        Ok(true)
    }

    /// Returns the outcome of a round. A failure in one of several rounds leaves members in different ones, so the team cannot go on.
    pub(super) fn settle(&mut self, done: Result<()>, only: bool) -> Result<()> {
        if only { done } else { done.map_err(|error| self.fail_with(error)) }
    }

    /// Fills `all`, which consists of a block for each member, of equal length, of which the caller's own is filled in.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub fn allgather(&mut self, all: &mut [u8]) -> Result<bool> {
        let (rank, size) = (self.rank(), self.size());
        let block = all.len() / size;
        let what = OperationKey::new(Collective::Allgather, 0, block);
        if self.is_direct(block)? {
            return self.allgather_direct(None, all, block).map(|()| true);
        }
        if !self.has_room(block)? {
            return Ok(false);
        }
        let most = 2 * self.engine.config().coll_piece();
        let room = if block <= PAYLOAD { PAYLOAD } else { self.room_among_all(Width::One).min(most) };
        let mut at = 0;
        loop {
            let len = room.min(block - at);
            let (before, rest) = all.split_at_mut(rank * block);
            let (own, behind) = rest.split_at_mut(block);
            let done = self.among_all(
                what,
                (len, Width::One),
                |to| to.copy_from_slice(&own[at..][..len]),
                0..size,
                |from, bytes| {
                    let theirs = match from.cmp(&rank) {
                        Ordering::Less => &mut before[from * block..],
                        Ordering::Equal => return Ok(()),
                        Ordering::Greater => &mut behind[(from - rank - 1) * block..],
                    };
                    theirs[at..][..len].copy_from_slice(bytes);
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

    /// Gathers blocks of `block` bytes at `root`: `own` copies the caller's, and `each` is shown those of all members there.
    ///
    /// # Errors
    /// As for [`Self::bcast`], and those of `each`.
    pub fn gather(
        &mut self,
        block: usize,
        root: usize,
        own: impl FnOnce(&mut [u8]),
        each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        if block > PAYLOAD && (block > self.room_among_all(Width::One) || !self.has_room(block)?) {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Gather, root, block);
        let wanted = if self.rank() == root { 0..self.size() } else { 0..0 };
        self.among_all(what, (block, Width::One), own, wanted, each).map(|()| true)
    }

    /// Scatters blocks of `block` bytes from `root`: `all` copies those for all members there, and `own` is shown the caller's elsewhere.
    ///
    /// # Errors
    /// As for [`Self::bcast`].
    pub fn scatter(
        &mut self,
        block: usize,
        root: usize,
        all: impl FnOnce(&mut [u8]),
        own: impl FnOnce(&[u8]),
    ) -> Result<bool> {
        let Some(len) = block.checked_mul(self.size()) else { return Ok(false) };
        if len > PAYLOAD && (len > self.room_one_to_all() || !self.has_room(len)?) {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Scatter, root, block);
        let at = self.rank() * block;
        self.one_to_all(what, root, len, all, |from| own(&from[at..][..block])).map(|()| true)
    }

    /// Returns whether the team serves an alltoall of blocks of `block` bytes, if there is memory for it.
    pub fn serves_alltoall(&mut self, block: usize) -> bool {
        block <= self.alltoall_room()
    }

    /// Returns the largest block of an alltoall that the team serves, in bytes.
    fn alltoall_room(&mut self) -> usize {
        let size = self.size();
        let one = self.alltoall_piece(Width::One);
        let config = self.engine.config();
        // Tiny pieces make many rounds; but where ranks outnumber CPUs, so do messages, which wait for one rank after the other.
        let pieces = one >= 64 || (one > 0 && config.shape().is_oversubscribed());
        let most = if pieces { config.number(VariableId::CollAlltoallMost) as usize } else { 0 };
        most.max(one).max(PAYLOAD / size)
    }

    /// Returns the bytes of each block that one round of an alltoall of that width takes.
    fn alltoall_piece(&mut self, width: Width) -> usize {
        let room = self.room_among_all(width) / self.size();
        room.min(self.engine.config().coll_piece()) & !15
    }

    /// Where ranks outnumber CPUs a round costs a switch of each, so blocks that take several rounds take as few as can be.
    fn alltoall_width(&mut self, block: usize) -> Width {
        let several = block > self.alltoall_piece(Width::One);
        let oversubscribed = self.engine.config().shape().is_oversubscribed();
        if several && oversubscribed && block * self.size() > PAYLOAD { Width::Two } else { Width::One }
    }

    /// Every member has a block of `block` bytes for every other, at most `coll_alltoall_most`. `read` copies a stretch of the
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
        if !self.serves_alltoall(block) || !self.has_room(block * size)? {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Alltoall, 0, block);
        let width = self.alltoall_width(block);
        let most = if block * size <= PAYLOAD { block } else { self.alltoall_piece(width) };
        let mut at = 0;
        loop {
            let len = most.min(block - at);
            // Blocks begin where elements may, and no two members' blocks are in one stretch of memory.
            let stride = if block * size <= PAYLOAD { len } else { len.next_multiple_of(16) };
            let total = if stride == len { len * size } else { stride * size };
            let done = self.among_all(
                what,
                (total, width),
                |to| {
                    let peers = (0..size).filter(|&peer| peer != rank);
                    peers.for_each(|peer| read(peer, at, &mut to[peer * stride..][..len]));
                },
                0..size,
                |from, bytes| {
                    if from != rank {
                        write(from, at, &bytes[rank * stride..][..len]);
                    }
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
}

/// `data` in pieces of at most `len` bytes; one, if it is empty: an operation has at least one round.
fn pieces(data: &mut [u8], len: usize) -> impl Iterator<Item = &mut [u8]> {
    let empty: Option<&mut [u8]> = data.is_empty().then_some(&mut []);
    data.chunks_mut(len).chain(empty)
}
