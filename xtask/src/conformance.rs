//! MPICH's own tests against a distribution, and those of other people's programs.
//!
//! The suite comes from Debian's mpich source package and lives, built, in `build/conformance`. A test passes as
//! MPICH's runtests has it: it prints "No Errors" and nothing else, and exits with 0 (or as its testlist line says).
//! `.ci/conformance-expected.txt` names the tests that may fail, with the reason; one of those that passes is an error
//! too, so that the list cannot go stale. Those that can only pass without having tested anything are left out, and
//! named there too.

use crate::clients::{self, Client, Verdict};
use crate::shell::{
    Effort, Result, attempt, command, distribution, empty, folder, has, output, read, root, run, tail, write,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The release of MPICH, and of Debian, that has it.
const VERSION: &str = "4.0.2";
const RELEASE: &str = "bookworm";
const COMPAT: &str = ".ci/conformance-compat.h";

/// `conformance [DIST] [DIR… | DIR/TEST… | mpi4py | rsmpi | pnetcdf | hdf5]`: naming tests,
/// or directories of tests, runs only those.
///
/// CONFORMANCE_DIRS="pt2pt init group mpi_t rma part io spawn errors/spawn" are the directories of test/mpi to build
/// and run, CONFORMANCE_REBUILD=1 configures and compiles again, CONFORMANCE_MIRROR=URL is a Debian mirror (default:
/// the one this machine uses).
pub fn main(arguments: &[String]) -> Result {
    let (dist, only) = distribution(arguments)?;
    let suite = Suite::new(dist)?;
    let wanted = |client: &&str| only.is_empty() || only.iter().any(|word| word == *client);
    let clients: Vec<&str> = clients::ALL.into_iter().filter(wanted).collect();
    if only.is_empty() || only.len() > clients.len() {
        suite.build()?;
    }
    let expected = read(".ci/conformance-expected.txt")?;
    let expected: Vec<&str> =
        expected.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut suites: Vec<(String, TestCounts)> = Vec::new();
    let mut number = 0;
    empty(suite.work.join("logs"))?;
    for client in &clients {
        suites.extend(suite.client(client, &expected)?);
    }
    for dir in suite.dirs.iter().filter(|_| only.is_empty() || only.len() > clients.len()) {
        let mut counts = TestCounts::default();
        let mut known = BTreeMap::new();
        let lists = LISTS.map(|list| read(suite.tests.join(dir).join(list)));
        let [first, more] = lists;
        for line in first?.lines().chain(more.unwrap_or_default().lines()) {
            let Some(test) = Test::of(dir, line) else { continue };
            if only.is_empty() || only.iter().any(|word| word == dir) || only.contains(&test.name()) {
                number += 1;
                test.run(&suite, number, &expected, &mut counts, &mut known)?;
            }
        }
        // Some fail with one number of ranks and pass with another.
        for (name, [passed, failed]) in known {
            if failed > 0 {
                counts.passed += passed;
            } else {
                counts.stale += passed;
                println!("PASS!  {name}, which is expected to fail");
            }
        }
        suites.push((format!("mpich/{dir}"), counts));
    }
    suites.retain(|(_, counts)| counts.all() > 0);
    println!("\n{:<28} passed  failed  skipped  expected", "suite");
    let mut sum = TestCounts::default();
    for (name, counts) in &suites {
        let TestCounts { passed, failed, skipped, known, stale } = counts;
        println!("{name:<28} {passed:>6}  {:>6}  {skipped:>7}  {known:>8}", failed + stale);
        sum.add(counts);
    }
    println!();
    if sum.known + sum.stale > 0 {
        println!("Expected to fail, and why:");
        expected.iter().filter(|line| !line.starts_with('-')).for_each(|line| println!("  {line}"));
    }
    let TestCounts { passed, failed, skipped, known, stale } = sum;
    say(&format!(
        "passed {passed}, failed {failed}, skipped {skipped}, expected failures {known}, expected failures that passed {stale}"
    ));
    if failed + stale == 0 { Ok(()) } else { Err(String::new()) }
}

fn say(what: &str) {
    println!("conformance: {what}");
}

#[derive(Default)]
struct TestCounts {
    passed: usize,
    failed: usize,
    skipped: usize,
    known: usize,
    stale: usize,
}

impl TestCounts {
    fn add(&mut self, more: &Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
        self.known += more.known;
        self.stale += more.stale;
    }

    fn all(&self) -> usize {
        self.passed + self.failed + self.skipped + self.known + self.stale
    }
}

/// The directories of MPICH's suite that have a list of tests;
/// `threads/perf` measures, and `errors/faults` is for fault tolerance.
const DIRS: &str = "attr coll comm datatype errhan ft group info init io mpi_t part pt2pt rma spawn topo \
    errors/attr errors/coll errors/comm errors/datatype errors/group errors/io errors/pt2pt errors/rma errors/spawn errors/topo \
    threads/coll threads/comm threads/init threads/mpi_t threads/part threads/pt2pt threads/rma threads/spawn";

/// Lists of a directory: what every directory has, and the tests with generated datatypes, among which are programs
/// that the first does not name.
const LISTS: [&str; 2] = ["testlist", "testlist.dtp"];

/// Control variables of MPICH that tests set, and what does the same here: a test with a variable that means nothing
/// would be the same once more.
const VARIABLES: [(&str, &str, &str); 3] = [
    ("MPIR_CVAR_ASYNC_PROGRESS=1", "PERUSAL_PROGRESS_THREAD", "on"),
    ("MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE=16384", "PERUSAL_EAGER_LIMIT", "16384"),
    ("MPIR_CVAR_CH4_OFI_AM_LONG_FORCE_PIPELINE=true", "PERUSAL_COPY_ENGINE", "chunks"),
];

/// MPICH's suite, built in a folder for an MPI.
pub struct Suite {
    dist: PathBuf,
    work: PathBuf,
    pub tests: PathBuf,
    pub dirs: Vec<String>,
    /// What the launcher takes besides the number of ranks.
    options: &'static [&'static str],
    /// How many times as long as MPICH's list says a test may take.
    times_the_limit: u64,
}

impl Suite {
    fn new(dist: PathBuf) -> Result<Self> {
        let work = folder(root().join("build/conformance"))?;
        let dirs = std::env::var("CONFORMANCE_DIRS").unwrap_or_else(|_| DIRS.into());
        let dirs = dirs.split_whitespace().map(str::to_owned).collect();
        // Tests that spawn do nothing, and pass, unless they may expect more processes than they are.
        Ok(Self {
            dist,
            tests: work.join("mpi"),
            work,
            dirs,
            options: &["--universe", "128"],
            times_the_limit: 1,
        })
    }

    /// These directories of the suite for another MPI, which is installed in `dist`. Its ranks wait by polling, so that
    /// where others use the CPUs, too, a test may take minutes: it gets more time than MPICH's list gives it.
    pub fn of_another(dist: PathBuf, work: PathBuf, dirs: &str) -> Self {
        let dirs = dirs.split_whitespace().map(str::to_owned).collect();
        Self { dist, tests: work.join("mpi"), work, dirs, options: &[], times_the_limit: 5 }
    }

    /// Configures and compiles, unless that was done for this distribution.
    pub fn build(&self) -> Result {
        let shown = output(command(self.dist.join("bin/mpicc")).arg("-show"))?;
        let header = read(self.dist.join("include/mpi.h"))?;
        let stamp = format!("{} {:?}\n{header}{}{shown}", self.dist.display(), self.dirs, read(COMPAT)?);
        let stamp_file = self.work.join("stamp");
        let again = std::env::var_os("CONFORMANCE_REBUILD").is_some();
        if !again && read(&stamp_file).is_ok_and(|there| there == stamp) {
            return Ok(());
        }
        let _ = fs::remove_file(&stamp_file);
        self.tools()?;
        self.source()?;
        let log_of = |name: &str| self.work.join(name).display().to_string();
        say(&format!(
            "configuring test/mpi against {} (log: {})",
            self.dist.display(),
            log_of("configure.log")
        ));
        let mut configure = command("./configure");
        configure.current_dir(&self.tests).arg(format!("--with-mpi={}", self.dist.display()));
        configure.args(["--disable-maintainer-mode", "--disable-fortran", "--disable-cxx"]);
        let (good, log) =
            attempt(configure.args(["--disable-romio", "--enable-strictmpi", "--enable-large-tests"]));
        write(self.work.join("configure.log"), &log)?;
        if !good {
            return Err(format!("configure failed\n{}", tail(&log, 20)));
        }
        say(&format!(
            "compiling libmtest, dtpools and {} (log: {})",
            self.dirs.join(" "),
            log_of("make.log")
        ));
        let (one, mut log) = attempt(self.make("util").arg("libmtest_single.la"));
        let (two, more) = attempt(&mut self.make("dtpools"));
        log += &more;
        if !(one && two) {
            return Err(format!("the suite's libraries do not build\n{}", tail(&log, 20)));
        }
        // One that does not compile is a test that fails below, not a reason to stop.
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        for dir in &self.dirs {
            log += &attempt(self.make(dir).args(["-k", &format!("-j{jobs}")])).1;
        }
        write(self.work.join("make.log"), log)?;
        write(stamp_file, stamp)
    }

    /// Runs the tests of another program. Returns its suites.
    fn client(&self, name: &str, expected: &[&str]) -> Result<Vec<(String, TestCounts)>> {
        let client = Client::new(name, &self.dist, &self.work)?;
        let fetch = |package: &str, to: &Path| fetch(package, RELEASE, to);
        let verdicts: Box<dyn Iterator<Item = Verdict>> = match name {
            "mpi4py" => Box::new(client.mpi4py(say)?),
            "rsmpi" => Box::new(client.rsmpi(say)?.into_iter()),
            "pnetcdf" => Box::new(client.pnetcdf(say, &fetch)?.into_iter()),
            _ => Box::new(client.hdf5(say, &fetch)?.into_iter()),
        };
        let prefix = format!("{name}/");
        let expected: Vec<&str> = expected
            .iter()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|test| test.starts_with(&prefix))
            .collect();
        let mut suites = Vec::<(String, TestCounts)>::new();
        for Verdict { name: title, passed, skipped, reasons, failures, log, cut_off } in verdicts {
            let is_known = |failure: &&String| expected.contains(&failure.as_str());
            let known = failures.iter().filter(is_known).count();
            let failed = failures.len() - known;
            // Tests with a line of their own are one suite.
            let suite = title.split_once('/').map_or(&*title, |_| name).to_owned();
            let here = expected.iter().filter(|test| suite != name || **test == title);
            let stale =
                here.filter(|test| !cut_off && !failures.iter().any(|failure| failure == **test)).count();
            let counts = TestCounts { passed, failed, skipped, known, stale };
            let word = if failed + stale > 0 { "FAIL" } else { "ok" };
            let mut more = String::new();
            if counts.all() > 1 {
                more = format!("  passed {passed}, failed {failed}, skipped {skipped}, expected {known}");
            }
            println!("{word:<6} {title}{more}");
            if !reasons.is_empty() {
                println!("       skipped: {reasons}");
            }
            if stale > 0 {
                println!("       {stale} tests that are expected to fail have passed");
            }
            if failed > 0 {
                let file = self.work.join("logs").join(format!("{}.log", title.replace(['/', ' '], ".")));
                write(&file, &log)?;
                failures.iter().for_each(|failure| println!("       {failure}"));
                println!("       output in {}:", file.display());
                tail(&log, 20).lines().for_each(|line| println!("       | {line}"));
            }
            match suites.iter_mut().find(|(have, _)| *have == suite) {
                Some((_, sum)) => sum.add(&counts),
                None => suites.push((suite, counts)),
            }
        }
        Ok(suites)
    }

    fn make(&self, dir: &str) -> std::process::Command {
        let mut make = command("make");
        make.arg("-C").arg(self.tests.join(dir));
        if dir != "util" {
            // These tests look at the class of an error only where they know MPICH to have it.
            let version = if dir == "ft" { "-DMPICH -DMPICH_NUMVERSION=40002300" } else { "" };
            make.arg(format!("CPPFLAGS=-include {} {version}", root().join(COMPAT).display()));
        }
        make
    }

    fn tools(&self) -> Result {
        let needed = [("cc", "gcc"), ("make", "make"), ("perl", "perl"), ("xz", "xz-utils=xz")];
        let missing: Vec<&str> =
            needed.iter().filter(|(tool, _)| !has(tool)).map(|(_, package)| *package).collect();
        if missing.is_empty() { Ok(()) } else { crate::shell::need(&missing) }
    }

    fn source(&self) -> Result {
        let tarball = self.work.join(format!("mpich_{VERSION}.orig.tar.xz"));
        if !tarball.exists() {
            fetch("mpich", RELEASE, &self.work)?;
            if !tarball.exists() {
                return Err(format!("Debian {RELEASE} no longer has mpich {VERSION}"));
            }
        }
        // Timestamps as packed: a newer configure.ac would send make looking for automake 1.15.
        empty(&self.tests)?;
        let mut tar = command("tar");
        tar.arg("-xJf").arg(&tarball).arg("-C").arg(&self.tests);
        run(tar.args(["--strip-components=3", &format!("mpich-{VERSION}/test/mpi")]))
    }
}

/// Puts a source package of a release of Debian into a folder. A private sources list and private package lists:
/// nothing of the machine's own apt configuration is changed.
pub fn fetch(package: &str, release: &str, to: &Path) -> Result {
    let apt = folder(to.join("apt"))?;
    folder(apt.join("lists/partial"))?;
    folder(apt.join("cache/archives/partial"))?;
    let mirror = mirror()?;
    say(&format!("getting the source of {package} from {mirror} ({release})"));
    let key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
    write(apt.join("sources.list"), format!("deb-src [{key}] {mirror} {release} main\n"))?;
    let get = |arguments: &[&str]| {
        let mut get = command("apt-get");
        get.current_dir(to).args(["-qq", "-o", "APT::Sandbox::User=root"]);
        get.arg("-o").arg(format!("Dir::Etc::sourcelist={}/sources.list", apt.display()));
        get.args(["-o", "Dir::Etc::sourceparts=/dev/null"]);
        get.arg("-o").arg(format!("Dir::State::lists={}/lists", apt.display()));
        get.arg("-o").arg(format!("Dir::Cache={}/cache", apt.display())).args(arguments);
        run(&mut get)
    };
    get(&["update"])?;
    get(&["source", "--download-only", package])
}

fn mirror() -> Result<String> {
    if let Ok(mirror) = std::env::var("CONFORMANCE_MIRROR") {
        return Ok(mirror);
    }
    let mut targets = command("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let known = output(targets.stderr(Stdio::null())).unwrap_or_default();
    let found = known.lines().map(|line| line.trim_end_matches('/')).find(|line| line.ends_with("/debian"));
    found.map(str::to_owned).ok_or_else(|| {
        "apt knows no Debian mirror yet: run apt-get update, or name one in CONFORMANCE_MIRROR".into()
    })
}

/// One line of a testlist.
pub struct Test<'a> {
    dir: &'a str,
    program: &'a str,
    ranks: &'a str,
    arguments: Vec<&'a str>,
    environment: Vec<(&'a str, &'a str)>,
    result: &'a str,
    /// Whether the job goes on when a rank dies.
    survives: bool,
    limit: u64,
    gigabytes: f64,
}

impl<'a> Test<'a> {
    /// The test of a line of the list of `dir`, if there is one.
    pub fn of(dir: &'a str, line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let program = words.next().filter(|word| !word.starts_with('#'))?;
        let ranks = words.next().unwrap_or("2");
        let (arguments, environment) = (Vec::new(), Vec::new());
        let mut test = Self {
            dir,
            program,
            ranks,
            arguments,
            environment,
            result: "",
            survives: false,
            limit: 180,
            gigabytes: 0.0,
        };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "arg" => test.arguments.push(value),
                "env" => {
                    test.environment.extend(value.split_once('='));
                    let ours = VARIABLES.iter().filter(|(theirs, ..)| *theirs == value);
                    test.environment.extend(ours.map(|(_, name, value)| (*name, *value)));
                }
                "resultTest" => test.result = value,
                "mpiexecarg" => test.survives = value == "-disable-auto-cleanup",
                "timeLimit" => test.limit = value.parse().unwrap_or(test.limit),
                "mem" => test.gigabytes = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        Some(test)
    }

    /// `DIR/PROGRAM`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.dir, self.program)
    }

    /// How many ranks it runs with.
    pub fn ranks(&self) -> u32 {
        self.ranks.parse().unwrap_or(2)
    }

    /// The test in a line.
    pub fn title(&self) -> String {
        let mut title = format!("{} -n {}", self.name(), self.ranks);
        self.arguments.iter().for_each(|word| title += &format!(" {word}"));
        if !self.environment.is_empty() {
            let set: Vec<String> =
                self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
            title += &format!(" ({})", set.join(" "));
        }
        if title.len() <= 70 { title } else { format!("{}...", title.chars().take(67).collect::<String>()) }
    }

    /// Runs the test and counts its verdict. `known`: of each that is expected to fail,
    /// how many of its runs have passed and have failed.
    fn run(
        &self,
        suite: &Suite,
        number: usize,
        expected: &[&str],
        counts: &mut TestCounts,
        known: &mut BTreeMap<String, [usize; 2]>,
    ) -> Result {
        let report = |word: &str, more: &str| println!("{word:<6} {:<70} {more:>6}", self.title());
        if let Some(needs) = self.lacks_memory()? {
            counts.skipped += 1;
            report("skip", &needs);
            return Ok(());
        }
        let title = format!("-{}", self.name());
        let left_out = |line: &&&str| line.split_whitespace().next() == Some(&title);
        if let Some(line) = expected.iter().find(left_out) {
            counts.skipped += 1;
            report("skip", "");
            println!("       {}", line[title.len()..].trim_start());
            return Ok(());
        }
        let effort = Effort::begin();
        let (status, mut text) = self.output(suite, &[]);
        let (took, spent) = effort.end();
        let log = suite.work.join("logs").join(format!(
            "{}.{}.{number}.log",
            self.dir.replace('/', "."),
            self.program
        ));
        let passes = self.passes(status, &text);
        if !passes {
            text += &format!("\n{spent}\n");
        }
        write(&log, &text)?;
        let is_known = expected.iter().any(|line| line.split_whitespace().next() == Some(&self.name()));
        match (passes, is_known) {
            (true, false) => {
                counts.passed += 1;
                report("ok", &took);
            }
            (true, true) => {
                known.entry(self.name()).or_default()[0] += 1;
                report("pass", &took);
            }
            (false, true) => {
                counts.known += 1;
                known.entry(self.name()).or_default()[1] += 1;
                report("known", &took);
            }
            (false, false) => {
                counts.failed += 1;
                report("FAIL", &took);
                println!("       status {status}, output in {}:", log.display());
                for line in tail(&text, 6).lines() {
                    println!("       | {}", line.chars().take(160).collect::<String>());
                }
            }
        }
        Ok(())
    }

    /// What it needs, if there is less memory than that and a reserve.
    pub fn lacks_memory(&self) -> Result<Option<String>> {
        let lacks = available()? < self.gigabytes * 1.5;
        Ok(lacks.then(|| format!("needs {} GiB of memory", self.gigabytes)))
    }

    /// Whether its program is there.
    pub fn is_built(&self, suite: &Suite) -> bool {
        suite.tests.join(self.dir).join(self.program).exists()
    }

    /// Runs the test with these variables besides. Returns whether it has passed, and what it printed.
    pub fn verdict(&self, suite: &Suite, environment: &[(&str, String)]) -> (bool, String) {
        let (status, text) = self.output(suite, environment);
        (self.passes(status, &text), text)
    }

    /// The exit status and what was printed. 137: killed, by our own outer limit too.
    fn output(&self, suite: &Suite, environment: &[(&str, String)]) -> (i32, String) {
        let folder = suite.tests.join(self.dir);
        if !self.is_built(suite) {
            // Some are not among those that are built together.
            let (_, log) = attempt(suite.make(self.dir).arg(self.program));
            if !self.is_built(suite) {
                return (2, format!("does not build:\n{log}"));
            }
        }
        let limit = self.limit * suite.times_the_limit;
        let mut job = command("timeout");
        job.current_dir(&folder).args(["-s", "KILL", &(limit + 15).to_string()]);
        job.arg(suite.dist.join("bin/mpiexec"))
            .args(["-n", self.ranks])
            .args(suite.options)
            .args(self.survives.then_some("--survive"))
            .arg(Path::new(".").join(self.program));
        job.args(&self.arguments)
            .envs(self.environment.iter().copied())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            // Tests of ports that nobody accepts wait so long, by MPICH's own variable.
            .env("PERUSAL_CONNECT_TIMEOUT", "20")
            .env("MPIEXEC_TIMEOUT", limit.to_string());
        match job.stdin(Stdio::null()).output() {
            Err(error) => (2, error.to_string()),
            Ok(out) => {
                let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
                (out.status.code().unwrap_or(137), text)
            }
        }
    }

    /// The verdicts of runtests. Whatever is expected, being killed is a failure.
    fn passes(&self, status: i32, text: &str) -> bool {
        let said = |line: &str| matches!(line.trim(), "No Errors" | "No errors");
        match self.result {
            _ if status == 137 => false,
            "TestStatus" | "TestErrFatal" => status != 0,
            // What is printed besides is about the ranks that died, and the status is what the others made of that.
            "TestStatusNoErrors" => text.lines().any(said),
            _ => {
                let extra = |line: &&str| !said(line) && !matches!(line.trim(), "" | "Test Passed");
                status == 0 && text.lines().any(said) && text.lines().find(extra).is_none()
            }
        }
    }
}

/// Gibibytes of memory that can be had.
fn available() -> Result<f64> {
    let known = read("/proc/meminfo")?;
    let line = known.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.unwrap_or(0.0) / 1_048_576.0)
}
