//! The way of a request to the launcher and of the answer back.
//!
//! A request is a sealed memfd, and comes with a socket for its answer: one message on the door, the socket that all
//! ranks have inherited. So the launcher reads a request whole or not at all, whatever its size, and waits for nobody.

use super::request::{Answer, MAX_REQUEST, Request};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::{self, machine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recv, recvmsg, sendmsg, shutdown,
    socketpair,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 << 10;
/// Between two polls of the engine while an answer is awaited that comes at once, and of one that may take long.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(10);
/// When an answer is one that takes long.
const LONG_FROM: Duration = Duration::from_millis(50);
/// How long a request waits while the kernel takes no more descriptors.
const UNDER_WAY: Duration = Duration::from_secs(5);
/// The error of a process that has a launcher, but not the socket to it.
const NO_DOOR: &str = "the launcher has given this process no socket for requests (PERUSAL_DOOR_FD); start the program with the mpiexec that was installed with its MPI library";

/// Sends a request at the door of a launcher, own or other, with a descriptor if one goes along, and waits for the
/// answer, at most `limit`; other operations of this rank go on meanwhile. `None` if the limit has passed. What comes
/// with the answer is a descriptor, if any.
///
/// # Errors
/// As for [`Launcher::ask`].
pub(super) fn ask_at(
    engine: &Engine,
    door: BorrowedFd<'_>,
    request: &Request,
    along: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) -> Result<Option<(Answer, Option<OwnedFd>)>> {
    Launcher { engine, door }.ask_with(request, along, limit)
}

/// The launcher, as a rank reaches it.
#[derive(Debug)]
pub struct Launcher<'a> {
    engine: &'a Engine,
    door: BorrowedFd<'a>,
}

impl<'a> Launcher<'a> {
    /// The launcher of this process, which is started if there is none.
    ///
    /// # Errors
    /// [`Error::Other`] if it cannot be.
    pub fn of(engine: &'a Engine) -> Result<Self> {
        if engine.job().launcher().is_none() {
            return Ok(Self { engine, door: super::own_launcher::of(engine)? });
        }
        let door = shm::door().ok_or_else(|| Error::Other(NO_DOOR.into()))?;
        // SAFETY: the launcher has opened the descriptor for this process, which keeps it open; one that is not open is
        // an error of the system.
        Ok(Self { engine, door: unsafe { BorrowedFd::borrow_raw(door) } })
    }

    /// Sends a request and waits for its answer, at most `limit`; other operations of this rank go on meanwhile. `None`
    /// if the limit has passed.
    ///
    /// # Errors
    /// [`Error::Other`] if the launcher cannot be reached or has ended, [`Error::NoMem`] for a request that is too
    /// large; those of progress.
    pub fn ask(&self, request: &Request, limit: Option<Duration>) -> Result<Option<Answer>> {
        Ok(self.ask_with(request, None, limit)?.map(|(answer, _)| answer))
    }

    /// The same with a descriptor that goes along, if one does, and one that comes with the answer.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    pub fn ask_with(
        &self,
        request: &Request,
        along: Option<BorrowedFd<'_>>,
        limit: Option<Duration>,
    ) -> Result<Option<(Answer, Option<OwnedFd>)>> {
        let bytes = request.encode(self.engine.rank());
        if bytes.len() > MAX_REQUEST {
            return Err(Error::NoMem(format!("a request of {} bytes to the launcher", bytes.len())));
        }
        let (own, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(unreachable)?;
        let body = sealed(&bytes)
            .map_err(|error| Error::Other(format!("a request to the launcher: {}", machine::why(&error))))?;
        let descriptors: Vec<BorrowedFd<'_>> =
            [theirs.as_fd(), body.as_fd()].into_iter().chain(along).collect();
        self.send(&descriptors)?;
        drop(theirs);
        let answer = self.answer(&own, limit, request.only_asks());
        self.engine.progress().outside_has_answered();
        answer
    }

    fn send(&self, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let start = Instant::now();
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(descriptors));
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(self.door, &[IoSlice::new(&[0])], &mut control, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // Many requests at once.
                Err(Errno::AGAIN) => self.pass(self.door, PollFlags::OUT, SHORT)?,
                // Too many descriptors of this user are under way in the whole system;
                // the processes that they go to take them soon.
                Err(Errno::TOOMANYREFS) if start.elapsed() < UNDER_WAY => {
                    self.pass(self.door, PollFlags::empty(), SHORT)?;
                }
                Err(error) => return Err(unreachable(error)),
            }
        }
    }

    /// Makes progress, then waits until `descriptor` is ready, at most `pause`.
    fn pass(&self, descriptor: BorrowedFd<'_>, wanted: PollFlags, pause: Duration) -> Result<()> {
        go_on(self.engine)?;
        let pause = Timespec::try_from(pause).unwrap_or_default();
        match poll(&mut [PollFd::new(&descriptor, wanted)], Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(unreachable(error)),
        }
    }

    /// Waits for the answer, `limit` at most; beyond that for the launcher's word,
    /// unless what was asked for is no matter to it.
    fn answer(
        &self,
        own: &OwnedFd,
        limit: Option<Duration>,
        only_asks: bool,
    ) -> Result<Option<(Answer, Option<OwnedFd>)>> {
        let start = Instant::now();
        let (mut given_up, mut is_long) = (false, false);
        let mut room = Vec::new();
        room.try_reserve_exact(MAX_ANSWER)?;
        room.resize(MAX_ANSWER, 0);
        loop {
            match receive(own.as_fd(), &mut room) {
                Ok((0, _)) if given_up => return Ok(None),
                Ok((0, _)) => return Err(Error::Other("the launcher has not answered a request".into())),
                Ok((len, along)) => {
                    return Ok(Some((Answer::decode(&room[..len])?, along.into_iter().next())));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(unreachable(error)),
            }
            let waited = start.elapsed();
            if !given_up && limit.is_some_and(|limit| waited >= limit) {
                if only_asks {
                    return Ok(None);
                }
                // Dynamic rule 2: the launcher closes its side, or has answered.
                shutdown(own, Shutdown::Write).map_err(unreachable)?;
                given_up = true;
            }
            if waited >= LONG_FROM && !is_long {
                is_long = true;
                self.engine.progress().wait_outside();
            }
            let pause = if is_long { LONG } else { SHORT };
            let left = limit.map_or(pause, |limit| limit.saturating_sub(waited).max(SHORT));
            if let Err(error) = self.pass(own.as_fd(), PollFlags::IN, pause.min(left)) {
                // Processes that this very request has started may have ended already.
                // The launcher has answered before it noticed.
                return match receive(own.as_fd(), &mut room) {
                    Ok((len @ 1.., along)) => {
                        Ok(Some((Answer::decode(&room[..len])?, along.into_iter().next())))
                    }
                    _ => Err(error),
                };
            }
        }
    }
}

/// Makes progress, if nothing keeps this rank from going on.
fn go_on(engine: &Engine) -> Result<()> {
    engine.progress().poll_once()?;
    engine.job().check_alive(None)
}

/// Makes progress, then sleeps a moment, for a launcher that cannot take another connection now.
pub(super) fn pause(engine: &Engine) -> Result<()> {
    go_on(engine)?;
    std::thread::sleep(SHORT);
    Ok(())
}

fn unreachable(error: Errno) -> Error {
    Error::Other(format!("the launcher cannot be reached: {}", machine::why(&error.into())))
}

/// A memfd with `bytes` whose size nobody can change any more.
fn sealed(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let body = memfd_create(c"perusal-request", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(body);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SIZE)?;
    Ok(file.into())
}

/// What a request is sealed with. The reader takes a copy before it looks at it, so nobody need be kept from writing;
/// and the kernel refuses [`SealFlags::WRITE`] where it holds a page of the file for something else, as it may while
/// memory is short.
const SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A request that has come through the door.
#[derive(Debug)]
pub struct IncomingRequest {
    /// Where the answer goes.
    pub answer: OwnedFd,
    /// The place of the process that asks, as it says itself, and the request.
    pub request: Result<(u32, Request)>,
    /// What came along.
    pub along: Option<OwnedFd>,
}

/// Receives a message and the descriptors with it.
fn receive(from: BorrowedFd<'_>, room: &mut [u8]) -> rustix::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got = recvmsg(from, &mut [IoSliceMut::new(room)], &mut control, flags)?;
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
        _ => vec![],
    });
    Ok((got.bytes, descriptors.collect()))
}

/// Takes the next request off the launcher's side of the door. `None` if there is none; nothing inside for a message
/// that has no request with it.
#[must_use]
pub fn next_request(door: BorrowedFd<'_>) -> Option<Option<IncomingRequest>> {
    let (bytes, descriptors) = retry_on_intr(|| receive(door, &mut [0])).ok()?;
    let mut descriptors = descriptors.into_iter();
    let (answer, body, along) = (descriptors.next(), descriptors.next(), descriptors.next());
    if bytes == 0 && answer.is_none() {
        return None;
    }
    Some(answer.zip(body).map(|(answer, body)| IncomingRequest { answer, request: read(&body), along }))
}

/// Reads a request. Nothing else than a memfd is read, which seals tell from other files:
/// it cannot make the reader wait.
fn read(body: &OwnedFd) -> Result<(u32, Request)> {
    let wrong = |what: &str| Error::Other(format!("a request to the launcher {what}"));
    if !fcntl_get_seals(body).is_ok_and(|seals| seals.contains(SIZE)) {
        return Err(wrong("is not in sealed memory"));
    }
    let len = fstat(body).ok().and_then(|stat| usize::try_from(stat.st_size).ok());
    let len = len.filter(|len| *len <= MAX_REQUEST).ok_or_else(|| wrong("is too large"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len)?;
    bytes.resize(len, 0);
    let mut at = 0;
    while at < len {
        match pread(body, &mut bytes[at..], at as u64) {
            Ok(0) | Err(_) => return Err(wrong("cannot be read")),
            Ok(more) => at += more,
        }
    }
    Request::decode(&bytes)
}

/// Sends an answer. A process that has ended gets none.
pub fn reply(to: BorrowedFd<'_>, answer: &Answer) {
    let _ = rustix::net::send(to, &answer.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// The same with a descriptor.
pub fn reply_with(to: BorrowedFd<'_>, answer: &Answer, along: BorrowedFd<'_>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [along];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = sendmsg(to, &[IoSlice::new(&answer.encode())], &mut control, flags);
}

/// Asks another launcher, as [`ask_at`] does, for nothing but what it sends on the socket that is returned.
///
/// # Errors
/// Those of the system.
pub fn subscribe(door: BorrowedFd<'_>, request: &Request) -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (own, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let body = sealed(&request.encode(0))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [theirs.as_fd(), body.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(door, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(own)
}

/// Whether the process that waits at the other end has given up, or has ended.
#[must_use]
pub fn has_given_up(waiting: BorrowedFd<'_>) -> bool {
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    !matches!(recv(waiting, &mut [0_u8], flags), Err(Errno::AGAIN))
}

/// The two sides of a door: the launcher's, and that which ranks inherit.
///
/// # Errors
/// Those of `socketpair`.
pub fn door() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}
