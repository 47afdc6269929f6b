//! Jobs that another launcher has started: how a process finds their launchers, and gets to know their memory.
//!
//! A launcher that has a port, a published name or a guest listens at a socket in the abstract namespace, whose name
//! has its user and the job's number: nothing is left behind of it. Both ends ask the kernel who is at the other one,
//! and talk to processes of their own user only.

use super::launcher::{Launcher, ask_at, pause};
use super::request::{BUSY, Request};
use crate::abi::{MPI_ERR_NAME, MPI_ERR_PORT};
use crate::coll::create::{Contexts, Name};
use crate::comm::Group;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::{Contact, Memory};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long another launcher may take to look a name up: one that has been stopped, as its job has, answers nothing.
const PROMPT: Duration = Duration::from_secs(5);

/// What the names of the sockets of this user's launchers begin with.
fn prefix() -> String {
    format!("perusal-{}-", geteuid().as_raw())
}

/// The address at which the launcher of a job listens.
///
/// # Errors
/// Those of the system.
pub fn address(job: u64) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new_abstract_name(format!("{}{job:016x}", prefix()).as_bytes())
}

/// Whether the process at the other end of a socket is of this process's user.
#[must_use]
pub fn is_of_own_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == geteuid())
}

/// The job whose number a port's name has; `None` for a name that no launcher gives.
#[must_use]
pub fn job_of(port: &[u8]) -> Option<u64> {
    let (job, number) = core::str::from_utf8(port).ok()?.strip_prefix("perusal:")?.split_once(':')?;
    number.parse::<u64>().ok()?;
    (job.len() == 16).then(|| u64::from_str_radix(job, 16).ok())?
}

/// Connects with the launcher of a job.
///
/// # Errors
/// Those of the system; `PERM` if another user listens there.
pub fn dial(job: u64) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &address(job)?)?;
    if is_of_own_user(&socket) { Ok(socket) } else { Err(Errno::PERM) }
}

fn no_port(port: &[u8], why: &str) -> Error {
    let port = String::from_utf8_lossy(&port[..port.len().min(64)]).into_owned();
    Error::Dynamic { class: MPI_ERR_PORT, what: format!("{port:?} {why}") }
}

/// Connects, as MPI_Comm_connect does, at the port of a job of another launcher: each of the two jobs gives the
/// processes of the other places. Returns the other process; `None` if `limit` has passed.
///
/// # Errors
/// [`Error::Dynamic`] if there is no such port, or one of the jobs has no room; those of progress.
pub fn connect_at(
    engine: &Engine,
    job: u64,
    port: &[u8],
    limit: Option<Duration>,
) -> Result<Option<Contact>> {
    let until = Until::after(limit);
    host(engine, job, port, until)?;
    wait_at_port(engine, job, port, until)
}

/// When somebody gives up; never for `None`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until(Option<Instant>);

impl Until {
    /// Never.
    pub(super) const NEVER: Self = Self(None);

    /// After that time, if there is a limit.
    pub(super) fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|until| until <= Instant::now())
    }

    /// How long it is until then, at least a moment.
    fn left(self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.0.map(|until| left(until).max(Duration::from_millis(1)))
    }
}

fn call(job: u64, port: &[u8]) -> Result<OwnedFd> {
    dial(job).map_err(|error| match error {
        Errno::CONNREFUSED | Errno::NOENT => {
            no_port(port, "is a port of a job that has ended, or of another machine")
        }
        Errno::PERM => no_port(port, "is a port of another user's job"),
        // As many connections wait as may.
        Errno::AGAIN => Error::Dynamic { class: BUSY, what: "a launcher takes no connection".into() },
        error => no_port(port, &format!("cannot be reached: {error}")),
    })
}

/// Does something again and again while a launcher cannot take a connection that it needs.
fn unless_busy<T>(
    engine: &Engine,
    port: &[u8],
    until: Until,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    loop {
        match attempt() {
            Err(Error::Dynamic { class: BUSY, .. }) if until.is_over() => return Err(late(port)),
            Err(Error::Dynamic { class: BUSY, .. }) => pause(engine)?,
            done => return done,
        }
    }
}

fn late(port: &[u8]) -> Error {
    no_port(port, "is of a job whose launcher does not answer")
}

/// Has the own job's launcher give the processes of the job that has a port places.
pub(super) fn host(engine: &Engine, job: u64, port: &[u8], until: Until) -> Result<()> {
    unless_busy(engine, port, until, || {
        let asked = ask_at(engine, call(job, port)?.as_fd(), &Request::Greet, None, until.left())?;
        let (answer, memory) = asked.ok_or_else(|| late(port))?;
        answer.checked()?;
        let memory = memory.ok_or_else(|| late(port))?;
        let hosted = Launcher::of(engine)?.ask_with(&Request::Host, Some(memory.as_fd()), None)?;
        hosted.map(|(answer, _)| answer.checked()).transpose().map(drop)
    })
}

/// Waits at a port of another job, once [`host`] has given its processes places. Returns the process that accepts
/// there; `None` if the time is over.
pub(super) fn wait_at_port(engine: &Engine, job: u64, port: &[u8], until: Until) -> Result<Option<Contact>> {
    let own = engine.job().segment().file();
    let request = Request::ConnectFrom(port.to_vec());
    unless_busy(engine, port, until, || {
        let asked = ask_at(engine, call(job, port)?.as_fd(), &request, Some(own.as_fd()), until.left())?;
        let Some((answer, _)) = asked else { return Ok(None) };
        answer.checked()?.contact().map(Some)
    })
}

/// Looks a service up at the launchers of all other jobs of this user.
///
/// # Errors
/// [`Error::Dynamic`] if none of them knows it; those of progress.
pub fn look_up(engine: &Engine, service: &[u8]) -> Result<Vec<u8>> {
    let own = engine.job().header().job_id();
    let request = Request::LookUp(service.to_vec());
    for job in listening().into_iter().filter(|job| *job != own) {
        let until = Until::after(Some(PROMPT));
        let asked = unless_busy(engine, service, until, || {
            ask_at(engine, call(job, service)?.as_fd(), &request, None, until.left())
        });
        match asked {
            Ok(Some((answer, _))) if answer.class == crate::abi::MPI_SUCCESS => return Ok(answer.text),
            // It ends just now, or does not answer: it has no such name then.
            Ok(_) | Err(Error::Other(_) | Error::Dynamic { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let service = String::from_utf8_lossy(&service[..service.len().min(64)]).into_owned();
    Err(Error::Dynamic {
        class: MPI_ERR_NAME,
        what: format!("{service:?} is published by no program of this user that runs now"),
    })
}

/// The jobs of this user whose launchers listen.
fn listening() -> Vec<u64> {
    let sockets = std::fs::read("/proc/net/unix").unwrap_or_default();
    let sockets = String::from_utf8_lossy(&sockets);
    let prefix = format!("@{}", prefix());
    let job = |line: &str| u64::from_str_radix(line.rsplit(' ').next()?.strip_prefix(&prefix)?, 16).ok();
    let mut jobs: Vec<u64> = sockets.lines().filter_map(job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// Gets to know the job of the guest at `place`, if it is one.
///
/// # Errors
/// [`Error::Dynamic`] if its memory cannot be had.
pub(super) fn meet_guest(engine: &Engine, place: u32) -> Result<()> {
    match engine.job().roster().entry(place).guest() {
        Some((job, _)) => meet_job(engine, job),
        None => Ok(()),
    }
}

fn meet_job(engine: &Engine, job: u64) -> Result<()> {
    if engine.other_job(job).is_some() {
        return Ok(());
    }
    let asked = Launcher::of(engine)?.ask_with(&Request::OtherJob(job), None, None)?;
    let Some((answer, memory)) = asked else { return Err(Error::Intern("no answer about a job".into())) };
    answer.checked()?;
    let memory = memory.ok_or_else(|| Error::Intern("a job without memory".into()))?;
    engine.meet_job(map(&memory)?)
}

/// Maps the memory of another job.
///
/// # Errors
/// [`Error::Segment`] if it is none.
pub fn map(memory: &OwnedFd) -> Result<Memory> {
    Memory::attach(memory.as_raw_fd())
}

/// The context ids of an engine for groups that may be of jobs which this process has yet to meet.
#[derive(Debug)]
pub struct Introductions<'a>(pub &'a Engine);

impl Contexts for Introductions<'_> {
    fn allocate(&self, members: &[&Group]) -> Result<u32> {
        self.0.allocate(members)
    }

    fn give_back(&self, context: u32) {
        self.0.give_back(context);
    }

    fn name(&self, place: u32) -> Name {
        self.0.name(place)
    }

    fn place(&self, name: Name) -> Result<Option<u32>> {
        let own = self.0.job();
        if name.0 != own.header().job_id() && own.roster().place_of_guest(name.0, name.1).is_some() {
            meet_job(self.0, name.0)?;
        }
        self.0.place(name)
    }

    fn failed(&self, place: u32) -> Error {
        self.0.proc_failed(place)
    }

    fn host(&self, job: u64) -> Result<()> {
        host(self.0, job, format!("job {job:016x}").as_bytes(), Until::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_tells_its_job_and_nothing_else_does() {
        assert_eq!(job_of(b"perusal:00000000000000ff:3"), Some(255));
        for wrong in [
            "",
            "perusal:",
            "perusal:ff:3",
            "perusal:00000000000000ff",
            "perusal:00000000000000fg:3",
            "perusal:00000000000000ff:x",
        ] {
            assert_eq!(job_of(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(job_of(b"\xff\xfe"), None);
    }

    #[test]
    fn nobody_listens_for_a_job_that_is_not_there() {
        assert_eq!(dial(0x0123_4567_89ab_cdef).unwrap_err(), Errno::CONNREFUSED);
    }
}
