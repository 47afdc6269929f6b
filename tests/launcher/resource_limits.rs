//! Limits that the machine's owner sets: a job makes do with them, or says which one ended it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::jobs::{PERUSAL, RANK, run, start_as};

/// A control group of the test's own, with a limit on memory.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// `None` where this process may make none.
    fn new(limit: &str) -> Option<Self> {
        let name = format!("perusal-test-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        kinds.into_iter().find_map(|(root, file)| {
            let group = Self(Path::new(root).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            // It has no such file where the group above does not pass the controller on.
            (group.0.join(file).exists() && std::fs::write(group.0.join(file), limit).is_ok())
                .then_some(group)
        })
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_rank_that_the_kernel_kills_for_memory_is_named_with_the_reason() {
    let Some(group) = ControlGroup::new("100000000") else {
        println!("no control group can be made here: not checked");
        return;
    };
    let mut shell = Command::new("sh");
    let enter = format!("echo $$ >{}/cgroup.procs", group.0.display());
    // It keeps all that it has read since the last end of a line.
    let rank = "test $PERUSAL_RANK = 1 && exec tail /dev/zero; exec sleep 1000";
    shell.args(["-c", &format!("{enter}; exec {PERUSAL} run -n 2 sh -c '{rank}'")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.code(), 137, "{ended:?}");
    let why =
        "rank 1 killed by SIGKILL (signal 9) by the kernel, as the memory of its control group had run out";
    assert!(ended.err.contains(why), "{ended:?}");
}

#[test]
fn a_job_makes_do_with_little_address_space() {
    for limit in [300_000, 600_000, 3_000_000] {
        let mut shell = Command::new("sh");
        let job = format!("ulimit -v {limit}; exec {PERUSAL} run -n 4 {RANK} init alive finalize");
        let ended = start_as(shell.args(["-c", &job]), &[], Stdio::null()).end();
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{limit} {ended:?}");
    }
    let mut shell = Command::new("sh");
    let job = format!("ulimit -v 60000; exec {PERUSAL} run -n 64 true");
    let ended = start_as(shell.args(["-c", &job]), &[], Stdio::null()).end();
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("now 60000 KiB (ulimit -v), or run fewer ranks"), "{ended:?}");
}

#[test]
fn a_stack_on_which_no_rank_can_run_is_refused_in_words() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -s 88; exec {PERUSAL} run -n 2 true")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("the limit of the stack is 88 KiB (ulimit -s)"), "{ended:?}");
    assert!(ended.err.contains("allow 96 KiB at least"), "{ended:?}");
}

#[test]
fn too_few_descriptors_are_an_error_with_the_limit_and_the_number_that_suffices() {
    let job = |limit: u64| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {limit}; exec {PERUSAL} run -n 60 true")]);
        start_as(&mut shell, &[], Stdio::null()).end()
    };
    let ended = job(100);
    assert_eq!(ended.code(), 1, "{ended:?}");
    let advice = "the limit is 100 (ulimit -n), and 248 suffice: raise it, and ulimit -Hn with it";
    assert!(ended.err.contains(advice), "{ended:?}");
    assert_eq!(job(248).code(), 0);
}

#[test]
fn no_room_for_a_large_file_is_an_error_with_advice() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -f 100; exec {PERUSAL} run -n 8 true")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("ulimit -f") && ended.err.contains("or run fewer ranks"), "{ended:?}");
}

#[test]
fn a_job_that_cannot_be_started_whole_says_why_and_nothing_of_the_ranks_that_it_ends() {
    let ended = run(&["-n", "3", "sleep", "1000", ":", "-n", "1", "no-such-program"]);
    assert_eq!(ended.code(), 127, "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    assert!(ended.err.contains("no-such-program cannot be run: No such file"), "{ended:?}");
}
