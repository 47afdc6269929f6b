//! The fast paths of calls that ask for one, some or all of several requests (MPI 5.0 §3.7.5): messages that have not
//! failed, while nobody listens. `None`: the complete implementation must be asked, and nothing has been taken.

use super::request::{HandleState, WaitOrTest, message, state_of};
use crate::abi::MPI_REQUEST_NULL;
use crate::arguments::{Room, Statuses};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::p2p::{MessageStatus, Taken};
use crate::process::running;
use crate::types::MPI_Request;
use core::ffi::c_int;

/// The engine, if each request is null, or a message about which nothing is unusual, and one is not null.
fn serving(handles: &[MPI_Request]) -> Option<&'static Engine> {
    let engine = running().filter(|engine| fast_path_is_open() && !engine.has_failures())?;
    let is_usual = |&handle: &MPI_Request| state_of(engine, handle) != HandleState::Unusual;
    let serves = handles.iter().all(is_usual) && handles.iter().any(|&handle| handle != MPI_REQUEST_NULL);
    serves.then_some(engine)
}

/// Where the first message lies that is over.
fn first_over(engine: &Engine, handles: &[MPI_Request]) -> Option<usize> {
    let is_over = |&handle: &MPI_Request| {
        message(engine, handle).is_some_and(|message| engine.is_plainly_over(message))
    };
    handles.iter().position(is_over)
}

/// As [`first_over`], after one look at what has come in if none is; the outer `None` if that has failed.
fn look_for_first(engine: &Engine, mode: WaitOrTest, handles: &[MPI_Request]) -> Option<Option<usize>> {
    let mut found = None;
    let mut is_there = || {
        found = first_over(engine, handles);
        Ok(found.is_some())
    };
    match mode {
        WaitOrTest::Test => _ = engine.look_for(is_there).ok()?,
        WaitOrTest::Wait => {
            if !is_there().ok()? {
                engine.look_in();
                is_there().ok()?;
            }
        }
    }
    Some(found)
}

/// Takes a message that is over.
fn take(engine: &Engine, handle: &mut MPI_Request, look: impl FnOnce(&MessageStatus)) -> bool {
    let taken = message(engine, *handle).and_then(|message| engine.try_take(message, look));
    if taken == Some(Taken::Gone) {
        *handle = MPI_REQUEST_NULL;
    }
    taken.is_some()
}

/// Takes one of several: which, or that none is over, which a wait does not get.
pub fn any(
    mode: WaitOrTest,
    handles: &mut [MPI_Request],
    look: impl FnOnce(&MessageStatus),
) -> Option<Option<usize>> {
    let engine = serving(handles)?;
    match look_for_first(engine, mode, handles)? {
        Some(at) => take(engine, &mut handles[at], look).then_some(Some(at)),
        None => (mode == WaitOrTest::Test).then_some(None),
    }
}

/// Takes those of several that are over: how many, which is not 0 for a wait.
pub fn some(
    mode: WaitOrTest,
    handles: &mut [MPI_Request],
    indices: &Room<'_, c_int>,
    statuses: Statuses<'_>,
) -> Option<usize> {
    let engine = serving(handles)?;
    let Some(first) = look_for_first(engine, mode, handles)? else {
        return (mode == WaitOrTest::Test).then_some(0);
    };
    let mut taken = 0;
    for (at, handle) in handles.iter_mut().enumerate().skip(first) {
        if take(engine, handle, |got| statuses.set(taken, got)) {
            indices.set(taken, at as c_int);
            taken += 1;
        }
    }
    Some(taken)
}

/// Takes all of several if all are over, and says whether they are.
pub fn all(handles: &mut [MPI_Request], statuses: Statuses<'_>) -> Option<Result<bool>> {
    let engine = serving(handles)?;
    let are_over = || handles.iter().all(|&handle| state_of(engine, handle) == HandleState::Ready);
    if !engine.look_for(|| Ok(are_over())).ok()? {
        return Some(Ok(false));
    }
    for (at, handle) in handles.iter_mut().enumerate() {
        if *handle == MPI_REQUEST_NULL {
            statuses.set_with_error(at, &MessageStatus::EMPTY);
        } else if !take(engine, handle, |got| statuses.set(at, got)) {
            return Some(Err(named_twice(at, statuses)));
        }
    }
    Some(Ok(true))
}

/// Place `at` names a request that a place before it has named, too; the statuses before it are set.
#[cold]
fn named_twice(at: usize, statuses: Statuses<'_>) -> Error {
    let first = Error::Request("the array names a request twice");
    statuses.say_success(at);
    statuses.set_with_error(at, &MessageStatus { error: first.class(), ..MessageStatus::EMPTY });
    Error::InStatus { at, first: Box::new(first) }
}
