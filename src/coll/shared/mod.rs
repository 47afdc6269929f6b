//! Collectives over memory that all members share: an area for each communicator, in which members meet in rounds.
//!
//! A collective is a sequence of *rounds*. In a round each member may write its slot (and its share of a part of the bulk
//! area), arrives once, and may then read what others wrote. Rounds are numbered by each member for itself; a word says
//! "round r" by holding r + 1, so no word is ever reset and a late reader cannot mistake one round for another.
//!
//! # Rules
//!
//! - **Coll rule 1.** All members go through the same rounds in the same order and arrive in each once. What belongs to a
//!   round lies at its number modulo `DEPTH`.
//! - **Coll rule 2.** A member enters round m, that is, writes what belongs to it, when round m + 1 − `DEPTH` is complete: then
//!   everybody has arrived in that round and so has left round m − `DEPTH`, which had the same place.
//! - **Coll rule 3.** A slot is written by its member between entering and publishing (or arriving), and read by others when
//!   they have seen its flag, or that the round is complete.
//! - **Coll rule 4.** The outcome of a counted round is written by the member that arrives last, before it says that the round is
//!   complete, and read by who has seen that.
//! - **Coll rule 5.** Who is about to sleep sets its bit, fences, and looks once more; who has published something fences, takes the
//!   bits, and rings each. Two pairs of a store and a later load, as in the bell's rules.
//! - **Coll rule 6.** A part of the bulk area is used by one round at a time, and written again when that round, or the next one
//!   where readers arrive before they read, is complete.
//! - **Coll rule 7.** Nothing that lies in the area is an address, a length or an index: a member computes those itself, and
//!   compares what others say of the operation with its own. So a peer that writes garbage can spoil data and make others
//!   fail or wait, but no access goes astray.
//!
//! | file | what lives there |
//! |---|---|
//! | `storage` | the view of memory; `heap` for models, `mapped` on the job segment |
//! | `rounds` | the protocol |
//! | `team` | a member's state: making and leaving an area, waiting, going wrong |
//! | `operations` | collectives that move data, made of rounds |
//! | `combine` | those that combine it |

mod combine;
mod heap;
mod mapped;
mod operations;
mod rounds;
mod storage;
mod team;

pub use heap::HeapArea;
pub use rounds::{Arrival, Arrived, Rounds, Spoiled};
pub use storage::{DEPTH, PARTS, PAYLOAD, Slot, Storage};
pub use team::{Meeting, Seat, Team, What};
