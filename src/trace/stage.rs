//! The words of a stage, as a rank writes them while another process may read the file: the order of stores is what
//! trace rules 2 to 5 promise.

use super::format::{self, WINDOW_HEADER, window};
use crate::sync::{AtomicU64, Ordering};

/// Words of a record.
pub const WORDS: usize = format::RECORD as usize / 8;

/// The place of a record.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RecordSlot(pub [AtomicU64; WORDS]);

impl RecordSlot {
    /// Writes a record, the word that makes it one last (trace rule 3).
    #[inline(always)]
    pub fn store(&self, words: [u64; WORDS]) {
        // Relaxed: published by the store below.
        self.0[1].store(words[1], Ordering::Relaxed);
        self.0[2].store(words[2], Ordering::Relaxed);
        self.0[3].store(words[3], Ordering::Relaxed);
        // Release: "trace" edge, to a reader of the file, whom nothing else orders: a thread that sees the first word
        // sees the record, and the header as it was before.
        self.0[0].store(words[0], Ordering::Release);
    }
}

/// The header of a window.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct WindowHeader(pub [AtomicU64; WINDOW_HEADER as usize / 8]);

impl WindowHeader {
    /// Writes the header for the first time, in a window of `units` units opened at `ticks` and `nanoseconds`: its
    /// magic number last (trace rule 2).
    pub fn open(&self, (rank, stream): (u32, u32), units: u64, ticks: u64, nanoseconds: u64) {
        // Relaxed, but for the last: published by it.
        self.word(window::RANK).store(u64::from(stream) << 32 | u64::from(rank), Ordering::Relaxed);
        self.word(window::SEQUENCE).store(units << 32, Ordering::Relaxed);
        self.word(window::TICKS).store(ticks, Ordering::Relaxed);
        self.word(window::NANOSECONDS).store(nanoseconds, Ordering::Relaxed);
        // Release: "trace" edge, to a reader of the file: a thread that sees the magic number sees the header.
        self.word(window::MAGIC).store(format::WINDOW_MAGIC, Ordering::Release);
    }

    /// Writes the header for round `sequence`, in which records later than `after` count: first that (trace rule 4).
    pub fn reopen(&self, after: u64, units: u64, sequence: u32, ticks: u64, nanoseconds: u64) {
        // Relaxed: published by the sequence, and by the first word of each new record.
        self.word(window::AFTER).store(after, Ordering::Relaxed);
        // Release: "trace" edge, to a reader of the file: a thread that sees the next sequence takes no record of the
        // round before for one of it.
        self.word(window::SEQUENCE).store(units << 32 | u64::from(sequence), Ordering::Release);
        // Relaxed: published by the next store. No moment is there until both readings of it are (trace rule 5).
        self.word(window::TICKS).store(0, Ordering::Relaxed);
        // Release: "trace" edge, to a reader of the file: a thread that sees these nanoseconds sees that the ticks of
        // the round before do not belong to them.
        self.word(window::NANOSECONDS).store(nanoseconds, Ordering::Release);
        // Release: "trace" edge, to a reader of the file: a thread that sees the ticks sees the nanoseconds.
        self.word(window::TICKS).store(ticks, Ordering::Release);
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        &self.0[offset as usize / 8]
    }
}

const _: () = {
    // Two fields are written as one word.
    assert!(window::STREAM == window::RANK + 4 && window::UNITS == window::SEQUENCE + 4);
};
