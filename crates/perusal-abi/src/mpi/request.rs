//! Waiting for requests and asking about them (MPI 5.0 §3.7.3 to §3.7.6).

use crate::abi::*;
use crate::capi::args::{list_mut, put, take};
use crate::capi::boundary;
use crate::capi::messages::{output, set_status, set_status_of};
use crate::capi::process::{engine, running};
use crate::capi::requests::{Named, all_over, find, find_all, first_over};
use crate::capi::types::{MPI_Request, MPI_Status};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::export;
use crate::p2p::{Request, Status};
use core::ffi::c_int;

/// Takes all outcomes; statuses get the error of each, and the call fails if one did (MPI 5.0 §3.7.5).
///
/// # Safety
/// `statuses` is MPI_STATUSES_IGNORE or has an element for each.
unsafe fn take_all(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    statuses: *mut MPI_Status,
) -> Result<()> {
    let mut failed = false;
    for (at, (one, handle)) in named.iter().zip(handles).enumerate() {
        let (status, error) = one.take(engine, handle);
        failed |= error.is_some();
        // SAFETY: the caller's.
        unsafe { set_status_of(statuses, at, &status) };
    }
    if failed { Err(Error::InStatus) } else { Ok(()) }
}

/// Takes those that are over: how many, their places, their statuses. Nothing to wait for is MPI_UNDEFINED.
///
/// # Safety
/// `places` and `statuses` (or MPI_STATUSES_IGNORE) have an element for each.
unsafe fn take_some(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    places: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result<(c_int, bool)> {
    let (mut taken, mut failed) = (0, false);
    for (at, (one, handle)) in named.iter().zip(handles).enumerate() {
        if !one.counts() || !one.is_over(engine)? {
            continue;
        }
        let (status, error) = one.take(engine, handle);
        failed |= error.is_some();
        // SAFETY: the caller's; `taken` is at most `at`.
        unsafe {
            set_status_of(statuses, taken, &status);
            put(places.wrapping_add(taken), at as c_int)?;
        }
        taken += 1;
    }
    Ok((taken as c_int, failed))
}

/// Takes one outcome of an array.
///
/// # Safety
/// `index` may be written, `status` too, or it is MPI_STATUS_IGNORE.
unsafe fn take_one(
    engine: &Engine,
    named: &[Named],
    handles: &mut [MPI_Request],
    at: usize,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Result<()> {
    let (got, error) = named[at].take(engine, &mut handles[at]);
    // SAFETY: the caller's.
    unsafe {
        set_status(status, &got);
        put(index, at as c_int)?;
    }
    error.map_or(Ok(()), Err)
}

/// The request of a message that a handle names.
#[inline(always)]
fn message(engine: &Engine, handle: MPI_Request) -> Option<Request> {
    engine.request(handle)
}

/// The short way of a wait for one message: false, with no outcome taken, if the general way must be gone.
///
/// # Safety
/// As MPI_Wait says.
#[inline(always)]
unsafe fn wait_shortly(request: *mut MPI_Request, status: *mut MPI_Status) -> bool {
    // SAFETY: the caller's.
    fast_path_is_open() && unsafe { wait_for_one::<false>(request, status) }
}

/// `TOLD`: somebody may listen.
///
/// # Safety
/// As MPI_Wait says.
#[inline(always)]
unsafe fn wait_for_one<const TOLD: bool>(request: *mut MPI_Request, status: *mut MPI_Status) -> bool {
    if request.is_null() {
        return false;
    }
    let Some(engine) = running() else { return false };
    // SAFETY: the caller's; it is not NULL.
    let Some(message) = message(engine, unsafe { *request }) else { return false };
    if message.state().is_active() && engine.wait_complete(message).is_err() {
        return false;
    }
    // SAFETY: the caller's.
    let taken = take_one_of::<TOLD>(engine, message, |got| unsafe { set_status(status, got) });
    if taken {
        // SAFETY: the caller's; it is not NULL.
        unsafe { request.write(MPI_REQUEST_NULL) };
    }
    taken
}

#[inline(always)]
fn take_one_of<const TOLD: bool>(engine: &Engine, message: Request, look: impl FnOnce(&Status)) -> bool {
    if TOLD { engine.try_take_observed(message, look) } else { engine.try_take(message, look) }
}

/// The short way of a test of one message that is complete or becomes so at one look: the flag; `None` if the general way
/// must be gone.
///
/// # Safety
/// As MPI_Test says.
#[inline(always)]
unsafe fn test_shortly(request: *mut MPI_Request, status: *mut MPI_Status) -> Option<bool> {
    if !fast_path_is_open() || request.is_null() {
        return None;
    }
    let engine = running()?;
    // SAFETY: the caller's; it is not NULL.
    let message = message(engine, unsafe { *request })?;
    if message.state().is_active() && !engine.test_complete(message).ok()? {
        return Some(false);
    }
    // SAFETY: the caller's.
    if !engine.try_take(message, |got| unsafe { set_status(status, got) }) {
        return None;
    }
    // SAFETY: the caller's; it is not NULL.
    unsafe { request.write(MPI_REQUEST_NULL) };
    Some(true)
}

/// How far a request is from being taken plainly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Far {
    /// It is null, or can be taken.
    Ready,
    /// It is active.
    Active,
    /// It is none, or something about it is unusual: the general way must be gone.
    Unusual,
}

#[inline(always)]
fn far(engine: &Engine, handle: MPI_Request) -> Far {
    match message(engine, handle) {
        Some(message) if engine.is_plainly_over(message) => Far::Ready,
        Some(message) if message.state().is_active() => Far::Active,
        None if handle == MPI_REQUEST_NULL => Far::Ready,
        _ => Far::Unusual,
    }
}

/// The short way of a wait for several messages, one after the other: how many outcomes it took. The next one, if there is one, is
/// unusual in some way, and the general way must be gone for it and those behind it.
///
/// # Safety
/// `statuses` is MPI_STATUSES_IGNORE or has an element for each.
#[inline(always)]
unsafe fn waitall_shortly(handles: &mut [MPI_Request], statuses: *mut MPI_Status) -> usize {
    let Some(engine) = running().filter(|_| fast_path_is_open()) else { return 0 };
    // SAFETY: the caller's.
    unsafe { waitall_in_turn::<false>(engine, handles, statuses) }
}

/// `TOLD`: somebody may listen.
///
/// # Safety
/// As [`waitall_shortly`].
#[inline(always)]
unsafe fn waitall_in_turn<const TOLD: bool>(
    engine: &Engine,
    handles: &mut [MPI_Request],
    statuses: *mut MPI_Status,
) -> usize {
    let mut known = false;
    for at in 0..handles.len() {
        // SAFETY: the caller's.
        let set = |got: &Status| unsafe { set_status_of(statuses, at, got) };
        let Some(message) = message(engine, handles[at]) else {
            if handles[at] != MPI_REQUEST_NULL {
                return at;
            }
            set(&Status::EMPTY);
            continue;
        };
        if !message.state().is_complete() && !wait_in_turn(engine, &handles[at..], &mut known) {
            return at;
        }
        if !take_one_of::<TOLD>(engine, message, set) {
            return at;
        }
        handles[at] = MPI_REQUEST_NULL;
    }
    handles.len()
}

/// Waits for the first of several, which is not over; false if something about one of them is unusual, or waiting is
/// senseless. `known`: all have been looked at before.
#[inline(never)]
fn wait_in_turn(engine: &Engine, handles: &[MPI_Request], known: &mut bool) -> bool {
    let Some(first) = message(engine, handles[0]) else { return false };
    if engine.is_over_at_once(first) {
        return true;
    }
    // All are looked up before anything is waited for.
    if !*known && handles.iter().any(|&handle| far(engine, handle) == Far::Unusual) {
        return false;
    }
    if !*known && engine.is_shared() && !wait_backwards(engine, handles) {
        return false;
    }
    *known = true;
    first.state().is_active() && engine.wait_complete(first).is_ok() || first.state().is_complete()
}

/// Waits until all can be taken; false if one cannot, or waiting is senseless. Where other threads may be the ones that make
/// progress it is the last that is waited for first, which mostly is over last: so one waking is enough.
fn wait_backwards(engine: &Engine, handles: &[MPI_Request]) -> bool {
    let (mut left, mut usual) = (handles.len(), true);
    let waited = engine.wait_while(|| {
        while left > 0 {
            match far(engine, handles[left - 1]) {
                Far::Ready => left -= 1,
                Far::Active => return message(engine, handles[left - 1]),
                Far::Unusual => {
                    usual = false;
                    return None;
                }
            }
        }
        None
    });
    usual && waited.is_ok()
}

/// # Safety
/// As MPI_Wait says.
#[cold]
#[inline(never)]
unsafe fn wait(request: *mut MPI_Request, status: *mut MPI_Status) -> Result<()> {
    // SAFETY: the caller's.
    if unsafe { wait_for_one::<true>(request, status) } {
        return Ok(());
    }
    let engine = engine()?;
    // SAFETY: the caller's.
    let mut handle = unsafe { take(request) }?;
    let named = find(engine, handle)?;
    match &named {
        Named::Message(message) if !message.is_over() => engine.wait_complete(*message)?,
        Named::Task(_) => engine.wait_for(|| named.is_over(engine))?,
        _ => {}
    }
    let (got, error) = named.take(engine, &mut handle);
    // SAFETY: the caller's.
    unsafe {
        request.write(handle);
        set_status(status, &got);
    }
    error.map_or(Ok(()), Err)
}

/// What is left of an array of statuses behind its first `taken`.
fn behind(statuses: *mut MPI_Status, taken: usize) -> *mut MPI_Status {
    if statuses.is_null() { statuses } else { statuses.wrapping_add(taken) }
}

/// # Safety
/// As MPI_Waitall says.
#[cold]
#[inline(never)]
unsafe fn waitall(engine: &Engine, handles: &mut [MPI_Request], statuses: *mut MPI_Status) -> Result<()> {
    // SAFETY: the caller's.
    let taken =
        if fast_path_is_open() { 0 } else { unsafe { waitall_in_turn::<true>(engine, handles, statuses) } };
    let (handles, statuses) = (&mut handles[taken..], behind(statuses, taken));
    let named = find_all(engine, handles)?;
    for one in &named {
        match one {
            Named::Message(message) if !message.is_over() => engine.wait_complete(*message)?,
            Named::Task(_) => engine.wait_for(|| one.is_over(engine))?,
            _ => {}
        }
    }
    // SAFETY: the caller's.
    unsafe { take_all(engine, &named, handles, statuses) }
}

/// # Safety
/// As MPI_Test says.
#[cold]
#[inline(never)]
unsafe fn test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> Result<()> {
    output(flag)?;
    let engine = engine()?;
    // SAFETY: the caller's.
    let mut handle = unsafe { take(request) }?;
    let named = find(engine, handle)?;
    if !engine.look_for(|| named.is_over(engine))? {
        // SAFETY: an output argument.
        return unsafe { put(flag, 0) };
    }
    let (got, error) = named.take(engine, &mut handle);
    // SAFETY: the caller's.
    unsafe {
        request.write(handle);
        set_status(status, &got);
        put(flag, 1)?;
    }
    error.map_or(Ok(()), Err)
}

export! {
    /// MPI 5.0 §3.7.3.
    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if wait_shortly(request, status) {
                return MPI_SUCCESS;
            }
            let run = || boundary::enter("MPI_Wait").and_then(|()| wait(request, status));
            boundary::outcome(MPI_COMM_SELF, "MPI_Wait", run())
        }
    }

    /// MPI 5.0 §3.7.3.
    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        // SAFETY: the program's arguments.
        unsafe {
            if !flag.is_null()
                && let Some(over) = test_shortly(request, status)
            {
                flag.write(c_int::from(over));
                return MPI_SUCCESS;
            }
            let run = || boundary::enter("MPI_Test").and_then(|()| test(request, flag, status));
            boundary::outcome(MPI_COMM_SELF, "MPI_Test", run())
        }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Waitall(
        count: c_int, array_of_requests: *mut MPI_Request, array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let handles = unsafe { list_mut(array_of_requests, count) }?;
        // SAFETY: an array of `count` statuses, or MPI_STATUSES_IGNORE.
        let taken = unsafe { waitall_shortly(handles, array_of_statuses) };
        if taken == handles.len() {
            return Ok(());
        }
        // SAFETY: as above; those that are taken are fewer than `count`.
        unsafe { waitall(engine, &mut handles[taken..], behind(array_of_statuses, taken)) }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Testall(
        count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int, array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(flag)?;
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let handles = unsafe { list_mut(array_of_requests, count) }?;
        let named = find_all(engine, handles)?;
        let over = engine.look_for(|| all_over(engine, &named))?;
        // SAFETY: an output argument; an array of `count` statuses, or MPI_STATUSES_IGNORE.
        unsafe {
            put(flag, c_int::from(over))?;
            if over { take_all(engine, &named, handles, array_of_statuses) } else { Ok(()) }
        }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Waitany(
        count: c_int, array_of_requests: *mut MPI_Request, index: *mut c_int, status: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(index)?;
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let handles = unsafe { list_mut(array_of_requests, count) }?;
        let named = find_all(engine, handles)?;
        if !named.iter().any(Named::counts) {
            // SAFETY: output arguments.
            unsafe { set_status(status, &Status::EMPTY); }
            // SAFETY: as above.
            return unsafe { put(index, MPI_UNDEFINED) };
        }
        let mut found = None;
        engine.wait_for(|| {
            found = first_over(engine, &named)?;
            Ok(found.is_some())
        })?;
        let at = found.ok_or_else(|| Error::Intern("a wait ended without a request".into()))?;
        // SAFETY: output arguments.
        unsafe { take_one(engine, &named, handles, at, index, status) }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Testany(
        count: c_int, array_of_requests: *mut MPI_Request, index: *mut c_int, flag: *mut c_int, status: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(index)?;
        output(flag)?;
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let handles = unsafe { list_mut(array_of_requests, count) }?;
        let named = find_all(engine, handles)?;
        let mut found = None;
        let nothing = !named.iter().any(Named::counts);
        if !nothing {
            engine.look_for(|| {
                found = first_over(engine, &named)?;
                Ok(found.is_some())
            })?;
        }
        // SAFETY: output arguments.
        unsafe {
            put(flag, c_int::from(nothing || found.is_some()))?;
            if nothing {
                set_status(status, &Status::EMPTY);
            }
            match found {
                Some(at) => take_one(engine, &named, handles, at, index, status),
                None => put(index, MPI_UNDEFINED),
            }
        }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Waitsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(outcount)?;
        let engine = engine()?;
        // SAFETY: an array of `incount` requests.
        let handles = unsafe { list_mut(array_of_requests, incount) }?;
        let named = find_all(engine, handles)?;
        if !named.iter().any(Named::counts) {
            // SAFETY: an output argument.
            return unsafe { put(outcount, MPI_UNDEFINED) };
        }
        engine.wait_for(|| Ok(first_over(engine, &named)?.is_some()))?;
        // SAFETY: arrays with an element for each request.
        let (taken, failed) = unsafe { take_some(engine, &named, handles, array_of_indices, array_of_statuses) }?;
        // SAFETY: an output argument.
        unsafe { put(outcount, taken) }?;
        if failed { Err(Error::InStatus) } else { Ok(()) }
    }

    /// MPI 5.0 §3.7.5.
    fn MPI_Testsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(outcount)?;
        let engine = engine()?;
        // SAFETY: an array of `incount` requests.
        let handles = unsafe { list_mut(array_of_requests, incount) }?;
        let named = find_all(engine, handles)?;
        if !named.iter().any(Named::counts) {
            // SAFETY: an output argument.
            return unsafe { put(outcount, MPI_UNDEFINED) };
        }
        engine.look_for(|| Ok(first_over(engine, &named)?.is_some()))?;
        // SAFETY: arrays with an element for each request.
        let (taken, failed) = unsafe { take_some(engine, &named, handles, array_of_indices, array_of_statuses) }?;
        // SAFETY: an output argument.
        unsafe { put(outcount, taken) }?;
        if failed { Err(Error::InStatus) } else { Ok(()) }
    }

    /// MPI 5.0 §3.7.6.
    fn MPI_Request_get_status(request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status) raises(MPI_COMM_SELF) {
        output(flag)?;
        let engine = engine()?;
        let named = find(engine, request)?;
        let over = engine.look_for(|| named.is_over(engine))?;
        // SAFETY: output arguments.
        unsafe {
            put(flag, c_int::from(over))?;
            if over {
                set_status(status, &named.look(engine).0);
            }
        }
        Ok(())
    }

    /// MPI 5.0 §3.7.6.
    fn MPI_Request_get_status_all(
        count: c_int, array_of_requests: *const MPI_Request, flag: *mut c_int, array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(flag)?;
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let named = find_all(engine, unsafe { crate::capi::args::list(array_of_requests, count) }?)?;
        let over = engine.look_for(|| all_over(engine, &named))?;
        // SAFETY: an output argument.
        unsafe { put(flag, c_int::from(over)) }?;
        for (at, one) in named.iter().enumerate().filter(|_| over) {
            // SAFETY: an array of `count` statuses, or MPI_STATUSES_IGNORE.
            unsafe { set_status_of(array_of_statuses, at, &one.look(engine).0) };
        }
        Ok(())
    }

    /// MPI 5.0 §3.7.6.
    fn MPI_Request_get_status_any(
        count: c_int, array_of_requests: *const MPI_Request, index: *mut c_int, flag: *mut c_int, status: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(index)?;
        output(flag)?;
        let engine = engine()?;
        // SAFETY: an array of `count` requests.
        let named = find_all(engine, unsafe { crate::capi::args::list(array_of_requests, count) }?)?;
        let nothing = !named.iter().any(Named::counts);
        let mut found = None;
        engine.look_for(|| {
            found = first_over(engine, &named)?;
            Ok(found.is_some())
        })?;
        // SAFETY: output arguments.
        unsafe {
            put(flag, c_int::from(nothing || found.is_some()))?;
            put(index, found.map_or(MPI_UNDEFINED, |at| at as c_int))?;
            match found {
                Some(at) => set_status(status, &named[at].look(engine).0),
                None if nothing => set_status(status, &Status::EMPTY),
                None => {}
            }
        }
        Ok(())
    }

    /// MPI 5.0 §3.7.6.
    fn MPI_Request_get_status_some(
        incount: c_int, array_of_requests: *const MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status,
    ) raises(MPI_COMM_SELF) {
        output(outcount)?;
        let engine = engine()?;
        // SAFETY: an array of `incount` requests.
        let named = find_all(engine, unsafe { crate::capi::args::list(array_of_requests, incount) }?)?;
        if !named.iter().any(Named::counts) {
            // SAFETY: an output argument.
            return unsafe { put(outcount, MPI_UNDEFINED) };
        }
        engine.look_for(|| Ok(first_over(engine, &named)?.is_some()))?;
        let mut taken = 0;
        for (at, one) in named.iter().enumerate() {
            if one.counts() && one.is_over(engine)? {
                // SAFETY: arrays with an element for each request.
                unsafe {
                    set_status_of(array_of_statuses, taken, &one.look(engine).0);
                    put(array_of_indices.wrapping_add(taken), at as c_int)?;
                }
                taken += 1;
            }
        }
        // SAFETY: an output argument.
        unsafe { put(outcount, taken as c_int) }
    }
}
