//! What a rank waits for, and on which CPU it last waited in vain.

use super::counters::Counter;
pub use crate::events::Waiting;
use crate::sync::{Ordering, fence};
use core::fmt;

/// What a rank waits for and since when, in shared memory: a sequence lock, so that a reader never has the kind of one
/// wait with the words of another. The thread that runs progress sets it; any thread of the rank may clear it. A wait
/// that is set while another thread clears the one before may be cleared with it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WaitingFor {
    /// How many waits have been set.
    sets: Counter,
    /// The kind, and above [`KIND_BITS`] the number of the wait: what `sets` was when it was set.
    /// No number comes twice, and 0 is none.
    state: Counter,
    peer: Counter,
    tag: Counter,
    context: Counter,
    since: Counter,
}

/// Bits of the state that are the kind's.
const KIND_BITS: u32 = 8;
const KIND: u64 = (1 << KIND_BITS) - 1;
/// Samples that a reader takes while waits follow each other. A rank that writes on and on has none of a reader's time.
/// In a model, one: loom lets a second one see a store that the first has seen replaced.
const SAMPLES: u32 = if cfg!(perusal_loom) { 1 } else { 16 };

/// A sample of [`WaitingFor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// What it waits for.
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
    /// Stores a wait. For a rank that is about to sleep, not for every message. If the same wait is stored already, the
    /// time at which it began stays.
    pub fn set(&self, wait: &Wait) {
        if self.get().is_some_and(|noted| Wait { since: wait.since, ..noted } == *wait) {
            return;
        }
        self.sets.add(1);
        let number = self.sets.get() << KIND_BITS;
        self.state.set(number);
        // Release: pairs with the Acquire fence in `sample`: a reader that has seen one of the words below sees the
        // state above.
        fence(Ordering::Release);
        self.peer.set(wait.peer.map_or(ANY, u64::from));
        self.tag.set(wait.tag.map_or(ANY, |tag| u64::from(tag.cast_unsigned())));
        self.context.set(u64::from(wait.context));
        self.since.set(wait.since);
        // Release: "telemetry" edge, pairs with Acquire in `sample`: a reader that sees the kind sees the words that
        // belong to it.
        self.state.0.store(number | wait.kind as u64, Ordering::Release);
    }

    /// Stores that the wait is over.
    #[inline]
    pub fn clear(&self) {
        if self.state.get() & KIND != Waiting::Nothing as u64 {
            self.state.set(Waiting::Nothing as u64);
        }
    }

    /// Returns what the rank waits for, if it waits.
    #[must_use]
    pub fn get(&self) -> Option<Wait> {
        self.numbered().map(|(_, wait)| wait)
    }

    /// Returns what the rank waits for, if it waits, and before it the number of the wait,
    /// which no other wait of the rank has.
    #[must_use]
    pub fn numbered(&self) -> Option<(u64, Wait)> {
        (0..SAMPLES).find_map(|_| self.sample()).flatten()
    }

    /// A sample, unless what it is about has changed meanwhile.
    fn sample(&self) -> Option<Option<(u64, Wait)>> {
        // Acquire: "telemetry" edge, pairs with Release in `set`.
        let state = self.state.0.load(Ordering::Acquire);
        let kind = Waiting::from_number(state & KIND);
        if kind == Waiting::Nothing {
            return Some(None);
        }
        let wait = Wait {
            kind,
            peer: u32::try_from(self.peer.get()).ok(),
            tag: u32::try_from(self.tag.get()).ok().map(u32::cast_signed),
            context: u32::try_from(self.context.get()).unwrap_or(u32::MAX),
            since: self.since.get(),
        };
        // Acquire: pairs with the Release fence in `set`: had one of the words been of a later wait,
        // the state would be, too.
        fence(Ordering::Acquire);
        (self.state.get() == state).then_some(Some((state >> KIND_BITS, wait)))
    }
}

/// Functions that wait for requests of any kind, all of which other ranks complete, or threads.
const FOR_REQUESTS: [&str; 4] = ["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];

impl Wait {
    /// Whether nobody can end it but ranks of the job and threads of this one. `call` says which MPI function waits.
    pub fn is_closed(&self, call: impl FnOnce() -> String) -> bool {
        match self.kind {
            Waiting::Outside => false,
            Waiting::Any => FOR_REQUESTS.contains(&call().as_str()),
            _ => true,
        }
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
            Waiting::Outside => write!(f, "something outside of the job"),
            Waiting::Agreement => write!(f, "the other members, to agree with them, context {context}"),
            Waiting::Operation => write!(f, "the request of a collective operation, context {context}"),
            Waiting::Partitions => write!(f, "partitions for {peer} to be ready, {tag}, context {context}"),
            Waiting::Lock => match self.peer {
                Some(_) => write!(f, "the lock of a window, which {peer} holds"),
                None => write!(f, "the lock of a window"),
            },
            Waiting::Epoch => write!(f, "an epoch of a window with {peer}"),
        }
    }
}

/// Where a rank ran when it last looked, which it does as it yields, and for which rank it waited when it last noted
/// that, less often, and whether it had better share a CPU with ranks whose numbers follow its own.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LastYield {
    /// The CPU and one more; 0 before the first such wait.
    cpu: Counter,
    /// World rank of the peer that it waited for and one more; 0 for none in particular. And [`WANTS_BLOCK`].
    partner: Counter,
}

/// In the word of the partner: the rank had better be in a block.
const WANTS_BLOCK: u64 = 1 << 32;

impl LastYield {
    /// Stores where the rank runs, and which peer it waits for.
    pub fn set(&self, cpu: u32, partner: Option<u32>) {
        self.cpu.set(u64::from(cpu) + 1);
        let wants = self.partner.get() & WANTS_BLOCK;
        self.partner.set(partner.map_or(0, |partner| u64::from(partner) + 1) | wants);
    }

    /// Stores whether the rank had better share a CPU with ranks whose numbers follow its own.
    pub fn want_block(&self, wants: bool) {
        self.partner.set(self.partner.get() & !WANTS_BLOCK | if wants { WANTS_BLOCK } else { 0 });
    }

    /// Returns whether it had.
    #[must_use]
    pub fn wants_block(&self) -> bool {
        self.partner.get() & WANTS_BLOCK != 0
    }

    /// Returns where it ran.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        u32::try_from(self.cpu.get().checked_sub(1)?).ok()
    }

    /// Returns the peer that it waited for there.
    #[must_use]
    pub fn partner(&self) -> Option<u32> {
        u32::try_from((self.partner.get() & !WANTS_BLOCK).checked_sub(1)?).ok()
    }
}
