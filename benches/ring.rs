//! What a ring costs, by bytes of payload: `cargo bench --bench ring [-- NAME]`.
//!
//! - `one_thread`: a record pushed and polled, and its credit given back: the instructions alone;
//! - `round_trip`: two threads, each on a CPU of its own, one record at a time over a ring for each direction:
//!   the lines' way, twice;
//! - `stream`: one pushes and the other polls, as fast as they can.

mod common;

use common::{bind, two_cpus};
use divan::Bencher;
use perusal::internals::limits::APART;
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
            consumer.return_credit();
            return last;
        }
        spin_loop();
    }
}

fn last(producer: &mut Producer<MappedRing>) {
    let header = Header { tag: -1, ..HEADER };
    while !producer.try_push(&header, 0, |_| ()) {
        spin_loop();
    }
}

#[divan::bench(args = SIZES)]
fn one_thread(bencher: Bencher<'_, '_>, size: usize) {
    let ((mut producer, mut consumer), payload) = (ring(), vec![1; size]);
    bencher.bench_local(|| {
        push(&mut producer, black_box(&payload));
        poll(&mut consumer);
    });
}

#[divan::bench(args = SIZES, ignore = !two_cpus())]
fn round_trip(bencher: Bencher<'_, '_>, size: usize) {
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
        bind(0);
        bencher.bench_local(|| {
            push(&mut to, &payload);
            poll(&mut from);
        });
        last(&mut to);
    });
}

#[divan::bench(args = SIZES, ignore = !two_cpus())]
fn stream(bencher: Bencher<'_, '_>, size: usize) {
    let (mut producer, mut consumer) = ring();
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(1);
            while !poll(&mut consumer) {}
        });
        bind(0);
        let payload = vec![1; size];
        bencher.bench_local(|| push(&mut producer, &payload));
        last(&mut producer);
    });
}

fn main() {
    divan::main();
}
