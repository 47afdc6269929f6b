//! libfabric's own tests (fabtests) against the provider, and MPICH's own tests on stock MPICH over it,
//! on one node and between two.
//!
//! fabtests come with Debian's source package of libfabric; they are compiled with its headers and run with the
//! libfabric that PyPI's MPICH brings, as the other MPI would. `.ci/fabric-expected.txt` names the tests that may fail,
//! with the reason.

mod mpich;
mod ubertest;

use crate::clients::Client;
use crate::conformance::{Suite, fetch};
use crate::nodes::{self, Nodes};
use crate::peers::environment;
use crate::shell::{
    Result, at, attempt, command, distribution, empty, folder, name, need, number, read, root, run, tail,
    write,
};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Releases of Debian that have fabtests for this interface in their source package, and their version.
const SOURCES: [(&str, &str); 1] = [("trixie", "2.1.0")];
/// Directories of MPICH's suite.
const DIRS: &str = "pt2pt coll rma";
/// Ranks that mpi4py's tests are run with.
const RANKS: [u32; 2] = [2, 4];
/// A module of mpi4py's tests that stock MPICH sometimes fails, or waits in for ever, over any provider, shm and tcp
/// included. A probe from any source looks at the provider first, but the receive after it looks at messages to itself
/// first; MPI_Dist_graph_create takes what it has received for what it has probed.
const FAILS_ON_MPICH: &str = "test_comm_topo";
/// The part that is run between two nodes.
const NODES: &str = "nodes";

/// Tests of two processes, which exchange addresses through a socket.
const PAIRS: &[&str] = &[
    "fi_av_xfer -e rdm",
    "fi_cq_data -e rdm -o senddata",
    "fi_cq_data -e rdm -o writedata",
    "fi_rdm",
    "fi_rdm -U",
    "fi_rdm_rma_event",
    "fi_rdm_rma_trigger",
    "fi_rdm_deferred_wq",
    "fi_rdm_tagged_peek",
    "fi_rdm_shared_av",
    "fi_multi_mr -e rdm -V",
    "fi_rdm_multi_domain -V",
    "fi_multi_ep -e rdm -v",
    "fi_multi_ep -e rdm -v -A",
    "fi_multi_ep -e rdm -v -Q",
    "fi_multi_ep -e rdm -v -A -Q",
    "fi_multi_ep -e rdm -v --threading completion",
    "fi_multi_ep -e rdm -v -A -Q --threading completion",
    "fi_recv_cancel -e rdm -V",
    "fi_unexpected_msg -e rdm -I 10 -v",
    "fi_inject_test -A inject -v",
    "fi_inject_test -N -A inject -v",
    "fi_inject_test -A inj_complete -v",
    "fi_inject_test -N -A inj_complete -v",
    "fi_resmgmt_test",
    "fi_flood -e rdm -v -T 1",
    "fi_flood -e rdm -v -T 1 -U",
    "fi_rdm_multi_client -C 10 -I 5",
    "fi_rdm_multi_client -C 10 -I 5 -U",
    "fi_unmap_mem",
    "fi_rma_bw -e rdm -o write -I 5 -v",
    "fi_rma_bw -e rdm -o write -I 5 -U",
    "fi_rma_bw -e rdm -o read -I 5 -v",
    "fi_rma_bw -e rdm -o read -I 5 -U",
    "fi_rma_bw -e rdm -o writedata -I 5 -v",
    "fi_rma_bw -e rdm -o writedata -I 5 -U",
    "fi_rma_pingpong -e rdm -o write -I 5",
    "fi_rma_pingpong -e rdm -o writedata -I 5",
    "fi_rdm_atomic -I 5 -o all",
    "fi_rdm_atomic -I 5 -o all -U",
    "fi_rdm_atomic -I 5 -o all -v",
    "fi_rdm_atomic -I 5 -o all -U -v",
    "fi_rdm_cntr_pingpong -I 5",
    "fi_multi_recv -e rdm -I 5",
    "fi_rdm_pingpong -I 5 -v",
    "fi_rdm_pingpong -I 5 -v -U",
    "fi_rdm_pingpong -I 5 -c sread",
    "fi_rdm_pingpong -I 5 -c fd",
    "fi_rdm_tagged_pingpong -I 5 -v",
    "fi_rdm_tagged_pingpong -I 5 -v -U",
    "fi_rdm_tagged_pingpong -I 5 -c sread",
    "fi_rdm_tagged_pingpong -I 5 -c fd",
    "fi_rdm_bw -I 5",
    "fi_rdm_tagged_bw -I 5 -v",
    "fi_rdm_tagged_bw -I 5 -v -U",
];

/// Those that also run between two nodes: threads that sleep are woken by the network. If only clocks woke them they
/// would meet their limit of time.
const BETWEEN_PAIRS: [&str; 2] =
    ["fi_rdm_tagged_pingpong -I 2000 -S 8 -c sread", "fi_rdm_tagged_pingpong -I 2000 -S 8 -c fd"];

/// Those that also run without an exchange of addresses: the client knows the node and the name of the service.
const BY_SERVICE: [&str; 2] = ["fi_rdm", "fi_rdm_tagged_pingpong -I 5 -v"];

/// What tests say that exit with 0 also where they have failed.
const SAYS: [(&str, &str); 2] = [("fi_multi_mr", "GOOD"), ("fi_rdm_multi_domain", "GOOD")];

/// Tests of one process.
const SINGLES: &[&str] = &[
    "fi_getinfo_test",
    "fi_av_test -e rdm -n 1 -g 127.0.0.1",
    "fi_dom_test -n 2",
    "fi_eq_test",
    "fi_cq_test",
    "fi_mr_test",
    "fi_cntr_test",
    "fi_setopt_test",
];

/// `fabric-test [DIST] [fabtests | mpich | mpi4py | nodes | fi_TEST… | DIR… | DIR/TEST…]`: parts or tests of one node,
/// or behind "nodes" of two: `nodes` [programs | DIR… | DIR/TEST…].
///
/// FABRIC_SECONDS=900, how long a test of fabtests may take; FABRIC_PROVIDER=perusal, another one to compare with.
pub fn main(arguments: &[String]) -> Result {
    let (dist, only) = distribution(arguments)?;
    let work = folder(root().join("build/fabric"))?;
    // The part that is on a node of its own runs under the lock of the whole.
    let _alone = if nodes::is_inside() { None } else { Some(alone(&work)?) };
    need(&["python3", "gcc", "make", "perl", "xz-utils=xz", "iproute2=ip", "util-linux=nsenter"])?;
    let mpich = work.join("mpich");
    environment(&mpich, "lib/libmpi.so*", &["mpich"])?;
    let provider = std::env::var("FABRIC_PROVIDER").unwrap_or_else(|_| "perusal".into());
    let between = only.first().is_some_and(|word| word == NODES);
    let mut run = Run { expected: expected()?, work, mpich, dist, provider, only, counts: Vec::new() };
    if nodes::is_inside() {
        run.between_nodes()?;
        return run.end();
    }
    if !between && run.wants("fabtests", |word| word.starts_with("fi_")) {
        run.fabtests()?;
    }
    let (own, shm) = (run.over(&run.provider), run.over("shm"));
    if !between && run.wants("mpich", |word| word.contains('/') || DIRS.split(' ').any(|dir| dir == word)) {
        run.suite()?.build()?;
        run.mpich_tests(&own, ("shm", &shm))?;
        run.small_shm()?;
    }
    if !between && run.wants("mpi4py", |_| false) {
        run.mpi4py(&own, ("shm", &shm))?;
    }
    let here = if between { Ok(()) } else { run.end() };
    if !between && !run.only.is_empty() {
        return here;
    }
    // What must be fetched or compiled is: a node of its own reaches nobody.
    run.suite()?.build()?;
    run.build_fabtests()?;
    say("between two nodes");
    let there = nodes::inside(arguments).unwrap_or_else(|| {
        say("not run: making network namespaces needs root");
        Ok(())
    });
    here.and(there)
}

/// Waits until no other run is at work in this folder: both would build there. From then on other runs wait, until the
/// file is closed, with this process at the latest.
fn alone(work: &Path) -> Result<File> {
    let path = work.join("lock");
    let lock = at(&path, File::options().write(true).create(true).truncate(false).open(&path))?;
    if lock.try_lock().is_err() {
        say(&format!("waiting for another run, which is at work in {}", work.display()));
        at(&path, lock.lock())?;
    }
    Ok(lock)
}

fn say(what: &str) {
    println!("fabric-test: {what}");
}

/// Lines of a test, two blanks, and why it fails.
fn expected() -> Result<Vec<(String, String)>> {
    let text = read(".ci/fabric-expected.txt")?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.filter_map(|line| line.split_once("  ")).map(|(test, why)| (test.into(), why.into())).collect())
}

#[derive(Default)]
struct Counts {
    suite: String,
    passed: usize,
    failed: usize,
    known: usize,
    stale: usize,
    /// Tests that fail over libfabric's shm, or between nodes its tcp, as well: they say nothing of the provider.
    alike: usize,
    /// Tests that MPICH expects to fail whatever it runs over, and such that need a larger machine: they are not run.
    left: usize,
}

struct Run<'a> {
    expected: Vec<(String, String)>,
    work: PathBuf,
    mpich: PathBuf,
    dist: PathBuf,
    provider: String,
    only: &'a [String],
    /// One for each suite that has begun.
    counts: Vec<Counts>,
}

impl Run<'_> {
    /// Prints a line for each suite. Where nothing has failed, as many tests pass over the provider as without it.
    fn end(&self) -> Result {
        println!();
        if self.counts.iter().any(|one| one.known + one.stale > 0) {
            println!("Expected to fail, and why:");
            self.expected.iter().for_each(|(test, why)| println!("  {test}: {why}"));
        }
        for Counts { suite, passed, failed, known, stale, alike, left } in &self.counts {
            say(&format!(
                "{suite}: passed {passed}, failed {failed}, expected failures {known}, expected failures that passed {stale}, failed without perusal as well {alike}, left out {left}"
            ));
        }
        let bad = self.counts.iter().any(|one| one.failed + one.stale > 0);
        if bad { Err(String::new()) } else { Ok(()) }
    }

    /// What is reported from now on counts for this suite.
    fn begin(&mut self, suite: &str) {
        self.counts.push(Counts { suite: suite.into(), ..Counts::default() });
    }

    /// The counts of the suite that runs.
    fn count(&mut self) -> &mut Counts {
        if self.counts.is_empty() {
            self.begin("tests");
        }
        self.counts.last_mut().expect("begun")
    }

    /// Runs programs and MPICH's tests with half of the ranks on each of two nodes: those that fail over tcp as well
    /// are not the provider's.
    fn between_nodes(&mut self) -> Result {
        let nodes = Nodes::new(&self.work)?;
        let with = |mut over: Vec<(&'static str, String)>| {
            over.extend(nodes.environment());
            over
        };
        let own = with(self.over("perusal,tcp"));
        let tcp = with(self.over("tcp"));
        let only = self.only.strip_prefix(&[NODES.to_owned()]).unwrap_or_default();
        if only.is_empty() || only.iter().any(|word| word == "programs") {
            self.begin("programs between nodes");
            for (test, good, output) in nodes::programs(&nodes, &self.mpich, &self.dist, &own)? {
                self.report(test, test, good, "", &output);
            }
            let programs = self.build_fabtests()?;
            for test in BETWEEN_PAIRS {
                let (good, output) = self.pair(&programs, test, &Meet::Between(&nodes))?;
                self.report(test, test, good, "", &output);
            }
            for (length, title) in
                [("100", "peers come and go"), ("300000", "peers come and go, long messages")]
            {
                let (good, output) = self.comers(length)?;
                self.report(title, title, good && output.contains("No Errors"), "", &output);
            }
        }
        self.only = only;
        self.mpich_tests(&own, ("tcp", &tcp))
    }

    /// Whether a part is asked for by its name or by one of its tests.
    fn wants(&self, part: &str, names: impl Fn(&str) -> bool) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| word == part || names(word))
    }

    /// Whether a test is asked for, by its name, or by its part's or its directory's.
    fn wants_test(&self, part: &str, test: &str) -> bool {
        let is = |word: &String| word == part || word == test || test.split('/').next() == Some(word);
        self.only.is_empty() || self.only.iter().any(is)
    }

    /// Counts a test and prints its line.
    fn report(&mut self, test: &str, line: &str, passed: bool, more: &str, output: &str) {
        let known = self.expected.iter().any(|one| one.0 == test);
        let counts = self.count();
        let (word, count) = match (passed, known) {
            (true, false) => ("ok", &mut counts.passed),
            (true, true) => ("PASS!", &mut counts.stale),
            (false, true) => ("known", &mut counts.known),
            (false, false) => ("FAIL", &mut counts.failed),
        };
        *count += 1;
        println!("{word:<6} {line:<70} {more}");
        if word == "FAIL" {
            tail(output, 8).lines().for_each(|line| println!("       | {line}"));
        }
    }

    fn fabtests(&mut self) -> Result {
        self.begin("fabtests");
        let programs = self.build_fabtests()?;
        for (tests, pair) in [(PAIRS, true), (SINGLES, false)] {
            for test in tests {
                if !self.wants_test("fabtests", program_of(test)) {
                    continue;
                }
                let start = Instant::now();
                let (good, output) = if pair {
                    self.pair(&programs, test, &Meet::Here)?
                } else {
                    self.single(&programs, test)
                };
                let took = format!("{:6.1} s", start.elapsed().as_secs_f64());
                self.report(test, test, good, &took, &output);
            }
        }
        if self.wants_test("fabtests", ubertest::NAME) {
            self.ubertest(&programs)?;
        }
        // Other providers have names of other kinds.
        let own = self.provider == "perusal";
        for test in BY_SERVICE {
            if !own || !self.wants_test("fabtests", program_of(test)) {
                continue;
            }
            let (good, output) = self.pair(&programs, test, &Meet::ByService)?;
            let title = format!("{test} (by service)");
            self.report(&title, &title, good, "", &output);
        }
        Ok(())
    }

    /// Compiles libfabric's tests, unless that was done. Returns where they are.
    fn build_fabtests(&self) -> Result<PathBuf> {
        let build = folder(self.work.join("fabtests"))?;
        let programs = build.join("bin");
        let (release, version) = SOURCES[0];
        let stamp = build.join("stamp");
        let built = format!("{version} {}", programs_of_fabtests().collect::<Vec<_>>().join(" "));
        if read(&stamp).is_ok_and(|there| there == built) {
            return Ok(programs);
        }
        let tarball = build.join(format!("libfabric_{version}.orig.tar.xz"));
        if !tarball.exists() {
            // A mirror may lack Debian's own changes, which are not needed.
            let fetched = fetch("libfabric", release, &build);
            if !tarball.exists() {
                fetched?;
                return Err(format!("Debian {release} no longer has libfabric {version}"));
            }
        }
        let source = empty(build.join("source"))?;
        run(command("tar").arg("-xJf").arg(&tarball).arg("-C").arg(&source).arg("--strip-components=1"))?;
        say("compiling fabtests (build/fabric/fabtests)");
        // Of the headers of libfabric only the interface: fabtests have internal ones of the same names.
        let headers = empty(build.join("include"))?;
        run(command("cp").arg("-r").arg(source.join("include/rdma")).arg(&headers))?;
        write(headers.join("config.h"), CONFIGURATION)?;
        let tests = source.join("fabtests");
        let compiler = || {
            let mut compiler = command("gcc");
            compiler.current_dir(&tests).args(["-O1", "-w", "-D_GNU_SOURCE", "-DHAVE_CONFIG_H"]);
            compiler.arg("-DCONFIG_PATH=\"\"").arg(format!("-I{}", headers.display()));
            compiler.args(["-Iinclude", "-Iinclude/unix"]);
            compiler
        };
        let objects = empty(build.join("objects"))?;
        let mut common: Vec<PathBuf> = Vec::new();
        let shared = crate::shell::files(&tests.join("common"))?
            .into_iter()
            .filter(|file| file.extension().is_some_and(|end| end == "c") && !file.ends_with("check_hmem.c"));
        for file in
            shared.chain(["unit/common.c", "benchmarks/benchmark_shared.c"].map(|file| tests.join(file)))
        {
            let object = objects.join(format!("{}-{}.o", common.len(), name(&file)));
            run(compiler().arg("-c").arg(&file).arg("-o").arg(&object))?;
            common.push(object);
        }
        empty(&programs)?;
        let library = self.mpich.join("lib/mpich");
        for program in programs_of_fabtests() {
            let to = programs.join(program);
            if to.exists() {
                continue;
            }
            let short = program.trim_start_matches("fi_");
            let places =
                ["functional", "benchmarks", "unit"].map(|dir| tests.join(dir).join(format!("{short}.c")));
            let files = match program {
                ubertest::NAME => {
                    ubertest::SOURCES.split(' ').map(|one| tests.join(format!("ubertest/{one}.c"))).collect()
                }
                _ => places.into_iter().filter(|file| file.exists()).take(1).collect::<Vec<_>>(),
            };
            if files.is_empty() {
                return Err(format!("fabtests have no {short}.c"));
            }
            let mut link = compiler();
            link.args(&files).args(&common).arg(library.join("libfabric.so.1"));
            link.arg(format!("-Wl,-rpath,{}", library.display())).arg("-Wl,--allow-shlib-undefined");
            run(link.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&to))?;
        }
        write(&stamp, built)?;
        Ok(programs)
    }

    fn program(&self, programs: &Path, test: &str, own: &[String], nodes: Option<&Nodes>) -> Command {
        let mut words = test.split(' ');
        let mut program = nodes.map_or_else(|| command("env"), Nodes::there);
        program.args(["timeout", "-s", "KILL", &number("FABRIC_SECONDS", 900).to_string()]);
        program
            .arg(programs.join(words.next().unwrap_or(test)))
            .args(["-p", &self.provider])
            .args(words)
            .args(own);
        program.env("FI_PROVIDER_PATH", self.dist.join("lib"));
        program
    }

    fn single(&self, programs: &Path, test: &str) -> (bool, String) {
        attempt(&mut self.program(programs, test, &[], None))
    }

    /// Runs a server and its client.
    fn pair(&self, programs: &Path, test: &str, meet: &Meet) -> Result<(bool, String)> {
        let text = |error: std::io::Error| error.to_string();
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).map_err(text)?.port();
        let (list, at, nodes) = match meet {
            Meet::Between(nodes) => (format!("{},tcp", self.provider), nodes::HERE, Some(*nodes)),
            Meet::Here | Meet::ByService => (self.provider.clone(), "127.0.0.1", None),
        };
        let is_named = matches!(meet, Meet::ByService);
        let (own, its) = match is_named {
            true => (format!("-B{port}"), format!("-P{port}")),
            false => (format!("-E={port}"), format!("-E={port}")),
        };
        let mut server = self.program(programs, test, &[own], None);
        let server = server.env("FI_PROVIDER", &list);
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut server = server.map_err(text)?;
        wait_for_listener(&mut server, port, is_named)?;
        let (good, mut output) =
            attempt(self.program(programs, test, &[its, at.into()], nodes).env("FI_PROVIDER", &list));
        if !good {
            // It may wait for a client for ever. `timeout` passes the signal on,
            // unless it is one that ends itself at once.
            std::thread::sleep(Duration::from_millis(500));
            let _ = attempt(command("kill").arg(server.id().to_string()));
        }
        let served = server.wait_with_output().map_err(text)?;
        output += "server:\n";
        output += &String::from_utf8_lossy(&[served.stdout, served.stderr].concat());
        let says = SAYS.iter().find(|one| test.starts_with(one.0)).is_none_or(|one| output.contains(one.1));
        Ok((good && served.status.success() && says, output))
    }

    /// Runs tests/fabric/comers.c with messages of this length: those who come say that they are on another node.
    fn comers(&self, length: &str) -> Result<(bool, String)> {
        let (program, library) = (self.work.join("comers"), self.mpich.join("lib/mpich"));
        let mut compiler = command("gcc");
        compiler.args(["-O1", "-Wall", "-Werror"]).arg(root().join("tests/fabric/comers.c"));
        compiler.arg(format!("-I{}", self.work.join("fabtests/include").display()));
        compiler.arg(library.join("libfabric.so.1")).arg(format!("-Wl,-rpath,{}", library.display()));
        run(compiler.arg("-Wl,--allow-shlib-undefined").arg("-o").arg(&program))?;
        let mut comers = command("timeout");
        comers.args(["-s", "KILL", &number("FABRIC_SECONDS", 900).to_string()]).arg(&program);
        comers.args(["40", length]).env("OTHER", "there").env("PERUSAL_FABRIC_NODE", "here");
        comers
            .env("FI_PROVIDER", format!("{},tcp", self.provider))
            .env("FI_PROVIDER_PATH", self.dist.join("lib"));
        Ok(attempt(&mut comers))
    }

    /// MPICH's suite for stock MPICH.
    fn suite(&self) -> Result<Suite> {
        Ok(Suite::of_another(self.mpich.clone(), folder(self.work.join("suite"))?, DIRS))
    }

    /// Runs the modules of mpi4py's tests on stock MPICH as `own` has it, and those with failures over another
    /// provider: what fails there as well is not ours.
    fn mpi4py(&mut self, own: &[(&str, String)], (other, over_other): (&str, &[(&str, String)])) -> Result {
        let mpich = self.mpich.clone();
        let client = Client::new("mpi4py", &mpich, &self.work)?;
        for ranks in RANKS {
            self.begin(&format!("mpi4py, {ranks} ranks"));
            for module in client.mpi4py_modules(say)? {
                let title = format!("mpi4py/{module} -n {ranks}");
                if module == FAILS_ON_MPICH {
                    println!("{:<6} {title:<70} fails on stock MPICH over any provider", "left");
                    self.count().left += 1;
                    continue;
                }
                let start = Instant::now();
                let (failures, output) = client.mpi4py_module(&module, ranks, own);
                let took = format!("{:6.1} s", start.elapsed().as_secs_f64());
                if failures.is_empty() {
                    self.report(&title, &title, true, &took, "");
                    continue;
                }
                let alike = client.mpi4py_module(&module, ranks, over_other).0;
                // Where the other run names no test, but the module, nothing is known of its tests.
                let known = |test: &String| alike.contains(test) || alike.contains(&module);
                let own: Vec<String> = failures.into_iter().filter(|test| !known(test)).collect();
                if own.is_empty() {
                    self.count_alike(&format!("{title}: {}", alike.join(", ")), other);
                } else {
                    self.report(&title, &format!("{title}: {}", own.join(", ")), false, &took, &output);
                }
            }
        }
        Ok(())
    }

    /// Counts a test that fails without perusal as well.
    fn count_alike(&mut self, test: &str, other: &str) {
        println!("{:<6} {test:<70} fails over {other} as well", "alike");
        self.count().alike += 1;
    }

    /// The variables that have MPICH send through a provider.
    fn over(&self, provider: &str) -> Vec<(&'static str, String)> {
        let library = |name: &str| self.dist.join("lib").join(name).display().to_string();
        vec![
            ("FI_PROVIDER_PATH", library("")),
            ("FI_PROVIDER", provider.to_owned()),
            ("MPIR_CVAR_CH4_NETMOD", "ofi".to_owned()),
            ("MPIR_CVAR_NOLOCAL", "1".to_owned()),
            ("LD_PRELOAD", library("libperusal-yield.so")),
        ]
    }
}

/// What fabtests' configure would write for a Linux machine without accelerators.
const CONFIGURATION: &str = "\
#define HAVE_CLOCK_GETTIME 1
#define HAVE_EPOLL 1
#define HAVE___INT128 1
#define HAVE_CUDA_RUNTIME_H 0
#define HAVE_CUDA_DMABUF 0
#define HAVE_ZE 0
#define HAVE_VERBS_DEVEL 0
#define ENABLE_DEBUG 0
#define PACKAGE_VERSION \"2.1.0\"
";

/// How client and server of a test find each other.
enum Meet<'a> {
    /// They exchange addresses through a socket.
    Here,
    /// They do, and are on two nodes.
    Between(&'a Nodes),
    /// The server has a name.
    ByService,
}

/// The programs of the tests, some more than once.
fn programs_of_fabtests() -> impl Iterator<Item = &'static str> {
    PAIRS.iter().chain(SINGLES).map(|test| program_of(test)).chain([ubertest::NAME])
}

fn program_of(test: &str) -> &str {
    test.split(' ').next().unwrap_or(test)
}

/// Waits until a server listens at its port, or has it as its name, or has ended.
fn wait_for_listener(server: &mut Child, port: u16, is_named: bool) -> Result {
    let start = Instant::now();
    let line = format!(":{port:04X} ");
    let name = format!("/{port}/perusal://");
    while start.elapsed() < Duration::from_secs(20) {
        let known = match is_named {
            true => vec!["/proc/net/unix"],
            false => vec!["/proc/net/tcp", "/proc/net/tcp6"],
        };
        let known: Vec<String> = known.into_iter().map(|file| read(file).unwrap_or_default()).collect();
        // Of a line: number, own address, peer's address, state; 0A listens.
        let listens = |one: &str| match is_named {
            true => one.contains(&name),
            false => one.contains(&line) && one.split_whitespace().nth(3) == Some("0A"),
        };
        if known.iter().any(|text| text.lines().any(listens))
            || server.try_wait().is_ok_and(|end| end.is_some())
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
