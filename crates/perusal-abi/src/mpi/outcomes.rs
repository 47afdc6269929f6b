//! The outcomes of several requests: what a wait or test of an array of them gives (MPI 5.0 §3.7.5).

use crate::abi::MPI_ERR_PENDING;
use crate::arguments::{Out, Room, StatusOut, Statuses};
use crate::boundary::{self, RaisedOn};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::p2p::MessageStatus;
use crate::requests::{self, InVain, Named, Standing, find};
use crate::types::MPI_Request;
use core::ffi::c_int;

/// The outcomes of requests of an array as they are taken, and the first of them that failed, if one did: its place,
/// its error, and what that is raised on.
pub(super) struct Outcomes<'a> {
    statuses: Statuses<'a>,
    /// Statuses that are set.
    pub set: usize,
    failure: Option<(usize, Error, Option<RaisedOn>)>,
}

impl<'a> Outcomes<'a> {
    /// After the first `set` requests, which have succeeded.
    fn after(set: usize, statuses: Statuses<'a>) -> Self {
        Self { statuses, set, failure: None }
    }

    /// The request at `at` of the program's array has failed, or the wait for it is in vain.
    fn fail(&mut self, at: usize, error: Error, on: Option<RaisedOn>) {
        if self.failure.is_none() {
            self.statuses.say_success(self.set);
            self.failure = Some((at, error, on));
        }
    }

    /// Takes the outcome of the request at `at` of the program's array: the next status.
    fn take(&mut self, at: usize, (status, error): (MessageStatus, Option<Error>)) {
        if let Some(error) = error {
            self.fail(at, error, boundary::blamed());
        }
        match self.failure {
            Some(_) => self.statuses.set_with_error(self.set, &status),
            None => self.statuses.set_or_empty(self.set, &status),
        }
        self.set += 1;
    }

    /// Gives the next status this error class: that of a request which stays.
    fn leave(&mut self, class: c_int) {
        self.statuses.set_with_error(self.set, &MessageStatus { error: class, ..MessageStatus::EMPTY });
        self.set += 1;
    }

    /// What a call fails with that has set a status for each request.
    pub fn end(self) -> Result<()> {
        let Some((at, first, on)) = self.failure else { return Ok(()) };
        boundary::blame(on);
        Err(Error::InStatus { at, first: Box::new(first) })
    }
}

/// Takes all outcomes. The first request is that at `begin` of the program's array, and all before have succeeded. If
/// the wait for one of them is in vain, those that are not over stay, and have MPI_ERR_PENDING in their statuses, or
/// what it is in vain for.
pub(super) fn take_all(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    statuses: Statuses<'_>,
    begin: usize,
) -> Result<()> {
    let mut outcomes = Outcomes::after(begin, statuses);
    let in_vain = requests::in_vain(engine, named)?;
    let some_stay = in_vain.is_some();
    if let Some((at, InVain { error, on })) = in_vain {
        outcomes.fail(begin + at, error, on);
    }
    for (at, (one, handle)) in named.iter().zip(handles).enumerate() {
        let standing =
            if some_stay && find(engine, *handle).is_ok() { one.standing(engine)? } else { Standing::Over };
        match standing {
            Standing::Over => outcomes.take(begin + at, one.take(engine, handle)),
            Standing::UnderWay => outcomes.leave(MPI_ERR_PENDING),
            Standing::InVain(InVain { error, .. }) => outcomes.leave(error.class()),
        }
    }
    outcomes.end()
}

/// Takes those that are over, and their indices; with them go the indices of those for which a wait is in vain, which
/// stay.
pub(super) fn take_some<'a>(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    indices: &Room<'_, c_int>,
    statuses: Statuses<'a>,
) -> Result<Outcomes<'a>> {
    let mut outcomes = Outcomes::after(0, statuses);
    for (at, (one, handle)) in named.iter().zip(handles).enumerate() {
        if !one.counts() {
            continue;
        }
        let standing = one.standing(engine)?;
        if !matches!(standing, Standing::UnderWay) {
            indices.set(outcomes.set, at as c_int);
        }
        match standing {
            Standing::UnderWay => {}
            Standing::Over => outcomes.take(at, one.take(engine, handle)),
            Standing::InVain(InVain { error, on }) => {
                let class = error.class();
                outcomes.fail(at, error, on);
                outcomes.leave(class);
            }
        }
    }
    Ok(outcomes)
}

/// Takes one outcome of an array, unless the wait for it is in vain: then it stays.
pub(super) fn take_one(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    (at, in_vain): (usize, Option<InVain>),
    index: &Out<'_, c_int>,
    status: StatusOut<'_>,
) -> Result<()> {
    index.set(at as c_int);
    if let Some(in_vain) = in_vain {
        return in_vain.raise();
    }
    let (got, error) = named[at].take(engine, &mut handles[at]);
    status.set_or_empty(&got);
    error.map_or(Ok(()), Err)
}
