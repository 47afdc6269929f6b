//! How a member holds its team while it performs a collective, and how it waits for the others.

use super::{POLLS, TeamGuard};
use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::{Engine, is_described, numbering};
use crate::error::{Error, Result};
use crate::shm::telemetry::{Wait, Waiting};
use crate::sync::ConditionalGuard;
use crate::team::{BackgroundTeam, Condition, CorruptWord, Membership, Team};
use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::mem::replace;
use core::task::Poll;

/// A member's team, held for one collective.
pub trait Hold {
    /// The team.
    fn team(&mut self) -> &mut Team;

    /// How often a word is checked before the caller waits.
    fn checks(&self) -> u32 {
        1
    }

    /// Waits until `condition` holds. A failure makes the team unusable.
    fn wait(
        &mut self,
        engine: &Engine,
        comm: &Comm,
        condition: Condition,
    ) -> impl Future<Output = Result<()>>;
}

/// Of transports without teams.
impl Hold for Infallible {
    fn team(&mut self) -> &mut Team {
        match *self {}
    }
    async fn wait(&mut self, _: &Engine, _: &Comm, _: Condition) -> Result<()> {
        match *self {}
    }
}

/// Marks the team as unusable; the first reason counts, and is returned.
#[cold]
pub(super) fn fail_with(team: &mut Team, error: Error) -> Error {
    team.failure.get_or_insert(error).clone()
}

#[cold]
pub(super) fn corrupt_word(team: &mut Team, comm: &Comm, what: CorruptWord) -> Error {
    fail_with(
        team,
        Error::Intern(format!(
            "the shared memory of the collectives of context {} has a word {:#x} that no rank writes",
            comm.context, what.0
        )),
    )
}

/// How often a word is checked: once, where the CPU may be wanted by the member that will write it.
#[inline(always)]
fn checks(engine: &Engine) -> u32 {
    if engine.config().shape().is_oversubscribed() { 1 } else { POLLS }
}

/// The team of blocking collectives. It is locked where several threads may be inside the engine.
/// Waiting ends before it returns.
pub struct Locked<'a> {
    membership: ConditionalGuard<'a, Membership>,
    checks: u32,
    description: Description,
}

/// When a blocking call describes itself, for a report if it waits long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Description {
    /// Before it begins, or never.
    Given,
    /// When it is about to wait: its future is pending once.
    Asked,
}

impl<'a> Locked<'a> {
    /// Holds the team, if the caller is a member.
    #[inline(always)]
    pub fn new(
        engine: &Engine,
        membership: ConditionalGuard<'a, Membership>,
        description: Description,
    ) -> Option<Self> {
        let checks = checks(engine);
        matches!(*membership, Membership::Member(_)).then_some(Self { membership, checks, description })
    }
}

impl TeamGuard<'_, Locked<'_>> {
    /// Says that the call is not going to be asked what it is: its future is ready when it is first polled.
    #[inline(always)]
    pub fn goes_undescribed(&mut self) {
        self.hold.description = Description::Given;
    }
}

impl Hold for Locked<'_> {
    #[inline(always)]
    fn team(&mut self) -> &mut Team {
        match &mut *self.membership {
            Membership::Member(team) => team,
            Membership::Unknown | Membership::None => {
                unreachable!("a team has a membership, and keeps it locked")
            }
        }
    }

    #[inline(always)]
    fn checks(&self) -> u32 {
        self.checks
    }

    #[inline(never)]
    async fn wait(&mut self, engine: &Engine, comm: &Comm, condition: Condition) -> Result<()> {
        if self.description == Description::Asked && !is_described() {
            let mut is_asked = false;
            poll_fn(|_| if replace(&mut is_asked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        }
        let context = comm.context + 1;
        let rounds = &mut self.team().rounds;
        let (mut outcome, mut registered) = (Ok(false), false);
        let why = || Some(Wait { kind: Waiting::Collective, peer: None, tag: None, context, since: now() });
        let number = comm.call_number(rounds.round());
        let holds = |sleepy| {
            outcome = rounds.holds(condition);
            if sleepy && outcome == Ok(false) {
                registered = true;
                rounds.register(engine.fences);
                outcome = rounds.holds(condition);
            }
            outcome != Ok(false)
        };
        let waited = numbering(number, || engine.progress().wait_for_word(why, holds));
        if registered {
            rounds.unregister();
        }
        match outcome {
            Err(what) => Err(corrupt_word(self.team(), comm, what)),
            Ok(_) => waited.map_err(|error| {
                engine.await_copies(comm.peers().iter());
                fail_with(self.team(), error)
            }),
        }
    }
}

/// The team of nonblocking collectives, in the caller's turn. It is given back when this is dropped.
/// Waiting ends as progress is made.
pub struct InTurn<'a> {
    engine: &'a Engine,
    from: &'a BackgroundTeam,
    membership: Membership,
}

impl<'a> InTurn<'a> {
    /// Waits for the caller's turn.
    pub async fn new(engine: &'a Engine, from: &'a BackgroundTeam) -> Self {
        let shared = engine.is_shared();
        let membership = match from.ask(shared) {
            Ok(membership) => membership,
            Err(ticket) => poll_fn(|_| from.take(shared, ticket).map_or(Poll::Pending, Poll::Ready)).await,
        };
        Self { engine, from, membership }
    }

    /// Holds the team, if it is the caller's turn and the rank is a member.
    #[inline]
    #[must_use]
    pub fn at_once(engine: &'a Engine, from: &'a BackgroundTeam) -> Option<Self> {
        let hold = Self { engine, from, membership: from.take_at_once(engine.is_shared())? };
        matches!(hold.membership, Membership::Member(_)).then_some(hold)
    }

    /// What the rank keeps of the team.
    pub fn membership(&mut self) -> &mut Membership {
        &mut self.membership
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.from.give_back(self.engine.is_shared(), core::mem::take(&mut self.membership));
    }
}

impl Hold for InTurn<'_> {
    #[inline]
    fn team(&mut self) -> &mut Team {
        match &mut self.membership {
            Membership::Member(team) => team,
            Membership::Unknown | Membership::None => unreachable!("a team has a membership"),
        }
    }

    #[inline]
    fn checks(&self) -> u32 {
        checks(self.engine)
    }

    async fn wait(&mut self, engine: &Engine, comm: &Comm, condition: Condition) -> Result<()> {
        let awaited = self.team().rounds.awaited(condition);
        self.from.wait_for(self.engine.is_shared(), awaited);
        let outcome = poll_fn(|_| {
            // First: what held before a failure holds.
            let given_up = comm.collective().is_given_up();
            match self.team().rounds.holds(condition) {
                Ok(false) if !given_up => Poll::Pending,
                outcome => Poll::Ready(outcome),
            }
        })
        .await;
        if outcome == Ok(false)
            && let Some(error) = engine.trouble_of(comm.collective())
        {
            engine.await_copies(comm.peers().iter());
            return Err(fail_with(self.team(), error));
        }
        outcome.map(drop).map_err(|what| corrupt_word(self.team(), comm, what))
    }
}
