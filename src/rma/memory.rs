//! Where the memory of a window's ranks lies, as this rank reaches it.
//!
//! | memory | how an origin reaches it |
//! |---|---|
//! | in its job's shared heap (allocated and shared windows, MPI_Alloc_mem, `--share-heap`), also where that is another job than the origin's | by loads and stores |
//! | of a rank that is a thread of this process, or this rank's own | by loads and stores |
//! | private to another process | by system calls that copy from and to it (cross-memory attach), or by messages that it serves ([`super::remote`]) |
//!
//! Only messages need the target's help.

use super::block_locks::BlockLocks;
use crate::datatype::Datatype;
use crate::engine::{Engine, HomeJob};
use crate::error::{Error, Result};
use crate::heap::Heap;

/// One rank's memory in a window.
#[derive(Debug)]
pub struct TargetMemory {
    /// Its rank in the job.
    pub world: u32,
    /// Bytes of it; 0 in a dynamic window, whose members attach memory later.
    pub bytes: u64,
    /// Bytes by which a displacement is multiplied.
    pub unit: u64,
    /// Where it begins.
    pub start: Start,
    /// Whose shared heap its places are of: its rank's own job, or, where parts of several ranks lie one behind the
    /// other, that of the window's rank 0.
    home: HomeJob,
    /// The locks of accumulates there.
    pub(super) locks: BlockLocks,
    /// Address of that shared heap in that process; 0 if it has not mapped it.
    heap: u64,
    /// What tells addresses of its process apart from those of others of its job.
    salt: u64,
    /// Where it begins in this process; none if this one has not mapped it.
    here: Option<usize>,
}

/// What a rank says of its memory in a window.
#[derive(Debug, Clone, Copy)]
pub struct MemberMemory {
    /// Bytes of it.
    pub bytes: u64,
    /// Bytes by which a displacement is multiplied.
    pub unit: u64,
    /// Where it begins.
    pub start: Start,
    /// Address of the shared heap in that process.
    pub heap: u64,
    /// What tells addresses of its process apart from those of others of its job.
    pub salt: u64,
}

/// What tells addresses of this process apart from those of others of its job.
/// Threads of one process share their addresses.
#[must_use]
pub fn salt(engine: &Engine) -> u64 {
    if engine.job().are_threads() { 0 } else { (u64::from(engine.rank()) + 1) << 48 }
}

/// Where a rank's memory begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At a place of a shared heap.
    Place(u64),
    /// At an address of its process.
    Address(u64),
    /// At address 0: displacements are addresses (a dynamic window).
    Bottom,
}

/// Bytes in the memory of a rank, as an operation finds them: where displacement 0 of its elements is.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// How they are reached.
    pub reach: Reach,
    /// A number that all origins have for the byte at displacement 0, so that two that change the same element know it.
    pub key: u64,
}

/// How bytes are reached.
#[derive(Debug, Clone, Copy)]
pub enum Reach {
    /// At this address of this process.
    Mapped {
        /// Where displacement 0 is.
        addr: *mut u8,
    },
    /// At this address of the process that is rank `world` of the job.
    Private {
        /// Its rank in the job.
        world: u32,
        /// Where displacement 0 is.
        addr: u64,
    },
}

impl TargetMemory {
    /// The memory of job rank `world`, with the job whose shared heap its places are of, and the locks there.
    #[must_use]
    pub(super) fn new(
        engine: &Engine,
        world: u32,
        brought: MemberMemory,
        (home, locks): (HomeJob, BlockLocks),
    ) -> Self {
        let MemberMemory { bytes, unit, start, heap, salt } = brought;
        let mut target = Self { world, bytes, unit, start, home, locks, heap, salt, here: None };
        target.here = match start {
            Start::Place(place) => {
                let base = Heap::of(target.home.memory(engine)).and_then(|heap| heap.at(place, bytes));
                base.map(|base| base.as_ptr().expose_provenance())
            }
            Start::Address(addr) => target.is_of_this_process(engine).then_some(addr as usize),
            Start::Bottom => None,
        };
        target
    }

    /// The shared heap that its places are of, if this process has mapped it.
    pub(super) fn home_heap<'e>(&'e self, engine: &'e Engine) -> Option<Heap<'e>> {
        Heap::of(self.home.memory(engine))
    }

    /// Whether addresses of its rank are addresses of this process.
    fn is_of_this_process(&self, engine: &Engine) -> bool {
        self.world == engine.rank() || engine.job().are_threads() && !engine.is_guest(self.world)
    }

    /// Its address in this process, if it is mapped there.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        self.here
    }

    /// The address here of the `len` bytes at displacement `disp`; none if they are not mapped, or not all of its own.
    #[inline(always)]
    #[must_use]
    pub fn direct(&self, disp: i64, len: usize) -> Option<*mut u8> {
        let addr = self.here?;
        // By the signed multiplication, which takes fewer registers.
        let offset = u64::try_from(disp.checked_mul(self.unit as i64)?).ok()?;
        let end = offset.checked_add(len as u64)?;
        (end <= self.bytes).then(|| core::ptr::with_exposed_provenance_mut(addr + offset as usize))
    }

    /// The address of displacement `disp` in the process of its rank.
    #[must_use]
    pub fn remote_address(&self, disp: i64) -> u64 {
        let offset = disp.cast_unsigned().wrapping_mul(self.unit);
        match self.start {
            Start::Place(place) => self.heap.wrapping_add(place).wrapping_add(offset),
            Start::Address(addr) => addr.wrapping_add(offset),
            Start::Bottom => offset,
        }
    }

    /// A number that all origins have for the byte at `addr`, as [`direct`](Self::direct) has found it.
    pub(super) fn key_at(&self, addr: *const u8) -> u64 {
        let offset = self.here.map_or(0, |here| addr.addr() - here);
        self.key().wrapping_add(offset as u64)
    }

    /// A number that all origins have for its first byte.
    fn key(&self) -> u64 {
        match self.start {
            Start::Place(place) => place,
            Start::Address(addr) => addr ^ self.salt,
            Start::Bottom => 0,
        }
    }

    /// What displacement 0 is at `offset` bytes from the beginning.
    fn spot(&self, offset: i64) -> Spot {
        let reach = match (self.here, self.start) {
            (Some(addr), _) => {
                let base: *mut u8 = core::ptr::with_exposed_provenance_mut(addr);
                Reach::Mapped { addr: base.wrapping_offset(offset as isize) }
            }
            (None, Start::Address(addr) | Start::Place(addr)) => {
                Reach::Private { world: self.world, addr: addr.wrapping_add_signed(offset) }
            }
            (None, Start::Bottom) => Reach::Private { world: self.world, addr: offset as u64 },
        };
        Spot { reach, key: self.key().wrapping_add_signed(offset) }
    }

    /// Finds `count` elements of `datatype` at displacement `disp`. None of them is outside of the memory.
    ///
    /// # Errors
    /// [`Error::RmaRange`] if one is; [`Error::CountTooLarge`].
    #[inline]
    pub fn find(&self, engine: &Engine, disp: i64, count: usize, datatype: &Datatype) -> Result<Spot> {
        let bytes = datatype.bytes_of(count)?;
        if self.start != Start::Bottom && datatype.is_contiguous() && datatype.true_lb() == 0 {
            let offset = u64::try_from(disp).ok().and_then(|disp| disp.checked_mul(self.unit));
            let end = offset.and_then(|offset| offset.checked_add(bytes as u64));
            if let (Some(offset), Some(end)) = (offset, end)
                && end <= self.bytes
            {
                return Ok(self.spot(offset as i64));
            }
        }
        self.find_any(engine, disp, count, datatype)
    }

    #[cold]
    fn find_any(&self, engine: &Engine, disp: i64, count: usize, datatype: &Datatype) -> Result<Spot> {
        let (low, high) = datatype.data_span(count).ok_or(Error::CountTooLarge(count))?;
        let (low, high) = (low as i64, high as i64);
        let outside = || Error::RmaRange { disp, bytes: high.saturating_sub(low), room: self.bytes };
        let offset = i128::from(disp) * i128::from(self.unit);
        let (first, end) = (offset + i128::from(low), offset + i128::from(high));
        if datatype.size() == 0 || count == 0 {
            // Nothing is accessed, wherever it is.
            return Ok(self.spot(0));
        }
        if self.start == Start::Bottom {
            // What is attached there, the window knows.
            // The first byte is at an address of its own, wherever the displacement by itself would be.
            let addr = disp.cast_unsigned();
            let len = u64::try_from(end - first).map_err(|_| outside())?;
            let first = u64::try_from(first).map_err(|_| outside())?;
            return Ok(self.at_address(engine, addr, first, len));
        }
        if first < 0 || end > i128::from(self.bytes) {
            return Err(outside());
        }
        Ok(self.spot(offset as i64))
    }

    /// What displacement 0 at address `addr` of the rank's process is,
    /// for elements in `len` bytes from `first` on (a dynamic window).
    fn at_address(&self, engine: &Engine, addr: u64, first: u64, len: u64) -> Spot {
        let heap = self.home_heap(engine).filter(|_| self.heap != 0);
        let place = first.wrapping_sub(self.heap);
        if let Some(base) = heap.and_then(|heap| heap.at(place, len)) {
            let addr_here = base.as_ptr().wrapping_add(addr.wrapping_sub(first) as usize);
            return Spot { reach: Reach::Mapped { addr: addr_here }, key: addr.wrapping_sub(self.heap) };
        }
        let reach = if self.is_of_this_process(engine) {
            Reach::Mapped { addr: core::ptr::with_exposed_provenance_mut(addr as usize) }
        } else {
            Reach::Private { world: self.world, addr }
        };
        Spot { reach, key: addr ^ self.salt }
    }
}
