//! What takes longer than `make test` allows, after it.

use crate::shell::{
    Result, attempt, cargo, command, distribution, folder, itself, line, need, number, root, run, stems,
    tail, write,
};
use crate::{aarch64, fuzz, loom, measure, miri, mutants, packages, peers, sanitizers, watched};
use std::path::PathBuf;
use std::time::Instant;

/// A part: its name, what it shows, and the function that does so.
type Part = (&'static str, &'static str, fn() -> Result);

const PARTS: &[Part] = &[
    ("models", "models, with at least 3 preemptions, or 2 where three threads have too many orders", || {
        run(loom::models()?.env("LOOM_MAX_PREEMPTIONS", "3"))
    }),
    ("mutants", "every ordering that models come by is needed by one", || mutants::main(&[])),
    ("miri", "tests under the rules of the language (Miri)", || miri::main(&[])),
    ("tsan", "threads under ThreadSanitizer", || sanitizers::thread(&[])),
    ("asan", "the same tests under AddressSanitizer", || sanitizers::address(&[])),
    ("fences", "models of events where the kernel has no membarrier", || {
        run(itself(["loom", "registry", "first_thread", "my_callback"])?.env("PERUSAL_MODEL_FENCES", "1"))
    }),
    ("fuzz", "fuzz targets, VERIFY_SECONDS=60 each", || {
        fuzz::main(&[number("VERIFY_SECONDS", 60).to_string()])
    }),
    ("event-cost", "events cost no instructions where nobody listens", || measure::event_cost(&[])),
    ("watched", "perusal top costs the job no instruction", || watched::main(&[])),
    ("valgrind", "no invalid access, leak or uninitialised byte in messages of every kind", || valgrind(&[])),
    ("aarch64", "tests and jobs on AArch64, under emulation", || aarch64::main(&[])),
    ("kills", "PERUSAL_FAULT_ROUNDS=200 jobs killed at random moments", kills),
    ("faults", "PERUSAL_FAULT_RUNS=2000 jobs that meet faults of every kind", faults),
    ("hostile", "half a million calls with wrong arguments", hostile),
    (
        "command-lines",
        "thirty thousand command lines and as many tune files that nobody would write",
        command_lines,
    ),
    ("exchange", "programs built with MPICH's header on perusal, and ours on MPICH", || peers::exchange(&[])),
    ("wheel", "the Python wheel, with mpi4py", || packages::wheel::check(&[])),
    ("deb", "the Debian package, beside other MPIs", || packages::debian::check(&[])),
    ("order", "the order of messages among 64 ranks", || all_to_all(64, &[])),
    ("ranks", "256 ranks start, talk all to all and end", || all_to_all(256, &["--messages", "1000"])),
    (
        "deadlocks",
        "nobody is called deadlocked who is not: a million messages, ranks that sleep, threads, other programs",
        no_deadlocks,
    ),
    ("large-files", "more than 2 GiB in one access to a file", large_files),
];

/// `verify [PART…]`: all of them, in this order.
pub fn main(arguments: &[String]) -> Result {
    let named: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(unknown) = named.iter().find(|name| PARTS.iter().all(|(part, ..)| part != *name)) {
        let parts: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
        return Err(format!("unknown part: {unknown} (there are {})", parts.join(", ")));
    }
    let wanted: Vec<&Part> =
        PARTS.iter().filter(|(name, ..)| named.is_empty() || named.contains(name)).collect();
    let checkers = [
        ("miri", "Miri (a nightly toolchain with it)", miri::is_there()),
        ("tsan", "ThreadSanitizer", sanitizers::thread_is_there()),
        ("asan", "AddressSanitizer", sanitizers::address_is_there()),
    ];
    let (mut failed, mut missing) = (Vec::new(), Vec::new());
    for (name, what, part) in &wanted {
        println!("verify: {name}: {what}");
        if let Some((_, checker, _)) = checkers.iter().find(|(of, _, there)| of == name && !there) {
            println!("verify: {name}: not run: the toolchain has no {checker}");
            missing.push(*checker);
            continue;
        }
        let start = Instant::now();
        let ended = part();
        let seconds = start.elapsed().as_secs();
        match ended {
            Ok(()) => println!("verify: {name}: ended well ({seconds} s)"),
            Err(why) => {
                println!("verify: {name}: FAILED ({seconds} s): {why}");
                failed.push(*name);
            }
        }
    }
    let good = wanted.len() - failed.len() - missing.len();
    println!("verify: {good} parts are well, {} failed, {} not run", failed.len(), missing.len());
    if !missing.is_empty() {
        println!("verify: not run, because the toolchain has none: {}", missing.join(", "));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// A number that repeats a run of random tests, from the environment or this process's.
fn seed(variable: &str) -> String {
    let seed = number(variable, std::process::id().into());
    println!("verify: {variable}={seed}");
    seed.to_string()
}

/// Tests of random things, whose seed is in `variable`.
fn random_tests(arguments: &[&str], variable: &str, rounds: (&str, u64)) -> Result {
    let mut tests = cargo(["test", "--locked"]);
    tests.args(arguments).env(variable, seed(variable)).env(rounds.0, rounds.1.to_string());
    run(&mut tests)
}

fn kills() -> Result {
    let rounds = ("PERUSAL_FAULT_ROUNDS", number("PERUSAL_FAULT_ROUNDS", 200));
    let tests = ["--quiet", "--package", "perusal-cli", "--test", "p2p", "faults"];
    random_tests(&tests, "PERUSAL_FAULT_SEED", rounds)
}

fn faults() -> Result {
    let runs = ("PERUSAL_FAULT_RUNS", number("PERUSAL_FAULT_RUNS", 2000));
    let tests = ["--package", "perusal-cli", "--test", "p2p", "fault_runs", "--", "--nocapture"];
    random_tests(&tests, "PERUSAL_FAULT_SEED", runs)
}

fn hostile() -> Result {
    let tests = ["--quiet", "--package", "perusal-abi", "--test", "abi", "hostile"];
    random_tests(&tests, "PERUSAL_HOSTILE_SEED", ("PERUSAL_HOSTILE_CALLS", 500_000))
}

fn command_lines() -> Result {
    let tests = ["--quiet", "--package", "perusal-cli", "--bin", "perusal", "random_tests"];
    random_tests(&tests, "PERUSAL_RANDOM_SEED", ("PERUSAL_RANDOM_ROUNDS", 30_000))
}

/// Compiles a program with the `mpicc` of `dist/`; returns it.
fn compiled(source: &str, flags: &[&str]) -> Result<PathBuf> {
    let (dist, _) = distribution(&[])?;
    let name = source.rsplit('/').next().unwrap_or(source).trim_end_matches(".c");
    let program = root().join(folder("build/verify")?).join(name);
    run(command(dist.join("bin/mpicc")).args(flags).arg(source).arg("-o").arg(&program))?;
    Ok(program)
}

/// The `mpiexec` of `dist/`, with so many ranks, for so many seconds at most.
fn job(ranks: u32, seconds: u32) -> Result<std::process::Command> {
    let (dist, _) = distribution(&[])?;
    let mut job = command(dist.join("bin/mpiexec"));
    job.args(["-n", &ranks.to_string()]).env("MPIEXEC_TIMEOUT", seconds.to_string());
    Ok(job)
}

fn all_to_all(ranks: u32, arguments: &[&str]) -> Result {
    let program = compiled("examples/all_to_all_order.c", &["-O2"])?;
    run(job(ranks, 6000)?.arg(&program).args(arguments))
}

fn no_deadlocks() -> Result {
    let sources = stems(&root().join("tests/launcher"), "c")?.into_iter();
    let others: Vec<String> = sources
        .filter(|stem| stem.starts_with("mistakes_"))
        .map(|stem| format!("tests/launcher/{stem}.c"))
        .collect();
    let flags: Vec<&str> = ["-O2", "-pthread"].into_iter().chain(others.iter().map(String::as_str)).collect();
    let program = compiled("tests/launcher/mistakes.c", &flags)?;
    let programs: [(u32, &[&str]); 5] =
        [(8, &["stress", "1000000"]), (3, &["sleeps"]), (3, &["relay"]), (2, &["thread"]), (2, &["pipe"])];
    // A deadlock that is none would end the job with status 125.
    programs.iter().try_for_each(|(ranks, arguments)| run(job(*ranks, 3600)?.arg(&program).args(*arguments)))
}

fn large_files() -> Result {
    let program = compiled("tests/c/file_counts_beyond.c", &["-O1", "-Itests/c"])?;
    let files = folder(root().join("build/files"))?;
    // A disk that others use takes as long as it takes.
    run(job(2, 6000)?.current_dir(&files).env("PERUSAL_LARGE_FILES", "1").arg(&program))
}

/// Programs of `tests/c` that pass messages of every kind, and their ranks.
const CHECKED: [(&str, &str); 6] = [
    ("2", "random_messages"),
    ("3", "freed_sends_arrive"),
    ("2", "cancel_sends"),
    ("2", "peruse_pair_chunks"),
    ("2", "datatype_messages"),
    ("4", "coll_moves"),
];

/// `valgrind [DIST]`: fails if a rank reads or writes where it must not, depends on what nobody wrote,
/// or loses memory for good.
pub fn valgrind(arguments: &[String]) -> Result {
    need(&["valgrind"])?;
    let (dist, _) = distribution(arguments)?;
    let out = folder("build/valgrind")?;
    let mut failed = 0;
    for (ranks, name) in CHECKED {
        let program = out.join(name);
        let mut mpicc = command(dist.join("bin/mpicc"));
        run(mpicc.args(["-g", "-O1", "-Itests/c"]).arg(format!("tests/c/{name}.c")).arg("-o").arg(&program))?;
        let mut job = command(dist.join("bin/mpiexec"));
        // Memory that is reachable at exit is the engine's, which lives as long as the process.
        job.args(["-n", ranks, "valgrind", "-q", "--error-exitcode=99", "--leak-check=full"]);
        job.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]).arg(&program);
        let (good, log) = attempt(&mut job);
        write(out.join(format!("{name}.log")), &log)?;
        if good {
            println!("valgrind: {name} on {ranks} ranks: clean");
        } else {
            println!("valgrind: {name} on {ranks} ranks: FAILED ({})\n{}", line(&job), tail(&log, 60));
            failed += 1;
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} programs")) }
}
