//! Where the records of a trace lie: the windows of its file. Nothing in them is believed.

use super::format::{self, get_u32, get_u64, window};
use crate::sync::{Ordering, fence};
use core::cmp::Reverse;

/// A window that is there.
pub struct Window {
    /// Whose it is.
    pub rank: u32,
    /// Of which of that rank's streams.
    pub stream: u32,
    /// How many the stream had before.
    pub sequence: u32,
    /// Where it ends.
    to: u64,
    /// Where its records begin.
    pub from: u64,
    /// How many there are, and holes between them.
    pub count: usize,
    /// When it was opened, in ticks and nanoseconds; nothing if it is being opened again.
    pub opened: Option<(u64, u64)>,
}

impl Window {
    /// The window that begins at `at`, if one does.
    fn at(bytes: &[u8], at: u64, ranks: u32) -> Option<Window> {
        let word = |offset| get_u32(bytes, at + offset);
        if look(bytes, at + window::MAGIC)? != format::WINDOW_MAGIC {
            return None;
        }
        let rank = word(window::RANK)?;
        let [sequence, units] = halves(look(bytes, at + window::SEQUENCE)?);
        if rank >= ranks || units == 0 {
            return None;
        }
        let from = at + format::WINDOW_HEADER;
        // A file that was cut has the start of its last window.
        let to = (at + u64::from(units) * format::UNIT).min(bytes.len() as u64);
        let records = records_at(bytes, from, to);
        Some(Window {
            rank,
            stream: word(window::STREAM)?,
            sequence,
            to,
            from,
            count: valid(records, get_u64(bytes, at + window::AFTER)?),
            opened: opened(|offset| look(bytes, at + offset)),
        })
    }

    /// Its records.
    pub fn records<'a>(&self, bytes: &'a [u8]) -> &'a [RecordBytes] {
        &records_at(bytes, self.from, self.to)[..self.count]
    }

    /// Places for records behind its last one.
    pub fn left(&self, bytes: &[u8]) -> u64 {
        (records_at(bytes, self.from, self.to).len() - self.count) as u64
    }
}

/// When a window was opened, on both clocks, by a look at one word after the other;
/// nothing while it is being opened again (trace rule 5).
pub fn opened(mut look: impl FnMut(u64) -> Option<u64>) -> Option<(u64, u64)> {
    let (ticks, nanoseconds) = (look(window::TICKS)?, look(window::NANOSECONDS)?);
    (ticks != 0 && nanoseconds != 0 && look(window::TICKS)? == ticks).then_some((ticks, nanoseconds))
}

/// Reads a word that a living job may change, before all that is read from now on.
/// Words of a window's header are in their places.
fn look(bytes: &[u8], at: u64) -> Option<u64> {
    let word = bytes.get(usize::try_from(at).ok()?..)?.first_chunk::<8>()?;
    let place = word.as_ptr().cast::<u64>();
    // SAFETY: eight bytes of a living slice, at a multiple of eight.
    // Volatile, so that the job's change is seen, and whole.
    let value = if place.is_aligned() { unsafe { place.read_volatile() } } else { u64::from_ne_bytes(*word) };
    // Acquire: "trace" edge, pairs with the stores of `WindowHeader`, in another process.
    fence(Ordering::Acquire);
    Some(u64::from_le(value))
}

/// Two numbers that are written as one word.
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// The bytes of a record.
pub type RecordBytes = [u8; format::RECORD as usize];

fn records_at(bytes: &[u8], from: u64, to: u64) -> &[RecordBytes] {
    bytes.get(from as usize..to as usize).unwrap_or_default().as_chunks().0
}

/// How far a window's records go: behind the last that is there. What is left from before is none (trace rules 3, 4); a
/// place before the last that has none is a hole in the file. Time does not go back in a stream; where it does, the job
/// has begun to write the window again while we read.
fn valid(records: &[RecordBytes], after: u64) -> usize {
    let first_word = |record: &RecordBytes| u64::from_le_bytes(record[..8].try_into().expect("eight bytes"));
    let ticks =
        |record: &RecordBytes| Some(first_word(record)).filter(|word| *word != 0).map(format::ticks_of);
    let is_there = |ticks: &u64| after == 0 || *ticks > after;
    // Most windows are full: then it is enough to compare the ends.
    if let [first, .., last] = records
        && let (Some(first), Some(last)) = (ticks(first), ticks(last).filter(is_there))
        && first <= last
    {
        return records.len();
    }
    let (mut count, mut before) = (0, 0);
    for (record, behind) in records.iter().zip(1..) {
        match ticks(record) {
            None => {}
            Some(ticks) if is_there(&ticks) && ticks >= before => (count, before) = (behind, ticks),
            Some(_) => break,
        }
    }
    count
}

/// All windows of a trace whose header was checked, by rank, stream and sequence, each once.
/// Where none begins (its taker was killed at once), the next unit is tried.
pub fn windows(bytes: &[u8], ranks: u32) -> Vec<Window> {
    let mut found = Vec::new();
    let mut at = get_u64(bytes, format::header::WINDOWS).unwrap_or(u64::MAX);
    while at < bytes.len() as u64 {
        match Window::at(bytes, at, ranks) {
            Some(window) => {
                at = window.to.next_multiple_of(format::UNIT);
                found.push(window);
            }
            None => at += format::UNIT,
        }
    }
    // Acquire: "trace" edge, pairs with the stores of records:
    // whoever has seen a record's first word reads the rest of it from now on.
    fence(Ordering::Acquire);
    found.sort_by_key(|window| (window.rank, window.stream, window.sequence, Reverse(window.count)));
    found.dedup_by_key(|window| (window.rank, window.stream, window.sequence));
    found
}
