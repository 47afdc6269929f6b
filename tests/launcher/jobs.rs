//! The launcher, as its users meet it: the real binary on small programs.

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::common::executable;
use crate::common::jobs::{
    Directory, Ended, PERUSAL, RANK, eventually, run, run_with_input, start, start_as,
};

#[test]
fn a_job_that_succeeds_exits_with_0_and_says_nothing() {
    let ended = run(&["-n", "3", "true"]);
    assert_eq!((ended.code(), ended.out.as_str(), ended.err.as_str()), (0, "", ""));
}

#[test]
fn the_first_failing_rank_gives_its_status_and_is_named() {
    let ended = run(&["-n", "3", "sh", "-c", "test $PERUSAL_RANK = 1 && exit 3; sleep 1000"]);
    assert_eq!(ended.code(), 3);
    assert_eq!(ended.err, "perusal run: rank 1 exited with status 3; the other ranks are ended\n");
}

#[test]
fn a_rank_killed_by_a_signal_gives_128_and_the_signal() {
    let ended = run(&["-n", "2", RANK, "segv"]);
    assert_eq!(ended.code(), 139);
    assert!(ended.err.contains("killed by SIGSEGV (signal 11)"), "{ended:?}");
}

#[test]
fn ranks_that_ignore_the_request_to_end_are_killed() {
    let ended = run(&["-n", "1", "sh", "-c", "sleep 0.3; exit 4", ":", "-n", "2", RANK, "deaf", "sleep"]);
    assert_eq!(ended.code(), 4);
}

#[test]
fn a_program_that_is_not_there_gives_127_and_one_that_is_none_126() {
    let ended = run(&["-n", "2", "no-such-program"]);
    assert_eq!(ended.code(), 127);
    assert!(ended.err.contains("no-such-program cannot be run: No such file"), "{ended:?}");
    assert!(ended.err.contains("it is in no directory of -path and PATH"), "{ended:?}");
    let dir = Directory::new("interpreter");
    executable(&dir.path().join("script"), b"#!/no/such/interpreter\n");
    let ended = run(&["-wdir", dir.path().to_str().unwrap(), "-n", "1", "./script"]);
    assert_eq!(ended.code(), 127);
    assert!(ended.err.contains("the file is there, but not what its first line"), "{ended:?}");
    let ended = run(&["-n", "2", "/etc/passwd"]);
    assert_eq!(ended.code(), 126);
    let ended = run(&["-n", "1", "sleep", "1000", ":", "-n", "1", "no-such-program"]);
    assert_eq!(ended.code(), 127);
}

#[test]
fn a_file_lists_the_programs_of_a_job() {
    let dir = Directory::new("configfile");
    let file = dir.path().join("programs");
    std::fs::write(
        &file,
        "# two of them\n-n 1 echo 'first program'\n-n 2 -l \\\n  sh -c 'echo rank $PERUSAL_RANK'\n",
    )
    .unwrap();
    let ended = run(&["-configfile", file.to_str().unwrap()]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    let mut lines = ended.lines();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] first program", "[1] rank 1", "[2] rank 2"]);
    let ended = run(&["--app", file.to_str().unwrap()]);
    assert_eq!((ended.code(), ended.lines().len()), (0, 3), "{ended:?}");
    let ended = run(&["-configfile", "/no/such/file"]);
    assert_eq!(ended.code(), 2);
    assert!(ended.err.contains("/no/such/file"), "{ended:?}");
}

#[test]
fn a_program_is_looked_for_in_the_directories_of_path_first() {
    let dir = Directory::new("path");
    executable(&dir.path().join("true"), b"#!/bin/sh\necho ours\n");
    let path = format!("/no/such/dir:{}", dir.path().display());
    let ended = run(&["-n", "3", "-soft", "1:2", "-path", &path, "true"]);
    assert_eq!((ended.code(), ended.lines()), (0, vec!["ours"; 2]), "{ended:?}");
}

#[test]
fn wrong_options_are_refused_with_status_2() {
    for args in [&["-frobnicate", "true"][..], &["-n", "0", "true"], &["-n", "2"], &["-n", "x", "true"]] {
        let ended = run(args);
        assert_eq!(ended.code(), 2, "{args:?} {ended:?}");
        assert!(!ended.err.is_empty());
    }
}

#[test]
fn it_answers_to_the_names_that_people_know() {
    let dir = Directory::new("names");
    for name in ["mpiexec", "mpirun"] {
        symlink(PERUSAL, dir.path().join(name)).unwrap();
        let mut command = Command::new(dir.path().join(name));
        let ended =
            start_as(&mut command, &["-np", "2", "sh", "-c", "exit $PERUSAL_RANK"], Stdio::null()).end();
        assert_eq!(ended.code(), 1);
        assert_eq!(ended.err.split(':').next(), Some(name));
    }
}

#[test]
fn every_rank_learns_its_rank_and_the_size() {
    let ended = run(&["-n", "4", "sh", "-c", "echo $PERUSAL_RANK of $PERUSAL_SIZE"]);
    assert_eq!(ended.lines(), ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]);
    // As other launchers say it.
    let ended = run(&["-n", "2", "sh", "-c", "echo $MPI_LOCALRANKID of $MPI_LOCALNRANKS"]);
    assert_eq!(ended.lines(), ["0 of 2", "1 of 2"]);
}

#[test]
fn labels_stand_before_every_line_of_both_streams() {
    let ended = run(&["-n", "2", "-l", "sh", "-c", "echo one; echo; printf two; echo three >&2"]);
    assert_eq!(ended.lines(), ["[0] ", "[0] one", "[0] two", "[1] ", "[1] one", "[1] two"]);
    let mut err: Vec<&str> = ended.err.lines().collect();
    err.sort_unstable();
    assert_eq!(err, ["[0] three", "[1] three"]);
}

#[test]
fn lines_can_have_a_pattern_or_the_time_before_them() {
    let ended = run(&["-n", "2", "-prepend-pattern", "%r of %%>", "sh", "-c", "echo one; printf two"]);
    assert_eq!(ended.lines(), ["0 of %>one", "0 of %>two", "1 of %>one", "1 of %>two"]);
    let ended = run(&["-n", "1", "--timestamp-output", "sh", "-c", "echo one; echo two >&2"]);
    let year_and = |line: &str| line.split_once(']').map(|(_, behind)| behind.to_owned());
    assert_eq!(year_and(&ended.out).as_deref(), Some("<stdout>: one\n"));
    assert_eq!(year_and(&ended.err).as_deref(), Some("<stderr>: two\n"));
}

#[test]
fn a_last_line_without_end_is_passed_on() {
    assert_eq!(run(&["-n", "1", "printf", "no end"]).out, "no end");
    let ended = run(&["-n", "3", "printf", "no end"]);
    assert_eq!(ended.out, "no end\nno end\nno end");
}

#[test]
fn lines_stay_whole_under_load_and_none_is_lost() {
    // Each rank writes 2,000 lines of its own digit, in pieces that do not end where lines do.
    let script = "i=0; while [ $i -lt 2000 ]; do printf \"$PERUSAL_RANK$PERUSAL_RANK$PERUSAL_RANK \"; \
                  printf \"$PERUSAL_RANK$PERUSAL_RANK\\n\"; i=$((i+1)); done";
    let ended = run(&["-n", "8", "sh", "-c", script]);
    assert_eq!(ended.code(), 0);
    let mut count = HashMap::new();
    for line in ended.out.lines() {
        *count.entry(line).or_insert(0) += 1;
    }
    let expected = (0..8).map(|rank| (format!("{rank}{rank}{rank} {rank}{rank}"), 2000)).collect::<Vec<_>>();
    assert_eq!(count.len(), 8, "{:?}", count.keys().take(20).collect::<Vec<_>>());
    for (line, times) in expected {
        assert_eq!(count.get(line.as_str()), Some(&times), "{line}");
    }
}

#[test]
fn much_output_to_a_slow_reader_arrives_in_full() {
    let ended = run(&["-n", "3", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' 'x'; echo"]);
    assert_eq!(ended.out.len(), 15_000_003);
    let both = run(&["-n", "1", "sh", "-c", "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2"]);
    assert_eq!((both.out.len(), both.err.len()), (100_000, 100_000));
}

#[test]
fn rank_0_reads_standard_input_and_the_others_nothing() {
    let ended = run_with_input(&["-n", "3", "-l", "cat"], b"one\ntwo\n");
    assert_eq!(ended.lines(), ["[0] one", "[0] two"]);
    let large: Vec<u8> =
        (0..1_000_000_u32).flat_map(|i| if i % 64 == 63 { [b'\n'] } else { [b'a'] }).collect();
    let ended = run_with_input(&["-n", "2", "cat"], &large);
    assert_eq!(ended.out.len(), large.len());
}

#[test]
fn another_rank_or_nobody_can_have_standard_input() {
    assert_eq!(run_with_input(&["-n", "3", "--stdin", "2", "-l", "cat"], b"one\n").out, "[2] one\n");
    assert_eq!(run_with_input(&["-n", "3", "--stdin", "none", "-l", "cat"], b"one\n").out, "");
}

#[test]
fn all_ranks_can_have_copies_of_standard_input() {
    // More than pipes hold, and some ranks read none of it.
    let input = "0123456789abcde\n".repeat(20_000);
    let sizes = "test $PERUSAL_RANK = 1 || exec wc -c";
    let counted = |ended: &Ended| ended.out.matches(&input.len().to_string()).count();
    let ended = run_with_input(&["-n", "3", "--stdin", "all", "sh", "-c", sizes], input.as_bytes());
    assert_eq!((counted(&ended), ended.code()), (2, 0), "{ended:?}");
    // A file is read by each rank for itself, from where the launcher was.
    let dir = Directory::new("stdin-all");
    let path = dir.file("input");
    std::fs::write(&path, format!("gone\n{input}")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("read gone; exec {PERUSAL} run -n 3 --stdin all sh -c '{sizes}'")]);
    let ended = start_as(&mut shell, &[], std::fs::File::open(&path).unwrap().into()).end();
    assert_eq!((counted(&ended), ended.code()), (2, 0), "{ended:?}");
}

#[test]
fn input_that_rank_0_does_not_read_is_left_for_others() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{PERUSAL} run -n 2 true; cat")]);
    let mut job = start_as(&mut shell, &[], Stdio::piped());
    std::io::Write::write_all(&mut job.stdin(), b"mine\n").unwrap();
    assert_eq!(job.end().out, "mine\n");
}

#[test]
fn variables_are_passed_on_and_set() {
    let print = "echo $A,$B,$C,$D,${PERUSAL_TEST_MARK:+mark}";
    let ended = run(&[
        "-n", "1", "-x", "A=1", "-env", "B", "2", "-genv", "C=3", "--genv", "D", "4", "sh", "-c", print,
    ]);
    assert_eq!(ended.out, "1,2,3,4,mark\n");
    let ended = run(&["-envnone", "-n", "1", "-x", "A=1", "/bin/sh", "-c", print]);
    assert_eq!(ended.out, "1,,,,\n");
    let ended = run(&["-n", "1", "-env", "A", "1", "sh", "-c", print, ":", "-n", "1", "sh", "-c", print]);
    assert_eq!(ended.lines(), [",,,,mark", "1,,,,mark"]);
}

#[test]
fn a_launcher_inside_of_a_rank_makes_a_job_of_its_own() {
    let inner = format!("{PERUSAL} run -n 2 {RANK} init finalize && echo fine");
    let ended = run(&["-n", "2", "sh", "-c", &inner]);
    assert_eq!(ended.out, "fine\nfine\n", "{ended:?}");
}

#[test]
fn ranks_work_where_they_are_told_to() {
    let dir = Directory::new("wdir");
    let here = dir.path().canonicalize().unwrap();
    let here = here.to_str().unwrap();
    assert_eq!(run(&["-n", "1", "-wdir", here, "pwd", "-P"]).out, format!("{here}\n"));
    // A copy could still be open for writing in what another test is just starting, and could not be run then.
    symlink("/bin/echo", dir.path().join("only-here")).unwrap();
    assert_eq!(run(&["-n", "1", "--wdir", here, "only-here", "x"]).out, "x\n");
    assert_eq!(run(&["-n", "1", "--wdir", here, "./only-here", "y"]).out, "y\n");
    let ended = run(&["-n", "1", "-wdir", "/no/such/place", "true"]);
    assert_eq!(ended.code(), 126);
    assert!(ended.err.contains("-wdir /no/such/place"), "{ended:?}");
}

#[test]
fn several_programs_are_one_job() {
    let ended = run(&[
        "-n",
        "1",
        "sh",
        "-c",
        "echo a$PERUSAL_RANK/$PERUSAL_SIZE",
        ":",
        "-n",
        "2",
        "sh",
        "-c",
        "echo b$PERUSAL_RANK in $PERUSAL_APPNUM",
    ]);
    assert_eq!(ended.lines(), ["a0/3", "b1 in 1", "b2 in 1"]);
}

#[test]
fn signals_reach_the_ranks() {
    let script = "trap 'echo got; exit 0' USR1; echo up; while :; do sleep 0.01; done";
    for (signal, name) in [(libc::SIGUSR1, "USR1"), (libc::SIGUSR2, "USR2"), (libc::SIGHUP, "HUP")] {
        let dir = Directory::new(name);
        let up = dir.file("up");
        let script = script.replace("USR1", name).replace("echo up", &format!("touch {up}$PERUSAL_RANK"));
        let job = start(&["-n", "2", "sh", "-c", &script], Stdio::null());
        eventually("start", || [0, 1].iter().all(|rank| std::fs::exists(format!("{up}{rank}")).unwrap()));
        job.signal(signal);
        let ended = job.end();
        assert_eq!((ended.code(), ended.out.as_str()), (0, "got\ngot\n"), "{name} {ended:?}");
    }
}

#[test]
fn an_interrupt_ends_the_job_and_says_so() {
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")] {
        let dir = Directory::new(name);
        let job = start(&["-n", "2", RANK, "touch", &dir.file("up"), "sleep"], Stdio::null());
        eventually("start", || std::fs::exists(dir.file("up")).unwrap());
        job.signal(signal);
        let ended = job.end();
        assert_eq!(ended.code(), 128 + signal);
        assert!(ended.err.contains(name) && ended.err.contains("passed on"), "{ended:?}");
    }
}

#[test]
fn a_second_interrupt_ends_even_ranks_that_ignore_it() {
    let dir = Directory::new("deaf");
    let job = start(&["-n", "1", RANK, "deaf", "touch", &dir.file("up"), "sleep"], Stdio::null());
    eventually("start", || std::fs::exists(dir.file("up")).unwrap());
    job.signal(libc::SIGINT);
    job.signal(libc::SIGTERM);
    assert_ne!(job.end().code(), 0);
}

#[test]
fn a_stopped_launcher_stops_its_ranks_and_goes_on_with_them() {
    let dir = Directory::new("stop");
    let job = start(&["-n", "1", RANK, "touch", &dir.file("up"), "sleep"], Stdio::null());
    eventually("start", || std::fs::exists(dir.file("up")).unwrap());
    let rank = job.processes().into_iter().find(|pid| comm(*pid).starts_with("perusal-test")).unwrap();
    job.signal(libc::SIGTSTP);
    eventually("stop", || state(rank) == 'T' && state(job.pid()) == 'T');
    job.signal(libc::SIGCONT);
    eventually("going on", || state(rank) == 'S' && state(job.pid()) == 'S');
    job.signal(libc::SIGTERM);
    assert_eq!(job.end().code(), 128 + libc::SIGTERM);
}

fn comm(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
}

#[test]
fn ranks_start_with_default_signals_and_nothing_blocked() {
    let masks = |status: &str| -> Vec<u64> {
        let lines = status.lines().filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"));
        lines.map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap()).collect()
    };
    let ended = run(&["-n", "1", "cat", "/proc/self/status"]);
    // A shell that runs the tests in the background ignores SIGINT and SIGQUIT, and what it ignores the ranks ignore
    // too. SIGPIPE is this program's.
    let own = masks(&std::fs::read_to_string("/proc/self/status").unwrap());
    let ranks = masks(&ended.out);
    assert_eq!((own.len(), ranks.len()), (2, 2), "{ended:?}");
    for (rank, own) in ranks.into_iter().zip(own) {
        let inherited = own & !(1 << (libc::SIGPIPE - 1));
        // Whatever the machine does with the C library's own signals above 31.
        assert_eq!(rank & !inherited & 0x7fff_ffff, 0, "{ended:?}");
    }
}

#[test]
fn a_launcher_whose_parent_ignores_ended_children_sees_its_ranks_end() {
    let ended = run(&["-n", "1", "sh", "-c", &format!("trap '' CHLD; exec {PERUSAL} run -n 2 false")]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("rank 0 exited with status 1"), "{ended:?}");
}

#[test]
fn a_time_limit_ends_the_job_and_says_who_waits_for_whom() {
    // On a machine where starting takes longer than the limit the ranks are not there yet: then give them more.
    for seconds in ["1", "5", "25", "100"] {
        let ended =
            run(&["--timeout", seconds, "-n", "1", "sleep", "1000", ":", "-n", "1", RANK, "init", "wait"]);
        assert_eq!(ended.code(), 124);
        assert!(ended.err.contains(&format!("the job did not end within {seconds} s")), "{ended:?}");
        assert!(ended.err.contains("rank 0 has not called MPI_Init"), "{ended:?}");
        if ended.err.contains("rank 1 waits in a receive for rank 0, tag 7, on ") {
            return;
        }
    }
    panic!("no report of the rank that waits");
}

#[test]
fn binding_is_reported_and_done() {
    let ended = run(&[
        "-n",
        "2",
        "--bind-to",
        "core",
        "--report-bindings",
        "grep",
        "Cpus_allowed_list",
        "/proc/self/status",
    ]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    let rows: Vec<Vec<&str>> =
        ended.err.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{ended:?}");
    let mut reported: Vec<String> =
        rows.iter().map(|row| format!("Cpus_allowed_list:\t{}", row[1])).collect();
    reported.sort_unstable();
    assert_eq!(ended.lines(), reported);
}

#[test]
fn nobody_is_bound_who_asked_for_none() {
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
    let ended = run(&["-n", "1", "--bind-to", "none", "grep", "Cpus_allowed_list", "/proc/self/status"]);
    assert_eq!(ended.out.trim_end(), own);
}

#[test]
fn a_hundred_ranks_come_and_go() {
    let ended = run(&["-n", "100", RANK, "init", "finalize"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
}

#[test]
fn ring_sizes_that_cannot_be_are_refused_by_name() {
    let mut command = Command::new(PERUSAL);
    command.arg("run").env("PERUSAL_RING_CELLS", "100");
    let ended = start_as(&mut command, &["-n", "2", "true"], Stdio::null()).end();
    assert_eq!(ended.code(), 1);
    assert!(ended.err.contains("PERUSAL_RING_CELLS") && ended.err.contains("power of two"), "{ended:?}");
}

#[test]
fn a_misspelt_variable_is_named_once_with_the_one_that_is_meant() {
    let mut command = Command::new(PERUSAL);
    command.arg("run").env("PERUSAL_YEILDS", "3").env("PERUSAL_HOME", "/opt");
    let ended = start_as(
        &mut command,
        &["-n", "3", "-x", "PERUSAL_SPIN=1", "-x", "PERUSAL_YEILDS", RANK, "init", "finalize"],
        Stdio::null(),
    );
    let ended = ended.end();
    let note = |name, meant| {
        format!(
            "perusal run: note: {name} is no variable of perusal's and has no effect; is {meant} meant?\n"
        )
    };
    let both = note("PERUSAL_YEILDS", "PERUSAL_YIELDS") + &note("PERUSAL_SPIN", "PERUSAL_SPIN_US");
    assert_eq!((ended.code(), ended.err.as_str()), (0, both.as_str()));
}

#[test]
fn info_tells_what_there_is() {
    let ended = start_as(Command::new(PERUSAL).arg("info"), &[], Stdio::null()).end();
    assert_eq!(ended.code(), 0);
    assert!(ended.out.contains("sealed memfd works") && ended.out.contains("NUMA nodes"), "{ended:?}");
    let windows = |text: &str| text.lines().find(|line| line.starts_with("  windows ")).map(str::to_owned);
    let here = windows(&ended.out).expect("how windows reach memory");
    assert!(
        here.contains("loads and stores") && (here.contains("process_vm_readv") || here.contains("messages"))
    );
    let mut command = Command::new(PERUSAL);
    let chunks = start_as(command.arg("info").env("PERUSAL_COPY_ENGINE", "chunks"), &[], Stdio::null()).end();
    assert!(windows(&chunks.out).is_some_and(|line| line.contains("messages")), "{chunks:?}");
    let directory = Directory::new("info");
    let perusal::internals::shm::machine::MachineId { cpu, cpus } =
        perusal::internals::shm::machine::MachineId::here();
    let (file, text) =
        (directory.file("tune.toml"), format!("[machine]\ncpu = {cpu:?}\ncpus = {cpus}\n[values]\n"));
    std::fs::write(&file, text + "yields = 1001\nspin_us = 3\n").expect("a writable folder");
    let mut command = Command::new(PERUSAL);
    let tuned = start_as(command.arg("info").env("PERUSAL_TUNE_FILE", &file), &[], Stdio::null()).end();
    let line = tuned.out.lines().find(|line| line.starts_with("  tune file ")).expect("a line");
    assert!(line.ends_with("; left out, as unknown or out of range: yields=1001"), "{line}");
}
