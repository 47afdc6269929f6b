//! Programs with a classic mistake each: what the launcher says of them, first line by first line. And programs without
//! one, of which it says nothing.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::attach::{listed, why};
use crate::common::dist::dist;
use crate::common::jobs::{Directory, Ended, Job, eventually, start_as};
use crate::common::{root, scratch};
use crate::mistakes::MISTAKES;

/// The program's sources, below `tests/launcher/`.
const SOURCES: [&str; 7] = [
    "mistakes.c",
    "mistakes_collectives.c",
    "mistakes_comms.c",
    "mistakes_messages.c",
    "mistakes_none.c",
    "mistakes_threads.c",
    "mistakes_windows.c",
];

/// The program of [`SOURCES`].
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = scratch("launcher/mistakes").join("mistakes");
        let flags = ["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
        let mut compiler = Command::new(dist().join("bin/mpicc"));
        compiler.args(flags).arg(&program);
        compiler.args(SOURCES.map(|source| root().join("tests/launcher").join(source)));
        assert!(compiler.status().expect("the wrapper runs").success(), "{compiler:?}");
        program
    })
}

pub fn start(options: &[&str], mistake: &str) -> Job {
    let args = [options, &[program().to_str().expect("a path in UTF-8"), mistake]].concat();
    start_as(&mut Command::new(dist().join("bin/mpiexec")), &args, Stdio::null())
}

fn run(options: &[&str], mistake: &str) -> Ended {
    start(options, mistake).end()
}

#[test]
fn what_ends_well_by_luck_hangs_under_strict_checks_and_is_reported() {
    let kept = "ranks 0 and 1 wait for each other: each waits in a send for its receive, and none receives";
    let root = "ranks 0 and 1 wait for each other: rank 0 in MPI_Bcast no. 1 on 'MPI_COMM_WORLD' for rank 1, rank 1 in MPI_Recv (tag 1 on 'MPI_COMM_WORLD') for rank 0";
    for (program, line) in [("relies-on-kept-messages", kept), ("relies-on-roots-that-go-on", root)] {
        for options in [&["-n", "2"][..], &["--check", "-n", "2"]] {
            let ended = run(options, program);
            assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{program} {options:?}");
        }
        let ended = run(&["--check=strict", "-n", "2"], program);
        assert_eq!(ended.code(), 125, "{ended:?}");
        assert_eq!(ended.err.lines().next(), Some(format!("mpiexec: deadlock: {line}").as_str()));
    }
}

#[test]
fn every_classic_mistake_is_told_in_the_first_line() {
    let wrong: Vec<String> = MISTAKES
        .iter()
        .filter_map(|(mistake, ranks, line)| {
            let ended = run(&["-n", ranks], mistake);
            let wanted = format!("mpiexec: deadlock: {line}");
            (ended.code() != 125 || ended.err.lines().next() != Some(&wanted))
                .then(|| format!("{mistake}: wanted {wanted:?}, got {ended:#?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_lines_below_say_what_each_rank_does_and_what_lies_in_its_queues() {
    let ended = run(&["-n", "3"], "wrong-tag");
    let lines: Vec<&str> = ended.err.lines().collect();
    assert!(
        lines[1].starts_with("perusal:   rank 0 waits in MPI_Recv for rank 1, tag 7, on 'halo', for "),
        "{ended:?}"
    );
    assert_eq!(lines[2], "perusal:     has an unexpected message from rank 1, tag 8, on 'halo', 4 bytes");
    assert!(lines[3].starts_with("perusal:   ranks 1 and 2 wait in MPI_Finalize, for "), "{ended:?}");
    assert_eq!(lines[4], "perusal:   give the send and its receive the same tag; the ranks are ended");
    assert_eq!(lines.len(), 5);
}

#[test]
fn where_a_rank_that_waits_for_a_window_is_alone_the_advice_names_the_checks() {
    let ended = run(&["-n", "3"], "window-freed-by-some");
    let advice = "also at the collective calls on the file or window: mpiexec --check compares them; the ranks are ended";
    assert!(ended.err.trim_end().ends_with(advice), "{ended:?}");
}

#[test]
fn of_a_collective_call_the_report_has_number_root_count_type_and_operation() {
    let dir = Directory::new("collective-report");
    let file = dir.file("report.json");
    let ended = run(&["-n", "3", "--deadlock-report", &file], "reduce-missing");
    let wanted = "perusal:   ranks 1 and 2 wait in MPI_Reduce no. 5 on 'halo' (root 0, 20000 × MPI_DOUBLE, MPI_MAX), for ";
    assert!(ended.err.lines().any(|line| line.starts_with(wanted)), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let wanted = serde_json::json!({ "function": null, "number": 5, "root": 0, "data": "20000 × MPI_DOUBLE", "op": "MPI_MAX" });
    assert_eq!(report["ranks"][1]["wait"]["collective"], wanted);
    // On the fast path, too.
    let ended = run(&["-n", "3"], "bcast-missing");
    let wanted = "perusal:   ranks 0 and 2 wait in MPI_Bcast no. 17 on 'halo' (root 1, 1 × MPI_INT), for ";
    assert!(ended.err.lines().any(|line| line.starts_with(wanted)), "{ended:?}");
}

#[test]
fn of_a_request_of_a_collective_operation_the_report_has_the_operation() {
    for threads in ["", "-x MISTAKE_THREADS=1"] {
        let options: Vec<&str> = ["-n", "2"].into_iter().chain(threads.split_whitespace()).collect();
        let ended = run(&options, "nonblocking-roots");
        let wanted = "perusal:   rank 1 waits in MPI_Wait for MPI_Ibcast no. 1 on 'MPI_COMM_WORLD' (root 0, 16 × MPI_DOUBLE), for ";
        assert!(ended.err.lines().any(|line| line.starts_with(wanted)), "{ended:?}");
    }
}

#[test]
fn with_any_thread_level_the_requests_that_are_waited_for_are_named() {
    let ended = run(&["-n", "2", "-x", "MISTAKE_THREADS=1"], "waitall");
    assert_eq!(ended.code(), 125, "{ended:?}");
    let line = "perusal:     its receive from rank 1, tag 2 is not over";
    assert!(ended.err.lines().any(|said| said == line), "{ended:?}");
}

#[test]
fn a_thread_that_may_not_call_mpi_hides_no_deadlock() {
    let idle = ["-n", "2", "-x", "MISTAKE_IDLE_THREAD=1"];
    let ended = run(&idle, "cyclic-receive");
    assert_eq!(ended.code(), 125, "{ended:?}");
    let with_all = [&idle[..], &["-x", "MISTAKE_THREADS=1", "--timeout", "4"]].concat();
    let ended = run(&with_all, "cyclic-receive");
    assert_eq!((ended.code(), ended.err.contains("deadlock")), (124, false), "{ended:?}");
}

#[test]
fn threads_that_only_their_own_process_could_wake_hide_no_deadlock() {
    let waiting = ["-n", "2", "-x", "MISTAKE_WAITING_THREAD=1", "-x", "MISTAKE_THREADS=1", "--timeout", "20"];
    let ended = run(&waiting, "cyclic-receive");
    assert_eq!(ended.code(), 125, "{ended:?}");
    // The main thread waits for the end of the one that waits in MPI.
    let ended = run(&["-n", "2", "--timeout", "20"], "thread-that-is-joined");
    assert_eq!(ended.code(), 125, "{ended:?}");
    // One that may wake it is there.
    let with_one_more = [&waiting[..6], &["-x", "MISTAKE_IDLE_THREAD=1", "--timeout", "4"]].concat();
    let ended = run(&with_one_more, "cyclic-receive");
    assert_eq!((ended.code(), ended.err.contains("deadlock")), (124, false), "{ended:?}");
}

#[test]
fn the_thread_that_makes_progress_hides_no_deadlock_and_makes_none() {
    let with_it =
        |ranks, program| run(&["-n", ranks, "-x", "PERUSAL_PROGRESS_THREAD=on", "--timeout", "100"], program);
    for (program, ranks) in [("cyclic-receive", "2"), ("cyclic-send", "2"), ("nonblocking-missing", "3")] {
        let ended = with_it(ranks, program);
        assert_eq!(ended.code(), 125, "{program}: {ended:?}");
    }
    for (program, ranks) in [("sleeps", "3"), ("relay", "3"), ("stress", "4")] {
        let ended = with_it(ranks, program);
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{program}");
    }
}

#[test]
fn threads_that_wait_for_a_mutex_or_the_end_of_one_in_mpi_are_named() {
    let dir = Directory::new("threads-asleep");
    let file = dir.file("report.json");
    let line = |ended: &Ended, awaits: &str| {
        let line = format!("perusal:     another thread waits for {awaits}");
        ended.err.lines().filter(|said| *said == line).count()
    };
    let ended = run(&["-n", "2", "--timeout", "20", "--deadlock-report", &file], "thread-behind-a-mutex");
    assert_eq!(ended.code(), 125, "{ended:?}");
    assert_eq!(line(&ended, "a mutex that the thread in MPI_Recv holds"), 1, "{ended:?}");
    let advice = "perusal:   unlock the mutex before the call of MPI, if the other thread is to do what is waited for; or let one rank send first";
    assert!(ended.err.lines().any(|said| said.starts_with(advice)), "{ended:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let asleep = &report["ranks"][0]["asleep"][0];
    assert_eq!((&asleep["awaits"], &asleep["of"]), (&"mutex".into(), &report["ranks"][0]["pid"]), "{report}");
    assert_eq!(asleep["of_waits_in_mpi"], true, "{report}");

    let ended = run(&["-n", "2", "--timeout", "20"], "thread-that-is-joined");
    assert_eq!(ended.code(), 125, "{ended:?}");
    assert_eq!(line(&ended, "the end of the thread in MPI_Recv"), 2, "{ended:?}");
}

#[test]
fn several_threads_of_a_rank_that_wait_in_mpi_are_deadlocked_together() {
    let dir = Directory::new("threads-that-wait");
    let file = dir.file("report.json");
    let ended = run(&["-n", "2", "--timeout", "20", "--deadlock-report", &file], "threads-that-wait");
    assert_eq!(ended.code(), 125, "{ended:?}");
    assert!(ended.err.contains("perusal:     another thread waits in a receive for rank "), "{ended:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for rank in report["ranks"].as_array().unwrap() {
        // Either of the two runs progress.
        let waits = [&rank["wait"], &rank["other_waits"][0]];
        let mut tags = waits.map(|wait| wait["tag"].as_i64());
        tags.sort_unstable();
        assert_eq!(tags, [Some(7), Some(9)], "{rank}");
        assert!(waits.iter().all(|wait| wait["communicator"] == "MPI_COMM_WORLD"), "{rank}");
    }
    // One that may act is there.
    let with_one_more = ["-n", "2", "-x", "MISTAKE_IDLE_THREAD=1", "--timeout", "4"];
    let ended = run(&with_one_more, "threads-that-wait");
    assert_eq!((ended.code(), ended.err.contains("deadlock")), (124, false), "{ended:?}");
}

#[test]
fn what_another_thread_s_collective_call_waits_for_is_no_receive_of_the_program() {
    let ended = run(&["-n", "2", "--timeout", "20"], "thread-in-a-barrier");
    assert_eq!(ended.code(), 125, "{ended:?}");
    let receives = ended.err.lines().filter(|line| line.contains("its receive from"));
    assert!(receives.clone().all(|line| line.contains("tag 9")), "{ended:?}");
}

#[test]
fn programs_that_wait_for_what_comes_are_left_alone() {
    let programs = [
        "sleeps 3",
        "relay 3",
        "thread 2",
        "thread-chain 2",
        "threads-and-one-that-sends 2",
        "stress 4",
        "pipe 2",
    ];
    for (program, ranks) in programs.iter().filter_map(|both| both.split_once(' ')) {
        let ended = run(&["-n", ranks], program);
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{program}");
    }
}

#[test]
fn a_warning_leaves_the_job_alone_and_nothing_is_said_where_nobody_looks() {
    let warnings = |what, seconds| {
        let ended = run(&["-n", "2", "--timeout", seconds, "--on-deadlock", what], "cyclic-receive");
        assert_eq!(ended.code(), 124, "{ended:?}");
        ended.err.matches("mpiexec: deadlock: ranks 0 and 1 wait").count()
    };
    assert_eq!(warnings("ignore", "4"), 0);
    // On a machine where the ranks take longer to start and to wait there is none yet: then they get more time.
    let mut limits = ["4", "20", "100"].into_iter();
    let said = limits.find_map(|seconds| Some(warnings("warn", seconds)).filter(|said| *said > 0));
    assert_eq!(said, Some(1));
    let refused = run(&["-n", "2", "--on-deadlock", "pray"], "sleeps");
    assert_eq!(refused.code(), 2);
    assert!(
        refused.err.contains("--on-deadlock pray: it must be \"end\", \"warn\" or \"ignore\""),
        "{refused:?}"
    );
}

#[test]
fn of_a_lock_that_has_been_handed_on_the_report_has_who_holds_it_now() {
    let dir = Directory::new("handed-over");
    let file = dir.file("report.json");
    let ended = run(&["-n", "3", "--deadlock-report", &file], "lock-handed-over");
    let waits = |waiting: u32, holder: u32| {
        format!(
            "rank {waiting} in MPI_Win_lock on window 'counters' for the lock of rank 1's window, which rank {holder} holds"
        )
    };
    let receives =
        |rank: u32, from: u32| format!("rank {rank} in MPI_Recv (tag 3 on 'MPI_COMM_WORLD') for rank {from}");
    // Either of the two may have come first.
    let wanted = [[receives(0, 2), waits(2, 0)], [waits(0, 2), receives(2, 0)]]
        .map(|steps| format!("mpiexec: deadlock: ranks 0 and 2 wait for each other: {}", steps.join(", ")));
    let first = ended.err.lines().next().unwrap_or_default();
    assert!(wanted.iter().any(|line| line == first), "{ended:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let locks = |rank: &&Value| rank["wait"]["kind"] == "lock";
    let rank = report["ranks"].as_array().unwrap().iter().find(locks).expect("one that waits for the lock");
    assert_eq!(rank["wait"]["lock_of"], 1);
    assert_eq!(rank["wait"]["peer"].as_u64(), rank["rank"].as_u64().map(|rank| 2 - rank));
}

#[test]
fn the_report_is_written_as_json() {
    let dir = Directory::new("deadlock");
    let file = dir.file("report.json");
    let ended = run(&["-n", "2", "--deadlock-report", &file], "cyclic-receive");
    assert_eq!(ended.code(), 125, "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["kind"], "receive-cycle");
    let wait = &report["ranks"][1]["wait"];
    assert_eq!((&wait["call"], &wait["peer"], &wait["tag"]), (&"MPI_Recv".into(), &0.into(), &7.into()));
    assert_eq!(wait["communicator"], "MPI_COMM_WORLD");
    let ended = run(&["-n", "3", "--deadlock-report", &file], "wrong-tag");
    assert_eq!(ended.code(), 125, "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let unnamed = &report["ranks"][1]["wait"]["pending"][0];
    assert_eq!(
        (&unnamed["peer"], &unnamed["communicator"]),
        (&0.into(), &serde_json::Value::Null),
        "{report}"
    );
}

#[test]
fn what_is_proved_stays_in_the_report_and_that_of_an_earlier_job_goes() {
    let dir = Directory::new("proof-kept");
    let file = dir.file("report.json");
    std::fs::write(&file, "of an earlier job").unwrap();
    let ended = run(&["-n", "2", "--deadlock-report", &file], "sleeps");
    assert_eq!((ended.code(), Path::new(&file).exists()), (0, false), "{ended:?}");

    // The end of a job's time writes it as this question does.
    let job = start(&["-n", "2", "--on-deadlock", "warn", "--deadlock-report", &file], "cyclic-receive");
    let report =
        || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap_or_default()).unwrap_or_default() };
    eventually("a proof", || report()["deadlock"] == true);
    std::fs::remove_file(&file).unwrap();
    job.signal(libc::SIGQUIT);
    eventually("a report for who asks", || report()["kind"] == "receive-cycle");
    job.signal(libc::SIGTERM);
    let ended = job.end();
    assert!(ended.err.contains("mpiexec: what the ranks do"), "{ended:?}");
}

#[test]
fn a_report_comes_within_two_seconds_of_the_last_rank_s_wait() {
    // By the job's own clock. How many looks and blocks that takes, a unit test of the proof counts; a machine that is
    // busy with something else takes longer, and gets another try.
    let dir = Directory::new("two-seconds");
    let file = dir.file("report.json");
    eventually("a report within two seconds", || {
        let ended = run(&["-n", "3", "--deadlock-report", &file], "cyclic-receive");
        assert_eq!(ended.code(), 125, "{ended:?}");
        let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let seconds = |rank: &Value| rank["wait"]["seconds"].as_f64().expect("each rank waits");
        let ranks = report["ranks"].as_array().expect("ranks");
        assert_eq!(ranks.len(), 3, "{report}");
        ranks.iter().map(seconds).fold(f64::INFINITY, f64::min) < 2.0
    });
}

#[test]
fn sigquit_asks_what_the_ranks_do_and_stopped_ones_are_called_so() {
    let dir = Directory::new("sigquit");
    let file = dir.file("report.json");
    let job = start(&["-n", "2", "--deadlock-report", &file], "long-sleep");
    let pid = Cell::new(0);
    let says = |rank: usize, wanted: &str| {
        job.signal(libc::SIGQUIT);
        thread::sleep(Duration::from_millis(20));
        // It may be half written, and is looked at again then.
        let report = std::fs::read(&file).unwrap_or_default();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
        let of_rank = &report["ranks"][rank];
        pid.set(of_rank["pid"].as_i64().unwrap_or_default());
        of_rank["text"].as_str().is_some_and(|text| text.contains(wanted))
    };
    // Before the launcher has its handler, SIGQUIT would end it.
    eventually("the ranks", || job.processes().len() >= 4);
    eventually("a rank that sleeps", || {
        says(1, "does not wait in MPI: it sleeps in a system call (clock_nanosleep)")
    });
    eventually("a rank that waits", || says(0, "waits in MPI_Barrier no. 1 on 'MPI_COMM_WORLD'"));
    let pid_of_0 = i32::try_from(pid.get()).expect("a process id");
    assert!(pid_of_0 > 0, "the report has the process id of rank 0");
    // SAFETY: stops a process of the test's own job; no memory is involved.
    unsafe { libc::kill(pid_of_0, libc::SIGSTOP) };
    eventually("a rank that is stopped", || says(0, "is stopped (a signal or a debugger), in MPI_Barrier"));
    job.signal(libc::SIGTERM);
    let ended = job.end();
    assert!(ended.err.contains("mpiexec: what the ranks do\nperusal:   rank "), "{ended:?}");
}

#[test]
fn an_interrupt_of_ranks_that_have_waited_long_says_first_what_they_do() {
    let job = start(&["-n", "2", "--on-deadlock", "ignore"], "cyclic-receive");
    let number = job.pid().to_string();
    eventually("the job in the list", || listed(&number).is_some());
    eventually("ranks that have waited long", || {
        let waited = |rank: &Value| rank["wait"]["seconds"].as_f64().is_some_and(|seconds| seconds > 1.0);
        let said = why(&number);
        said["ranks"].as_array().is_some_and(|ranks| ranks.len() == 2 && ranks.iter().all(waited))
    });
    job.signal(libc::SIGINT);
    let ended = job.end();
    assert_eq!(ended.code(), 128 + libc::SIGINT, "{ended:?}");
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!(lines[0], "mpiexec: what the ranks do", "{ended:?}");
    for (rank, peer) in [(0, 1), (1, 0)] {
        let text =
            format!("perusal:   rank {rank} waits in MPI_Recv for rank {peer}, tag 7, on 'MPI_COMM_WORLD'");
        assert!(lines[1 + rank].starts_with(&text), "{ended:?}");
    }
}
