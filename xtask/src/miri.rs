//! Tests of the engine and of the Rust API in Miri, which knows the rules of the language: aliasing, data races, and on
//! weakly ordered processors what a load may return.
//! Ranks are threads of one process, and the job's memory lies on the heap.

use crate::shell::{Result, attempt, command, run, tail};
use std::process::Command;

/// What runs in Miri: modules of the engine, and the test program of the Rust API.
///
/// Not among them: `heap` (it maps a part of a file twice), `shm::segment` and what else is about a file that processes
/// map; `placement` and the launcher (other processes);
/// copies from process to process (`protocol::rendezvous::cma`, `split`).
const SUITES: [&str; 14] = [
    "request", "doorbell", "ring", "matching", "datatype", "sync", "handles", "events", "engine", "protocol",
    "p2p", "rma", "api", API,
];

/// The test program of the Rust API.
const API: &str = "rust";

/// The protocols between threads: for these every one of [`SEEDS`] runs, each another order of steps and another choice
/// of what loads return.
const PROTOCOLS: [&str; 3] = ["request", "doorbell", "ring"];
const SEEDS: &str = "-Zmiri-many-seeds=0..4";

/// Isolated, Miri has a clock of its own: a thread that sleeps takes no time. Addresses go through records to other
/// ranks, and come back as numbers.
const FLAGS: &str = "-Zmiri-isolation-error=hide -Zmiri-permissive-provenance";

/// Miri of the nightly toolchain. Cargo itself has no `+nightly`: rustup's has.
fn nightly(arguments: &[&str]) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["+nightly", "miri"]).args(arguments);
    cargo
}

/// Whether this machine has Miri.
pub fn is_there() -> bool {
    attempt(&mut nightly(&["--version"])).0
}

/// `miri [SUITE…]`: needs a nightly toolchain with Miri (`rustup component add --toolchain nightly miri rust-src`).
pub fn main(arguments: &[String]) -> Result {
    if !is_there() {
        println!("miri: not run: there is no nightly toolchain with Miri");
        return Ok(());
    }
    let suites: Vec<&str> = match arguments {
        [] => SUITES.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    run(&mut nightly(&["setup"]))?;
    let mut failed = Vec::new();
    for suite in suites {
        let mut tests = nightly(&["test", "--locked", "--package", "perusal"]);
        if suite == API {
            tests.args(["--test", suite]);
        } else {
            tests.args(["--lib", &format!("{suite}::")]);
        }
        let seeds = if PROTOCOLS.contains(&suite) { SEEDS } else { "" };
        // A test of the Rust API forgets requests and their buffers; callbacks that panic end a job, so nobody frees
        // what they panicked with.
        let leaks = if matches!(suite, API | "events") { "-Zmiri-ignore-leaks" } else { "" };
        let (good, log) = attempt(tests.env("MIRIFLAGS", format!("{FLAGS} {seeds} {leaks}")));
        // Seeds run at once, and their lines are mixed.
        let (begins, after) = if seeds.is_empty() {
            ("test result", "")
        } else {
            ("running ", if good { ", all seeds: ok" } else { ", all seeds: FAILED" })
        };
        let line = log.lines().rfind(|line| line.starts_with(begins)).unwrap_or("no result");
        println!("miri: {suite}: {line}{after}");
        if !good {
            println!("{}", tail(&log, 60));
            failed.push(suite);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("in {}", failed.join(", "))) }
}
