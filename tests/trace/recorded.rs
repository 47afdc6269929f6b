//! Traces of whole jobs: what is known of a program is what the reader, the JSON and the OTF2 archive say; and what is
//! left when ranks are killed, files cannot grow, or a limit is reached.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::{Outcome, run};
use crate::events;
use perusal::events::{CollMode, Event};
use perusal_trace::flows::{Flow, flows};
use perusal_trace::{RankTrace, RecordPayload, Trace, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const HANG: Duration = crate::common::HANG;

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = product("trace_pattern").to_string_lossy().into_owned();
        mpicc(&["tests/trace/pattern.c", "-pthread", "-o", &program]);
        program
    })
}

/// Runs the program traced; what the launcher said and where the trace is.
fn traced(ranks: u32, options: &[&str], arguments: &[&str]) -> (Outcome, PathBuf) {
    let path = product("job.trace");
    let (ranks, place) = (ranks.to_string(), path.to_string_lossy());
    let mut all = vec!["-n", &ranks, "--trace", &place];
    all.extend(options);
    all.push(program());
    all.extend(arguments);
    (mpiexec(&all), path)
}

/// The pattern's trace, made once.
fn pattern() -> &'static (Trace, PathBuf) {
    static PATTERN: OnceLock<(Trace, PathBuf)> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let (outcome, path) = traced(4, &[], &[]);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        let trace = read(&path).expect("a trace");
        let told = format!("trace: {} records of 4 ranks in", trace.len());
        assert!(outcome.stderr.contains(&told), "{told}: {}", outcome.stderr);
        (trace, path)
    })
}

/// Messages and bytes from each rank to each other, as the program has them.
fn known_matrix() -> BTreeMap<(u32, u32), (u64, u64)> {
    let mut matrix = BTreeMap::new();
    let mut add = |from, to, messages: u64, bytes: u64| {
        let entry: &mut (u64, u64) = matrix.entry((from, to)).or_default();
        *entry = (entry.0 + messages, entry.1 + messages * bytes);
    };
    for rank in 1..4 {
        add(rank, 0, u64::from(rank), 100 * u64::from(rank));
        add(rank, 0, 1, 0);
        add(0, rank, 1, 0);
        add(rank, 0, 5, 8);
    }
    add(1, 2, 1, 1 << 20);
    add(0, 2, 1, 16);
    add(1, 3, 1, 16);
    add(3, 0, 1, 0);
    add(0, 3, 1, 4);
    matrix
}

/// All messages of the program.
const MESSAGES: usize = 32;
/// What rank 0's queues have held at most.
const QUEUES: (u32, u32) = (15, 9);

fn matrix_of(flows: &[Flow]) -> BTreeMap<(u32, u32), (u64, u64)> {
    let mut matrix = BTreeMap::new();
    for flow in flows {
        let entry: &mut (u64, u64) = matrix.entry((flow.source, flow.dest)).or_default();
        *entry = (entry.0 + 1, entry.1 + flow.bytes);
    }
    matrix
}

fn count(rank: &RankTrace, event: Event) -> usize {
    rank.records.iter().filter(|record| record.event == event).count()
}

#[test]
fn the_reader_finds_the_known_matrix_queues_and_flows() {
    let (trace, _) = pattern();
    assert!(trace.ranks.iter().all(|rank| rank.complete && rank.dropped == 0 && rank.unreadable == 0));
    assert_eq!(trace.job.status, Some(0));
    assert!(trace.job.command.ends_with("trace_pattern"));
    let flows = flows(trace);
    assert_eq!((flows.len(), matrix_of(&flows)), (MESSAGES, known_matrix()));
    for flow in &flows {
        let incoming = flow.incoming.unwrap_or_else(|| panic!("{flow:?} has no other end"));
        let (posted, matched) = (incoming.posted.expect("received"), incoming.matched.expect("matched"));
        assert!(
            incoming.arrived >= flow.sent && matched >= posted && matched >= incoming.arrived,
            "{flow:?}"
        );
        assert!(incoming.completed.expect("complete") >= matched);
        match flow.tag {
            11..=13 | 99 => assert!(incoming.unexpected, "{flow:?}"),
            200..=204 | 500 => assert!(!incoming.unexpected, "{flow:?}"),
            _ => {}
        }
    }
    let late = flows.iter().find(|flow| flow.tag == 500).expect("the message that is waited for");
    assert!(late.late_sender().expect("late") >= 300_000_000, "{late:?}");
    let rank = &trace.ranks[0];
    assert_eq!((rank.posted_high, rank.unexpected_high), QUEUES);
    assert_eq!((rank.records.last().map(|r| (r.posted, r.unexpected))), Some((0, 0)));
    assert!(trace.ranks[1..].iter().all(|rank| rank.posted_high <= 1));
}

#[test]
fn the_trace_tells_of_communicators_collectives_searches_copies_and_sleeps() {
    let (trace, _) = pattern();
    for rank in &trace.ranks {
        let name = if rank.rank % 2 == 0 { "the even ones" } else { "the odd ones" };
        let half = rank.communicators.iter().find(|comm| comm.name == name).expect("the split");
        assert_eq!(half.group[..], [rank.rank % 2, rank.rank % 2 + 2]);
        assert!(half.freed.expect("freed") > half.created);
        assert_eq!(rank.communicator(0, 0).map(|world| world.group.len()), Some(4));
        for (begin, end) in [
            (Event::CollBegin, Event::CollEnd),
            (Event::SearchPostedQBegin, Event::SearchPostedQEnd),
            (Event::SearchUnexQBegin, Event::SearchUnexQEnd),
            (Event::ReqActivate, Event::ReqNotify),
        ] {
            assert_eq!(count(rank, begin), count(rank, end), "rank {}: {begin:?}", rank.rank);
        }
        let modes = rank.records.iter().filter_map(|record| match (record.event, record.payload) {
            (Event::CollBegin, RecordPayload::Coll { mode, .. }) => Some(mode),
            _ => None,
        });
        let modes: Vec<u8> = modes.filter(|mode| *mode != CollMode::Blocking as u8).collect();
        assert_eq!(modes, [CollMode::Nonblocking as u8, CollMode::Persistent as u8]);
        assert!(count(rank, Event::CollBegin) >= 4, "a broadcast and a barrier of each kind");
        assert_eq!((count(rank, Event::Initialized), count(rank, Event::Finalizing)), (1, 1));
    }
    let rank = &trace.ranks[0];
    let found =
        rank.records.iter().filter(|r| matches!(r.payload, RecordPayload::Search { hit: true, .. })).count();
    assert!(found >= 9 + 15, "{found} searches found something");
    assert!(count(&trace.ranks[3], Event::BellSleep) > 0, "three tenths of a second are not spent polling");
    assert!(count(&trace.ranks[2], Event::CopyBegin) > 0, "a megabyte is copied by an engine");
}

#[test]
fn perfetto_s_json_has_the_known_matrix_queues_and_flows() {
    let (_, path) = pattern();
    let json = product("trace.json");
    let text = perusal(&["trace", "export", "--format", "perfetto", &text(path), "-o", &text(&json)]);
    assert_eq!(text.code(), Some(0), "{text:?}");
    let document = std::fs::read_to_string(&json).expect("written");
    let events = events::check(&document).unwrap_or_else(|wrong| panic!("{}: {wrong}", json.display()));
    assert_eq!(events.flows, MESSAGES);
    let counts: BTreeMap<_, _> =
        known_matrix().into_iter().map(|(pair, (messages, _))| (pair, messages)).collect();
    assert_eq!(events.matrix, counts);
    assert_eq!(events.counters[&(0, "posted queue".to_owned())], u64::from(QUEUES.0));
    assert_eq!(events.counters[&(0, "unexpected queue".to_owned())], u64::from(QUEUES.1));
    for category in ["search", "transfer", "collective", "sleep", "message", "copy"] {
        assert!(events.slices.contains(category), "no slice of {category}");
    }
}

#[test]
fn otf2_print_reads_the_known_matrix_and_queues() {
    let (_, path) = pattern();
    let folder = product("trace.otf2");
    let out = perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let again = perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    assert!(again.code() == Some(1) && again.stderr.contains("is there; an OTF2 archive is a new folder"));
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "otf2-print", HANG);
    assert_eq!(printed.code(), Some(0), "{printed:?}");
    let mut tally = BTreeMap::<&str, usize>::new();
    let mut maxima = [0_u64; 2];
    let mut sent = BTreeMap::<String, u64>::new();
    for line in printed.stdout.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(location)) = (words.next(), words.next()) else { continue };
        *tally.entry(kind).or_default() += 1;
        if kind == "METRIC" && location == "0" {
            let values =
                line.split("UINT64; ").skip(1).filter_map(|rest| rest.split(')').next()?.parse().ok());
            maxima.iter_mut().zip(values).for_each(|(most, value): (&mut u64, u64)| *most = value.max(*most));
        }
        if kind == "MPI_SEND" {
            let bytes = line.rsplit("Length: ").next().and_then(|bytes| bytes.parse::<u64>().ok());
            *sent.entry(location.to_owned()).or_default() += bytes.expect("a length");
        }
    }
    assert_eq!((tally["MPI_SEND"], tally["MPI_RECV"]), (MESSAGES, MESSAGES));
    assert_eq!(tally["ENTER"], tally["LEAVE"]);
    assert_eq!(maxima, [u64::from(QUEUES.0), u64::from(QUEUES.1)]);
    let known = known_matrix();
    for rank in 0..4_u32 {
        let bytes: u64 =
            known.iter().filter(|((from, _), _)| *from == rank).map(|(_, (_, bytes))| bytes).sum();
        assert_eq!(sent[&(u64::from(rank) << 20).to_string()], bytes, "rank {rank}");
    }
}

#[test]
fn the_searches_have_an_otf2_location_of_their_own() {
    let (_, path) = pattern();
    let folder = product("searches.otf2");
    let out = perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "otf2-searches", HANG).stdout;
    let mut searches = 0;
    for line in printed.lines().filter(|line| line.starts_with("ENTER")) {
        let location: u64 =
            line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a location");
        let search = line.contains("\"search ");
        assert_eq!(location % 2 == 1, search, "{line}");
        searches += usize::from(search);
    }
    assert!(searches >= MESSAGES, "{searches} searches");
}

#[test]
fn the_text_has_a_line_for_every_record() {
    let (trace, path) = pattern();
    let out = perusal(&["trace", "print", &text(path)]);
    assert_eq!(out.code(), Some(0));
    assert_eq!(out.stdout.lines().filter(|line| !line.starts_with('#')).count(), trace.len());
}

#[test]
fn a_killed_rank_s_trace_is_whole_up_to_the_kill() {
    let sent = 20_000;
    let (outcome, path) = traced(2, &[], &["kill", &sent.to_string()]);
    assert_eq!(outcome.code(), Some(137), "{outcome:?}");
    assert!(outcome.stderr.contains("did not come to MPI_Finalize"), "{}", outcome.stderr);
    let trace = read(&path).expect("a trace");
    let rank = &trace.ranks[1];
    assert!(!rank.complete && rank.unreadable == 0 && rank.dropped == 0);
    let sends: Vec<_> = rank.records.iter().filter(|r| r.event == Event::ReqActivate && r.send).collect();
    assert_eq!(sends.len(), sent);
    assert!(sends.iter().zip(0..).all(|(send, tag)| send.tag == tag && send.bytes == 8));
    assert_eq!(
        rank.records.iter().rfind(|r| r.event == Event::ReqNotify).map(|r| r.tag),
        Some(sent as i32 - 1)
    );
}

#[test]
fn when_the_file_cannot_grow_the_program_goes_on_and_drops_are_counted() {
    let (outcome, path) = traced(2, &[], &["full", "5000"]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("the file cannot grow; recording stops here"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("later events were counted and not recorded"), "{}", outcome.stderr);
    let trace = read(&path).expect("a trace");
    let rank = &trace.ranks[1];
    assert_eq!(rank.stopped_by, libc::EFBIG);
    assert!(rank.dropped > 0 && rank.complete && !rank.records.is_empty());
    let whole = traced(2, &[], &["stream", "5000"]).1;
    let whole = &read(&whole).expect("a trace").ranks[1];
    // Nothing of what a sender tells depends on time but its sleeps, wakes and full rings.
    let of_sends = |rank: &RankTrace| rank.records.iter().filter(|r| r.event.is_peruse()).count() as u64;
    assert!(of_sends(rank) + rank.dropped >= of_sends(whole), "{} + {}", of_sends(rank), rank.dropped);
}

#[test]
fn a_full_disk_is_named_before_a_rank_starts_and_keeps_no_file() {
    let may = Command::new("unshare").args(["--mount", "true"]).output();
    if !may.is_ok_and(|may| may.status.success()) {
        println!("nothing may be mounted here: not checked");
        return;
    }
    let folder = product("full_disk");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (folder, mpiexec) = (folder.to_string_lossy(), dist().join("bin/mpiexec"));
    let script = format!(
        "mount -t tmpfs -o size=4k none {folder} && head -c 4096 /dev/zero >{folder}/full || exit 99; {} -n 1 --trace {folder}/trace echo started; echo status $?; ls {folder}",
        mpiexec.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let outcome = run(&mut command, products(), "full_disk", HANG);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, "status 1\nfull\n", "{outcome:?}");
    let why = "/trace: No space left on device (os error 28); make room, or name a file on another disk";
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
}

#[test]
fn a_limit_keeps_the_first_records_and_counts_the_rest() {
    let (outcome, path) = traced(2, &["--trace-limit", "64K"], &["stream", "20000"]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("the limit was reached; --trace-limit raises it"), "{}", outcome.stderr);
    let trace = read(&path).expect("a trace");
    for rank in &trace.ranks {
        assert!(rank.complete && rank.dropped > 0 && rank.records.len() <= 2046, "{}", rank.records.len());
        assert_eq!(rank.records[0].event, Event::Placed);
    }
    assert!(std::fs::metadata(&path).expect("there").len() <= 3 * 65536);
}

#[test]
fn threads_of_a_rank_write_streams_of_their_own() {
    let (outcome, path) = traced(2, &[], &["threads"]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let trace = read(&path).expect("a trace");
    for rank in &trace.ranks {
        assert!(rank.streams >= 2 && rank.complete && rank.unreadable == 0, "{} streams", rank.streams);
    }
    let flows = flows(&trace);
    assert_eq!(matrix_of(&flows), BTreeMap::from([((0, 1), (4000, 32_000)), ((1, 0), (4000, 32_000))]));
    assert!(flows.iter().all(|flow| flow.incoming.is_some_and(|incoming| incoming.completed.is_some())));
    let json = product("threads.json");
    assert_eq!(
        perusal(&["trace", "export", "--format", "perfetto", &text(&path), "-o", &text(&json)]).code(),
        Some(0)
    );
    let document = std::fs::read_to_string(&json).expect("written");
    assert_eq!(events::check(&document).expect("well-formed").flows, 8000);
    otf2_has_both_threads(&path);
}

/// Regions open and close in order and time does not go back on any location,
/// though threads wrote at once; nothing is lost.
fn otf2_has_both_threads(path: &Path) {
    let folder = product("threads.otf2");
    let out = perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "otf2-threads", HANG);
    assert_eq!(printed.code(), Some(0), "{printed:?}");
    let (mut open, mut last) = (BTreeMap::<&str, Vec<&str>>::new(), BTreeMap::<&str, u64>::new());
    let (mut sends, mut receives) = (0, 0);
    for line in printed.stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, location, when, ..] = words[..] else { continue };
        let Ok(when) = when.parse::<u64>() else { continue };
        let before = last.insert(location, when).unwrap_or(0);
        assert!(before <= when, "location {location} goes back from {before}: {line}");
        let region = || line.split("Region: ").nth(1).expect("a region");
        match kind {
            "ENTER" => open.entry(location).or_default().push(region()),
            "LEAVE" => assert_eq!(open.get_mut(location).and_then(Vec::pop), Some(region()), "{line}"),
            "MPI_SEND" => sends += 1,
            "MPI_RECV" => receives += 1,
            _ => {}
        }
    }
    assert_eq!((sends, receives), (8000, 8000));
    assert!(open.values().all(Vec::is_empty), "regions stay open: {open:?}");
}

#[test]
fn what_keeps_a_trace_from_being_written_is_said_before_the_job_starts() {
    let marker = product("started");
    for path in ["/no/such/folder/trace", "/", program()] {
        let outcome = mpiexec(&["-n", "1", "--trace", path, "touch", &text(&marker)]);
        assert_eq!(outcome.code(), Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("trace: {path}: ")), "{}", outcome.stderr);
        assert!(!marker.exists(), "the job was started");
    }
    for (options, word) in [
        (&["--trace-limit", "1G"][..], "without --trace"),
        (&["--trace", "x", "--trace-limit", "much"], "--trace-limit much"),
    ] {
        let outcome = mpiexec(&[options, &["true"]].concat());
        assert!(outcome.code() == Some(2) && outcome.stderr.contains(word), "{outcome:?}");
    }
}

#[test]
fn a_job_that_cannot_be_started_leaves_no_trace_and_one_without_mpi_says_so() {
    let path = product("none.trace");
    let outcome = mpiexec(&["-n", "1", "--trace", &text(&path), "/no/such/program"]);
    assert!(outcome.code() == Some(127) && !path.exists(), "{outcome:?}");
    let outcome = mpiexec(&["-n", "2", "--trace", &text(&path), "true"]);
    assert_eq!(outcome.code(), Some(0));
    assert!(outcome.stderr.contains("no rank of 2 initialised MPI"), "{}", outcome.stderr);
    assert_eq!(read(&path).expect("a trace").len(), 0);
}

#[test]
fn an_earlier_trace_is_replaced_by_a_job_that_starts_only() {
    let folder = product("replaced");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kept.trace");
    let files = || std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(mpiexec(&["-n", "1", "--trace", &text(&path), "true"]).code(), Some(0));
    let earlier = std::fs::read(&path).expect("a trace");
    let outcome = mpiexec(&["-n", "1", "--trace", &text(&path), "true", ":", "-n", "1", "/no/such/program"]);
    assert_eq!(outcome.code(), Some(127), "{outcome:?}");
    assert!(std::fs::read(&path).is_ok_and(|bytes| bytes == earlier), "the earlier trace is gone");
    assert_eq!(files(), 1);
    assert_eq!(mpiexec(&["-n", "2", "--trace", &text(&path), "true"]).code(), Some(0));
    assert!(std::fs::read(&path).is_ok_and(|bytes| bytes != earlier), "the earlier trace is still there");
    assert_eq!(files(), 1);
}

fn perusal(arguments: &[&str]) -> Outcome {
    let name = product("perusal");
    let name = name.file_name().expect("a file").to_string_lossy().into_owned();
    run(Command::new(dist().join("bin/perusal")).args(arguments), products(), &name, HANG)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
