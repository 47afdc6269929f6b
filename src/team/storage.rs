//! Where a collective segment lies: the protocol's only view of memory.

use crate::sync::AtomicU64;

/// Rounds that can be under way at once: slots, counts and flags come again after so many.
#[cfg(not(perusal_loom))]
pub const DEPTH: usize = 32;
/// Rounds that can be under way at once: as few as possible, so that models come around.
#[cfg(perusal_loom)]
pub const DEPTH: usize = 2;

/// Parts of the bulk; each is used by one round at a time.
pub const PARTS: usize = if DEPTH < 4 { DEPTH } else { 4 };

/// Stretches of a part, of which a round that shows little takes one.
pub const STRETCHES: usize = 8;

/// Bytes of a slot that carry data.
pub const PAYLOAD: usize = 240;

/// What one member writes in one round.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TeamSlot {
    /// Which operation the writer believes to be in, and of how many bytes.
    pub what: u64,
    /// Its data; on a 16-byte boundary in the job segment, so that elements of any type may lie there.
    pub payload: [u8; PAYLOAD],
}

impl TeamSlot {
    /// Nothing.
    pub const EMPTY: Self = Self { what: 0, payload: [0; PAYLOAD] };
}

/// Memory of one communicator's segment. Implemented on the heap (tests, loom) and on the job segment.
///
/// # Safety
///
/// Implementations return the same memory for the same arguments for as long as any clone lives; different words, slots
/// and stretches of bulk do not overlap, and pointers handed to the closures are valid for the named length.
pub unsafe trait TeamMemory: Clone {
    /// How many take part.
    fn members(&self) -> usize;
    /// How many have arrived in the rounds at `at < DEPTH` so far.
    fn count(&self, at: usize) -> &AtomicU64;
    /// The completion word of the rounds at `at`.
    fn completion(&self, at: usize) -> &AtomicU64;
    /// The flag of `member` for the rounds at `at`.
    fn flag(&self, member: usize, at: usize) -> &AtomicU64;
    /// Members `64 * word ..` that sleep, a bit each.
    fn sleepers(&self, word: usize) -> &AtomicU64;
    /// Reads the slot of `member` for the rounds at `at`, under team rule 3.
    fn read_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R;
    /// Writes it, under team rule 2.
    fn write_slot<R>(&self, member: usize, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R;
    /// Reads the outcome of the rounds at `at`, under team rule 4.
    fn read_outcome<R>(&self, at: usize, f: impl FnOnce(*const TeamSlot) -> R) -> R;
    /// Writes it, under team rule 4.
    fn write_outcome<R>(&self, at: usize, f: impl FnOnce(*mut TeamSlot) -> R) -> R;
}
