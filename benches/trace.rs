//! What a traced event costs, all in: passing the gate, filling the spec, dispatch to the recorder, the time stamp, the
//! record, and the pages of the file. Beside it the same with a listener that does nothing, and the time stamp alone.
//!
//!     cargo bench --bench trace [-- FOLDER …]      folders to write traces in: default the temporary one and /dev/shm
//!
//! It has its own loop and clock: what is wanted is the CPU time of the thread, the kernel's part included, over
//! millions of events, because a record's cost is mostly the page cache's;
//! and folders as arguments, where divan has names of benches.

use perusal::events::{CommEvents, Event, EventRecord, EventSet, Operation, Registry, Spec};
use perusal::internals::arch::clock;
use perusal_trace::format::TraceHeader;
use perusal_trace::{Recording, file, tally};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Events of one run: 160 MB of records.
const EVENTS: u32 = 5_000_000;
const ROUNDS: usize = 7;

/// What a site does, for every event.
#[inline(never)]
fn pass(comm: &CommEvents, event: Event, id: isize) {
    if comm.gate.is_open(event) {
        let spec = Spec { peer: 1, tag: 7, bytes: 64, operation: Operation::Recv, ..Spec::NOTHING };
        comm.emit(&EventRecord { context: 0, ..EventRecord::new(event, id, &spec) });
    }
}

/// CPU time of this thread, the kernel's part for it included, in nanoseconds:
/// what a busy machine gives to others does not count.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds for each of so many steps.
fn timed(mut step: impl FnMut(u32)) -> f64 {
    let start = cpu_time();
    (0..EVENTS).for_each(&mut step);
    (cpu_time() - start) / f64::from(EVENTS)
}

/// Nanoseconds an event.
fn run(comm: &CommEvents) -> f64 {
    timed(|id| pass(black_box(comm), Event::MsgArrived, id as isize))
}

/// Least, median and most of several runs.
fn spread(mut once: impl FnMut() -> f64) -> String {
    let mut runs: Vec<f64> = (0..ROUNDS).map(|_| once()).collect();
    runs.sort_by(f64::total_cmp);
    format!("{:6.1} ns   ({:.1} to {:.1})", runs[ROUNDS / 2], runs[0], runs[ROUNDS - 1])
}

fn traced(folder: &Path) -> f64 {
    let path = folder.join(format!("perusal-bench-{}.trace", std::process::id()));
    let base = clock::read();
    let trace_header = TraceHeader {
        ranks: 1,
        limit: u64::MAX,
        base_ticks: base.ticks,
        base_nanoseconds: base.nanoseconds,
        ticks_per_second: clock::source().ticks_per_second,
        ..TraceHeader::default()
    };
    file::create(&path, &trace_header).expect("a writable folder");
    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let comm = registry.attach(1);
    let recording = Recording::start(&path, 0, &registry).expect("a trace");
    let cost = run(&comm);
    drop(recording);
    let tally = tally(&path).expect("a trace");
    assert_eq!((tally.records, tally.dropped), (u64::from(EVENTS), 0));
    std::fs::remove_file(&path).expect("ours");
    cost
}

fn main() {
    let mut folders: Vec<PathBuf> =
        std::env::args_os().skip(1).filter(|word| word != "--bench").map(PathBuf::from).collect();
    if folders.is_empty() {
        folders = vec![std::env::temp_dir(), "/dev/shm".into()];
    }
    println!("CPU time an event, median of {ROUNDS} runs of {EVENTS}");
    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let comm = registry.attach(1);
    println!("  nobody listens         {}", spread(|| run(&comm)));
    let empty = registry.subscribe_globally(EventSet::ALL, Arc::new(|_: &EventRecord<'_>| {}));
    println!("  an empty listener      {}", spread(|| run(&comm)));
    drop(empty);
    let stamp = || {
        timed(|_| {
            black_box(clock::ticks());
        })
    };
    println!("  a time stamp           {}", spread(stamp));
    for folder in folders {
        println!("  traced, {:14} {}", folder.display(), spread(|| traced(&folder)));
    }
}
