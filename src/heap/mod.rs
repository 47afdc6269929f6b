//! The shared heap: memory for users' buffers that every rank of the job can map, so that large messages need one copy.
//!
//! It lies in the job's file behind the segment, sparse, and is mapped by a rank when it first needs it: who never calls
//! MPI_Alloc_mem, and is sent nothing from such memory, has neither the mapping nor a page of it. It is dealt out in
//! *granules*; a bitmap at its start, shared by all, says which are taken. A *place* is an offset from the heap's start:
//! what ranks tell each other instead of addresses, never 0.
//!
//! Rules:
//! - **Heap rule 1.** A granule belongs to the rank that turned its bit from 0 to 1, until that rank turns it back. A run is
//!   taken word by word; who finds a bit taken half-way gives back those that it has turned.
//! - **Heap rule 2.** The memory of a run is taken from the kernel before its address is given out, unless room alone was asked
//!   for; it is given back before the run's bits are cleared, so that who has the run next finds zeros. What the kernel does not
//!   take back stays taken.
//! - **Heap rule 3.** Nothing is ever unmapped or shrunk while the job lives: a place inside the heap can be read and written,
//!   whoever has it, and whatever became of the rank that took it. A hole reads as zeros.

pub mod arena;
pub mod malloc;

use core::ptr::NonNull;

use crate::limits::{GRANULE, HUGE_PAGE, PAGE};
use crate::shm::Segment;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

const GRANULE64: u64 = GRANULE as u64;
const HUGE64: u64 = HUGE_PAGE as u64;

/// The heap as this process sees it.
#[derive(Debug)]
pub struct Heap {
    base: NonNull<u8>,
    /// Where it begins in the job's file.
    at: u64,
    /// Bytes mapped; whole granules.
    len: u64,
    /// The first granule behind the bitmap.
    first: u64,
    /// Where this process's next search begins.
    next: AtomicU64,
    /// Whether the bitmap's memory has been taken.
    ready: AtomicBool,
}

// SAFETY: the mapping stays where it is as long as the heap lives, and belongs to no thread; the bitmap in it is touched
// through atomics only, the rest by who owns it (heap rule 1).
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

/// A run of granules that this process has.
#[derive(Debug, PartialEq, Eq)]
pub struct Extent {
    first: u64,
    granules: u64,
    addr: NonNull<u8>,
}

// SAFETY: an address within a mapping that all threads share.
unsafe impl Send for Extent {}

impl Extent {
    /// Its first byte, in this process.
    #[must_use]
    pub fn addr(&self) -> NonNull<u8> {
        self.addr
    }

    /// Number of its first granule, and how many there are.
    #[must_use]
    pub fn granules(&self) -> (u64, u64) {
        (self.first, self.granules)
    }
}

impl Heap {
    /// Where a heap of `asked` bytes begins in the job's file behind `segment` bytes, and what it has of them: whole granules.
    #[must_use]
    pub fn room(segment: u64, asked: u64) -> Option<(u64, u64)> {
        let at = segment.checked_next_multiple_of(HUGE64)?;
        // Less than a granule beside the bitmap is none.
        (asked >= 2 * GRANULE64).then_some((at, asked / GRANULE64 * GRANULE64))
    }

    /// Where the heap of the job whose segment this is begins, and its bytes.
    pub(crate) fn of(segment: &Segment) -> Option<(u64, u64)> {
        let behind = segment.file_len().checked_sub(segment.len().checked_next_multiple_of(HUGE64)?)?;
        Self::room(segment.len(), behind)
    }

    /// Maps the heap of the job whose segment this is. `None` if it has none, or this process may not map it.
    pub(crate) fn open(segment: &Segment) -> Option<Self> {
        let (at, len) = Self::of(segment)?;
        let base = map(segment, at, usize::try_from(len).ok()?)?;
        let bitmap = (len / GRANULE64).div_ceil(8);
        let first = bitmap.div_ceil(GRANULE64);
        Some(Self { base, at, len, first, next: AtomicU64::new(first), ready: AtomicBool::new(false) })
    }

    /// The place of the `len` bytes at `addr`, if all of them lie in the heap.
    #[inline]
    #[must_use]
    pub fn place_of(&self, addr: *const u8, len: usize) -> Option<u64> {
        let place = (addr as u64).wrapping_sub(self.base.as_ptr() as u64);
        self.holds(place, len as u64).then_some(place)
    }

    /// Address in this process of the `len` bytes at `place`, if that is in the heap and not of its bitmap. A peer may have
    /// named the place.
    #[inline]
    #[must_use]
    pub fn at(&self, place: u64, len: u64) -> Option<NonNull<u8>> {
        // SAFETY: the place lies within the mapping.
        self.holds(place, len).then(|| unsafe { self.base.add(place as usize) })
    }

    fn holds(&self, place: u64, len: u64) -> bool {
        place >= self.first * GRANULE64 && place.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Takes `bytes` bytes aligned to `align`, a power of two, with their memory. What they hold is undefined. `None` if there is
    /// no such run or no memory, or the alignment is beyond that of a huge page.
    #[must_use]
    pub fn take(&self, segment: &Segment, bytes: usize, align: usize) -> Option<Extent> {
        let extent = self.take_room(segment, bytes, align)?;
        let bytes = (bytes.max(1) as u64).next_multiple_of(PAGE as u64);
        // With the mapping's page tables, if the kernel knows how: the user need not take the faults one by one.
        // SAFETY: the run is ours and mapped; the call writes nothing that is there.
        unsafe { libc::madvise(extent.addr.as_ptr().cast(), bytes as usize, libc::MADV_POPULATE_WRITE) };
        if segment.reserve(self.at + extent.first * GRANULE64, bytes).is_err() {
            self.give(segment, &extent);
            return None;
        }
        Some(extent)
    }

    /// The same without the memory, which comes page by page when it is touched, all zero; as with any memory of a process, the
    /// kernel may find then that it has none.
    #[must_use]
    pub fn take_room(&self, segment: &Segment, bytes: usize, align: usize) -> Option<Extent> {
        let bytes = (bytes.max(1) as u64).checked_next_multiple_of(PAGE as u64)?;
        if align > HUGE_PAGE || bytes > self.len || !self.bitmap_is_there(segment) {
            return None;
        }
        let granules = bytes.div_ceil(GRANULE64);
        let align = if bytes < HUGE64 { (align as u64).max(GRANULE64) } else { HUGE64 };
        let first = self.take_run(granules, align / GRANULE64)?;
        Some(self.extent(first, granules))
    }

    /// The extent of `granules` granules from `first` on, which are this process's.
    ///
    /// # Panics
    /// If they do not lie within the heap.
    #[must_use]
    pub fn extent(&self, first: u64, granules: u64) -> Extent {
        assert!(first.checked_add(granules).is_some_and(|end| end <= self.len / GRANULE64));
        // SAFETY: the run lies within the mapping.
        let addr = unsafe { self.base.add((first * GRANULE64) as usize) };
        Extent { first, granules, addr }
    }

    /// Takes the `more` granules behind an extent of this process, without memory. Whether they were free.
    #[must_use]
    pub fn take_behind(&self, extent: &Extent, more: u64) -> bool {
        let end = extent.first + extent.granules;
        end.checked_add(more).is_some_and(|last| last <= self.len / GRANULE64) && self.set(end, more).is_ok()
    }

    /// Gives an extent back: memory first, then granules (heap rule 2).
    pub fn give(&self, segment: &Segment, extent: &Extent) {
        if segment.give_back(self.at + extent.first * GRANULE64, extent.granules * GRANULE64) {
            self.clear(extent.first, extent.granules);
            // Relaxed: a place to start from.
            self.next.fetch_min(extent.first, Ordering::Relaxed);
        }
    }

    /// The heap's address space in this process: its first byte and how many there are.
    #[must_use]
    pub fn mapped(&self) -> (NonNull<u8>, usize) {
        (self.base, self.len as usize)
    }

    /// Where in the job's file the heap begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    fn bitmap_is_there(&self, segment: &Segment) -> bool {
        // Relaxed: taking the memory again changes nothing; the bits themselves carry the order.
        if !self.ready.load(Ordering::Relaxed) {
            let there = segment.reserve(self.at, self.first * GRANULE64).is_ok();
            self.ready.store(there, Ordering::Relaxed);
        }
        self.ready.load(Ordering::Relaxed)
    }

    fn take_run(&self, granules: u64, step: u64) -> Option<u64> {
        let end = self.len / GRANULE64;
        let start = self.next.load(Ordering::Relaxed).clamp(self.first, end);
        let found = self.search(start, end, granules, step).or_else(|| {
            // What was freed since lies before.
            self.search(self.first, (start + granules).min(end), granules, step)
        })?;
        self.next.store(found + granules, Ordering::Relaxed);
        Some(found)
    }

    fn search(&self, from: u64, end: u64, granules: u64, step: u64) -> Option<u64> {
        let mut at = from.next_multiple_of(step);
        while at + granules <= end {
            let taken = self.last_taken(at, granules).or_else(|| self.set(at, granules).err());
            let Some(taken) = taken else { return Some(at) };
            at = (taken + 1).next_multiple_of(step);
        }
        None
    }

    /// The words of the bitmap that a run touches, each with its first granule and the mask of the run in it.
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

    fn word(&self, index: u64) -> &AtomicU64 {
        debug_assert!(index * 64 < self.len / GRANULE64);
        // SAFETY: the word lies within the bitmap, whose granules nobody is given, on memory that was taken
        // (`bitmap_is_there`); it is aligned, and touched as an atomic only.
        unsafe { self.base.cast::<AtomicU64>().add(index as usize).as_ref() }
    }

    /// The last granule of a run that is taken, as far as can be seen.
    fn last_taken(&self, first: u64, granules: u64) -> Option<u64> {
        Self::words(first, granules).rev().find_map(|(word, mask)| {
            // Relaxed: a look in advance; `set` decides.
            let taken = self.word(word).load(Ordering::Relaxed) & mask;
            (taken != 0).then(|| word * 64 + u64::from(63 - taken.leading_zeros()))
        })
    }

    /// Takes a run (heap rule 1).
    ///
    /// # Errors
    /// A granule of it that is taken; nothing has changed then.
    fn set(&self, first: u64, granules: u64) -> Result<(), u64> {
        for (word, mask) in Self::words(first, granules) {
            if let Err(taken) = self.set_in(word, mask) {
                let granule = word * 64 + u64::from(taken.trailing_zeros());
                self.clear(first, (word * 64).saturating_sub(first));
                return Err(granule);
            }
        }
        Ok(())
    }

    fn set_in(&self, word: u64, mask: u64) -> Result<(), u64> {
        let mut seen = self.word(word).load(Ordering::Relaxed);
        while seen & mask == 0 {
            // Acquire: "heap" edge, pairs with Release in `clear`: who had the granules has given their memory back.
            let set = self.word(word).compare_exchange_weak(
                seen,
                seen | mask,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match set {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
        Err(seen & mask)
    }

    fn clear(&self, first: u64, granules: u64) {
        for (word, mask) in Self::words(first, granules) {
            // Release: "heap" edge, pairs with Acquire in `set_in`.
            self.word(word).fetch_and(!mask, Ordering::Release);
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: our own mapping, `len` bytes long; nobody has an address in it that outlives the job.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len as usize) };
    }
}

/// Maps `len` bytes of the segment's file from `at` on, at a multiple of a huge page.
fn map(segment: &Segment, at: u64, len: usize) -> Option<NonNull<u8>> {
    let room = len.checked_add(HUGE_PAGE)?;
    let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping wherever the kernel likes.
    let free = unsafe { libc::mmap(core::ptr::null_mut(), room, none, private, -1, 0) };
    if free == libc::MAP_FAILED {
        return None;
    }
    let start = (free as usize).next_multiple_of(HUGE_PAGE);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let over = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: replaces pages of the mapping that we have just made and that nobody has seen.
    let base = unsafe { libc::mmap(start as *mut _, len, both, over, segment.fd(), i64::try_from(at).ok()?) };
    if base == libc::MAP_FAILED {
        // SAFETY: our own mapping of above; what was replaced of it goes as well.
        unsafe { libc::munmap(free, room) };
        return None;
    }
    let (before, behind) = (start - free as usize, free as usize + room - (start + len));
    // SAFETY: what is left of our own mapping on both sides; a length of 0 is refused and changes nothing.
    unsafe { (libc::munmap(free, before), libc::munmap((start + len) as *mut _, behind)) };
    // Hints. A core dump would take all the memory there is to write down what is not there.
    // SAFETY: our own mapping; the advice changes nothing that it holds.
    unsafe {
        libc::madvise(base, len, libc::MADV_DONTDUMP);
        libc::madvise(base, len, libc::MADV_HUGEPAGE);
    }
    NonNull::new(base.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::Memory;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    fn memory(heap: u64) -> Memory {
        let mut settings = Overrides::default();
        settings.set(VariableId::SharedHeap, OverrideValue::Number(heap), ValueSource::Tool);
        Memory::create_with(2, 0, &settings).expect("a job")
    }

    #[test]
    fn what_one_rank_writes_at_a_place_another_reads_there() {
        let mine = memory(64 << 20);
        let theirs = Memory::attach(mine.segment().fd()).expect("the same job");
        let (heap, other) = (mine.heap().expect("a heap"), theirs.heap().expect("the same heap"));
        let extent = heap.take(mine.segment(), 100_000, 64).expect("room");
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
        let memory = memory(8 << 20);
        let heap = memory.heap().expect("a heap");
        let empty = {
            let extent = heap.take(memory.segment(), 4 << 20, 1).expect("room");
            let taken = memory.segment().taken();
            heap.give(memory.segment(), &extent);
            assert!(memory.segment().taken() <= taken - (4 << 20));
            memory.segment().taken()
        };
        for _ in 0..10 {
            let extent = heap.take(memory.segment(), 4 << 20, 1).expect("room");
            heap.give(memory.segment(), &extent);
        }
        assert_eq!(memory.segment().taken(), empty);
    }

    #[test]
    fn extents_do_not_overlap_and_an_exhausted_heap_gives_nothing() {
        let memory = memory(4 << 20);
        let heap = memory.heap().expect("a heap");
        let mut taken: Vec<Extent> = Vec::new();
        while let Some(extent) = heap.take(memory.segment(), 70_000, 1) {
            assert!(taken.iter().all(|other| other.first + other.granules <= extent.first
                || extent.first + extent.granules <= other.first));
            taken.push(extent);
        }
        assert_eq!(taken.len(), 31, "two granules each of 63");
        heap.give(memory.segment(), &taken[7]);
        let again = heap.take(memory.segment(), 100_000, 1).expect("what was given back");
        assert_eq!(again, taken[7]);
        assert!(heap.take(memory.segment(), usize::MAX, 1).is_none());
    }

    #[test]
    fn alignments_up_to_a_huge_page_are_kept() {
        let memory = memory(64 << 20);
        let heap = memory.heap().expect("a heap");
        for align in [1, 4096, 1 << 17, HUGE_PAGE] {
            let extent = heap.take(memory.segment(), 100, align).expect("room");
            assert!((extent.addr().as_ptr() as usize).is_multiple_of(align));
        }
        assert!(heap.take(memory.segment(), 100, 2 * HUGE_PAGE).is_none());
    }

    #[test]
    fn places_outside_are_refused() {
        let memory = memory(1 << 20);
        let heap = memory.heap().expect("a heap");
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
        assert!(memory(0).heap().is_none());
        let mut settings = Overrides::default();
        settings.set(VariableId::SharedHeap, OverrideValue::Number(1), ValueSource::Tool);
        assert!(Memory::create_with(2, 0, &settings).expect("a job").heap().is_none());
    }

    #[test]
    fn the_words_of_a_run_cover_it_and_nothing_else() {
        for first in [0, 1, 63, 64, 65] {
            for granules in [0, 1, 62, 63, 64, 65, 129] {
                let mut granule = first;
                for (word, mask) in Heap::words(first, granules) {
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
        let heap = memory.heap().expect("a heap");
        let mut all: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4_usize)
                .map(|of| {
                    let (memory, heap) = (&memory, &heap);
                    scope.spawn(move || {
                        (0..60)
                            .filter_map(|i| heap.take(memory.segment(), (of + 1) * 50_000 + i, 1))
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
