//! Error handlers (MPI 5.0 §9.3).
//!
//! A user's handler keeps its handle for as long as the user holds a reference to it: one from its creation and one
//! from each time it was asked for. Objects that have it keep the handler itself alive, handle or not.

use super::session::{self, Session};
use crate::abi::*;
use crate::arguments::{EvenIncomplete, InOut};
use crate::boundary::{self, ErrorSource, Handler};
use crate::comm::lock;
use crate::comms;
pub use crate::errhandler::ErrhandlerKind;
use crate::errhandler::{Errhandler, ErrhandlerFn, ErrhandlerSlot, UserErrhandler};
use crate::error::{Error, Result};
use crate::files;
use crate::handles::{HandleKind, HandleTable};
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::types::{MPI_Comm, MPI_Errhandler, MPI_File, MPI_Session, MPI_Win};
use crate::windows::{self, WindowObject};
use core::ffi::c_int;
use std::sync::{Arc, LazyLock};

static HANDLERS: HandleTable<UserErrhandler> = HandleTable::new(HandleKind::Errhandler);

/// References that users hold to their handlers: (handle, count), for the handlers that have a handle.
static HELD: Mutex<Vec<(MPI_Errhandler, usize)>> = Mutex::new(Vec::new());

/// What MPI_FILE_NULL has, and files from the start.
static OF_NO_FILE: LazyLock<ErrhandlerSlot> = LazyLock::new(|| ErrhandlerSlot::new(Errhandler::Return));

/// Whether the program has given MPI_COMM_SELF an error handler.
static SELF_HAS_ONE: AtomicBool = AtomicBool::new(false);

/// The error handler of errors that belong to no object: that of MPI_COMM_SELF; while the program has given it none,
/// that of MPI_COMM_WORLD, as programs of MPI 3 expect. Where these name nothing, errors are fatal.
fn of_nothing() -> Errhandler {
    // Relaxed: a program that sets a handler in one thread and relies on it in another orders the two itself.
    let stand_in = if SELF_HAS_ONE.load(Ordering::Relaxed) { MPI_COMM_SELF } else { MPI_COMM_WORLD };
    comms::get(stand_in).map_or_else(|_| initial(), |comm| comm.errhandler.get())
}

/// The error handler that the process has from the start (`mpiexec -initial-errhandler`,
/// info key `mpi_initial_errhandler`).
pub fn initial() -> Errhandler {
    match boundary::initial() {
        Handler::Return => Errhandler::Return,
        Handler::Abort => Errhandler::Abort,
        _ => Errhandler::Fatal,
    }
}

/// The error handler of an object, and the object, as [`boundary::Hooks`] ask for it.
pub fn handler_of(source: ErrorSource) -> (Handler, ErrorSource) {
    let found = match source {
        ErrorSource::File(handle) => files::get(handle).ok().map(|file| file.file().errhandler.get()),
        ErrorSource::Nothing => None,
        ErrorSource::Comm(handle) => {
            comms::get_even_incomplete(handle).ok().map(|comm| comm.errhandler.get())
        }
        ErrorSource::Session(handle) => session::find(handle).ok().map(|session| session.errhandler.get()),
        ErrorSource::Win(handle) => windows::get(handle).ok().map(|win| win.errhandler.get()),
        ErrorSource::NewComm(handler) => find(handler, ErrhandlerKind::Comm).ok(),
        ErrorSource::NewSession(handler) => find(handler, ErrhandlerKind::Session).ok(),
    };
    match (found, source) {
        (Some(found), _) => (found.into(), source),
        (None, ErrorSource::File(_)) => (OF_NO_FILE.get().into(), ErrorSource::File(MPI_FILE_NULL)),
        (None, _) => (of_nothing().into(), ErrorSource::Nothing),
    }
}

/// The error handler of `handle`, which objects of `kind` may have.
pub fn find(handle: MPI_Errhandler, kind: ErrhandlerKind) -> Result<Errhandler> {
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
    let handle = HANDLERS.insert(user.clone())?;
    held.push((handle, 1));
    Ok(handle)
}

/// The handles of users' error handlers.
pub fn made() -> Vec<MPI_Errhandler> {
    HANDLERS.handles()
}

/// MPI_X_create_errhandler.
pub fn create(kind: ErrhandlerKind, function: Option<ErrhandlerFn>) -> Result<MPI_Errhandler> {
    let function = function.ok_or(Error::Arg("the error handler function is NULL"))?;
    handle_of(&Errhandler::User(Arc::new(UserErrhandler { function, kind })))
}

/// MPI_Comm_set_errhandler.
pub fn set_of_comm(comm: EvenIncomplete<'_>, handler: MPI_Errhandler) -> Result<()> {
    comm.errhandler.replace(find(handler, ErrhandlerKind::Comm)?);
    if comm.handle() == MPI_COMM_SELF {
        SELF_HAS_ONE.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// MPI_Comm_get_errhandler; the handle is the caller's to free.
pub fn of_comm(comm: EvenIncomplete<'_>) -> Result<MPI_Errhandler> {
    handle_of(&comm.errhandler.get())
}

/// MPI_Comm_call_errhandler: calls the handler as an error of code `code` would (MPI 5.0 §9.5).
pub fn call_of_comm(
    function: &'static str,
    comm: MPI_Comm,
    _: EvenIncomplete<'_>,
    code: c_int,
) -> Result<()> {
    boundary::raise(ErrorSource::Comm(comm), function, Error::Code(code));
    Ok(())
}

/// MPI_Session_set_errhandler.
pub fn set_of_session(session: Arc<Session>, handler: MPI_Errhandler) -> Result<()> {
    session.errhandler.replace(find(handler, ErrhandlerKind::Session)?);
    Ok(())
}

/// MPI_Session_get_errhandler; the handle is the caller's to free.
pub fn of_session(session: Arc<Session>) -> Result<MPI_Errhandler> {
    handle_of(&session.errhandler.get())
}

/// MPI_Session_call_errhandler.
pub fn call_of_session(
    function: &'static str,
    session: MPI_Session,
    _: Arc<Session>,
    code: c_int,
) -> Result<()> {
    boundary::raise(ErrorSource::Session(session), function, Error::Code(code));
    Ok(())
}

/// MPI_Win_set_errhandler.
pub fn set_of_win(win: &WindowObject, handler: MPI_Errhandler) -> Result<()> {
    win.errhandler.replace(find(handler, ErrhandlerKind::Win)?);
    Ok(())
}

/// MPI_Win_get_errhandler; the handle is the caller's to free.
pub fn of_win(win: &WindowObject) -> Result<MPI_Errhandler> {
    handle_of(&win.errhandler.get())
}

/// MPI_Win_call_errhandler.
pub fn call_of_win(function: &'static str, win: MPI_Win, _: &WindowObject, code: c_int) -> Result<()> {
    boundary::raise(ErrorSource::Win(win), function, Error::Code(code));
    Ok(())
}

/// Calls `f` with where a file's error handler is; MPI_FILE_NULL has that which files have from the start.
fn slot_of_file<T>(file: MPI_File, f: impl FnOnce(&ErrhandlerSlot) -> Result<T>) -> Result<T> {
    if file == MPI_FILE_NULL { f(&OF_NO_FILE) } else { f(&files::get(file)?.file().errhandler) }
}

/// What a file has from the start: what MPI_FILE_NULL has as it is opened (MPI 5.0 §14.7).
pub fn of_new_file() -> Errhandler {
    OF_NO_FILE.get()
}

/// MPI_File_set_errhandler; for MPI_FILE_NULL, what files have from the start.
pub fn set_of_file(file: MPI_File, handler: MPI_Errhandler) -> Result<()> {
    let handler = find(handler, ErrhandlerKind::File)?;
    slot_of_file(file, |slot| {
        slot.replace(handler);
        Ok(())
    })
}

/// MPI_File_get_errhandler; the handle is the caller's to free.
pub fn of_file(file: MPI_File) -> Result<MPI_Errhandler> {
    slot_of_file(file, |slot| handle_of(&slot.get()))
}

/// MPI_File_call_errhandler.
pub fn call_of_file(function: &'static str, file: MPI_File, code: c_int) -> Result<()> {
    slot_of_file(file, |_| Ok(()))?;
    boundary::raise(ErrorSource::File(file), function, Error::Code(code));
    Ok(())
}

/// MPI_Errhandler_free. Predefined handlers may be freed, which does nothing.
pub fn free(handler: InOut<'_, MPI_Errhandler>) -> Result<()> {
    let handle = handler.get();
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
    handler.set(MPI_ERRHANDLER_NULL);
    Ok(())
}
