//! The unexpected message queue: a receive takes the oldest message whose envelope its pattern takes.

use super::classes::{ANY, BY_SOURCE, Classes};
use super::lanes::{KeyLanes, few};
use super::pattern::{MatchKey, MatchPattern, Pattern, WordOf, agree};
use super::slab::{EntrySlab, NIL, Ticket};
use crate::limits::{SHORT_QUEUE, SHORT_QUEUE_AGAIN};

type KeyOf<P> = <P as MatchPattern>::Key;

/// An entry is in one bin of each class that the queue files by; the number of the link is the class.
const CLASSES: usize = 4;

/// The unexpected message queue of one context.
#[derive(Debug)]
pub struct UnexpectedQueue<T, P: MatchPattern = Pattern> {
    /// The word of each envelope while the queue is short.
    lanes: KeyLanes<WordOf<P>>,
    deep: bool,
    len: usize,
    /// How many entries the last search of the deep form compared, and which live lanes one of the short form met.
    attempts: usize,
    met: u64,
    slab: EntrySlab<KeyOf<P>, T, CLASSES>,
    classes: Classes<KeyOf<P>>,
    /// The classes that the deep form files by: the whole order always, the exact one too unless classes are learned,
    /// the others from the first search that needs them.
    filed_by: [bool; CLASSES],
    next_seq: u64,
}

/// A message that a search has found.
#[derive(Debug, Clone, Copy)]
pub struct FoundMessage {
    index: u32,
    /// Its lane in the short form, else [`DEEP`].
    lane: u32,
}

/// The lane of a message in the deep form.
const DEEP: u32 = u32::MAX;

/// A walk through two lists of one class, oldest first.
struct Merge {
    class: usize,
    heads: [u32; 2],
}

impl Merge {
    fn next<I: Copy, T>(&mut self, slab: &EntrySlab<I, T, CLASSES>) -> Option<u32> {
        let second = match self.heads {
            [NIL, NIL] => return None,
            [NIL, _] => true,
            [_, NIL] => false,
            [a, b] => slab[b].seq < slab[a].seq,
        };
        let head = &mut self.heads[usize::from(second)];
        let index = *head;
        *head = slab[index].links[self.class].next;
        Some(index)
    }
}

impl<T, P: MatchPattern> Default for UnexpectedQueue<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P: MatchPattern> UnexpectedQueue<T, P> {
    /// Makes an empty queue. It allocates at the first insertion.
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
            filed_by: [!KeyOf::<P>::LEARNS, false, false, true],
            next_seq: 0,
        }
    }

    /// Messages in the queue.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no message in the queue.
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

    /// How many messages the last [`take`](Self::take), [`peek`](Self::peek) or
    /// [`remove_youngest`](Self::remove_youngest) compared with what it was asked for.
    #[inline]
    #[must_use]
    pub fn last_attempts(&self) -> usize {
        // Counted here, because counting costs more than the search.
        self.attempts + few(self.met)
    }

    /// Adds a message as the youngest.
    #[inline]
    pub fn insert(&mut self, envelope: KeyOf<P>, value: T) -> Ticket {
        if let Some(slot) = self.slab.tombstone_slot() {
            self.clear_tombstones(slot, envelope.word());
        }
        let index = self.slab.insert(envelope, value);
        self.len += 1;
        if self.deep || !self.lanes.push(envelope.word(), index) {
            self.insert_deep(index);
        }
        self.slab.ticket(index)
    }

    /// Finds the oldest message that this pattern takes. The result is valid until the queue changes.
    #[inline(always)]
    pub fn find(&mut self, pattern: &P) -> Option<FoundMessage> {
        let (value, care) = (pattern.value(), pattern.care());
        if self.deep {
            let index = self.find_deep(value, care)?;
            return Some(FoundMessage { index, lane: DEEP });
        }
        let lane = self.find_lane(value, care)?;
        Some(FoundMessage { index: self.lanes.slot(lane), lane })
    }

    /// Returns a message that was found.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, found: FoundMessage) -> (&KeyOf<P>, &T) {
        self.slab.entry(found.index)
    }

    /// Drops a message that was found.
    #[inline(always)]
    pub fn discard(&mut self, found: FoundMessage) {
        if found.lane == DEEP {
            return self.discard_deep(found.index);
        }
        self.lanes.vacate(found.lane);
        self.len -= 1;
        self.slab.discard(found.index);
    }

    /// Takes the oldest message that this pattern takes.
    #[inline]
    pub fn take(&mut self, pattern: &P) -> Option<(KeyOf<P>, T)> {
        let found = self.find(pattern)?;
        Some(self.take_found(found))
    }

    /// Takes a message that was found.
    #[inline]
    pub fn take_found(&mut self, found: FoundMessage) -> (KeyOf<P>, T) {
        if found.lane == DEEP {
            return self.remove_deep(found.index);
        }
        self.lanes.vacate(found.lane);
        self.len -= 1;
        self.slab.remove(found.index)
    }

    /// Looks at the oldest message that this pattern takes.
    #[inline]
    pub fn peek(&mut self, pattern: &P) -> Option<(&KeyOf<P>, &T)> {
        let found = self.find(pattern)?;
        Some(self.at(found))
    }

    /// Removes the message that the ticket names, if it is still there.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.slab.resolve(ticket)?;
        Some(self.remove_at(index)?.1)
    }

    /// Removes the youngest message from `source` for which `wanted` holds.
    /// Walks the messages of that source, for rare uses.
    pub fn remove_youngest(
        &mut self,
        source: <KeyOf<P> as MatchKey>::Source,
        mut wanted: impl FnMut(&KeyOf<P>, &T) -> bool,
    ) -> Option<(KeyOf<P>, T)> {
        let mut met = 0;
        let all = self.sent_by(source).inspect(|_| met += 1);
        let found = all
            .filter(|&index| {
                let (key, item) = self.slab.entry(index);
                wanted(key, item)
            })
            .last();
        (self.attempts, self.met) = (met, 0);
        self.remove_at(found?)
    }

    /// The payload of a message that is still there.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.slab.get_mut(ticket)
    }

    /// Returns every message, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&KeyOf<P>, &T)> {
        self.short().chain(self.ordered()).map(|index| self.slab.entry(index))
    }

    /// Slab indices of the short form, oldest first.
    fn short(&self) -> impl Iterator<Item = u32> {
        self.lanes.lanes().map(|lane| self.lanes.slot(lane))
    }

    /// Slab indices of the deep form, oldest first.
    fn ordered(&self) -> impl Iterator<Item = u32> {
        self.walk(ANY, self.classes.any().map(|list| list.head))
    }

    fn walk(&self, class: usize, heads: [u32; 2]) -> impl Iterator<Item = u32> {
        let mut merge = Merge { class, heads };
        core::iter::from_fn(move || merge.next(&self.slab))
    }

    /// Slab indices of what `source` sent, oldest first.
    fn sent_by(&self, source: <KeyOf<P> as MatchKey>::Source) -> impl Iterator<Item = u32> {
        let user = KeyOf::<P>::source_word(source);
        // Two bins, for tags from zero on and below (matching rule 4), which are one where a tag has no sign.
        let own = user | KeyOf::<P>::CARES[ANY];
        let by_source = self.classes.care(BY_SOURCE) == KeyOf::<P>::CARES[BY_SOURCE];
        let (class, heads) = if !self.filed_by[BY_SOURCE] || !by_source {
            (ANY, self.classes.any().map(|list| list.head))
        } else if user == own {
            (BY_SOURCE, [self.head(BY_SOURCE, user), NIL])
        } else {
            (BY_SOURCE, [user, own].map(|word| self.head(BY_SOURCE, word)))
        };
        let all = self.short().chain(self.walk(class, heads));
        all.filter(move |&index| self.slab[index].item.is_from(source))
    }

    #[inline(always)]
    fn find_lane(&mut self, value: WordOf<P>, care: WordOf<P>) -> Option<u32> {
        let lane = self.lanes.oldest(|&word| agree(word, value, care));
        (self.attempts, self.met) = (0, self.lanes.met(lane));
        lane
    }

    /// The head of the bin that the pattern asks for.
    #[inline(never)]
    fn find_deep(&mut self, value: WordOf<P>, care: WordOf<P>) -> Option<u32> {
        let filed_by = self.filed_by;
        let class = self.classes.of(care).or_else(|| self.classes.learn(care, |_, class| filed_by[class]));
        let Some(class) = class else { return self.search_unclassified(value, care) };
        if !self.filed_by[class] {
            self.file_by(class);
        }
        let head = self.classes.seek(&self.slab, class, class, value);
        let found = (head != NIL).then_some(head);
        (self.attempts, self.met) = (usize::from(found.is_some()), 0);
        found
    }

    /// The oldest message of a bin.
    #[inline(always)]
    fn head(&self, class: usize, word: WordOf<P>) -> u32 {
        self.classes.head(&self.slab, class, class, word)
    }

    /// Files the whole queue by one more class, once in its life.
    #[cold]
    #[inline(never)]
    fn file_by(&mut self, class: usize) {
        self.filed_by[class] = true;
        let heads = self.classes.any().map(|list| list.head);
        let mut order = Merge { class: ANY, heads };
        while let Some(index) = order.next(&self.slab) {
            let word = self.slab[index].item.word();
            self.classes.push(&mut self.slab, class, class, word, index);
        }
    }

    /// A pattern of no class: walks the smallest bin that must hold what it takes.
    #[cold]
    fn search_unclassified(&mut self, value: WordOf<P>, care: WordOf<P>) -> Option<u32> {
        let covers = |class: usize| self.classes.care(class) & care == self.classes.care(class);
        let (class, heads) = match (0..ANY).find(|&class| self.filed_by[class] && covers(class)) {
            Some(class) => (class, [self.head(class, value), NIL]),
            None => (ANY, self.classes.any().map(|list| list.head)),
        };
        let mut met = 0;
        let found = self.walk(class, heads).find(|&index| {
            met += 1;
            agree(self.slab[index].item.word(), value, care)
        });
        (self.attempts, self.met) = (met, 0);
        found
    }

    #[inline(never)]
    fn insert_deep(&mut self, index: u32) {
        if !self.deep {
            self.turn_deep();
        }
        self.link(index);
    }

    /// Moves what is in the lanes into the lists (matching rule 1).
    #[cold]
    fn turn_deep(&mut self) {
        self.deep = true;
        for lane in self.lanes.lanes() {
            self.link(self.lanes.slot(lane));
        }
        self.lanes.clear();
    }

    /// Moves the few that are left in the lists into the lanes (matching rule 1).
    #[cold]
    #[inline(never)]
    fn turn_short(&mut self) {
        self.deep = false;
        loop {
            let oldest = self.ordered().next();
            let Some(index) = oldest else { return };
            self.unlink(index);
            let fits = self.lanes.push(self.slab[index].item.word(), index);
            debug_assert!(fits, "SHORT_QUEUE_AGAIN entries fit into the lanes");
        }
    }

    fn link(&mut self, index: u32) {
        let word = self.slab[index].item.word();
        self.slab[index].seq = self.next_seq;
        self.next_seq += 1;
        for class in 0..CLASSES {
            if self.slab[index].links[class].is_tombstone() {
                // The bin names this slot already, and no other.
                self.slab.clear_tombstone(class, index);
            } else if self.filed_by[class] {
                self.classes.push(&mut self.slab, class, class, word, index);
            }
        }
    }

    /// Removes an entry from the lists before it moves to the lanes.
    fn unlink(&mut self, index: u32) {
        let word = self.slab[index].item.word();
        for class in 0..CLASSES {
            if self.filed_by[class] {
                self.classes.detach(&mut self.slab, class, class, word, index);
            }
        }
    }

    /// Removes an entry from the lists before its slot is freed.
    #[inline(always)]
    fn leave(&mut self, index: u32) {
        let word = self.slab[index].item.word();
        for class in 0..CLASSES {
            if self.filed_by[class] {
                self.classes.leave(&mut self.slab, class, class, word, index);
            }
        }
    }

    /// Removes the tombstones of a free slot before a message takes it (matching rule 5),
    /// except those whose bins it belongs in.
    #[inline(never)]
    fn clear_tombstones(&mut self, slot: u32, next: WordOf<P>) {
        let word = self.slab[slot].item.word();
        self.slab[slot].seq = 0;
        let next = self.deep.then_some(next);
        for class in 0..CLASSES {
            self.classes.clear_tombstone(&mut self.slab, class, class, word, slot, next);
        }
    }

    /// Removes an entry from whichever form it is in.
    fn remove_at(&mut self, index: u32) -> Option<(KeyOf<P>, T)> {
        if self.deep {
            return Some(self.remove_deep(index));
        }
        let lane = self.lanes.lane_of(index)?;
        self.lanes.vacate(lane);
        self.len -= 1;
        Some(self.slab.remove(index))
    }

    #[inline(never)]
    fn discard_deep(&mut self, index: u32) {
        self.leave(index);
        self.len -= 1;
        self.slab.discard(index);
        self.settle();
    }

    #[inline(never)]
    fn remove_deep(&mut self, index: u32) -> (KeyOf<P>, T) {
        self.leave(index);
        self.len -= 1;
        let taken = self.slab.remove(index);
        self.settle();
        taken
    }

    /// Makes the queue short once few messages are left.
    #[inline(always)]
    fn settle(&mut self) {
        if self.len <= SHORT_QUEUE_AGAIN {
            self.turn_short();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Envelope;
    use super::*;
    use crate::limits::rounds;

    const DEPTH: i32 = 200;

    fn pattern(tag: i32) -> Pattern {
        Pattern { source: Some(0), tag: Some(tag) }
    }

    /// A deep queue of messages of different tags, filed in every class.
    fn deep() -> UnexpectedQueue<i32> {
        let mut queue = UnexpectedQueue::new();
        (0..DEPTH).for_each(|tag| _ = queue.insert(Envelope { source: 0, tag }, tag));
        assert_eq!(queue.take(&Pattern { source: None, tag: Some(-1) }), None);
        assert_eq!(queue.take(&Pattern { source: Some(1), tag: None }), None);
        assert!(queue.is_deep() && queue.filed_by.iter().all(|&kept| kept));
        queue
    }

    fn taken(queue: &mut UnexpectedQueue<i32>, tag: i32) -> Option<i32> {
        queue.take(&pattern(tag)).map(|(_, value)| value)
    }

    /// Tag by tag and from the oldest on, the queue holds exactly these.
    fn holds(mut queue: UnexpectedQueue<i32>, expected: &[(i32, i32)]) {
        assert!(queue.iter().map(|(key, &value)| (key.tag, value)).eq(expected.iter().copied()));
        for &(tag, value) in expected.iter().rev() {
            assert_eq!(taken(&mut queue, tag), Some(value));
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn a_message_that_was_alone_in_its_bins_leaves_tombstones_that_are_not_found() {
        let mut queue = deep();
        let found = queue.find(&Pattern { source: None, tag: None }).expect("two hundred are there");
        assert_eq!(queue.at(found).1, &0);
        queue.discard(found);
        // By source and tag, and by tag; its source has others.
        assert_eq!(queue.slab.tombstones(), 2);
        assert!(queue.peek(&pattern(0)).is_none() && queue.last_attempts() == 0);
        assert!(queue.peek(&Pattern { source: None, tag: Some(0) }).is_none());
        assert_eq!(queue.take(&Pattern { source: None, tag: None }).map(|(_, value)| value), Some(1));
        assert_eq!(queue.slab.tombstones(), 4);
        holds(queue, &(2..DEPTH).map(|tag| (tag, tag)).collect::<Vec<_>>());
    }

    #[test]
    fn a_message_of_the_same_key_in_the_same_slot_steps_into_the_place_of_its_tombstones() {
        let mut queue = deep();
        assert_eq!(taken(&mut queue, 7), Some(7));
        queue.insert(Envelope { source: 0, tag: 7 }, 1007);
        assert_eq!(queue.slab.tombstones(), 0);
        queue.insert(Envelope { source: 0, tag: 7 }, 2007);
        let others = (0..DEPTH).filter(|&tag| tag != 7).map(|tag| (tag, tag));
        assert_eq!(taken(&mut queue, 7), Some(1007));
        holds(queue, &others.chain([(7, 2007)]).collect::<Vec<_>>());
    }

    #[test]
    fn a_message_that_shares_one_bin_with_the_tombstones_of_its_slot_ends_the_others() {
        let mut queue = deep();
        assert_eq!(taken(&mut queue, 7), Some(7));
        queue.insert(Envelope { source: 3, tag: 7 }, 1007);
        assert_eq!(queue.slab.tombstones(), 0);
        assert_eq!(taken(&mut queue, 7), None);
        assert_eq!(queue.take(&Pattern { source: None, tag: Some(7) }).map(|(_, value)| value), Some(1007));
        holds(queue, &(0..DEPTH).filter(|&tag| tag != 7).map(|tag| (tag, tag)).collect::<Vec<_>>());
    }

    #[test]
    fn a_message_takes_over_the_bin_of_a_tombstone_in_another_slot() {
        let mut queue = deep();
        assert_eq!((taken(&mut queue, 7), taken(&mut queue, 8)), (Some(7), Some(8)));
        assert_eq!(queue.slab.tombstones(), 4);
        // The slot of 8 is the next one; the tombstones there end, and those of 7 give way.
        queue.insert(Envelope { source: 0, tag: 7 }, 1007);
        assert_eq!(queue.slab.tombstones(), 0);
        queue.insert(Envelope { source: 0, tag: 8 }, 1008);
        let others = (0..DEPTH).filter(|&tag| tag != 7 && tag != 8).map(|tag| (tag, tag));
        holds(queue, &others.chain([(7, 1007), (8, 1008)]).collect::<Vec<_>>());
    }

    #[test]
    fn what_leaves_from_the_middle_by_ticket_leaves_tombstones_too_and_its_ticket_is_void() {
        let mut queue = deep();
        let ticket = queue.insert(Envelope { source: 0, tag: DEPTH }, DEPTH);
        queue.insert(Envelope { source: 0, tag: DEPTH + 1 }, DEPTH + 1);
        assert_eq!(queue.remove(ticket), Some(DEPTH));
        assert_eq!(queue.slab.tombstones(), 2);
        let next = queue.insert(Envelope { source: 0, tag: DEPTH }, 1000);
        assert_eq!(queue.remove(ticket), None);
        assert_eq!((queue.get_mut(next).copied(), taken(&mut queue, DEPTH)), (Some(1000), Some(1000)));
    }

    #[test]
    fn a_queue_that_turned_short_ends_the_tombstones_of_the_slots_that_it_uses_and_goes_deep_again() {
        let mut queue = deep();
        for tag in 0..DEPTH {
            assert_eq!(taken(&mut queue, tag), Some(tag));
        }
        assert!(!queue.is_deep() && queue.slab.tombstones() > 0);
        for round in 1..4 {
            // Other tags in the same slots: none of the tombstones may be taken for one of them.
            let tags = (0..DEPTH).map(|i| i * round + 1000);
            tags.clone().for_each(|tag| _ = queue.insert(Envelope { source: 0, tag }, tag));
            assert_eq!(queue.slab.tombstones(), 0);
            assert!((0..DEPTH).all(|tag| queue.peek(&pattern(tag)).is_none()));
            for tag in tags.rev() {
                assert_eq!(taken(&mut queue, tag), Some(tag));
            }
        }
    }

    #[test]
    fn ever_new_tags_leave_no_more_tombstones_than_there_are_slots() {
        let mut queue = deep();
        let end = DEPTH + rounds(49 * DEPTH as usize) as i32;
        for tag in DEPTH..end {
            queue.insert(Envelope { source: 0, tag }, tag);
            let any = Pattern { source: (tag % 2 == 0).then_some(0), tag: None };
            assert_eq!(queue.take(&any).map(|(_, value)| value), Some(tag - DEPTH));
            assert!(queue.slab.tombstones() <= 2, "the one slot that is free: {}", queue.slab.tombstones());
        }
        holds(queue, &(end - DEPTH..end).map(|tag| (tag, tag)).collect::<Vec<_>>());
    }
}
