//! The event logger, installed as users have it, on a program whose queues have a known history.

use crate::common::examples::{mpicc, product};
use crate::common::{dist, root, run, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Longer than any run takes on the slowest machine; what it catches is a hang.
const HANG: Duration = crate::common::HANG;

/// A prefix with launcher, library and logger in it.
/// The launcher is no link, for it looks for the logger from where it lies.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch("event-logger");
        for dir in ["bin", "lib"] {
            fs::create_dir(prefix.join(dir)).expect("a scratch directory");
        }
        let launcher = dist::launcher().expect("cargo builds the launcher for this test");
        dist::program_at(launcher, &prefix.join("bin/perusal"));
        let sources = fs::read_dir(root().join("tools/mel")).expect("the logger's sources");
        let sources = sources.map(|file| file.expect("a file").path().to_string_lossy().into_owned());
        let sources: Vec<String> = sources.filter(|name| name.ends_with(".c")).collect();
        let library = prefix.join("lib/libperusal-mel.so").to_string_lossy().into_owned();
        let mut arguments = vec!["-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", &library];
        arguments.extend(sources.iter().map(String::as_str));
        mpicc(&arguments);
        prefix
    })
}

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = product("known_queues").to_string_lossy().into_owned();
        mpicc(&["tests/events/known_queues.c", "-o", &program]);
        program
    })
}

/// Runs the program on two ranks with these options of the launcher; gives what the logger wrote.
fn logged(options: &[&str], environment: &[(&str, &str)]) -> String {
    logged_of(&[], options, environment)
}

/// The same, of the program with these arguments.
fn logged_of(arguments: &[&str], options: &[&str], environment: &[(&str, &str)]) -> String {
    let name = product("run");
    let mut command = Command::new(prefix().join("bin/perusal"));
    command.args(["run", "-n", "2"]).args(options).arg(program()).args(arguments);
    command.envs(environment.iter().copied());
    let outcome =
        run::run(&mut command, prefix(), &name.file_name().expect("a file").to_string_lossy(), HANG);
    assert_eq!(outcome.code(), Some(0), "{options:?}\n{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout, "played\n");
    outcome.stderr
}

/// The paragraph that begins with this title, as name and value.
fn paragraph(log: &str, title: &str) -> Vec<(String, String)> {
    let mut lines = log.lines().skip_while(|line| *line != title);
    assert_eq!(lines.next(), Some(title), "no {title} in\n{log}");
    let values = lines.take_while(|line| !line.starts_with("[MEL]"));
    values.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.into(), value.into())).collect()
}

fn value(log: &str, title: &str, name: &str) -> String {
    let found = paragraph(log, title).into_iter().find(|(other, _)| other == name);
    found.unwrap_or_else(|| panic!("no {name} under {title} in\n{log}")).1
}

#[test]
fn the_list_of_events_is_what_one_gets_who_names_none() {
    let list = logged(&["--list-events"], &[]);
    assert!(list.starts_with("[MEL]"), "{list}");
    for name in ["pml_ob1_posted_insert", "pml_ob1_message_arrived", "pml_ob1_search_posted_begin"] {
        assert_eq!(list.matches(&format!("'{name}' (communicator")).count(), 1, "{name} in\n{list}");
    }
    assert!(!logged(&[], &[]).contains("[MEL]"), "nobody asked for the logger");
}

#[test]
fn every_arrival_on_every_communicator_is_one_line() {
    let log = logged(&["--log-events", "pml_ob1_message_arrived;pml_ob1_unex_insert"], &[]);
    let count = |rank: u32, name: &str| {
        let lines = log.lines().filter(|line| line.starts_with(&format!("[{rank}: ")));
        lines.filter(|line| line.contains(&format!(" '{name}' "))).count()
    };
    // Twice one, and twice three, five and one.
    assert_eq!(count(0, "pml_ob1_message_arrived"), 2, "{log}");
    assert_eq!(count(1, "pml_ob1_message_arrived"), 18, "{log}");
    assert_eq!(count(1, "pml_ob1_unex_insert"), 12, "{log}");
    assert_eq!(log.lines().filter(|line| line.contains("tag=4")).count(), 2, "{log}");
}

#[test]
fn another_tool_that_is_preloaded_is_called_too() {
    let (library, program) = (product("libfirst_tool_logged.so"), product("logged_late_receiver"));
    let (library, program) = (library.to_string_lossy().into_owned(), program.to_string_lossy().into_owned());
    mpicc(&["-shared", "-fPIC", "examples/tools/first_tool.c", "-o", &library]);
    mpicc(&["examples/tools/late_receiver.c", "-o", &program]);
    let preload = format!("LD_PRELOAD={library}");
    let mut command = Command::new(prefix().join("bin/perusal"));
    command.args(["run", "-n", "3", "-x", &preload, "--log-events", "pml_ob1_unex_insert", &program]);
    let outcome = run::run(&mut command, prefix(), "logged-and-counted", HANG);
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    // Its wrapper of MPI_Finalize writes the line.
    let count = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count(&outcome.stdout, "first_tool rank=") + count(&outcome.stderr, "first_tool rank="), 3);
    assert!(count(&outcome.stderr, "'pml_ob1_unex_insert'") > 0, "{}", outcome.stderr);
}

#[test]
fn a_spawned_process_logs_what_it_does_with_those_that_spawned_it() {
    let program = product("logged_groups").to_string_lossy().into_owned();
    mpicc(&["tests/trace/groups.c", "-o", &program]);
    let mut command = Command::new(prefix().join("bin/perusal"));
    command.args(["run", "-n", "2", "--log-events", "PERUSE_COMM_REQ_ACTIVATE", &program]);
    let outcome = run::run(&mut command, prefix(), "logged-groups", HANG);
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    // The child sends each of two parents a message, and both receive it.
    let lines = outcome.stderr.lines().filter(|line| line.contains(" tag=6 "));
    let (of_child, of_parents): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.contains(" operation=0 "));
    assert_eq!((of_child.len(), of_parents.len()), (2, 2), "{}", outcome.stderr);
}

#[test]
fn every_event_of_every_window_is_one_line() {
    let program = product("logged_windows").to_string_lossy().into_owned();
    mpicc(&["tests/trace/windows.c", "-o", &program]);
    let mut command = Command::new(prefix().join("bin/perusal"));
    command.args(["run", "-n", "3", "--log-events", "osc_rdma_*,btl_ugni_event_netop_rdma", &program]);
    let outcome = run::run(&mut command, prefix(), "logged-windows", HANG);
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let log = outcome.stderr;
    let count = |rank: u32, name: &str| {
        let lines = log.lines().filter(|line| line.starts_with(&format!("[{rank}: ")));
        lines.filter(|line| line.contains(&format!(" '{name}' "))).count()
    };
    // One put, get and accumulate of each rank; rank 1 locks, fetches, flushes, accesses and puts once more.
    let puts = [0, 1, 2].map(|rank| count(rank, "osc_rdma_put_complete"));
    assert_eq!(puts, [1, 2, 1], "{log}");
    assert_eq!([0, 1, 2].map(|rank| count(rank, "btl_ugni_event_netop_rdma")), [3, 5, 3], "{log}");
    assert_eq!([0, 1, 2].map(|rank| count(rank, "osc_rdma_lock_acquired")), [2, 2, 1], "{log}");
    assert_eq!((count(1, "osc_rdma_flush_started"), count(1, "osc_rdma_pscw_access_start")), (1, 1), "{log}");
    assert!(
        log.lines().any(|line| line.contains("'osc_rdma_put_started' target rank=2 remote address=")),
        "{log}"
    );
}

#[test]
fn every_event_of_every_file_is_one_line() {
    let program = product("logged_files").to_string_lossy().into_owned();
    mpicc(&["tests/trace/files.c", "-o", &program]);
    let mut command = Command::new(prefix().join("bin/perusal"));
    let events = "PERUSE_FILE_REQ_COMPLETE,PERUSE_FILE_SHARED_POINTER_*,PERUSAL_FILE_OPENED";
    let file = format!("{program}.data");
    command.args(["run", "-n", "3", "--log-events", events, &program, &file]);
    let outcome = run::run(&mut command, prefix(), "logged-files", HANG);
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let log = outcome.stderr;
    for rank in 0..3 {
        let count = |name: &str| {
            let lines = log.lines().filter(|line| line.starts_with(&format!("[{rank}: ")));
            lines.filter(|line| line.contains(&format!(" '{name}' "))).count()
        };
        // A collective write, a nonblocking read, one at the shared pointer, and one in order.
        assert_eq!(count("PERUSE_FILE_REQ_COMPLETE"), 4, "{log}");
        assert_eq!(count("PERUSE_FILE_SHARED_POINTER_BEGIN"), 2, "{log}");
        assert_eq!(count("PERUSE_FILE_SHARED_POINTER_END"), 2, "{log}");
        assert_eq!(count("PERUSAL_FILE_OPENED"), 1, "{log}");
    }
}

#[test]
fn a_pattern_means_all_types_that_it_fits_and_a_wrong_name_is_told() {
    let log = logged(&["--log-events", "pml_ob1_posted_*,no_such_event"], &[]);
    assert!(log.contains("no event type is called 'no_such_event'"), "{log}");
    let lines = |name: &str| log.lines().filter(|l| l.starts_with("[1: ") && l.contains(name)).count();
    assert_eq!((lines("'pml_ob1_posted_insert'"), lines("'pml_ob1_posted_remove'")), (6, 6), "{log}");
}

#[test]
fn each_rank_can_have_a_file_of_its_own() {
    let pattern = prefix().join("own.%r").to_string_lossy().into_owned();
    let text = logged(&["--log-events", "pml_ob1_message_arrived", "--log-output", &pattern], &[]);
    assert_eq!(text, "");
    let lines =
        |rank| fs::read_to_string(prefix().join(format!("own.{rank}"))).expect("a log").lines().count();
    assert_eq!((lines(0), lines(1)), (2, 18));
}

#[test]
fn the_statistics_know_the_history_of_the_queues() {
    let log = logged(&["--queue-statistics"], &[]);
    let of_rank_1 = |what: &str, name: &str| value(&log, &format!("[MEL] {what} statistics rank: 1"), name);
    assert_eq!(of_rank_1("Posted queue", "Num Messages"), "6", "{log}");
    assert_eq!(of_rank_1("Posted queue", "Max length of message queue"), "3", "{log}");
    assert_eq!(of_rank_1("Unexpected queue", "Num Messages"), "12", "{log}");
    assert_eq!(of_rank_1("Unexpected queue", "Max length of message queue"), "6", "{log}");
    assert_eq!(of_rank_1("Posted queue search", "Num Searches in queue"), "18", "{log}");
    for what in ["Posted queue", "Unexpected queue"] {
        let seconds = |name| {
            of_rank_1(what, name).strip_suffix(" s").expect("seconds").parse::<f64>().expect("a number")
        };
        let total = seconds("Total time of messages in queue");
        assert!(
            total > 0.0 && seconds("Min time of message in queue") <= seconds("Max time of message in queue"),
            "{log}"
        );
        assert!(seconds("Max time of message in queue") <= seconds("Time with messages in queue"), "{log}");
        assert!(seconds("Time with messages in queue") <= total * 1.000_1, "{log}");
    }
    let all = value(&log, "[MEL] Posted queue search statistics all 2 ranks", "Num Searches in queue");
    assert_eq!(all, "sum 20, min 2, mean 10, max 18", "{log}");
    let lost = value(&log, "[MEL] Unexpected queue statistics all 2 ranks", "Events lost");
    assert_eq!(lost, "sum 0, min 0, mean 0, max 0", "{log}");
}

#[test]
fn the_statistics_have_what_was_pending_on_a_freed_communicator() {
    let log = logged_of(&["free"], &["--queue-statistics"], &[]);
    let of_rank_1 = |what: &str, name: &str| value(&log, &format!("[MEL] {what} statistics rank: 1"), name);
    assert_eq!(of_rank_1("Posted queue", "Num Messages"), "7", "{log}");
    assert_eq!(of_rank_1("Posted queue search", "Num Searches in queue"), "19", "{log}");
}

#[test]
fn a_library_that_the_user_preloads_stands_beside_it() {
    // The library of mathematics does no harm.
    let log = logged(&["--queue-statistics", "-x", "LD_PRELOAD=libm.so.6"], &[]);
    assert_eq!(value(&log, "[MEL] Posted queue statistics rank: 1", "Num Messages"), "6", "{log}");
}

#[test]
fn empty_callbacks_say_nothing() {
    assert_eq!(logged(&["--log-events", "*"], &[("MEL_CALLBACKS", "empty")]), "");
}

#[test]
fn a_logger_that_is_not_there_is_told_before_anything_runs() {
    let mut command = Command::new(dist::launcher().expect("cargo builds the launcher for this test"));
    command.args(["run", "-n", "2", "--queue-statistics", program()]);
    let outcome = run::run(&mut command, prefix(), "missing", HANG);
    assert_eq!(outcome.code(), Some(2));
    assert!(outcome.stderr.contains("libperusal-mel.so"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
}
