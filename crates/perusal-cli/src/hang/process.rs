//! What the kernel says of a process: whether it runs, sleeps, or is stopped, and in which system call it is.

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

    /// Whether a thread of the process `pid` accesses files for the library, as far as can be known: then what others wait for may come without a message.
    pub fn has_file_thread(pid: i32) -> bool {
        let name =
            |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread?.path().join("comm"));
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        // A thread whose name cannot be read has ended.
        threads.map_or(true, |mut threads| {
            threads.any(|thread| name(thread).is_ok_and(|name| name.trim_end() == FILE_THREAD))
        })
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
