//! What threads wait for while another thread of their rank runs progress (MPI_THREAD_MULTIPLE),
//! for people who ask why a job stands still.

use super::counters::Counter;
use super::waiting::{Wait, WaitingFor};

/// What the thread of a thread slot waits for, once it has blocked in vain. One writer: the thread that owns the slot.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ThreadWait {
    waiting: WaitingFor,
    /// The kernel's number of the thread, and below [`LOOK_BITS`] how often it has looked in vain whether the wait is
    /// over.
    looks: Counter,
}

/// Bits of [`ThreadWait::looks`] that count.
const LOOK_BITS: u32 = 32;
const LOOKS: u64 = (1 << LOOK_BITS) - 1;

/// A sample of [`ThreadWait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingThread {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The number of the wait, which no other wait of the thread slot has.
    pub number: u64,
    /// How often it has looked in vain, modulo 2³².
    pub looks: u32,
    /// What it waits for.
    pub wait: Wait,
}

impl ThreadWait {
    /// Stores that `thread`, the kernel's number of the caller, is in a wait.
    pub fn begin(&self, thread: u32, wait: &Wait) {
        self.looks.set(u64::from(thread) << LOOK_BITS);
        self.waiting.set(wait);
    }

    /// Counts a look in vain.
    pub fn look(&self) {
        let word = self.looks.get();
        self.looks.set(word & !LOOKS | word.wrapping_add(1) & LOOKS);
    }

    /// Stores that the wait is over.
    pub fn end(&self) {
        self.waiting.clear();
    }

    /// Returns what the thread of the slot waits for, if it waits. The looks may be of a later wait than the rest.
    #[must_use]
    pub fn get(&self) -> Option<WaitingThread> {
        let (number, wait) = self.waiting.numbered()?;
        let word = self.looks.get();
        Some(WaitingThread { thread: (word >> LOOK_BITS) as u32, number, looks: word as u32, wait })
    }
}
