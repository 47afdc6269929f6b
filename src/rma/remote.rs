//! Memory that is private to another process: by system calls, or by messages where the kernel does not allow those.
//!
//! By messages, the target takes part: whenever it makes progress it serves requests to read and write its memory
//! ([`Service`]), which is all that operations on private memory consist of. Where system calls do, it does not.

use crate::abi::MPI_ANY_SOURCE;
use crate::comm::{Comm, lock};
use crate::engine::{BackgroundOperation, Engine, Mode};
use crate::error::{Error, Result};
use crate::p2p::{MessageStatus, Request};
use crate::shm::peer_memory;
use crate::sync::{Arc, ConditionalLock, Mutex};

/// Tags of the messages, on the collective context of the window's communicator.
const REQUEST: i32 = 1 << 10;
const ANSWER: i32 = REQUEST + 1;
/// Of what is read from a member, and of what is written to one: a rank may receive both from the same one.
const READ: i32 = REQUEST + 2;
const WRITTEN: i32 = REQUEST + 3;

/// How an operation reaches memory that is private to another process.
#[derive(Clone, Copy)]
pub(super) struct Remote<'a> {
    pub engine: &'a Engine,
    /// The window's members.
    pub comm: &'a Comm,
    /// Whether the targets serve requests; else the kernel allows system calls.
    pub by_messages: bool,
    /// Held from a request to its last answer, which do not say what they belong to.
    pub exchange: &'a ConditionalLock<()>,
}

/// What a target is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// To send so many bytes at an address.
    Read { addr: u64, len: u64 },
    /// To receive so many bytes at an address.
    Write { addr: u64, len: u64 },
    /// To serve no more; asked by the target itself.
    Stop,
}

const ASK: usize = 3 * 8;

impl Ask {
    fn encode(self) -> [u8; ASK] {
        let words = match self {
            Self::Read { addr, len } => [1, addr, len],
            Self::Write { addr, len } => [2, addr, len],
            Self::Stop => [3, 0, 0],
        };
        let mut bytes = [0; ASK];
        for (word, room) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            room.copy_from_slice(&u64::to_ne_bytes(*word));
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        Some(match word(0) {
            1 => Self::Read { addr: word(1), len: word(2) },
            2 => Self::Write { addr: word(1), len: word(2) },
            3 => Self::Stop,
            _ => return None,
        })
    }
}

impl Remote<'_> {
    /// Reads runs of bytes of the memory of job rank `world`, each a displacement from `addr` and a length,
    /// one behind the other into `to`.
    ///
    /// # Errors
    /// [`Error::RmaOutside`] where the target has no memory; what the kernel or the messages say.
    pub fn read(
        self,
        world: u32,
        addr: u64,
        runs: impl Iterator<Item = (isize, usize)>,
        to: &mut [u8],
    ) -> Result<()> {
        let runs = cut(addr, runs, to.len());
        if !self.by_messages {
            let pid = self.process(world)?;
            // SAFETY: the runs have been cut to the length of `to`, which is borrowed.
            let read = unsafe { peer_memory::read_runs(pid, runs, to.as_mut_ptr()) };
            return read.map_err(|error| self.refused(world, &error));
        }
        let _turn = self.exchange.lock(self.engine.is_shared());
        let mut done = 0;
        for (addr, len) in runs {
            let target = self.ask(world, Ask::Read { addr, len: len as u64 })?;
            self.answer(target)?;
            self.receive(&mut to[done..done + len], target, READ)?;
            done += len;
        }
        Ok(())
    }

    /// Writes bytes one behind the other into runs of the memory of job rank `world`,
    /// each a displacement from `addr` and a length.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write(
        self,
        world: u32,
        addr: u64,
        runs: impl Iterator<Item = (isize, usize)>,
        from: &[u8],
    ) -> Result<()> {
        let runs = cut(addr, runs, from.len());
        if !self.by_messages {
            let pid = self.process(world)?;
            // SAFETY: the runs have been cut to the length of `from`, which is borrowed;
            // the target has put the memory into a window.
            let written = unsafe { peer_memory::write_runs(pid, from.as_ptr(), runs) };
            return written.map_err(|error| self.refused(world, &error));
        }
        let _turn = self.exchange.lock(self.engine.is_shared());
        let mut done = 0;
        for (addr, len) in runs {
            let target = self.ask(world, Ask::Write { addr, len: len as u64 })?;
            self.answer(target)?;
            self.send(&from[done..done + len], target, WRITTEN)?;
            self.answer(target)?;
            done += len;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn receive(self, to: &mut [u8], target: i32, tag: i32) -> Result<()> {
        // SAFETY: the room is borrowed until the call returns.
        unsafe { self.engine.coll_recv(self.comm, to.as_mut_ptr(), to.len(), target, tag, Mode::Standard) }
            .map(drop)
    }

    #[cold]
    #[inline(never)]
    fn send(self, from: &[u8], target: i32, tag: i32) -> Result<()> {
        // SAFETY: the bytes are borrowed until the call returns.
        unsafe { self.engine.coll_send(self.comm, from.as_ptr(), from.len(), target, tag, Mode::Standard) }
    }

    /// Sends a target a request, and returns its rank in the window.
    fn ask(self, world: u32, what: Ask) -> Result<i32> {
        let gone = Error::Intern("the target is no member of the window".into());
        let target = self.comm.group().rank_of(world).ok_or(gone)? as i32;
        self.send(&what.encode(), target, REQUEST).map(|()| target)
    }

    /// Waits for a target's word that it does what it was asked for.
    fn answer(self, target: i32) -> Result<()> {
        let mut yes = [0_u8];
        self.receive(&mut yes, target, ANSWER)?;
        if yes == [1] { Ok(()) } else { Err(NO_MEMORY) }
    }

    fn process(self, world: u32) -> Result<i32> {
        self.engine.job().process_of(world).ok_or_else(|| self.engine.job().gone(world))
    }

    /// What the kernel says of another process's memory.
    fn refused(self, world: u32, error: &std::io::Error) -> Error {
        match error.raw_os_error() {
            Some(libc::EFAULT) => NO_MEMORY,
            Some(libc::ESRCH) => self.engine.job().gone(world),
            _ => Error::Other(format!(
                "the kernel does not let this process access the memory of rank {world}: {error}"
            )),
        }
    }
}

/// The addresses and lengths of the first `left` bytes of runs.
fn cut(
    addr: u64,
    runs: impl Iterator<Item = (isize, usize)>,
    mut left: usize,
) -> impl Iterator<Item = (u64, usize)> {
    runs.map_while(move |(at, len)| {
        let len = len.min(left);
        left -= len;
        (len > 0).then_some((addr.wrapping_add_signed(at as i64), len))
    })
}

pub(super) const NO_MEMORY: Error = Error::RmaOutside(
    "it has no memory there: it has given MPI_Win_create another address or freed it, or has not called MPI_Win_attach",
);

/// What a member may be asked for: all runs of bytes that lie in one of these, each an address and a length.
pub(super) type Served = Arc<Mutex<Vec<(u64, u64)>>>;

/// Whether all these bytes lie in a member's regions, several of which may lie beside each other.
fn lie_within(regions: &[(u64, u64)], addr: u64, len: u64) -> bool {
    let Some(end) = addr.checked_add(len) else { return false };
    let mut at = addr;
    while at < end {
        let has = |(start, room): &&(u64, u64)| at.checked_sub(*start).is_some_and(|into| into < *room);
        let Some((start, room)) = regions.iter().find(has) else { return false };
        at = start.saturating_add(*room);
    }
    true
}

/// A member's service of its private memory, which its progress advances.
pub(super) struct Service {
    comm: Arc<Comm>,
    served: Served,
    state: Mutex<State>,
}

/// What answers consist of: no, yes.
static ANSWERS: [u8; 2] = [0, 1];

/// What a service does now.
enum State {
    /// It waits for a request, which comes to these bytes. They stay where they are as the vector is moved.
    Listening(Request, Vec<u8>),
    /// It sends.
    Answering(Vec<Request>),
    /// It sends, and receives bytes of a member into its memory.
    Receiving(Vec<Request>, Request, i32),
    /// It serves no more.
    Stopped,
}

impl Service {
    /// Serves the memory in `served` to the members of `comm`.
    ///
    /// # Errors
    /// Those of a receive.
    pub fn start(engine: &Engine, comm: Arc<Comm>, served: Served) -> Result<Arc<Self>> {
        let state = Mutex::new(Self::listen(engine, &comm)?);
        let service = Arc::new(Self { comm, served, state });
        engine.progress().start_background(service.clone());
        Ok(service)
    }

    /// Stops serving. No member asks any more.
    ///
    /// # Errors
    /// Those of the message to itself.
    pub fn stop(&self, engine: &Engine) -> Result<()> {
        let bytes = Ask::Stop.encode();
        // SAFETY: the bytes are borrowed until the call returns.
        unsafe {
            engine.coll_send(
                &self.comm,
                bytes.as_ptr(),
                ASK,
                self.comm.rank() as i32,
                REQUEST,
                Mode::Standard,
            )
        }?;
        engine.progress().wait_for(|| Ok(matches!(*lock(&self.state), State::Stopped)))
    }

    fn listen(engine: &Engine, comm: &Comm) -> Result<State> {
        let mut room = vec![0; ASK];
        // SAFETY: the room stays where it is until the receive is complete (`State`).
        let request = unsafe {
            engine.coll_irecv(comm, room.as_mut_ptr(), ASK, MPI_ANY_SOURCE, REQUEST, Mode::Standard)
        }?;
        Ok(State::Listening(request, room))
    }

    fn answer(&self, engine: &Engine, origin: i32, yes: bool) -> Result<Request> {
        // SAFETY: a static.
        unsafe {
            engine.coll_isend(
                &self.comm,
                &raw const ANSWERS[usize::from(yes)],
                1,
                origin,
                ANSWER,
                Mode::Standard,
            )
        }
    }

    fn serves(&self, addr: u64, len: u64) -> bool {
        lie_within(&lock(&self.served), addr, len)
    }

    /// Does what it was asked for, as far as it need not wait.
    fn serve(&self, engine: &Engine, origin: i32, what: Option<Ask>) -> Result<State> {
        let answer = |yes| self.answer(engine, origin, yes);
        match what {
            Some(Ask::Stop) if origin == self.comm.rank() as i32 => Ok(State::Stopped),
            Some(Ask::Read { addr, len }) if self.serves(addr, len) => {
                let yes = answer(true)?;
                let from = core::ptr::with_exposed_provenance(addr as usize);
                // SAFETY: the bytes lie in memory that this rank has put into the window,
                // which stays until the window is freed.
                let data = unsafe {
                    engine.coll_isend(&self.comm, from, len as usize, origin, READ, Mode::Standard)
                }?;
                Ok(State::Answering(vec![yes, data]))
            }
            Some(Ask::Write { addr, len }) if self.serves(addr, len) => {
                let to = core::ptr::with_exposed_provenance_mut(addr as usize);
                // SAFETY: the bytes lie in memory that this rank has put into the window, which stays until the window
                // is freed; members synchronise what they write (MPI 5.0 §12.7).
                let data = unsafe {
                    engine.coll_irecv(&self.comm, to, len as usize, origin, WRITTEN, Mode::Standard)
                }?;
                Ok(State::Receiving(vec![answer(true)?], data, origin))
            }
            _ => Ok(State::Answering(vec![answer(false)?])),
        }
    }

    /// The next state, if what the present one waits for is there.
    fn next(&self, engine: &Engine, state: &mut State) -> Result<Option<State>> {
        let over = |requests: &[Request]| requests.iter().all(|request| request.is_over());
        let take = |request: Request| -> Result<MessageStatus> {
            let (status, error) = engine.take_outcome(request);
            error.map_or(Ok(status), Err)
        };
        // An exchange whose origin has died is over; the others' go on.
        let without_origin = |error| if engine.failed().is_some() { Err(error) } else { Ok(()) };
        match state {
            State::Listening(request, room) if request.is_over() => {
                let status = take(*request)?;
                let served = self.serve(engine, status.source, Ask::decode(room));
                match served {
                    Ok(state) => Ok(Some(state)),
                    Err(error) => {
                        without_origin(error).and_then(|()| Self::listen(engine, &self.comm)).map(Some)
                    }
                }
            }
            State::Answering(sends) if over(sends) => {
                let sent = sends.drain(..).map(|send| take(send).map(drop)).fold(Ok(()), Result::and);
                sent.or_else(without_origin)?;
                Self::listen(engine, &self.comm).map(Some)
            }
            State::Receiving(sends, data, origin) if data.is_over() => {
                let done = take(*data).and_then(|_| self.answer(engine, *origin, true));
                let mut sends = core::mem::take(sends);
                match done {
                    Ok(done) => sends.push(done),
                    Err(error) => without_origin(error)?,
                }
                Ok(Some(State::Answering(sends)))
            }
            _ => Ok(None),
        }
    }
}

impl BackgroundOperation for Service {
    fn advance(&self, engine: &Engine) -> bool {
        let mut state = lock(&self.state);
        loop {
            match self.next(engine, &mut state) {
                Ok(Some(next)) => *state = next,
                Ok(None) => return matches!(*state, State::Stopped),
                // The job has failed, or no member can ask any more.
                Err(_) => *state = State::Stopped,
            }
            if matches!(*state, State::Stopped) {
                return true;
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Messages under way may still be written to: their memory must stay.
        let state = core::mem::replace(&mut *lock(&self.state), State::Stopped);
        core::mem::forget(state);
    }
}
