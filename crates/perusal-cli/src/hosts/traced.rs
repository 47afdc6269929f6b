//! `perusal fabric --trace`: starts the launcher of another MPI, whose endpoints join a trace.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use crate::sys::{self, Epoll, Signals};
use crate::trace::Request;

/// Where an endpoint finds the trace.
const VARIABLE: &str = "PERUSAL_FABRIC_TRACE";
/// Signals that end the job, which the program gets. A terminal's interrupt it has got itself.
const PASSED_ON: [i32; 2] = [libc::SIGTERM, libc::SIGHUP];

/// Runs a program with its arguments, and ends as it does.
pub fn run(trace: &Request, words: &[OsString]) -> ExitCode {
    let replaced = match trace.begin_joined(words) {
        Ok(replaced) => replaced,
        Err(why) => return failed(&why),
    };
    match start(trace, words) {
        Err(why) => {
            replaced.undo();
            failed(&why)
        }
        Ok(status) => {
            // As a shell has it.
            let status = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8;
            sys::print_error(&format!("perusal fabric: {}\n", trace.end_joined(status)));
            ExitCode::from(status)
        }
    }
}

/// Says why there is no trace.
pub fn failed(why: &str) -> ExitCode {
    sys::print_error(&format!("perusal fabric: {why}\n"));
    ExitCode::FAILURE
}

/// Starts the program, and waits for its end.
fn start(trace: &Request, words: &[OsString]) -> Result<ExitStatus, String> {
    let (program, arguments) = words.split_first().ok_or("no program to trace")?;
    let name = program.to_string_lossy();
    let why = |error: std::io::Error| format!("{name} cannot be started: {error}");
    // Before the program is there, so that no end of it is missed.
    let signals = Signals::new(&[&PASSED_ON[..], &[libc::SIGINT, libc::SIGCHLD]].concat()).map_err(why)?;
    let mut command = Command::new(program);
    command.args(arguments).env(VARIABLE, &trace.path);
    let original = signals.original;
    // SAFETY: sigprocmask is async-signal-safe, and reads a mask that the closure owns.
    unsafe {
        command.pre_exec(move || {
            match libc::sigprocmask(libc::SIG_SETMASK, &raw const original, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().map_err(why)?;
    wait(&signals, &mut child).map_err(|error| format!("{name} cannot be waited for: {error}"))
}

/// Waits for the end of the program, and passes signals on to it.
fn wait(signals: &Signals, child: &mut Child) -> std::io::Result<ExitStatus> {
    let epoll = Epoll::new()?;
    epoll.add(signals.fd(), EventFlags::IN, 0)?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        epoll.wait(Some(Duration::from_secs(1)))?;
        while let Some(signal) = signals.next() {
            if PASSED_ON.contains(&signal) {
                sys::signal_process(child.id().cast_signed(), signal);
            }
        }
    }
}
