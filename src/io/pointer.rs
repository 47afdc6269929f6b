//! File pointers: an individual one of each rank, and one that all members of a file share. Both count etypes of the view.

use crate::engine::{Engine, HomeJob};
use crate::heap::{Extent, Heap};
use crate::limits::LINE;
use crate::sync::{AtomicI64, Ordering};
use core::ptr::NonNull;

/// The shared file pointer: a word in the shared heap of the job of the member of rank 0.
#[derive(Debug)]
pub(super) struct SharedPointer {
    /// What the member of rank 0 has allocated.
    extent: Option<Extent>,
    word: NonNull<AtomicI64>,
    /// Whose memory it is: it stays mapped.
    _home: HomeJob,
}

// SAFETY: what it points to is an atomic in memory that is mapped in the whole process.
unsafe impl Send for SharedPointer {}
// SAFETY: what it points to is an atomic in memory that is mapped in the whole process.
unsafe impl Sync for SharedPointer {}

/// Where a shared file pointer lies, as its maker tells the others; 0: there is none.
pub(super) type Place = u64;

impl SharedPointer {
    /// Makes the pointer; its place is for the other members. `None` if the job has no shared heap, or it is full.
    pub fn make(engine: &Engine) -> Option<(Self, Place)> {
        let heap = Heap::of(engine.job())?;
        let extent = heap.allocate(size_of::<AtomicI64>(), LINE)?;
        let word = extent.addr().cast::<AtomicI64>();
        // SAFETY: the extent is ours, aligned to a line and at least a word long, and nobody else knows it yet.
        unsafe { word.write(AtomicI64::new(0)) };
        let place = heap.place_of(extent.addr().as_ptr(), size_of::<AtomicI64>())?;
        Some((Self { extent: Some(extent), word, _home: HomeJob::OWN }, place))
    }

    /// The pointer that the member of rank 0 has made, a process of the job `home`.
    pub fn at(engine: &Engine, home: HomeJob, place: Place) -> Option<Self> {
        let heap = Heap::of(home.memory(engine)).filter(|_| place > 0)?;
        let word = heap.at(place, size_of::<AtomicI64>() as u64)?.cast::<AtomicI64>();
        word.is_aligned().then_some(Self { extent: None, word, _home: home })
    }

    fn word(&self) -> &AtomicI64 {
        // SAFETY: its maker has written the word before it sent the place, and frees it when all members have closed the file.
        unsafe { self.word.as_ref() }
    }

    /// Takes the next `etypes` etypes: where they begin. `None` if they would end beyond the largest offset.
    pub fn take(&self, etypes: i64) -> Option<i64> {
        // Relaxed, both: a count; the bytes that it is about are the kernel's.
        self.word().fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| at.checked_add(etypes)).ok()
    }

    /// Where it stands.
    pub fn get(&self) -> i64 {
        // Relaxed: a count, as in `take`.
        self.word().load(Ordering::Relaxed)
    }

    /// Moves it.
    pub fn set(&self, at: i64) {
        // Relaxed: a count, as in `take`.
        self.word().store(at, Ordering::Relaxed);
    }

    /// Gives the memory back. No member uses it any more.
    pub fn free(self, engine: &Engine) {
        if let (Some(extent), Some(heap)) = (&self.extent, Heap::of(engine.job())) {
            heap.free(extent);
        }
    }
}
