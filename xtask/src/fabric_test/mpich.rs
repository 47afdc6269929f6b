//! MPICH's own tests on stock MPICH over the provider: which of them run, and with which variables.

use super::{Run, say};
use crate::conformance::Test;
use crate::nodes;
use crate::shell::{Result, attempt, command, read};
use std::time::Instant;

/// 100,000 rounds of 8 ranks: between nodes it meets its limit of 180 s where they share few CPUs.
const LONG: (&str, usize) = ("pt2pt/sendflood", 8);
/// It frees the request of a receive whose message is still to come. MPI_Finalize of MPICH does not wait for that
/// message: between nodes, where others may be faster, some runs say so, over tcp alone as well.
const FREED: &str = "pt2pt/rqfreeb";
/// Programs, or their beginnings, about memory that the processes of a node share. Where MPICH takes each rank for a
/// node of its own they return, or look at their own memory, and say "No Errors": they run with two ranks or more on
/// each of two nodes, so that windows over all ranks are the provider's.
const SHARING: [&str; 6] = [
    "rma/fence_shm",
    "rma/mutex_bench_shm",
    "rma/strided_getacc_indexed_shared",
    "rma/strided_putget_indexed_shared",
    "rma/win_large_shm",
    "rma/win_shared",
];

impl Run<'_> {
    /// Runs MPICH's tests as `own` has it, and those that fail over another provider:
    /// what fails there as well is not ours.
    pub fn mpich_tests(
        &mut self,
        own: &[(&str, String)],
        (other, over_other): (&str, &[(&str, String)]),
    ) -> Result {
        let suite = self.suite()?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let place = if nodes::is_inside() { " between nodes" } else { "" };
        for dir in suite.dirs.clone() {
            self.begin(&format!("mpich/{dir}{place}"));
            for line in read(suite.tests.join(&dir).join("testlist"))?.lines() {
                let Some(test) = Test::of(&dir, line) else { continue };
                if !self.wants_test("mpich", &test.name()) {
                    continue;
                }
                if let Some(why) = left_out(&test, line, cpus)? {
                    println!("{:<6} {:<70} {why}", "left", test.title());
                    self.count().left += 1;
                    continue;
                }
                let [own, over_other] = [own, over_other].map(|over| sharing(&test, over));
                let start = Instant::now();
                let (good, output) = test.verdict(&suite, &own);
                let took = format!("{:6.1} s", start.elapsed().as_secs_f64());
                // One that does not compile is like itself over any provider.
                if !good && test.is_built(&suite) && !test.verdict(&suite, &over_other).0 {
                    self.count_alike(&test.title(), other);
                    continue;
                }
                self.report(&test.name(), &test.title(), good, &took, &output);
            }
        }
        // Of directories that nobody has asked for there is nothing to say.
        self.counts.retain(|one| one.passed + one.failed + one.known + one.stale + one.alike + one.left > 0);
        Ok(())
    }
}

/// The test that is run once more where `/dev/shm` is small.
const IN_SMALL_SHM: &str = "coll/allred";
/// Runs a program under a launcher with the variables that a `perusal` prints, in 64 KiB of `/dev/shm`.
const SMALL_SHM: &str = r#"mount -t tmpfs -o size=64k none /dev/shm || exit 99
eval "$("$1" fabric --env mpich)"
shift
exec timeout -s KILL 300 "$@""#;

impl Run<'_> {
    /// Runs a test of MPICH's in a container's `/dev/shm`: MPICH's own queues are to have room there, too.
    pub fn small_shm(&mut self) -> Result {
        if !self.wants_test("mpich", IN_SMALL_SHM) {
            return Ok(());
        }
        let title = format!("{IN_SMALL_SHM} -n 4, 64 KiB of /dev/shm");
        let shell = |script| {
            let mut shell = command("unshare");
            shell.args(["--mount", "sh", "-c", script, "sh"]);
            shell
        };
        if !attempt(&mut shell("mount -t tmpfs none /dev/shm")).0 {
            say(&format!("{title}: not run: mounting needs root"));
            return Ok(());
        }
        self.begin("mpich in a small /dev/shm");
        let mut run = shell(SMALL_SHM);
        run.arg(self.dist.join("bin/perusal")).arg(self.mpich.join("bin/mpiexec")).args(["-n", "4"]);
        let (good, output) = attempt(run.arg(self.suite()?.tests.join(IN_SMALL_SHM)).arg("-count=10"));
        self.report(&title, &title, good && output.contains("No Errors"), "", &output);
        Ok(())
    }
}

/// Why a test of MPICH's is not run, if so.
fn left_out(test: &Test<'_>, line: &str, cpus: usize) -> Result<Option<String>> {
    // MPICH's own list says so; some of them wait for ever.
    if line.contains(" xfail=") {
        return Ok(Some("MPICH expects it to fail".into()));
    }
    if nodes::is_inside() && test.name() == LONG.0 && cpus < LONG.1 {
        return Ok(Some(format!("needs {} CPUs", LONG.1)));
    }
    if nodes::is_inside() && test.name() == FREED {
        return Ok(Some("MPICH does not wait for a receive whose request was freed".into()));
    }
    if is_sharing(test) && test.ranks() < 3 {
        return Ok(Some("its two ranks share memory without the provider, or are on two nodes".into()));
    }
    test.lacks_memory()
}

/// Whether a test of MPICH's needs ranks that share memory.
fn is_sharing(test: &Test<'_>) -> bool {
    SHARING.iter().any(|program| test.name().starts_with(program))
}

/// The variables of a test of MPICH's: where it needs ranks that share memory, MPICH sees which do, and on one machine
/// takes every second rank for one of another node.
fn sharing<'a>(test: &Test<'_>, over: &[(&'a str, String)]) -> Vec<(&'a str, String)> {
    let mut over = over.to_vec();
    if is_sharing(test) {
        over.push(("MPIR_CVAR_NOLOCAL", "0".to_owned()));
        if !nodes::is_inside() {
            over.push(("MPIR_CVAR_NUM_CLIQUES", "2".to_owned()));
        }
    }
    over
}
