//! The reaper: a small process that outlives a launcher that was killed, and kills what the launcher can no longer kill.
//!
//! The kernel kills the ranks when the launcher dies (PR_SET_PDEATHSIG), but not the processes that a rank has started. The
//! reaper holds the reading end of a pipe whose only writer is the launcher. When the pipe closes, the launcher has died,
//! and the reaper kills the process groups of all ranks and every process whose environment carries the job's id.

use std::io::{self, Read};
use std::os::fd::AsRawFd;

use perusal::internals::shm::Memory;

use crate::environment::JOB_ID_VARIABLE;
use crate::sys;

/// The reaper process of a job. [`Reaper::stop`] ends it when the job is over.
#[derive(Debug)]
pub struct Reaper {
    pid: i32,
    /// Closing this wakes the reaper.
    _lifeline: io::PipeWriter,
}

impl Reaper {
    /// Starts the reaper. Call it before anything is opened that the reaper should not hold open.
    pub fn start(memory: &Memory) -> io::Result<Self> {
        let (mut watched, lifeline) = io::pipe()?;
        // SAFETY: the launcher has one thread, so no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(lifeline);
                run(memory, &mut watched);
                // SAFETY: leaves without running the launcher's exit handlers.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { pid, _lifeline: lifeline }),
        }
    }

    /// Kills the reaper and waits for its end.
    pub fn stop(self) {
        sys::signal_process(self.pid, libc::SIGKILL);
        // SAFETY: waits for a child of this process; a null status is allowed.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// What the reaper process does: it waits for the launcher's end, then kills what is left of the job.
fn run(memory: &Memory, watched: &mut io::PipeReader) {
    // SAFETY: calls on integers and a NUL-terminated literal. A group of its own keeps the terminal's signals away; the
    // mask inherited from the launcher keeps the rest away, SIGKILL apart. Standard streams are closed, so that nobody
    // waits for this process to close them.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, c"perusal-reaper".as_ptr(), 0, 0, 0);
        for fd in 0..3 {
            libc::close(fd);
        }
        let keep = watched.as_raw_fd().cast_unsigned();
        libc::syscall(libc::SYS_close_range, 3, keep - 1, 0);
        libc::syscall(libc::SYS_close_range, keep + 1, u32::MAX, 0);
    }
    let mut byte = [0];
    while watched.read(&mut byte).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    for rank in 0..memory.size() {
        sys::signal_group(memory.roster().entry(rank).group(), libc::SIGKILL);
    }
    // The second pass finds what was being started during the first.
    kill_marked(memory.header().job_id());
    kill_marked(memory.header().job_id());
}

/// Kills every process that carries the job's id in the environment that it was started with.
fn kill_marked(job_id: u64) {
    let mark = format!("{JOB_ID_VARIABLE}={job_id:016x}");
    let own = std::process::id();
    for pid in processes().filter(|pid| *pid != own) {
        if let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ"))
            && environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        {
            sys::signal_process(pid.cast_signed(), libc::SIGKILL);
        }
    }
}

/// All process ids that `/proc` shows.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
