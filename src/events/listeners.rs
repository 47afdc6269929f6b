//! Listener lists: the slots to walk when an event is emitted, a list for each event type.

use super::Event;
use super::gate::{FIRST, NEXT, WORDS};
use super::slots::Slot;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Slots in one link of a row.
const LINK: usize = if cfg!(perusal_loom) { 1 } else { 5 };

/// A link of a row; 64 bytes. Links are added, filled and emptied under the control lock, and freed with the row.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Link {
    /// Which places hold a slot: a bit for each; and whether a link is behind this one: the bit that follows theirs.
    live: AtomicU32,
    /// Of a row's first link: the slot that is the only one in the row; null if there is none, or more.
    only: AtomicPtr<Slot>,
    slots: [AtomicPtr<Slot>; LINK],
    next: AtomicPtr<Link>,
}

/// A place in which a dispatcher has found a slot.
pub(super) struct Place<'a> {
    place: &'a AtomicPtr<Slot>,
    slot: *mut Slot,
}

impl<'a> Place<'a> {
    /// What pins name the slot by that was found.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        self.slot.expose_provenance()
    }

    /// The slot, if it is still in the row, and so active there (event rule 2), for who has pinned it and fenced (event rule 6).
    #[inline(always)]
    pub(super) fn holds(&self) -> Option<&'a Slot> {
        // Acquire: edge 4, pairs with Release in `fill`, publishes what the slot holds.
        if self.place.load(Ordering::Acquire) != self.slot {
            return None;
        }
        // SAFETY: `ListenerList::insert` was given the slot by reference, and slots live as long as the registry (event rule 1), which
        // whoever walks its rows borrows or keeps. Not null: `places` gives no empty place.
        Some(unsafe { &*self.slot })
    }
}

/// The way through a row.
pub(super) struct Places<'a> {
    link: &'a Link,
    /// Of the link's places and what is behind them, what is left.
    live: u32,
}

impl<'a> Places<'a> {
    /// Whether [`Self::next`] will find none any more.
    #[inline(always)]
    pub(super) fn are_over(&self) -> bool {
        self.live == 0
    }

    /// The next slot. One that comes or goes meanwhile is found or not.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Place<'a>> {
        while self.live != 0 {
            let at = self.live.trailing_zeros() as usize;
            self.live &= self.live - 1;
            let Some(place) = self.link.slots.get(at) else {
                *self = self.link.next()?.places();
                continue;
            };
            // Relaxed: looked at again when it is pinned.
            let slot = place.load(Ordering::Relaxed);
            if !slot.is_null() {
                return Some(Place { place, slot });
            }
        }
        None
    }
}

impl Link {
    /// There is a next link.
    const MORE: u32 = 1 << LINK;

    const fn is_place(at: usize) -> bool {
        at < LINK
    }

    fn new() -> Link {
        Link {
            live: AtomicU32::new(0),
            only: AtomicPtr::new(core::ptr::null_mut()),
            slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// The way through its places, and on.
    #[inline(always)]
    fn places(&self) -> Places<'_> {
        // Acquire: pairs with Release in `fill` and `ListenerList::insert`, publishes the slot's address, and the link behind.
        Places { link: self, live: self.live.load(Ordering::Acquire) }
    }

    /// The next link, if there is one.
    fn next(&self) -> Option<&Link> {
        // Acquire: pairs with Release in `ListenerList::insert`; publishes the link.
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: a link that is there was leaked by `insert` and is freed in the row's `drop` only, which borrows it mutably
        // (event rule 1).
        unsafe { next.as_ref() }
    }

    /// The first place that is free; the control lock is held.
    fn free(&self) -> Option<usize> {
        // Relaxed: only holders of the control lock write.
        let at = (!self.live.load(Ordering::Relaxed)).trailing_zeros() as usize;
        Link::is_place(at).then_some(at)
    }

    /// The place that holds `slot`; the control lock is held.
    fn find(&self, slot: &Slot) -> Option<usize> {
        // Relaxed: as in `free`. Empty places hold null.
        (0..LINK).find(|at| core::ptr::eq(self.slots[*at].load(Ordering::Relaxed), slot))
    }

    fn fill(&self, at: usize, slot: &Slot) {
        // Release: edge 4, pairs with Acquire in `Place::holds`; and in `places`.
        self.slots[at].store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
        self.live.store(self.live.load(Ordering::Relaxed) | 1 << at, Ordering::Release);
    }

    fn empty(&self, at: usize) {
        // Relaxed, here and below: they shut out and publish nothing. Who needs those inside to be gone fences and looks at the
        // pins (event rule 6).
        self.live.store(self.live.load(Ordering::Relaxed) & !(1 << at), Ordering::Relaxed);
        self.slots[at].store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// The slots of what is active and listens to one event on one communicator, or to one that is bound to nothing; in no order. The first link lies in the row itself.
#[derive(Debug)]
pub(super) struct ListenerList(Link);

impl ListenerList {
    pub(super) fn new() -> ListenerList {
        ListenerList(Link::new())
    }

    /// Whether it holds no slot; the control lock is held.
    pub(super) fn is_empty(&self) -> bool {
        self.links().flat_map(|link| &link.slots).all(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// The slot that is the only one. If the place does not hold it any more when it is looked at again, others may have come, and
    /// the slot still be there: then all have to be gone through.
    #[inline(always)]
    pub(super) fn only(&self) -> Option<Place<'_>> {
        // Relaxed: looked at again when it is pinned.
        let slot = self.0.only.load(Ordering::Relaxed);
        (!slot.is_null()).then_some(Place { place: &self.0.only, slot })
    }

    /// The way through its slots.
    #[inline(always)]
    pub(super) fn places(&self) -> Places<'_> {
        self.0.places()
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        core::iter::successors(Some(&self.0), |link| link.next())
    }

    /// Says which slot is the only one, if one is.
    fn note_only(&self) {
        let mut slots = self.links().flat_map(|link| &link.slots).map(|slot| slot.load(Ordering::Relaxed));
        let first = slots.find(|slot| !slot.is_null()).unwrap_or(core::ptr::null_mut());
        let more = slots.any(|slot| !slot.is_null());
        // Release: edge 4, pairs with Acquire in `Place::holds`.
        self.0.only.store(if more { core::ptr::null_mut() } else { first }, Ordering::Release);
    }

    /// Adds `slot`; the control lock is held.
    pub(super) fn insert(&self, slot: &Slot) {
        self.put(slot);
        self.note_only();
    }

    fn put(&self, slot: &Slot) {
        if let Some((link, at)) = self.links().find_map(|link| link.free().map(|at| (link, at))) {
            return link.fill(at, slot);
        }
        let link = Box::new(Link::new());
        link.fill(0, slot);
        let last = self.links().last().unwrap_or(&self.0);
        // Release: pairs with Acquire in `Link::next`; publishes the link.
        last.next.store(Box::into_raw(link), Ordering::Release);
        // Release: pairs with Acquire in `Link::places`.
        last.live.store(last.live.load(Ordering::Relaxed) | Link::MORE, Ordering::Release);
    }

    /// Removes `slot`; the control lock is held.
    pub(super) fn remove(&self, slot: &Slot) {
        if let Some((link, at)) = self.links().find_map(|link| link.find(slot).map(|at| (link, at))) {
            link.empty(at);
        }
        self.note_only();
    }
}

impl Drop for ListenerList {
    fn drop(&mut self) {
        // Relaxed: self is borrowed mutably, so whatever others did happened before.
        let mut link = self.0.next.load(Ordering::Relaxed);
        while !link.is_null() {
            // SAFETY: `insert` leaked this box, and nobody else can be looking (self is borrowed mutably).
            let owned = unsafe { Box::from_raw(link) };
            link = owned.next.load(Ordering::Relaxed);
        }
    }
}

/// The listener lists of one communicator, or of the engine itself: those of a gate's first word at hand, the others made when they are needed.
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
                // SAFETY: null, or leaked by `make` and freed only in `drop`, which borrows self mutably (event rule 1).
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
                // SAFETY: `make` leaked this box, and self is borrowed mutably, so nobody else can be looking.
                drop(unsafe { Box::from_raw(lists) });
            }
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::super::slots::Slots;
    use super::*;

    fn held(row: &ListenerList) -> Vec<usize> {
        let mut places = row.places();
        let mut found: Vec<usize> =
            core::iter::from_fn(|| places.next()).map(|place| place.holds().unwrap().address()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_row_holds_what_was_put_in_and_not_taken_out_and_uses_places_again() {
        let (row, memory) = (ListenerList::new(), Slots::new());
        let slots: Vec<&Slot> = (0..3 * LINK).map(|index| memory.grow(index).unwrap()).collect();
        slots.iter().for_each(|slot| row.insert(slot));
        slots.iter().step_by(2).for_each(|slot| row.remove(slot));
        let left: Vec<usize> = slots.iter().skip(1).step_by(2).map(|slot| slot.address()).collect();
        assert_eq!(held(&row), left);
        slots.iter().step_by(2).for_each(|slot| row.insert(slot));
        assert_eq!(held(&row).len(), slots.len());
        assert_eq!(row.links().count(), 3);
        assert!(row.only().is_none());
        slots.iter().skip(1).for_each(|slot| row.remove(slot));
        assert_eq!(row.only().and_then(|place| place.holds()).unwrap().address(), slots[0].address());
        row.insert(slots[2]);
        assert!(row.only().is_none());
        assert_eq!(size_of::<Link>(), 64);
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
    fn who_has_found_a_slot_sees_that_it_has_left() {
        let (row, memory) = (ListenerList::new(), Slots::new());
        let slot = memory.grow(0).unwrap();
        row.insert(slot);
        let place = row.places().next().unwrap();
        row.remove(slot);
        assert!(place.holds().is_none());
        assert!(held(&row).is_empty());
    }
}
