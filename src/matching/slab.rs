//! Where entries live: slots with a free list, 32-bit indices, and a generation in each.
//!
//! Freed slots are taken again last in, first out, so a queue that goes up and down by one stays in one cache
//! line. Both forms of a queue refer to entries by index; users by [`Ticket`], which dies with its entry.

use core::ops::{Index, IndexMut};

/// No entry.
pub(super) const NIL: u32 = u32::MAX;

/// A claim on one entry of a queue; worth nothing once that entry was taken or removed.
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
    /// Of a free slot: the bin of its last entry still names it (rule M5).
    const GHOST: Self = Self { prev: NIL - 1, next: NIL };

    /// Whether the entry is the only one of its list.
    #[inline(always)]
    pub const fn is_alone(self) -> bool {
        self.prev == NIL && self.next == NIL
    }

    #[inline(always)]
    pub const fn is_ghost(self) -> bool {
        self.prev == Self::GHOST.prev
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

    /// Lets the list's ends follow an entry that [`EntrySlab::bridge`] took out.
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

/// No entry's age.
pub(super) const HAUNTED: u64 = u64::MAX;

/// An entry. What its neighbours in a list touch too is in its first cache line; a payload of a few words shares that, a
/// larger one goes on in the next.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Node<I, T, const L: usize> {
    pub item: I,
    /// Age across the lists of the deep form; lower is older. [`HAUNTED`] in a free slot that may have ghosts.
    pub seq: u64,
    /// They mean nothing in the short form.
    pub links: [EntryLink; L],
    generation: u32,
    next_free: u32,
    /// `None` where the slot is free.
    value: Option<T>,
}

/// Entries with `L` links each.
#[derive(Debug)]
pub(super) struct EntrySlab<I, T, const L: usize> {
    nodes: Vec<Node<I, T, L>>,
    free: u32,
}

impl<I, T, const L: usize> Node<I, T, L> {
    /// Puts the slot at the head of the free ones.
    #[inline(always)]
    fn free(&mut self, free: &mut u32, index: u32) {
        self.generation = self.generation.wrapping_add(1);
        self.next_free = core::mem::replace(free, index);
    }
}

/// What an index in a queue promises.
const LIVES: &str = "an entry in a queue has its payload";

impl<I: Copy, T, const L: usize> EntrySlab<I, T, L> {
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    /// Keeps a new entry and gives its index.
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
        let index = u32::try_from(self.nodes.len()).ok().filter(|&index| index < EntryLink::GHOST.prev);
        let index = index.expect("fewer than 2³² entries of 64 bytes fit in memory");
        let links = [EntryLink::NONE; L];
        self.nodes.push(Node { item, seq: 0, links, generation: 0, next_free: NIL, value: Some(value) });
        index
    }

    /// Frees the slot; every ticket for it is void from here on.
    #[inline]
    pub fn remove(&mut self, index: u32) -> (I, T) {
        let node = &mut self.nodes[index as usize];
        let value = node.value.take().expect(LIVES);
        node.free(&mut self.free, index);
        (node.item, value)
    }

    /// As [`remove`](Self::remove), where the payload is dropped in its place.
    #[inline(always)]
    pub fn discard(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        debug_assert!(node.value.is_some(), "{LIVES}");
        node.value = None;
        node.free(&mut self.free, index);
    }

    /// Takes the entry out between its neighbours in one list and gives what it was linked to; the list's ends
    /// are the caller's to close.
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

    /// Leaves the entry's ghost in a list whose only one it is; its slot is about to be freed.
    #[inline(always)]
    pub fn haunt(&mut self, link: usize, index: u32) {
        let node = &mut self[index];
        node.links[link] = EntryLink::GHOST;
        node.seq = HAUNTED;
    }

    /// Ends a ghost.
    #[inline(always)]
    pub fn lay(&mut self, link: usize, index: u32) {
        self[index].links[link] = EntryLink::NONE;
    }

    /// The slot that the next entry takes, if it may have ghosts.
    #[inline(always)]
    pub fn haunted(&self) -> Option<u32> {
        let node = self.nodes.get(self.free as usize)?;
        (node.seq == HAUNTED).then_some(self.free)
    }

    /// How many ghosts there are.
    #[cfg(test)]
    pub fn ghosts(&self) -> usize {
        self.nodes.iter().flat_map(|node| node.links).filter(|link| link.is_ghost()).count()
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
    type Output = Node<I, T, L>;
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
