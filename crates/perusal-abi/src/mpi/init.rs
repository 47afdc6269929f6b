//! Beginning and end (MPI 5.0 §11.2, §11.4, §11.6.2, §9.7).

use crate::abi::*;
use crate::capi::args::put;
use crate::capi::boundary::{Phase, phase};
use crate::capi::process;
use crate::capi::types::MPI_Comm;
use crate::error::{Error, Result};
use crate::export;
use crate::tool::event::delivery;
use core::ffi::{c_char, c_int};

fn begin(function: &'static str, level: c_int) -> Result<()> {
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
    delivery::deliver();
    Ok(())
}

export! {
    /// MPI 5.0 §11.2.1.
    fn MPI_Init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) anytime raises(MPI_COMM_SELF) {
        begin("MPI_Init", MPI_THREAD_SINGLE)
    }

    /// MPI 5.0 §11.2.1. The level given is the one required, or what the sessions before have left possible.
    fn MPI_Init_thread(
        _argc: *mut c_int, _argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int,
    ) anytime raises(MPI_COMM_SELF) {
        begin("MPI_Init_thread", required)?;
        // SAFETY: an output argument.
        unsafe { put(provided, process::level().unwrap_or(required)) }
    }

    /// MPI 5.0 §11.4.
    fn MPI_Initialized(flag: *mut c_int) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(flag, c_int::from(phase() != Phase::Before)) }
    }

    /// MPI 5.0 §11.4.
    fn MPI_Finalized(flag: *mut c_int) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(flag, c_int::from(phase() == Phase::After)) }
    }

    /// MPI 5.0 §11.2.2. What is cached on MPI_COMM_SELF goes first (§11.2.4).
    fn MPI_Finalize() raises(MPI_COMM_SELF) {
        if phase() != Phase::Running {
            return Err(Error::NotInitialized("MPI_Finalize"));
        }
        super::attr::comm_freed(MPI_COMM_SELF)?;
        let finished = process::finish();
        delivery::deliver();
        finished
    }

    /// MPI 5.0 §11.6.2: of MPI_Init; what a session has, MPI_Session_get_info tells.
    fn MPI_Query_thread(provided: *mut c_int) raises(MPI_COMM_SELF) {
        let level = process::level().ok_or(Error::NotInitialized("MPI_Query_thread"))?;
        // SAFETY: an output argument.
        unsafe { put(provided, level) }
    }

    /// MPI 5.0 §11.6.2.
    fn MPI_Is_thread_main(flag: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(flag, c_int::from(process::is_main_thread())) }
    }

    /// MPI 5.0 §9.7. Ends the whole job, whatever the communicator: a best attempt is what is asked for.
    fn MPI_Abort(_comm: MPI_Comm, errorcode: c_int) anytime raises(MPI_COMM_SELF) {
        match process::engine() {
            Ok(engine) => eprintln!("perusal: rank {}: MPI_Abort called with code {errorcode}", engine.rank()),
            Err(_) => eprintln!("perusal: MPI_Abort called with code {errorcode}"),
        }
        process::end_job(errorcode)
    }
}
