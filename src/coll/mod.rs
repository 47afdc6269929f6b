//! Collective operations over point-to-point messages.
//!
//! Every algorithm is an `async fn` over a [`Port`]: ranks that send each other bytes. A blocking collective runs it over a
//! port whose operations finish before they return, so that the future is ready when it is first polled ([`run`]) and
//! nothing of it remains at run time; a nonblocking one polls the same future whenever the engine makes progress.
//!
//! | file | what lives there |
//! |---|---|
//! | `port` | the port of blocking collectives, over a rank's engine |
//! | `later` | the port of nonblocking ones, and how they go on |
//! | `scratch` | temporary buffers, aligned for any element |
//! | `bytes` | barrier, broadcast, allgather: bytes that nobody looks into |
//! | `fold` | reduce, allreduce, reduce-scatter, scan: bytes that are combined, in rank order where that matters |
//! | [`buffer`] | users' buffers as bytes |
//! | [`typed`] | every collective within a group, on users' buffers |
//! | [`inter`] | the same between the two groups of an intercommunicator |
//! | `neighbour` | the same among neighbours in a topology |
//! | [`call`] | an operation with its arguments, to be performed now or in the background |
//! | [`create`] | what the members of a new communicator must agree on |
//! | `told` | what operations tell of themselves to who listens |
//! | `subset` | a port over some ranks of another |
//! | [`shared`] | the same over memory that all members see, which blocking collectives take where there is any |
//! | [`choice`] | which algorithm, and what steers that |

pub mod buffer;
mod bytes;
pub mod call;
pub mod choice;
pub mod create;
#[cfg(test)]
mod fake;
mod fold;
pub mod inter;
mod later;
mod neighbour;
mod port;
mod scratch;
pub mod shared;
mod subset;
#[cfg(test)]
mod tests;
mod told;
pub mod typed;

pub use bytes::{allgather, allgatherv, barrier, bcast};
pub use fold::{Fold, allreduce, exscan, reduce, reduce_scatter, scan};
pub use later::{Later, Number, Operation};
pub use port::{Blocking, Purpose, seated, user_tag};
pub use scratch::Scratch;
pub use subset::Subset;
pub use told::{Told, of_purpose};

use crate::error::{Error, Result};
use crate::events::CollMode;
use choice::Kind;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use shared::Meeting;

/// Ranks that send each other bytes. Messages from one rank to another arrive in order.
///
/// A future of these methods must be polled to its end or leaked: the bytes are in use until then.
#[allow(async_fn_in_trait)] // one thread polls a future at a time, and `Send` is the business of who moves it
pub trait Port {
    /// The caller's rank, less than [`size`](Self::size) (in an intercommunicator, of its own group).
    fn rank(&self) -> usize;
    /// How many ranks `to` and `from` can name.
    fn size(&self) -> usize;
    /// Sends `bytes`.
    ///
    /// # Errors
    /// What the engine says of the transfer.
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()>;
    /// Receives exactly `room.len()` bytes.
    ///
    /// # Errors
    /// What the engine says of the transfer; [`Error::Truncate`] and [`Error::Other`] if the message has another length.
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()>;
    /// Sends and receives at once; neither waits for the other.
    ///
    /// # Errors
    /// As for [`send`](Self::send) and [`recv`](Self::recv).
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()>;
    /// Sends and receives any number of messages at once; the caller's own rank may be among the peers. Messages between
    /// the same two ranks are matched in order.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    async fn exchange_all(&self, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()>;
    /// The memory that all ranks of this port share, if there is any for such an operation and all of them are in it.
    fn meeting(&self, _: Kind) -> Option<Meeting<'_>> {
        None
    }
    /// Whether the caller waits while an operation goes on here.
    fn mode(&self) -> CollMode {
        CollMode::Blocking
    }
}

/// Runs a collective over a port that blocks.
///
/// # Errors
/// Those of the collective.
pub fn run<T>(collective: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(collective).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::Intern("a blocking collective did not finish".into())),
    }
}
