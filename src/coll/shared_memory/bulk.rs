//! The bulk: parts and stretches of parts, what is whose in them, and until when they are read.

use super::hold::Hold;
use super::{OperationKey, Place, TeamGuard};
use crate::error::Result;
use crate::limits::PAGE;
use crate::team::{Condition, PARTS, STRETCHES};

/// Bytes up to which what one member shows to all lies in a stretch of a part: all stretches together stay in a cache.
const LITTLE: usize = 4 << 10;

/// The stretches of all parts.
const ALL_STRETCHES: u64 = (PARTS * STRETCHES) as u64;

impl<H: Hold> TeamGuard<'_, H> {
    /// Which share is whose in the part of the bulk that was taken last.
    pub(super) fn shares(&mut self) -> Shares {
        let size = self.size();
        // All members have taken as many parts.
        Shares {
            size,
            turn: if size == 2 { (self.team().uses.wrapping_sub(1) / ALL_STRETCHES % 2) as usize } else { 0 },
        }
    }

    /// Start of the next part of the bulk, or of the next two, which lie side by side, once they are free;
    /// all write, then all read.
    pub(super) async fn parts(&mut self, width: Width) -> Result<*mut u8> {
        if width == Width::One {
            return self.part(Readers::Stay, true).await;
        }
        // A pair begins at an even part. One that is left out stays as free as it was.
        let team = self.team();
        team.uses = team.uses.next_multiple_of(2 * STRETCHES as u64);
        let first = self.part(Readers::Stay, true).await?;
        self.part(Readers::Stay, true).await?;
        Ok(first)
    }

    /// Has a part of the bulk have `bytes` bytes, or as many as it may have: it grows if it has less. Returns whether
    /// it has; all members get the same answer.
    ///
    /// # Errors
    /// Those of waiting.
    pub(super) async fn make_room(&mut self, bytes: usize) -> Result<bool> {
        let storage = self.rounds().storage();
        let bytes = bytes.min(storage.most_part_bytes());
        if bytes <= storage.part_bytes() {
            return Ok(true);
        }
        Box::pin(self.grow(bytes)).await
    }

    /// As [`Self::make_room`], for `len` bytes in a round of [`Self::one_to_all`]. For little, a stretch is to have
    /// room: for as many bytes whatever `len`, so that members that disagree about it find out in that round.
    pub(super) async fn make_room_one_to_all(&mut self, len: usize) -> Result<bool> {
        Ok(len <= LITTLE && self.make_room(LITTLE * STRETCHES).await? || self.make_room(len).await?)
    }

    /// As [`Self::make_room`], for `len` bytes of each member in a round of [`Self::among_all`].
    pub(super) async fn make_room_among_all(&mut self, (len, width): (usize, Width)) -> Result<bool> {
        let all = len.next_multiple_of(64).saturating_mul(self.size());
        self.make_room(all.div_ceil(width as usize)).await
    }

    /// Rank 0 takes the memory that the bulk needs for parts of `bytes` bytes;
    /// a round says to the others whether there is any.
    #[cold]
    async fn grow(&mut self, bytes: usize) -> Result<bool> {
        if self.team().cannot_grow {
            return Ok(false);
        }
        // A power of two, so that operations that get longer and longer seldom find it too small.
        let bytes = bytes.next_power_of_two().max(PAGE);
        let mut there = self.rank() == 0 && self.team().reserve_bulk(bytes);
        let own = [u8::from(there)];
        self.one_to_all(OperationKey::numbered(0xff, 0, bytes), 0, 1, |place| match place {
            Place::Room(to) => to.copy_from_slice(&own),
            Place::Bytes(from) => there = from == [1],
        })
        .await?;
        let team = self.team();
        if there {
            team.rounds.storage_mut().set_part_bytes(bytes);
            // Team rule 6: before all have arrived in that round, some may still read what will be another part.
            team.free_when = [team.rounds.round(); PARTS * STRETCHES];
        } else {
            team.cannot_grow = true;
        }
        Ok(there)
    }

    /// Start of the next part of the bulk; for a writer, once it is free (team rule 6).
    pub(super) async fn part(&mut self, readers: Readers, writes: bool) -> Result<*mut u8> {
        self.stretches(STRETCHES, readers, writes).await
    }

    /// How many stretches of a part a round takes that shows `len` bytes: one, or the part. So where ranks share CPUs
    /// and one shows little to all again and again, one turn of all serves for up to 32 rounds.
    pub(super) fn stretches_for(&mut self, len: usize) -> usize {
        let stretch = self.rounds().storage().part_bytes() / STRETCHES;
        if len <= stretch.min(LITTLE) { 1 } else { STRETCHES }
    }

    /// Start of the next `count` stretches of the bulk, one or a part; for a writer, once they are free (team rule 6).
    pub(super) async fn stretches(
        &mut self,
        count: usize,
        readers: Readers,
        writes: bool,
    ) -> Result<*mut u8> {
        let team = self.team();
        let begin = team.uses.next_multiple_of(count as u64);
        team.uses = begin + count as u64;
        let at = (begin % ALL_STRETCHES) as usize;
        let used = &mut team.free_when[at..][..count];
        let free_when = used.iter().copied().max().unwrap_or(0);
        used.fill(team.rounds.round() + 1 + readers as u64);
        let storage = team.rounds.storage();
        let within = at % STRETCHES * (storage.part_bytes() / STRETCHES);
        let start = storage.part(at / STRETCHES).wrapping_add(within);
        if let (true, Some(round)) = (writes, free_when.checked_sub(1)) {
            wait!(self, Condition::Complete(round));
        }
        Ok(start)
    }
}

/// Which share of a part of the bulk is whose. Of two members, each has the share that the other had when the part was
/// last used: it has read that since, so it need not wait for the other's processor when it writes there.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    size: usize,
    turn: usize,
}

impl Shares {
    /// Each member has its own.
    pub const FIXED: Self = Self { size: 0, turn: 0 };

    /// Number of the share of `member`.
    pub fn of(self, member: usize) -> usize {
        if self.size == 2 { member ^ self.turn } else { member }
    }

    /// Whether the members take them in turn.
    pub fn alternate(self) -> bool {
        self.size == 2
    }
}

/// How many parts of the bulk a round takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    One = 1,
    /// While they are read, two more can be written, and no others.
    Two = 2,
}

// Pairs never go round the end, and stretches begin where any element may lie.
const _: () = assert!(PARTS.is_multiple_of(2) && (PAGE / STRETCHES).is_multiple_of(64));

/// Until when a part is read that is written in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// They read, then arrive in that round.
    Arrive = 0,
    /// They arrive, then read.
    Stay = 1,
    /// They read in the round after it, having arrived.
    NextRound = 2,
}
