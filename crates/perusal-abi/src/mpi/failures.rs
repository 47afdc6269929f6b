//! User Level Failure Mitigation: communicators after the death of members (`mpi-ext.h`). The functions are an
//! extension, with the names and meanings of the proposal to the MPI Forum and of the MPIs that have them.

use super::comm_create::{ComingComm, opened};
use crate::arguments::{Argument, InOut};
use crate::coll::Outline;
use crate::coll::agreement;
use crate::collective::begin;
use crate::comm::{Comm, Group};
use crate::error::{Error, Result};
use crate::process::engine;
use crate::types::{MPI_Comm, MPI_Request};
use core::ffi::c_int;
use std::sync::Arc;

/// The flag of an agreement in the background: an address that is valid until its request is complete.
#[derive(Debug, Clone, Copy)]
pub struct FlagAt(*mut c_int);

// SAFETY: the address is used by the agreement alone, by one thread at a time, while the program leaves it alone.
unsafe impl Send for FlagAt {}

impl Argument<'_, *mut c_int> for FlagAt {
    unsafe fn of(from: *mut c_int) -> Result<Self> {
        if from.is_null() { Err(Error::Arg("the address of the flag is NULL")) } else { Ok(Self(from)) }
    }
}

/// MPIX_Comm_revoke.
pub fn revoke(comm: Arc<Comm>) -> Result<()> {
    agreement::revoke(engine()?, &comm)
}

/// MPIX_Comm_is_revoked.
pub fn is_revoked(comm: Arc<Comm>) -> Result<bool> {
    agreement::is_revoked(engine()?, &comm)
}

/// MPIX_Comm_shrink.
pub fn shrink(comm: Arc<Comm>) -> Result<MPI_Comm> {
    let engine = engine()?;
    let serial = agreement::begin(engine, &comm)?;
    let shrunk = agreement::run(engine, &comm, agreement::shrink(engine, &comm, serial))?;
    engine.progress().notice_failures();
    super::comm_create::admit(shrunk, None, &comm)
}

/// MPIX_Comm_ishrink. Until the request is complete the handle names something without a context.
pub fn ishrink(comm: Arc<Comm>) -> Result<(MPI_Comm, MPI_Request)> {
    let engine = engine()?;
    let coming = ComingComm::new(engine, &comm)?;
    let new = coming.handle();
    let (serial, from) = (agreement::begin(engine, &comm)?, comm.clone());
    let work = async move {
        let shrunk = agreement::shrink(engine, &comm, serial).await?;
        let made = opened(shrunk, None, &comm, coming.events())?;
        coming.arrives(made)
    };
    // SAFETY: the work holds what is `Send`.
    Ok((new, unsafe { begin(from, Box::pin(work), |_| Outline::of_function("MPIX_Comm_ishrink", 0)) }?))
}

/// MPIX_Comm_agree.
pub fn agree(comm: Arc<Comm>, flag: InOut<'_, c_int>) -> Result<()> {
    let engine = engine()?;
    let (serial, own) = (agreement::begin(engine, &comm)?, flag.get().cast_unsigned());
    let (all, outcome) = agreement::run(engine, &comm, agreement::agree(engine, &comm, serial, own))?;
    flag.set(all.cast_signed());
    outcome
}

/// MPIX_Comm_iagree.
pub fn iagree(comm: Arc<Comm>, flag: FlagAt) -> Result<MPI_Request> {
    let engine = engine()?;
    let (serial, from) = (agreement::begin(engine, &comm)?, comm.clone());
    let work = async move {
        let flag = flag;
        // SAFETY: the address is valid until the request is complete.
        let own = unsafe { flag.0.read() }.cast_unsigned();
        let (all, outcome) = agreement::agree(engine, &comm, serial, own).await?;
        // SAFETY: the address is valid until the request is complete, which it is not before this future is ready.
        unsafe { flag.0.write(all.cast_signed()) };
        outcome
    };
    // SAFETY: the work holds what is `Send`.
    unsafe { begin(from, Box::pin(work), |_| Outline::of_function("MPIX_Comm_iagree", 0)) }
}

fn dead_members(comm: &Comm, until: u32) -> Result<Group> {
    Ok(Group::from_world_ranks(agreement::dead_members(engine()?, comm, until)))
}

/// MPIX_Comm_get_failed.
pub fn get_failed(comm: Arc<Comm>) -> Result<Group> {
    dead_members(&comm, u32::MAX)
}

/// MPIX_Comm_ack_failed: acknowledges the first `count` members of the group that MPIX_Comm_get_failed gives, all if
/// they are fewer; returns how many are acknowledged now.
pub fn ack_failed(comm: Arc<Comm>, count: c_int) -> Result<c_int> {
    let count =
        usize::try_from(count).map_err(|_| Error::Arg("the number of deaths to acknowledge is negative"))?;
    Ok(agreement::acknowledge(engine()?, &comm, count) as c_int)
}

/// MPIX_Comm_failure_ack.
pub fn failure_ack(comm: Arc<Comm>) -> Result<()> {
    agreement::acknowledge(engine()?, &comm, usize::MAX);
    Ok(())
}

/// MPIX_Comm_failure_get_acked.
pub fn failure_get_acked(comm: Arc<Comm>) -> Result<Group> {
    dead_members(&comm, comm.acknowledged())
}
