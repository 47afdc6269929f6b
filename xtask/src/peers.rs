//! Other MPIs beside this one: in a race on one machine, and one's programs on the other's library.

use crate::shell::{
    Result, attempt, command, distribution, empty, files, folder, has, name, need, output, read, root, run,
    stems, tail,
};
use std::fs;
use std::path::{Path, PathBuf};

/// An environment of Python's with these packages from PyPI, made unless `there` is in it.
pub fn environment(path: &Path, there: &str, packages: &[&str]) -> Result {
    if !output(command("sh").arg("-c").arg(format!("ls -d {}/{there} 2>/dev/null || true", path.display())))?
        .is_empty()
    {
        return Ok(());
    }
    eprintln!("peers: getting {} from PyPI into {}", packages.join(" "), path.display());
    if !path.join("bin/pip").exists() {
        let make = || {
            command("python3").args(["-m", "venv"]).arg(path).output().is_ok_and(|out| out.status.success())
        };
        if !make() {
            let _ = fs::remove_dir_all(path);
            need(&["python3-venv=no-such-program"])?;
            if !make() {
                return Err("python3 cannot make an environment".into());
            }
        }
    }
    run(command(path.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(packages))
}

/// `peers [DIST] [--markdown] [--update] [--tables]`: ROUNDS= MINUTES=30 METRICS="latency rate …" QUICK=1 FIFO=1, as
/// `benches/peers/peers.py` has them.
///
/// The same C benchmark is compiled with each one's mpicc and with ours.
/// Results: `build/peers/peers.json`, `peers.html`, `performance.md`.
pub fn main(arguments: &[String]) -> Result {
    let (options, place): (Vec<String>, Vec<String>) =
        arguments.iter().cloned().partition(|word| word.starts_with("--"));
    let (dist, _) = distribution(&place)?;
    let build = folder(root().join("build/peers"))?;
    need(&["python3"])?;
    environment(&build.join("mpich"), "lib/libmpi.so*", &["mpich"])?;
    environment(&build.join("openmpi"), "lib/libmpi.so*", &["openmpi"])?;
    let intel = build.join("impi");
    environment(&intel, "lib/libmpi.so*", &["impi-rt", "impi-devel"])?;
    // Some releases of impi-rt come without the libfabric that they need.
    if !stems(&intel.join("lib"), "so")?.iter().any(|stem| stem == "libfabric") {
        fs::remove_dir_all(&intel).map_err(|error| error.to_string())?;
        environment(&intel, "lib/libfabric.so*", &["impi-rt==2021.18.1", "impi-devel==2021.18.1"])?;
    }
    compile(&build, &dist)?;
    let mut race = command("python3");
    race.arg("benches/peers/peers.py").arg(&build).arg(&dist).args(options);
    run(race.env("PYTHONDONTWRITEBYTECODE", "1").env("I_MPI_ROOT", &intel))
}

fn compile(build: &Path, dist: &Path) -> Result {
    let compilers: [(&str, PathBuf, &[&str]); 4] = [
        ("mpich", build.join("mpich/bin/mpicc"), &[]),
        ("openmpi", build.join("openmpi/bin/mpicc"), &[]),
        ("intelmpi", build.join("impi/bin/mpicc"), &["-cc=gcc"]),
        ("perusal", dist.join("bin/mpicc"), &[]),
    ];
    const FLAGS: [&str; 4] = ["-O2", "-Wall", "-Wextra", "-pthread"];
    let sources =
        |names: &[&str]| names.iter().map(|name| format!("benches/peers/{name}.c")).collect::<Vec<_>>();
    let benchmark = sources(&[
        "main",
        "pair",
        "matching",
        "collectives",
        "crowd",
        "threads",
        "files",
        "onesided",
        "matrix",
        "dynamic",
        "partitioned",
        "probe",
    ]);
    for (name, compiler, own) in compilers {
        let mpicc = || {
            let mut mpicc = command(&compiler);
            mpicc.args(own).env("I_MPI_ROOT", build.join("impi"));
            mpicc
        };
        run(mpicc().args(FLAGS).args(&benchmark).arg("-o").arg(build.join(format!("bench-{name}"))))?;
        run(mpicc().args(["-O2", "benches/instructions.c", "-o"]).arg(build.join(format!("count-{name}"))))?;
    }
    let cc = || {
        let mut cc = command("cc");
        cc.args(FLAGS);
        cc
    };
    run(cc().args(sources(&["limits", "probe", "line"])).arg("-o").arg(build.join("limits")))?;
    run(cc().args(sources(&["prober", "probe", "line"])).arg("-o").arg(build.join("prober")))?;
    run(cc().args(["-shared", "-fPIC"]).args(sources(&["noyield"])).arg("-o").arg(build.join("noyield.so")))
}

/// What tests our texts, our limits or PERUSE needs perusal itself.
const OWN: [&str; 4] = ["peruse", "unsupported", "before_init", "fatal"];
/// What a program has that MPICH's ABI header has not.
const OWN_TEXT: [&str; 5] = ["peruse.h", "peruse_trace.h", "mpi-ext.h", "\"survive.h\"", "MPI_Fint"];
/// What any MPI can do goes the other way too; the rest asks for more checks of arguments than MPICH makes.
const PLAIN: [&str; 4] = ["interposed", "heat", "all_to_all_order", "pingpong"];

/// `exchange [DIST]`: one binary, two libraries. MPICH 5 comes from PyPI into `build/mpich`; the programs are those of
/// `tests/c` and `examples` that need nothing of perusal's own.
pub fn exchange(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let mpich = root().join("build/mpich");
    if !has("python3") {
        need(&["python3"])?;
    }
    environment(&mpich, "bin/mpicc_abi", &["mpich>=5"])?;
    let work = empty(root().join("build/exchange"))?;
    let (mut passed, mut failed) = (0, 0);
    let mut count = |good: bool, what: String, log: &str| {
        if good {
            passed += 1;
        } else {
            failed += 1;
            println!("FAILED: {what}\n{}", tail(log, 5));
        }
    };
    let sources = [files(Path::new("tests/c"))?, files(Path::new("examples"))?].concat();
    for source in sources.iter().filter(|source| source.extension().is_some_and(|e| e == "c")) {
        let stem = name(&source.with_extension(""));
        let text = read(source)?;
        let head: Vec<&str> = text.lines().take(20).collect();
        let special = |line: &&str| {
            ["ENV:", "EXIT:", "FLAGS:", "ARGS:", "OPTIONS:"].iter().any(|key| line.contains(key))
        };
        let own =
            OWN.iter().any(|word| stem.contains(word)) || OWN_TEXT.iter().any(|word| text.contains(word));
        if own || head.iter().any(special) {
            continue;
        }
        let (theirs, ours) = (work.join(format!("{stem}.theirs")), work.join(format!("{stem}.ours")));
        let (one, log) =
            attempt(command(mpich.join("bin/mpicc_abi")).arg(source).arg("-o").arg(&theirs).arg("-lm"));
        let (two, more) =
            attempt(command(dist.join("bin/mpicc")).arg(source).arg("-o").arg(&ours).arg("-lm"));
        if !(one && two) {
            count(false, format!("{stem} does not compile"), &(log + &more));
            continue;
        }
        for ranks in ranks(source, &stem, &head) {
            let run = |binary: &Path, of: &Path| {
                let mut job = command("timeout");
                job.arg("600");
                // The tests of `tests/c` start one rank without the launcher, and some see that.
                if ranks != "1" || of != dist {
                    job.arg(of.join("bin/mpiexec")).args(["-n", &ranks]);
                }
                job.arg(binary);
                attempt(job.env("LD_LIBRARY_PATH", of.join("lib")))
            };
            let (good, log) = run(&theirs, &dist);
            count(good, format!("{stem}, built with MPICH's header, on perusal on {ranks} ranks"), &log);
            if PLAIN.contains(&&*stem) {
                let (good, log) = run(&ours, &mpich);
                count(good, format!("{stem}, built with our header, on MPICH on {ranks} ranks"), &log);
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored");
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

fn ranks(source: &Path, stem: &str, head: &[&str]) -> Vec<String> {
    if stem == "pingpong" {
        return vec!["2".into()];
    }
    if source.starts_with("examples") {
        return vec!["4".into()];
    }
    let line = head.iter().find_map(|line| Some(line.split_once("RANKS:")?.1));
    line.map_or_else(|| vec!["1".into()], |line| line.split_whitespace().map(str::to_owned).collect())
}
