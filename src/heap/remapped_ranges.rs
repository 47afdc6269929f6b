//! What a process knows of its remapped buffers: where they lie, and how often others have been used.

use super::allocator::Extent;
use crate::limits::{GRANULE, PAGE};
use crate::sync::Arc;
use core::ops::Range;

/// Buffers whose uses are counted.
const COUNTED: usize = 256;
/// Places that a buffer may be counted at; if others have all of them, the one with the fewest uses is forgotten.
const WAYS: usize = 4;

/// What a process knows of its remapped buffers, and of others.
#[derive(Debug)]
pub(super) struct RemappedState {
    /// By address.
    pub ranges: Vec<RemappedRange>,
    /// Extents that were shorter buffers of pages which have been remapped once more. Peers may still read them.
    pub retired: Vec<Arc<Extent>>,
    /// Bytes of all extents.
    pub bytes: usize,
    /// Collective operations that are not over, of whose buffers members know the places.
    pub exposed: usize,
    /// How often buffers have been used; `name` is 0 where none is counted.
    uses: [Uses; COUNTED],
    /// How many buffers have been remapped.
    pub made: u64,
    /// Whether none is remapped any more: the process uses a device, whose driver may have pinned any page of it.
    pub is_closed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    /// Address and length, mixed.
    name: u64,
    count: u32,
    /// How often it has been remapped, or could not be.
    attempts: u32,
}

/// Pages of a program that have been remapped.
#[derive(Debug, Clone)]
pub(super) struct RemappedRange {
    /// Whole pages of the program.
    pub pages: Range<usize>,
    /// What they are now, and a page before and behind for edges. Where another buffer lies in between since, two
    /// ranges have it.
    pub extent: Arc<Extent>,
    /// The address at which the extent would begin, if all of it were the program's.
    pub origin: usize,
}

impl RemappedRange {
    /// Where messages may lie that go by this range: from the page before it to the page behind it.
    pub fn reach(&self) -> Range<usize> {
        self.pages.start - PAGE..self.pages.end + PAGE
    }

    /// The heap's address of the byte that the program has at `addr`, which is in reach.
    pub fn in_heap(&self, addr: usize) -> *mut u8 {
        self.extent.addr().as_ptr().wrapping_add(addr - self.origin)
    }

    /// The edges of what lies in `addresses`.
    pub fn edges(&self, addresses: &Range<usize>) -> [Range<usize>; 2] {
        let (start, end) = (addresses.start, addresses.end);
        [start..end.min(self.pages.start), start.max(self.pages.end)..end]
    }
}

impl Default for RemappedState {
    fn default() -> Self {
        let uses = [Uses::default(); COUNTED];
        Self { ranges: vec![], retired: vec![], bytes: 0, exposed: 0, uses, made: 0, is_closed: false }
    }
}

impl RemappedState {
    /// The range in whose reach these addresses are, if it has some of their pages.
    pub fn index_of(&self, addresses: &Range<usize>) -> Option<usize> {
        // Of ranges in whose reach a message's beginning lies, the last but one has its end behind.
        let behind = self.ranges.partition_point(|range| range.reach().start <= addresses.start);
        (behind.saturating_sub(2)..behind).rev().find(|&at| {
            let range = &self.ranges[at];
            overlap(addresses, &range.pages) && addresses.end <= range.reach().end
        })
    }

    /// The same range.
    pub fn range_of(&self, addresses: &Range<usize>) -> Option<&RemappedRange> {
        self.index_of(addresses).map(|at| &self.ranges[at])
    }

    /// Takes pages out of the ranges that had them: other buffers, which the program has freed, or which were shorter.
    pub fn cut_out(&mut self, pages: &Range<usize>) {
        let (mut left, mut retired) = (vec![], vec![]);
        for range in self.ranges.drain(..) {
            if !overlap(&range.pages, pages) {
                left.push(range);
                continue;
            }
            let before = range.pages.start..range.pages.end.min(pages.start);
            let behind = range.pages.start.max(pages.end)..range.pages.end;
            let parts = [before, behind].into_iter().filter(|part| !part.is_empty());
            left.extend(parts.map(|pages| RemappedRange { pages, ..range.clone() }));
            retired.push(range.extent);
        }
        self.ranges = left;
        self.retired.extend(retired);
    }

    /// Whether there are pages that a child must copy.
    pub fn has_pages(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Counts a use of a buffer. Whether it has been used `after` times since it was to be remapped last, or twice as
    /// often for each time that it was: it could not be, or the program has unmapped it since, and the cost was not
    /// worth while.
    pub fn is_due(&mut self, addresses: &Range<usize>, after: u64) -> bool {
        let product = (addresses.start.rotate_left(23) ^ addresses.len()) as u128 * 0x9e37_79b9_7f4a_7c15;
        let name = ((product >> 64) as u64 ^ product as u64).max(1);
        let set = &mut self.uses[name as usize % (COUNTED / WAYS) * WAYS..][..WAYS];
        let known = set.iter().position(|uses| uses.name == name);
        let fewest = || (0..WAYS).min_by_key(|&way| set[way].count).unwrap_or_default();
        let uses = &mut set[known.unwrap_or_else(fewest)];
        if uses.name != name {
            *uses = Uses { name, ..Uses::default() };
        }
        uses.count = uses.count.saturating_add(1);
        let due = u64::from(uses.count) >= after.saturating_mul(1 << uses.attempts.min(20));
        if due {
            (uses.count, uses.attempts) = (0, uses.attempts + 1);
        }
        due
    }
}

/// Bytes of the heap that an extent takes.
pub(super) fn bytes_of(extent: &Extent) -> usize {
    extent.granules().1 as usize * GRANULE
}

/// Whether two ranges have something in common.
pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::shm::Memory;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    fn pages(range: Range<usize>) -> Range<usize> {
        range.start * PAGE..range.end * PAGE
    }

    fn state_of(ranges: &[Range<usize>]) -> (Memory, RemappedState) {
        let mut overrides = Overrides::default();
        overrides.set(VariableId::SharedHeap, OverrideValue::Number(16 << 20), ValueSource::Tool);
        let memory = Memory::create_with(2, 0, &overrides).expect("a job");
        let heap = Heap::of(&memory).expect("a heap");
        let range = |range: &Range<usize>| {
            let pages = pages(range.clone());
            let extent = heap.allocate(pages.len() + 2 * PAGE, PAGE).expect("room");
            RemappedRange { origin: pages.start - PAGE, pages, extent: Arc::new(extent) }
        };
        let ranges = ranges.iter().map(range).collect();
        (memory, RemappedState { ranges, ..RemappedState::default() })
    }

    #[test]
    fn what_other_buffers_had_is_cut_out_of_them() {
        for (cut, left, retired) in [
            (5..15, vec![15..20, 20..30, 40..50], 1),
            (25..45, vec![10..20, 20..25, 45..50], 2),
            (22..28, vec![10..20, 20..22, 28..30, 40..50], 1),
            (30..40, vec![10..20, 20..30, 40..50], 0),
            (0..60, vec![], 3),
        ] {
            let (_memory, mut state) = state_of(&[10..20, 20..30, 40..50]);
            let before: Vec<_> = state.ranges.clone();
            state.cut_out(&pages(cut.clone()));
            let now: Vec<_> = state.ranges.iter().map(|range| range.pages.clone()).collect();
            assert_eq!(now, left.into_iter().map(pages).collect::<Vec<_>>(), "{cut:?}");
            assert_eq!(state.retired.len(), retired, "{cut:?}");
            for range in &state.ranges {
                let was = before.iter().find(|was| overlap(&was.pages, &range.pages)).expect("a part of one");
                assert_eq!(range.in_heap(range.pages.start), was.in_heap(range.pages.start), "{cut:?}");
            }
        }
    }

    #[test]
    fn a_message_is_found_in_a_range_up_to_a_page_beside_it() {
        let (_memory, state) = state_of(&[10..20, 22..32, 32..40]);
        for (from, to, at) in [
            (9 * PAGE, 21 * PAGE, Some(0)),
            (9 * PAGE - 1, 20 * PAGE, None),
            (12 * PAGE + 5, 21 * PAGE, Some(0)),
            (12 * PAGE, 21 * PAGE + 1, None),
            (21 * PAGE, 33 * PAGE, Some(1)),
            (31 * PAGE + 1, 41 * PAGE, Some(2)),
            (20 * PAGE, 21 * PAGE, None),
            (41 * PAGE, 50 * PAGE, None),
        ] {
            assert_eq!(state.index_of(&(from..to)), at, "{from}..{to}");
        }
        let edges = state.ranges[0].edges(&(9 * PAGE + 7..20 * PAGE + 3));
        assert_eq!(edges, [9 * PAGE + 7..10 * PAGE, 20 * PAGE..20 * PAGE + 3]);
        assert!(state.ranges[0].edges(&(12 * PAGE..13 * PAGE)).iter().all(Range::is_empty));
    }

    #[test]
    fn a_buffer_is_due_after_so_many_uses_and_then_after_twice_as_many() {
        let mut state = RemappedState::default();
        let uses = |state: &mut RemappedState, buffer: &Range<usize>| (1..).find(|_| state.is_due(buffer, 4));
        assert_eq!([(); 3].map(|()| uses(&mut state, &(0x1000..0x9000))), [Some(4), Some(8), Some(16)]);
        assert_eq!(uses(&mut state, &(0x1000..0x9001)), Some(4), "another buffer");
    }

    #[test]
    fn buffers_that_are_used_in_turn_are_all_due() {
        // A quarter as many as there are places: few of them find none beside the others.
        let mut state = RemappedState::default();
        let buffers: Vec<_> = (1..=COUNTED / 4).map(|i| i << 20..(i << 20) + 0x10_0000).collect();
        let due =
            (0..4).map(|_| buffers.iter().filter(|buffer| state.is_due(buffer, 4)).count()).sum::<usize>();
        assert!(due >= buffers.len() * 9 / 10, "{due} of {}", buffers.len());
    }
}
