//! What a rank asks the launcher for, and what the launcher answers.

use super::wire::{Reader, Writer};
use crate::abi::{MPI_ERR_PENDING, MPI_SUCCESS};
use crate::error::{Error, Result};
use crate::shm::Contact;
use std::borrow::Cow;

/// The class of an answer to somebody who is to ask again:
/// another launcher, which is needed for it, cannot take a connection now.
pub const BUSY: i32 = MPI_ERR_PENDING;

/// Most bytes of a request: far more than the arguments and the environment of a program may have.
pub const MAX_REQUEST: usize = 64 << 20;

/// A program to start several times (MPI_Comm_spawn).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<Vec<u8>>,
    /// How many processes were asked for.
    pub most: u32,
    /// Of how many processes it may be, the largest number first; at least one number.
    pub counts: Vec<u32>,
    /// Working directory; empty for that of the process that asks.
    pub wdir: Vec<u8>,
    /// Directories to look for the program in, with colons between them; empty for those of PATH.
    pub path: Vec<u8>,
    /// `NAME=VALUE`, besides what the process that asks has.
    pub env: Vec<Vec<u8>>,
}

/// What MPI_Comm_spawn and MPI_Comm_spawn_multiple ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpawnRequest {
    /// The programs; their processes are ranks of one world, in this order.
    pub programs: Vec<Program>,
    /// Working directory of the process that asks.
    pub wdir: Vec<u8>,
    /// Its environment: `NAME=VALUE`.
    pub env: Vec<Vec<u8>>,
}

/// Who finds a published name, or where one is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// All programs of the user.
    #[default]
    User,
    /// The processes of the job.
    Job,
}

/// A request of the process at `place` ([`Request::encode`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Start processes. The answer has the place of the first, the context id of the meeting,
    /// and how many there are of each program.
    Spawn(SpawnRequest),
    /// Make a port. The answer has its name.
    OpenPort,
    /// Close the port of this name.
    ClosePort(Vec<u8>),
    /// Wait for a process that connects to the port of this name.
    /// The answer has its place, and the context id of the meeting.
    Accept(Vec<u8>),
    /// Wait for a process that accepts at the port of this name. The answer is as for `Accept`.
    Connect(Vec<u8>),
    /// Publish, for a service of the first name, the port of the second.
    Publish(Vec<u8>, Vec<u8>, Scope),
    /// Take that back.
    Unpublish(Vec<u8>, Vec<u8>),
    /// Look a service up. The answer has its port's name.
    LookUp(Vec<u8>),
    /// Give the processes of another job places here. Its memory comes with the request.
    Host,
    /// Give the memory of another job whose processes have places here. It comes with the answer.
    OtherJob(u64),
    /// Of a process of another job: give this job's memory. It comes with the answer.
    Greet,
    /// Of a process of another job: wait for a process that accepts at the port of this name. The memory of the other
    /// job, which has given this one's processes places, comes with the request. The answer has the place of the
    /// process that accepts, as it is in that job, and the context id.
    ConnectFrom(Vec<u8>),
    /// Of another launcher: say on the socket for the answer how processes of this job end, a [`Ending`] for each.
    Watch,
}

/// How a process ended, for a launcher that watches its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Its place in its job.
    pub place: u32,
    /// The status word of `waitpid`.
    pub exit: i32,
}

impl Ending {
    /// As bytes.
    #[must_use]
    pub fn encode(self) -> [u8; 8] {
        (u64::from(self.place) << 32 | u64::from(self.exit.cast_unsigned())).to_le_bytes()
    }

    /// Reads it; whatever the bytes are, it is one.
    #[must_use]
    pub fn decode(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self { place: (word >> 32) as u32, exit: (word as u32).cast_signed() }
    }
}

/// Strings of a request that is not `Spawn`.
type Names<'a> = (u32, Cow<'a, [u8]>, &'a [u8]);

impl Request {
    /// The request as bytes.
    #[must_use]
    pub fn encode(&self, place: u32) -> Vec<u8> {
        let mut to = Writer::default();
        to.word(place);
        if let Self::Spawn(spawn) = self {
            to.word(0).string(&spawn.wdir).strings(&spawn.env).word(spawn.programs.len() as u32);
            for Program { command, most, counts, wdir, path, env } in &spawn.programs {
                to.strings(command).word(*most).words(counts).string(wdir).string(path).strings(env);
            }
            return to.0;
        }
        let (kind, first, second) = self.names();
        to.word(kind).string(&first).string(second);
        to.0
    }

    /// Whether the launcher stays as it is, whether it answers or not.
    #[must_use]
    pub fn only_asks(&self) -> bool {
        matches!(self, Self::LookUp(_) | Self::OtherJob(_) | Self::Greet)
    }

    fn names(&self) -> Names<'_> {
        let (kind, first, second): (u32, &[u8], &[u8]) = match self {
            Self::Spawn(_) => (0, b"", b""),
            Self::OpenPort => (1, b"", b""),
            Self::ClosePort(port) => (2, port, b""),
            Self::Accept(port) => (3, port, b""),
            Self::Connect(port) => (4, port, b""),
            Self::Publish(service, port, Scope::User) => (5, service, port),
            Self::Publish(service, port, Scope::Job) => (13, service, port),
            Self::Unpublish(service, port) => (6, service, port),
            Self::LookUp(service) => (7, service, b""),
            Self::Host => (8, b"", b""),
            Self::OtherJob(job) => return (9, Cow::Owned(job.to_le_bytes().to_vec()), b""),
            Self::Greet => (10, b"", b""),
            Self::ConnectFrom(port) => (11, port, b""),
            Self::Watch => (12, b"", b""),
        };
        (kind, Cow::Borrowed(first), second)
    }

    /// Reads the place of the process that asks, and the request.
    ///
    /// # Errors
    /// [`Error::Other`] if the bytes are no request.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self)> {
        let mut from = Reader(bytes);
        let (place, kind) = (from.word()?, from.word()?);
        let request = if kind == 0 { Self::Spawn(spawn(&mut from)?) } else { named(kind, &mut from)? };
        from.end()?;
        Ok((place, request))
    }
}

fn spawn(from: &mut Reader<'_>) -> Result<SpawnRequest> {
    let (wdir, env) = (from.string()?.to_vec(), from.strings()?);
    let count = from.count(20)?;
    let programs = (0..count).map(|_| program(from)).collect::<Result<_>>()?;
    Ok(SpawnRequest { programs, wdir, env })
}

fn program(from: &mut Reader<'_>) -> Result<Program> {
    let program = Program {
        command: from.strings()?,
        most: from.word()?,
        counts: from.words()?,
        wdir: from.string()?.to_vec(),
        path: from.string()?.to_vec(),
        env: from.strings()?,
    };
    if program.command.is_empty() || program.counts.is_empty() {
        return Err(Error::Other("a program to be spawned has no name, or no number of processes".into()));
    }
    Ok(program)
}

fn named(kind: u32, from: &mut Reader<'_>) -> Result<Request> {
    let (first, second) = (from.string()?.to_vec(), from.string()?.to_vec());
    Ok(match kind {
        1 => Request::OpenPort,
        2 => Request::ClosePort(first),
        3 => Request::Accept(first),
        4 => Request::Connect(first),
        5 => Request::Publish(first, second, Scope::User),
        6 => Request::Unpublish(first, second),
        7 => Request::LookUp(first),
        8 => Request::Host,
        9 => {
            let job =
                first.try_into().map_err(|_| Error::Other("a job's number has the wrong length".into()))?;
            Request::OtherJob(u64::from_le_bytes(job))
        }
        10 => Request::Greet,
        11 => Request::ConnectFrom(first),
        12 => Request::Watch,
        13 => Request::Publish(first, second, Scope::Job),
        _ => return Err(Error::Other(format!("{kind} is no request to the launcher"))),
    })
}

/// What the launcher answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// MPI_SUCCESS, or the class of the error.
    pub class: i32,
    /// What went wrong, or the name that was asked for.
    pub text: Vec<u8>,
    /// The numbers that were asked for.
    pub numbers: Vec<u32>,
}

impl Answer {
    /// The answer that the request was fulfilled.
    #[must_use]
    pub fn good(text: &[u8], numbers: &[u32]) -> Self {
        Self { class: MPI_SUCCESS, text: text.to_vec(), numbers: numbers.to_vec() }
    }

    /// The answer that the request cannot be fulfilled.
    #[must_use]
    pub fn error(class: i32, text: &str) -> Self {
        Self { class, text: text.as_bytes().to_vec(), numbers: vec![] }
    }

    /// The process that has come to a port.
    ///
    /// # Errors
    /// [`Error::Intern`] if the answer names none.
    pub fn contact(&self) -> Result<Contact> {
        match self.numbers[..] {
            [place, context] => Ok(Contact { place, context }),
            _ => Err(Error::Intern("a meeting without a place".into())),
        }
    }

    /// The answer as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.word(self.class.cast_unsigned()).string(&self.text).words(&self.numbers);
        to.0
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Error::Other`] if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader(bytes);
        let class = from.word()?.cast_signed();
        let answer = Self { class, text: from.string()?.to_vec(), numbers: from.words()? };
        from.end()?;
        Ok(answer)
    }

    /// The answer, if the request was fulfilled.
    ///
    /// # Errors
    /// The error that the launcher names.
    pub fn checked(self) -> Result<Self> {
        if self.class == MPI_SUCCESS {
            return Ok(self);
        }
        Err(Error::Dynamic { class: self.class, what: String::from_utf8_lossy(&self.text).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request> {
        let program = Program {
            command: vec![b"a".to_vec(), b"".to_vec(), b"\xff".to_vec()],
            most: 5,
            counts: vec![4, 2],
            wdir: b"/tmp".to_vec(),
            path: b"/bin:.".to_vec(),
            env: vec![b"A=1".to_vec()],
        };
        let programs = vec![program.clone(), Program { wdir: vec![], ..program }];
        vec![
            Request::Spawn(SpawnRequest { programs, wdir: b"/".to_vec(), env: vec![b"B=2".to_vec()] }),
            Request::OpenPort,
            Request::ClosePort(b"p".to_vec()),
            Request::Accept(b"p".to_vec()),
            Request::Connect(b"".to_vec()),
            Request::Publish(b"s".to_vec(), b"p".to_vec(), Scope::User),
            Request::Publish(b"s".to_vec(), b"p".to_vec(), Scope::Job),
            Request::Unpublish(b"s".to_vec(), b"p".to_vec()),
            Request::LookUp(b"s".to_vec()),
            Request::Host,
            Request::OtherJob(u64::MAX - 7),
            Request::Greet,
            Request::ConnectFrom(b"p".to_vec()),
            Request::Watch,
        ]
    }

    #[test]
    fn a_request_arrives_as_it_was_made() {
        for request in requests() {
            assert_eq!(Request::decode(&request.encode(7)).unwrap(), (7, request));
        }
    }

    #[test]
    fn bytes_that_are_cut_off_or_changed_are_no_request() {
        for request in requests() {
            let bytes = request.encode(7);
            for len in 0..bytes.len() {
                assert!(Request::decode(&bytes[..len]).is_err(), "{request:?} up to {len}");
            }
            assert!(Request::decode(&[&bytes[..], b"x"].concat()).is_err());
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] = !changed[at];
                // Whatever it is now, it is read without harm.
                let _ = Request::decode(&changed);
            }
        }
        let empty = SpawnRequest { programs: vec![Program::default()], ..SpawnRequest::default() };
        assert!(Request::decode(&Request::Spawn(empty).encode(0)).is_err());
    }

    #[test]
    fn an_ending_arrives_as_it_was() {
        for ending in [Ending { place: 7, exit: 9 }, Ending { place: u32::MAX, exit: -1 }] {
            assert_eq!(Ending::decode(ending.encode()), ending);
        }
    }

    #[test]
    fn an_answer_arrives_as_it_was_made() {
        for answer in [Answer::good(b"name", &[1, 2]), Answer::error(43, "no port"), Answer::default()] {
            assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
        }
        assert!(Answer::decode(b"123").is_err());
        let error = Answer::error(43, "no port").checked().unwrap_err();
        assert_eq!((error.class(), error.to_string()), (43, "no port".to_owned()));
    }
}
