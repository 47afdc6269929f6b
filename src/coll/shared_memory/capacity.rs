//! What a team has room for. All members get the same answers.

use super::{AlgorithmKind, Width};
use crate::events::Collective;
use crate::team::PAYLOAD;
use crate::variables::{Config, VariableId};

/// Members that share CPUs, up to which longer scatters and gathers are messages: a member goes on when it has its
/// block, while the root sends the next, or when it has sent its own.
pub(super) const FEW_MEMBERS: usize = 4;

/// Bytes of all blocks together that more members scatter through a part at most. Of more, each block is read out of
/// the root's memory; but shorter ones would go into the rings, which the others must empty before the root can go on.
/// (Eight members on two CPUs, 32 KiB each: 27 to 32 microseconds, by messages 31 to 78; sixteen 68 to 111, and 102 to
/// 150; 16 KiB 42 to 58, and 82 to 102.)
const IN_A_PART: usize = 512 << 10;

/// What a team has room for.
#[derive(Clone, Copy)]
pub struct TeamCapacity<'a> {
    /// The job's variables.
    pub config: &'a Config,
    /// Members.
    pub size: usize,
    /// Bytes that a part of the bulk may have.
    pub part_bytes: usize,
    /// Whether the members can read each other's memory, as far as is known.
    pub direct: bool,
}

impl TeamCapacity<'_> {
    /// Bytes that one round takes at most in which one member shows something to all.
    #[inline]
    pub(super) fn room_one_to_all(&self) -> usize {
        self.part_bytes.min(self.config.coll_piece())
    }

    /// Returns whether one round takes a scatter of blocks of `block` bytes,
    /// of which all but the root's own lie together.
    #[inline]
    pub(super) fn has_room_for_scatter(&self, block: usize) -> bool {
        let all = block.saturating_mul(self.size - 1);
        let in_a_part = self.size > FEW_MEMBERS
            && all <= IN_A_PART
            && block <= self.config.coll_direct_from()
            && self.config.shape().is_oversubscribed();
        all <= PAYLOAD.max(if in_a_part { self.part_bytes } else { self.room_one_to_all() })
    }

    /// Bytes of each member that one round takes at most in which all show something.
    #[inline]
    pub(super) fn room_among_all(&self, width: Width) -> usize {
        (self.part_bytes * width as usize / self.size) & !63
    }

    /// Returns whether the team serves an operation, if there is memory for it;
    /// `bytes` as for [`Self::algorithm_kind`].
    #[must_use]
    pub fn may_serve(&self, operation: Collective, bytes: usize) -> bool {
        match self.algorithm_kind(operation, bytes) {
            AlgorithmKind::Messages => false,
            AlgorithmKind::OneStep if self.direct => true,
            AlgorithmKind::OneStep | AlgorithmKind::OneStepInHeap | AlgorithmKind::Rounds => {
                match operation {
                    Collective::Alltoall => self.has_room_for_alltoall(bytes),
                    Collective::Scatter => self.has_room_for_scatter(bytes),
                    Collective::Gather | Collective::Scan | Collective::Exscan => {
                        bytes <= PAYLOAD.max(self.room_among_all(Width::One))
                    }
                    // These go in pieces.
                    _ => true,
                }
            }
        }
    }

    /// Returns whether rounds take an alltoall of blocks of `block` bytes.
    pub(super) fn has_room_for_alltoall(&self, block: usize) -> bool {
        let one = self.alltoall_piece(Width::One);
        // Tiny pieces make many rounds; but where ranks outnumber CPUs, so do messages,
        // which wait for one rank after the other.
        let pieces = one >= 64 || (one > 0 && self.config.shape().is_oversubscribed());
        let most = if pieces { self.config.number(VariableId::CollAlltoallMost) as usize } else { 0 };
        block <= most.max(one).max(PAYLOAD / self.size)
    }

    /// Returns the bytes of each block that one round of an alltoall of that width takes.
    pub(super) fn alltoall_piece(&self, width: Width) -> usize {
        let room = self.room_among_all(width) / self.size;
        room.min(self.config.coll_piece()) & !15
    }

    /// Where ranks outnumber CPUs a round costs a switch of each,
    /// so blocks that take several rounds take as few as can be.
    pub(super) fn alltoall_width(&self, block: usize) -> Width {
        let several = block > self.alltoall_piece(Width::One);
        let oversubscribed = self.config.shape().is_oversubscribed();
        if several && oversubscribed && block * self.size > PAYLOAD { Width::Two } else { Width::One }
    }
}
