//! What one cell says: the commit word and the envelope.

use super::CopyTimes;
use crate::arch;
use crate::limits::LINE;
pub use crate::limits::{INLINE, MAX_RECORD as MAX_LEN};
use core::ops::{Deref, DerefMut};

/// The cell behind its commit word.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RecordBody {
    /// Context id of the communicator.
    pub context: u32,
    /// Tag.
    pub tag: i32,
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// The sender's request, for answers.
    pub id: u32,
    /// The payload, or its first words where a control record needs them.
    pub inline: [u8; INLINE],
}

const _: () = assert!(size_of::<RecordBody>() + 8 == LINE);

/// A record's envelope, as the consumer has validated it and the producer wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What kind of record this is; the ring does not look at it.
    pub kind: u8,
    /// Context id of the communicator.
    pub context: u32,
    /// Tag.
    pub tag: i32,
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// The sender's request, for answers; 0 for none.
    pub id: u32,
}

/// A record that cannot be one: the peer's memory is spoiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// What was read.
    pub what: &'static str,
    /// The offending value.
    pub value: u64,
}

/// Bytes of a block in which a room is filled with what is packed into it: they stay in the nearest cache.
const BLOCK: usize = 8 << 10;

/// Bytes from which a run is copied by whole lines.
const LONG: usize = 8 << 10;

/// Room for a payload.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    times: Option<&'a CopyTimes>,
}

impl<'a> Room<'a> {
    /// Room that is written through the cache: what is short, or what no other processor has read since this one has,
    /// so that a store to it waits for nobody.
    #[inline(always)]
    pub fn near(bytes: &'a mut [u8]) -> Self {
        Self { bytes, times: None }
    }

    /// Room that is filled as the writer has learned.
    #[inline(always)]
    pub fn learned(bytes: &'a mut [u8], times: &'a CopyTimes) -> Self {
        Self { bytes, times: Some(times) }
    }

    /// `len` bytes of it, from byte `at` on.
    pub fn part(&mut self, at: usize, len: usize) -> Room<'_> {
        Room { bytes: &mut self.bytes[at..][..len], ..*self }
    }

    /// Fills the room with packed data: `pack(at, bytes)` packs `bytes`, which begin at byte `at` of it. Past the cache
    /// it goes block by block.
    #[inline]
    pub fn fill_packed(&mut self, pack: impl Fn(usize, &mut [u8])) {
        let Some(times) = self.times else { return pack(0, self) };
        times.pack(self.len(), |past| {
            if !past {
                return pack(0, self);
            }
            let mut block = [0; BLOCK];
            for (number, to) in self.bytes.chunks_mut(BLOCK).enumerate() {
                let packed = &mut block[..to.len()];
                pack(number * BLOCK, packed);
                // SAFETY: both are as long, and the block is our own.
                unsafe { arch::copy_nontemporal(packed.as_ptr(), to.as_mut_ptr(), to.len()) };
            }
        });
    }

    /// Fills the room with a run of as many bytes as it has.
    ///
    /// # Safety
    /// `from` is valid for reads of them, and they do not overlap the room.
    #[inline(never)]
    pub unsafe fn fill_run(&mut self, from: *const u8) {
        let (to, len) = (self.as_mut_ptr(), self.len());
        // SAFETY: the room has `len` bytes, and so has `from`, without overlap, as the caller promises.
        unsafe {
            match self.times {
                Some(times) if arch::streams() => times.copy(from, to, len),
                Some(_) if len >= LONG => arch::copy_long(from, to, len),
                _ => arch::copy_run(from, to, len),
            }
        }
    }
}

impl<'a> From<&'a mut [u8]> for Room<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::near(bytes)
    }
}

impl Deref for Room<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for Room<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

/// In the length of a commit word: the first inline bytes say where the payload lies, the name of a block or
/// [`IN_NEXT_LAP`]. So it is no length of an inline payload.
const ELSEWHERE: usize = 1 << 23;
const _: () = assert!(MAX_LEN < ELSEWHERE);

/// The payload lies at the beginning of the bulk area, which was not used to its end. No block has this name.
pub(super) const IN_NEXT_LAP: u32 = u32::MAX;

/// The length in a commit word of a payload of `len` bytes that lies elsewhere than behind the last one.
#[inline(always)]
pub(super) fn elsewhere(len: usize) -> usize {
    len | ELSEWHERE
}

/// The payload's length, of what a commit word says of it.
#[inline(always)]
pub(super) fn length(said: usize) -> usize {
    said & !ELSEWHERE
}

/// Whether it lies elsewhere.
#[inline(always)]
pub(super) fn is_elsewhere(said: usize) -> bool {
    said & ELSEWHERE != 0
}

/// The commit word: position + 1 (low half), kind, payload length.
#[inline(always)]
pub(super) fn commit_word(position: u64, kind: u8, len: usize) -> u64 {
    u64::from(sequence(position)) | u64::from(kind) << 32 | (len as u64) << 40
}

/// The low half of the commit word at `position`; never 0 at the first lap, so zeroed memory holds no record.
#[inline(always)]
pub(super) fn sequence(position: u64) -> u32 {
    (position as u32).wrapping_add(1)
}

/// Kind and what is said of the payload out of a commit word:
/// up to [`INLINE`] its length, above it for [`length`] and [`is_elsewhere`].
#[inline(always)]
pub(super) fn split(word: u64) -> (u8, usize) {
    ((word >> 32) as u8, (word >> 40) as usize)
}

/// Where a payload lies in the bulk area.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkPlace {
    /// Its position, line-aligned.
    pub start: u64,
    /// The next free one, line-aligned.
    pub end: u64,
    /// Whether it begins a lap before the area ends: the record says so.
    pub in_next_lap: bool,
}

impl BulkPlace {
    /// Of `len` bytes when the bulk position is `at`: behind the end of the area if it would not fit in front of it.
    #[inline]
    pub fn behind(at: u64, len: usize, capacity: usize) -> Self {
        let offset = at & (capacity as u64 - 1);
        let start = if offset as usize + len > capacity { next_lap(at, capacity) } else { at };
        Self { start, end: (start + len as u64).next_multiple_of(LINE as u64), in_next_lap: false }
    }

    /// Of `len` bytes at the beginning of the next lap.
    #[inline]
    pub fn in_next_lap(at: u64, len: usize, capacity: usize) -> Self {
        Self { in_next_lap: true, ..Self::behind(next_lap(at, capacity), len, capacity) }
    }
}

/// Where the lap behind the one of position `at` begins.
#[inline]
pub(super) fn next_lap(at: u64, capacity: usize) -> u64 {
    (at & !(capacity as u64 - 1)) + capacity as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_data_fill_the_room_whatever_the_way() {
        let byte = |at: usize| (at % 251) as u8;
        for len in [0, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77] {
            let (through, past) = (CopyTimes::default(), CopyTimes::going_past());
            for times in [None, Some(&through), Some(&past)] {
                let mut bytes = vec![0; len];
                Room { bytes: &mut bytes, times }
                    .fill_packed(|at, to| (at..).zip(to).for_each(|(at, to)| *to = byte(at)));
                assert!((0..len).all(|at| bytes[at] == byte(at)), "{len} {times:?}");
            }
        }
    }
}
