//! One single-producer single-consumer ring for each ordered pair of ranks.
//!
//! A ring has four parts: *control* words, *cells* of one cache line, a *bulk* area of bytes, and [*blocks*](blocks). A
//! record is one cell: a commit word, an envelope, and up to [`INLINE`] bytes of payload, so a small message is one
//! line transfer. A longer payload lies in the bulk area, contiguous, in the order of its cells, or in a block. A
//! producer may begin the next lap through the bulk area before its end ([*short laps*](lap)). No cell
//! ever holds user bytes where a commit word will be read later,
//! so a stale commit word is always one of an earlier lap and never user data.
//!
//! | file | what it defines |
//! |---|---|
//! | `producer`, `consumer` | the two sides |
//! | `control`, `record`, `blocks` | the control words, what a cell says, and the blocks |
//! | `storage` | the algorithm's view of memory; `heap` implements it for models, `mapped` on the job's memory |
//! | `copy_times` | whether a writer writes through its cache or past it |
//! | `lap` | how much of the bulk area a producer uses |
//!
//! # Rules
//!
//! Positions count cells and bulk bytes from the beginning of time in 64 bits; `position % capacity` is the place.
//!
//! - **Ring rule 1 (who writes).** Cells and bulk bytes from the consumer's published head (inclusive) up to one
//!   capacity further belong to the producer until it commits them; nobody else reads or writes them.
//! - **Ring rule 2 (edge 1, commit).** The producer's last act on a cell is the Release store of its commit word,
//!   whose low half is the position plus one. The consumer's Acquire load that finds this value makes the cell and
//!   its bulk bytes the consumer's to read.
//! - **Ring rule 3 (edge 2, credit).** The consumer gives cells and bulk bytes back by a Release store of its heads,
//!   after its last read of them. The producer's Acquire load of the heads makes them the producer's again.
//! - **Ring rule 4 (one each).** There is one `Producer` and one `Consumer` of a ring at a time; each is used under
//!   `&mut`, so within a process the borrow checker (or the lock around it) keeps others out.
//! - **Ring rule 5 (trust).** What the consumer reads may have been written by a hostile peer: lengths are checked
//!   against the area before they are used, once, in [`Consumer::poll`]. A wrong one is [`Corrupt`].
//! - **Ring rule 6 (batches).** Credit is returned when a quarter of either area is taken and not returned. A record
//!   takes at most a quarter of the bulk area, so a drained ring always has room for one more, credit returned or not:
//!   a producer begins the next lap early only where it has room for that. Bulk bytes may be given back sooner, without
//!   a notification.
//! - **Ring rule 7 (notification).** While `notification` is `NOTIFY` the consumer does not poll this ring: after a
//!   commit the producer must notify it through its doorbell, once, and says so by `NOTIFIED`. The store-load pair
//!   between commit word and `notification` is doorbell rule 1 (`src/doorbell.rs`).

mod blocks;
mod consumer;
mod control;
mod copy_times;
mod heap;
mod lap;
mod mapped;
mod producer;
mod record;
mod storage;

pub use blocks::Blocks;
pub use consumer::{Consumer, Polled};
pub use control::{NOTIFIED, NOTIFY, POLLED, PROTOCOL_WORDS, ProtocolWords, RingControl};
pub use copy_times::CopyTimes;
pub use heap::HeapRing;
pub use mapped::MappedRing;
pub use producer::Producer;
pub use record::{Corrupt, Header, INLINE, MAX_LEN, Room};
pub use storage::Storage;

#[cfg(all(test, not(perusal_loom)))]
mod tests;
