//! Rows: the slots to walk when an event is raised.

use super::slots::Slot;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Slots in one link of a row.
const LINK: usize = if cfg!(perusal_loom) { 1 } else { 6 };

/// A link of a row; 64 bytes. Links are added, filled and emptied under the control lock, and freed with the row.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Link {
    /// Which places hold a slot: a bit for each.
    live: AtomicU32,
    slots: [AtomicPtr<Slot>; LINK],
    next: AtomicPtr<Link>,
}

/// A place in which a dispatcher has found a slot.
pub(super) struct Place<'a> {
    place: &'a AtomicPtr<Slot>,
    slot: *mut Slot,
}

impl<'a> Place<'a> {
    /// The slot that was found. It may have left the row meanwhile.
    #[inline(always)]
    pub(super) fn slot(&self) -> &'a Slot {
        // SAFETY: `Row::insert` was given the slot by reference, and slots live as long as the registry (event rule 1), which
        // whoever walks its rows borrows or keeps.
        unsafe { &*self.slot }
    }

    /// Whether the slot is still in the row, for who has found it active (event rule 2).
    #[inline(always)]
    pub(super) fn holds(&self) -> bool {
        // Relaxed: the slot left the row before it was active for another one, and we have seen it active (edge 4).
        self.place.load(Ordering::Relaxed) == self.slot
    }
}

impl Link {
    const fn is_place(at: usize) -> bool {
        at < LINK
    }

    fn new() -> Link {
        Link {
            live: AtomicU32::new(0),
            slots: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// The slots in it. One that comes or goes meanwhile is among them or not.
    #[inline(always)]
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        // Acquire: pairs with Release in `fill`, publishes the slot's address.
        let mut live = self.live.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            while live != 0 {
                let at = live.trailing_zeros() as usize;
                live &= live - 1;
                let place = self.slots.get(at)?;
                // Acquire: pairs with Release in `fill`, publishes the slot.
                let slot = place.load(Ordering::Acquire);
                if !slot.is_null() {
                    return Some(Place { place, slot });
                }
            }
            None
        })
    }

    /// The next link, if there is one.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<&Link> {
        // Acquire: pairs with Release in `Row::insert`; publishes the link.
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
        // Release: pairs with Acquire in `places`.
        self.slots[at].store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
        self.live.store(self.live.load(Ordering::Relaxed) | 1 << at, Ordering::Release);
    }

    fn empty(&self, at: usize) {
        // Relaxed: what a dispatcher still finds here it looks at twice (event rule 2).
        self.live.store(self.live.load(Ordering::Relaxed) & !(1 << at), Ordering::Relaxed);
        self.slots[at].store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// The slots of one event on one communicator, or of all taps of one event, in no order. The first link lies in the row itself.
#[derive(Debug)]
pub(super) struct Row(Link);

impl Row {
    pub(super) fn new() -> Row {
        Row(Link::new())
    }

    #[inline(always)]
    pub(super) fn first(&self) -> &Link {
        &self.0
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        core::iter::successors(Some(&self.0), |link| link.next())
    }

    /// Adds `slot`; the control lock is held.
    pub(super) fn insert(&self, slot: &Slot) {
        if let Some((link, at)) = self.links().find_map(|link| link.free().map(|at| (link, at))) {
            return link.fill(at, slot);
        }
        let link = Box::new(Link::new());
        link.fill(0, slot);
        let last = self.links().last().unwrap_or(&self.0);
        // Release: pairs with Acquire in `Link::next`; publishes the link.
        last.next.store(Box::into_raw(link), Ordering::Release);
    }

    /// Removes `slot`; the control lock is held.
    pub(super) fn remove(&self, slot: &Slot) {
        if let Some((link, at)) = self.links().find_map(|link| link.find(slot).map(|at| (link, at))) {
            link.empty(at);
        }
    }
}

impl Drop for Row {
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

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::super::slots::Slots;
    use super::*;

    fn held(row: &Row) -> Vec<usize> {
        let mut found: Vec<usize> = row
            .links()
            .flat_map(Link::places)
            .map(|place| {
                assert!(place.holds());
                place.slot().address()
            })
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_row_holds_what_was_put_in_and_not_taken_out_and_uses_places_again() {
        let (row, memory) = (Row::new(), Slots::new());
        let slots: Vec<&Slot> = (0..3 * LINK).map(|index| memory.grow(index).unwrap()).collect();
        slots.iter().for_each(|slot| row.insert(slot));
        slots.iter().step_by(2).for_each(|slot| row.remove(slot));
        let left: Vec<usize> = slots.iter().skip(1).step_by(2).map(|slot| slot.address()).collect();
        assert_eq!(held(&row), left);
        slots.iter().step_by(2).for_each(|slot| row.insert(slot));
        assert_eq!(held(&row).len(), slots.len());
        assert_eq!(row.links().count(), 3);
        assert_eq!(size_of::<Link>(), 64);
    }

    #[test]
    fn who_has_found_a_slot_sees_that_it_has_left() {
        let (row, memory) = (Row::new(), Slots::new());
        let slot = memory.grow(0).unwrap();
        row.insert(slot);
        let place = row.first().places().next().unwrap();
        row.remove(slot);
        assert!(!place.holds());
        assert!(held(&row).is_empty());
    }
}
