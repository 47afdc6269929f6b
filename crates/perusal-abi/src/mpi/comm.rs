//! Communicators: asking about them, naming them, comparing them (MPI 5.0 §7.4 to §7.8).

use super::group::similarity;
use crate::abi::*;
use crate::arguments::EvenIncomplete;
use crate::comm::{Comm, Group, Similarity};
use crate::comms;
use crate::error::{Error, Result};
use crate::types::MPI_Comm;
use core::ffi::c_int;

/// How the groups of two different communicators compare; both groups of intercommunicators count.
fn compared(a: &Comm, b: &Comm) -> Similarity {
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

/// MPI_Comm_size.
pub fn size(comm: EvenIncomplete<'_>) -> Result<u32> {
    Ok(comm.size())
}

/// MPI_Comm_rank.
pub fn rank(comm: EvenIncomplete<'_>) -> Result<u32> {
    Ok(comm.rank())
}

/// MPI_Comm_compare.
pub fn compare(a: &Comm, b: &Comm) -> Result<c_int> {
    Ok(match compared(a, b) {
        _ if core::ptr::eq(a, b) => MPI_IDENT,
        Similarity::Ident => MPI_CONGRUENT,
        other => similarity(other),
    })
}

/// MPI_Comm_test_inter.
pub fn test_inter(comm: EvenIncomplete<'_>) -> Result<bool> {
    Ok(comm.is_inter())
}

/// MPI_Comm_remote_size.
pub fn remote_size(comm: &Comm) -> Result<u32> {
    Ok(remote(comm)?.size())
}

/// The remote group of an intercommunicator.
pub fn remote(comm: &Comm) -> Result<&Group> {
    comm.remote().ok_or(Error::Comm("not an intercommunicator"))
}

/// MPI_Comm_set_name.
pub fn set_name(comm: EvenIncomplete<'_>, name: &[u8]) -> Result<()> {
    comm.set_name(name);
    comm.emit_name(&comm.name());
    Ok(())
}

/// MPI_Comm_get_name; the null handle has a name, too.
pub fn name(comm: MPI_Comm) -> Result<Vec<u8>> {
    if comm == MPI_COMM_NULL {
        Ok(b"MPI_COMM_NULL".to_vec())
    } else {
        Ok(comms::get_even_incomplete(comm)?.name())
    }
}
