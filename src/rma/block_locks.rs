//! How accumulates exclude each other: one value by an instruction of the processor's,
//! many under the locks of the blocks that they lie in.
//!
//! One table for the whole job, in the shared heap, so that operations through different windows over the same memory
//! exclude each other, also those of processes of another job, which have places in this one. A lock is held for as
//! long as one block is reduced, so a rank that waits for it spins, and yields.

use super::atomic_mode::{AtomicMode, Entered, Mark};
use crate::arch::clock::now;
use crate::engine::{Engine, HomeJob};
use crate::error::Result;
use crate::heap;
use crate::limits::APART;
use crate::shm::{SharedLock, SharedLockGuard};
use crate::sync::{AsymmetricFence, spin_loop, yield_now};
use core::ptr::NonNull;

/// Bytes that one lock is for. Two blocks may share a lock. (With blocks of 4 KiB, locks would take an eighth of the
/// time of 64 KiB.)
pub(super) const BLOCK: u64 = 16 << 10;

/// How many locks there are.
const LOCKS: usize = 512;
/// Looks at a lock before the CPU is given away.
const SPINS: u32 = 200;
/// Looks at a lock between two looks at whether the job lives.
const LOOKS: u32 = 4096;

/// A job's table: the mode, a lock for each block, and a mark for each place, each on lines of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLocks {
    base: NonNull<u8>,
    places: usize,
    /// The place of this process there.
    own: usize,
    /// Whether it is that of this process's own job.
    is_own_job: bool,
    /// Whose light barrier lies between this process's mark and its look at the mode.
    fences: AsymmetricFence,
}

// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Send for BlockLocks {}
// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Sync for BlockLocks {}

impl BlockLocks {
    /// The table of a job, made by whoever comes first.
    ///
    /// # Errors
    /// [`crate::Error::NoMem`] if the shared heap has no room for it.
    pub fn of(engine: &Engine, job: &HomeJob) -> Result<Self> {
        let memory = job.memory(engine);
        let places = memory.places() as usize;
        let bytes = (1 + LOCKS + places) * APART;
        let base = heap::table(memory, &memory.header().block_locks, bytes, "locks of accumulates")?;
        // A rank of that job that has not met this process issues no barrier for its sake.
        let fences = if job.is_own() { engine.fences } else { AsymmetricFence::Processor };
        let (own, is_own_job) = (job.own_place(engine) as usize, job.is_own());
        Ok(Self { base, places, own, is_own_job, fences })
    }

    /// # Safety
    /// `T` is one of the table's words, and of the type that all use this line for.
    #[inline(always)]
    unsafe fn line<T>(&self, index: usize) -> &T {
        debug_assert!(index < 1 + LOCKS + self.places);
        // SAFETY: the table has so many lines (`of`), zeroed, which is a value of its words; all accesses are atomic.
        unsafe { self.base.add(index * APART).cast::<T>().as_ref() }
    }

    #[inline(always)]
    fn mode(&self) -> &AtomicMode {
        // SAFETY: the first line has the mode.
        unsafe { self.line(0) }
    }

    #[inline(always)]
    fn lock(&self, key: u64) -> &SharedLock {
        // Neighbours get different locks, and so do equal offsets in large areas.
        let mixed = (key / BLOCK).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // SAFETY: behind the mode come the locks.
        unsafe { self.line(1 + mixed as usize % LOCKS) }
    }

    #[inline(always)]
    fn mark(&self, place: usize) -> &Mark {
        // SAFETY: behind the locks come the marks; callers have places of the job.
        unsafe { self.line(1 + LOCKS + place) }
    }

    /// Under which this process holds locks.
    #[inline(always)]
    fn number(&self) -> u32 {
        self.own as u32 + 1
    }

    /// Whether the process at a place has died, and the job goes on.
    #[cold]
    fn is_dead(&self, engine: &Engine, place: u32) -> bool {
        // The holder of a lock is what some rank has written there.
        let is_place = self.is_own_job && (place as usize) < self.places;
        is_place && engine.job().survives() && engine.job().roster().is_dead(place)
    }

    /// Lets this rank update one value by an instruction; `None` where it has to take a lock.
    #[inline(always)]
    pub fn enter(&self, engine: &Engine) -> Option<Entered<'_>> {
        // Threads would clear each other's mark (atomic mode rule 1).
        if engine.is_shared() { None } else { self.mode().enter(self.mark(self.own), self.fences) }
    }

    /// Takes the lock of the block that `key` lies in, if locks are to be taken and this one is free.
    #[inline(always)]
    pub fn try_hold(&self, key: u64) -> Option<SharedLockGuard<'_>> {
        // Atomic mode rule 2.
        if !self.mode().is_closed() {
            return None;
        }
        self.lock(key).try_hold(self.number())
    }

    /// Goes over to locks.
    #[cold]
    fn close(&self, engine: &Engine) -> Result<()> {
        self.mode().announce(engine.fences);
        let mut looks = 0;
        for place in 0..self.places {
            while !self.mark(place).is_clear() && !self.is_dead(engine, place as u32) {
                pause(engine, &mut looks)?;
            }
        }
        self.mode().close();
        Ok(())
    }

    /// Takes the lock of the block that `key` lies in, until the result is dropped. A thread holds one at a time.
    ///
    /// # Errors
    /// [`crate::Error::RankFailed`] if the job ends meanwhile.
    #[inline]
    pub fn hold(&self, engine: &Engine, key: u64) -> Result<SharedLockGuard<'_>> {
        // Atomic mode rule 2.
        if !self.mode().is_closed() {
            self.close(engine)?;
        }
        let lock = self.lock(key);
        match lock.try_hold(self.number()) {
            Some(held) => Ok(held),
            None => self.wait_for(engine, lock),
        }
    }

    /// Takes a lock that another one holds, and counts the wait.
    /// That of one that has died in the middle of it is nobody's any more.
    #[cold]
    fn wait_for<'a>(&self, engine: &Engine, lock: &'a SharedLock) -> Result<SharedLockGuard<'a>> {
        let (began, mut looks) = (now(), 0);
        loop {
            let held = match lock.holder() {
                None => lock.try_hold(self.number()),
                Some(holder) if looks >= SPINS && self.is_dead(engine, holder - 1) => {
                    lock.take_over(holder, self.number())
                }
                Some(_) => None,
            };
            if let Some(held) = held {
                engine.accumulate_waits.add(now().saturating_sub(began));
                return Ok(held);
            }
            if lock.holder().is_some() {
                pause(engine, &mut looks)?;
            }
        }
    }
}

/// Between two looks at a word of another rank's.
fn pause(engine: &Engine, looks: &mut u32) -> Result<()> {
    *looks += 1;
    if *looks < SPINS {
        spin_loop();
        return Ok(());
    }
    // The other may wait for this rank to serve its memory.
    engine.progress().poll_once()?;
    if looks.is_multiple_of(LOOKS) {
        engine.job().check_alive(None)?;
    }
    yield_now();
    Ok(())
}
