//! Processes that come later, and programs that meet (MPI 5.0 §11.8 to §11.10). What happens, `crate::dynamic` says.

use super::comm_create::{admit, making, only_within};
use super::spawn_events::SpawnSpan;
use crate::abi::*;
use crate::arguments::{Argument, Letters, Room, RootOnly, Words};
use crate::check;
use crate::coll::{BlockingTransport, Purpose, agreement, bcast};
use crate::comm::Comm;
use crate::comms;
use crate::dynamic::meeting::meet;
use crate::dynamic::{
    Answer, Bridge, Launcher, OtherEnd, Request, Scope, elsewhere, join as joining, spawn as programs,
};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::process::engine;
use crate::shm::{self, Contact};
use crate::sync::{AtomicUsize, Ordering};
use crate::types::{MPI_Comm, MPI_Info};
use core::ffi::{c_char, c_int};
use core::ops::Range;
use std::sync::Arc;
use std::time::Duration;

type Text<'a> = RootOnly<'a, *const c_char>;

/// The handle of the parent's intercommunicator; MPI_COMM_NULL for a process that was not spawned.
static PARENT: AtomicUsize = AtomicUsize::new(MPI_COMM_NULL);

/// What MPI_Init does in a spawned process: meets those that have spawned it.
///
/// # Errors
/// [`Error::RankFailed`] if they have ended meanwhile.
pub fn meet_parent() -> Result<()> {
    let Some(contact) = shm::parent()? else { return Ok(()) };
    let (engine, world) = (engine()?, comms::get(MPI_COMM_WORLD)?);
    let bridge = if world.rank() == 0 { Some(Bridge::open(engine, contact, false)?) } else { None };
    let handle = admit(meet(engine, &world, 0, bridge.as_ref())?, None, &world)?;
    comms::get(handle)?.set_name(b"MPI_COMM_PARENT");
    engine.job().roster().entry(engine.rank()).end_meeting();
    // Relaxed: the thread that initialises MPI stores it, and others learn from that thread that MPI is there.
    PARENT.store(handle, Ordering::Relaxed);
    Ok(())
}

/// MPI_Comm_get_parent: MPI_COMM_NULL once the communicator has been freed.
pub fn parent() -> Result<MPI_Comm> {
    // Relaxed: see `meet_parent`.
    Ok(PARENT.load(Ordering::Relaxed))
}

/// A communicator's handle is about to be freed.
pub fn comm_freed(handle: MPI_Comm) {
    // Relaxed: see `meet_parent`.
    let _ = PARENT.compare_exchange(handle, MPI_COMM_NULL, Ordering::Relaxed, Ordering::Relaxed);
}

fn ask(engine: &Engine, request: &Request, limit: Option<Duration>) -> Result<Option<Answer>> {
    Launcher::of(engine)?.ask(request, limit)?.map(Answer::checked).transpose()
}

/// Asks for what is there at once, and gives the name in the answer.
fn name(request: &Request) -> Result<Vec<u8>> {
    Ok(ask(engine()?, request, None)?.map(|answer| answer.text).unwrap_or_default())
}

/// Gives all members the root's word: an error class, or numbers. Only the root has an error's text.
fn share(comm: &Comm, root: u32, outcome: Option<Result<Vec<u32>>>) -> Result<Vec<u32>> {
    let transport = BlockingTransport::new(engine()?, comm, Purpose::Create);
    let class =
        outcome.as_ref().map_or(0, |outcome| outcome.as_ref().map_or_else(Error::class, |_| MPI_SUCCESS));
    let mut numbers = match &outcome {
        Some(Ok(numbers)) => numbers.clone(),
        _ => Vec::new(),
    };
    let mut head = [class.to_le_bytes(), (numbers.len() as u32).to_le_bytes()].concat();
    transport.run(bcast(&transport, &mut head, root as usize))?;
    let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|i| head[at + i]));
    let (class, length) = (word(0).cast_signed(), word(4) as usize);
    if let Some(Err(error)) = outcome {
        return Err(error);
    }
    if class != MPI_SUCCESS {
        return Err(Error::Dynamic {
            class,
            what: format!("rank {root}, the root of this call, could not do it"),
        });
    }
    numbers.resize(length, 0);
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    transport.run(bcast(&transport, &mut bytes, root as usize))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

/// Connects the group of `comm` with that of the process at the other end. At the root, `outcome` has that
/// process. `counted` as for a bridge.
fn connected(
    comm: &Comm,
    root: u32,
    outcome: Option<Result<impl Into<OtherEnd>>>,
    counted: bool,
) -> Result<MPI_Comm> {
    let engine = engine()?;
    let open = |other| Ok(Bridge::open(engine, other, counted)?.tied_to(comm));
    let bridge = outcome.map(|met| met.and_then(open));
    let word = bridge.as_ref().map(|bridge| bridge.as_ref().map(|_| vec![]).map_err(Clone::clone));
    share(comm, root, word)?;
    let bridge = bridge.transpose()?;
    admit(meet(engine, comm, root, bridge.as_ref())?, None, comm)
}

fn checked_root(comm: &Comm, root: c_int) -> Result<u32> {
    only_within(comm)?;
    let size = comm.size();
    u32::try_from(root).ok().filter(|root| *root < size).ok_or(Error::Root { root, size: size as i32 })
}

/// What members must give alike in a call with this root.
fn of_root(root: u32) -> (&'static str, impl FnOnce() -> String) {
    ("roots", move || format!("root {root}"))
}

/// One program of a spawn as C has it.
struct Asked<'a> {
    command: &'a [u8],
    arguments: Vec<&'a [u8]>,
    most: c_int,
    hints: MPI_Info,
}

/// What the root asks the launcher for.
fn request(asked: &[Asked<'_>], places: u32) -> Result<Request> {
    let mut list = Vec::new();
    for Asked { command, arguments, most, hints } in asked {
        let most = u32::try_from(*most).map_err(|_| Error::Count((*most).into()))?;
        let hints = super::info::hints(*hints)?;
        list.push(programs::program(command, arguments, most, places, &hints, &super::env::host_name())?);
    }
    Ok(Request::Spawn(programs::request(list)))
}

/// What all spawns do. `asked` is the root's; the results are an intercommunicator, and an error code for each process.
fn spawned(
    comm: &Comm,
    root: u32,
    asked: Option<Result<Vec<Asked<'_>>>>,
    codes: RootOnly<'_, *mut c_int>,
) -> Result<MPI_Comm> {
    let engine = engine()?;
    let wanted = asked.as_ref().map(|asked| {
        let each = asked.iter().flatten().map(|asked| u32::try_from(asked.most).unwrap_or(0));
        each.fold(0, u32::saturating_add)
    });
    let span = SpawnSpan::begin(comm, root, wanted);
    let made = spawned_now(engine, comm, root, asked, codes);
    span.end(engine, made.as_ref().ok());
    made
}

fn spawned_now(
    engine: &'static Engine,
    comm: &Comm,
    root: u32,
    asked: Option<Result<Vec<Asked<'_>>>>,
    codes: RootOnly<'_, *mut c_int>,
) -> Result<MPI_Comm> {
    let mut most = Vec::new();
    let started = asked.map(|asked| {
        let asked = asked?;
        // A negative number is an error, and has no codes.
        most = asked.iter().map(|asked| u32::try_from(asked.most).unwrap_or(0)).collect();
        agreement::check_whole(engine, comm)?;
        let answer = ask(engine, &request(&asked, engine.job().places())?, None)?;
        Started::of(&answer.unwrap_or_default())
    });
    let places = started.as_ref().and_then(|started| started.as_ref().ok()).map(Started::places);
    let made = met(comm, root, &most, started, codes);
    if let Some(places) = places.filter(|_| made.is_err()) {
        // Those that have started well wait in MPI_Init; what becomes of them is nothing to us any more.
        let known = places.start..places.end.min(engine.job().places_in_use());
        known.for_each(|place| engine.job().roster().entry(place).refuse_meeting());
    }
    made
}

/// The processes of a spawn that the launcher has started.
struct Started {
    first: Contact,
    /// How many of each program.
    each: Vec<u32>,
}

impl Started {
    fn of(answer: &Answer) -> Result<Self> {
        match &answer.numbers[..] {
            &[place, context, ref each @ ..] => {
                Ok(Self { first: Contact { place, context }, each: each.to_vec() })
            }
            _ => Err(Error::Intern("a spawn without an answer".into())),
        }
    }

    fn processes(&self) -> u32 {
        self.each.iter().fold(0, |sum, number| sum.saturating_add(*number))
    }

    fn places(&self) -> Range<u32> {
        self.first.place..self.first.place.saturating_add(self.processes())
    }

    fn other_end(&self) -> OtherEnd {
        OtherEnd { contact: self.first, processes: self.processes() }
    }
}

/// Meets the processes that the launcher has started. `most` and `started` are the root's: how many each program was to
/// have, and what has become of the spawn.
fn met(
    comm: &Comm,
    root: u32,
    most: &[u32],
    started: Option<Result<Started>>,
    codes: RootOnly<'_, *mut c_int>,
) -> Result<MPI_Comm> {
    // The numbers of each program's processes, wished and started, go to all members even where the spawn fails.
    let table = started.as_ref().map(|started| {
        let each: &[u32] = started.as_ref().map(|started| &started.each[..]).unwrap_or_default();
        let rows = most.iter().enumerate();
        Ok(rows.flat_map(|(at, most)| [*most, each.get(at).copied().unwrap_or(0)]).collect())
    });
    let table = share(comm, root, table)?;
    let total = table.as_chunks::<2>().0.iter().map(|[most, _]| *most as usize).sum();
    // SAFETY: it has an element for each process that was asked for, or is MPI_ERRCODES_IGNORE, which is NULL.
    let codes: Option<Room<'_, c_int>> = unsafe { codes.elements(total) }.ok();
    let report = |good: bool| {
        let of_program = |[most, started]: &[u32; 2]| {
            let (most, started) = (*most, *started);
            (0..most).map(move |at| if good && at < started { MPI_SUCCESS } else { MPI_ERR_SPAWN })
        };
        codes.iter().for_each(|codes| codes.fill(table.as_chunks::<2>().0.iter().flat_map(of_program)));
    };
    let first = started.map(|started| started.map(|started| started.other_end()));
    let connected = connected(comm, root, first, false).map_err(|error| match error {
        Error::RankFailed { rank, how } => Error::Dynamic {
            class: MPI_ERR_SPAWN,
            what: format!("a spawned process, rank {rank}, has ended before all had called MPI_Init: {how}"),
        },
        Error::Comm(_) => Error::Dynamic {
            class: MPI_ERR_SPAWN,
            what: "a spawned process has ended before all had called MPI_Init".into(),
        },
        error => error,
    });
    report(connected.is_ok());
    connected
}

/// MPI_Comm_spawn. All but the root, the communicator and the codes are the root's alone.
pub fn spawn(
    command: Text<'_>,
    argv: RootOnly<'_, *mut *mut c_char>,
    most: c_int,
    hints: MPI_Info,
    root: c_int,
    comm: Arc<Comm>,
    codes: RootOnly<'_, *mut c_int>,
) -> Result<MPI_Comm> {
    let root = checked_root(&comm, root)?;
    let asked = (comm.rank() == root).then(|| {
        // SAFETY: this is the root.
        let (command, Words(arguments)) = unsafe { (command.get()?, argv.get()?) };
        Ok(vec![Asked { command, arguments, most, hints }])
    });
    making(&comm, of_root(root), || spawned(&comm, root, asked, codes))
}

/// MPI_Comm_spawn_multiple.
pub fn spawn_multiple(
    count: c_int,
    commands: RootOnly<'_, *mut *mut c_char>,
    argvs: RootOnly<'_, *mut *mut *mut c_char>,
    most: RootOnly<'_, *const c_int>,
    hints: RootOnly<'_, *const MPI_Info>,
    root: c_int,
    comm: Arc<Comm>,
    codes: RootOnly<'_, *mut c_int>,
) -> Result<MPI_Comm> {
    let root = checked_root(&comm, root)?;
    let asked = (comm.rank() == root).then(|| {
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let count = count.ok_or(Error::Arg("the number of programs to spawn is not positive"))?;
        // SAFETY: this is the root, where each array has an element for each program.
        let (commands, most, hints) = unsafe {
            let commands: &[*mut c_char] = commands.elements(count)?;
            let (most, hints): (&[c_int], &[MPI_Info]) = (most.elements(count)?, hints.elements(count)?);
            (commands, most, hints)
        };
        // SAFETY: this is the root; MPI_ARGVS_NULL is NULL.
        let argvs: Option<&[*mut *mut c_char]> = unsafe { argvs.elements(count) }.ok();
        let asked = |at: usize| {
            // SAFETY: these are strings, and lists of strings that end with NULL (argument rule 1).
            let (command, Words(arguments)) = unsafe {
                let argv = argvs.map_or(core::ptr::null_mut(), |argvs| argvs[at]);
                (Argument::of(commands[at].cast_const())?, Words::of(argv)?)
            };
            Ok(Asked { command, arguments, most: most[at], hints: hints[at] })
        };
        (0..count).map(asked).collect()
    });
    making(&comm, of_root(root), || spawned(&comm, root, asked, codes))
}

/// MPI_Open_port. No info key is known.
pub fn open_port(_: Info, port: Letters<'_>) -> Result<()> {
    let name = name(&Request::OpenPort)?;
    if check::is_on() {
        check::port_opened(&name);
    }
    // SAFETY: the standard asks for MPI_MAX_PORT_NAME bytes.
    unsafe { port.write(MPI_MAX_PORT_NAME as usize, &name) }
}

/// MPI_Close_port.
pub fn close_port(port: &[u8]) -> Result<()> {
    name(&Request::ClosePort(port.to_vec()))?;
    if check::is_on() {
        check::port_closed(port);
    }
    Ok(())
}

/// Waits at a port for the other side, as MPI_Comm_accept and MPI_Comm_connect do.
fn at_port(
    port: Text<'_>,
    hints: MPI_Info,
    (root, comm): (c_int, &Comm),
    request: fn(Vec<u8>) -> Request,
    limit: Option<Duration>,
) -> Result<MPI_Comm> {
    let root = checked_root(comm, root)?;
    making(comm, of_root(root), || {
        let met = (comm.rank() == root).then(|| {
            // SAFETY: this is the root.
            let port: &[u8] = unsafe { port.get() }?;
            let limit =
                programs::limit(&super::info::hints(hints)?)?.or(limit).filter(|limit| !limit.is_zero());
            let (engine, request) = (engine()?, request(port.to_vec()));
            let elsewhere = elsewhere::job_of(port).filter(|job| *job != engine.job().header().job_id());
            let met = match elsewhere {
                Some(job) if matches!(request, Request::Connect(_)) => {
                    elsewhere::connect_at(engine, job, port, limit)?
                }
                _ => ask(engine, &request, limit)?.map(|answer| answer.contact()).transpose()?,
            };
            met.ok_or_else(|| Error::Dynamic {
                class: MPI_ERR_PORT,
                what: format!(
                    "nobody has come to the port {:?} within {} s",
                    String::from_utf8_lossy(port),
                    limit.unwrap_or_default().as_secs_f64()
                ),
            })
        });
        connected(comm, root, met, true)
    })
}

/// MPI_Comm_accept. The info key `timeout` has the seconds to wait for a connection at most.
pub fn accept(port: Text<'_>, hints: MPI_Info, root: c_int, comm: Arc<Comm>) -> Result<MPI_Comm> {
    at_port(port, hints, (root, &comm), Request::Accept, None)
}

/// MPI_Comm_connect. It waits for MPI_Comm_accept as long as the info key `timeout` says, in seconds, or else the
/// control variable `connect_timeout`; 0 is for ever.
pub fn connect(port: Text<'_>, hints: MPI_Info, root: c_int, comm: Arc<Comm>) -> Result<MPI_Comm> {
    let usual = engine()?.config().connect_timeout();
    at_port(port, hints, (root, &comm), Request::Connect, Some(usual))
}

/// MPI_Publish_name. A name is known to all programs of this user on this machine, or to this job's alone if the info
/// key `scope` says so, and ends with this process.
pub fn publish(service: &[u8], hints: Info, port: &[u8]) -> Result<()> {
    let scope = programs::scope(&hints)?;
    name(&Request::Publish(service.to_vec(), port.to_vec(), scope)).map(drop)
}

/// MPI_Unpublish_name.
pub fn unpublish(service: &[u8], _: Info, port: &[u8]) -> Result<()> {
    name(&Request::Unpublish(service.to_vec(), port.to_vec())).map(drop)
}

/// MPI_Lookup_name: in this job first, and in it alone if the info key `scope` says so.
pub fn look_up(service: &[u8], hints: Info, port: Letters<'_>) -> Result<()> {
    let scope = programs::scope(&hints)?;
    let name = match name(&Request::LookUp(service.to_vec())) {
        Err(Error::Dynamic { class: MPI_ERR_NAME, .. }) if scope == Scope::User => {
            elsewhere::look_up(engine()?, service)?
        }
        known => known?,
    };
    // SAFETY: the standard asks for MPI_MAX_PORT_NAME bytes.
    unsafe { port.write(MPI_MAX_PORT_NAME as usize, &name) }
}

/// MPI_Comm_join: MPI_COMM_NULL if the process at the other end of the socket belongs to a job that this one cannot
/// meet.
pub fn join(socket: c_int) -> Result<MPI_Comm> {
    // The process itself is there with sessions alone, too, where MPI_COMM_SELF is not.
    let (engine, itself) = (engine()?, comms::itself()?);
    let Some(contact) = joining::meet_over(engine, socket)? else { return Ok(MPI_COMM_NULL) };
    connected(itself, 0, Some(Ok(contact)), true)
}
