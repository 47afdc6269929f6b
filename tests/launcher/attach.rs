//! Jobs that are looked at from outside: `perusal ps`, `perusal why`, `perusal top`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::jobs::{Ended, PERUSAL, eventually, start_as};
use crate::deadlocks::start;

fn perusal(args: &[&str]) -> Ended {
    start_as(&mut Command::new(PERUSAL), args, Stdio::null()).end()
}

fn json(args: &[&str]) -> Value {
    let ended = perusal(args);
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
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
    assert_eq!(json(&["why", &number, "--json"])["kind"], "receive-cycle");
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
    let text = perusal(&["top", &number, "--once", "--interval", "0.2"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(&format!("job {number}: 2 ranks, ")), "{text}");
    assert_eq!(lines[1].split_whitespace().next(), Some("RANK"), "{text}");
    assert_eq!(lines.len(), 4, "{text}");
    assert!(perusal(&["top", &number, "--interval", "0"]).err.contains("from 0.05 to 3600"));
}
