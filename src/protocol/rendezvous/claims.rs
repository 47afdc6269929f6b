//! One copy by two ranks: which of them copies which part, decided while both are at work.
//!
//! Both see both buffers. The receiver takes parts of the message from its beginning on, the sender from its end, until
//! they meet: the faster one does more, and one that never comes leaves all to the other. What is still to be taken is
//! one word beside the ring that the message was announced in:
//!
//! ```text
//! turn (32 bits) | low (16 bits) | high (16 bits)      units [low, high) of the message are nobody's yet
//! ```
//!
//! # Rules
//!
//! - **Share rule 1.** The receiver alone opens a turn, when all units of the turn before are somebody's; it has the
//!   first part of it from the beginning.
//! - **Share rule 2.** A unit belongs to the rank that took it: the receiver by raising `low`, the sender by lowering
//!   `high`, each by compare and exchange of the whole word. So no unit has two owners, and none is left out.
//! - **Share rule 3.** The sender takes nothing of a turn that is not the one that a record named: it may come late.
//! - **Share rule 4.** The word publishes no bytes. The sender's are the receiver's to read when a record says that
//!   they are there (`HeapDone`, edge 1), and the sender's buffer is free when the receiver says so (`Fin`, edge 1).
//!
//! A peer may write anything into the word; a taker checks what it takes against the message.

use crate::sync::{AtomicU64, Ordering};
use core::ops::Range;

/// Bytes of the smallest unit.
const UNIT: usize = 4 << 10;
/// Most units of a message.
const UNITS: usize = 1 << 15;
/// Units that are worth a claim of their own at the end.
const LEAST: u32 = if cfg!(perusal_loom) { 1 } else { 2 };

/// How a message is cut into units: both ranks compute it from its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    total: usize,
    unit: usize,
}

impl Split {
    /// The units of a message of `total` bytes.
    #[must_use]
    pub fn of(total: usize) -> Self {
        Self::into_units(total, UNIT)
    }

    /// The same in units of at least so many bytes, where each part costs a system call.
    #[must_use]
    pub fn into_units(total: usize, least: usize) -> Self {
        Self { total, unit: total.div_ceil(UNITS).max(least).next_multiple_of(UNIT) }
    }

    fn units(self) -> u32 {
        self.total.div_ceil(self.unit) as u32
    }

    fn bytes(self, units: Range<u32>) -> Range<usize> {
        units.start as usize * self.unit..(units.end as usize * self.unit).min(self.total)
    }
}

/// Somebody wrote what makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Garbage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClaimWord {
    turn: u32,
    low: u16,
    high: u16,
}

impl ClaimWord {
    fn of(bits: u64) -> Self {
        Self { turn: (bits >> 32) as u32, low: (bits >> 16) as u16, high: bits as u16 }
    }

    fn bits(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.low) << 16 | u64::from(self.high)
    }
}

/// How many of the units that are left one of two takes: many at first, few at the end, so that both end together.
fn share(left: u32) -> u32 {
    (left / 2).max(LEAST).min(left)
}

/// What is still to be taken of the message that two ranks copy.
#[derive(Debug, Clone, Copy)]
pub struct Claims<'a>(&'a AtomicU64);

impl<'a> Claims<'a> {
    /// The claims that a word keeps; zero for none.
    #[must_use]
    pub fn over(word: &'a AtomicU64) -> Self {
        Self(word)
    }

    /// Opens the next turn (share rule 1): its number, which is not zero, and the receiver's first part in bytes.
    #[must_use]
    pub fn open(self, split: Split) -> (u32, Range<usize>) {
        // Relaxed, here and below: the word publishes nothing (share rule 4); that the sender sees this turn or a later
        // one comes with the record that tells it of the turn.
        let before = ClaimWord::of(self.0.load(Ordering::Relaxed)).turn;
        let turn = before.wrapping_add(1).max(1);
        let units = split.units();
        // The sender comes later. At least one unit: a rank that takes nothing has no part in the copy.
        let first = share((units * 3 / 4).max(1));
        self.0.store(ClaimWord { turn, low: first as u16, high: units as u16 }.bits(), Ordering::Relaxed);
        (turn, split.bytes(0..first))
    }

    /// The receiver's next part; `None` when nothing is left.
    ///
    /// # Errors
    /// [`Garbage`] if a part of this message it is not.
    pub fn take_low(self, turn: u32, split: Split) -> Result<Option<Range<usize>>, Garbage> {
        self.take(split, |word| {
            let count = share(u32::from(word.high - word.low)) as u16;
            let units = word.low..word.low + count;
            (word.turn == turn)
                .then_some((ClaimWord { low: units.end, ..word }, units))
                .ok_or(Garbage)
                .map(Some)
        })
    }

    /// The sender's next part; `None` when nothing is left, or the turn is over (share rule 3).
    ///
    /// # Errors
    /// [`Garbage`] if a part of this message it is not.
    pub fn take_high(self, turn: u32, split: Split) -> Result<Option<Range<usize>>, Garbage> {
        self.take(split, |word| {
            let count = share(u32::from(word.high - word.low)) as u16;
            let units = word.high - count..word.high;
            Ok((word.turn == turn).then_some((ClaimWord { high: units.start, ..word }, units)))
        })
    }

    fn take(
        self,
        split: Split,
        part: impl Fn(ClaimWord) -> Result<Option<(ClaimWord, Range<u16>)>, Garbage>,
    ) -> Result<Option<Range<usize>>, Garbage> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let word = ClaimWord::of(seen);
            if word.low >= word.high {
                // Nothing is left. (Of another turn there may be, but it has none for us.)
                return if word.low == word.high { Ok(None) } else { Err(Garbage) };
            }
            let Some((after, units)) = part(word)? else { return Ok(None) };
            if u32::from(units.end) > split.units() {
                return Err(Garbage);
            }
            // Relaxed: share rule 4.
            match self.0.compare_exchange_weak(seen, after.bits(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(Some(split.bytes(u32::from(units.start)..u32::from(units.end)))),
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_taken_once_whoever_takes() {
        for total in [1, 4096, 4097, 65_536, 1_000_003, 200 << 20] {
            for pattern in 0..128_u32 {
                let least = if pattern < 64 { UNIT } else { total / 8 };
                let (word, split) = (AtomicU64::new(0), Split::into_units(total, least));
                let claims = Claims::over(&word);
                let (turn, first) = claims.open(split);
                let mut parts = vec![first];
                for step in 0.. {
                    let low = pattern >> (step % 6) & 1 == 0;
                    let part = if low { claims.take_low(turn, split) } else { claims.take_high(turn, split) };
                    let Some(part) = part.expect("no garbage") else { break };
                    parts.push(part);
                }
                parts.sort_unstable_by_key(|part| part.start);
                assert_eq!((parts[0].start, parts.last().map(|part| part.end)), (0, Some(total)));
                assert!(parts.windows(2).all(|two| two[0].end == two[1].start), "{total} {parts:?}");
            }
        }
    }

    #[test]
    fn who_comes_late_gets_nothing() {
        let (word, split) = (AtomicU64::new(0), Split::of(1 << 20));
        let claims = Claims::over(&word);
        let (turn, _) = claims.open(split);
        while claims.take_low(turn, split).expect("no garbage").is_some() {}
        assert_eq!(claims.take_high(turn, split), Ok(None));
        let (next, _) = claims.open(split);
        assert_ne!(next, turn);
        assert_eq!(claims.take_high(turn, split), Ok(None), "of the next turn it has none");
        assert!(claims.take_high(next, split).expect("no garbage").is_some());
    }

    #[test]
    fn a_word_that_makes_no_sense_is_garbage() {
        let split = Split::of(1 << 20);
        let garbled = |turn, low, high| AtomicU64::new(ClaimWord { turn, low, high }.bits());
        for word in [garbled(1, 0, 257), garbled(1, 9, 8)] {
            assert_eq!(Claims::over(&word).take_high(1, split), Err(Garbage));
        }
        assert_eq!(Claims::over(&garbled(1, 500, 700)).take_low(1, split), Err(Garbage));
        assert_eq!(Claims::over(&garbled(2, 0, 5)).take_low(1, split), Err(Garbage));
    }

    #[test]
    fn the_number_of_a_turn_is_never_zero() {
        let word = AtomicU64::new(u64::from(u32::MAX) << 32);
        assert_eq!(Claims::over(&word).open(Split::of(1 << 20)).0, 1);
    }
}
