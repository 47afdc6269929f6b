//! Every suite, counted; the last line is `N passed, N failed`.
//!
//! What a suite printed is kept in `build/test/SUITE.log` and shown if it failed. Tests run through plain `cargo test`;
//! each test counts as one, and so does each check that is no test (formatting, lints, a build that must succeed).
//! Limits belong to single tests; a suite has none, unless TEST_MINUTES says after how many minutes everything must
//! have ended, so that the sum is printed before somebody else ends it all.

use crate::shell::{Result, cargo, itself, need, nice, read, tail, write};
use crate::{aarch64, fuzz, loom};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SUITES: [&str; 8] = ["format", "lint", "aarch64", "build", "rust", "loom", "fuzz", "dist"];

/// `test [SUITE…]`: all of them, in the order above.
pub fn main(arguments: &[String]) -> Result {
    let named: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(unknown) = named.iter().find(|name| !SUITES.contains(name)) {
        return Err(format!("unknown suite: {unknown} (there are {})", SUITES.join(", ")));
    }
    let wanted = |suite: &str| named.is_empty() || named.contains(&suite);
    let mut run = TestRun::new()?;
    // Beside the rest, on what it leaves of the processors.
    let others = thread::spawn({
        let [dist, loom, fuzz] = ["dist", "loom", "fuzz"].map(&wanted);
        let deadline = run.deadline;
        move || build_others(dist, loom, fuzz, deadline)
    });
    if wanted("format") {
        run.check("format", cargo(["fmt", "--check"]))?;
    }
    if wanted("lint") {
        let arguments =
            ["clippy", "--quiet", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run.check("lint", cargo(arguments))?;
    }
    if wanted("aarch64") {
        match aarch64::lint() {
            Ok(lint) => run.check("lint for AArch64", lint)?,
            Err(why) => println!("{:<34} not checked: {why}", "lint for AArch64"),
        }
    }
    if wanted("build") {
        // Without PERUSE every event site compiles to nothing;
        // this is the build that the cost of idle events is held against.
        let arguments = ["check", "--quiet", "--locked", "--package", "perusal-abi", "--no-default-features"];
        run.check("build without events", cargo(arguments))?;
        // The launcher has the library's name, and so its pages have the same place: not both at once.
        let launcher = ("documentation of the launcher", ["--package", "perusal-cli"]);
        for (what, packages) in [launcher, ("documentation", ["--workspace", "--exclude=perusal-cli"])] {
            let mut doc = cargo(["doc", "--quiet", "--locked", "--no-deps", "--document-private-items"]);
            doc.args(packages).env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links");
            run.check(what, doc)?;
        }
    }
    let tests = ["test", "--locked", "--workspace", "--no-fail-fast"];
    if wanted("rust") {
        // The report's pages are looked at in a browser.
        need(&["chromium"])?;
        // If this fails, so do the tests, which then say why.
        let mut build = cargo(tests);
        run.limited(build.args(["--no-run", "--quiet"]), &run.log("tests"))?;
    }
    if wanted("rust") {
        run.suite("tests", cargo(tests))?;
    }
    let dist = others.join().map_err(|_| "the builds panicked")?;
    if wanted("loom") {
        run.suite("models", loom::models()?)?;
    }
    if wanted("fuzz") {
        // A line for each target.
        run.lines("fuzz", "ok", "FAILED", itself(["fuzz", "5"])?)?;
    }
    if wanted("dist") {
        let (good, seconds) = dist;
        run.report("distribution", usize::from(good), usize::from(!good), seconds);
        if !good {
            println!("{}", tail(&read(run.log("distribution"))?, 60));
        }
        run.suite("distribution checks", itself(["check-dist", "dist"])?)?;
    }
    run.sum()
}

/// Builds what does not share cargo's folder with the tests.
/// Returns whether the distribution was made, and in how many seconds.
fn build_others(dist: bool, loom: bool, fuzz: bool, deadline: Option<Instant>) -> (bool, u64) {
    let logs = Path::new("build/test");
    let start = Instant::now();
    let made = dist
        && itself(["dist"]).and_then(|it| limited(&mut nice(&it), &logs.join("distribution.log"), deadline))
            == Ok(true);
    let seconds = start.elapsed().as_secs();
    // What does not build here does not build in its suite, which says why.
    if loom && let Ok(mut models) = loom::models() {
        let _ = limited(&mut nice(models.arg("--no-run")), &logs.join("models.log"), deadline);
    }
    if fuzz && let Ok(targets) = fuzz::build_all() {
        let _ = limited(&mut nice(&targets), &logs.join("fuzz.log"), deadline);
    }
    (made, seconds)
}

/// Runs a command with its output in a file, and returns whether it succeeded.
fn limited(command: &mut Command, log: &Path, deadline: Option<Instant>) -> Result<bool> {
    let file = crate::shell::at(log, File::create(log))?;
    let errors = crate::shell::at(log, file.try_clone())?;
    command.stdin(Stdio::null()).stdout(file).stderr(errors);
    // What `perusal tune` has written for this user must not change what the tests see.
    command.env("PERUSAL_TUNE_FILE", "none");
    if deadline.is_some() {
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.success());
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            // The shell's own, since not every machine has the program.
            let _ = Command::new("sh").arg("-c").arg(format!("kill -KILL -{}", child.id())).status();
            let _ = child.wait();
            let text = read(log)? + "\nerror: everything was to have ended by now (TEST_MINUTES)\n";
            write(log, text)?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What has been counted so far.
struct TestRun {
    passed: usize,
    failed: usize,
    logs: PathBuf,
    deadline: Option<Instant>,
}

impl TestRun {
    fn new() -> Result<Self> {
        let logs = crate::shell::empty("build/test")?;
        let minutes = std::env::var("TEST_MINUTES").ok().and_then(|text| text.parse::<u64>().ok());
        let deadline = minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
        Ok(Self { passed: 0, failed: 0, logs, deadline })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{}.log", name.replace(' ', "-")))
    }

    fn limited(&self, command: &mut Command, log: &Path) -> Result<bool> {
        limited(command, log, self.deadline)
    }

    fn report(&mut self, name: &str, passed: usize, failed: usize, seconds: u64) {
        self.passed += passed;
        self.failed += failed;
        println!("{name:<34} {passed:5} passed {failed:3} failed  ({seconds} s)");
    }

    /// Counts one.
    fn check(&mut self, name: &str, mut command: Command) -> Result {
        let (start, log) = (Instant::now(), self.log(name));
        let good = self.limited(&mut command, &log)?;
        self.report(name, usize::from(good), usize::from(!good), start.elapsed().as_secs());
        if !good {
            println!("{}", tail(&read(&log)?, 60));
        }
        Ok(())
    }

    /// Counts what cargo's test runner says; a run that fails without a failed test counts as one.
    fn suite(&mut self, name: &str, mut command: Command) -> Result {
        let (start, log) = (Instant::now(), self.log(name));
        let success = self.limited(&mut command, &log)?;
        let text = read(&log)?;
        let (good, mut bad) = counts(&text);
        if bad == 0 && !success {
            bad = 1;
        }
        if success && good == 0 {
            println!("{name}: no test ran");
            bad = 1;
        }
        self.report(name, good, bad, start.elapsed().as_secs());
        if bad > 0 {
            println!("{}\n({} has the rest)", failures(&text), log.display());
        }
        Ok(())
    }

    /// Counts the lines of the output whose third word is `right` or `wrong`.
    fn lines(&mut self, name: &str, right: &str, wrong: &str, mut command: Command) -> Result {
        let (start, log) = (Instant::now(), self.log(name));
        let success = self.limited(&mut command, &log)?;
        let text = read(&log)?;
        let count = |word| text.lines().filter(|line| line.split_whitespace().nth(2) == Some(word)).count();
        let (good, mut bad) = (count(right), count(wrong));
        if bad == 0 && (!success || good == 0) {
            bad = 1;
        }
        self.report(name, good, bad, start.elapsed().as_secs());
        if bad > 0 {
            println!("{}", tail(&text, 60));
        }
        Ok(())
    }

    fn sum(&self) -> Result {
        let sum = format!("{} passed, {} failed", self.passed, self.failed);
        write(self.logs.join("summary"), format!("{sum}\n"))?;
        println!("\n{sum}");
        if self.failed == 0 { Ok(()) } else { Err(String::new()) }
    }
}

/// Returns how many tests passed and failed by all lines `test result: …`.
fn counts(text: &str) -> (usize, usize) {
    let results = text.lines().filter(|line| line.starts_with("test result: "));
    let number = |line: &str, what: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| word.trim_end_matches(';') == what).unwrap_or(0);
        at.checked_sub(1).and_then(|before| words[before].parse().ok()).unwrap_or(0)
    };
    results.fold((0, 0), |(good, bad), line| (good + number(line, "passed"), bad + number(line, "failed")))
}

/// Returns what cargo repeats at the end of each test program, and what the compiler said.
fn failures(text: &str) -> String {
    let mut shown = Vec::new();
    let (mut test, mut compiler) = (false, false);
    for line in text.lines() {
        test |= line == "failures:";
        compiler |= line.starts_with("error");
        if test || compiler {
            shown.push(line);
        }
        test &= !line.starts_with("test result");
        compiler &= !line.is_empty();
    }
    shown.truncate(150);
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored\nnoise\n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1 s\n";
        assert_eq!(counts(text), (7, 2));
    }

    #[test]
    fn what_failed_is_shown_and_the_rest_is_not() {
        let text = "test a ... ok\nfailures:\n\n---- b ----\nwhy\ntest result: FAILED. 1\nnoise\nerror: x\n --> y\n\nnoise";
        assert_eq!(
            failures(text),
            "failures:\n\n---- b ----\nwhy\ntest result: FAILED. 1\nerror: x\n --> y\n"
        );
    }
}
