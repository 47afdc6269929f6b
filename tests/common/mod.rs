//! What the tests that run compilers and programs share.
#![allow(dead_code)]

pub mod browser;
pub mod dist;
pub mod examples;
pub mod jobs;
pub mod run;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// After so long a test is hung, on however slow and busy a machine. With thirty jobs beside it on two CPUs one of five
/// ranks that takes seconds alone takes more than five minutes.
pub const HANG: Duration = Duration::from_secs(900);

/// The source tree.
pub fn root() -> &'static Path {
    // Of which package a test is says its manifest; the tree is the folder with the lock file.
    let within = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    within.into_iter().find(|folder| folder.join("Cargo.lock").exists()).expect("a workspace")
}

/// An empty directory of the caller's own, under cargo's target directory. Tests run side by side: a test that comes
/// second with a name gets a number with it.
pub fn scratch(name: &str) -> PathBuf {
    static USES: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
    let before = uses.entry(name.to_owned()).and_modify(|n| *n += 1).or_insert(0);
    let own = if *before == 0 { name.to_owned() } else { format!("{name}.{before}") };
    drop(uses);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("cargo's directory for tests is writable");
    dir
}

/// Runs the C compiler in `dir` with our headers in sight; panics with what it said if it fails.
pub fn cc(arguments: &[&str], dir: &Path) {
    let out =
        Command::new("cc").arg("-I").arg(root().join("include")).args(arguments).current_dir(dir).output();
    success(out.expect("a C compiler"), &format!("cc {}", arguments.join(" ")));
}

/// Writes a program that is to be run. Another process does it: what a thread of this one has open for writing, a
/// process that another thread is just starting has open too, and the kernel runs no file that is open for writing.
pub fn executable(path: &Path, bytes: &[u8]) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = shell.spawn().expect("a shell");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("cat reads");
    assert!(child.wait().expect("our own child").success(), "{} cannot be written", path.display());
}

/// The standard output of a run that must succeed.
pub fn success(out: Output, what: &str) -> String {
    let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success(),
        "{what}: {}\n--- stdout\n{stdout}--- stderr\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    stdout
}

/// A file that cargo built beside this test: `libperusal_abi.so`, `libperusal_abi.a`.
pub fn built(file: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its file");
    let deps = exe.parent().expect("a file lies in a directory");
    deps.join(file)
}
