//! Starting, cancelling and freeing requests; generalized requests (MPI 5.0 §3.9, §3.8.4, §3.7.3, §13.2).

use crate::abi::*;
use crate::arguments::InOut;
use crate::check;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::p2p::MessageStatus;
use crate::process::engine;
use crate::request::{RequestState, Then};
use crate::requests::{self, Named, Task};
use crate::types::{
    MPI_Grequest_cancel_function as Cancel, MPI_Grequest_free_function as Free,
    MPI_Grequest_query_function as Query, MPI_Request, MPI_Status,
};
use core::ffi::{c_int, c_void};

fn start(handle: MPI_Request) -> Result<()> {
    let engine = engine()?;
    // SAFETY: argument rule 2.
    if let Some(task) = unsafe { requests::peek(handle) } {
        task.start(engine)?;
    } else if let Named::Message(request) = requests::find(engine, handle)? {
        engine.start(request)?;
    } else {
        return Err(Error::Request("MPI_REQUEST_NULL cannot be started"));
    }
    if check::is_on() {
        check::started(handle);
    }
    Ok(())
}

/// An operation that the program carries out by itself.
struct Generalized {
    query: Query,
    free: Free,
    cancel: Cancel,
    extra: usize,
    /// Active until MPI_Grequest_complete; detached by MPI_Request_free. One word, so that the later of the two knows
    /// that it is, and frees the request.
    state: RequestState,
}

impl Generalized {
    fn result(code: c_int) -> Option<Error> {
        (code != MPI_SUCCESS).then_some(Error::Code(code))
    }

    fn free_extra(&self) -> Option<Error> {
        // SAFETY: the user's function with the user's argument, called once (MPI 5.0 §13.2).
        Self::result(unsafe { (self.free)(self.extra as *mut c_void) })
    }
}

impl Task for Generalized {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.state.is_complete())
    }
    fn outcome(&self, _: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        let mut status = MPI_Status::EMPTY;
        // SAFETY: the user's function with the user's argument and a status that lives until it returns.
        let failed = Self::result(unsafe { (self.query)(self.extra as *mut c_void, &raw mut status) });
        // The code of the last callback counts (MPI 5.0 §13.2).
        let error = if last { self.free_extra().or(failed) } else { failed };
        let status = MessageStatus {
            source: status.source,
            tag: status.tag,
            error: error.as_ref().map_or(MPI_SUCCESS, Error::class),
            bytes: status.bytes(),
            cancelled: status.cancelled(),
        };
        (status, error)
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        // SAFETY: the user's function with the user's argument.
        let code = unsafe { (self.cancel)(self.extra as *mut c_void, c_int::from(self.state.is_complete())) };
        Self::result(code).map_or(Ok(()), Err)
    }
    fn free(&self, _: &Engine) -> Result<()> {
        if self.state.detach() == Then::Release { self.free_extra().map_or(Ok(()), Err) } else { Ok(()) }
    }
    fn is_generalized(&self) -> bool {
        true
    }
    fn complete_generalized(&self, forget: &dyn Fn()) -> Option<Result<()>> {
        if self.state.is_over() {
            return None;
        }
        if self.state.complete_shared().0 == Then::Release {
            forget();
            return Some(self.free_extra().map_or(Ok(()), Err));
        }
        Some(Ok(()))
    }
}

/// MPI_Start.
pub fn start_one(request: InOut<'_, MPI_Request>) -> Result<()> {
    start(request.get())
}

/// MPI_Startall.
pub fn start_all(requests: &[MPI_Request]) -> Result<()> {
    requests.iter().try_for_each(|&handle| start(handle))
}

/// MPI_Cancel.
pub fn cancel(request: InOut<'_, MPI_Request>) -> Result<()> {
    if check::is_on() {
        check::cancelled(request.get());
    }
    match requests::find(engine()?, request.get())? {
        Named::Null => Err(Error::Request("MPI_REQUEST_NULL cannot be cancelled")),
        Named::Message(request) if request.is_inactive() => {
            Err(Error::Request("it is inactive; only what has been started can be cancelled"))
        }
        Named::Message(request) => engine()?.cancel(request),
        Named::Task(task) => task.cancel(engine()?),
    }
}

/// MPI_Request_free.
pub fn free(request: InOut<'_, MPI_Request>) -> Result<()> {
    let handle = request.get();
    let mut freed = Ok(());
    match requests::find(engine()?, handle)? {
        Named::Null => return Err(Error::Request("MPI_REQUEST_NULL cannot be freed")),
        Named::Message(request) => engine()?.free_request(request),
        Named::Task(task) => {
            freed = task.free(engine()?);
            // A generalized request goes even if its callback fails,
            // but one that its user completes later must still be found.
            if !task.is_generalized() {
                freed.clone()?;
            }
            if !task.is_generalized() || task.poll(engine()?)? {
                requests::remove_task(handle);
            }
        }
    }
    if check::is_on() {
        check::freed(handle);
    }
    request.set(MPI_REQUEST_NULL);
    freed
}

/// MPI_Grequest_start.
///
/// # Safety
/// The functions take the extra state, and may be called until the request has been freed (MPI 5.0 §13.2).
pub unsafe fn start_generalized(
    query: Option<Query>,
    free: Option<Free>,
    cancel: Option<Cancel>,
    extra: *mut c_void,
) -> Result<MPI_Request> {
    let (Some(query), Some(free), Some(cancel)) = (query, free, cancel) else {
        return Err(Error::Arg("a callback of the generalized request is NULL"));
    };
    let state = RequestState::new();
    state.activate();
    let task = Generalized { query, free, cancel, extra: extra as usize, state };
    requests::insert_task(Box::new(task))
}

/// MPI_Grequest_complete.
pub fn complete_generalized(request: MPI_Request) -> Result<()> {
    let Some(task) = requests::task(request) else {
        return Err(Error::Request("no such request, or it has been freed"));
    };
    let Some(freed) = task.complete_generalized(&|| requests::remove_task(request)) else {
        return Err(Error::Request("no generalized request, or it is complete already"));
    };
    engine()?.progress().something_happened();
    freed
}
