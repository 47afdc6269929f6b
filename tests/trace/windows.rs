//! One-sided communication in traces: what is known of a program is what the reader, the exports and the report say.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::{Outcome, run};
use crate::events;
use crate::late::until_it_stands_out;
use perusal::events::{Event, RmaOperation, WindowReach};
use perusal_trace::report::analyse;
use perusal_trace::windows::{JobWindows, lock_waits};
use perusal_trace::{RankTrace, RecordPayload, Trace, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const HANG: Duration = crate::common::HANG;
/// How late ranks come, in microseconds, and half of the least of that, in nanoseconds.
const DELAYS: [&str; 3] = ["40000", "400000", "4000000"];
const LATE: u64 = 20_000_000;

/// The program's trace, made once.
fn traced() -> &'static (Trace, PathBuf) {
    static TRACED: OnceLock<(Trace, PathBuf)> = OnceLock::new();
    TRACED.get_or_init(|| {
        let (program, path) = (product("trace_windows"), product("windows.trace"));
        mpicc(&["tests/trace/windows.c", "-o", &program.to_string_lossy()]);
        let run = |delay: &str| {
            let (path, program) = (path.to_string_lossy(), program.to_string_lossy());
            let outcome = mpiexec(&["-n", "3", "--trace", &path, &program, delay]);
            assert_eq!(outcome.code(), Some(0), "{outcome:?}");
            read(Path::new(&*path)).expect("a trace")
        };
        let trace = until_it_stands_out(&DELAYS, run, |trace| {
            let ranks = analyse(trace, "trace").ranks;
            ranks[1].waited.lock_ns >= LATE
                && ranks[1].waited.epoch_ns >= LATE
                && ranks[1..].iter().all(|rank| rank.waited.collective_ns >= LATE)
        });
        (trace, path)
    })
}

fn perusal(arguments: &[&str]) -> Outcome {
    let mut command = Command::new(dist().join("bin/perusal"));
    command.args(arguments);
    // Each prints to files of its own: tests run at once.
    let name = product("perusal-windows");
    run(&mut command, products(), &name.file_name().expect("a file").to_string_lossy(), HANG)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn count(rank: &RankTrace, event: Event) -> usize {
    rank.records.iter().filter(|record| record.event == event).count()
}

#[test]
fn the_reader_finds_windows_operations_and_epochs() {
    let (trace, _) = traced();
    for rank in &trace.ranks {
        assert!(rank.complete && rank.unreadable == 0, "rank {}", rank.rank);
        let [shelf, other] = &rank.windows[..] else { panic!("{:?}", rank.windows) };
        assert_eq!((shelf.comm.name.as_str(), other.comm.name.as_str()), ("shelf \"A\"", ""));
        assert_eq!((shelf.flavor, shelf.bytes, other.flavor, other.bytes), (1, 4096, 0, 512));
        assert_eq!(shelf.reach, WindowReach::Mapped as u8);
        assert!(other.reach > WindowReach::Mapped as u8, "a static array is no memory that others map");
        assert_eq!(shelf.comm.group[..], [0, 1, 2]);
        assert!(shelf.comm.freed.is_some() && other.comm.freed < shelf.comm.freed);
        // Each has one put, get and accumulate; rank 1 a fetch-and-op and another put.
        let more = if rank.rank == 1 { 2 } else { 0 };
        for event in
            [Event::WinReqActivate, Event::WinReqXferBegin, Event::WinReqXferEnd, Event::WinReqComplete]
        {
            assert_eq!(count(rank, event), 3 + more, "{event:?} of rank {}", rank.rank);
        }
        assert_eq!(count(rank, Event::WinRegionBegin), 0, "regions are not recorded");
        assert_eq!(count(rank, Event::WinFenceEpoch), 1);
        assert_eq!(count(rank, Event::WinSyncBegin), count(rank, Event::WinSyncEnd));
    }
    let put =
        trace.ranks[1].records.iter().find(|record| record.event == Event::WinReqXferBegin).expect("a put");
    let operation = |payload| match payload {
        RecordPayload::Rma { operation, .. } => operation,
        other => panic!("{other:?}"),
    };
    assert_eq!((put.peer, put.bytes, operation(put.payload)), (2, 24, RmaOperation::Put as u8));
    assert_eq!(trace.ranks[1].world_peer(put), Some(2));
    let counts = |event| [0, 1, 2].map(|rank| count(&trace.ranks[rank], event));
    assert_eq!(counts(Event::WinLockAcquired), [2, 2, 1]);
    assert_eq!(counts(Event::WinLockReleased), [2, 2, 1]);
    assert_eq!((counts(Event::WinAccessBegin), counts(Event::WinExposeEnd)), ([0, 1, 0], [0, 0, 1]));
}

#[test]
fn the_wait_for_a_lock_leads_to_its_holder() {
    let (trace, _) = traced();
    let windows = JobWindows::of(trace);
    let waits = lock_waits(trace, &windows);
    let known = waits.iter().find(|wait| wait.end - wait.begin >= LATE).expect("the wait of rank 1");
    assert_eq!((known.rank, known.target, known.holder), (1, 2, Some(0)));
    assert_eq!(windows.name(known.window), "shelf \"A\"");
    let released = known.released.expect("the release");
    let record = &trace.ranks[released.rank as usize].records[released.index];
    assert_eq!((released.rank, record.event), (0, Event::WinLockReleased));
}

#[test]
fn the_text_names_windows_and_what_is_done_to_them() {
    let (trace, path) = traced();
    let out = perusal(&["trace", "print", &text(path)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(out.stdout.lines().filter(|line| !line.starts_with('#')).count(), trace.len());
    for part in [
        "\"shelf \"A\"\", 3 ranks, 4096 bytes here, allocate, reached by loads and stores, made at",
        "win_req_xfer_begin",
        "target 2 bytes 24 operation put reach loads_and_stores on shelf \"A\"",
        "win_lock_wait_begin",
        "target 2 lock shared holder 0 on shelf \"A\"",
        "win_sync_begin",
        "call fence",
    ] {
        assert!(out.stdout.contains(part), "{part}\n{}", out.stdout);
    }
}

#[test]
fn perfetto_has_operations_epochs_and_an_arrow_from_the_lock_s_release() {
    let (trace, path) = traced();
    let json = product("windows.json");
    let out = perusal(&["trace", "export", "--format", "perfetto", &text(path), "-o", &text(&json)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let document = std::fs::read_to_string(&json).expect("written");
    let summary = events::check(&document).expect("well-formed");
    for category in ["one-sided", "synchronization", "epoch"] {
        assert!(summary.slices.contains(category), "{category}: {:?}", summary.slices);
    }
    let locks =
        lock_waits(trace, &JobWindows::of(trace)).iter().filter(|wait| wait.released.is_some()).count();
    assert!(locks >= 1 && summary.matrix[&(0, 1)] >= 1, "{:?}", summary.matrix);
    assert_eq!(document.matches("\"name\":\"lock\",").count(), 2 * locks);
    for name in [
        "\"put\"",
        "\"MPI_Win_lock\"",
        "\"wait for lock\"",
        "\"lock of 2\"",
        "\"fence epoch\"",
        "\"access to 2\"",
        "\"exposure\"",
    ] {
        assert!(document.contains(&format!("\"name\":{name}")), "{name}");
    }
}

#[test]
fn otf2_print_reads_the_windows_and_their_operations() {
    let (_, path) = traced();
    let folder = product("windows.otf2");
    let out = perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let print = |arguments: &[&str], name| {
        let mut print = Command::new("otf2-print");
        print.args(arguments).arg(folder.join("traces.otf2"));
        let printed = run(&mut print, products(), name, HANG);
        assert_eq!(printed.code(), Some(0), "{printed:?}");
        printed.stdout
    };
    let definitions = print(&["-G"], "otf2-windows-definitions");
    let windows: Vec<&str> = definitions.lines().filter(|line| line.starts_with("RMA_WIN")).collect();
    assert!(windows.len() == 2 && windows.iter().any(|line| line.contains("shelf \"A\"")), "{definitions}");
    let events = print(&[], "otf2-windows");
    let mut tally = BTreeMap::<&str, usize>::new();
    let mut open = BTreeMap::<&str, Vec<&str>>::new();
    for line in events.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(location)) = (words.next(), words.next()) else { continue };
        *tally.entry(kind).or_default() += 1;
        let region = line.split('"').nth(1).unwrap_or_default();
        match kind {
            "ENTER" => open.entry(location).or_default().push(region),
            "LEAVE" => assert_eq!(open.entry(location).or_default().pop(), Some(region), "{line}"),
            "RMA_PUT" => assert_eq!(open[location].last(), Some(&"put"), "{line}"),
            _ => {}
        }
    }
    let of = |kind: &str| tally.get(kind).copied().unwrap_or(0);
    assert_eq!((of("RMA_WIN_CREATE"), of("RMA_WIN_DESTROY")), (6, 6));
    assert_eq!((of("RMA_PUT"), of("RMA_GET"), of("RMA_ATOMIC")), (4, 3, 4));
    assert_eq!(of("RMA_OP_COMPLETE_BLOCKING"), 11);
    // Two locks of one target, and one of all three from each rank.
    assert_eq!((of("RMA_ACQUIRE_LOCK"), of("RMA_RELEASE_LOCK")), (11, 11));
    assert!(of("RMA_REQUEST_LOCK") >= 1);
    assert_eq!((of("RMA_COLLECTIVE_BEGIN"), of("RMA_COLLECTIVE_END")), (6, 6));
    // A flush of one target; access to rank 2 begins and ends.
    assert_eq!((of("RMA_SYNC"), of("RMA_GROUP_SYNC")), (3, 2));
}

#[test]
fn the_report_shows_bytes_epochs_and_who_waited_for_whose_lock() {
    let (trace, path) = traced();
    let report = analyse(trace, "windows.trace");
    let cells = [
        (0, 0, 1, 0, 0, 8),
        (0, 1, 1, 24, 0, 0),
        (0, 2, 1, 0, 16, 0),
        (1, 0, 2, 0, 16, 8),
        (1, 2, 3, 24 + 64, 0, 8),
        (2, 0, 2, 24, 0, 8),
        (2, 1, 1, 0, 16, 0),
    ];
    assert_eq!(report.one_sided, cells);
    assert_eq!((report.key.one_sided, report.key.one_sided_bytes), (11, 72 + 64 + 48 + 32));
    let shelf = report.windows.iter().find(|window| window.name == "shelf \"A\"").expect("the window");
    assert_eq!((shelf.put.operations, shelf.get.bytes, shelf.accumulated.operations), (3, 48, 4));
    let epochs: Vec<_> = shelf.epochs.iter().map(|epoch| (epoch.kind, epoch.times)).collect();
    assert_eq!(epochs, [("fence", 3), ("lock", 2)]);
    assert!(shelf.epochs.iter().all(|epoch| epoch.longest_ns >= LATE), "{:?}", shelf.epochs);
    let first = &report.lock_waits[0];
    assert_eq!((first.waiter, first.target, first.holder), (1, 2, Some(0)));
    assert!(first.waited_ns >= LATE && shelf.lock_waited_ns >= LATE);
    let waited = |rank: usize| report.ranks[rank].waited;
    assert!(waited(1).lock_ns >= LATE && waited(1).epoch_ns >= LATE, "{:?}", waited(1));
    assert!(
        waited(1).collective_ns >= LATE && waited(2).collective_ns >= LATE,
        "rank 0 came late to a fence"
    );
    assert!(report.ranks[0].caused.lock_ns >= LATE && report.ranks[2].caused.epoch_ns >= LATE);
    let fence = report.collectives.iter().find(|row| row.operation == "MPI_Win_fence").expect("fences");
    assert_eq!((fence.communicator.as_str(), fence.calls, fence.last[0].rank), ("shelf \"A\"", 6, 0));
    let out = perusal(&["report", &text(path), "--text"]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    for part in
        ["Windows", "Pairs with most bytes of one-sided operations", "Waits for locks", "loads and stores"]
    {
        assert!(out.stdout.contains(part), "{part}\n{}", out.stdout);
    }
}
