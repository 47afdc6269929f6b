//! Capacities and protocol constants that several modules need, each with its unit.
//! The compiler checks how they relate.

// Memory.

/// Bytes of a cache line, the unit of transfer between cores, on x86-64 and most of AArch64; and the size of a ring's
/// cell. Where lines have 128 bytes two cells share one: slower, and as right.
pub const LINE: usize = 64;
/// Bytes that keep two writers from sharing a line, adjacent-line prefetch included.
pub const APART: usize = 128;
/// Bytes of a page of the segment: the unit in which it is laid out and in which its memory is taken. The kernel's
/// pages are as large on x86-64, and up to 64 KiB on AArch64: it then takes more than it is asked for, and what is
/// mapped at an address of its own is aligned to [`HUGE_PAGE`].
pub const PAGE: usize = 4096;
/// Bytes of a huge page: large extents of the shared heap are aligned to it.
pub const HUGE_PAGE: usize = 2 << 20;
/// Bytes of a granule, the unit in which the shared heap is allocated. A granule takes address space, not memory.
pub const GRANULE: usize = 64 << 10;

const _: () = assert!(APART.is_multiple_of(LINE) && PAGE.is_multiple_of(APART));
const _: () = assert!(HUGE_PAGE.is_multiple_of(GRANULE) && GRANULE.is_multiple_of(PAGE));

// Rings.

/// Payload bytes that travel inside a cell, behind its commit word (8 bytes) and its envelope (16 bytes).
pub const INLINE: usize = LINE - 8 - 16;
/// Largest payload in bytes that one record can announce: its commit word has 23 bits for it.
pub const MAX_RECORD: usize = (1 << 23) - 1;
/// Largest payload in bytes that goes as one eager message or as eager fragments, whatever the rings allow.
pub const MAX_EAGER: usize = 1 << 22;
/// Fewest cells of a ring.
pub const MIN_CELLS: u32 = 8;
/// Most cells of a ring.
pub const MAX_CELLS: u32 = 1 << 20;
/// Fewest bytes of a ring's bulk area.
pub const MIN_BULK: u32 = 1 << 10;
/// Most bytes of a ring's bulk area.
pub const MAX_BULK: u32 = 1 << 30;
/// Most blocks of a ring.
pub const MAX_BLOCKS: usize = 8;
/// Most bytes of a block.
pub const MAX_BLOCK: usize = 32 << 10;

/// Bytes of each of the blocks behind a ring's bulk area of `bulk` bytes: 0 where that is too small for any.
#[must_use]
pub const fn block_bytes(bulk: usize) -> usize {
    let bytes = match bulk / 8 {
        // As long as it takes eight of them to fill half of the area.
        eighth if eighth > MAX_BLOCK / 2 => eighth / 2,
        eighth => eighth,
    };
    if bytes < MAX_BLOCK { bytes & !(LINE - 1) } else { MAX_BLOCK }
}

/// Blocks of a ring: as many as take half of its bulk area, or [`MAX_BLOCKS`].
#[must_use]
pub const fn block_count(bulk: usize) -> usize {
    match block_bytes(bulk) {
        0 => 0,
        bytes if bulk / 2 / bytes < MAX_BLOCKS => bulk / 2 / bytes,
        _ => MAX_BLOCKS,
    }
}

const _: () = assert!(MAX_EAGER <= MAX_RECORD);
const _: () = assert!(MIN_CELLS.is_power_of_two() && MAX_CELLS.is_power_of_two() && MIN_CELLS < MAX_CELLS);
const _: () = assert!(MIN_BULK.is_power_of_two() && MAX_BULK.is_power_of_two() && MIN_BULK < MAX_BULK);

// Notification.

/// Most rings that an oversubscribed rank polls without being notified: a context switch between two polls leaves the
/// caches cold, and one look at the doorbell tells which rings have something.
pub const POLLED_OVERSUBSCRIBED: usize = 8;
/// Most ranks of an oversubscribed job that notify each other by counters:
/// a receiver looks at the counters of all others.
pub const MAX_COUNTED_RANKS: u32 = 256;
/// Most cells of a ring whose records are counted: a counter has 16 bits,
/// and a full ring must not look like an empty one.
pub const MAX_COUNTED_CELLS: u32 = 1 << 15;

const _: () = assert!((POLLED_OVERSUBSCRIBED as u32) < MAX_COUNTED_RANKS && MAX_COUNTED_CELLS < 1 << 16);

// Matching.

/// Most entries of a queue in its short form. As many as a window of messages usually has.
pub const SHORT_QUEUE: usize = 64;
/// A deep queue that falls to this many entries turns short:
/// far below [`SHORT_QUEUE`], so that it does not turn deep again at once.
pub const SHORT_QUEUE_AGAIN: usize = 8;
/// Largest tag that a user may send with (MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

// The short form has one bit for each entry.
const _: () = assert!(SHORT_QUEUE == u64::BITS as usize && 2 * SHORT_QUEUE_AGAIN <= SHORT_QUEUE);

// Communicators and their collective segments.

/// Context ids of a job: the most communicators that can exist at once.
pub const CONTEXTS: u32 = 65_536;
/// Communicators of a job that can have a collective segment at once. In Miri address space is memory.
pub const COLLECTIVE_SEGMENTS: usize = if cfg!(miri) { 4 } else { 256 };
/// Rounds of collectives that can be under way at once in a collective segment. So far a root may run ahead, and where
/// ranks share CPUs one switch of all serves as many operations. (8 bytes from one root to 16 ranks on 2 CPUs: 5.5 and
/// 11 microseconds, blocking and persistent, with eight; 2.2 and 3.3 with 32.)
pub const TEAM_ROUNDS: usize = 32;
/// Bytes of what one member says in one round: two words and its data.
pub const TEAM_SLOT: usize = 256;
/// Parts of a collective segment's bulk, each used by one round at a time.
pub const TEAM_PARTS: usize = 4;
/// Most bytes of a part of a collective segment's bulk, unless a page for each member is more.
pub const TEAM_PART: usize = 1 << 20;
/// Most bytes of memory that the free collective segments of a job keep together: about four whole ones.
pub const IDLE_MEMORY: u64 = 16 << 20;

const _: () = assert!(TEAM_SLOT.is_multiple_of(APART) && TEAM_PART.is_multiple_of(PAGE));
// A part is free again once the rounds between two uses of it are no longer under way.
const _: () = assert!(TEAM_PARTS < TEAM_ROUNDS);

// Tools.

/// Most event types. A gate has a bit for each, and the bits are a cache line.
pub const EVENT_TYPES: usize = 511;

/// Handles, and sessions, of one kind that tools may have at once (MPI_T).
pub const TOOL_HANDLES: usize = 65_536;
/// Sources of MPI_T events: the buffers, and a source for each thread.
/// Events of further threads carry the buffers' source.
pub const EVENT_SOURCES: usize = 1024;
/// Most entries of an MPI_T event buffer; at most 120 bytes each.
pub const EVENT_BUFFER: usize = 1 << 20;
/// Most bytes of a text variable, the terminating zero included.
pub const VARIABLE_TEXT: usize = 256;

/// Returns how many of `many` rounds a test takes: few where it is interpreted (Miri),
/// which takes a thousand times as long.
#[cfg(test)]
pub const fn rounds(many: usize) -> usize {
    if !cfg!(miri) {
        many
    } else if many < 2000 {
        20
    } else if many < 200_000 {
        many / 200
    } else {
        1000
    }
}

/// Returns n, where a test takes every n-th of its `many` cases: all of them, or as few as [`rounds`]. Odd, for the
/// cases of nested loops repeat at even distances.
#[cfg(test)]
pub const fn every(many: usize) -> usize {
    (many / rounds(many)) | 1
}
