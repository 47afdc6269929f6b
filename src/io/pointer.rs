//! The file pointer that all members of a file share. It counts etypes of the view.

use crate::engine::{Engine, HomeJob};
use crate::heap::{Extent, Heap};
use crate::limits::LINE;
use crate::sync::{AtomicI64, Ordering, Turns};
use core::ptr::NonNull;

/// What the members share, in the shared heap of the job of the member of rank 0.
#[derive(Debug, Default)]
#[repr(C)]
struct Words {
    at: AtomicI64,
    turns: Turns,
}

/// The shared file pointer.
#[derive(Debug)]
pub(super) struct SharedPointer {
    /// What the member of rank 0 has allocated.
    extent: Option<Extent>,
    words: NonNull<Words>,
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
        let extent = heap.allocate(size_of::<Words>(), LINE)?;
        let words = extent.addr().cast::<Words>();
        // SAFETY: the extent is ours, aligned to a line and at least so long, and nobody else knows it yet.
        unsafe { words.write(Words::default()) };
        let place = heap.place_of(extent.addr().as_ptr(), size_of::<Words>())?;
        Some((Self { extent: Some(extent), words, _home: HomeJob::OWN }, place))
    }

    /// The pointer that the member of rank 0 has made, a process of the job `home`.
    pub fn at(engine: &Engine, home: HomeJob, place: Place) -> Option<Self> {
        let heap = Heap::of(home.memory(engine)).filter(|_| place > 0)?;
        let words = heap.at(place, size_of::<Words>() as u64)?.cast::<Words>();
        words.is_aligned().then_some(Self { extent: None, words, _home: home })
    }

    fn words(&self) -> &Words {
        // SAFETY: their maker has written the words before it sent the place,
        // and frees them when all members have closed the file.
        unsafe { self.words.as_ref() }
    }

    /// Takes the next `etypes` etypes: where they begin. `None` if they would end beyond the largest offset.
    pub fn take(&self, etypes: i64) -> Option<i64> {
        // Relaxed, both: a count; the bytes that it is about are the kernel's.
        self.words().at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| at.checked_add(etypes)).ok()
    }

    /// Where it stands.
    pub fn get(&self) -> i64 {
        // Relaxed: a count, as in `take`.
        self.words().at.load(Ordering::Relaxed)
    }

    /// Moves it. No member accesses the file at it meanwhile.
    pub fn set(&self, at: i64) {
        // Relaxed: a count, as in `take`.
        self.words().at.store(at, Ordering::Relaxed);
        self.words().turns.restart(at);
    }

    /// The turns at a stream.
    pub fn turns(&self) -> &Turns {
        &self.words().turns
    }

    /// Gives the memory back. No member uses it any more.
    pub fn free(self, engine: &Engine) {
        if let (Some(extent), Some(heap)) = (&self.extent, Heap::of(engine.job())) {
            heap.free(extent);
        }
    }
}
