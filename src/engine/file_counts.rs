//! What a rank does with files, as performance variables show it.

use crate::sync::{AtomicU64, Ordering};

/// Counts of a rank's accesses to files. Several threads count:
/// those of the program and those that access files for it.
#[derive(Debug, Default)]
pub struct FileCounts {
    reads: AtomicU64,
    writes: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    lock_waits: AtomicU64,
    lock_wait_time: AtomicU64,
}

/// One of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCount {
    /// Accesses that read.
    Reads,
    /// Accesses that write.
    Writes,
    /// Bytes that were read, as they are in memory.
    BytesRead,
    /// Bytes that were written.
    BytesWritten,
    /// Locks of atomic accesses that were not granted at once.
    LockWaits,
    /// Nanoseconds of waiting for them.
    LockWaitTime,
}

impl FileCounts {
    fn word(&self, count: FileCount) -> &AtomicU64 {
        match count {
            FileCount::Reads => &self.reads,
            FileCount::Writes => &self.writes,
            FileCount::BytesRead => &self.bytes_read,
            FileCount::BytesWritten => &self.bytes_written,
            FileCount::LockWaits => &self.lock_waits,
            FileCount::LockWaitTime => &self.lock_wait_time,
        }
    }

    /// Adds to one of them.
    pub fn add(&self, count: FileCount, n: u64) {
        // Relaxed: a sample; publishes nothing else.
        self.word(count).fetch_add(n, Ordering::Relaxed);
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, count: FileCount) -> u64 {
        // Relaxed: as in `add`.
        self.word(count).load(Ordering::Relaxed)
    }
}
