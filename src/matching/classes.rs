//! The deep form: for each class of pattern its bins, and in each bin a list whose head is the oldest entry.
//!
//! A class is the set of bits that it compares ([`MatchKey::CARES`]); the bin of a word in a class is the word under
//! that mask. The last class compares one bit at most, so its bins are two lists and need no table.

use super::bins::Bins;
use super::pattern::{MatchKey, agree};
use super::slab::{EntryList, EntrySlab};

/// Both source and tag open: the class whose lists are the queue in order.
pub(super) const ANY: usize = 3;
/// The tag open: the class whose bins are the queue by source.
pub(super) const BY_SOURCE: usize = 2;

/// The bins of the four classes.
#[derive(Debug)]
pub(super) struct Classes<K: MatchKey> {
    bins: [Bins<K::Word>; ANY],
    any: [EntryList; 2],
}

impl<K: MatchKey> Classes<K> {
    pub const fn new() -> Self {
        Self { bins: [const { Bins::new() }; ANY], any: [EntryList::EMPTY; 2] }
    }

    /// The class of a pattern with this care mask, if it has one.
    #[inline]
    pub fn of(care: K::Word) -> Option<usize> {
        K::CARES.iter().position(|&mask| mask == care)
    }

    #[inline]
    fn side(word: K::Word) -> usize {
        usize::from(word & K::CARES[ANY] != K::Word::default())
    }

    /// The list of the bin that `word` falls into; its head is the oldest.
    #[inline]
    pub fn list(&self, class: usize, word: K::Word) -> EntryList {
        match class {
            ANY => self.any[Self::side(word)],
            _ => self.bins[class].list(word & K::CARES[class]),
        }
    }

    /// The oldest entry of the bin that `word` falls into, or `NIL`.
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
            _ => self.bins[class].head(slab, link, word & K::CARES[class]),
        }
    }

    /// As [`head`](Self::head), of an entry that is likely to leave at once.
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
            _ => self.bins[class].seek(slab, link, word & K::CARES[class]),
        }
    }

    /// The two lists of the last class: together the whole queue, if every entry is in it.
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
            _ => self.bins[class].push(slab, link, word & K::CARES[class], index),
        }
    }

    /// Takes an entry out of its bin.
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
            _ => self.bins[class].detach(slab, link, word & K::CARES[class], index),
        }
    }

    /// As [`detach`](Self::detach) of an entry whose slot is freed: its ghost may stay (rule M5).
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
            _ => self.bins[class].leave(slab, link, word & K::CARES[class], index),
        }
    }

    /// Ends the ghost that the last entry of a slot left in this class, if there is one, unless the next one that takes the
    /// slot is of the same bin.
    pub fn lay<I: Copy, T, const L: usize>(
        &mut self,
        slab: &mut EntrySlab<I, T, L>,
        class: usize,
        link: usize,
        word: K::Word,
        index: u32,
        next: Option<K::Word>,
    ) {
        let stays = next.is_some_and(|next| agree(word, next, K::CARES[class]));
        if class != ANY && !stays {
            self.bins[class].lay(slab, link, word & K::CARES[class], index);
        }
    }
}
