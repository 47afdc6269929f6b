//! The doorbell: whoever goes to sleep is woken by what comes, whichever side is first; a lost wake-up is a deadlock,
//! which loom reports (its futex has no time-out).
//!
//! Run:   .ci/loom doorbell
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  ten seconds on two cores, nearly all for two senders that count.
//!
//! The fences are those of both sides; `membarrier(2)` is promised by the kernel to be at least as strong as the fence
//! that it replaces on the sender's side, which no model can show.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the fence of `AsymmetricFence::light_barrier`;
//! - that of `AsymmetricFence::heavy_barrier`, where a ring is no longer polled;
//! - that of `Doorbell::sleep`, where the heavy barrier is the kernel's (in a model none);
//! - the fence of `Doorbell::wake`;
//! - the look at the ring, and that at the flags, before a sleep;
//! - the store of `Consumer::enable_notification`;
//! - Release and Acquire of the flags (edge 6).
//!
//! Where news is counted: Release of the count, and Acquire in `count_of` and in `changed_counts` (edge 11), a count
//! that says one too many, the look at the counts before a sleep, the fence between a count and the look whether the
//! owner sleeps, and that look. Release and Acquire of the exchanges in `Doorbell::wake` and `Doorbell::sleep` (edge
//! 7) are not among them: that both sides exchange is enough for loom; C11 asks for no more either.
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::doorbell::Doorbell;
use perusal::internals::sync::{AsymmetricFence, Futex};
use perusal::internals::sync::{AtomicU16, AtomicU64};
use perusal::ring::{Consumer, Header, HeapRing, Producer};
use std::time::Duration;

const HEADER: Header = Header { kind: 1, context: 0, tag: 0, source: 0, id: 0 };
const FENCES: AsymmetricFence = AsymmetricFence::Processor;
/// loom's futex knows no time.
const LONG: Duration = Duration::from_secs(3600);

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

/// A bell for 64 peers and what it lies in.
struct Words {
    state: Futex,
    flags: Vec<AtomicU64>,
    counts: Vec<AtomicU16>,
}

fn words() -> Arc<Words> {
    let counts = vec![AtomicU16::new(0), AtomicU16::new(0)];
    Arc::new(Words { state: Futex::default(), flags: vec![AtomicU64::new(0)], counts })
}

fn bell(words: &Arc<Words>) -> Doorbell {
    // SAFETY: every thread that uses the bell keeps `words`.
    unsafe { Doorbell::over_parts(&words.state, &words.flags, &words.counts) }
}

/// What a sender does: commit, look whether the receiver watches, ring if not.
fn send(producer: &mut Producer<HeapRing>, to: Doorbell, from: usize) -> bool {
    let pushed = producer.try_push(&HEADER, 0, |_| ());
    FENCES.light_barrier();
    if producer.must_notify() {
        to.ring(from);
    }
    pushed
}

/// What a receiver does until it has `n` records: poll, and if there is nothing, unwatch, sleep, watch again.
fn receive(
    consumer: &mut Consumer<HeapRing>,
    own: Doorbell,
    n: usize,
    credit: impl Fn(&mut Consumer<HeapRing>),
) {
    let mut got = 0;
    consumer.disable_notification();
    while got < n {
        if consumer.poll(|_, _| ()).expect("nothing is corrupt").is_some() {
            credit(consumer);
            got += 1;
            continue;
        }
        consumer.enable_notification();
        own.sleep(FENCES, LONG, || consumer.ready());
        let _ = own.take_flags(0);
        consumer.disable_notification();
    }
}

#[test]
fn a_message_wakes_a_receiver_that_is_about_to_sleep() {
    model(|| {
        let (ring, mine) = (HeapRing::new(2, 256), words());
        let mut producer = Producer::new(ring.clone());
        let sender = {
            let mine = mine.clone();
            thread::spawn(move || {
                assert!(send(&mut producer, bell(&mine), 0));
                assert!(send(&mut producer, bell(&mine), 0));
            })
        };
        receive(&mut Consumer::new(ring), bell(&mine), 2, |_| ());
        sender.join().expect("the sender");
    });
}

/// What a sender does where news is counted: commit, say how much there is, wake who sleeps.
fn send_counted(producer: &mut Producer<HeapRing>, to: Doorbell, from: usize) {
    assert!(producer.try_push(&HEADER, 0, |_| ()));
    to.publish_count(from, producer.position());
    FENCES.light_barrier();
    if to.is_asleep() {
        to.wake();
    }
}

#[test]
fn who_sees_a_count_finds_as_many_records_and_none_is_slept_over() {
    model(|| {
        let mine = words();
        let rings = [HeapRing::new(2, 256), HeapRing::new(2, 256)];
        let senders: Vec<_> = [1, 2]
            .into_iter()
            .zip(rings.clone())
            .enumerate()
            .map(|(from, (records, ring))| {
                let mine = mine.clone();
                thread::spawn(move || {
                    let mut producer = Producer::new(ring);
                    (0..records).for_each(|_| send_counted(&mut producer, bell(&mine), from));
                })
            })
            .collect();
        let mut consumers = rings.map(Consumer::new);
        let said_more = |consumers: &[Consumer<HeapRing>; 2]| {
            (0..2).any(|from| bell(&mine).count_of(from) != consumers[from].position() as u16)
        };
        while consumers.each_ref().map(Consumer::position) != [1, 2] {
            for (from, consumer) in consumers.iter_mut().enumerate() {
                while bell(&mine).count_of(from) != consumer.position() as u16 {
                    let polled = consumer.poll(|_, _| ()).expect("nothing is corrupt");
                    assert!(polled.is_some(), "a count says only what can be seen");
                }
            }
            if consumers.each_ref().map(Consumer::position) != [1, 2] {
                bell(&mine).sleep(FENCES, LONG, || said_more(&consumers));
            }
        }
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
    });
}

#[test]
fn who_sees_a_count_among_all_finds_as_many_records() {
    model(|| {
        let (ring, mine) = (HeapRing::new(2, 256), words());
        let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
        // The sender is the first thread: loom then tries all that the receiver may see (`observed.rs`).
        let theirs = mine.clone();
        let receiver = thread::spawn(move || {
            for (from, count) in bell(&theirs).changed_counts(&[0, 0]) {
                assert_eq!(from, 1);
                for _ in 0..count {
                    assert!(consumer.poll(|_, _| ()).expect("nothing is corrupt").is_some());
                }
            }
        });
        for _ in 0..2 {
            assert!(producer.try_push(&HEADER, 0, |_| ()));
            bell(&mine).publish_count(1, producer.position());
        }
        receiver.join().expect("the receiver");
    });
}

#[test]
fn credit_wakes_a_sender_that_waits_for_room() {
    model(|| {
        let (ring, theirs, mine) = (HeapRing::new(2, 256), words(), words());
        let mut producer = Producer::new(ring.clone());
        let sender = {
            let (theirs, mine) = (theirs.clone(), mine.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    while !send(&mut producer, bell(&theirs), 0) {
                        producer.want_credit();
                        let room = || producer.room(0);
                        bell(&mine).sleep(FENCES, LONG, room);
                        let _ = bell(&mine).take_flags(0);
                    }
                }
            })
        };
        receive(&mut Consumer::new(ring), bell(&theirs), 3, |consumer| {
            if consumer.return_credit() {
                FENCES.light_barrier();
                if consumer.credit_wanted() {
                    bell(&mine).ring(0);
                }
            }
        });
        sender.join().expect("the sender");
    });
}

#[test]
fn two_peers_ring_one_sleeper_and_both_are_heard() {
    model(|| {
        let mine = words();
        let ringers: Vec<_> = (0..2)
            .map(|peer| {
                let mine = mine.clone();
                thread::spawn(move || bell(&mine).ring(peer))
            })
            .collect();
        let mut found = 0;
        while found != 0b11 {
            bell(&mine).sleep(FENCES, LONG, || false);
            found |= bell(&mine).take_flags(0);
        }
        ringers.into_iter().for_each(|ringer| ringer.join().expect("a ringer"));
    });
}

#[test]
fn a_ringer_and_a_sleeper_need_no_help_of_the_asymmetric_fence() {
    model(|| {
        let mine = words();
        let ringer = {
            let mine = mine.clone();
            thread::spawn(move || bell(&mine).ring(0))
        };
        while bell(&mine).take_flags(0) == 0 {
            bell(&mine).sleep(AsymmetricFence::Membarrier, LONG, || false);
        }
        ringer.join().expect("the ringer");
    });
}

/// What the engine does with a ring that it polls no longer.
#[test]
fn a_message_into_a_ring_that_is_not_polled_any_more_is_seen_or_flagged() {
    model(|| {
        let (ring, mine) = (HeapRing::new(2, 256), words());
        let mut producer = Producer::new(ring.clone());
        let consumer = Consumer::new(ring);
        consumer.disable_notification();
        let sender = {
            let mine = mine.clone();
            thread::spawn(move || assert!(send(&mut producer, bell(&mine), 0)))
        };
        consumer.enable_notification();
        FENCES.heavy_barrier();
        let seen = consumer.ready();
        sender.join().expect("the sender");
        assert!(seen || bell(&mine).has_any_flag(), "the receiver knows nothing of a message");
    });
}
