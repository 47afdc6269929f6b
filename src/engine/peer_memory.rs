//! Copies between this rank's memory and another's, in one step, where the kernel allows that.

use super::Engine;
use crate::error::{Error, Result};
use crate::heap::{BufferUse, Heap, RemappedBuffers, map_around, remapped_buffers};
use crate::shm::peer_memory;
use crate::variables::CopyChoice;
use std::io;

/// A byte that other processes of the job try to read.
static PROBE: u8 = 42;

/// Where a run of bytes of a rank begins, as other ranks reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress {
    /// At a place of the shared heap.
    Place(u64),
    /// At an address of its process.
    Address(u64),
}

/// Bytes of an encoded [`PeerAddress`].
pub const PEER_ADDRESS: usize = 16;

impl PeerAddress {
    /// As bytes of a message or a slot.
    #[must_use]
    pub fn encode(self) -> [u8; PEER_ADDRESS] {
        let (kind, at) = match self {
            Self::Place(at) => (0_u64, at),
            Self::Address(at) => (1, at),
        };
        let mut bytes = [0; PEER_ADDRESS];
        bytes[..8].copy_from_slice(&kind.to_ne_bytes());
        bytes[8..].copy_from_slice(&at.to_ne_bytes());
        bytes
    }

    /// What [`encode`](Self::encode) has made; whatever the bytes are, it is an address.
    #[must_use]
    pub fn decode(bytes: [u8; PEER_ADDRESS]) -> Self {
        let word = |i: usize| u64::from_ne_bytes(core::array::from_fn(|at| bytes[i * 8 + at]));
        if word(0) == 0 { Self::Place(word(1)) } else { Self::Address(word(1)) }
    }
}

/// The address of a byte in this process with which others can try ([`Engine::may_read_memory`]).
#[must_use]
pub fn probe_address() -> u64 {
    (&raw const PROBE) as u64
}

impl Engine {
    /// Where `len` bytes at `addr` begin for other ranks.
    #[must_use]
    pub fn peer_address(&self, addr: *const u8, len: usize) -> PeerAddress {
        let place = Heap::of(self.job()).and_then(|heap| heap.place_of(addr, len));
        place.map_or_else(|| PeerAddress::Address(addr.expose_provenance() as u64), PeerAddress::Place)
    }

    /// The remapped buffers of this process, if it may have any.
    pub(crate) fn remapped_buffers(&self) -> Option<&'static RemappedBuffers> {
        let may = !self.job().are_threads()
            && matches!(self.config().copy(), CopyChoice::Auto | CopyChoice::Direct);
        if may { remapped_buffers(self.job().memory()) } else { None }
    }

    /// Where `len` bytes at `addr` lie in the shared heap since they were remapped: they are now, if they have been
    /// used for long enough ([`RemappedBuffers::place_of`]).
    ///
    /// # Safety
    /// They are bytes of the buffer of an operation that has begun.
    pub(crate) unsafe fn remapped_place(
        &self,
        addr: *const u8,
        len: usize,
        buffer_use: BufferUse,
    ) -> Option<u64> {
        let (after, buffers) = self.config().remap_after().zip(self.remapped_buffers())?;
        // SAFETY: while the operation goes on, the program does not write to what is sent, and leaves the rest alone.
        unsafe { buffers.place_of(addr, len, buffer_use, after) }
    }

    /// Counts a use of `len` bytes at `addr` for which no peer asks where they lie ([`RemappedBuffers::count_use`]).
    ///
    /// # Safety
    /// They are bytes of the buffer of an operation that has begun.
    pub(crate) unsafe fn count_use(&self, addr: *const u8, len: usize) {
        if let Some((after, buffers)) = self.config().remap_after().zip(self.remapped_buffers()) {
            // SAFETY: while the operation goes on, the program does not write to what is sent, and leaves the rest
            // alone.
            unsafe { buffers.count_use(addr, len, after) };
        }
    }

    /// Whether this process may read the memory of job rank `world`, where the byte to try is at `probe`, and no
    /// control variable forbids it.
    #[must_use]
    pub fn may_read_memory(&self, world: u32, probe: u64) -> bool {
        let mut byte = [0_u8];
        let pid = self.job().process_of(world);
        // SAFETY: the byte is ours.
        let read = |pid| unsafe { peer_memory::read_peer(pid, probe, byte.as_mut_ptr(), 1) };
        self.config().copy() != CopyChoice::Chunks
            && pid.map(read).is_some_and(|read| read.is_ok())
            && byte == [PROBE]
    }

    /// Copies `len` bytes of job rank `world`, from byte `at` behind `from` on, to `to`.
    ///
    /// # Errors
    /// [`Error::RankFailed`] if its process is gone; [`Error::Other`] if the kernel refuses, or it has no such memory.
    ///
    /// # Safety
    /// `to` is valid for writes of `len` bytes.
    pub unsafe fn read_memory(
        &self,
        world: u32,
        from: PeerAddress,
        at: usize,
        to: *mut u8,
        len: usize,
    ) -> Result<()> {
        match self.reach_memory(from, at, len) {
            PeerSpot::Here(from) => {
                // SAFETY: the run lies in the shared heap, which is mapped here; `to` is the caller's.
                unsafe { crate::arch::copy_long(from, to, len) };
                Ok(())
            }
            PeerSpot::There(from) => self.by_the_kernel(world, |pid| {
                // SAFETY: `to` is the caller's.
                unsafe { peer_memory::read_peer(pid, from, to, len) }
            }),
        }
    }

    /// Copies `len` bytes at `from` to job rank `world`, from byte `at` behind `to` on.
    ///
    /// # Errors
    /// As for [`read_memory`](Self::read_memory).
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes, and the peer has asked for bytes there.
    pub unsafe fn write_memory(
        &self,
        world: u32,
        to: PeerAddress,
        at: usize,
        from: *const u8,
        len: usize,
    ) -> Result<()> {
        match self.reach_memory(to, at, len) {
            PeerSpot::Here(to) => {
                // SAFETY: the run lies in the shared heap, which is mapped here; `from` is the caller's.
                unsafe {
                    map_around(to, len);
                    crate::arch::copy_long(from, to, len);
                }
                Ok(())
            }
            PeerSpot::There(to) => self.by_the_kernel(world, |pid| {
                // SAFETY: `from` is the caller's, and the peer has asked for the bytes.
                unsafe { peer_memory::write_peer(pid, from, to, len) }
            }),
        }
    }

    /// Where a job rank's `len` bytes, from byte `at` behind `from` on, lie in this process: if they are the shared
    /// heap's.
    #[must_use]
    pub fn view_memory(&self, from: PeerAddress, at: usize, len: usize) -> Option<*const u8> {
        match self.reach_memory(from, at, len) {
            PeerSpot::Here(here) => Some(here.cast_const()),
            PeerSpot::There(_) => None,
        }
    }

    fn reach_memory(&self, run: PeerAddress, at: usize, len: usize) -> PeerSpot {
        match run {
            PeerAddress::Place(place) => {
                let place = place.wrapping_add(at as u64);
                let here = Heap::of(self.job()).and_then(|heap| heap.at(place, len as u64));
                // No process has memory at the top of the address space: the kernel says so.
                here.map_or(PeerSpot::There(u64::MAX), |here| PeerSpot::Here(here.as_ptr()))
            }
            PeerAddress::Address(addr) => PeerSpot::There(addr.wrapping_add(at as u64)),
        }
    }

    fn by_the_kernel(&self, world: u32, copy: impl FnOnce(i32) -> io::Result<()>) -> Result<()> {
        let gone = || self.job().gone(world);
        let pid = self.job().process_of(world).ok_or_else(gone)?;
        let copied = self.job().reach(world, || copy(pid)).ok_or_else(gone)?;
        copied.map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => gone(),
            _ => Error::Other(format!(
                "the kernel does not let this process copy from or to the memory of rank {world}: {error}"
            )),
        })
    }
}

/// Where a run of bytes begins, as this process reaches it.
enum PeerSpot {
    Here(*mut u8),
    There(u64),
}
