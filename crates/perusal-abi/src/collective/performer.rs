//! When a collective on its fast path is performed: before its call returns, or in the background.
//! Everything else is the same for both.

use super::{Begun, begin_work, perform};
use crate::arguments::CommHandle;
use crate::coll::call::CollectiveOp;
use crate::coll::nonblocking::{TeamUse, Work};
use crate::coll::shared_memory::{Hold, InTurn, Locked, TeamGuard};
use crate::coll::{
    BlockingTransport, NonblockingTransport, NumberedCall, Outline, Purpose, SequenceNumber, Transport,
    counting, run, run_describing, team_in_turn, team_of,
};
use crate::comm::Comm;
use crate::comms;
use crate::error::Result;
use crate::events::{CollMode, Collective, fast_path_is_open};
use crate::process::running;
use crate::shm::telemetry::CollectiveAbout;
use crate::team::PAYLOAD;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

/// What a fast path is given to perform its operation with. `None`, of any function: it does not perform this one, and
/// nothing has happened that others see.
pub(crate) trait Performer<'a>: Copy {
    /// How it holds the team.
    type Hold: Hold + 'a;
    /// How it sends messages.
    type Transport: Transport;
    /// What the call gives the program.
    type Outcome;

    /// Returns the communicator, if there is one.
    fn comm(self) -> Option<&'a Comm>;

    /// Returns the team of the communicator.
    fn team(self, operation: Collective) -> Option<TeamGuard<'a, Self::Hold>>;

    /// Performs `call` on `team`, of which a member shows `bytes` bytes. `call` says false where the team does not
    /// serve it. `what` is the call, for reports.
    fn in_team(
        self,
        team: TeamGuard<'a, Self::Hold>,
        bytes: usize,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, Self::Hold>) -> Result<bool>,
    ) -> Option<Self::Outcome>;

    /// Performs `call`, a round of `team` without arguments: its name and number are all that reports say of it.
    fn in_round(
        self,
        team: TeamGuard<'a, Self::Hold>,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, Self::Hold>) -> Result<()>,
    ) -> Option<Self::Outcome>;

    /// Performs `call` by messages. `what` is the call, for reports.
    fn by_messages(
        self,
        purpose: Purpose,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&Self::Transport) -> Result<()>,
    ) -> Option<Self::Outcome>;
}

/// Before the call returns.
#[derive(Clone, Copy)]
pub(crate) struct AtOnce<'a>(pub CommHandle<'a>);

impl<'a> Performer<'a> for AtOnce<'a> {
    type Hold = Locked<'a>;
    type Transport = BlockingTransport<'a>;
    type Outcome = Result<()>;

    #[inline(always)]
    fn comm(self) -> Option<&'a Comm> {
        self.0.peek_complete()
    }

    #[inline(always)]
    fn team(self, operation: Collective) -> Option<TeamGuard<'a, Locked<'a>>> {
        if !fast_path_is_open() {
            return None;
        }
        team_of(running()?, self.0.peek()?, operation)
    }

    #[inline(always)]
    fn in_team(
        self,
        mut team: TeamGuard<'a, Locked<'a>>,
        bytes: usize,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, Locked<'a>>) -> Result<bool>,
    ) -> Option<Result<()>> {
        let comm = team.comm();
        if bytes <= PAYLOAD {
            // Such a call takes one round, as which it counts, and by which it has its number.
            return Some(run_describing(|| about(&what, comm, 0), call(&mut team)).map(drop));
        }
        let before = team.round();
        let result = run_describing(|| about(&what, comm, comm.call_number(before)), call(&mut team));
        let done = !matches!(result, Ok(false));
        team.count_call(before, done);
        done.then(|| result.map(drop))
    }

    #[inline(always)]
    fn in_round(
        self,
        mut team: TeamGuard<'a, Locked<'a>>,
        _: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, Locked<'a>>) -> Result<()>,
    ) -> Option<Result<()>> {
        team.goes_undescribed();
        Some(run(call(&mut team)))
    }

    #[inline(always)]
    fn by_messages(
        self,
        purpose: Purpose,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&BlockingTransport<'a>) -> Result<()>,
    ) -> Option<Result<()>> {
        let (engine, comm) = (running()?, self.0.peek_complete()?);
        let transport = BlockingTransport::new(engine, comm, purpose);
        let about = |number| about(&what, comm, number);
        Some(counting(engine, comm, about, || transport.run(call(&transport))))
    }
}

/// What a report says of call `number` on `comm`.
#[cold]
fn about(what: impl Fn(&Comm) -> Result<CollectiveOp>, comm: &Comm, number: u64) -> CollectiveAbout {
    what(comm).map_or_else(|_| CollectiveAbout::default(), |call| call.outline(number).about())
}

/// In the background, for a request.
#[derive(Clone, Copy)]
pub(crate) enum InBackground<'a> {
    /// A nonblocking operation on the communicator that the program named.
    Once(CommHandle<'a>),
    /// A start of a persistent one.
    Again(Start<'a>),
}

/// A start of a persistent operation.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    /// Its communicator.
    pub comm: &'a Arc<Comm>,
    /// What it is.
    pub call: &'a Arc<CollectiveOp>,
    /// Which of the communicator's it is.
    pub number: SequenceNumber,
    /// The team of this start.
    pub team: &'a TeamUse,
}

impl InBackground<'_> {
    /// Begins the work that `work` makes of the number of the operation.
    fn begin<F: Future<Output = Result<()>>>(
        self,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        work: impl FnOnce(SequenceNumber) -> F,
    ) -> Option<Begun> {
        let (engine, comm) = (running()?, self.comm()?);
        let number = match self {
            Self::Once(_) => SequenceNumber::Once(comm.next_in_background()),
            Self::Again(start) => start.number,
        };
        // Boxed as it is made: each further move would copy all of it, up to 1.3 KB.
        let work: Pin<Box<dyn Future<Output = Result<()>> + '_>> = Box::pin(work(number));
        let number = NumberedCall::count_in_background(engine, comm);
        // SAFETY: of what is borrowed, it holds the communicator and the team, which the operation keeps, and the
        // program's buffers, which are valid until the request is complete (argument rule 3).
        let work =
            unsafe { core::mem::transmute::<Pin<Box<dyn Future<Output = Result<()>> + '_>>, Work>(work) };
        let outline = |comm: &Comm| match self {
            Self::Once(_) => what(comm).map_or_else(
                |_| Outline::of_function("a nonblocking collective", number),
                |call| call.outline_of_request(number, CollMode::Nonblocking),
            ),
            Self::Again(start) => start.call.outline_of_request(number, CollMode::Persistent),
        };
        let comm = || match self {
            Self::Once(handle) => comms::get(handle.handle()).expect("argument rule 2: nobody frees it now"),
            Self::Again(start) => start.comm.clone(),
        };
        let team = || match self {
            Self::Once(_) => TeamUse::OfComm,
            Self::Again(start) => start.team.clone(),
        };
        // SAFETY: the work holds addresses, the team or a transport, and what is `Send`.
        Some(unsafe { begin_work(engine, comm, team, work, outline) })
    }
}

impl<'a> Performer<'a> for InBackground<'a> {
    type Hold = InTurn<'a>;
    type Transport = NonblockingTransport<'a>;
    type Outcome = Begun;

    #[inline(always)]
    fn comm(self) -> Option<&'a Comm> {
        match self {
            Self::Once(handle) => handle.peek_complete(),
            Self::Again(start) => Some(start.comm),
        }
    }

    #[inline(always)]
    fn team(self, operation: Collective) -> Option<TeamGuard<'a, InTurn<'a>>> {
        if !fast_path_is_open() {
            return None;
        }
        let comm = self.comm()?;
        let team = match self {
            Self::Once(_) => comm.background_team(),
            Self::Again(start) => start.team.team(comm)?,
        };
        team_in_turn(running()?, comm, team, operation)
    }

    #[inline(always)]
    fn in_team(
        self,
        team: TeamGuard<'a, InTurn<'a>>,
        bytes: usize,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, InTurn<'a>>) -> Result<bool>,
    ) -> Option<Begun> {
        let (engine, comm) = (running()?, team.comm());
        // Whether the team serves more than a slot holds is found out on the way.
        let complete = match self {
            _ if bytes <= PAYLOAD => None,
            Self::Once(_) => Some((Arc::new(what(comm).ok()?), TeamUse::OfComm)),
            Self::Again(start) => Some((start.call.clone(), start.team.clone())),
        };
        self.begin(what, |number| async move {
            let mut team = team;
            let done = call(&mut team).await?;
            drop(team);
            let Some((complete, team)) = complete.filter(|_| !done) else { return Ok(()) };
            // SAFETY: argument rule 3: the buffers are valid until the request is complete.
            Box::pin(unsafe { perform(engine, comm, &complete, number, &team) }).await
        })
    }

    #[inline(always)]
    fn in_round(
        self,
        team: TeamGuard<'a, InTurn<'a>>,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&mut TeamGuard<'a, InTurn<'a>>) -> Result<()>,
    ) -> Option<Begun> {
        self.in_team(team, 0, what, async |team| call(team).await.map(|()| true))
    }

    #[inline(always)]
    fn by_messages(
        self,
        _: Purpose,
        what: impl Fn(&Comm) -> Result<CollectiveOp>,
        call: impl AsyncFnOnce(&NonblockingTransport<'a>) -> Result<()>,
    ) -> Option<Begun> {
        let (engine, comm) = (running()?, self.comm()?);
        self.begin(what, |number| async move {
            let transport = NonblockingTransport::new(engine, comm, number, &TeamUse::None);
            transport.conclude(call(&transport).await)
        })
    }
}
