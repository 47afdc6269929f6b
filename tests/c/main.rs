//! Compiles and runs the MPI programs in `tests/c`, as the comment at the top of each asks (`docs/testing.md`).
//!
//! A test runner of its own, so that every program and number of ranks counts as one test. Arguments: parts of names.

#[path = "../common/mod.rs"]
mod common;

use crate::common::dist::{dist, launcher};
use crate::common::run::run;
use crate::common::{root, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// The limit that tells a hang; nothing here takes a tenth of it where nobody else wants the CPUs.
const LIMIT: Duration = crate::common::HANG;
/// Programs that run at once: they have several ranks each.
const WORKERS: usize = 2;

/// What a program's first comment says.
#[derive(Debug, Default)]
struct Plan {
    ranks: Vec<usize>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    flags: Vec<String>,
    options: Vec<String>,
    exit: i32,
    stdout: Vec<String>,
    stderr: Vec<String>,
}

impl Plan {
    fn read(source: &str) -> Plan {
        let mut plan = Plan::default();
        let comment = source.split("*/").next().unwrap_or_default();
        for line in comment.lines() {
            let line = line.trim_start_matches(['/', '*', ' ']);
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let words = || value.split_whitespace().map(str::to_owned);
            match key {
                "RANKS" => plan.ranks = words().map(|n| n.parse().expect("RANKS: numbers")).collect(),
                "ARGS" => plan.arguments = words().collect(),
                "OPTIONS" => plan.options = words().collect(),
                "FLAGS" => plan.flags = words().collect(),
                "ENV" => {
                    let (name, value) = value.split_once('=').expect("ENV: NAME=VALUE");
                    plan.environment.push((name.to_owned(), value.to_owned()));
                }
                "EXIT" => plan.exit = value.parse().expect("EXIT: a number"),
                "EXPECT" => plan.stdout.push(value.to_owned()),
                "STDERR" => plan.stderr.push(value.to_owned()),
                _ => {}
            }
        }
        if plan.ranks.is_empty() {
            plan.ranks = vec![1];
        }
        plan
    }
}

struct Case {
    name: String,
    source: PathBuf,
    ranks: usize,
}

enum Verdict {
    Passed,
    Ignored(&'static str),
    Failed(String),
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let directory = root().join("tests/c");
    for entry in fs::read_dir(&directory).expect("tests/c") {
        let source = entry.expect("a readable entry").path();
        if !source.extension().is_some_and(|e| e == "c" || e == "cpp") {
            continue;
        }
        let stem = source.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        for ranks in Plan::read(&fs::read_to_string(&source).expect("readable text")).ranks {
            cases.push(Case { name: format!("{stem}_on_{ranks}"), source: source.clone(), ranks });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn test(case: &Case) -> Verdict {
    if case.ranks > 1 && launcher().is_none() {
        return Verdict::Ignored("needs the launcher");
    }
    let source = fs::read_to_string(&case.source).expect("readable text");
    let plan = Plan::read(&source);
    let dir = scratch(&format!("c/{}", case.name));
    let program = dir.join("program");
    if let Err(why) = compile(&case.source, &program, &plan) {
        return Verdict::Failed(why);
    }
    let mut command = match launcher() {
        Some(_) if case.ranks > 1 => {
            let mut mpiexec = Command::new(dist().join("bin/mpiexec"));
            mpiexec.args(["-n", &case.ranks.to_string()]).args(&plan.options).arg(&program);
            mpiexec
        }
        _ => Command::new(&program),
    };
    command.args(&plan.arguments).envs(plan.environment.iter().map(|(n, v)| (n, v)));
    let outcome = run(&mut command, &dir, "run", LIMIT);
    let mut wrong = Vec::new();
    match outcome.code() {
        None => wrong.push(format!("did not end within {} s", LIMIT.as_secs())),
        Some(code) if code != plan.exit => wrong.push(format!("exit status {code}, expected {}", plan.exit)),
        Some(_) => {}
    }
    wrong.extend(
        plan.stdout
            .iter()
            .filter(|l| !outcome.stdout.lines().any(|o| o == **l))
            .map(|l| format!("no line {l:?}")),
    );
    wrong.extend(
        plan.stderr
            .iter()
            .filter(|t| !outcome.stderr.contains(*t))
            .map(|t| format!("no {t:?} in standard error")),
    );
    if wrong.is_empty() {
        let _ = fs::remove_dir_all(&dir);
        return Verdict::Passed;
    }
    Verdict::Failed(format!(
        "{}\n--- stdout\n{}--- stderr\n{}",
        wrong.join("; "),
        outcome.stdout,
        outcome.stderr
    ))
}

fn compile(source: &Path, program: &Path, plan: &Plan) -> Result<(), String> {
    let wrapper = if source.extension().is_some_and(|e| e == "cpp") { "mpicxx" } else { "mpicc" };
    let out = Command::new(dist().join("bin").join(wrapper))
        .args(["-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg(source)
        .arg("-o")
        .arg(program)
        .args(&plan.flags)
        .output()
        .expect("the wrapper runs");
    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let (cases, others): (Vec<Case>, Vec<Case>) = cases()
        .into_iter()
        .partition(|case| wanted.is_empty() || wanted.iter().any(|part| case.name.contains(part)));
    println!("\nrunning {} tests", cases.len());
    let queue = Mutex::new(cases.iter());
    let results = Mutex::new((0, 0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no worker panics while it holds this").next();
                    let Some(case) = next else { break };
                    let verdict = test(case);
                    let mut results = results.lock().expect("no worker panics while it holds this");
                    match verdict {
                        Verdict::Passed => {
                            println!("test {} ... ok", case.name);
                            results.0 += 1;
                        }
                        Verdict::Ignored(why) => {
                            println!("test {} ... ignored, {why}", case.name);
                            results.1 += 1;
                        }
                        Verdict::Failed(why) => {
                            println!("test {} ... FAILED", case.name);
                            results.2.push((case.name.as_str(), why));
                        }
                    }
                }
            });
        }
    });
    let (passed, ignored, failed) = results.into_inner().expect("all workers have ended");
    if !failed.is_empty() {
        println!("\nfailures:\n");
        for (name, why) in &failed {
            println!("---- {name} ----\n{why}");
        }
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered out",
        failed.len(),
        others.len()
    );
    std::process::exit(if failed.is_empty() { 0 } else { 101 });
}
