//! What an MPI_T callback costs per event that it gets, all in.
//!
//!     cargo bench --bench tool_events [-- ROUNDS]
//!
//! An event site of the engine's own is passed over and over, in these cases:
//!
//! - nobody listens;
//! - a global subscriber of Rust's that does nothing: what is below MPI_T;
//! - an empty callback; the same on a second thread; four of them; one that reads an element;
//! - a handle whose buffer is full; one whose buffer is emptied.
//!
//! In a round all cases run one after the other, so that what the machine does meets all alike. That is why the loop is
//! this file's own: divan runs one case to its end before the next, and a virtual processor that changes its speed
//! every few seconds would then decide which is quicker. Printed are the medians over the rounds, in nanoseconds an
//! event: with the site; without what the site costs in the same round when nobody listens; and the least of both.

use perusal::events::{Event, EventPayload, EventRecord};
use perusal::internals::abi::{MPI_INFO_NULL, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_THREAD_MULTIPLE};
use perusal::internals::tool::event::delivery;
use perusal_abi::bindings;
use perusal_abi::process;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Instant;

const EVENTS: u32 = 200_000;
/// Handles of one event at once: a pass is begun once for all of them.
const SEVERAL: usize = 4;

unsafe extern "C" fn empty(_: *mut c_void, _: usize, _: c_int, _: *mut c_void) {}

unsafe extern "C" fn reading(instance: *mut c_void, _: usize, _: c_int, _: *mut c_void) {
    let mut rank = 0_u32;
    // SAFETY: the instance of this call, and room for its first element.
    unsafe { bindings::MPI_T_event_read(instance, 0, (&raw mut rank).cast()) };
    black_box(rank);
}

type Function = unsafe extern "C" fn(*mut c_void, usize, c_int, *mut c_void);

/// A handle of RING_FULL with a buffer of so many entries.
fn handle(function: Function, entries: u32) -> usize {
    let (mut index, mut handle, mut hints) = (0, 0, MPI_INFO_NULL);
    let entries = std::ffi::CString::new(entries.to_string()).expect("digits");
    // SAFETY: results and strings live here.
    unsafe {
        assert_eq!(bindings::MPI_Info_create(&mut hints), 0);
        assert_eq!(bindings::MPI_Info_set(hints, c"perusal_event_buffer".as_ptr(), entries.as_ptr()), 0);
        assert_eq!(bindings::MPI_T_event_get_index(c"PERUSAL_RING_FULL".as_ptr(), &mut index), 0);
        assert_eq!(bindings::MPI_T_event_handle_alloc(index, null_mut(), hints, &mut handle), 0);
        let level = MPI_T_CB_REQUIRE_THREAD_SAFE;
        assert_eq!(
            bindings::MPI_T_event_register_callback(handle, level, MPI_INFO_NULL, null_mut(), Some(function)),
            0
        );
    }
    handle
}

fn free(handle: usize) {
    // SAFETY: a handle that was made here, and no function to call.
    unsafe { assert_eq!(bindings::MPI_T_event_handle_free(handle, null_mut(), None), 0) };
}

/// What a site does.
#[inline(never)]
fn site(n: u32) {
    let registry = process::registry();
    if registry.gate.is_open(Event::RingFull) {
        registry.emit(&EventRecord::of_engine(Event::RingFull, EventPayload::Ring { peer: n, waiting: 1 }));
    }
}

/// Nanoseconds an event.
fn time(after: impl Fn()) -> f64 {
    let start = Instant::now();
    (0..EVENTS).for_each(|n| site(black_box(n)));
    after();
    start.elapsed().as_nanos() as f64 / f64::from(EVENTS)
}

/// As [`time`], with `handles` handles.
fn with_handles(handles: usize, function: Function, entries: u32) -> f64 {
    let made: Vec<usize> = (0..handles).map(|_| handle(function, entries)).collect();
    let time = time(|| {
        if entries > 1 {
            delivery::deliver()
        }
    });
    made.into_iter().for_each(free);
    time / handles as f64
}

/// As [`with_handles`], on a thread that is not the first, and that has had time to find its processor.
fn on_a_second_thread() -> f64 {
    let twice = || [(); 2].map(|()| with_handles(1, empty, 0))[1];
    std::thread::scope(|s| s.spawn(twice).join().expect("no panic"))
}

fn with_subscriber() -> f64 {
    let subscription = process::registry().subscribe_globally(
        Event::RingFull.into(),
        Arc::new(|record: &EventRecord<'_>| _ = black_box(record)),
    );
    let time = time(|| ());
    drop(subscription);
    time
}

/// A name, deliveries of an event, and what takes the time of a delivery.
type Case = (&'static str, usize, fn() -> f64);

const CASES: [Case; 8] = [
    ("nobody listens", 1, || time(|| ())),
    ("a global subscriber of Rust's", 1, with_subscriber),
    ("an empty callback", 1, || with_handles(1, empty, 0)),
    ("the same, on a second thread", 1, on_a_second_thread),
    ("4 empty callbacks, of each", SEVERAL, || with_handles(SEVERAL, empty, 0)),
    ("one that reads an element", 1, || with_handles(1, reading, 0)),
    ("a buffer of 1, full", 1, || with_handles(1, empty, 1)),
    ("a buffer, which gets them all", 1, || with_handles(1, empty, EVENTS)),
];

/// The cases of empty callbacks, whose goal is 5 ns.
const EMPTY: core::ops::RangeInclusive<usize> = 2..=4;

/// Median and least.
fn digest(mut samples: Vec<f64>) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    (samples[samples.len() / 2], samples[0])
}

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(31);
    if !std::env::args().any(|arg| arg == "--bench") {
        return println!("run me with `cargo bench --bench tool_events`");
    }
    let mut provided = 0;
    // SAFETY: a result that lives here.
    unsafe { assert_eq!(bindings::MPI_T_init_thread(MPI_THREAD_MULTIPLE, &mut provided), 0) };
    let samples: Vec<[f64; CASES.len()]> = (0..rounds).map(|_| CASES.map(|(_, _, time)| time())).collect();
    println!(
        "nanoseconds of a delivered event: all in, its idle site included (least); without that (least)"
    );
    let mut goal = Vec::new();
    for (at, (name, deliveries, _)) in CASES.iter().enumerate() {
        let (all, least) = digest(samples.iter().map(|round| round[at]).collect());
        let site = |round: &[f64; CASES.len()]| round[0] / *deliveries as f64;
        let (own, own_least) = digest(samples.iter().map(|round| round[at] - site(round)).collect());
        println!("{name:<28} {all:6.2} ({least:.2})   {own:6.2} ({own_least:.2})");
        if EMPTY.contains(&at) {
            goal.push(format!("{name} {all:.2}"));
        }
    }
    println!("the goal, at most 5 ns all in: {}", goal.join("; "));
}
