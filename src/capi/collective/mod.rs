//! Collective functions: from C's arguments to a [`Call`], and from there to its end.
//!
//! A function of `arguments` stands for all forms of an operation; the exported functions themselves, which differ in the
//! width of counts and in when the operation runs, are generated from the ABI's table (`codegen/collectives.rs`).

mod arguments;
mod checks;

use super::comms;
use super::process::engine;
use super::types::MPI_Comm;
use crate::coll::call::{Call, Ports};
use crate::coll::inter::Sides;
use crate::coll::{Blocking, Purpose, run as to_the_end};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::Result;
use arguments::*;

include!(concat!(env!("OUT_DIR"), "/collectives.rs"));

/// What the messages of a call say they are for.
fn purpose(call: &Call) -> Purpose {
    match call {
        Call::Barrier => Purpose::Barrier,
        Call::Bcast(..) => Purpose::Bcast,
        Call::Gather(..) => Purpose::Gather,
        Call::Scatter(..) => Purpose::Scatter,
        Call::Allgather(..) => Purpose::Allgather,
        Call::Alltoall(..) | Call::NeighbourAllgather(..) | Call::NeighbourAlltoall(..) => Purpose::Alltoall,
        Call::Reduce(..) => Purpose::Reduce,
        Call::Allreduce(..) => Purpose::Allreduce,
        Call::ReduceScatter(..) => Purpose::ReduceScatter,
        Call::Scan(..) | Call::Exscan(..) => Purpose::Scan,
    }
}

/// The ports of a blocking operation.
pub(crate) fn blocking<'a>(engine: &'a Engine, comm: &'a Comm, purpose: Purpose) -> Ports<Blocking<'a>> {
    let port = Blocking::new(engine, comm, purpose);
    if comm.is_inter() {
        Ports::Between(Sides { local: Blocking::within(engine, comm, purpose), remote: port })
    } else {
        Ports::Within(port)
    }
}

/// The first failure of a transfer over blocking ports.
pub(crate) fn check(ports: &Ports<Blocking<'_>>) -> Result<()> {
    match ports {
        Ports::Within(port) => port.check(),
        Ports::Between(sides) => sides.local.check().and(sides.remote.check()),
    }
}

/// Performs a call at once.
///
/// # Safety
/// `call` makes its call of what the program passed, which is what the standard asks for.
unsafe fn run(comm: MPI_Comm, call: impl FnOnce(&Comm) -> Result<Call>) -> Result<()> {
    // SAFETY: the communicator is the program's to pass.
    let comm = unsafe { comms::find(comm) }?;
    let call = call(comm)?;
    let ports = blocking(engine()?, comm, purpose(&call));
    // SAFETY: the caller's promise; the future is run to its end.
    let result = to_the_end(unsafe { call.perform(&ports, comm) });
    check(&ports).and(result)
}
