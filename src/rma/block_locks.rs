//! Locks of blocks of windows' memory, for accumulates that no single instruction performs.
//!
//! One table for the whole job, in the shared heap, so that operations through different windows over the same memory exclude each other.
//! A lock is held for as long as one block is reduced, so who waits for it spins, and yields.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::limits::{APART, GRANULE};
use crate::shm::Job;
use crate::sync::{AtomicU32, Ordering, spin_loop, yield_now};
use core::ptr::NonNull;

/// Bytes that one lock is for. Two blocks may share a lock.
pub(super) const BLOCK: u64 = 4096;

/// How many locks there are.
const LOCKS: usize = GRANULE / APART;
/// Looks at a lock before the CPU is given away.
const SPINS: u32 = 200;
/// Looks at a lock between two looks at whether its holder lives.
const LOOKS: u32 = 4096;

/// The job's table.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLocks {
    base: NonNull<u8>,
}

// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Send for BlockLocks {}
// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Sync for BlockLocks {}

impl BlockLocks {
    /// The table of a job, made by whoever comes first.
    ///
    /// # Errors
    /// [`Error::NoMem`] if the shared heap has no room for it.
    pub fn of(job: &Job) -> Result<Self> {
        let none = || Error::NoMem("the shared heap has no room for the locks of accumulates".into());
        let heap = Heap::of(job).ok_or_else(none)?;
        let agreed = &job.header().block_locks;
        // Acquire: "block locks" edge, pairs with Release below: the table is zeroed.
        let mut place = agreed.load(Ordering::Acquire);
        if place == 0 {
            let extent = heap.allocate(GRANULE, APART).ok_or_else(none)?;
            // SAFETY: the extent is ours, so long, and nobody else knows it.
            unsafe { extent.addr().as_ptr().write_bytes(0, GRANULE) };
            let own = heap.place_of(extent.addr().as_ptr(), GRANULE).ok_or_else(none)?;
            // Release: "block locks" edge, pairs with Acquire above and here.
            match agreed.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => place = own,
                Err(other) => {
                    heap.free(&extent);
                    place = other;
                }
            }
        }
        let base =
            heap.at(place, GRANULE as u64).filter(|base| (base.as_ptr() as usize).is_multiple_of(APART));
        base.map(|base| Self { base }).ok_or_else(|| {
            Error::Segment(format!("the header names {place:#x} for the locks of accumulates, which is no place of the shared heap"))
        })
    }

    fn lock(&self, key: u64) -> &AtomicU32 {
        // Neighbours get different locks, and so do equal offsets in large areas.
        let mixed = (key / BLOCK).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let index = mixed as usize % LOCKS;
        // SAFETY: the table has so many locks, each on lines of its own; all accesses are atomic.
        unsafe { self.base.add(index * APART).cast::<AtomicU32>().as_ref() }
    }

    /// Takes the lock of the block that `key` lies in, until the result is dropped. A thread holds one at a time.
    ///
    /// # Errors
    /// [`Error::RankFailed`] if the job ends meanwhile.
    pub fn hold(&self, engine: &Engine, key: u64) -> Result<HeldBlock<'_>> {
        let lock = self.lock(key);
        let mut looks = 0_u32;
        loop {
            // Acquire: "block lock" edge, pairs with Release in the drop of `HeldBlock`.
            if lock.load(Ordering::Relaxed) == 0
                && lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Ok(HeldBlock { lock });
            }
            looks += 1;
            if looks < SPINS {
                spin_loop();
                continue;
            }
            // The holder may wait for this rank to serve its memory.
            engine.progress().poll_once()?;
            if looks.is_multiple_of(LOOKS) {
                engine.job().check_alive(None)?;
            }
            yield_now();
        }
    }
}

/// A lock that is held.
pub(super) struct HeldBlock<'a> {
    lock: &'a AtomicU32,
}

impl Drop for HeldBlock<'_> {
    fn drop(&mut self) {
        // Release: "block lock" edge, pairs with Acquire in `hold`.
        self.lock.store(0, Ordering::Release);
    }
}
