//! A hash table from word to list: open addressing, linear probing, nothing left behind by a removal.
//!
//! A bin is there exactly while its list holds an entry (rule M3), so an empty list marks a free position, and
//! the table's size follows the number of different keys that were ever queued at one time.

use super::pattern::Word;
use super::slab::{List, NIL, Slab};

/// Positions of the first table.
const FIRST: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Bin<W> {
    key: W,
    list: List,
}

/// Lists of entries by word.
#[derive(Debug)]
pub(super) struct Bins<W> {
    /// A power of two of positions, at most half of them in use; or none yet.
    table: Vec<Bin<W>>,
    used: usize,
    /// Bits of a hash that are not part of a position.
    shift: u32,
}

impl<W: Word> Bins<W> {
    pub const fn new() -> Self {
        Self { table: Vec::new(), used: 0, shift: 0 }
    }

    #[inline]
    fn home(&self, key: W) -> usize {
        (key.hash() >> self.shift) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.table.len() - 1)
    }

    /// Where the key is, or else where it belongs; the table is not empty.
    #[inline]
    fn probe(&self, key: W) -> usize {
        let mut at = self.home(key);
        while self.table[at].list.head != NIL && self.table[at].key != key {
            at = self.after(at);
        }
        at
    }

    /// The list of this key; empty if it has no bin.
    #[inline]
    pub fn list(&self, key: W) -> List {
        if self.used == 0 { List::EMPTY } else { self.table[self.probe(key)].list }
    }

    /// Adds an entry as the youngest of its key.
    #[inline]
    pub fn push<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut Slab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        if (self.used + 1) * 2 > self.table.len() {
            self.grow();
        }
        let at = self.probe(key);
        let bin = &mut self.table[at];
        self.used += usize::from(bin.list.head == NIL);
        bin.key = key;
        bin.list.push(slab, link, index);
    }

    /// Takes an entry out of the list of its key. The bin is looked for only if the entry is at an end.
    #[inline]
    pub fn detach<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut Slab<I, T, L>,
        link: usize,
        key: W,
        index: u32,
    ) {
        let gap = slab.bridge(link, index);
        if gap.prev != NIL && gap.next != NIL {
            return;
        }
        let at = self.probe(key);
        self.table[at].list.close(gap);
        if self.table[at].list.head == NIL {
            self.used -= 1;
            self.fill(at);
        }
    }

    /// Moves later bins of the same run into the free position, so that no probe stops too early.
    #[inline]
    fn fill(&mut self, mut free: usize) {
        let mask = self.table.len() - 1;
        let mut at = self.after(free);
        while self.table[at].list.head != NIL {
            let way = at.wrapping_sub(self.home(self.table[at].key)) & mask;
            if way >= at.wrapping_sub(free) & mask {
                self.table[free] = self.table[at];
                self.table[at].list = List::EMPTY;
                free = at;
            }
            at = self.after(at);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(FIRST);
        let empty = Bin { key: W::default(), list: List::EMPTY };
        let old = core::mem::replace(&mut self.table, vec![empty; size]);
        self.shift = u64::BITS - size.trailing_zeros();
        for bin in old.into_iter().filter(|bin| bin.list.head != NIL) {
            let at = self.probe(bin.key);
            self.table[at] = bin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Bins and a map of plain lists under the same pushes and detaches.
    #[test]
    fn bins_hold_what_a_map_of_lists_holds() {
        let mut slab = Slab::<u64, u32, 1>::new();
        let mut bins = Bins::<u64>::new();
        let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut random = crate::matching::oracle::Random::new(7);
        for step in 0..40_000 {
            let range = [3, 40, 600, 5][step / 10_000];
            let key = random.below(range);
            let list = model.entry(key).or_default();
            if random.below(2) == 0 || list.is_empty() {
                let index = slab.insert(key, 0);
                bins.push(&mut slab, 0, key, index);
                list.push(index);
            } else {
                let gone = list.remove(random.below(list.len() as u64) as usize);
                bins.detach(&mut slab, 0, key, gone);
                slab.remove(gone);
            }
            for (&key, list) in &model {
                let ends = bins.list(key);
                assert_eq!(ends.head, list.first().copied().unwrap_or(NIL));
                assert_eq!(ends.tail, list.last().copied().unwrap_or(NIL));
            }
            assert_eq!(bins.used, model.values().filter(|list| !list.is_empty()).count());
        }
    }
}
