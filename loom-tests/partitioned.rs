//! Partitioned messages: a receiver that sees a partition counted sees all its bytes, whichever threads have sent them;
//! a round that has ended is there whole; the next round overwrites nothing that is still read; a partition is copied
//! by one thread, which sees what was stored before it was said to be ready; one that was put off is not forgotten; and
//! the thread that sees a request over may use its buffer, and the last to leave the memory.
//!
//! Run:   .ci/loom partitioned
//! Bound: 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//!
//! Time:  seconds.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::part::words::{ArrivalCount, ChannelWords, Mark, OverRound, SentCount};
use perusal::internals::sync::{AtomicUsize, Ordering, fence};

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(2, body);
}

/// One of the receiver's partitions, which two of the sender's make up.
struct Shared {
    words: ChannelWords,
    count: ArrivalCount,
    data: [Plain<u32>; 2],
    done: SentCount,
    over: OverRound,
}

impl Shared {
    fn new() -> Self {
        Self {
            words: ChannelWords::default(),
            count: ArrivalCount::default(),
            data: [Plain::new(0), Plain::new(0)],
            done: SentCount::default(),
            over: OverRound::default(),
        }
    }

    fn send(&self, half: usize, round: u64, value: u32) {
        self.data[half].set(value);
        self.count.add(4);
        if self.done.add() == 2 {
            self.words.end(round);
            self.over.end(round);
        }
    }

    fn read(&self) -> [u32; 2] {
        [0, 1].map(|half| self.data[half].get())
    }
}

#[test]
fn a_partition_that_is_counted_is_there() {
    model(|| {
        let shared = Arc::new(Shared::new());
        let threads: Vec<_> = (0..2)
            .map(|half| {
                let shared = shared.clone();
                thread::spawn(move || shared.send(half, 1, 7 + half as u32))
            })
            .collect();
        if shared.count.is(8) {
            assert_eq!(shared.read(), [7, 8]);
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert!(shared.words.has_ended(1) && shared.count.is(8));
    });
}

#[test]
fn a_round_that_has_ended_is_there() {
    model(|| {
        let shared = Arc::new(Shared::new());
        let threads: Vec<_> = (0..2)
            .map(|half| {
                let shared = shared.clone();
                thread::spawn(move || shared.send(half, 1, 7 + half as u32))
            })
            .collect();
        if shared.words.has_ended(1) {
            assert_eq!(shared.read(), [7, 8]);
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn the_next_round_waits_until_the_last_one_is_read() {
    model(|| {
        let shared = Arc::new(Shared::new());
        shared.send(0, 1, 1);
        shared.send(1, 1, 2);
        shared.done.reset();
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || {
                assert_eq!(shared.read(), [1, 2]);
                shared.words.clear(2);
            })
        };
        if shared.words.is_clear(2) {
            shared.send(0, 2, 3);
        }
        receiver.join().expect("no panic");
    });
}

#[test]
fn one_thread_copies_a_partition_and_sees_what_was_stored() {
    model(|| {
        let buffer = Arc::new((Mark::default(), Plain::new(0), AtomicUsize::new(0)));
        let copy = |buffer: &(Mark, Plain<i32>, AtomicUsize)| {
            if buffer.0.take(1) {
                assert_eq!(buffer.1.get(), 5);
                buffer.2.fetch_add(1, Ordering::Relaxed);
            }
        };
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || copy(&buffer))
        };
        buffer.1.set(5);
        assert!(buffer.0.step(1));
        copy(&buffer);
        other.join().expect("no panic");
        assert_eq!(buffer.2.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_partition_that_is_put_off_is_sent() {
    model(|| {
        let shared = Arc::new((ChannelWords::default(), Mark::default()));
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || shared.0.clear(1))
        };
        // The thread that runs progress.
        let progress = {
            let shared = shared.clone();
            thread::spawn(move || {
                let clear = shared.0.is_clear(1);
                fence(Ordering::SeqCst);
                (clear, clear && shared.1.is_ready(1) && shared.1.take(1))
            })
        };
        assert!(shared.1.step(1));
        fence(Ordering::SeqCst);
        let sent = shared.0.is_clear(1) && shared.1.take(1);
        receiver.join().expect("no panic");
        let (clear, sent_there) = progress.join().expect("no panic");
        // If it has seen the receiver's word and goes to sleep, nothing is left.
        assert!(!clear || sent || sent_there);
        assert!(!(sent && sent_there));
    });
}

#[test]
fn a_partition_that_has_been_unpacked_is_there() {
    model(|| {
        struct Unpacked(Mark, Plain<u32>);
        let shared = Arc::new(Unpacked(Mark::default(), Plain::new(0)));
        let unpacker = {
            let shared = shared.clone();
            thread::spawn(move || {
                assert!(shared.0.step(1));
                // Partition rule 2: the side that has taken the first step unpacks alone.
                shared.1.set(5);
                assert!(shared.0.take(1));
            })
        };
        if shared.0.is_over(1) {
            assert_eq!(shared.1.get(), 5);
        }
        unpacker.join().expect("no panic");
    });
}

#[test]
fn who_sees_a_send_over_may_write_the_buffer_that_all_threads_have_read() {
    model(|| {
        let shared = Arc::new(Shared::new());
        let threads: Vec<_> = (0..2)
            .map(|half| {
                let shared = shared.clone();
                thread::spawn(move || shared.send(half, 1, 7))
            })
            .collect();
        if shared.over.is_over(1) {
            shared.data.iter().for_each(|data| data.set(9));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert!(shared.over.is_over(1));
    });
}

#[test]
fn of_two_threads_that_find_a_receive_over_one_ends_it_and_nobody_sees_that_before_its_last_access() {
    model(|| {
        /// A partition's mark, that of the round, the user's buffer, and the shared memory.
        struct Received(Mark, Mark, Plain<u32>, Plain<u32>);
        let shared = Arc::new(Received(Mark::default(), Mark::default(), Plain::new(0), Plain::new(0)));
        let poll = |shared: &Received| {
            if shared.0.step(1) {
                // Partition rule 2: the side that has taken the first step unpacks alone.
                shared.2.set(5);
                assert!(shared.0.take(1));
            }
            let ends = shared.0.is_over(1) && shared.1.step(1);
            if ends {
                // The last access, which lets the sender write again.
                shared.3.update(|word| *word += 1);
                assert!(shared.1.take(1));
            }
            ends
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || poll(&shared))
        };
        let first = poll(&shared);
        if shared.1.is_over(1) {
            // Partition rule 3: the side that has seen the round over reads the buffer, and frees the shared memory.
            assert_eq!(shared.2.get(), 5);
            shared.3.update(|word| *word += 1);
        }
        assert_ne!(first, other.join().expect("no panic"), "one of the two ends it");
        assert!(shared.1.is_over(1));
    });
}

#[test]
fn the_last_of_the_two_that_leave_frees_what_both_have_used() {
    model(|| {
        let shared = Arc::new(Shared::new());
        let leave = |shared: &Shared, own: usize| {
            shared.data[own].set(1);
            let is_last = shared.words.leave();
            if is_last {
                // Partition rule 3: the other is done with the memory.
                shared.data.iter().for_each(|data| data.set(0));
            }
            is_last
        };
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || leave(&shared, 1))
        };
        let own = leave(&shared, 0);
        assert_ne!(own, receiver.join().expect("no panic"), "one of the two is the last");
    });
}
