//! The functions of PERUSE 2.0: plain exports, for PERUSE has no profiling names. `docs/peruse.md` says what was chosen
//! where the specification contradicts itself.
//!
//! Every one may be called from any thread and from inside a callback. None calls an MPI error handler: a PERUSE
//! function says what is wrong with its return value alone.

use super::arguments::{Call, InOut, Out};
use super::boundary::{Phase, phase};
use super::calls::Function;
use super::comms;
use super::types::{MPI_Comm, MPI_File, MPI_Win};
use super::{files, windows};
use crate::abi;
use crate::events::{
    Binding, CATALOG, CFunction, Callback, CommCallback, Event, EventError, EventInfo, FileCallback, Handle,
    LockError, Registry, WinCallback,
};
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ffi::CString;
use std::sync::{Arc, OnceLock};

/// What PERUSE functions return (PERUSE 2.0 appendix D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// PERUSE_SUCCESS.
    Success = 0,
    /// PERUSE_ERR_INIT: PERUSE_Init has not been called, or MPI is finalised.
    Init,
    /// PERUSE_ERR_GENERIC.
    Generic,
    /// PERUSE_ERR_MALLOC: no event handle is left.
    Malloc,
    /// PERUSE_ERR_EVENT: no such event.
    Event,
    /// PERUSE_ERR_EVENT_HANDLE: no such handle, or active where it must be inactive.
    EventHandle,
    /// PERUSE_ERR_PARAMETER: a null pointer.
    Parameter,
    /// PERUSE_ERR_MPI_INIT: MPI is not initialised, or finalised.
    MpiInit,
    /// PERUSE_ERR_COMM: no such communicator.
    Comm,
    /// PERUSE_ERR_MPI_OBJECT: the handle's communicator is freed.
    MpiObject,
    /// PERUSE_ERR_LOCK: the caller does not hold the lock.
    Lock,
    /// PERUSE_ERR_UNLOCK: a constant of its own that no function returns (§5.2.17 has PERUSE_ERR_LOCK).
    Unlock,
    /// PERUSE_ERR_LOCK_NOT_GRANTABLE: the caller would wait for itself.
    LockNotGrantable,
    /// PERUSE_ERR_WIN: no such window.
    Win,
    /// PERUSE_ERR_FILE: no such file.
    File,
}

/// PERUSE_PER_COMM: the scope of perusal's queue events.
const PER_COMM: c_int = 0;

type PeruseResult<T = ()> = Result<T, Code>;

impl From<EventError> for Code {
    fn from(error: EventError) -> Code {
        match error {
            EventError::Handle => Code::EventHandle,
            EventError::Object => Code::MpiObject,
            EventError::Comm => Code::Comm,
            EventError::Event => Code::Event,
            EventError::Full => Code::Malloc,
        }
    }
}

impl From<LockError> for Code {
    fn from(error: LockError) -> Code {
        match error {
            LockError::NotOwner => Code::Lock,
            LockError::NotGrantable => Code::LockNotGrantable,
        }
    }
}

/// The registry between MPI_Init and MPI_Finalize.
fn running() -> PeruseResult<&'static Arc<Registry>> {
    if phase() != Phase::Running {
        return Err(Code::MpiInit);
    }
    comms::world().map(|world| world.events.registry()).map_err(|_| Code::MpiInit)
}

/// The registry between PERUSE_Init and MPI_Finalize.
fn initialised() -> PeruseResult<&'static Arc<Registry>> {
    running().ok().filter(|registry| registry.is_initialised()).ok_or(Code::Init)
}

/// A handle argument.
fn handle(event_h: c_long) -> PeruseResult<Handle> {
    Handle::from_raw(event_h).ok_or(Code::EventHandle)
}

/// Gives an event handle another callback: none is an error.
fn set_callback(event_h: c_long, callback: Option<Callback>) -> PeruseResult {
    let registry = initialised()?;
    let given = handle(event_h)?;
    Ok(registry.set_callback(given, callback.ok_or(Code::Parameter)?)?)
}

/// Writes a result that must have a place.
fn give<T>(to: &Option<Out<'_, T>>, value: T) -> PeruseResult {
    to.as_ref().map(|to| to.set(value)).ok_or(Code::Parameter)
}

/// PERUSE_ERR_PARAMETER if one of the results has no place.
macro_rules! wanted {
    ($($to:ident),+) => {
        if $($to.is_none())||+ {
            return Err(Code::Parameter);
        }
    };
}

/// Writes the C function of an event handle and its parameter to where the caller wants them, if it is of the kind that
/// `of_kind` takes. A closure of Rust's has no C function, and those of communicators, windows and files differ.
fn give_callback<F>(
    event_h: c_long,
    function: &Option<Out<'_, Option<F>>>,
    param: &Option<Out<'_, *mut c_void>>,
    of_kind: impl FnOnce(CFunction) -> Option<(F, *mut c_void)>,
) -> PeruseResult {
    let found = initialised()?.callback(handle(event_h)?)?;
    wanted!(function, param);
    let (found, value) = found.and_then(of_kind).ok_or(Code::EventHandle)?;
    give(function, Some(found))?;
    give(param, value)
}

/// Lists of pointers that C programs keep until MPI_Finalize.
struct Lists {
    names: Vec<*const c_char>,
    events: Vec<c_int>,
    /// Owns what `environment` points to.
    _strings: Vec<CString>,
    environment: Vec<*const c_char>,
}

// SAFETY: the pointers lead to strings that are static or owned by the same value, and no code writes to them.
unsafe impl Send for Lists {}
// SAFETY: the strings behind the pointers never change.
unsafe impl Sync for Lists {}

impl Lists {
    fn get() -> &'static Lists {
        static LISTS: OnceLock<Lists> = OnceLock::new();
        LISTS.get_or_init(|| {
            let strings: Vec<CString> = super::overrides::in_force()
                .into_iter()
                .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
                .collect();
            Lists {
                names: shown().map(|info| info.name.as_ptr()).collect(),
                events: shown().filter_map(|info| info.peruse).collect(),
                environment: strings.iter().map(|s| s.as_ptr()).collect(),
                _strings: strings,
            }
        })
    }
}

/// The rows of the event types that PERUSE has.
fn shown() -> impl Iterator<Item = &'static EventInfo> {
    CATALOG.iter().filter(|info| info.peruse.is_some())
}

/// The event of this number that objects of a kind have.
fn event_of(number: c_int, binding: Binding) -> PeruseResult<Event> {
    let found = known(Event::by_peruse_number(number));
    found.filter(|event| event.info().binding == binding).ok_or(Code::Event)
}

/// The events that PERUSE has are there to be found unless they are compiled out.
fn known(event: Option<Event>) -> Option<Event> {
    event.filter(|event| cfg!(feature = "peruse") && event.is_peruse())
}

/// Defines functions. Behind `=>` stands what becomes of a pointer argument ([`super::arguments`]).
macro_rules! peruse {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty $(=> $rust:ty)?),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// Pointers are null or point to what the C prototype says.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                let _call = Call::new(&Function { name: stringify!($name), number: Function::WITHOUT_EVENTS });
                $($(
                    // SAFETY: null, or what the C prototype says: argument rule 1.
                    let $arg: $rust = unsafe { _call.direct($arg) };
                )?)*
                let run = || -> PeruseResult { $body };
                let code = match run() {
                    Ok(()) => Code::Success,
                    Err(code) => code,
                };
                code as c_int
            }
        )*
    };
}

peruse! {
    /// PERUSE 2.0 §5.2.1. Any number of tools may call it; the first call counts.
    fn PERUSE_Init() {
        let registry = running()?;
        Lists::get();
        registry.initialise();
        Ok(())
    }

    /// PERUSE 2.0 §5.2.2. The arrays are perusal's and stay.
    fn PERUSE_Query_supported_events(
        num_supported: *mut c_int => Option<Out<'_, c_int>>,
        event_names: *mut *const *const c_char => Option<Out<'_, *const *const c_char>>,
        events: *mut *const c_int => Option<Out<'_, *const c_int>>,
    ) {
        initialised()?;
        wanted!(num_supported, event_names, events);
        let lists = Lists::get();
        let (number, names, numbers) = if cfg!(feature = "peruse") {
            (lists.names.len() as c_int, lists.names.as_ptr(), lists.events.as_ptr())
        } else {
            (0, core::ptr::null(), core::ptr::null())
        };
        give(&num_supported, number)?;
        give(&event_names, names)?;
        give(&events, numbers)
    }

    /// PERUSE 2.0 §5.2.3. Takes every spelling of the catalogue.
    fn PERUSE_Query_event(
        event_name: *const c_char => Option<&CStr>,
        event: *mut c_int => Option<Out<'_, c_int>>,
    ) {
        initialised()?;
        wanted!(event);
        let found = known(Event::by_name(event_name.ok_or(Code::Parameter)?));
        give(&event, found.and_then(|event| event.info().peruse).unwrap_or(0))?;
        found.map(drop).ok_or(Code::Event)
    }

    /// PERUSE 2.0 §5.2.4. The string is perusal's and stays; NULL for a number that is no event.
    fn PERUSE_Query_event_name(
        event: c_int,
        event_name: *mut *const c_char => Option<Out<'_, *const c_char>>,
    ) {
        initialised()?;
        let found = known(Event::by_peruse_number(event));
        let name = found.map_or(core::ptr::null(), |event| event.info().name.as_ptr());
        give(&event_name, name)?;
        found.map(drop).ok_or(Code::Event)
    }

    /// PERUSE 2.0 §5.2.5. One `NAME=value` for each variable that steers this rank, with the value in force.
    fn PERUSE_Query_environment(
        env_size: *mut c_int => Option<Out<'_, c_int>>,
        env: *mut *const *const c_char => Option<Out<'_, *const *const c_char>>,
    ) {
        initialised()?;
        wanted!(env_size, env);
        let list = &Lists::get().environment;
        give(&env_size, list.len() as c_int)?;
        give(&env, if list.is_empty() { core::ptr::null() } else { list.as_ptr() })
    }

    /// PERUSE 2.0 §5.2.6. Queues are the communicator's own: PERUSE_PER_COMM.
    fn PERUSE_Query_queue_event_scope(scope: *mut c_int => Option<Out<'_, c_int>>) {
        initialised()?;
        give(&scope, PER_COMM)
    }

    /// PERUSE 2.0 §5.2.7. On failure `event_h` becomes PERUSE_EVENT_HANDLE_NULL.
    fn PERUSE_Event_comm_register(
        event: c_int,
        comm: MPI_Comm,
        callback_fn: Option<CommCallback>,
        param: *mut c_void,
        event_h: *mut c_long => Option<Out<'_, c_long>>,
    ) {
        let cleared = give(&event_h, 0);
        initialised()?;
        cleared?;
        let function = callback_fn.ok_or(Code::Parameter)?;
        let event = event_of(event, Binding::Communicator)?;
        let comm = comms::get_even_incomplete(comm).map_err(|_| Code::Comm)?;
        let registry = comm.events.registry();
        let made = registry.register(&comm.events, event, Callback::C { function, param })?;
        give(&event_h, made.raw())
    }

    /// PERUSE 2.0 §12.3.1. On failure `event_h` becomes PERUSE_EVENT_HANDLE_NULL.
    fn PERUSE_Event_win_register(
        event: c_int,
        win: MPI_Win,
        callback_fn: Option<WinCallback>,
        param: *mut c_void,
        event_h: *mut c_long => Option<Out<'_, c_long>>,
    ) {
        let cleared = give(&event_h, 0);
        initialised()?;
        cleared?;
        let function = callback_fn.ok_or(Code::Parameter)?;
        let event = event_of(event, Binding::Window)?;
        let win = windows::get(win).map_err(|_| Code::Win)?;
        let events = win.events();
        let made = events.registry().register(events, event, Callback::Win { function, param });
        give(&event_h, made.map_err(|error| if error == EventError::Comm { Code::Win } else { error.into() })?.raw())
    }

    /// PERUSE 2.0 §12.2.1. On failure `event_h` becomes PERUSE_EVENT_HANDLE_NULL.
    fn PERUSE_Event_file_register(
        event: c_int,
        file: MPI_File,
        callback_fn: Option<FileCallback>,
        param: *mut c_void,
        event_h: *mut c_long => Option<Out<'_, c_long>>,
    ) {
        let cleared = give(&event_h, 0);
        initialised()?;
        cleared?;
        let function = callback_fn.ok_or(Code::Parameter)?;
        let event = event_of(event, Binding::File)?;
        let file = files::get(file).map_err(|_| Code::File)?;
        let events = file.events();
        let made = events.registry().register(events, event, Callback::File { function, param });
        give(&event_h, made.map_err(|error| if error == EventError::Comm { Code::File } else { error.into() })?.raw())
    }

    /// PERUSE 2.0 §5.2.8.
    fn PERUSE_Event_activate(event_h: c_long) {
        Ok(initialised()?.activate(handle(event_h)?)?)
    }

    /// PERUSE 2.0 §5.2.9. No callback begins afterwards; see [`Registry::deactivate`].
    fn PERUSE_Event_deactivate(event_h: c_long) {
        Ok(initialised()?.deactivate(handle(event_h)?)?)
    }

    /// PERUSE 2.0 §5.2.10. No callback runs afterwards; see [`Registry::release`].
    fn PERUSE_Event_release(event_h: *mut c_long => Option<InOut<'_, c_long>>) {
        let registry = initialised()?;
        let event_h = event_h.ok_or(Code::Parameter)?;
        let outcome = registry.release(handle(event_h.get())?);
        if matches!(outcome, Ok(()) | Err(EventError::Object)) {
            event_h.set(0);
        }
        Ok(outcome?)
    }

    /// PERUSE 2.0 §5.2.11.
    fn PERUSE_Event_get(event_h: c_long, event: *mut c_int => Option<Out<'_, c_int>>) {
        let found = initialised()?.event(handle(event_h)?)?;
        give(&event, found.info().peruse.unwrap_or(0))
    }

    /// PERUSE 2.0 §5.2.12. `mpi_object` receives the MPI_Comm, MPI_Win or MPI_File itself,
    /// which is a pointer in this ABI.
    fn PERUSE_Event_object_get(
        event_h: c_long,
        mpi_object: *mut *mut c_void => Option<Out<'_, *mut c_void>>,
    ) {
        let comm = initialised()?.object(handle(event_h)?)?;
        give(&mpi_object, core::ptr::without_provenance_mut(comm))
    }

    /// PERUSE 2.0 §5.2.13. The handle must be inactive.
    fn PERUSE_Event_comm_callback_set(event_h: c_long, callback_fn: Option<CommCallback>, param: *mut c_void) {
        set_callback(event_h, callback_fn.map(|function| Callback::C { function, param }))
    }

    /// PERUSE 2.0 §5.2.14, with the handle active or not (§5.1.2).
    fn PERUSE_Event_comm_callback_get(
        event_h: c_long,
        callback_fn: *mut Option<CommCallback> => Option<Out<'_, Option<CommCallback>>>,
        param: *mut *mut c_void => Option<Out<'_, *mut c_void>>,
    ) {
        give_callback(event_h, &callback_fn, &param, |found| match found {
            CFunction::Comm(function, param) => Some((function, param)),
            _ => None,
        })
    }

    /// PERUSE 2.0 §12.3.2. The handle must be inactive, and of a window's event.
    fn PERUSE_Event_win_callback_set(event_h: c_long, callback_fn: Option<WinCallback>, param: *mut c_void) {
        set_callback(event_h, callback_fn.map(|function| Callback::Win { function, param }))
    }

    /// PERUSE 2.0 §12.3.3, with the handle active or not, as for communicators.
    fn PERUSE_Event_win_callback_get(
        event_h: c_long,
        callback_fn: *mut Option<WinCallback> => Option<Out<'_, Option<WinCallback>>>,
        param: *mut *mut c_void => Option<Out<'_, *mut c_void>>,
    ) {
        give_callback(event_h, &callback_fn, &param, |found| match found {
            CFunction::Win(function, param) => Some((function, param)),
            _ => None,
        })
    }

    /// PERUSE 2.0 §12.2.2. The handle must be inactive, and of a file's event.
    fn PERUSE_Event_file_callback_set(event_h: c_long, callback_fn: Option<FileCallback>, param: *mut c_void) {
        set_callback(event_h, callback_fn.map(|function| Callback::File { function, param }))
    }

    /// PERUSE 2.0 §12.2.3, with the handle active or not, as for communicators.
    fn PERUSE_Event_file_callback_get(
        event_h: c_long,
        callback_fn: *mut Option<FileCallback> => Option<Out<'_, Option<FileCallback>>>,
        param: *mut *mut c_void => Option<Out<'_, *mut c_void>>,
    ) {
        give_callback(event_h, &callback_fn, &param, |found| match found {
            CFunction::File(function, param) => Some((function, param)),
            _ => None,
        })
    }

    /// PERUSE 2.0 §5.2.15. Any mode but 0 is true. The handle must be inactive.
    fn PERUSE_Event_propagate(event_h: c_long, mode: c_int) {
        Ok(initialised()?.set_propagation(handle(event_h)?, mode != 0)?)
    }

    /// PERUSE 2.0 §5.2.16.
    fn PERUSE_Lock() {
        Ok(initialised()?.lock().lock()?)
    }

    /// PERUSE 2.0 §5.2.17.
    fn PERUSE_Unlock() {
        Ok(initialised()?.lock().unlock()?)
    }
}

const _: () =
    assert!(abi::MPI_SUCCESS == 0, "a callback's success is MPI_SUCCESS, which dispatch takes to be 0");
