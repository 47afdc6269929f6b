//! Collective operations.
//!
//! Every algorithm is an `async fn` over a [`Transport`]: ranks that send each other bytes. A blocking collective runs
//! it over a transport whose operations finish before they return, so that the future is ready when it is first polled
//! ([`run`]; on the fast path also once more, [`run_describing`]) and nothing of it remains at run time; a nonblocking
//! one polls the same future whenever the engine makes progress. Where the ranks of a communicator share memory, both
//! take that instead ([`shared_memory`]).
//!
//! | file | what lives there |
//! |---|---|
//! | [`call`] | an operation with its arguments, to be performed now or in the background |
//! | [`selection`] | which algorithm performs an operation |
//! | [`transport`] | what algorithms send through |
//! | [`nonblocking`] | operations in the background |
//! | [`shared_memory`] | operations through memory that all members share |
//! | [`signature`], `signature_table` | what the members must agree on, and where their calls are compared |
//! | `access_table` | one-sided operations that are under way, compared where calls are checked |
//! | [`outline`] | what a call is, in a few words |
//! | `number` | which number a call has on its communicator |
//! | `memory` | the memory that an operation uses |
//! | [`algorithms`] | algorithms over messages, a file each |
//! | [`pair`] | reductions of two ranks, as messages |
//! | `kernel` | reduction kernels: the element-wise operation that reductions apply |
//! | `bytes` | barrier, broadcast, allgather: bytes whose type does not matter |
//! | [`buffer`] | users' buffers as bytes |
//! | [`intracomm`] | every collective within a group, on users' buffers |
//! | [`intercomm`] | the same between the two groups of an intercommunicator |
//! | `neighbor` | the same among neighbours in a topology |
//! | [`agreement`] | agreement among the members that live, where others have died |
//! | [`create`] | what the members of a new communicator must agree on |
//! | [`connect`] | how two groups are connected by their leaders, also where their jobs have yet to meet |
//! | `event_span` | the events that operations raise |

#[cfg(not(perusal_loom))]
pub mod access_table;
pub mod agreement;
pub mod algorithms;
pub mod buffer;
mod bytes;
pub mod call;
pub mod connect;
pub mod create;
mod event_span;
pub mod intercomm;
pub mod intracomm;
mod kernel;
mod memory;
mod neighbor;
pub mod nonblocking;
mod number;
mod outline;
pub mod pair;
pub mod selection;
pub mod shared_memory;
pub mod signature;
#[cfg(not(perusal_loom))]
pub mod signature_table;
#[cfg(test)]
mod tests;
pub mod transport;

pub use bytes::{allgather, allgatherv, barrier, bcast};
pub use event_span::{CollContents, EventSpan};
pub use kernel::ReductionKernel;
pub use nonblocking::NonblockingOperation;
pub use number::{NumberedCall, calls_made, counting};
pub use outline::Outline;
pub use transport::{
    BlockingTransport, NAMED_CALLS, NonblockingTransport, Purpose, SequenceNumber, Subset, Transport,
    blocking_barrier, new_context, tag_of_group_call, team_in_turn, team_of, user_tag,
};

pub use crate::scratch::Scratch;

use crate::engine::describing;
use crate::error::{Error, Result};
use crate::shm::telemetry::CollectiveAbout;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

/// Runs a collective over a transport that blocks.
///
/// # Errors
/// Those of the collective.
#[inline(always)]
pub fn run<T>(collective: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(collective).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::Intern("a blocking collective did not finish".into())),
    }
}

/// Runs a collective over a team that was asked for by [`team_of`]. `about` describes it once it waits: where it does
/// not, that costs nothing.
///
/// # Errors
/// Those of the collective.
#[inline(always)]
pub fn run_describing<T>(
    about: impl Fn() -> CollectiveAbout,
    collective: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut collective = pin!(collective);
    match collective.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => go_on(&about, collective),
    }
}

#[cold]
#[inline(never)]
fn go_on<T>(
    about: &dyn Fn() -> CollectiveAbout,
    collective: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    describing(about, || run(collective))
}
