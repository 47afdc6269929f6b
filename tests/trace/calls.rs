//! Calls in traces: the searches of the queues lie in the calls in which they happen,
//! as in figure 5 of "The MPI_T Events Interface".

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use crate::late::until_it_stands_out;
use perusal::events::{Event, FUNCTIONS};
use perusal_trace::{Record, RecordPayload, read};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const HANG: Duration = crate::common::HANG;
const MESSAGES: usize = 8;

/// A region that is open, or over: its location, name, begin, end, and the attributes of its begin.
struct Region {
    location: u64,
    name: String,
    begin: u64,
    end: u64,
    attributes: String,
}

/// All regions of an archive as `otf2-print` shows it; each is left where it was entered last.
fn regions(printed: &str) -> Vec<Region> {
    let (mut open, mut over) = (BTreeMap::<u64, Vec<Region>>::new(), Vec::new());
    let mut lines = printed.lines().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.split_whitespace();
        let kind = words.next().unwrap_or_default();
        if !matches!(kind, "ENTER" | "LEAVE") {
            continue;
        }
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        let (location, when) = (number(), number());
        let name = line.split('"').nth(1).expect("a region").to_owned();
        let stack = open.entry(location).or_default();
        if kind == "ENTER" {
            let attributes = lines.next_if(|next| next.contains("ADDITIONAL ATTRIBUTES")).unwrap_or_default();
            stack.push(Region { location, name, begin: when, end: 0, attributes: attributes.to_owned() });
        } else {
            let region = stack.pop().expect("a region is left that was entered");
            assert_eq!(region.name, name, "{line}");
            over.push(Region { end: when, ..region });
        }
    }
    assert!(open.values().all(Vec::is_empty), "every region is left");
    over
}

#[test]
fn an_otf2_archive_shows_the_searches_inside_the_calls_and_what_they_look_for() {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let (program, path) = (text(&product("trace_calls")), text(&product("calls.trace")));
    mpicc(&["tests/trace/calls.c", "-o", &program]);
    let run_late = |delay: &str| {
        let outcome = mpiexec(&["-n", "2", "--trace", &path, &program, delay]);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        read(std::path::Path::new(&path)).expect("a trace")
    };
    let begins = |record: &Record, name: &str| match (record.event, record.payload) {
        (Event::CallBegin, RecordPayload::Call { function }) => {
            FUNCTIONS[usize::from(function)].to_bytes() == name.as_bytes()
        }
        _ => false,
    };
    // The messages are to come while rank 0 waits for all.
    let trace = until_it_stands_out(&["20000", "200000", "2000000"], run_late, |trace| {
        let mut records = trace.ranks[0].records.iter();
        let first = records.find(|record| record.event == Event::MsgArrived || begins(record, "MPI_Waitall"));
        first.is_some_and(|first| first.event == Event::CallBegin)
    });
    let called = |rank: usize, name: &str| {
        trace.ranks[rank].records.iter().filter(|record| begins(record, name)).count()
    };
    assert_eq!(
        (called(0, "MPI_Irecv"), called(0, "MPI_Waitall"), called(0, "MPI_Barrier")),
        (MESSAGES, 1, 1)
    );
    assert_eq!((called(1, "MPI_Send"), called(1, "MPI_Finalize")), (MESSAGES, 1));
    assert!(called(0, "MPI_Test") < 10, "calls that only look leave no record: {}", called(0, "MPI_Test"));

    let folder = product("calls.otf2");
    let mut export = Command::new(dist().join("bin/perusal"));
    export.args(["trace", "export", "--format", "otf2", &path, "-o", &text(&folder)]);
    let exported = run(&mut export, products(), "calls-export", HANG);
    assert_eq!(exported.code(), Some(0), "{exported:?}");
    let print = |arguments: &[&str], name| {
        let mut print = Command::new("otf2-print");
        print.args(arguments).arg(folder.join("traces.otf2"));
        let out = run(&mut print, products(), name, HANG);
        assert!(out.code() == Some(0) && !out.stderr.contains("warning"), "{out:?}");
        out.stdout
    };
    let regions = regions(&print(&[], "otf2-calls"));
    let waits: Vec<&Region> = regions.iter().filter(|region| region.name == "MPI_Waitall").collect();
    let [wait] = waits.as_slice() else { panic!("{} waits", waits.len()) };
    assert_eq!(wait.location, 0, "of rank 0");
    let searches: Vec<&Region> = regions
        .iter()
        .filter(|region| region.location == 1 && region.name == "search posted queue")
        .collect();
    let inside = |region: &&&Region| wait.begin <= region.begin && region.end <= wait.end;
    assert!(searches.iter().filter(inside).count() >= MESSAGES / 2, "{} searches", searches.len());
    for (tag, search) in (0..MESSAGES).rev().zip(&searches[searches.len() - MESSAGES..]) {
        for part in ["\"source\"", "\"tag\"", "\"communicator\"", &format!("INT32; {tag}")] {
            assert!(search.attributes.contains(part), "{part} is not in {}", search.attributes);
        }
    }
    let definitions = print(&["-G"], "otf2-calls-definitions");
    let region = |name: &str| {
        let named = |line: &&str| line.starts_with("REGION") && line.contains(&format!("\"{name}\""));
        definitions.lines().rfind(named).unwrap_or_default().to_owned()
    };
    assert!(region("MPI_Waitall").contains("POINT2POINT") && region("MPI_Barrier").contains("BARRIER"));
    assert!(region("MPI_Ssend").is_empty(), "functions that nobody calls are left out");
    let report = perusal_trace::report::analyse(&trace, "trace");
    let row = report.calls.iter().find(|row| row.function == "MPI_Waitall").expect("a row");
    assert!(row.calls == 1 && row.most_rank == 0 && row.inside_ns == row.most_ns, "{row:?}");
    assert_eq!(row.inside_ns, wait.end - wait.begin);
    let json = text(&product("calls.json"));
    let mut export = Command::new(dist().join("bin/perusal"));
    export.args(["trace", "export", "--format", "perfetto", &path, "-o", &json]);
    assert_eq!(run(&mut export, products(), "calls-perfetto", HANG).code(), Some(0));
    let json = std::fs::read_to_string(&json).expect("the document");
    assert!(json.contains("\"name\":\"MPI_Waitall\""));
}
