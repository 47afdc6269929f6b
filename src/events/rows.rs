//! Rows: the handles to walk when an event is raised.

use super::Handle;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// Handles in one link of a row.
const LINK: usize = if cfg!(perusal_loom) { 1 } else { 7 };

/// A link of a row; 64 bytes. Links are added, filled and emptied under the control lock, and freed with the row.
#[derive(Debug)]
pub(super) struct Link {
    handles: [AtomicU64; LINK],
    next: AtomicPtr<Link>,
}

/// The handles of one event on one communicator, or of all taps of one event, in no order; 0 is an empty place.
#[derive(Debug)]
pub(super) struct Row(AtomicPtr<Link>);

impl Row {
    pub(super) fn new() -> Row {
        Row(AtomicPtr::new(core::ptr::null_mut()))
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        let mut at = &self.0;
        core::iter::from_fn(move || {
            // Acquire: pairs with Release in `insert`; publishes the link.
            let link = at.load(Ordering::Acquire);
            // SAFETY: a link that is there was leaked by `insert` and is freed in `drop` only, which borrows the row
            // mutably (event rule 1).
            let link = unsafe { link.as_ref() }?;
            at = &link.next;
            Some(link)
        })
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &AtomicU64> {
        self.links().flat_map(|link| &link.handles)
    }

    /// Adds `handle`; the control lock is held.
    pub(super) fn insert(&self, handle: Handle) {
        // Relaxed: only holders of the control lock write places.
        if let Some(free) = self.places().find(|place| place.load(Ordering::Relaxed) == 0) {
            // Relaxed: a handle is a number; what it leads to is published by its state word (edge 4).
            free.store(handle.bits(), Ordering::Relaxed);
            return;
        }
        let link = Box::new(Link {
            handles: core::array::from_fn(|i| AtomicU64::new(if i == 0 { handle.bits() } else { 0 })),
            next: AtomicPtr::new(core::ptr::null_mut()),
        });
        let end = self.links().last().map_or(&self.0, |last| &last.next);
        // Release: pairs with Acquire in `links`; publishes the link.
        end.store(Box::into_raw(link), Ordering::Release);
    }

    /// Removes `handle`; the control lock is held.
    pub(super) fn remove(&self, handle: Handle) {
        // Relaxed: as in `insert`.
        if let Some(place) = self.places().find(|place| place.load(Ordering::Relaxed) == handle.bits()) {
            place.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // Relaxed: self is borrowed mutably, so whatever others did happened before.
        let mut link = self.0.load(Ordering::Relaxed);
        while !link.is_null() {
            // SAFETY: `insert` leaked this box, and nobody else can be looking (self is borrowed mutably).
            let owned = unsafe { Box::from_raw(link) };
            link = owned.next.load(Ordering::Relaxed);
        }
    }
}
