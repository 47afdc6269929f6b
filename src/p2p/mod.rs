//! The point-to-point verbs of MPI: send, receive, probe, cancel, wait.
//!
//! | file | what lives there |
//! |---|---|
//! | `args` | what a call is about, as the C bindings and the Rust API say it |
//! | `send`, `recv` | MPI_Send and MPI_Recv in their modes, blocking and not |
//! | `sendrecv` | both at once |
//! | `collective` | the messages that collectives are made of |
//! | `buffered` | attached buffers |
//! | `probe`, `cancel`, `wait`, `persistent` | the other verbs |
//! | `teardown` | leaving the job |
//!
//! How a message gets from one rank to the other is [`crate::protocol`]'s matter.

mod args;
mod buffered;
mod cancel;
mod collective;
mod persistent;
mod probe;
mod recv;
mod send;
mod sendrecv;
mod teardown;
mod wait;

pub use args::{RecvBuf, SendBuf};
pub use probe::Message;
pub use wait::Taken;

#[cfg(all(test, not(perusal_loom)))]
mod exchange_tests;
#[cfg(all(test, not(perusal_loom)))]
mod probe_tests;
#[cfg(all(test, not(perusal_loom)))]
mod run_tests;
#[cfg(all(test, not(perusal_loom)))]
pub(crate) mod tests;

pub use crate::engine::{Buffers, Mode, RecvMemory, Ref as Request, Run};
pub use crate::request::MessageStatus;
