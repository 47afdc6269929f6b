//! Error handlers (MPI 5.0 §9.3).
//!
//! A user's handler keeps its handle for as long as the user holds a reference to it: one from its creation and one from each
//! time it was asked for. Objects that have it keep the handler itself alive, handle or not.

use super::session;
use crate::abi::*;
use crate::capi::args::{put, take};
use crate::capi::boundary::{self, Handler, Source};
use crate::capi::comms;
use crate::capi::types::{MPI_Comm, MPI_Errhandler, MPI_File, MPI_Session};
use crate::comm::errhandler::{Errhandler, ErrhandlerFn, ErrhandlerSlot, Kind, User};
use crate::comm::lock;
use crate::error::{Error, Result};
use crate::export;
use crate::handles::HandleTable;
use crate::sync::Mutex;
use core::ffi::c_int;
use std::sync::{Arc, LazyLock};

static HANDLERS: HandleTable<User> = HandleTable::new();

/// References that users hold to their handlers: (handle, count), for the handlers that have a handle.
static HELD: Mutex<Vec<(MPI_Errhandler, usize)>> = Mutex::new(Vec::new());

/// What files have that say nothing else, and MPI_FILE_NULL.
static OF_NO_FILE: LazyLock<ErrhandlerSlot> = LazyLock::new(|| ErrhandlerSlot::new(Errhandler::Return));

/// The error handler of an object, as [`boundary::Hooks`] ask for it. What is no object stands for MPI_COMM_SELF; where that
/// names nothing either, errors are fatal.
pub fn handler_of(source: Source) -> Handler {
    let found = match source {
        Source::File(_) => OF_NO_FILE.get(),
        Source::Comm(handle) => match comms::get(handle).or_else(|_| comms::get(MPI_COMM_SELF)) {
            Ok(comm) => comm.errhandler.get(),
            Err(_) => Errhandler::Fatal,
        },
        Source::Session(handle) => match session::find(handle) {
            Ok(session) => session.errhandler.get(),
            Err(_) => return handler_of(Source::Comm(MPI_COMM_SELF)),
        },
        Source::NewComm(handler) => return of_new(handler, Kind::Comm),
        Source::NewSession(handler) => return of_new(handler, Kind::Session),
        Source::Win(_) => return handler_of(Source::Comm(MPI_COMM_SELF)),
    };
    answer(found)
}

/// The answer of the handler that a new object of `kind` was to have; MPI_COMM_SELF's if that is none.
fn of_new(handler: MPI_Errhandler, kind: Kind) -> Handler {
    find(handler, kind).map_or_else(|_| handler_of(Source::Comm(MPI_COMM_SELF)), answer)
}

fn answer(found: Errhandler) -> Handler {
    match found {
        Errhandler::Fatal => Handler::Fatal,
        Errhandler::Abort => Handler::Abort,
        Errhandler::Return => Handler::Return,
        Errhandler::User(user) => Handler::User(user.function),
    }
}

/// The error handler of `handle`, which objects of `kind` may have.
pub fn find(handle: MPI_Errhandler, kind: Kind) -> Result<Errhandler> {
    let found = match Errhandler::predefined(handle) {
        Some(predefined) => predefined,
        None => Errhandler::User(
            HANDLERS.get(handle).ok_or(Error::Errhandler("no such error handler, or it has been freed"))?,
        ),
    };
    found.check(kind)?;
    Ok(found)
}

/// A handle for `handler`, with one more reference that the user holds.
pub fn handle_of(handler: &Errhandler) -> Result<MPI_Errhandler> {
    let Errhandler::User(user) = handler else {
        return handler.predefined_handle().ok_or(Error::Errhandler("it has no handle"));
    };
    let mut held = lock(&HELD);
    let same = |handle| HANDLERS.get(handle).is_some_and(|other| Arc::ptr_eq(&other, user));
    if let Some(entry) = held.iter_mut().find(|entry| same(entry.0)) {
        entry.1 += 1;
        return Ok(entry.0);
    }
    let handle = HANDLERS
        .insert(user.clone())
        .ok_or_else(|| Error::NoMem("no error handler handle is left".into()))?;
    held.push((handle, 1));
    Ok(handle)
}

/// Makes a handler from C's arguments.
///
/// # Safety
/// `to` is NULL or may be written.
unsafe fn create(kind: Kind, function: Option<ErrhandlerFn>, to: *mut MPI_Errhandler) -> Result<()> {
    let function = function.ok_or(Error::Arg("the error handler function is NULL"))?;
    let handle = handle_of(&Errhandler::User(Arc::new(User { function, kind })))?;
    // SAFETY: the caller's promise.
    unsafe { put(to, handle) }
}

/// Calls the handler of an object as an error of code `code` would (MPI 5.0 §9.5).
fn call(source: Source, function: &'static str, code: c_int) {
    boundary::raise(source, function, Error::Code(code));
}

export! {
    /// MPI 5.0 §9.3.1; legal at any time.
    fn MPI_Comm_create_errhandler(
        comm_errhandler_fn: Option<ErrhandlerFn>,
        errhandler: *mut MPI_Errhandler,
    ) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { create(Kind::Comm, comm_errhandler_fn, errhandler) }
    }

    /// MPI 5.0 §9.3.2; legal at any time.
    fn MPI_Win_create_errhandler(
        win_errhandler_fn: Option<ErrhandlerFn>,
        errhandler: *mut MPI_Errhandler,
    ) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { create(Kind::Win, win_errhandler_fn, errhandler) }
    }

    /// MPI 5.0 §9.3.3; legal at any time.
    fn MPI_File_create_errhandler(
        file_errhandler_fn: Option<ErrhandlerFn>,
        errhandler: *mut MPI_Errhandler,
    ) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { create(Kind::File, file_errhandler_fn, errhandler) }
    }

    /// MPI 5.0 §9.3.4; legal at any time.
    fn MPI_Session_create_errhandler(
        session_errhandler_fn: Option<ErrhandlerFn>,
        errhandler: *mut MPI_Errhandler,
    ) anytime raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { create(Kind::Session, session_errhandler_fn, errhandler) }
    }

    /// MPI 5.0 §9.3.1.
    fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) raises(comm) {
        let found = comms::get(comm)?;
        found.errhandler.replace(find(errhandler, Kind::Comm)?);
        Ok(())
    }

    /// MPI 5.0 §9.3.1; the handle is the caller's to free.
    fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) raises(comm) {
        let handle = handle_of(&comms::get(comm)?.errhandler.get())?;
        // SAFETY: an output argument.
        unsafe { put(errhandler, handle) }
    }

    /// MPI 5.0 §9.3.4.
    fn MPI_Session_set_errhandler(session: MPI_Session, errhandler: MPI_Errhandler)
        raises(Source::Session(session))
    {
        let found = session::find(session)?;
        found.errhandler.replace(find(errhandler, Kind::Session)?);
        Ok(())
    }

    /// MPI 5.0 §9.3.4; the handle is the caller's to free.
    fn MPI_Session_get_errhandler(session: MPI_Session, errhandler: *mut MPI_Errhandler)
        raises(Source::Session(session))
    {
        let handle = handle_of(&session::find(session)?.errhandler.get())?;
        // SAFETY: an output argument.
        unsafe { put(errhandler, handle) }
    }

    /// MPI 5.0 §9.3.3, for MPI_FILE_NULL: what files have from the start.
    fn MPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) raises(Source::File(file)) {
        only_no_file(file)?;
        OF_NO_FILE.replace(find(errhandler, Kind::File)?);
        Ok(())
    }

    /// MPI 5.0 §9.3.3, for MPI_FILE_NULL.
    fn MPI_File_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) raises(Source::File(file)) {
        only_no_file(file)?;
        let handle = handle_of(&OF_NO_FILE.get())?;
        // SAFETY: an output argument.
        unsafe { put(errhandler, handle) }
    }

    /// MPI 5.0 §9.3.4; predefined handlers may be freed, which does nothing. Legal at any time.
    fn MPI_Errhandler_free(errhandler: *mut MPI_Errhandler) anytime raises(MPI_COMM_SELF) {
        // SAFETY: the address of a handle.
        let handle = unsafe { take(errhandler) }?;
        if Errhandler::predefined(handle).is_none() {
            let mut held = lock(&HELD);
            let at = held
                .iter()
                .position(|entry| entry.0 == handle)
                .ok_or(Error::Errhandler("no such error handler, or it has been freed"))?;
            held[at].1 -= 1;
            if held[at].1 == 0 {
                held.swap_remove(at);
                HANDLERS.remove(handle);
            }
        }
        // SAFETY: the address of a handle.
        unsafe { put(errhandler, MPI_ERRHANDLER_NULL) }
    }

    /// MPI 5.0 §9.5.
    fn MPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) raises(comm) {
        comms::get(comm)?;
        call(Source::Comm(comm), "MPI_Comm_call_errhandler", errorcode);
        Ok(())
    }

    /// MPI 5.0 §9.5.
    fn MPI_Session_call_errhandler(session: MPI_Session, errorcode: c_int) raises(Source::Session(session)) {
        session::find(session)?;
        call(Source::Session(session), "MPI_Session_call_errhandler", errorcode);
        Ok(())
    }

    /// MPI 5.0 §9.5, for MPI_FILE_NULL.
    fn MPI_File_call_errhandler(file: MPI_File, errorcode: c_int) raises(Source::File(file)) {
        only_no_file(file)?;
        call(Source::File(file), "MPI_File_call_errhandler", errorcode);
        Ok(())
    }
}

/// There are no files yet, only their default.
fn only_no_file(file: MPI_File) -> Result<()> {
    if file == MPI_FILE_NULL { Ok(()) } else { Err(Error::Code(MPI_ERR_FILE)) }
}
