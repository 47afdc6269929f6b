//! Requests: the state of an operation under way, an atomic word with named transitions, and the slab in which requests
//! live with their bodies. What a body is, the engine says.
//!
//! # Rules
//!
//! - **Request rule 1 (one word).** What state a request is in, and what its user has let go of, is one atomic word,
//!   [`RequestState`]; only its named transitions change it.
//! - **Request rule 2 (who has the body).** Until the request is activated, the body belongs to the thread that took
//!   the slot. While the request is in a queue it belongs to the thread that holds the context's queues, afterwards to
//!   the thread that runs progress, and from completion on (edge 3) to the thread that saw it complete.
//! - **Request rule 3 (edge 3).** [`RequestState::complete`] is the engine's last access to the body. A thread that
//!   sees it through [`RequestState::is_complete`] sees the status and the user's buffer filled.
//! - **Request rule 4 (let go once).** `complete` and `detach` race for a request that its user has freed; exactly
//!   one of them gets to release the slot.
//! - **Request rule 5 (stale ids).** Peers and users name a request by its id, whose generation changes when the slot
//!   is released; a stale one finds nothing.

mod slab;
mod state;
mod status;

pub use slab::{Ref, Slab};
pub use state::{RequestState, Then};
pub use status::MessageStatus;
