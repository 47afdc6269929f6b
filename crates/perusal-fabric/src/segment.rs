//! The memory of an endpoint: a sealed memfd with one ring for each peer that sends to it.
//!
//! The endpoint that receives owns the memory. Who wants to send opens it as `/proc/PID/fd/FD`, which the kernel allows to processes of the same
//! user only, claims a slot, and writes into the slot who it is. Nothing has a name in a file system, so nothing is left after any kill.
//!
//! - **Slot rule 1.** A slot goes from FREE to CLAIMED by a compare-exchange of the sender's, to READY by that sender, to CLOSED by it when it
//!   leaves, and back to FREE by the owner, who has then drained the ring and retired its end.
//! - **Slot rule 2.** The sender writes the slot's address before the Release store of READY, and the owner reads it after its Acquire load.
//! - **Pipe rule.** A thread of the owner's that will wait for its pipe arms it and has every ring notify, passes a heavy barrier, and looks for records
//!   and changed slots once more. A sender commits its record or changes its slot, passes a barrier, and then looks whether the pipe is armed: one
//!   of both sees the other.

use crate::address::Address;
use crate::api::{FI_EHOSTUNREACH, FI_EIO, FI_ENOMEM};
use memmap2::{MmapOptions, MmapRaw};
use perusal::internals::doorbell::Doorbell;
use perusal::internals::limits::PAGE;
use perusal::internals::ring::MappedRing;
use perusal::internals::sync::{AsymmetricFence, AtomicU32, AtomicU64, Ordering};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;

/// Senders that one endpoint can have at a time.
pub const SLOTS: usize = 1024;
/// Records that a ring holds.
const CELLS: usize = 256;
/// Payload bytes that a ring holds.
const BULK: usize = 512 << 10;

const MAGIC: u64 = 0x7065_7275_7361_6c03;

/// The states of a slot.
pub const FREE: u32 = 0;
const CLAIMED: u32 = 1;
/// A sender is there.
pub const READY: u32 = 2;
/// The sender has left.
pub const CLOSED: u32 = 3;

/// One sender's place.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// FREE, CLAIMED, READY or CLOSED.
    pub state: AtomicU32,
    pid: AtomicU32,
    fd: AtomicU32,
    nonce: AtomicU64,
}

/// The beginning of the memory.
#[derive(Debug)]
#[repr(C, align(128))]
struct Head {
    magic: AtomicU64,
    nonce: AtomicU64,
    /// 1: the owner and its senders use membarrier; 0: processor fences.
    membarrier: AtomicU32,
    /// How often a slot has become READY or CLOSED.
    changes: AtomicU32,
    /// How often the owner has taken a region away.
    generation: AtomicU32,
    /// The descriptor in the owner's process of a pipe that wakes a thread of it, plus 1; 0: none.
    pipe: AtomicU32,
    /// 1: a thread of the owner's waits for the pipe, or is about to.
    armed: AtomicU32,
    /// 1: the owner counts accesses of peers, and wants to hear of those that need no answer.
    counts_accesses: AtomicU32,
    slots: [Slot; SLOTS],
}

const DOORBELL_AT: usize = size_of::<Head>().next_multiple_of(PAGE);
const RINGS_AT: usize = (DOORBELL_AT + Doorbell::bytes(SLOTS)).next_multiple_of(PAGE);
const RING_BYTES: usize = MappedRing::bytes(CELLS, BULK).next_multiple_of(PAGE);
const BYTES: usize = RINGS_AT + SLOTS * RING_BYTES;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapping of an endpoint's memory, its own or a peer's.
#[derive(Debug)]
pub struct Segment {
    map: MmapRaw,
    file: File,
}

impl Segment {
    /// Makes the memory of an endpoint, and its address.
    ///
    /// # Errors
    ///
    /// The number of the error, positive.
    pub fn new() -> Result<(Self, Address), i32> {
        // SAFETY: the name is a C string; what comes back is checked.
        let fd = unsafe {
            libc::memfd_create(c"perusal-fi".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if fd < 0 {
            return Err(last_error());
        }
        // SAFETY: a descriptor that was just made and that nobody else has.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        if fd > 999_999 {
            return Err(libc::EMFILE);
        }
        file.set_len(BYTES as u64).map_err(number)?;
        // SAFETY: plain calls on a descriptor that we own.
        let sealed =
            unsafe { libc::fchmod(fd, 0o600) == 0 && libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) == 0 };
        if !sealed {
            return Err(last_error());
        }
        take_memory(&file, 0, RINGS_AT)?;
        let mut nonce = [0_u8; 8];
        // SAFETY: eight bytes to write.
        if unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), 8, 0) } != 8 {
            return Err(last_error());
        }
        let address = Address { pid: std::process::id(), fd: fd as u32, nonce: u64::from_ne_bytes(nonce) };
        let segment = Self::map(file)?;
        let head = segment.head();
        head.nonce.store(address.nonce, Ordering::Relaxed);
        head.membarrier.store(u32::from(AsymmetricFence::join(false).is_ok()), Ordering::Relaxed);
        // Release: head edge, pairs with Acquire in `open`: the words above are there.
        head.magic.store(MAGIC, Ordering::Release);
        Ok((segment, address))
    }

    fn map(file: File) -> Result<Self, i32> {
        let map = MmapOptions::new().len(BYTES).map_raw(&file).map_err(number)?;
        Ok(Self { map, file })
    }

    /// Maps the memory of the endpoint with this address.
    ///
    /// # Errors
    ///
    /// FI_EHOSTUNREACH if there is no such endpoint (any more), or the number of another error.
    pub fn open(address: Address) -> Result<Self, i32> {
        let path = format!("/proc/{}/fd/{}", address.pid, address.fd);
        let gone = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => FI_EHOSTUNREACH,
            _ => number(error),
        };
        // The link is read first: opening a pipe or a device would have effects.
        let link = std::fs::read_link(&path).map_err(gone)?;
        if !link.as_os_str().to_string_lossy().starts_with("/memfd:perusal-fi") {
            return Err(FI_EHOSTUNREACH);
        }
        let file = File::options().read(true).write(true).open(&path).map_err(gone)?;
        // SAFETY: a plain call on a descriptor that we own. Seals keep everybody from taking the memory away under us.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let length = file.metadata().map_err(number)?.len();
        if seals < 0 || seals & SEALS != SEALS || length != BYTES as u64 {
            return Err(FI_EHOSTUNREACH);
        }
        let segment = Self::map(file)?;
        let head = segment.head();
        // Acquire: head edge, pairs with Release in `new`.
        let known = head.magic.load(Ordering::Acquire) == MAGIC;
        if !known || head.nonce.load(Ordering::Relaxed) != address.nonce {
            return Err(FI_EHOSTUNREACH);
        }
        Ok(segment)
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < BYTES);
        // SAFETY: a mapping is not at null, and the callers' offsets lie within it.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset)) }
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with a `Head` (zeroed or written by an endpoint), which is made of atomics; it is aligned to a page.
        unsafe { self.at(0).cast::<Head>().as_ref() }
    }

    /// The owner says that it takes nothing any more.
    pub fn close(&self) {
        // Release: closed edge, pairs with Acquire in `is_closed`.
        self.head().magic.store(0, Ordering::Release);
    }

    /// Whether the owner takes nothing any more.
    pub fn is_closed(&self) -> bool {
        // Acquire: closed edge, pairs with Release in `close`.
        self.head().magic.load(Ordering::Acquire) != MAGIC
    }

    /// The fence that the owner and its senders agree on.
    ///
    /// # Errors
    ///
    /// FI_EIO if this process is refused what the owner counts on.
    pub fn fence(&self) -> Result<AsymmetricFence, i32> {
        let processor = self.head().membarrier.load(Ordering::Relaxed) == 0;
        AsymmetricFence::join(processor).map_err(|_| FI_EIO)
    }

    /// How often slots have changed: look at them if it is another number than before.
    #[inline(always)]
    pub fn changes(&self) -> u32 {
        // Acquire: changes edge, pairs with the AcqRel in `publish`: the slots' states are there.
        self.head().changes.load(Ordering::Acquire)
    }

    /// A thread of the owner's is about to wait for this pipe.
    pub fn arm(&self, pipe: RawFd) {
        // Relaxed: stands beside `armed`, and is checked where it is used.
        self.head().pipe.store(pipe.cast_unsigned() + 1, Ordering::Relaxed);
        // Relaxed: the owner's heavy barrier follows (pipe rule).
        self.head().armed.store(1, Ordering::Relaxed);
    }

    /// No thread of the owner's waits for the pipe.
    pub fn disarm(&self) {
        // Relaxed: a byte too many in the pipe is harmless.
        self.head().armed.store(0, Ordering::Relaxed);
    }

    /// Whether a thread of the owner's waits for the pipe: then whoever asks must wake it, and nobody else needs to.
    pub fn take_armed(&self) -> bool {
        let armed = &self.head().armed;
        // Relaxed, both: the caller's barrier stands before it (pipe rule); whoever takes the word only writes a byte.
        armed.load(Ordering::Relaxed) == 1 && armed.swap(0, Ordering::Relaxed) == 1
    }

    /// Opens the owner's pipe for writing.
    pub fn open_pipe(&self, owner: Address) -> Option<File> {
        let fd = self.head().pipe.load(Ordering::Relaxed).checked_sub(1)?;
        let path = format!("/proc/{}/fd/{fd}", owner.pid);
        // The link is read first: opening anything else could have effects.
        let link = std::fs::read_link(&path).ok()?;
        if !link.as_os_str().to_string_lossy().starts_with("pipe:") {
            return None;
        }
        File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()
    }

    /// Returns how often the owner has taken a region away.
    pub fn generation(&self) -> u32 {
        // Relaxed: whoever accesses a region that is being taken away has heard of it by a message (edge 1), or is in a race of its own.
        self.head().generation.load(Ordering::Relaxed)
    }

    /// The owner has taken a region away.
    pub fn set_generation(&self, generation: u32) {
        // Relaxed: see `generation`.
        self.head().generation.store(generation, Ordering::Relaxed);
    }

    /// Whether the owner counts accesses of peers.
    pub fn counts_accesses(&self) -> bool {
        // Relaxed: a counter is bound before peers learn of a region.
        self.head().counts_accesses.load(Ordering::Relaxed) != 0
    }

    /// The owner counts accesses of peers from now on.
    pub fn set_counts_accesses(&self) {
        // Relaxed: see `counts_accesses`.
        self.head().counts_accesses.store(1, Ordering::Relaxed);
    }

    /// The slots.
    pub fn slots(&self) -> &[Slot; SLOTS] {
        &self.head().slots
    }

    /// The doorbell of the owner, with a flag for each slot.
    pub fn doorbell(&self) -> Doorbell {
        // SAFETY: the bytes lie within the mapping, page-aligned, zeroed, for doorbells alone; whoever keeps a copy keeps the segment.
        unsafe { Doorbell::over(self.at(DOORBELL_AT), SLOTS) }
    }

    /// The ring of slot `at`.
    pub fn ring(&self, at: usize) -> MappedRing {
        assert!(at < SLOTS);
        // SAFETY: the bytes lie within the mapping, page-aligned, for rings alone; whoever keeps a copy keeps the segment.
        unsafe { MappedRing::new(self.at(RINGS_AT + at * RING_BYTES), CELLS, BULK) }
    }

    /// Takes a slot for the sender `own`. Returns which.
    ///
    /// # Errors
    ///
    /// FI_EBUSY's number if there is none, FI_ENOMEM if there is no memory for its ring.
    pub fn claim(&self, own: Address) -> Result<usize, i32> {
        let free = |slot: &Slot| {
            // Acquire: free edge, pairs with Release in `free`: the owner's end has retired.
            slot.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let at = self.slots().iter().position(free).ok_or(libc::EBUSY)?;
        let slot = &self.slots()[at];
        if let Err(error) = take_memory(&self.file, RINGS_AT + at * RING_BYTES, RING_BYTES) {
            // Relaxed: nothing was written.
            slot.state.store(FREE, Ordering::Relaxed);
            return Err(error);
        }
        // Relaxed, all: published by `publish` (slot rule 2).
        slot.pid.store(own.pid, Ordering::Relaxed);
        slot.fd.store(own.fd, Ordering::Relaxed);
        slot.nonce.store(own.nonce, Ordering::Relaxed);
        Ok(at)
    }

    /// The sender says that its slot is READY or CLOSED.
    pub fn publish(&self, at: usize, state: u32) {
        // Release: slot edge, pairs with Acquire in `state`.
        self.slots()[at].state.store(state, Ordering::Release);
        // AcqRel: changes edge, pairs with Acquire in `changes`.
        self.head().changes.fetch_add(1, Ordering::AcqRel);
        // Its fence stands before what the caller does about the pipe (pipe rule).
        self.doorbell().ring(at);
    }

    /// Returns the state of a slot.
    pub fn state(&self, at: usize) -> u32 {
        // Acquire: slot edge, pairs with Release in `publish`.
        self.slots()[at].state.load(Ordering::Acquire)
    }

    /// Returns who sends through a slot that is READY or CLOSED.
    pub fn sender(&self, at: usize) -> Address {
        let slot = &self.slots()[at];
        // Relaxed, all: behind the Acquire load of the state (slot rule 2).
        Address {
            pid: slot.pid.load(Ordering::Relaxed),
            fd: slot.fd.load(Ordering::Relaxed),
            nonce: slot.nonce.load(Ordering::Relaxed),
        }
    }

    /// The owner gives a slot back whose ring it has drained and retired.
    pub fn free(&self, at: usize) {
        // Release: free edge, pairs with Acquire in `claim`.
        self.slots()[at].state.store(FREE, Ordering::Release);
    }
}

/// Takes memory for a piece of the file now, so that a lack of it is an error and not a signal.
fn take_memory(file: &File, offset: usize, len: usize) -> Result<(), i32> {
    // SAFETY: a plain call on a descriptor that we own.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as i64, len as i64) } {
        0 => Ok(()),
        libc::ENOSPC => Err(FI_ENOMEM),
        error => Err(error),
    }
}

fn number(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(FI_EIO)
}

fn last_error() -> i32 {
    number(std::io::Error::last_os_error())
}
