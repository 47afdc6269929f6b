//! How a process has ended, in the words of a shell.

use core::fmt;

/// How a process ended: the status word of `waitpid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub i32);

impl Exit {
    /// Returns the signal that ended it, if one did.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        libc::WIFSIGNALED(self.0).then(|| libc::WTERMSIG(self.0))
    }

    /// Returns its status as a shell does: the exit status, or 128 plus the signal.
    #[must_use]
    pub fn status(self) -> i32 {
        match self.signal() {
            Some(signal) => 128 + signal,
            None => libc::WEXITSTATUS(self.0),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signal() {
            Some(signal) if libc::WCOREDUMP(self.0) => {
                write!(f, "killed by {} (core dumped)", signal_name(signal))
            }
            Some(signal) => write!(f, "killed by {}", signal_name(signal)),
            None => write!(f, "exited with status {}", self.status()),
        }
    }
}

/// Returns a signal's name with its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSTKFLT => "SIGSTKFLT",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGPROF => "SIGPROF",
        libc::SIGIO => "SIGIO",
        libc::SIGPWR => "SIGPWR",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_a_shell_would_say_it() {
        assert_eq!(Exit(3 << 8).status(), 3);
        assert_eq!(Exit(11).status(), 139);
        assert_eq!(Exit(11).to_string(), "killed by SIGSEGV (signal 11)");
        assert_eq!(Exit(0).to_string(), "exited with status 0");
    }
}
