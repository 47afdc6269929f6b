//! Programs of different launchers, and without one, meet; a death in one job ends the other, and nothing stays behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::attach::{json, perusal};
use crate::common::dist::dist;
use crate::common::jobs::{Directory, Ended, Job, PERUSAL, eventually, marked, start, start_as};
use crate::common::{root, scratch};

/// The program of `tests/launcher/meeting.c`.
fn program() -> &'static str {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let made = PROGRAM.get_or_init(|| {
        let program = scratch("meeting").join("meeting");
        let mut compiler = Command::new(dist().join("bin/mpicc"));
        compiler.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        compiler.arg(root().join("tests/launcher/meeting.c"));
        assert!(compiler.status().expect("the wrapper runs").success(), "{compiler:?}");
        program
    });
    made.to_str().expect("a path in UTF-8")
}

/// A job of so many ranks; of the program alone, without launcher, for none.
fn job(ranks: u32, arguments: &[&str]) -> Job {
    if ranks == 0 {
        return start_as(&mut Command::new(program()), arguments, Stdio::null());
    }
    start(&[&["-n", &ranks.to_string(), program()], arguments].concat(), Stdio::null())
}

/// A name that no other test publishes.
fn name(of: &str) -> String {
    format!("{of} of {}", std::process::id())
}

/// All jobs end well, and say so.
fn end_well<'a>(jobs: impl IntoIterator<Item = (Job, &'a str)>) {
    for (job, says) in jobs {
        let mark = job.mark.clone();
        let ended = job.end();
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{ended:?}");
        assert_eq!(ended.out.lines().last(), Some(says), "{ended:?}");
        eventually("the end of every process", || marked(&mark).is_empty());
    }
}

fn meet(servers: u32, visitors: u32, times: &str) {
    let name = name(&format!("{servers} and {visitors}"));
    let server = job(servers, &["serve", &name, times]);
    end_well([(job(visitors, &["visit", &name, times]), "visited"), (server, "served")]);
}

#[test]
fn groups_of_two_launchers_meet_and_meet_again() {
    meet(2, 1, "2");
    meet(1, 3, "1");
}

#[test]
fn jobs_that_notify_by_flags_and_by_counters_meet() {
    meet(10, 2, "1");
}

#[test]
fn programs_without_a_launcher_meet() {
    meet(0, 0, "1");
    meet(2, 0, "1");
}

#[test]
fn jobs_join_one_communicator_one_after_the_other() {
    for ranks in [[2, 1, 2, 1], [0, 0, 0, 0]] {
        let name = name(&format!("all of {ranks:?}"));
        let server = job(ranks[0], &["gather", &name, "3"]);
        let visitors = ranks[1..].iter().map(|ranks| (job(*ranks, &["come", &name, "3"]), "came"));
        end_well(visitors.chain([(server, "gathered")]).collect::<Vec<_>>());
    }
}

#[test]
fn guests_and_spawned_processes_have_the_same_places_in_turn() {
    let name = name("host");
    let server = job(1, &["host", &name, "6"]);
    for guests in [3, 1, 2, 4, 1, 3] {
        end_well([(job(guests, &["look-in", &name]), "looked in")]);
    }
    end_well([(server, "hosted")]);
}

#[test]
fn processes_of_two_jobs_join_over_a_socket() {
    for ranks in [0, 1] {
        let dir = Directory::new("join");
        let path = dir.file("socket");
        end_well([(job(ranks, &["listen", &path]), "joined"), (job(1, &["call", &path]), "joined")]);
    }
}

#[test]
fn a_server_takes_more_visitors_in_turn_than_it_has_places() {
    let name = name("many");
    let server = job(1, &["serve-brief", &name, "20"]);
    for _ in 0..20 {
        let ended = job(4, &["visit-brief", &name]).end();
        assert_eq!((ended.code(), ended.out.as_str()), (0, "visited\n"), "{ended:?}");
    }
    assert_eq!(server.end().code(), 0);
}

#[test]
fn wrong_ports_of_other_jobs_are_errors() {
    let name = name("unwilling");
    let unwilling = job(1, &["unwilling", &name]);
    let ended = job(2, &["mistaken", &name]).end();
    assert_eq!((ended.code(), ended.out.as_str(), ended.err.as_str()), (0, "refused\n", ""), "{ended:?}");
    unwilling.signal(libc::SIGKILL);
}

/// A job of so many ranks which outlives deaths, or does not.
fn job_that(survives: bool, ranks: &str, arguments: &[&str]) -> Job {
    let options: &[&str] = if survives { &["--survive", "-n"] } else { &["-n"] };
    start(&[options, &[ranks, program()], arguments].concat(), Stdio::null())
}

/// Which of two jobs outlives deaths, where one does.
const SURVIVES: [(bool, bool); 3] = [(true, false), (false, true), (true, true)];

#[test]
fn a_job_that_outlives_deaths_meets_no_other() {
    for (server, visitor) in SURVIVES {
        let name = name(&format!("survivor {server} {visitor}"));
        let server = job_that(server, "1", &["unwilling", &name]);
        let ended = job_that(visitor, "2", &["turned-away", &name]).end();
        assert_eq!((ended.code(), ended.out.as_str()), (43, "turned away\n"), "{ended:?}");
        let why = "MPI_Comm_connect: a job of mpiexec --survive does not meet other jobs: start both without --survive";
        assert!(ended.err.contains(why), "{ended:?}");
        server.signal(libc::SIGKILL);
    }
}

#[test]
fn no_process_of_a_job_that_outlives_deaths_joins_another_job() {
    for (listener, caller) in SURVIVES {
        let dir = Directory::new("survivor");
        let path = dir.file("socket");
        let jobs = [(listener, "listen-apart"), (caller, "call-apart")];
        end_well(jobs.map(|(survives, mode)| (job_that(survives, "1", &[mode, &path]), "apart")));
    }
}

/// Two jobs that have met, and wait until somebody is killed.
fn met(how: &str) -> (Directory, [Job; 2]) {
    met_by(how, |arguments| job(2, arguments))
}

/// The same of jobs that are started so.
fn met_by(how: &str, job: impl Fn(&[&str]) -> Job) -> (Directory, [Job; 2]) {
    let dir = Directory::new(how);
    let name = name(&format!("{how} {}", dir.path().display()));
    let ups = [dir.file("serve"), dir.file("visit")];
    let jobs = [("serve", &ups[0]), ("visit", &ups[1])]
        .map(|(side, up)| job(&[&format!("{how}-{side}"), &name, "1", up]));
    eventually("the meeting", || ups.iter().all(|up| Path::new(up).exists()));
    (dir, jobs)
}

/// The process of a job's rank 1.
fn rank(job: &Job) -> i32 {
    let is_rank = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == b"PERUSAL_RANK=1")
    };
    job.processes().into_iter().find(is_rank).expect("a rank that runs")
}

#[test]
fn a_death_in_one_job_ends_the_other() {
    for (at, how) in [(0, "wait"), (1, "wait"), (0, "window"), (1, "window")] {
        let (_dir, jobs) = met(how);
        let marks = jobs.each_ref().map(|job| job.mark.clone());
        // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
        unsafe { libc::kill(rank(&jobs[at]), libc::SIGKILL) };
        for (number, job) in jobs.into_iter().enumerate() {
            let ended = job.end();
            assert_eq!(ended.code(), 137, "{ended:?}");
            let other = "rank 1 of another job, with which this one was connected";
            assert_eq!(ended.err.contains(other), number != at, "{ended:?}");
            assert!(ended.err.contains("killed by SIGKILL (signal 9)"), "{ended:?}");
        }
        eventually("the end of every process", || marks.iter().all(|mark| marked(mark).is_empty()));
    }
}

#[test]
fn a_launcher_that_is_killed_ends_both_jobs() {
    for at in [0, 1] {
        let (_dir, mut jobs) = met("wait");
        let marks = jobs.each_ref().map(|job| job.mark.clone());
        jobs[at].signal(libc::SIGKILL);
        jobs.swap(0, at);
        let [_killed, other] = jobs;
        let ended = other.end();
        assert_ne!(ended.code(), 0, "{ended:?}");
        assert!(ended.err.contains("of another job, with which this one was connected"), "{ended:?}");
        eventually("the end of every process", || marks.iter().all(|mark| marked(mark).is_empty()));
    }
}

#[test]
fn guests_are_looked_at_where_they_are_at_home() {
    let (_dir, [server, visitor]) = met("wait");
    for (job, other) in [(&server, &visitor), (&visitor, &server)] {
        let (number, other) = (job.pid().to_string(), other.pid());
        let guest = |looked: &serde_json::Value, rank: u64| {
            let ranks = looked["ranks"].as_array().expect("a list").iter();
            let mut guests = ranks.filter(|seen| seen["guest"]["job"] == other);
            guests.find(|seen| seen["guest"]["rank"] == rank).cloned().unwrap_or_default()
        };
        eventually("the deadlock of two jobs", || {
            let said = perusal(&["why", &number]).out;
            let lines: Vec<&str> = said.lines().collect();
            lines[0].starts_with("perusal: deadlock: ranks 0 and ")
                && lines[0]
                    .contains(" wait for each other: each waits for a message, and none has sent it yet")
                && lines.iter().any(|line| {
                    line.contains(&format!(" (ranks 0 and 1 of job {other}) wait in MPI_Recv for rank 0,"))
                })
        });
        eventually("the same for programs", || {
            let looked = json(&["why", &number, "--json"]);
            looked["kind"] == "receive-cycle" && guest(&looked, 1)["wait"]["peer"] == 0
        });
        let looked = json(&["top", &number, "--json", "--interval", "0.05"]);
        let seen = guest(&looked, 0);
        assert!(seen["received"].as_u64() > Some(0), "{looked}");
        let doing = seen["doing"].as_str();
        assert!(doing.is_some_and(|doing| doing.starts_with("waits in MPI_Recv for rank 0,")), "{looked}");
    }
}

#[test]
fn a_deadlock_of_two_jobs_ends_both() {
    let (_dir, jobs) = met_by("wait", |arguments| {
        let options = ["run", "-n", "2", program()];
        start_as(&mut Command::new(PERUSAL), &[&options, arguments].concat(), Stdio::null())
    });
    let marks = jobs.each_ref().map(|job| job.mark.clone());
    let ended = jobs.map(Job::end);
    // Either of them may be first to know; the other one then hears of its end.
    assert!(ended.iter().all(|job| job.code() != 0), "{ended:?}");
    let said = |job: &Ended| job.code() == 125 && job.err.contains("deadlock: ranks 0 and ");
    assert!(ended.iter().any(said), "{ended:?}");
    eventually("the end of every process", || marks.iter().all(|mark| marked(mark).is_empty()));
}

#[test]
fn what_befalls_a_job_that_has_disconnected_is_its_own() {
    let (_dir, [server, visitor]) = met("part");
    // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
    unsafe { libc::kill(rank(&visitor), libc::SIGKILL) };
    assert_eq!(visitor.end().code(), 137);
    let ended = server.end();
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{ended:?}");
    assert!(ended.out.ends_with("alone\n"), "{ended:?}");
}
