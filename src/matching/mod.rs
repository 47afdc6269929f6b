//! Matching: which receive a message belongs to.
//!
//! | file | what it defines |
//! |---|---|
//! | [`pattern`] | the match itself, on keys that are words; MPI's [`Envelope`] and [`Pattern`] |
//! | [`posted`] | [`PostedQueue`]: receives that wait for a message |
//! | [`unexpected`] | [`UnexpectedQueue`]: messages that wait for a receive |
//! | [`lanes`] | the short form of both queues |
//! | `classes`, `bins`, `slab` | the deep form: a list for each bin, a hash table of bins, entries with links |
//! | [`oracle`] | the contract of both queues as a list walked from the front, which every test compares with |
//!
//! The queues are single-threaded: their owner locks. A pair of them belongs to a match context, so communicators, and
//! point-to-point and collective traffic of one, never meet here (MPI 5.0 §3.5: a match is by source and tag within one
//! context, oldest first). A queue takes an envelope or a pattern with a payload `T` that it never looks at,
//! and returns the oldest match.
//!
//! Each queue has two forms:
//!
//! - **short**: the keys stand side by side in a few cache lines (*lanes*), with a bit for each that lives. The oldest
//!   is compared first, the others four at a time without a branch. Nothing is hashed or allocated.
//! - **deep**, once the lanes are full: there are four *classes* of pattern: both fixed, any source, any tag, both any.
//!   A class is the set of bits that it compares (its *care* mask). An entry's bin in a class is its word under that
//!   mask, and the head of a bin's list is its oldest entry. An unexpected message is in one bin of each class, so the
//!   answer to any pattern is one head; a posted receive is in one bin of its own class, so the answer to a message is
//!   the oldest of four heads. (The unexpected queue files by the two classes with one wildcard from the first deep
//!   search that needs them: a program without wildcards never pays.) Where an interface has masks of any bits
//!   ([`MatchKey::LEARNS`]), three of the classes are those of the masks that come first.
//!
//! Unexpected messages keep their payloads in one slab below both forms, so that a [`Ticket`] outlives a change of
//! form. The payload of a posted receive is a name, which the short form holds itself.
//!
//! - **Matching rule 1.** A live entry is in the short form's lanes or in the deep form's lists, never in both.
//! - **Matching rule 2.** The lanes and every list are in order of insertion; `seq` is the same order across lists.
//! - **Matching rule 3.** A bin exists exactly while its list holds an entry or a tombstone.
//! - **Matching rule 4.** Tags below zero are the library's own. Every class compares the sign bit of the tag, so a
//!   pattern with any tag never takes one of those.
//! - **Matching rule 5.** An unexpected message that is alone in a bin leaves it without a search for the bin: the bin
//!   goes on naming the free slot, which is marked as a *tombstone*. A tombstone is alone in its bin and is never
//!   found. It ends when a message of its key comes, which takes over the bin, or when its slot is taken again. So
//!   there are never more bins than slots, no slot in use has a tombstone,
//!   and no operation meets more than one of each class.
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
