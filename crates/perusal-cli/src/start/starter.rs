//! Starts the processes of a job: its ranks at first, and those that ranks spawn later.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::process::Rlimit;

use super::environment::RankIdentity;
use super::spawn::{RankStart, SpawnError, spawn};
use crate::supervisor::reaper::Reaper;
use crate::sys;

/// Smallest number that descriptors of the job get: shell scripts use the low ones for themselves.
const HIGH_DESCRIPTOR: i32 = 100;

/// What every process of a job is started with.
#[derive(Debug)]
pub struct ProcessStarter {
    segment: OwnedFd,
    door: OwnedFd,
    null: File,
    mask: libc::sigset_t,
    descriptors: Option<Rlimit>,
}

/// One process to start.
#[derive(Debug)]
pub struct NewProcess<'a> {
    /// Program and arguments.
    pub argv: &'a [CString],
    /// The program's environment.
    pub env: &'a [CString],
    /// Who the process is; the starter fills in the descriptors.
    pub identity: RankIdentity<'a>,
    /// Working directory, if another than the launcher's.
    pub wdir: Option<&'a CString>,
    /// CPUs to run on; empty for all.
    pub cpus: &'a [u32],
    /// Standard input; nothing for none.
    pub stdin: Option<RawFd>,
}

/// A process that has been started.
#[derive(Debug)]
pub struct Started {
    /// Its process id, which is also its group's.
    pub pid: i32,
    /// What it writes to standard output and to standard error.
    pub output: [io::PipeReader; 2],
}

/// Why a process was not started.
#[derive(Debug)]
pub enum StartError {
    /// There is no pipe for its output.
    Pipe(io::Error),
    /// The process, or the program in it.
    Spawn(SpawnError),
}

impl ProcessStarter {
    /// Makes the descriptors that processes inherit: the job's memory, and the ranks' side of the door. `mask` is the
    /// signal mask, and `descriptors` the limit, to start with.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(
        segment: &File,
        door: OwnedFd,
        mask: libc::sigset_t,
        descriptors: Option<Rlimit>,
    ) -> io::Result<Self> {
        Ok(Self {
            segment: sys::duplicate_high(segment, HIGH_DESCRIPTOR)?,
            door: sys::duplicate_high(door, HIGH_DESCRIPTOR)?,
            null: File::open("/dev/null")?,
            mask,
            descriptors,
        })
    }

    /// Starts a process, whose group `reaper` gets.
    ///
    /// # Errors
    /// Which step failed.
    pub fn start(&self, new: &NewProcess<'_>, reaper: Option<&Reaper>) -> Result<Started, StartError> {
        let (own_out, out) = io::pipe().map_err(StartError::Pipe)?;
        let (own_err, err) = io::pipe().map_err(StartError::Pipe)?;
        let identity =
            RankIdentity { fd: self.segment.as_raw_fd(), door: self.door.as_raw_fd(), ..new.identity };
        let pid = spawn(&RankStart {
            argv: new.argv,
            env: [new.env, &identity.environment()],
            wdir: new.wdir,
            cpus: new.cpus,
            stdio: [new.stdin.unwrap_or_else(|| self.null.as_raw_fd()), out.as_raw_fd(), err.as_raw_fd()],
            inherited: [self.segment.as_raw_fd(), self.door.as_raw_fd()],
            mask: &self.mask,
            descriptors: self.descriptors,
            reaper,
        })
        .map_err(StartError::Spawn)?;
        Ok(Started { pid, output: [own_out, own_err] })
    }
}
