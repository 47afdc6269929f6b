//! Agreement among the members of a communicator that live (User Level Failure Mitigation): on a value, or on a
//! communicator without the dead.
//!
//! See [`crate::shm::failures`] for the protocol. The members of an intercommunicator's two groups agree together.

use super::create::Agreed;
use crate::arch::clock::now;
use crate::comm::{Comm, Group};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::failures::{Ballot, Count, Decision, FailureWords, Subject};
use crate::shm::telemetry::{Wait, Waiting};
use crate::shm::{RosterEntry, contexts};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

/// One agreement of this rank, until its decision is there.
struct Agreement<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    ballot: Ballot<'a>,
    /// Where this rank has voted.
    place: usize,
}

impl<'a> Agreement<'a> {
    /// Votes, once all agreements before number `serial` of `comm` are over.
    async fn vote(
        engine: &'a Engine,
        comm: &'a Comm,
        serial: u32,
        subject: Subject,
        flag: u32,
    ) -> Result<Self> {
        let id = comm.context / 2;
        let words: &FailureWords = engine.job().failures().words(id)?;
        // Agreement rule 1.
        poll_fn(|_| if comm.agreements().is_turn(serial) { Poll::Ready(()) } else { Poll::Pending }).await;
        let ballot = Ballot::new(words, id, serial, subject);
        let own = engine.job().roster().entry(engine.rank());
        // There was a place when it began. Others that had begun may have it by now, and give it back.
        let vote = |_: &mut Context<'_>| match ballot.vote(own, flag, comm.p2p().acknowledged()) {
            Some(place) => Poll::Ready(place),
            None => Poll::Pending,
        };
        let place = poll_fn(vote).await;
        let agreement = Self { engine, comm, ballot, place };
        agreement.wake_others();
        Ok(agreement)
    }

    fn members(&self) -> impl Iterator<Item = u32> + use<'_, 'a> {
        members(self.comm)
    }

    fn wake_others(&self) {
        for member in self.members().filter(|member| *member != self.engine.rank()) {
            self.engine.progress().wake_peer(member);
        }
    }

    /// Waits for the decision, which `propose` makes of the votes. `withdraw` undoes a proposal that came too late.
    async fn decision(
        self,
        propose: impl Fn(Count) -> Result<Decision>,
        withdraw: impl Fn(Decision),
    ) -> Result<Decision> {
        let roster = self.engine.job().roster();
        let entries = || self.members().map(|member| -> &RosterEntry { roster.entry(member) });
        let decided = poll_fn(|_| match self.ballot.decide(entries(), &propose, &withdraw) {
            Ok(None) => Poll::Pending,
            Ok(Some(decision)) => Poll::Ready(Ok(decision)),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await;
        self.ballot.leave(roster.entry(self.engine.rank()), self.place);
        self.comm.agreements().end(self.ballot.serial());
        self.wake_others();
        decided
    }
}

/// Runs an agreement to its end.
///
/// # Errors
/// Those of the agreement and of waiting.
pub fn run<T>(engine: &Engine, comm: &Comm, agreement: impl Future<Output = Result<T>>) -> Result<T> {
    let mut agreement = pin!(agreement);
    let mut outcome = None;
    let since = now();
    let context = comm.context;
    engine.progress().wait_until(
        || Some(Wait { kind: Waiting::Agreement, peer: None, tag: None, context, since }),
        || {
            if outcome.is_none()
                && let Poll::Ready(ready) = agreement.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                outcome = Some(ready);
            }
            outcome.is_some()
        },
    )?;
    outcome.unwrap_or_else(|| Err(Error::Intern("an agreement ended without a decision".into())))
}

/// Refuses what needs memory that all members share.
///
/// # Errors
/// [`Error::Dynamic`] of class MPI_ERR_COMM for a communicator of several jobs.
fn check_members(engine: &Engine, comm: &Comm) -> Result<()> {
    engine.within_one_job(members(comm), "revocation or agreement")
}

/// The members of a communicator, those of both groups of an intercommunicator, as ranks of the job.
pub fn members(comm: &Comm) -> impl Iterator<Item = u32> + use<'_> {
    comm.group().iter().chain(comm.remote().into_iter().flat_map(Group::iter))
}

/// Revokes a communicator: all operations on it end, at all members.
///
/// # Errors
/// As for [`check_members`]; [`Error::Segment`] if there is no memory for it.
pub fn revoke(engine: &Engine, comm: &Comm) -> Result<()> {
    check_members(engine, comm)?;
    if engine.job().failures().revoke(comm.context / 2)? {
        for member in members(comm).filter(|member| *member != engine.rank()) {
            engine.progress().wake(member);
        }
    }
    engine.progress().notice_failures();
    Ok(())
}

/// Whether a member has revoked a communicator.
///
/// # Errors
/// [`Error::Segment`] if there is no memory for the answer.
pub fn is_revoked(engine: &Engine, comm: &Comm) -> Result<bool> {
    // What a program has learned holds from then on.
    engine.progress().notice_failures();
    Ok(engine.job().failures().words(comm.context / 2)?.is_revoked())
}

/// The members of a communicator that have died, in the order in which they did, up to death number `until`.
#[must_use]
pub fn dead_members(engine: &Engine, comm: &Comm, until: u32) -> Vec<u32> {
    engine.progress().notice_failures();
    engine.job().failures().dead_among(members(comm), until)
}

/// Refuses what all members of a communicator are needed for, if this rank can know that it must fail.
///
/// # Errors
/// [`Error::ProcFailed`] if a member has died, [`Error::Revoked`], and those of [`is_revoked`].
pub fn check_whole(engine: &Engine, comm: &Comm) -> Result<()> {
    let (deaths, revocations) = engine.job().failures().counts();
    if revocations > 0 && is_revoked(engine, comm)? {
        return Err(Error::Revoked);
    }
    let dead = if deaths > 0 { dead_members(engine, comm, u32::MAX) } else { vec![] };
    dead.first().map_or(Ok(()), |dead| Err(engine.proc_failed(*dead)))
}

/// What may have kept others from a call that they made for this rank, too, who alone know why:
/// the latest death in the job, or a revocation.
#[must_use]
pub fn failure_of_others(engine: &Engine) -> Option<Error> {
    engine.progress().notice_failures();
    let failures = engine.job().failures();
    let dead = failures.dead_among(0..engine.job().places_in_use(), u32::MAX);
    let (_, revocations) = failures.counts();
    dead.last().map(|dead| engine.proc_failed(*dead)).or_else(|| (revocations > 0).then_some(Error::Revoked))
}

/// Acknowledges the first `count` of the members that have died, all of them if they are fewer;
/// returns how many are acknowledged now.
pub fn acknowledge(engine: &Engine, comm: &Comm, count: usize) -> usize {
    let dead = dead_members(engine, comm, u32::MAX);
    if let Some(last) = dead[..count.min(dead.len())].last() {
        comm.acknowledge(engine.job().roster().entry(*last).death().unwrap_or_default());
    }
    dead_members(engine, comm, comm.acknowledged()).len()
}

/// Leaves a job that outlives its ranks together with those of `world` that live.
///
/// # Errors
/// Those of the agreement and of waiting.
pub fn leave_with_the_living(engine: &Engine, world: &Comm) -> Result<()> {
    let serial = world.agreements().begin();
    let leave = || run(engine, world, agree_on(engine, world, serial, Subject::Leaving, 0)).map(drop);
    engine.leave_after(leave)
}

/// Begins an agreement on `comm`; gives its number there.
/// Where it fails no number is used up, so that the caller may try again.
///
/// # Errors
/// [`Error::Comm`] if a member is of another job; [`Error::NoMem`] if the rank is in too many agreements.
pub fn begin(engine: &Engine, comm: &Comm) -> Result<u32> {
    check_members(engine, comm)?;
    if !Ballot::has_place(engine.job().roster().entry(engine.rank())) {
        return Err(Error::NoMem(
            "this rank is in too many agreements at once; wait for some of them".into(),
        ));
    }
    Ok(comm.agreements().begin())
}

/// Agrees on the bitwise and of the members' `flag`s: agreement number `serial` of `comm`. The second result is the
/// error that all members get: a member has died, and not all that live have acknowledged that.
///
/// # Errors
/// [`Error::Segment`] if there is no memory for the agreement.
pub async fn agree(engine: &Engine, comm: &Comm, serial: u32, flag: u32) -> Result<(u32, Result<()>)> {
    agree_on(engine, comm, serial, Subject::Value, flag).await
}

async fn agree_on(
    engine: &Engine,
    comm: &Comm,
    serial: u32,
    subject: Subject,
    flag: u32,
) -> Result<(u32, Result<()>)> {
    let agreement = Agreement::vote(engine, comm, serial, subject, flag).await?;
    let propose = |count: Count| {
        let unacknowledged = count.latest_death > count.acknowledged;
        Ok(Decision { small: u16::from(unacknowledged), large: count.flag })
    };
    let decision = agreement.decision(propose, |_| {}).await?;
    let dead = || engine.job().failures().dead_among(members(comm), u32::MAX).last().copied();
    let outcome = match decision.small {
        0 => Ok(()),
        _ => Err(engine.proc_failed(dead().unwrap_or(engine.rank()))),
    };
    Ok((decision.large, outcome))
}

/// Agrees on a communicator of the members that live: agreement number `serial` of `comm`.
///
/// # Errors
/// As for [`agree`]; [`Error::NoMem`], at all members, if there is no context id.
pub async fn shrink(engine: &Engine, comm: &Comm, serial: u32) -> Result<Agreed> {
    let job = engine.job();
    let living = |group: &Group, until: u32| {
        let dead = job.failures().dead_among(group.iter(), until);
        let living: Vec<u32> = group.iter().filter(|member| !dead.contains(member)).collect();
        living
    };
    let agreement = Agreement::vote(engine, comm, serial, Subject::Communicator, 0).await?;
    let propose = |count: Count| {
        let left = living(comm.group(), count.latest_death).len()
            + comm.remote().map_or(0, |remote| living(remote, count.latest_death).len());
        // Without a context id there is no communicator, and all members learn so from the decision.
        let id = job.contexts().allocate(left as u32).unwrap_or(contexts::WORLD);
        Ok(Decision { small: id as u16, large: count.latest_death })
    };
    let withdraw = |decision: Decision| {
        let id = u32::from(decision.small);
        while id > contexts::SELF && matches!(job.contexts().release(id), Ok(false)) {}
    };
    let decision = agreement.decision(propose, withdraw).await?;
    if u32::from(decision.small) <= contexts::SELF {
        return Err(Error::NoMem("there is no context id for the communicator of those that live".into()));
    }
    let those_of = |group: &Group| {
        Group::from_world_ranks(living(group, decision.large)).of_session(comm.group().session())
    };
    let group = those_of(comm.group());
    let own = comm.group().world_rank(comm.rank());
    let gone = || Error::Intern("the other members take this rank for dead".into());
    Ok(Agreed {
        context: 2 * u32::from(decision.small),
        rank: group.rank_of(own).ok_or_else(gone)?,
        group,
        remote: comm.remote().map(those_of),
    })
}
