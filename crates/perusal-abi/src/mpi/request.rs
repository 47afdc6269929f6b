//! Waiting for requests and asking about them (MPI 5.0 §3.7.3 to §3.7.6).

use super::outcomes::{take_all, take_one, take_some};
use super::several;
use crate::abi::*;
use crate::arguments::{Call, InOut, NO_RESULT, Out, Room, StatusOut, Statuses};
use crate::boundary::{self, ErrorSource};
use crate::calls::{CallSpan, Function};
use crate::check;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::p2p::{MessageStatus, Request, Taken};
use crate::process::{engine, running};
use crate::requests::{
    self, InVain, Named, Standing, all_end, find, find_all, first_ended, only_one, wait_for,
};
use crate::types::MPI_Request;
use core::ffi::c_int;

/// The request of a message that a handle names.
#[inline(always)]
pub(super) fn message(engine: &Engine, handle: MPI_Request) -> Option<Request> {
    engine.requests().get(handle)
}

/// Waits for one message. False, with no outcome taken, if it is none, or something about it is unusual. `OBSERVED`:
/// there may be listeners.
#[inline(always)]
fn wait_for_one<const OBSERVED: bool>(
    request: &Option<InOut<'_, MPI_Request>>,
    status: StatusOut<'_>,
) -> bool {
    let (Some(request), Some(engine)) = (request, running()) else { return false };
    let Some(message) = message(engine, request.get()) else { return take_over(request, status) };
    if message.state().is_active() && engine.wait_complete(message).is_err() {
        return false;
    }
    let taken = take_one_of::<OBSERVED>(engine, message, |got| status.set(got));
    if taken == Some(Taken::Gone) {
        request.set(MPI_REQUEST_NULL);
    }
    taken.is_some()
}

/// Takes the outcome of what was over when its call returned, or of nothing; false if it is something else.
fn take_over(request: &InOut<'_, MPI_Request>, status: StatusOut<'_>) -> bool {
    let mut handle = request.get();
    if handle == MPI_REQUEST_NULL {
        status.set_or_empty(&MessageStatus::EMPTY);
        return true;
    }
    let Some(got) = requests::take_over(&mut handle) else { return false };
    request.set(handle);
    status.set(&got);
    true
}

#[inline(always)]
fn take_one_of<const OBSERVED: bool>(
    engine: &Engine,
    message: Request,
    look: impl FnOnce(&MessageStatus),
) -> Option<Taken> {
    if OBSERVED {
        // What is checked is taken by `Named::take`.
        if check::is_on() { None } else { engine.try_take_observed(message, look) }
    } else {
        engine.try_take(message, look)
    }
}

/// The fast path of a test of one message that is complete or becomes so at one poll: the flag; `None` if the complete
/// implementation must be asked.
#[inline(always)]
fn test_fast(request: &Option<InOut<'_, MPI_Request>>, status: StatusOut<'_>) -> Option<bool> {
    if !fast_path_is_open() {
        return None;
    }
    let request = request.as_ref()?;
    let engine = running()?;
    let Some(message) = message(engine, request.get()) else {
        return take_over(request, status).then_some(true);
    };
    if message.state().is_active() && !engine.test_complete(message).ok()? {
        return Some(false);
    }
    if engine.try_take(message, |got| status.set(got))? == Taken::Gone {
        request.set(MPI_REQUEST_NULL);
    }
    Some(true)
}

/// How far a request is from being taken on the fast path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HandleState {
    /// It is null, or can be taken.
    Ready,
    /// It is active.
    Active,
    /// It is none, or something about it is unusual.
    Unusual,
}

/// The state of what a handle names.
#[inline(always)]
pub(super) fn state_of(engine: &Engine, handle: MPI_Request) -> HandleState {
    match message(engine, handle) {
        Some(message) if engine.is_plainly_over(message) => HandleState::Ready,
        Some(message) if message.state().is_active() => HandleState::Active,
        None if handle == MPI_REQUEST_NULL => HandleState::Ready,
        _ => HandleState::Unusual,
    }
}

/// The fast path of a wait for several messages, those from `from` on, one after the other: where it ended. The next
/// one, if there is one, is unusual in some way, and the complete implementation must see to it and those behind it.
/// `OBSERVED`: there may be listeners.
#[inline(always)]
fn waitall_in_turn<const OBSERVED: bool>(
    engine: &Engine,
    handles: &mut [MPI_Request],
    statuses: Statuses<'_>,
    from: usize,
) -> usize {
    let mut known = false;
    for at in from..handles.len() {
        let set = |got: &MessageStatus| statuses.set(at, got);
        let Some(message) = message(engine, handles[at]) else {
            match requests::take_over(&mut handles[at]) {
                Some(got) => set(&got),
                None if handles[at] == MPI_REQUEST_NULL => statuses.set_with_error(at, &MessageStatus::EMPTY),
                None => return at,
            }
            continue;
        };
        if !message.state().is_complete() && !wait_in_turn(engine, &handles[at..], &mut known) {
            return at;
        }
        match take_one_of::<OBSERVED>(engine, message, set) {
            Some(Taken::Gone) => handles[at] = MPI_REQUEST_NULL,
            Some(Taken::Inactive) => {}
            None => return at,
        }
    }
    handles.len()
}

/// Waits for the first of several, which is not over; false if something about one of them is unusual, or waiting is
/// pointless. `known`: all have been looked up before.
#[inline(never)]
fn wait_in_turn(engine: &Engine, handles: &[MPI_Request], known: &mut bool) -> bool {
    let Some(first) = message(engine, handles[0]) else { return false };
    if engine.is_over_at_once(first) {
        return true;
    }
    // All are looked up before anything is waited for.
    if !*known && handles.iter().any(|&handle| state_of(engine, handle) == HandleState::Unusual) {
        return false;
    }
    if !*known && engine.is_shared() && !wait_backwards(engine, handles) {
        return false;
    }
    *known = true;
    if first.state().is_active() {
        // Where something has failed the complete implementation looks at all of them.
        let goes_on = || !first.state().is_complete() && !engine.has_failures();
        let _ = engine.wait_while(|| goes_on().then_some(first));
    }
    first.state().is_complete()
}

/// Waits until all can be taken; false if one cannot, or waiting is pointless. Where other threads may be the ones that
/// make progress it is the last that is waited for first, which mostly is over last: so one waking is enough.
fn wait_backwards(engine: &Engine, handles: &[MPI_Request]) -> bool {
    let (mut left, mut usual) = (handles.len(), true);
    let waited = engine.wait_while(|| {
        if engine.has_failures() {
            usual = false;
            return None;
        }
        while left > 0 {
            match state_of(engine, handles[left - 1]) {
                HandleState::Ready => left -= 1,
                HandleState::Active => return message(engine, handles[left - 1]),
                HandleState::Unusual => {
                    usual = false;
                    return None;
                }
            }
        }
        None
    });
    usual && waited.is_ok()
}

/// MPI_Wait.
#[inline(always)]
pub fn wait(call: &Call, request: Option<InOut<'_, MPI_Request>>, status: StatusOut<'_>) -> c_int {
    if fast_path_is_open() && wait_for_one::<false>(&request, status) {
        return MPI_SUCCESS;
    }
    let run =
        || boundary::enter(call.function().name).and_then(|()| wait_slow(call.function(), request, status));
    boundary::outcome(ErrorSource::Nothing, call.function().name, run())
}

/// These requests are waited for, or tested.
fn note(handles: &[MPI_Request]) {
    if check::is_on() {
        check::asked(handles);
    }
}

const NO_REQUEST: Error = Error::Arg("an argument that is passed by address is NULL");

#[cold]
#[inline(never)]
fn wait_slow(
    function: &'static Function,
    request: Option<InOut<'_, MPI_Request>>,
    status: StatusOut<'_>,
) -> Result<()> {
    let _span = CallSpan::begin(function);
    note(&[request.as_ref().map_or(MPI_REQUEST_NULL, InOut::get)]);
    if wait_for_one::<true>(&request, status) {
        return Ok(());
    }
    let engine = engine()?;
    let request = request.ok_or(NO_REQUEST)?;
    let mut handle = request.get();
    let named = find(engine, handle)?;
    match &named {
        Named::Message(message) if !message.is_over() => {
            engine.wait_complete(*message).inspect_err(|error| named.blame(engine, error))?;
        }
        Named::Task(_) => wait_for(engine, Some(&named), || named.is_over(engine))?,
        _ => {}
    }
    let (got, error) = named.take(engine, &mut handle);
    request.set(handle);
    status.set_or_empty(&got);
    error.map_or(Ok(()), Err)
}

/// MPI_Test.
#[inline(always)]
pub fn test(
    call: &Call,
    request: Option<InOut<'_, MPI_Request>>,
    flag: Option<Out<'_, c_int>>,
    status: StatusOut<'_>,
) -> c_int {
    if let Some(flag) = &flag
        && let Some(over) = test_fast(&request, status)
    {
        flag.set(c_int::from(over));
        return MPI_SUCCESS;
    }
    let run = || {
        boundary::enter(call.function().name).and_then(|()| test_slow(call.function(), request, flag, status))
    };
    boundary::outcome(ErrorSource::Nothing, call.function().name, run())
}

#[cold]
#[inline(never)]
fn test_slow(
    function: &'static Function,
    request: Option<InOut<'_, MPI_Request>>,
    flag: Option<Out<'_, c_int>>,
    status: StatusOut<'_>,
) -> Result<()> {
    let _span = CallSpan::begin(function);
    let flag = flag.ok_or(NO_RESULT)?;
    let engine = engine()?;
    let request = request.ok_or(NO_REQUEST)?;
    let mut handle = request.get();
    note(&[handle]);
    let named = find(engine, handle)?;
    if !engine.look_for(|| named.is_over(engine))? {
        return flag.put(false);
    }
    let (got, error) = named.take(engine, &mut handle);
    request.set(handle);
    status.set_or_empty(&got);
    flag.put(true)?;
    error.map_or(Ok(()), Err)
}

/// MPI_Waitall.
#[inline(always)]
pub fn waitall(handles: &mut [MPI_Request], statuses: Statuses<'_>) -> Result<()> {
    let engine = engine()?;
    let taken = if fast_path_is_open() { waitall_in_turn::<false>(engine, handles, statuses, 0) } else { 0 };
    if taken == handles.len() {
        return Ok(());
    }
    waitall_slow(engine, handles, statuses, taken)
}

#[cold]
#[inline(never)]
fn waitall_slow(
    engine: &Engine,
    handles: &mut [MPI_Request],
    statuses: Statuses<'_>,
    mut taken: usize,
) -> Result<()> {
    note(handles);
    if !fast_path_is_open() {
        taken = waitall_in_turn::<true>(engine, handles, statuses, taken);
    }
    let handles = &mut handles[taken..];
    let named = find_all(engine, handles)?;
    // What the caller itself holds up comes first: a wait for another request would hide it from a report of a hang.
    let held_up = named.iter().filter(|one| one.is_held_up());
    // Once the wait for one of them is in vain, nobody waits for the others:
    // they may need what the program does about that.
    let is_one_in_vain = || Ok(engine.has_failures() && requests::in_vain(engine, &named)?.is_some());
    for one in held_up.chain(&named) {
        match one {
            Named::Message(message) if !message.is_over() => {
                wait_for_message(engine, *message, is_one_in_vain)?
            }
            Named::Task(_) => wait_for(engine, Some(one), || Ok(is_one_in_vain()? || one.is_over(engine)?))?,
            _ => {}
        }
    }
    take_all(engine, &named, handles, statuses, taken)
}

/// Waits until a message is over, or `enough` says so, which is asked where something has failed.
fn wait_for_message(engine: &Engine, message: Request, enough: impl Fn() -> Result<bool>) -> Result<()> {
    let mut failed = Ok(());
    let waited = engine.wait_while(|| {
        let ends = message.is_over()
            || enough().unwrap_or_else(|error| {
                failed = Err(error);
                true
            });
        (!ends).then_some(message)
    });
    match waited {
        // `enough` will say so, too.
        Err(error) if InVain::is_of_a_request(&error) => Ok(()),
        waited => waited.and(failed),
    }
}

/// MPI_Testall.
pub fn testall(handles: &mut [MPI_Request], flag: Out<'_, c_int>, statuses: Statuses<'_>) -> Result<()> {
    if let Some(over) = several::all(handles, statuses) {
        return flag.put(over?);
    }
    let engine = engine()?;
    note(handles);
    let named = find_all(engine, handles)?;
    let over = engine.look_for(|| all_end(engine, &named))?;
    flag.put(over)?;
    if over { take_all(engine, &named, handles, statuses, 0) } else { Ok(()) }
}

/// MPI_Waitany.
pub fn waitany(handles: &mut [MPI_Request], index: Out<'_, c_int>, status: StatusOut<'_>) -> Result<()> {
    if let Some(Some(at)) = several::any(WaitOrTest::Wait, handles, |got| status.set(got)) {
        return index.put(at as c_int);
    }
    let engine = engine()?;
    note(handles);
    let named = find_all(engine, handles)?;
    if !named.iter().any(Named::counts) {
        status.set_or_empty(&MessageStatus::EMPTY);
        return index.put(MPI_UNDEFINED);
    }
    let mut found = None;
    wait_for(engine, only_one(&named), || {
        found = first_ended(engine, &named)?;
        Ok(found.is_some())
    })?;
    let found = found.ok_or_else(|| Error::Intern("a wait ended without a request".into()))?;
    take_one(engine, &named, handles, found, &index, status)
}

/// MPI_Testany.
pub fn testany(
    handles: &mut [MPI_Request],
    index: Out<'_, c_int>,
    flag: Out<'_, c_int>,
    status: StatusOut<'_>,
) -> Result<()> {
    if let Some(found) = several::any(WaitOrTest::Test, handles, |got| status.set(got)) {
        flag.put(found.is_some())?;
        return index.put(found.map_or(MPI_UNDEFINED, |at| at as c_int));
    }
    let engine = engine()?;
    note(handles);
    let named = find_all(engine, handles)?;
    let mut found = None;
    let nothing = !named.iter().any(Named::counts);
    if !nothing {
        engine.look_for(|| {
            found = first_ended(engine, &named)?;
            Ok(found.is_some())
        })?;
    }
    flag.put(nothing || found.is_some())?;
    if nothing {
        status.set_or_empty(&MessageStatus::EMPTY);
    }
    match found {
        Some(found) => take_one(engine, &named, handles, found, &index, status),
        None => index.put(MPI_UNDEFINED),
    }
}

/// Whether a call returns before anything is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WaitOrTest {
    /// MPI_Testsome.
    Test,
    /// MPI_Waitsome.
    Wait,
}

/// MPI_Waitsome, MPI_Testsome.
pub fn some(
    mode: WaitOrTest,
    handles: &mut [MPI_Request],
    count: Out<'_, c_int>,
    indices: Room<'_, c_int>,
    statuses: Statuses<'_>,
) -> Result<()> {
    if let Some(taken) = several::some(mode, handles, &indices, statuses) {
        return count.put(taken as c_int);
    }
    let engine = engine()?;
    note(handles);
    let named = find_all(engine, handles)?;
    if !named.iter().any(Named::counts) {
        return count.put(MPI_UNDEFINED);
    }
    let has_one_ended = || Ok(first_ended(engine, &named)?.is_some());
    match mode {
        WaitOrTest::Wait => wait_for(engine, only_one(&named), has_one_ended)?,
        WaitOrTest::Test => drop(engine.look_for(has_one_ended)?),
    }
    let outcomes = take_some(engine, &named, handles, &indices, statuses)?;
    count.put(outcomes.set as c_int)?;
    outcomes.end()
}

/// MPI_Request_get_status.
pub fn status(request: MPI_Request, flag: Out<'_, c_int>, status: StatusOut<'_>) -> Result<()> {
    check::seen();
    let engine = engine()?;
    let named = find(engine, request)?;
    let over = engine.look_for(|| named.is_over(engine))?;
    flag.put(over)?;
    if over { show_one(engine, &named, status) } else { Ok(()) }
}

/// MPI_Request_get_status_all.
pub fn status_all(handles: &[MPI_Request], flag: Out<'_, c_int>, statuses: Statuses<'_>) -> Result<()> {
    check::seen();
    let engine = engine()?;
    let named = find_all(engine, handles)?;
    let over = engine.look_for(|| all_end(engine, &named))?;
    if let Some((_, in_vain)) = requests::in_vain(engine, &named)? {
        return in_vain.raise();
    }
    flag.put(over)?;
    if over { show_several(engine, named.iter().enumerate(), statuses) } else { Ok(()) }
}

/// MPI_Request_get_status_any.
pub fn status_any(
    handles: &[MPI_Request],
    index: Out<'_, c_int>,
    flag: Out<'_, c_int>,
    status: StatusOut<'_>,
) -> Result<()> {
    check::seen();
    let engine = engine()?;
    let named = find_all(engine, handles)?;
    let nothing = !named.iter().any(Named::counts);
    let mut found = None;
    engine.look_for(|| {
        found = first_ended(engine, &named)?;
        Ok(found.is_some())
    })?;
    flag.put(nothing || found.is_some())?;
    index.put(found.as_ref().map_or(MPI_UNDEFINED, |(at, _)| *at as c_int))?;
    match found {
        Some((_, Some(in_vain))) => in_vain.raise(),
        Some((at, None)) => show_one(engine, &named[at], status),
        None if nothing => {
            status.set_or_empty(&MessageStatus::EMPTY);
            Ok(())
        }
        None => Ok(()),
    }
}

/// MPI_Request_get_status_some.
pub fn status_some(
    handles: &[MPI_Request],
    count: Out<'_, c_int>,
    indices: Room<'_, c_int>,
    statuses: Statuses<'_>,
) -> Result<()> {
    check::seen();
    let engine = engine()?;
    let named = find_all(engine, handles)?;
    if !named.iter().any(Named::counts) {
        return count.put(MPI_UNDEFINED);
    }
    let mut found = None;
    engine.look_for(|| {
        found = first_ended(engine, &named)?;
        Ok(found.is_some())
    })?;
    if let Some((_, Some(in_vain))) = found {
        return in_vain.raise();
    }
    let mut over = Vec::new();
    for (at, one) in named.iter().enumerate() {
        if one.counts() && matches!(one.standing(engine)?, Standing::Over) {
            indices.set(over.len(), at as c_int);
            over.push((at, one));
        }
    }
    count.put(over.len() as c_int)?;
    show_several(engine, over, statuses)
}

/// Shows the outcome of a request that is over and stays. The call fails with what the query function of a generalized
/// request says, which it has called.
fn show_one(engine: &Engine, named: &Named, status: StatusOut<'_>) -> Result<()> {
    let (got, error) = named.look(engine);
    status.set_or_empty(&got);
    error.map_or(Ok(()), Err)
}

/// As [`show_one`], of requests with their places in the program's array: the statuses in their order.
fn show_several<'a>(
    engine: &Engine,
    over: impl IntoIterator<Item = (usize, &'a Named)>,
    statuses: Statuses<'_>,
) -> Result<()> {
    let looked: Vec<_> = over.into_iter().map(|(at, one)| (at, one.look(engine))).collect();
    let failed = looked.iter().find_map(|(at, (_, error))| error.clone().map(|error| (*at, error)));
    for (place, (_, (status, _))) in looked.iter().enumerate() {
        if failed.is_some() {
            statuses.set_with_error(place, status);
        } else {
            statuses.set_or_empty(place, status);
        }
    }
    failed.map_or(Ok(()), |(at, first)| Err(Error::InStatus { at, first: Box::new(first) }))
}
