//! The recorder allocates nothing once a thread has begun to record, however often its stage is full.

use perusal::events::{Event, EventRecord, Operation, Registry, Spec};
use perusal_trace::format::TraceHeader;
use perusal_trace::{Recording, file, tally};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does all the work; counting touches a cell of the thread and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_traced_event_allocates_nothing() {
    let path = std::env::temp_dir().join(format!("perusal-allocations-{}.trace", std::process::id()));
    file::create(&path, &TraceHeader { ranks: 1, limit: u64::MAX, ..TraceHeader::default() })
        .expect("a trace");
    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let comm = registry.attach(1);
    let recording = Recording::start(&path, 0, &registry).expect("recording");
    let spec = Spec { peer: 1, operation: Operation::Recv, ..Spec::NOTHING };
    let tell = |id| comm.emit(&EventRecord { context: 0, ..EventRecord::new(Event::MsgArrived, id, &spec) });
    tell(0);
    let before = COUNT.get();
    // Far more than a stage holds.
    let events = 150_000;
    (1..events).for_each(tell);
    let allocations = COUNT.get() - before;
    drop(recording);
    let tally = tally(&path).expect("a trace");
    std::fs::remove_file(&path).expect("ours");
    assert_eq!((tally.records, tally.dropped), (events as u64, 0));
    assert_eq!(allocations, 0);
}
