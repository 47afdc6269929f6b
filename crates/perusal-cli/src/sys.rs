//! System calls that the launcher needs and the standard library lacks, each behind a safe function.

use perusal::internals::shm::machine::{resource_limit, wants_descriptors};
use perusal::internals::shm::peer_memory;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;
use std::time::Duration;

/// Bytes of memory that this process may still take: the machine's, the cgroup's, or what it is limited to itself.
pub fn free_memory() -> u64 {
    let limit = resource_limit(Resource::As).current.unwrap_or(u64::MAX);
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok());
    let available = kib.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024));
    limit.min(available).min(perusal::internals::shm::machine::memory())
}

/// Turns the result of a system call that returns -1 for an error into a `Result`.
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What may be read or written without waiting, of many descriptors.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches `fd` for `events` under the name `token`. A regular file cannot be watched.
    pub fn add(&self, fd: impl AsFd, events: EventFlags, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(token), events)?)
    }

    /// Stops watching `fd`; nothing happens if it was not watched.
    pub fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits for one of them, at most `timeout`; the tokens of those that are ready.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        const ROOM: usize = 64;
        // The longest wait that every kernel takes.
        const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);
        let mut events = [const { MaybeUninit::uninit() }; ROOM];
        let timeout = timeout.and_then(|left| Timespec::try_from(left.min(LONGEST)).ok());
        match epoll::wait(&self.0, &mut events, timeout.as_ref()) {
            Ok((ready, _)) => Ok(ready.iter().map(|event| event.data.u64()).collect()),
            Err(Errno::INTR) => Ok(vec![]),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a write to `fd` would not block. A closed reader counts as yes, because the write then reports it.
pub fn writable(fd: BorrowedFd<'_>) -> bool {
    let at_once = Timespec::default();
    rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Makes reads and writes of `fd` return instead of waiting. Only for descriptors that nobody else shares.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?)
}

/// Kind of file, device and inode of `fd`, which tell whether two descriptors lead to the same place.
pub fn identity(fd: impl AsFd) -> Option<(FileType, u64, u64)> {
    let stat = rustix::fs::fstat(fd).ok()?;
    Some((FileType::from_raw_mode(stat.st_mode), stat.st_dev, stat.st_ino))
}

/// A copy of `fd` with a number of at least `least`, which shell scripts do not use for themselves; a lower number,
/// where so high a one is not allowed.
pub fn duplicate_high(fd: impl AsFd, least: RawFd) -> io::Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(&fd, least);
    Ok(copy.or_else(|_| rustix::io::fcntl_dupfd_cloexec(&fd, 3))?)
}

/// Signals as descriptor: what is in the set is blocked and read from here.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    /// The mask that the launcher was started with, for the ranks.
    pub original: libc::sigset_t,
}

impl Signals {
    /// Blocks `signals` and opens the descriptor.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        let mut original = MaybeUninit::uninit();
        // SAFETY: sigemptyset fills `set` before the others use it; sigprocmask fills `original` when it succeeds; the
        // launcher has one thread.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), original.as_mut_ptr()))?;
            let fd = check(libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), original: original.assume_init() })
        }
    }

    /// The descriptor, for watching.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next signal that has come, if one has.
    pub fn next(&self) -> Option<i32> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is room for `size` bytes.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        // SAFETY: a signalfd gives whole records, so a read of `size` has filled it.
        (got == size.cast_signed()).then(|| unsafe { info.assume_init() }.ssi_signo.cast_signed())
    }
}

/// Whether `signal` was being ignored when the launcher was started.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action only asks; `action` is room for the answer, filled when the call succeeds.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Sends `signal` to the process group `group`; nothing happens if there is none.
pub fn signal_group(group: i32, signal: i32) {
    if let Some((group, signal)) = target(group, signal) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Kills the process group that `leader`, a pidfd, leads or led; `number` is the group's. A group that has got the
/// number since is not meant.
pub fn kill_group_of(leader: BorrowedFd<'_>, number: i32) {
    const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: integers, and a null pointer that stands for no further information.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            leader.as_raw_fd(),
            libc::SIGKILL,
            nothing,
            PIDFD_SIGNAL_PROCESS_GROUP,
        )
    };
    // Linux before 6.9 knows no such flag. As long as the leader can be signalled it is not reaped,
    // and the number still its group's.
    if sent != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
        && rustix::process::pidfd_send_signal(leader, Signal::KILL).is_ok()
    {
        signal_group(number, libc::SIGKILL);
    }
}

/// Sends `signal` to one process; nothing happens if there is none.
pub fn signal_process(pid: i32, signal: i32) {
    if let Some((pid, signal)) = target(pid, signal) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Why this process may not send signals to `pid`, if that is so.
pub fn refusal(pid: i32) -> Option<io::Error> {
    rustix::process::test_kill_process(Pid::from_raw(pid)?).err().map(io::Error::from)
}

/// A process or group other than the machine's first, and a signal that has a name.
fn target(pid: i32, signal: i32) -> Option<(Pid, Signal)> {
    Some(pid).filter(|pid| *pid > 1).and_then(Pid::from_raw).zip(Signal::from_named_raw(signal))
}

/// The state of this process's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStatus {
    /// This one has ended, with this wait status.
    Ended(i32, i32),
    /// All that there are still run.
    Running,
    /// There are none.
    NoChildren,
}

/// Takes the next child that has ended, without waiting.
pub fn next_child() -> ChildStatus {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => ChildStatus::Ended(pid.as_raw_pid(), status.as_raw()),
        Ok(None) => ChildStatus::Running,
        Err(_) => ChildStatus::NoChildren,
    }
}

/// Makes this process the parent of its orphaned descendants, so that it can end them. Where the kernel does not know
/// it, orphans go to init as ever. Children leave their status even where the program that has started this one ignores
/// SIGCHLD.
pub fn adopt_orphans() {
    // SAFETY: the default action runs no code of this process.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Raises the limit on open descriptors to at least `needed` if that is allowed; the old limit, for the ranks.
pub fn raise_descriptor_limit(needed: u64) -> Option<Rlimit> {
    wants_descriptors(needed);
    let old = resource_limit(Resource::Nofile);
    if old.current.is_none_or(|current| current >= needed) {
        return None;
    }
    let new = Rlimit { current: Some(old.maximum.map_or(needed, |most| needed.min(most))), ..old };
    rustix::process::setrlimit(Resource::Nofile, new).is_ok().then_some(old)
}

/// The most that the stack of this process's first thread may have, in bytes.
pub fn stack_limit() -> u64 {
    resource_limit(Resource::Stack).current.unwrap_or(u64::MAX)
}

/// Runs `command` on a stack of its own while this thread waits.
/// Only the thread of `command` gets signals, so it is as good as alone.
pub fn on_stack_of(bytes: usize, command: fn() -> ExitCode) -> ExitCode {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut own = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call fills `all`, the second reads it and fills `own`.
    let own = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
        own.assume_init()
    };
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(move || {
        // SAFETY: reads a set that is filled; the former one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const own, std::ptr::null_mut()) };
        command()
    });
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            print_error(&format!("perusal: no thread can be started: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Whether the kernel lets one child of this process read another's memory, as it then lets ranks read each other's.
pub fn siblings_may_read() -> bool {
    static PROBE: u8 = 42;
    // SAFETY: the children call functions that are safe after fork, on their own memory, and end without running
    // anything of this process's.
    unsafe {
        let first = libc::fork();
        if first == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::pause();
            libc::_exit(0);
        }
        if first < 0 {
            return false;
        }
        let second = libc::fork();
        if second == 0 {
            let mut byte = 0;
            let read = peer_memory::read_peer(first, (&raw const PROBE) as u64, &raw mut byte, 1);
            libc::_exit(i32::from(read.is_err() || byte != PROBE));
        }
        let mut status = 1;
        let ended = second > 0 && libc::waitpid(second, &raw mut status, 0) == second;
        libc::kill(first, libc::SIGKILL);
        libc::waitpid(first, core::ptr::null_mut(), 0);
        ended && status == 0
    }
}

/// Three words of 32 bits in the memory of the process `pid`, from `addr` on, where the kernel lets this one see them.
pub fn words_of(pid: i32, addr: u64) -> Option<[u32; 3]> {
    let mut words = [0_u32; 3];
    let bytes = size_of_val(&words);
    // SAFETY: `words` has room for as many bytes as are read, and is this function's own.
    unsafe { peer_memory::read_peer(pid, addr, words.as_mut_ptr().cast(), bytes) }.ok()?;
    Some(words)
}

/// Whether this process is in the foreground of the terminal `fd`, so that reading from it does not stop it.
pub fn is_foreground(fd: BorrowedFd<'_>) -> bool {
    rustix::termios::tcgetpgrp(fd).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Stops this process, as a terminal's stop key would.
pub fn stop_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}

/// Writes lines of the command's own to standard error; a terminal obeys nothing else of them. A failure cannot be
/// reported anywhere, so it is ignored.
pub fn print_error(text: &str) {
    let _ = io::stderr().write_all(perusal_trace::terminal::lines(text).as_bytes());
}

/// Lets a closed pipe on standard output end this process quietly, as it ends any program that only prints.
pub fn die_of_broken_pipes() {
    // SAFETY: restores a default action; no memory is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
