//! The posted receive queue: a message takes the oldest receive whose pattern takes its envelope.

use super::classes::Classes;
use super::lanes::{KeyLanes, few};
use super::pattern::{MatchKey, MatchPattern, Pattern, WordOf, agree};
use super::slab::{EntryList, EntrySlab, NIL};
use crate::limits::{SHORT_QUEUE, SHORT_QUEUE_AGAIN};

/// Value and care mask of a pattern.
type Wants<P> = (WordOf<P>, WordOf<P>);

/// Links of an entry: in the bin of its pattern's class (or among the unclassified ones), and in order of age.
const BIN: usize = 0;
const ORDER: usize = 1;

/// The posted receive queue of one context. Its payloads `T` are names: small, and each in the queue once.
#[derive(Debug)]
pub struct PostedQueue<T, P: MatchPattern = Pattern> {
    /// The receives while the queue is short; none of them is in the slab. `None` in a lane that is not live.
    lanes: KeyLanes<Wants<P>, Option<T>>,
    deep: bool,
    len: usize,
    /// How many entries the last search of the deep form compared, and which live lanes one of the short form met.
    attempts: usize,
    met: u64,
    slab: EntrySlab<Wants<P>, T, 2>,
    classes: Classes<P::Key>,
    /// Patterns of no class, walked in order. MPI has none;
    /// of other interfaces, those of more masks than there are classes.
    unclassified: EntryList,
    order: EntryList,
    next_seq: u64,
}

impl<T: Copy + PartialEq, P: MatchPattern> Default for PostedQueue<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + PartialEq, P: MatchPattern> PostedQueue<T, P> {
    /// Makes an empty queue. It allocates when it first becomes deep.
    #[must_use]
    pub fn new() -> Self {
        Self::with_short(SHORT_QUEUE)
    }

    /// The same, whose short form has room for `short` entries: from twice [`SHORT_QUEUE_AGAIN`] to [`SHORT_QUEUE`].
    #[must_use]
    pub fn with_short(short: usize) -> Self {
        Self {
            lanes: KeyLanes::new(short),
            deep: false,
            len: 0,
            attempts: 0,
            met: 0,
            slab: EntrySlab::new(),
            classes: Classes::new(),
            unclassified: EntryList::EMPTY,
            order: EntryList::EMPTY,
            next_seq: 0,
        }
    }

    /// Receives in the queue.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no receive is posted.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the queue is in its deep form.
    #[inline]
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.deep
    }

    /// How many receives the last [`take`](Self::take) compared with its message.
    #[inline]
    #[must_use]
    pub fn last_attempts(&self) -> usize {
        // Counted here, because counting costs more than the search.
        self.attempts + few(self.met)
    }

    /// Posts a receive as the youngest.
    #[inline(always)]
    pub fn insert(&mut self, pattern: P, value: T) {
        let wants = (pattern.value(), pattern.care());
        self.len += 1;
        if self.deep || !self.lanes.push(wants, Some(value)) {
            self.insert_deep(wants, value);
        }
    }

    /// Takes the oldest receive that takes this message.
    #[inline]
    pub fn take(&mut self, envelope: &P::Key) -> Option<T> {
        let word = envelope.word();
        if self.deep {
            return self.take_deep(word);
        }
        let lane = self.lanes.oldest(|&(value, care)| agree(word, value, care));
        (self.attempts, self.met) = (0, self.lanes.met(lane));
        self.take_lane(lane?)
    }

    /// The same as [`take`](Self::take) where nobody asks for [`last_attempts`](Self::last_attempts): fastest if the
    /// oldest receive of all takes the message.
    #[inline(always)]
    pub fn take_uncounted(&mut self, envelope: &P::Key) -> Option<T> {
        let word = envelope.word();
        if self.deep {
            return self.take_deep(word);
        }
        match self.lanes.first(|&(value, care)| agree(word, value, care)) {
            Ok(lane) => self.take_lane(lane),
            Err(0) => None,
            Err(others) => self.take_other(others, word),
        }
    }

    /// The oldest receive that takes this message, which stays in the queue: one for several messages.
    pub fn oldest(&mut self, envelope: &P::Key) -> Option<T> {
        let word = envelope.word();
        if self.deep {
            return self.oldest_deep(word).map(|index| *self.slab.entry(index).1);
        }
        let lane = self.lanes.oldest(|&(value, care)| agree(word, value, care))?;
        self.lanes.slot(lane)
    }

    #[inline(never)]
    fn take_other(&mut self, others: u64, word: WordOf<P>) -> Option<T> {
        let lane = self.lanes.oldest_of(others, |&(value, care)| agree(word, value, care))?;
        self.take_lane(lane)
    }

    #[inline(always)]
    fn take_lane(&mut self, lane: u32) -> Option<T> {
        self.len -= 1;
        self.lanes.vacate(lane)
    }

    /// Whether this receive is the only one in the queue, which is in its short form.
    #[inline(always)]
    pub fn is_alone(&self, value: T) -> bool {
        self.len == 1 && !self.deep && self.lanes.only() == Some(value)
    }

    /// Removes the receive for which [`is_alone`](Self::is_alone) has just returned true.
    #[inline(always)]
    pub fn take_alone(&mut self) {
        debug_assert!(self.len == 1 && !self.deep);
        self.len = 0;
        self.lanes.clear();
    }

    /// Removes the receive that was posted with this pattern and payload. Returns false if it is not there. In the deep
    /// form this walks the receives of the same pattern.
    pub fn remove(&mut self, pattern: &P, value: T) -> bool {
        if self.deep {
            let index = self.find_in_bin((pattern.value(), pattern.care()), value);
            return index.map(|index| self.remove_deep(index)).is_some();
        }
        let lane = self.lanes.lanes().find(|&lane| self.lanes.slot(lane) == Some(value));
        lane.map(|lane| self.take_lane(lane)).is_some()
    }

    fn find_in_bin(&self, (word, care): Wants<P>, value: T) -> Option<u32> {
        let list = match self.classes.of(care) {
            Some(class) => self.classes.list(class, word),
            None => self.unclassified,
        };
        self.listed(list, BIN).find(|&index| *self.slab.entry(index).1 == value)
    }

    /// Returns every receive, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let short = self.lanes.lanes().filter_map(|lane| self.lanes.slot(lane));
        short.chain(self.listed(self.order, ORDER).map(|index| *self.slab.entry(index).1))
    }

    /// Slab indices of a list, oldest first.
    fn listed(&self, list: EntryList, link: usize) -> impl Iterator<Item = u32> {
        let live = |index: u32| (index != NIL).then_some(index);
        core::iter::successors(live(list.head), move |&at| live(self.slab[at].links[link].next))
    }

    #[inline(never)]
    fn insert_deep(&mut self, wants: Wants<P>, value: T) {
        if !self.deep {
            self.turn_deep();
        }
        self.link(wants, value);
    }

    /// Moves what is in the lanes into the lists (matching rule 1).
    #[cold]
    fn turn_deep(&mut self) {
        self.deep = true;
        for lane in self.lanes.lanes() {
            if let Some(value) = self.lanes.slot(lane) {
                self.link(self.lanes.key(lane), value);
            }
        }
        self.lanes.clear();
    }

    /// Moves the few that are left in the lists into the lanes (matching rule 1).
    #[cold]
    #[inline(never)]
    fn turn_short(&mut self) {
        self.deep = false;
        while self.order.head != NIL {
            let (wants, value) = self.unlink(self.order.head);
            let fits = self.lanes.push(wants, Some(value));
            debug_assert!(fits, "SHORT_QUEUE_AGAIN entries fit into the lanes");
        }
    }

    /// Adds an entry as the youngest of its lists.
    fn link(&mut self, wants: Wants<P>, value: T) {
        let index = self.slab.insert(wants, value);
        self.slab[index].seq = self.next_seq;
        self.next_seq += 1;
        self.order.push(&mut self.slab, ORDER, index);
        match self.class_for(wants.1) {
            Some(class) => self.classes.push(&mut self.slab, class, BIN, wants.0, index),
            None => self.unclassified.push(&mut self.slab, BIN, index),
        }
    }

    /// The class to file a pattern by. No class is given bits by which a receive is among the unclassified already.
    #[inline]
    fn class_for(&mut self, care: WordOf<P>) -> Option<usize> {
        let class = self.classes.of(care);
        if class.is_some() || self.unclassified.head != NIL {
            return class;
        }
        self.classes.learn(care, |classes, class| !classes.is_empty(class))
    }

    /// Removes an entry from its lists and frees it.
    fn unlink(&mut self, index: u32) -> (Wants<P>, T) {
        let (word, care) = self.slab[index].item;
        let gap = self.slab.bridge(ORDER, index);
        self.order.close(gap);
        match self.classes.of(care) {
            Some(class) => self.classes.detach(&mut self.slab, class, BIN, word, index),
            None => {
                let gap = self.slab.bridge(BIN, index);
                self.unclassified.close(gap);
            }
        }
        self.slab.remove(index)
    }

    #[inline(never)]
    fn take_deep(&mut self, word: WordOf<P>) -> Option<T> {
        let index = self.oldest_deep(word)?;
        Some(self.remove_deep(index))
    }

    fn remove_deep(&mut self, index: u32) -> T {
        let (_, value) = self.unlink(index);
        self.len -= 1;
        if self.len <= SHORT_QUEUE_AGAIN {
            self.turn_short();
        }
        value
    }

    /// The oldest among the heads of the four bins that the word falls into, and the unclassified ones.
    #[inline]
    fn oldest_deep(&mut self, word: WordOf<P>) -> Option<u32> {
        (self.attempts, self.met) = (0, 0);
        let mut oldest = None;
        for class in 0..P::Key::CARES.len() {
            let head = self.classes.list(class, word).head;
            if head != NIL {
                self.attempts += 1;
                self.older_of(&mut oldest, head);
            }
        }
        if self.unclassified.head != NIL {
            self.search_unclassified(word, &mut oldest);
        }
        oldest
    }

    #[inline]
    fn older_of(&self, oldest: &mut Option<u32>, index: u32) {
        if oldest.is_none_or(|best| self.slab[index].seq < self.slab[best].seq) {
            *oldest = Some(index);
        }
    }

    #[cold]
    fn search_unclassified(&mut self, word: WordOf<P>, oldest: &mut Option<u32>) {
        let mut at = self.unclassified.head;
        while at != NIL && oldest.is_none_or(|best| self.slab[at].seq < self.slab[best].seq) {
            self.attempts += 1;
            let (value, care) = self.slab[at].item;
            if agree(word, value, care) {
                *oldest = Some(at);
                return;
            }
            at = self.slab[at].links[BIN].next;
        }
    }
}
