//! Remapped buffers: buffers of a program's own memory that messages use again and again are moved into the shared heap
//! under the program's hands, so that their messages are copied once, as those of memory from MPI_Alloc_mem.
//!
//! The pages that a message fills are copied into an extent of the heap, which is then mapped in their place. The
//! program sees what it saw, at the same addresses. While a message is under way nobody may write to a send's buffer,
//! or touch a receive's (MPI 5.0 §3.7.2), so nothing is lost in between; and its neighbours in the first and the last
//! page, which may be used, stay where they are:
//!
//! - **Remap rule 1.** Only pages that lie in the buffer of an operation that is under way are remapped, and neither
//!   the page that its first byte lies in nor that of its last. So whoever has made the mapping, malloc or the program,
//!   still finds its first and its last page; and the kernel refuses to move or to resize it as one
//!   (`mremap`), where malloc copies.
//! - **Remap rule 2.** The extent has a page before and one behind the remapped ones, for the beginning and the end of
//!   a message, its *edges*. They are copied there when it is sent, and from there when a peer has written them.
//! - **Remap rule 3.** The program may unmap the pages, and other memory may lie there since. So the kernel is asked
//!   each time whether it is still the extent that lies there. If no page of it is, it is given back. What a peer has
//!   read in the meantime it throws away.
//! - **Remap rule 4.** Memory of the heap is not zero after `madvise(MADV_DONTNEED)`, as private memory is. The C
//!   library's malloc does not rely on that; others do. So only memory that is known to be that malloc's is remapped,
//!   and static memory ([`super::origin`]).
//! - **Remap rule 5.** Memory of windows stays where it is: others may write to it at any time ([`super::kept`]).
//! - **Remap rule 6.** A child process gets copies of the pages, as of all blocks of the heap ([`super::fork`]).
//!
//! **Process-wide state**: `REMAPPED`, written once and never freed, for the pages stay what they are as long as the
//! process lives.

use super::allocator::{Extent, Heap};
use super::mappings::{FileId, Mapping, Mappings, MemoryKind};
use super::remapped_ranges::{RemappedRange, RemappedState, bytes_of, overlap};
use super::{arena, fork, kept, origin};
use crate::limits::{GRANULE, PAGE};
use crate::shm::Memory;
use crate::sync::{Arc, Mutex, MutexGuard};
use core::ffi::c_void;
use core::ops::Range;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::sync::OnceLock;

/// Bytes from which a message's buffer is remapped: of shorter ones the edges are too large a part.
const SHORTEST: usize = 32 << 10;
/// Bytes from which a buffer stays where it is: while it is remapped its pages are there twice.
const TOO_LONG: usize = 64 << 20;
/// Most bytes of all remapped buffers of a process.
const MOST: usize = 256 << 20;
/// Most remapped buffers of a process: each takes three mappings where there was one.
const MOST_RANGES: usize = 512;

/// The remapped buffers of this process; `None` where there can be none.
static REMAPPED: OnceLock<Option<RemappedBuffers>> = OnceLock::new();

/// Returns the remapped buffers of this process, a process of the job of `memory`. `None` where there can be none: the
/// kernel does not say what is mapped, or its pages are not as long as ours.
#[must_use]
pub fn remapped_buffers(memory: &Arc<Memory>) -> Option<&'static RemappedBuffers> {
    let buffers = REMAPPED.get_or_init(|| {
        may_remap().then(|| RemappedBuffers::new(Arc::clone(memory)))?.filter(|_| fork::watch())
    });
    // A process may join another job later.
    buffers.as_ref().filter(|buffers| buffers.memory.header().job_id() == memory.header().job_id())
}

/// Returns whether this kernel lets a process know what it has mapped where, and has pages as long as ours.
#[must_use]
pub fn may_remap() -> bool {
    rustix::param::page_size() == PAGE && Mappings::open().is_some()
}

/// The remapped buffers of this process, if it has any.
pub(super) fn existing() -> Option<&'static RemappedBuffers> {
    REMAPPED.get()?.as_ref()
}

/// The addresses of a buffer that may be remapped, for its length.
fn long_buffer(addr: *const u8, len: usize) -> Option<Range<usize>> {
    let end = addr.addr().checked_add(len).filter(|_| (SHORTEST..TOO_LONG).contains(&len))?;
    Some(addr.addr()..end)
}

/// How the buffer of an operation is used.
#[derive(Debug, Clone, Copy)]
pub struct BufferUse {
    /// Whether peers read it; else they write to it.
    pub is_sent: bool,
    /// Whether no peer reads what another operation has announced.
    pub is_quiet: bool,
}

/// Buffers of one process that lie in the shared heap of its job, though the program has them from elsewhere.
#[derive(Debug)]
pub struct RemappedBuffers {
    memory: Arc<Memory>,
    file: FileId,
    mappings: Mappings,
    state: Mutex<RemappedState>,
}

impl RemappedBuffers {
    /// `None` if the kernel does not say what is mapped.
    fn new(memory: Arc<Memory>) -> Option<Self> {
        let (file, mappings) = (FileId::of(memory.segment().file())?, Mappings::open()?);
        let state = RemappedState::default();
        Some(Self { memory, file, mappings, state: Mutex::new(state) })
    }

    /// Locks the state. Nobody panics with the lock held.
    pub(super) fn lock(&self) -> MutexGuard<'_, RemappedState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns where in the heap the `len` bytes at `addr` lie, the buffer of an operation that is under way, for a
    /// peer that reads or writes them; `None` if it lies elsewhere. A buffer that is used for the `after`th time is
    /// remapped.
    ///
    /// # Safety
    /// The bytes are the buffer of an operation that has begun: nobody writes to them before it ends, and until then
    /// they may be read; and nobody but this library accesses them, if they are not sent.
    #[must_use]
    pub unsafe fn place_of(
        &self,
        addr: *const u8,
        len: usize,
        buffer_use: BufferUse,
        after: u64,
    ) -> Option<u64> {
        let addresses = long_buffer(addr, len)?;
        let mut state = self.lock();
        let at = match self.find(&mut state, &addresses) {
            Some(at) => at,
            None if state.is_due(&addresses, after) => {
                if buffer_use.is_quiet && state.exposed == 0 {
                    self.give_back_retired(&mut state);
                }
                // SAFETY: the caller promises what remap rule 1 asks for.
                unsafe { self.remap(&mut state, &addresses)? }
            }
            None => return None,
        };
        // SAFETY: the bytes are a buffer's that an operation uses, as the caller promises.
        unsafe { self.place_in(&state.ranges[at], addr, len, buffer_use.is_sent) }
    }

    /// Returns what [`place_of`](Self::place_of) does for a buffer that is sent, if it has been remapped. Whether it
    /// still lies there is for [`is_there`](Self::is_there) to say.
    ///
    /// # Safety
    /// As for [`place_of`](Self::place_of).
    #[must_use]
    pub unsafe fn unchecked_place_of(&self, addr: *const u8, len: usize) -> Option<u64> {
        let addresses = long_buffer(addr, len)?;
        let state = self.lock();
        // SAFETY: the bytes are sent, so they may be read, and nobody writes to them, as the caller promises.
        unsafe { self.place_in(state.range_of(&addresses)?, addr, len, true) }
    }

    /// Returns whether the `len` bytes at `addr` lie where [`unchecked_place_of`](Self::unchecked_place_of) has said.
    #[must_use]
    pub fn is_there(&self, addr: *const u8, len: usize) -> bool {
        long_buffer(addr, len).is_some_and(|addresses| self.find(&mut self.lock(), &addresses).is_some())
    }

    /// Returns where a buffer that is in reach of a range lies in the heap, with its edges if it is sent.
    ///
    /// # Safety
    /// As for [`place_of`](Self::place_of).
    unsafe fn place_in(
        &self,
        range: &RemappedRange,
        addr: *const u8,
        len: usize,
        is_sent: bool,
    ) -> Option<u64> {
        let addresses = addr.addr()..addr.addr() + len;
        if is_sent {
            for edge in range.edges(&addresses) {
                let (from, to) = (addr.wrapping_add(edge.start - addresses.start), range.in_heap(edge.start));
                // SAFETY: the edge is a part of the message, which may be read, as the caller promises; the extent has
                // room for it, and where two messages have the same edge they have the same bytes.
                unsafe { copy_what_differs(from, to, edge.len()) };
            }
        }
        self.heap()?.place_of(range.in_heap(addresses.start), len)
    }

    /// Bytes of the program's pages that lie in the heap.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().ranges.iter().map(|range| range.pages.len() as u64).sum()
    }

    /// How many buffers have been remapped so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().made
    }

    /// Counts a use of the buffer of an operation for which no peer asks where it lies: it is remapped now, if it has
    /// been used often enough.
    ///
    /// # Safety
    /// As for [`place_of`](Self::place_of).
    pub unsafe fn count_use(&self, addr: *const u8, len: usize, after: u64) {
        let Some(addresses) = long_buffer(addr, len) else { return };
        let mut state = self.lock();
        if state.range_of(&addresses).is_none() && state.is_due(&addresses, after) {
            // SAFETY: the caller promises what remap rule 1 asks for.
            _ = unsafe { self.remap(&mut state, &addresses) };
        }
    }

    /// Keeps places that peers know readable until it is dropped, whatever is remapped meanwhile.
    #[must_use]
    pub fn expose(&'static self) -> ExposedPlaces {
        self.lock().exposed += 1;
        ExposedPlaces(self)
    }

    /// Copies what a peer has written of the message in the `len` bytes at `addr`, its bytes `written`, from the edges
    /// to the buffer, whose place [`place_of`](Self::place_of) has given.
    ///
    /// # Safety
    /// The bytes are those of a receive that is under way, so that nobody but this library accesses them.
    pub unsafe fn fetch_edges(&self, addr: *mut u8, len: usize, written: Range<usize>) {
        if len < SHORTEST {
            return;
        }
        let (state, addresses) = (self.lock(), addr.addr()..addr.addr().saturating_add(len));
        let Some(range) = state.range_of(&addresses) else { return };
        for edge in range.edges(&(addresses.start + written.start..addresses.start + written.end)) {
            // SAFETY: the edge is a part of the message, which nobody else accesses, as the caller promises; the extent
            // is mapped, and what lies there are bytes.
            unsafe {
                let to = addr.wrapping_add(edge.start - addresses.start);
                core::ptr::copy_nonoverlapping(range.in_heap(edge.start), to, edge.len());
            }
        }
    }

    fn heap(&self) -> Option<Heap<'_>> {
        Heap::of(&self.memory)
    }

    /// The range that these addresses are in reach of, if all pages between its edges still are the heap's.
    fn find(&self, state: &mut RemappedState, addresses: &Range<usize>) -> Option<usize> {
        let at = state.index_of(addresses)?;
        let range = &state.ranges[at];
        let used = addresses.start.max(range.pages.start)..addresses.end.min(range.pages.end);
        match self.mappings.at(used.start) {
            Ok(Some(mapping)) if self.shows(&mapping, range) && mapping.addresses.end >= used.end => Some(at),
            Ok(_) => {
                self.forget(state, at);
                None
            }
            // Not to be known; perhaps the program has closed our descriptor.
            Err(_) => None,
        }
    }

    /// Whether a mapping shows what is at these addresses since they were remapped.
    fn shows(&self, mapping: &Mapping, range: &RemappedRange) -> bool {
        let begin = self.offset_of(range) as i128 - range.pages.start as i128;
        let shown =
            |(file, offset)| file == self.file && offset as i128 - mapping.addresses.start as i128 == begin;
        mapping.file.is_some_and(shown)
    }

    /// Where in the job's file the pages of a range begin.
    fn offset_of(&self, range: &RemappedRange) -> u64 {
        let skipped = (range.pages.start - range.origin) as u64;
        self.heap().map_or(0, |heap| heap.offset_of(range.extent.granules().0) + skipped)
    }

    /// Calls `each` for the pages of a range that still show what they show since they were remapped, run by run, until
    /// it returns false. Returns whether it never did.
    ///
    /// # Errors
    /// If the kernel does not answer.
    fn shown(
        &self,
        mappings: &Mappings,
        range: &RemappedRange,
        mut each: impl FnMut(Range<usize>) -> bool,
    ) -> std::io::Result<bool> {
        let Range { mut start, end } = range.pages;
        while start < end {
            let Some(mapping) = mappings.at_or_behind(start)? else { break };
            let pages = start.max(mapping.addresses.start)..end.min(mapping.addresses.end);
            start = mapping.addresses.end;
            if self.shows(&mapping, range) && !pages.is_empty() && !each(pages) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives a range back to the heap, if the program has unmapped all of it (remap rule 3).
    fn forget(&self, state: &mut RemappedState, at: usize) {
        let is_gone = self.shown(&self.mappings, &state.ranges[at], |_| false);
        if is_gone.unwrap_or(false) {
            let range = state.ranges.remove(at);
            self.give_back(state, range.extent);
        }
    }

    /// Gives an extent back to the heap, if no other range has it.
    fn give_back(&self, state: &mut RemappedState, extent: Arc<Extent>) {
        if let (Some(extent), Some(heap)) = (Arc::try_unwrap(extent).ok(), self.heap()) {
            state.bytes -= bytes_of(&extent);
            heap.give_back(&extent);
        }
    }

    /// Gives what peers may have read until now back to the heap.
    fn give_back_retired(&self, state: &mut RemappedState) {
        core::mem::take(&mut state.retired).into_iter().for_each(|extent| self.give_back(state, extent));
    }

    /// Remaps the pages between the edges of a buffer.
    ///
    /// # Safety
    /// As for [`place_of`](Self::place_of).
    #[cold]
    unsafe fn remap(&self, state: &mut RemappedState, addresses: &Range<usize>) -> Option<usize> {
        let start = (addresses.start + 1).next_multiple_of(PAGE);
        let pages = start..(addresses.end - 1) / PAGE * PAGE;
        // What the program has unmapped since is in nobody's way.
        (0..state.ranges.len()).rev().for_each(|at| self.forget(state, at));
        let heap = self.heap()?;
        // Most of the heap is for what programs ask for: MPI_Alloc_mem, windows.
        let part = heap.granules() as usize * GRANULE / (4 * self.memory.places_in_use().max(1) as usize);
        let room = MOST.min(part).saturating_sub(state.bytes);
        let fits = !state.is_closed && state.ranges.len() < MOST_RANGES && pages.len() <= room;
        if !fits || kept::are_kept(&pages) || !self.is_movable(state, addresses, &pages) {
            return None;
        }
        state.is_closed = Mappings::has_devices();
        if state.is_closed {
            return None;
        }
        let extent = heap.allocate(pages.len() + 2 * PAGE, PAGE)?;
        let range =
            RemappedRange { pages: pages.clone(), extent: Arc::new(extent), origin: pages.start - PAGE };
        let (offset, to) = (self.offset_of(&range), range.in_heap(pages.start));
        // SAFETY: the pages are a part of the message, which may be read, and the extent has room for them.
        unsafe { core::ptr::copy_nonoverlapping(pages.start as *const u8, to, pages.len()) };
        // SAFETY: pages between a buffer's first and last, which nobody may write to now (remap rule 1); the extent has
        // the same bytes.
        if !unsafe { self.replace(&pages, offset) } {
            // SAFETY: the same pages, and the extent has what they had.
            unsafe { self.restore(&pages, to) };
            heap.give_back(&range.extent);
            return None;
        }
        state.bytes += bytes_of(&range.extent);
        state.made += 1;
        state.cut_out(&pages);
        let at = state.ranges.partition_point(|range| range.pages.start < pages.start);
        state.ranges.insert(at, range);
        Some(at)
    }

    /// The address from which on private memory and remapped buffers lie without a gap up to a mapping, as far as the
    /// beginning of a block is looked for.
    fn mapped_from(&self, mapping: &Mapping, buffer: usize) -> usize {
        let mut start = mapping.addresses.start;
        while start > buffer.saturating_sub(origin::FAR) {
            match self.mappings.at(start - 1) {
                Ok(Some(before))
                    if before.kind == MemoryKind::Private
                        || before.file.is_some_and(|(file, _)| file == self.file) =>
                {
                    start = before.addresses.start;
                }
                _ => break,
            }
        }
        start
    }

    /// Whether these pages of a buffer may be remapped: memory of malloc, static memory, and what other buffers
    /// have been remapped to.
    fn is_movable(&self, state: &RemappedState, buffer: &Range<usize>, pages: &Range<usize>) -> bool {
        let is_own = |mapping: &Mapping| {
            let overlapping = |range: &&RemappedRange| overlap(&range.pages, pages);
            state.ranges.iter().filter(overlapping).any(|range| self.shows(mapping, range))
        };
        let mut is_known = None;
        let mut start = pages.start;
        while start < pages.end {
            match self.mappings.at(start) {
                Ok(Some(mapping)) if mapping.kind == MemoryKind::Break || is_own(&mapping) => {
                    start = mapping.addresses.end;
                }
                Ok(Some(mapping)) if mapping.kind == MemoryKind::Private => {
                    if !*is_known.get_or_insert_with(|| {
                        origin::is_known(buffer, self.mapped_from(&mapping, buffer.start))
                    }) {
                        return false;
                    }
                    start = mapping.addresses.end;
                }
                _ => return false,
            }
        }
        true
    }

    /// Maps the job's file from `offset` on in the place of these pages.
    ///
    /// # Safety
    /// The process sees the same bytes there before and after.
    unsafe fn replace(&self, pages: &Range<usize>, offset: u64) -> bool {
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
        let (at, file) = (pages.start as *mut c_void, self.memory.segment().file());
        // SAFETY: whole pages, where the process sees the same bytes as before, as the caller promises.
        unsafe { mmap(at, pages.len(), ProtFlags::READ | ProtFlags::WRITE, flags, file, offset) }.is_ok()
    }

    /// Puts private memory with what is at `from` in the place of pages that the kernel has unmapped, and not replaced.
    ///
    /// # Safety
    /// The pages belong to a buffer that nobody writes to; `from` has what they had.
    unsafe fn restore(&self, pages: &Range<usize>, from: *const u8) {
        if !matches!(self.mappings.at(pages.start), Ok(None)) {
            return;
        }
        let (at, flags) = (pages.start as *mut c_void, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: nothing is mapped there since the kernel has unmapped it.
        let mapped = unsafe { mmap_anonymous(at, pages.len(), ProtFlags::READ | ProtFlags::WRITE, flags) };
        if mapped.is_err() {
            fork::die(b"perusal: the kernel has unmapped a buffer and has no memory to map it again\n");
        }
        // SAFETY: `from` has so many bytes, as the caller promises; the pages have just been mapped.
        unsafe { core::ptr::copy_nonoverlapping(from, pages.start as *mut u8, pages.len()) };
    }

    /// Called in a child process, while its parent waits: puts private copies in the place of all remapped pages. False
    /// if there is no memory for them.
    pub(super) fn become_child(&self, state: &mut RemappedState) -> bool {
        let copy = |pages: Range<usize>| {
            let (from, len) = (pages.start as *mut u8, pages.len());
            // SAFETY: both are mapped and so long, and the parent, which could write to the pages, waits.
            arena::anonymous(len).is_some_and(|copy| unsafe {
                copy.as_ptr().copy_from_nonoverlapping(from, len);
                arena::put_over(copy, from, len)
            })
        };
        // Our own mappings: those that are open are the parent's.
        let ranges = core::mem::take(&mut state.ranges);
        let all = |mappings: Mappings| {
            ranges.iter().all(|range| self.shown(&mappings, range, copy).unwrap_or(false))
        };
        state.bytes = 0;
        ranges.is_empty() || Mappings::open().is_some_and(all)
    }
}

/// Places of remapped buffers that peers know.
#[derive(Debug)]
pub struct ExposedPlaces(&'static RemappedBuffers);

impl ExposedPlaces {
    /// The buffers that the places belong to.
    #[must_use]
    pub fn buffers(&self) -> &'static RemappedBuffers {
        self.0
    }
}

impl Drop for ExposedPlaces {
    fn drop(&mut self) {
        self.0.lock().exposed -= 1;
    }
}

/// Copies bytes, unless they are there already: then what a peer has of them in its cache stays there.
///
/// # Safety
/// `from` is valid for reads and `to` for both; what peers write there meanwhile is any bytes.
unsafe fn copy_what_differs(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both have so many bytes, as the caller promises. `memcmp` takes any; what it says of bytes that change
    // makes no difference.
    unsafe {
        if libc::memcmp(from.cast(), to.cast_const().cast(), len) != 0 {
            core::ptr::copy_nonoverlapping(from, to, len);
        }
    }
}

#[cfg(all(test, not(perusal_loom), not(miri)))]
mod tests {
    use super::*;
    use crate::variables::{OverrideValue, Overrides, ValueSource, VariableId};

    const SENT: BufferUse = BufferUse { is_sent: true, is_quiet: true };

    #[test]
    fn a_buffer_that_is_used_again_lies_in_the_heap_and_is_given_back_when_it_is_unmapped() {
        let mut overrides = Overrides::default();
        overrides.set(VariableId::SharedHeap, OverrideValue::Number(16 << 20), ValueSource::Tool);
        let memory = Arc::new(Memory::create_with(2, 0, &overrides).expect("a job"));
        // Where the kernel does not say what is mapped there is nothing to test.
        let Some(buffers) = RemappedBuffers::new(Arc::clone(&memory)) else { return };
        // As malloc has a long block: a mapping that begins with two words.
        let whole = 300_000_usize.next_multiple_of(PAGE);
        let block = arena::anonymous(whole).expect("memory").as_ptr();
        // SAFETY: a mapping of so many bytes, to which nobody else has a pointer.
        let data = unsafe {
            block.cast::<[usize; 2]>().write([0, whole | 2]);
            core::slice::from_raw_parts_mut(block.add(16), 300_000 - 16)
        };
        // SAFETY: nobody else has the bytes.
        let place_of = |data: &[u8]| unsafe { buffers.place_of(data.as_ptr(), data.len(), SENT, 3) };
        if Mappings::has_devices() {
            return;
        }
        assert_eq!([place_of(data), place_of(data)], [None, None]);
        let heap = Heap::of(&memory).expect("a heap");
        for byte in 2..5 {
            data.fill(byte);
            let place = place_of(data).expect("remapped");
            let at = heap.at(place, data.len() as u64).expect("a place of the heap");
            // SAFETY: so many bytes are in the heap there, and nobody writes to them.
            let shown = unsafe { core::slice::from_raw_parts(at.as_ptr(), data.len()) };
            assert!(shown.iter().all(|shown| *shown == byte));
        }
        assert_eq!(buffers.count(), 1);
        let part = place_of(&data[100_000..200_000]).expect("a part of it");
        assert_eq!(Some(part), place_of(data).map(|place| place + 100_000));
        // What a peer writes comes to the buffer: its inner pages at once, its edges when they are fetched.
        let at = heap.at(place_of(data).expect("remapped"), data.len() as u64).expect("a place of the heap");
        // SAFETY: so many bytes are in the heap there; the buffer is ours.
        unsafe {
            at.write_bytes(9, data.len());
            buffers.fetch_edges(data.as_mut_ptr(), data.len(), 0..data.len());
        }
        assert!(data.iter().all(|byte| *byte == 9));
        assert_eq!(buffers.lock().ranges.len(), 1);
        // The program unmaps it, and other memory lies there.
        let other = arena::anonymous(whole).expect("memory");
        // SAFETY: as long as the mapping made above, whose bytes nobody uses any more.
        assert!(unsafe { arena::put_over(other, block, whole) });
        assert_eq!(place_of(data), None);
        let state = buffers.lock();
        assert_eq!((state.ranges.len(), state.bytes), (0, 0));
    }
}
