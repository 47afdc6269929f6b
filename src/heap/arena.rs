//! One process's memory of the shared heap as malloc wants it:
//! blocks that it allocates and frees, the freed ones cached for a while.
//!
//! A block is a run of whole granules, without memory at first: pages come when they are touched, as malloc's do. A
//! freed run is cached with its pages ([`FreeRuns`]), up to [`CACHED`] granules in all.
//!
//! - **Arena rule 1.** `blocks[g]` is the number of granules of the block that begins at granule `g`, 0 if none does.
//!   Only the thread that owns the block changes it: the one that allocates it, and the one that frees or resizes it,
//!   which malloc's user does once and not at the same time.
//! - **Arena rule 2.** A cached run is in no block, and its granules stay this process's in the heap's bitmap.
//! - **Arena rule 3.** In a child process ([`Arena::become_child`]) nothing is allocated from the heap and nothing is
//!   given back: all of it is the parent's. The child's blocks are copies in private memory, at the same addresses.
//!
//! Nothing here allocates: it runs within malloc.

use super::allocator::{Extent, Heap};
use crate::limits::GRANULE;
use crate::shm::{FreeRun, FreeRuns, Memory, Segment};
use crate::sync::{Arc, AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering};
use core::ptr::{NonNull, null_mut};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{SeekFrom, seek};
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap};

/// Most granules that are cached: 64 MiB.
const CACHED: u64 = (64 << 20) / GRANULE as u64;

/// This process's blocks of the shared heap.
#[derive(Debug)]
pub struct Arena {
    memory: Arc<Memory>,
    /// A number for each granule of the heap (arena rule 1); address space until it is touched.
    blocks: MmapRaw,
    /// Behind the last granule at which a block ever began.
    end: AtomicU32,
    free_runs: Mutex<FreeRuns>,
    /// Whether this process is a child of the one that allocated the blocks (arena rule 3).
    is_child: AtomicBool,
    /// Whether the kernel promises no more memory than there is, so that what is promised must be reserved.
    strict: bool,
}

impl Arena {
    /// Makes the arena of a job's heap; `None` if the job has none, or this process cannot map it. `strict`: blocks get
    /// their memory at once.
    #[must_use]
    pub fn new(memory: Arc<Memory>, strict: bool) -> Option<Self> {
        let granules = Heap::of(&memory)?.granules() as usize;
        let blocks = MmapOptions::new().len(granules * size_of::<AtomicU32>()).map_anon().ok()?;
        let (end, free_runs, is_child) = (AtomicU32::new(0), Mutex::default(), AtomicBool::new(false));
        Some(Self { memory, blocks: blocks.into(), end, free_runs, is_child, strict })
    }

    /// The heap that the blocks lie in.
    ///
    /// # Panics
    /// Never: it was mapped when the arena was made.
    #[must_use]
    pub fn heap(&self) -> Heap<'_> {
        Heap::mapped(&self.memory).expect("mapped when the arena was made")
    }

    fn segment(&self) -> &Segment {
        self.memory.segment()
    }

    fn block(&self, granule: u64) -> &AtomicU32 {
        assert!((granule as usize) < self.blocks.len() / size_of::<AtomicU32>());
        // SAFETY: the assertion says that the word lies within `blocks`, a mapping that lives as long as the arena and
        // starts on a page. Zeros are an AtomicU32, and all accesses are atomic.
        unsafe { &*self.blocks.as_mut_ptr().cast::<AtomicU32>().add(granule as usize) }
    }

    /// The granule that begins at `addr`, if one does.
    fn granule_at(&self, addr: *const u8) -> Option<u64> {
        let region = self.heap().region();
        let place = (addr as usize).wrapping_sub(region.base().as_ptr() as usize);
        (place < region.len() as usize && place.is_multiple_of(GRANULE)).then_some((place / GRANULE) as u64)
    }

    /// The block that begins at `addr`, if one does.
    fn find(&self, addr: *const u8) -> Option<Extent> {
        let first = self.granule_at(addr)?;
        // Relaxed, here and below: whoever passes a block to another thread orders that (arena rule 1).
        let granules = self.block(first).load(Ordering::Relaxed);
        (granules != 0).then(|| self.heap().extent(first, granules.into()))
    }

    fn set_block(&self, first: u64, granules: u64) {
        // Lossless: a heap has less than 2^32 granules (the variable `shared_heap`).
        self.block(first).store(granules as u32, Ordering::Relaxed);
        self.end.fetch_max(first as u32 + 1, Ordering::Relaxed);
    }

    /// Locks the cached runs. Nobody panics with the lock held.
    fn lock(&self) -> MutexGuard<'_, FreeRuns> {
        self.free_runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Allocates a block of `bytes` bytes aligned to `align`, a power of two; all zero if `zeroed`.
    /// Null if there is none to be had.
    #[must_use]
    pub fn allocate(&self, bytes: usize, align: usize, zeroed: bool) -> *mut u8 {
        if self.is_child() {
            return null_mut();
        }
        let granules = (bytes.max(1).div_ceil(GRANULE)) as u64;
        let fits = |first| {
            let addr = self.heap().extent(first, 0).addr();
            (addr.as_ptr() as usize).is_multiple_of(align)
        };
        let cached = self.lock().reuse(granules, fits);
        if let Some(FreeRun { first, granules, .. }) = cached {
            let addr = self.heap().extent(first, granules).addr();
            if zeroed {
                // SAFETY: the run is mapped, at least `bytes` long, and in no block (arena rule 2),
                // so nobody else touches it.
                unsafe { addr.write_bytes(0, bytes) };
            }
            self.set_block(first, granules);
            return addr.as_ptr();
        }
        let extent = self.allocate_fresh(bytes, align).or_else(|| {
            // What is cached may be what is missing.
            self.empty_cache();
            self.allocate_fresh(bytes, align)
        });
        let Some(extent) = extent else { return null_mut() };
        let (first, granules) = extent.granules();
        self.set_block(first, granules);
        extent.addr().as_ptr()
    }

    /// Allocates a run from the heap; it holds zeros (heap rule 2).
    fn allocate_fresh(&self, bytes: usize, align: usize) -> Option<Extent> {
        if self.strict {
            return self.heap().allocate(bytes.checked_next_multiple_of(GRANULE)?, align);
        }
        self.heap().allocate_space(bytes, align)
    }

    /// Frees the block at `addr`. Returns whether there was one.
    #[must_use]
    pub fn free(&self, addr: *mut u8) -> bool {
        let Some(extent) = self.find(addr) else { return false };
        let (first, granules) = extent.granules();
        self.set_block(first, 0);
        if self.is_child() {
            drop_pages(&extent);
            return true;
        }
        self.lock().keep(FreeRun { first, granules, reserved: 0 }, CACHED, |run| self.return_run(run));
        true
    }

    fn return_run(&self, FreeRun { first, granules, .. }: FreeRun) {
        let heap = self.heap();
        heap.give_back(&heap.extent(first, granules));
    }

    /// Gives all cached runs back to the heap.
    fn empty_cache(&self) {
        let mut cached = self.lock();
        while let Some(run) = cached.take() {
            self.return_run(run);
        }
    }

    /// Returns how many bytes the block at `addr` has; 0 if there is none.
    #[must_use]
    pub fn bytes(&self, addr: *const u8) -> usize {
        self.find(addr).map_or(0, |extent| extent.granules().1 as usize * GRANULE)
    }

    /// Makes the block at `addr` as long as `bytes` bytes need, in its place. Returns whether that was possible.
    #[must_use]
    pub fn resize(&self, addr: *mut u8, bytes: usize) -> bool {
        let Some(extent) = self.find(addr) else { return false };
        let ((first, granules), needed) = (extent.granules(), bytes.max(1).div_ceil(GRANULE) as u64);
        // A small part of a block is not worth a system call.
        if (granules - granules / 4..=granules).contains(&needed) {
            return true;
        }
        if self.is_child() {
            return needed <= granules;
        }
        if needed < granules {
            self.set_block(first, needed);
            self.return_run(FreeRun { first: first + needed, granules: granules - needed, reserved: 0 });
            return true;
        }
        if self.strict || !self.heap().extend(&extent, needed - granules) {
            return false;
        }
        self.set_block(first, needed);
        true
    }

    fn is_child(&self) -> bool {
        // Relaxed: written once, while the process has one thread.
        self.is_child.load(Ordering::Relaxed)
    }

    /// Holds the lock over a fork, so that the child finds it free.
    pub fn hold(&self) -> MutexGuard<'_, FreeRuns> {
        self.lock()
    }

    /// Returns whether there are blocks that a child must copy.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        !self.is_child() && self.blocks().next().is_some()
    }

    fn blocks(&self) -> impl Iterator<Item = Extent> {
        let (heap, end) = (self.heap(), self.end.load(Ordering::Relaxed));
        (0..u64::from(end)).filter_map(move |first| {
            let granules = self.block(first).load(Ordering::Relaxed);
            (granules != 0).then(|| heap.extent(first, granules.into()))
        })
    }

    /// Called in a child process, while its parent waits: puts copies of all blocks in their places, and marks the
    /// arena as a child's (arena rule 3). False if there is no memory for the copies.
    #[must_use]
    pub fn become_child(&self) -> bool {
        let copied = self.is_child() || self.blocks().all(|extent| self.copy_out(&extent));
        self.is_child.store(true, Ordering::Relaxed);
        copied
    }

    /// Replaces a block by a private copy of the pages that it has.
    fn copy_out(&self, extent: &Extent) -> bool {
        let (first, granules) = extent.granules();
        let (start, len) = (self.heap().offset_of(first), granules * GRANULE as u64);
        let Some(copy) = anonymous(len as usize) else { return false };
        let mut at = start;
        while let Some((from, to)) = self.next_data(at, start + len) {
            let (skip, bytes) = ((from - start) as usize, (to - from) as usize);
            // SAFETY: `from..to` lies in `start..start + len`, so both ends lie within mappings of `len` bytes. The new
            // mapping is ours alone, and the parent, which could write to the block, waits.
            unsafe {
                copy.as_ptr().add(skip).copy_from_nonoverlapping(extent.addr().as_ptr().add(skip), bytes)
            };
            at = to;
        }
        // SAFETY: the new mapping is as long as the block's, to which nobody else has a pointer; it has the same bytes.
        unsafe { put_over(copy, extent.addr().as_ptr(), len as usize) }
    }

    /// The next bytes of the job's file between `at` and `end` that are not a hole.
    fn next_data(&self, at: u64, end: u64) -> Option<(u64, u64)> {
        let file = self.segment().file();
        let from = seek(file, SeekFrom::Data(at)).ok().filter(|from| *from < end)?;
        let to = seek(file, SeekFrom::Hole(from)).map_or(end, |to| to.min(end));
        Some((from, to))
    }
}

/// `len` bytes of private memory.
pub(super) fn anonymous(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let addr =
        unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    NonNull::new(addr.ok()?.cast())
}

/// Moves a mapping of `len` bytes to `place`, instead of what is mapped there. If the kernel refuses, it is unmapped.
///
/// # Safety
/// It is a mapping of its own, to which nobody else has a pointer, and `len` bytes are mapped at `place`: whoever has
/// pointers there finds the same bytes.
pub(super) unsafe fn put_over(mapping: NonNull<u8>, place: *mut u8, len: usize) -> bool {
    let mapping = mapping.as_ptr().cast();
    // SAFETY: a mapping of so many bytes, moved over as many that are mapped, as the caller promises.
    let moved = unsafe { mremap_fixed(mapping, len, len, MremapFlags::MAYMOVE, place.cast()) };
    if moved.is_err() {
        // SAFETY: the new mapping has stayed where it is, and nobody else has a pointer to it.
        let _ = unsafe { munmap(mapping, len) };
    }
    moved.is_ok()
}

/// Gives the memory of a child's copy back.
fn drop_pages(extent: &Extent) {
    let bytes = extent.granules().1 as usize * GRANULE;
    // SAFETY: the block is being freed, so nobody reads it again; in a child its pages are private (arena rule 3).
    let _ = unsafe { madvise(extent.addr().as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::shm::free_runs::RUNS;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    fn arena(heap: u64) -> Arena {
        let mut overrides = Overrides::default();
        overrides.set(VariableId::SharedHeap, OverrideValue::Number(heap), ValueSource::Tool);
        let memory = Memory::create_with(2, 0, &overrides).expect("a job");
        Arena::new(Arc::new(memory), false).expect("a heap")
    }

    #[test]
    fn what_is_freed_is_had_again_with_its_memory_and_zeroed_if_asked() {
        let arena = arena(64 << 20);
        let first = arena.allocate(300_000, 16, false);
        // SAFETY: a block of that size.
        unsafe { first.write_bytes(7, 300_000) };
        let taken = arena.memory.segment().taken();
        assert!(arena.free(first));
        assert_eq!(arena.memory.segment().taken(), taken, "kept");
        let again = arena.allocate(290_000, 16, true);
        assert_eq!(again, first);
        // SAFETY: a block of that size, ours.
        let bytes = unsafe { core::slice::from_raw_parts(again, 290_000) };
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn fresh_blocks_have_room_and_no_memory() {
        let arena = arena(64 << 20);
        let small = arena.allocate(1, 1, false);
        let before = arena.memory.segment().taken();
        let block = arena.allocate(32 << 20, 4096, true);
        assert!(!block.is_null() && block != small);
        assert!(arena.memory.segment().taken() <= before);
        assert_eq!((arena.bytes(block), arena.bytes(small)), (32 << 20, GRANULE));
        assert_eq!(arena.bytes(block.wrapping_add(GRANULE)), 0, "no block begins there");
    }

    #[test]
    fn what_is_too_much_to_keep_goes_back() {
        let arena = arena(512 << 20);
        for bytes in [40_usize << 20, 24 << 20, 24 << 20, 24 << 20] {
            let blocks = [(); 3].map(|()| arena.allocate(bytes, 16, false));
            for block in blocks {
                // SAFETY: a block of that size.
                unsafe { block.write_bytes(1, bytes) };
            }
            assert!(blocks.iter().all(|block| arena.free(*block)));
            assert!(arena.memory.segment().taken() <= 66 << 20);
        }
        let many: Vec<_> = (0..100).map(|_| arena.allocate(GRANULE, 16, false)).collect();
        assert!(many.iter().all(|block| arena.free(*block)));
        let (runs, granules) = arena.lock().kept();
        assert!(runs <= RUNS && granules <= CACHED);
    }

    #[test]
    fn an_exhausted_heap_gives_nothing_until_what_is_kept_is_needed() {
        let arena = arena(32 << 20);
        let whole = arena.allocate(20 << 20, 16, false);
        assert!(arena.allocate(20 << 20, 16, false).is_null());
        assert!(arena.free(whole));
        assert!(!arena.allocate(24 << 20, 16, false).is_null(), "longer than what is kept, so that must go");
        assert!(arena.allocate(usize::MAX, 16, false).is_null());
    }

    #[test]
    fn a_block_grows_and_shrinks_in_its_place_where_there_is_room() {
        let arena = arena(64 << 20);
        let block = arena.allocate(1 << 20, 16, false);
        assert!(arena.resize(block, 4 << 20));
        assert_eq!(arena.bytes(block), 4 << 20);
        let behind = arena.allocate(1 << 20, 16, false);
        assert_eq!(behind, block.wrapping_add(4 << 20));
        assert!(!arena.resize(block, 8 << 20), "somebody is there");
        assert!(arena.resize(block, 100_000));
        assert_eq!(arena.bytes(block), 2 * GRANULE);
        assert!(!arena.resize(block.wrapping_add(1), 1));
        assert!(arena.free(block) && !arena.free(block), "freed once");
    }

    #[test]
    fn alignments_are_kept_by_fresh_blocks_and_by_those_had_again() {
        let arena = arena(64 << 20);
        let odd = [(); 3].map(|()| arena.allocate(100_000, 16, false));
        assert!(odd.iter().all(|block| arena.free(*block)));
        for align in [16, 4096, 1 << 17, 1 << 20] {
            let block = arena.allocate(100_000, align, false);
            assert!((block as usize).is_multiple_of(align), "{align}");
        }
        assert!(arena.allocate(100_000, 1 << 30, false).is_null());
    }

    #[test]
    fn threads_that_take_and_give_at_once_never_have_the_same() {
        let arena = arena(64 << 20);
        std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3_u8].map(|thread| {
                let arena = &arena;
                scope.spawn(move || {
                    for turn in 0..500_usize {
                        let bytes = 40_000 + turn * 700;
                        let block = arena.allocate(bytes, 16, turn % 2 == 0);
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
                        assert!(arena.free(block));
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
