//! Who has something for me; sleeping and waking across processes.
//!
//! Each rank has one [`Bell`]: a bit for every peer, and a word to sleep on. Looking at P rings costs P cache misses;
//! looking at the bits costs one that is nearly always a hit. A rank *watches* the rings of the peers it is in
//! conversation with (ring rule 7), and those peers never touch the bell. Where 10 to 256 ranks outnumber CPUs nothing is watched: each
//! sender has a count in the bell, says there how much it has committed, and the owner looks at all counts, a line for 32 peers.
//!
//! # Rules
//!
//! Three pairs of a store and a later load must not pass each other, each side storing what the other loads:
//!
//! | | side A stores, then loads | side B stores, then loads |
//! |---|---|---|
//! | Bell rule 1 | sender: commit word, `watched` | receiver: `watched` = UNWATCHED, commit word |
//! | Bell rule 2 | consumer: heads, `wants_credit` | producer: `wants_credit`, heads |
//! | Bell rule 3 | ringer: a bit, `state` | sleeper: `state` = ASLEEP, bits (and what else it waits for) |
//!
//! Rules 1 and 2 are on every message's way, so their side A has [`AsymmetricFence::light_barrier`], which costs nothing where the
//! kernel has `membarrier`, and side B, which is about to sleep or to look elsewhere, pays with [`AsymmetricFence::heavy_barrier`].
//! Bell rule 6 is of the same kind. Rule 3 is only entered by who must ring: both sides use a full fence.
//!
//! - **Bell rule 4.** A bit is set by the peer it names and taken by the bell's owner. Who takes it looks at that
//!   peer's ring and at what is deferred for that peer.
//! - **Bell rule 6.** Where news is counted, a sender stores how much it has committed, then loads `state`, with [`AsymmetricFence::light_barrier`]
//!   in between, and wakes who sleeps; the sleeper stores `state` = ASLEEP, then loads all counts, behind [`AsymmetricFence::heavy_barrier`]. A count
//!   is written by the peer it names alone.
//! - **Bell rule 5.** Only the owner sleeps; anyone may wake. A wake-up without a reason is allowed, a lost one is not.

mod bell;

pub use bell::Bell;
