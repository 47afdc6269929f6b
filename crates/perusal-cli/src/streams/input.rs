//! Standard input for the ranks that get it.
//!
//! One rank inherits a file or a pipe, so that nothing is read that it does not read itself. A terminal belongs to the
//! launcher's process group and would stop a rank that reads it, so the launcher reads it and passes lines on. All
//! ranks have a file each for itself, and get copies of what the launcher reads from a pipe or a terminal.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::FileType;

use crate::args::Stdin;
use crate::sys;

/// What ranks have for standard input.
#[derive(Debug)]
pub enum Input {
    /// Nobody has any.
    None,
    /// This rank has the launcher's own.
    Own(u32),
    /// This rank has the other end of a relay.
    Relayed(u32, OwnedFd),
    /// Each rank has its own.
    All(Vec<OwnedFd>),
}

impl Input {
    /// What the ranks of a job of `ranks` have, and the relay that fills it, if it needs one.
    ///
    /// # Errors
    /// Those of making pipes, and of opening a file again.
    pub fn of(stdin: Stdin, ranks: u32) -> io::Result<(Self, Option<Relay>)> {
        let is_terminal = io::stdin().is_terminal();
        Ok(match stdin {
            Stdin::None => (Self::None, None),
            Stdin::Rank(rank) if !is_terminal => (Self::Own(rank), None),
            Stdin::Rank(rank) => {
                let (mut ends, relay) = Relay::new(1)?;
                (ends.pop().map_or(Self::None, |end| Self::Relayed(rank, end)), Some(relay))
            }
            Stdin::All if is_terminal || is_stream() => {
                let (ends, relay) = Relay::new(ranks)?;
                (Self::All(ends), Some(relay))
            }
            Stdin::All => (Self::All((0..ranks).map(|_| own_again()).collect::<io::Result<_>>()?), None),
        })
    }

    /// The descriptor of a rank; none for no input.
    pub fn of_rank(&self, rank: u32) -> Option<RawFd> {
        match self {
            Self::Own(reader) => (*reader == rank).then_some(0),
            Self::Relayed(reader, end) => (*reader == rank).then(|| end.as_raw_fd()),
            Self::All(ends) => ends.get(rank as usize).map(AsRawFd::as_raw_fd),
            Self::None => None,
        }
    }
}

/// Whether standard input is read once by whoever reads it.
fn is_stream() -> bool {
    let kind = sys::identity(rustix::stdio::stdin()).map(|(kind, ..)| kind);
    matches!(kind, Some(FileType::Fifo | FileType::Socket))
}

/// The launcher's own standard input once more, with a place of its own where reading goes on.
fn own_again() -> io::Result<OwnedFd> {
    let mut again = File::open("/proc/self/fd/0")?;
    if let Ok(place) = rustix::fs::tell(rustix::stdio::stdin()) {
        again.seek(SeekFrom::Start(place))?;
    }
    Ok(again.into())
}

/// One end of the pipe to a rank, and how much it has been given of what waits.
#[derive(Debug)]
struct Outflow {
    pipe: io::PipeWriter,
    written: usize,
}

/// The launcher's standard input, which goes to a rank, or to several.
#[derive(Debug)]
pub struct Relay {
    outflows: Vec<Outflow>,
    waiting: Vec<u8>,
    is_terminal: bool,
}

impl Relay {
    /// A relay to so many ranks, with the ends for them.
    fn new(ranks: u32) -> io::Result<(Vec<OwnedFd>, Self)> {
        let (mut ends, mut outflows) = (vec![], vec![]);
        for _ in 0..ranks {
            let (reader, pipe) = io::pipe()?;
            sys::set_nonblocking(&pipe)?;
            ends.push(reader.into());
            outflows.push(Outflow { pipe, written: 0 });
        }
        Ok((ends, Self { outflows, waiting: vec![], is_terminal: io::stdin().is_terminal() }))
    }

    /// The pipes to ranks for which something waits.
    pub fn blocked_on(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let waiting = self.waiting.len();
        self.outflows
            .iter()
            .filter(move |outflow| outflow.written < waiting)
            .map(|outflow| outflow.pipe.as_fd())
    }

    /// Whether more should be read: somebody listens, all is passed on, and a terminal is ours to read.
    pub fn wants_more(&self) -> bool {
        let ours = || !self.is_terminal || sys::is_foreground(io::stdin().as_fd());
        !self.outflows.is_empty() && self.waiting.is_empty() && ours()
    }

    /// Reads once; called when there is something. The end closes the ranks' input.
    pub fn read(&mut self) {
        let mut piece = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Ok(0) => self.outflows.clear(),
            Ok(got) => {
                self.waiting.extend_from_slice(&piece[..got]);
                self.write();
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.outflows.clear(),
        }
    }

    /// Writes as much as it can without blocking.
    pub fn write(&mut self) {
        let waiting = &self.waiting;
        // A rank that does not listen any more is left out.
        self.outflows.retain_mut(|outflow| outflow.write(waiting).is_ok());
        if self.blocked_on().next().is_none() {
            self.waiting.clear();
            self.outflows.iter_mut().for_each(|outflow| outflow.written = 0);
        }
    }
}

impl Outflow {
    fn write(&mut self, waiting: &[u8]) -> io::Result<()> {
        while self.written < waiting.len() {
            match self.pipe.write(&waiting[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
