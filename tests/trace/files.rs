//! Files in traces: what is known of a program is what the reader, the exports and the report say.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use crate::late::until_it_stands_out;
use perusal::events::{Event, FileMode, FileOperation, FilePointer};
use perusal_trace::files::JobFiles;
use perusal_trace::report::analyse;
use perusal_trace::synthetic::Synthetic;
use perusal_trace::{RankTrace, Record, RecordPayload, Trace, read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HANG: Duration = crate::common::HANG;
/// How late rank 2 comes, in microseconds, and half of the least of that, in nanoseconds.
const DELAYS: [&str; 3] = ["40000", "400000", "4000000"];
const LATE: u64 = 20_000_000;
const WORDS: u64 = 4000;

/// The program's trace, made once, and the name of the file that it writes.
fn traced() -> &'static (Trace, PathBuf, String) {
    static TRACED: OnceLock<(Trace, PathBuf, String)> = OnceLock::new();
    TRACED.get_or_init(|| {
        let (program, path) = (product("trace_files"), product("files.trace"));
        let file = product("files.data").to_string_lossy().into_owned();
        mpicc(&["tests/trace/files.c", "-o", &program.to_string_lossy()]);
        let run = |delay: &str| {
            let (path, program) = (path.to_string_lossy(), program.to_string_lossy());
            let outcome = mpiexec(&["-n", "3", "--trace", &path, &program, &file, delay]);
            assert_eq!(outcome.code(), Some(0), "{outcome:?}");
            read(Path::new(&*path)).expect("a trace")
        };
        let trace = until_it_stands_out(&DELAYS, run, |trace| {
            let report = analyse(trace, "trace");
            let row = report.collectives.iter().find(|row| row.operation == "MPI_File_write_at_all");
            row.is_some_and(|row| row.waited_ns >= 2 * LATE)
        });
        (trace, path, file)
    })
}

/// What a command prints; each has a name of its own for what it prints to.
fn perusal(arguments: &[&str]) -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("perusal-files-{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let mut command = Command::new(dist().join("bin/perusal"));
    command.args(arguments);
    let out = run(&mut command, products(), &name, HANG);
    assert_eq!(out.code(), Some(0), "{out:?}");
    out.stdout
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn of(rank: &RankTrace, event: Event) -> Vec<&Record> {
    rank.records.iter().filter(|record| record.event == event).collect()
}

#[test]
fn the_reader_finds_the_file_and_each_access() {
    let (trace, _, name) = traced();
    let files = JobFiles::of(trace);
    assert_eq!((files.all.len(), files.name(0)), (1, name.clone()));
    for rank in &trace.ranks {
        let [file] = rank.files.as_slice() else { panic!("{:?}", rank.files) };
        assert_eq!((&file.group[..], &file.name), (&[0, 1, 2][..], name));
        assert!(file.freed.is_some_and(|closed| closed > file.created));
        let over = of(rank, Event::FileReqComplete);
        let found: Vec<_> = over
            .iter()
            .map(|record| match record.payload {
                RecordPayload::File { operation, pointer, mode, .. } => {
                    (operation, pointer, mode, record.bytes)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let (read, write) = (FileOperation::Read as u8, FileOperation::Write as u8);
        let (explicit, shared) = (FilePointer::Explicit as u8, FilePointer::Shared as u8);
        let [alone, all, background] =
            [FileMode::Independent, FileMode::Collective, FileMode::Nonblocking].map(|mode| mode as u8);
        let wanted = [
            (write, explicit, all, WORDS),
            (read, explicit, background, WORDS),
            (write, shared, alone, 4),
            (read, shared, all, 4),
        ];
        assert_eq!(found, wanted);
        assert_eq!(of(rank, Event::FilePointerBegin).len(), 2);
        assert!(of(rank, Event::FileDiskAccess).is_empty(), "they are counted in the access");
        assert!(over.iter().all(|record| rank.group_of(record).is_some_and(|file| file.name == *name)));
    }
}

#[test]
fn exports_show_accesses_by_the_name_of_the_file() {
    let (_, path, name) = traced();
    let lines = perusal(&["trace", "print", &text(path)]);
    assert!(lines.contains("file_req_complete") && lines.contains(name), "{lines}");
    let json = product("files.json");
    perusal(&["trace", "export", "--format", "perfetto", &text(path), "-o", &text(&json)]);
    let json = std::fs::read_to_string(&json).expect("the document");
    for part in ["\"write file\"", "\"read file\"", "explicit_offset"] {
        assert!(json.contains(part), "{part}");
    }
}

#[test]
fn otf2_has_the_file_and_each_access_with_its_bytes() {
    let (_, path, name) = traced();
    let folder = product("files.otf2");
    perusal(&["trace", "export", "--format", "otf2", &text(path), "-o", &text(&folder)]);
    let printed = |arguments: &[&str]| {
        let mut print = Command::new("otf2-print");
        print.args(arguments).arg(folder.join("traces.otf2"));
        let out = run(&mut print, products(), &format!("otf2-files{}", arguments.len()), HANG);
        assert_eq!(out.code(), Some(0), "{out:?}");
        out.stdout
    };
    let definitions = printed(&["-G"]);
    for kind in ["IO_REGULAR_FILE", "IO_HANDLE", "IO_PARADIGM"] {
        let named = |line: &&str| line.starts_with(kind) && (kind == "IO_PARADIGM" || line.contains(name));
        assert_eq!(definitions.lines().filter(named).count(), 1, "{kind}\n{definitions}");
    }
    let events = printed(&[]);
    let lines = |kind: &str| -> Vec<&str> {
        events.lines().filter(|line| line.split_whitespace().next() == Some(kind)).collect()
    };
    assert_eq!((lines("IO_CREATE_HANDLE").len(), lines("IO_DESTROY_HANDLE").len()), (3, 3));
    let (begun, over) = (lines("IO_OPERATION_BEGIN"), lines("IO_OPERATION_COMPLETE"));
    assert_eq!((begun.len(), over.len(), lines("IO_OPERATION_ISSUED").len()), (12, 12, 3));
    let with = |lines: &[&str], word: &str| lines.iter().filter(|line| line.contains(word)).count();
    assert_eq!((with(&begun, "WRITE"), with(&begun, "READ"), with(&begun, "COLLECTIVE")), (6, 6, 6));
    assert_eq!(with(&over, &format!(": {WORDS}")), 6, "{over:?}");
}

#[test]
fn the_report_says_who_came_late_to_which_file() {
    let (trace, path, name) = traced();
    let report = analyse(trace, "trace");
    let [file] = report.files.as_slice() else { panic!("{:?}", report.files) };
    assert_eq!((&file.name, file.size, file.collective, file.nonblocking), (name, 3, 6, 3));
    assert_eq!((file.written.operations, file.written.bytes), (6, 3 * (WORDS + 4)));
    assert_eq!((file.read.operations, file.read.bytes), (6, 3 * (WORDS + 4)));
    assert!(file.disk_accesses >= 12 && file.inside_ns >= 2 * LATE && file.moving_ns > 0);
    let row = report.collectives.iter().find(|row| row.operation == "MPI_File_write_at_all").expect("a row");
    assert_eq!((&row.communicator, row.calls, row.last[0].rank), (name, 3, 2));
    assert!(row.waited_ns >= 2 * LATE, "ranks 0 and 1 wait for rank 2: {}", row.waited_ns);
    assert!(report.ranks[2].caused.collective_ns >= 2 * LATE);
    let out = perusal(&["report", &text(path), "--text"]);
    for part in ["\nFiles\n", "MPI_File_write_at_all", "MPI_File_read_ordered", "shared pointer"] {
        assert!(out.contains(part), "{part}\n{out}");
    }
}

#[test]
fn the_report_says_who_waited_for_whose_lock_of_which_file() {
    const MS: u64 = 1_000_000;
    let mut job = Synthetic::new(2);
    job.file(1, 8, "/data/out", &[0, 1]);
    let lock = |event, id| Record {
        context: 8,
        payload: RecordPayload::FileLock { length: 100, lock: 2, offset: 0 },
        ..Synthetic::record(event, id)
    };
    job.push(0, MS, &lock(Event::FileLockAcquired, 5)).push(0, 40 * MS, &lock(Event::FileLockReleased, 5));
    job.push(1, 10 * MS, &lock(Event::FileLockWaitBegin, 6)).push(
        1,
        40 * MS,
        &lock(Event::FileLockWaitEnd, 6),
    );
    let report = analyse(&job.trace(), "trace");
    let [row] = report.file_waits.as_slice() else { panic!("{:?}", report.file_waits) };
    assert_eq!((row.file.as_str(), row.waiter, row.holder, row.times), ("/data/out", 1, Some(0), 1));
    assert_eq!((row.waited_ns, report.files[0].lock_waited_ns), (30 * MS, 30 * MS));
    assert_eq!((report.ranks[1].waited.lock_ns, report.ranks[0].caused.lock_ns), (30 * MS, 30 * MS));
    let found =
        report.verdict.findings.iter().find(|finding| finding.kind == "file_lock").expect("a finding");
    assert!(
        found.text.contains("rank 1") && found.text.contains("rank 0") && found.text.contains("/data/out")
    );
}
