//! Partitioned messages in traces: what is known of a program is what the reader, the exports and the report say.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use perusal::events::Event;
use perusal_trace::report::analyse;
use perusal_trace::{RecordPayload, read};
use std::process::Command;
use std::time::Duration;

const HANG: Duration = crate::common::HANG;
const ROUNDS: u64 = 3;
const PARTS: u64 = 4;
const BYTES: u64 = PARTS * 4000;
/// Half of what rank 1 makes rank 0 wait.
const LATE: u64 = 10_000_000;

#[test]
fn partitioned_messages_are_recorded_exported_and_reported() {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let (program, path) = (text(&product("trace_partitioned")), text(&product("partitioned.trace")));
    mpicc(&["tests/trace/partitioned.c", "-o", &program]);
    let outcome = mpiexec(&["-n", "2", "--trace", &path, &program]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let trace = read(std::path::Path::new(&path)).expect("a trace");
    let count = |rank: usize, event| {
        trace.ranks[rank].records.iter().filter(|record| record.event == event).count() as u64
    };
    for rank in 0..2 {
        assert_eq!((count(rank, Event::PartStart), count(rank, Event::PartComplete)), (ROUNDS, ROUNDS));
        // Neither the message by which the two meet, nor what PERUSE has of the requests.
        assert_eq!((count(rank, Event::ReqActivate), count(rank, Event::MsgArrived)), (0, 0));
        let records = &trace.ranks[rank].records;
        let start = records.iter().find(|record| record.event == Event::PartStart).expect("counted");
        let RecordPayload::PartOperation { bytes, partitions } = start.payload else { panic!("{start:?}") };
        assert_eq!((bytes, start.bytes, start.tag), (BYTES, BYTES, 5));
        assert_eq!(u64::from(partitions.0), if rank == 0 { PARTS } else { PARTS / 2 });
    }
    let sent = [Event::PartReady, Event::PartXferBegin, Event::PartXferEnd].map(|event| count(0, event));
    assert_eq!((sent, count(1, Event::PartArrived)), ([ROUNDS * PARTS; 3], ROUNDS * PARTS / 2));

    let report = analyse(&trace, "trace");
    let [row] = report.partitioned.as_slice() else { panic!("{:?}", report.partitioned) };
    assert_eq!((row.sender, row.receiver, row.messages, row.bytes), (0, 1, ROUNDS, ROUNDS * BYTES));
    assert_eq!((row.partitions, row.put_off), (ROUNDS * PARTS, ROUNDS * PARTS));
    assert!(row.put_off_ns >= ROUNDS * PARTS * LATE, "{row:?}");
    assert!(row.tested >= ROUNDS && row.tested - row.in_vain == ROUNDS, "{row:?}");
    assert_eq!(report.matrix.cells, [(0, 1, ROUNDS, ROUNDS * BYTES, 0, 0)]);

    let perusal = |arguments: &[&str], name: &str| {
        let mut command = Command::new(dist().join("bin/perusal"));
        let out = run(command.args(arguments), products(), name, HANG);
        assert_eq!(out.code(), Some(0), "{out:?}");
        out.stdout
    };
    let lines = perusal(&["trace", "print", &path], "partitioned-print");
    let ready = "part_ready";
    let known = " to 1 tag 5 bytes 4000 partition 3 arrived 0 on MPI_COMM_WORLD";
    assert!(lines.lines().any(|line| line.contains(ready) && line.contains(known)), "{lines}");
    let page = perusal(&["report", &path, "--text"], "partitioned-report");
    assert!(page.contains("\nPartitioned messages\n"), "{page}");
    let json = text(&product("partitioned.json"));
    perusal(&["trace", "export", "--format", "perfetto", &path, "-o", &json], "partitioned-perfetto");
    let json = std::fs::read_to_string(&json).expect("the document");
    for part in ["\"partitioned send to 1\"", "\"partition 2 to 1\"", "\"part_arrived\""] {
        assert!(json.contains(part), "{part}");
    }
    let folder = product("partitioned.otf2");
    perusal(&["trace", "export", "--format", "otf2", &path, "-o", &text(&folder)], "partitioned-otf2");
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "partitioned-otf2-print", HANG).stdout;
    for kind in ["MPI_SEND", "MPI_RECV"] {
        let of = |line: &&str| line.split_whitespace().next() == Some(kind) && line.contains("16000");
        assert_eq!(printed.lines().filter(of).count() as u64, ROUNDS, "{printed}");
    }
}
