//! What a delivered event costs: from the site's look at the gate to the return of the last callback.
//!
//! ```text
//! cargo bench --bench events
//! ```
//!
//! Each line gives nanoseconds of one delivered event: the median of the rounds, the span of their middle half, and the
//! least. In a round all cases run one after the other, each with many events in a row; so what it costs to read the
//! clock does not matter, and what the machine does meets all alike. That is why the loop is this file's own: divan
//! runs one case to its end before the next, and a virtual processor that changes its speed every few seconds would
//! then decide which is quicker. The last lines are of threads that come after the first one, which finds its
//! hazard pointer at once, and show how far such threads disturb each other when they emit at the same time.
use core::ffi::{c_int, c_long, c_void};
use core::hint::black_box;
use perusal::events::{
    Callback, CommEvents, CommSpec, Event, EventPayload, EventRecord, EventSet, GlobalSubscription, Registry,
    Spec, Subscription,
};
use std::sync::{Arc, Barrier};
use std::time::Instant;

const ROUNDS: usize = 41;
const EVENTS: u32 = 100_000;
const EVENT: Event = Event::ReqActivate;

unsafe extern "C" fn empty(_: c_long, _: isize, _: *mut CommSpec, _: *mut c_void) -> c_int {
    0
}

/// What a site of the engine does: the specification is filled when somebody listens.
#[inline(never)]
fn site(comm: &CommEvents, id: isize) {
    if comm.gate.is_open(EVENT) {
        let spec = Spec {
            comm: comm.comm(),
            buf: core::ptr::null_mut(),
            count: black_box(8),
            datatype: 7,
            peer: 1,
            tag: 2,
            bytes: 8,
            ..Spec::NOTHING
        };
        comm.emit_once(EVENT, id, 0, EventPayload::None, spec);
    }
}

fn run(comm: &CommEvents) -> f64 {
    let start = Instant::now();
    for id in 0..EVENTS {
        site(black_box(comm), id as isize + 1);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS)
}

/// Prints the cost of an event, and of each of `deliveries` deliveries of it.
fn report(name: &str, deliveries: u32, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let at = |part: usize| samples[(samples.len() - 1) * part / 4] / f64::from(deliveries.max(1));
    println!("{name:<44} {:>6.2} ns  ({:.2} to {:.2}, least {:.2})", at(2), at(1), at(3), at(0));
}

/// One that raises, and what listens to it: of a registry of its own.
struct Case {
    name: String,
    deliveries: u32,
    comm: Arc<CommEvents>,
    _listener: Box<dyn core::any::Any>,
}

fn case<T: 'static>(
    name: impl Into<String>,
    deliveries: u32,
    listen: impl FnOnce(&Arc<Registry>, &Arc<CommEvents>) -> T,
) -> Case {
    let (registry, comm) = bench();
    let listener = Box::new((listen(&registry, &comm), registry));
    Case { name: name.into(), deliveries, comm, _listener: listener }
}

fn handles(registry: &Registry, comm: &Arc<CommEvents>, n: u32) {
    for _ in 0..n {
        let callback = Callback::C { function: empty, param: core::ptr::null_mut() };
        let handle = registry.register(comm, EVENT, callback).expect("a handle");
        registry.activate(handle).expect("it is new");
    }
}

fn bench() -> (Arc<Registry>, Arc<CommEvents>) {
    let registry = Registry::new(Box::new(|why| panic!("{why}")));
    let comm = registry.attach(1);
    (registry, comm)
}

fn subscribe(registry: &Arc<Registry>) -> GlobalSubscription {
    registry.subscribe_globally(EventSet::ALL, Arc::new(|record: &EventRecord<'_>| _ = black_box(record.id)))
}

/// On `n` threads at once, none of which is the one that came first.
fn threads<T>(name: &str, n: usize, listen: impl FnOnce(&Arc<Registry>, &Arc<CommEvents>) -> T) {
    let (registry, comm) = bench();
    let _listener = listen(&registry, &comm);
    let start = Barrier::new(n);
    let samples = std::thread::scope(|s| {
        let all: Vec<_> = (0..n)
            .map(|_| {
                s.spawn(|| {
                    start.wait();
                    (0..ROUNDS / n).map(|_| run(&comm)).collect::<Vec<_>>()
                })
            })
            .collect();
        all.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    report(name, 1, samples);
}

fn main() {
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    println!("nanoseconds of a delivered event, all in: median (middle half, least)");
    let mut cases = vec![
        case("nobody listens: a site", 1, |_, _| ()),
        case("a global subscriber with an empty function", 1, |registry, _| subscribe(registry)),
        case("a closure of Rust's", 1, |_, comm| {
            Subscription::new(comm, EVENT, |what| _ = black_box(what.id)).expect("a handle")
        }),
    ];
    cases.extend([1, 2, 4].map(|n| {
        let name = format!("PERUSE, {n} handles with an empty callback");
        case(name, n, |registry, comm| handles(registry, comm, n))
    }));
    let mut samples = vec![Vec::new(); cases.len()];
    for round in 0..=ROUNDS {
        for (case, samples) in cases.iter().zip(&mut samples) {
            let sample = run(&case.comm);
            // The first round is the processor's to learn from.
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    for (case, samples) in cases.iter().zip(samples) {
        report(&case.name, case.deliveries, samples);
    }
    threads("a global subscriber, on a second thread", 1, |registry, _| subscribe(registry));
    threads("a global subscriber, on two such threads at once", 2, |registry, _| subscribe(registry));
    threads("PERUSE, 1 handle, on a second thread", 1, |registry, comm| handles(registry, comm, 1));
    threads("PERUSE, 1 handle, on two such threads at once", 2, |registry, comm| handles(registry, comm, 1));
}
