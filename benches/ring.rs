//! What a ring costs: `cargo bench --bench ring`.
//!
//! - one thread: a record pushed and polled, and its credit given back: the instructions alone;
//! - there and back: two threads, each on a CPU of its own, one record at a time over a ring for each direction: the lines' way;
//! - stream: one pushes and the other polls, as fast as they can.

mod common;

use common::{Time, asked_for, bind, time};
use perusal::limits::APART;
use perusal::ring::{Consumer, Header, MappedRing, Producer};
use std::alloc::{Layout, alloc_zeroed};
use std::hint::{black_box, spin_loop};
use std::ptr::NonNull;
use std::thread;

const SIZES: [usize; 6] = [0, 8, 40, 64, 1024, 4096];
const CELLS: usize = 256;
const BULK: usize = 1 << 16;
const HEADER: Header = Header { kind: 1, context: 0, tag: 7, source: 0, id: 0 };

type Ends = (Producer<MappedRing>, Consumer<MappedRing>);

/// A ring as ranks have it, kept for the rest of the process.
fn ring() -> Ends {
    let layout =
        Layout::from_size_align(MappedRing::bytes(CELLS, BULK), APART).expect("a size of some kilobytes");
    // SAFETY: the layout is not empty.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    // SAFETY: as many zeroed, aligned bytes, never freed, and known to this ring alone.
    let ring = unsafe { MappedRing::new(base, CELLS, BULK) };
    (Producer::new(ring), Consumer::new(ring))
}

fn push(producer: &mut Producer<MappedRing>, payload: &[u8]) {
    while !producer.try_push(&HEADER, payload.len(), |to| to.copy_from_slice(payload)) {
        spin_loop();
    }
}

/// Waits for a record. Gives whether its first byte is 255, which ends a conversation.
fn poll(consumer: &mut Consumer<MappedRing>) -> bool {
    loop {
        let got = consumer
            .poll(|header, bytes| black_box(header).tag == -1 || black_box(bytes).first() == Some(&255));
        if let Some(last) = got.expect("nobody spoils the ring") {
            consumer.publish();
            return last;
        }
        spin_loop();
    }
}

fn one_thread(size: usize) -> Time {
    let ((mut producer, mut consumer), payload) = (ring(), vec![1; size]);
    time(|n| {
        for _ in 0..n {
            push(&mut producer, black_box(&payload));
            poll(&mut consumer);
        }
    })
}

fn last(producer: &mut Producer<MappedRing>) {
    let header = Header { tag: -1, ..HEADER };
    while !producer.try_push(&header, 0, |_| ()) {
        spin_loop();
    }
}

fn there_and_back(size: usize) -> Time {
    let ((mut to, mut there), (mut back, mut from)) = (ring(), ring());
    let payload = vec![1; size];
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(1);
            let payload = vec![1; size];
            while !poll(&mut there) {
                push(&mut back, &payload);
            }
        });
        let timing = scope.spawn(|| {
            bind(0);
            let time = time(|n| {
                for _ in 0..n {
                    push(&mut to, &payload);
                    poll(&mut from);
                }
            });
            last(&mut to);
            time
        });
        timing.join().expect("timing does not fail").map(|trip| trip / 2.0)
    })
}

fn stream(size: usize) -> Time {
    let (mut producer, mut consumer) = ring();
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(1);
            while !poll(&mut consumer) {}
        });
        let timing = scope.spawn(|| {
            bind(0);
            let payload = vec![1; size];
            let time = time(|n| (0..n).for_each(|_| push(&mut producer, &payload)));
            last(&mut producer);
            time
        });
        timing.join().expect("timing does not fail")
    })
}

fn main() {
    if !asked_for() {
        return println!("run me with `cargo bench --bench ring`");
    }
    let cpus = perusal::job::cpus::affinity().len();
    println!(
        "ns a record: median (10 %, 90 %)\n{:>6}{:>24}{:>24}{:>24}",
        "bytes", "one thread", "one way", "in a stream"
    );
    for size in SIZES {
        let alone = one_thread(size);
        if cpus < 2 {
            println!("{size:>6}{alone:>24}{:>24}{:>24}", "needs two CPUs", "needs two CPUs");
        } else {
            println!("{size:>6}{alone:>24}{:>24}{:>24}", there_and_back(size), stream(size));
        }
    }
}
