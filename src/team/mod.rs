//! Shared-memory teams: the ranks of a communicator, a *collective segment* of the job's memory that all of them map,
//! and *rounds*.
//!
//! In a round each member may write its *slot* (and its share of a part of the segment's *bulk*), arrives once, and may
//! then read what the others wrote. Each member numbers the rounds for itself; a word says "round r" by holding r + 1,
//! so no word is ever reset and a late reader cannot mistake one round for another. Nothing here waits or knows of a
//! communicator: the collectives that are made of rounds lie in `coll::shared_memory`.
//!
//! # Rules
//!
//! - **Team rule 1.** All members go through the same rounds in the same order and arrive in each once. What belongs to
//!   a round lies at its number modulo `DEPTH`.
//! - **Team rule 2.** A member enters round m, that is, writes what belongs to it, when round m + 1 − `DEPTH` is
//!   complete: then everybody has arrived in that round and so has left round m − `DEPTH`, which had the same place.
//! - **Team rule 3.** A slot is written by its member between entering and publishing (or arriving), and read by others
//!   when they have seen its flag, or that the round is complete.
//! - **Team rule 4.** The outcome of a counted round is written by the member that arrives last, before it marks the
//!   round complete, and read by members that have seen the mark.
//! - **Team rule 5.** A member that is about to sleep sets its bit, fences, and polls once more; one that has published
//!   something fences, takes the bits, and rings each.
//!   Two pairs of a store and a later load, as in doorbell rules 1 and 3.
//! - **Team rule 6.** A part of the bulk, or a stretch of it, is used by one round at a time, and written again when
//!   that round, or the next one where readers arrive before they read, is complete. When the parts grow they lie
//!   elsewhere, and none is written before all members have arrived in the round that says so.
//! - **Team rule 7.** Nothing that lies in the segment is an address of the reader's, a length or an index: a member
//!   computes those itself, and compares the others' operation keys with its own. So a peer that writes garbage can
//!   spoil data and make others fail or wait, but no access goes astray. (What `coll::shared_memory::direct` puts there
//!   are addresses of the writer's process.)
//!
//! | file | what lives there |
//! |---|---|
//! | `storage` | the protocol's view of memory; `heap` implements it for models, `mapped` on the job segment |
//! | `rounds` | the protocol |
//! | `membership` | a member's state: joining and leaving |
//! | `background` | the turns of nonblocking collectives |

mod background;
mod heap;
mod mapped;
mod membership;
mod rounds;
mod storage;

pub use background::BackgroundTeam;
pub use heap::HeapSegment;
pub use mapped::MappedSegment;
pub use membership::{Membership, Team};
pub use rounds::{Arrived, Awaited, Condition, CorruptWord, RoundArrival, Rounds};
pub use storage::{DEPTH, PARTS, PAYLOAD, STRETCHES, TeamMemory, TeamSlot};
