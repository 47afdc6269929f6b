//! The point-to-point verbs: send, receive, probe, wait.
//!
//! | file | what lives there |
//! |---|---|
//! | `channel` | a context's two queues, its events, its lifetime |
//! | `args` | what a call is about, as the C and Rust APIs say it |
//! | `send`, `outbox` | from a call to a record in the ring, or to what waits for room |
//! | `recv`, `inbox` | from a call to the queues; from a record to a receive or the unexpected queue |
//! | `train` | messages of medium size, in eager pieces |
//! | `arrivals` | runs of small messages that nobody observes, each to its receive or among the unexpected ones |
//! | `short` | the same for small messages that nobody observes: fewer steps, or no request at all |
//! | `straight` | from the ring to the receive that the next message is for, past both queues |
//! | `told` | lean ways for what somebody does observe |
//! | `large` | announced messages and their copy engines |
//! | `loopback` | a rank's messages to itself |
//! | `buffered` | attached buffers |
//! | `collective` | the messages that collectives are made of |
//! | `probe`, `cancel`, `wait`, `persist` | the other verbs |
//! | `withdraw` | what must hold before the buffers of unfinished requests may go |
//! | `observe` | where events are raised |

mod args;
mod arrivals;
mod buffered;
mod cancel;
mod channel;
mod collective;
mod direct;
mod inbox;
mod large;
mod leave;
mod loopback;
mod observe;
mod outbox;
mod persist;
mod probe;
mod recv;
mod send;
mod short;
mod straight;
mod told;
mod train;
mod wait;
mod withdraw;

pub use args::{Mode, RecvBuf, Run, SendBuf};
pub use buffered::{Buffers, Reservation};
pub use channel::Channel;
pub(crate) use channel::Channels;
pub(crate) use inbox::corrupt;
pub use probe::Message;
pub(crate) use train::Train;

#[cfg(all(test, not(perusal_loom)))]
mod tests;

pub use crate::request::{Ref as Request, Status};
