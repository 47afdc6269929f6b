//! Persistent collectives: an operation that is prepared once, and performed whenever it is started.

use super::performer::{InBackground, Start};
use super::{Begun, UNDER_WAY, begin_work, check_calls, ended, performed};
use crate::boundary::RaisedOn;
use crate::coll::call::CollectiveOp;
use crate::coll::nonblocking::TeamUse;
use crate::coll::{NumberedCall, Outline, SequenceNumber};
use crate::comm::{Comm, lock};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::CollMode;
use crate::info::Info;
use crate::p2p::MessageStatus;
use crate::requests::{Task, insert_task};
use crate::sync::{AtomicU8, Mutex, Ordering};
use crate::types::MPI_Request;
use std::sync::Arc;

/// The fast path of an operation, with the arguments of the call that prepared it. It gives `None` where it cannot be
/// taken ([`super::fast`]).
pub(crate) struct FastPath(Box<Perform>);

type Perform = dyn Fn(InBackground<'_>) -> Option<Begun>;

// SAFETY: it holds addresses of the program's, which are valid on every thread while the operation is performed
// (argument rule 3), and numbers.
unsafe impl Send for FastPath {}
// SAFETY: nothing in it changes; where its addresses lead is accessed only while the operation is performed (argument
// rule 3).
unsafe impl Sync for FastPath {}

impl FastPath {
    /// Of arguments that were kept ([`crate::arguments::Buffer::keep`]).
    pub fn new(perform: impl Fn(InBackground<'_>) -> Option<Begun> + 'static) -> Self {
        Self(Box::new(perform))
    }
}

/// Whether an operation has a team of its own: its form must be one in which every member knows how much the others
/// have. All members get the same answer.
fn has_team(call: &CollectiveOp) -> bool {
    match call {
        CollectiveOp::Barrier
        | CollectiveOp::Bcast(..)
        | CollectiveOp::Allgather(..)
        | CollectiveOp::Reduce(..)
        | CollectiveOp::Allreduce(..)
        | CollectiveOp::ReduceScatter(..)
        | CollectiveOp::Scan(..)
        | CollectiveOp::Exscan(..) => true,
        CollectiveOp::Gather(_, _, _, even) | CollectiveOp::Scatter(_, _, _, even) => *even,
        CollectiveOp::Alltoall(_, pieces) => pieces.are_even(),
        CollectiveOp::NeighbourAllgather(..) | CollectiveOp::NeighbourAlltoall(..) => false,
    }
}

/// A persistent operation, as its request knows it.
struct PersistentTask {
    comm: Arc<Comm>,
    call: Arc<CollectiveOp>,
    fast: Option<FastPath>,
    number: SequenceNumber,
    /// Its own team, if it is to have one.
    team: TeamUse,
    stage: Stage,
    /// What has been started, if it was not over at once.
    current: Mutex<Begun>,
}

/// How far the last start of an operation is. Relaxed throughout: the program orders the calls on one request.
#[derive(Default)]
struct Stage(AtomicU8);

impl Stage {
    /// No start, or its outcome has been taken.
    const INACTIVE: u8 = 0;
    /// Started, and not over when MPI_Start returned.
    const UNDER_WAY: u8 = 1;
    /// Started, and over when MPI_Start returned.
    const OVER: u8 = 2;

    fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }
    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }
    /// False if it is active already.
    fn begin(&self) -> bool {
        self.0.compare_exchange(Self::INACTIVE, Self::UNDER_WAY, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Task for PersistentTask {
    fn poll(&self, _: &Engine) -> Result<bool> {
        let is_over = || lock(&self.current).as_ref().is_none_or(|operation| operation.is_over());
        Ok(!self.stage.is(Stage::UNDER_WAY) || is_over())
    }
    fn outcome(&self, _: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        let mut error = None;
        if self.stage.is(Stage::UNDER_WAY) {
            let mut current = lock(&self.current);
            error = current.as_ref().and_then(|operation| operation.error());
            if last {
                *current = None;
            }
        }
        if last {
            self.stage.set(Stage::INACTIVE);
        }
        ended(error)
    }
    fn take_at_once(&self) -> bool {
        let over = self.stage.is(Stage::OVER);
        if over {
            self.stage.set(Stage::INACTIVE);
        }
        over
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("a collective operation cannot be cancelled"))
    }
    fn free(&self, engine: &Engine) -> Result<()> {
        if self.poll(engine)? { Ok(()) } else { Err(UNDER_WAY) }
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        Some(RaisedOn::from(&*self.comm))
    }
    fn collective(&self) -> Option<(u32, Outline)> {
        let current = lock(&self.current);
        current.as_ref().map(|operation| (self.comm.context, *operation.described().1))
    }
    fn is_persistent(&self) -> bool {
        true
    }
    fn is_active(&self) -> bool {
        !self.stage.is(Stage::INACTIVE)
    }
    fn start(&self, engine: &'static Engine) -> Result<()> {
        if !self.stage.begin() {
            return Err(Error::Request("it is active; it can be started again when it is complete"));
        }
        let start = Start { comm: &self.comm, call: &self.call, number: self.number, team: &self.team };
        let fast = self.fast.as_ref().and_then(|FastPath(perform)| perform(InBackground::Again(start)));
        match fast.unwrap_or_else(|| self.begin(engine)) {
            None => self.stage.set(Stage::OVER),
            Some(operation) => {
                *lock(&self.current) = Some(operation.clone());
                engine.progress().start_background(operation);
            }
        }
        Ok(())
    }
}

impl PersistentTask {
    /// Begins it by the complete implementation.
    fn begin(&self, engine: &'static Engine) -> Begun {
        let number = NumberedCall::count_in_background(engine, &self.comm);
        let (comm, call, team) = (self.comm.clone(), self.call.clone(), &self.team);
        // SAFETY: argument rule 3: of a persistent operation,
        // the buffers are valid from each start until its completion.
        let work = Box::pin(unsafe { performed(engine, comm.clone(), call, self.number, team.clone()) });
        // SAFETY: the work holds addresses, its transports, and what is `Send`, and uses no other team.
        unsafe {
            begin_work(
                engine,
                || comm,
                || team.clone(),
                work,
                |_| self.call.outline_of_request(number, CollMode::Persistent),
            )
        }
    }
}

/// Prepares a call for MPI_Start; gives its request.
pub(crate) fn prepare(
    comm: Arc<Comm>,
    call: impl FnOnce(&Comm) -> Result<CollectiveOp>,
    _: Info,
    fast: Option<FastPath>,
) -> Result<MPI_Request> {
    let call = Arc::new(call(&comm)?);
    let number = SequenceNumber::Persistent(comm.next_persistent());
    let checked = check_calls::is_on().then(|| (comm.clone(), call.clone()));
    let team = if has_team(&call) { TeamUse::Own(Arc::default()) } else { TeamUse::None };
    let (stage, current) = Default::default();
    let task = PersistentTask { comm, call, fast, number, team, stage, current };
    let handle = insert_task(Box::new(task))?;
    if let Some((comm, call)) = checked {
        check_calls::began_persistent(handle, &comm, &call);
    }
    Ok(handle)
}
