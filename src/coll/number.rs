//! Which number a collective call has on its communicator, for reports of hangs.
//!
//! What goes through the team's memory on the fast path is counted by the team's rounds, of which such a call takes
//! one, so that it counts nothing itself. Every other call adds to a count what it takes more or less than that.

use crate::comm::Comm;
use crate::engine::{Engine, describing};
use crate::error::Result;
use crate::shm::telemetry::CollectiveAbout;
use crate::team::Membership;

/// A call that is under way.
#[derive(Debug)]
pub struct NumberedCall<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    /// Rounds of the team before the call.
    rounds: u64,
    /// The call's number, from 1.
    pub number: u64,
}

/// How many collective calls the program has made on a communicator; `None` where another thread is in one.
///
/// # Safety
/// The caller is in no collective call on it, nor has its team.
#[must_use]
pub unsafe fn calls_made(engine: &Engine, comm: &Comm) -> Option<u64> {
    let team = comm.try_team(engine.is_shared())?;
    let rounds = match &*team {
        Membership::Member(team) => team.rounds.round(),
        _ => 0,
    };
    Some(comm.call_number(rounds).wrapping_sub(1))
}

fn rounds(engine: &Engine, comm: &Comm) -> u64 {
    match &*comm.team(engine.is_shared()) {
        Membership::Member(team) => team.rounds.round(),
        _ => 0,
    }
}

/// Performs `call` on `comm`, a blocking call that takes no round of the team. `about` describes it by its number, once
/// it has waited for long.
#[inline(always)]
pub fn counting<R>(
    engine: &Engine,
    comm: &Comm,
    about: impl Fn(u64) -> CollectiveAbout,
    call: impl FnOnce() -> R,
) -> R {
    let result = describing(&|| about(comm.call_number(rounds(engine, comm))), call);
    comm.count_calls(1);
    result
}

impl<'a> NumberedCall<'a> {
    /// Numbers a blocking call that begins, and is over when the result is dropped.
    #[inline]
    #[must_use]
    pub fn begin(engine: &'a Engine, comm: &'a Comm) -> Self {
        let rounds = rounds(engine, comm);
        Self { engine, comm, rounds, number: comm.call_number(rounds) }
    }

    /// Performs the call, which is described by its number alone.
    ///
    /// # Errors
    /// Those of `call`.
    pub fn describing<R>(self, call: impl FnOnce() -> Result<R>) -> Result<R> {
        describing(&|| CollectiveAbout { number: self.number, ..CollectiveAbout::default() }, call)
    }

    /// Counts a call that is performed in the background, and returns its number;
    /// 0 where another thread is in a call on the communicator.
    #[must_use]
    pub fn count_in_background(engine: &Engine, comm: &Comm) -> u64 {
        let number = comm.try_team(engine.is_shared()).map_or(0, |team| match &*team {
            Membership::Member(team) => comm.call_number(team.rounds.round()),
            _ => comm.call_number(0),
        });
        comm.count_calls(1);
        number
    }
}

impl Drop for NumberedCall<'_> {
    #[inline]
    fn drop(&mut self) {
        let taken = rounds(self.engine, self.comm).wrapping_sub(self.rounds);
        self.comm.count_calls(1_u64.wrapping_sub(taken));
    }
}
