//! What a team has room for. All members get the same answers.

use super::{Way, Width};
use crate::events::Collective;
use crate::team::PAYLOAD;
use crate::variables::{Config, VariableId};

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

    /// Bytes of each member that one round takes at most in which all show something.
    #[inline]
    pub(super) fn room_among_all(&self, width: Width) -> usize {
        (self.part_bytes * width as usize / self.size) & !63
    }

    /// Returns whether the team serves an operation, if there is memory for it; `bytes` as for [`Self::way`].
    #[must_use]
    pub fn may_serve(&self, operation: Collective, bytes: usize) -> bool {
        match self.way(operation, bytes) {
            Way::Messages => false,
            Way::OneStep if self.direct => true,
            Way::OneStep | Way::Rounds => match operation {
                Collective::Alltoall => self.has_room_for_alltoall(bytes),
                Collective::Scatter => {
                    bytes.saturating_mul(self.size - 1) <= PAYLOAD.max(self.room_one_to_all())
                }
                Collective::Gather | Collective::Scan | Collective::Exscan => {
                    bytes <= PAYLOAD.max(self.room_among_all(Width::One))
                }
                // These go in pieces.
                _ => true,
            },
        }
    }

    /// Returns whether rounds take an alltoall of blocks of `block` bytes.
    pub(super) fn has_room_for_alltoall(&self, block: usize) -> bool {
        let one = self.alltoall_piece(Width::One);
        // Tiny pieces make many rounds; but where ranks outnumber CPUs, so do messages, which wait for one rank after the other.
        let pieces = one >= 64 || (one > 0 && self.config.shape().is_oversubscribed());
        let most = if pieces { self.config.number(VariableId::CollAlltoallMost) as usize } else { 0 };
        block <= most.max(one).max(PAYLOAD / self.size)
    }

    /// Returns the bytes of each block that one round of an alltoall of that width takes.
    pub(super) fn alltoall_piece(&self, width: Width) -> usize {
        let room = self.room_among_all(width) / self.size;
        room.min(self.config.coll_piece()) & !15
    }

    /// Where ranks outnumber CPUs a round costs a switch of each, so blocks that take several rounds take as few as can be.
    pub(super) fn alltoall_width(&self, block: usize) -> Width {
        let several = block > self.alltoall_piece(Width::One);
        let oversubscribed = self.config.shape().is_oversubscribed();
        if several && oversubscribed && block * self.size > PAYLOAD { Width::Two } else { Width::One }
    }
}
