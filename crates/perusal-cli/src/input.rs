//! Standard input for the one rank that gets it.
//!
//! The rank inherits a file or a pipe, so that nothing is read that it does not read itself. A terminal belongs to
//! the launcher's process group and would stop a rank that reads it, so the launcher reads it and passes lines on.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys;

/// A terminal whose lines go to a rank.
#[derive(Debug)]
pub struct Relay {
    pipe: Option<io::PipeWriter>,
    waiting: Vec<u8>,
}

impl Relay {
    /// A relay if standard input is a terminal, with the end for the rank.
    pub fn of_terminal() -> io::Result<Option<(Self, io::PipeReader)>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        sys::set_nonblocking(&writer)?;
        Ok(Some((Self { pipe: Some(writer), waiting: vec![] }, reader)))
    }

    /// The pipe to the rank, while something waits to be written to it.
    pub fn blocked_on(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Whether more should be read: the rank listens, all is passed on, and the terminal is ours to read.
    pub fn wants_more(&self) -> bool {
        self.pipe.is_some() && self.waiting.is_empty() && sys::is_foreground(io::stdin().as_fd())
    }

    /// Reads once; called when the terminal has something. Its end closes the rank's input.
    pub fn read(&mut self) {
        let mut piece = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Ok(0) => self.pipe = None,
            Ok(got) => {
                self.waiting.extend_from_slice(&piece[..got]);
                self.write();
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
    }

    /// Writes as much as it can without blocking.
    pub fn write(&mut self) {
        while let Some(pipe) = self.pipe.as_mut().filter(|_| !self.waiting.is_empty()) {
            match pipe.write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The rank does not listen any more.
                Err(_) => self.pipe = None,
            }
        }
    }
}
