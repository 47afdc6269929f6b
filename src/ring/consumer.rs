//! The receiving side: peek, read, give back.

use super::blocks::{Block, Blocks};
use super::control::{NOTIFY, POLLED, resumed};
use super::lap::shown_after;
use super::record::{self, BulkPlace, Corrupt, Header, INLINE};
use super::storage::Storage;
use crate::limits::block_bytes;
use crate::sync::{Arc, Ordering};

/// The one reader of a ring (ring rule 4).
#[derive(Debug)]
pub struct Consumer<S> {
    storage: S,
    /// Position of the next cell to read.
    head: u64,
    /// Bulk position behind the last payload read, and the last one that the producer may know.
    bulk_head: u64,
    bulk_shown: u64,
    /// Bytes that it reads before it shows that, without a notification.
    shown_after: u64,
    /// The heads at which credit is due: a quarter of the ring behind those that the producer knows.
    due: u64,
    bulk_due: u64,
    /// Position before which every record is known to be committed, if it lies ahead of the head.
    known: u64,
    /// Checks from a distance that may still be in vain ([`Self::should_take`]).
    checks_left: u32,
    blocks: Option<Arc<Blocks<S>>>,
}

/// Records between the one that is read and the one that is prefetched, of those that are known to be committed.
const PREFETCH_DISTANCE: u64 = 6;
/// Records taken at once that make a stream. (Small in the model, which has few; so are the next two.)
const STREAM: usize = if cfg!(perusal_loom) { 1 } else { 8 };
/// How many records ahead a stream is checked.
const CHECK_DISTANCE: usize = if cfg!(perusal_loom) { 2 } else { 16 };
/// Checks in vain after which there is no stream any more.
const CHECKS: u32 = if cfg!(perusal_loom) { 1 } else { 16 };

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
        Self {
            storage,
            head: 0,
            bulk_head: 0,
            bulk_shown: 0,
            shown_after: u64::MAX,
            due,
            bulk_due,
            known: 0,
            checks_left: 0,
            blocks: None,
        }
    }

    /// The consumer of a ring whose last consumer has retired, or that never had one.
    pub fn resume(storage: S) -> Self {
        let words = &storage.control().consumer;
        // Relaxed, both: who retired has ended before this process was started.
        let head = resumed(words.head.load(Ordering::Relaxed), 1);
        let bulk_head = resumed(words.bulk_head.load(Ordering::Relaxed), 1);
        let mut consumer = Self { head, bulk_head, bulk_shown: bulk_head, ..Self::new(storage) };
        consumer.set_due();
        consumer
    }

    /// From now on payloads may lie in these blocks, which the producer of the ring to the peer has, too.
    #[must_use]
    pub fn passing(self, blocks: Arc<Blocks<S>>) -> Self {
        // Relaxed: see `resume`.
        blocks.open_incoming(self.storage.control().consumer.blocks.load(Ordering::Relaxed));
        Self { blocks: Some(blocks), ..self }
    }

    /// From now on it soon shows what it has read of the bulk area, for a producer [with short
    /// laps](super::Producer::with_short_laps).
    #[must_use]
    pub fn with_short_laps(self) -> Self {
        Self { shown_after: shown_after(self.storage.bulk()), ..self }
    }

    /// Returns all credit, which leaves to a later consumer where it is to go on, and has producers notify. This one
    /// may go on, too, and retire again.
    pub fn retire(&mut self) {
        self.publish_heads();
        if let Some(blocks) = &self.blocks {
            // Relaxed: see `resume`.
            self.storage.control().consumer.blocks.store(blocks.left().1, Ordering::Relaxed);
        }
        self.storage.control().consumer.notification.store(NOTIFY, Ordering::Relaxed);
    }

    /// The ring's memory.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Returns how many records have been taken.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Prefetches the line of the next record.
    #[inline(always)]
    pub fn prefetch(&self) {
        self.storage.prefetch_read(self.head as usize & (self.storage.cells() - 1));
    }

    /// Whether a record waits.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        // Relaxed: a hint; `poll` loads again with Acquire before it reads the record.
        self.word(self.head, Ordering::Relaxed) as u32 == record::sequence(self.head)
    }

    /// Whether to take records now. `awaited` is how many of them the caller waits for, 0 if it does not wait.
    ///
    /// A consumer that takes each record of a stream as soon as it is committed takes its line, and those that the
    /// processor guesses to be next, away from the producer, who is about to write there. Between processors that are
    /// far from each other each message then costs a line's way there and back. So in a stream the consumer checks the
    /// last of the awaited records only, some way ahead, and leaves the lines before it to the producer. It does so
    /// until that record is there, or for some checks at most; after these a stream must show itself anew.
    #[inline(always)]
    pub fn should_take(&mut self, awaited: usize) -> bool {
        let from_distance = self.checks_left > 0 && awaited > 1 && !self.has_known();
        if from_distance { self.check_ahead(awaited) } else { self.ready() }
    }

    #[inline(never)]
    fn check_ahead(&mut self, awaited: usize) -> bool {
        let last = self.head + awaited.min(CHECK_DISTANCE).min(self.storage.cells()) as u64 - 1;
        // Acquire: edge 1, pairs with Release in `Producer::commit`: the records before it are there, too.
        let there = self.word(last, Ordering::Acquire) as u32 == record::sequence(last);
        if there {
            self.known = last + 1;
        } else {
            self.checks_left -= 1;
        }
        there
    }

    /// The producer says that so many records are committed: the consumer need not check for them one by one.
    #[inline]
    pub fn assume_committed(&mut self, records: usize) {
        self.known = self.head + records as u64;
    }

    /// Whether records are known to be committed that are not taken yet.
    #[inline(always)]
    pub fn has_known(&self) -> bool {
        self.head < self.known
    }

    #[inline(always)]
    fn word(&self, position: u64, order: Ordering) -> u64 {
        self.storage.commit(position as usize & (self.storage.cells() - 1)).load(order)
    }

    /// Hands the next record to `f`, and counts its room as credit afterwards; `None` when there is no record.
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
        // Acquire: edge 1, pairs with Release in `Producer::commit`: the cell and its bulk bytes or block are complete.
        let word = self.storage.commit(place).load(Ordering::Acquire);
        if word as u32 != record::sequence(self.head) {
            return Ok(Polled::Empty);
        }
        let (kind, said) = record::split(word);
        let len = record::length(said);
        // SAFETY: `read_body` gives a valid body of plain integers; by ring rule 2 it is ours to read until `publish`,
        // which comes after.
        let envelope = self.storage.read_body(place, |body| header(kind, unsafe { &*body }));
        if !wanted(&envelope, len) {
            return Ok(Polled::Unwanted);
        }
        let result = if said <= INLINE {
            self.storage.read_body(place, |body| {
                // SAFETY: `read_body` gives a valid body of plain integers, still ours by ring rule 2.
                let body = unsafe { &*body };
                f(&envelope, &body.inline[..len])
            })
        } else {
            self.read_long(envelope, said, f)?
        };
        self.head += 1;
        Ok(Polled::Taken(result))
    }

    /// Hands records to `f` one after the other, as long as their payloads lie within their cells and `f` takes them:
    /// `most` at most, and none behind those that are known to be committed, if any are. Returns how many. Whether
    /// another record waits, which may be one for [`Self::poll`], is for [`Self::should_take`] to say.
    #[inline(always)]
    pub fn poll_batch(&mut self, most: usize, mut f: impl FnMut(&Header, &[u8]) -> bool) -> usize {
        let mask = self.storage.cells() - 1;
        let (first, ahead) = (self.head, self.has_known());
        let end = if ahead { self.known.min(first + most as u64) } else { first + most as u64 };
        while self.head < end {
            let place = self.head as usize & mask;
            // Acquire: edge 1, pairs with Release in `Producer::commit`: the cell is complete.
            let word = self.storage.commit(place).load(Ordering::Acquire);
            let (kind, len) = record::split(word);
            if word as u32 != record::sequence(self.head) || len > INLINE {
                break;
            }
            if self.head + PREFETCH_DISTANCE < self.known {
                self.storage.prefetch_read((place + PREFETCH_DISTANCE as usize) & mask);
            }
            let taken = self.storage.read_body(place, |body| {
                // SAFETY: `read_body` gives a valid body of plain integers; by ring rule 2 it is ours to read until
                // `return_credit`, which comes after.
                let body = unsafe { &*body };
                f(&header(kind, body), &body.inline[..len])
            });
            if !taken {
                break;
            }
            self.head += 1;
        }
        let taken = (self.head - first) as usize;
        let is_stream = taken >= STREAM || (taken > 1 && self.checks_left > 0);
        self.checks_left = if is_stream { CHECKS } else { 0 };
        taken
    }

    /// Reads a record whose payload lies in a block or in the bulk area.
    #[inline(never)]
    fn read_long<R>(
        &mut self,
        envelope: Header,
        said: usize,
        f: impl FnOnce(&Header, &[u8]) -> R,
    ) -> Result<R, Corrupt> {
        let capacity = self.storage.bulk();
        let len = record::length(said);
        let name = if record::is_elsewhere(said) { Some(self.name()) } else { None };
        let block = match name {
            None | Some(record::IN_NEXT_LAP) => None,
            Some(name) => Some(self.block(name, len)?),
        };
        if len > capacity / 4 {
            return Err(Corrupt { what: "payload length exceeds a quarter of the ring", value: len as u64 });
        }
        let place = match name {
            Some(record::IN_NEXT_LAP) => BulkPlace::in_next_lap(self.bulk_head, len, capacity),
            _ => BulkPlace::behind(self.bulk_head, len, capacity),
        };
        let (ring, at) = match (&self.blocks, block) {
            (Some(blocks), Some(block)) => blocks.place(block),
            _ => (&self.storage, (place.start & (capacity as u64 - 1)) as usize),
        };
        let result = ring.read_bulk(at, len, |bytes| {
            // SAFETY: `read_bulk` gives `len` valid bytes: `len` was checked against the block, ours by block rule 1;
            // or against the area, within which `BulkPlace` keeps them, and by ring rule 2 they are ours to read until
            // `show_bulk_head`.
            f(&envelope, unsafe { core::slice::from_raw_parts(bytes, len) })
        });
        match (&self.blocks, block) {
            (Some(blocks), Some(block)) => blocks.put(block),
            _ => {
                self.bulk_head = place.end;
                if place.end - self.bulk_shown >= self.shown_after {
                    self.show_bulk_head();
                }
            }
        }
        Ok(result)
    }

    /// Where the payload of the next record lies, which is elsewhere than behind the last one.
    fn name(&self) -> u32 {
        let place = self.head as usize & (self.storage.cells() - 1);
        self.storage.read_body(place, |body| {
            // SAFETY: `read_body` gives a valid body of plain integers; by ring rule 2 it is ours to read.
            let inline = unsafe { &(*body).inline };
            u32::from_ne_bytes(core::array::from_fn(|at| inline[at]))
        })
    }

    /// The block of this name, in which the payload of the next record lies, of `len` bytes.
    fn block(&self, name: u32, len: usize) -> Result<Block, Corrupt> {
        let block = Block::named(name);
        if !self.blocks.as_ref().is_some_and(|blocks| blocks.is_peers(block)) {
            return Err(Corrupt {
                what: "a payload lies in a block that is not the sender's",
                value: name.into(),
            });
        }
        if len > block_bytes(self.storage.bulk()) {
            return Err(Corrupt { what: "payload length exceeds a block", value: len as u64 });
        }
        Ok(block)
    }

    /// Whether a batch of credit has come together (ring rule 6), for [`Self::return_credit`].
    #[inline(always)]
    #[must_use]
    pub fn credit_due(&self) -> bool {
        self.head >= self.due || self.bulk_head >= self.bulk_due
    }

    /// Returns credit to the producer if a batch of it has come together (ring rule 6), and says whether it did: the
    /// caller then executes [`crate::sync::AsymmetricFence::light_barrier`] and asks [`Self::credit_wanted`] (doorbell
    /// rule 2).
    #[inline(always)]
    pub fn return_credit(&mut self) -> bool {
        if !self.credit_due() {
            return false;
        }
        self.publish_heads();
        true
    }

    #[inline(always)]
    fn publish_heads(&mut self) {
        self.show_bulk_head();
        let words = &self.storage.control().consumer;
        // Release: edge 2, pairs with Acquire in `Producer::cells_free`: our reads of these cells are over.
        words.head.store(self.head, Ordering::Release);
        self.set_due();
    }

    /// Returns bulk bytes, without a notification: for a producer that need not wait for them.
    #[inline(always)]
    fn show_bulk_head(&mut self) {
        if self.bulk_shown != self.bulk_head {
            self.bulk_shown = self.bulk_head;
            // Release: edge 2, pairs with Acquire in `Producer::bulk_free`: our reads of these bytes are over.
            self.storage.control().consumer.bulk_head.store(self.bulk_head, Ordering::Release);
        }
    }

    #[inline(always)]
    fn set_due(&mut self) {
        self.due = self.head + self.storage.cells() as u64 / 4;
        self.bulk_due = self.bulk_head + self.storage.bulk() as u64 / 4;
    }

    /// Whether the producer waits for credit and must be notified. Withdraws the request.
    #[inline(always)]
    pub fn credit_wanted(&self) -> bool {
        let wants = &self.storage.control().producer.wants_credit;
        // Relaxed: ordered behind the heads by the caller's light barrier (doorbell rule 2, side A).
        wants.load(Ordering::Relaxed) == 1 && wants.swap(0, Ordering::Relaxed) == 1
    }

    /// From now on the consumer polls this ring: the producer need not notify.
    pub fn disable_notification(&self) {
        // Relaxed: a producer that still sees the old value notifies once for nothing.
        self.storage.control().consumer.notification.store(POLLED, Ordering::Relaxed);
    }

    /// From now on the producer notifies. The caller executes [`crate::sync::AsymmetricFence::heavy_barrier`] and looks
    /// at the ring once more before it relies on that (doorbell rule 1).
    pub fn enable_notification(&self) {
        // Relaxed: ordered before the look at the commit word by the caller's heavy barrier (doorbell rule 1, side B).
        self.storage.control().consumer.notification.store(NOTIFY, Ordering::Relaxed);
    }
}

#[inline(always)]
fn header(kind: u8, body: &record::RecordBody) -> Header {
    Header { kind, context: body.context, tag: body.tag, source: body.source, id: body.id }
}
