//! The launcher of a program that was started without one: the program's library starts it, as `perusal run --adopt`,
//! for processes that it spawns (`src/dynamic/own_launcher.rs`).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;

use perusal::internals::shm::Memory;

use crate::args::{Plan, Stdin};
use crate::start::starter::ProcessStarter;
use crate::supervisor::reaper::Reaper;
use crate::supervisor::{FORWARDED, Supervisor, SupervisorParts};
use crate::sys;

/// Serves the program whose memory, door (both sides) and lifeline are the descriptors in `numbers`.
pub fn main(name: &str, numbers: &str) -> ExitCode {
    match serve(name, numbers) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            sys::print_error(&format!("{name}: --adopt is for the MPI library alone: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn serve(name: &str, numbers: &str) -> io::Result<u8> {
    let numbers: Vec<RawFd> = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
    let &[segment, door, ranks_side, lifeline] = numbers.as_slice() else {
        return Err(io::Error::other("four descriptors are needed"));
    };
    if numbers.iter().any(|number| *number < 3) {
        return Err(io::Error::other("these are not its descriptors"));
    }
    let memory = Memory::attach(segment).map_err(|error| io::Error::other(error.to_string()))?;
    // SAFETY: the library has opened these descriptors for this process, in which nothing else owns them.
    let [door, ranks_side, lifeline] =
        [door, ranks_side, lifeline].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    for descriptor in [&door, &ranks_side, &lifeline] {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    let descriptors = sys::raise_descriptor_limit(u64::from(memory.places()) * 2 + 128);
    let job_id = memory.header().job_id();
    let ignored = FORWARDED.into_iter().filter(|signal| sys::is_ignored(*signal)).collect();
    let mut watched = FORWARDED.to_vec();
    watched.push(libc::SIGCHLD);
    let signals = sys::Signals::new(&watched)?;
    sys::adopt_orphans();
    let reaper = Reaper::start(job_id)?;
    let starter = ProcessStarter::new(memory.segment().file(), ranks_side, signals.original, descriptors)?;
    let plan = Plan { stdin: Stdin::None, ..Plan::default() };
    let parts = SupervisorParts {
        name,
        plan: &plan,
        memory,
        signals,
        reaper,
        relay: None,
        ignored,
        claim: None,
        starter,
        door,
    };
    let mut supervisor = Supervisor::new(parts)?;
    let program = std::os::unix::process::parent_id().cast_signed();
    supervisor.adopt(program, lifeline)?;
    Ok(supervisor.run())
}
