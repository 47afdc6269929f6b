//! A trace that is read while it is written (trace rules 2 to 5): a record is there as a whole or not at all, so is a
//! window's header, no record of the round before is taken for one of the round that has begun,
//! and a moment is read on both clocks or on none.
//!
//! Run:   .ci/loom trace
//! Bound: 2 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  less than a second.
//!
//! The reader stands for another process that maps the file: each word as the rank stored it, the one that publishes
//! the others first. `cargo xtask mutants src/trace/stage.rs` weakens each store and says which model fails
//! (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::sync::{Ordering, explore};
use perusal::internals::trace::format::{WINDOW_MAGIC, window};
use perusal::internals::trace::stage::{RecordSlot, WindowHeader};

/// Time of the last record of the first round, and the first word of a record that is later.
const AFTER: u64 = 40;
const LATER: u64 = 41;

#[derive(Default)]
struct Stage {
    header: WindowHeader,
    slot: RecordSlot,
}

impl Stage {
    /// A word of the header that says whether others are there.
    fn first(&self, offset: u64) -> u64 {
        self.header.0[offset as usize / 8].load(Ordering::Acquire)
    }

    /// A word that is read behind such a one.
    fn then(&self, offset: u64) -> u64 {
        self.header.0[offset as usize / 8].load(Ordering::Relaxed)
    }

    /// The record in the slot, if its first word is there.
    fn record(&self) -> Option<[u64; 4]> {
        let first = self.slot.0[0].load(Ordering::Acquire);
        let rest = |at: usize| self.slot.0[at].load(Ordering::Relaxed);
        (first != 0).then(|| [first, rest(1), rest(2), rest(3)])
    }
}

/// Has one thread write, and another one read.
fn beside_a_reader(before: fn(&Stage), write: fn(&Stage), read: fn(&Stage)) {
    explore(3, move || {
        let stage = Arc::new(Stage::default());
        before(&stage);
        let reader = {
            let stage = stage.clone();
            thread::spawn(move || read(&stage))
        };
        write(&stage);
        reader.join().unwrap();
        read(&stage);
    });
}

#[test]
fn a_record_that_is_there_is_whole() {
    let read = |stage: &Stage| assert!(stage.record().is_none_or(|words| words == [1, 2, 3, 4]));
    beside_a_reader(|_| {}, |stage| stage.slot.store([1, 2, 3, 4]), read);
    explore(3, || {
        let slot = RecordSlot::default();
        slot.store([1, 2, 3, 4]);
        assert_eq!(slot.0.each_ref().map(|word| word.load(Ordering::Relaxed)), [1, 2, 3, 4]);
    });
}

#[test]
fn a_header_that_is_there_is_whole() {
    let read = |stage: &Stage| {
        if stage.first(window::MAGIC) == WINDOW_MAGIC {
            let words = [window::RANK, window::SEQUENCE, window::TICKS, window::NANOSECONDS];
            assert_eq!(words.map(|offset| stage.then(offset)), [3 << 32 | 2, 1 << 32, 5, 6]);
        }
    };
    beside_a_reader(|_| {}, |stage| stage.header.open((2, 3), 1, 5, 6), read);
    explore(3, || {
        let header = WindowHeader::default();
        header.open((2, 3), 1, 5, 6);
        assert_eq!(header.0[0].load(Ordering::Relaxed), WINDOW_MAGIC);
    });
}

#[test]
fn no_record_of_the_round_before_counts_in_the_next() {
    let before = |stage: &Stage| {
        stage.header.open((2, 3), 1, 5, 6);
        stage.slot.store([AFTER, 2, 3, 4]);
    };
    let write = |stage: &Stage| {
        stage.header.reopen(AFTER, 1, 1, 7, 8);
        stage.slot.store([LATER, 5, 6, 7]);
    };
    let read = |stage: &Stage| {
        if stage.first(window::SEQUENCE) == 1 << 32 | 1 {
            assert_eq!(stage.then(window::AFTER), AFTER, "a record of the round before counts");
        }
        if stage.record().is_some_and(|words| words[0] == LATER) {
            assert_eq!(
                stage.then(window::SEQUENCE),
                1 << 32 | 1,
                "a record of this round counts in the one before"
            );
        }
    };
    beside_a_reader(before, write, read);
}

#[test]
fn a_moment_that_is_there_was_read_on_both_clocks_at_once() {
    /// The ticks, the nanoseconds, and the ticks again, as `perusal_trace::reader` reads them.
    fn moment(stage: &Stage) -> Option<(u64, u64)> {
        let ticks = stage.first(window::TICKS);
        let nanoseconds = stage.first(window::NANOSECONDS);
        (ticks != 0 && stage.then(window::TICKS) == ticks).then_some((ticks, nanoseconds))
    }
    let write = |stage: &Stage| {
        for round in 1..=2 {
            stage.header.reopen(AFTER, 1, 1, 5 + 2 * round, 6 + 2 * round);
            assert_eq!(moment(stage), Some((5 + 2 * round, 6 + 2 * round)));
        }
    };
    let read = |stage: &Stage| {
        assert!(moment(stage).is_none_or(|(ticks, nanoseconds)| nanoseconds == ticks + 1));
    };
    beside_a_reader(|stage| stage.header.open((2, 3), 1, 5, 6), write, read);
}
