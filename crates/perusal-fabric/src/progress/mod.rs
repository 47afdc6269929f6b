//! The progress of an endpoint, and the threads that wait for it.
//!
//! | file | what it has |
//! |---|---|
//! | `endpoint` | an endpoint: its memory, the rings to it, and the progress of all |
//! | `senders` | rings to it that come and go, and peers that have ended |
//! | `elsewhere` | what it does for peers on other nodes |
//! | `saying` | what it says of itself for those who look from outside |
//! | `automatic` | progress without a call, by a thread |
//! | `waker` | what a thread waits on |
//! | `yields` | the yields of a caller that polls |

pub mod automatic;
pub mod elsewhere;
pub mod endpoint;
pub mod saying;
pub mod senders;
pub mod waker;
pub mod yields;
