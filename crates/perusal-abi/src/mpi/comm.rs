//! Communicators: asking about them, naming them, comparing them (MPI 5.0 §7.4 to §7.8).

use super::group::similarity;
use crate::abi::*;
use crate::capi::args::{put, put_text, text};
use crate::capi::comms;
use crate::capi::types::MPI_Comm;
use crate::comm::{Comm, Similarity};
use crate::error::{Error, Result};
use crate::export;
use core::ffi::{c_char, c_int};

/// How the groups of two different communicators compare; both groups of intercommunicators count.
fn compare(a: &Comm, b: &Comm) -> Similarity {
    let local = a.group().compare(b.group());
    let remote = match (a.remote(), b.remote()) {
        (None, None) => Similarity::Ident,
        (Some(a), Some(b)) => a.compare(b),
        _ => Similarity::Unequal,
    };
    match (local, remote) {
        (Similarity::Ident, Similarity::Ident) => Similarity::Ident,
        (Similarity::Unequal, _) | (_, Similarity::Unequal) => Similarity::Unequal,
        _ => Similarity::Similar,
    }
}

/// # Safety
/// As for [`comms::find`].
unsafe fn remote_size(comm: MPI_Comm) -> Result<c_int> {
    // SAFETY: the caller's promise.
    let remote = unsafe { comms::find(comm) }?.remote();
    Ok(remote.ok_or(Error::Comm("not an intercommunicator"))?.size() as c_int)
}

export! {
    /// MPI 5.0 §7.4.1.
    fn MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; an output argument.
        unsafe { put(size, comms::find(comm)?.size() as c_int) }
    }

    /// MPI 5.0 §7.4.1.
    fn MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; an output argument.
        unsafe { put(rank, comms::find(comm)?.rank() as c_int) }
    }

    /// MPI 5.0 §7.4.1.
    fn MPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) raises(comm1) {
        // SAFETY: the communicators are the caller's to pass.
        let compared = match unsafe { compare(comms::find(comm1)?, comms::find(comm2)?) } {
            _ if comm1 == comm2 => MPI_IDENT,
            Similarity::Ident => MPI_CONGRUENT,
            other => similarity(other),
        };
        // SAFETY: an output argument.
        unsafe { put(result, compared) }
    }

    /// MPI 5.0 §7.6.1.
    fn MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; an output argument.
        unsafe { put(flag, c_int::from(comms::find(comm)?.is_inter())) }
    }

    /// MPI 5.0 §7.6.1.
    fn MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; an output argument.
        unsafe { put(size, remote_size(comm)?) }
    }

    /// MPI 5.0 §7.8.
    fn MPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) raises(comm) {
        // SAFETY: the communicator is the caller's to pass, and so is a string.
        let (comm, name) = unsafe { (comms::find(comm)?, text(comm_name)?) };
        comm.set_name(name);
        comm.note_name(&comm.name());
        Ok(())
    }

    /// MPI 5.0 §7.8.
    fn MPI_Comm_get_name(comm: MPI_Comm, comm_name: *mut c_char, resultlen: *mut c_int) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; room for MPI_MAX_OBJECT_NAME characters.
        unsafe { put_text(&comms::find(comm)?.name(), comm_name, resultlen) }
    }

    /// MPI 5.0 §11.8.2: no process here was spawned.
    fn MPI_Comm_get_parent(parent: *mut MPI_Comm) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(parent, MPI_COMM_NULL) }
    }
}
