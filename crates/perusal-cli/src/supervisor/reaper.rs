//! The reaper: a small process that outlives a launcher that was killed,
//! and kills what the launcher can no longer kill.
//!
//! The kernel kills the ranks when the launcher dies (PR_SET_PDEATHSIG), but not the processes that a rank has started.
//! The reaper holds one end of a pair of sockets whose other end only the launcher has. When that is closed, the
//! launcher has died, and the reaper kills the process groups of all ranks and every process whose environment carries
//! the job's id.
//!
//! - **Reaper rule 1.** What the reaper kills by comes from the launcher, or from its code in a process that is not yet
//!   the program of a rank: the job's id before there are ranks, the process groups through the sockets. It reads
//!   nothing from the job's memory, which every rank can write.
//! - **Reaper rule 2.** Process ids come back, so the reaper kills by descriptors (pidfds), which mean one process for
//!   ever, wherever the kernel has them.

use perusal::internals::shm::JOB_ID_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys;

/// The reaper process of a job. [`Reaper::stop`] ends it when the job is over.
#[derive(Debug)]
pub struct Reaper {
    pid: i32,
    /// Closing this wakes the reaper.
    lifeline: OwnedFd,
}

/// The process group of a rank.
struct RankGroup {
    /// Its first process, which the launcher started.
    leader: OwnedFd,
    /// The group's number, which is also the leader's.
    number: i32,
}

impl Reaper {
    /// Starts the reaper of the job `job_id`. Call it before anything is opened that the reaper should not hold open.
    pub fn start(job_id: u64) -> io::Result<Self> {
        let (watched, lifeline) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // SAFETY: the launcher has one thread, so no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(lifeline);
                run(job_id, watched.as_fd());
                // SAFETY: leaves without running the launcher's exit handlers.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { pid, lifeline }),
        }
    }

    /// Hands the reaper the process group that the calling process leads, which is going to be a rank. A reaper that
    /// cannot take it is left with the job's id to find the group's processes by.
    ///
    /// The rank does so itself, before it becomes its program: until then it has a copy of the socket, so the reaper
    /// cannot see the launcher's end before it has the group. It makes system calls only.
    pub fn add_own_group(&self) -> Result<(), Errno> {
        let leader = getpid();
        let descriptor = pidfd_open(leader, PidfdFlags::empty())?;
        let descriptors = [descriptor.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let number = leader.as_raw_nonzero().get().to_le_bytes();
        let mut send = || {
            sendmsg(
                &self.lifeline,
                &[IoSlice::new(&number)],
                &mut control,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            )
        };
        match send() {
            Err(Errno::AGAIN) => {
                // The reaper is behind some hundred ranks. Nobody waits long for one that somebody has stopped.
                let mut room = [PollFd::new(&self.lifeline, PollFlags::OUT)];
                poll(&mut room, Some(&MOST_WAIT))?;
                send()
            }
            sent => sent,
        }
        .map(drop)
    }

    /// Kills the reaper and waits for its end. A reaper that may not be killed ends by itself, behind the launcher.
    pub fn stop(self) {
        if sys::refusal(self.pid).is_some() {
            return;
        }
        sys::signal_process(self.pid, libc::SIGKILL);
        // SAFETY: waits for a child of this process; a null status is allowed.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// What the reaper process does: it waits for the launcher's end, then kills what is left of the job.
fn run(job_id: u64, watched: BorrowedFd<'_>) {
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
    let mut groups = vec![];
    while let Some(group) = next_group(watched) {
        groups.extend(group);
    }
    for RankGroup { leader, number } in &groups {
        sys::kill_group_of(leader.as_fd(), *number);
    }
    kill_marked(job_id);
    // What was being started during one look is found by a later one.
    for _ in 1..LOOKS {
        std::thread::sleep(BETWEEN_LOOKS);
        if !kill_marked(job_id) {
            return;
        }
    }
}

/// The longest that a rank which is started waits for room in the socket.
const MOST_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Most looks for processes of the job that are left, where one has found any.
const LOOKS: u32 = 100;
/// The time between two of them.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Waits for the next group. `None` when the launcher has ended; nothing inside for a message without a descriptor,
/// where this process has no room for one.
fn next_group(watched: BorrowedFd<'_>) -> Option<Option<RankGroup>> {
    let mut number = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match recvmsg(watched, &mut [IoSliceMut::new(&mut number)], &mut control, flags) {
            Err(Errno::INTR) => {}
            got => break got.ok()?,
        }
    };
    if got.bytes == 0 {
        return None;
    }
    let mut leaders = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
        _ => vec![],
    });
    Some(leaders.next().map(|leader| RankGroup { leader, number: i32::from_le_bytes(number) }))
}

/// Kills every process that carries the job's id in the environment that it was started with. Returns true if there was
/// one, or one whose environment is not there yet.
fn kill_marked(job_id: u64) -> bool {
    let mark = format!("{JOB_ID_VARIABLE}={job_id:016x}");
    let own = std::process::id();
    let mut found = false;
    for pid in processes().filter(|pid| *pid != own) {
        // The descriptor comes first: if the process ends and another one gets its number, the environment that is read
        // may be the other one's, but nobody is killed for it (reaper rule 2).
        let Some(number) = Pid::from_raw(pid.cast_signed()) else { continue };
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(process) => Some(process),
            // Linux before 5.3 has numbers only.
            Err(Errno::NOSYS) => None,
            Err(_) => continue,
        };
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        // Between its old program and its new one a process has none for a moment; threads of the kernel, and the dead,
        // have no program either.
        found |= environment.is_empty() && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) {
            found = true;
            // Either fails if the process has ended meanwhile.
            let _ = match process {
                Some(process) => pidfd_send_signal(process, Signal::KILL),
                None => kill_process(number, Signal::KILL),
            };
        }
    }
    found
}

/// All process ids that `/proc` shows.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
