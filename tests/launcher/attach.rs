//! Jobs that are looked at from outside: `perusal ps`, `perusal why`, `perusal top`.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::jobs::{Ended, PERUSAL, eventually, start_as};
use crate::deadlocks::start;

pub fn perusal(args: &[&str]) -> Ended {
    start_as(&mut Command::new(PERUSAL), args, Stdio::null()).end()
}

pub fn json(args: &[&str]) -> Value {
    let ended = perusal(args);
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// What `perusal why` says of a job, as JSON.
pub fn why(number: &str) -> Value {
    json(&["why", number, "--json"])
}

/// The job `number` in the list.
pub fn listed(number: &str) -> Option<Value> {
    let all = json(&["ps", "--json"]);
    let number: u32 = number.parse().expect("a number");
    all.as_array()?.iter().find(|job| job["job"] == number).cloned()
}

#[test]
fn a_job_is_listed_while_it_runs_and_says_how_many_of_its_ranks_wait() {
    let job = start(&["-n", "2", "--on-deadlock", "ignore"], "cyclic-receive");
    let number = job.pid().to_string();
    eventually("a job of two ranks that wait", || {
        listed(&number).is_some_and(|job| job["ranks"] == 2 && job["waiting"] == 2)
    });
    let line = perusal(&["ps"]).out;
    let line = line.lines().find(|line| line.split_whitespace().next() == Some(&number)).expect("a line");
    assert!(line.contains("mistakes cyclic-receive"), "{line}");
    job.signal(libc::SIGTERM);
    job.end();
    assert_eq!(listed(&number), None);
}

#[test]
fn why_tells_a_deadlock_from_a_job_that_works() {
    let job = start(&["-n", "2", "--on-deadlock", "ignore"], "cyclic-receive");
    let number = job.pid().to_string();
    let said = "perusal: deadlock: ranks 0 and 1 wait for each other: each waits for a message, and none has sent it yet";
    eventually("the reason", || perusal(&["why", &number]).out.lines().next() == Some(said));
    eventually("its kind", || why(&number)["kind"] == "receive-cycle");
    let works = start(&["-n", "2"], "long-sleep");
    let number = works.pid().to_string();
    eventually("what it does", || {
        let out = perusal(&["why", &number]).out;
        out.starts_with("perusal: no deadlock is proved; what the ranks do:")
            && out.contains("rank 0 waits in MPI_Barrier no. 1 on 'MPI_COMM_WORLD'")
            && out.contains("rank 1 does not wait in MPI: it sleeps in a system call (clock_nanosleep)")
    });
    let nobody = perusal(&["why", "1"]);
    assert_eq!(nobody.code(), 1);
    assert!(nobody.err.contains("there is no job 1 of yours; perusal ps lists what there is"), "{nobody:?}");
    let no_number = perusal(&["why", "mine"]);
    assert_eq!(no_number.code(), 2);
    assert!(no_number.err.contains("a job has a number, which perusal ps shows"), "{no_number:?}");
}

#[test]
fn why_says_which_ranks_are_stopped_where_the_launcher_is_stopped_too() {
    let job = start(&["-n", "2"], "long-sleep");
    let number = job.pid().to_string();
    let says = |rank: usize, wanted: &str| {
        why(&number)["ranks"][rank]["text"].as_str().is_some_and(|text| text.contains(wanted))
    };
    eventually("the job in the list", || listed(&number).is_some());
    eventually("a rank that waits", || says(0, "waits in MPI_Barrier no. 1 on 'MPI_COMM_WORLD'"));
    let signal = |signal: i32| {
        for pid in job.processes() {
            // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
            unsafe { libc::kill(pid, signal) };
        }
    };
    signal(libc::SIGSTOP);
    eventually("a rank that is stopped while it waits", || {
        says(0, "is stopped (a signal or a debugger), in MPI_Barrier no. 1 on 'MPI_COMM_WORLD'")
    });
    eventually("one that is stopped while it does not", || {
        says(1, "does not wait in MPI: it is stopped (a signal or a debugger)")
    });
    let lines = perusal(&["why", &number]).out;
    assert!(lines.starts_with("perusal: no deadlock is proved; what the ranks do:"), "{lines}");
    let top = perusal(&["top", &number, "--once", "--interval", "0.1"]).out;
    assert_eq!(top.matches("is stopped (a signal or a debugger)").count(), 2, "{top}");
    signal(libc::SIGCONT);
    job.signal(libc::SIGTERM);
    job.end();
}

#[test]
fn top_shows_rates_and_waits_as_text_and_as_json() {
    let busy = start(&["-n", "2"], "traffic");
    let number = busy.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    eventually("messages a second", || {
        let seen = json(&["top", &number, "--json", "--interval", "0.2"]);
        let rank = &seen["ranks"][1];
        rank["sent_per_second"].as_f64().is_some_and(|rate| rate > 10.0)
            && rank["sent_bytes_per_second"].as_f64().is_some_and(|rate| rate > 1000.0)
    });
    // Ranks that get no CPU for that long send nothing.
    eventually("a line for a pair of ranks", || {
        let text = perusal(&["top", &number, "--once", "--interval", "0.2"]).out;
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(&format!("job {number}: 2 ranks, ")), "{text}");
        assert_eq!(lines[1].split_whitespace().next(), Some("RANK"), "{text}");
        assert!(lines[1].contains(" OUT       IN DOING"), "{text}");
        lines[4..].iter().any(|line| line.starts_with("rank 0 to rank 1: "))
    });
    eventually("records both ways", || {
        let seen = json(&["top", &number, "--json", "--interval", "0.2"]);
        let talks = |from: u32, to: u32| {
            let pairs = seen["pairs"].as_array().expect("a list");
            let pair = pairs.iter().find(|pair| pair["from"] == from && pair["to"] == to);
            pair.and_then(|pair| pair["records"].as_u64()).unwrap_or(0)
        };
        talks(0, 1) > 0 && talks(1, 0) > 0
    });
    assert!(perusal(&["top", &number, "--interval", "0"]).err.contains("from 0.05 to 3600"));
}

#[test]
fn commands_that_only_print_end_quietly_when_nobody_reads_what_they_print() {
    let job = start(&["-n", "2", "--on-deadlock", "ignore"], "cyclic-receive");
    let number = job.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    let commands: &[&[&str]] =
        &[&["ps"], &["why", &number], &["top", &number, "--interval", "0.05"], &["info"]];
    for args in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = Command::new(PERUSAL).args(*args).stdout(writer).output().expect("it can be started");
        assert_eq!(ended.status.signal(), Some(libc::SIGPIPE), "{args:?}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{args:?}: {ended:?}");
    }
    job.signal(libc::SIGTERM);
    job.end();
}

#[test]
fn who_looks_at_a_job_cannot_write_it_and_another_user_does_not_see_it() {
    let busy = start(&["-n", "2"], "traffic");
    let number = busy.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    let mut top = Command::new(PERUSAL)
        .args(["top", &number, "--once", "--interval", "60"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the launcher runs");
    let maps = format!("/proc/{}/maps", top.id());
    let mappings = || -> Vec<String> {
        let text = std::fs::read_to_string(&maps).unwrap_or_default();
        text.lines().filter(|line| line.contains("/memfd:perusal-job")).map(str::to_owned).collect()
    };
    eventually("the job's memory in another process", || !mappings().is_empty());
    for line in mappings() {
        assert_eq!(line.split_whitespace().nth(1), Some("r--s"), "{line}");
    }
    top.kill().expect("ours");
    top.wait().expect("ours");
    // SAFETY: takes and changes nothing.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let mut stranger = Command::new(PERUSAL);
    stranger.uid(65534).gid(65534).args(["top", &number, "--once", "--interval", "0.2"]);
    // Where the test's folder is closed to others, they cannot run the program.
    if let Ok(refused) = stranger.output() {
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{refused:?}");
        assert!(said.contains(&format!("there is no job {number} of yours")), "{said}");
    }
}
