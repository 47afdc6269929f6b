//! Every capacity of the engine, with its unit; relations between them are asserted at compile time.

/// Bytes of a cache line: the unit of transfer between cores and of a small message.
pub const LINE: usize = 64;

/// Bytes that keep two writers from sharing a line, adjacent-line prefetch included.
pub const APART: usize = 128;

/// Bytes of a page of the segment.
pub const PAGE: usize = 4096;

/// Bytes of a huge page: what large runs of the shared heap are aligned to.
pub const HUGE_PAGE: usize = 2 << 20;

/// Bytes in which the shared heap is dealt out: an allocation takes at least so much address space, not memory.
pub const GRANULE: usize = 64 << 10;

/// Communicators of a job that can have an area for collectives at once.
pub const AREAS: usize = 256;

/// Rounds of collectives that can be under way at once in an area.
pub const AREA_ROUNDS: usize = 8;

/// Bytes of what one member says in one round: two words and its data.
pub const AREA_SLOT: usize = 256;

/// Parts of an area's bulk, each used by one round at a time.
pub const AREA_PARTS: usize = 4;

/// Least bytes of a part of an area's bulk.
pub const AREA_PART: usize = 1 << 20;

/// Largest tag a user may send with (MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// Handles, and sessions, of one kind that tools may have at once (MPI_T).
pub const TOOL_HANDLES: usize = 65_536;

const _: () = assert!(APART.is_multiple_of(LINE));
const _: () = assert!(PAGE.is_multiple_of(APART));
const _: () = assert!(HUGE_PAGE.is_multiple_of(GRANULE) && GRANULE.is_multiple_of(PAGE));

/// Sources of MPI_T events: the buffers, and threads beside each other. Events of more threads are told of the buffers' source.
pub const EVENT_SOURCES: usize = 1024;

/// Most entries of an MPI_T event buffer; at most 120 bytes each.
pub const EVENT_BUFFER: usize = 1 << 20;
const _: () = assert!(AREA_SLOT.is_multiple_of(APART) && AREA_PART.is_multiple_of(PAGE));
// The rule that a part is free again counts on rounds between two uses of it that are not under way any more.
const _: () = assert!(AREA_PARTS < AREA_ROUNDS);
