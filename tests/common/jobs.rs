//! What the launcher's tests share: running it under a time limit, and looking for what it left behind.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// After so long a test is hung, on however slow a machine.
pub const LIMIT: Duration = crate::common::HANG;

/// The launcher.
pub const PERUSAL: &str = of_the_package(option_env!("CARGO_BIN_EXE_perusal"));
/// The program of `tests/launcher/rank.rs`.
pub const RANK: &str = of_the_package(option_env!("CARGO_BIN_EXE_perusal-test-rank"));

/// The path, where the test belongs to the launcher's package; tests of other packages do not ask.
const fn of_the_package(path: Option<&'static str>) -> &'static str {
    match path {
        Some(path) => path,
        None => "",
    }
}

/// What a launcher that has ended left.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("the launcher was killed: {self:?}"))
    }

    /// The lines of standard output, sorted.
    pub fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.out.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// A launcher that runs. Whatever happens to the test, it does not outlive it.
pub struct Job {
    child: Option<Child>,
    pub mark: String,
}

/// Starts `perusal run` with these arguments; its environment carries a mark by which its processes can be found.
pub fn start(args: &[&str], stdin: Stdio) -> Job {
    // Most of the tests' ranks wait for what never comes.
    start_as(Command::new(PERUSAL).args(["run", "--on-deadlock", "ignore"]), args, stdin)
}

pub fn start_as(command: &mut Command, args: &[&str], stdin: Stdio) -> Job {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("perusal-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    command.args(args).env("PERUSAL_TEST_MARK", &mark).env_remove("MPIEXEC_TIMEOUT");
    // SAFETY: `heed_signals` makes system calls only.
    unsafe { command.pre_exec(heed_signals) };
    let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Job { child: Some(child.expect("the launcher can be started")), mark }
}

/// Gives signals their default actions again. Tests may be run by a shell that has them ignored in the background, and
/// what is ignored stays so.
pub fn heed_signals() -> std::io::Result<()> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: sets a default action; no memory is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

impl Job {
    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("not ended").id().cast_signed()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to our own child, which has not been reaped; no memory is involved.
        unsafe { libc::kill(self.pid(), signal) };
    }

    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.as_mut().expect("not ended").stdin.take().expect("a pipe")
    }

    /// Waits for its end, reading all that it writes.
    pub fn end(mut self) -> Ended {
        let mut child = self.child.take().expect("not ended");
        let read = |mut pipe: Box<dyn Read + Send>| {
            thread::spawn(move || {
                let mut bytes = vec![];
                pipe.read_to_end(&mut bytes).expect("a pipe can be read");
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let out = read(Box::new(child.stdout.take().expect("a pipe")));
        let err = read(Box::new(child.stderr.take().expect("a pipe")));
        let status = wait(&mut child);
        Ended { status, out: out.join().expect("reading"), err: err.join().expect("reading") }
    }

    /// Processes that carry the job's mark.
    pub fn processes(&self) -> Vec<i32> {
        marked(&self.mark)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status;
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("the launcher hangs");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a job without input to its end.
pub fn run(args: &[&str]) -> Ended {
    start(args, Stdio::null()).end()
}

/// Runs a job that reads `input`.
pub fn run_with_input(args: &[&str], input: &[u8]) -> Ended {
    let mut job = start(args, Stdio::piped());
    let mut pipe = job.stdin();
    let input = input.to_vec();
    // The rank may end without having read it all.
    let writer = thread::spawn(move || drop(pipe.write_all(&input)));
    let ended = job.end();
    writer.join().expect("writing");
    ended
}

/// Processes that were started with the mark in their environment and are no zombies.
pub fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("PERUSAL_TEST_MARK={mark}");
    let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
    .collect()
}

/// One of these processes that no other one of them has started.
pub fn eldest(pids: &[i32]) -> i32 {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let found = pids.iter().find(|pid| parent(**pid).is_some_and(|parent| !pids.contains(&parent)));
    *found.expect("a process that runs")
}

/// Waits until something is so.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < LIMIT, "{what} does not happen");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A directory for one test, removed at its end.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: a number of its own is all that is wanted.
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("perusal-{name}-{process}-{number}"));
        // A test that was killed may have left it behind, when its process had this number.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path inside, as text.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
