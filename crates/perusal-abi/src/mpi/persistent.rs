//! Starting, cancelling and freeing requests; generalized requests (MPI 5.0 §3.9, §3.8.4, §3.7.3, §13.2).

use crate::abi::*;
use crate::capi::args::{list, put, take};
use crate::capi::messages::output;
use crate::capi::process::engine;
use crate::capi::requests::{self, Named, Task};
use crate::capi::types::{MPI_Request, MPI_Status};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::export;
use crate::p2p::Status;
use crate::sync::{AtomicBool, Ordering};
use core::ffi::{c_int, c_void};

fn start(handle: MPI_Request) -> Result<()> {
    match requests::find(engine()?, handle)? {
        Named::Message(request) => engine()?.start(request),
        Named::Null => Err(Error::Request("MPI_REQUEST_NULL cannot be started")),
        Named::Task(task) => task.start(engine()?),
    }
}

/// `int (void *extra_state, MPI_Status *status)`.
type Query = unsafe extern "C" fn(*mut c_void, *mut MPI_Status) -> c_int;
/// `int (void *extra_state)`.
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `int (void *extra_state, int complete)`.
type Cancel = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// An operation that the program carries out by itself.
struct Generalized {
    query: Query,
    free: Free,
    cancel: Cancel,
    extra: usize,
    complete: AtomicBool,
    /// Freed by its user before it was complete.
    detached: AtomicBool,
}

impl Generalized {
    fn result(code: c_int) -> Option<Error> {
        (code != MPI_SUCCESS).then_some(Error::Code(code))
    }

    fn free_extra(&self) -> Option<Error> {
        // SAFETY: the user's function with the user's argument, called once (MPI 5.0 §13.2).
        Self::result(unsafe { (self.free)(self.extra as *mut c_void) })
    }

    fn is_complete(&self) -> bool {
        // Acquire: pairs with Release in `MPI_Grequest_complete`: what the completing thread wrote is seen.
        self.complete.load(Ordering::Acquire)
    }
}

impl Task for Generalized {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.is_complete())
    }
    fn outcome(&self, _: &Engine, last: bool) -> (Status, Option<Error>) {
        let mut status = MPI_Status::EMPTY;
        // SAFETY: the user's function with the user's argument and a status that lives until it returns.
        let failed = Self::result(unsafe { (self.query)(self.extra as *mut c_void, &raw mut status) });
        let error = if last { failed.or(self.free_extra()) } else { failed };
        let status = Status {
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
        let code = unsafe { (self.cancel)(self.extra as *mut c_void, c_int::from(self.is_complete())) };
        Self::result(code).map_or(Ok(()), Err)
    }
    fn free(&self, _: &Engine) {
        // AcqRel: of this and `MPI_Grequest_complete`, who comes second frees.
        if !self.detached.swap(true, Ordering::AcqRel) && self.is_complete() {
            let _ = self.free_extra();
        }
    }
    fn is_generalized(&self) -> bool {
        true
    }
    fn complete_generalized(&self, forget: &dyn Fn()) -> Option<()> {
        // Release: pairs with Acquire in `is_complete`.
        if self.complete.swap(true, Ordering::AcqRel) {
            return None;
        }
        // Acquire: pairs with `free`; who comes second frees.
        if self.detached.load(Ordering::Acquire) {
            forget();
            let _ = self.free_extra();
        }
        Some(())
    }
}

export! {
    /// MPI 5.0 §3.9.
    fn MPI_Start(request: *mut MPI_Request) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        start(unsafe { take(request) }?)
    }
    /// MPI 5.0 §3.9.
    fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) raises(MPI_COMM_SELF) {
        // SAFETY: an array of `count` requests.
        let handles = unsafe { list(array_of_requests, count) }?;
        handles.iter().try_for_each(|&handle| start(handle))
    }
    /// MPI 5.0 §3.8.4.
    fn MPI_Cancel(request: *mut MPI_Request) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        match requests::find(engine()?, unsafe { take(request) }?)? {
            Named::Null => Err(Error::Request("MPI_REQUEST_NULL cannot be cancelled")),
            Named::Message(request) if request.is_inactive() => {
                Err(Error::Request("it is inactive; only what has been started can be cancelled"))
            }
            Named::Message(request) => engine()?.cancel(request),
            Named::Task(task) => task.cancel(engine()?),
        }
    }
    /// MPI 5.0 §3.7.3.
    fn MPI_Request_free(request: *mut MPI_Request) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        let handle = unsafe { take(request) }?;
        match requests::find(engine()?, handle)? {
            Named::Null => return Err(Error::Request("MPI_REQUEST_NULL cannot be freed")),
            Named::Message(request) => engine()?.free_request(request),
            Named::Task(task) => {
                task.free(engine()?);
                // One that its user completes later must still be found.
                if !task.is_generalized() || task.poll(engine()?)? {
                    requests::remove_task(handle);
                }
            }
        }
        // SAFETY: an output argument.
        unsafe { put(request, MPI_REQUEST_NULL) }
    }
    /// MPI 5.0 §13.2.
    fn MPI_Grequest_start(
        query_fn: Option<Query>, free_fn: Option<Free>, cancel_fn: Option<Cancel>, extra_state: *mut c_void,
        request: *mut MPI_Request,
    ) raises(MPI_COMM_SELF) {
        output(request)?;
        let (Some(query), Some(free), Some(cancel)) = (query_fn, free_fn, cancel_fn) else {
            return Err(Error::Arg("a callback of the generalized request is NULL"));
        };
        let task = Generalized {
            query, free, cancel, extra: extra_state as usize,
            complete: AtomicBool::new(false), detached: AtomicBool::new(false),
        };
        // SAFETY: an output argument.
        unsafe { put(request, requests::insert_task(Box::new(task))?) }
    }
    /// MPI 5.0 §13.2.
    fn MPI_Grequest_complete(request: MPI_Request) raises(MPI_COMM_SELF) {
        let Some(task) = requests::task(request) else {
            return Err(Error::Request("no such request, or it has been freed"));
        };
        if task.complete_generalized(&|| requests::remove_task(request)).is_none() {
            return Err(Error::Request("no generalized request, or it is complete already"));
        }
        engine()?.something_happened();
        Ok(())
    }
}
