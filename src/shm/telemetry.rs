//! One page a rank that tells what the rank does right now: counters, queue lengths, what it waits for.
//!
//! One writer, the rank itself, with plain relaxed stores, so that it costs next to nothing and is always on; any number
//! of readers, inside and outside of the job. Readers take a page as a sequence of samples: single words are never torn,
//! words beside each other may be of different moments. With MPI_THREAD_MULTIPLE each thread counts messages in its thread slot
//! ([`crate::sync::thread_slot`]), and who reads adds up; of these nothing is lost. Of the other counters two threads may count at once and lose a step.
//!
//! Offsets in the page, in bytes, each word 8 bytes, little-endian: see [`Telemetry`].

use core::fmt;
use num_enum::FromPrimitive;

use crate::sync::{AtomicU64, OWNED_SLOTS, Ordering, thread_slot};

/// Ways a message can take, as an index into the counters.
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
    /// Large: copied straight between memory that both see.
    Direct = 5,
    /// From a rank to itself.
    Loopback = 6,
}

/// Number of [`ProtocolKind`] slots; one is spare.
pub const PROTOCOLS: usize = 8;

/// A word with one writer.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Count(AtomicU64);

impl Count {
    /// The value now.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        // Relaxed: a sample; no other memory is read because of it.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u64) {
        // Relaxed: a sample; publishes nothing else.
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds `n` without a locked instruction: there is one writer.
    #[inline]
    pub fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    /// Adds `n` beside others who do so.
    #[inline]
    fn add_beside_others(&self, n: u64) {
        // Relaxed: a sample; one instruction, so that no step is lost.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds or takes away.
    #[inline]
    pub fn step(&self, by: i64) {
        self.set(self.get().wrapping_add_signed(by));
    }
}

/// A length, the highest value that it ever had, and its extremes since a moment that tools choose.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Length {
    /// Entries now, but for what thread slots have counted ([`Telemetry::posted_now`]).
    pub now: Count,
    /// Most entries ever.
    pub high: Count,
    /// Most entries since the last [`Length::cut`].
    pub most: Count,
    /// Fewest entries since then.
    pub least: Count,
}

impl Length {
    /// Notes that the queue has `entries` entries now.
    #[inline]
    pub fn set(&self, entries: u64) {
        self.now.set(entries);
        self.extremes(entries);
    }

    /// Notes that the queue has so many entries more (or less) than before. `shared`: other threads may do so too.
    #[inline(always)]
    pub fn change(&self, by: i64, shared: bool) {
        if shared {
            return self.change_beside_others(by, 0);
        }
        let entries = self.now.get().wrapping_add_signed(by);
        self.now.set(entries);
        // What grows cannot become the least.
        if by > 0 {
            if entries > self.most.get() {
                self.rise(entries);
            }
        } else if entries < self.least.get() {
            self.least.set(entries);
        }
    }

    /// The same beside other threads that do so; `elsewhere`: how many entries thread slots count besides.
    #[inline(never)]
    fn change_beside_others(&self, by: i64, elsewhere: u64) {
        // Relaxed, here and in the next: samples. Each by one instruction, so that neither a step nor an extreme is lost.
        let before = self.now.0.fetch_add(by.cast_unsigned(), Ordering::Relaxed);
        self.extremes_beside_others(before.wrapping_add_signed(by).wrapping_add(elsewhere));
    }

    fn extremes_beside_others(&self, entries: u64) {
        if entries > self.most.get() {
            self.most.0.fetch_max(entries, Ordering::Relaxed);
            self.high.0.fetch_max(entries, Ordering::Relaxed);
        } else if entries < self.least.get() {
            self.least.0.fetch_min(entries, Ordering::Relaxed);
        }
    }

    #[cold]
    fn rise(&self, entries: u64) {
        self.most.set(entries);
        if entries > self.high.get() {
            self.high.set(entries);
        }
    }

    #[inline(always)]
    fn extremes(&self, entries: u64) {
        if entries > self.most.get() {
            self.rise(entries);
        } else if entries < self.least.get() {
            self.least.set(entries);
        }
    }

    /// Begins a new time for the extremes, with `now` entries; gives the most and the fewest entries of the one that ends.
    pub fn cut(&self, now: u64) -> (u64, u64) {
        // Relaxed: samples. What the rank's own thread notes at this very moment belongs to either time.
        (self.most.0.swap(now, Ordering::Relaxed), self.least.0.swap(now, Ordering::Relaxed))
    }
}

/// What a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromPrimitive)]
#[repr(u64)]
pub enum Waiting {
    /// It does not wait.
    #[num_enum(default)]
    Nothing = 0,
    /// A blocking receive, or a wait for one.
    Receive = 1,
    /// A blocking send, or a wait for one.
    Send = 2,
    /// A probe.
    Probe = 3,
    /// One of several requests.
    Any = 4,
    /// All of several requests.
    All = 5,
    /// A collective operation.
    Collective = 6,
    /// The others, in MPI_Finalize.
    Finalize = 7,
    /// Room in the ring to a peer.
    Room = 8,
}

/// What the rank waits for and since when.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WaitingFor {
    kind: Count,
    peer: Count,
    tag: Count,
    context: Count,
    since: Count,
}

/// A sample of [`WaitingFor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// For what kind of thing.
    pub kind: Waiting,
    /// World rank of the peer; `None` for any or several.
    pub peer: Option<u32>,
    /// The tag; `None` for any.
    pub tag: Option<i32>,
    /// The context id.
    pub context: u32,
    /// Nanoseconds on CLOCK_MONOTONIC at which the wait began.
    pub since: u64,
}

/// "No particular one" in the words for peer and tag.
const ANY: u64 = u64::MAX;

impl WaitingFor {
    /// Notes a wait. Worth calling where a rank is about to sleep, not on the way of every message. Noting the same wait
    /// again before [`WaitingFor::clear`] keeps the time at which it began.
    pub fn set(&self, wait: &Wait) {
        if self.get().is_some_and(|noted| Wait { since: wait.since, ..noted } == *wait) {
            return;
        }
        self.peer.set(wait.peer.map_or(ANY, u64::from));
        self.tag.set(wait.tag.map_or(ANY, |tag| u64::from(tag.cast_unsigned())));
        self.context.set(u64::from(wait.context));
        self.since.set(wait.since);
        // Release: "telemetry" edge, pairs with Acquire in `get`: who sees the kind sees the words that belong to it.
        self.kind.0.store(wait.kind as u64, Ordering::Release);
    }

    /// Notes that the wait is over.
    #[inline]
    pub fn clear(&self) {
        self.kind.set(Waiting::Nothing as u64);
    }

    /// What the rank waits for, if it waits.
    #[must_use]
    pub fn get(&self) -> Option<Wait> {
        // Acquire: "telemetry" edge, pairs with Release in `set`.
        let kind = Waiting::from_primitive(self.kind.0.load(Ordering::Acquire));
        (kind != Waiting::Nothing).then(|| Wait {
            kind,
            peer: u32::try_from(self.peer.get()).ok(),
            tag: u32::try_from(self.tag.get()).ok().map(u32::cast_signed),
            context: u32::try_from(self.context.get()).unwrap_or(u32::MAX),
            since: self.since.get(),
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer.map_or_else(|| "any rank".to_owned(), |peer| format!("rank {peer}"));
        let tag = self.tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
        let context = self.context;
        match self.kind {
            Waiting::Nothing => write!(f, "nothing"),
            Waiting::Receive => write!(f, "a message from {peer}, {tag}, context {context}"),
            Waiting::Send => write!(f, "{peer} to receive a message, {tag}, context {context}"),
            Waiting::Probe => write!(f, "a message to probe from {peer}, {tag}, context {context}"),
            Waiting::Any => write!(f, "any of several requests"),
            Waiting::All => write!(f, "all of several requests"),
            Waiting::Collective => match self.peer {
                Some(_) => write!(f, "{peer} in a collective operation, context {context}"),
                None => write!(f, "a collective operation, context {context}"),
            },
            Waiting::Finalize => write!(f, "the other ranks, in MPI_Finalize"),
            Waiting::Room => write!(f, "room in the ring to {peer}"),
        }
    }
}

/// Where a rank sat, and with whom it talked, when it last gave its CPU away for want of an answer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LastYield {
    /// The CPU and one more; 0 before the first such wait.
    cpu: Count,
    /// World rank of whom it waited for and one more; 0 for nobody in particular.
    partner: Count,
}

impl LastYield {
    /// Notes where the rank sits, and whom it waits for.
    pub fn set(&self, cpu: u32, partner: Option<u32>) {
        self.cpu.set(u64::from(cpu) + 1);
        self.partner.set(partner.map_or(0, |partner| u64::from(partner) + 1));
    }

    /// Where it sat.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        u32::try_from(self.cpu.get().checked_sub(1)?).ok()
    }

    /// Whom it waited for there.
    #[must_use]
    pub fn partner(&self) -> Option<u32> {
        u32::try_from(self.partner.get().checked_sub(1)?).ok()
    }
}

/// The page. Offsets: posted 0 to 24, unexpected 32 to 56 (now, high, most, least), messages sent 64.., received 128.., bytes sent 192..,
/// received 256.. (eight words each, by [`ProtocolKind`]), sleeps 320, wakes 328, ring full 336, yields 344, shared and ordinary
/// allocations 352 and 360, unexpected bytes 376 to 400, nanoseconds asleep 408, waiting 448 (kind, peer, tag, context, since),
/// seat 488 (CPU + 1, partner + 1), moves 504, the counts of other thread slots 512.., 768.. and so on, behind them what each thread slot has added
/// to the posted and the unexpected (two words of 64 bytes each).
#[derive(Debug, Default)]
#[repr(C)]
pub struct Telemetry {
    /// Receives that are posted and not matched.
    pub posted: Length,
    /// Messages that have arrived and are not matched.
    pub unexpected: Length,
    /// What the one thread has counted; with several, those of the first thread slot.
    first: Counts,
    /// Times the rank went to sleep.
    pub sleeps: Count,
    /// Times it woke a sleeping peer.
    pub wakes: Count,
    /// Times a send found its ring full.
    pub ring_full: Count,
    /// Times it gave its CPU away while waiting.
    pub yields: Count,
    /// Times MPI_Alloc_mem took memory that all ranks see.
    pub shared_allocations: Count,
    /// Times it took memory of the process, for all its size: there was no room, or no shared heap.
    pub ordinary_allocations: Count,
    _apart0: Count,
    /// Payload bytes that unexpected messages hold in memory of their own.
    pub unexpected_bytes: Length,
    /// Nanoseconds that the rank has slept.
    pub asleep: Count,
    _apart1: [Count; 4],
    /// What it waits for right now.
    pub waiting: WaitingFor,
    /// Where it sat when it last waited in vain.
    pub last_yield: LastYield,
    /// Times it moved away from the CPU of the rank that it talks to.
    pub moves: Count,
    /// What the threads of the other thread slots have counted; the last are those of the slots without an owner.
    others: [Counts; OWNED_SLOTS],
    /// What the threads of each thread slot have added to the lengths of the queues.
    levels: [Levels; OWNED_SLOTS + 1],
}

#[cfg(not(perusal_loom))]
mod watch {
    use crate::sync::{AtomicBool, Ordering};

    /// Whether a tool has asked this process for extremes of lengths.
    static WATCHED: AtomicBool = AtomicBool::new(false);

    #[inline(always)]
    pub fn is_on() -> bool {
        // Relaxed, here and below: what happens beside the beginning of a watch belongs before it or behind it.
        WATCHED.load(Ordering::Relaxed)
    }
    pub fn begin() {
        WATCHED.store(true, Ordering::Relaxed);
    }
}

/// A static cannot hold one of loom's atomics, and nothing that is modelled has lengths.
#[cfg(perusal_loom)]
mod watch {
    pub fn is_on() -> bool {
        true
    }
    pub fn begin() {}
}

/// From now on several threads of a rank of this process change the lengths' own words, one after the other, so that no extreme is missed.
/// Until a tool asks for that they do not meet there, and the extremes are those of what one thread alone has done.
pub fn watch_extremes() {
    watch::begin();
}

/// What the threads of a thread slot have added to the lengths of the queues, less what they have taken: the sum over all thread slots is the length.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Levels {
    posted: Count,
    unexpected: Count,
}

/// What has been sent and received, by protocol. Threads that send at once count on lines of their own (but for more than
/// [`OWNED_SLOTS`]); who reads adds up.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counts {
    /// Messages sent.
    pub sent: [Count; PROTOCOLS],
    /// Messages received.
    pub received: [Count; PROTOCOLS],
    /// Payload bytes sent.
    pub sent_bytes: [Count; PROTOCOLS],
    /// Payload bytes received.
    pub received_bytes: [Count; PROTOCOLS],
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
            number.add_beside_others(messages);
            total.add_beside_others(bytes);
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

    /// Apart, so that the way of a single thread has nothing of it.
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
    fn change_level(&self, length: &Length, level: impl Fn(&Levels) -> &Count, by: i64) {
        if watch::is_on() {
            return length.change_beside_others(by, self.in_slots(level));
        }
        let slot = thread_slot();
        let level = level(&self.levels[slot.min(OWNED_SLOTS)]);
        if slot < OWNED_SLOTS { level.step(by) } else { level.add_beside_others(by.cast_unsigned()) }
    }

    fn in_slots(&self, level: impl Fn(&Levels) -> &Count) -> u64 {
        self.levels.iter().map(|levels| level(levels).get()).fold(0, u64::wrapping_add)
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
    assert!(core::mem::offset_of!(Telemetry, waiting) == 448);
    assert!(core::mem::offset_of!(Telemetry, last_yield) == 488);
    assert!(core::mem::offset_of!(Telemetry, moves) == 504);
    assert!(core::mem::offset_of!(Telemetry, others) == 512);
    assert!(core::mem::offset_of!(Telemetry, levels) == 4608);
    assert!(core::mem::size_of::<Levels>() == 64);
    assert!(core::mem::size_of::<Counts>() == 256);
};

#[cfg(test)]
#[path = "telemetry_test.rs"]
mod tests;
