//! Runs a program with a limit on its time, and everything that it started with it.
#![allow(dead_code)]

use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// `None` if it was killed because it did not end.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// The exit status; 128 and the number of the signal that ended it, as a shell has it.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|s| s.code().or(s.signal().map(|n| 128 + n)))
    }
}

/// Runs `command` in `dir`; after `limit` the whole process group is killed.
pub fn run(command: &mut Command, dir: &Path, name: &str, limit: Duration) -> Outcome {
    // Files, not pipes: nobody has to read them while the program runs,
    // and a process left behind cannot hold them open.
    let (out, err) = (dir.join(format!("{name}.out")), dir.join(format!("{name}.err")));
    let create = |path: &Path| File::create(path).expect("a writable scratch directory");
    command.stdin(Stdio::null()).stdout(create(&out)).stderr(create(&err)).current_dir(dir).process_group(0);
    let mut child = command.spawn().expect("the program starts");
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("our child") {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => {
                // SAFETY: the child is not reaped, so its id, which is its group's, is still its own.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                child.wait().expect("our child");
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Outcome { status, stdout: text(&out), stderr: text(&err) }
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut f| f.read_to_end(&mut bytes)).expect("the file just written");
    String::from_utf8_lossy(&bytes).into_owned()
}
