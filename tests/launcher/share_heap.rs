//! Programs that know nothing of shared memory, run with `--share-heap`: they do what they do without it.

use crate::common::dist::dist;
use crate::common::run::{Outcome, run};
use crate::common::{root, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longer than any run takes on the slowest machine; what it catches is a hang.
const HANG: Duration = crate::common::HANG;

/// Runs a program of `tests/c` on so many ranks with these options of the launcher.
fn launched(name: &str, ranks: usize, options: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let dir = scratch(&format!("share-heap-{name}-{ranks}"));
    let program = compiled(&dir, &root().join("tests/c").join(name));
    let mut command = Command::new(dist().join("bin/mpiexec"));
    command.args(["-n", &ranks.to_string()]).args(options).arg(program);
    command.envs(environment.iter().copied());
    run(&mut command, &dir, "run", HANG)
}

fn compiled(dir: &Path, source: &Path) -> std::path::PathBuf {
    let program = dir.join("program");
    let mut compiler = Command::new(dist().join("bin/mpicc"));
    compiler.args(["-g", "-O1", "-pthread"]).arg(source).arg("-o").arg(&program).arg("-lm");
    assert!(compiler.status().expect("a compiler").success(), "{compiler:?}");
    program
}

#[track_caller]
fn runs_well(name: &str, ranks: usize, environment: &[(&str, &str)]) {
    let outcome = launched(name, ranks, &["--share-heap"], environment);
    assert_eq!(outcome.code(), Some(0), "{name}\n{}{}", outcome.stdout, outcome.stderr);
}

/// Almost everything comes from the shared heap then.
const ALL: &[(&str, &str)] = &[("PERUSAL_SHARE_HEAP_FROM", "4096")];

#[test]
fn messages_of_all_kinds_arrive() {
    for name in
        ["random_messages.c", "eager_fragments.c", "datatype_messages.c", "packing.c", "cancel_sends.c"]
    {
        runs_well(name, 2, ALL);
    }
}

#[test]
fn collectives_are_right() {
    for name in ["coll_oracle.c", "coll_moves.c", "coll_nonblocking.c"] {
        runs_well(name, 3, ALL);
    }
}

#[test]
fn threads_may_use_it() {
    for name in ["random_threads.c", "coll_threads.c", "shared_buffers_threads.c"] {
        runs_well(name, 2, ALL);
    }
}

#[test]
fn an_exhausted_heap_changes_nothing_but_the_time() {
    let tight = [ALL, &[("PERUSAL_SHARED_HEAP", "2097152")]].concat();
    for name in ["random_messages.c", "coll_moves.c", "shared_buffers.c"] {
        runs_well(name, 3, &tight);
    }
}

#[test]
fn without_a_heap_all_memory_is_ordinary() {
    runs_well("random_messages.c", 2, &[("PERUSAL_SHARED_HEAP", "0")]);
    runs_well("random_messages.c", 1, &[]);
}

#[test]
fn what_the_user_preloads_stays() {
    let dir = scratch("share-heap-preload");
    let (source, library) = (dir.join("own.c"), dir.join("own.so"));
    fs::write(
        &source,
        "#include <stdio.h>\n__attribute__((constructor)) static void hello(void) { puts(\"own\"); }\n",
    )
    .expect("a scratch file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library);
    assert!(compiler.status().expect("a compiler").success());
    let own = format!("LD_PRELOAD={}", library.display());
    let outcome = launched("malloc_shared.c", 2, &["-x", &own, "--share-heap"], &[]);
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout.lines().filter(|line| *line == "own").count(), 2);
}

#[test]
fn programs_that_are_no_ranks_run_as_ever() {
    let mut command = Command::new(dist().join("bin/mpiexec"));
    command.args(["-n", "2", "--share-heap", "sh", "-c", "head -c 1000000 /dev/zero | sort | wc -c"]);
    let outcome = run(&mut command, &scratch("share-heap-sh"), "run", HANG);
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().map(str::trim).collect::<Vec<_>>(), ["1000001", "1000001"]);
}
