//! The classes of the deep form: for each class its bins, and in each bin a list whose head is the oldest entry.
//!
//! A class is the set of bits that it compares ([`MatchKey::CARES`]); the bin of a word in a class is the word under
//! that mask. The last class compares one bit at most, so its bins are two lists and need no table.

use super::bins::Bins;
use super::pattern::{MatchKey, agree};
use super::slab::{EntryList, EntrySlab};

/// The class of any source and any tag: its two lists are the queue in order.
pub(super) const ANY: usize = 3;
/// The class of one source and any tag: its bins are the queue by source.
pub(super) const BY_SOURCE: usize = 2;

/// The bins of the four classes.
#[derive(Debug)]
pub(super) struct Classes<K: MatchKey> {
    bins: [Bins<K::Word>; ANY],
    any: [EntryList; 2],
    /// The bits that each class compares, where a queue learns them.
    cares: [K::Word; 4],
}

impl<K: MatchKey> Classes<K> {
    pub const fn new() -> Self {
        Self { bins: [const { Bins::new() }; ANY], any: [EntryList::EMPTY; 2], cares: K::CARES }
    }

    /// The bits that a class compares.
    #[inline(always)]
    pub fn care(&self, class: usize) -> K::Word {
        if K::LEARNS { self.cares[class] } else { K::CARES[class] }
    }

    /// Returns the class of a pattern with this care mask, if it has one.
    #[inline]
    pub fn of(&self, care: K::Word) -> Option<usize> {
        (0..=ANY).find(|&class| self.care(class) == care)
    }

    /// Has the first class that is not in use compare other bits from now on. Returns which.
    #[cold]
    pub fn learn(&mut self, care: K::Word, in_use: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let class = (0..ANY).find(|&class| K::LEARNS && !in_use(self, class))?;
        self.cares[class] = care;
        Some(class)
    }

    /// Whether a class other than the last has no bin.
    pub fn is_empty(&self, class: usize) -> bool {
        self.bins[class].is_empty()
    }

    #[inline]
    fn side(word: K::Word) -> usize {
        usize::from(word & K::CARES[ANY] != K::Word::default())
    }

    /// Returns the list of the bin that `word` falls into, oldest entry first.
    #[inline]
    pub fn list(&self, class: usize, word: K::Word) -> EntryList {
        match class {
            ANY => self.any[Self::side(word)],
            _ => self.bins[class].list(word & self.care(class)),
        }
    }

    /// Returns the oldest entry of the bin that `word` falls into, or `NIL`.
    #[inline]
    pub fn head<I: Copy, T, const L: usize>(
        &self,
        slab: &EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
    ) -> u32 {
        match class {
            ANY => self.any[Self::side(word)].head,
            _ => self.bins[class].head(slab, link, word & self.care(class)),
        }
    }

    /// The same as [`head`](Self::head) for an entry that is likely to be removed next.
    #[inline]
    pub fn seek<I: Copy, T, const L: usize>(
        &mut self,
        slab: &EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
    ) -> u32 {
        match class {
            ANY => self.any[Self::side(word)].head,
            _ => self.bins[class].seek(slab, link, word & self.care(class)),
        }
    }

    /// Returns the two lists of the last class: together the whole queue, if every entry is filed by it.
    pub fn any(&self) -> [EntryList; 2] {
        self.any
    }

    /// Adds an entry as the youngest of its bin.
    #[inline]
    pub fn push<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
        index: u32,
    ) {
        match class {
            ANY => self.any[Self::side(word)].push(slab, link, index),
            _ => self.bins[class].push(slab, link, word & self.care(class), index),
        }
    }

    /// Removes an entry from its bin.
    #[inline]
    pub fn detach<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
        index: u32,
    ) {
        match class {
            ANY => {
                let gap = slab.bridge(link, index);
                self.any[Self::side(word)].close(gap);
            }
            _ => self.bins[class].detach(slab, link, word & self.care(class), index),
        }
    }

    /// The same as [`detach`](Self::detach) before the entry's slot is freed: a tombstone may stay (matching rule 5).
    #[inline]
    pub fn leave<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
        index: u32,
    ) {
        match class {
            ANY => self.detach(slab, class, link, word, index),
            _ => self.bins[class].leave(slab, link, word & self.care(class), index),
        }
    }

    /// Removes the tombstone that the last entry of a slot left in this class, if there is one, unless the `next` entry
    /// of the slot belongs in the same bin.
    pub fn clear_tombstone<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
        index: u32,
        next: Option<K::Word>,
    ) {
        let stays = next.is_some_and(|next| agree(word, next, self.care(class)));
        if class != ANY && !stays {
            self.bins[class].clear_tombstone(slab, link, word & self.care(class), index);
        }
    }
}
