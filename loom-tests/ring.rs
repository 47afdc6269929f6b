//! The ring: a record is seen whole or not at all, in order, and its room is written again only when it has been read.
//!
//! Run:   .ci/loom ring
//! Bound: 2 threads, every interleaving with at most 2 preemptions, in the longest model 1
//!        (with LOOM_MAX_PREEMPTIONS one more); a ring of 2 cells
//!        (or of 8 that do not wrap, where bulk does) and 256 bulk bytes.
//! Time:  about a second on two cores, all models together.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - Release of `Producer::commit`, Acquire of `Consumer::poll_if`, of `Consumer::poll_batch` and of
//!   `Consumer::check_ahead` (edge 1);
//! - Release of the heads in `Consumer::return_credit` and Acquire of them in `Producer::cells_free` and
//!   `Producer::bulk_free` (edge 2);
//! - Release of `Blocks::put` and Acquire of `Blocks::take` (edge 12).
#![cfg(perusal_loom)]

use loom::thread;
use perusal::ring::{Blocks, Consumer, Header, HeapRing, Producer, Storage};
use std::sync::atomic::Ordering;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // One more where more are asked for: two more take hours.
    builder.preemption_bound = Some(preemptions + usize::from(builder.preemption_bound.is_some()));
    builder.check(body);
}

fn header(id: u32) -> Header {
    Header { kind: 1, context: id + 10, tag: -1, source: 4, id }
}

/// Pushes records of these lengths, each filled with its number.
fn push_all(producer: &mut Producer<HeapRing>, lens: &[usize]) {
    for (id, &len) in lens.iter().enumerate() {
        while !producer.try_push(&header(id as u32), len, |to| to.fill(id as u8 + 1)) {
            thread::yield_now();
        }
    }
}

fn poll_all(consumer: &mut Consumer<HeapRing>, lens: &[usize]) {
    for (id, &len) in lens.iter().enumerate() {
        loop {
            let got = consumer.poll(|seen, data| {
                assert_eq!(*seen, header(id as u32), "the envelope is whole and in order");
                assert!(
                    data.len() == len && data.iter().all(|&byte| byte == id as u8 + 1),
                    "so is the payload"
                );
            });
            consumer.return_credit();
            match got.expect("nothing is corrupt") {
                Some(()) => break,
                None => thread::yield_now(),
            }
        }
    }
}

fn pass(lens: &'static [usize]) {
    pass_with(2, 2, lens);
}

/// As [`poll_all`] of inline records, as many at a time as are there.
fn run_all(consumer: &mut Consumer<HeapRing>, lens: &[usize]) {
    let mut next = 0;
    while next < lens.len() {
        let taken = consumer.poll_batch(lens.len() - next, |seen, data| {
            assert_eq!(*seen, header(next as u32), "the envelope is whole and in order");
            assert!(
                data.len() == lens[next] && data.iter().all(|&byte| byte == next as u8 + 1),
                "so is the payload"
            );
            next += 1;
            true
        });
        consumer.return_credit();
        if taken == 0 {
            thread::yield_now();
        }
    }
}

fn pass_with(preemptions: usize, cells: usize, lens: &'static [usize]) {
    model(preemptions, move || {
        let ring = HeapRing::new(cells, 256);
        let mut producer = Producer::new(ring.clone());
        let sender = thread::spawn(move || push_all(&mut producer, lens));
        poll_all(&mut Consumer::new(ring), lens);
        sender.join().expect("the sender");
    });
}

#[test]
fn small_records_wrap_around_the_cells() {
    pass(&[8, 0, 40]);
}

#[test]
fn small_records_are_taken_as_a_run() {
    model(2, || {
        let lens = &[8, 0, 40];
        let ring = HeapRing::new(2, 256);
        let mut producer = Producer::new(ring.clone());
        let sender = thread::spawn(move || push_all(&mut producer, lens));
        run_all(&mut Consumer::new(ring), lens);
        sender.join().expect("the sender");
    });
}

#[test]
fn a_stream_is_awaited_from_a_distance() {
    model(2, || {
        let lens = &[8, 0, 40, 8];
        let ring = HeapRing::new(2, 256);
        let mut producer = Producer::new(ring.clone());
        let sender = thread::spawn(move || push_all(&mut producer, lens));
        let mut consumer = Consumer::new(ring);
        let mut next = 0;
        while next < lens.len() {
            if !consumer.should_take(lens.len() - next) {
                thread::yield_now();
                continue;
            }
            let taken = consumer.poll_batch(lens.len(), |seen, data| {
                assert_eq!(*seen, header(next as u32), "the envelope is whole and in order");
                assert!(data.len() == lens[next] && data.iter().all(|&byte| byte == next as u8 + 1));
                next += 1;
                true
            });
            assert!(taken > 0, "a look that says so is right");
            consumer.return_credit();
        }
        sender.join().expect("the sender");
    });
}

#[test]
fn larger_records_wrap_around_the_bulk_area() {
    // 64 bytes each of 256: the fifth would overwrite the first.
    // More cells than records, so that only bulk credit counts.
    pass_with(1, 8, &[64, 64, 64, 64, 64]);
}

#[test]
fn a_lap_begins_anew_when_its_beginning_has_been_read() {
    // A line each: the next lap may begin behind each of them.
    model(1, || {
        let lens = &[64, 64, 48, 64, 64];
        let ring = HeapRing::new(8, 256);
        let mut producer = Producer::new(ring.clone()).with_short_laps();
        let sender = thread::spawn(move || push_all(&mut producer, lens));
        poll_all(&mut Consumer::new(ring).with_short_laps(), lens);
        sender.join().expect("the sender");
    });
}

#[test]
fn small_and_larger_records_mix() {
    pass(&[48, 8, 50]);
}

/// A rank whose ends are used by two threads sends in its only block, and again when it has perhaps got it back; its
/// peer answers in that block.
#[test]
fn a_block_goes_to_and_fro() {
    model(1, || {
        let [there, back] = [(); 2].map(|()| HeapRing::new(8, 512));
        for (ring, given) in [(&there, 0b1110), (&back, 0b1111)] {
            ring.control().producer.blocks.store(given, Ordering::Relaxed);
        }
        let own = Blocks::new(there.clone(), back.clone());
        let peers = Blocks::new(back.clone(), there.clone());
        let mut producer = Producer::new(there.clone()).passing(own.clone());
        let mut consumer = Consumer::new(back.clone()).passing(own.clone());
        let peer = thread::spawn(move || {
            let mut producer = Producer::new(back).passing(peers.clone());
            let mut consumer = Consumer::new(there).passing(peers);
            poll_all(&mut consumer, &[64]);
            push_all(&mut producer, &[48]);
        });
        let receiver = thread::spawn(move || poll_all(&mut consumer, &[48]));
        push_all(&mut producer, &[64]);
        for _ in 0..3 {
            // The peer has all four of the ring to it, and this rank none of the other ring's.
            if own.left() == (0b1111, 0) {
                thread::yield_now();
            }
        }
        assert!(producer.try_push(&header(1), 64, |to| to.fill(2)));
        for thread in [peer, receiver] {
            thread.join().expect("a thread");
        }
    });
}
