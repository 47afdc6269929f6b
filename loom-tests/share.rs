//! A copy that two ranks share: no unit is copied by both, none is left out, what the sender copied is there when it
//! says so, and a sender that comes late for one turn takes nothing of the next.
//!
//! Run:   .ci/loom share
//! Bound: 2 threads, two turns, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that); under
//!        loom a taker takes one unit at the end (`LEAST`).
//! Time:  a second.
//!
//! Weakened, each of these makes the model fail (checked by editing the line and running, one at a time): `take` that
//! stores what it has computed instead of exchanging it; `take_high` that does not look at the turn.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::protocol::rendezvous::{Claims, Split};
use perusal::internals::sync::{AtomicU64, Ordering};
use std::ops::Range;

const TURNS: usize = 2;
const UNIT: usize = 4096;
const UNITS: usize = 4;

/// The words between two ranks, and the receiver's buffer: each unit holds the turn that wrote it.
struct Pair {
    word: AtomicU64,
    /// Stands for the record `Fill` of each turn: the turn's number.
    announced: [AtomicU64; TURNS],
    /// Stands for `Filled`: bytes.
    filled: [AtomicU64; TURNS],
    buffer: [Plain<usize>; UNITS],
}

impl Pair {
    fn copy(&self, part: Range<usize>, turn: usize) -> usize {
        for unit in part.start / UNIT..part.end.div_ceil(UNIT) {
            // Share rule 2: the unit is ours.
            let before = self.buffer[unit].update(|unit| core::mem::replace(unit, turn));
            assert_ne!(before, turn, "copied twice");
        }
        part.len()
    }
}

fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

fn receiver(pair: &Pair, split: Split) {
    for turn in 1..=TURNS {
        let claims = Claims::over(&pair.word);
        let (number, first) = claims.open(split);
        // Release: the ring's edge 1.
        pair.announced[turn - 1].store(u64::from(number), Ordering::Release);
        let mut moved = pair.copy(first, turn);
        while let Some(part) = claims.take_low(number, split).expect("sound") {
            moved += pair.copy(part, turn);
        }
        let missing = (UNITS * UNIT - moved) as u64;
        // Acquire: the ring's edge 1.
        until(|| missing == 0 || pair.filled[turn - 1].load(Ordering::Acquire) == missing);
        for unit in &pair.buffer {
            // All of it has been copied.
            assert_eq!(unit.get(), turn);
        }
    }
}

fn sender(pair: &Pair, split: Split) {
    for turn in 1..=TURNS {
        let mut number = 0;
        until(|| {
            number = pair.announced[turn - 1].load(Ordering::Acquire) as u32;
            number != 0
        });
        let mut moved = 0;
        while let Some(part) = Claims::over(&pair.word).take_high(number, split).expect("sound") {
            moved += pair.copy(part, turn);
        }
        pair.filled[turn - 1].store(moved as u64, Ordering::Release);
    }
}

#[test]
fn every_unit_is_copied_once_and_seen_by_the_receiver() {
    perusal::model::check(3, || {
        let pair = Arc::new(Pair {
            word: AtomicU64::new(0),
            announced: core::array::from_fn(|_| AtomicU64::new(0)),
            filled: core::array::from_fn(|_| AtomicU64::new(0)),
            buffer: core::array::from_fn(|_| Plain::new(0)),
        });
        let split = Split::of(UNITS * UNIT);
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || sender(&other, split));
        receiver(&pair, split);
        thread.join().unwrap();
    });
}
