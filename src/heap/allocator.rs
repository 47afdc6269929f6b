//! The allocator: which granules of the shared heap belong to whom.
//!
//! - **Heap rule 1.** A granule belongs to the rank that turned its bit from 0 to 1, until that rank turns it back. A
//!   run is allocated word by word; a rank that finds a bit set half-way clears those that it has set.
//! - **Heap rule 2.** [`Heap::allocate`] reserves the run's memory before it returns the address;
//!   [`Heap::allocate_space`] leaves that to the first touch of a page. A run that is given back loses its memory
//!   before its bits are cleared, so that the next owner finds zeros.
//!   A run whose memory the kernel does not take back stays allocated.
//! - **Heap rule 3.** Nothing is ever unmapped or shrunk while the job lives: a place inside the heap can be read and
//!   written by every rank, also after the rank that allocated it has freed it or died. A hole reads as zeros.
//! - **Heap rule 4.** [`Heap::free`] keeps runs that [`Heap::allocate`] has given, for what the same process allocates
//!   next; the bits of a kept run stay set. [`Heap::give_back_kept`] gives them back, and so does an allocation that
//!   finds no room.
//! - **Heap rule 5.** A run whose pages lie on a NUMA node that was asked for is not kept: the next owner's pages lie
//!   where they are touched.

use super::{BitmapWord, numa};
use crate::limits::{GRANULE, HUGE_PAGE, PAGE};
use crate::shm::{FreeRun, FreeRuns, HeapRegion, Memory};
use crate::sync::{MutexGuard, Ordering};
use core::ptr::NonNull;
use rustix::mm::{Advice, madvise};
use std::sync::PoisonError;

const GRANULE64: u64 = GRANULE as u64;
const HUGE64: u64 = HUGE_PAGE as u64;

/// The shared heap of a job, mapped by this process.
#[derive(Debug, Clone, Copy)]
pub struct Heap<'a> {
    memory: &'a Memory,
    region: &'a HeapRegion,
}

/// A run of granules that this process has allocated.
#[derive(Debug, PartialEq, Eq)]
pub struct Extent {
    first: u64,
    granules: u64,
    addr: NonNull<u8>,
    /// Bytes from its beginning on that have been given memory; 0 if nobody knows.
    reserved: u64,
    /// Whether pages of it may be those of a NUMA node that was asked for.
    is_placed: bool,
}

// SAFETY: an extent is the address of memory that is mapped in the whole process, and two numbers.
unsafe impl Send for Extent {}
// SAFETY: an extent is never changed, and gives out an address alone.
unsafe impl Sync for Extent {}

impl Extent {
    /// Returns the address of its first byte in this process.
    #[must_use]
    pub fn addr(&self) -> NonNull<u8> {
        self.addr
    }

    /// Returns the number of its first granule, and how many there are.
    #[must_use]
    pub fn granules(&self) -> (u64, u64) {
        (self.first, self.granules)
    }

    /// Returns whether pages of it may be those of a NUMA node that was asked for.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// Pages of it may be those of a NUMA node that somebody has asked for ([`Heap::reserve`]).
    pub fn set_placed(&mut self) {
        self.is_placed = true;
    }
}

impl<'a> Heap<'a> {
    /// Returns the shared heap of a job, which it maps if need be.
    /// `None` if the job has none, or this process cannot map it.
    #[must_use]
    pub fn of(memory: &'a Memory) -> Option<Self> {
        Some(Self { memory, region: memory.heap_region()? })
    }

    /// Returns the shared heap of a job if this process has mapped it. If not, none of its buffers lies there.
    #[inline]
    #[must_use]
    pub fn mapped(memory: &'a Memory) -> Option<Self> {
        Some(Self { memory, region: memory.mapped_heap_region()? })
    }

    /// Returns the place of the `len` bytes at `addr`, if all of them lie in the heap.
    #[inline]
    #[must_use]
    pub fn place_of(self, addr: *const u8, len: usize) -> Option<u64> {
        let place = (addr as u64).wrapping_sub(self.region.base().as_ptr() as u64);
        self.contains(place, len as u64).then_some(place)
    }

    /// Returns the address in this process of the `len` bytes at `place`, if they lie in the heap and not in its
    /// bitmap. A peer may have named the place.
    #[inline]
    #[must_use]
    pub fn at(self, place: u64, len: u64) -> Option<NonNull<u8>> {
        // SAFETY: `contains` says that the place lies within the region's mapping.
        self.contains(place, len).then(|| unsafe { self.region.base().add(place as usize) })
    }

    #[inline]
    fn contains(self, place: u64, len: u64) -> bool {
        let end = place.checked_add(len);
        place >= self.first() * GRANULE64 && end.is_some_and(|end| end <= self.region.len())
    }

    /// The first granule behind the bitmap.
    #[inline]
    fn first(self) -> u64 {
        self.granules().div_ceil(8).div_ceil(GRANULE64)
    }

    /// Returns how many granules the heap has, those of its bitmap included.
    #[must_use]
    pub fn granules(self) -> u64 {
        self.region.len() / GRANULE64
    }

    /// Returns the region that the heap is made of.
    #[must_use]
    pub fn region(self) -> &'a HeapRegion {
        self.region
    }

    /// Allocates `bytes` bytes aligned to `align`, a power of two, with their memory. What they hold is undefined.
    /// `None` if there is no such run or no memory, or the alignment is beyond that of a huge page.
    #[must_use]
    pub fn allocate(self, bytes: usize, align: usize) -> Option<Extent> {
        self.reuse(bytes, align).or_else(|| self.allocate_fresh(bytes, align, None))
    }

    /// As [`allocate`](Self::allocate), with pages of a NUMA node as long as it has any. An extent whose pages the
    /// kernel does not place says so ([`Extent::is_placed`]).
    #[must_use]
    pub fn allocate_on(self, node: u32, bytes: usize, align: usize) -> Option<Extent> {
        // Of fresh pages: those that are kept lie where they lie.
        self.allocate_fresh(bytes, align, Some(node))
    }

    fn allocate_fresh(self, bytes: usize, align: usize, node: Option<u32>) -> Option<Extent> {
        let fresh = || {
            let extent = self.allocate_space(bytes, align)?;
            let (extent, is_placed) = numa::on_node(node, || self.with_memory(extent, bytes));
            Some(Extent { is_placed, ..extent? })
        };
        // What is kept may be what is missing.
        fresh().or_else(|| self.give_back_kept().then(fresh)?)
    }

    /// Takes a kept run (heap rule 4), as many granules of it as a fresh one would have.
    fn reuse(self, bytes: usize, align: usize) -> Option<Extent> {
        let granules = (bytes.max(1) as u64).div_ceil(GRANULE64);
        let fits = |first| (self.extent(first, 0).addr.as_ptr() as usize).is_multiple_of(align);
        let run = self.kept().reuse(granules, fits)?;
        if run.granules > granules {
            self.give_back(&self.extent(run.first + granules, run.granules - granules));
        }
        let reserved = run.reserved.min(granules * GRANULE64);
        self.with_memory(Extent { reserved, ..self.extent(run.first, granules) }, bytes)
    }

    /// Gives the first `bytes` bytes of an extent memory, if they have none yet;
    /// `None`, and the extent is given back, if there is none.
    fn with_memory(self, extent: Extent, bytes: usize) -> Option<Extent> {
        let bytes = (bytes.max(1) as u64).next_multiple_of(PAGE as u64);
        if bytes <= extent.reserved {
            return Some(extent);
        }
        // With the mapping's page tables, if the kernel knows how: the user need not take the faults one by one.
        // SAFETY: the run is mapped and belongs to this process (heap rule 1).
        unsafe { populate(extent.addr.as_ptr(), bytes as usize) };
        if self.memory.segment().reserve(self.offset_of(extent.first), bytes).is_err() {
            self.give_back(&extent);
            return None;
        }
        Some(Extent { reserved: bytes, ..extent })
    }

    /// The runs that this process keeps. Nobody panics with the lock held.
    fn kept(self) -> MutexGuard<'a, FreeRuns> {
        self.region.hints().kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what this process keeps. Returns whether that is anything.
    pub fn give_back_kept(self) -> bool {
        let mut kept = self.kept();
        let runs = core::iter::from_fn(|| kept.take());
        runs.map(|run| self.give_back(&self.extent(run.first, run.granules))).count() > 0
    }

    /// Most granules that this process keeps: all together an eighth of the heap.
    fn most_kept(self) -> u64 {
        self.granules() / (8 * u64::from(self.memory.places_in_use()).max(1))
    }

    /// Allocates address space alone. Its memory comes page by page when it is touched, all zero; as with any memory of
    /// a process, the kernel may then find that it has none.
    #[must_use]
    pub fn allocate_space(self, bytes: usize, align: usize) -> Option<Extent> {
        let bytes = (bytes.max(1) as u64).checked_next_multiple_of(PAGE as u64)?;
        if align > HUGE_PAGE || bytes > self.region.len() || !self.reserve_bitmap() {
            return None;
        }
        let granules = bytes.div_ceil(GRANULE64);
        let align = if bytes < HUGE64 { (align as u64).max(GRANULE64) } else { HUGE64 };
        let first = self.allocate_run(granules, align / GRANULE64)?;
        Some(self.extent(first, granules))
    }

    /// Reserves the memory of the pages that begin in the `bytes` bytes at `place`, and with `first` of the page that
    /// it begins in, so that they lie near to the CPU of the caller, or on the NUMA node that is given. Returns whether
    /// there is so much, and whether the kernel places it on that node.
    #[must_use]
    pub fn reserve(self, place: u64, bytes: u64, first: bool, node: Option<u32>) -> (bool, bool) {
        let page = PAGE as u64;
        let from = if first { place / page * page } else { place.next_multiple_of(page) };
        let Some(end) = place.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page)) else {
            return (false, false);
        };
        if self.at(place, bytes).is_none() {
            return (false, false);
        }
        if from >= end {
            return (true, false);
        }
        let Some(start) = self.at(from, end - from) else { return (false, false) };
        numa::on_node(node, || {
            // SAFETY: the pages lie in the mapping, which `at` has checked.
            unsafe { populate(start.as_ptr(), (end - from) as usize) };
            self.memory.segment().reserve(self.region.offset() + from, end - from).is_ok()
        })
    }

    /// Returns the extent of `granules` granules from `first` on, which belong to this process.
    ///
    /// # Panics
    /// If they do not lie within the heap.
    #[must_use]
    pub fn extent(self, first: u64, granules: u64) -> Extent {
        assert!(first.checked_add(granules).is_some_and(|end| end <= self.granules()));
        // SAFETY: the assertion says that the run lies within the region's mapping.
        let addr = unsafe { self.region.base().add((first * GRANULE64) as usize) };
        Extent { first, granules, addr, reserved: 0, is_placed: false }
    }

    /// Returns the granules that [`allocate`](Self::allocate) has given for `bytes` bytes at `place`: for a caller that
    /// takes an extent over from another rank.
    #[must_use]
    pub fn run_of(self, place: u64, bytes: usize) -> (u64, u64) {
        (place / GRANULE64, (bytes.max(1) as u64).div_ceil(GRANULE64))
    }

    /// Allocates the `more` granules behind an extent of this process, without memory. Returns whether they were free.
    #[must_use]
    pub fn extend(self, extent: &Extent, more: u64) -> bool {
        let end = extent.first + extent.granules;
        end.checked_add(more).is_some_and(|last| last <= self.granules()) && self.set(end, more).is_ok()
    }

    /// Frees an extent, which is kept for the next allocation if it is known to have memory (heap rule 4).
    pub fn free(self, extent: &Extent) {
        let Extent { first, granules, reserved, is_placed, .. } = *extent;
        if reserved == 0 || is_placed {
            return self.give_back(extent);
        }
        let give_back = |run: FreeRun| self.give_back(&self.extent(run.first, run.granules));
        self.kept().keep(FreeRun { first, granules, reserved }, self.most_kept(), give_back);
    }

    /// Gives an extent back: memory first, then granules (heap rule 2).
    pub fn give_back(self, extent: &Extent) {
        if self.memory.segment().give_back(self.offset_of(extent.first), extent.granules * GRANULE64) {
            self.clear(extent.first, extent.granules);
            // Relaxed: a granule to start a search from.
            self.region.hints().next.fetch_min(extent.first, Ordering::Relaxed);
        }
    }

    /// Returns where a granule begins in the job's file.
    #[must_use]
    pub fn offset_of(self, granule: u64) -> u64 {
        self.region.offset() + granule * GRANULE64
    }

    fn reserve_bitmap(self) -> bool {
        let reserved = &self.region.hints().bitmap_reserved;
        // Relaxed: reserving the memory again changes nothing; the bits themselves carry the order.
        if !reserved.load(Ordering::Relaxed) {
            let there = self.memory.segment().reserve(self.offset_of(0), self.first() * GRANULE64).is_ok();
            reserved.store(there, Ordering::Relaxed);
        }
        reserved.load(Ordering::Relaxed)
    }

    fn allocate_run(self, granules: u64, step: u64) -> Option<u64> {
        let (next, end) = (&self.region.hints().next, self.granules());
        let start = next.load(Ordering::Relaxed).clamp(self.first(), end);
        let found = self.search(start, end, granules, step).or_else(|| {
            // What was freed since lies before.
            self.search(self.first(), (start + granules).min(end), granules, step)
        })?;
        next.store(found + granules, Ordering::Relaxed);
        Some(found)
    }

    fn search(self, from: u64, end: u64, granules: u64, step: u64) -> Option<u64> {
        let mut at = from.next_multiple_of(step);
        while at + granules <= end {
            let taken = self.last_taken(at, granules).or_else(|| self.set(at, granules).err());
            let Some(taken) = taken else { return Some(at) };
            at = (taken + 1).next_multiple_of(step);
        }
        None
    }

    fn word(self, index: u64) -> &'a BitmapWord {
        debug_assert!(index * 64 < self.granules());
        // SAFETY: the word lies within the bitmap: its granules are never allocated, their memory has been reserved
        // (`reserve_bitmap`), and all accesses are atomic.
        // It is aligned because the region is, and the region outlives `'a`.
        unsafe { self.region.base().cast::<BitmapWord>().add(index as usize).as_ref() }
    }

    /// The last granule of a run that is allocated, as far as can be seen.
    fn last_taken(self, first: u64, granules: u64) -> Option<u64> {
        words(first, granules).rev().find_map(|(word, mask)| {
            let taken = self.word(word).load() & mask;
            (taken != 0).then(|| word * 64 + u64::from(63 - taken.leading_zeros()))
        })
    }

    /// Allocates a run (heap rule 1).
    ///
    /// # Errors
    /// A granule of it that is allocated already; nothing has changed then.
    fn set(self, first: u64, granules: u64) -> Result<(), u64> {
        for (word, mask) in words(first, granules) {
            if let Err(taken) = self.word(word).set(mask) {
                let granule = word * 64 + u64::from(taken.trailing_zeros());
                self.clear(first, (word * 64).saturating_sub(first));
                return Err(granule);
            }
        }
        Ok(())
    }

    fn clear(self, first: u64, granules: u64) {
        for (word, mask) in words(first, granules) {
            self.word(word).clear(mask);
        }
    }
}

/// Takes the memory of pages now, if the kernel knows how. Miri's is there.
///
/// # Safety
/// The pages are mapped.
unsafe fn populate(start: *mut u8, bytes: usize) {
    if cfg!(not(miri)) {
        // SAFETY: mapped pages (the caller); populating them changes nothing that they hold.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxPopulateWrite) };
    }
}

/// Bytes after which the kernel maps the pages of a file together when one of them is read.
const AROUND: usize = 64 << 10;

/// Has the kernel map the pages of the heap at `to` before they are written:
/// sixteen at a time, which it does only if they are read.
///
/// # Safety
/// `to` is valid for reads of `bytes` bytes.
pub unsafe fn map_around(to: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(AROUND) {
        // SAFETY: one of the bytes that are valid for reads, as the caller promises.
        unsafe { to.add(at).read_volatile() };
    }
}

/// The words of the bitmap that a run touches: for each its index, and the mask of the run in it.
fn words(first: u64, granules: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> {
    let end = first + granules;
    // Of no granules there is no word.
    let last = if granules == 0 { first / 64 } else { end.div_ceil(64) };
    (first / 64..last).map(move |word| {
        let from = first.max(word * 64) - word * 64;
        let to = end.min(word * 64 + 64) - word * 64;
        let mask = (u64::MAX >> (64 - (to - from))) << from;
        (word, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    fn memory(heap: u64) -> Memory {
        let mut overrides = Overrides::default();
        overrides.set(VariableId::SharedHeap, OverrideValue::Number(heap), ValueSource::Tool);
        Memory::create_with(2, 0, &overrides).expect("a job")
    }

    #[test]
    fn what_one_rank_writes_at_a_place_another_reads_there() {
        let mine = memory(64 << 20);
        let theirs = Memory::attach(mine.segment().fd()).expect("the same job");
        let (heap, other) = (Heap::of(&mine).expect("a heap"), Heap::of(&theirs).expect("the same heap"));
        let extent = heap.allocate(100_000, 64).expect("room");
        let place = heap.place_of(extent.addr().as_ptr(), 100_000).expect("inside");
        assert_ne!(place, 0);
        // SAFETY: the extent is ours, and reserved; the other mapping is of the same memory.
        unsafe {
            extent.addr().as_ptr().add(99_999).write_volatile(7);
            assert_eq!(other.at(place, 100_000).expect("inside").as_ptr().add(99_999).read_volatile(), 7);
        }
        assert_ne!(extent.addr().as_ptr(), other.at(place, 1).expect("inside").as_ptr());
    }

    #[test]
    fn what_was_given_back_holds_no_memory_and_can_be_had_again() {
        let memory = memory(64 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        let block = 24 * GRANULE;
        let empty = {
            let extent = heap.allocate(block, 1).expect("room");
            let taken = memory.segment().taken();
            heap.give_back(&extent);
            assert!(memory.segment().taken() <= taken - block as u64);
            memory.segment().taken()
        };
        for _ in 0..10 {
            let two = [(); 2].map(|()| heap.allocate(block, 1).expect("room"));
            two.iter().for_each(|extent| heap.free(extent));
        }
        assert_eq!(memory.segment().taken(), empty + 2 * block as u64, "kept");
        // No room for that beside what is kept.
        let extent = heap.allocate(62 << 20, 1).expect("what is kept is given back");
        heap.free(&extent);
        assert_eq!(memory.segment().taken(), empty, "too much to be kept");
        heap.free(&heap.allocate(1, 1).expect("room"));
        assert!(heap.give_back_kept() && !heap.give_back_kept());
        assert_eq!(memory.segment().taken(), empty);
    }

    #[test]
    fn memory_of_a_node_takes_the_room_of_what_is_kept_and_is_not_kept() {
        let memory = memory(64 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        heap.free(&heap.allocate(2 << 20, 1).expect("room"));
        let long = heap.allocate_on(0, 62 << 20, 1).expect("what is kept is given back");
        heap.free(&long);
        let short = heap.allocate_on(0, GRANULE, 1).expect("room");
        heap.free(&short);
        assert_eq!(heap.give_back_kept(), !short.is_placed());
    }

    #[test]
    fn what_is_had_again_has_as_many_granules_and_memory_for_all_that_is_asked_for() {
        let memory = memory(64 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        let long = heap.allocate(20 * GRANULE, 1).expect("room");
        let first = long.first;
        heap.free(&long);
        let taken = memory.segment().taken();
        let again = heap.allocate(17 * GRANULE - 5000, 1).expect("room");
        assert_eq!((again.first, again.granules, again.reserved), (first, 17, 17 * GRANULE64));
        assert_eq!(memory.segment().taken(), taken - 3 * GRANULE64, "the rest is given back");
        let short = heap.allocate(GRANULE + 1, 1).expect("room");
        assert_eq!(short.reserved, GRANULE64 + PAGE as u64);
        heap.free(&short);
        let taken = memory.segment().taken();
        let whole = heap.allocate(2 * GRANULE, 1).expect("room");
        assert_eq!((whole.first, whole.reserved), (short.first, 2 * GRANULE64));
        assert_eq!(memory.segment().taken(), taken + GRANULE64 - PAGE as u64);
    }

    #[test]
    fn extents_do_not_overlap_and_an_exhausted_heap_gives_nothing() {
        let memory = memory(4 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        let mut taken: Vec<Extent> = Vec::new();
        while let Some(extent) = heap.allocate(70_000, 1) {
            assert!(taken.iter().all(|other| other.first + other.granules <= extent.first
                || extent.first + extent.granules <= other.first));
            taken.push(extent);
        }
        assert_eq!(taken.len(), 31, "two granules each of 63");
        heap.free(&taken[7]);
        let again = heap.allocate(100_000, 1).expect("what was given back");
        assert_eq!(again.granules(), taken[7].granules());
        assert!(heap.allocate(usize::MAX, 1).is_none());
    }

    #[test]
    fn alignments_up_to_a_huge_page_are_kept() {
        let memory = memory(64 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        for align in [1, 4096, 1 << 17, HUGE_PAGE] {
            let extent = heap.allocate(100, align).expect("room");
            assert!((extent.addr().as_ptr() as usize).is_multiple_of(align));
        }
        assert!(heap.allocate(100, 2 * HUGE_PAGE).is_none());
    }

    #[test]
    fn places_outside_are_refused() {
        let memory = memory(1 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        for (place, len) in
            [(0, 1), (GRANULE64 - 1, 1), (1 << 20, 1), (GRANULE64, 1 << 20), (u64::MAX, 2), (5 << 20, 0)]
        {
            assert!(heap.at(place, len).is_none(), "{place} {len}");
        }
        assert!(heap.at(GRANULE64, (1 << 20) - GRANULE64).is_some());
        assert!(heap.place_of((&raw const memory).cast(), 1).is_none());
    }

    #[test]
    fn a_job_that_asks_for_none_has_none() {
        assert!(Heap::of(&memory(0)).is_none());
        let mut overrides = Overrides::default();
        overrides.set(VariableId::SharedHeap, OverrideValue::Number(1), ValueSource::Tool);
        assert!(Heap::of(&Memory::create_with(2, 0, &overrides).expect("a job")).is_none());
    }

    #[test]
    fn the_words_of_a_run_cover_it_and_nothing_else() {
        for first in [0, 1, 63, 64, 65] {
            for granules in [0, 1, 62, 63, 64, 65, 129] {
                let mut granule = first;
                for (word, mask) in words(first, granules) {
                    for bit in 0..64 {
                        let inside = (first..first + granules).contains(&(word * 64 + bit));
                        assert_eq!(mask >> bit & 1 == 1, inside, "{first} {granules}");
                        granule += u64::from(inside);
                    }
                }
                assert_eq!(granule, first + granules);
            }
        }
    }

    #[test]
    fn ranks_that_take_at_once_never_get_the_same() {
        let memory = memory(256 << 20);
        let heap = Heap::of(&memory).expect("a heap");
        let mut all: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4_usize)
                .map(|of| {
                    let heap = &heap;
                    scope.spawn(move || {
                        (0..60)
                            .filter_map(|i| heap.allocate((of + 1) * 50_000 + i, 1))
                            .map(|extent| (extent.first, extent.granules))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().expect("no panic")).collect()
        });
        assert_eq!(all.len(), 240);
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }
}
