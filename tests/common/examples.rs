//! The programs in `examples/`: compiled as users compile them, run under the launcher, their output taken apart.
#![allow(dead_code)]

use super::dist::dist;
use super::run::{Outcome, run};
use super::{root, scratch, success};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longer than any run takes on the slowest machine; what it catches is a hang.
const HANG: Duration = crate::common::HANG;

/// Where this test program's products go.
pub fn products() -> &'static Path {
    static PRODUCTS: OnceLock<PathBuf> = OnceLock::new();
    PRODUCTS.get_or_init(|| {
        let exe = std::env::current_exe().expect("a test knows its file");
        let stem = exe.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        scratch(&format!("products-{stem}"))
    })
}

/// Compiles with our `mpicc`, from the source tree's directory.
pub fn mpicc(arguments: &[&str]) {
    let out = Command::new(dist().join("bin/mpicc"))
        .args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .current_dir(root())
        .output();
    success(out.expect("a C compiler"), &format!("mpicc {}", arguments.join(" ")));
}

/// A file name among the products that no other test has.
pub fn product(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a number of its own is all that is wanted.
    products().join(format!("{}-{name}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Compiles one of `examples/` and gives the program's path.
pub fn example(source: &str) -> PathBuf {
    let name = Path::new(source).file_stem().expect("a source file").to_string_lossy().into_owned();
    let program = product(&name);
    mpicc(&[&format!("examples/{source}"), "-o", &program.to_string_lossy(), "-lm"]);
    program
}

/// `mpiexec` with these arguments, run to its end, which must come.
pub fn mpiexec(arguments: &[&str]) -> Outcome {
    let mut command = Command::new(dist().join("bin/mpiexec"));
    command.args(arguments);
    let name = product("run");
    let name = name.file_name().expect("a file").to_string_lossy().into_owned();
    let outcome = run(&mut command, products(), &name, HANG);
    assert!(
        outcome.status.is_some(),
        "mpiexec {} hung\n--- stdout\n{}--- stderr\n{}",
        arguments.join(" "),
        outcome.stdout,
        outcome.stderr
    );
    outcome
}

/// The standard output of a job that must succeed.
pub fn job(arguments: &[&str]) -> String {
    let outcome = mpiexec(arguments);
    assert_eq!(
        outcome.code(),
        Some(0),
        "mpiexec {}\n--- stdout\n{}--- stderr\n{}",
        arguments.join(" "),
        outcome.stdout,
        outcome.stderr
    );
    outcome.stdout
}

/// One line of the form `word key=value …`.
pub struct Line(HashMap<String, String>);

impl Line {
    /// The value of a key.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).unwrap_or_else(|| panic!("no {key} in {:?}", self.0))
    }

    /// The value of a key, as a number.
    pub fn number(&self, key: &str) -> f64 {
        self.text(key).parse().unwrap_or_else(|e| panic!("{key}={}: {e}", self.text(key)))
    }

    /// The value of a key, as a count.
    pub fn count(&self, key: &str) -> i64 {
        self.text(key).parse().unwrap_or_else(|e| panic!("{key}={}: {e}", self.text(key)))
    }
}

/// The lines that begin with a word, taken apart. There must be some.
pub fn lines(output: &str, word: &str) -> Vec<Line> {
    let found: Vec<Line> = output
        .lines()
        .filter(|line| line.split(' ').next() == Some(word))
        .map(|line| {
            let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
            Line(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
        })
        .collect();
    assert!(!found.is_empty(), "no line of {word} in:\n{output}");
    found
}
