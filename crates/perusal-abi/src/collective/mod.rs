//! Collective functions: from C's arguments to a [`CollectiveOp`], and from there to its end.
//!
//! A function of [`arguments`] stands for all forms of an operation, which differ in the width of counts and in when
//! the operation runs: at once ([`run`]), in the background ([`start`]), or whenever it is started ([`prepare`]).
//!
//! | file | what lives there |
//! |---|---|
//! | [`arguments`], `checks` | from C's arguments to an operation, and what may be wrong with them |
//! | [`fast`], [`fast_pieces`] | the fast path of plain data: of equal blocks, and of blocks that differ |
//! | `performer` | what a fast path is performed by: now, or in the background |
//! | [`persistent`] | operations that are prepared, and started again and again |

pub(crate) mod arguments;
mod checks;
pub(crate) mod fast;
pub(crate) mod fast_pieces;
mod performer;
mod persistent;

use super::boundary::RaisedOn;
use super::check as check_calls;
use super::process::engine;
use super::requests::{Task, insert_task, over};
use super::types::MPI_Request;
use crate::coll::call::{CollectiveOp, Transports};
use crate::coll::nonblocking::{self, TeamUse, Work};
use crate::coll::{
    BlockingTransport, NonblockingOperation, NonblockingTransport, NumberedCall, Outline, Purpose,
    SequenceNumber, barrier, run as to_the_end,
};
use crate::comm::Comm;
use crate::engine::{Engine, describing};
use crate::error::{Error, Result};
use crate::events::CollMode;
use crate::p2p::MessageStatus;
use core::borrow::Borrow;
use std::sync::Arc;

pub(crate) use checks::{Types, Varied};
pub(crate) use performer::{AtOnce, InBackground};
pub(crate) use persistent::{FastPath, prepare};

/// What the messages of a call say they are for.
fn purpose(call: &CollectiveOp) -> Purpose {
    match call {
        CollectiveOp::Barrier => Purpose::Barrier,
        CollectiveOp::Bcast(..) => Purpose::Bcast,
        CollectiveOp::Gather(..) => Purpose::Gather,
        CollectiveOp::Scatter(..) => Purpose::Scatter,
        CollectiveOp::Allgather(..) => Purpose::Allgather,
        CollectiveOp::Alltoall(..)
        | CollectiveOp::NeighbourAllgather(..)
        | CollectiveOp::NeighbourAlltoall(..) => Purpose::Alltoall,
        CollectiveOp::Reduce(..) => Purpose::Reduce,
        CollectiveOp::Allreduce(..) => Purpose::Allreduce,
        CollectiveOp::ReduceScatter(..) => Purpose::ReduceScatter,
        CollectiveOp::Scan(..) | CollectiveOp::Exscan(..) => Purpose::Scan,
    }
}

/// The transports of a blocking operation.
pub(crate) fn blocking<'a>(
    engine: &'a Engine,
    comm: &'a Comm,
    purpose: Purpose,
) -> Transports<BlockingTransport<'a>> {
    if comm.is_inter() {
        Transports::Intercomm(BlockingTransport::sides(engine, comm, purpose))
    } else {
        Transports::Intracomm(BlockingTransport::new(engine, comm, purpose))
    }
}

/// The first failure of a transfer over blocking transports; if there is none, `result`.
pub(crate) fn conclude<T>(transports: &Transports<BlockingTransport<'_>>, result: Result<T>) -> Result<T> {
    match transports {
        Transports::Intracomm(transport) => transport.conclude(result),
        Transports::Intercomm(sides) => sides.local.conclude(sides.remote.conclude(result)),
    }
}

/// Performs a call at once.
pub(crate) fn run(comm: &Comm, call: impl FnOnce(&Comm) -> Result<CollectiveOp>) -> Result<()> {
    let call = call(comm)?;
    if check_calls::is_on() {
        check_calls::blocking_operation(comm, &call);
        check_calls::compare(comm, &call);
    }
    let engine = engine()?;
    let numbered = NumberedCall::begin(engine, comm);
    let transports = blocking(engine, comm, purpose(&call));
    let about = || call.outline(numbered.number).about();
    let result = describing(&about, || {
        if check_calls::is_strict() {
            await_all(&transports)?;
        }
        // SAFETY: argument rule 3: a call is made of buffers that are valid until it is over;
        // the future is run to its end.
        to_the_end(unsafe { call.perform(&transports, comm) })
    });
    conclude(&transports, result)
}

/// Waits for all members of an intracommunicator.
#[cold]
fn await_all(transports: &Transports<BlockingTransport<'_>>) -> Result<()> {
    match transports {
        Transports::Intracomm(transport) => to_the_end(barrier(transport)),
        Transports::Intercomm(_) => Ok(()),
    }
}

/// MPI 5.0 §6.12: MPI_Request_free is not for collective operations that are under way.
const UNDER_WAY: Error =
    Error::Request("a collective operation that is under way cannot be freed; wait for it first");

/// A nonblocking operation, as its request knows it.
struct NonblockingTask(Arc<NonblockingOperation>);

impl Task for NonblockingTask {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.0.is_over())
    }
    fn outcome(&self, _: &Engine, _: bool) -> (MessageStatus, Option<Error>) {
        ended(self.0.error())
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        Some(RaisedOn::from(self.0.described().0))
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("a nonblocking collective cannot be cancelled"))
    }
    fn free(&self, _: &Engine) -> Result<()> {
        if self.0.is_over() { Ok(()) } else { Err(UNDER_WAY) }
    }
    fn collective(&self) -> Option<(u32, Outline)> {
        let (comm, outline) = self.0.described();
        Some((comm.context, *outline))
    }
}

/// The outcome of an operation that has no message.
fn ended(error: Option<Error>) -> (MessageStatus, Option<Error>) {
    let code = error.as_ref().map_or(crate::abi::MPI_SUCCESS, Error::class);
    (MessageStatus { error: code, ..MessageStatus::EMPTY }, error)
}

/// An operation that has got as far as it could without waiting. `None`: it is over, without an error. The rest goes on
/// once it is given to [`crate::engine::Progress::start_background`].
pub(crate) type Begun = Option<Arc<NonblockingOperation>>;

/// Begins work on `comm` of `engine`, which may use `team`. If it is not over at once, these two are asked for, to be
/// kept, and so is `outline` what it is.
///
/// # Safety
/// As for [`NonblockingOperation::new`].
unsafe fn begin_work(
    engine: &Engine,
    comm: impl FnOnce() -> Arc<Comm>,
    team: impl FnOnce() -> TeamUse,
    work: Work,
    outline: impl FnOnce(&Comm) -> Outline,
) -> Begun {
    // Of what is over already there is nothing to remember, unless it has failed.
    let begun = nonblocking::begin(engine, work);
    if matches!(begun, Ok(None)) {
        return None;
    }
    let (comm, team) = (comm(), team());
    let outline = outline(&comm);
    // SAFETY: `work` holds nothing that is bound to a thread, and uses no other team (`Safety`).
    Some(Arc::new(unsafe { NonblockingOperation::new(begun, comm, team, outline) }))
}

/// Gives the handle of the request of a nonblocking operation, which goes on in the background.
pub(crate) fn request(begun: Begun) -> Result<MPI_Request> {
    let Some(operation) = begun else { return over() };
    let handle = insert_task(Box::new(NonblockingTask(operation.clone())))?;
    engine()?.progress().start_background(operation);
    Ok(handle)
}

/// Begins work in the background on `comm`, and gives the handle of its request.
/// `outline` is asked what it is if it is not over at once.
///
/// # Safety
/// As for [`NonblockingOperation::new`].
pub(crate) unsafe fn begin(
    comm: Arc<Comm>,
    work: Work,
    outline: impl FnOnce(&Comm) -> Outline,
) -> Result<MPI_Request> {
    // SAFETY: the work is bound to no thread and uses the team of `comm` alone, as the caller promises.
    request(unsafe { begin_work(engine()?, || comm, || TeamUse::OfComm, work, outline) })
}

/// The transports of nonblocking operation `number` on `comm`, which `team` may serve.
pub(crate) fn background<'a>(
    engine: &'a Engine,
    comm: &'a Comm,
    number: SequenceNumber,
    team: &'a TeamUse,
) -> Transports<NonblockingTransport<'a>> {
    if comm.is_inter() {
        Transports::Intercomm(NonblockingTransport::sides(engine, comm, number))
    } else {
        Transports::Intracomm(NonblockingTransport::new(engine, comm, number, team))
    }
}

/// The first failure of a transfer over such transports; if there is none, `result`.
pub(crate) fn conclude_nonblocking<T>(
    transports: &Transports<NonblockingTransport<'_>>,
    result: Result<T>,
) -> Result<T> {
    match transports {
        Transports::Intracomm(transport) => transport.conclude(result),
        Transports::Intercomm(sides) => sides.local.conclude(sides.remote.conclude(result)),
    }
}

/// Performs a call in the background; gives its request.
pub(crate) fn start(
    comm: Arc<Comm>,
    call: impl FnOnce(&Comm) -> Result<CollectiveOp>,
) -> Result<MPI_Request> {
    let call = call(&comm)?;
    if check_calls::is_on() {
        check_calls::compare(&comm, &call);
    }
    let checked = check_calls::is_on().then(|| (comm.clone(), call.clone(), check_calls::current()));
    let number = SequenceNumber::Once(comm.next_in_background());
    let (engine, room) = (engine()?, Box::new_uninit());
    let counted = NumberedCall::count_in_background(engine, &comm);
    let outline = call.outline_of_request(counted, CollMode::Nonblocking);
    // SAFETY: argument rule 3: the buffers are valid until the request is complete.
    let work = unsafe { performed(engine, comm.clone(), call, number, TeamUse::OfComm) };
    // Written to its place, it is not copied.
    let work = Box::into_pin(Box::write(room, work));
    // SAFETY: the work holds addresses, its transports, and what is `Send`.
    let handle = unsafe { begin(comm, work, |_| outline) }?;
    if let Some((comm, call, function)) = checked {
        check_calls::resumed(function);
        check_calls::began_operation(handle, &comm, &call);
    }
    Ok(handle)
}

/// The work of a nonblocking operation, which `team` may serve.
///
/// # Safety
/// The buffers of the call are valid until the future is ready; it is polled until then, or leaked.
async unsafe fn performed(
    engine: &'static Engine,
    comm: Arc<Comm>,
    call: impl Borrow<CollectiveOp>,
    number: SequenceNumber,
    team: TeamUse,
) -> Result<()> {
    // SAFETY: the buffers of the call are valid until this future is ready or leaked, as the caller promises.
    unsafe { perform(engine, &comm, call.borrow(), number, &team) }.await
}

/// Performs a nonblocking operation on `comm`, which `team` may serve.
///
/// # Safety
/// As for [`performed`].
async unsafe fn perform(
    engine: &Engine,
    comm: &Comm,
    call: &CollectiveOp,
    number: SequenceNumber,
    team: &TeamUse,
) -> Result<()> {
    let transports = background(engine, comm, number, team);
    // SAFETY: the buffers of the call are valid until this future is ready or leaked, and so while the inner one runs.
    let result = unsafe { call.perform(&transports, comm) }.await;
    conclude_nonblocking(&transports, result)
}
