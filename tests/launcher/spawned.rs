//! Spawned processes end with the launcher, and with those that they are connected with; nothing stays behind.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::dist::dist;
use crate::common::jobs::{Directory, Job, eldest, eventually, marked, start};

/// Spawns three processes of itself, each of which starts a child in a session of its own, and waits for ever.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], argv + 1, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    else if (fork() == 0) {
        char name[4096];
        setsid();
        snprintf(name, sizeof name, "%s%s", argv[1], getenv("PERUSAL_RANK"));
        close(open(name, O_CREAT, 0600));
        for (;;) pause();
    }
    int word;
    MPI_Recv(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"#;

/// A job of two ranks and three spawned processes, all of them up.
fn spawned(dir: &Directory) -> Job {
    let (source, program) = (dir.file("program.c"), dir.file("program"));
    std::fs::write(&source, format!("#include <stdio.h>\n{PROGRAM}")).unwrap();
    let compiled = Command::new(dist().join("bin/mpicc")).args([&source, "-o", &program]).status().unwrap();
    assert!(compiled.success());
    let ups = dir.file("up");
    let job = start(&["-n", "2", &program, &ups], Stdio::null());
    eventually("start of the spawned processes", || {
        (0..3).all(|rank| Path::new(&dir.file(&format!("up{rank}"))).exists())
    });
    job
}

fn nothing_is_left(mark: &str) {
    eventually("the end of every process of the job", || marked(mark).is_empty());
}

#[test]
fn a_launcher_that_is_killed_leaves_no_spawned_process() {
    let dir = Directory::new("spawned-launcher");
    let job = spawned(&dir);
    let mark = job.mark.clone();
    // Launcher, reaper, five ranks and three children.
    assert!(job.processes().len() >= 10, "{:?}", job.processes());
    job.signal(libc::SIGKILL);
    nothing_is_left(&mark);
}

#[test]
fn a_signal_reaches_spawned_processes() {
    let dir = Directory::new("spawned-signal");
    let job = spawned(&dir);
    let mark = job.mark.clone();
    job.signal(libc::SIGTERM);
    assert_eq!(job.end().code(), 143);
    nothing_is_left(&mark);
}

#[test]
fn a_spawned_process_that_is_killed_ends_the_job_and_leaves_nothing() {
    let dir = Directory::new("spawned-killed");
    let job = spawned(&dir);
    let mark = job.mark.clone();
    let is_spawned = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains("PERUSAL_WORLD=")
    };
    let spawned: Vec<i32> = job.processes().into_iter().filter(is_spawned).collect();
    // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
    unsafe { libc::kill(eldest(&spawned), libc::SIGKILL) };
    let ended = job.end();
    assert_eq!(ended.code(), 137, "{ended:?}");
    assert!(ended.err.contains("killed by SIGKILL (signal 9); the other ranks are ended"), "{ended:?}");
    nothing_is_left(&mark);
}
