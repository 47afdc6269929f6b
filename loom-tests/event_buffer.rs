//! The buffer of an MPI_T event handle, and the table of its functions:
//! nothing is lost, nothing is delivered twice, nothing is seen half.
//!
//! Run:   .ci/loom event_buffer
//! Bound: every interleaving of 2 threads; of 3 threads those with at most 3 preemptions, and of the table, whose
//!        epochs have many steps of their own, those with one (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  two seconds on two cores, all models together.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - Release, and Acquire, of a cell's turn in `BufferProducer::push`;
//! - the same in `BufferConsumer::take`;
//! - the count of a drop.
//!
//! Of orders that are not orderings: a turn passed on before the entry is written (4 models); in `BufferChain` the
//! passes' ends taken from the oldest buffer on (2), a buffer taken away before it is delivered (2), its drops
//! forgotten (1), a pass that goes on behind an entry that is claimed and not written
//! (`an_entry_behind_one_that_is_not_yet_written_is_not_overtaken_by_a_later_buffers`). Without Release of the claim
//! and Acquire in `BufferConsumer::claimed` the entries of a replaced buffer are delivered too late
//! (`what_a_thread_put_in_before_a_buffer_was_replaced_is_delivered_before_what_it_put_in_after`).
//!
//! Not shown: that the same two order drops before later entries. The drops are taken
//! by an exchange, and loom's exchanges read the newest value, whatever is ordered;
//! the language promises that to ordered ones alone.
//!
//! Loom watches every access to an entry: it fails a model in which it is written and read, or written twice,
//! without an edge between.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::thread;
use perusal::internals::tool::event::buffer::{BufferConsumer, BufferProducer, buffer};
use perusal::internals::tool::event::buffer_chain::BufferChain;
use perusal::internals::tool::event::callback_table::{CallbackPointer, CallbackTable};
use std::sync::Arc;

fn model(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // None is every interleaving, which nothing raises.
    builder.preemption_bound = preemptions.map(|own| own.max(builder.preemption_bound.unwrap_or(0)));
    builder.check(body);
}

/// A pass: takes what was claimed when it began.
fn pass(consumer: &mut BufferConsumer<u64>) -> Vec<u64> {
    let until = consumer.claimed();
    core::iter::from_fn(|| consumer.take(until)).collect()
}

/// Entries put in and dropped by one thread that puts in `entries`.
fn put(producer: &BufferProducer<u64>, entries: impl Iterator<Item = u64>) -> usize {
    entries.filter(|entry| producer.push(*entry)).count()
}

fn accounting(size: usize, producers: u64, each: u64, preemptions: Option<usize>) {
    model(preemptions, move || {
        let (producer, mut consumer) = buffer(size).unwrap();
        let producer = Arc::new(producer);
        let threads: Vec<_> = (0..producers)
            .map(|thread| {
                let producer = producer.clone();
                thread::spawn(move || put(&producer, (0..each).map(|n| 10 * thread + n)))
            })
            .collect();
        let mut seen = pass(&mut consumer);
        let mut dropped = producer.dropped();
        let kept: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        seen.extend(pass(&mut consumer));
        dropped += producer.dropped();
        assert!(consumer.is_empty());
        assert_eq!(seen.len(), kept, "what was put in comes out, once");
        assert_eq!(kept as u64 + dropped, producers * each, "seen and dropped is all");
        for thread in 0..producers {
            let own: Vec<_> = seen.iter().filter(|entry| **entry / 10 == thread).collect();
            assert!(own.is_sorted(), "one thread's entries stay in order");
        }
    });
}

#[test]
fn one_entry_is_room_enough_for_a_producer_and_a_consumer() {
    accounting(1, 1, 3, None);
}

#[test]
fn two_entries_wrap_between_a_producer_and_a_consumer() {
    accounting(2, 1, 4, None);
}

#[test]
fn two_producers_share_one_entry_and_every_drop_is_counted() {
    accounting(1, 2, 2, Some(3));
}

#[test]
fn two_producers_share_two_entries_and_every_drop_is_counted() {
    accounting(2, 2, 2, Some(3));
}

#[test]
fn what_was_dropped_at_one_handle_is_reported_before_what_the_same_thread_emitted_at_another_later() {
    model(None, || {
        let (full, _keep) = buffer::<u64>(1).unwrap();
        let (other, mut consumer) = buffer(1).unwrap();
        let full = Arc::new(full);
        assert!(full.push(1));
        let emitter = {
            let full = full.clone();
            thread::spawn(move || {
                assert!(!full.push(2), "dropped here");
                assert!(other.push(3), "and later emitted there");
            })
        };
        // A pass in its three steps: how far, drops, entries.
        let until = consumer.claimed();
        let dropped = full.dropped();
        if consumer.take(until).is_some() {
            assert_eq!(dropped, 1);
        }
        emitter.join().unwrap();
    });
}

fn callback(n: usize) -> CallbackPointer {
    CallbackPointer {
        function: core::ptr::without_provenance_mut(n),
        data: core::ptr::without_provenance_mut(n),
    }
}

#[test]
fn function_and_data_are_of_one_change_however_many_come() {
    model(Some(1), || {
        let table = Arc::new(CallbackTable::<1>::new());
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let seen = table.get(0);
                assert_eq!(seen.function.addr(), seen.data.addr());
                seen.function.addr()
            })
        };
        for n in 1..3 {
            table.set([callback(n)]);
        }
        assert!(reader.join().unwrap() < 3);
        assert_eq!(table.get(0), callback(2));
    });
}

#[test]
fn what_a_tool_wrote_before_it_registered_a_function_is_seen_by_the_function() {
    model(Some(1), || {
        let table = Arc::new(CallbackTable::<1>::new());
        let data = Arc::new(Plain::new(0));
        let reader = {
            let (table, data) = (table.clone(), data.clone());
            thread::spawn(move || {
                if table.get(0) != CallbackPointer::NONE {
                    assert_eq!(data.get(), 7);
                }
            })
        };
        data.set(7);
        table.set([callback(1)]);
        reader.join().unwrap();
    });
}

/// What `buffers` have for a pass: all of it, in order.
fn pass_over(buffers: &BufferChain<u64>) -> Vec<u64> {
    let mut delivered = Vec::new();
    buffers.begin_pass();
    buffers.take(|entry| delivered.push(entry));
    delivered
}

#[test]
fn what_a_thread_put_in_before_a_buffer_was_replaced_is_delivered_before_what_it_put_in_after() {
    model(Some(2), || {
        let buffers = Arc::new(BufferChain::new());
        let (old, new) = (buffers.add(2).unwrap(), buffers.add(1).unwrap());
        let emitter = thread::spawn(move || {
            assert!(old.push(1));
            assert!(new.push(2));
        });
        let delivered = beside(&buffers, pass_over);
        let mut delivered = delivered.join().unwrap();
        assert!([&[][..], &[1], &[1, 2]].contains(&&delivered[..]), "{delivered:?}");
        emitter.join().unwrap();
        delivered.extend(pass_over(&buffers));
        assert_eq!(delivered, [1, 2]);
    });
}

#[test]
fn an_entry_behind_one_that_is_not_yet_written_is_not_overtaken_by_a_later_buffers() {
    model(Some(2), || {
        let buffers = Arc::new(BufferChain::new());
        let (old, new) = (buffers.add(2).unwrap(), buffers.add(1).unwrap());
        let theirs = old.clone();
        let other = thread::spawn(move || assert!(theirs.push(9)));
        let emitter = thread::spawn(move || {
            assert!(old.push(1));
            assert!(new.push(2));
        });
        let mut delivered = pass_over(&buffers);
        [other, emitter].into_iter().for_each(|thread| thread.join().unwrap());
        delivered.extend(pass_over(&buffers));
        delivered.retain(|entry| *entry != 9);
        assert_eq!(delivered, [1, 2]);
    });
}

#[test]
fn a_thread_and_a_change_of_size_leave_no_entry_behind_and_no_drop_uncounted() {
    model(Some(2), || {
        let buffers = Arc::new(BufferChain::new());
        let (old, new) = (buffers.add(1).unwrap(), buffers.add(1).unwrap());
        let emitter = thread::spawn(move || {
            (1..3).for_each(|n| _ = old.push(n));
            drop(old);
            new.push(3);
        });
        let passes = beside(&buffers, |buffers| (pass_over(buffers), buffers.dropped()));
        let (mut delivered, mut dropped) = passes.join().unwrap();
        emitter.join().unwrap();
        delivered.extend(pass_over(&buffers));
        dropped += buffers.dropped();
        assert_eq!(delivered.len() as u64 + dropped, 3, "{delivered:?} and {dropped} drops");
        assert!(delivered.is_sorted(), "{delivered:?}");
    });
}

/// Runs `with` on a thread of its own.
fn beside<R: Send + 'static>(
    buffers: &Arc<BufferChain<u64>>,
    with: impl FnOnce(&BufferChain<u64>) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let buffers = buffers.clone();
    thread::spawn(move || with(&buffers))
}
