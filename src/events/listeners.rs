//! Listener lists: the slots to walk when an event is emitted, a list for each event type.

use super::Event;
use super::gate::{FIRST, NEXT, WORDS};
use super::slots::HandleSlot;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Entries in one node of a list.
const NODE: usize = if cfg!(perusal_loom) { 1 } else { 5 };

/// A node of a list; 64 bytes. Nodes are added, filled and emptied under the control lock, and freed with the list.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    /// Which entries hold a slot: a bit for each; and whether a node is behind this one: the bit that follows theirs.
    live: AtomicU32,
    /// Of a list's first node: the slot that is the only one in the list; null if there is none, or more.
    only: AtomicPtr<HandleSlot>,
    slots: [AtomicPtr<HandleSlot>; NODE],
    next: AtomicPtr<Node>,
}

/// An entry in which a dispatch has found a slot.
pub(super) struct ListEntry<'a> {
    entry: &'a AtomicPtr<HandleSlot>,
    slot: *mut HandleSlot,
}

impl<'a> ListEntry<'a> {
    /// The address of the slot that was found: what a hazard pointer holds.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        self.slot.expose_provenance()
    }

    /// The slot, if it is still in the list, and so active there (event rule 2). The caller has published its hazard
    /// pointer and fenced (event rule 6).
    #[inline(always)]
    pub(super) fn holds(&self) -> Option<&'a HandleSlot> {
        // Acquire: edge 4, pairs with Release in `fill` and `note_only`; publishes what the slot holds.
        if self.entry.load(Ordering::Acquire) != self.slot {
            return None;
        }
        // SAFETY: `ListenerList::insert` was given the slot by reference, and slots live as long as the registry (event
        // rule 1), which a walk over its lists borrows or keeps. Not null: a walk gives no empty entry.
        Some(unsafe { &*self.slot })
    }
}

/// A walk through a list.
pub(super) struct ListWalk<'a> {
    node: &'a Node,
    /// What is left of the node's entries, and whether a node follows.
    live: u32,
}

impl<'a> ListWalk<'a> {
    /// Whether [`Self::next`] will find none any more.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.live == 0
    }

    /// The next entry with a slot. One that comes or goes meanwhile is found or not.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<ListEntry<'a>> {
        while self.live != 0 {
            let at = self.live.trailing_zeros() as usize;
            self.live &= self.live - 1;
            let Some(entry) = self.node.slots.get(at) else {
                *self = self.node.next()?.walk();
                continue;
            };
            // Relaxed: read again once the hazard pointer is published.
            let slot = entry.load(Ordering::Relaxed);
            if !slot.is_null() {
                return Some(ListEntry { entry, slot });
            }
        }
        None
    }
}

impl Node {
    /// There is a next node.
    const MORE: u32 = 1 << NODE;

    const fn is_entry(at: usize) -> bool {
        at < NODE
    }

    fn new() -> Node {
        Node {
            live: AtomicU32::new(0),
            only: AtomicPtr::new(core::ptr::null_mut()),
            slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// A walk through its entries and the nodes behind.
    #[inline(always)]
    fn walk(&self) -> ListWalk<'_> {
        // Relaxed: says where to look; the entry and `next` publish what is found there.
        ListWalk { node: self, live: self.live.load(Ordering::Relaxed) }
    }

    /// The next node, if there is one.
    fn next(&self) -> Option<&Node> {
        // Acquire: pairs with Release in `ListenerList::put`; publishes the node.
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: a node that is there was leaked by `insert`, and is freed only in the list's `drop`, which borrows it
        // mutably (event rule 1).
        unsafe { next.as_ref() }
    }

    /// The first entry that is free; the control lock is held.
    fn free(&self) -> Option<usize> {
        // Relaxed: only holders of the control lock write.
        let at = (!self.live.load(Ordering::Relaxed)).trailing_zeros() as usize;
        Node::is_entry(at).then_some(at)
    }

    /// The entry that holds `slot`; the control lock is held.
    fn find(&self, slot: &HandleSlot) -> Option<usize> {
        // Relaxed: only holders of the control lock write. Empty entries hold null.
        (0..NODE).find(|at| core::ptr::eq(self.slots[*at].load(Ordering::Relaxed), slot))
    }

    fn fill(&self, at: usize, slot: &HandleSlot) {
        // Release: edge 4, pairs with Acquire in `ListEntry::holds`.
        self.slots[at].store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
        // Relaxed: as in `walk`. A thread that sees the bit first finds the entry empty, and goes on.
        self.live.store(self.live.load(Ordering::Relaxed) | 1 << at, Ordering::Relaxed);
    }

    fn empty(&self, at: usize) {
        // Relaxed, here and below: they take out and publish nothing.
        // A release fences and then reads the hazard pointers (event rule 6).
        self.live.store(self.live.load(Ordering::Relaxed) & !(1 << at), Ordering::Relaxed);
        self.slots[at].store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// The slots of the active handles of one event type, on one communicator or of the engine, in no order. The first node
/// lies in the list itself.
#[derive(Debug)]
pub(super) struct ListenerList(Node);

impl ListenerList {
    pub(super) fn new() -> ListenerList {
        ListenerList(Node::new())
    }

    /// Whether it holds no slot; the control lock is held.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes().flat_map(|node| &node.slots).all(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// The entry with the only slot, if there is just one. If it does not hold the slot any more at the second look,
    /// others may have come while the slot stayed: then the caller walks the list.
    #[inline(always)]
    pub(super) fn only(&self) -> Option<ListEntry<'_>> {
        // Relaxed: read again once the hazard pointer is published.
        let slot = self.0.only.load(Ordering::Relaxed);
        (!slot.is_null()).then_some(ListEntry { entry: &self.0.only, slot })
    }

    /// A walk through its entries.
    #[inline(always)]
    pub(super) fn walk(&self) -> ListWalk<'_> {
        self.0.walk()
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        core::iter::successors(Some(&self.0), |node| node.next())
    }

    /// Notes which slot is the only one, if one is.
    fn note_only(&self) {
        let mut slots = self.nodes().flat_map(|node| &node.slots).map(|slot| slot.load(Ordering::Relaxed));
        let first = slots.find(|slot| !slot.is_null()).unwrap_or(core::ptr::null_mut());
        let more = slots.any(|slot| !slot.is_null());
        // Release: edge 4, pairs with Acquire in `ListEntry::holds`.
        self.0.only.store(if more { core::ptr::null_mut() } else { first }, Ordering::Release);
    }

    /// Adds `slot`; the control lock is held.
    pub(super) fn insert(&self, slot: &HandleSlot) {
        self.put(slot);
        self.note_only();
    }

    fn put(&self, slot: &HandleSlot) {
        if let Some((node, at)) = self.nodes().find_map(|node| node.free().map(|at| (node, at))) {
            return node.fill(at, slot);
        }
        let node = Box::new(Node::new());
        node.fill(0, slot);
        let last = self.nodes().last().unwrap_or(&self.0);
        // Release: pairs with Acquire in `Node::next`; publishes the node.
        last.next.store(Box::into_raw(node), Ordering::Release);
        // Relaxed: as in `fill`. A thread that sees the bit first finds no node, and is at the end.
        last.live.store(last.live.load(Ordering::Relaxed) | Node::MORE, Ordering::Relaxed);
    }

    /// Removes `slot`; the control lock is held.
    pub(super) fn remove(&self, slot: &HandleSlot) {
        if let Some((node, at)) = self.nodes().find_map(|node| node.find(slot).map(|at| (node, at))) {
            node.empty(at);
        }
        self.note_only();
    }
}

impl Drop for ListenerList {
    fn drop(&mut self) {
        // Relaxed: self is borrowed mutably, so whatever others did happened before.
        let mut node = self.0.next.load(Ordering::Relaxed);
        while !node.is_null() {
            // SAFETY: `insert` leaked this box, and self is borrowed mutably, so nobody else looks.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.next.load(Ordering::Relaxed);
        }
    }
}

/// The listener lists of one communicator, or of the engine itself: those of a gate's first word at hand, the others
/// made when they are needed.
#[derive(Debug)]
pub(super) struct ListenerTable {
    first: [ListenerList; FIRST],
    /// One for each further word of a gate; null while nobody has listened to any of its event types.
    more: [AtomicPtr<[ListenerList; NEXT]>; WORDS - 1],
}

impl ListenerTable {
    pub(super) fn new() -> ListenerTable {
        ListenerTable {
            first: core::array::from_fn(|_| ListenerList::new()),
            more: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
        }
    }

    /// The list of `event`; `None` if there never was one.
    #[inline(always)]
    pub(super) fn get(&self, event: Event) -> Option<&ListenerList> {
        match event.index().checked_sub(FIRST) {
            None => Some(&self.first[event.index()]),
            Some(after) => {
                // Acquire: pairs with Release in `make`; publishes the lists.
                let lists = self.more[after / NEXT].load(Ordering::Acquire);
                // SAFETY: null, or leaked by `make` and freed only in `drop`,
                // which borrows self mutably (event rule 1).
                unsafe { lists.as_ref() }.map(|lists| &lists[after % NEXT])
            }
        }
    }

    /// The list of `event`, made if need be; the control lock is held.
    pub(super) fn make(&self, event: Event) -> &ListenerList {
        if let Some(after) = event.index().checked_sub(FIRST)
            && self.get(event).is_none()
        {
            let lists: Box<[ListenerList; NEXT]> = Box::new(core::array::from_fn(|_| ListenerList::new()));
            // Release: pairs with Acquire in `get`; publishes the lists.
            self.more[after / NEXT].store(Box::into_raw(lists), Ordering::Release);
        }
        self.get(event).expect("it was made")
    }
}

impl Drop for ListenerTable {
    fn drop(&mut self) {
        for lists in &self.more {
            // Relaxed: self is borrowed mutably, so whatever others did happened before.
            let lists = lists.load(Ordering::Relaxed);
            if !lists.is_null() {
                // SAFETY: `make` leaked this box, and self is borrowed mutably, so nobody else looks.
                drop(unsafe { Box::from_raw(lists) });
            }
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::super::slots::SlotTable;
    use super::*;

    fn held(list: &ListenerList) -> Vec<usize> {
        let mut entries = list.walk();
        let mut found: Vec<usize> =
            core::iter::from_fn(|| entries.next()).map(|entry| entry.holds().unwrap().address()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_list_holds_what_was_put_in_and_not_taken_out_and_uses_entries_again() {
        let (list, memory) = (ListenerList::new(), SlotTable::new());
        let slots: Vec<&HandleSlot> = (0..3 * NODE).map(|index| memory.grow(index).unwrap()).collect();
        slots.iter().for_each(|slot| list.insert(slot));
        slots.iter().step_by(2).for_each(|slot| list.remove(slot));
        let left: Vec<usize> = slots.iter().skip(1).step_by(2).map(|slot| slot.address()).collect();
        assert_eq!(held(&list), left);
        slots.iter().step_by(2).for_each(|slot| list.insert(slot));
        assert_eq!(held(&list).len(), slots.len());
        assert_eq!(list.nodes().count(), 3);
        assert!(list.only().is_none());
        slots.iter().skip(1).for_each(|slot| list.remove(slot));
        assert_eq!(list.only().and_then(|entry| entry.holds()).unwrap().address(), slots[0].address());
        list.insert(slots[2]);
        assert!(list.only().is_none());
        assert_eq!(size_of::<Node>(), 64);
    }

    #[test]
    fn lists_beyond_the_first_word_are_made_when_needed_and_stay() {
        let table = ListenerTable::new();
        let (first, last) = (Event::new(1), Event::new(crate::limits::EVENT_TYPES as u16));
        assert!(table.get(first).is_some() && table.get(last).is_none());
        let made = core::ptr::from_ref(table.make(last));
        assert!(core::ptr::eq(made, table.make(last)) && table.get(last).is_some_and(ListenerList::is_empty));
        assert!(table.get(Event::new(300)).is_none());
    }

    #[test]
    fn a_walk_that_found_a_slot_sees_that_it_has_left() {
        let (list, memory) = (ListenerList::new(), SlotTable::new());
        let slot = memory.grow(0).unwrap();
        list.insert(slot);
        let entry = list.walk().next().unwrap();
        list.remove(slot);
        assert!(entry.holds().is_none());
        assert!(held(&list).is_empty());
    }
}
