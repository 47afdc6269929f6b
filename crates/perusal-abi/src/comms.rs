//! Communicators by handle.
//!
//! MPI_COMM_WORLD and MPI_COMM_SELF are made with the engine; their handles are good from MPI_Init to MPI_Finalize. The
//! others come and go.

use crate::abi;
use crate::check;
use crate::coll;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::process::running;
use crate::shm::telemetry::CallsMade;
use crate::shm::telemetry::detail::COUNTED;
use crate::sync::PublishedRef;
use std::sync::{Arc, OnceLock};

/// All ranks, and this one alone: there for as long as the process, whether or not a handle names them.
static JOB: OnceLock<(Arc<Comm>, Arc<Comm>)> = OnceLock::new();
/// What MPI_COMM_WORLD names: nothing or the first of `JOB`.
static WORLD: PublishedRef<Comm> = PublishedRef::none();
static MADE: HandleTable<Comm> = HandleTable::new(HandleKind::Comm);
/// What [`calls_made`] was when MPI_Finalize began.
static MADE_AT_THE_END: OnceLock<Vec<CallsMade>> = OnceLock::new();

/// Makes the two predefined communicators known; the first call counts.
pub fn install(world: Arc<Comm>, itself: Arc<Comm>) {
    world.events.set_comm(abi::MPI_COMM_WORLD);
    itself.events.set_comm(abi::MPI_COMM_SELF);
    let _ = JOB.set((world, itself));
}

/// Makes the handles MPI_COMM_WORLD and MPI_COMM_SELF valid, or invalid again.
pub fn name_predefined(named: bool) {
    // "world" edge: publishes what initialisation built to `named_world`.
    WORLD.set(JOB.get().filter(|_| named).map(|(world, _)| &**world));
}

#[inline(always)]
fn named_world() -> Option<&'static Comm> {
    // "world" edge: what `name_predefined` has published.
    WORLD.get()
}

fn predefined(handle: usize) -> Option<&'static Arc<Comm>> {
    if !matches!(handle, abi::MPI_COMM_WORLD | abi::MPI_COMM_SELF) {
        return None;
    }
    let (world, itself) = JOB.get().filter(|_| named_world().is_some())?;
    Some(if handle == abi::MPI_COMM_WORLD { world } else { itself })
}

fn invalid(handle: usize) -> Error {
    Error::Comm(match handle {
        abi::MPI_COMM_NULL => "MPI_COMM_NULL",
        0 => "0 is no handle",
        abi::MPI_COMM_WORLD | abi::MPI_COMM_SELF => {
            "it names nothing before MPI_Init and after MPI_Finalize; with sessions alone, not until one of them has made a communicator of all ranks"
        }
        _ => "no such communicator, or it has been freed",
    })
}

/// How many collective calls the program has made on its communicators, but for that of context `in_call`, on which it
/// is in one; of the predefined one alone where several threads may be in MPI. From MPI_Finalize on, what it had made
/// then.
pub fn calls_made(in_call: Option<u32>) -> Vec<CallsMade> {
    if let Some(made) = MADE_AT_THE_END.get() {
        return made.clone();
    }
    let Some(engine) = running() else { return vec![] };
    let world = JOB.get().map(|(world, _)| world.clone());
    let handles = if engine.is_shared() { vec![] } else { MADE.handles() };
    let all = world.into_iter().chain(handles.into_iter().filter_map(|handle| MADE.get(handle)));
    let counted = all.filter(|comm| Some(comm.context) != in_call).filter_map(|comm| {
        // SAFETY: asked by a thread that waits for messages or in a call on `in_call` (`Engine::set_calls_made`),
        // or is about to end MPI.
        let calls = unsafe { coll::calls_made(engine, &comm) }?;
        Some(CallsMade { context: comm.context, calls })
    });
    counted.take(COUNTED).collect()
}

/// Keeps for reports how many collective calls the program has made: it makes no more.
pub fn note_calls_made() {
    let made = calls_made(None);
    MADE_AT_THE_END.get_or_init(|| made);
}

/// Why a handle is refused that stands for a communicator which a nonblocking call is making.
const INCOMPLETE: &str =
    "the call that makes it (MPI_Comm_idup, MPIX_Comm_ishrink) is not complete; wait for its request first";

/// The communicator of `handle`, without counting a reference.
///
/// # Safety
/// No thread frees it while the result is in use. MPI asks this of the program for every handle that it passes.
///
/// # Errors
/// [`Error::Comm`] if there is none, or it is not complete.
#[inline]
pub unsafe fn find<'a>(handle: usize) -> Result<&'a Comm> {
    // SAFETY: no thread frees the communicator while the result is in use (argument rule 2).
    let comm = unsafe { find_even_incomplete(handle) }?;
    if comm.is_open() { Ok(comm) } else { Err(Error::Comm(INCOMPLETE)) }
}

/// As [`find`], also of a communicator that a nonblocking call is making: for what needs no messages.
///
/// # Safety
/// As for [`find`].
///
/// # Errors
/// [`Error::Comm`] if there is none.
#[inline]
pub unsafe fn find_even_incomplete<'a>(handle: usize) -> Result<&'a Comm> {
    if let Some(comm) = predefined(handle) {
        return Ok(comm);
    }
    // SAFETY: nobody frees the communicator while the result is in use (argument rule 2),
    // so its place in the table stays filled.
    unsafe { MADE.peek(handle) }.ok_or_else(|| invalid(handle))
}

/// The communicator of `handle`, if there is one, without counting a reference.
/// It is complete where the fast path is open.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub unsafe fn peek<'a>(handle: usize) -> Option<&'a Comm> {
    if handle == abi::MPI_COMM_WORLD {
        return named_world();
    }
    // SAFETY: nobody frees the communicator while the result is in use (argument rule 2).
    unsafe { find_even_incomplete(handle) }.ok()
}

/// The communicator of `handle`, kept alive by the result.
///
/// # Errors
/// As for [`find`].
pub fn get(handle: usize) -> Result<Arc<Comm>> {
    get_even_incomplete(handle)
        .and_then(|comm| if comm.is_open() { Ok(comm) } else { Err(Error::Comm(INCOMPLETE)) })
}

/// As [`get`], also of a communicator that a nonblocking call is making.
///
/// # Errors
/// [`Error::Comm`] if there is none.
pub fn get_even_incomplete(handle: usize) -> Result<Arc<Comm>> {
    let found = predefined(handle).cloned();
    found.or_else(|| MADE.get(handle)).ok_or_else(|| invalid(handle))
}

/// The communicator of all ranks, also where its handle names nothing: sessions make theirs through it.
///
/// # Errors
/// [`Error::Comm`] before [`install`].
pub fn world() -> Result<&'static Comm> {
    JOB.get().map(|(world, _)| &**world).ok_or(Error::Comm("MPI is not initialised"))
}

/// The communicator of this process alone, also where its handle names nothing.
///
/// # Errors
/// [`Error::Comm`] before [`install`].
pub fn itself() -> Result<&'static Comm> {
    JOB.get().map(|(_, itself)| &**itself).ok_or(Error::Comm("MPI is not initialised"))
}

/// Gives a new communicator its handle.
///
/// # Errors
/// [`Error::NoMem`] if no handle is left.
pub fn insert(comm: Arc<Comm>) -> Result<usize> {
    let handle = MADE.insert(comm.clone())?;
    comm.events.set_comm(handle);
    if check::is_on() {
        check::made(check::ObjectKind::Comm, handle);
    }
    Ok(handle)
}

/// The handles of communicators that are not predefined.
pub fn made() -> Vec<usize> {
    MADE.handles()
}

/// Puts `comm`, whose events have the handle already, in the place of what stood for it (MPI_Comm_idup).
///
/// # Errors
/// [`Error::Comm`] if that has been freed.
pub fn replace(handle: usize, comm: Arc<Comm>) -> Result<()> {
    MADE.replace(handle, comm).map(drop).ok_or_else(|| invalid(handle))
}

/// Takes `handle` out of use.
///
/// # Errors
/// [`Error::Comm`] if there is none, or it is predefined.
pub fn remove(handle: usize) -> Result<Arc<Comm>> {
    if matches!(handle, abi::MPI_COMM_WORLD | abi::MPI_COMM_SELF) {
        return Err(Error::Comm("predefined communicators cannot be freed"));
    }
    MADE.remove(handle).ok_or_else(|| invalid(handle))
}
