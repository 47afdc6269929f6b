//! Info objects (MPI 5.0 §10). All legal at any time, from any thread.

use crate::abi::*;
use crate::capi::types::MPI_Info;
use crate::capi::{args, strings};
use crate::error::{Error, Result};
use crate::handles::HandleTable;
use crate::info::Info;
use crate::{export, nonnull};
use core::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

static TABLE: HandleTable<Mutex<Info>> = HandleTable::new();
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
    TABLE.insert(Arc::new(Mutex::new(info))).ok_or_else(|| Error::NoMem("too many info objects".into()))
}

/// What MPI_INFO_ENV holds, as MPI_Init found it; the first call wins (MPI 5.0 §11.2.1). Before it, only what the system knows.
pub fn set_environment(info: Info) {
    let _ = STARTED.set(info);
}

/// How this process was started, as far as the system tells: `command`, `argv`, `wdir`, `host`, `arch`.
#[must_use]
pub fn environment() -> Info {
    let mut info = Info::new();
    let mut arguments = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
    let facts = [
        ("command", arguments.next()),
        ("argv", Some(arguments.collect::<Vec<_>>().join(" "))),
        ("wdir", std::env::current_dir().ok().map(|d| d.to_string_lossy().into_owned())),
        ("host", Some(super::env::host_name())),
        ("arch", Some(std::env::consts::ARCH.to_owned())),
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
    TABLE.get(handle).ok_or(Error::Info("no such object; was it freed?"))
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

/// The value of a C key, and whether there is one.
fn value(info: MPI_Info, key: *const c_char) -> Result<Option<Vec<u8>>> {
    // SAFETY: the user passes a zero-terminated string.
    let key = unsafe { args::text(key) }.map_err(|_| Error::InfoKey("NULL"))?;
    read(info, |info| info.get(key).map(|value| value.map(<[u8]>::to_vec)))?
}

export! {
    /// MPI 5.0 §10.
    fn MPI_Info_create(info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let info = nonnull!(info)?;
        // SAFETY: not null, and a result of this function.
        unsafe { *info = hand_out(Info::new())? };
        Ok(())
    }

    /// MPI 5.0 §10: the same pairs as MPI_INFO_ENV. What the program's arguments say is taken from `argv`.
    fn MPI_Info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let info = nonnull!(info)?;
        let mut copy = read(MPI_INFO_ENV, Clone::clone)?;
        if argc > 0 && !argv.is_null() {
            // SAFETY: the user passes the `argc` strings of `main`'s `argv`.
            let words = (0..argc as usize).map(|i| unsafe { args::text(*argv.add(i)) });
            let words = words.collect::<Result<Vec<&[u8]>>>()?;
            let _ = copy.set("command", words[0]);
            let _ = copy.set("argv", words[1..].join(&b' '));
        }
        // SAFETY: not null, and a result of this function.
        unsafe { *info = hand_out(copy)? };
        Ok(())
    }

    /// MPI 5.0 §10.
    fn MPI_Info_delete(info: MPI_Info, key: *const c_char) anytime raises(MPI_COMM_SELF) {
        // SAFETY: the user passes a zero-terminated string.
        let key = unsafe { args::text(key) }.map_err(|_| Error::InfoKey("NULL"))?;
        change(info, |info| info.delete(key))?
    }

    /// MPI 5.0 §10.
    fn MPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let newinfo = nonnull!(newinfo)?;
        let copy = read(info, Clone::clone)?;
        // SAFETY: not null, and a result of this function.
        unsafe { *newinfo = hand_out(copy)? };
        Ok(())
    }

    /// MPI 5.0 §10.
    fn MPI_Info_free(info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let info = nonnull!(info)?;
        // SAFETY: not null; the user passes a handle to be read and replaced.
        let handle = unsafe { &mut *info };
        if *handle == MPI_INFO_ENV {
            return Err(Error::Info("MPI_INFO_ENV cannot be freed"));
        }
        TABLE.remove(*handle).ok_or(Error::Info("no such object; was it freed already?"))?;
        *handle = MPI_INFO_NULL;
        Ok(())
    }

    /// Deprecated since MPI 4.0: `valuelen` counts without the terminating zero.
    fn MPI_Info_get(info: MPI_Info, key: *const c_char, valuelen: c_int, value_out: *mut c_char, flag: *mut c_int)
        anytime raises(MPI_COMM_SELF)
    {
        let flag = nonnull!(flag)?;
        let room = usize::try_from(valuelen).map_err(|_| Error::Arg("valuelen is negative"))? + 1;
        let found = value(info, key)?;
        if let Some(found) = &found {
            let value_out = nonnull!(value_out)?;
            // SAFETY: the user gives `valuelen + 1` bytes.
            unsafe { strings::write(value_out, room, found) };
        }
        // SAFETY: not null, and a result of this function.
        unsafe { *flag = c_int::from(found.is_some()) };
        Ok(())
    }

    /// MPI 5.0 §10: `buflen` counts the terminating zero; it comes back as what the value needs.
    fn MPI_Info_get_string(
        info: MPI_Info, key: *const c_char, buflen: *mut c_int, value_out: *mut c_char, flag: *mut c_int
    ) anytime raises(MPI_COMM_SELF) {
        let (buflen, flag) = (nonnull!(buflen)?, nonnull!(flag)?);
        // SAFETY: not null, and an argument of this function.
        let room = usize::try_from(unsafe { *buflen }).map_err(|_| Error::Arg("buflen is negative"))?;
        let found = value(info, key)?;
        if let Some(found) = &found {
            if room > 0 {
                let value_out = nonnull!(value_out)?;
                // SAFETY: the user gives `buflen` bytes.
                unsafe { strings::write(value_out, room, found) };
            }
            // SAFETY: not null, and a result of this function.
            unsafe { *buflen = found.len() as c_int + 1 };
        }
        // SAFETY: not null, and a result of this function.
        unsafe { *flag = c_int::from(found.is_some()) };
        Ok(())
    }

    /// MPI 5.0 §10.
    fn MPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let nkeys = nonnull!(nkeys)?;
        let count = read(info, Info::len)?;
        // SAFETY: not null, and a result of this function.
        unsafe { *nkeys = count as c_int };
        Ok(())
    }

    /// MPI 5.0 §10: `key` has room for MPI_MAX_INFO_KEY bytes.
    fn MPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) anytime raises(MPI_COMM_SELF) {
        let key = nonnull!(key)?;
        let at = usize::try_from(n).map_err(|_| Error::Arg("n is negative"))?;
        let found = read(info, |info| info.key(at).map(<[u8]>::to_vec))?;
        let found = found.ok_or(Error::Arg("n is not below the number of keys"))?;
        // SAFETY: the user gives MPI_MAX_INFO_KEY bytes, and keys are shorter.
        unsafe { strings::write(key, MPI_MAX_INFO_KEY as usize, &found) };
        Ok(())
    }

    /// Deprecated since MPI 4.0: the length without the terminating zero.
    fn MPI_Info_get_valuelen(info: MPI_Info, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int)
        anytime raises(MPI_COMM_SELF)
    {
        let (valuelen, flag) = (nonnull!(valuelen)?, nonnull!(flag)?);
        let found = value(info, key)?;
        if let Some(found) = &found {
            // SAFETY: not null, and a result of this function.
            unsafe { *valuelen = found.len() as c_int };
        }
        // SAFETY: not null, and a result of this function.
        unsafe { *flag = c_int::from(found.is_some()) };
        Ok(())
    }

    /// MPI 5.0 §10.
    fn MPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char) anytime raises(MPI_COMM_SELF) {
        // SAFETY: the user passes zero-terminated strings.
        let key = unsafe { args::text(key) }.map_err(|_| Error::InfoKey("NULL"))?;
        // SAFETY: as above.
        let value = unsafe { args::text(value) }.map_err(|_| Error::InfoValue("NULL"))?;
        change(info, |info| info.set(key, value))?
    }
}
