//! Messages that came before their receive. A receive takes the oldest whose envelope its pattern takes.

use super::classes::{ANY, BY_SOURCE, Classes};
use super::lanes::{Lanes, ROOM, TURN_BACK};
use super::pattern::{Key, Pattern, Select, agree};
use super::slab::{NIL, Slab, Ticket};

type KeyOf<P> = <P as Select>::Key;
type WordOf<P> = <KeyOf<P> as Key>::Word;

/// An entry is in one bin of each class that is kept, and its link number is the class.
const CLASSES: usize = 4;

/// The queue of unexpected messages of one context id.
#[derive(Debug)]
pub struct Unexpected<T, P: Select = Pattern> {
    /// The word of each envelope while the queue is short.
    lanes: Lanes<WordOf<P>>,
    deep: bool,
    len: usize,
    /// Entries that the last search of the deep form compared, and living lanes that one of the short form met.
    attempts: usize,
    met: u64,
    slab: Slab<KeyOf<P>, T, CLASSES>,
    classes: Classes<KeyOf<P>>,
    /// The classes whose bins the deep form keeps: exact and the whole order always, the others once they were
    /// asked for, and from then on.
    kept: [bool; CLASSES],
    next_seq: u64,
}

/// A message that a search has found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    index: u32,
    /// Its lane in the short form, else [`DEEP`].
    lane: u32,
}

/// Not in a lane.
const DEEP: u32 = u32::MAX;

/// Two lists of one class as one, oldest first.
struct Merge {
    class: usize,
    heads: [u32; 2],
}

impl Merge {
    fn next<I: Copy, T>(&mut self, slab: &Slab<I, T, CLASSES>) -> Option<u32> {
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

impl<T, P: Select> Default for Unexpected<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P: Select> Unexpected<T, P> {
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
            kept: [true, false, false, true],
            next_seq: 0,
        }
    }

    /// Messages in the queue.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no message is kept.
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
    /// [`remove_where`](Self::remove_where) compared with what it was asked for.
    #[inline]
    #[must_use]
    pub fn last_attempts(&self) -> usize {
        // Counted when somebody asks: that is dearer than the search.
        self.attempts + self.met.count_ones() as usize
    }

    /// Keeps a message as the youngest.
    #[inline]
    pub fn insert(&mut self, envelope: KeyOf<P>, value: T) -> Ticket {
        let index = self.slab.insert(envelope, value);
        self.len += 1;
        if self.deep || !self.lanes.push(envelope.word(), index) {
            self.insert_deep(index);
        }
        self.slab.ticket(index)
    }

    /// Looks for the oldest message that this pattern takes. What is found is good until the queue changes.
    #[inline(always)]
    pub fn find(&mut self, pattern: &P) -> Option<Found> {
        let (value, care) = (pattern.value(), pattern.care());
        if self.deep {
            let index = self.find_deep(value, care)?;
            return Some(Found { index, lane: DEEP });
        }
        let lane = self.find_lane(value, care)?;
        Some(Found { index: self.lanes.slot(lane), lane })
    }

    /// A message that was found, where it lies.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, found: Found) -> (&KeyOf<P>, &T) {
        self.slab.entry(found.index)
    }

    /// Drops a message that was found, where it lies.
    #[inline(always)]
    pub fn discard(&mut self, found: Found) {
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
        if found.lane == DEEP {
            return Some(self.remove_deep(found.index));
        }
        self.lanes.vacate(found.lane);
        self.len -= 1;
        Some(self.slab.remove(found.index))
    }

    /// Looks at the oldest message that this pattern takes.
    #[inline]
    pub fn peek(&mut self, pattern: &P) -> Option<(&KeyOf<P>, &T)> {
        let found = self.find(pattern)?;
        Some(self.at(found))
    }

    /// Takes out the message that the ticket was given for, if it is still there.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.slab.resolve(ticket)?;
        Some(self.remove_at(index)?.1)
    }

    /// Takes out the oldest message from `source` for which `wanted` holds. A walk, for what is rare.
    pub fn remove_where(
        &mut self,
        source: <KeyOf<P> as Key>::Source,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Option<(KeyOf<P>, T)> {
        let mut met = 0;
        let found = self.sent_by(source).find(|&index| {
            met += 1;
            wanted(self.slab.entry(index).1)
        });
        (self.attempts, self.met) = (met, 0);
        self.remove_at(found?)
    }

    /// The payload of a message that is still there.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.slab.get_mut(ticket)
    }

    /// Every message, oldest first.
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
    fn sent_by(&self, source: <KeyOf<P> as Key>::Source) -> impl Iterator<Item = u32> {
        let user = KeyOf::<P>::source_word(source);
        // Two bins, for tags from zero on and below (rule M4), which are one where a tag has no sign.
        let own = user | KeyOf::<P>::CARES[ANY];
        let (class, heads) = if !self.kept[BY_SOURCE] {
            (ANY, self.classes.any().map(|list| list.head))
        } else if user == own {
            (BY_SOURCE, [self.classes.list(BY_SOURCE, user).head, NIL])
        } else {
            (BY_SOURCE, [user, own].map(|word| self.classes.list(BY_SOURCE, word).head))
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
        let Some(class) = Classes::<KeyOf<P>>::of(care) else {
            return self.search_odd(value, care);
        };
        if !self.kept[class] {
            self.keep(class);
        }
        let head = self.classes.list(class, value).head;
        let found = (head != NIL).then_some(head);
        (self.attempts, self.met) = (usize::from(found.is_some()), 0);
        found
    }

    /// Files the whole queue by one more class: once in the queue's life.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, class: usize) {
        self.kept[class] = true;
        let heads = self.classes.any().map(|list| list.head);
        let mut order = Merge { class: ANY, heads };
        while let Some(index) = order.next(&self.slab) {
            let word = self.slab[index].item.word();
            self.classes.push(&mut self.slab, class, class, word, index);
        }
    }

    /// A pattern of no class: walks the smallest bin that must hold what it takes.
    #[cold]
    fn search_odd(&mut self, value: WordOf<P>, care: WordOf<P>) -> Option<u32> {
        let covers = |class: usize| KeyOf::<P>::CARES[class] & care == KeyOf::<P>::CARES[class];
        let (class, heads) = match (0..ANY).find(|&class| self.kept[class] && covers(class)) {
            Some(class) => (class, [self.classes.list(class, value).head, NIL]),
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
        loop {
            let oldest = self.ordered().next();
            let Some(index) = oldest else { return };
            self.unlink(index);
            let fits = self.lanes.push(self.slab[index].item.word(), index);
            debug_assert!(fits, "TURN_BACK entries fit into the lanes");
        }
    }

    fn link(&mut self, index: u32) {
        let word = self.slab[index].item.word();
        self.slab[index].seq = self.next_seq;
        self.next_seq += 1;
        for class in 0..CLASSES {
            if self.kept[class] {
                self.classes.push(&mut self.slab, class, class, word, index);
            }
        }
    }

    fn unlink(&mut self, index: u32) {
        let word = self.slab[index].item.word();
        for class in 0..CLASSES {
            if self.kept[class] {
                self.classes.detach(&mut self.slab, class, class, word, index);
            }
        }
    }

    /// Takes out an entry wherever it is.
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
        self.unlink(index);
        self.len -= 1;
        self.slab.discard(index);
        self.settle();
    }

    #[inline(never)]
    fn remove_deep(&mut self, index: u32) -> (KeyOf<P>, T) {
        self.unlink(index);
        self.len -= 1;
        let taken = self.slab.remove(index);
        self.settle();
        taken
    }

    /// Turns short once few are left.
    #[inline(always)]
    fn settle(&mut self) {
        if self.len <= TURN_BACK {
            self.turn_short();
        }
    }
}
