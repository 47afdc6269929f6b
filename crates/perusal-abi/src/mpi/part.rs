//! Partitioned messages (MPI 5.0 §4.2).

use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG};
use crate::arguments::Buffer;
use crate::boundary::RaisedOn;
use crate::check;
use crate::comm::Comm;
use crate::engine::{Awaited, CallAbout, Engine};
use crate::error::{Error, Result};
use crate::info::Info;
use crate::messages::{contents, send_peer};
use crate::p2p::MessageStatus;
use crate::part::{PartitionedReceive, PartitionedSend, Partitions};
use crate::process::engine;
use crate::requests::{Task, TaskObject, insert_task, task};
use crate::shm::telemetry::Waiting;
use crate::types::MPI_Request;
use core::ffi::c_int;
use std::sync::Arc;

/// A partitioned request.
enum Half {
    Send(Arc<PartitionedSend>),
    Receive(Arc<PartitionedReceive>),
}

/// A partitioned request with its communicator.
pub struct PartitionedTask(Half, Arc<Comm>);

impl PartitionedTask {
    /// What a wait for it is for.
    pub fn awaited(&self) -> Option<Awaited> {
        match &self.0 {
            Half::Send(send) => send.awaited(),
            Half::Receive(receive) => receive.awaited(),
        }
    }

    /// Whether it is a send of which some partition is not ready; the peer is then not MPI_PROC_NULL.
    pub fn is_held_up(&self) -> bool {
        matches!(self.awaited(), Some(Awaited::Message { kind: Waiting::Partitions, .. }))
    }

    /// What a report may say of a wait for it.
    pub fn about(&self) -> Option<CallAbout> {
        match &self.0 {
            Half::Send(send) => Some(CallAbout::PartitionedSend(send.unready_partitions())),
            Half::Receive(receive) => Some(CallAbout::PartitionedReceive(receive.missing_partitions())),
        }
    }
}

impl Task for PartitionedTask {
    fn poll(&self, engine: &Engine) -> Result<bool> {
        match &self.0 {
            Half::Send(send) => Ok(send.poll(engine)? || send.check(engine).map(|()| false)?),
            Half::Receive(receive) => Ok(receive.poll(engine) || receive.check(engine).map(|()| false)?),
        }
    }
    fn outcome(&self, engine: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        match &self.0 {
            Half::Send(send) => send.outcome(engine, last),
            Half::Receive(receive) => receive.outcome(engine, last),
        }
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("a partitioned message cannot be cancelled"))
    }
    fn free(&self, engine: &Engine) -> Result<()> {
        // MPI 5.0 §4.2.1. One that can no longer become complete may go.
        if self.is_active() && matches!(self.poll(engine), Ok(false)) {
            return Err(Error::Request(
                "a partitioned message that is under way cannot be freed; wait for it first",
            ));
        }
        match &self.0 {
            Half::Send(send) => send.free(engine),
            Half::Receive(receive) => receive.free(engine),
        }
        Ok(())
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        Some(RaisedOn::from(&*self.1))
    }
    fn is_persistent(&self) -> bool {
        true
    }
    fn is_active(&self) -> bool {
        match &self.0 {
            Half::Send(send) => send.is_active(),
            Half::Receive(receive) => receive.is_active(),
        }
    }
    fn start(&self, engine: &'static Engine) -> Result<()> {
        match &self.0 {
            Half::Send(send) => send.start(engine),
            Half::Receive(receive) => receive.start(engine),
        }
    }
    fn partitioned(&self) -> Option<&PartitionedTask> {
        Some(self)
    }
}

fn partitions(number: c_int, each: Buffer<'_>) -> Result<Partitions> {
    let (count, datatype) = contents(&each)?;
    Partitions::new(each.addr.cast(), number, count, datatype, each.datatype)
}

/// MPI_Psend_init.
pub fn send_init(
    number: c_int,
    each: Buffer<'_>,
    dest: c_int,
    tag: c_int,
    comm: Arc<Comm>,
    _: Info,
) -> Result<MPI_Request> {
    send_peer(&comm, dest, tag)?;
    let send = PartitionedSend::new(engine()?, comm.clone(), partitions(number, each)?, dest, tag)?;
    let request = insert_task(Box::new(PartitionedTask(Half::Send(send), comm.clone())))?;
    if check::is_on() {
        check::began_partitioned(request, &comm, dest, tag, &each, usize::try_from(number).unwrap_or(0));
    }
    Ok(request)
}

/// MPI_Precv_init.
pub fn recv_init(
    number: c_int,
    each: Buffer<'_>,
    source: c_int,
    tag: c_int,
    comm: Arc<Comm>,
    _: Info,
) -> Result<MPI_Request> {
    if source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG {
        return Err(Error::Wildcard { is_tag: tag == MPI_ANY_TAG });
    }
    send_peer(&comm, source, tag)?;
    let receive = PartitionedReceive::new(engine()?, comm.clone(), partitions(number, each)?, source, tag)?;
    let request = insert_task(Box::new(PartitionedTask(Half::Receive(receive), comm.clone())))?;
    if check::is_on() {
        let number = usize::try_from(number).unwrap_or(0);
        check::began_partitioned_receive(request, &comm, source, tag, &each, number);
    }
    Ok(request)
}

fn with<R>(request: MPI_Request, what: impl FnOnce(&'static Engine, &Half) -> Result<R>) -> Result<R> {
    let found: Option<Arc<TaskObject>> = task(request);
    let half = found.as_ref().and_then(|task| task.partitioned());
    what(engine()?, &half.ok_or(Error::Request("no partitioned request"))?.0)
}

fn with_send(
    request: MPI_Request,
    what: impl FnOnce(&'static Engine, &Arc<PartitionedSend>) -> Result<()>,
) -> Result<()> {
    with(request, |engine, half| match half {
        Half::Send(send) => what(engine, send),
        Half::Receive(_) => Err(Error::Request("it is a receive, whose partitions arrive: see MPI_Parrived")),
    })
}

/// The place of a partition. A negative number is none, as a large one is.
const fn place(partition: c_int) -> usize {
    partition as u32 as usize
}

/// Marks a partition as ready.
fn ready_one(
    engine: &'static Engine,
    request: MPI_Request,
    send: &Arc<PartitionedSend>,
    partition: usize,
) -> Result<()> {
    if check::is_on() && send.is_active() {
        check::ready(request, partition);
    }
    send.ready(engine, partition)
}

/// Marks partitions as ready; none, if one of them cannot be.
fn ready_ones(request: MPI_Request, partitions: impl Iterator<Item = c_int> + Clone) -> Result<()> {
    with_send(request, |engine, send| {
        let mut partitions = partitions.map(place);
        partitions.clone().try_for_each(|partition| send.check_unready(partition))?;
        partitions.try_for_each(|partition| ready_one(engine, request, send, partition))
    })
}

/// MPI_Pready.
pub fn ready(partition: c_int, request: MPI_Request) -> Result<()> {
    with_send(request, |engine, send| ready_one(engine, request, send, place(partition)))
}

/// MPI_Pready_range: both ends belong to it.
pub fn ready_range(low: c_int, high: c_int, request: MPI_Request) -> Result<()> {
    if low > high {
        return Err(Error::Arg("the first partition of the range is larger than the last one"));
    }
    ready_ones(request, low..=high)
}

/// MPI_Pready_list.
pub fn ready_list(partitions: &[c_int], request: MPI_Request) -> Result<()> {
    ready_ones(request, partitions.iter().copied())
}

/// MPI_Parrived.
pub fn arrived(request: MPI_Request, partition: c_int) -> Result<bool> {
    if request == crate::abi::MPI_REQUEST_NULL {
        return Ok(true);
    }
    with(request, |engine, half| match half {
        Half::Receive(receive) => {
            let there = receive.arrived(engine, place(partition))?;
            if there && check::is_on() {
                check::arrived(request, place(partition));
            }
            Ok(there)
        }
        Half::Send(_) => Err(Error::Request("it is a send, whose partitions do not arrive here")),
    })
}
