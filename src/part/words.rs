//! The words that the two requests of a partitioned message share, and the marks that the sender keeps.
//! Rounds count from 1.

use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// What sender and receiver tell each other. All zero at first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ChannelWords {
    receiver: ReceiverWords,
    sender: SenderWords,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct ReceiverWords {
    /// The last round that the sender may write.
    cleared: AtomicU64,
    /// How many of the two have left.
    left: AtomicU32,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct SenderWords {
    /// Bytes of a round, plus one; 0 if not known yet.
    length: AtomicU64,
    /// The last round of which everything has been written.
    ended: AtomicU64,
}

impl ChannelWords {
    /// The receiver lets the sender write `round`.
    pub fn clear(&self, round: u64) {
        // Release: "partition clear" edge, pairs with Acquire in `is_clear`: what the receiver has read before is not
        // overwritten.
        self.receiver.cleared.store(round, Ordering::Release);
    }

    /// The receiver lets the sender write nothing any more. What the sender has begun to copy may still come.
    pub fn withdraw(&self) {
        // Relaxed: "copying" edge: before the fence in `RosterEntry::is_copying`, by which the receiver waits for that.
        self.receiver.cleared.store(0, Ordering::Relaxed);
    }

    /// Whether the sender may write `round`.
    pub fn is_clear(&self, round: u64) -> bool {
        // Acquire: "partition clear" edge, pairs with Release in `clear`.
        self.receiver.cleared.load(Ordering::Acquire) >= round
    }

    /// The sender says how many bytes it sends in each round, before it sends the first.
    pub fn set_length(&self, bytes: u64) {
        // Release: "partition end" edge, pairs with Acquire in `length`.
        self.sender.length.store(bytes + 1, Ordering::Release);
    }

    /// How many bytes the sender sends in each round, if that is known.
    pub fn length(&self) -> Option<u64> {
        // Acquire: "partition end" edge, pairs with Release in `set_length`.
        self.sender.length.load(Ordering::Acquire).checked_sub(1)
    }

    /// The sender has written everything of `round`.
    pub fn end(&self, round: u64) {
        // Release: "partition end" edge, pairs with Acquire in `has_ended`: the data is there.
        self.sender.ended.store(round, Ordering::Release);
    }

    /// Whether everything of `round` is there.
    pub fn has_ended(&self, round: u64) -> bool {
        // Acquire: "partition end" edge, pairs with Release in `end`.
        self.sender.ended.load(Ordering::Acquire) >= round
    }

    /// One of the two leaves. Returns whether it is the last, and so frees the memory (partition rule 3).
    #[must_use]
    pub fn leave(&self) -> bool {
        // AcqRel: "partition leave" edge, pairs with itself: the last one comes after all accesses of the other.
        self.receiver.left.fetch_add(1, Ordering::AcqRel) == 1
    }
}

/// How many bytes of one of the receiver's partitions have come, in all rounds together.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct ArrivalCount(AtomicU64);

impl ArrivalCount {
    /// The sender has written so many bytes of it.
    pub fn add(&self, bytes: u64) {
        // Release: "partition arrival" edge, pairs with Acquire in `is`; a read-modify-write, so that a thread that
        // sees the sum sees all parts of it.
        self.0.fetch_add(bytes, Ordering::Release);
    }

    /// Whether so many bytes have come.
    #[must_use]
    pub fn is(&self, bytes: u64) -> bool {
        // Acquire: "partition arrival" edge, pairs with Release in `add`.
        self.0.load(Ordering::Acquire) == bytes
    }
}

/// How far a partition is: of the sender's, ready and then taken; of a receiver's that unpacks, taken and then
/// unpacked. And how far the end of a receiver's round is: claimed by one thread, and then over. Twice the round, plus
/// one for the second step.
#[derive(Debug, Default)]
pub struct Mark(AtomicU64);

impl Mark {
    /// Takes the first step of `round`. Returns whether nobody had taken it.
    #[must_use]
    pub fn step(&self, round: u64) -> bool {
        // AcqRel: "partition mark" edge, pairs with Acquire in `take` and `is_over`: what the caller stored in the
        // buffer is there for who copies.
        self.0.fetch_max(2 * round, Ordering::AcqRel) < 2 * round
    }

    /// Whether the first step of `round` has been taken, or the second.
    #[must_use]
    pub fn has_stepped(&self, round: u64) -> bool {
        // Relaxed: a hint; `step` decides.
        self.0.load(Ordering::Relaxed) >= 2 * round
    }

    /// Whether the first step of `round` has been taken, and not the second.
    #[must_use]
    pub fn is_ready(&self, round: u64) -> bool {
        // Relaxed: a hint; `take` acquires.
        self.0.load(Ordering::Relaxed) == 2 * round
    }

    /// Takes the second step of `round`, if the first one has been taken.
    /// Returns whether the caller did (partition rule 2).
    #[must_use]
    pub fn take(&self, round: u64) -> bool {
        // AcqRel: "partition mark" edge, pairs with Release in `step`; and with Acquire in `is_over`: what was unpacked
        // is there. "partition received" edge, pairs with Acquire in `is_over`: the caller's last access to the shared
        // memory has been made.
        self.0.compare_exchange(2 * round, 2 * round + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether both steps of `round` have been taken.
    #[must_use]
    pub fn is_over(&self, round: u64) -> bool {
        // Acquire: "partition mark" and "partition received" edges, pairs with Release in `take`.
        self.0.load(Ordering::Acquire) > 2 * round
    }
}

/// How many partitions of a round have been sent.
#[derive(Debug, Default)]
pub struct SentCount(AtomicUsize);

impl SentCount {
    /// Begins a round.
    pub fn reset(&self) {
        // Relaxed: a round is started before any other call knows of it, which the program orders.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Counts one more. Returns how many there are.
    #[must_use]
    pub fn add(&self) -> usize {
        // AcqRel: "partition done" edge, pairs with itself: the last one comes after what all others have written.
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Of a send, the last round that is over.
#[derive(Debug, Default)]
pub struct OverRound(AtomicU64);

impl OverRound {
    /// `round` is over.
    pub fn end(&self, round: u64) {
        // Release: "partition done" edge, pairs with Acquire in `is_over`.
        self.0.store(round, Ordering::Release);
    }

    /// Whether `round` is over.
    #[must_use]
    pub fn is_over(&self, round: u64) -> bool {
        // Acquire: "partition done" edge, pairs with Release in `end`.
        self.0.load(Ordering::Acquire) >= round
    }
}
