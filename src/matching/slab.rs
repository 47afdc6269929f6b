//! The entries of a queue: slots with 32-bit indices, a free list, and a generation in each.
//!
//! The slot that was freed last is taken first, so a queue that goes up and down by one stays in one cache line. Both
//! forms of a queue refer to entries by index; users refer to them by [`Ticket`], which becomes void with its entry.

use core::ops::{Index, IndexMut};

/// No entry.
pub(super) const NIL: u32 = u32::MAX;

/// The name of one entry of a queue; void once that entry was taken or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    index: u32,
    generation: u32,
}

/// An entry's place in one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryLink {
    pub prev: u32,
    pub next: u32,
}

impl EntryLink {
    /// In no list.
    pub const NONE: Self = Self { prev: NIL, next: NIL };
    /// Of a free slot that the bin of its last entry still names (matching rule 5).
    const TOMBSTONE: Self = Self { prev: NIL - 1, next: NIL };

    /// Returns whether the entry is the only one of its list.
    #[inline(always)]
    pub const fn is_alone(self) -> bool {
        self.prev == NIL && self.next == NIL
    }

    #[inline(always)]
    pub const fn is_tombstone(self) -> bool {
        self.prev == Self::TOMBSTONE.prev
    }
}

/// The two ends of an intrusive list.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryList {
    pub head: u32,
    pub tail: u32,
}

impl EntryList {
    pub const EMPTY: Self = Self { head: NIL, tail: NIL };

    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Adds the entry as the youngest.
    #[inline]
    pub fn push<I, T, const L: usize>(&mut self, slab: &mut EntrySlab<I, T, L>, link: usize, index: u32) {
        let prev = self.tail;
        slab[index].links[link] = EntryLink { prev, next: NIL };
        match prev {
            NIL => self.head = index,
            _ => slab[prev].links[link].next = index,
        }
        self.tail = index;
    }

    /// Sets the ends that the list has after [`EntrySlab::bridge`] removed an entry.
    #[inline]
    pub fn close(&mut self, gap: EntryLink) {
        if gap.prev == NIL {
            self.head = gap.next;
        }
        if gap.next == NIL {
            self.tail = gap.prev;
        }
    }
}

/// The `seq` of a free slot that may have tombstones; no entry's.
pub(super) const MAY_HAVE_TOMBSTONES: u64 = u64::MAX;

/// An entry. Its first cache line has all that operations on its neighbours touch. A payload of a few words fits in the
/// same line, a larger one begins there.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct EntrySlot<I, T, const L: usize> {
    pub item: I,
    /// Age across the lists of the deep form; lower is older.
    /// [`MAY_HAVE_TOMBSTONES`] in a free slot that may have tombstones.
    pub seq: u64,
    /// Meaningless in the short form.
    pub links: [EntryLink; L],
    generation: u32,
    next_free: u32,
    /// `None` where the slot is free.
    value: Option<T>,
}

/// Entries with `L` links each.
#[derive(Debug)]
pub(super) struct EntrySlab<I, T, const L: usize> {
    nodes: Vec<EntrySlot<I, T, L>>,
    free: u32,
}

impl<I, T, const L: usize> EntrySlot<I, T, L> {
    /// Puts the slot at the head of the free ones.
    #[inline(always)]
    fn free(&mut self, free: &mut u32, index: u32) {
        self.generation = self.generation.wrapping_add(1);
        self.next_free = core::mem::replace(free, index);
    }
}

/// Why an index in a queue has a payload.
const LIVES: &str = "an entry in a queue has its payload";

impl<I: Copy, T, const L: usize> EntrySlab<I, T, L> {
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    /// Adds an entry and returns its index.
    #[inline]
    pub fn insert(&mut self, item: I, value: T) -> u32 {
        let index = self.free;
        let Some(node) = self.nodes.get_mut(index as usize) else {
            return self.grow(item, value);
        };
        self.free = node.next_free;
        node.item = item;
        node.value = Some(value);
        index
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, item: I, value: T) -> u32 {
        if self.nodes.is_empty() {
            self.nodes.reserve(crate::limits::SHORT_QUEUE);
        }
        let index = u32::try_from(self.nodes.len()).ok().filter(|&index| index < EntryLink::TOMBSTONE.prev);
        let index = index.expect("fewer than 2³² entries of 64 bytes fit in memory");
        let links = [EntryLink::NONE; L];
        self.nodes.push(EntrySlot { item, seq: 0, links, generation: 0, next_free: NIL, value: Some(value) });
        index
    }

    /// Frees the slot; from here on, every ticket for it is void.
    #[inline]
    pub fn remove(&mut self, index: u32) -> (I, T) {
        let node = &mut self.nodes[index as usize];
        let value = node.value.take().expect(LIVES);
        node.free(&mut self.free, index);
        (node.item, value)
    }

    /// The same as [`remove`](Self::remove), but drops the payload in its place.
    #[inline(always)]
    pub fn discard(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        debug_assert!(node.value.is_some(), "{LIVES}");
        node.value = None;
        node.free(&mut self.free, index);
    }

    /// Links the entry's neighbours in one list with each other and returns them;
    /// the caller then closes the list's ends.
    #[inline]
    pub fn bridge(&mut self, link: usize, index: u32) -> EntryLink {
        let gap = self[index].links[link];
        if gap.prev != NIL {
            self[gap.prev].links[link].next = gap.next;
        }
        if gap.next != NIL {
            self[gap.next].links[link].prev = gap.prev;
        }
        gap
    }

    /// Leaves a tombstone in the list whose only entry this is, before its slot is freed.
    #[inline(always)]
    pub fn leave_tombstone(&mut self, link: usize, index: u32) {
        let node = &mut self[index];
        node.links[link] = EntryLink::TOMBSTONE;
        node.seq = MAY_HAVE_TOMBSTONES;
    }

    /// Removes a tombstone.
    #[inline(always)]
    pub fn clear_tombstone(&mut self, link: usize, index: u32) {
        self[index].links[link] = EntryLink::NONE;
    }

    /// Returns the slot that the next entry takes, if it may have tombstones.
    #[inline(always)]
    pub fn tombstone_slot(&self) -> Option<u32> {
        let node = self.nodes.get(self.free as usize)?;
        (node.seq == MAY_HAVE_TOMBSTONES).then_some(self.free)
    }

    /// How many tombstones there are.
    #[cfg(test)]
    pub fn tombstones(&self) -> usize {
        self.nodes.iter().flat_map(|node| node.links).filter(|link| link.is_tombstone()).count()
    }

    #[inline]
    pub fn ticket(&self, index: u32) -> Ticket {
        Ticket { index, generation: self[index].generation }
    }

    /// The entry that the ticket was given for, if it is still there.
    #[inline]
    pub fn resolve(&self, ticket: Ticket) -> Option<u32> {
        let node = self.nodes.get(ticket.index as usize)?;
        let live = node.generation == ticket.generation && node.value.is_some();
        live.then_some(ticket.index)
    }

    /// The item and payload of a live entry.
    #[inline(always)]
    pub fn entry(&self, index: u32) -> (&I, &T) {
        let node = &self[index];
        (&node.item, node.value.as_ref().expect(LIVES))
    }

    /// The payload behind a ticket.
    #[inline]
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let index = self.resolve(ticket)?;
        self[index].value.as_mut()
    }
}

impl<I, T, const L: usize> Index<u32> for EntrySlab<I, T, L> {
    type Output = EntrySlot<I, T, L>;
    #[inline(always)]
    fn index(&self, index: u32) -> &Self::Output {
        &self.nodes[index as usize]
    }
}

impl<I, T, const L: usize> IndexMut<u32> for EntrySlab<I, T, L> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut Self::Output {
        &mut self.nodes[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_is_the_next_one_used_and_its_old_ticket_is_void() {
        let mut slab = EntrySlab::<u8, &str, 1>::new();
        let first = slab.insert(1, "first");
        let ticket = slab.ticket(first);
        assert_eq!(slab.remove(first), (1, "first"));
        assert_eq!(slab.resolve(ticket), None);
        let second = slab.insert(2, "second");
        assert_eq!(second, first);
        assert_eq!(slab.resolve(ticket), None);
        assert_eq!(slab.resolve(slab.ticket(second)), Some(second));
    }

    #[test]
    fn a_list_keeps_order_when_its_head_middle_and_tail_are_taken_out() {
        for gone in 0..4u32 {
            let mut slab = EntrySlab::<u32, u32, 1>::new();
            let mut list = EntryList::EMPTY;
            for i in 0..4 {
                let index = slab.insert(i, i);
                list.push(&mut slab, 0, index);
            }
            list.close(slab.bridge(0, gone));
            let mut seen = Vec::new();
            let mut at = list.head;
            while at != NIL {
                seen.push(at);
                at = slab[at].links[0].next;
            }
            assert_eq!(seen, (0..4).filter(|&i| i != gone).collect::<Vec<_>>());
            assert_eq!(list.tail, *seen.last().expect("three are left"));
        }
    }
}
