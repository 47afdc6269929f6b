//! Sessions (MPI 5.0 §11.3): MPI for a part of a program that does not know of the others, beside the world model or without it.
//!
//! All use the one engine of the process ([`process`]). There are two process sets, `mpi://WORLD` and `mpi://SELF`; as in other
//! URIs, scheme and name may be in lower or upper case.

use super::{errhandler, group, info};
use crate::abi::*;
use crate::capi::args::{put, take, text};
use crate::capi::boundary::Source;
use crate::capi::types::{MPI_Errhandler, MPI_Group, MPI_Info, MPI_Session};
use crate::capi::{comms, process, strings};
use crate::comm::errhandler::{ErrhandlerSlot, Kind};
use crate::comm::{Comm, Group};
use crate::error::{Error, Result};
use crate::export;
use crate::handles::HandleTable;
use crate::info::Info;
use crate::sync::{AtomicBool, Ordering};
use crate::tool::event::delivery;
use core::ffi::{c_char, c_int};
use std::sync::Arc;

static SESSIONS: HandleTable<Session> = HandleTable::new();

/// What a session handle names.
#[derive(Debug)]
pub struct Session {
    /// What MPI_Session_get_info tells.
    info: Info,
    /// Who is told of its errors.
    pub errhandler: ErrhandlerSlot,
    /// MPI_Session_finalize has been called.
    is_over: AtomicBool,
}

/// The session of `handle`.
///
/// # Errors
/// [`Error::Session`] if there is none.
pub fn find(handle: MPI_Session) -> Result<Arc<Session>> {
    SESSIONS.get(handle).ok_or_else(|| unknown(handle))
}

fn unknown(handle: MPI_Session) -> Error {
    Error::Session(match handle {
        MPI_SESSION_NULL => "MPI_SESSION_NULL",
        _ => "no such session, or it has been finalized",
    })
}

const LEVEL: &str = "thread_level";
const LEVELS: [(&str, c_int); 4] = [
    ("MPI_THREAD_SINGLE", MPI_THREAD_SINGLE),
    ("MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED),
    ("MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED),
    ("MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE),
];

/// The thread level that the hints ask for (MPI 5.0 §11.3.1).
fn level_of(hints: &Info) -> Result<c_int> {
    let Some(value) = hints.get(LEVEL)? else { return Ok(MPI_THREAD_SINGLE) };
    let value = value.trim_ascii();
    let found = LEVELS.iter().find(|(name, _)| name.as_bytes() == value);
    found.map(|(_, level)| *level).ok_or(Error::InfoValue("thread_level is the name of no thread level"))
}

fn open(hints: &Info, handler: MPI_Errhandler) -> Result<MPI_Session> {
    let asked = level_of(hints)?;
    let errhandler = ErrhandlerSlot::new(errhandler::find(handler, Kind::Session)?);
    let level = process::open_session(asked)?;
    let mut info = Info::new();
    for (name, _) in LEVELS.iter().filter(|(_, of)| *of == level) {
        info.set(LEVEL, name)?;
    }
    match SESSIONS.insert(Arc::new(Session { info, errhandler, is_over: AtomicBool::new(false) })) {
        Some(handle) => Ok(handle),
        None => {
            process::close_session()?;
            Err(Error::NoMem("no session handle is left; finalize what is not needed".into()))
        }
    }
}

/// A process set: its name, and its group, found from the communicator of all ranks.
type Set = (&'static str, fn(&Comm) -> Group);

const SETS: [Set; 2] = [
    ("mpi://WORLD", |world| Group::run(0, world.size())),
    ("mpi://SELF", |world| Group::run(world.rank(), 1)),
];

/// The group of a process set, if there is one of that name.
fn set(name: &[u8]) -> Result<Option<Group>> {
    let found = SETS.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(_, group)| comms::world().map(group)).transpose()
}

export! {
    /// MPI 5.0 §11.3.1; legal at any time, from any thread. The level given is the one asked for; beside a world that
    /// MPI_Init has begun, not above that one's.
    fn MPI_Session_init(info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session)
        anytime raises(Source::NewSession(errhandler))
    {
        process::install_hooks();
        // SAFETY: an output argument.
        unsafe { put(session, MPI_SESSION_NULL) }?;
        let made = open(&info::hints(info)?, errhandler)?;
        delivery::deliver();
        // SAFETY: an output argument.
        unsafe { put(session, made) }
    }

    /// MPI 5.0 §11.3.1. Waits for no other process to finalize its own.
    fn MPI_Session_finalize(session: *mut MPI_Session) raises(take_or_null(session)) {
        // SAFETY: the address of a handle.
        let handle = unsafe { take(session) }?;
        // Relaxed: of two who finalize one session, which the standard forbids, one wins.
        if find(handle)?.is_over.swap(true, Ordering::Relaxed) {
            return Err(unknown(handle));
        }
        // While that may fail the session stays, for its error handler.
        process::close_session()?;
        SESSIONS.remove(handle);
        delivery::deliver();
        // SAFETY: the address of a handle.
        unsafe { put(session, MPI_SESSION_NULL) }
    }

    /// MPI 5.0 §11.3.3; the object is the caller's to free.
    fn MPI_Session_get_info(session: MPI_Session, info_used: *mut MPI_Info) raises(Source::Session(session)) {
        let hints = find(session)?.info.clone();
        // SAFETY: an output argument.
        unsafe { put(info_used, info::hand_out(hints)?) }
    }

    /// MPI 5.0 §11.3.2. No hint changes what process sets there are.
    fn MPI_Session_get_num_psets(session: MPI_Session, info: MPI_Info, npset_names: *mut c_int)
        raises(Source::Session(session))
    {
        find(session)?;
        info::hints(info)?;
        // SAFETY: an output argument.
        unsafe { put(npset_names, SETS.len() as c_int) }
    }

    /// MPI 5.0 §11.3.2: `pset_len` counts the terminating zero; with 0, only the length is told.
    fn MPI_Session_get_nth_pset(
        session: MPI_Session, info: MPI_Info, n: c_int, pset_len: *mut c_int, pset_name: *mut c_char,
    ) raises(Source::Session(session)) {
        find(session)?;
        info::hints(info)?;
        let found = usize::try_from(n).ok().and_then(|n| SETS.get(n));
        let (name, _) = found.ok_or(Error::Arg("n is not below the number of process sets"))?;
        // SAFETY: the address of a number.
        let room = usize::try_from(unsafe { take(pset_len) }?);
        let room = room.map_err(|_| Error::Arg("pset_len is negative"))?;
        if room > 0 {
            let name_out = crate::nonnull!(pset_name)?;
            // SAFETY: not null, and the caller gives `pset_len` bytes.
            unsafe { strings::write(name_out, room, name.as_bytes()) };
        }
        // SAFETY: the address of a number.
        unsafe { put(pset_len, name.len() as c_int + 1) }
    }

    /// MPI 5.0 §11.3.3: `mpi_size`. The object is the caller's to free.
    fn MPI_Session_get_pset_info(session: MPI_Session, pset_name: *const c_char, info: *mut MPI_Info)
        raises(Source::Session(session))
    {
        find(session)?;
        // SAFETY: a string argument.
        let group = set(unsafe { text(pset_name) }?)?.ok_or(Error::Arg("no process set has that name"))?;
        let mut facts = Info::new();
        facts.set("mpi_size", group.size().to_string())?;
        // SAFETY: an output argument.
        unsafe { put(info, info::hand_out(facts)?) }
    }

    /// MPI 5.0 §7.3.2: MPI_GROUP_NULL if there is no such process set.
    fn MPI_Group_from_session_pset(
        session: MPI_Session, pset_name: *const c_char, newgroup: *mut MPI_Group,
    ) raises(Source::Session(session)) {
        // SAFETY: an output argument.
        unsafe { put(newgroup, MPI_GROUP_NULL) }?;
        find(session)?;
        // SAFETY: a string argument.
        match set(unsafe { text(pset_name) }?)? {
            // SAFETY: an output argument.
            Some(found) => unsafe { put(newgroup, group::insert(found)?) },
            None => Ok(()),
        }
    }
}

/// Where an error of a function that takes a session's address is raised.
fn take_or_null(session: *const MPI_Session) -> Source {
    // SAFETY: the address of a handle.
    Source::Session(unsafe { take(session) }.unwrap_or(MPI_SESSION_NULL))
}
