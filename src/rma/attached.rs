//! What a member has attached to a dynamic window, as the other members see it: tables of regions in the shared heap of
//! the member's job, each with the place of the one before it.
//!
//! - **Attached rule 1.** Only its member changes the tables, under a lock of its own, and no table goes before the
//!   window does.
//! - **Attached rule 2.** An origin may access a region only after it has learnt that it is attached, and as long as it
//!   stays so. So it sees that region's words, whatever others are attached and detached meanwhile. A region that it
//!   reads half changed lets a program through that is wrong, or refuses it.

use crate::sync::{AtomicU64, Ordering};

/// Regions in a table.
const REGIONS: usize = if cfg!(perusal_loom) { 1 } else { 255 };

/// A region: where it begins in its member's process, and its bytes. One without bytes is none.
#[derive(Debug, Default)]
#[repr(C)]
struct Region {
    start: AtomicU64,
    bytes: AtomicU64,
}

impl Region {
    fn get(&self) -> (u64, u64) {
        // Relaxed: attached rule 2.
        (self.start.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn set(&self, start: u64, bytes: u64) {
        // Relaxed: attached rule 2.
        self.start.store(start, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Some of the regions of a member: a page. All zero: none, and no table before it.
#[derive(Debug)]
#[repr(C)]
pub struct RegionTable {
    before: AtomicU64,
    _apart: AtomicU64,
    regions: [Region; REGIONS],
}

impl Default for RegionTable {
    fn default() -> Self {
        let regions = core::array::from_fn(|_| Region::default());
        Self { before: AtomicU64::new(0), _apart: AtomicU64::new(0), regions }
    }
}

#[cfg(not(perusal_loom))]
const _: () = assert!(size_of::<RegionTable>() == crate::limits::PAGE);

impl RegionTable {
    /// Adds a region that has bytes. Returns whether there was room.
    #[must_use]
    pub fn add(&self, start: u64, bytes: u64) -> bool {
        let free = self.regions.iter().find(|region| region.get().1 == 0);
        free.inspect(|region| region.set(start, bytes)).is_some()
    }

    /// Takes a region away. Returns whether it was here.
    pub fn remove(&self, start: u64, bytes: u64) -> bool {
        let found = self.regions.iter().find(|region| region.get() == (start, bytes));
        found.inspect(|region| region.set(0, 0)).is_some()
    }

    /// Whether the byte at `addr` lies in a region, and how many bytes follow it there, itself included.
    fn find(&self, addr: u64) -> Option<u64> {
        self.regions.iter().map(Region::get).find_map(|(start, bytes)| {
            let into = addr.checked_sub(start)?;
            bytes.checked_sub(into).filter(|rest| *rest > 0)
        })
    }
}

/// The place of a member's newest table; 0 for none.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct NewestTable(AtomicU64);

impl NewestTable {
    /// Puts the table at `place`, which nobody knows yet, before all others.
    pub fn push(&self, table: &RegionTable, place: u64) {
        // Relaxed: only this member stores here (attached rule 1).
        table.before.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release: "attached" edge, pairs with Acquire in `cover`: the table's words, and the place before it.
        self.0.store(place, Ordering::Release);
    }

    /// Whether all of the `bytes` bytes at `addr` lie in regions, several of which may lie beside each other.
    /// `at` gives the table at a place; `None` where there can be none.
    #[must_use]
    pub fn cover<'t>(&self, at: impl Fn(u64) -> Option<&'t RegionTable>, addr: u64, bytes: u64) -> bool {
        // Acquire: "attached" edge, pairs with Release in `push`.
        let newest = self.0.load(Ordering::Acquire);
        let find = |addr| {
            let mut place = newest;
            while place != 0 {
                let table = at(place)?;
                let rest = table.find(addr);
                if rest.is_some() {
                    return rest;
                }
                // Relaxed: it was set before its place was published, and stays.
                let before = table.before.load(Ordering::Relaxed);
                place = before;
            }
            None
        };
        let Some(end) = addr.checked_add(bytes) else { return false };
        let mut next = addr;
        while next < end {
            let Some(rest) = find(next) else { return false };
            next = next.saturating_add(rest);
        }
        true
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn regions_of_all_tables_are_found_and_those_beside_each_other_are_one() {
        let tables = [RegionTable::default(), RegionTable::default()];
        let at = |place: u64| tables.get(place as usize / 4096 - 1);
        let newest = NewestTable::default();
        assert!(!newest.cover(at, 100, 1) && newest.cover(at, 100, 0));
        newest.push(&tables[0], 4096);
        for region in 0..REGIONS as u64 {
            assert!(tables[0].add(1000 * region, 10));
        }
        assert!(!tables[0].add(7, 1));
        newest.push(&tables[1], 8192);
        assert!(tables[1].add(10, 5));
        assert!(newest.cover(at, 0, 15) && newest.cover(at, 12, 3) && newest.cover(at, 254_009, 1));
        assert!(!newest.cover(at, 0, 16) && !newest.cover(at, 15, 1) && !newest.cover(at, 254_009, 2));
        assert!(!newest.cover(at, u64::MAX, 2));
        assert!(!tables[0].remove(1000, 9) && tables[0].remove(1000, 10) && !tables[0].remove(1000, 10));
        assert!(!newest.cover(at, 1000, 1) && newest.cover(at, 2000, 10));
        assert!(tables[0].add(u64::MAX - 1, 1));
        assert!(newest.cover(at, u64::MAX - 1, 1));
    }
}
