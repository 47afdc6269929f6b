//! Info objects (MPI 5.0 §10). All legal at any time, from any thread.

use super::memory_kinds;
use crate::abi::*;
use crate::arguments::{Argument, Arguments, Given, InOut, Letters, Out};
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::info::Info;
use crate::shm::{ERRHANDLER_VARIABLE, PROCESSES_VARIABLE, SOFT_VARIABLE};
use crate::types::MPI_Info;
use core::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

static TABLE: HandleTable<Mutex<Info>> = HandleTable::new(HandleKind::Info);
static STARTED: OnceLock<Info> = OnceLock::new();

/// A copy of what the handle names: for functions that take an info argument. MPI_INFO_NULL gives an empty one.
///
/// # Errors
/// `Error::Info` if the handle is not one.
pub fn hints(handle: MPI_Info) -> Result<Info> {
    if handle == MPI_INFO_NULL { Ok(Info::new()) } else { read(handle, Clone::clone) }
}

/// A new handle for `info`: for functions that return an info object, which the user frees.
///
/// # Errors
/// `Error::NoMem` if there are too many.
pub fn hand_out(info: Info) -> Result<MPI_Info> {
    TABLE.insert(Arc::new(Mutex::new(info)))
}

/// The handles of all info objects.
pub fn made() -> Vec<MPI_Info> {
    TABLE.handles()
}

/// Notes what MPI_INFO_ENV holds (MPI 5.0 §11.2.1): what the first MPI_Init, or the first session, finds.
pub fn note_environment() {
    STARTED.get_or_init(environment);
}

/// How this process was started, as far as the system and the launcher tell: `command`, `argv`, `maxprocs`, `soft`,
/// `wdir`, `host`, `arch`; and the kinds of memory and the error handler that were asked for.
#[must_use]
pub fn environment() -> Info {
    let mut info = Info::new();
    let mut arguments = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
    let facts = [
        ("command", arguments.next()),
        ("argv", Some(arguments.collect::<Vec<_>>().join(" "))),
        ("maxprocs", std::env::var(PROCESSES_VARIABLE).ok()),
        ("soft", std::env::var(SOFT_VARIABLE).ok()),
        ("wdir", std::env::current_dir().ok().map(|d| d.to_string_lossy().into_owned())),
        ("host", Some(super::env::host_name())),
        ("arch", Some(std::env::consts::ARCH.to_owned())),
        (memory_kinds::KEY, memory_kinds::requested()),
        ("mpi_initial_errhandler", std::env::var(ERRHANDLER_VARIABLE).ok()),
    ];
    for (key, value) in facts {
        // What does not fit is left out: the standard asks for no key in particular.
        let _ = value.filter(|v| !v.is_empty()).map(|v| info.set(key, v));
    }
    info
}

fn object(handle: MPI_Info) -> Result<Arc<Mutex<Info>>> {
    if handle == MPI_INFO_NULL {
        return Err(Error::Info("MPI_INFO_NULL"));
    }
    TABLE.get(handle).ok_or(Error::Info(match handle {
        0 => "0 is no handle; MPI_INFO_NULL is for none",
        _ => "no such object; was it freed?",
    }))
}

fn read<R>(handle: MPI_Info, look: impl FnOnce(&Info) -> R) -> Result<R> {
    if handle == MPI_INFO_ENV {
        return Ok(match STARTED.get() {
            Some(info) => look(info),
            None => look(&environment()),
        });
    }
    Ok(look(&object(handle)?.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn change<R>(handle: MPI_Info, alter: impl FnOnce(&mut Info) -> R) -> Result<R> {
    if handle == MPI_INFO_ENV {
        return Err(Error::Info("MPI_INFO_ENV cannot be changed"));
    }
    Ok(alter(&mut object(handle)?.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Sets a value in an object of the program's: for functions that give something in their info argument.
///
/// # Errors
/// `Error::Info` if the handle is not one, or cannot be changed.
pub fn set_value(handle: MPI_Info, key: &str, value: &str) -> Result<()> {
    change(handle, |info| info.set(key, value))?
}

/// A key of the program's.
pub struct KeyArgument<'a>(&'a [u8]);

impl<'a> Argument<'a, *const c_char> for KeyArgument<'a> {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: argument rule 1: the call passes `from`, and the call outlives the result.
        unsafe { Argument::of(from) }.map(Self).map_err(|_: Error| Error::InfoKey("NULL"))
    }
}

/// A value of the program's.
pub struct ValueArgument<'a>(&'a [u8]);

impl<'a> Argument<'a, *const c_char> for ValueArgument<'a> {
    unsafe fn of(from: *const c_char) -> Result<Self> {
        // SAFETY: argument rule 1: the call passes `from`, and the call outlives the result.
        unsafe { Argument::of(from) }.map(Self).map_err(|_: Error| Error::InfoValue("NULL"))
    }
}

fn value(info: MPI_Info, key: &KeyArgument<'_>) -> Result<Option<Vec<u8>>> {
    read(info, |info| info.get(key.0).map(|value| value.map(<[u8]>::to_vec)))?
}

/// A function that gives an info object gives its handle, which is the program's to free.
impl Given<MPI_Info> for Info {
    fn given(self) -> Result<MPI_Info> {
        hand_out(self)
    }
}

/// MPI_Info_create.
pub fn create() -> Result<Info> {
    Ok(Info::new())
}

/// MPI_Info_create_env: the same pairs as MPI_INFO_ENV. What the program's arguments say is taken from `argv`.
pub fn create_env(argv: Arguments<'_>) -> Result<Info> {
    let mut copy = read(MPI_INFO_ENV, Clone::clone)?;
    if let [command, rest @ ..] = &argv.0[..] {
        let _ = copy.set("command", *command);
        let _ = copy.set("argv", rest.join(&b' '));
    }
    Ok(copy)
}

/// MPI_Info_delete.
pub fn delete(info: MPI_Info, key: KeyArgument<'_>) -> Result<()> {
    change(info, |info| info.delete(key.0))?
}

/// MPI_Info_dup.
pub fn dup(info: MPI_Info) -> Result<Info> {
    read(info, Clone::clone)
}

/// MPI_Info_free.
pub fn free(info: InOut<'_, MPI_Info>) -> Result<()> {
    if info.get() == MPI_INFO_ENV {
        return Err(Error::Info("MPI_INFO_ENV cannot be freed"));
    }
    TABLE.remove(info.get()).ok_or(Error::Info("no such object; was it freed already?"))?;
    info.set(MPI_INFO_NULL);
    Ok(())
}

/// MPI_Info_get, deprecated since MPI 4.0: `room` counts without the terminating zero.
pub fn get(
    info: MPI_Info,
    key: KeyArgument<'_>,
    room: c_int,
    to: Letters<'_>,
    flag: Out<'_, c_int>,
) -> Result<()> {
    let room = usize::try_from(room).map_err(|_| Error::Arg("valuelen is negative"))? + 1;
    to.check()?;
    let found = value(info, &key)?;
    if let Some(found) = &found {
        // SAFETY: MPI 4.1 §9: the program gives room for `valuelen + 1` bytes.
        unsafe { to.write(room, found) }?;
    }
    flag.put(found.is_some())
}

/// MPI_Info_get_string: `length` counts the terminating zero; it comes back as what the value needs.
pub fn get_string(
    info: MPI_Info,
    key: KeyArgument<'_>,
    length: InOut<'_, c_int>,
    to: Letters<'_>,
    flag: Out<'_, c_int>,
) -> Result<()> {
    let room = usize::try_from(length.get()).map_err(|_| Error::Arg("buflen is negative"))?;
    if room > 0 {
        to.check()?;
    }
    let found = value(info, &key)?;
    if let Some(found) = &found {
        if room > 0 {
            // SAFETY: MPI 5.0 §10: the program gives room for `buflen` bytes.
            unsafe { to.write(room, found) }?;
        }
        length.set(found.len() as c_int + 1);
    }
    flag.put(found.is_some())
}

/// MPI_Info_get_nkeys.
pub fn keys(info: MPI_Info) -> Result<usize> {
    read(info, Info::len)
}

/// MPI_Info_get_nthkey: the key has room for MPI_MAX_INFO_KEY bytes.
pub fn key(info: MPI_Info, n: c_int, to: Letters<'_>) -> Result<()> {
    let at = usize::try_from(n).map_err(|_| Error::Arg("n is negative"))?;
    let found = read(info, |info| info.key(at).map(<[u8]>::to_vec))?;
    let found = found.ok_or(Error::Arg("n is not below the number of keys"))?;
    // SAFETY: MPI 5.0 §10: the program gives room for MPI_MAX_INFO_KEY bytes.
    unsafe { to.write(MPI_MAX_INFO_KEY as usize, &found) }
}

/// MPI_Info_get_valuelen, deprecated since MPI 4.0: the length without the terminating zero.
pub fn value_length(
    info: MPI_Info,
    key: KeyArgument<'_>,
    length: Out<'_, c_int>,
    flag: Out<'_, c_int>,
) -> Result<()> {
    let found = value(info, &key)?;
    if let Some(found) = &found {
        length.set(found.len() as c_int);
    }
    flag.put(found.is_some())
}

/// MPI_Info_set.
pub fn set(info: MPI_Info, key: KeyArgument<'_>, value: ValueArgument<'_>) -> Result<()> {
    change(info, |info| info.set(key.0, value.0))?
}
