//! Beginning and end (MPI 5.0 §11.2, §11.4, §11.6.2, §9.7).

use super::info;
use crate::abi::*;
use crate::boundary::{Phase, phase};
use crate::error::{Error, Result};
use crate::process;
use crate::tool::event::delivery;
use core::ffi::c_int;

/// MPI_Init, MPI_Init_thread: gives the level required, or what the sessions before have left possible.
pub fn begin(function: &'static str, level: c_int) -> Result<c_int> {
    if !matches!(level, MPI_THREAD_SINGLE | MPI_THREAD_FUNNELED | MPI_THREAD_SERIALIZED | MPI_THREAD_MULTIPLE)
    {
        return Err(Error::Arg("the thread level is none of MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE"));
    }
    match phase() {
        Phase::Before => {}
        Phase::Running => return Err(Error::Other(format!("{function} called twice"))),
        Phase::After => return Err(Error::Other(format!("{function} called after MPI_Finalize"))),
    }
    process::open_world(level)?;
    info::note_environment();
    super::dynamic::meet_parent()?;
    delivery::deliver();
    Ok(process::level().unwrap_or(level))
}

/// MPI_Init.
pub fn init(function: &'static str) -> Result<()> {
    begin(function, MPI_THREAD_SINGLE).map(drop)
}

/// MPI_Initialized.
pub fn is_initialised() -> Result<bool> {
    Ok(phase() != Phase::Before)
}

/// MPI_Finalized.
pub fn is_finalised() -> Result<bool> {
    Ok(phase() == Phase::After)
}

/// MPI_Finalize. What is cached on MPI_COMM_SELF goes first (§11.2.4).
pub fn finalize() -> Result<()> {
    if phase() != Phase::Running {
        return Err(Error::NotInitialized("MPI_Finalize"));
    }
    super::attr::comm_freed(MPI_COMM_SELF)?;
    let finished = process::finish();
    delivery::deliver();
    finished
}

/// MPI_Query_thread: of MPI_Init; what a session has, MPI_Session_get_info says.
pub fn level() -> Result<c_int> {
    process::level().ok_or(Error::NotInitialized("MPI_Query_thread"))
}

/// MPI_Is_thread_main.
pub fn is_main_thread() -> Result<bool> {
    Ok(process::is_main_thread())
}

/// MPI_Abort. Ends the whole job, whatever the communicator: a best attempt is what is asked for.
pub fn abort(code: c_int) -> Result<()> {
    match process::engine() {
        Ok(engine) => {
            crate::error::report(format_args!("rank {}: MPI_Abort called with code {code}", engine.rank()))
        }
        Err(_) => crate::error::report(format_args!("MPI_Abort called with code {code}")),
    }
    process::end_job(code, false)
}
