//! A page for each rank that says what the rank does right now: counters, queue lengths, what it waits for.
//!
//! | file | what it defines |
//! |---|---|
//! | `mod` | [`Telemetry`]: the page |
//! | [`counters`] | [`Counter`] and [`QueueLength`]: words with one writer |
//! | [`waiting`] | [`Wait`], [`WaitingFor`], [`LastYield`] |
//! | [`threads`] | [`ThreadWait`], [`WaitingThread`]: waits of threads that do not run progress |
//! | [`detail`] | [`WaitDetail`], [`DetailWords`]: what a rank says of a long wait |
//! | [`collective`] | what it says of a collective call |
//!
//! A page has one writer, the rank itself, which uses plain relaxed stores: it costs next to nothing and is always on.
//! It has any number of readers, inside and outside of the job. They take it as a sequence of samples: a word is never
//! torn, but two words may be of different moments. With MPI_THREAD_MULTIPLE each thread counts messages in its thread
//! slot ([`crate::sync::thread_slot`]), and readers add up; of these counts nothing is lost. Two threads that change
//! another counter at once may lose a step.

pub mod collective;
pub mod counters;
pub mod detail;
#[cfg(test)]
mod tests;
pub mod threads;
pub mod waiting;

pub use crate::events::{AboutKind, CommAbout};
pub use collective::{CollectiveAbout, RootAbout};
pub use counters::{Counter, QueueLength};
pub use detail::{
    CallsMade, DetailWords, LockAbout, MessageAbout, OperationAbout, UnreadyPartitions, WaitDetail,
};
pub use threads::{ThreadWait, WaitingThread};
pub use waiting::{LastYield, Wait, Waiting, WaitingFor};

use crate::sync::{OWNED_SLOTS, thread_slot};

/// The protocol by which a message went: an index into the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum ProtocolKind {
    /// Payload within the cell.
    Inline = 0,
    /// Payload in the ring's bulk area, whole.
    Eager = 1,
    /// Large: through the ring in chunks.
    Chunked = 2,
    /// Large: the receiver reads the sender's memory (CMA).
    Cma = 3,
    /// Large: both ranks copy a half.
    Shared = 4,
    /// Large: copied once, in memory that both ranks see.
    Direct = 5,
    /// From a rank to itself.
    Loopback = 6,
}

/// Number of [`ProtocolKind`] slots; one is spare.
pub const PROTOCOLS: usize = 8;

/// A rank's telemetry page. Each word has 8 bytes, little-endian. Offsets in bytes: posted 0 to 24, unexpected 32 to 56
/// (now, high, most, least), messages sent 64.., received 128.., bytes sent 192.., received 256.. (eight words each, by
/// [`ProtocolKind`]), sleeps 320, wakes 328, ring full 336, yields 344, shared and ordinary allocations 352 and 360,
/// poller 368, unexpected bytes 376 to 400, nanoseconds asleep 408, waiting 440 (count, state, peer, tag, context,
/// since), last yield 488 (CPU + 1, partner + 1), moves 504, the counts of other thread slots 512.., 768.. and so on,
/// behind them what each thread slot has added to the posted and the unexpected (two words of 64 bytes each), the
/// detail of a wait, and the waits of the threads of thread slots with an owner.
/// Stirs 416, vain blocks 424, threads 432.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Telemetry {
    /// Receives that are posted and not matched.
    pub posted: QueueLength,
    /// Messages that have arrived and are not matched.
    pub unexpected: QueueLength,
    /// What the one thread has counted; with several, those of the first thread slot.
    first: Counts,
    /// Times the rank went to sleep.
    pub sleeps: Counter,
    /// Times it woke a sleeping peer.
    pub wakes: Counter,
    /// Times a send found its ring full.
    pub ring_full: Counter,
    /// Times it yielded its CPU in a wait.
    pub yields: Counter,
    /// Times MPI_Alloc_mem took memory that all ranks see.
    pub shared_allocations: Counter,
    /// Times it took memory of the process, for all its size: there was no room, or no shared heap.
    pub ordinary_allocations: Counter,
    /// The thread that runs progress and has noted what it waits for, by the kernel's number,
    /// where several threads may call MPI at once.
    pub poller: Counter,
    /// Payload bytes that unexpected messages hold in memory of their own.
    pub unexpected_bytes: QueueLength,
    /// Nanoseconds that the rank has slept.
    pub asleep: Counter,
    /// Blocks before which the rank had handled, sent or ended something since the one before,
    /// or had just begun to wait.
    pub stirred_blocks: Counter,
    /// Blocks before which it had not.
    pub vain_blocks: Counter,
    /// 1 if several threads of the rank may call MPI at once.
    pub threads: Counter,
    /// What it waits for right now.
    pub waiting: WaitingFor,
    /// Where it ran when it last yielded.
    pub last_yield: LastYield,
    /// Times it moved: off the CPU of the rank that it waits for, or back to where it began (core migration).
    pub moves: Counter,
    /// What the threads of the other thread slots have counted; the last are those of the slots without an owner.
    others: [Counts; OWNED_SLOTS],
    /// What the threads of each thread slot have added to the lengths of the queues.
    levels: [Levels; OWNED_SLOTS + 1],
    /// What it says of the wait in which it sleeps.
    pub detail: DetailWords,
    /// What the threads of thread slots with an owner wait for that do not run progress.
    waits: [ThreadWait; OWNED_SLOTS],
}

#[cfg(not(perusal_loom))]
mod wish {
    use crate::sync::{AtomicBool, Ordering};

    /// Whether a tool has asked this process for something.
    pub struct Wish(AtomicBool);

    impl Wish {
        pub const fn new() -> Self {
            Self(AtomicBool::new(false))
        }
        #[inline(always)]
        pub fn is_there(&self) -> bool {
            // Relaxed, here and below: a change at the moment when a tool asks may count before it or after it.
            self.0.load(Ordering::Relaxed)
        }
        pub fn note(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A static cannot hold one of loom's atomics, and nothing that is modelled has lengths.
#[cfg(perusal_loom)]
mod wish {
    pub struct Wish;

    impl Wish {
        pub const fn new() -> Self {
            Self
        }
        pub fn is_there(&self) -> bool {
            true
        }
        pub fn note(&self) {}
    }
}

/// Extremes of lengths.
static EXTREMES: wish::Wish = wish::Wish::new();
/// Lengths.
static LENGTHS: wish::Wish = wish::Wish::new();

/// A tool may read lengths of this process's ranks from now on: a message that a probe has found counts as unexpected.
pub fn expect_readers() {
    LENGTHS.note();
}

/// Whether [`expect_readers`] has been called.
#[inline(always)]
pub(crate) fn has_readers() -> bool {
    LENGTHS.is_there()
}

/// Makes the threads of the ranks of this process change the words of the lengths themselves from now on, so that no
/// extreme is missed. Until a tool asks for that, threads count in their slots,
/// and the extremes are those of one thread's changes.
pub fn watch_extremes() {
    EXTREMES.note();
}

/// What the threads of a thread slot have added to the lengths of the queues, less what they have taken: the sum over
/// all thread slots is the length.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Levels {
    posted: Counter,
    unexpected: Counter,
}

/// What has been sent and received, by protocol. Threads that send at once count on lines of their own (but for more
/// than [`OWNED_SLOTS`]); readers add up.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counts {
    /// Messages sent.
    pub sent: [Counter; PROTOCOLS],
    /// Messages received.
    pub received: [Counter; PROTOCOLS],
    /// Payload bytes sent.
    pub sent_bytes: [Counter; PROTOCOLS],
    /// Payload bytes received.
    pub received_bytes: [Counter; PROTOCOLS],
}

// SAFETY: counters, which are atomics, and padding.
unsafe impl super::segment::SharedWords for Telemetry {}

impl Telemetry {
    /// Counts a message sent. `shared`: several threads may do so at once.
    #[inline(always)]
    pub fn count_sent(&self, protocol: ProtocolKind, bytes: usize, shared: bool) {
        if shared {
            return self.count_in_slot(protocol, 1, bytes as u64, true);
        }
        self.first.sent[protocol as usize].add(1);
        self.first.sent_bytes[protocol as usize].add(bytes as u64);
    }

    /// Bytes of the messages that the rank has sent; of one with several threads, those of the first.
    pub fn bytes_sent_alone(&self) -> u64 {
        self.first.sent_bytes.iter().map(Counter::get).sum()
    }

    /// Counts messages received, which had `bytes` bytes in all. `shared`: several threads may do so at once.
    #[inline(always)]
    pub fn count_received(&self, protocol: ProtocolKind, messages: u64, bytes: u64, shared: bool) {
        if shared {
            return self.count_in_slot(protocol, messages, bytes, false);
        }
        self.first.received[protocol as usize].add(messages);
        self.first.received_bytes[protocol as usize].add(bytes);
    }

    #[inline]
    fn count_in_slot(&self, protocol: ProtocolKind, messages: u64, bytes: u64, sent: bool) {
        let slot = thread_slot();
        let counts = match slot {
            0 => &self.first,
            other => &self.others[other.min(OWNED_SLOTS) - 1],
        };
        let (number, total) = if sent {
            (&counts.sent, &counts.sent_bytes)
        } else {
            (&counts.received, &counts.received_bytes)
        };
        let (number, total) = (&number[protocol as usize], &total[protocol as usize]);
        if slot < OWNED_SLOTS {
            // thread slot rule 1: there is one writer.
            number.add(messages);
            total.add(bytes);
        } else {
            number.add_shared(messages);
            total.add_shared(bytes);
        }
    }

    /// Notes that so many receives more are posted (or fewer). `shared`: other threads may note the same.
    #[inline(always)]
    pub fn change_posted(&self, by: i64, shared: bool) {
        if shared {
            return self.change_posted_in_slot(by);
        }
        self.posted.change(by, false);
    }

    /// A function of its own, so that the path of a single thread has nothing of it.
    #[inline(never)]
    fn change_posted_in_slot(&self, by: i64) {
        self.change_level(&self.posted, |levels| &levels.posted, by);
    }

    /// Notes that so many messages more are unexpected (or fewer). `shared`: other threads may note the same.
    #[inline(always)]
    pub fn change_unexpected(&self, by: i64, shared: bool) {
        if shared {
            return self.change_unexpected_in_slot(by);
        }
        self.unexpected.change(by, false);
    }

    #[inline(never)]
    fn change_unexpected_in_slot(&self, by: i64) {
        self.change_level(&self.unexpected, |levels| &levels.unexpected, by);
    }

    #[inline(always)]
    fn change_level(&self, length: &QueueLength, level: impl Fn(&Levels) -> &Counter, by: i64) {
        if EXTREMES.is_there() {
            return length.change_shared(by, self.in_slots(level));
        }
        let slot = thread_slot();
        let level = level(&self.levels[slot.min(OWNED_SLOTS)]);
        if slot < OWNED_SLOTS { level.step(by) } else { level.add_shared(by.cast_unsigned()) }
    }

    fn in_slots(&self, level: impl Fn(&Levels) -> &Counter) -> u64 {
        self.levels.iter().map(|levels| level(levels).get()).fold(0, u64::wrapping_add)
    }

    /// The place for what the calling thread waits for; `None` for one without a thread slot of its own.
    #[must_use]
    pub fn own_wait(&self) -> Option<&ThreadWait> {
        self.waits.get(thread_slot())
    }

    /// The threads that wait while another one runs progress, and have blocked in vain.
    pub fn waiting_threads(&self) -> impl Iterator<Item = WaitingThread> + '_ {
        self.waits.iter().filter_map(ThreadWait::get)
    }

    /// Receives that are posted now.
    #[must_use]
    pub fn posted_now(&self) -> u64 {
        self.posted.now.get().wrapping_add(self.in_slots(|levels| &levels.posted))
    }

    /// Messages that are unexpected now.
    #[must_use]
    pub fn unexpected_now(&self) -> u64 {
        self.unexpected.now.get().wrapping_add(self.in_slots(|levels| &levels.unexpected))
    }

    /// The sum of `part` over all threads.
    #[must_use]
    pub fn sum(&self, part: impl Fn(&Counts) -> u64) -> u64 {
        self.others.iter().map(&part).fold(part(&self.first), u64::wrapping_add)
    }
}

#[cfg(not(perusal_loom))]
const _: () = {
    assert!(core::mem::size_of::<Telemetry>() as u64 <= super::layout::TELEMETRY);
    assert!(core::mem::offset_of!(Telemetry, first) == 64);
    assert!(core::mem::offset_of!(Counts, received_bytes) == 192);
    assert!(core::mem::offset_of!(Telemetry, sleeps) == 320);
    assert!(core::mem::offset_of!(Telemetry, unexpected_bytes) == 376);
    assert!(core::mem::offset_of!(Telemetry, waiting) == 440);
    assert!(core::mem::offset_of!(Telemetry, last_yield) == 488);
    assert!(core::mem::offset_of!(Telemetry, moves) == 504);
    assert!(core::mem::offset_of!(Telemetry, others) == 512);
    assert!(core::mem::offset_of!(Telemetry, stirred_blocks) == 416);
    assert!(core::mem::offset_of!(Telemetry, levels) == 4608);
    assert!(core::mem::offset_of!(Telemetry, detail) == 5696);
    assert!(core::mem::size_of::<Levels>() == 64);
    assert!(core::mem::size_of::<Counts>() == 256);
};
