//! A hash table from words to lists, in buckets of a cache line. A removal makes no later search longer.
//!
//! A bin exists exactly while its list holds an entry or a tombstone (matching rules 3 and 5), so an empty list marks a
//! free place, and the table's size follows the largest number of entries that were ever queued at once.
//!
//! The four keys of a bucket are compared without a branch. A bin whose home bucket is full lies in the next bucket
//! that is not. Every bucket counts the bins that had to go past it: a search ends where that count is zero.
//!
//! A bin that becomes empty leaves its key in its place, and is revived if the same key comes back before another takes
//! the place. Such a key never hides a bin in use: a bin lies in a later bucket only if every place of the earlier ones
//! was taken when it was opened.

use super::pattern::KeyWord;
use super::slab::{EntryLink, EntryList, EntrySlab, NIL};

/// Bins in a bucket, which is a cache line for keys of 64 bits.
const WAYS: usize = 4;
/// Buckets of the first table.
const FIRST: usize = 32;

#[derive(Debug, Clone)]
#[repr(align(64))]
struct Bucket<W> {
    keys: [W; WAYS],
    lists: [EntryList; WAYS],
}

impl<W: KeyWord> Bucket<W> {
    const fn new(key: W) -> Self {
        Self { keys: [key; WAYS], lists: [EntryList::EMPTY; WAYS] }
    }

    /// Returns the lowest way for which `wanted` holds.
    #[inline(always)]
    fn way(&self, wanted: impl Fn(&W, &EntryList) -> bool) -> Option<usize> {
        let mut hits = 0u32;
        for way in 0..WAYS {
            hits |= u32::from(wanted(&self.keys[way], &self.lists[way])) << way;
        }
        (hits != 0).then(|| hits.trailing_zeros() as usize % WAYS)
    }

    /// Returns the way of this key, whether its bin is in use or empty.
    #[inline(always)]
    fn find(&self, key: W) -> Option<usize> {
        self.way(|other, _| *other == key)
    }
}

/// Where a bin is.
#[derive(Debug, Clone, Copy)]
struct BinPlace {
    bucket: usize,
    way: usize,
}

/// Returns an end of a list, or `NIL` if that is a tombstone.
#[inline(always)]
fn live_end<I: Copy, T, const L: usize>(slab: &EntrySlab<I, T, L>, link: usize, end: u32) -> u32 {
    if end != NIL && slab[end].links[link].is_tombstone() { NIL } else { end }
}

/// Lists of entries by word.
#[derive(Debug)]
pub(super) struct Bins<W> {
    /// None yet, or a power of two of buckets; at most half of their bins are in use.
    buckets: Vec<Bucket<W>>,
    /// For each bucket, the number of bins that found it full and went on.
    passed: Vec<u32>,
    used: usize,
    /// Bits of a hash that are not part of a bucket's number.
    shift: u32,
    /// Where the last search found its bin: the search is usually followed by the removal of the bin's oldest entry.
    last: BinPlace,
}

impl<W: KeyWord> Bins<W> {
    pub const fn new() -> Self {
        let last = BinPlace { bucket: 0, way: 0 };
        Self { buckets: Vec::new(), passed: Vec::new(), used: 0, shift: 0, last }
    }

    /// Whether there is no bin.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    #[inline]
    fn home(&self, key: W) -> usize {
        (key.hash() >> self.shift) as usize
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        (bucket + 1) & (self.buckets.len() - 1)
    }

    /// Returns the place of this key, whose bin may be empty; no other place in use has the key.
    #[inline]
    fn find(&self, key: W) -> Option<BinPlace> {
        if self.used == 0 {
            return None;
        }
        let mut bucket = self.home(key);
        loop {
            if let Some(way) = self.buckets[bucket].find(key) {
                return Some(BinPlace { bucket, way });
            }
            if self.passed[bucket] == 0 {
                return None;
            }
            bucket = self.after(bucket);
        }
    }

    /// Returns the place that the last search found, if this key's bin is there. To compare the key is not enough: an
    /// empty place keeps the key that it had.
    #[inline]
    fn last_of(&self, key: W) -> Option<BinPlace> {
        let bucket = self.buckets.get(self.last.bucket)?;
        let is_there = bucket.keys[self.last.way] == key && !bucket.lists[self.last.way].is_empty();
        is_there.then_some(self.last)
    }

    #[inline]
    fn at(&mut self, at: BinPlace) -> &mut EntryList {
        &mut self.buckets[at.bucket].lists[at.way]
    }

    /// Returns the list of this key; empty if it has no bin.
    #[inline]
    pub fn list(&self, key: W) -> EntryList {
        self.find(key).map_or(EntryList::EMPTY, |at| self.buckets[at.bucket].lists[at.way])
    }

    /// Opens a bin for a key that has none, in the place that the key left or in a new one.
    /// The caller fills it at once.
    #[inline]
    fn open(&mut self, key: W, left: Option<BinPlace>) -> BinPlace {
        let full = (self.used + 1) * 2 > self.buckets.len() * WAYS;
        if full {
            self.grow();
        }
        self.used += 1;
        match left {
            Some(at) if !full => {
                self.count(key, at, 1);
                at
            }
            _ => self.place(key),
        }
    }

    #[inline]
    fn place(&mut self, key: W) -> BinPlace {
        let mut bucket = self.home(key);
        loop {
            if let Some(way) = self.buckets[bucket].way(|_, list| list.is_empty()) {
                self.buckets[bucket].keys[way] = key;
                return BinPlace { bucket, way };
            }
            self.passed[bucket] += 1;
            bucket = self.after(bucket);
        }
    }

    /// Adds `by` to the count of every bucket that a bin went past.
    #[inline]
    fn count(&mut self, key: W, at: BinPlace, by: i32) {
        let mut bucket = self.home(key);
        while bucket != at.bucket {
            self.passed[bucket] = self.passed[bucket].wrapping_add_signed(by);
            bucket = self.after(bucket);
        }
    }

    /// Adds an entry as the youngest of its key.
    #[inline]
    pub fn push<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        let at = match self.find(key) {
            Some(at) if !self.at(at).is_empty() => at,
            left => self.open(key, left),
        };
        let list = self.at(at);
        if live_end(slab, link, list.tail) != list.tail {
            slab.clear_tombstone(link, list.tail);
            *list = EntryList::EMPTY;
        }
        list.push(slab, link, index);
    }

    /// Returns the oldest entry of this key.
    #[inline]
    pub fn head<I: Copy, T, const L: usize>(&self, slab: &EntrySlab<I, T, L>, link: usize, key: W) -> u32 {
        live_end(slab, link, self.list(key).head)
    }

    /// The same as [`head`](Self::head) for an entry that is likely to be removed next.
    #[inline]
    pub fn seek<I: Copy, T, const L: usize>(
        &mut self,
        slab: &EntrySlab<I, T, L>,
        link: usize,
        key: W,
    ) -> u32 {
        let Some(at) = self.find(key) else { return NIL };
        self.last = at;
        live_end(slab, link, self.at(at).head)
    }

    /// Removes an entry from the list of its key before its slot is freed: a tombstone may stay (matching rule 5).
    #[inline]
    pub fn leave<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        if slab[index].links[link].is_alone() {
            slab.leave_tombstone(link, index);
        } else {
            self.detach(slab, link, key, index);
        }
    }

    /// Removes the tombstone that the last entry of a slot left under this key, if there is one.
    pub fn clear_tombstone<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        if slab[index].links[link].is_tombstone() {
            slab.clear_tombstone(link, index);
            self.close(key, EntryLink::NONE);
        }
    }

    /// Removes an entry from the list of its key. The bin is searched for only if the entry is at an end of the list.
    #[inline]
    pub fn detach<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        let gap = slab.bridge(link, index);
        if gap.prev != NIL && gap.next != NIL {
            return;
        }
        self.close(key, gap);
    }

    /// Gives a bin the ends that its list has after an entry was removed, and closes the bin if the list is empty.
    #[inline]
    fn close(&mut self, key: W, gap: EntryLink) {
        let at =
            self.last_of(key).or_else(|| self.find(key)).expect("an entry's key has a bin (matching rule 3)");
        let list = self.at(at);
        list.close(gap);
        if list.is_empty() {
            self.used -= 1;
            self.count(key, at, -1);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.buckets.len() * 2).max(FIRST);
        let old = core::mem::replace(&mut self.buckets, vec![Bucket::new(W::default()); size]);
        self.passed.clear();
        self.passed.resize(size, 0);
        self.shift = u64::BITS - size.trailing_zeros();
        for bucket in old {
            for (key, list) in bucket.keys.into_iter().zip(bucket.lists) {
                if !list.is_empty() {
                    let at = self.place(key);
                    *self.at(at) = list;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle::TestRandom;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_bucket_of_64_bit_keys_is_one_cache_line() {
        assert_eq!(size_of::<Bucket<u64>>(), 64);
    }

    /// Bins and a map of plain lists under the same pushes, detaches and leaves.
    #[test]
    fn bins_hold_what_a_map_of_lists_holds_and_a_tombstone_at_most_for_each_free_slot() {
        let mut slab = EntrySlab::<u64, u32, 1>::new();
        let mut bins = Bins::<u64>::new();
        let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut random = TestRandom::new(7);
        let mut most_tombstones = 0;
        const PART: usize = if cfg!(miri) { 20 } else { 10_000 };
        for step in 0..4 * PART {
            let range = [3, 40, 600, 5][step / PART];
            let key = random.below(range);
            let list = model.entry(key).or_default();
            // It rises for a while, then falls.
            let removals = if step % (PART / 5) < PART / 10 { 2 } else { 4 };
            match random.below(5) {
                n if n < removals && !list.is_empty() => {
                    let gone = list.remove(random.below(list.len() as u64) as usize);
                    match random.below(4) {
                        0 => bins.detach(&mut slab, 0, key, gone),
                        _ => bins.leave(&mut slab, 0, key, gone),
                    }
                    slab.remove(gone);
                }
                _ => {
                    if let Some(slot) = slab.tombstone_slot() {
                        let old = slab[slot].item;
                        bins.clear_tombstone(&mut slab, 0, old, slot);
                        slab[slot].seq = 0;
                    }
                    let index = slab.insert(key, 0);
                    assert!(!slab[index].links[0].is_tombstone());
                    bins.push(&mut slab, 0, key, index);
                    list.push(index);
                }
            }
            for (&key, list) in &model {
                let head = list.first().copied().unwrap_or(NIL);
                assert_eq!(bins.head(&slab, 0, key), head);
                assert_eq!(live_end(&slab, 0, bins.list(key).tail), list.last().copied().unwrap_or(NIL));
                if random.below(8) == 0 {
                    assert_eq!(bins.seek(&slab, 0, key), head);
                }
            }
            let tombstones = slab.tombstones();
            most_tombstones = most_tombstones.max(tombstones);
            assert_eq!(bins.used, tombstones + model.values().filter(|list| !list.is_empty()).count());
        }
        assert!(cfg!(miri) || most_tombstones > 50, "the run was to leave some: {most_tombstones}");
    }

    /// A word whose hash is itself, so that a test decides which bucket is home.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    struct IdentityWord(u64);

    impl core::ops::BitAnd for IdentityWord {
        type Output = Self;
        fn bitand(self, other: Self) -> Self {
            Self(self.0 & other.0)
        }
    }
    impl core::ops::BitOr for IdentityWord {
        type Output = Self;
        fn bitor(self, other: Self) -> Self {
            Self(self.0 | other.0)
        }
    }
    impl core::ops::BitXor for IdentityWord {
        type Output = Self;
        fn bitxor(self, other: Self) -> Self {
            Self(self.0 ^ other.0)
        }
    }
    impl KeyWord for IdentityWord {
        fn hash(self) -> u64 {
            self.0
        }
    }

    #[test]
    fn keys_of_one_home_spill_over_the_end_of_the_table_and_leave_no_trace() {
        let mut slab = EntrySlab::<IdentityWord, u32, 1>::new();
        let mut bins = Bins::<IdentityWord>::new();
        // All at home in the last bucket, so that they go round to the first ones.
        let keys: Vec<IdentityWord> = (0..30).map(|i| IdentityWord(u64::MAX - i)).collect();
        for round in 0..3 {
            let indices: Vec<u32> = keys.iter().map(|&key| slab.insert(key, 0)).collect();
            for (&key, &index) in keys.iter().zip(&indices) {
                bins.push(&mut slab, 0, key, index);
            }
            // Another order of leaving in each round.
            for i in 0..30 {
                let gone = (i * 7 + round * 5) % 30;
                bins.detach(&mut slab, 0, keys[gone], indices[gone]);
                slab.remove(indices[gone]);
                assert!(bins.list(keys[gone]).is_empty());
                for later in i + 1..30 {
                    let left = (later * 7 + round * 5) % 30;
                    assert_eq!(bins.list(keys[left]).head, indices[left]);
                }
            }
            assert_eq!(bins.used, 0);
            assert!(bins.passed.iter().all(|&n| n == 0));
        }
    }
}
