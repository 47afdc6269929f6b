//! Every capacity of the engine, with its unit; relations between them are asserted at compile time.

/// Bytes of a cache line: the unit of transfer between cores and of a small message.
pub const LINE: usize = 64;

/// Bytes that keep two writers from sharing a line, adjacent-line prefetch included.
pub const APART: usize = 128;

/// Bytes of a page of the segment.
pub const PAGE: usize = 4096;

/// Largest tag a user may send with (MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// Handles, and sessions, of one kind that tools may have at once (MPI_T).
pub const TOOL_HANDLES: usize = 65_536;

const _: () = assert!(APART.is_multiple_of(LINE));
const _: () = assert!(PAGE.is_multiple_of(APART));

/// Sources of MPI_T events: the buffers, and threads beside each other. Events of more threads are told of the buffers' source.
pub const EVENT_SOURCES: usize = 1024;

/// Most entries of an MPI_T event buffer; about 100 bytes each.
pub const EVENT_BUFFER: usize = 1 << 20;
