//! Partitioned messages (MPI 5.0 §4.2): a persistent message whose parts are sent as they become ready.
//!
//! The two requests find each other once: the receive tells the send, by a small message, where its buffer and the
//! words that the two share are ([`words`]). From then on a partition that is ready is copied there by the thread that
//! says so, and counted: no handshake, no lock. The receiver asks the counts.
//!
//! | file | what it defines |
//! |---|---|
//! | `words` | the words that sender and receiver share |
//! | `channel` | their memory, and where the data goes |
//! | `buffer` | the user's buffer |
//! | `marks` | how far each partition is |
//! | `send`, `receive` | the two requests |
//! | `request_events` | what they tell listeners |
//!
//! - **Partition rule 1.** The sender writes data of a round only once the receiver has cleared that round, and nothing
//!   of it after it has ended the round. The receiver reads a partition once all its bytes are counted, and clears the
//!   next round when it has read all. A receiver that gives up takes that back, and waits for what the sender copies
//!   just now.
//! - **Partition rule 2.** A partition's mark in the sender says how far it is in which round. The thread that moves it
//!   from "ready" to "taken" copies it.
//! - **Partition rule 3.** The shared memory is freed by whichever of the two leaves last. The side that says that a
//!   round is over accesses it no more, for then its request may leave.

pub mod words;

#[cfg(not(perusal_loom))]
mod buffer;
#[cfg(not(perusal_loom))]
mod channel;
#[cfg(not(perusal_loom))]
mod marks;
#[cfg(not(perusal_loom))]
mod receive;
#[cfg(not(perusal_loom))]
mod request_events;
#[cfg(not(perusal_loom))]
mod send;

#[cfg(not(perusal_loom))]
pub use buffer::Partitions;
#[cfg(not(perusal_loom))]
pub use receive::PartitionedReceive;
#[cfg(not(perusal_loom))]
pub use send::PartitionedSend;
