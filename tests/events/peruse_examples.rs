//! The PERUSE example programs of `examples/peruse`, compiled with our wrapper, run by our launcher, and their output
//! checked by arithmetic.

use crate::common::examples::{Line, example, job, lines, mpicc, product};

/// How often each event comes to a receiver of `messages` messages, of which `early` came before their receives.
fn receiver(messages: i64, early: i64) -> [(&'static str, i64); 16] {
    let late = messages - early;
    [
        ("REQ_ACTIVATE", messages),
        ("REQ_MATCH_UNEX", early),
        ("REQ_INSERT_IN_POSTED_Q", late),
        ("REQ_REMOVE_FROM_POSTED_Q", late),
        ("REQ_XFER_BEGIN", messages),
        ("REQ_XFER_END", messages),
        ("REQ_COMPLETE", messages),
        ("REQ_NOTIFY", messages),
        ("MSG_ARRIVED", messages),
        ("MSG_INSERT_IN_UNEX_Q", early),
        ("MSG_REMOVE_FROM_UNEX_Q", early),
        ("MSG_MATCH_POSTED_REQ", late),
        ("SEARCH_POSTED_Q_BEGIN", messages),
        ("SEARCH_POSTED_Q_END", messages),
        ("SEARCH_UNEX_QUEUE_BEGIN", messages),
        ("SEARCH_UNEX_Q_END", messages),
    ]
}

/// The same for their sender.
fn sender(messages: i64) -> [(&'static str, i64); 16] {
    receiver(messages, 0).map(|(event, _)| match event {
        "REQ_ACTIVATE" | "REQ_XFER_BEGIN" | "REQ_XFER_END" | "REQ_COMPLETE" | "REQ_NOTIFY" => {
            (event, messages)
        }
        _ => (event, 0),
    })
}

/// Every count that is not as expected, in words.
fn differences(line: &Line, expected: &[(&'static str, i64)]) -> Vec<String> {
    expected
        .iter()
        .filter(|(event, count)| line.count(event) != *count)
        .map(|(event, count)| format!("{event}: {} instead of {count}", line.count(event)))
        .collect()
}

fn named<'a>(lines: &'a [Line], case: &str, role: &str) -> &'a Line {
    let mut found = lines.iter().filter(|l| l.text("case") == case && l.text("role") == role);
    found.next().unwrap_or_else(|| panic!("no line of case {case} and role {role}"))
}

/// Runs event_counts and gives its lines, having checked those of the forty cases that send messages.
fn event_counts(messages: i64, early: i64) -> Vec<Line> {
    let program = example("peruse/event_counts.c");
    let output = job(&["-n", "2", &program.to_string_lossy(), &messages.to_string(), &early.to_string()]);
    let all = lines(&output, "event_counts");
    let mut wrong: Vec<String> =
        output.lines().filter(|l| l.starts_with("violation")).map(str::to_owned).collect();
    let mut cases = 0;
    for shape in ["empty", "tiny", "inline", "bulk", "large"] {
        for wildcard in ["exact", "wildcard"] {
            for style in ["nonblocking", "blocking", "persistent", "modes"] {
                let case = format!("{shape}-{wildcard}-{style}");
                for (role, expected) in
                    [("receiver", receiver(messages, early)), ("sender", sender(messages))]
                {
                    let line = named(&all, &case, role);
                    let mut bad = differences(line, &expected);
                    for (key, value) in [("violations", "0"), ("open", "0"), ("doubled", "yes")] {
                        if line.text(key) != value {
                            bad.push(format!("{key}={}", line.text(key)));
                        }
                    }
                    if !bad.is_empty() {
                        wrong.push(format!("{case} {role}: {}", bad.join(", ")));
                    }
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 80);
    assert!(wrong.is_empty(), "{messages} messages, {early} early:\n{}", wrong.join("\n"));
    all
}

#[test]
fn every_event_comes_exactly_as_often_as_the_messages_demand() {
    let all = event_counts(100, 37);
    for role in ["receiver", "sender"] {
        let silent = receiver(0, 0);
        assert_eq!(differences(named(&all, "bystander", role), &silent), [""; 0], "no traffic, no events");
        let heard = named(&all, "propagated", role);
        assert_eq!((heard.count("REQ_ACTIVATE"), heard.count("named_original")), (10, 0));
        assert_eq!(differences(named(&all, "not_propagated", role), &silent), [""; 0]);
    }
}

#[test]
fn a_cancelled_receive_leaves_the_queue_completes_and_moves_nothing() {
    let all = event_counts(4, 2);
    let expected: Vec<_> = receiver(0, 0)
        .into_iter()
        .map(|(event, _)| match event {
            "REQ_ACTIVATE"
            | "REQ_INSERT_IN_POSTED_Q"
            | "REQ_REMOVE_FROM_POSTED_Q"
            | "REQ_COMPLETE"
            | "REQ_NOTIFY"
            | "SEARCH_UNEX_QUEUE_BEGIN"
            | "SEARCH_UNEX_Q_END" => (event, 1),
            _ => (event, 0),
        })
        .collect();
    assert_eq!(differences(named(&all, "cancelled", "receiver"), &expected), [""; 0]);
}

#[test]
fn events_are_exact_when_all_messages_are_early_and_when_none_is() {
    event_counts(25, 25);
    event_counts(25, 0);
}

#[test]
fn query_tells_the_sixteen_events_their_scope_and_the_environment() {
    let program = example("peruse/query.c");
    let output = job(&["-n", "2", &program.to_string_lossy()]);
    let beginning = |word: &str| output.lines().filter(|l| l.starts_with(word)).collect::<Vec<_>>();

    assert_eq!(beginning("init_before_mpi"), ["init_before_mpi_is_error=yes"]);
    let specified = beginning("specified ");
    assert_eq!(specified.len(), 16);
    assert!(specified.iter().all(|l| l.ends_with(" supported")), "{specified:#?}");
    let events = lines(&output, "event");
    assert_eq!(events.len() as i64, lines(&output, "supported")[0].count("events"));
    assert!(events.iter().all(|e| e.text("round_trip") == "yes"), "{output}");
    let mut numbers: Vec<i64> = events.iter().map(|e| e.count("number")).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), events.len(), "each event has a number of its own");
    assert_eq!(beginning("unknown_event"), ["unknown_event result_is_error=yes event_is_invalid=yes"]);
    assert_eq!(beginning("queue_scope"), ["queue_scope PERUSE_PER_COMM"]);

    let variables = beginning("variable ");
    assert_eq!(variables.len() as i64, lines(&output, "environment")[0].count("variables"));
    assert!(variables.iter().all(|v| v["variable ".len()..].contains('=')), "{variables:#?}");
}

#[test]
fn a_message_is_timed_from_its_entry_into_the_unexpected_queue_until_it_leaves() {
    let program = example("peruse/unexpected_time.c");
    let output = job(&["-n", "2", &program.to_string_lossy(), "100", "40", "20"]);
    let line = &lines(&output, "unexpected_time")[0];
    assert_eq!((line.count("inserted"), line.count("removed"), line.count("left")), (40, 40, 0));
    assert_eq!(line.count("wrong_data"), 0);
    assert!(line.number("shortest_us") >= 20_000.0, "every one of them lay there for the delay: {output}");
    assert!(line.number("shortest_us") <= line.number("average_us"));
    assert!(line.number("average_us") <= line.number("longest_us"));
}

#[test]
fn every_message_and_every_receive_costs_one_search() {
    let program = example("peruse/search_times.c");
    let output = job(&["-n", "2", &program.to_string_lossy(), "500"]);
    let all = lines(&output, "search_times");
    assert_eq!(all.len(), 4);
    for line in &all {
        assert_eq!((line.count("begun"), line.count("ended"), line.count("open")), (500, 500, 0), "{output}");
        assert!(line.number("average_ns") <= line.number("longest_ns"));
    }
}

#[test]
fn both_queues_grow_to_their_known_lengths_peer_by_peer() {
    let program = example("peruse/queue_lengths.c");
    let output = job(&["-n", "4", &program.to_string_lossy(), "10"]);
    let all = lines(&output, "queue_lengths");
    assert_eq!(all.len(), 6);
    for line in &all {
        let length = 10 * line.count("peer");
        assert_eq!(
            (line.count("inserted"), line.count("longest"), line.count("left")),
            (length, length, 0),
            "{output}"
        );
        assert_eq!(line.number("average"), (length + 1) as f64 / 2.0, "{output}");
    }
}

/// The profiler's lines of a heat solver on 2 x 2 ranks: each has two neighbours, whom it sends to and receives from
/// once a step.
fn check_profile(output: &str, steps: i64) {
    assert!(output.contains(": right"), "{output}");
    let all = lines(output, "profile");
    for rank in 0..4 {
        let of = |metric: &str| {
            let mut found = all.iter().filter(|l| l.count("rank") == rank && l.text("metric") == metric);
            found.next().unwrap_or_else(|| panic!("no {metric} of rank {rank} in\n{output}"))
        };
        let (receives, requests) = (2 * steps, 4 * steps);
        assert_eq!(of("activate_to_match").count("count"), receives, "rank {rank}\n{output}");
        for metric in
            ["activate_to_xfer_begin", "xfer_begin_to_end", "complete_to_notify", "activate_to_notify"]
        {
            assert_eq!(of(metric).count("count"), requests, "{metric} of rank {rank}\n{output}");
        }
        let (posted, unexpected) = (of("posted_queue_length"), of("unexpected_queue_length"));
        assert_eq!(posted.count("count") + unexpected.count("count"), receives, "rank {rank}\n{output}");
        assert_eq!(
            of("in_unexpected_queue").count("count"),
            unexpected.count("count"),
            "rank {rank}\n{output}"
        );
        assert_eq!((posted.count("now"), unexpected.count("now")), (0, 0), "rank {rank}\n{output}");
        assert_eq!(of("records_lost").count("count"), 0, "rank {rank}\n{output}");
        assert!(
            of("activate_to_notify").number("average") >= of("xfer_begin_to_end").number("average"),
            "a request lives at least as long as its transfer takes: rank {rank}\n{output}"
        );
    }
}

#[test]
fn the_profiler_counts_every_message_of_a_program_that_it_is_preloaded_into() {
    let heat = example("heat.c");
    let library = product("libperuse_profile.so");
    mpicc(&["-shared", "-fPIC", "examples/peruse/profiler.c", "-o", &library.to_string_lossy()]);
    let preload = format!("LD_PRELOAD={}", library.display());
    let output = job(&[
        "-n",
        "4",
        "-x",
        &preload,
        "-x",
        "PERUSE_PROFILE=lines",
        &heat.to_string_lossy(),
        "--steps",
        "20",
        "--slow",
        "2",
        "--delay",
        "2000",
    ]);
    check_profile(&output, 20);
}

#[test]
fn a_window_that_opens_late_shows_the_lengths_of_what_came_since() {
    let program = product("late_window");
    let program = program.to_string_lossy();
    mpicc(&["tests/events/late_window.c", "-o", &program]);
    let output = job(&["-n", "1", "-x", "PERUSE_PROFILE=lines", &program]);
    let within = &lines(&output, "late_window")[0];
    assert_eq!((within.count("posted"), within.count("unexpected")), (1, 1), "{output}");
    for metric in ["posted_queue_length", "unexpected_queue_length"] {
        let all = lines(&output, "profile");
        let found = all.iter().find(|line| line.text("metric") == metric).expect("a line");
        assert_eq!((found.count("count"), found.count("now")), (1, 0), "{metric}\n{output}");
    }
}

#[test]
fn the_profiler_as_a_static_library_counts_the_same_in_a_static_program() {
    let (object, archive) = (product("profiler.o"), product("libperuse_profile.a"));
    let (object, archive) = (object.to_string_lossy(), archive.to_string_lossy());
    mpicc(&["-c", "examples/peruse/profiler.c", "-o", &object]);
    let out = std::process::Command::new("ar").args(["rcs", &archive, &object]).output();
    crate::common::success(out.expect("binutils"), "ar");
    let heat = product("heat-static");
    let heat = heat.to_string_lossy();
    // hwloc is the launcher's, whose parts are in the archive that cargo makes for tests; the distributed one has none.
    mpicc(&["-static-mpi", "examples/heat.c", &archive, "-o", &heat, "-lm", "-Wl,--no-as-needed", "-lhwloc"]);
    let output = job(&["-n", "4", "-x", "PERUSE_PROFILE=lines", &heat, "--steps", "20"]);
    check_profile(&output, 20);
}
