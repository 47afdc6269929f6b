//! Other people's programs against a distribution: mpi4py's tests of files, windows and dynamic processes, and those of parallel HDF5.

use crate::shell::{Result, attempt, command, empty, folder, need, output, read, run, tail, write};
use std::path::{Path, PathBuf};

/// Names of the clients.
pub const ALL: [&str; 2] = ["mpi4py", "hdf5"];

/// Debian's package of HDF5.
const HDF5: &str = "hdf5-1.10.8+repack1";
/// The programs of HDF5's `testpar`; `t_prestart` reads what `t_pshutdown` has left. `t_cache_image` takes a quarter of an hour, in which it reads the
/// same bytes again and again.
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

/// Where a client is built, and for what.
pub struct Client<'a> {
    dist: &'a Path,
    work: PathBuf,
    /// What it was built for: another distribution or header means to build it again.
    stamp: String,
}

/// One of a client's tests, and what it printed if it has failed.
pub struct Verdict {
    /// Its name: `client/program`.
    pub name: String,
    /// What it printed.
    pub failure: Option<String>,
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

    fn job(&self, ranks: u32) -> std::process::Command {
        let mut job = command("timeout");
        job.args(["-s", "KILL", "900"]).arg(self.dist.join("bin/mpiexec")).args(["-n", &ranks.to_string()]);
        job
    }

    fn verdict(name: String, (good, log): (bool, String)) -> Verdict {
        Verdict { name, failure: (!good).then(|| tail(&log, 20)) }
    }

    /// mpi4py's tests of files, on one rank and on three, and of windows and of dynamic processes, also on two. The sources come from PyPI.
    pub fn mpi4py(&self, say: impl Fn(&str)) -> Result<Vec<Verdict>> {
        let python = self.work.join("bin/python");
        let source = self.work.join("source");
        if !self.is_built() {
            say("getting mpi4py from PyPI, and building it (build/conformance/mpi4py)");
            empty(&self.work)?;
            if !command("python3")
                .args(["-m", "venv"])
                .arg(&self.work)
                .status()
                .is_ok_and(|status| status.success())
            {
                need(&["python3-venv=no-such-program"])?;
                run(command("python3").args(["-m", "venv"]).arg(&self.work))?;
            }
            let pip = |words: &[&str]| {
                let mut pip = command(self.work.join("bin/pip"));
                pip.args(words).args([
                    "--quiet",
                    "--disable-pip-version-check",
                    // A wheel that was built for another distribution finds that one's library.
                    "--no-cache-dir",
                    "--no-binary",
                    "mpi4py",
                    "mpi4py",
                ]);
                pip.env("MPICC", self.dist.join("bin/mpicc")).env("MPI4PY_BUILD_MPIABI", "1");
                pip
            };
            run(&mut pip(&["install"]))?;
            run(pip(&["download", "--no-deps"]).current_dir(&self.work))?;
            empty(&source)?;
            let mut tar = command("sh");
            tar.current_dir(&self.work)
                .args(["-c", "tar xzf mpi4py-*.tar.gz -C source --strip-components=1"]);
            run(&mut tar)?;
            self.built()?;
        }
        let test = |ranks: u32, modules: &[&str]| {
            let mut job = self.job(ranks);
            job.current_dir(&source).arg(&python).args(["test/main.py", "-q"]).args(modules);
            Self::verdict(format!("mpi4py/{} -n {ranks}", modules.join(",")), attempt(&mut job))
        };
        let files = [1, 3].map(|ranks| test(ranks, &["test_io", "test_file"]));
        let windows = [1, 2, 3].map(|ranks| test(ranks, &["test_win", "test_rma", "test_rma_nb"]));
        let dynamic = [1, 2, 3].map(|ranks| test(ranks, &["test_spawn", "test_dynproc"]));
        Ok(files.into_iter().chain(windows).chain(dynamic).collect())
    }

    /// HDF5's `testpar`, on four ranks. `fetch` puts Debian's source package into a folder.
    pub fn hdf5(&self, say: impl Fn(&str), fetch: impl Fn(&str, &Path) -> Result) -> Result<Vec<Verdict>> {
        let tree = self.work.join(HDF5);
        if !self.is_built() {
            let tarball = self.work.join(format!("{}.orig.tar.gz", HDF5.replacen('-', "_", 1)));
            if !tarball.exists() {
                fetch("hdf5", &self.work)?;
            }
            if !tarball.exists() {
                return Err(format!("Debian no longer has {HDF5}"));
            }
            say("building parallel HDF5, which takes minutes (log: build/conformance/hdf5/log)");
            empty(&tree)?;
            run(command("tar").arg("-xzf").arg(&tarball).arg("-C").arg(&tree).arg("--strip-components=1"))?;
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
            let mut job = self.job(4);
            job.current_dir(tree.join("testpar")).arg(format!("./{program}"));
            Self::verdict(format!("hdf5/{program} -n 4"), attempt(&mut job))
        };
        Ok(TESTPAR.iter().map(test).collect())
    }
}
