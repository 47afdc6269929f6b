//! `perusal report` as people use it: on the trace of a program with two known mistakes,
//! and on files that are no traces.

use crate::common::browser;
use crate::common::dist::dist;
use crate::common::examples::{example, lines};
use crate::common::run::{Outcome, run};
use crate::common::scratch;
use crate::late::until_it_stands_out;
use perusal_trace::synthetic::{Synthetic, SyntheticMessage};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longer than any run takes on the slowest machine; what it catches is a hang.
const HANG: Duration = crate::common::HANG;

fn perusal(dir: &Path, name: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(dist().join("bin/perusal"));
    command.args(arguments);
    run(&mut command, dir, name, HANG)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("the summary")).expect("JSON")
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}"))
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number at {pointer}"))
}

/// Messages from one rank to another, and how many of them were unexpected.
fn cell(summary: &Value, from: u64, to: u64) -> (u64, u64) {
    let cells = summary["matrix"]["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell[0] == from && cell[1] == to).expect("a cell");
    (cell[2].as_u64().expect("a count"), cell[4].as_u64().expect("a count"))
}

/// The program with its late rank `late`, traced and reported; gives the summary. The page is in `dir` as `job.html`.
fn two_mistakes(dir: &Path, program: &str, late: u32, delay: &str) -> Value {
    let late = late.to_string();
    let traced = [
        "run",
        "--trace",
        "job.trace",
        "-n",
        "4",
        program,
        "--steps",
        "40",
        "--late",
        &late,
        "--delay",
        delay,
    ];
    let job = perusal(dir, "job", &traced);
    assert_eq!(job.code(), Some(0), "{}\n{}", job.stdout, job.stderr);
    assert_eq!(lines(&job.stdout, "two_mistakes")[0].count("lines"), 120, "{}", job.stdout);
    let report =
        perusal(dir, "report", &["report", "job.trace", "-o", "job.html", "--json", "job.json", "--text"]);
    assert_eq!(report.code(), Some(0), "{}", report.stderr);
    let summary = json(&dir.join("job.json"));
    assert!(
        report.stdout.replace('\n', " ").contains(text(&summary, "/verdict/paragraph")),
        "{}",
        report.stdout
    );
    summary
}

#[test]
fn the_report_names_the_rank_that_is_late_and_the_queue_that_grows() {
    let dir = scratch("report-two-mistakes");
    let program = example("two_mistakes.c");
    let program = program.to_string_lossy();
    for late in [2, 1] {
        let named = format!("Rank {late} kept the others waiting");
        let is_named = |summary: &Value| {
            text(summary, "/verdict/paragraph").starts_with(&named)
                && summary["late_senders"][0]["sender"] == late
        };
        let run = |delay: &str| two_mistakes(&dir, &program, late, delay);
        let summary = until_it_stands_out(&["2000", "10000", "50000", "250000"], run, is_named);
        assert!(is_named(&summary), "{}", summary["verdict"]);
        // The log lies in rank 0's queue until the end: 40 lines of three ranks, at least;
        // a row or a last word may come on top.
        let high = number(&summary, "/key/unexpected_high/length");
        assert!((120..=120 + 3 + 2).contains(&high), "{high}");
        assert_eq!(number(&summary, "/key/unexpected_high/rank"), 0);
        let paragraph = text(&summary, "/verdict/paragraph");
        assert!(paragraph.contains("Rank 0's unexpected queue grew to 12"), "{paragraph}");
        // Rows to both sides, and the log and the last word to rank 0.
        for (from, to, messages) in
            [(0, 1, 40), (1, 2, 40), (2, 1, 40), (1, 0, 81), (2, 0, 41), (3, 0, 81), (0, 3, 40)]
        {
            assert_eq!(cell(&summary, from, to).0, messages, "{from} to {to}");
        }
        for from in 1..4 {
            assert!(cell(&summary, from, 0).1 >= 40, "the log of rank {from} is unexpected");
        }
        assert_eq!(number(&summary, "/key/messages"), 2 * 4 * 40 + 3 * 40 + 3);
        assert_eq!(number(&summary, "/job/dropped"), 0);
        assert_eq!(number(&summary, "/job/unpaired"), 0);
        assert!(
            summary["verdict"]["cautions"].as_array().is_some_and(Vec::is_empty),
            "{}",
            summary["verdict"]
        );
    }
    let page = browser::open(&dir.join("job.html"));
    assert!(page.console.is_empty(), "{:#?}", page.console);
    assert!(page.dom.contains("data-drawn=\"yes\"") && page.dom.contains("Rank 1 kept the others waiting"));
    assert!(page.dom.contains("data-from=\"3\" data-to=\"0\" data-value=\"81\""));
}

#[test]
fn a_file_that_cannot_be_read_as_a_trace_is_refused_by_name() {
    let dir = scratch("report-refused");
    fs::write(dir.join("letter"), "Dear Sir or Madam").expect("a writable directory");
    fs::write(dir.join("empty"), "").expect("a writable directory");
    let sound = Synthetic::new(2).bytes();
    fs::write(dir.join("cut"), &sound[..300]).expect("a writable directory");
    for (name, words) in
        [("letter", "trace"), ("empty", "empty"), ("cut", "trace"), ("absent", "No such file")]
    {
        let outcome = perusal(&dir, name, &["report", name]);
        assert_eq!(outcome.code(), Some(1), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with("perusal report: "), "{}", outcome.stderr);
        assert!(!outcome.stderr.starts_with("perusal report: trace: "), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains(name) && outcome.stderr.contains(words),
            "{name}: {}",
            outcome.stderr
        );
        assert!(!dir.join(format!("{name}.html")).exists(), "no page of what is no trace");
    }
    assert_eq!(perusal(&dir, "usage", &["report"]).code(), Some(2));
}

#[test]
fn what_is_left_of_a_torn_trace_is_reported_with_a_caution() {
    let dir = scratch("report-torn");
    let mut job = Synthetic::new(2);
    for n in 0..4000 {
        job.message(&SyntheticMessage {
            from: 0,
            to: 1,
            bytes: 8,
            sent: 100 + n * 1000,
            posted: 400 + n * 1000,
            ..SyntheticMessage::default()
        });
    }
    job.kill(0).kill(1).ended(None);
    let whole = job.bytes();
    fs::write(dir.join("torn"), &whole[..whole.len() - 70_000]).expect("a writable directory");
    let outcome = perusal(&dir, "torn", &["report", "torn", "--text"]);
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("Caution:") && outcome.stdout.contains("ends early"),
        "{}",
        outcome.stdout
    );
    assert!(!dir.join("torn.html").exists(), "--text alone writes no page");
}

#[test]
fn the_page_goes_beside_the_trace_and_json_to_the_standard_output() {
    let dir = scratch("report-places");
    let mut job = Synthetic::new(2);
    job.message(&SyntheticMessage {
        from: 0,
        to: 1,
        bytes: 8,
        sent: 100,
        posted: 50,
        ..SyntheticMessage::default()
    });
    fs::write(dir.join("job.trace"), job.bytes()).expect("a writable directory");
    let outcome = perusal(&dir, "plain", &["report", "job.trace"]);
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.ends_with("The page: job.html\n"), "{}", outcome.stdout);
    assert!(fs::read_to_string(dir.join("job.html")).expect("the page").starts_with("<!doctype html>"));
    let outcome = perusal(&dir, "stdout", &["report", "job.trace", "--json", "-"]);
    let summary: Value = serde_json::from_str(&outcome.stdout).expect("JSON and nothing else");
    assert_eq!((text(&summary, "/format"), number(&summary, "/key/messages")), ("perusal-report-1", 1));
    let outcome = perusal(&dir, "nowhere", &["report", "job.trace", "-o", "no/such/place.html"]);
    assert_eq!(outcome.code(), Some(1));
    assert!(outcome.stderr.contains("cannot write no/such/place.html"), "{}", outcome.stderr);
}

#[test]
fn nothing_is_written_over_a_trace() {
    let dir = scratch("report-over-trace");
    fs::write(dir.join("job.trace"), Synthetic::new(2).bytes()).expect("a trace");
    let _ = fs::remove_file(dir.join("job.html"));
    std::os::unix::fs::symlink("job.trace", dir.join("job.html")).expect("a link");
    let trace = fs::read(dir.join("job.trace")).expect("the trace");
    for arguments in [
        &["report", "job.trace", "-o", "job.trace"][..],
        &["report", "job.trace", "-o", "./job.html"],
        &["report", "job.trace"],
        &["report", "job.trace", "--json", "job.trace"],
        &["trace", "export", "--format", "perfetto", "job.trace", "-o", "job.trace"],
    ] {
        let refused = perusal(&dir, "refused", arguments);
        assert_eq!(refused.code(), Some(1), "{arguments:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("this is a trace, over which nothing is written"),
            "{}",
            refused.stderr
        );
        assert!(fs::read(dir.join("job.trace")).expect("the trace") == trace, "{arguments:?}");
    }
    // What else is there is written over, and a pipe is not read.
    fs::write(dir.join("page.html"), "old").expect("a page");
    for output in ["page.html", "/dev/null"] {
        let written = perusal(&dir, "written", &["report", "job.trace", "-o", output]);
        assert_eq!(written.code(), Some(0), "{}", written.stderr);
    }
    assert!(fs::read_to_string(dir.join("page.html")).expect("a page").starts_with("<!doctype html>"));
}

#[test]
fn a_terminal_obeys_nothing_that_a_trace_holds() {
    let dir = scratch("report-hostile");
    let name = "rows\u{9b}31m\u{7f}\r\u{202e}\nrank 7: killed";
    let mut job = Synthetic::new(2);
    job.communicator(10, 3, name, &[0, 1]);
    let message = SyntheticMessage { from: 0, to: 1, bytes: 8, sent: 100, ..SyntheticMessage::default() };
    job.message(&SyntheticMessage { context: 3, posted: 50, ..message });
    job.trace_header().command = "heat \u{1b}[2J\r\u{2066}x".into();
    job.trace_header().host = "here\u{1b}]0;x\u{7}".into();
    fs::write(dir.join("job.trace"), job.bytes()).expect("a writable directory");
    let mut said = vec![];
    for arguments in [
        &["report", "job.trace"][..],
        &["report", "job.trace", "--text"],
        &["report", "job.trace", "--json", "-"],
        &["trace", "print", "job.trace"],
        &["report", "absent\u{1b}[2J\r\u{202e}"],
    ] {
        let Outcome { stdout, stderr, .. } = perusal(&dir, "run", arguments);
        let shown = stdout + &stderr;
        let obeyed = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{202e}' | '\u{2066}');
        assert!(!shown.is_empty() && !shown.contains(obeyed), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("rank 7")), "{arguments:?}: {shown}");
        said.push(shown);
    }
    let summary: Value = serde_json::from_str(&said[2]).expect("JSON");
    assert_eq!(text(&summary, "/communicators/0/name"), name, "escapes in JSON mean the same");
    assert!(said[3].contains(" on rows\\u{9b}31m\\u{7f}\\r\\u{202e}\\nrank 7: killed; "), "{}", said[3]);
}

/// `perusal` with so many bytes of address space.
fn perusal_within(bytes: u64, dir: &Path, name: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {}; exec \"$0\" \"$@\"", bytes / 1024));
    command.arg(dist().join("bin/perusal")).args(arguments);
    run(&mut command, dir, name, HANG)
}

#[test]
fn a_trace_for_which_there_is_no_memory_is_refused_with_figures_and_its_first_part_is_reported() {
    let dir = scratch("report-memory");
    let mut job = Synthetic::new(2);
    for i in 0..120_000 {
        let at = 10_000 * (i + 1);
        job.message(&SyntheticMessage {
            from: 0,
            to: 1,
            sent: at,
            posted: at + 500,
            bytes: 8,
            ..SyntheticMessage::default()
        });
    }
    let path = dir.join("large.trace");
    fs::write(&path, job.bytes()).expect("a writable directory");
    let all = perusal_trace::most_records(&path, None).expect("a sound trace");
    let some = perusal_trace::most_records(&path, Some(100_000_000)).expect("a sound trace");
    assert!(all > 1_000_000 && some < all / 4, "{some} of {all}");

    // Less than what all of it takes, and much more than a part and the program.
    let room = all * 100;
    let refused = perusal_within(room, &dir, "refused", &["report", "large.trace"]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    let words = format!("{all} records need about");
    assert!(refused.stderr.contains(&words) && refused.stderr.contains("--until"), "{}", refused.stderr);
    assert!(!dir.join("large.html").exists());

    let part = ["report", "large.trace", "--until", "0.1", "--json", "-", "-o", "part.html"];
    let outcome = perusal_within(room, &dir, "part", &part);
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    let summary: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert!(number(&summary, "/job/records") <= some && number(&summary, "/job/duration_ns") <= 100_000_000);
    let messages = number(&summary, "/key/messages");
    assert!((9_990..=10_001).contains(&messages), "one every ten microseconds: {messages}");
    let caution = text(&summary, "/verdict/cautions/0");
    assert!(caution.starts_with("The first 100 ms alone were read"), "{caution}");
}
