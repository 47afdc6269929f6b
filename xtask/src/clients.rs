//! Other people's programs against a distribution: the tests of mpi4py, of the crate `mpi`,
//! of PnetCDF and of parallel HDF5.

use crate::shell::{
    Effort, Result, attempt, attempt_until_silent, command, copy_folder, empty, files, folder, name, need,
    output, read, run, stems, tail, write,
};
use crate::unittest::{Report, failures};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Names of the clients.
pub const ALL: [&str; 4] = ["mpi4py", "rsmpi", "pnetcdf", "hdf5"];

/// The release of the crate `mpi`.
const RSMPI: &str = "0.8.2";
/// Python's package of libclang, with which the crate `mpi` reads `mpi.h`.
const LIBCLANG: &str = "libclang==18.1.1";
/// Debian's package of PnetCDF.
const PNETCDF: &str = "pnetcdf-1.12.3";
/// Debian's package of HDF5.
const HDF5: &str = "hdf5-1.10.8+repack1";
/// The programs of HDF5's `testpar`; `t_prestart` reads what `t_pshutdown` has left. `t_cache_image` takes a quarter of
/// an hour, in which it reads the same bytes again and again.
const TESTPAR: [&str; 10] = [
    "t_mpi",
    "t_bigio",
    "testphdf5",
    "t_cache",
    "t_pread",
    "t_pshutdown",
    "t_prestart",
    "t_init_term",
    "t_shapesame",
    "t_filters_parallel",
];

/// Puts Debian's source package of that name into a folder.
pub type Fetch<'a> = &'a dyn Fn(&str, &Path) -> Result;

/// Where a client is built, and for what.
pub struct Client<'a> {
    dist: &'a Path,
    work: PathBuf,
    /// What it was built for: another distribution or header means to build it again.
    stamp: String,
}

/// How tests of a client ended that run together.
#[derive(Default)]
pub struct Verdict {
    /// Its name: `client/program`, or the client and the number of ranks.
    pub name: String,
    /// How many tests passed.
    pub passed: usize,
    /// How many tests the suite itself left out.
    pub skipped: usize,
    /// Why it left them out.
    pub reasons: String,
    /// The tests that failed.
    pub failures: Vec<String>,
    /// What was printed, if a test has failed.
    pub log: String,
    /// Whether the run ended early, so that of a test that did not fail nothing is known.
    pub cut_off: bool,
}

impl Verdict {
    /// Of one test.
    fn one(name: String, (good, log): (bool, String)) -> Self {
        let failures = if good { Vec::new() } else { vec![name.clone()] };
        Self { passed: good.into(), failures, log, name, ..Self::default() }
    }

    /// Of tests that print a line each, which these functions take as the name of one that passed and of one that
    /// failed. None at all, or a program that fails without a line, is a failure.
    fn of_lines(
        name: String,
        (good, log): (bool, String),
        passed: fn(&str) -> bool,
        failed: fn(&str) -> Option<&str>,
    ) -> Self {
        let mut failures: Vec<String> = log.lines().filter_map(failed).map(str::to_owned).collect();
        let passed = log.lines().filter(|line| passed(line)).count();
        if failures.is_empty() && (!good || passed == 0) {
            failures.push(name.clone());
        }
        Self { passed, failures, log, name, ..Self::default() }
    }
}

impl<'a> Client<'a> {
    /// A client of that name in `work`.
    pub fn new(name: &str, dist: &'a Path, work: &Path) -> Result<Self> {
        let header = read(dist.join("include/mpi.h"))?;
        let shown = output(command(dist.join("bin/mpicc")).arg("-show"))?;
        let stamp = format!("{}\n{header}{shown}", dist.display());
        Ok(Self { dist, work: folder(work.join(name))?, stamp })
    }

    fn is_built(&self) -> bool {
        let again = std::env::var_os("CONFORMANCE_REBUILD").is_some();
        !again && read(self.work.join("stamp")).is_ok_and(|there| there == self.stamp)
    }

    fn built(&self) -> Result {
        write(self.work.join("stamp"), &self.stamp)
    }

    fn job(&self, ranks: u32, seconds: u32) -> Command {
        let mut job = command("timeout");
        job.args(["-s", "KILL", &seconds.to_string()])
            .arg(self.dist.join("bin/mpiexec"))
            .args(["-n", &ranks.to_string()]);
        job
    }

    /// Makes a virtual environment of Python in the client's folder.
    fn environment(&self) -> Result {
        empty(&self.work)?;
        let venv = || {
            let mut venv = command("python3");
            venv.args(["-m", "venv"]).arg(&self.work);
            venv
        };
        if !venv().status().is_ok_and(|status| status.success()) {
            need(&["python3-venv=no-such-program"])?;
            run(&mut venv())?;
        }
        Ok(())
    }

    fn pip(&self, words: &[&str]) -> Command {
        let mut pip = command(self.work.join("bin/pip"));
        // A wheel that was built for another distribution finds that one's library.
        pip.args(words).args(["--quiet", "--disable-pip-version-check", "--no-cache-dir"]);
        pip
    }

    /// Builds mpi4py, unless that was done. The sources come from PyPI.
    fn build_mpi4py(&self, say: impl Fn(&str)) -> Result {
        let source = self.work.join("source");
        if !self.is_built() {
            say(&format!("getting mpi4py from PyPI, and building it ({})", self.work.display()));
            self.environment()?;
            let from_source = ["--no-binary", "mpi4py", "mpi4py"];
            let mut install = self.pip(&["install"]);
            install.args(from_source).args(["numpy", "cloudpickle", "dill", "pyyaml", "cffi"]);
            install.env("MPICC", self.dist.join("bin/mpicc")).env("MPI4PY_BUILD_MPIABI", "1");
            // Its one large file takes minutes to optimise.
            run(install.env("CFLAGS", "-O0"))?;
            run(self.pip(&["download", "--no-deps"]).args(from_source).current_dir(&self.work))?;
            empty(&source)?;
            let mut tar = command("sh");
            tar.current_dir(&self.work)
                .args(["-c", "tar xzf mpi4py-*.tar.gz -C source --strip-components=1"]);
            run(&mut tar)?;
            self.built()?;
        }
        Ok(())
    }

    fn mpi4py_job(&self, ranks: u32, seconds: u32) -> Command {
        let mut job = self.job(ranks, seconds);
        job.current_dir(self.work.join("source"));
        job
    }

    /// All of mpi4py's tests, on 1, 2, 3 and 5 ranks. Each number of ranks takes long,
    /// so its verdict comes when it is there.
    pub fn mpi4py(&self, say: impl Fn(&str)) -> Result<impl Iterator<Item = Verdict>> {
        self.build_mpi4py(say)?;
        let test = move |ranks: u32| {
            let mut job = command(self.dist.join("bin/mpiexec"));
            // Tests that spawn may expect more processes than they are.
            job.args(["-n", &ranks.to_string(), "--universe", "32", "-l"])
                .current_dir(self.work.join("source"))
                .arg(self.work.join("bin/python"))
                .args(["test/main.py", "-v"]);
            // Two thousand tests, each with a line: on a busy machine all of them take an hour, and one takes minutes.
            let (good, log) = Effort::of(|| attempt_until_silent(job, Duration::from_secs(900)));
            let Report { passed, skipped, reasons, mut failures, whole } = Report::of(&log, ranks);
            if failures.is_empty() && !good {
                failures.push("a rank that says nothing".into());
            }
            let failures = failures.into_iter().map(|test| format!("mpi4py/{test}")).collect();
            Verdict {
                name: format!("mpi4py -n {ranks}"),
                passed,
                skipped,
                reasons,
                failures,
                log,
                cut_off: !whole,
            }
        };
        Ok([1, 2, 3, 5].into_iter().map(test))
    }

    /// The modules of mpi4py's tests.
    pub fn mpi4py_modules(&self, say: impl Fn(&str)) -> Result<Vec<String>> {
        self.build_mpi4py(say)?;
        let all = stems(&self.work.join("source/test"), "py")?;
        Ok(all.into_iter().filter(|stem| stem.starts_with("test_")).collect())
    }

    /// Runs a module of mpi4py's tests on another MPI, with these variables, for at most five minutes. Returns the
    /// tests that failed, or the module where no test says so, and what was printed.
    pub fn mpi4py_module(
        &self,
        module: &str,
        ranks: u32,
        environment: &[(&str, String)],
    ) -> (Vec<String>, String) {
        let mut job = self.mpi4py_job(ranks, 300);
        job.arg(self.work.join("bin/python")).args(["test/main.py", "-q", "-i"]).arg(format!("{module}.py"));
        let (good, log) = attempt(job.envs(environment.iter().map(|(name, value)| (name, value))));
        let mut failures = failures(&log);
        if !good && failures.is_empty() {
            failures.push(module.to_owned());
        }
        (failures, log)
    }

    /// The tests and examples of the crate `mpi`, these on four ranks.
    pub fn rsmpi(&self, say: impl Fn(&str)) -> Result<Vec<Verdict>> {
        let source = self.work.join("source");
        let cargo = |folder: &Path, words: &[&str]| -> Result<Command> {
            let headers = output(command("cc").arg("-print-file-name=include"))?;
            let libclang =
                output(command("find").arg(&self.work).args(["-name", "libclang.so", "-printf", "%h"]))?;
            let mut cargo = crate::shell::cargo(words);
            cargo
                .current_dir(folder)
                .env("MPICC", self.dist.join("bin/mpicc"))
                .env("LIBCLANG_PATH", libclang.trim());
            cargo.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", headers.trim()));
            // Warnings of a newer compiler are none of ours.
            cargo.env("RUSTFLAGS", "--cap-lints allow");
            // The crate takes no run path from the compiler's line.
            cargo.env("LD_LIBRARY_PATH", self.dist.join("lib"));
            cargo.env("CARGO_TARGET_DIR", self.work.join("target"));
            Ok(cargo)
        };
        if !self.is_built() {
            say("getting the crate mpi from crates.io, and building it (build/conformance/rsmpi)");
            self.environment()?;
            run(self.pip(&["install"]).arg(LIBCLANG))?;
            let fetched = folder(self.work.join("fetched"))?;
            let manifest =
                "[package]\nname = \"fetched\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n";
            write(fetched.join("Cargo.toml"), format!("{manifest}[dependencies]\nmpi = \"={RSMPI}\"\n"))?;
            write(fetched.join("lib.rs"), "")?;
            run(cargo(&fetched, &["vendor", "--quiet"])?.stdout(std::process::Stdio::null()))?;
            empty(&source)?;
            copy_folder(&fetched.join("vendor/mpi"), &source)?;
            let mut manifest = read(source.join("Cargo.toml"))?;
            manifest += "\n[workspace]\n";
            write(source.join("Cargo.toml"), manifest)?;
            let build = ["build", "--quiet", "--features", "derive,complex", "--examples", "--tests"];
            run(&mut cargo(&source, &build)?)?;
            self.built()?;
        }
        let test = ["test", "--features", "derive,complex", "--lib", "--tests"];
        let ended = attempt(&mut cargo(&source, &test)?);
        let mut verdicts = vec![Verdict::of_lines("rsmpi/tests".into(), ended, rust_passed, rust_failed)];
        let mut examples: Vec<String> =
            files(&source.join("examples"))?.iter().map(|file| name(&file.with_extension(""))).collect();
        examples.sort();
        for example in examples {
            let mut job = self.job(4, 1800);
            job.env("LD_LIBRARY_PATH", self.dist.join("lib"));
            job.arg(self.work.join("target/debug/examples").join(&example));
            verdicts.push(Verdict::one(format!("rsmpi/{example} -n 4"), Effort::of(|| attempt(&mut job))));
        }
        Ok(verdicts)
    }

    /// PnetCDF's checks: those of one process, and the same programs on four ranks.
    pub fn pnetcdf(&self, say: impl Fn(&str), fetch: Fetch<'_>) -> Result<Vec<Verdict>> {
        let tree = self.work.join(PNETCDF);
        let make = |target: &str| {
            let mut make = command("timeout");
            make.current_dir(&tree).args(["-s", "KILL", "900", "make", "-k", target]);
            make
        };
        if !self.is_built() {
            self.unpack(PNETCDF, "xz", fetch)?;
            say("building PnetCDF (log: build/conformance/pnetcdf/log)");
            need(&["m4", "autoconf", "automake", "libtool=libtoolize"])?;
            let (mut good, mut log) = attempt(command("autoreconf").arg("-i").current_dir(&tree));
            let mut configure = command("./configure");
            configure.current_dir(&tree).arg(format!("MPICC={}", self.dist.join("bin/mpicc").display()));
            configure.args(["CFLAGS=-O1 -w", "--disable-fortran", "--disable-cxx", "--disable-shared"]);
            configure.arg(format!("TESTMPIRUN={} -n NP", self.dist.join("bin/mpiexec").display()));
            for step in [&mut configure, &mut make("all"), &mut make("tests")] {
                let (well, more) = if good { attempt(step) } else { (false, String::new()) };
                (good, log) = (well, log + &more);
            }
            write(self.work.join("log"), &log)?;
            if !good {
                return Err(format!("PnetCDF does not build\n{}", tail(&log, 20)));
            }
            self.built()?;
        }
        let verdict = |what: &str, target: &str| {
            Verdict::of_lines(
                format!("pnetcdf {what}"),
                Effort::of(|| attempt(&mut make(target))),
                automake_passed,
                automake_failed,
            )
        };
        Ok(vec![verdict("-n 1", "check"), verdict("-n 4", "ptest")])
    }

    /// Unpacks Debian's source package of that name and version into the folder of that name.
    fn unpack(&self, package: &str, packed: &str, fetch: Fetch<'_>) -> Result {
        let tarball = self.work.join(format!("{}.orig.tar.{packed}", package.replacen('-', "_", 1)));
        if !tarball.exists() {
            fetch(package.split('-').next().unwrap_or(package), &self.work)?;
        }
        if !tarball.exists() {
            return Err(format!("Debian no longer has {package}"));
        }
        let tree = empty(self.work.join(package))?;
        run(command("tar").arg("-xf").arg(&tarball).arg("-C").arg(&tree).arg("--strip-components=1"))
    }

    /// HDF5's `testpar`, on four ranks.
    pub fn hdf5(&self, say: impl Fn(&str), fetch: Fetch<'_>) -> Result<Vec<Verdict>> {
        let tree = self.work.join(HDF5);
        if !self.is_built() {
            self.unpack(HDF5, "gz", fetch)?;
            say("building parallel HDF5, which takes minutes (log: build/conformance/hdf5/log)");
            let mut configure = command("./configure");
            configure.current_dir(&tree).env("CC", self.dist.join("bin/mpicc")).env("CFLAGS", "-O1 -w");
            configure.args(["--enable-parallel", "--disable-shared", "--disable-fortran", "--disable-hl"]);
            let (mut good, mut log) = attempt(&mut configure);
            let jobs = format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from));
            let programs = TESTPAR;
            for (folder, targets) in
                [("src", &["all"][..]), ("test", &["libh5test.la"]), ("testpar", &programs)]
            {
                let mut make = command("make");
                make.arg("-C").arg(tree.join(folder)).arg(&jobs).args(targets);
                let (well, more) = if good { attempt(&mut make) } else { (false, String::new()) };
                (good, log) = (well, log + &more);
            }
            write(self.work.join("log"), &log)?;
            if !good {
                return Err(format!("HDF5 does not build\n{}", tail(&log, 20)));
            }
            self.built()?;
        }
        let test = |program: &&str| {
            let mut job = self.job(4, 1800);
            job.current_dir(tree.join("testpar")).arg(format!("./{program}"));
            Verdict::one(format!("hdf5/{program} -n 4"), Effort::of(|| attempt(&mut job)))
        };
        Ok(TESTPAR.iter().map(test).collect())
    }
}

/// Whether it is the line of a test of Rust's that passed.
fn rust_passed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... ok")
}

/// The name of a test of Rust's that failed, of its line.
fn rust_failed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Whether it is the line of a test of Automake's that ended as it should.
fn automake_passed(line: &str) -> bool {
    line.starts_with("PASS: ") || line.starts_with("XFAIL: ")
}

/// The name of a test of Automake's that did not end as it should, of its line.
fn automake_failed(line: &str) -> Option<&str> {
    ["FAIL: ", "XPASS: ", "ERROR: "].into_iter().find_map(|word| line.strip_prefix(word)).map(str::trim)
}
