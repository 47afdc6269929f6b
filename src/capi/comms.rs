//! Communicators by handle.
//!
//! MPI_COMM_WORLD and MPI_COMM_SELF are given once, at initialisation; the others come and go.

use super::handles::HandleTable;
use crate::abi;
use crate::comm::Comm;
use crate::error::{Error, Result};
use std::sync::{Arc, OnceLock};

static WORLD: OnceLock<Arc<Comm>> = OnceLock::new();
static SELF: OnceLock<Arc<Comm>> = OnceLock::new();
static MADE: HandleTable<Comm> = HandleTable::new();

/// Makes the two predefined communicators known; the first call counts.
pub fn install(world: Arc<Comm>, itself: Arc<Comm>) {
    world.events.set_comm(abi::MPI_COMM_WORLD);
    itself.events.set_comm(abi::MPI_COMM_SELF);
    let _ = WORLD.set(world);
    let _ = SELF.set(itself);
}

fn predefined(handle: usize) -> Option<&'static Arc<Comm>> {
    match handle {
        abi::MPI_COMM_WORLD => WORLD.get(),
        abi::MPI_COMM_SELF => SELF.get(),
        _ => None,
    }
}

fn invalid(handle: usize) -> Error {
    Error::Comm(match handle {
        abi::MPI_COMM_NULL => "MPI_COMM_NULL",
        0 => "0 is no handle",
        _ => "no such communicator, or it has been freed",
    })
}

/// The communicator of `handle`, without counting a reference.
///
/// # Safety
/// Nobody frees it while the result is in use. MPI asks this of the program for every handle that it passes.
///
/// # Errors
/// [`Error::Comm`] if there is none.
#[inline]
pub unsafe fn find<'a>(handle: usize) -> Result<&'a Comm> {
    if let Some(comm) = predefined(handle) {
        return Ok(comm);
    }
    // SAFETY: the caller's promise is the one that `peek` asks for.
    unsafe { MADE.peek(handle) }.ok_or_else(|| invalid(handle))
}

/// The communicator of `handle`, if there is one, without counting a reference.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub unsafe fn peek<'a>(handle: usize) -> Option<&'a Comm> {
    if handle == abi::MPI_COMM_WORLD {
        return WORLD.get().map(|comm| &**comm);
    }
    // SAFETY: the caller's promise.
    unsafe { find(handle) }.ok()
}

/// The communicator of `handle`, kept alive by the result.
///
/// # Errors
/// [`Error::Comm`] if there is none.
pub fn get(handle: usize) -> Result<Arc<Comm>> {
    let found = predefined(handle).cloned();
    found.or_else(|| MADE.get(handle)).ok_or_else(|| invalid(handle))
}

/// MPI_COMM_WORLD.
///
/// # Errors
/// [`Error::Comm`] before [`install`].
pub fn world() -> Result<&'static Comm> {
    WORLD.get().map(|comm| &**comm).ok_or(Error::Comm("MPI is not initialised"))
}

/// Gives a new communicator its handle.
///
/// # Errors
/// [`Error::NoMem`] if no handle is left.
pub fn insert(comm: Arc<Comm>) -> Result<usize> {
    let handle = MADE
        .insert(comm.clone())
        .ok_or_else(|| Error::NoMem("no communicator handle is left; free what is not needed".into()))?;
    comm.events.set_comm(handle);
    Ok(handle)
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
