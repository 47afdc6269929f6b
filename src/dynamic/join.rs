//! Two processes with a socket between them learn each other's place (MPI_Comm_join, MPI 5.0 §11.10.5).

use super::elsewhere::Until;
use super::request::Request;
use super::{Launcher, elsewhere};
use crate::abi::MPI_MAX_PORT_NAME;
use crate::comm::links::count;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::Contact;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::net::sockopt::socket_type;
use rustix::net::{SendFlags, SocketType, send};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

/// "perusalj", the job's number, the place, and zeros; then the context id, sent by the lower place.
const HELLO: usize = 24;
const MAGIC: &[u8; 8] = b"perusalj";

/// Exchanges places over `socket`, a connected stream in both directions on which nothing is under way. Returns the
/// other process; `None` if it belongs to a job that this one cannot meet.
///
/// # Errors
/// [`Error::Arg`] if the descriptor is not an open stream socket, [`Error::Other`] if the other end is closed, or sends
/// something else; those of progress.
pub fn meet_over(engine: &Engine, socket: RawFd) -> Result<Option<Contact>> {
    if socket < 0 {
        return Err(Error::Arg("the socket is a negative number"));
    }
    // SAFETY: the program keeps the socket open while the call runs (MPI 5.0 §11.10.5); a number that is not open is an
    // error of the system.
    let socket = Socket { engine, fd: unsafe { BorrowedFd::borrow_raw(socket) } };
    // Some other descriptors never become ready for what follows.
    if socket_type(socket.fd).map_err(failed)? != SocketType::STREAM {
        return Err(Error::Arg("the socket is no stream (SOCK_STREAM)"));
    }
    let (job, place) = (engine.job().header().job_id(), engine.rank());
    let hello = [&MAGIC[..], &job.to_le_bytes(), &place.to_le_bytes(), &[0; 4]].concat();
    socket.send(&hello)?;
    let theirs: [u8; HELLO] = socket.receive()?;
    if &theirs[..8] != MAGIC {
        return Err(Error::Other("what comes from the socket is not a perusal process".into()));
    }
    let other = u32::from_le_bytes(core::array::from_fn(|i| theirs[16 + i]));
    let their_job = u64::from_le_bytes(core::array::from_fn(|i| theirs[8 + i]));
    if their_job != job {
        return if job < their_job { socket.accept() } else { socket.connect(their_job) };
    }
    if other == place {
        return Err(Error::Arg("the socket leads back to this process"));
    }
    if other >= engine.job().places_in_use() {
        return Err(Error::Other(format!(
            "what comes from the socket is not a process of this job: place {other}"
        )));
    }
    let context = if place < other {
        let contexts = engine.job().contexts();
        let context = contexts.allocate(2)?;
        // After an error the other one has not got all of it.
        socket.send(&context.to_le_bytes()).inspect_err(|_| contexts.give_up(context))?;
        context
    } else {
        u32::from_le_bytes(socket.receive()?)
    };
    // As the launcher does for those that meet at a port.
    count(engine, [other], true);
    Ok(Some(Contact { place: other, context }))
}

/// Bytes of the name of a port, filled with zeros.
const PORT: usize = MPI_MAX_PORT_NAME as usize;

struct Socket<'a> {
    engine: &'a Engine,
    fd: BorrowedFd<'a>,
}

impl Socket<'_> {
    /// Of two processes of different jobs, the one whose job has the lesser number: opens a port, names it to the other
    /// one, and accepts there.
    fn accept(&self) -> Result<Option<Contact>> {
        let launcher = Launcher::of(self.engine);
        let opened = launcher.and_then(|launcher| Ok((launcher.ask(&Request::OpenPort, None)?, launcher)));
        let opened =
            opened.and_then(|(answer, launcher)| Ok((answer.unwrap_or_default().checked()?.text, launcher)));
        match opened {
            Ok((port, launcher)) => {
                let met = self.accept_at(&port, &launcher);
                let closed = launcher.ask(&Request::ClosePort(port), None);
                let met = met?;
                closed?;
                Ok(met)
            }
            refused => {
                self.send(&[0; PORT])?;
                unless_refused(refused).map(|_| None)
            }
        }
    }

    /// Names the port to the other one, and accepts there if it comes.
    fn accept_at(&self, port: &[u8], launcher: &Launcher<'_>) -> Result<Option<Contact>> {
        let mut name = [0; PORT];
        name[..port.len().min(PORT)].copy_from_slice(&port[..port.len().min(PORT)]);
        self.send(&name)?;
        let met = match self.receive()? {
            [1] => launcher.ask(&Request::Accept(port.to_vec()), self.limit())?,
            _ => None,
        };
        met.map(|answer| answer.checked()?.contact()).transpose()
    }

    /// How long to wait for the other job at most.
    fn limit(&self) -> Option<Duration> {
        Some(self.engine.config().connect_timeout()).filter(|limit| !limit.is_zero())
    }

    /// The other one: connects there.
    fn connect(&self, job: u64) -> Result<Option<Contact>> {
        let name: [u8; PORT] = self.receive()?;
        let port = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if elsewhere::job_of(port) != Some(job) {
            return Ok(None);
        }
        let hosted = unless_refused(elsewhere::host(self.engine, job, port, Until::after(self.limit())));
        let comes = matches!(hosted, Ok(Some(())));
        self.send(&[comes.into()])?;
        hosted?;
        if comes { elsewhere::wait_at_port(self.engine, job, port, Until::NEVER) } else { Ok(None) }
    }

    fn send(&self, bytes: &[u8]) -> Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            self.until(PollFlags::OUT)?;
            // A closed end is an error, and no SIGPIPE, which would end the program.
            match send(self.fd, &bytes[at..], SendFlags::NOSIGNAL) {
                Ok(written) => at += written,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn receive<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let mut at = 0;
        while at < N {
            self.until(PollFlags::IN)?;
            match read(self.fd, &mut bytes[at..]) {
                Ok(0) => return Err(failed(Errno::PIPE)),
                Ok(more) => at += more,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(bytes)
    }

    /// Waits until the socket is ready; other operations go on meanwhile.
    fn until(&self, wanted: PollFlags) -> Result<()> {
        loop {
            let pause = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
            match poll(&mut [PollFd::new(&self.fd, wanted)], Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
            self.engine.progress().poll_once()?;
            self.engine.job().check_alive(None)?;
        }
    }
}

/// What a launcher refuses leaves the socket as it was: then there is no communicator, which is no error (MPI 5.0
/// §11.10.5), and at the other end there is none either.
fn unless_refused<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(Error::Dynamic { .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn failed(error: Errno) -> Error {
    match error {
        Errno::BADF | Errno::NOTSOCK | Errno::INVAL => Error::Arg("the descriptor is not an open socket"),
        Errno::PIPE => Error::Other("the other end of the socket has been closed".into()),
        error => Error::Other(format!("the socket: {error}")),
    }
}
