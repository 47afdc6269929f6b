//! Receives that wait for a message. A message takes the oldest whose pattern takes its envelope.

use super::classes::Classes;
use super::lanes::{Lanes, ROOM, TURN_BACK};
use super::pattern::{Key, Pattern, Select, agree};
use super::slab::{List, NIL, Slab, Ticket};

type WordOf<P> = <<P as Select>::Key as Key>::Word;

/// Links of an entry: in the bin of its pattern's class (or among the odd ones), and in order of age.
const BIN: usize = 0;
const ORDER: usize = 1;

/// The queue of posted receives of one context id.
#[derive(Debug)]
pub struct Posted<T, P: Select = Pattern> {
    /// Value and care of each pattern while the queue is short.
    lanes: Lanes<(WordOf<P>, WordOf<P>)>,
    deep: bool,
    len: usize,
    /// Entries that the last search of the deep form compared, and living lanes that one of the short form met.
    attempts: usize,
    met: u64,
    slab: Slab<P, T, 2>,
    classes: Classes<P::Key>,
    /// Patterns of no class, walked in order; MPI has none.
    odd: List,
    order: List,
    next_seq: u64,
}

impl<T, P: Select> Default for Posted<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P: Select> Posted<T, P> {
    /// An empty queue; memory is taken at the first insertion.
    #[must_use]
    pub fn new() -> Self {
        Self::with_short(ROOM)
    }

    /// The same, whose short form has room for `short` entries: from twice [`TURN_BACK`] to [`ROOM`].
    #[must_use]
    pub fn with_short(short: usize) -> Self {
        Self {
            lanes: Lanes::new(short),
            deep: false,
            len: 0,
            attempts: 0,
            met: 0,
            slab: Slab::new(),
            classes: Classes::new(),
            odd: List::EMPTY,
            order: List::EMPTY,
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
        // Counted when somebody asks: that is dearer than the search.
        self.attempts + self.met.count_ones() as usize
    }

    /// Posts a receive as the youngest.
    #[inline]
    pub fn insert(&mut self, pattern: P, value: T) -> Ticket {
        let index = self.slab.insert(pattern, value);
        self.len += 1;
        if self.deep || !self.lanes.push((pattern.value(), pattern.care()), index) {
            self.insert_deep(index);
        }
        self.slab.ticket(index)
    }

    /// Takes the oldest receive that takes this message.
    #[inline]
    pub fn take(&mut self, envelope: &P::Key) -> Option<(P, T)> {
        let word = envelope.word();
        if self.deep {
            return self.take_deep(word);
        }
        let lane = self.lanes.oldest(|&(value, care)| agree(word, value, care));
        (self.attempts, self.met) = (0, self.lanes.met(lane));
        let index = self.lanes.vacate(lane?);
        self.len -= 1;
        Some(self.slab.remove(index))
    }

    /// Takes out the receive that the ticket was given for, if it still waits.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.slab.resolve(ticket)?;
        if self.deep {
            return Some(self.remove_deep(index).1);
        }
        let lane = self.lanes.lane_of(index)?;
        self.lanes.vacate(lane);
        self.len -= 1;
        Some(self.slab.remove(index).1)
    }

    /// The payload of a receive that still waits.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.slab.get_mut(ticket)
    }

    /// Every receive, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&P, &T)> {
        let short = self.lanes.lanes().map(|lane| self.lanes.slot(lane));
        short.chain(self.ordered()).map(|index| self.slab.entry(index))
    }

    /// Slab indices of the deep form, oldest first.
    fn ordered(&self) -> impl Iterator<Item = u32> {
        let live = |index: u32| (index != NIL).then_some(index);
        core::iter::successors(live(self.order.head), move |&at| live(self.slab[at].links[ORDER].next))
    }

    #[inline(never)]
    fn insert_deep(&mut self, index: u32) {
        if !self.deep {
            self.turn_deep();
        }
        self.link(index);
    }

    /// Moves what is in the lanes into the lists (rule M1).
    #[cold]
    fn turn_deep(&mut self) {
        self.deep = true;
        for lane in self.lanes.lanes() {
            self.link(self.lanes.slot(lane));
        }
        self.lanes.clear();
    }

    /// Moves the few that are left in the lists into the lanes (rule M1).
    #[cold]
    #[inline(never)]
    fn turn_short(&mut self) {
        self.deep = false;
        while self.order.head != NIL {
            let index = self.order.head;
            self.unlink(index);
            let pattern = self.slab[index].item;
            let fits = self.lanes.push((pattern.value(), pattern.care()), index);
            debug_assert!(fits, "TURN_BACK entries fit into the lanes");
        }
    }

    fn link(&mut self, index: u32) {
        let pattern = self.slab[index].item;
        self.slab[index].seq = self.next_seq;
        self.next_seq += 1;
        self.order.push(&mut self.slab, ORDER, index);
        match Classes::<P::Key>::of(pattern.care()) {
            Some(class) => self.classes.push(&mut self.slab, class, BIN, pattern.value(), index),
            None => self.odd.push(&mut self.slab, BIN, index),
        }
    }

    fn unlink(&mut self, index: u32) {
        let pattern = self.slab[index].item;
        let gap = self.slab.bridge(ORDER, index);
        self.order.close(gap);
        match Classes::<P::Key>::of(pattern.care()) {
            Some(class) => self.classes.detach(&mut self.slab, class, BIN, pattern.value(), index),
            None => {
                let gap = self.slab.bridge(BIN, index);
                self.odd.close(gap);
            }
        }
    }

    #[inline(never)]
    fn take_deep(&mut self, word: WordOf<P>) -> Option<(P, T)> {
        let index = self.oldest_deep(word)?;
        Some(self.remove_deep(index))
    }

    fn remove_deep(&mut self, index: u32) -> (P, T) {
        self.unlink(index);
        self.len -= 1;
        let taken = self.slab.remove(index);
        if self.len <= TURN_BACK {
            self.turn_short();
        }
        taken
    }

    /// The oldest among the heads of the four bins that the word falls into, and the odd ones.
    #[inline]
    fn oldest_deep(&mut self, word: WordOf<P>) -> Option<u32> {
        (self.attempts, self.met) = (0, 0);
        let mut oldest = None;
        for class in 0..P::Key::CARES.len() {
            let head = self.classes.list(class, word).head;
            if head != NIL {
                self.attempts += 1;
                self.keep_older(&mut oldest, head);
            }
        }
        if self.odd.head != NIL {
            self.search_odd(word, &mut oldest);
        }
        oldest
    }

    #[inline]
    fn keep_older(&self, oldest: &mut Option<u32>, index: u32) {
        if oldest.is_none_or(|best| self.slab[index].seq < self.slab[best].seq) {
            *oldest = Some(index);
        }
    }

    #[cold]
    fn search_odd(&mut self, word: WordOf<P>, oldest: &mut Option<u32>) {
        let mut at = self.odd.head;
        while at != NIL && oldest.is_none_or(|best| self.slab[at].seq < self.slab[best].seq) {
            self.attempts += 1;
            let pattern = self.slab[at].item;
            if agree(word, pattern.value(), pattern.care()) {
                *oldest = Some(at);
                return;
            }
            at = self.slab[at].links[BIN].next;
        }
    }
}
