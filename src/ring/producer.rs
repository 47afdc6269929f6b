//! The sending side: claim, fill, commit.

use super::CopyTimes;
use super::blocks::Blocks;
use super::control::{NOTIFIED, NOTIFY, resumed};
use super::lap::Lap;
use super::record::{self, BulkPlace, Header, INLINE, MAX_LEN, Room};
use super::storage::Storage;
use crate::limits::{LINE, block_bytes};
use crate::sync::{Arc, AtomicU64, Ordering};
use core::hint::cold_path;
use core::ops::Range;

/// Cells between the next record and the one that [`Producer::try_push_inline`] and [`Producer::try_push_long`]
/// prefetch.
const PREFETCH_DISTANCE: usize = 8;

/// The one writer of a ring (ring rule 4).
#[derive(Debug)]
pub struct Producer<S> {
    storage: S,
    /// Position of the next cell.
    tail: u64,
    /// Position of the next free bulk byte, line-aligned.
    bulk_tail: u64,
    /// The consumer's heads as last read: what lies before them may be written again.
    head: u64,
    bulk_head: u64,
    lap: Lap,
    /// Where fragments go for which there was room ([`Self::room_for_fragments`]): no lap ends there.
    fragments: Range<u64>,
    blocks: Option<Arc<Blocks<S>>>,
    /// How payloads had better be written.
    times: CopyTimes,
}

impl<S: Storage> Producer<S> {
    /// The producer of a ring in zeroed memory.
    pub fn new(storage: S) -> Self {
        Self {
            lap: Lap::whole(storage.bulk()),
            storage,
            tail: 0,
            bulk_tail: 0,
            head: 0,
            bulk_head: 0,
            fragments: 0..0,
            blocks: None,
            times: CopyTimes::default(),
        }
    }

    /// The producer of a ring whose last producer has retired, or that never had one.
    pub fn resume(storage: S) -> Self {
        let control = storage.control();
        // Relaxed, all: who retired has ended before this process was started.
        let load = |word: &AtomicU64, unit| resumed(word.load(Ordering::Relaxed), unit);
        let (tail, bulk_tail) = (load(&control.producer.tail, 1), load(&control.producer.bulk_tail, LINE));
        let (head, bulk_head) = (load(&control.consumer.head, 1), load(&control.consumer.bulk_head, 1));
        let (head, bulk_head) = (head.min(tail), bulk_head.min(bulk_tail));
        Self { tail, bulk_tail, head, bulk_head, ..Self::new(storage) }
    }

    /// From now on payloads may lie in these blocks, which the consumer of the ring from the peer has, too.
    #[must_use]
    pub fn passing(self, blocks: Arc<Blocks<S>>) -> Self {
        Self { blocks: Some(blocks), ..self }
    }

    /// From now on it uses no more of the bulk area than the consumer leaves unread, if that shows what it has read
    /// ([`super::Consumer::with_short_laps`]): for ranks that share a core with others.
    #[must_use]
    pub fn with_short_laps(self) -> Self {
        Self { lap: Lap::short(self.storage.bulk()), ..self }
    }

    /// Leaves to a later producer where it is to go on. This one may go on, too, and retire again.
    pub fn retire(&self) {
        let words = &self.storage.control().producer;
        // Relaxed: see `resume`.
        words.tail.store(self.tail, Ordering::Relaxed);
        words.bulk_tail.store(self.bulk_tail, Ordering::Relaxed);
        if let Some(blocks) = &self.blocks {
            words.blocks.store(blocks.left().0, Ordering::Relaxed);
        }
    }

    /// The largest payload of one record, in bytes (ring rule 6).
    #[inline]
    pub fn max_payload(&self) -> usize {
        (self.storage.bulk() / 4).min(MAX_LEN)
    }

    /// The ring's memory.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Returns how many records have been committed.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// Claims room for a record of `len` payload bytes, has `fill` write them, and commits.
    ///
    /// Returns `false`, and does not call `fill`, when the ring is full: nobody but the consumer can change that,
    /// by publishing credit. If `fill` panics nothing is committed.
    ///
    /// # Panics
    ///
    /// When `len` exceeds [`Self::max_payload`].
    #[inline(always)]
    pub fn try_push(&mut self, header: &Header, len: usize, fill: impl FnOnce(&mut Room<'_>)) -> bool {
        if len <= INLINE {
            return self.try_push_inline(header, len, false, |to| fill(&mut Room::from(to)));
        }
        cold_path();
        self.try_push_long(*header, len, false, fill)
    }

    /// Whether a record of `len` payload bytes would be taken now. If so, it stays so: nobody else can fill the ring.
    #[inline]
    pub fn room(&mut self, len: usize) -> bool {
        self.cell_free() && (len <= INLINE || self.has_block_for(len) || self.claim(len).is_some())
    }

    /// The longest payload that would lie in a block now, if this end has one.
    #[inline]
    pub fn block(&self) -> Option<usize> {
        let longest = block_bytes(self.storage.bulk());
        self.has_block_for(longest).then_some(longest)
    }

    #[inline]
    fn has_block_for(&self, len: usize) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.has_for(len))
    }

    /// Whether an inline record, and after it `len` payload bytes in records of `fragment` bytes and a last one of the
    /// rest, would all be taken now. If so, it stays so.
    pub fn room_for_fragments(&mut self, len: usize, fragment: usize) -> bool {
        let capacity = self.storage.bulk();
        if len > capacity || !self.cells_free(len.div_ceil(fragment) as u64 + 1) {
            return false;
        }
        let end_from = |from: u64| {
            let (mut end, mut left) = (from, len);
            while left > INLINE {
                let next = fragment.min(left);
                end = BulkPlace::behind(end, next, capacity).end;
                left -= next;
            }
            end
        };
        if self.ends_lap() {
            let from = record::next_lap(self.bulk_tail, capacity);
            if self.bulk_free(end_from(from)) {
                self.fragments = from..end_from(from);
                return true;
            }
            self.lap.was_too_short();
        }
        let end = end_from(self.bulk_tail);
        let is_free = self.bulk_free(end);
        if is_free {
            self.fragments = self.bulk_tail..end;
        }
        is_free
    }

    /// Whether the next payload had better begin the next lap.
    #[inline(always)]
    fn ends_lap(&self) -> bool {
        let offset = self.bulk_tail as usize & (self.storage.bulk() - 1);
        self.lap.is_over(offset) && !self.fragments.contains(&self.bulk_tail)
    }

    /// Where a payload of `len` bytes goes in the bulk area, if that is free.
    #[inline]
    fn claim(&mut self, len: usize) -> Option<BulkPlace> {
        let capacity = self.storage.bulk();
        if self.ends_lap() {
            let next = BulkPlace::in_next_lap(self.bulk_tail, len, capacity);
            if self.bulk_free(next.end) {
                return Some(next);
            }
            self.lap.was_too_short();
        }
        let place = BulkPlace::behind(self.bulk_tail, len, capacity);
        let is_free = self.bulk_free(place.end);
        if !is_free {
            self.lap.was_full();
        }
        is_free.then_some(place)
    }

    /// As [`Self::try_push`], for at most [`INLINE`] payload bytes. `prefetch`: more records are about to come, so the
    /// line of a later one is prefetched. A store waits in the processor for its line, and all stores behind it wait
    /// too.
    ///
    /// # Panics
    ///
    /// When they are more.
    #[inline(always)]
    pub fn try_push_inline(
        &mut self,
        header: &Header,
        len: usize,
        prefetch: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        if !self.cell_free() {
            return false;
        }
        let place = self.place();
        if prefetch {
            self.prefetch_behind(place);
        }
        // SAFETY: `cell_free` found the cell behind the consumer's published head, so it is ours (ring rule 1).
        let inline = unsafe { self.begin_cell(place, header) };
        fill(&mut inline[..len]);
        self.commit(place, header.kind, len);
        true
    }

    /// Prefetches the line of a cell behind the one at `place`, for writing.
    #[inline(always)]
    fn prefetch_behind(&self, place: usize) {
        self.storage.prefetch_write((place + PREFETCH_DISTANCE) & (self.storage.cells() - 1));
    }

    /// As [`Self::try_push_inline`], for more than [`INLINE`] payload bytes. Not rare, but callers say that it is
    /// ([`cold_path`]): registers that live across the call must not be spilled where there is no call.
    ///
    /// # Panics
    ///
    /// As [`Self::try_push`].
    #[inline(never)]
    pub fn try_push_long(
        &mut self,
        header: Header,
        len: usize,
        prefetch: bool,
        fill: impl FnOnce(&mut Room<'_>),
    ) -> bool {
        assert!(len <= self.max_payload(), "payload of {len} bytes exceeds a quarter of the bulk area");
        let capacity = self.storage.bulk();
        if !self.cell_free() {
            return false;
        }
        let block = self.blocks.as_ref().and_then(|blocks| blocks.take(len));
        let claimed = if block.is_some() { None } else { self.claim(len) };
        let (ring, at) = match (&self.blocks, block, &claimed) {
            (Some(blocks), Some(block), _) => blocks.place(block),
            (.., Some(claimed)) => (&self.storage, (claimed.start & (capacity as u64 - 1)) as usize),
            _ => return false,
        };
        ring.write_bulk(at, len, |to| {
            // SAFETY: `write_bulk` gives `len` valid bytes: `take` keeps `len` within the block, which is ours alone by
            // block rule 1; or `claim` keeps `at + len` within the area, ours alone by ring rule 1: `bulk_free` found
            // all of it behind the consumer's published head.
            let to = unsafe { core::slice::from_raw_parts_mut(to, len) };
            // A block has been read by this end, so a store to it waits for nobody.
            fill(&mut if block.is_some() { Room::near(to) } else { Room::learned(to, &self.times) });
        });
        let place = self.place();
        if prefetch {
            self.prefetch_behind(place);
        }
        // SAFETY: `cell_free` found the cell behind the consumer's published head, so it is ours (ring rule 1).
        let inline = unsafe { self.begin_cell(place, &header) };
        let name = match &claimed {
            Some(claimed) if claimed.in_next_lap => Some(record::IN_NEXT_LAP),
            _ => block.map(|block| block.name()),
        };
        let said = name.map_or(len, |name| {
            inline[..4].copy_from_slice(&name.to_ne_bytes());
            record::elsewhere(len)
        });
        if let Some(claimed) = claimed {
            if claimed.start & (capacity as u64 - 1) == 0 {
                self.lap.ended(self.bulk_tail - self.bulk_head);
            }
            self.bulk_tail = claimed.end;
        }
        self.commit(place, header.kind, said);
        true
    }

    /// Writes the envelope of the next cell, which lies at `place`, and gives its inline payload.
    ///
    /// # Safety
    ///
    /// The cell is ours by ring rule 1, and stays so until it is committed.
    #[inline(always)]
    unsafe fn begin_cell<'a>(&mut self, place: usize, header: &Header) -> &'a mut [u8; INLINE] {
        let body = self.storage.write_body(place, |body| body);
        // SAFETY: `write_body` gives a valid body, which the caller knows to be ours by ring rule 1; nobody else looks
        // at it before `commit`, which comes after the last use of what we give back.
        let body = unsafe { &mut *body };
        body.context = header.context;
        body.tag = header.tag;
        body.source = header.source;
        body.id = header.id;
        &mut body.inline
    }

    /// Commits the record in the cell at `place`.
    #[inline(always)]
    fn commit(&mut self, place: usize, kind: u8, len: usize) {
        let word = record::commit_word(self.tail, kind, len);
        // Release: edge 1, pairs with Acquire in `Consumer::poll_if`, `poll_batch` and `check_ahead`, publishes the
        // cell and its bulk bytes or block.
        self.storage.commit(place).store(word, Ordering::Release);
        self.tail += 1;
    }

    #[inline(always)]
    fn place(&self) -> usize {
        self.tail as usize & (self.storage.cells() - 1)
    }

    /// Whether the next cell is ours. If it is not full, nobody else can fill it.
    #[inline(always)]
    fn cell_free(&mut self) -> bool {
        self.cells_free(1)
    }

    /// Whether the next `n` cells are ours.
    #[inline(always)]
    fn cells_free(&mut self, n: u64) -> bool {
        if self.tail + n - self.head <= self.storage.cells() as u64 {
            return true;
        }
        // Acquire: edge 2, pairs with Release in `Consumer::publish_heads`: its reads of the cells are over.
        self.head = self.storage.control().consumer.head.load(Ordering::Acquire).min(self.tail);
        self.tail + n - self.head <= self.storage.cells() as u64
    }

    /// Whether the bulk bytes up to position `end` are ours.
    #[inline]
    fn bulk_free(&mut self, end: u64) -> bool {
        if end - self.bulk_head <= self.storage.bulk() as u64 {
            return true;
        }
        // Acquire: edge 2, pairs with Release in `Consumer::publish_heads`: its reads of the bytes are over.
        self.bulk_head =
            self.storage.control().consumer.bulk_head.load(Ordering::Acquire).min(self.bulk_tail);
        end - self.bulk_head <= self.storage.bulk() as u64
    }

    /// Whether the consumer must be notified of what was committed so far (ring rule 7). The caller has executed
    /// [`crate::sync::AsymmetricFence::light_barrier`] between the commit and this call (doorbell rule 1), and notifies
    /// if that asks for it.
    #[inline(always)]
    pub fn must_notify(&self) -> bool {
        let notification = &self.storage.control().consumer.notification;
        // Relaxed: ordered behind the commit word by the caller's light barrier (doorbell rule 1, side A).
        notification.load(Ordering::Relaxed) == NOTIFY && self.claim_notification()
    }

    /// Has every commit notify: for a consumer that hears of commits only so and leaves the word alone.
    pub fn notify_again(&self) {
        // Relaxed: this side alone reads and writes the word.
        self.storage.control().consumer.notification.store(NOTIFY, Ordering::Relaxed);
    }

    #[cold]
    fn claim_notification(&self) -> bool {
        let notification = &self.storage.control().consumer.notification;
        // Relaxed: decides who notifies; what was committed is published by edge 1 and found by the doorbell's edge 6.
        notification.compare_exchange(NOTIFY, NOTIFIED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Asks the consumer, whose ring is full, to notify us when it returns credit. After this the
    /// caller executes [`crate::sync::AsymmetricFence::heavy_barrier`] and tries once more before it sleeps (doorbell
    /// rule 2).
    pub fn want_credit(&self) {
        // Relaxed: ordered before the look at the heads by the caller's heavy barrier (doorbell rule 2, side B).
        self.storage.control().producer.wants_credit.store(1, Ordering::Relaxed);
    }
}
