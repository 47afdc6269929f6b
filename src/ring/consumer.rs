//! The receiving side: peek, read, give back.

use super::control::{UNWATCHED, WATCHED};
use super::record::{self, Corrupt, Header, INLINE};
use super::storage::Storage;
use crate::sync::Ordering;

/// The one reader of a ring (ring rule 4).
#[derive(Debug)]
pub struct Consumer<S> {
    storage: S,
    /// Position of the next cell to read.
    head: u64,
    /// Bulk position behind the last payload read.
    bulk_head: u64,
    /// The heads at which credit is due: a quarter of the ring behind those that the producer knows.
    due: u64,
    bulk_due: u64,
    /// Position before which every record is known to be there, if it lies ahead of the head.
    seen: u64,
    /// Looks from a distance that may still be in vain ([`Self::look`]).
    patience: u32,
}

/// How far ahead of the record that is read lines are asked for, of those that are known to be written.
const AHEAD: u64 = 6;
/// Records taken at once that make a stream; from how many records ahead it is then looked at, and how often in vain.
/// (Small in the model, which has few.)
const STREAM: usize = if cfg!(perusal_loom) { 1 } else { 8 };
const DISTANCE: usize = if cfg!(perusal_loom) { 2 } else { 16 };
const PATIENCE: u32 = if cfg!(perusal_loom) { 1 } else { 16 };

/// What a poll met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled<R> {
    /// No record.
    Empty,
    /// A record that was not wanted; it is still there.
    Unwanted,
    /// A record, which is gone now.
    Taken(R),
}

impl<S: Storage> Consumer<S> {
    /// The consumer of a ring in zeroed memory.
    pub fn new(storage: S) -> Self {
        let (due, bulk_due) = (storage.cells() as u64 / 4, storage.bulk() as u64 / 4);
        Self { storage, head: 0, bulk_head: 0, due, bulk_due, seen: 0, patience: 0 }
    }

    /// The ring's memory.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// How many records have been taken.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Asks for the line of the next record.
    #[inline(always)]
    pub fn expect(&self) {
        self.storage.expect(self.head as usize & (self.storage.cells() - 1));
    }

    /// Whether a record waits.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        // Relaxed: a hint; `poll` reads again with Acquire before it looks at the record.
        self.word(self.head, Ordering::Relaxed) as u32 == record::sequence(self.head)
    }

    /// Whether to take records now; `hope` is how many of them the caller waits for, if it waits.
    ///
    /// Who takes each record of a stream as soon as it is written takes the line, and those behind it that the processor
    /// guesses to be next, away from a producer that is about to write there: with the processors far from each other each
    /// message then costs a line's way there and back. So where records come in a stream the last of those that are hoped for
    /// is looked at, some way ahead, and the lines before it are left to the producer: until it is there, or for some looks
    /// at most, after which it has to be seen anew that there is a stream.
    #[inline(always)]
    pub fn look(&mut self, hope: usize) -> bool {
        if self.patience > 0 && hope > 1 && !self.has_seen() { self.look_ahead(hope) } else { self.ready() }
    }

    #[inline(never)]
    fn look_ahead(&mut self, hope: usize) -> bool {
        let last = self.head + hope.min(DISTANCE).min(self.storage.cells()) as u64 - 1;
        // Acquire: edge 1, pairs with Release in `Producer::commit`: the records before it are there, too.
        let there = self.word(last, Ordering::Acquire) as u32 == record::sequence(last);
        if there {
            self.seen = last + 1;
        } else {
            self.patience -= 1;
        }
        there
    }

    /// The producer says that so many records are there: nobody need look for them one by one.
    #[inline]
    pub fn foresee(&mut self, records: usize) {
        self.seen = self.head + records as u64;
    }

    /// Whether [`Self::look`] has seen records ahead that are not taken yet.
    #[inline(always)]
    pub fn has_seen(&self) -> bool {
        self.head < self.seen
    }

    #[inline(always)]
    fn word(&self, position: u64, order: Ordering) -> u64 {
        self.storage.commit(position as usize & (self.storage.cells() - 1)).load(order)
    }

    /// Hands the next record to `f` and gives its room back afterwards; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] when the record cannot be one. The ring is then spoiled for good and must not be polled again.
    #[inline(always)]
    pub fn poll<R>(&mut self, f: impl FnOnce(&Header, &[u8]) -> R) -> Result<Option<R>, Corrupt> {
        Ok(match self.poll_if(|_, _| true, f)? {
            Polled::Taken(result) => Some(result),
            Polled::Empty | Polled::Unwanted => None,
        })
    }

    /// As [`Self::poll`], but leaves a record there whose envelope and payload length are not `wanted`.
    ///
    /// # Errors
    ///
    /// As [`Self::poll`].
    #[inline(always)]
    pub fn poll_if<R>(
        &mut self,
        wanted: impl FnOnce(&Header, usize) -> bool,
        f: impl FnOnce(&Header, &[u8]) -> R,
    ) -> Result<Polled<R>, Corrupt> {
        let place = self.head as usize & (self.storage.cells() - 1);
        // Acquire: edge 1, pairs with Release in `Producer::commit`: the cell and its bulk bytes are complete.
        let word = self.storage.commit(place).load(Ordering::Acquire);
        if word as u32 != record::sequence(self.head) {
            return Ok(Polled::Empty);
        }
        let (kind, len) = record::split(word);
        // SAFETY: `read_body` gives a valid body of plain integers; by ring rule 2 it is ours to read until `publish`,
        // which comes after.
        let envelope = self.storage.read_body(place, |body| header(kind, unsafe { &*body }));
        if !wanted(&envelope, len) {
            return Ok(Polled::Unwanted);
        }
        let result = if len <= INLINE {
            self.storage.read_body(place, |body| {
                // SAFETY: as above.
                let body = unsafe { &*body };
                f(&envelope, &body.inline[..len])
            })
        } else {
            self.read_bulk(envelope, len, f)?
        };
        self.head += 1;
        Ok(Polled::Taken(result))
    }

    /// Hands out records one after the other, as long as their payloads lie within their cells and `f` takes them; `most` at
    /// most, and none behind those that were seen from a distance, if any were. How many those were: whether the next one is a
    /// record, and then perhaps [`Self::poll`]'s, is [`Self::look`]'s to say.
    #[inline(always)]
    pub fn run(&mut self, most: usize, mut f: impl FnMut(&Header, &[u8]) -> bool) -> usize {
        let mask = self.storage.cells() - 1;
        let (first, ahead) = (self.head, self.has_seen());
        let end = if ahead { self.seen.min(first + most as u64) } else { first + most as u64 };
        while self.head < end {
            let place = self.head as usize & mask;
            // Acquire: edge 1, as in `poll_if`.
            let word = self.storage.commit(place).load(Ordering::Acquire);
            let (kind, len) = record::split(word);
            if word as u32 != record::sequence(self.head) || len > INLINE {
                break;
            }
            if self.head + AHEAD < self.seen {
                self.storage.expect((place + AHEAD as usize) & mask);
            }
            let taken = self.storage.read_body(place, |body| {
                // SAFETY: as in `poll_if`.
                let body = unsafe { &*body };
                f(&header(kind, body), &body.inline[..len])
            });
            if !taken {
                break;
            }
            self.head += 1;
        }
        let taken = (self.head - first) as usize;
        let streams = taken >= STREAM || (taken > 1 && self.patience > 0);
        self.patience = if streams { PATIENCE } else { 0 };
        taken
    }

    #[inline(never)]
    fn read_bulk<R>(
        &mut self,
        envelope: Header,
        len: usize,
        f: impl FnOnce(&Header, &[u8]) -> R,
    ) -> Result<R, Corrupt> {
        let capacity = self.storage.bulk();
        if len > capacity / 4 {
            return Err(Corrupt { what: "payload length exceeds a quarter of the ring", value: len as u64 });
        }
        let (start, end) = record::place(self.bulk_head, len, capacity);
        let at = (start & (capacity as u64 - 1)) as usize;
        let result = self.storage.read_bulk(at, len, |bytes| {
            // SAFETY: `read_bulk` gives `len` valid bytes (`place` keeps them within the area, `len` was checked);
            // by ring rule 2 they are ours to read until `publish`.
            f(&envelope, unsafe { core::slice::from_raw_parts(bytes, len) })
        });
        self.bulk_head = end;
        Ok(result)
    }

    /// Whether a batch of credit has come together (ring rule 6), for [`Self::publish`].
    #[inline(always)]
    #[must_use]
    pub fn owes(&self) -> bool {
        self.head >= self.due || self.bulk_head >= self.bulk_due
    }

    /// Publishes credit if a batch of it has come together (ring rule 6). Returns whether it did: the caller then
    /// issues [`crate::sync::AsymmetricFence::light_barrier`] and asks [`Self::credit_wanted`].
    #[inline(always)]
    pub fn publish(&mut self) -> bool {
        if !self.owes() {
            return false;
        }
        let words = &self.storage.control().consumer;
        // Release: edge 2, pairs with Acquire in `Producer::bulk_free`: our reads of these bytes are over.
        words.bulk_head.store(self.bulk_head, Ordering::Release);
        // Release: edge 2, pairs with Acquire in `Producer::cell_free`: our reads of these cells are over.
        words.head.store(self.head, Ordering::Release);
        self.due = self.head + self.storage.cells() as u64 / 4;
        self.bulk_due = self.bulk_head + self.storage.bulk() as u64 / 4;
        true
    }

    /// Whether the producer waits for credit and must be rung; asks once.
    #[inline(always)]
    pub fn credit_wanted(&self) -> bool {
        let wants = &self.storage.control().producer.wants_credit;
        // Relaxed: the store-load pair with `Producer::want_credit` is ordered by the doorbell's fences.
        wants.load(Ordering::Relaxed) == 1 && wants.swap(0, Ordering::Relaxed) == 1
    }

    /// From now on this ring is looked at by itself: its producer rings no bell.
    pub fn watch(&self) {
        // Relaxed: a producer that still sees the old value rings once for nothing.
        self.storage.control().consumer.watched.store(WATCHED, Ordering::Relaxed);
    }

    /// From now on the producer rings the doorbell. The caller issues [`crate::sync::AsymmetricFence::heavy_barrier`] and looks
    /// at the ring once more before it relies on that.
    pub fn unwatch(&self) {
        // Relaxed: the store-load pair with `Producer::must_ring` is ordered by the doorbell's fences.
        self.storage.control().consumer.watched.store(UNWATCHED, Ordering::Relaxed);
    }
}

#[inline(always)]
fn header(kind: u8, body: &record::Body) -> Header {
    Header { kind, context: body.context, tag: body.tag, source: body.source, id: body.id }
}
