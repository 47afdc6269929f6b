//! The launcher at a terminal: prompts, answers, and the keys that people end programs with.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::attach::listed;
use crate::common::jobs::{Directory, LIMIT, PERUSAL, RANK, eventually, heed_signals, start};

/// A launcher with a terminal of its own, in the foreground of it.
struct Session {
    child: Child,
    terminal: File,
    seen: String,
}

impl Session {
    fn start(args: &[&str]) -> Self {
        Self::of(&[&["run"], args].concat())
    }

    /// The command `perusal` with these arguments.
    fn of(args: &[&str]) -> Self {
        let size = libc::winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: two live integers to fill; the null pointers ask for no name and default settings,
        // and the size is only read.
        let failed = unsafe {
            libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), (&raw const size).cast_mut())
        };
        assert_eq!(failed, 0);
        // SAFETY: openpty has just made both, and nobody else owns them.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let copy = || slave.try_clone().expect("a descriptor");
        let mut command = Command::new(PERUSAL);
        command.args(args).stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: only system calls on integers between fork and exec: a new session with the terminal as its own.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                heed_signals()?;
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("the launcher can be started");
        // SAFETY: an fcntl with integer arguments on our own descriptor.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Self { child, terminal: File::from(master), seen: String::new() }
    }

    /// Reads until `text` has appeared.
    fn expect(&mut self, text: &str) {
        let start = Instant::now();
        while !self.seen.contains(text) {
            assert!(start.elapsed() < LIMIT, "{text:?} does not appear in {:?}", self.seen);
            let mut piece = [0; 1000];
            match self.terminal.read(&mut piece) {
                Ok(got) if got > 0 => self.seen.push_str(&String::from_utf8_lossy(&piece[..got])),
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Gives the terminal another size, and forgets what was seen.
    fn resize(&mut self, rows: u16, columns: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.seen.clear();
        // SAFETY: an ioctl on our own descriptor, which reads a live structure of its type.
        assert_eq!(unsafe { libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
    }

    fn type_in(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("the terminal takes it");
    }

    fn status(&mut self) -> i32 {
        let mut status = None;
        eventually("the launcher's end", || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        status.and_then(|status| status.code()).expect("not killed")
    }
}

/// Whatever happens to the test, the job does not outlive it.
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_prompt_is_shown_before_its_line_ends_and_the_answer_reaches_rank_0() {
    let ask = "test $PERUSAL_RANK = 0 || exit 0; printf 'name? '; read name; echo hello $name";
    let mut session = Session::start(&["-n", "2", "sh", "-c", ask]);
    session.expect("name? ");
    session.type_in("joe\n");
    session.expect("hello joe");
    assert_eq!(session.status(), 0);
}

#[test]
fn the_end_of_input_at_a_terminal_reaches_rank_0() {
    let mut session = Session::start(&["-n", "2", "cat"]);
    session.type_in("one\n");
    // Once as echo of the terminal, once from the rank.
    session.expect("one\r\none\r\n");
    session.type_in("\x04");
    assert_eq!(session.status(), 0);
}

#[test]
fn the_interrupt_key_ends_the_job() {
    // No shell: dash loses an interrupt that comes while it starts a command.
    let dir = Directory::new("interrupt-key");
    let mut session = Session::start(&["-n", "2", RANK, "touch", &dir.file("up"), "sleep"]);
    eventually("start", || std::fs::exists(dir.file("up")).unwrap());
    session.type_in("\x03");
    session.expect("SIGINT");
    assert_eq!(session.status(), 128 + libc::SIGINT);
}

#[test]
fn top_shows_what_ranks_wait_for_and_who_talks_to_whom_until_a_key_ends_it() {
    let job = start(&["-n", "2", RANK, "init", "wait"], Stdio::null());
    let number = job.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    let mut session = Session::of(&["top", &number, "--interval", "0.1"]);
    session.expect("UNEXP");
    // Blanks are jumped over.
    for word in ["waits", "receive", "tag"] {
        session.expect(word);
    }
    // Another key shows who talks to whom, and the same one goes back.
    session.type_in("p");
    session.expect("RECORDS/s");
    session.type_in("p");
    session.expect("UNEXP");
    session.type_in("q");
    assert_eq!(session.status(), 0);
}

#[test]
fn top_fits_its_terminal_and_ends_with_the_job() {
    let job = start(&["-n", "2", RANK, "init", "wait"], Stdio::null());
    let number = job.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    // The interval is so long that what is drawn is drawn for the size.
    let mut session = Session::of(&["top", &number, "--interval", "3600"]);
    session.expect("SLEEPS/s");
    session.expect("ends");
    session.resize(10, 60);
    session.expect("DOING");
    session.expect("ends");
    assert!(session.seen.contains("RECV/s") && !session.seen.contains("OUT/s"), "{:?}", session.seen);
    session.resize(4, 20);
    session.expect("DOING");
    session.expect("┘");
    assert!(!session.seen.contains("SENT/s"), "{:?}", session.seen);
    session.resize(30, 200);
    session.expect("SLEEPS/s");
    session.type_in("q");
    assert_eq!(session.status(), 0);
    let mut session = Session::of(&["top", &number, "--interval", "0.1"]);
    session.expect("DOING");
    job.signal(libc::SIGTERM);
    session.expect(&format!("perusal top: job {number} has ended"));
    assert_eq!(session.status(), 0);
}
