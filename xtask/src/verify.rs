//! What takes longer than `make test` allows, after it.

use crate::shell::{
    Result, attempt, cargo, command, distribution, folder, itself, line, need, number, root, run, tail, write,
};
use crate::{aarch64, fuzz, loom, measure, miri, mutants, packages, peers, sanitizers};

/// `verify`: VERIFY_SECONDS=60, how long each fuzz target runs; PERUSAL_FAULT_ROUNDS=200, how many jobs are killed.
pub fn main(_: &[String]) -> Result {
    let (seconds, rounds) =
        (number("VERIFY_SECONDS", 60).to_string(), number("PERUSAL_FAULT_ROUNDS", 200).to_string());
    let (dist, _) = distribution(&[])?;
    let mut failed = Vec::new();
    let mut step = |what: &str, done: &mut dyn FnMut() -> Result| {
        println!("verify: {what}");
        if let Err(why) = done() {
            println!("verify: FAILED: {what}: {why}");
            failed.push(what.to_owned());
        }
    };
    step("models, with at least 3 preemptions, or 2 where three threads have too many orders", &mut || {
        run(loom::models()?.env("LOOM_MAX_PREEMPTIONS", "3"))
    });
    step("every ordering that models come by is needed by one", &mut || mutants::main(&[]));
    step("tests under the rules of the language (Miri)", &mut || miri::main(&[]));
    step("threads under ThreadSanitizer", &mut || sanitizers::thread(&[]));
    step("the same tests under AddressSanitizer", &mut || sanitizers::address(&[]));
    step("models of events where the kernel has no membarrier", &mut || {
        run(itself(["loom", "registry", "first_thread", "my_callback"])?.env("PERUSAL_MODEL_FENCES", "1"))
    });
    step(&format!("fuzz targets, {seconds} seconds each"), &mut || {
        fuzz::main(std::slice::from_ref(&seconds))
    });
    step("events cost no instructions where nobody listens", &mut || measure::event_cost(&[]));
    step("no invalid access, leak or uninitialised byte in messages of every kind", &mut || valgrind(&[]));
    step("tests and jobs on AArch64, under emulation", &mut || aarch64::main(&[]));
    step(&format!("{rounds} jobs killed at random moments"), &mut || {
        let arguments =
            ["test", "--quiet", "--locked", "--package", "perusal-cli", "--test", "p2p", "faults"];
        run(cargo(arguments).env("PERUSAL_FAULT_ROUNDS", &rounds))
    });
    let faults = number("PERUSAL_FAULT_RUNS", 2000).to_string();
    step(&format!("{faults} jobs that meet faults of every kind"), &mut || {
        let arguments = [
            "test",
            "--locked",
            "--package",
            "perusal-cli",
            "--test",
            "p2p",
            "fault_runs",
            "--",
            "--nocapture",
        ];
        let seed = number("PERUSAL_FAULT_SEED", std::process::id().into()).to_string();
        run(cargo(arguments).env("PERUSAL_FAULT_RUNS", &faults).env("PERUSAL_FAULT_SEED", seed))
    });
    step("half a million calls with wrong arguments", &mut || {
        let arguments =
            ["test", "--quiet", "--locked", "--package", "perusal-abi", "--test", "abi", "hostile"];
        let seed = number("PERUSAL_HOSTILE_SEED", std::process::id().into()).to_string();
        run(cargo(arguments).env("PERUSAL_HOSTILE_CALLS", "500000").env("PERUSAL_HOSTILE_SEED", seed))
    });
    step("thirty thousand command lines and as many tune files that nobody would write", &mut || {
        let arguments =
            ["test", "--quiet", "--locked", "--package", "perusal-cli", "--bin", "perusal", "random_tests"];
        let seed = number("PERUSAL_RANDOM_SEED", std::process::id().into());
        println!("verify: PERUSAL_RANDOM_SEED={seed}");
        run(cargo(arguments)
            .env("PERUSAL_RANDOM_ROUNDS", "30000")
            .env("PERUSAL_RANDOM_SEED", seed.to_string()))
    });
    step("programs built with MPICH's header on perusal, and ours on MPICH", &mut || peers::exchange(&[]));
    let order = folder("build")?.join("all_to_all_order");
    step("the Python wheel, with mpi4py", &mut || packages::wheel_check(&[]));
    step("the Debian package, beside other MPIs", &mut || packages::deb_check(&[]));
    step("the order of messages among 64 ranks", &mut || {
        run(command(dist.join("bin/mpicc")).args(["-O2", "examples/all_to_all_order.c", "-o"]).arg(&order))?;
        run(command(dist.join("bin/mpiexec")).args(["-n", "64"]).arg(&order))
    });
    step("256 ranks start, talk all to all and end", &mut || {
        let mut job = command(dist.join("bin/mpiexec"));
        run(job.args(["-n", "256"]).arg(&order).args(["--messages", "1000"]).env("MPIEXEC_TIMEOUT", "6000"))
    });
    let waits = folder("build")?.join("mistakes");
    step(
        "nobody is called deadlocked who is not: a million messages, ranks that sleep, threads, other programs",
        &mut || {
            run(command(dist.join("bin/mpicc"))
                .args(["-O2", "-pthread", "tests/launcher/mistakes.c", "-o"])
                .arg(&waits))?;
            let runs = [
                ("8", "stress", "1000000"),
                ("3", "sleeps", ""),
                ("3", "relay", ""),
                ("2", "thread", ""),
                ("2", "pipe", ""),
            ];
            for (ranks, program, argument) in runs {
                // A deadlock that is none would end the job with status 125.
                let mut job = command(dist.join("bin/mpiexec"));
                run(job
                    .args(["-n", ranks])
                    .arg(&waits)
                    .args([program, argument])
                    .env("MPIEXEC_TIMEOUT", "3600"))?;
            }
            Ok(())
        },
    );
    let files = folder(root().join("build/files"))?;
    let counts = files.join("file_counts_beyond");
    step("more than 2 GiB in one access to a file", &mut || {
        let mut mpicc = command(dist.join("bin/mpicc"));
        run(mpicc.args(["-O1", "-Itests/c", "tests/c/file_counts_beyond.c", "-o"]).arg(&counts))?;
        let mut job = command(dist.join("bin/mpiexec"));
        job.current_dir(&files).env("PERUSAL_LARGE_FILES", "1").env("MPIEXEC_TIMEOUT", "600");
        run(job.args(["-n", "2"]).arg(&counts))
    });
    let checkers = [
        ("Miri (a nightly toolchain with it)", miri::is_there()),
        ("ThreadSanitizer", sanitizers::thread_is_there()),
        ("AddressSanitizer", sanitizers::address_is_there()),
    ];
    let missing: Vec<&str> = checkers.iter().filter(|one| !one.1).map(|one| one.0).collect();
    if !failed.is_empty() {
        return Err(format!("failed: {}", failed.join("; ")));
    }
    match missing.join(", ").as_str() {
        "" => println!("verify: all well"),
        missing => {
            println!("verify: all that ran is well; not run, because the toolchain has none: {missing}")
        }
    }
    Ok(())
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

/// `valgrind [DIST]`: fails if a rank reads or writes where it must not, depends on what nobody wrote, or loses memory for good.
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
