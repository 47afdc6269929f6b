//! Sessions (MPI 5.0 §11.3): MPI for a part of a program that does not know of the others,
//! besides the world model or without it.
//!
//! All use the one engine of the process ([`process`]). There are two process sets, `mpi://WORLD` and `mpi://SELF`; as
//! in other URIs, scheme and name may be in lower or upper case.

use super::{errhandler, group, info, memory_kinds};
use crate::abi::*;
use crate::arguments::{InOut, Letters};
use crate::boundary::ErrorSource;
use crate::check;
use crate::comm::{Comm, Group, OfSession};
use crate::engine::Buffers;
use crate::errhandler::{ErrhandlerKind, ErrhandlerSlot};
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::info::Info;
use crate::sync::{AtomicBool, Ordering};
use crate::tool::event::delivery;
use crate::types::{MPI_Errhandler, MPI_Group, MPI_Session};
use crate::{comms, process};
use core::ffi::c_int;
use std::sync::Arc;

static SESSIONS: HandleTable<Session> = HandleTable::new(HandleKind::Session);

/// What a session handle names.
#[derive(Debug)]
pub struct Session {
    /// What MPI_Session_get_info returns.
    info: Info,
    /// The error handler of the session.
    pub errhandler: ErrhandlerSlot,
    /// What it has for what comes from it.
    shared: Arc<OfSession>,
    /// MPI_Session_finalize has been called.
    is_over: AtomicBool,
}

impl Session {
    /// Its attached buffer.
    pub fn buffers(&self) -> &Buffers {
        &self.shared.buffers
    }
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

/// The thread level that the hints ask for (MPI 5.0 §11.3.1); without one, the highest.
fn level_of(hints: &Info) -> Result<c_int> {
    let Some(value) = hints.get(LEVEL)? else { return Ok(MPI_THREAD_MULTIPLE) };
    let value = value.trim_ascii();
    let found = LEVELS.iter().find(|(name, _)| name.as_bytes() == value);
    found.map(|(_, level)| *level).ok_or(Error::InfoValue("thread_level is the name of no thread level"))
}

fn open(hints: &Info, handler: MPI_Errhandler) -> Result<MPI_Session> {
    let asked = level_of(hints)?;
    let errhandler = ErrhandlerSlot::new(errhandler::find(handler, ErrhandlerKind::Session)?);
    let level = process::open_session(asked)?;
    info::note_environment();
    let mut info = Info::new();
    for (name, _) in LEVELS.iter().filter(|(_, of)| *of == level) {
        info.set(LEVEL, name)?;
    }
    let kinds = memory_kinds::of_session(hints.get(memory_kinds::KEY)?);
    info.set(memory_kinds::KEY, &kinds)?;
    let session = Session {
        info,
        errhandler,
        shared: Arc::new(OfSession { buffers: Buffers::default(), kinds }),
        is_over: AtomicBool::new(false),
    };
    match SESSIONS.insert(Arc::new(session)) {
        Err(error) => {
            process::close_session()?;
            Err(error)
        }
        handle => handle,
    }
}

/// A process set: its name, and its group, found from the communicator of all ranks.
type Set = (&'static str, fn(&Comm) -> Group);

const SETS: [Set; 2] = [
    ("mpi://WORLD", |world| world.group().clone()),
    ("mpi://SELF", |world| Group::run(world.group().world_rank(world.rank()), 1)),
];

/// The group of a process set, if there is one of that name.
pub(super) fn set(name: &[u8]) -> Result<Option<Group>> {
    let found = SETS.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(_, group)| comms::world().map(group)).transpose()
}

/// MPI_Session_init: legal from any thread. The level given is the one asked for; with a world that MPI_Init has begun,
/// not above that one's.
pub fn init(hints: Info, handler: MPI_Errhandler) -> Result<MPI_Session> {
    process::install_hooks();
    let made = open(&hints, handler)?;
    delivery::deliver();
    Ok(made)
}

/// Where errors of MPI_Session_init are raised, which may be the first call of all.
pub fn source_of_new(handler: MPI_Errhandler) -> ErrorSource {
    process::install_hooks();
    ErrorSource::NewSession(handler)
}

/// MPI_Session_finalize. Waits for no other process to finalize its own.
pub fn finalize(session: InOut<'_, MPI_Session>) -> Result<()> {
    let handle = session.get();
    // Relaxed: of two threads that finalize one session, which the standard forbids, one wins.
    let found = find(handle)?;
    if found.is_over.swap(true, Ordering::Relaxed) {
        return Err(unknown(handle));
    }
    // Where that fails the session stays, for its error handler; it may be finalized again.
    let detached = process::engine().and_then(|engine| engine.detach_buffer(found.buffers()));
    let (start, _) = detached.inspect_err(|_| found.is_over.store(false, Ordering::Relaxed))?;
    if check::is_on() {
        check::detached(start.addr());
    }
    process::close_session()?;
    SESSIONS.remove(handle);
    delivery::deliver();
    session.set(MPI_SESSION_NULL);
    Ok(())
}

/// MPI_Session_get_info; the object is the caller's to free.
pub fn used(session: Arc<Session>) -> Result<Info> {
    Ok(session.info.clone())
}

/// MPI_Session_get_num_psets. No hint changes what process sets there are.
pub fn sets(_: Arc<Session>, _: Info) -> Result<usize> {
    Ok(SETS.len())
}

/// MPI_Session_get_nth_pset: `length` counts the terminating zero; with 0, only the length is given.
pub fn nth_set(_: Arc<Session>, _: Info, n: c_int, length: InOut<'_, c_int>, to: Letters<'_>) -> Result<()> {
    let found = usize::try_from(n).ok().and_then(|n| SETS.get(n));
    let (name, _) = found.ok_or(Error::Arg("n is not below the number of process sets"))?;
    let room = usize::try_from(length.get()).map_err(|_| Error::Arg("pset_len is negative"))?;
    if room > 0 {
        // SAFETY: MPI 5.0 §11.3.2: room for `length` bytes.
        unsafe { to.write(room, name.as_bytes()) }?;
    }
    length.set(name.len() as c_int + 1);
    Ok(())
}

/// MPI_Session_get_pset_info: `mpi_size`. The object is the caller's to free.
pub fn set_info(_: Arc<Session>, name: &[u8]) -> Result<Info> {
    let group = set(name)?.ok_or(Error::Arg("no process set has that name"))?;
    let mut facts = Info::new();
    facts.set("mpi_size", group.size().to_string())?;
    Ok(facts)
}

/// MPI_Group_from_session_pset: MPI_GROUP_NULL if there is no such process set.
pub fn group_of_set(session: Arc<Session>, name: &[u8]) -> Result<MPI_Group> {
    let group = set(name)?.map(|group| group.of_session(Some(&session.shared)));
    group.map_or(Ok(MPI_GROUP_NULL), group::insert)
}
