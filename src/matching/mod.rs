//! Which receive a message belongs to: patterns, the queue of posted receives, the queue of unexpected messages.
//!
//! Pure, single-threaded data structures: who calls holds whatever lock there is. One [`PostedQueue`] and one
//! [`UnexpectedQueue`] belong to a context id, so communicators, and point-to-point and collective traffic within
//! one, never meet here (MPI 5.0 §3.5: a match is by source and tag within one context, oldest first).
//!
//! What comes in: an [`Envelope`] (a message's source and tag) or a [`Pattern`] (what a receive asks for) with
//! a payload `T` that is never looked at. What goes out: the oldest match, always.
//!
//! Each queue has two forms. Unexpected messages keep their payloads in one slab of entries below both, so that tickets outlive a
//! change of form; of posted receives, whose payload is a name, the short form holds the name itself, and only the deep one
//! makes entries.
//!
//! - **short** (`lanes`): the keys stand side by side in a few cache lines, with one bit for each that is alive;
//!   the oldest is tried first, the others four at a time without a branch. Nothing is hashed or allocated.
//! - **deep** (`classes`): when those lines are full and holes cannot make room. There are four *classes* of pattern: both fixed, any
//!   source, any tag, both any. A class is the set of bits that it compares (its *care* mask), so an entry's bin
//!   within a class is its word under that mask, and the oldest of a bin is the head of an intrusive list.
//!   An unexpected message is in one bin of each class, so whatever a receive asks for, its answer is a head. (The
//!   classes of the two single wildcards are kept from the first deep search on that needs them, which files the
//!   queue once; a program without wildcards never pays for them.)
//!   A posted receive is in the one bin of its own class, so the answer to a message is the oldest of four heads.
//!
//! Rules:
//!
//! - **M1** A live entry is in the short form's lanes or in the deep form's lists, never in both.
//! - **M2** Lanes, and every list, are in order of insertion; `seq` says the same across lists.
//! - **M3** A bin exists exactly while its list holds an entry, or the ghost of one.
//! - **M4** Tags below zero are the library's own: the sign bit of a tag is compared in every class, so a pattern
//!   that takes any tag never takes one of those.
//! - **M5** An unexpected message that is alone in a bin leaves it without looking for it: the bin goes on naming the free
//!   slot, which is marked as its *ghost*. A ghost is alone in its bin and is never found. It ends when a message of its
//!   key comes (which takes over the bin) or its slot is taken again, whichever is first; so there are never more bins
//!   than slots, no slot in use has a ghost, and no operation meets more than one of each class.
//!
//! [`oracle`] is the same contract as a list walked from the front: what every test compares with.
#![forbid(unsafe_code)]

mod bins;
mod classes;
pub mod lanes;
pub mod oracle;
pub mod pattern;
pub mod posted;
mod slab;
#[cfg(test)]
mod tests;
pub mod unexpected;

pub use pattern::{Envelope, KeyWord, MatchKey, MatchPattern, Pattern};
pub use posted::PostedQueue;
pub use slab::Ticket;
pub use unexpected::{FoundMessage, UnexpectedQueue};
