//! Handle slots: memory that is used again, and never freed while the registry lives.
//!
//! That a slot, once there, stays a slot is what makes dispatch safe without reclamation (event rule 1): a stale
//! handle leads to a slot whose generation refuses it, never to memory that is something else.

use super::callback::{CallbackHeader, OwnedCallback};
use super::state::SlotState;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Slots of the first chunk; each further chunk is twice as long.
const FIRST: usize = if cfg!(perusal_loom) { 2 } else { 64 };
/// Chunks, so at most `FIRST * (2^CHUNKS - 1)` slots: 67 million.
const CHUNKS: usize = if cfg!(perusal_loom) { 2 } else { 20 };
/// How many handles can exist at a time.
pub(super) const CAPACITY: usize = FIRST * ((1 << CHUNKS) - 1);

/// What a dispatch needs of one handle.
#[derive(Debug)]
pub(super) struct HandleSlot {
    pub(super) state: SlotState,
    /// Number of the event; written while the slot is free, so a stale handle's owner may still read it.
    pub(super) event: AtomicU32,
    /// The callback, which the slot owns (event rule 3).
    pub(super) callback: AtomicPtr<CallbackHeader>,
}

impl HandleSlot {
    fn new() -> HandleSlot {
        HandleSlot {
            state: SlotState::new(),
            event: AtomicU32::new(0),
            callback: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// What a hazard pointer holds; never 0.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }
}

/// A table of slots that grows without moving.
#[derive(Debug)]
pub(super) struct SlotTable {
    chunks: [AtomicPtr<HandleSlot>; CHUNKS],
}

impl SlotTable {
    pub(super) fn new() -> SlotTable {
        SlotTable { chunks: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())) }
    }

    /// Chunk and place in it of slot `index`.
    fn place(index: usize) -> (usize, usize) {
        let shifted = index + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        (chunk, shifted - (FIRST << chunk))
    }

    /// The slot of this index, if there is one yet.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&HandleSlot> {
        if index >= CAPACITY {
            return None;
        }
        let (chunk, offset) = SlotTable::place(index);
        // Acquire: pairs with Release in `grow`; publishes the chunk's slots.
        let start = self.chunks[chunk].load(Ordering::Acquire);
        // SAFETY: a chunk that is there holds `FIRST << chunk` slots, of which `offset` is one by `place`; it is freed
        // only in `drop`, which borrows self mutably (event rule 1).
        (!start.is_null()).then(|| unsafe { &*start.add(offset) })
    }

    /// Whether a slot of ours lies at `address`.
    pub(super) fn has(&self, address: usize) -> bool {
        self.chunks.iter().enumerate().any(|(chunk, start)| {
            // Relaxed: the address is compared, not followed; a slot that is in a hazard pointer came from this table,
            // whose chunk is then there.
            let start = start.load(Ordering::Relaxed) as usize;
            start != 0 && (start..start + (FIRST << chunk) * size_of::<HandleSlot>()).contains(&address)
        })
    }

    /// The slot of this index, made if need be; `None` past [`CAPACITY`]. The control lock is held.
    pub(super) fn grow(&self, index: usize) -> Option<&HandleSlot> {
        if index < CAPACITY && self.get(index).is_none() {
            let (chunk, _) = SlotTable::place(index);
            let slots: Box<[HandleSlot]> = (0..FIRST << chunk).map(|_| HandleSlot::new()).collect();
            // Release: pairs with Acquire in `get`; publishes the chunk's slots.
            self.chunks[chunk].store(Box::into_raw(slots).cast::<HandleSlot>(), Ordering::Release);
        }
        self.get(index)
    }
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        for (chunk, start) in self.chunks.iter().enumerate() {
            // Relaxed: self is borrowed mutably, so whatever others did happened before.
            let start = start.load(Ordering::Relaxed);
            if start.is_null() {
                continue;
            }
            let slots = core::ptr::slice_from_raw_parts_mut(start, FIRST << chunk);
            // SAFETY: `grow` leaked exactly this box, and self is borrowed mutably, so nobody else looks.
            for slot in unsafe { Box::from_raw(slots) } {
                // Relaxed: self is borrowed mutably.
                let called = slot.callback.load(Ordering::Relaxed);
                // SAFETY: the slot owned it (event rule 3), and is dropped here, so nobody else will take it.
                drop(unsafe { OwnedCallback::from_raw(called) });
            }
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own_and_keeps_it() {
        let slots = SlotTable::new();
        let mut seen = std::collections::HashSet::new();
        let addresses: Vec<_> =
            (0..FIRST * 7).map(|index| core::ptr::from_ref(slots.grow(index).unwrap()) as usize).collect();
        for (index, address) in addresses.into_iter().enumerate() {
            assert!(seen.insert(address), "slot {index} lies on another");
            let slot = slots.get(index).unwrap();
            assert_eq!(slot.address(), address);
            assert!(slots.has(address) && !SlotTable::new().has(address));
        }
        assert!(!slots.has(0) && !slots.has(1));
    }

    #[test]
    fn the_last_index_is_in_the_last_chunk_and_the_next_is_refused() {
        assert_eq!(SlotTable::place(CAPACITY - 1), (CHUNKS - 1, (FIRST << (CHUNKS - 1)) - 1));
        let slots = SlotTable::new();
        assert!(slots.grow(CAPACITY).is_none());
        assert!(slots.get(CAPACITY - 1).is_none());
    }
}
