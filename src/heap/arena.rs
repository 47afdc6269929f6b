//! Memory of the shared heap as malloc wants it: blocks that this process takes and gives, freed ones kept at hand for a while.
//!
//! A block is a run of whole granules, without memory at first: pages come when they are touched, as malloc's do. What is freed
//! is kept with its pages, up to [`KEPT`] granules, because taking pages anew costs more than anything else here; the oldest goes
//! back to the heap first.
//!
//! Rules:
//! - **Arena rule 1.** `blocks[g]` is the number of granules of the block that begins at granule `g`, 0 if none does. It changes
//!   only in the hands of who has the block: who takes it, and who gives it back or resizes it, which malloc's user does once and
//!   not at the same time.
//! - **Arena rule 2.** A run that is kept is in no block, and its granules stay this process's in the heap's bitmap.
//! - **Arena rule 3.** In a child process ([`Arena::part`]) nothing is taken from the heap, and nothing given back: all of it is
//!   the parent's. The child's blocks are copies, in the same places.
//!
//! Nothing here allocates: it runs within malloc.

use core::ptr::{NonNull, null_mut};
use memmap2::{MmapOptions, MmapRaw};

use crate::heap::{Extent, Heap};
use crate::limits::GRANULE;
use crate::shm::Memory;
use crate::sync::{Arc, AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering};

/// Runs that are kept at most.
const RUNS: usize = 32;
/// Granules that are kept at most: 64 MiB.
const KEPT: u64 = (64 << 20) / GRANULE as u64;
/// Granules of the longest run that is kept: 32 MiB. The C library keeps no larger ones either.
const LONGEST: u64 = KEPT / 2;

/// What was freed and is kept, oldest first.
#[derive(Debug, Default)]
pub struct FreeRuns {
    runs: [(u64, u64); RUNS],
    len: usize,
    granules: u64,
}

impl FreeRuns {
    /// Takes a run for `granules` granules out whose first one `fits`, and of which not more than a quarter would be for nothing:
    /// the shortest, of those the one freed last.
    fn take(&mut self, granules: u64, fits: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let most = granules + granules / 4;
        let runs = self.runs[..self.len].iter().enumerate().rev();
        let (at, _) = runs
            .filter(|(_, (first, len))| (granules..=most).contains(len) && fits(*first))
            .min_by_key(|(_, (_, len))| *len)?;
        Some(self.remove(at))
    }

    fn remove(&mut self, at: usize) -> (u64, u64) {
        let run = self.runs[at];
        self.runs.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.granules -= run.1;
        run
    }

    /// The oldest run, if with `more` granules beside there would be too much.
    fn overflow(&mut self, more: u64) -> Option<(u64, u64)> {
        let full = self.len == RUNS || self.granules + more > KEPT;
        (full && self.len > 0).then(|| self.remove(0))
    }

    fn push(&mut self, run: (u64, u64)) {
        self.runs[self.len] = run;
        self.len += 1;
        self.granules += run.1;
    }
}

/// This process's blocks.
#[derive(Debug)]
pub struct Arena {
    memory: Arc<Memory>,
    /// A number for each granule of the heap (rule 1); address space until it is touched.
    blocks: MmapRaw,
    /// Behind the last granule at which a block ever began.
    end: AtomicU32,
    kept: Mutex<FreeRuns>,
    /// Whether this process is a child of the one that the blocks were taken by (rule 3).
    parted: AtomicBool,
    /// Whether the kernel promises no more memory than there is, so that what is promised must be taken.
    strict: bool,
}

impl Arena {
    /// The pool of a job's heap; `None` if it has none, or this process may not map it. `strict`: blocks get their memory at once.
    #[must_use]
    pub fn new(memory: Arc<Memory>, strict: bool) -> Option<Self> {
        let granules = memory.heap()?.mapped().1 / GRANULE;
        let blocks = MmapOptions::new().len(granules * size_of::<AtomicU32>()).map_anon().ok()?;
        let (end, kept, parted) = (AtomicU32::new(0), Mutex::default(), AtomicBool::new(false));
        Some(Self { memory, blocks: blocks.into(), end, kept, parted, strict })
    }

    /// The job's memory.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    fn heap(&self) -> &Heap {
        self.memory.heap_at_hand().expect("mapped when the pool was made")
    }

    fn block(&self, granule: u64) -> &AtomicU32 {
        assert!((granule as usize) < self.blocks.len() / size_of::<AtomicU32>());
        // SAFETY: within our own mapping, aligned, and touched as an atomic only; it lives as long as the pool.
        unsafe { &*self.blocks.as_mut_ptr().cast::<AtomicU32>().add(granule as usize) }
    }

    /// The granule that a block's address is the first byte of.
    fn granule_of(&self, addr: *const u8) -> Option<u64> {
        let (base, len) = self.heap().mapped();
        let place = (addr as usize).wrapping_sub(base.as_ptr() as usize);
        (place < len && place.is_multiple_of(GRANULE)).then_some((place / GRANULE) as u64)
    }

    /// The block at `addr`, if one begins there.
    fn find(&self, addr: *const u8) -> Option<Extent> {
        let first = self.granule_of(addr)?;
        // Relaxed, here and below: who has a block was told of it by who took it (rule 1).
        let granules = self.block(first).load(Ordering::Relaxed);
        (granules != 0).then(|| self.heap().extent(first, granules.into()))
    }

    fn note(&self, first: u64, granules: u64) {
        // Lossless: a heap has less than 2^32 granules (`shared_heap`).
        self.block(first).store(granules as u32, Ordering::Relaxed);
        self.end.fetch_max(first as u32 + 1, Ordering::Relaxed);
    }

    /// Locks what is kept. Nobody panics with the lock held.
    fn kept(&self) -> MutexGuard<'_, FreeRuns> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a block of `bytes` bytes aligned to `align`, a power of two; all zero if `zeroed`. Null if there is none to be had.
    #[must_use]
    pub fn take(&self, bytes: usize, align: usize, zeroed: bool) -> *mut u8 {
        if self.has_parted() {
            return null_mut();
        }
        let granules = (bytes.max(1).div_ceil(GRANULE)) as u64;
        let fits = |first| {
            let addr = self.heap().extent(first, 0).addr();
            (addr.as_ptr() as usize).is_multiple_of(align)
        };
        let again = self.kept().take(granules, fits);
        if let Some((first, granules)) = again {
            let addr = self.heap().extent(first, granules).addr();
            if zeroed {
                // SAFETY: the run is ours, mapped, and at least as long.
                unsafe { addr.write_bytes(0, bytes) };
            }
            self.note(first, granules);
            return addr.as_ptr();
        }
        let extent = self.fresh(bytes, align).or_else(|| {
            // What is kept may be what is missing.
            self.empty();
            self.fresh(bytes, align)
        });
        let Some(extent) = extent else { return null_mut() };
        let (first, granules) = extent.granules();
        self.note(first, granules);
        extent.addr().as_ptr()
    }

    /// A run that holds zeros (heap rule 2).
    fn fresh(&self, bytes: usize, align: usize) -> Option<Extent> {
        let segment = self.memory.segment();
        if self.strict {
            return self.heap().take(segment, bytes.checked_next_multiple_of(GRANULE)?, align);
        }
        self.heap().take_room(segment, bytes, align)
    }

    /// Gives the block at `addr` back. Whether there was one.
    #[must_use]
    pub fn give(&self, addr: *mut u8) -> bool {
        let Some(extent) = self.find(addr) else { return false };
        let (first, granules) = extent.granules();
        self.note(first, 0);
        if self.has_parted() {
            forget(&extent);
            return true;
        }
        if granules > LONGEST {
            self.heap().give(self.memory.segment(), &extent);
            return true;
        }
        let mut kept = self.kept();
        while let Some(run) = kept.overflow(granules) {
            self.return_run(run);
        }
        kept.push((first, granules));
        true
    }

    fn return_run(&self, (first, granules): (u64, u64)) {
        let heap = self.heap();
        heap.give(self.memory.segment(), &heap.extent(first, granules));
    }

    /// Gives all that is kept back to the heap.
    fn empty(&self) {
        let mut kept = self.kept();
        while kept.len > 0 {
            let run = kept.remove(0);
            self.return_run(run);
        }
    }

    /// Bytes that the block at `addr` has; 0 if there is none.
    #[must_use]
    pub fn bytes(&self, addr: *const u8) -> usize {
        self.find(addr).map_or(0, |extent| extent.granules().1 as usize * GRANULE)
    }

    /// Makes the block at `addr` as long as `bytes` bytes need, in its place. Whether that could be.
    #[must_use]
    pub fn resize(&self, addr: *mut u8, bytes: usize) -> bool {
        let Some(extent) = self.find(addr) else { return false };
        let ((first, granules), needed) = (extent.granules(), bytes.max(1).div_ceil(GRANULE) as u64);
        // A part of the block that is small beside it is not worth a system call.
        if (granules - granules / 4..=granules).contains(&needed) {
            return true;
        }
        if self.has_parted() {
            return needed <= granules;
        }
        if needed < granules {
            self.note(first, needed);
            self.return_run((first + needed, granules - needed));
            return true;
        }
        if self.strict || !self.heap().take_behind(&extent, needed - granules) {
            return false;
        }
        self.note(first, needed);
        true
    }

    fn has_parted(&self) -> bool {
        // Relaxed: written once, in a process that has one thread then.
        self.parted.load(Ordering::Relaxed)
    }

    /// Holds the lock over a fork, so that the child finds it free.
    pub fn hold(&self) -> MutexGuard<'_, FreeRuns> {
        self.kept()
    }

    /// Whether there are blocks whose copies a child needs.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        !self.has_parted() && self.all().next().is_some()
    }

    fn all(&self) -> impl Iterator<Item = Extent> {
        let (heap, end) = (self.heap(), self.end.load(Ordering::Relaxed));
        (0..u64::from(end)).filter_map(move |first| {
            let granules = self.block(first).load(Ordering::Relaxed);
            (granules != 0).then(|| heap.extent(first, granules.into()))
        })
    }

    /// Called in a child process, while the parent stands still: gives it copies of all blocks in their places, and marks it as a
    /// child (rule 3). False if memory for them is not to be had.
    #[must_use]
    pub fn part(&self) -> bool {
        let copied = self.has_parted() || self.all().all(|extent| self.copy_out(&extent));
        self.parted.store(true, Ordering::Relaxed);
        copied
    }

    /// Puts a copy of a block in its place, of the pages that it has.
    fn copy_out(&self, extent: &Extent) -> bool {
        let (heap, fd) = (self.heap(), self.memory.segment().fd());
        let len = extent.granules().1 * GRANULE as u64;
        let start = heap.offset() + extent.granules().0 * GRANULE as u64;
        let Some(copy) = anonymous(len as usize) else { return false };
        let mut at = start;
        while let Some((from, to)) = data(fd, at, start + len) {
            let (skip, bytes) = ((from - start) as usize, (to - from) as usize);
            // SAFETY: both lie within mappings of `len` bytes; the new one is ours alone.
            unsafe {
                copy.as_ptr().add(skip).copy_from_nonoverlapping(extent.addr().as_ptr().add(skip), bytes)
            };
            at = to;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: moves our new mapping over the block, as long as that; who uses the block finds the same bytes.
        let moved = unsafe {
            libc::mremap(copy.as_ptr().cast(), len as usize, len as usize, flags, extent.addr().as_ptr())
        };
        moved != libc::MAP_FAILED
    }
}

/// `len` bytes of private memory.
fn anonymous(len: usize) -> Option<NonNull<u8>> {
    let (both, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping wherever the kernel likes.
    let addr = unsafe { libc::mmap(null_mut(), len, both, flags, -1, 0) };
    if addr == libc::MAP_FAILED { None } else { NonNull::new(addr.cast()) }
}

/// The next bytes of a file between `at` and `end` that are not a hole.
fn data(fd: i32, at: u64, end: u64) -> Option<(u64, u64)> {
    // SAFETY: integers, on a descriptor that the segment keeps open; nobody reads or writes at the file's position.
    let seek = |from: u64, what| unsafe { libc::lseek(fd, from.cast_signed(), what) };
    let from = u64::try_from(seek(at, libc::SEEK_DATA)).ok().filter(|from| *from < end)?;
    let to = u64::try_from(seek(from, libc::SEEK_HOLE)).map_or(end, |to| to.min(end));
    Some((from, to))
}

/// Gives the memory of a child's copy back.
fn forget(extent: &Extent) {
    let bytes = extent.granules().1 as usize * GRANULE;
    // SAFETY: the block is the caller's, and over; in a child it is private memory (rule 3).
    unsafe { libc::madvise(extent.addr().as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    fn pool(heap: u64) -> Arena {
        let mut settings = Overrides::default();
        settings.set(VariableId::SharedHeap, OverrideValue::Number(heap), ValueSource::Tool);
        let memory = Memory::create_with(2, 0, &settings).expect("a job");
        Arena::new(Arc::new(memory), false).expect("a heap")
    }

    #[test]
    fn what_is_freed_is_had_again_with_its_memory_and_zeroed_if_asked() {
        let pool = pool(64 << 20);
        let first = pool.take(300_000, 16, false);
        // SAFETY: a block of that size.
        unsafe { first.write_bytes(7, 300_000) };
        let taken = pool.memory.segment().taken();
        assert!(pool.give(first));
        assert_eq!(pool.memory.segment().taken(), taken, "kept");
        let again = pool.take(290_000, 16, true);
        assert_eq!(again, first);
        // SAFETY: as above.
        let bytes = unsafe { core::slice::from_raw_parts(again, 290_000) };
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn fresh_blocks_have_room_and_no_memory() {
        let pool = pool(64 << 20);
        let small = pool.take(1, 1, false);
        let before = pool.memory.segment().taken();
        let block = pool.take(32 << 20, 4096, true);
        assert!(!block.is_null() && block != small);
        assert!(pool.memory.segment().taken() <= before);
        assert_eq!((pool.bytes(block), pool.bytes(small)), (32 << 20, GRANULE));
        assert_eq!(pool.bytes(block.wrapping_add(GRANULE)), 0, "no block begins there");
    }

    #[test]
    fn what_is_too_much_to_keep_goes_back() {
        let pool = pool(512 << 20);
        for bytes in [40_usize << 20, 24 << 20, 24 << 20, 24 << 20] {
            let blocks = [(); 3].map(|()| pool.take(bytes, 16, false));
            for block in blocks {
                // SAFETY: a block of that size.
                unsafe { block.write_bytes(1, bytes) };
            }
            assert!(blocks.iter().all(|block| pool.give(*block)));
            assert!(pool.memory.segment().taken() <= 66 << 20);
        }
        let many: Vec<_> = (0..100).map(|_| pool.take(GRANULE, 16, false)).collect();
        assert!(many.iter().all(|block| pool.give(*block)));
        assert!(pool.kept().len <= RUNS && pool.kept().granules <= KEPT);
    }

    #[test]
    fn an_exhausted_heap_gives_nothing_until_what_is_kept_is_needed() {
        let pool = pool(32 << 20);
        let whole = pool.take(20 << 20, 16, false);
        assert!(pool.take(20 << 20, 16, false).is_null());
        assert!(pool.give(whole));
        assert!(!pool.take(24 << 20, 16, false).is_null(), "longer than what is kept, so that must go");
        assert!(pool.take(usize::MAX, 16, false).is_null());
    }

    #[test]
    fn a_block_grows_and_shrinks_in_its_place_where_there_is_room() {
        let pool = pool(64 << 20);
        let block = pool.take(1 << 20, 16, false);
        assert!(pool.resize(block, 4 << 20));
        assert_eq!(pool.bytes(block), 4 << 20);
        let behind = pool.take(1 << 20, 16, false);
        assert_eq!(behind, block.wrapping_add(4 << 20));
        assert!(!pool.resize(block, 8 << 20), "somebody is there");
        assert!(pool.resize(block, 100_000));
        assert_eq!(pool.bytes(block), 2 * GRANULE);
        assert!(!pool.resize(block.wrapping_add(1), 1));
        assert!(pool.give(block) && !pool.give(block), "freed once");
    }

    #[test]
    fn alignments_are_kept_by_fresh_blocks_and_by_those_had_again() {
        let pool = pool(64 << 20);
        let odd = [(); 3].map(|()| pool.take(100_000, 16, false));
        assert!(odd.iter().all(|block| pool.give(*block)));
        for align in [16, 4096, 1 << 17, 1 << 20] {
            let block = pool.take(100_000, align, false);
            assert!((block as usize).is_multiple_of(align), "{align}");
        }
        assert!(pool.take(100_000, 1 << 30, false).is_null());
    }

    #[test]
    fn threads_that_take_and_give_at_once_never_have_the_same() {
        let pool = pool(64 << 20);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for turn in 0..500_usize {
                        let bytes = 40_000 + turn * 700;
                        let block = pool.take(bytes, 16, turn % 2 == 0);
                        assert!(!block.is_null());
                        // SAFETY: a block of that size, ours until it is given back.
                        unsafe {
                            block.write_volatile(thread);
                            block.add(bytes - 1).write_volatile(thread);
                            std::thread::yield_now();
                            assert_eq!(
                                (block.read_volatile(), block.add(bytes - 1).read_volatile()),
                                (thread, thread)
                            );
                        }
                        assert!(pool.give(block));
                    }
                });
            }
        });
    }
}
