//! A message that its sender takes back is no message that a receive took, for any reader of the trace.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use perusal::events::Event;
use perusal_trace::flows::flows;
use perusal_trace::{RecordPayload, read};
use std::path::Path;
use std::process::Command;

const TAG: i32 = 4;

#[test]
fn a_send_that_was_cancelled_has_no_receive() {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (program, path) = (text(&product("trace_cancelled")), text(&product("cancelled.trace")));
    mpicc(&["tests/trace/cancelled.c", "-o", &program]);
    let outcome = mpiexec(&["-n", "2", "--trace", &path, &program]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let trace = read(Path::new(&path)).expect("a trace");
    let removals = trace.ranks[1].records.iter().filter(|record| record.event == Event::MsgRemoveFromUnexQ);
    let removals: Vec<_> = removals.filter(|record| record.tag == TAG).collect();
    let cancelled = |record: &&&perusal_trace::Record| record.payload == RecordPayload::Cancelled;
    assert_eq!(removals.iter().filter(cancelled).count(), 1, "{removals:?}");
    assert!(removals.iter().all(|record| record.bytes == 4), "{removals:?}");

    let flows: Vec<_> = flows(&trace).into_iter().filter(|flow| flow.tag == TAG).collect();
    let incoming: Vec<_> = flows.iter().filter_map(|flow| flow.incoming).collect();
    let [taken_back, received] = incoming[..] else { panic!("{flows:?}") };
    assert_eq!((taken_back.matched, taken_back.posted, taken_back.completed), (None, None, None));
    assert!(received.posted.is_some() && received.completed.is_some(), "{received:?}");

    let perusal = |arguments: &[&str], name: &str| {
        let mut command = Command::new(dist().join("bin/perusal"));
        let out = run(command.args(arguments), products(), name, crate::common::HANG);
        assert_eq!(out.code(), Some(0), "{out:?}");
        out.stdout
    };
    let folder = product("cancelled.otf2");
    perusal(&["trace", "export", "--format", "otf2", &path, "-o", &text(&folder)], "cancelled-otf2");
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "cancelled-otf2-print", crate::common::HANG).stdout;
    let tag = format!("Tag: {TAG}");
    let count =
        |event: &str| printed.lines().filter(|line| line.contains(event) && line.contains(&tag)).count();
    assert_eq!((count("MPI_SEND "), count("MPI_RECV ")), (2, 1), "{printed}");
}
