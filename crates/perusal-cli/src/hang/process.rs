//! What the kernel says of a process: whether it runs, sleeps, or is stopped, and in which system call it is.

use perusal::internals::engine::PROGRESS_THREAD;
use perusal::internals::io::FILE_THREAD;

/// A process as `/proc` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessView {
    /// The letter of its state (proc_pid_stat(5)).
    state: Option<char>,
    /// Its threads; 0 if the kernel does not say.
    pub threads: u32,
    /// The number of the system call that its first thread sleeps in.
    call: Option<i64>,
}

impl ProcessView {
    /// The process `pid`; unknown if there is none.
    pub fn of(pid: i32) -> Self {
        if pid <= 0 {
            return Self::default();
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain anything.
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let state = fields.next().and_then(|state| state.chars().next());
        // Field 20; the state is field 3.
        let threads = fields.nth(16).and_then(|threads| threads.parse().ok()).unwrap_or(0);
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok();
        let call = call.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Self { state, threads, call }
    }

    /// Whether a thread of the process `pid` accesses files for the library, as far as can be known: then what others
    /// wait for may come without a message.
    pub fn has_file_thread(pid: i32) -> bool {
        let name =
            |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread?.path().join("comm"));
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        // A thread whose name cannot be read has ended.
        threads.map_or(true, |mut threads| {
            threads.any(|thread| name(thread).is_ok_and(|name| name.trim_end() == FILE_THREAD))
        })
    }

    /// Whether all threads of the process `pid` but those with the numbers `in_mpi` sleep and only a thread of the
    /// process could wake them: one of those, or nobody. The library's thread that makes progress counts for none: it
    /// does nothing while a thread that waits has the lock of progress.
    ///
    /// They wait for a futex without a limit (a mutex, a condition, the end of a thread). All must do so at one moment:
    /// each is seen twice, and all are seen once before any is seen again; one that has not slept all the time between
    /// has been switched meanwhile. A handler of a signal could wake one, too, so programs that catch signals of timers
    /// or of their own are not judged.
    pub fn others_sleep(pid: i32, in_mpi: &[u64]) -> bool {
        let Some(first) = Sleepers::of(pid) else { return false };
        first.others.iter().all(|thread| in_mpi.contains(thread))
            && Sleepers::of(pid).as_ref() == Some(&first)
            && !Self::catches_more_than_its_end(pid)
    }

    /// Whether the process `pid` catches signals, as far as can be known, other than those that ask for its end,
    /// tell of a fault, or are glibc's own.
    pub fn catches_more_than_its_end(pid: i32) -> bool {
        const HARMLESS: [i32; 15] = [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGSEGV,
            libc::SIGPIPE,
            libc::SIGTERM,
            libc::SIGSYS,
            libc::SIGWINCH,
            32,
            33,
        ];
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let harmless = HARMLESS.iter().fold(0, |mask, signal| mask | 1_u64 << (signal - 1));
        caught.is_none_or(|caught| caught & !harmless != 0)
    }

    /// Whether a signal or a debugger has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, Some('T' | 't'))
    }

    /// What it does, to follow "it".
    pub fn doing(&self) -> String {
        let call = self.call.filter(|call| *call >= 0).map(call_name);
        let call = call.map_or_else(String::new, |name| format!(" ({name})"));
        match self.state {
            Some('T' | 't') => "is stopped (a signal or a debugger)".into(),
            Some('R') => "computes, or polls".into(),
            Some('D') => format!("is blocked in the kernel{call}"),
            Some('S') => format!("sleeps in a system call{call}"),
            Some('Z' | 'X') => "has ended".into(),
            _ => "computes, or polls".into(),
        }
    }
}

/// The threads of a process that wait for a futex without a limit, each with how often it has gone to sleep,
/// and its other threads.
#[derive(Debug, PartialEq, Eq)]
struct Sleepers {
    asleep: Vec<(u64, u64)>,
    others: Vec<u64>,
}

impl Sleepers {
    /// `None` if the kernel does not say.
    fn of(pid: i32) -> Option<Self> {
        let (mut asleep, mut others) = (vec![], vec![]);
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let at = thread.ok()?.path();
            let number = at.file_name()?.to_str()?.parse().ok()?;
            let read = |name: &str| std::fs::read_to_string(at.join(name)).ok();
            let switches = |text: String| {
                let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
                line.trim().parse().ok()
            };
            if read("comm").is_some_and(|name| name.trim_end() == PROGRESS_THREAD) {
                continue;
            }
            let count = read("status").and_then(switches)?;
            if waits_for_its_process(pid, &read("syscall")?) {
                asleep.push((number, count));
            } else {
                others.push(number);
            }
        }
        asleep.sort_unstable();
        others.sort_unstable();
        Some(Self { asleep, others })
    }
}

/// The threads of the process `pid`, by the kernel's numbers.
pub fn threads_of(pid: i32) -> Vec<u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}

/// The address of the word on which a thread of the process `pid` sleeps until another one of the process wakes it.
pub fn sleeping_on(pid: i32, thread: u64) -> Option<u64> {
    let syscall = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).ok()?;
    awaited_word(pid, &syscall)
}

/// Whether a thread of the process `pid` sleeps, by the text of its system call,
/// until another thread of the process wakes it.
fn waits_for_its_process(pid: i32, syscall: &str) -> bool {
    awaited_word(pid, syscall).is_some()
}

/// The address of the word on which a thread sleeps so.
fn awaited_word(pid: i32, syscall: &str) -> Option<u64> {
    const COMMAND: u64 = 0x7f;
    let word = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let mut fields = syscall.split_whitespace();
    let is_futex = fields.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex);
    let arguments: Vec<u64> = fields.map_while(word).collect();
    let [addr, operation, _, limit, ..] = arguments[..] else { return None };
    let command = operation & COMMAND;
    let waits = command == libc::FUTEX_WAIT as u64 || command == libc::FUTEX_WAIT_BITSET as u64;
    let is_private = operation & libc::FUTEX_PRIVATE_FLAG as u64 != 0;
    let is_it = is_futex && waits && limit == 0 && (is_private || is_private_memory(pid, addr));
    is_it.then_some(addr)
}

/// Whether no other process can have the memory of `pid` at `addr`.
fn is_private_memory(pid: i32, addr: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let Some((range, rest)) = line.split_once(' ') else { return false };
        let bounds = range.split_once('-').and_then(|(from, to)| {
            Some(u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?)
        });
        bounds.is_some_and(|bounds| bounds.contains(&addr)) && rest.as_bytes().get(3) == Some(&b'p')
    })
}

/// The name of a system call that programs often sleep in, or its number.
fn call_name(number: i64) -> String {
    let known = [
        (libc::SYS_read, "read"),
        (libc::SYS_write, "write"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_pselect6, "pselect"),
        (libc::SYS_epoll_pwait, "epoll_wait"),
        (libc::SYS_wait4, "wait4"),
        (libc::SYS_waitid, "waitid"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_accept, "accept"),
        (libc::SYS_accept4, "accept4"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_rt_sigsuspend, "sigsuspend"),
        (libc::SYS_rt_sigtimedwait, "sigwait"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, "poll"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, "select"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll_wait"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_pause, "pause"),
    ];
    let found = known.into_iter().find(|(known, _)| *known == number);
    found.map_or_else(|| format!("number {number}"), |(_, name)| name.to_owned())
}
