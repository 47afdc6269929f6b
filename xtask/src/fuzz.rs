//! The targets in `fuzz/fuzz_targets/`, each for a while, a line for each, as many at once as there are processors.
//!
//! Builds what `cargo fuzz build` would build, with the same flags (coverage counters, AddressSanitizer, debug
//! assertions), on the stable toolchain; cargo-fuzz need not be installed. What an earlier run found interesting is
//! kept in `fuzz/corpus/` and starts the next one; `fuzz/seeds/TARGET/` starts the first. An input that fails is kept
//! in `fuzz/artifacts/`, and the line says how to run it again.

use crate::loom::host;
use crate::shell::{Result, attempt, cargo, command, folder, has, need, root, run, stems, tail};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// `fuzz [SECONDS] [TARGET…]`: 10 seconds each, all of them.
pub fn main(arguments: &[String]) -> Result {
    let (seconds, named) = match arguments.split_first() {
        Some((first, rest)) => {
            (first.parse::<u64>().map_err(|_| format!("{first} is no number of seconds"))?, rest)
        }
        None => (10, arguments),
    };
    let targets = if named.is_empty() { targets()? } else { named.to_vec() };
    run(&mut build(&targets)?).map_err(|_| "the targets do not build".to_owned())?;
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut good = true;
        while let Some(target) = targets.get(next.fetch_add(1, Relaxed)) {
            good &= fuzz(target, seconds)?;
        }
        Ok(good)
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    let all: Result<Vec<bool>> = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        started.into_iter().map(|it| it.join().map_err(|_| "a worker panicked".to_owned())?).collect()
    });
    if all?.contains(&false) { Err(String::new()) } else { Ok(()) }
}

fn targets() -> Result<Vec<String>> {
    stems(&root().join("fuzz/fuzz_targets"), "rs")
}

/// Returns the command that builds all targets.
pub fn build_all() -> Result<Command> {
    build(&targets()?)
}

fn build(targets: &[String]) -> Result<Command> {
    if !has("c++") {
        need(&["g++=c++"])?;
    }
    // Unstable flags on the stable toolchain. Naming the host as the target keeps them away from build scripts.
    let flags = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Ccodegen-units=1 \
        -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
    let mut cargo =
        cargo(["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target"]);
    cargo.arg(host()?).args(targets.iter().map(|target| format!("--bin={target}")));
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", root().join("fuzz/target"));
    Ok(cargo)
}

fn fuzz(target: &str, seconds: u64) -> Result<bool> {
    let corpus = folder(root().join("fuzz/corpus").join(target))?;
    let artifacts = folder(root().join("fuzz/artifacts").join(target))?;
    let seeds = root().join("fuzz/seeds").join(target);
    let binary = root().join("fuzz/target").join(host()?).join("release").join(target);
    let mut fuzzer = command(&binary);
    fuzzer.arg(&corpus).args(seeds.is_dir().then_some(&seeds));
    // The time-out finds endless loops; it is long so that a slow machine is not a failure.
    fuzzer.args(["-timeout=600", "-rss_limit_mb=4096", "-verbosity=1"]);
    fuzzer
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"));
    // LeakSanitizer needs ptrace, which containers forbid.
    let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
    let (good, log) = attempt(fuzzer.env("ASAN_OPTIONS", format!("detect_leaks=0:{options}")));
    if good {
        let number = |before: &str| {
            let found = log.lines().rev().find_map(|line| line.split_once(before));
            found.and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("?").to_owned()
        };
        println!(
            "fuzz {target:<16} ok      {:>9} inputs in {seconds} s, {} edges covered",
            number("Done "),
            number("cov: ")
        );
        return Ok(true);
    }
    let lines: Vec<&str> = log.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let first = panic.or_else(|| lines.iter().position(|line| line.contains("ERROR: ")));
    println!("fuzz {target:<16} FAILED  {}", first.map_or_else(|| tail(&log, 1), |at| lines[at].to_owned()));
    if let Some(message) = panic.and_then(|at| lines.get(at + 1)) {
        println!("{message}");
    }
    if let Some((_, input)) = lines.iter().rev().find_map(|line| line.split_once("Test unit written to ")) {
        println!("     run it again: {} {input}", binary.display());
    }
    Ok(false)
}
